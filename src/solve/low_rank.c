#include "solve/low_rank.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "kernel/gemm/gemm_f64.h"
#include "kernel/gram/gram.h"

/* Panels of a product and a matrix [BAND, BLOCK] of a worker's own. */
#define WORKER_BYTES (STI_GEMM_F64_SCRATCH_BYTES + sizeof(double) * BAND * BLOCK)

enum { BLOCK = STI_LOW_RANK_BLOCK, BAND = 256, SLABS = 16, STRIP = 64, WIDE = 64 };

struct sti_low_rank {
    const sti_low_rank_desc *d; /* while it is made */
    sti_team team;
    int64_t n, ld, rank;
    double *factor;     /* [n, ld] F, later W = D^-1/2 F */
    double *gram;       /* [rank, ld] the Cholesky factor of I + W^T W */
    double *left;       /* [n] of the diagonal of K */
    double *scale;      /* [n] D^-1/2 */
    double *pivot_rows; /* [BLOCK, ld] of the factor, negated */
    double *partial;    /* [slabs, columns, ld] */
    char *scratch;      /* [threads, WORKER_BYTES] */
    double largest;     /* of K's diagonal */
    /* of a block of pivots */
    double step[BLOCK * BLOCK];
    double lower[BLOCK * BLOCK];
    int64_t fresh;
    /* of an application */
    int64_t count;
    const double *const *x;
    double *const *y;
};

/* ---- room ---- */

int64_t sti_low_rank_choose(int64_t n, double ratio)
{
    int exponent;
    (void)frexp(ratio > 0 ? ratio : 1, &exponent);
    const double bits = exponent < 0 ? 0 : exponent, beyond = bits > 8 ? bits - 8 : 0;
    const double root = sqrt((double)n), most = fmax(512, 12 * root);
    const double wanted = fmin((2 + 0.45 * bits + 0.25 * beyond * beyond) * root, most);
    const int64_t rank = ((int64_t)wanted + BLOCK - 1) / BLOCK * BLOCK;
    return rank < n ? rank : n;
}

size_t sti_low_rank_bytes(int64_t n, int64_t rank, int64_t columns, int threads)
{
    const size_t k = (size_t)rank, rows = (size_t)n;
    return sizeof(double) * (rows * k + k * k + rows * 2 + BLOCK * k +
                             (SLABS + 1) * (size_t)columns * k) +
           (size_t)threads * WORKER_BYTES + sizeof(sti_low_rank);
}

stint_status sti_low_rank_create(int64_t n, int64_t rank, int64_t columns, int threads,
                                 sti_low_rank **low_rank_out)
{
    sti_low_rank *f = sti_alloc(sizeof *f, "low_rank");
    if (!f)
        return STINT_E_MEMORY;
    const size_t row_bytes = sizeof(double) * (size_t)rank;
    f->factor = sti_alloc_array(n, row_bytes, "low_rank.factor");
    f->gram = sti_alloc_array(rank, row_bytes, "low_rank.gram");
    f->left = sti_alloc_array(n, sizeof(double), "low_rank.left");
    f->scale = sti_alloc_array(n, sizeof(double), "low_rank.scale");
    f->pivot_rows = sti_alloc_array(BLOCK, row_bytes, "low_rank.pivots");
    f->partial = sti_alloc_array((SLABS + 1) * columns, row_bytes, "low_rank.partial");
    f->scratch = sti_alloc_array(threads, WORKER_BYTES, "low_rank.scratch");
    if (f->factor && f->gram && f->left && f->scale && f->pivot_rows && f->partial &&
        f->scratch) {
        *low_rank_out = f;
        return STINT_OK;
    }
    sti_low_rank_destroy(f);
    return STINT_E_MEMORY;
}

void sti_low_rank_destroy(sti_low_rank *f)
{
    if (!f)
        return;
    sti_free(f->factor);
    sti_free(f->gram);
    sti_free(f->left);
    sti_free(f->scale);
    sti_free(f->pivot_rows);
    sti_free(f->partial);
    sti_free(f->scratch);
    sti_free(f);
}

int64_t sti_low_rank_rank(const sti_low_rank *f)
{
    return f->rank;
}

static void *scratch_of(const sti_low_rank *f, int worker)
{
    return f->scratch + (size_t)worker * WORKER_BYTES;
}

