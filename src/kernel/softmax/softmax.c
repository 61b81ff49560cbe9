/* Softmax and cross-entropy over rows: labels, pieces of work, dispatch. */
#include "kernel/softmax/softmax.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "kernel/lane/dispatch.h"
#include "kernel/maths/maths.h"
#include "kernel/softmax/softmax_row.h"

static const sti_softmax_kernels *kernels_now(void)
{
    return STI_KERNELS_NOW(sti_softmax_kernels);
}

typedef struct row_job row_job;
typedef void row_fn(const row_job *job, int64_t row);

struct row_job {
    int64_t rows, n, rows_a_piece;
    row_fn *fn;
    const sti_softmax_kernels *kernels;
    const sti_cross_entropy *loss;
    const float *x;
    float *out;
    float *losses; /* of the gradient's rows, or NULL */
    float factor;
};

static void rows_piece(void *arg, int64_t piece, int worker)
{
    (void)worker;
    const row_job *job = arg;
    const int64_t first = piece * job->rows_a_piece;
    int64_t last = first + job->rows_a_piece;
    if (last > job->rows)
        last = job->rows;
    for (int64_t row = first; row < last; row++)
        job->fn(job, row);
}

static void run_rows(const sti_team *team, row_job *job)
{
    enum { PIECE_ELEMENTS = 8192 };
    assert(job->n >= 1);
    job->kernels = kernels_now();
    job->rows_a_piece = job->n < PIECE_ELEMENTS ? PIECE_ELEMENTS / job->n : 1;
    sti_team_run(team, (job->rows + job->rows_a_piece - 1) / job->rows_a_piece,
                 rows_piece, job);
}

static void softmax_row(const row_job *job, int64_t row)
{
    const float *x = job->x + row * job->n;
    float *y = job->out + row * job->n;
    const float sum = job->kernels->exp_sum(job->n, job->kernels->max(job->n, x), x, y);
    job->kernels->finish(job->n, sum, 0.0f, 1.0f, y);
}

void sti_softmax_f32(const sti_team *team, int64_t rows, int64_t n, const float *x,
                     float *y)
{
    row_job job = {.rows = rows, .n = n, .fn = softmax_row, .x = x, .out = y};
    run_rows(team, &job);
}

/* ---- cross-entropy ---- */

static bool label_valid(const row_job *job, int32_t label)
{
    return label >= 0 && label < job->n;
}

static void fill_row(float *row, int64_t n, float value)
{
    for (int64_t j = 0; j < n; j++)
        row[j] = value;
}

/* loss (may be NULL): log sum exp(x - m) - (1 - s) (x_label - m) - s / n sum (x - m).
 * terms [n] gets exp(x - m), of which the sum is returned; it may be x, or NULL. */
static float loss_terms(const row_job *job, const float *x, int32_t label, float *loss,
                        float *terms)
{
    const float m = job->kernels->max(job->n, x), smoothing = job->loss->smoothing;
    const float to_label = (1.0f - smoothing) * (x[label] - m);
    float to_all = 0.0f;
    if (loss && smoothing > 0.0f)
        to_all = smoothing * (job->kernels->shifted_sum(job->n, m, x) / (float)job->n);
    const float sum = job->kernels->exp_sum(job->n, m, x, terms);
    if (loss)
        *loss = sti_log_f32(sum) - to_label - to_all;
    return sum;
}

static void loss_row(const row_job *job, int64_t row)
{
    const int32_t label = job->loss->label[row];
    if (label_valid(job, label))
        (void)loss_terms(job, job->x + row * job->n, label, job->out + row, NULL);
    else
        job->out[row] = label == -1 ? 0.0f : NAN;
}

static row_job loss_job(const sti_cross_entropy *args, row_fn *fn, float *out)
{
    return (row_job){.rows = args->rows,
                     .n = args->n,
                     .fn = fn,
                     .loss = args,
                     .x = args->x,
                     .out = out};
}

