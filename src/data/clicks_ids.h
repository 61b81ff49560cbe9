/* Inside the data room: the different ids of a part of click data, counted. */
#ifndef STI_DATA_CLICKS_IDS_H
#define STI_DATA_CLICKS_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

typedef struct sti_click_entry {
    uint64_t hash, count, first; /* times in the training part; first position */
    size_t text;                 /* offset of its bytes */
    uint16_t field, length;
    uint32_t rank;
} sti_click_entry;

typedef struct sti_click_ids {
    sti_click_entry *entry; /* [count], in the order in which they came up */
    int64_t count, capacity;
    uint32_t *slot; /* [slots] entry + 1, or 0 */
    int64_t slots;
    char *text;
    size_t text_bytes, text_capacity;
} sti_click_ids;

uint64_t sti_click_hash(int field, const char *id, size_t length);
/* The entry of an id, made where it is new; -1 after STINT_E_MEMORY. */
int64_t sti_click_ids_find(sti_click_ids *ids, int field, const char *id, size_t length,
                           bool *new_out);
/* As empty, with its memory. */
void sti_click_ids_clear(sti_click_ids *ids);
void sti_click_ids_fini(sti_click_ids *ids);

#endif
