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

typedef struct problem {
    sti_kernel_tile_cuda_desc desc;
    sti_gram_rows rows;
    int64_t vectors;
    const double **x;     /* [vectors] of [rows] */
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

static void begin(sti_gram_function function, bool single, int64_t rows,
                  int64_t columns, int64_t side, int64_t vectors, problem *p)
{
    double *x = numbers(rows * columns, 1, 2),
           *term = malloc(sizeof *term * (size_t)rows);
    p->rows = (sti_gram_rows){.rows = rows, .columns = columns, .dense = x};
    sti_gram_terms(&function, &p->rows, term);
    p->rows.term = term;
    p->desc = (sti_kernel_tile_cuda_desc){function, &p->rows, single, side, vectors};
    p->vectors = vectors;
    p->x = (const double **)(void *)vectors_of(vectors, rows);
    p->want = vectors_of(vectors, rows);
    p->got = vectors_of(vectors, rows);
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
static void use_tile(problem *p, int64_t u, int64_t u_count, int64_t v, int64_t v_count,
                     double *tile, void *scratch, double *part)
{
    const sti_kernel_tile_cuda_desc *d = &p->desc;
    const double *x[16], *across[16];
    double *y[16], *down[16];
    for (int64_t c = 0; c < p->vectors; c++) {
        x[c] = p->x[c] + v;
        across[c] = p->x[c] + u;
        y[c] = part + c * TILE;
        down[c] = p->want[c] + v;
    }
    double *const *below = v < u ? down : NULL;
    if (d->single) {
        float *floats = (float *)(void *)tile;
        sti_gram_tile_f32(&d->function, d->rows, u, u_count, d->rows, v, v_count,
                          floats, TILE, scratch);
        sti_gram_apply_f32(floats, TILE, u_count, v_count, p->vectors, x, y, across,
                           below);
    } else {
        sti_gram_tile(&d->function, d->rows, u, u_count, d->rows, v, v_count, tile,
                      TILE, scratch);
        sti_gram_apply(tile, TILE, u_count, v_count, p->vectors, x, y, across, below);
    }
}

/* Bands of rows [first, end) on the host, as the header says. */
static void run_host(problem *p, int64_t first, int64_t last)
{
    const int64_t rows = p->rows.rows, side = p->desc.side;
    double *tile = malloc(STI_GRAM_TILE_BYTES);
    double *part = malloc(sizeof *part * (size_t)(p->vectors * TILE));
    double *sum = malloc(sizeof *sum * (size_t)(p->vectors * TILE));
    void *scratch =
        aligned_alloc(64, (sti_gram_scratch_bytes(&p->rows) + 63) / 64 * 64);
    memset(scratch, 0, sti_gram_scratch_bytes(&p->rows));
    const unsigned mode = sti_float_mode_enter();
    for (int64_t c = 0; c < p->vectors; c++)
        memset(p->want[c], 0, sizeof(double) * (size_t)rows);
    for (int64_t u = first * side; u < rows && u < last * side; u += side) {
        const int64_t u_count = rows - u < side ? rows - u : side;
        for (int64_t c = 0; c < p->vectors; c++)
            memcpy(sum + c * TILE, p->want[c] + u, sizeof *sum * (size_t)u_count);
        for (int64_t v = 0; v <= u; v += side) {
            const int64_t v_count = rows - v < side ? rows - v : side;
            use_tile(p, u, u_count, v, v_count, tile, scratch, part);
            for (int64_t c = 0; c < p->vectors; c++)
                for (int64_t i = 0; i < u_count; i++)
                    sum[c * TILE + i] += part[c * TILE + i];
        }
        for (int64_t c = 0; c < p->vectors; c++)
            memcpy(p->want[c] + u, sum + c * TILE, sizeof *sum * (size_t)u_count);
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

static void compare_one(sti_gram_function function, bool single, int64_t rows,
                        int64_t columns, int64_t side, int64_t vectors, int64_t first)
{
    problem p;
    sti_kernel_tile_cuda *tiles;
    begin(function, single, rows, columns, side, vectors, &p);
    const int64_t last = (rows + side - 1) / side;
    run_host(&p, first, last);
    check(sti_kernel_tile_cuda_create(&p.desc, &tiles));
    check(sti_kernel_tile_cuda_product(tiles, first, last, vectors, p.x, p.got));
    for (int64_t c = 0; c < vectors; c++)
        for (int64_t i = 0; i < rows; i++)
            if (memcmp(&p.want[c][i], &p.got[c][i], sizeof(double)) != 0)
                fail_msg("kernel %d, float %d, %d x %d, vector %d: row %d is %.17g on "
                         "the device, %.17g on the host",
                         (int)function.kind, single, (int)rows, (int)columns, (int)c,
                         (int)i, p.got[c][i], p.want[c][i]);
    sti_kernel_tile_cuda_destroy(tiles);
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
            compare_one(functions[f], single, 613, 20, 208, 3, 0);
            compare_one(functions[f], single, 300, 301, 152, 9, 0);
            compare_one(functions[f], single, 77, 1, 80, 1, 0);
            compare_one(functions[f], single, 530, 33, 256, 2, 1);
        }
}

/* Denormals: of vectors, and of sums, which the host flushes. */
static void small_numbers(void **state)
{
    problem p;
    sti_kernel_tile_cuda *tiles;
    (void)state;
    begin((sti_gram_function){STI_GRAM_RBF, 600, 0, 0}, false, 200, 3, 200, 2, &p);
    for (int64_t i = 0; i < 200; i++) {
        ((double *)(uintptr_t)p.x[0])[i] *= 1e-300;
        ((double *)(uintptr_t)p.x[1])[i] *= i % 2 ? 1e-310 : 1e-290;
    }
    run_host(&p, 0, 1);
    check(sti_kernel_tile_cuda_create(&p.desc, &tiles));
    check(sti_kernel_tile_cuda_product(tiles, 0, 1, 2, p.x, p.got));
    for (int c = 0; c < 2; c++)
        assert_memory_equal(p.want[c], p.got[c], sizeof(double) * 200);
    sti_kernel_tile_cuda_destroy(tiles);
    end(&p);
}

/* What a product takes, host and device; the host is one thread. */
static void times(void **state)
{
    problem p;
    sti_kernel_tile_cuda *tiles;
    (void)state;
    begin((sti_gram_function){STI_GRAM_RBF, 0.01, 0, 0}, false, 2048, 1024, 256, 8, &p);
    check(sti_kernel_tile_cuda_create(&p.desc, &tiles));
    check(sti_kernel_tile_cuda_product(tiles, 0, 8, 8, p.x, p.got)); /* warm */
    const int64_t start = sti_clock_ns();
    check(sti_kernel_tile_cuda_product(tiles, 0, 8, 8, p.x, p.got));
    const double device = sti_seconds_since(start);
    const int64_t then = sti_clock_ns();
    run_host(&p, 0, 8);
    printf("2,048 rows x 1,024, rbf in double, 8 vectors: device %.4f s, host %.4f s\n",
           device, sti_seconds_since(then));
    for (int c = 0; c < 8; c++)
        assert_memory_equal(p.want[c], p.got[c], sizeof(double) * 2048);
    sti_kernel_tile_cuda_destroy(tiles);
    end(&p);
}

int main(void)
{
    if (sti_kernel_tile_cuda_devices() == 0) {
        puts("no CUDA device: skipped");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_host),
                                       cmocka_unit_test(small_numbers),
                                       cmocka_unit_test(times)};
    return cmocka_run_group_tests_name("kernel/kernel_tile_cuda", tests, NULL, NULL);
}