static double *matrix_of(const sti_low_rank *f, int worker)
{
    return (double *)(void *)(f->scratch + (size_t)worker * WORKER_BYTES +
                              STI_GEMM_F64_SCRATCH_BYTES);
}

/* ---- pivots ---- */

/* [0, 1) with 53 bits: number i of a draw. */
static double draw(int64_t round, int64_t i)
{
    uint32_t w[4];
    sti_random4(0, STI_STREAM_SUBSET, (uint64_t)round, (uint64_t)i, w);
    return ((double)(w[0] >> 5) * 67108864.0 + (double)(w[1] >> 6)) * 0x1p-53;
}

/* BLOCK places with probabilities proportional to what is left of the diagonal, in the
 * order of the draws; a place may come twice. */
static void draw_pivots(const sti_low_rank *f, int64_t round, double total,
                        int64_t pivot[BLOCK])
{
    const int64_t n = f->d->n;
    double at[BLOCK], sum = 0;
    for (int64_t i = 0; i < BLOCK; i++) {
        at[i] = draw(round, i) * total;
        pivot[i] = -1;
    }
    for (int64_t row = 0; row < n; row++) {
        if (f->left[row] <= 0)
            continue;
        sum += f->left[row];
        for (int64_t i = 0; i < BLOCK; i++)
            if (pivot[i] < 0 && (at[i] < sum || row == n - 1))
                pivot[i] = row;
    }
    for (int64_t i = 0; i < BLOCK; i++) /* rounding: beyond the last that is left */
        for (int64_t row = n; pivot[i] < 0 && row-- > 0;)
            if (f->left[row] > 0)
                pivot[i] = row;
}

/* out [count, BLOCK]: what the factor leaves of rows of K at the pivots asked for. */
static void residual_rows(const sti_low_rank *f, int64_t begin, int64_t count,
                          int64_t pivots, double *out, int worker)
{
    const int64_t k = f->rank, ld = f->ld;
    f->d->columns(f->d->arg, begin, count, out, BLOCK, worker);
    sti_gemm_f64(count, pivots, k, (sti_view_f64){f->factor + begin * ld, ld, 1},
                 (sti_view_f64){f->pivot_rows, 1, ld}, true, out, BLOCK,
                 scratch_of(f, worker));
}

/* The pivots' rows of the factor with the other sign, so that products subtract. */
static void gather_pivot_rows(sti_low_rank *f, int64_t count, const int64_t *pivot)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < f->rank; k++)
            f->pivot_rows[i * f->ld + k] = -f->factor[pivot[i] * f->ld + k];
}

/* Which of the pivots stand, each with the probability that what those before it left
 * of its diagonal is of what it had; count_out of them, and their factor L. */
static void reject(sti_low_rank *f, int64_t round, double h[BLOCK * BLOCK],
                   int64_t pivot[BLOCK], int64_t most, int64_t *count_out)
{
    double first[BLOCK];
    int64_t count = 0, stands[BLOCK];
    for (int64_t i = 0; i < BLOCK; i++)
        first[i] = h[i * BLOCK + i];
    for (int64_t i = 0; i < BLOCK && count < most; i++) {
        const double left = h[i * BLOCK + i];
        if (!(left > draw(round, BLOCK + i) * first[i]) || !(left > 1e-13 * f->largest))
            continue;
        const double root = sqrt(left);
        for (int64_t j = i; j < BLOCK; j++)
            f->step[count * BLOCK + j] = h[j * BLOCK + i] / root;
        for (int64_t j = i + 1; j < BLOCK; j++)
            sti_gram_axpy(BLOCK - i - 1, -f->step[count * BLOCK + j],
                          f->step + count * BLOCK + i + 1, h + j * BLOCK + i + 1);
        stands[count++] = i;
    }
    for (int64_t c = 0; c < count; c++) {
        for (int64_t s = 0; s <= c; s++)
            f->lower[c * BLOCK + s] = f->step[s * BLOCK + stands[c]];
        pivot[c] = pivot[stands[c]];
    }
    *count_out = count;
}

