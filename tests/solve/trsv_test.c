/* Triangular solves: every strategy, form, number of threads and instruction set has
 * the bits of a serial loop written here, whose backward error is held against long
 * double; bad triangles; every failed allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "base/rng.h"
#include "solve/trsv.h"
#include "solve/trsv_stretch.h"

enum { N_MOST = 96, ENTRIES_MOST = N_MOST * N_MOST, COLUMNS_MOST = 20 };

static int64_t start[N_MOST + 1];
static int32_t column[ENTRIES_MOST];
static double value[ENTRIES_MOST];
static sti_csr a;
static double dense[N_MOST][N_MOST]; /* of the system solved: transposed if it is */
static bool there[N_MOST][N_MOST];
static double b[N_MOST * COLUMNS_MOST], x[N_MOST * COLUMNS_MOST];
static double wanted[N_MOST * COLUMNS_MOST];
static float b32[N_MOST * COLUMNS_MOST], x32[N_MOST * COLUMNS_MOST];
static float wanted32[N_MOST * COLUMNS_MOST];
static uint64_t draws;

static double draw(void)
{
    uint32_t w[4];
    sti_random4(7, STI_STREAM_TEST, draws++, 0, w);
    return (double)w[0] * 0x1p-32;
}

static int64_t below(int64_t n)
{
    return (int64_t)(draw() * (double)n);
}

/* ---- random matrices ---- */

typedef enum shape {
    DIAGONAL,
    CHAIN,
    ARROW,
    DENSE,
    SPARSE,
    WIDE,
    BLOCKS,
    TALL,
    SHAPES
} shape;

static bool is_drawn(shape s, int64_t n, int64_t i, int64_t j)
{
    switch (s) {
    case DIAGONAL:
        return false;
    case CHAIN:
        return i - j == 1;
    case ARROW:
        return i == n - 1 || j == 0;
    case DENSE:
        return true;
    case SPARSE:
        return draw() < 0.1;
    case WIDE: /* few levels, rows of one length */
        return j == i % 3 && i >= 8;
    case BLOCKS: /* supernodes */
        return i / 6 == j / 6 || (i / 6 + j / 6) % 3 == 0;
    case TALL: /* a wide supernode over many rows */
        return j < 14;
    case SHAPES:
        break;
    }
    return false;
}

/* A triangle, and with `part` entries of the other one beside it. */
static void make(shape s, int64_t n, const sti_trsv_desc *d)
{
    int64_t e = 0;
    a = (sti_csr){
        .rows = n, .columns = n, .start = start, .column = column, .value = value};
    for (int64_t i = 0; i < n; i++) {
        start[i] = e;
        for (int64_t j = 0; j < n; j++) {
            const bool mine = d->upper ? j > i : j < i;
            bool taken = i == j ? !d->unit || draw() < 0.5
                         : mine ? is_drawn(s, n, d->upper ? j : i, d->upper ? i : j)
                                : d->part && draw() < 0.2;
            if (!taken)
                continue;
            column[e] = (int32_t)j;
            value[e++] = i == j ? (draw() < 0.5 ? -1 : 1) * (1 + draw()) : draw() - 0.5;
        }
    }
    start[n] = e;
}

static void spread(const sti_trsv_desc *d)
{
    memset(there, 0, sizeof there);
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t e = start[i]; e < start[i + 1]; e++) {
            const int64_t j = column[e];
            if (i != j && (d->upper ? j < i : j > i))
                continue;
            dense[d->transpose ? j : i][d->transpose ? i : j] = value[e];
            there[d->transpose ? j : i][d->transpose ? i : j] = true;
        }
}

/* ---- the serial loop ---- */

static bool is_forward(const sti_trsv_desc *d)
{
    return d->upper == d->transpose;
}

static void oracle(const sti_trsv_desc *d, int64_t columns)
{
    const int64_t n = a.rows;
    for (int64_t c = 0; c < columns; c++)
        for (int64_t p = 0; p < n; p++) {
            const int64_t i = is_forward(d) ? p : n - 1 - p;
            double sum = b[i * columns + c];
            float sum32 = b32[i * columns + c];
            for (int64_t q = 0; q < p; q++) {
                const int64_t j = is_forward(d) ? q : n - 1 - q;
                if (!there[i][j])
                    continue;
                sum = fma(-dense[i][j], wanted[j * columns + c], sum);
                sum32 = fmaf(-(float)dense[i][j], wanted32[j * columns + c], sum32);
            }
            wanted[i * columns + c] = d->unit ? sum : sum / dense[i][i];
            wanted32[i * columns + c] = d->unit ? sum32 : sum32 / (float)dense[i][i];
        }
}

