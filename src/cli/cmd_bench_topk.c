/* stint bench topk: top-k beside one pure maximum of the same array, which nothing can
 * beat, and beside the two textbook ways (quickselect on a copy, a heap), taken in
 * turn. bench/topk_peers.sh has the libraries. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/team.h"
#include "base/units.h"
#include "cli/cli.h"
#include "kernel/reduce/reduce.h"

typedef struct bench_args {
    int64_t threads, most;
    int order;
    sti_cli_common common;
} bench_args;

#define ORDER_NAMES "uniform|ascending|descending|equal|cluster"

static const sti_option bench_rows[] = {
    STI_CLI_THREADS_ROW(bench_args),
    {.name = "largest",
     .type = STI_OPTION_INT,
     .default_text = "22",
     .min = 10,
     .max = 30,
     .offset = offsetof(bench_args, most),
     .flag = true,
     .unit = "LOG2",
     .help = "2^LOG2 elements in the largest array"},
    {.name = "order",
     .type = STI_OPTION_CHOICE,
     .default_text = "uniform",
     .choices = ORDER_NAMES,
     .offset = offsetof(bench_args, order),
     .flag = true,
     .unit = "ORDER",
     .help = "what the array holds; cluster: all winners side by side"},
    STI_CLI_COMMON_ROWS(bench_args),
};

enum { RUNS = 5, WAYS = 4 };
static const char *const way_names[WAYS] = {"maximum", "stint", "quickselect", "heap"};

typedef struct pair {
    float value;
    int32_t index;
} pair;

typedef struct bench {
    sti_cli_call *call;
    sti_team team;
    stint_topk_costs costs;
    stint_topk_desc desc;
    int64_t most;
    float *x, *values;
    int64_t *index;
    pair *pairs;
    void *workspace, *reduce_scratch;
    size_t workspace_bytes;
    stint_status status;
    float maximum;
    sti_text text;
    sti_json json;
} bench;

static void fill(bench *b, int order)
{
    const int64_t n = b->desc.n, k = b->desc.k;
    uint32_t word[4] = {0};
    for (int64_t i = 0; i < n; i++) {
        if (i % 4 == 0)
            sti_random4(1, STI_STREAM_TEST, 0, (uint64_t)i, word);
        const float u = sti_uniform(word[i % 4]);
        const bool best = i >= n / 3 && i < n / 3 + k;
        b->x[i] = order == 1           ? (float)i
                  : order == 2         ? (float)(n - i)
                  : order == 3         ? 1.0F
                  : order == 4 && best ? 2.0F + u
                                       : u;
    }
}

/* ---- ways ---- */

static void way_maximum(bench *b)
{
    sti_reduce_f32(&b->team, STI_REDUCE_MAX, 1, b->desc.n, 1, b->x, &b->maximum,
                   b->reduce_scratch);
}

static void way_stint(bench *b)
{
    b->status = stint_topk(&b->desc, b->x, NULL, b->index, b->values, b->workspace,
                           b->workspace_bytes);
}

static void swap_pairs(pair *a, pair *b)
{
    const pair held = *a;
    *a = *b;
    *b = held;
}

/* Hoare's quickselect, median of three, on a copy with indices. */
static void way_quickselect(bench *b)
{
    pair *p = b->pairs;
    const int64_t k = b->desc.k;
    for (int64_t i = 0; i < b->desc.n; i++)
        p[i] = (pair){b->x[i], (int32_t)i};
    int64_t lo = 0, hi = b->desc.n - 1;
    while (lo < hi) {
        const int64_t middle = lo + (hi - lo) / 2;
        if (p[middle].value > p[lo].value)
            swap_pairs(&p[middle], &p[lo]);
        if (p[hi].value > p[lo].value)
            swap_pairs(&p[hi], &p[lo]);
        if (p[hi].value > p[middle].value)
            swap_pairs(&p[hi], &p[middle]);
        const float pivot = p[middle].value;
        int64_t i = lo, j = hi;
        while (i <= j) {
            while (p[i].value > pivot)
                i++;
            while (p[j].value < pivot)
                j--;
            if (i <= j)
                swap_pairs(&p[i++], &p[j--]);
        }
        if (k - 1 <= j)
            hi = j;
        else if (k - 1 >= i)
            lo = i;
        else
            break;
    }
    for (int64_t i = 0; i < k; i++) {
        b->values[i] = p[i].value;
        b->index[i] = p[i].index;
    }
}

