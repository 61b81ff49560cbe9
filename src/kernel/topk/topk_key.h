/* From an element's bits to its key, one element at a time.
 *
 * Floats: sign and magnitude become an unsigned order b ^ (sign ? all ones : top bit).
 * Subtracting the key of -infinity puts it at 0 and wraps the negative NaN around to
 * where the positive ones are, above +infinity, so one minimum gives all NaN one key;
 * adding `shift` then may wrap that key to 0. No comparison with NaN, no branches, and
 * the vector bodies do just the same. Integers: the top bit is flipped; for magnitudes
 * the key is the magnitude itself. Unsigned ones are keys as they are, or with all bits
 * flipped: the form is that of signed ones, only the map differs. Keys of 16 and 8 bits
 * lie in the low bits. Types that have no form here are those of topk_wide.h. */
#ifndef STI_KERNEL_TOPK_KEY_H
#define STI_KERNEL_TOPK_KEY_H

#include <string.h>

#include "kernel/topk/topk_priv.h"

static inline size_t sti_topk_element_bytes(sti_topk_form form)
{
    switch (form) {
    case STI_TOPK_F16:
    case STI_TOPK_BF16:
        return 2;
    case STI_TOPK_I8:
        return 1;
    case STI_TOPK_F32:
    case STI_TOPK_I32:
    case STI_TOPK_SUM:
    case STI_TOPK_KEYS:
    case STI_TOPK_FORMS:
        break;
    }
    return 4;
}

static inline sti_topk_form sti_topk_form_of(const stint_topk_desc *desc)
{
    static const sti_topk_form forms[] = {STI_TOPK_F32, STI_TOPK_F16, STI_TOPK_BF16,
                                          STI_TOPK_I32, STI_TOPK_I8,  STI_TOPK_I32,
                                          STI_TOPK_I8};
    return desc->has_addend ? STI_TOPK_SUM : forms[desc->type];
}

static inline sti_topk_map sti_topk_map_make(const stint_topk_desc *desc,
                                             sti_topk_form form)
{
    const int bits = 8 * (int)sti_topk_element_bytes(form);
    const uint32_t ones = UINT32_MAX >> (32 - bits), top_bit = ones ^ (ones >> 1);
    const uint32_t infinity = form == STI_TOPK_F16    ? 0x7C00u
                              : form == STI_TOPK_BF16 ? 0x7F80u
                                                      : 0x7F800000u;
    sti_topk_map map = {.zero = desc->zeros_equal};
    if (desc->type == STINT_TOPK_U32 || desc->type == STINT_TOPK_U8) {
        map.flip = desc->key == STINT_TOPK_MIN ? ones : 0;
        return map;
    }
    if (form == STI_TOPK_I32 || form == STI_TOPK_I8) {
        map.keep = desc->key == STINT_TOPK_ABS ? ones : 0;
        map.flip = desc->key == STINT_TOPK_ABS   ? 0
                   : desc->key == STINT_TOPK_MIN ? ones ^ top_bit
                                                 : top_bit;
        return map;
    }
    map.keep = desc->key == STINT_TOPK_ABS ? ones ^ top_bit : ones;
    map.flip = desc->key == STINT_TOPK_MIN ? top_bit : 0;
    map.low = (ones ^ (infinity | top_bit)) + map.zero; /* of -infinity */
    map.top = (infinity | top_bit) - map.low + 1;       /* next above +infinity */
    if (desc->nan == STINT_TOPK_NAN_LAST)
        map.shift = ones - map.top + 1;
    return map;
}

static inline uint32_t sti_topk_float_key(uint32_t raw, uint32_t top_bit,
                                          const sti_topk_map *m)
{
    const uint32_t ones = (top_bit << 1) - 1;
    const uint32_t b = (raw & m->keep) ^ m->flip;
    const uint32_t sign = (b & top_bit) ? ones : 0;
    uint32_t u = (b ^ (sign | top_bit)) + (sign & m->zero);
    u = (u - m->low) & ones;
    u = u < m->top ? u : m->top;
    return (u + m->shift) & ones;
}

