/* Top-k against a full sort: every type, key, order, method, instruction set and thread
 * count gives the one result that the contract allows. */
#include <sys/mman.h>
#include <unistd.h>

#include "topk_oracle.h"

#include "base/memory.h"
#include "test_size.h"

static int64_t random_n(int round)
{
    const int64_t around = INT64_C(1) << (3 + below(9));
    return round % 3 == 0 ? around + below(3) - 1 : 1 + below(3000);
}

static void any_problem(void **unused)
{
    (void)unused;
    unsigned char *x = malloc(4 * 8192);
    for (int isa = 0; isa < STI_ISA_COUNT; isa++) {
        if (!sti_isa_force((sti_isa)isa))
            continue;
        for (int round = 0; round < (test_is_full() ? 330 : 110); round++) {
            stint_topk_desc d = {.type = (stint_topk_type)below(5),
                                 .key = (stint_topk_key)below(3),
                                 .nan = 1 + (stint_topk_nan)below(2),
                                 .zeros_equal = below(2),
                                 .sorted = below(2),
                                 .n = random_n(round)};
            d.k = round % 5 == 0 ? 1 : round % 7 == 0 ? d.n : below(d.n + 2);
            if (round % 4 == 0)
                d.k = d.k % 30;
            fill(d.type, (enum order)(round % ORDERS), d.n, x);
            check_methods(d, x, round % ORDERS);
        }
    }
    sti_isa_force(STI_ISA_AVX512);
    free(x);
}

/* Whole registers and parts of them, every k that has a way of its own, all of the best
 * in one lane, and ties at the edge. */
static void short_rows(void **unused)
{
    (void)unused;
    static const int64_t n[] = {1,  2,  3,  15, 16,  17,  31,  33,  47,   48,
                                63, 64, 65, 96, 127, 128, 130, 257, 1000, 4096};
    static const int64_t k[] = {1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 33, 63};
    static const enum order order[] = {NORMAL, TWO_VALUES, SPECIAL, PEAK, BITS};
    unsigned char *x = malloc(4 * 4096);
    int64_t want[64];
    for (int isa = 0; isa < STI_ISA_COUNT; isa++)
        for (int i = 0; i < 20 * 12 && sti_isa_force((sti_isa)isa); i++) {
            const enum order o = order[below(5)];
            stint_topk_desc d = {.type = (stint_topk_type)below(5),
                                 .key = (stint_topk_key)below(3),
                                 .nan = 1 + (stint_topk_nan)below(2),
                                 .zeros_equal = below(2),
                                 .sorted = below(2),
                                 .n = n[i / 12],
                                 .k = k[i % 12]};
            fill(d.type, o, d.n, x);
            for (int64_t j = 5; i % 3 == 0 && j < d.n; j += 64)
                store(d.type, x, j, 100 + (double)(j / 64 % 20));
            oracle(&d, x, want);
            check_row(&d, x, o, want);
        }
    sti_isa_force(STI_ISA_AVX512);
    free(x);
}

/* The shortest way, from the public call: each n and k that it takes and the next ones,
 * every place of a NaN, and no byte read behind a row at the end of its page. */
static void straight_rows(void **unused)
{
    (void)unused;
    enum { MOST = 258, BASE = 1000 };
    static const int64_t k[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 64};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(two != MAP_FAILED && mprotect(two + page, page, PROT_NONE) == 0);
    static unsigned char workspace[16384];
    for (int64_t n = 1; n <= MOST; n++)
        for (int i = 0; i < 12 && k[i] <= n; i++) {
            const enum order o = (enum order)((n + i) % ORDERS);
            const stint_topk_desc d = {.key = (stint_topk_key)below(3),
                                       .nan = 1 + (stint_topk_nan)below(2),
                                       .index_base = BASE,
                                       .n = n,
                                       .k = k[i]};
            unsigned char *x = two + page - (size_t)n * sizeof(float);
            int64_t want[MOST], index[MOST];
            float values[MOST];
            fill(STINT_TOPK_F32, o, n, x);
            if (below(4) == 0)
                special_bits(STINT_TOPK_F32, x, below(n));
            oracle(&d, x, want);
            assert_int_equal(stint_topk(&d, x, NULL, index, below(3) ? values : NULL,
                                        workspace, sizeof workspace),
                             STINT_OK);
            for (int64_t j = 0; j < d.k; j++)
                if (index[j] != BASE + want[j])
                    fail_msg("%s: winner %" PRId64 " is %" PRId64 ", want %" PRId64,
                             describe(&d, o), j, index[j] - BASE, want[j]);
            check_row(&(stint_topk_desc){.key = d.key, .nan = d.nan, .n = n, .k = d.k},
                      x, o, want);
        }
    munmap(two, 2 * page);
}