static void sift_down(bench *b, int64_t at, float value, int64_t index)
{
    const int64_t k = b->desc.k;
    for (int64_t child; (child = 2 * at + 1) < k; at = child) {
        if (child + 1 < k && b->values[child + 1] < b->values[child])
            child++;
        if (b->values[child] >= value)
            break;
        b->values[at] = b->values[child];
        b->index[at] = b->index[child];
    }
    b->values[at] = value;
    b->index[at] = index;
}

static void way_heap(bench *b)
{
    const int64_t k = b->desc.k;
    for (int64_t i = 0; i < k; i++) {
        b->values[i] = b->x[i];
        b->index[i] = i;
    }
    for (int64_t i = k / 2; i-- > 0;)
        sift_down(b, i, b->values[i], b->index[i]);
    for (int64_t i = k; i < b->desc.n; i++)
        if (b->x[i] > b->values[0])
            sift_down(b, 0, b->x[i], i);
}

/* ---- the table ---- */

static int compare_ns(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void report(bench *b, int64_t ns[WAYS][RUNS])
{
    const int64_t n = b->desc.n, k = b->desc.k;
    stint_topk_method method = STINT_TOPK_AUTO;
    int exponent = 0;
    double predicted = 0;
    stint_topk_explain(&b->desc, &method, &exponent, &predicted);
    for (int w = 0; w < WAYS; w++)
        qsort(ns[w], RUNS, sizeof ns[w][0], compare_ns);
    if (!b->call->common->json) {
        sti_text_printf(&b->text, "%10" PRId64 " %9" PRId64 "  %-9s %2d", n, k,
                        stint_topk_method_name(method), exponent);
        for (int w = 0; w < WAYS; w++)
            sti_text_printf(&b->text, " %11.1f", (double)ns[w][0] * 1e-3);
        sti_text_printf(&b->text, " %8.2f\n", (double)ns[1][0] / (double)ns[0][0]);
        b->status = sti_cli_print(&b->text);
        return;
    }
    sti_json_begin_object(&b->json, NULL);
    sti_json_int(&b->json, "n", n);
    sti_json_int(&b->json, "k", k);
    sti_json_text(&b->json, "method", stint_topk_method_name(method));
    sti_json_int(&b->json, "exponent", exponent);
    sti_json_float(&b->json, "predicted_s", predicted);
    for (int w = 0; w < WAYS; w++) {
        sti_json_begin_object(&b->json, way_names[w]);
        sti_json_float(&b->json, "best_s", (double)ns[w][0] * 1e-9);
        sti_json_float(&b->json, "median_s", (double)ns[w][RUNS / 2] * 1e-9);
        sti_json_end_object(&b->json);
    }
    sti_json_end_object(&b->json);
}

static stint_status run_case(bench *b, int64_t n, int64_t k)
{
    static void (*const ways[WAYS])(bench *) = {way_maximum, way_stint, way_quickselect,
                                                way_heap};
    const bench_args *args = b->call->args;
    int64_t ns[WAYS][RUNS];
    b->desc = (stint_topk_desc){
        .n = n, .k = k, .threads = b->team.threads, .costs = &b->costs};
    fill(b, args->order);
    b->status = stint_topk_workspace_bytes(&b->desc, &b->workspace_bytes);
    if (b->status != STINT_OK)
        return b->status;
    b->workspace = sti_alloc(b->workspace_bytes, "bench.workspace");
    b->reduce_scratch = sti_alloc(sti_reduce_scratch_bytes(1, n, 1), "bench.scratch");
    b->status = b->workspace && b->reduce_scratch ? STINT_OK : STINT_E_MEMORY;
    for (int run = -1; run < RUNS && b->status == STINT_OK; run++)
        for (int w = 0; w < WAYS && b->status == STINT_OK; w++) {
            const int64_t start = sti_clock_ns();
            ways[w](b);
            if (run >= 0) /* the first one warms up */
                ns[w][run] = sti_clock_ns() - start + 1;
        }
    if (b->status == STINT_OK)
        report(b, ns);
    sti_free(b->workspace);
    sti_free(b->reduce_scratch);
    return b->status;
}

static stint_status begin(bench *b, sti_cli_call *call)
{
    const bench_args *args = call->args;
    *b = (bench){.call = call, .most = INT64_C(1) << args->most};
    stint_status status =
        sti_threads_choose((int)args->threads, &b->team.threads, NULL);
    if (status != STINT_OK)
        return status;
    b->x = sti_alloc_array(b->most, sizeof *b->x, "bench.x");
    b->values = sti_alloc_array(b->most / 4, sizeof *b->values, "bench.values");
    b->index = sti_alloc_array(b->most / 4, sizeof *b->index, "bench.index");
    b->pairs = sti_alloc_array(b->most, sizeof *b->pairs, "bench.pairs");
    if (!b->x || !b->values || !b->index || !b->pairs)
        return STINT_E_MEMORY;
    stint_topk_costs_host(&b->costs);
    if (call->common->json) {
        sti_cli_json_begin(&b->json, &b->text);
        sti_json_text(&b->json, "cpu", sti_cpu_name());
        sti_json_text(&b->json, "isa", sti_isa_name(sti_isa_now()));
        sti_json_int(&b->json, "threads", b->team.threads);
        sti_json_begin_array(&b->json, "cases");
        return STINT_OK;
    }
    sti_text_printf(&b->text,
                    "%s, %s, %d thread%s; microseconds, best of %d\n"
                    "maximum: the floor, one read of the array. quickselect (on a copy "
                    "with indices) and heap:\nbuilt in, one thread; other libraries: "
                    "bench/topk_peers.sh\n%10s %9s  %-12s",
                    sti_cpu_name(), sti_isa_name(sti_isa_now()), b->team.threads,
                    sti_s(b->team.threads), RUNS, "n", "k", "method");
    for (int w = 0; w < WAYS; w++)
        sti_text_printf(&b->text, " %11s", way_names[w]);
    sti_text_printf(&b->text, " %8s\n", "x max");
    return sti_cli_print(&b->text);
}

static stint_status bench_run(sti_cli_call *call)
{
    bench b;
    stint_status status = begin(&b, call);
    int64_t first = b.most;
    while (first / 16 >= 1024)
        first /= 16;
    for (int64_t n = first; status == STINT_OK && n <= b.most; n *= 16)
        for (int64_t k = 1; status == STINT_OK && k <= n / 4; k *= 16)
            status = run_case(&b, n, k);
    if (status == STINT_OK && call->common->json) {
        sti_json_end_array(&b.json);
        sti_json_end_object(&b.json);
        status = sti_cli_answer(call, &b.text);
    }
    sti_text_fini(&b.text);
    sti_free(b.x);
    sti_free(b.values);
    sti_free(b.index);
    sti_free(b.pairs);
    return status;
}

const sti_cli_command sti_cmd_bench_topk = {
    .name = "bench topk",
    .summary = "measure top-k beside its floor and the textbook ways",
    .operands = "",
    .example = "stint bench topk --largest 26\nstint bench topk --order equal -j 1",
    .about = "The maximum of the same array is the floor: one read. Its two peers are "
             "built in, the textbook ways that give values and indices: quickselect on "
             "a copy of the values with their indices, and a heap of the k best; each "
             "by one thread. All results are exact; times include copies. "
             "bench/topk_peers.sh has the others: x86-simd-sort, std::nth_element, "
             "std::partial_sort and faiss, NumPy and PyTorch.",
    .min_operands = 0,
    .max_operands = 0,
    STI_CLI_ARGS(bench_rows, bench_args),
    .run = bench_run,
};
