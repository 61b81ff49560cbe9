/* Top-k by itself: every order of the data beside the time of one pure maximum over the
 * same array (the floor, by the same number of threads), every method, and every block
 * size beside the predicted one. Wall-clock time, taken in turn; orders: the median of
 * many runs' ratios to the floors before and behind them, else least times. CSV on
 * stdout.
 *   topk_bench orders | methods | exponents | rows  [LOG2N [K,... [THREADS]]]
 * Without K: 1, 4, 16, ... n / 4. */
#include "base/clock.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "base/team.h"
#include "stint/topk.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { RUNS = 7, PAIRS = 31 };

/* ---- inputs ---- */

static const char *const orders[] = {"uniform", "normal",    "ascending", "descending",
                                     "equal",   "two",       "cluster",   "scattered",
                                     "peak",    "clusters_k"};
enum { ORDERS = sizeof orders / sizeof orders[0] };

static float uniform_at(int64_t i)
{
    uint64_t h = ((uint64_t)i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    h = (h ^ h >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    h = (h ^ h >> 27) * UINT64_C(0x94D049BB133111EB);
    return (float)(uint32_t)(h >> 40) * 0x1p-24F;
}

static float order_at(int order, int64_t i, int64_t n, int64_t k)
{
    const float u = uniform_at(i);
    switch (order) {
    case 1:
        return u + uniform_at(i + n) + uniform_at(i + 2 * n) - 1.5F;
    case 2:
        return (float)i;
    case 3:
        return (float)(n - i);
    case 4:
        return 1;
    case 5:
        return u < 0.5F ? 0.0F : 1.0F;
    case 6: /* all winners in one place */
        return i >= n / 3 && i < n / 3 + k ? 2 + u : u;
    case 7: /* winners as far apart as can be */
        return i % (n / k) == n / k / 2 ? 2 + u : u;
    case 8: /* N(1e8, 10) of the paper: a handful of different values */
        return 1e8F + 10 * (u + uniform_at(i + n) + uniform_at(i + 2 * n) - 1.5F);
    case 9: /* runs of winners, longer than a block, more than k in all */
        return i / 4096 % 64 == 5 ? 2 + u : u;
    default:
        return u;
    }
}

static void fill(float *x, int order, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = order_at(order, i, n, k);
}

/* ---- what is timed ---- */

typedef struct problem {
    stint_topk_desc desc;
    float *x;
    int64_t *index;
    float *values;
    int threads;
    const char *ks; /* NULL: all */
    void *workspace;
    size_t workspace_bytes;
    volatile float floor;
} problem;

/* The floor: nothing can be sure of the winners without this read. Two ways, one
 * place after the other and four places at once; the faster one counts. */
#if defined(__x86_64__)
__attribute__((target("avx512f"))) static float
maximum_avx512(const float *x, int64_t n, int64_t gap, int64_t step)
{
    __m512 m[4] = {_mm512_loadu_ps(x), _mm512_loadu_ps(x), _mm512_loadu_ps(x),
                   _mm512_loadu_ps(x)};
    for (int64_t i = 0; i + 3 * gap + 16 <= n; i += step)
        for (int j = 0; j < 4; j++) {
            const float *at = x + i + gap * j;
            __builtin_prefetch((const void *)((uintptr_t)at + 2048));
            m[j] = _mm512_max_ps(m[j], _mm512_loadu_ps(at));
        }
    return _mm512_reduce_max_ps(
        _mm512_max_ps(_mm512_max_ps(m[0], m[1]), _mm512_max_ps(m[2], m[3])));
}
#endif

static float maximum(const float *x, int64_t n, bool apart)
{
#if defined(__x86_64__)
    if (sti_isa_now() == STI_ISA_AVX512 && n >= 64)
        return apart ? maximum_avx512(x, n, n / 64 * 16, 16)
                     : maximum_avx512(x, n, 16, 64);
#endif
    (void)apart;
    float m[16] = {0};
    for (int64_t i = 0; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++)
            m[j] = x[i + j] > m[j] ? x[i + j] : m[j];
    for (int j = 1; j < 16; j++)
        m[0] = m[j] > m[0] ? m[j] : m[0];
    return m[0];
}

typedef struct floor_work {
    const float *x;
    int64_t n; /* of a piece */
    bool apart;
    float best[64];
} floor_work;

static void floor_piece(void *arg, int64_t piece, int worker)
{
    floor_work *w = arg;
    (void)worker;
    w->best[piece] = maximum(w->x + piece * w->n, w->n, w->apart);
}

static double time_floor(problem *p, bool apart)
{
    const int64_t rows = p->desc.rows ? p->desc.rows : 1, all = rows * p->desc.n;
    const sti_team team = {.threads = p->threads};
    const int64_t pieces = p->threads > 1 && all > 1 << 18 ? 16 : 1;
    floor_work w = {.x = p->x, .n = all / pieces, .apart = apart};
    const int64_t start = sti_clock_ns();
    sti_team_run(&team, pieces, floor_piece, &w);
    p->floor = w.best[0];
    return sti_seconds_since(start);
}

static double time_topk(problem *p)
{
    const int64_t start = sti_clock_ns();
    if (stint_topk(&p->desc, p->x, NULL, p->index, p->values, p->workspace,
                   p->workspace_bytes) != STINT_OK)
        fprintf(stderr, "%s\n", stint_last_error());
    return sti_seconds_since(start);
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* The workspace that p->desc needs. */
static bool make_room(problem *p)
{
    size_t need;
    if (stint_topk_workspace_bytes(&p->desc, &need) != STINT_OK)
        return false;
    if (need > p->workspace_bytes) {
        sti_free(p->workspace);
        p->workspace = sti_alloc(need, "bench.workspace");
        p->workspace_bytes = p->workspace ? need : 0;
        time_topk(p);
    }
    return true;
}

/* Least times of `count` descs and of the floor, taken in turn. */
static void time_all(problem *p, const stint_topk_desc *desc, int count,
                     double *floor_s, double *seconds)
{
    *floor_s = 1e9;
    for (int c = 0; c < count; c++)
        seconds[c] = 1e9;
    for (int run = 0; run < RUNS; run++) {
        *floor_s = least(*floor_s, least(time_floor(p, false), time_floor(p, true)));
        for (int c = 0; c < count; c++) {
            p->desc = desc[c];
            p->desc.threads = p->threads;
            if (!make_room(p))
                return;
            seconds[c] = least(seconds[c], time_topk(p));
        }
    }
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int count)
{
    qsort(x, (size_t)count, sizeof *x, compare_doubles);
    return x[count / 2];
}

/* Median time, and median of its ratio to the mean of the floors on either side: memory
 * that is faster one moment than the next is so for both. */
static void time_beside_floor(problem *p, double *floor_s, double *seconds)
{
    double ratio[PAIRS], time[PAIRS];
    p->desc.threads = p->threads;
    if (!make_room(p))
        return;
    double before = least(time_floor(p, false), time_floor(p, true));
    for (int run = 0; run < PAIRS; run++) {
        time[run] = time_topk(p);
        const double behind = least(time_floor(p, false), time_floor(p, true));
        ratio[run] = 2 * time[run] / (before + behind);
        before = behind;
    }
    *seconds = median(time, PAIRS);
    *floor_s = *seconds / median(ratio, PAIRS);
}

static void print_row(const char *order, const stint_topk_desc *d, double seconds,
                      double floor_s)
{
    stint_topk_method method;
    int exponent;
    double predicted;
    stint_topk_explain(d, &method, &exponent, &predicted);
    const int64_t rows = d->rows ? d->rows : 1;
    printf("%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%s,%s,%d,%.2f,%.2f,%.3f,%.2f\n",
           order, rows, d->n, d->k, stint_topk_method_name(d->method),
           stint_topk_method_name(method), exponent, seconds * 1e6, floor_s * 1e6,
           seconds / floor_s, predicted * 1e6 * (double)rows);
    fflush(stdout);
}

/* The next k after this one (0: the first); 0 at the end. */
static int64_t next_k(problem *p, int64_t k, int64_t most)
{
    char *end;
    if (!p->ks)
        return k == 0 ? 1 : k <= most / 4 ? 4 * k : 0;
    const int64_t next = strtoll(p->ks, &end, 10);
    p->ks = *end ? end + 1 : end;
    return next <= most ? next : 0;
}

static void bench_orders(problem *p, int64_t n, const stint_topk_costs *costs)
{
    for (int64_t k = 0; (k = next_k(p, k, n / 4));)
        for (int order = 0; order < ORDERS; order++) {
            double floor_s = 1, seconds = 0;
            const stint_topk_desc d = {.n = n, .k = k, .costs = costs};
            fill(p->x, order, n, k);
            p->desc = d;
            time_beside_floor(p, &floor_s, &seconds);
            print_row(orders[order], &d, seconds, floor_s);
        }
}

static void bench_methods(problem *p, int64_t n, const stint_topk_costs *costs)
{
    fill(p->x, 0, n, 1);
    for (int64_t k = 0; (k = next_k(p, k, n / 4));) {
        stint_topk_desc d[STINT_TOPK_METHODS];
        double floor_s, seconds[STINT_TOPK_METHODS];
        for (int m = 0; m < STINT_TOPK_METHODS; m++)
            d[m] = (stint_topk_desc){
                .n = n, .k = k, .costs = costs, .method = (stint_topk_method)m};
        p->desc = d[0];
        time_all(p, d, STINT_TOPK_METHODS, &floor_s, seconds);
        for (int m = 0; m < STINT_TOPK_METHODS; m++)
            print_row("uniform", &d[m], seconds[m], floor_s);
    }
}

static void sweep_exponents(problem *p, int64_t n, int64_t k, stint_topk_method method,
                            const stint_topk_costs *costs)
{
    enum { FIRST = 4, COUNT = 13 };
    stint_topk_desc d[COUNT];
    double floor_s, seconds[COUNT];
    int count = 0;
    for (int a = FIRST; a < FIRST + COUNT - 1; a++)
        if (n >> a > k)
            d[count++] = (stint_topk_desc){
                .n = n, .k = k, .costs = costs, .exponent = a, .method = method};
    d[count++] = (stint_topk_desc){.n = n, .k = k, .costs = costs, .method = method};
    p->desc = d[0];
    time_all(p, d, count, &floor_s, seconds);
    for (int c = 0; c < count; c++)
        print_row(c + 1 < count ? "sweep" : "chosen", &d[c], seconds[c], floor_s);
}

static void bench_exponents(problem *p, int64_t n, const stint_topk_costs *costs)
{
    fill(p->x, 0, n, 1);
    for (int64_t k = 0; (k = next_k(p, k, n / 64));) {
        sweep_exponents(p, n, k, STINT_TOPK_DELEGATE, costs);
        sweep_exponents(p, n, k, STINT_TOPK_DELEGATE2, costs);
    }
}

static void bench_rows(problem *p, const stint_topk_costs *costs)
{
    const stint_topk_desc d[] = {
        {.rows = 32, .n = 50257, .k = 50, .costs = costs},
        {.rows = 32, .n = 50257, .k = 50, .costs = costs, .sorted = true},
        {.rows = 256, .n = 1000, .k = 5, .costs = costs, .sorted = true}};
    for (int i = 0; i < 3; i++) {
        double floor_s, seconds;
        fill(p->x, 1, d[i].rows * d[i].n, 1);
        p->desc = d[i];
        time_all(p, &d[i], 1, &floor_s, &seconds);
        print_row(d[i].sorted ? "rows sorted" : "rows", &d[i], seconds, floor_s);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "orders";
    const int64_t n = INT64_C(1) << (argc > 2 ? atoi(argv[2]) : 22);
    const int64_t most = n > 1 << 22 ? n : 1 << 22;
    stint_topk_costs costs;
    problem p = {.x = sti_alloc_array(most, 4, "bench.x"),
                 .index = sti_alloc_array(most / 2, 8, "bench.index"),
                 .values = sti_alloc_array(most / 2, 4, "bench.values"),
                 .threads = argc > 4 ? atoi(argv[4]) : 1,
                 .ks = argc > 3 && argv[3][0] ? argv[3] : NULL};
    if (!p.x || !p.index || !p.values) {
        fprintf(stderr, "%s\n", stint_last_error());
        return 1;
    }
    stint_topk_costs_host(&costs);
    fprintf(stderr, "%s, %s, %d threads\n", sti_cpu_name(), sti_isa_name(sti_isa_now()),
            p.threads);
    printf("order,rows,n,k,asked,method,exponent,us,maximum_us,ratio,predicted_us\n");
    if (strcmp(what, "methods") == 0)
        bench_methods(&p, n, &costs);
    else if (strcmp(what, "exponents") == 0)
        bench_exponents(&p, n, &costs);
    else if (strcmp(what, "rows") == 0)
        bench_rows(&p, &costs);
    else
        bench_orders(&p, n, &costs);
    sti_free(p.x);
    sti_free(p.index);
    sti_free(p.values);
    sti_free(p.workspace);
    return 0;
}
