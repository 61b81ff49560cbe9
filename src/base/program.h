/* Resident pages of the program's own files: what of them is mapped by chance is put in
 * order, so that their number can be known beforehand. */
#ifndef STI_BASE_PROGRAM_H
#define STI_BASE_PROGRAM_H

#include <stddef.h>

typedef struct sti_program_pages {
    size_t
        code_bytes; /* read-only parts of what is in use: all of it is resident now */
    size_t data_bytes; /* writable parts of everything loaded */
} sti_program_pages;

/* Map every read-only page of the object that this function is in, and of the libraries
 * whose file names begin with one of `used` (NULL ends it), and give back those of all
 * other objects, which the system reads again when they are wanted. Which pages of a
 * file a process has touched otherwise depends on where the system happened to put it.
 * Zeros where this cannot be done. */
void sti_program_settle(const char *const *used, sti_program_pages *pages_out);

#endif
