/* Kernel tiles made and used up on a CUDA device give K times a block of vectors with
 * the bits of the host's tiles. Skips (77) without a device. */
#include "kernel/gram/cuda/kernel_tile_cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/team.h"

enum { TILE = STI_GRAM_TILE };

enum { BANDS_MOST = 16 };

typedef struct problem {
    sti_kernel_tile_cuda_desc desc;
    sti_gram_rows rows;
    bool single;
    int64_t vectors, places, band_count;
    sti_kernel_tile_band band[BANDS_MOST];
    const double **x;     /* [vectors] of [places] */
    double **want, **got; /* likewise */
} problem;

static double *numbers(int64_t count, uint64_t seed, double scale)
{
    double *x = malloc(sizeof *x * (size_t)(count + 1));
    for (int64_t i = 0; i < count; i++) {
        uint32_t word[4];
        sti_random4(seed, STI_STREAM_TEST, 0, (uint64_t)i, word);
        x[i] = scale * ((double)word[0] / 4294967296.0 - 0.5);
    }
    return x;
}

static double **vectors_of(int64_t count, int64_t rows)
{
    double **x = malloc(sizeof *x * (size_t)count);
    for (int64_t c = 0; c < count; c++)
        x[c] = numbers(rows, 100 + (uint64_t)c, 4);
    return x;
}

/* Bands of `side` rows each from row `from` on, behind those that are there. */
static void add_bands(problem *p, int64_t from, int64_t rows, int64_t side)
{
    for (int64_t done = 0; done < rows; done += side) {
        const int64_t count = rows - done < side ? rows - done : side;
        assert_true(p->band_count < BANDS_MOST);
        p->band[p->band_count++] =
            (sti_kernel_tile_band){from + done, count, p->places};
        p->places += count;
    }
}

/* All rows in bands of a side; where `pairs`, two stretches of them in bands of two. */
static void begin(sti_gram_function function, bool single, int64_t rows,
                  int64_t columns, int64_t side, int64_t vectors, bool pairs,
                  problem *p)
{
    double *x = numbers(rows * columns, 1, 2),
           *term = malloc(sizeof *term * (size_t)rows);
    p->rows = (sti_gram_rows){.rows = rows, .columns = columns, .dense = x};
    sti_gram_terms(&function, &p->rows, term);
    p->rows.term = term;
    p->single = single;
    p->vectors = vectors;
    p->places = p->band_count = 0;
    add_bands(p, pairs ? rows / 2 : 0, pairs ? rows / 3 : rows, side);
    if (pairs)
        add_bands(p, 3, rows / 4, side / 2);
    p->desc = (sti_kernel_tile_cuda_desc){function, &p->rows, p->places, p->band_count,
                                          vectors};
    p->x = (const double **)(void *)vectors_of(vectors, p->places);
    p->want = vectors_of(vectors, p->places);
    p->got = vectors_of(vectors, p->places);
}

static void end(problem *p)
{
    for (int64_t c = 0; c < p->vectors; c++) {
        free((void *)(uintptr_t)p->x[c]);
        free(p->want[c]);
        free(p->got[c]);
    }
    free(p->x);
    free(p->want);
    free(p->got);
    free((void *)(uintptr_t)p->rows.dense);
    free((void *)(uintptr_t)p->rows.term);
}

/* A tile against all vectors: its rows' sums into part [vectors, TILE], its columns'
 * added to `want` where it lies below the diagonal. */