/* Rows [rows, BLOCK] times L^-T in place, WIDE of them side by side. */
static void solve_rows(const sti_low_rank *f, int64_t rows, double *r, double *gone_out)
{
    double column[BLOCK][WIDE];
    for (int64_t begin = 0; begin < rows; begin += WIDE) {
        const int64_t count = rows - begin < WIDE ? rows - begin : WIDE;
        double *at = r + begin * BLOCK, gone[WIDE] = {0};
        for (int64_t m = 0; m < f->fresh; m++) {
            for (int64_t i = 0; i < count; i++)
                column[m][i] = at[i * BLOCK + m];
            for (int64_t s = 0; s < m; s++)
                sti_gram_axpy(count, -f->lower[m * BLOCK + s], column[s], column[m]);
            for (int64_t i = 0; i < count; i++)
                at[i * BLOCK + m] = column[m][i] /= f->lower[m * BLOCK + m];
            sti_gram_add_products(count, column[m], column[m], gone);
        }
        memcpy(gone_out + begin, gone, sizeof *gone * (size_t)count);
    }
}

/* New columns of the factor for a band: what is left of K's, times L^-T. */
static void extend_piece(void *arg, int64_t piece, int worker)
{
    sti_low_rank *f = arg;
    const int64_t begin = piece * BAND, left = f->d->n - begin;
    const int64_t rows = left < BAND ? left : BAND;
    double *r = matrix_of(f, worker), gone[BAND];
    residual_rows(f, begin, rows, f->fresh, r, worker);
    solve_rows(f, rows, r, gone);
    for (int64_t i = 0; i < rows; i++) {
        memcpy(f->factor + (begin + i) * f->ld + f->rank, r + i * BLOCK,
               sizeof(double) * (size_t)f->fresh);
        f->left[begin + i] -= gone[i];
    }
}

static double sum_left(sti_low_rank *f)
{
    double sum = 0;
    for (int64_t i = 0; i < f->d->n; i++)
        if (f->left[i] > 0)
            sum += f->left[i];
    return sum;
}

/* One draw: pivots, those that stand, their columns. */
static stint_status add_block(sti_low_rank *f, const sti_team *team, int64_t round,
                              double total)
{
    int64_t pivot[BLOCK], count;
    double h[BLOCK * BLOCK];
    draw_pivots(f, round, total, pivot);
    gather_pivot_rows(f, BLOCK, pivot);
    stint_status st = f->d->pivots(f->d->arg, BLOCK, pivot);
    if (st != STINT_OK)
        return st;
    for (int64_t i = 0; i < BLOCK; i++) /* few rows far apart */
        residual_rows(f, pivot[i], 1, BLOCK, h + i * BLOCK, 0);
    reject(f, round, h, pivot, f->d->rank - f->rank, &count);
    if (count == 0)
        return STINT_OK;
    gather_pivot_rows(f, count, pivot);
    if ((st = f->d->pivots(f->d->arg, count, pivot)) != STINT_OK)
        return st;
    f->fresh = count;
    sti_team_take(team, (f->d->n + BAND - 1) / BAND, extend_piece, f);
    f->rank += count;
    for (int64_t i = 0; i < count; i++)
        f->left[pivot[i]] = 0;
    return STINT_OK;
}

/* ---- the small system ---- */

/* Rows of a strip of I + W^T W, up to the diagonal. */
static void gram_piece(void *arg, int64_t piece, int worker)
{
    sti_low_rank *f = arg;
    const int64_t begin = piece * STRIP, left = f->rank - begin;
    const int64_t rows = left < STRIP ? left : STRIP;
    sti_gemm_f64(rows, begin + rows, f->d->n,
                 (sti_view_f64){f->factor + begin, 1, f->ld},
                 (sti_view_f64){f->factor, f->ld, 1}, false, f->gram + begin * f->ld,
                 f->ld, scratch_of(f, worker));
    for (int64_t i = begin; i < begin + rows; i++)
        f->gram[i * f->ld + i] += 1;
}

/* The lower Cholesky factor in place. The matrix is I and more: it has one. */
static void factorise(sti_low_rank *f)
{
    for (int64_t i = 0; i < f->rank; i++) {
        double *row = f->gram + i * f->ld;
        for (int64_t j = 0; j <= i; j++) {
            const double *other = f->gram + j * f->ld;
            const double left = row[j] - sti_gram_dot(j, row, other);
            row[j] = j < i ? left / other[j] : sqrt(left);
        }
    }
}

