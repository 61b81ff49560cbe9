/* Tables of labelled rows: LIBSVM text, ARFF, and image sets as rows of pixels / 255.
 *
 * LIBSVM text: "label index:value ..." a line, indices strictly ascending and counted
 * from 1; a file that counts from 0 is taken, with one warning. The label stands on
 * every line or on none. ARFF: numeric attributes, dense or sparse rows, and the label
 * in the attribute named class or, where none is, in the only nominal one. Labels are
 * numbers, or words where one is none. Errors name file and line, what was seen and
 * what was wanted. */
#ifndef STI_DATA_DATA_TABLE_H
#define STI_DATA_DATA_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/csr.h"
#include "base/memory.h"
#include "stint/data.h"

typedef enum sti_table_format {
    STI_TABLE_AUTO, /* a folder: images; a name ending in .arff: ARFF; else LIBSVM */
    STI_TABLE_LIBSVM,
    STI_TABLE_ARFF,
    STI_TABLE_IMAGES
} sti_table_format;

/* Zero means "choose for me"; path is required. */
typedef struct sti_table_desc {
    const char *path;
    sti_table_format format;
    stint_data_split split; /* images: which */
    int64_t count;          /* as many rows, drawn by seed and in their order; 0: all */
    uint64_t seed;
    int threads;         /* LIBSVM text, the same table for any; 0: one */
    size_t limit_bytes;  /* the table and what reading it takes; 0: no limit */
    size_t beside_bytes; /* for messages: what the process takes beside them */
} sti_table_desc;

typedef struct sti_table {
    sti_csr x;               /* a value's column is its index as a file writes it */
    int64_t first;           /* the least index: 1, or 0 where the file counts so */
    double *y;               /* [rows] a number, or one of names; NULL: no labels */
    const char **names;      /* [name_count] labels that are words; NULL: numbers */
    int64_t name_count;      /* in the order in which they came up */
    sti_table_format format; /* what it was read from */
    size_t peak_bytes;       /* taken while it was read */
    size_t bytes;            /* taken now */
    sti_arena *arena;        /* names */
} sti_table;

/* Read a table. STINT_E_INPUT: it is no such file, or damaged; STINT_E_BUDGET: it does
 * not fit into limit_bytes; STINT_E_IO; STINT_E_MEMORY. */
stint_status sti_table_read(const sti_table_desc *desc, sti_table *table_out);
/* The same of a text in memory; `name` begins messages. Not for images. */
stint_status sti_table_parse(const char *text, size_t n_bytes, const char *name,
                             sti_table_format format, sti_table *table_out);
/* Bytes that a text of a LIBSVM or ARFF file takes as a table, at most. */
size_t sti_table_text_bytes(const char *text, size_t n_bytes, sti_table_format format);
void sti_table_fini(sti_table *table); /* also of a zeroed one */

/* Which of the formats a file is, by its name and what it is. */
sti_table_format sti_table_format_of(const char *path);

/* Write as LIBSVM text or as ARFF (sparse rows, a label named class), by the ending of
 * the name: .arff is ARFF. Numbers in the shortest form that reads back. Atomic.
 * STINT_E_INPUT: a label or index that the format cannot hold; STINT_E_IO. */
stint_status sti_table_write(const sti_table *table, const char *path);

#endif
