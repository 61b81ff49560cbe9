/* Files. All operating-system calls about files are made here. Paths are UTF-8. */
#ifndef STI_BASE_FILE_H
#define STI_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/memory.h"
#include "stint/status.h"

/* Read a whole file of at most max_bytes (or what a pipe that the process was given
 * brings, as /dev/stdin and /dev/fd/N; a pipe by any other name is refused); *data_out
 * is sti_alloc'ed, NUL-terminated after *bytes_out bytes, the caller frees. STINT_E_IO,
 * or STINT_E_INPUT when too large. */
stint_status sti_file_read(const char *path, size_t max_bytes, void **data_out,
                           size_t *bytes_out);

/* Opens a regular file for reading, without ever waiting: the opening of a pipe waits
 * for its other end, and a device may never end. STINT_E_IO where it cannot be opened,
 * STINT_E_INPUT where it is something else. Whatever is not read whole is opened here.
 */
stint_status sti_file_open(const char *path, int *fd_out);
/* The same for a folder, to open files in it by name. */
stint_status sti_folder_open(const char *path, int *fd_out);
/* The same for a stream; the caller fcloses. */
stint_status sti_file_open_stream(const char *path, FILE **file_out);
/* The same for a name in an open folder, whose path is for the messages. */
stint_status sti_file_open_at(int folder, const char *folder_path, const char *name,
                              int *fd_out);

/* Atomic writing: a temporary file in the same folder, then flush, fsync, rename and
 * fsync of the folder. A crash at any instant leaves either the old file or the new
 * one. */
typedef struct sti_writer sti_writer;
stint_status sti_writer_open(const char *path, sti_writer **writer_out);
stint_status sti_writer_add(sti_writer *writer, const void *bytes, size_t n_bytes);
/* Closes and frees the writer, also on failure. */
stint_status sti_writer_commit(sti_writer *writer);
/* Removes the temporary; NULL is fine. */
void sti_writer_abort(sti_writer *writer);
/* The three in one. */
stint_status sti_file_write(const char *path, const void *bytes, size_t n_bytes);
/* The same for a secret: mode 0600, whatever stood there before, and no copy stays in
 * memory. */
stint_status sti_file_write_private(const char *path, const void *bytes,
                                    size_t n_bytes);

/* A new empty file in $TMPDIR, else /var/tmp, for the caller to replace or fill and to
 * remove. what: a word for its name. STINT_E_USAGE: TMPDIR is too long; STINT_E_IO. */
stint_status sti_file_temporary(const char *what, char *path_out, size_t path_bytes);

/* With parents; an existing folder is fine. */
stint_status sti_dir_create(const char *path);
/* Waits until no other process holds the folder's lock and takes it, for reading a file
 * in it and writing it anew. -1 where it cannot be had, as on some file systems: go on
 * without. */
int sti_dir_lock(const char *path);
void sti_dir_unlock(int lock); /* -1 is fine */
bool sti_path_is_dir(const char *path);
bool sti_path_is_file(const char *path);
/* STINT_E_IO where a pipe, a device or a folder has this name: to be asked before a
 * file of one's own is opened there, as opening a pipe waits for its other end, and a
 * device may never end. Nothing there is fine. */
stint_status sti_path_check_file(const char *path);
/* One name, or two of one file that is there. */
bool sti_path_is_same(const char *a, const char *b);
/* Join, with an absolute `name` winning; absolute form of a path. In the arena. */
char *sti_path_join(sti_arena *arena, const char *folder, const char *name);
char *sti_path_absolute(sti_arena *arena, const char *path);
char *sti_path_folder(sti_arena *arena, const char *path);
const char *sti_path_name(const char *path);      /* after the last slash */
const char *sti_path_extension(const char *path); /* ".png" or "" */

/* "<cache folder>/name" into path, the folder being $XDG_CACHE_HOME/stint or
 * ~/.cache/stint; false when neither can be named. Makes nothing. */
bool sti_cache_path(const char *name, char *path, size_t size);

/* Names in a folder, sorted by byte value, "." and ".." left out; in the arena. */
stint_status sti_dir_list(sti_arena *arena, const char *path, char ***names_out,
                          int64_t *count_out);

/* pread until n_bytes are there; STINT_E_IO names path and offset,
 * also at end of file. */
stint_status sti_read_at(int fd, const char *path, int64_t offset, void *buffer,
                         size_t n_bytes);

/* write until n_bytes are out; STINT_E_IO names path. */
stint_status sti_write_all(int fd, const char *path, const void *bytes, size_t n_bytes);

/* SHA-256, hex text of 64 characters and NUL. */
typedef struct sti_sha256 {
    uint64_t opaque[32];
} sti_sha256;
void sti_sha256_init(sti_sha256 *state);
void sti_sha256_add(sti_sha256 *state, const void *bytes, size_t n_bytes);
void sti_sha256_hex(sti_sha256 *state, char hex_out[65]);
/* A hash that has not ended, as bytes that mean the same on every machine: another
 * process can go on with it. Any bytes are a state; none of them does harm. */
enum { STI_SHA256_STATE_BYTES = 8 * 4 + 8 + 64 };
void sti_sha256_get(const sti_sha256 *state, uint8_t bytes_out[STI_SHA256_STATE_BYTES]);
void sti_sha256_set(sti_sha256 *state, const uint8_t bytes[STI_SHA256_STATE_BYTES]);

/* CRC-32C (Castagnoli), as in TensorBoard records. */
uint32_t sti_crc32c(uint32_t crc, const void *bytes, size_t n_bytes);

#endif
