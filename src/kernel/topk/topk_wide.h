/* Top-k of elements whose keys are 64 bits wide: f64, integers of 64 bits, and those of
 * 16 for which there are no vector loops.
 *
 * The k-th key is found digit by digit, 11 bits at a time from the top, by histograms
 * of the elements where they lie; as soon as few elements share the digits found so
 * far, their keys are gathered and the rest is looked for among them. A last pass gives
 * what is above that key, and of its equals the first. Cost: three reads of a row for
 * values of which few share their upper 22 bits, seven at most, whatever the order. */
#ifndef STI_KERNEL_TOPK_WIDE_H
#define STI_KERNEL_TOPK_WIDE_H

#include "kernel/topk/topk_request.h"

/* As the public calls of the same names, for types that sti_topk_is_wide. */
stint_status sti_topk_wide_bytes(const stint_topk_desc *desc, size_t *bytes_out);
stint_status sti_topk_wide(const stint_topk_desc *desc, const void *x,
                           int64_t *index_out, void *values_out, void *workspace,
                           size_t workspace_bytes);
stint_status sti_topk_wide_explain(const stint_topk_desc *desc,
                                   stint_topk_method *method_out, int *exponent_out,
                                   double *seconds_out);

/* Bytes of an element, of a type that is wide. */
static inline size_t sti_topk_wide_element_bytes(stint_topk_type type)
{
    return type == STINT_TOPK_I16 || type == STINT_TOPK_U16 ? 2 : 8;
}

/* From bits to keys whose unsigned order is the order asked for. Floats: NaN takes the
 * greatest or the least of all keys, which no number has. */
typedef struct sti_topk_wide_map {
    uint64_t top;  /* sign bit of the type; 0: it has none */
    uint64_t ones; /* bits of the type */
    stint_topk_key key;
    bool is_float, zeros_equal;
    uint64_t nan_key;
} sti_topk_wide_map;

static inline sti_topk_wide_map sti_topk_wide_map_make(const stint_topk_desc *desc)
{
    const bool narrow = sti_topk_wide_element_bytes(desc->type) == 2;
    const bool is_unsigned =
        desc->type == STINT_TOPK_U64 || desc->type == STINT_TOPK_U16;
    const uint64_t ones = narrow ? UINT16_MAX : UINT64_MAX;
    return (sti_topk_wide_map){
        .top = is_unsigned ? 0 : ones ^ (ones >> 1),
        .ones = ones,
        .key = desc->key,
        .is_float = desc->type == STINT_TOPK_F64,
        .zeros_equal = desc->zeros_equal,
        .nan_key = desc->nan == STINT_TOPK_NAN_LAST ? 0 : UINT64_MAX,
    };
}

static inline uint64_t sti_topk_wide_float_key(uint64_t bits,
                                               const sti_topk_wide_map *m)
{
    const uint64_t size = bits & ~m->top;
    if (size > UINT64_C(0x7FF0000000000000))
        return m->nan_key;
    if (m->key == STINT_TOPK_ABS)
        bits = size;
    else if (m->key == STINT_TOPK_MIN)
        bits ^= m->top;
    if (m->zeros_equal && size == 0)
        bits = 0;
    return bits & m->top ? ~bits : bits | m->top;
}

static inline uint64_t sti_topk_wide_key(uint64_t bits, const sti_topk_wide_map *m)
{
    if (m->is_float)
        return sti_topk_wide_float_key(bits, m);
    if (m->key == STINT_TOPK_ABS)
        return bits & m->top ? (~bits + 1) & m->ones : bits;
    const uint64_t order = bits ^ m->top;
    return m->key == STINT_TOPK_MIN ? order ^ m->ones : order;
}

static inline uint64_t sti_topk_wide_bits_at(const unsigned char *x, int64_t i,
                                             size_t bytes)
{
    uint64_t wide;
    uint16_t half;
    if (bytes == 2) {
        memcpy(&half, x + 2 * i, sizeof half);
        return half;
    }
    memcpy(&wide, x + 8 * i, sizeof wide);
    return wide;
}

#endif
