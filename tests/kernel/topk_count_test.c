/* How many elements each delegate method looks at, counted by loops that count, beside
 * the model: the first pass reads n; then k blocks of 2^a (maximum delegates), or the
 * blocks both of whose delegates are chosen (two), and a few more that sharpen the
 * bound. Work is fixed by n and k: no order of the data takes more. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/rng.h"
#include "kernel/topk/topk_catch.h"
#include "kernel/topk/topk_key.h"

static const sti_topk_ops *real;
static int64_t touched;

static void count_delegates(const sti_topk_view *v, int a, int64_t first, int64_t last,
                            uint32_t *d)
{
    touched += sti_topk_min(last << a, v->n) - (first << a);
    real->delegates(v, a, first, last, d);
}

static void count_delegates2(const sti_topk_view *v, int a, int64_t first, int64_t last,
                             uint32_t *d, uint16_t *position,
                             sti_topk_early_candidates *early)
{
    touched += sti_topk_min(last << a, v->n) - (first << a);
    real->delegates2(v, a, first, last, d, position, early);
}

static int64_t count_collect(const sti_topk_view *v, int64_t begin, int64_t end,
                             uint32_t lo, uint32_t hi, uint64_t *out, int64_t *above)
{
    touched += end - begin;
    return real->collect(v, begin, end, lo, hi, out, above);
}

static int64_t count_rare(const sti_topk_view *v, int64_t begin, int64_t end,
                          uint32_t lo, uint64_t *out)
{
    touched += end - begin;
    return real->rare(v, begin, end, lo, out);
}

/* But for the lines of a sample: their blocks are looked at, and counted, anyway. */
static int64_t count_keys(const sti_topk_view *v, int64_t begin, int64_t end,
                          uint32_t lo, uint32_t hi, uint32_t *out, int64_t *above)
{
    touched += end - begin > 16 ? end - begin : 0;
    return real->keys(v, begin, end, lo, hi, out, above);
}

enum order {
    UNIFORM,
    ASCENDING,
    DESCENDING,
    EQUAL,
    TWO,
    CLUSTER,
    SCATTERED,
    DENSE, /* some blocks are full of the best, of 64 values */
    TIES,  /* twice as many of the best as are wanted */
    ORDERS
};

static void fill(float *x, enum order order, int64_t n, int64_t k)
{
    uint32_t word[4] = {0};
    for (int64_t i = 0; i < n; i++) {
        if (i % 4 == 0)
            sti_random4(1, STI_STREAM_TEST, 5, (uint64_t)i, word);
        const float u = sti_uniform(word[i % 4]);
        const bool best = order == CLUSTER     ? i >= n / 3 && i < n / 3 + k
                          : order == SCATTERED ? i % (n / k) == 7
                                               : order == DENSE && i % (1 << 16) < 512;
        x[i] = order == ASCENDING    ? (float)i
               : order == DESCENDING ? (float)-i
               : order == EQUAL      ? 1
               : order == TWO        ? (float)(u > 0.5F)
               : order == TIES       ? (i % (n / k / 2) == 7 ? 2 : u)
               : order == DENSE      ? (best ? 2 + floorf(64 * u) / 64 : u)
               : best                ? 2 + u
                                     : u;
    }
}

/* Elements of x looked at by a method with blocks of 2^a. */
static int64_t count_touched(const float *x, int64_t n, int64_t k,
                             stint_topk_method method, int a)
{
    const stint_topk_desc d = {.n = n, .k = k};
    sti_topk_costs costs;
    sti_topk_costs_builtin(&costs);
    const sti_topk_plan plan =
        sti_topk_plan_make(STI_TOPK_F32, n, k, method, a, &costs);
    sti_topk_layout layout = {0};
    sti_topk_scratch_take(&layout, &plan);
    layout = (sti_topk_layout){
        .base = aligned_alloc(64, (layout.used_bytes + 63) / 64 * 64)};
    int64_t *index = malloc((size_t)k * sizeof *index);
    const sti_topk_view view = {.form = STI_TOPK_F32,
                                .map = sti_topk_map_make(&d, STI_TOPK_F32),
                                .x = (const unsigned char *)x,
                                .n = n};
    const sti_topk_sink sink = {.index = index};
    real = sti_topk_ops_now(STI_TOPK_F32);
    sti_topk_ops counting = *real;
    counting.delegates = count_delegates;
    counting.delegates2 = count_delegates2;
    counting.collect = count_collect;
    counting.rare = count_rare;
    counting.keys = count_keys;
    const sti_topk_job job = {.team = &sti_team_serial,
                              .plan = &plan,
                              .ops = &counting,
                              .view = &view,
                              .scratch = sti_topk_scratch_take(&layout, &plan),
                              .sink = &sink};
    assert_int_equal(plan.method, method);
    assert_int_equal(plan.exponent, a);
    touched = 0;
    sti_topk_row(&job);
    free(layout.base);
    free(index);
    return touched;
}

