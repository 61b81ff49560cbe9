/* The loss of x table^T with its gradients, rows in several blocks, against loops in
 * double precision over the definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "gemm_model.h"
#include "kernel/softmax/linear_cross_entropy.h"

/* Blocks have 64 rows at least, and as many where a row is 1.2 MB of logits. */
enum { ROWS = 150, WIDTH = 3, CLASSES = 300000 };

typedef struct loss_data {
    sti_linear_cross_entropy args;
    float *x, *table, *dx, *dtable;
    int32_t label[ROWS];
    double loss, *want_dx, *want_dtable;
} loss_data;

static double logit_at(const loss_data *d, int64_t row, int64_t class)
{
    double sum = 0;
    for (int64_t i = 0; i < WIDTH; i++)
        sum += (double)d->x[row * WIDTH + i] * (double)d->table[class * WIDTH + i];
    return sum;
}

/* One row: -sum q log p, and (p - q) / rows into the gradients. */
static void want_row(loss_data *d, int64_t row, double *p)
{
    const double smoothing = (double)d->args.smoothing;
    double sum = 0;
    if (d->label[row] < 0)
        return;
    for (int64_t j = 0; j < CLASSES; j++)
        sum += p[j] = exp(logit_at(d, row, j));
    for (int64_t j = 0; j < CLASSES; j++) {
        const double q = smoothing / CLASSES + (j == d->label[row] ? 1 - smoothing : 0);
        const double share = p[j] / sum, slope = (share - q) / ROWS;
        d->loss -= q * log(share) / ROWS;
        for (int64_t i = 0; i < WIDTH; i++) {
            d->want_dx[row * WIDTH + i] += slope * (double)d->table[j * WIDTH + i];
            d->want_dtable[j * WIDTH + i] += slope * (double)d->x[row * WIDTH + i];
        }
    }
}

static loss_data data_make(void)
{
    model_rng rng = {2718};
    loss_data d = {.x = model_floats(ROWS * WIDTH),
                   .table = model_floats(CLASSES * WIDTH),
                   .dx = model_floats(ROWS * WIDTH),
                   .dtable = model_floats(CLASSES * WIDTH),
                   .want_dx = calloc(ROWS * WIDTH, sizeof(double)),
                   .want_dtable = calloc(CLASSES * WIDTH, sizeof(double))};
    double *p = calloc(CLASSES, sizeof *p);
    assert_true(d.want_dx && d.want_dtable && p);
    model_fill(&rng, d.x, ROWS * WIDTH);
    model_fill(&rng, d.table, CLASSES * WIDTH);
    d.args = (sti_linear_cross_entropy){
        .rows = ROWS, .n = WIDTH, .classes = CLASSES, .smoothing = 0.1F};
    for (int i = 0; i < ROWS; i++)
        d.label[i] = i % 9 == 8 ? -1 : (int32_t)model_between(&rng, 0, CLASSES - 1);
    for (int64_t row = 0; row < ROWS; row++)
        want_row(&d, row, p);
    free(p);
    return d;
}

/* Errors in shares of the largest element: a row's exponentials are summed in 16 chains
 * of 18750 steps, which round by about the root of that many halves of 2^-23. */
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
    loss_data d = data_make();
    (void)state;
    d.args.x = d.x;
    d.args.table = d.table;
    d.args.label = d.label;
    const size_t bytes = sti_linear_cross_entropy_scratch_bytes(&d.args, 2);
    assert_true(bytes < (size_t)ROWS * CLASSES * sizeof(float)); /* not all rows */
    void *scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
    float loss = 0;
    assert_non_null(scratch);
    sti_linear_cross_entropy_f32(&(sti_team){2}, &d.args, &loss, d.dx, d.dtable,
                                 scratch);
    free(scratch);
    assert_true(fabs((double)loss / d.loss - 1) < 1e-5);
    check_close("dx", d.dx, d.want_dx, ROWS * WIDTH);
    check_close("dtable", d.dtable, d.want_dtable, CLASSES * WIDTH);
    model_free(d.x);
    model_free(d.table);
    model_free(d.dx);
    model_free(d.dtable);
    free(d.want_dx);
    free(d.want_dtable);
}

static float loss_of(sti_linear_cross_entropy args, bool forward, size_t *bytes_out)
{
    float loss = 0;
    args.forward = forward;
    *bytes_out = sti_linear_cross_entropy_scratch_bytes(&args, 2);
    void *scratch = aligned_alloc(64, (*bytes_out + 63) / 64 * 64);
    assert_non_null(scratch);
    sti_linear_cross_entropy_f32(&(sti_team){2}, &args, &loss, NULL, NULL, scratch);
    free(scratch);
    return loss;
}

/* Without gradients blocks are smaller, and the loss has the bits of larger ones. */
static void forward_alone(void **state)
{
    enum { FEWER = 60000 };
    model_rng rng = {31};
    float *x = model_floats(ROWS * WIDTH), *table = model_floats(FEWER * WIDTH);
    int32_t label[ROWS];
    size_t bytes, less;
    (void)state;
    model_fill(&rng, x, ROWS * WIDTH);
    model_fill(&rng, table, FEWER * WIDTH);
    for (int i = 0; i < ROWS; i++)
        label[i] = i % 9 == 8 ? -1 : (int32_t)model_between(&rng, 0, FEWER - 1);
    const sti_linear_cross_entropy args = {.rows = ROWS,
                                           .n = WIDTH,
                                           .classes = FEWER,
                                           .x = x,
                                           .table = table,
                                           .label = label};
    const float whole = loss_of(args, false, &bytes);
    const float parts = loss_of(args, true, &less);
    assert_memory_equal(&whole, &parts, sizeof whole);
    assert_true(less < bytes / 2);
    model_free(x);
    model_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(several_blocks),
                                       cmocka_unit_test(forward_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
