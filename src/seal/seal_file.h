/* The frame that all files of the room share, and bytes in and out.
 *
 *     "STSEAL" kind version   8 bytes
 *     payload length          8 bytes, little end first
 *     payload
 *     SHA-256 of all before   32 bytes
 *
 * A reader of payload checks every length before it uses it: after a field that is not
 * there or out of range `bad` is set, and all later fields read as zeros. */
#ifndef STI_SEAL_FILE_H
#define STI_SEAL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

typedef enum sti_seal_kind {
    STI_SEAL_CIRCUIT = 'C',
    STI_SEAL_SECRET = 'S',
    STI_SEAL_EVAL = 'E',
    STI_SEAL_INPUT = 'I',
    STI_SEAL_OUTPUT = 'O'
} sti_seal_kind;

/* "a circuit", "a secret key"; "an unknown file" for other numbers. */
const char *sti_seal_kind_name(sti_seal_kind kind);

/* The first out_bytes of the SHA-256, at most 32. */
void sti_seal_hash(const uint8_t *data, size_t n_bytes, uint8_t *out, size_t out_bytes);

typedef struct sti_bytes {
    uint8_t *data;
    size_t length, capacity;
    bool failed; /* no memory */
} sti_bytes;

/* Appending; a failed allocation is remembered. */
void sti_bytes_add(sti_bytes *bytes, const void *data, size_t n_bytes);
void sti_bytes_add_number(sti_bytes *bytes, uint64_t value, int n_bytes);
/* Overwrites what it held before it is freed: it may have been a key. */
void sti_bytes_fini(sti_bytes *bytes);

typedef struct sti_reader {
    const uint8_t *data;
    size_t length, at;
    bool bad;
} sti_reader;

uint64_t sti_reader_number(sti_reader *reader, int n_bytes);
/* A number from low to high, or `bad` and low. */
int64_t sti_reader_range(sti_reader *reader, int n_bytes, int64_t low, int64_t high);
/* A pointer to the next n_bytes, or NULL and `bad`. */
const uint8_t *sti_reader_take(sti_reader *reader, size_t n_bytes);

/* A whole file in memory. */
typedef struct sti_seal_file {
    uint8_t *data;
    size_t bytes;
    sti_reader payload;
} sti_seal_file;

/* Read and check the frame. STINT_E_INPUT: not such a file, of another kind (both are
 * named, with `hint` where it is a secret key that was given), cut or changed. */
stint_status sti_seal_file_open(const char *path, sti_seal_kind kind,
                                sti_seal_file *file_out);
void sti_seal_file_close(sti_seal_file *file); /* wipes */
/* Failure of a payload that is not sound, or STINT_OK: nothing may be left over. */
stint_status sti_seal_file_check(const sti_seal_file *file, const char *path);
/* Frame and write atomically; `secret`: readable for its owner alone. */
stint_status sti_seal_file_write(const char *path, sti_seal_kind kind,
                                 const sti_bytes *payload, bool secret);

#endif