/* |b - A x| <= 4 eps (longest row) (|A| |x| + |b|), row by row, in long double. */
static void check_backward_error(const sti_trsv_desc *d, int64_t columns)
{
    const int64_t n = a.rows;
    for (int64_t c = 0; c < columns; c++)
        for (int64_t i = 0; i < n; i++) {
            long double sum = b[i * columns + c], size = fabsl(sum);
            int64_t length = 1;
            for (int64_t j = 0; j < n; j++) {
                const bool own = i == j && d->unit;
                if (!own && !there[i][j])
                    continue;
                const long double term =
                    (own ? 1 : (long double)dense[i][j]) * wanted[j * columns + c];
                sum -= term;
                size += fabsl(term);
                length++;
            }
            assert_true(fabsl(sum) <= 4 * (long double)DBL_EPSILON * length * size);
        }
}

static void check_bits(const sti_trsv_desc *d, int64_t columns)
{
    sti_trsv *plan;
    const size_t count = (size_t)(a.rows * columns);
    assert_int_equal(sti_trsv_analyse(d, &plan), STINT_OK);
    for (int run = 0; run < 2;
         run++) { /* counters of the second begin at the first's */
        if (d->single) {
            sti_trsv_solve(plan, columns, b32, x32);
            assert_memory_equal(x32, wanted32, count * sizeof *x32);
        } else {
            sti_trsv_solve(plan, columns, b, x);
            assert_memory_equal(x, wanted, count * sizeof *x);
        }
    }
    memcpy(x, b, count * sizeof *x); /* in place */
    if (!d->single) {
        sti_trsv_solve(plan, columns, x, x);
        assert_memory_equal(x, wanted, count * sizeof *x);
    }
    sti_trsv_destroy(plan);
}

static void draw_form(sti_trsv_desc *d)
{
    *d = (sti_trsv_desc){.a = &a,
                         .upper = below(2),
                         .transpose = below(2),
                         .unit = below(4) == 0,
                         .part = below(3) == 0};
}

static int64_t draw_sides(int64_t n)
{
    const int64_t columns = below(3) == 0 ? 1 + below(COLUMNS_MOST) : 1;
    for (int64_t k = 0; k < n * columns; k++)
        b32[k] = (float)(b[k] = draw() - 0.5);
    return columns;
}

static void run_random(int systems)
{
    static const int threads[] = {1, 2, 3, 8};
    for (int k = 0; k < systems; k++) {
        sti_trsv_desc d;
        draw_form(&d);
        const int64_t n = k % 50 == 0 ? N_MOST : below(k % 8 == 0 ? N_MOST : 24);
        make((shape)below(SHAPES), n, &d);
        const int64_t columns = draw_sides(n);
        spread(&d);
        oracle(&d, columns);
        check_backward_error(&d, columns);
        d.columns = columns;
        d.threads = k % 16 == 0 ? threads[k / 16 % 4] : 1;
        d.tasks = below(2) * (1 + below(8));
        d.single = k % 5 == 0;
        d.strategy = (sti_trsv_strategy)below(STI_TRSV_STRATEGIES);
        if (d.strategy == STI_TRSV_PUSH && !d.transpose)
            d.strategy = STI_TRSV_NATURAL;
        d.solves = below(2) ? 1000000 : 1;
        check_bits(&d, columns);
    }
}

static void random_systems_have_the_bits_of_the_serial_loop(void **state)
{
    static const sti_isa sets[] = {STI_ISA_REF, STI_ISA_AVX2, STI_ISA_AVX512};
    (void)state;
    const sti_isa before = sti_isa_now();
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++)
        if (sti_isa_force(sets[s]))
            run_random(10000 / 3 + 1);
    sti_isa_force(before);
}

/* ---- a larger one, many threads ---- */

enum { WIDTH = 1200, LINES = 64, GRID = WIDTH * LINES };

static int64_t grid_start[GRID + 1];
static int32_t grid_column[4 * GRID];
static double grid_value[4 * GRID], grid_b[GRID], grid_x[GRID], grid_wanted[GRID];

static sti_csr make_grid(void)
{
    int64_t e = 0;
    for (int64_t i = 0; i < GRID; i++) {
        grid_start[i] = e;
        if (i >= WIDTH) {
            grid_column[e] = (int32_t)(i - WIDTH);
            grid_value[e++] = -draw();
        }
        if (i % WIDTH > 0) {
            grid_column[e] = (int32_t)(i - 1);
            grid_value[e++] = -draw();
        }
        grid_column[e] = (int32_t)i;
        grid_value[e++] = 4;
        grid_b[i] = draw();
    }
    grid_start[GRID] = e;
    return (sti_csr){GRID, GRID, grid_start, grid_column, grid_value};
}

