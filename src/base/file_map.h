/* A file's bytes read where they lie: a private mapping, for reading alone.
 *
 * Its pages are the system's copy of the file, shared by all who read it. They count as
 * resident memory of the process once they were touched, with a few beside them, and
 * the system may take them back and read them again. A file that is replaced (renamed
 * over, as Stint's writers do) stays as it was for who has mapped it; one that is cut
 * off in place ends the process when its lost pages are read. */
#ifndef STI_BASE_FILE_MAP_H
#define STI_BASE_FILE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

typedef struct sti_file_map sti_file_map;

/* The first n_bytes > 0 of an open file, which may be closed then; path is for the
 * message. The first byte lies at a multiple of the page. STINT_E_IO, STINT_E_MEMORY.
 */
stint_status sti_file_map_create(int fd, const char *path, size_t n_bytes,
                                 sti_file_map **map_out);
void sti_file_map_destroy(sti_file_map *map); /* NULL is fine */

/* What the file has at an offset; NULL beyond its end. */
const void *sti_file_map_at(const sti_file_map *map, int64_t offset);

/* [n_bytes] from `from` on, and what was read before, will not be read for a while: all
 * pages leave the process, those beside them that came along, too, and come back when
 * they are touched. False, with no effect, where they are no part of the mapping. */
bool sti_file_map_rest(const sti_file_map *map, const void *from, size_t n_bytes);

/* [n_bytes] from `from` on will be read; ignored where they are no part of it. */
void sti_file_map_keep(sti_file_map *map, const void *from, size_t n_bytes);
/* All that will not be is given up: to be called once, and whatever was not kept may
 * not be read any more. All pages leave the process. Returns the bytes of the pages
 * kept, which is what the mapping takes once all of it was read. */
size_t sti_file_map_settle(sti_file_map *map);

/* Bring all pages that are kept in together, which takes a fraction of what it takes
 * to meet them one after the other. */
void sti_file_map_fill(const sti_file_map *map);

#endif