/* Long enough for several pieces, and for samples and histograms to narrow. */
static void long_rows(void **unused)
{
    (void)unused;
    const int64_t n = 300007;
    unsigned char *x = malloc((size_t)n * 4);
    for (int order = 0; order < ORDERS; order++) {
        stint_topk_desc d = {.type = (stint_topk_type)(order % 3 == 2 ? order % 5 : 0),
                             .key = (stint_topk_key)(order % 3),
                             .nan = STINT_TOPK_NAN_LAST,
                             .sorted = order % 2,
                             .n = n,
                             .k = order % 4 == 0   ? 70
                                  : order % 4 == 1 ? 2500
                                                   : 90000};
        fill(d.type, (enum order)order, n, x);
        check_methods(d, x, order);
    }
    free(x);
}

/* Where the best value is often and k is about its number, a sample cannot tell whether
 * the k-th is that value or the next. */
static void ties_at_the_edge(void **unused)
{
    (void)unused;
    const int64_t n = 300007;
    float *x = malloc((size_t)n * sizeof *x);
    int64_t *want = malloc((size_t)n * sizeof *want);
    for (int round = 0; round < 24; round++) {
        int64_t top = 0, held = 0;
        for (int64_t i = 0; i < n; i++) {
            x[i] = below(200) == 0 ? 3.0F : below(2) ? 2.0F : 1.0F;
            top += x[i] > 2;
        }
        const int64_t k = top + (round - 12) * (round % 2 ? 5 : 60);
        int64_t of_top = k < top ? k : top, of_next = k - of_top;
        for (int64_t i = 0; i < n && held < k; i++) {
            if (x[i] > 2 && of_top > 0)
                of_top--;
            else if (x[i] == 2 && of_next > 0)
                of_next--;
            else
                continue;
            want[held++] = i;
        }
        const stint_topk_desc d = {
            .n = n, .k = k, .method = STINT_TOPK_THRESHOLD, .threads = 1 + round % 2};
        check_row(&d, (const unsigned char *)x, TWO_VALUES, want);
    }
    free(x);
    free(want);
}

/* Beyond the caches of a core, where delegates are made at several places at once. */
static void far_rows(void **unused)
{
    (void)unused;
    static const int64_t n[] = {270001, 530003, 530003, 270001, 1100009};
    unsigned char *x = malloc(1100009 * sizeof(float));
    for (int type = 0; type <= STINT_TOPK_I8; type++) {
        stint_topk_desc d = {.type = (stint_topk_type)type,
                             .key = (stint_topk_key)(type % 3),
                             .nan = STINT_TOPK_NAN_FIRST,
                             .n = n[type],
                             .k = 300};
        fill(d.type, type % 2 ? BITS : NORMAL, d.n, x);
        check_methods(d, x, type % 2 ? BITS : NORMAL);
    }
    free(x);
}

/* Many blocks that are full of large values, of which few win: a line of each is a
 * sample that bounds them. Deceived, all winners and many more are in those lines, and
 * the bound that the sample gives is too high. */
static void fill_blocks(float *x, int64_t n, int64_t blocks, uint32_t entries,
                        bool deceived)
{
    for (int64_t i = 0; i < n; i++) {
        const float u = (float)(word() >> 8) * 0x1p-24F;
        const uint32_t line =
            ((uint32_t)(i / 256) * entries * UINT32_C(2654435761) >> 8) % 16;
        x[i] = i / 256 >= blocks                  ? u
               : deceived && i % 256 / 16 == line ? 3 + u
                                                  : 2 + u / 2;
    }
}

static void blocks_of_winners(void **unused)
{
    (void)unused;
    const int64_t n = (1 << 19) + 77;
    float *x = malloc((size_t)n * sizeof *x);
    for (int way = 0; way < 4; way++) {
        const bool two_best = way % 2;
        stint_topk_desc d = {.n = n,
                             .k = 1024,
                             .exponent = 8,
                             .method =
                                 two_best ? STINT_TOPK_DELEGATE2 : STINT_TOPK_DELEGATE};
        int64_t *want = malloc((size_t)d.k * sizeof *want);
        fill_blocks(x, n, two_best ? 512 : 1024, two_best ? 2 : 1, way / 2);
        oracle(&d, (unsigned char *)x, want);
        for (int isa = 0; isa < STI_ISA_COUNT; isa++)
            for (d.threads = 1; d.threads <= 3 && sti_isa_force((sti_isa)isa);
                 d.threads += 2)
                check_row(&d, (unsigned char *)x, way, want);
        free(want);
    }
    free(x);
}

/* Runs of winners, longer than a block; and a first piece that is unlike the others. */
static void fill_long(float *x, int64_t n, int way)
{
    for (int64_t i = 0; i < n; i++) {
        const float u = (float)(word() >> 8) * 0x1p-24F;
        x[i] = way == 0   ? u + 2 * (float)(i / 4096 % 64 == 5)
               : way == 1 ? u - (float)(i < 1 << 17)
               : way == 2 ? u + (float)(i < 1 << 17)
                          : floorf(u * 1000);
    }
}

