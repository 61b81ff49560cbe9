#include "kernel/softmax/linear_distillation.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/gemm/gemm.h"
#include "kernel/lane/dispatch.h"
#include "kernel/maths/maths.h"
#include "kernel/softmax/linear_classifier.h"
#include "kernel/softmax/softmax.h"
#include "kernel/softmax/softmax_row.h"

#define BLOCK_BYTES (INT64_C(64) << 20) /* of logits; part of the numerics */

static int64_t rows_a_block(const sti_linear_distillation *a)
{
    const int64_t row_bytes = a->classes * (int64_t)sizeof(float);
    int64_t most = row_bytes > 0 ? BLOCK_BYTES / row_bytes : a->rows;
    most = most > 64 ? most : 64;
    const int64_t blocks = (a->rows + most - 1) / most;
    return blocks > 0 ? (a->rows + blocks - 1) / blocks : 1;
}

/* ---- products ---- */

double sti_linear_distillation_flop(const sti_linear_distillation *a, int gradients)
{
    const double logits = 2.0 * (double)a->rows * (double)a->classes;
    return logits * ((double)a->m + (double)a->n * (1 + gradients));
}

/* ---- scratch: both blocks of logits, losses of all rows by part, products ---- */

static size_t logits_bytes(const sti_linear_distillation *a)
{
    return STI_ALIGN_UP((size_t)(rows_a_block(a) * a->classes) * sizeof(float), 64);
}

static size_t losses_bytes(const sti_linear_distillation *a)
{
    return STI_ALIGN_UP((size_t)(STI_DISTIL_PARTS * a->rows) * sizeof(float), 64);
}

static size_t product_bytes(const sti_linear_distillation *a, int64_t rows, int threads)
{
    const sti_gemm_shape shape[4] = {sti_classifier_logits(rows, a->n, a->classes),
                                     sti_classifier_logits(rows, a->m, a->classes),
                                     sti_classifier_dx(rows, a->n, a->classes),
                                     sti_classifier_dtable(rows, a->n, a->classes)};
    size_t bytes = 0;
    for (int i = 0; i < 4; i++) {
        const size_t one = sti_gemm_scratch_bytes(&shape[i], threads);
        bytes = one > bytes ? one : bytes;
    }
    return bytes;
}

/* The last block may be shorter, and its products need less. */
size_t sti_linear_distillation_scratch_bytes(const sti_linear_distillation *a,
                                             int threads)
{
    const int64_t rows = rows_a_block(a), rest = a->rows % rows;
    const size_t whole = product_bytes(a, rows, threads);
    const size_t last = rest > 0 ? product_bytes(a, rest, threads) : 0;
    return 2 * logits_bytes(a) + losses_bytes(a) + (last > whole ? last : whole);
}

/* ---- rows ---- */

typedef struct block {
    const sti_linear_distillation *args;
    const sti_softmax_kernels *kernels;
    int64_t first, rows, rows_a_piece;
    float *u, *v;  /* [rows, classes]; u becomes its gradient */
    float *losses; /* [STI_DISTIL_PARTS, all rows] */
    bool gradient;
} block;

