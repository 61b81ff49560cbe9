/* Any problem against a sort. The input's first bytes choose type, key, ties, method,
 * sizes; the rest are the elements, taken as they are, so NaN, infinities, denormals
 * and equal elements all come about. A header of .npy in front is read as one first. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/npy.h"
#include "kernel/topk/topk_wide.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const size_t type_bytes[STINT_TOPK_TYPES] = {4, 2, 2, 4, 1, 4, 1, 8, 8, 8, 2, 2};

typedef struct ranked {
    uint64_t key;
    int64_t index;
} ranked;

static int compare_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int compare_index(const void *a, const void *b)
{
    const int64_t x = ((const ranked *)a)->index, y = ((const ranked *)b)->index;
    return (x > y) - (x < y);
}

static uint64_t key_at(const stint_topk_desc *d, const uint8_t *x, int64_t i)
{
    if (sti_topk_is_wide(d->type)) {
        const sti_topk_wide_map map = sti_topk_wide_map_make(d);
        return sti_topk_wide_key(sti_topk_wide_bits_at(x, i, type_bytes[d->type]),
                                 &map);
    }
    const sti_topk_form form = sti_topk_form_of(d);
    const sti_topk_view view = {
        .form = form, .map = sti_topk_map_make(d, form), .x = x, .n = d->n};
    return sti_topk_key_at(&view, i);
}

static void check(const stint_topk_desc *d, const uint8_t *x, const int64_t *index,
                  const uint8_t *values)
{
    const int64_t k = d->k < d->n ? d->k : d->n;
    const size_t bytes = type_bytes[d->type];
    ranked *r = malloc((size_t)(d->n + 1) * sizeof *r);
    for (int64_t i = 0; r && i < d->n; i++)
        r[i] = (ranked){key_at(d, x, i), i};
    if (r) {
        qsort(r, (size_t)d->n, sizeof *r, compare_ranked);
        if (!d->sorted)
            qsort(r, (size_t)k, sizeof *r, compare_index);
        for (int64_t i = 0; i < k; i++)
            if (index[i] != r[i].index ||
                memcmp(values + (size_t)i * bytes, x + (size_t)r[i].index * bytes,
                       bytes) != 0)
                abort();
    }
    free(r);
}

static void select_and_check(const stint_topk_desc *d, const uint8_t *x)
{
    size_t need;
    if (stint_topk_workspace_bytes(d, &need) != STINT_OK)
        abort();
    const int64_t k = d->k < d->n ? d->k : d->n;
    uint8_t *workspace = malloc(need), *values = malloc((size_t)k * 8 + 1);
    int64_t *index = malloc((size_t)k * sizeof *index + 1);
    if (workspace && values && index) {
        if (stint_topk(d, x, NULL, index, values, workspace, need) != STINT_OK)
            abort();
        check(d, x, index, values);
    }
    free(workspace);
    free(values);
    free(index);
}

static void select_from(const uint8_t *data, size_t size)
{
    if (size < 8)
        return;
    stint_topk_desc d = {.type = (stint_topk_type)(data[0] % STINT_TOPK_TYPES),
                         .key = (stint_topk_key)(data[1] % 3),
                         .nan =
                             data[1] & 4 ? STINT_TOPK_NAN_FIRST : STINT_TOPK_NAN_LAST,
                         .zeros_equal = data[1] & 8,
                         .sorted = data[1] & 16,
                         .threads = data[1] >> 6,
                         .method = (stint_topk_method)(data[2] % STINT_TOPK_METHODS),
                         .exponent = data[3] % 16};
    d.n = (int64_t)((size - 8) / type_bytes[d.type]);
    d.k = data[4] | data[5] << 8;
    d.part = data[6] * 16;
    select_and_check(&d, data + 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_npy npy;
    if (size > 6 && data[0] == 0x93) {
        if (sti_npy_parse(data, size, "input", &npy) != STINT_OK ||
            sti_npy_straighten(&npy, "input") != STINT_OK)
            return 0;
        select_from(npy.data, (size_t)npy.count * (size_t)npy.item_bytes);
        sti_npy_close(&npy);
    } else {
        select_from(data, size);
    }
    return 0;
}