/* Only long rows are caught from. A sanitizer makes everything ten times as long and
 * looks for accesses, not values: there are fewer of them, by one number of threads. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum {
    CATCH_STEP = 4,
    CATCH_THREADS = 2,
    CATCH_MOST = 2,
    CATCH_ISA = STI_ISA_COUNT - 1
};
#else
enum { CATCH_STEP = 3, CATCH_THREADS = 1, CATCH_MOST = 5, CATCH_ISA = 0 };
#endif

/* Winners caught on the way, beside another method. */
static void check_caught(stint_topk_desc d, const float *x, const float *addend,
                         int order)
{
    d.method = STINT_TOPK_RADIX;
    answer want = ask(&d, (const unsigned char *)x, addend);
    assert_int_equal(want.status, STINT_OK);
    d.method = STINT_TOPK_DELEGATE2;
    for (int isa = CATCH_ISA; isa < STI_ISA_COUNT; isa++)
        for (d.threads = CATCH_THREADS;
             d.threads <= CATCH_MOST && sti_isa_force((sti_isa)isa);
             d.threads += d.threads) {
            answer a = ask(&d, (const unsigned char *)x, addend);
            assert_int_equal(a.status, STINT_OK);
            if (memcmp(a.index, want.index, (size_t)d.k * sizeof *a.index) != 0)
                fail_msg("order %d, key %d, k %" PRId64 ", isa %d, %d threads", order,
                         (int)d.key, d.k, isa, d.threads);
            assert_memory_equal(a.values, want.values, (size_t)d.k * sizeof *x);
            answer_free(&a);
        }
    answer_free(&want);
}

static void caught_winners(void **unused)
{
    (void)unused;
    enum { LONG_WAYS = 4 };
    const int64_t n = (1 << 22) + 777;
    float *x = malloc((size_t)n * sizeof *x), *e = malloc((size_t)n * sizeof *e);
    stint_topk_desc d = {.n = n, .exponent = 8, .nan = STINT_TOPK_NAN_FIRST};
    fill(STINT_TOPK_F32, NORMAL, n, (unsigned char *)e);
    /* From one with an addend. */
    for (int o = test_is_full() ? 0 : NORMAL; o < ORDERS + LONG_WAYS;
         o += test_is_full() ? 1 : CATCH_STEP) {
        if (o < ORDERS)
            fill(STINT_TOPK_F32, (enum order)o, n, (unsigned char *)x);
        else
            fill_long(x, n, o - ORDERS);
        d.key = (stint_topk_key)(o % 3);
        d.k = o % 4 == 3 ? 16387 : 600 + 3000 * (o & 1);
        d.exponent = 8 + o / 2 % 2;
        check_caught(d, x, NULL, o);
        d.key = STINT_TOPK_MAX;
        d.nan = o % 2 ? STINT_TOPK_NAN_LAST : STINT_TOPK_NAN_FIRST;
        check_caught(d, x, NULL, o);
        d.has_addend = true;
        if (o == NORMAL || o == PEAK)
            check_caught(d, x, e, o);
        d.has_addend = false;
    }
    free(x);
    free(e);
}

/* So many delegates, and k of them, that threads share the choice among them. */
static void many_delegates(void **unused)
{
    (void)unused;
    static const enum order orders[] = {NORMAL, ASCENDING, EQUAL,   TWO_VALUES,
                                        PEAK,   CLUSTER,   SPECIAL, EQUAL};
    const int64_t n = 1100009;
    float *x = malloc((size_t)n * sizeof *x);
    stint_topk_desc d = {.n = n, .k = 4100, .exponent = 4, .nan = STINT_TOPK_NAN_FIRST};
    int64_t *want = malloc((size_t)d.k * sizeof *want);
    for (int o = 0; o < 8; o++) {
        if (!test_is_full() && o % 2 && o < 7)
            continue;
        fill(STINT_TOPK_F32, orders[o], n, (unsigned char *)x);
        /* The next best value comes after far more than k of one. */
        for (int64_t i = n - 50; o == 7 && i < n; i++)
            x[i] = nextafterf(x[i], 4);
        oracle(&d, (unsigned char *)x, want);
        for (int way = 0; way < 4; way++) {
            d.method = way % 2 ? STINT_TOPK_DELEGATE2 : STINT_TOPK_DELEGATE;
            d.threads = 1 + way;
            check_row(&d, (unsigned char *)x, orders[o], want);
        }
    }
    free(want);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_problem),       cmocka_unit_test(long_rows),
        cmocka_unit_test(short_rows),        cmocka_unit_test(straight_rows),
        cmocka_unit_test(ties_at_the_edge),  cmocka_unit_test(far_rows),
        cmocka_unit_test(blocks_of_winners), cmocka_unit_test(caught_winners),
        cmocka_unit_test(many_delegates),
    };
    return cmocka_run_group_tests_name("kernel/topk", tests, NULL, NULL);
}
