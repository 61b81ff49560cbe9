/* The loops of top-k one element at a time: the reference, and the ends of the vector
 * loops. */
#ifndef STI_KERNEL_TOPK_SCALAR_H
#define STI_KERNEL_TOPK_SCALAR_H

#include <math.h>

#include "kernel/topk/topk_key.h"

/* Loops whose flags are known where they are called: a test of one in every step costs
 * as much as the step. */
#define INLINE static inline __attribute__((always_inline))

static inline int64_t topk_collect(const sti_topk_view *v, int64_t begin, int64_t end,
                                   uint32_t lo, uint32_t hi, uint64_t *out,
                                   int64_t *above)
{
    int64_t count = 0;
    for (int64_t i = begin; i < end; i++) {
        const uint32_t key = sti_topk_key_at(v, i);
        if (key > hi)
            ++*above;
        else if (key >= lo)
            out[count++] = sti_topk_pack(key, i);
    }
    return count;
}

static inline int64_t topk_count(const sti_topk_view *v, int64_t begin, int64_t end,
                                 uint32_t lo, uint32_t hi, int64_t *above)
{
    int64_t count = 0;
    for (int64_t i = begin; i < end; i++) {
        const uint32_t key = sti_topk_key_at(v, i);
        *above += key > hi;
        count += key >= lo && key <= hi;
    }
    return count;
}

static inline int64_t topk_keys(const sti_topk_view *v, int64_t begin, int64_t end,
                                uint32_t lo, uint32_t hi, uint32_t *out, int64_t *above)
{
    int64_t count = 0;
    for (int64_t i = begin; i < end; i++) {
        const uint32_t key = sti_topk_key_at(v, i);
        *above += key > hi;
        if (key >= lo && key <= hi)
            out[count++] = key;
    }
    return count;
}

static inline int64_t topk_at_least(const uint32_t *keys, int64_t count, uint32_t lo)
{
    int64_t at_least = 0;
    for (int64_t i = 0; i < count; i++)
        at_least += keys[i] >= lo;
    return at_least;
}

/* Element i as value number `at`. */
static inline void topk_put_value(const sti_topk_view *v, int64_t i,
                                  unsigned char *value_out, int64_t at)
{
    const uint32_t raw = sti_topk_bits_at(v, i);
    const uint16_t half = (uint16_t)raw;
    switch (v->form) {
    case STI_TOPK_F16:
    case STI_TOPK_BF16:
        memcpy(value_out + 2 * at, &half, sizeof half);
        return;
    case STI_TOPK_I8:
        value_out[at] = (unsigned char)raw;
        return;
    case STI_TOPK_F32:
    case STI_TOPK_I32:
    case STI_TOPK_SUM:
    case STI_TOPK_KEYS:
    case STI_TOPK_FORMS:
        break;
    }
    memcpy(value_out + 4 * at, &raw, sizeof raw);
}

static inline int64_t topk_emit(const sti_topk_view *v, int64_t begin, int64_t end,
                                uint32_t lo, int64_t base, int64_t *index_out,
                                unsigned char *value_out)
{
    int64_t count = 0;
    for (int64_t i = begin; i < end; i++)
        if (sti_topk_key_at(v, i) >= lo) {
            if (value_out)
                topk_put_value(v, i, value_out, count);
            index_out[count++] = base + i;
        }
    return count;
}

/* Elements from `from` on of a short row, and the zeros behind them. */
static inline void topk_short_row(const sti_topk_view *v, int64_t from,
                                  sti_topk_short_row *b)
{
    int64_t i = from;
    for (; i < v->n; i++) {
        const uint32_t key = sti_topk_key_at(v, i);
        uint32_t *high = &b->high[i % STI_TOPK_LANES],
                 *low = &b->low[i % STI_TOPK_LANES];
        b->keys[i] = key;
        *high = key > *high ? key : *high;
        *low = key < *low ? key : *low;
        b->best = key > b->best ? key : b->best;
    }
    for (; i % STI_TOPK_LANES != 0; i++)
        b->keys[i] = 0;
}

static inline int64_t topk_emit_range(const sti_topk_short_row *b, int64_t begin,
                                      int64_t end, uint32_t lo, int64_t at)
{
    for (int64_t i = begin; i < end; i++) {
        if (b->keys[i] < lo)
            continue;
        if (b->packed) {
            b->packed[at++] = sti_topk_pack(b->keys[i], i);
            continue;
        }
        if (b->values)
            memcpy(b->values + 4 * at, b->raw + 4 * i, 4);
        b->index[at++] = b->base + i;
    }
    return at;
}

static inline void topk_histogram(const sti_topk_view *v, int64_t begin, int64_t end,
                                  uint32_t lo, uint32_t hi, int shift, uint32_t *counts)
{
    for (int64_t i = begin; i < end; i++) {
        const uint32_t at = sti_topk_key_at(v, i) - lo;
        if (at <= hi - lo)
            counts[at >> shift]++;
    }
}

static inline uint32_t topk_delegate(const sti_topk_view *v, int64_t begin, int64_t end)
{
    uint32_t best = 0;
    for (int64_t i = begin; i < end; i++) {
        const uint32_t key = sti_topk_key_at(v, i);
        best = key > best ? key : best;
    }
    return best;
}

static inline void topk_delegate2(const sti_topk_view *v, int64_t begin, int64_t end,
                                  uint32_t d[2], uint16_t *position)
{
    uint32_t best = sti_topk_key_at(v, begin), second = 0;
    *position = 0;
    for (int64_t i = begin + 1; i < end; i++) {
        const uint32_t key = sti_topk_key_at(v, i);
        if (key > best) {
            second = best;
            best = key;
            *position = (uint16_t)(i - begin);
        } else if (key > second) {
            second = key;
        }
    }
    d[0] = best;
    d[1] = second;
}

#endif