static void use_tile(problem *p, const sti_kernel_tile_band *u,
                     const sti_kernel_tile_band *v, double *tile, void *scratch,
                     double *part)
{
    const sti_kernel_tile_cuda_desc *d = &p->desc;
    const double *x[16], *across[16];
    double *y[16], *down[16];
    for (int64_t c = 0; c < p->vectors; c++) {
        x[c] = p->x[c] + v->at;
        across[c] = p->x[c] + u->at;
        y[c] = part + c * TILE;
        down[c] = p->want[c] + v->at;
    }
    double *const *below = v < u ? down : NULL; /* bands stand in order */
    if (p->single) {
        float *floats = (float *)(void *)tile;
        sti_gram_tile_f32(&d->function, d->rows, u->begin, u->count, d->rows, v->begin,
                          v->count, floats, TILE, scratch);
        sti_gram_apply_f32(floats, TILE, u->count, v->count, p->vectors, x, y, across,
                           below);
    } else {
        sti_gram_tile(&d->function, d->rows, u->begin, u->count, d->rows, v->begin,
                      v->count, tile, TILE, scratch);
        sti_gram_apply(tile, TILE, u->count, v->count, p->vectors, x, y, across, below);
    }
}

/* Bands [first, last) on the host, as the header says. */
static void run_host(problem *p, int64_t first, int64_t last)
{
    double *tile = malloc(STI_GRAM_TILE_BYTES);
    double *part = malloc(sizeof *part * (size_t)(p->vectors * TILE));
    double *sum = malloc(sizeof *sum * (size_t)(p->vectors * TILE));
    void *scratch =
        aligned_alloc(64, (sti_gram_scratch_bytes(&p->rows) + 63) / 64 * 64);
    memset(scratch, 0, sti_gram_scratch_bytes(&p->rows));
    const unsigned mode = sti_float_mode_enter();
    for (int64_t c = 0; c < p->vectors; c++)
        memset(p->want[c], 0, sizeof(double) * (size_t)p->places);
    for (int64_t row = first; row < last; row++) {
        const sti_kernel_tile_band *u = &p->band[row];
        const size_t bytes = sizeof *sum * (size_t)u->count;
        for (int64_t c = 0; c < p->vectors; c++)
            memcpy(sum + c * TILE, p->want[c] + u->at, bytes);
        for (int64_t j = 0; j <= row; j++) {
            use_tile(p, u, &p->band[j], tile, scratch, part);
            for (int64_t c = 0; c < p->vectors; c++)
                for (int64_t i = 0; i < u->count; i++)
                    sum[c * TILE + i] += part[c * TILE + i];
        }
        for (int64_t c = 0; c < p->vectors; c++)
            memcpy(p->want[c] + u->at, sum + c * TILE, bytes);
    }
    sti_float_mode_leave(mode);
    free(scratch);
    free(sum);
    free(part);
    free(tile);
}

static void check(const char *error)
{
    if (error)
        fail_msg("CUDA: %s", error);
}

/* Rows on the device, the bands of the problem selected. */
static sti_kernel_tile_cuda *bring(problem *p)
{
    sti_kernel_tile_cuda *tiles;
    check(stint_kernel_tiles.create(&p->desc, &tiles));
    check(stint_kernel_tiles.select(tiles, p->band_count, p->band));
    return tiles;
}

static void compare_one(sti_gram_function function, bool single, int64_t rows,
                        int64_t columns, int64_t side, int64_t vectors, bool pairs,
                        int64_t first)
{
    problem p;
    begin(function, single, rows, columns, side, vectors, pairs, &p);
    run_host(&p, first, p.band_count);
    sti_kernel_tile_cuda *tiles = bring(&p);
    check(stint_kernel_tiles.product(tiles, single, first, p.band_count, vectors, p.x,
                                     p.got));
    for (int64_t c = 0; c < vectors; c++)
        for (int64_t i = 0; i < p.places; i++)
            if (memcmp(&p.want[c][i], &p.got[c][i], sizeof(double)) != 0)
                fail_msg("kernel %d, float %d, %d x %d, vector %d: row %d is %.17g on "
                         "the device, %.17g on the host",
                         (int)function.kind, single, (int)rows, (int)columns, (int)c,
                         (int)i, p.got[c][i], p.want[c][i]);
    stint_kernel_tiles.destroy(tiles);
    end(&p);
}

