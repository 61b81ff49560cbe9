/* The table behind stint_data_get, and the same for a set that a test makes up. */
#ifndef STI_DATA_DATA_GET_H
#define STI_DATA_DATA_GET_H

#include "stint/data.h"

typedef struct sti_get_member {
    const char *path; /* inside the archive, and below the folder */
    int64_t bytes;    /* -1: any number */
} sti_get_member;

typedef struct sti_get_file {
    const char *name;
    int64_t bytes;
    const char *sha256; /* 64 hex digits */
    /* Files to unpack from a .tar.gz, ended by a NULL path; NULL: it is kept as it is.
     */
    const sti_get_member *members;
} sti_get_file;

typedef struct sti_get_set {
    const char *name;
    const char *bases[3]; /* URLs to try in order, NULL-ended, with the last slash */
    const sti_get_file *files; /* ended by a NULL name */
} sti_get_set;

/* As stint_data_get; desc->name is not looked at. */
stint_status sti_data_get_set(const sti_get_set *set, const stint_data_get_desc *desc);

#endif
