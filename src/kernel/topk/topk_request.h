/* A call as topk_request.c has checked it and topk.c carries it out. */
#ifndef STI_KERNEL_TOPK_REQUEST_H
#define STI_KERNEL_TOPK_REQUEST_H

#include "kernel/topk/topk_key.h"

enum {
    STI_TOPK_PART_DEFAULT = 1 << 30,
    STI_TOPK_THREADS_MAX = 1024,
    STI_TOPK_EXPONENT_MAX = 15
};

typedef struct sti_topk_request {
    const stint_topk_desc *desc;
    sti_topk_costs costs;
    sti_topk_form form, list_form; /* of x, of a list of values */
    sti_topk_map map;
    size_t element_bytes;
    int64_t rows, stride, n, k, part; /* k <= n */
    int slots;                        /* rows worked on at once */
    bool short_row;                   /* rows are short, and by no other method */
    sti_topk_plan plan;               /* of a row that is taken whole */
    sti_team team;
} sti_topk_request;

/* The memory of a row at work: the list for parts, `packed` and `other` for sorting. */
typedef struct sti_topk_slot {
    int64_t *list_index;       /* [list capacity] */
    unsigned char *list;       /* likewise */
    uint64_t *packed;          /* [k] */
    uint64_t *other;           /* [k] */
    uint32_t *counts;          /* [STI_TOPK_BINS] */
    sti_topk_layout layout;    /* for one selection */
    sti_topk_scratch *scratch; /* in it, for whole rows that are no part */
} sti_topk_slot;

/* Whether the fields of desc that are no sizes have possible values. */
static inline bool sti_topk_words_are_good(const stint_topk_desc *d)
{
    return d->type >= 0 && d->type < STINT_TOPK_TYPES && d->key >= 0 &&
           d->key <= STINT_TOPK_ABS && d->nan >= 0 && d->nan <= STINT_TOPK_NAN_LAST &&
           d->method >= 0 && d->method < STINT_TOPK_METHODS &&
           (!d->has_addend || d->type == STINT_TOPK_F32) && d->threads >= 0 &&
           d->threads <= STI_TOPK_THREADS_MAX && d->exponent >= 0 &&
           d->exponent <= STI_TOPK_EXPONENT_MAX;
}

/* STINT_E_USAGE names the first field that has not. */
stint_status sti_topk_check_words(const stint_topk_desc *desc);
stint_status sti_topk_check_sizes(const stint_topk_desc *desc);
/* Everything of desc is checked. */
stint_status sti_topk_request_make(const stint_topk_desc *desc, sti_topk_request *r);
sti_topk_plan sti_topk_plan_for(const sti_topk_request *r, sti_topk_form form,
                                int64_t n, int64_t k, stint_topk_method method);
/* One slot; NULL where the layout only counts. */
sti_topk_slot *sti_topk_take_slot(sti_topk_layout *layout, const sti_topk_request *r);
/* Bytes of all slots, and what aligns them; false where that fits no address space. */
bool sti_topk_request_bytes(const sti_topk_request *r, size_t *bytes_out);

/* STINT_E_INPUT: the first NaN of a call that refuses them. */
stint_status sti_topk_nan_fail(int64_t row, int64_t index);

static inline int64_t sti_topk_winners_of(const stint_topk_desc *desc)
{
    return desc->k < desc->n ? desc->k : desc->n;
}

/* Types whose keys have more bits than, or another width from, those of the vector
 * loops. */
static inline bool sti_topk_is_wide(stint_topk_type type)
{
    return type >= STINT_TOPK_F64;
}

static inline bool sti_topk_is_short_row(const stint_topk_desc *d)
{
    return d->n > 0 && d->n <= STI_TOPK_SHORT && d->k > 0 &&
           !sti_topk_is_wide(d->type) && (d->part == 0 || d->part >= d->n) &&
           (d->method == STINT_TOPK_AUTO || d->method == STINT_TOPK_NARROW);
}

static inline bool sti_topk_has_nan(sti_topk_form form)
{
    return form != STI_TOPK_I32 && form != STI_TOPK_I8;
}

#endif
