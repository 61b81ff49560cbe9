/* Influence of every training image on every test image from bit columns, beside the
 * dense product that the published estimator uses (one float a run and image, our own
 * GEMM). Both on one thread, by turns; the dense one over fewer test images, scaled.
 *
 *   memorise_bench [RUNS [TRAIN [TEST]]]      512 60000 10000 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernel/gemm/gemm.h"
#include "kernel/reduce/bit_count.h"
#include "trust/memory_estimate.h"

enum { DENSE_TESTS = 256, REPEATS = 3 };

static uint32_t word_at(uint64_t i)
{
    uint32_t w[4];
    sti_random4(3, STI_STREAM_TEST, 5, i, w);
    return w[0];
}

static stint_status make(sti_memory_bits *b, int64_t runs, int64_t train, int64_t test)
{
    stint_status st = sti_memory_bits_init(b, runs, train, test);
    if (st != STINT_OK)
        return st;
    b->classes = 10;
    for (int64_t i = 0; i < train * b->words; i++) {
        const uint64_t x = word_at((uint64_t)i), y = word_at((uint64_t)i + (1u << 30));
        b->member[i] = x << 32 | y;
        /* One image in twenty is memorised. */
        b->train_right[i] = i / b->words % 20 == 0
                                ? b->member[i]
                                : (uint64_t)word_at((uint64_t)i * 3) << 32 |
                                      word_at((uint64_t)i * 7 + 1);
    }
    for (int64_t i = 0; i < test * b->words; i++)
        b->test_right[i] =
            (uint64_t)word_at((uint64_t)i * 5) << 32 | word_at((uint64_t)i);
    for (int64_t i = 0; i < train; i++)
        b->train_label[i] = (int32_t)(word_at((uint64_t)i + 77) % 10);
    for (int64_t j = 0; j < test; j++)
        b->test_label[j] = (int32_t)(word_at((uint64_t)j + 99) % 10);
    return STINT_OK;
}

/* The counts alone: what the kernel takes of it. */
static double time_counts(const sti_memory_bits *b, uint32_t *count)
{
    const int64_t block = 64; /* groups: stay in the first cache */
    const int64_t start = sti_clock_ns();
    for (int64_t g = 0; g < b->train / 8; g += block)
        for (int64_t j = 0; j < b->test; j++)
            sti_bit_and_count(b->member + g * 8 * b->words,
                              g + block < b->train / 8 ? block : b->train / 8 - g,
                              b->words, b->test_right + j * b->words, count);
    return sti_seconds_since(start);
}

static double time_all(const sti_memory_bits *b, bool every_class)
{
    const sti_team team = {.threads = 1};
    const stint_memory_desc desc = {.every_class = every_class};
    stint_memory m;
    const int64_t start = sti_clock_ns();
    if (sti_memory_estimate(b, &desc, 1, &team, &m) != STINT_OK) {
        fprintf(stderr, "%s\n", stint_last_error());
        exit(1);
    }
    const double seconds = sti_seconds_since(start);
    stint_memory_fini(&m);
    return seconds;
}

static double time_dense(int64_t runs, int64_t train, const float *member,
                         const float *right, float *product)
{
    const sti_team team = {.threads = 1};
    const sti_gemm_shape shape = {.m = DENSE_TESTS,
                                  .n = train,
                                  .k = runs,
                                  .lda = runs,
                                  .ldb = train,
                                  .ldc = train};
    void *scratch = sti_alloc(sti_gemm_scratch_bytes(&shape, team.threads), "scratch");
    const int64_t start = sti_clock_ns();
    sti_gemm_f32(&team, &shape, right, member, NULL, product, scratch);
    const double seconds = sti_seconds_since(start);
    sti_free(scratch);
    return seconds;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

int main(int argc, char **argv)
{
    const int64_t runs = argc > 1 ? atoll(argv[1]) : 512;
    const int64_t train = argc > 2 ? atoll(argv[2]) : 60000;
    const int64_t test = argc > 3 ? atoll(argv[3]) : 10000;
    sti_memory_bits b;
    double counts = 1e9, dense = 1e9, all = 1e9, same = 1e9;
    if (runs < 64 || train < 8 || test < DENSE_TESTS || make(&b, runs, train, test))
        return 1;
    uint32_t *count = sti_alloc_array(512, sizeof *count, "counts");
    float *member = sti_alloc_array(runs * train, sizeof *member, "dense");
    float *right = sti_alloc_array(runs * DENSE_TESTS, sizeof *right, "dense");
    float *product = sti_alloc_array(train * DENSE_TESTS, sizeof *product, "dense");
    if (!count || !member || !right || !product)
        return 1;
    for (int64_t r = 0; r < runs; r++)
        for (int64_t i = 0; i < train; i++)
            member[r * train + i] =
                (float)(b.member[i * b.words + r / 64] >> (r % 64) & 1);
    for (int64_t j = 0; j < DENSE_TESTS; j++)
        for (int64_t r = 0; r < runs; r++)
            right[j * runs + r] =
                (float)(b.test_right[j * b.words + r / 64] >> (r % 64) & 1);
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        counts = least(counts, time_counts(&b, count));
        dense = least(dense, time_dense(runs, train, member, right, product) *
                                 (double)test / DENSE_TESTS);
    }
    same = time_all(&b, false);
    all = time_all(&b, true);
    printf("%s, %s; %" PRId64 " runs, %" PRId64 " x %" PRId64 " images, 1 thread\n",
           sti_cpu_name(), sti_isa_name(sti_isa_now()), runs, train, test);
    printf("%-34s %8.2f s  %.2f ns a pair\n", "bits: AND and count", counts,
           counts * 1e9 / ((double)train * (double)test));
    printf("%-34s %8.2f s  %.1f x the bits\n", "dense float product (our GEMM)", dense,
           dense / counts);
    printf("%-34s %8.2f s\n", "whole estimate, pairs of a class", same);
    printf("%-34s %8.2f s\n", "whole estimate, every pair", all);
    printf("columns %.1f MB; the dense matrix of influence would be %.0f MB\n",
           (double)sti_memory_bits_bytes(runs, train, test) / 1e6,
           (double)train * (double)test * 4 / 1e6);
    sti_memory_bits_fini(&b);
    sti_free(count);
    sti_free(member);
    sti_free(right);
    sti_free(product);
    return 0;
}
