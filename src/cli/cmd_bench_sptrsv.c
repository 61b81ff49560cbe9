/* stint bench sptrsv: every strategy of a triangular solve, taken in turn, and the one
 * that is chosen. bench/sptrsv_bench.sh has the peers. */
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
#include "data/matrix_make.h"
#include "solve/sparse_operator.h"
#include "solve/trsv_cost.h"

typedef struct bench_args {
    int64_t threads, solves;
    sti_cli_common common;
} bench_args;

static const sti_option bench_rows[] = {
    {.name = "solves",
     .type = STI_OPTION_INT,
     .default_text = "1000",
     .min = 1,
     .max = 1e9,
     .offset = offsetof(bench_args, solves),
     .flag = true,
     .unit = "N",
     .help = "the choice is made for so many"},
    STI_CLI_THREADS_ROW(bench_args),
    STI_CLI_COMMON_ROWS(bench_args),
};

enum { WAYS = 6, RUNS_MOST = 201 };
/* Ways: those that can be asked for, and what is chosen. */
static const sti_trsv_strategy ways[WAYS] = {STI_TRSV_NATURAL,   STI_TRSV_LEVEL,
                                             STI_TRSV_POOL,      STI_TRSV_SUPERSTEP,
                                             STI_TRSV_SUPERNODE, STI_TRSV_AUTO};
#define CHOSEN (WAYS - 1)

typedef struct bench {
    sti_cli_call *call;
    int threads;
    sti_market market;
    sti_trsv_desc desc;
    sti_trsv *plan[WAYS];
    double seconds[WAYS][RUNS_MOST];
    double *b, *x, *natural;
    int runs;
    sti_text text;
    sti_json json;
} bench;

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The lower triangle, or the upper one of a matrix that is no other; with a diagonal of
 * ones where one is missing. */
static stint_status analyse(bench *b)
{
    const bench_args *args = b->call->args;
    b->desc =
        (sti_trsv_desc){.a = &b->market.a,
                        .upper = sti_matrix_kind_of(&b->market.a) == STI_MATRIX_UPPER,
                        .part = true,
                        .threads = b->threads,
                        .solves = args->solves};
    for (int w = 0; w < WAYS; w++) {
        b->desc.strategy = ways[w];
        stint_status st = sti_trsv_analyse(&b->desc, &b->plan[w]);
        if (st == STINT_E_INPUT && !b->desc.unit) {
            b->desc.unit = true;
            st = sti_trsv_analyse(&b->desc, &b->plan[w]);
        }
        if (st != STINT_OK)
            return st;
    }
    return STINT_OK;
}

static stint_status check_bits(const bench *b, int way)
{
    for (int64_t i = 0; i < b->market.a.rows; i++)
        if (memcmp(&b->x[i], &b->natural[i], sizeof *b->x) != 0)
            return sti_fail(STINT_E_BUG, "%s: row %lld differs from the serial loop",
                            sti_trsv_strategy_names[ways[way]], (long long)i + 1);
    return STINT_OK;
}

/* In turn, so that what the machine does beside hits all; of two solves the second is
 * timed, as solves are made again and again, with what is near from the last one. */
static stint_status run(bench *b)
{
    const int64_t begun = sti_clock_ns();
    const size_t bytes = (size_t)b->market.a.rows * sizeof *b->x;
    sti_trsv_solve(b->plan[0], 1, b->b, b->natural);
    for (b->runs = 0; b->runs < RUNS_MOST; b->runs++) {
        if (b->runs >= 5 && sti_seconds_since(begun) > 1)
            break;
        for (int w = 0; w < WAYS; w++) {
            memset(b->x, 0, bytes);
            sti_trsv_solve(b->plan[w], 1, b->b, b->x);
            const int64_t start = sti_clock_ns();
            sti_trsv_solve(b->plan[w], 1, b->b, b->x);
            b->seconds[w][b->runs] = sti_seconds_since(start);
            const stint_status st = check_bits(b, w);
            if (st != STINT_OK)
                return st;
        }
    }
    for (int w = 0; w < WAYS; w++)
        qsort(b->seconds[w], (size_t)b->runs, sizeof(double), compare);
    return STINT_OK;
}

static double median(const bench *b, int way)
{
    return b->seconds[way][b->runs / 2];
}

/* The share of what one thread reads at most, each entry and each row once. */
static double bandwidth_share(const bench *b, double seconds)
{
    const double n = (double)b->market.a.rows;
    const double below = ((double)b->market.a.start[b->market.a.rows] - n) /
                         (b->market.symmetry == STI_MARKET_GENERAL ? 1 : 2);
    return (12 * below + 24 * n) / seconds /
           sti_trsv_costs_host(false)->far_bytes_per_s;
}