static void threads_have_the_same_bits_again_and_again(void **state)
{
    static const int threads[] = {2, 3, 8};
    const sti_csr grid = make_grid();
    (void)state;
    for (int64_t i = 0; i < GRID; i++) {
        double sum = grid_b[i];
        for (int64_t e = grid_start[i]; e < grid_start[i + 1] - 1; e++)
            sum = fma(-grid_value[e], grid_wanted[grid_column[e]], sum);
        grid_wanted[i] = sum / grid_value[grid_start[i + 1] - 1];
    }
    for (int s = STI_TRSV_POOL; s <= STI_TRSV_SUPERSTEP; s++)
        for (int t = 0; t < 3; t++) {
            sti_trsv *plan;
            const sti_trsv_desc d = {.a = &grid,
                                     .threads = threads[t],
                                     .strategy = (sti_trsv_strategy)s,
                                     .tasks = t == 1 ? 5 : 0};
            assert_int_equal(sti_trsv_analyse(&d, &plan), STINT_OK);
            const sti_trsv_info *info = sti_trsv_info_of(plan);
            assert_int_equal(info->levels, WIDTH + LINES - 1);
            if (s == STI_TRSV_POOL)
                assert_true(info->tasks > 1 && info->waits > 0);
            for (int run = 0; run < 50; run++) {
                memset(grid_x, 0, sizeof grid_x);
                sti_trsv_solve(plan, 1, grid_b, grid_x);
                assert_memory_equal(grid_x, grid_wanted, sizeof grid_x);
            }
            sti_trsv_destroy(plan);
        }
}

/* The same half of some lines each, dealt in turn: of two workers the second is one
 * task late. */
static void grids_are_cut_at_whole_lines(void **state)
{
    const sti_csr grid = make_grid();
    static int32_t count[GRID], by_level[GRID], level[GRID];
    const sti_sparse_natural t = {
        .n = GRID, .start = grid.start, .column = grid.column, .count = count};
    const sti_stretch_workers two = {1, 2, 0, NULL};
    sti_trsv_cutting cut;
    sti_trsv_order order = {0};
    double seconds;
    (void)state;
    for (int64_t i = 0; i < GRID; i++) {
        count[i] = (int32_t)(grid_start[i + 1] - grid_start[i]) - 1;
        by_level[i] = (int32_t)i;
        level[i] = (int32_t)(i / WIDTH + i % WIDTH);
    }
    assert_int_equal(
        sti_trsv_choose_stretches(&t, level, NULL, &two, 1, &cut, &seconds), STINT_OK);
    assert_int_equal(cut.period, WIDTH);
    assert_int_equal(cut.parts, 2);
    assert_int_equal(cut.lines, 16);
    assert_true(fabs(seconds - (0.5 + 0.5 * 16 / LINES)) < 0.01);
    assert_int_equal(sti_trsv_stretches(&t, &cut, by_level, &order), STINT_OK);
    assert_int_equal(order.tasks, 2 * ((LINES + 15) / 16));
    for (int64_t k = 0; k < order.tasks; k++)
        for (int32_t p = order.task[k]; p < order.task[k + 1]; p++) {
            assert_int_equal(order.row[p] / WIDTH / 16, k / 2);
            assert_int_equal(order.row[p] % WIDTH / (WIDTH / 2), k % 2);
        }
    assert_int_equal(order.task[order.tasks], GRID);
    sti_trsv_order_fini(&order);
}

/* A row of the left half reads the right half of the line before, whose task would be
 * the next one: the first solve of a plan tells, as later ones find what it left. */