static const struct {
    int64_t n, k;
    int a;
} sizes[] = {{1 << 18, 64, 6},   {1 << 18, 256, 5},  {1 << 18, 1024, 5},
             {1 << 20, 1024, 7}, {1 << 20, 4096, 6}, {999999, 3000, 5}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void near_model(double found, double model, const char *what, int at)
{
    if (fabs(found - model) > 0.01 * model)
        fail_msg("%s, n %" PRId64 ", k %" PRId64 ", a %d: %.0f touched, model %.0f",
                 what, sizes[at].n, sizes[at].k, sizes[at].a, found, model);
}

static void uniform_is_as_modelled(void **unused)
{
    (void)unused;
    float *x = malloc(sizeof *x << 20);
    for (int s = 0; s < SIZES; s++) {
        const int64_t n = sizes[s].n, k = sizes[s].k;
        const int a = sizes[s].a;
        const double block = ldexp(1, a), m = ceil((double)n / block);
        /* Blocks that sharpen the bound: few of them show that it cannot be. */
        const double sharpen = fmin(4, floor((double)k / block) + 1);
        fill(x, UNIFORM, n, k);
        /* Here even what is touched again is known to one part in a hundred. */
        near_model((double)(count_touched(x, n, k, STINT_TOPK_DELEGATE, a) - n),
                   ((double)k + sharpen) * block, "delegates, again", s);
        /* Both of a block's two best are among the k best of 2m delegates: nearly those
         * of the row, which fall into m blocks at random. */
        const double rate = (double)k / m;
        const double both = m * (1 - exp(-rate) - rate * exp(-rate));
        near_model((double)count_touched(x, n, k, STINT_TOPK_DELEGATE2, a),
                   (double)n + (both + sharpen) * block, "beta", s);
    }
    free(x);
}

static void no_order_takes_more(void **unused)
{
    (void)unused;
    float *x = malloc(sizeof *x << 20);
    for (int s = 0; s < SIZES; s++)
        for (int order = 0; order < ORDERS; order++) {
            const int64_t n = sizes[s].n, k = sizes[s].k,
                          block = INT64_C(1) << sizes[s].a;
            const int64_t most = n + (k + 2 * (k / block + 1)) * block;
            fill(x, (enum order)order, n, k);
            for (int m = STINT_TOPK_DELEGATE; m <= STINT_TOPK_DELEGATE2; m++) {
                const int64_t found =
                    count_touched(x, n, k, (stint_topk_method)m, sizes[s].a);
                if (found < n || found > most)
                    fail_msg("order %d, %s, n %" PRId64 ", k %" PRId64 ": %" PRId64
                             " touched, at most %" PRId64,
                             order, stint_topk_method_name((stint_topk_method)m), n, k,
                             found, most);
            }
        }
    free(x);
}

/* Elements beyond the bound, and the first k of those at it or beyond, are caught. */
static void check_caught(sti_topk_catch *c, int64_t runs)
{
    const sti_topk_view *v = c->job->view;
    const sti_topk_run *run = c->job->scratch->ordered;
    const uint64_t bound = atomic_load(&c->bound);
    int64_t r = 0, at = 0, before = 0;
    for (int64_t i = 0; i <= v->n; i++) {
        while (r < runs && at == run[r].count) {
            r++;
            at = 0;
        }
        if (i == v->n)
            break;
        const uint32_t key = sti_topk_key_at(v, i);
        const bool caught = r < runs && run[r].at[at] == sti_topk_pack(key, i);
        if (!caught && (key > bound || (key == bound && before < c->job->plan->k)))
            fail_msg("element %" PRId64 ", key %" PRIu32 ", bound %" PRIu64, i, key,
                     bound);
        before += key >= bound;
        at += caught;
    }
    assert_int_equal(r, runs); /* by index, and nothing else */
}

/* What the pass over a row catches, with pieces one after the other, or the last one
 * first; 0: not all winners, it may be. */
static int64_t count_caught(const float *x, int64_t n, int64_t k, bool backwards)
{
    const stint_topk_desc d = {.n = n, .k = k};
    sti_topk_costs costs;
    sti_topk_costs_builtin(&costs);
    const sti_topk_plan plan =
        sti_topk_plan_make(STI_TOPK_F32, n, k, STINT_TOPK_DELEGATE2, 8, &costs);
    sti_topk_layout layout = {0};
    sti_topk_scratch_take(&layout, &plan);
    layout = (sti_topk_layout){
        .base = aligned_alloc(64, (layout.used_bytes + 63) / 64 * 64)};
    const sti_topk_view view = {.form = STI_TOPK_F32,
                                .map = sti_topk_map_make(&d, STI_TOPK_F32),
                                .x = (const unsigned char *)x,
                                .n = n};
    const sti_topk_job job = {.team = &sti_team_serial,
                              .plan = &plan,
                              .ops = sti_topk_ops_now(STI_TOPK_F32),
                              .view = &view,
                              .scratch = sti_topk_scratch_take(&layout, &plan)};
    assert_true(sti_topk_catches(&plan));
    sti_topk_catch c;
    sti_topk_catch_begin(&c, &job);
    const int64_t each = sti_topk_pass_blocks(&plan);
    const int64_t pieces = sti_topk_ceil(plan.blocks, each);
    for (int64_t i = 0; i < pieces; i++) {
        const int64_t piece = backwards ? pieces - 1 - i : i;
        sti_topk_catch_piece(&c, piece, piece * each,
                             sti_topk_min((piece + 1) * each, plan.blocks));
    }
    const int64_t runs = sti_topk_catch_end(&c);
    int64_t caught = 0;
    if (runs > 0)
        check_caught(&c, runs);
    for (int64_t r = 0; r < runs; r++)
        caught += job.scratch->ordered[r].count;
    free(layout.base);
    return caught;
}

/* Hardly more than the winners where pieces are alike, or k of them come early;
 * nothing where they are not. */
static void winners_are_caught(void **unused)
{
    (void)unused;
    static const bool alike[ORDERS] = {
        [UNIFORM] = true,   [EQUAL] = true, [TWO] = true, [CLUSTER] = true,
        [SCATTERED] = true, [DENSE] = true, [TIES] = true};
    const int64_t n = (1 << 22) + 1000, k = 1024;
    float *x = malloc((size_t)n * sizeof *x);
    for (int order = 0; order < ORDERS; order++) {
        fill(x, (enum order)order, n, k);
        for (int way = 0; way < 2 * STI_ISA_COUNT; way++) {
            const int isa = way / 2;
            const bool backwards = way % 2;
            if (!sti_isa_force((sti_isa)isa))
                continue;
            const int64_t found = count_caught(x, n, k, backwards);
            if (!backwards && (alike[order] ? found < k || found > 3 * k : found != 0))
                fail_msg("order %d, instruction set %d: %" PRId64 " caught", order, isa,
                         found);
        }
    }
    free(x);
}

/* The delegates' bound lies below runs of the best that are longer than the list which
 * a closer one is looked for in. */
static void long_runs_are_caught(void **unused)
{
    (void)unused;
    const int64_t n = 1 << 22, k = 16000;
    float *x = malloc((size_t)n * sizeof *x);
    fill(x, UNIFORM, n, k);
    for (int64_t i = 0; i < n; i++)
        x[i] += i % (1 << 17) < 20000 ? 2 : 0;
    for (int isa = 0; isa < STI_ISA_COUNT; isa++)
        if (sti_isa_force((sti_isa)isa)) {
            const int64_t found = count_caught(x, n, k, false);
            if (found < k || found > 3 * k)
                fail_msg("%" PRId64 " caught", found);
        }
    /* So many equals that the list would be full again at once: given up. */
    for (int64_t i = 0; i < n; i++)
        x[i] =
            i % (1 << 17) < 16319 ? 3 : x[i] - (float)(i % (1 << 17) < 20000 ? 2 : 0);
    for (int isa = 0; isa < STI_ISA_COUNT; isa++)
        if (sti_isa_force((sti_isa)isa))
            assert_int_equal(count_caught(x, n, k, false), 0);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_is_as_modelled),
        cmocka_unit_test(no_order_takes_more),
        cmocka_unit_test(winners_are_caught),
        cmocka_unit_test(long_runs_are_caught),
    };
    return cmocka_run_group_tests_name("kernel/topk_count", tests, NULL, NULL);
}