static stint_status report(bench *b, const char *name)
{
    const sti_trsv_info *i = sti_trsv_info_of(b->plan[CHOSEN]);
    const int64_t n = b->market.a.rows, nonzeros = b->market.a.start[n];
    const int64_t levels = sti_trsv_info_of(b->plan[1])->levels;
    const char *chosen = sti_trsv_strategy_names[i->strategy];
    if (!b->call->common->json) {
        sti_text_printf(&b->text, "%-22s %9lld %10lld %7lld", name, (long long)n,
                        (long long)nonzeros, (long long)levels);
        for (int w = 0; w < WAYS; w++)
            sti_text_printf(&b->text, " %9.3f", 1e3 * median(b, w));
        sti_text_printf(&b->text, " %9.3f %9.1f  %s\n", 1e3 * i->predicted_s,
                        1e3 * i->analysis_s, chosen);
        return sti_cli_print(&b->text);
    }
    sti_json_begin_object(&b->json, NULL);
    sti_json_text(&b->json, "matrix", name);
    sti_json_int(&b->json, "n", n);
    sti_json_int(&b->json, "nonzeros", nonzeros);
    sti_json_int(&b->json, "levels", levels);
    sti_json_float(&b->json, "natural_s", median(b, 0));
    sti_json_float(&b->json, "level_s", median(b, 1));
    sti_json_float(&b->json, "pool_s", median(b, 2));
    sti_json_float(&b->json, "superstep_s", median(b, 3));
    sti_json_float(&b->json, "supernode_s", median(b, 4));
    sti_json_text(&b->json, "chosen", chosen);
    sti_json_float(&b->json, "chosen_s", median(b, CHOSEN));
    sti_json_float(&b->json, "predicted_s", i->predicted_s);
    sti_json_float(&b->json, "analysis_s", i->analysis_s);
    sti_json_float(&b->json, "bandwidth_share", bandwidth_share(b, median(b, CHOSEN)));
    sti_json_end_object(&b->json);
    return STINT_OK;
}

static stint_status take(bench *b, const char *name)
{
    return sti_matrix_is_kind(name)
               ? sti_matrix_make(name, 1, b->threads, &b->market)
               : sti_market_read(&(sti_market_desc){.path = name,
                                                    .sum = true,
                                                    .threads = b->threads},
                                 &b->market);
}

static stint_status run_matrix(bench *b, const char *name)
{
    stint_status st;
    STI_TRY(take(b, name));
    const int64_t n = b->market.a.rows;
    b->b = sti_alloc_array(n, sizeof *b->b, "bench.b");
    b->x = sti_alloc_array(n, sizeof *b->x, "bench.x");
    b->natural = sti_alloc_array(n, sizeof *b->natural, "bench.x");
    STI_TRY(b->b && b->x && b->natural ? STINT_OK : STINT_E_MEMORY);
    for (int64_t i = 0; i < n; i++) {
        uint32_t w[4];
        sti_random4(1, STI_STREAM_MATRIX, (uint64_t)i, (uint64_t)9 << 56, w);
        b->b[i] = (double)sti_uniform(w[0]) - 0.5;
    }
    STI_TRY(analyse(b));
    STI_TRY(run(b));
    st = report(b, name);
out:
    for (int w = 0; w < WAYS; w++) {
        sti_trsv_destroy(b->plan[w]);
        b->plan[w] = NULL;
    }
    sti_free(b->b);
    sti_free(b->x);
    sti_free(b->natural);
    b->b = b->x = b->natural = NULL;
    sti_market_fini(&b->market);
    return st;
}

static stint_status begin(bench *b)
{
    if (b->call->common->json) {
        sti_cli_json_begin(&b->json, &b->text);
        sti_json_text(&b->json, "cpu", sti_cpu_name());
        sti_json_text(&b->json, "isa", sti_isa_name(sti_isa_now()));
        sti_json_int(&b->json, "threads", b->threads);
        sti_json_begin_array(&b->json, "rows");
        return STINT_OK;
    }
    sti_text_printf(&b->text,
                    "%s, %s, %d thread%s; milliseconds, medians; analysis: of the "
                    "chosen\n%-22s %9s %10s %7s",
                    sti_cpu_name(), sti_isa_name(sti_isa_now()), b->threads,
                    sti_s(b->threads), "matrix", "n", "nonzeros", "levels");
    for (int w = 0; w < WAYS; w++)
        sti_text_printf(&b->text, " %9s",
                        w == CHOSEN ? "chosen" : sti_trsv_strategy_names[ways[w]]);
    sti_text_printf(&b->text, " %9s %9s\n", "predicted", "analysis");
    return sti_cli_print(&b->text);
}

static stint_status bench_run(sti_cli_call *call)
{
    static const char *const standard[] = {
        "poisson2d:300", "poisson3d:40",     "weighted3d:40",
        "rmat:14",       "geometric:100000", "random:100000",
        "chain:100000",  "band:100000",      "arrow:100000"};
    const bench_args *args = call->args;
    const bool given = call->operand_count > 0;
    const int count =
        given ? call->operand_count : (int)(sizeof standard / sizeof *standard);
    bench *b = sti_alloc(sizeof *b, "bench");
    stint_status st = b ? STINT_OK : STINT_E_MEMORY;
    if (!b)
        return st;
    b->call = call;
    STI_TRY(sti_threads_choose((int)args->threads, &b->threads, NULL));
    STI_TRY(begin(b));
    for (int k = 0; k < count; k++)
        STI_TRY(run_matrix(b, given ? call->operands[k] : standard[k]));
    if (call->common->json) {
        sti_json_end_array(&b->json);
        sti_json_end_object(&b->json);
        st = sti_cli_answer(call, &b->text);
    }
out:
    sti_text_fini(&b->text);
    sti_free(b);
    return st;
}

const sti_cli_command sti_cmd_bench_sptrsv = {
    .name = "bench sptrsv",
    .summary = "measure the strategies of sparse triangular solves",
    .operands = "[FILE.mtx|KIND:SIZE...]",
    .example = "stint bench sptrsv poisson3d:80 -j 2\nstint bench sptrsv L.mtx --json",
    .about = "Each strategy on the lower triangle (the upper one of an upper matrix), "
             "taken in turn; every answer is held against the serial loop, bit by "
             "bit. KIND:SIZE as in `stint data matrix`. Without a matrix: a set of "
             "nine.",
    .min_operands = 0,
    .max_operands = -1,
    STI_CLI_ARGS(bench_rows, bench_args),
    .run = bench_run,
};
