/* The loss of x table^T against labels and another classifier's logits, rows in several
 * blocks, against loops in double precision over the definition; and the same bits on
 * every instruction set and for any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "gemm_model.h"
#include "kernel/softmax/linear_distillation.h"

/* Blocks have 64 rows at least, and as many where a row is 1.2 MB of logits. */
enum { ROWS = 130, WIDTH = 3, OTHER = 2, CLASSES = 300000, SMALL = 1000 };

typedef struct loss_data {
    sti_linear_distillation args;
    float *x, *table, *against_x, *against_table, *dx, *dtable, part[STI_DISTIL_PARTS];
    int32_t label[ROWS];
    double want[STI_DISTIL_PARTS], *want_dx, *want_dtable;
} loss_data;

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Adds the row's losses, and its gradient. */
static void want_row(loss_data *d, int64_t row, double *u, double *v)
{
    const int64_t classes = d->args.classes, label = d->label[row];
    const double t = (double)d->args.temperature, rows = ROWS;
    double all = 0, soft_u = 0, soft_v = 0;
    if (label < 0)
        return;
    for (int64_t j = 0; j < classes; j++) {
        u[j] = dot(d->x + row * WIDTH, d->table + j * WIDTH, WIDTH);
        v[j] = dot(d->against_x + row * OTHER, d->against_table + j * OTHER, OTHER);
        all += exp(u[j]);
        soft_u += exp(u[j] / t);
        soft_v += exp(v[j] / t);
    }
    for (int64_t j = 0; j < classes; j++) {
        const double apart = u[j] - v[j], q = exp(v[j] / t) / soft_v;
        const double p = exp(u[j]) / all - (j == label), s = exp(u[j] / t) / soft_u - q;
        const double slope =
            (double)d->args.weight[0] * p / rows +
            (double)d->args.weight[1] * 2 * apart / ((double)classes * rows) +
            (double)d->args.weight[2] * t * s / rows;
        d->want[0] -= j == label ? (u[j] - log(all)) / rows : 0;
        d->want[1] += apart * apart / ((double)classes * rows);
        d->want[2] -= t * t * q * (u[j] / t - log(soft_u)) / rows;
        for (int64_t i = 0; i < WIDTH; i++) {
            d->want_dx[row * WIDTH + i] += slope * (double)d->table[j * WIDTH + i];
            d->want_dtable[j * WIDTH + i] += slope * (double)d->x[row * WIDTH + i];
        }
    }
}

static float *numbers(model_rng *rng, int64_t count)
{
    float *x = model_floats(count);
    model_fill(rng, x, count);
    return x;
}

static loss_data data_make(int64_t classes)
{
    model_rng rng = {1414};
    loss_data d = {.x = numbers(&rng, ROWS * WIDTH),
                   .table = numbers(&rng, classes * WIDTH),
                   .against_x = numbers(&rng, ROWS * OTHER),
                   .against_table = numbers(&rng, classes * OTHER),
                   .dx = model_floats(ROWS * WIDTH),
                   .dtable = model_floats(classes * WIDTH),
                   .want_dx = calloc(ROWS * WIDTH, sizeof(double)),
                   .want_dtable = calloc((size_t)classes * WIDTH, sizeof(double))};
    d.args = (sti_linear_distillation){.rows = ROWS,
                                       .n = WIDTH,
                                       .m = OTHER,
                                       .classes = classes,
                                       .weight = {0.5F, 0.25F, 1.5F},
                                       .temperature = 2,
                                       .base = 1,
                                       .x = d.x,
                                       .table = d.table,
                                       .against_x = d.against_x,
                                       .against_table = d.against_table};
    for (int i = 0; i < ROWS; i++)
        d.label[i] = i % 9 == 8 ? -1 : (int32_t)model_between(&rng, 0, classes - 1);
    return d;
}

static void data_free(loss_data *d)
{
    model_free(d->x);
    model_free(d->table);
    model_free(d->against_x);
    model_free(d->against_table);
    model_free(d->dx);
    model_free(d->dtable);
    free(d->want_dx);
    free(d->want_dtable);
}

static void run(loss_data *d, int threads)
{
    d->args.label = d->label;
    const size_t bytes = sti_linear_distillation_scratch_bytes(&d->args, threads);
    void *scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(scratch);
    sti_linear_distillation_f32(&(sti_team){threads}, &d->args, d->part, d->dx,
                                d->dtable, scratch);
    free(scratch);
}

/* Errors in shares of the largest element, as in linear_cross_entropy_test.c. */
static void check_close(const char *what, const float *got, const double *want,
                        int64_t count)
{
    double largest = 0, error = 0;
    for (int64_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(want[i]));
        error = fmax(error, fabs((double)got[i] - want[i]));
    }
    if (!(error <= 2e-5 * largest))
        fail_msg("%s: error %g of %g", what, error, largest);
}

static void several_blocks(void **state)
{
    loss_data d = data_make(MODEL_SANITIZED ? SMALL : CLASSES);
    const int64_t classes = d.args.classes;
    double *u = calloc((size_t)classes, sizeof *u), *v = calloc((size_t)classes, 8);
    (void)state;
    assert_true(u && v);
    if (classes == CLASSES) /* not all rows of either */
        assert_true(sti_linear_distillation_scratch_bytes(&d.args, 2) <
                    (size_t)2 * ROWS * CLASSES * sizeof(float));
    for (int64_t row = 0; row < ROWS; row++)
        want_row(&d, row, u, v);
    run(&d, 2);
    for (int p = 0; p < STI_DISTIL_PARTS; p++)
        assert_true(fabs((double)d.part[p] / d.want[p] - 1) < 1e-5);
    check_close("dx", d.dx, d.want_dx, ROWS * WIDTH);
    check_close("dtable", d.dtable, d.want_dtable, classes * WIDTH);
    free(u);
    free(v);
    data_free(&d);
}

static void same_bits(void **state)
{
    static const sti_isa isas[] = {STI_ISA_REF, STI_ISA_AVX2, STI_ISA_AVX512};
    loss_data a = data_make(SMALL), b = data_make(SMALL);
    (void)state;
    a.args.top = b.args.top = 7;
    a.args.right = b.args.right = 3;
    sti_isa_force(STI_ISA_REF);
    run(&a, 1);
    for (int i = 0; i < 3; i++)
        for (int threads = 1; threads <= 3 && sti_isa_has(isas[i]); threads++) {
            sti_isa_force(isas[i]);
            run(&b, threads);
            assert_memory_equal(a.part, b.part, sizeof a.part);
            assert_memory_equal(a.dx, b.dx, ROWS * WIDTH * sizeof(float));
            assert_memory_equal(a.dtable, b.dtable, SMALL * WIDTH * sizeof(float));
        }
    data_free(&a);
    data_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(several_blocks),
                                       cmocka_unit_test(same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
