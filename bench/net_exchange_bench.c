/* Seconds of one sum of gradients over processes: exact, and compressed. Started once a
 * rank, as by net_bench.sh:
 *
 *   net_exchange_bench HOST:PORT RANKS RANK VALUES RUNS [sockets|exact]
 *
 * Rank 0 prints tab-separated lines: way, median and best seconds, bytes that it sends,
 * and what they should be by the formula of the way.
 * All ways take turns, so what disturbs one disturbs all. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/compressed_allreduce.h"
#include "net/net.h"
#include "net/tree_sum.h"

enum { WAYS = 6, EXACT_WAYS = 2, RUNS_MAX = 100 };

typedef struct way {
    const char *name;
    int bits;
    double keep;
    sti_gradient_rounding rounding;
    sti_compressed_allreduce *allreduce; /* NULL: along the exact tree */
    double seconds[RUNS_MAX];
    int64_t bytes, formula;
} way;

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static stint_status prepare(sti_comm *comm, int64_t values, way *ways, int count)
{
    const sti_compressed_layer layer = {"gradient", 0, values, 2};
    for (int w = 1; w < count; w++) {
        const sti_compressed_allreduce_desc desc = {
            .form = {.bits = ways[w].bits,
                     .bucket = 1024,
                     .rounding = ways[w].rounding},
            .feedback = ways[w].keep < 1,
            .keep = ways[w].keep,
            .seed = 1};
        const stint_status st = sti_compressed_allreduce_create(
            comm, &desc, &layer, 1, values, &ways[w].allreduce);
        if (st != STINT_OK)
            return st;
    }
    return STINT_OK;
}

static stint_status run_way(sti_comm *comm, sti_tree_sum *tree, way *w, float *x,
                            int64_t values, int run)
{
    float *block = x;
    for (int64_t i = 0; i < values; i++)
        x[i] = (float)((i * 7919 + run) % 10007) * 1e-4f - 0.5f;
    stint_status st = sti_comm_barrier(comm);
    const int64_t start = sti_clock_ns(), sent = sti_comm_count(comm).bytes_sent;
    if (st == STINT_OK)
        st = w->allreduce ? sti_compressed_allreduce_run(w->allreduce, &sti_team_serial,
                                                         NULL, run + 1, x)
                          : sti_tree_sum_run(tree, &sti_team_serial, NULL, &block, 1);
    w->bytes = sti_comm_count(comm).bytes_sent - sent;
    if (st == STINT_OK)
        st = sti_comm_barrier(comm);
    if (run >= 0)
        w->seconds[run] = sti_seconds_since(start);
    return st;
}

static void tell_formula(sti_tree_sum *tree, way *w)
{
    int64_t messages;
    if (w->allreduce)
        sti_compressed_traffic(w->allreduce, &messages, &w->formula);
    else
        sti_tree_sum_traffic(tree, &messages, &w->formula);
}

static int report(const way *ways, int count, int runs)
{
    for (int w = 0; w < count; w++) {
        double s[RUNS_MAX];
        memcpy(s, ways[w].seconds, sizeof s);
        qsort(s, (size_t)runs, sizeof *s, by_value);
        printf("%s\t%.6f\t%.6f\t%lld\t%lld\n", ways[w].name, s[runs / 2], s[0],
               (long long)ways[w].bytes, (long long)ways[w].formula);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static way ways[WAYS] = {
        {.name = "float32, exact tree"},
        {.name = "float32, scatter", .bits = STI_COMPRESSED_RAW, .keep = 1},
        {.name = "8 bits", .bits = 8, .keep = 1},
        {.name = "4 bits", .bits = 4, .keep = 1},
        {.name = "2 bits", .bits = 2, .keep = 1},
        {.name = "1 % largest", .bits = 4, .keep = 0.01},
    };
    if (argc != 6 && argc != 7) {
        (void)fprintf(
            stderr,
            "net_exchange_bench HOST:PORT RANKS RANK VALUES RUNS [sockets|exact]\n"
            "sockets: within a host, too, where ranks share memory otherwise\n"
            "exact: float32 only\n");
        return 2;
    }
    const stint_net_desc desc = {.root = argv[1],
                                 .ranks = atoi(argv[2]),
                                 .rank = atoi(argv[3]),
                                 .timeout_s = 60,
                                 .sockets_only =
                                     argc == 7 && strcmp(argv[6], "sockets") == 0};
    const int count = argc == 7 && !desc.sockets_only ? EXACT_WAYS : WAYS;
    const int64_t values = atoll(argv[4]);
    const int runs = atoi(argv[5]) < RUNS_MAX ? atoi(argv[5]) : RUNS_MAX;
    stint_net *net = NULL;
    sti_tree_sum *tree = NULL;
    float *x = malloc((size_t)values * sizeof *x);
    stint_status st = x ? stint_net_join(&desc, &net) : STINT_E_MEMORY;
    sti_comm *comm = st == STINT_OK ? sti_net_comm(net) : NULL;
    if (st == STINT_OK)
        st = sti_tree_sum_create(comm, desc.ranks, values, &tree);
    if (st == STINT_OK)
        st = prepare(comm, values, ways, count);
    for (int run = -1; run < runs && st == STINT_OK; run++)
        for (int w = 0; w < count && st == STINT_OK; w++)
            st = run_way(comm, tree, &ways[w], x, values, run);
    for (int w = 0; w < count && st == STINT_OK; w++)
        tell_formula(tree, &ways[w]);
    if (st == STINT_OK && desc.rank == 0)
        report(ways, count, runs);
    if (st != STINT_OK)
        (void)fprintf(stderr, "rank %d: %s\n", desc.rank, stint_last_error());
    for (int w = 0; w < WAYS; w++)
        sti_compressed_allreduce_destroy(ways[w].allreduce);
    sti_tree_sum_destroy(tree);
    stint_net_leave(net);
    free(x);
    return st;
}
