#include "svm/svm_rates.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/team.h"
#include "kernel/gram/gram.h"
#include "kernel/machine/figures.h"

enum {
    TILE = STI_GRAM_TILE,
    DEPTH = 512,             /* columns of rows whose products are timed */
    SHALLOW = 8,             /* of those whose exponentials are */
    FAR_TILES = 256,         /* beyond any cache that a core has for itself */
    ENTRIES = 64,            /* of a sparse row */
    RUNS = 5,                /* the best counts: what disturbs a run makes it slower */
    RUN_NS = 8 * 1000 * 1000 /* at least */
};

static const sti_figure rows[] = {
#define RATE(field)                                              \
    {                                                            \
        .name = #field, .offset = offsetof(sti_svm_rates, field) \
    }
    RATE(product_flop_per_s),
    RATE(product_f32_flop_per_s),
    RATE(finish_per_s),
    RATE(apart_per_s),
    RATE(spread_per_s),
    RATE(apply_flop_per_s),
    RATE(apply_bytes_per_s),
    RATE(apply_all_bytes_per_s),
#undef RATE
    {.name = "threads", .offset = offsetof(sti_svm_rates, threads), .whole = true}};

static const sti_figures figures = {.title = "stint svm rates 1",
                                    .file = "svm.txt",
                                    .again = "stint svm plan will",
                                    .figure = rows,
                                    .count = sizeof rows / sizeof rows[0]};

/* What is timed works on. */
typedef struct bench {
    sti_gram_rows dense, sparse;
    sti_gram_function function;
    double *tiles; /* [FAR_TILES] */
    double *x, *y; /* [TILE] a vector, and [threads + 1, 2, TILE] results */
    void *scratch;
    sti_team team;
} bench;

/* One call's work, in whatever is counted. */
typedef double work_fn(bench *b);

static double rate_of(bench *b, work_fn *work)
{
    double best = 0;
    for (int run = 0; run < RUNS; run++) {
        const int64_t start = sti_clock_ns();
        double done = 0;
        int64_t ns;
        do
            done += work(b);
        while ((ns = sti_clock_ns() - start) < RUN_NS);
        const double rate = done / ((double)ns * 1e-9);
        best = rate > best ? rate : best;
    }
    return best;
}

static double make_tile(bench *b)
{
    sti_gram_tile(&b->function, &b->dense, 0, TILE, &b->dense, 0, TILE, b->tiles, TILE,
                  b->scratch);
    return 2.0 * TILE * TILE * (double)b->dense.columns;
}

static double make_tile_f32(bench *b)
{
    sti_gram_tile_f32(&b->function, &b->dense, 0, TILE, &b->dense, 0, TILE,
                      (float *)(void *)b->tiles, TILE, b->scratch);
    return 2.0 * TILE * TILE * (double)b->dense.columns;
}

static double make_sparse_tile(bench *b)
{
    sti_gram_tile(&b->function, &b->sparse, 0, TILE, &b->sparse, 0, TILE, b->tiles,
                  TILE, b->scratch);
    return (double)TILE * TILE * ENTRIES;
}

/* Both halves of a tile against one vector. */
static void apply(const bench *b, const double *tile, double *y)
{
    const double *x[1] = {b->x};
    double *out[1] = {y}, *down[1] = {y + TILE};
    sti_gram_apply(tile, TILE, TILE, TILE, 1, x, out, x, down);
}

static double apply_near(bench *b)
{
    for (int i = 0; i < 64; i++)
        apply(b, b->tiles, b->y);
    return 64.0 * 4 * TILE * TILE;
}

static void apply_piece(void *arg, int64_t piece, int worker)
{
    const bench *b = arg;
    apply(b, b->tiles + piece * TILE * TILE, b->y + (int64_t)worker * 2 * TILE);
}

static double apply_far(bench *b)
{
    sti_team_take(&b->team, FAR_TILES, apply_piece, b);
    return (double)FAR_TILES * STI_GRAM_TILE_BYTES;
}

