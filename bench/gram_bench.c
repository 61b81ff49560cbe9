/* Tiles of kernel matrices on one thread: what a 256 x 256 tile takes by kernel and
 * features, as a share of the peak of double multiply-adds (half of that of floats,
 * kernel/machine/machine.h), beside the bare product of the same panels.
 *
 *     build/release/bench/gram_bench
 *
 * Best of 40 calls each; rows are random, so nothing is sparse. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernel/gemm/gemm_f64.h"
#include "kernel/gram/gram.h"
#include "kernel/machine/machine.h"

enum { TILE = STI_GRAM_TILE, DEEPEST = 3072, CALLS = 40 };

typedef struct subject {
    sti_gram_rows rows;
    sti_gram_function function;
    double *tile;
    void *scratch;
} subject;

static void one_tile(subject *s)
{
    sti_gram_tile(&s->function, &s->rows, 0, TILE, &s->rows, 0, TILE, s->tile, TILE,
                  s->scratch);
}

static void one_product(subject *s)
{
    const int64_t d = s->rows.columns;
    sti_gemm_f64(TILE, TILE, d, (sti_view_f64){s->rows.dense, d, 1},
                 (sti_view_f64){s->rows.dense, 1, d}, false, s->tile, TILE, s->scratch);
}

static double best_s(subject *s, void (*call)(subject *))
{
    double best = INFINITY;
    for (int i = 0; i < CALLS; i++) {
        const int64_t start = sti_clock_ns();
        call(s);
        best = fmin(best, sti_seconds_since(start));
    }
    return best;
}

int main(void)
{
    static const char *const names[STI_GRAM_KINDS] = {
        "linear", "polynomial", "rbf", "sigmoid", NULL, "laplacian", "chi_squared"};
    static const int64_t depths[] = {20, 128, 1024, DEEPEST};
    double *dense = sti_alloc_array((int64_t)TILE * DEEPEST, sizeof *dense, "rows");
    double term[TILE];
    subject s = {.tile = sti_alloc(STI_GRAM_TILE_BYTES, "tile"),
                 .scratch = sti_alloc(STI_GEMM_F64_SCRATCH_BYTES, "scratch")};
    if (!dense || !s.tile || !s.scratch)
        return 1;
    for (uint64_t i = 0; i < (uint64_t)TILE * DEEPEST; i++) {
        uint32_t w[4];
        sti_random4(1, STI_STREAM_TEST, i, 0, w);
        dense[i] = (double)sti_uniform(w[0]);
    }
    sti_machine machine;
    if (sti_machine_now(&machine) != STINT_OK)
        return 1;
    const double peak = machine.f32_flop_per_s / 2;
    printf("peak %.1f Gflop/s in double\n", peak * 1e-9);
    for (size_t k = 0; k < sizeof depths / sizeof *depths; k++) {
        const double flop = 2.0 * TILE * TILE * (double)depths[k];
        s.rows = (sti_gram_rows){TILE, depths[k], dense, .term = term};
        const double product = best_s(&s, one_product);
        printf("%4d features: product %8.1f us, %4.0f %% of the peak\n", (int)depths[k],
               product * 1e6, 100 * flop / product / peak);
        for (int kind = 0; kind < STI_GRAM_KINDS; kind++) {
            if (!names[kind])
                continue;
            s.function = (sti_gram_function){(sti_gram_kind)kind, 0.1, 0.5, 3};
            sti_gram_terms(&s.function, &s.rows, term);
            const double time = best_s(&s, one_tile);
            printf("    %-12s %10.1f us, %4.0f %% of the peak, %.2f x the product\n",
                   names[kind], time * 1e6, 100 * flop / time / peak, time / product);
        }
    }
    sti_free(dense);
    sti_free(s.tile);
    sti_free(s.scratch);
    return 0;
}
