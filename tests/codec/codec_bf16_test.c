/* Arrays in bfloat16: packed to the blocks of the same numbers in float32, and back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec_packing.h"

/* The numbers of an array, rounded, in bfloat16 and, again, in float32. */
static sti_bf16 *halve(packing *p)
{
    sti_bf16 *half = malloc((size_t)p->count * sizeof *half + 1);
    assert_non_null(half);
    for (int64_t i = 0; i < p->count; i++) {
        half[i] = sti_bf16_from_f32(p->x[i]);
        p->x[i] = sti_bf16_to_f32(half[i]);
    }
    return half;
}

/* Within the bound and half a unit of bfloat16, which is 2^-9 to 2^-8 of a number; a
 * zero is one, and what is no number is none. */
static void check_half(const packing *p, const sti_bf16 *back)
{
    for (int64_t i = 0; i < p->count; i++) {
        const float x = p->x[i], y = sti_bf16_to_f32(back[i]);
        const double error = fabs((double)x - (double)y);
        if (isfinite(x) && error <= p->desc.bound + 0x1p-8 * fabs((double)y) &&
            (x != 0.0f || y == 0.0f))
            continue;
        if (x == y || (isnan(x) && isnan(y)))
            continue;
        fail_msg("value %lld: %.9g came back as %.9g, bound %.9g", (long long)i,
                 (double)x, (double)y, p->desc.bound);
    }
}

/* Counts what is taken: all values, each once. */
static void count_taken(const void *arg, int64_t begin, int64_t n, float *x)
{
    uint8_t *seen = (uint8_t *)(uintptr_t)arg;
    (void)x;
    for (int64_t i = 0; i < n; i++)
        seen[begin + i]++;
}

/* bfloat16 packs to the block of the same numbers in float32, and comes back as those
 * do, rounded: with every instruction set and number of threads, whether or not there
 * is an array in float32 as well. */
static void check_everywhere(packing *p, const sti_bf16 *x16)
{
    const sti_codec_source source = {.x16 = x16};
    size_t bytes;
    stint_codec_result half;
    assert_int_equal(packing_pack(p), STINT_OK);
    assert_int_equal(packing_unpack(p), STINT_OK);
    uint8_t *block = malloc(p->capacity), *seen = malloc((size_t)p->count + 1);
    sti_bf16 *back = malloc((size_t)p->count * sizeof *back + 1);
    assert_true(block && seen && back);
    for (int isa = 0; isa < STI_ISA_COUNT; isa++) {
        const sti_team team = {isa + 1};
        assert_int_equal(
            sti_codec_parts_workspace_bytes(&p->desc, team.threads, &bytes), STINT_OK);
        void *workspace = malloc(bytes);
        force(isa);
        assert_int_equal(sti_codec_pack(&team, &p->desc, &source, NULL, block,
                                        p->capacity, workspace, bytes, &half),
                         STINT_OK);
        assert_int_equal(half.bytes, p->result.bytes);
        assert_memory_equal(block, p->block, half.bytes);
        memset(seen, 0, (size_t)p->count + 1);
        memset(back, 0xee, (size_t)p->count * sizeof *back);
        const sti_codec_sink sink = {.x16 = back, .take = count_taken, .arg = seen};
        assert_int_equal(sti_codec_unpack(&team, &p->desc, block, half.bytes, NULL,
                                          &sink, workspace, bytes),
                         STINT_OK);
        check_half(p, back);
        for (int64_t i = 0; i < p->count; i++) {
            assert_int_equal(back[i], sti_bf16_from_f32(p->y[i]));
            assert_int_equal(seen[i], 1);
        }
        assert_int_equal(sti_codec_unpack(&team, &p->desc, block, half.bytes, NULL,
                                          &sink, workspace, bytes - 64),
                         STINT_E_INPUT);
        free(workspace);
    }
    sti_isa_force(STI_ISA_AVX512);
    free(block);
    free(seen);
    free(back);
}

/* Several chunks of one group, and a few values; bounds below and above the units. */
static void blocks_and_numbers(void **state)
{
    static const stint_codec_desc descs[] = {
        {.rank = 4, .dim = {5, 31, 29, 48}, .bound = 0.02, .dither = true, .seed = 4},
        {.rank = 2, .dim = {7, 33}, .bound = 1e-5},
        {.rank = 2, .dim = {300, 300}, .bound = 0.5}};
    (void)state;
    for (size_t i = 0; i < sizeof descs / sizeof *descs; i++)
        for (int kind = 0; kind < INPUT_KINDS; kind++) {
            packing p;
            packing_open(&p, &descs[i], (input_kind)kind);
            sti_bf16 *half = halve(&p);
            check_everywhere(&p, half);
            free(half);
            packing_close(&p);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_and_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