static void lines_that_cross_are_not_cut_together(void **state)
{
    static const int threads[] = {2, 3};
    (void)state;
    int64_t e = 0;
    for (int64_t i = 0; i < GRID; i++) {
        const int64_t from[] = {i - WIDTH, i - WIDTH / 3, i - 1};
        double sum = grid_b[i] = draw();
        grid_start[i] = e;
        for (int k = 0; k < 3; k++)
            if (from[k] >= 0) {
                grid_column[e] = (int32_t)from[k];
                grid_value[e] = -draw();
                sum = fma(-grid_value[e++], grid_wanted[from[k]], sum);
            }
        grid_column[e] = (int32_t)i;
        grid_value[e++] = 4;
        grid_wanted[i] = sum / 4;
    }
    grid_start[GRID] = e;
    const sti_csr crossed = {GRID, GRID, grid_start, grid_column, grid_value};
    for (int t = 0; t < 2; t++) {
        sti_trsv *plan;
        const sti_trsv_desc d = {
            .a = &crossed, .threads = threads[t], .strategy = STI_TRSV_POOL};
        assert_int_equal(sti_trsv_analyse(&d, &plan), STINT_OK);
        assert_true(sti_trsv_info_of(plan)->tasks > 1);
        sti_trsv_solve(plan, 1, grid_b, grid_x);
        assert_memory_equal(grid_x, grid_wanted, sizeof grid_x);
        sti_trsv_destroy(plan);
    }
}

/* ---- what is refused ---- */

static void refuse(const sti_trsv_desc *d, const char *words)
{
    sti_trsv *plan;
    assert_int_equal(sti_trsv_analyse(d, &plan), STINT_E_INPUT);
    if (!strstr(stint_last_error(), words))
        fail_msg("%s", stint_last_error());
}

static void bad_triangles_are_refused_with_their_row(void **state)
{
    sti_trsv_desc d = {.a = &a, .name = "t"};
    (void)state;
    make(DENSE, 5, &d);
    const int64_t diagonal = start[3] - 1; /* of row 3 */
    value[diagonal] = 0;
    refuse(&d, "t: the diagonal entry of row 3 is 0");
    value[diagonal] = 1e-320;
    refuse(&d, "row 3");
    value[diagonal] = NAN;
    refuse(&d, "row 3");
    value[diagonal] = 1;
    column[start[3] - 1] = 4;
    refuse(&d, "t: row 3 has an entry in column 5");
    d.upper = true;
    refuse(&d, "t: row 2 has an entry in column 1");
    d = (sti_trsv_desc){.a = &a, .name = "t"};
    make(DIAGONAL, 5, &d);
    column[2] = 1;
    refuse(&d, "t: row 3 has no diagonal entry");
    a.columns = 6;
    refuse(&d, "t is 5 x 6");
}

static void every_allocation_may_fail(void **state)
{
    const sti_csr grid = make_grid();
    (void)state;
    for (int s = STI_TRSV_AUTO; s < STI_TRSV_STRATEGIES; s++)
        for (int64_t n = 1;; n++) {
            sti_trsv *plan = NULL;
            const sti_trsv_desc d = {.a = &grid,
                                     .threads = 2,
                                     .columns = 2,
                                     .single = s % 2 == 1,
                                     .transpose = true,
                                     .strategy = (sti_trsv_strategy)s};
            sti_alloc_fail_nth(n);
            const stint_status st = sti_trsv_analyse(&d, &plan);
            sti_alloc_fail_nth(0);
            if (st == STINT_OK) {
                sti_trsv_destroy(plan);
                if (n > 40)
                    break;
                continue; /* a prediction did without */
            }
            assert_int_equal(st, STINT_E_MEMORY);
        }
}

static void room_is_kept(void **state)
{
    const sti_csr grid = make_grid();
    sti_trsv *plan;
    sti_trsv_desc d = {.a = &grid, .transpose = true, .room_bytes = 1};
    (void)state;
    assert_int_equal(sti_trsv_analyse(&d, &plan), STINT_OK);
    assert_int_equal(sti_trsv_info_of(plan)->strategy, STI_TRSV_PUSH);
    assert_true(sti_trsv_info_of(plan)->bytes <= sti_trsv_least_bytes(&d));
    sti_trsv_destroy(plan);
    d.strategy = STI_TRSV_LEVEL;
    assert_int_equal(sti_trsv_analyse(&d, &plan), STINT_E_BUDGET);
    d.room_bytes = sti_trsv_most_bytes(&d);
    const size_t before = sti_alloc_now_bytes();
    assert_int_equal(sti_trsv_analyse(&d, &plan), STINT_OK);
    assert_true(sti_alloc_now_bytes() - before <= d.room_bytes);
    sti_trsv_destroy(plan);
    assert_int_equal(sti_alloc_now_bytes(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_systems_have_the_bits_of_the_serial_loop),
        cmocka_unit_test(grids_are_cut_at_whole_lines),
        cmocka_unit_test(threads_have_the_same_bits_again_and_again),
        cmocka_unit_test(lines_that_cross_are_not_cut_together),
        cmocka_unit_test(bad_triangles_are_refused_with_their_row),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(room_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