static void sift_down(float *heap, int64_t k)
{
    for (int64_t at = 0, child = 1; child < k; at = child, child = 2 * at + 1) {
        if (child + 1 < k && heap[child + 1] < heap[child])
            child++;
        if (heap[at] <= heap[child])
            return;
        const float swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

/* The k-th largest of v [n]. */
static float kth_largest(int64_t n, const float *v, int64_t k)
{
    float heap[STI_DISTIL_TOP_MAX]; /* of the largest so far, the least at its top */
    for (int64_t i = 0; i < k; i++)
        heap[i] = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        if (v[i] > heap[0]) {
            heap[0] = v[i];
            sift_down(heap, k);
        }
    return heap[0];
}

static void spread(int64_t n, float value, float *u)
{
    for (int64_t i = 0; i < n; i++)
        u[i] = value;
}

static void add_losses(const block *b, const sti_distil_row *d, const float *sum,
                       int64_t row)
{
    const sti_linear_distillation *a = b->args;
    const float t = a->temperature, *u = b->u + row * a->classes;
    float *loss = b->losses + b->first + row;
    const int32_t label = a->label[b->first + row];
    if (a->weight[STI_DISTIL_HARD] != 0)
        loss[0] = sti_log_f32(sum[STI_DISTIL_SUM_U]) - (u[label] - d->max_u);
    if (a->weight[STI_DISTIL_PAIRING] != 0)
        loss[a->rows] = d->pairing * sum[STI_DISTIL_SUM_SQUARES] / (float)a->classes;
    if (a->weight[STI_DISTIL_SOFT] != 0)
        loss[2 * a->rows] = t * t *
                            (sti_log_f32(sum[STI_DISTIL_SUM_SOFT_U]) -
                             sum[STI_DISTIL_SUM_PRODUCT] / sum[STI_DISTIL_SUM_SOFT_V]);
}

/* What a row's gradient is made of, once its sums are known. */
static void weigh(const block *b, const float *sum, sti_distil_row *d)
{
    const sti_linear_distillation *a = b->args;
    const float rows = (float)a->rows;
    const float soft = a->weight[STI_DISTIL_SOFT] * a->temperature / rows;
    d->by_u = a->weight[STI_DISTIL_HARD] / rows / sum[STI_DISTIL_SUM_U];
    d->by_soft_u = soft / sum[STI_DISTIL_SUM_SOFT_U];
    d->by_soft_v = soft / sum[STI_DISTIL_SUM_SOFT_V];
    d->by_apart =
        a->weight[STI_DISTIL_PAIRING] * d->pairing * 2.0f / (rows * (float)a->classes);
}

static void run_row(const block *b, int64_t row)
{
    const sti_linear_distillation *a = b->args;
    const int64_t n = a->classes;
    const int32_t label = a->label[b->first + row];
    float *u = b->u + row * n, sum[STI_DISTIL_SUMS];
    const float *v = b->v + row * n;
    if (label < 0 || label >= n) {
        const float value = label == -1 ? 0.0f : NAN;
        spread(n, value, u);
        for (int p = 0; p < STI_DISTIL_PARTS; p++)
            b->losses[p * a->rows + b->first + row] = value;
        return;
    }
    const bool right = a->right != 0 && sti_count_correct_f32(1, n, v, &label) == 1;
    sti_distil_row d = {.max_u = b->kernels->max(n, u),
                        .max_v = b->kernels->max(n, v),
                        .inverse = 1.0f / a->temperature,
                        .least_v = a->top > 0 && a->top < n ? kth_largest(n, v, a->top)
                                                            : -INFINITY,
                        .pairing = a->base + (right ? a->right : 0.0f)};
    b->kernels->distil_sums(n, &d, u, v, sum);
    add_losses(b, &d, sum, row);
    if (!b->gradient)
        return;
    weigh(b, sum, &d);
    b->kernels->distil_gradient(n, &d, u, v);
    u[label] -= a->weight[STI_DISTIL_HARD] / (float)a->rows;
}

static void run_piece(void *arg, int64_t piece, int worker)
{
    const block *b = arg;
    const int64_t first = piece * b->rows_a_piece;
    const int64_t end =
        first + b->rows_a_piece < b->rows ? first + b->rows_a_piece : b->rows;
    (void)worker;
    for (int64_t row = first; row < end; row++)
        run_row(b, row);
}

static void run_rows(const sti_team *team, block *b)
{
    enum { PIECE_ELEMENTS = 8192 };
    const int64_t n = b->args->classes;
    b->rows_a_piece = n < PIECE_ELEMENTS ? PIECE_ELEMENTS / n : 1;
    sti_team_run(team, (b->rows + b->rows_a_piece - 1) / b->rows_a_piece, run_piece, b);
}

void sti_linear_distillation_f32(const sti_team *team, const sti_linear_distillation *a,
                                 float *part, float *dx, float *dtable, void *scratch)
{
    char *at = scratch;
    block b = {.args = a,
               .kernels = STI_KERNELS_NOW(sti_softmax_kernels),
               .u = (float *)(void *)at,
               .v = (float *)(void *)(at + logits_bytes(a)),
               .losses = (float *)(void *)(at + 2 * logits_bytes(a)),
               .gradient = dx || dtable};
    void *more = at + 2 * logits_bytes(a) + losses_bytes(a);
    const int64_t most = rows_a_block(a);
    memset(b.losses, 0, losses_bytes(a));
    for (b.first = 0; b.first < a->rows; b.first += most) {
        b.rows = a->rows - b.first < most ? a->rows - b.first : most;
        const float *x = a->x + b.first * a->n;
        const sti_gemm_shape of_u = sti_classifier_logits(b.rows, a->n, a->classes);
        const sti_gemm_shape of_v = sti_classifier_logits(b.rows, a->m, a->classes);
        const sti_gemm_shape of_x = sti_classifier_dx(b.rows, a->n, a->classes);
        sti_gemm_shape of_table = sti_classifier_dtable(b.rows, a->n, a->classes);
        sti_gemm_f32(team, &of_u, x, a->table, NULL, b.u, more);
        sti_gemm_f32(team, &of_v, a->against_x + b.first * a->m, a->against_table, NULL,
                     b.v, more);
        run_rows(team, &b);
        if (dx)
            sti_gemm_f32(team, &of_x, b.u, a->table, NULL, dx + b.first * a->n, more);
        of_table.accumulate = b.first > 0;
        if (dtable)
            sti_gemm_f32(team, &of_table, b.u, x, NULL, dtable, more);
    }
    for (int p = 0; p < STI_DISTIL_PARTS; p++)
        part[p] = sti_sum_short_f32(a->rows, b.losses + p * a->rows) / (float)a->rows;
}