static void measure_with(bench *b, sti_svm_rates *r)
{
    const int threads = b->team.threads;
    b->function = (sti_gram_function){.kind = STI_GRAM_LINEAR};
    b->dense.columns = DEPTH;
    r->product_flop_per_s = rate_of(b, make_tile);
    r->product_f32_flop_per_s = rate_of(b, make_tile_f32);
    r->spread_per_s = rate_of(b, make_sparse_tile);
    b->dense.columns = SHALLOW;
    const double flop = 2.0 * TILE * TILE * SHALLOW;
    const double plain_s = flop / rate_of(b, make_tile);
    b->function = (sti_gram_function){.kind = STI_GRAM_RBF, .gamma = 0.1};
    const double rbf_s = flop / rate_of(b, make_tile);
    /* Noise must not make it free. */
    const double finish_s = rbf_s > 1.1 * plain_s ? rbf_s - plain_s : 0.1 * plain_s;
    r->finish_per_s = TILE * TILE / finish_s;
    b->function.kind = STI_GRAM_LAPLACIAN;
    b->dense.columns = DEPTH / 8;
    r->apart_per_s = rate_of(b, make_tile) / 2;
    r->apply_flop_per_s = rate_of(b, apply_near);
    b->team.threads = 1;
    r->apply_bytes_per_s = rate_of(b, apply_far);
    b->team.threads = threads;
    r->apply_all_bytes_per_s = rate_of(b, apply_far);
    r->threads = threads;
}

static double number_at(uint64_t i)
{
    uint32_t word[4];
    sti_random4(1, STI_STREAM_TEST, i, 0, word);
    return (double)sti_uniform(word[0]);
}

/* Rows of ENTRIES entries each, spread over 16 times as many columns. */
static void fill_sparse(sti_csr *x)
{
    for (int64_t i = 0; i < TILE; i++) {
        for (int64_t e = 0; e < ENTRIES; e++) {
            x->column[i * ENTRIES + e] = (int32_t)(e * 16 + (i + e) % 16);
            x->value[i * ENTRIES + e] = number_at((uint64_t)(i * ENTRIES + e));
        }
        x->start[i + 1] = (i + 1) * ENTRIES;
    }
}

static stint_status measure(sti_svm_rates *rates_out)
{
    bench b = {.team = {1}};
    if (sti_threads_choose(0, &b.team.threads, NULL) != STINT_OK)
        b.team.threads = 1; /* a bad wish is refused elsewhere */
    sti_csr x = {.rows = TILE, .columns = ENTRIES * 16};
    double *dense = sti_alloc_array(TILE * DEPTH, sizeof *dense, "rates.rows");
    double *term = sti_alloc_array(TILE, sizeof *term, "rates.terms");
    b.sparse = (sti_gram_rows){.rows = TILE, .columns = x.columns};
    const size_t sparse_bytes = sti_gram_scratch_bytes(&b.sparse);
    b.dense = (sti_gram_rows){TILE, DEPTH, dense, .term = term};
    const size_t dense_bytes = sti_gram_scratch_bytes(&b.dense);
    b.scratch =
        sti_alloc(dense_bytes > sparse_bytes ? dense_bytes : sparse_bytes, "rates");
    b.tiles = sti_alloc_array(FAR_TILES, STI_GRAM_TILE_BYTES, "rates.tiles");
    b.x = sti_alloc_array(TILE, sizeof *b.x, "rates.x");
    b.y = sti_alloc_array((int64_t)b.team.threads * 2 * TILE, sizeof *b.y, "rates.y");
    x.start = sti_alloc_array(TILE + 1, sizeof *x.start, "rates.starts");
    x.column = sti_alloc_array(TILE * ENTRIES, sizeof *x.column, "rates.columns");
    x.value = sti_alloc_array(TILE * ENTRIES, sizeof *x.value, "rates.values");
    const bool there = dense && term && b.scratch && b.tiles && b.x && b.y && x.start &&
                       x.column && x.value;
    if (there) {
        for (int64_t i = 0; i < TILE * DEPTH; i++)
            dense[i] = number_at((uint64_t)i);
        for (int64_t i = 0; i < (int64_t)FAR_TILES * TILE * TILE; i += 64)
            b.tiles[i] = 0.5; /* pages of one's own */
        fill_sparse(&x);
        b.sparse.sparse = x;
        b.sparse.term = term;
        measure_with(&b, rates_out);
    }
    sti_free(dense);
    sti_free(term);
    sti_free(b.scratch);
    sti_free(b.tiles);
    sti_free(b.x);
    sti_free(b.y);
    sti_free(x.start);
    sti_free(x.column);
    sti_free(x.value);
    return there ? STINT_OK : STINT_E_MEMORY;
}

stint_status sti_svm_rates_now(sti_svm_rates *rates_out)
{
    sti_svm_rates r = {0};
    if (!sti_figures_load(&figures, &r)) {
        sti_log(STINT_LOG_INFO, "measuring this machine, once, for about a second");
        const stint_status st = measure(&r);
        if (st != STINT_OK)
            return st;
        sti_figures_keep(&figures, &r);
    }
    *rates_out = r;
    return STINT_OK;
}
