/* Top-k on a CUDA device gives what the host gives, bit for bit. Skips (77) without
 * one. */
#include "kernel/topk/cuda/topk_cuda.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "kernel/topk/topk_key.h"

static const size_t type_bytes[] = {4, 2, 2, 4, 1};

/* Random bits; every third round few different values, so that ties abound. */
static void fill(unsigned char *x, size_t bytes, int round)
{
    uint32_t word[4];
    for (size_t i = 0; i < bytes; i += 16) {
        sti_random4((uint64_t)round, STI_STREAM_TEST, 0, i, word);
        if (round % 3 == 0)
            for (int j = 0; j < 4; j++)
                word[j] &= UINT32_C(0x01010101);
        memcpy(x + i, word, bytes - i < 16 ? bytes - i : 16);
    }
}

static void compare_one(const stint_topk_desc *d, const unsigned char *x,
                        const float *addend)
{
    size_t need;
    const size_t bytes = type_bytes[d->type], k = (size_t)d->k;
    const sti_topk_form form = sti_topk_form_of(d);
    const sti_topk_view view = {.form = form,
                                .map = sti_topk_map_make(d, form),
                                .x = x,
                                .addend = (const unsigned char *)addend,
                                .n = d->n};
    int64_t *want = malloc(2 * k * sizeof *want), *got = want + k;
    unsigned char *values = malloc(2 * k * bytes);
    assert_int_equal(stint_topk_workspace_bytes(d, &need), STINT_OK);
    void *workspace = malloc(need);
    assert_int_equal(stint_topk(d, x, addend, want, values, workspace, need), STINT_OK);
    const char *error =
        sti_topk_cuda_host(&view, d->k, d->sorted, got, values + k * bytes);
    if (error)
        fail_msg("CUDA: %s", error);
    assert_memory_equal(got, want, k * sizeof *want);
    assert_memory_equal(values + k * bytes, values, k * bytes);
    free(workspace);
    free(values);
    free(want);
}

static void same_as_host(void **state)
{
    (void)state;
    const int64_t sizes[] = {2, 33, 1000, 65537, 1 << 20};
    unsigned char *x = malloc(4 << 20);
    float *addend = calloc(1 << 20, sizeof *addend);
    for (int round = 0; round < 60; round++) {
        const int64_t n = sizes[round % 5];
        stint_topk_desc d = {.type = (stint_topk_type)(round % 7 % 5),
                             .key = (stint_topk_key)(round % 3),
                             .nan =
                                 round % 2 ? STINT_TOPK_NAN_FIRST : STINT_TOPK_NAN_LAST,
                             .zeros_equal = round % 4 == 1,
                             .sorted = round % 4 > 1,
                             .n = n,
                             .k = round % 11 == 0 ? n - 1 : 1 + n / (2 + round * 3)};
        d.has_addend = d.type == STINT_TOPK_F32 && round % 5 == 2;
        fill(x, (size_t)n * type_bytes[d.type], round);
        for (int64_t i = 0; i < n && d.has_addend; i++)
            addend[i] = (float)(i % 17) - 8;
        compare_one(&d, x, d.has_addend ? addend : NULL);
    }
    free(addend);
    free(x);
}

int main(void)
{
    if (sti_topk_cuda_devices() == 0) {
        puts("no CUDA device: skipped");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_host)};
    return cmocka_run_group_tests_name("kernel/topk_cuda", tests, NULL, NULL);
}