static void scale_piece(void *arg, int64_t piece, int worker)
{
    sti_low_rank *f = arg;
    const int64_t end = (piece + 1) * BAND;
    (void)worker;
    for (int64_t i = piece * BAND; i < end && i < f->d->n; i++) {
        f->scale[i] = 1 / sqrt(f->d->ridge[i]);
        for (int64_t k = 0; k < f->rank; k++)
            f->factor[i * f->ld + k] *= f->scale[i];
    }
}

stint_status sti_low_rank_make(sti_low_rank *f, const sti_team *team,
                               const sti_low_rank_desc *desc)
{
    double least = INFINITY, total;
    f->d = desc;
    f->n = desc->n;
    f->team = *team;
    f->ld = desc->rank;
    f->rank = 0;
    f->largest = 0;
    for (int64_t i = 0; i < desc->n; i++) {
        f->left[i] = desc->diagonal[i];
        f->largest = fmax(f->largest, desc->diagonal[i]);
        least = fmin(least, desc->ridge[i]);
    }
    const int64_t rounds = 2 * (desc->rank / BLOCK) + 8;
    for (int64_t round = 0; round < rounds && f->rank < desc->rank; round++) {
        /* What is left counts for no more than D does. */
        if (!((total = sum_left(f)) > 0.5 * least))
            break;
        const stint_status st = add_block(f, team, round, total);
        if (st != STINT_OK)
            return st;
    }
    sti_team_run(team, (desc->n + BAND - 1) / BAND, scale_piece, f);
    sti_team_take(team, (f->rank + STRIP - 1) / STRIP, gram_piece, f);
    factorise(f);
    return STINT_OK;
}

/* ---- application ---- */

static int64_t slab_begin(const sti_low_rank *f, int64_t slab)
{
    const int64_t rows = (f->n + SLABS - 1) / SLABS;
    return slab * rows < f->n ? slab * rows : f->n;
}

static double *partial_of(const sti_low_rank *f, int64_t slab, int64_t column)
{
    return f->partial + (slab * f->count + column) * f->ld;
}

/* W^T D^-1/2 x over the rows of a slab. */
static void down_piece(void *arg, int64_t slab, int worker)
{
    const sti_low_rank *f = arg;
    (void)worker;
    memset(partial_of(f, slab, 0), 0, sizeof(double) * (size_t)(f->count * f->ld));
    for (int64_t i = slab_begin(f, slab); i < slab_begin(f, slab + 1); i++)
        for (int64_t c = 0; c < f->count; c++)
            sti_gram_axpy(f->rank, f->scale[i] * f->x[c][i], f->factor + i * f->ld,
                          partial_of(f, slab, c));
}

/* The slabs' sum, and L L^T solved for it, of a column. */
static void small_piece(void *arg, int64_t column, int worker)
{
    const sti_low_rank *f = arg;
    double *w = partial_of(f, 0, column);
    (void)worker;
    for (int64_t slab = 1; slab < SLABS; slab++)
        for (int64_t k = 0; k < f->rank; k++)
            w[k] += partial_of(f, slab, column)[k];
    for (int64_t i = 0; i < f->rank; i++) {
        const double *row = f->gram + i * f->ld;
        w[i] = (w[i] - sti_gram_dot(i, row, w)) / row[i];
    }
    for (int64_t i = f->rank; i-- > 0;) {
        const double *row = f->gram + i * f->ld;
        w[i] /= row[i];
        sti_gram_axpy(i, -w[i], row, w);
    }
}

/* D^-1/2 (D^-1/2 x - W w) of a slab's rows. */
static void up_piece(void *arg, int64_t slab, int worker)
{
    const sti_low_rank *f = arg;
    (void)worker;
    for (int64_t i = slab_begin(f, slab); i < slab_begin(f, slab + 1); i++)
        for (int64_t c = 0; c < f->count; c++) {
            const double part =
                sti_gram_dot(f->rank, f->factor + i * f->ld, partial_of(f, 0, c));
            f->y[c][i] = f->scale[i] * fma(f->scale[i], f->x[c][i], -part);
        }
}

stint_status sti_low_rank_apply(void *arg, int64_t count, const double *const *x,
                                double *const *y)
{
    sti_low_rank *f = arg;
    f->count = count;
    f->x = x;
    f->y = y;
    sti_team_run(&f->team, SLABS, down_piece, f);
    sti_team_run(&f->team, count, small_piece, f);
    sti_team_run(&f->team, SLABS, up_piece, f);
    return STINT_OK;
}