void sti_cross_entropy_f32(const sti_team *team, const sti_cross_entropy *args,
                           float *row_loss_out)
{
    row_job job = loss_job(args, loss_row, row_loss_out);
    run_rows(team, &job);
}

static void loss_grad_row(const row_job *job, int64_t row)
{
    const int32_t label = job->loss->label[row];
    const float *x = job->x + row * job->n;
    const float base = job->loss->smoothing / (float)job->n;
    float *dx = job->out + row * job->n, *loss = job->losses ? job->losses + row : NULL;
    if (!label_valid(job, label)) {
        fill_row(dx, job->n, label == -1 ? 0.0f : NAN);
        if (loss)
            *loss = dx[0];
        return;
    }
    const float sum = loss_terms(job, x, label, loss, dx);
    const float own = dx[label];
    job->kernels->finish(job->n, sum, base, job->factor, dx);
    dx[label] = job->factor * (own / sum - (base + (1.0f - job->loss->smoothing)));
}

void sti_cross_entropy_both_f32(const sti_team *team, const sti_cross_entropy *args,
                                float factor, float *row_loss_out, float *dx_out)
{
    row_job job = loss_job(args, loss_grad_row, dx_out);
    job.losses = row_loss_out;
    job.factor = factor;
    run_rows(team, &job);
}

void sti_cross_entropy_grad_f32(const sti_team *team, const sti_cross_entropy *args,
                                float factor, float *dx_out)
{
    sti_cross_entropy_both_f32(team, args, factor, NULL, dx_out);
}

static void target_row(const row_job *job, int64_t row)
{
    const int32_t label = job->loss->label[row];
    const float base = job->loss->smoothing / (float)job->n;
    float *q = job->out + row * job->n;
    if (!label_valid(job, label)) {
        fill_row(q, job->n, label == -1 ? 0.0f : NAN);
        return;
    }
    fill_row(q, job->n, base);
    q[label] = base + (1.0f - job->loss->smoothing);
}

void sti_cross_entropy_target_f32(const sti_team *team, const sti_cross_entropy *args,
                                  float *q_out, float *mask_out)
{
    row_job job = loss_job(args, target_row, q_out);
    run_rows(team, &job);
    for (int64_t row = 0; row < args->rows; row++)
        mask_out[row] = args->label[row] == -1 ? 0.0f : 1.0f;
}

/* ---- soft targets ---- */

static float largest_of(int64_t n, const float *x)
{
    float largest = x[0];
    for (int64_t j = 1; j < n; j++)
        largest = x[j] > largest ? x[j] : largest;
    return largest;
}

float sti_soft_cross_entropy_row_f32(int64_t n, float temperature, const float *x,
                                     const float *target)
{
    assert(n >= 1);
    const float top_x = largest_of(n, x), top_t = largest_of(n, target);
    double sum_x = 0, sum_t = 0, product = 0;
    for (int64_t j = 0; j < n; j++) {
        const float shifted = (x[j] - top_x) / temperature;
        const double q = (double)sti_exp_f32((target[j] - top_t) / temperature);
        sum_x += (double)sti_exp_f32(shifted);
        sum_t += q;
        product += q * (double)shifted;
    }
    const double loss = (double)sti_log_f32((float)sum_x) - product / sum_t;
    return (float)((double)temperature * (double)temperature * loss);
}

/* ---- counting ---- */

static bool correct(int64_t n, const float *x, int32_t label)
{
    if (label < 0 || label >= n)
        return false;
    bool best = true;
    for (int64_t j = 0; j < n; j++) /* false for a NaN on either side */
        best &= j < label ? x[j] < x[label] : x[j] <= x[label];
    return best;
}

int64_t sti_count_correct_f32(int64_t rows, int64_t n, const float *x,
                              const int32_t *label)
{
    int64_t count = 0;
    for (int64_t row = 0; row < rows; row++)
        count += correct(n, x + row * n, label[row]);
    return count;
}

float sti_sum_short_f32(int64_t n, const float *x)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i];
    return (float)sum;
}
