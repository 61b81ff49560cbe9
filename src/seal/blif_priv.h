/* A BLIF file as it is read, before it becomes gates. Private to the room. */
#ifndef STI_SEAL_BLIF_PRIV_H
#define STI_SEAL_BLIF_PRIV_H

#include "seal/formats.h"
#include "seal/text_words.h"

typedef enum sti_blif_driver {
    STI_BLIF_NOTHING,
    STI_BLIF_INPUT,
    STI_BLIF_TABLE,
    STI_BLIF_LATCH
} sti_blif_driver;

typedef struct sti_blif_signal {
    const char *name; /* in the text */
    size_t length;
    sti_blif_driver driver;
    int64_t index; /* of the input, table or latch */
    int64_t line;  /* where it was named first */
    bool is_clock;
    uint8_t visit; /* while they are put in order */
} sti_blif_signal;

/* .names: rows of '0', '1' and '-', all with the same answer. */
typedef struct sti_blif_table {
    int64_t first, inputs; /* in sti_blif.list */
    int64_t row, rows;     /* in sti_blif.row */
    int64_t out, line;
    bool answer;
} sti_blif_table;

typedef struct sti_blif_latch {
    int64_t in, out;
    bool initial;
} sti_blif_latch;

/* Arrays that grow. */
typedef struct sti_blif {
    const char *path;
    sti_words words;
    sti_blif_signal *signal;
    int64_t signals, signal_capacity;
    int64_t *bucket; /* [buckets]: signal + 1 by hash of its name */
    int64_t buckets;
    sti_blif_table *table;
    int64_t tables, table_capacity;
    sti_blif_latch *latch;
    int64_t latches, latch_capacity;
    int64_t *list; /* signals that tables take */
    int64_t lists, list_capacity;
    const char **row; /* first characters of rows */
    int64_t rows, row_capacity;
    int64_t *input, *output; /* signals */
    int64_t inputs, input_capacity, outputs, output_capacity;
    int64_t *order; /* [tables]: one after those it needs */
    int64_t ordered;
} sti_blif;

/* Fill in all but the order from the text. */
stint_status sti_blif_parse(sti_blif *blif);
/* Fill in the order; STINT_E_INPUT for loops and signals that nothing drives. */
stint_status sti_blif_sort(sti_blif *blif);
void sti_blif_fini(sti_blif *blif);

#endif
