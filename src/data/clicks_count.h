/* Inside the data room: counting click data in pieces that fit memory.
 *
 * Ids are dealt into parts by their hash. Each part is counted by itself and leaves its
 * ids in the order of ranks; the parts' orders are merged into the ranks; each part
 * then says the ranks of its occurrences, which are dealt into blocks of neighbouring
 * samples; and each block is filled and written. Every file is written and read from
 * the front. clicks_count.c counts and ranks, clicks_write.c writes the samples. */
#ifndef STI_DATA_CLICKS_COUNT_H
#define STI_DATA_CLICKS_COUNT_H

#include "data/clicks_file.h"
#include "data/clicks_ids.h"
#include "data/clicks_spill.h"
#include "data/clicks_text.h"

enum { STI_CLICKS_PARTS = 64 };

/* A part of the ids: their text as it came, then who is where. */
typedef struct sti_click_part {
    sti_spill ids;    /* occurrences in the order of the file, with their text */
    sti_spill places; /* the same by number of the id */
    sti_spill order;  /* entries with a row of their own, most frequent first */
    sti_spill known;  /* ids of desc->like, with their ranks */
    sti_spill ranks;  /* number of the id, rank */
    int64_t distinct;
} sti_click_part;

typedef struct sti_click_counter {
    const sti_clicks_desc *desc;
    sti_clicks clicks; /* what is made */
    sti_click_text text;
    sti_click_part part[STI_CLICKS_PARTS], block[STI_CLICKS_PARTS]; /* block: `ids` */
    int parts, blocks;
    int64_t block_samples;
    sti_spill numbers;       /* labels and numbers, a sample after the other */
    sti_click_ids ids;       /* of the part at hand */
    sti_click_entry *others; /* [fields] */
    uint32_t *bag;           /* [fields] ids of this field in the sample so far */
    char *room;              /* 64 KiB, for an id */
    size_t memory_bytes;
    sti_clicks_blocks body; /* of the file */
    FILE *out;              /* what is written, at path `part_path` */
    char part_path[1100];
    sti_spill counts, names; /* a u32 a rank; the ids' section */
} sti_click_counter;

/* All text into parts; sizes into counter->clicks. */
stint_status sti_click_counter_read(sti_click_counter *counter);
/* Parts into ranks: counts, names, and where each occurrence belongs. */
stint_status sti_click_counter_rank(sti_click_counter *counter);
/* The file at `path`. */
stint_status sti_click_counter_write(sti_click_counter *counter, const char *path);

#endif