static inline uint32_t sti_topk_int_key(uint32_t raw, uint32_t top_bit,
                                        const sti_topk_map *m)
{
    const uint32_t ones = (top_bit << 1) - 1;
    const uint32_t turn = (raw & top_bit) ? m->keep : 0; /* keep: all ones for |x| */
    return (((raw ^ turn) - turn) & ones) ^ m->flip;
}

static inline float sti_topk_load_f32(const unsigned char *p)
{
    float f;
    memcpy(&f, p, sizeof f);
    return f;
}

/* The element's bits: of x, or of the sum. */
static inline uint32_t sti_topk_bits_at(const sti_topk_view *v, int64_t i)
{
    uint32_t word;
    uint16_t half;
    float sum;
    switch (v->form) {
    case STI_TOPK_F16:
    case STI_TOPK_BF16:
        memcpy(&half, v->x + 2 * i, sizeof half);
        return half;
    case STI_TOPK_I8:
        return v->x[i];
    case STI_TOPK_SUM:
        sum = sti_topk_load_f32(v->x + 4 * i) + sti_topk_load_f32(v->addend + 4 * i);
        memcpy(&word, &sum, sizeof word);
        return word;
    case STI_TOPK_F32:
    case STI_TOPK_I32:
    case STI_TOPK_KEYS:
    case STI_TOPK_FORMS:
        break;
    }
    memcpy(&word, v->x + 4 * i, sizeof word);
    return word;
}

static inline uint32_t sti_topk_key_of(uint32_t raw, sti_topk_form form,
                                       const sti_topk_map *m)
{
    switch (form) {
    case STI_TOPK_F16:
    case STI_TOPK_BF16:
        return sti_topk_float_key(raw, 0x8000u, m);
    case STI_TOPK_I32:
        return sti_topk_int_key(raw, 0x80000000u, m);
    case STI_TOPK_I8:
        return sti_topk_int_key(raw, 0x80u, m);
    case STI_TOPK_KEYS:
        return raw;
    case STI_TOPK_F32:
    case STI_TOPK_SUM:
    case STI_TOPK_FORMS:
        break;
    }
    return sti_topk_float_key(raw, 0x80000000u, m);
}

static inline uint32_t sti_topk_key_at(const sti_topk_view *v, int64_t i)
{
    return sti_topk_key_of(sti_topk_bits_at(v, i), v->form, &v->map);
}

/* Read a byte of element i, so that its line comes: a prefetch may give up where the
 * address of the page is not known. */
static inline void sti_topk_touch(const sti_topk_view *v, int64_t i)
{
    const size_t bytes = sti_topk_element_bytes(v->form);
    (void)*(const volatile unsigned char *)(v->x + (size_t)i * bytes);
}

/* Whether elements have 32 bits and a key tells them, unless it is that of NaN. */
static inline bool sti_topk_key_tells(const sti_topk_view *v)
{
    const sti_topk_map *m = &v->map;
    return v->form == STI_TOPK_I32
               ? m->keep == 0
               : (v->form == STI_TOPK_F32 || v->form == STI_TOPK_SUM) &&
                     m->keep == UINT32_MAX && m->zero == 0;
}

static inline uint64_t sti_topk_pack(uint32_t key, int64_t index)
{
    return (uint64_t)key << 32 | (uint32_t) ~(uint32_t)index;
}

static inline int64_t sti_topk_packed_index(uint64_t packed)
{
    return (uint32_t) ~(uint32_t)packed;
}

/* The element's bits where keys tell them. */
static inline uint32_t sti_topk_packed_bits(const sti_topk_view *v, uint64_t packed)
{
    const sti_topk_map *m = &v->map;
    const uint32_t key = (uint32_t)(packed >> 32), top_bit = 0x80000000u;
    if (v->form == STI_TOPK_I32)
        return key ^ m->flip;
    if (key == m->top + m->shift)
        return sti_topk_bits_at(v, sti_topk_packed_index(packed));
    const uint32_t order = key - m->shift + m->low;
    return ((order & top_bit) ? order ^ top_bit : ~order) ^ m->flip;
}

#endif