static void same_as_host(void **state)
{
    static const sti_gram_function functions[] = {
        {STI_GRAM_LINEAR, 0.7, 0.3, 3},    {STI_GRAM_POLYNOMIAL, 0.7, 0.3, 3},
        {STI_GRAM_POLYNOMIAL, 0.2, -1, 6}, {STI_GRAM_RBF, 0.4, 0, 0},
        {STI_GRAM_RBF, 900, 0, 0},         {STI_GRAM_SIGMOID, 0.05, 0.1, 0}};
    (void)state;
    for (int f = 0; f < 6; f++)
        for (int single = 0; single < 2; single++) {
            compare_one(functions[f], single, 613, 20, 208, 3, false, 0);
            compare_one(functions[f], single, 300, 301, 152, 9, false, 0);
            compare_one(functions[f], single, 77, 1, 80, 1, false, 0);
            compare_one(functions[f], single, 530, 33, 256, 2, false, 1);
            compare_one(functions[f], single, 900, 33, 120, 2, true, 0);
        }
}

/* Denormals: of vectors, and of sums, which the host flushes. */
static void small_numbers(void **state)
{
    problem p;
    (void)state;
    begin((sti_gram_function){STI_GRAM_RBF, 600, 0, 0}, false, 200, 3, 200, 2, false,
          &p);
    for (int64_t i = 0; i < 200; i++) {
        ((double *)(uintptr_t)p.x[0])[i] *= 1e-300;
        ((double *)(uintptr_t)p.x[1])[i] *= i % 2 ? 1e-310 : 1e-290;
    }
    run_host(&p, 0, 1);
    sti_kernel_tile_cuda *tiles = bring(&p);
    check(stint_kernel_tiles.product(tiles, false, 0, 1, 2, p.x, p.got));
    for (int c = 0; c < 2; c++)
        assert_memory_equal(p.want[c], p.got[c], sizeof(double) * 200);
    stint_kernel_tiles.destroy(tiles);
    end(&p);
}

/* More than the room is refused before anything runs. */
static void room_is_kept(void **state)
{
    problem p;
    (void)state;
    begin((sti_gram_function){STI_GRAM_RBF, 1, 0, 0}, false, 200, 3, 96, 2, false, &p);
    sti_kernel_tile_cuda *tiles = bring(&p);
    const sti_kernel_tile_band wide = {0, 201, 0};
    assert_non_null(stint_kernel_tiles.select(tiles, 1, &wide));
    assert_non_null(stint_kernel_tiles.product(tiles, false, 0, 4, 2, p.x, p.got));
    assert_non_null(stint_kernel_tiles.product(tiles, false, 0, 3, 3, p.x, p.got));
    stint_kernel_tiles.destroy(tiles);
    end(&p);
}

/* What a product takes, host and device; the host is one thread. */
static void times(void **state)
{
    problem p;
    (void)state;
    begin((sti_gram_function){STI_GRAM_RBF, 0.01, 0, 0}, false, 2048, 1024, 256, 8,
          false, &p);
    sti_kernel_tile_cuda *tiles = bring(&p);
    check(stint_kernel_tiles.product(tiles, false, 0, 8, 8, p.x, p.got)); /* warm */
    const int64_t start = sti_clock_ns();
    check(stint_kernel_tiles.product(tiles, false, 0, 8, 8, p.x, p.got));
    const double device = sti_seconds_since(start);
    const int64_t then = sti_clock_ns();
    run_host(&p, 0, 8);
    printf("2,048 rows x 1,024, rbf in double, 8 vectors: device %.4f s, host %.4f s\n",
           device, sti_seconds_since(then));
    for (int c = 0; c < 8; c++)
        assert_memory_equal(p.want[c], p.got[c], sizeof(double) * 2048);
    stint_kernel_tiles.destroy(tiles);
    end(&p);
}

int main(void)
{
    if (stint_kernel_tiles.devices() == 0) {
        puts("no CUDA device: skipped");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_host), cmocka_unit_test(small_numbers),
        cmocka_unit_test(room_is_kept), cmocka_unit_test(times)};
    return cmocka_run_group_tests_name("kernel/kernel_tile_cuda", tests, NULL, NULL);
}
