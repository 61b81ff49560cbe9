/* Loops over several axes with strides: broadcasting operators and copies.
 *
 * Axes of length 1 are dropped and axes that run on in every operand are merged, so
 * most calls end as one or two axes. The innermost axis is the loop, the others count
 * like an odometer; pieces are runs of at least 16384 elements, cut by the shape alone.
 */
#include <stdbool.h>
#include <string.h>

#include "kernel/elementwise/elementwise_priv.h"

#define PIECE    16384
#define OPERANDS 3
#define TILE     16

typedef struct strided {
    int rank; /* axes outside the loop */
    int64_t dim[STI_STRIDED_RANK], stride[OPERANDS][STI_STRIDED_RANK];
    int64_t length, step[OPERANDS]; /* the loop */
    int64_t rows, rows_per_piece;
    sti_binary_loop *loop;
    const float *a, *b;
    const uint32_t *src;
    void *out;
} strided;

static bool axis_runs_on(const strided *s, int last, int64_t const *const *stride,
                         int axis, int64_t dim, int operands)
{
    for (int o = 0; o < operands; o++)
        if (s->stride[o][last] != stride[o][axis] * dim)
            return false;
    return true;
}

/* Fill dim and stride with the merged axes; the innermost becomes the loop. */
static void strided_init(strided *s, int operands, int rank, const int64_t *dim,
                         int64_t const *const *stride)
{
    s->rank = 0;
    for (int i = 0; i < rank; i++) {
        int last = s->rank - 1;
        if (dim[i] == 1)
            continue;
        if (last >= 0 && axis_runs_on(s, last, stride, i, dim[i], operands)) {
            s->dim[last] *= dim[i];
        } else {
            last = s->rank++;
            s->dim[last] = dim[i];
        }
        for (int o = 0; o < operands; o++)
            s->stride[o][last] = stride[o][i];
    }
    s->length = 1;
    for (int o = 0; o < operands; o++)
        s->step[o] = 1;
    if (s->rank > 0) {
        s->rank--;
        s->length = s->dim[s->rank];
        for (int o = 0; o < operands; o++)
            s->step[o] = s->stride[o][s->rank];
    }
}

/* Rows: how often the loop runs; pieces are whole rows. */
static int64_t strided_pieces(strided *s)
{
    s->rows = 1;
    for (int i = 0; i < s->rank; i++)
        s->rows *= s->dim[i];
    s->rows_per_piece = s->length > PIECE ? 1 : PIECE / (s->length > 0 ? s->length : 1);
    return (s->rows + s->rows_per_piece - 1) / s->rows_per_piece;
}

typedef struct odometer {
    int64_t index[STI_STRIDED_RANK], at[OPERANDS];
} odometer;

static void odometer_set(odometer *o, const strided *s, int operands, int64_t row)
{
    memset(o->at, 0, sizeof o->at);
    for (int i = s->rank - 1; i >= 0; i--) {
        o->index[i] = row % s->dim[i];
        row /= s->dim[i];
        for (int k = 0; k < operands; k++)
            o->at[k] += o->index[i] * s->stride[k][i];
    }
}

static void odometer_next(odometer *o, const strided *s, int operands)
{
    for (int i = s->rank - 1; i >= 0; i--) {
        bool wraps = ++o->index[i] == s->dim[i];
        for (int k = 0; k < operands; k++)
            o->at[k] += wraps ? -(s->dim[i] - 1) * s->stride[k][i] : s->stride[k][i];
        if (!wraps)
            return;
        o->index[i] = 0;
    }
}

enum { GATHERED = 256 };

/* n elements, `step` apart, as the loops read them: one value, or contiguous ones. */
static const float *contiguous(const float *x, int64_t step, int64_t n, float *copy)
{
    if (step == 0 || step == 1)
        return x;
    for (int64_t i = 0; i < n; i++)
        copy[i] = x[i * step];
    return copy;
}

/* The loop over n elements; operands with other steps go by copies. */
static void run_loop(const strided *s, int64_t n, const float *a, const float *b,
                     float *z)
{
    const bool copies =
        s->step[0] > 1 || s->step[0] < 0 || s->step[1] > 1 || s->step[1] < 0;
    const int64_t most = copies ? GATHERED : n;
    float left[GATHERED], right[GATHERED];
    for (int64_t at = 0, count; at < n; at += count) {
        count = n - at < most ? n - at : most;
        s->loop(count, contiguous(a + at * s->step[0], s->step[0], count, left),
                contiguous(b + at * s->step[1], s->step[1], count, right), z + at);
    }
}

static void broadcast_piece(void *arg, int64_t piece, int worker)
{
    const strided *s = arg;
    int64_t row = piece * s->rows_per_piece, end = row + s->rows_per_piece;
    float *z = s->out;
    odometer o;
    (void)worker;
    if (end > s->rows)
        end = s->rows;
    odometer_set(&o, s, 2, row);
    for (; row < end; row++) {
        run_loop(s, s->length, s->a + o.at[0], s->b + o.at[1], z + row * s->length);
        odometer_next(&o, s, 2);
    }
}

/* A single loop, cut so that a scalar against a large array is parallel too. */
static void chunk_piece(void *arg, int64_t piece, int worker)
{
    const strided *s = arg;
    int64_t at = piece * PIECE, n = s->length - at;
    (void)worker;
    run_loop(s, n < PIECE ? n : PIECE, s->a + at * s->step[0], s->b + at * s->step[1],
             (float *)s->out + at);
}

/* One value against one value, repeated over the loop: done once and spread. */
static void spread_piece(void *arg, int64_t piece, int worker)
{
    const strided *s = arg;
    int64_t row = piece * s->rows_per_piece, end = row + s->rows_per_piece;
    odometer o;
    (void)worker;
    if (end > s->rows)
        end = s->rows;
    odometer_set(&o, s, 2, row);
    for (; row < end; row++) {
        float *z = (float *)s->out + row * s->length;
        s->loop(1, s->a + o.at[0], s->b + o.at[1], z);
        for (int64_t i = 1; i < s->length; i++)
            z[i] = z[0];
        odometer_next(&o, s, 2);
    }
}

void sti_binary_broadcast_f32(const sti_team *team, sti_binary kind, int rank,
                              const int64_t *dim, const int64_t *a_stride,
                              const int64_t *b_stride, const float *a, const float *b,
                              float *z)
{
    int64_t const *const stride[OPERANDS] = {a_stride, b_stride, NULL};
    int64_t n = 1;
    strided s = {.a = a, .b = b, .out = z};
    for (int i = 0; i < rank; i++)
        n *= dim[i];
    if (n == 0)
        return;
    strided_init(&s, 2, rank, dim, stride);
    if (s.rank == 0 && s.step[0] == 1 && s.step[1] == 1) {
        sti_binary_f32(team, kind, n, a, b, z);
        return;
    }
    int form = s.step[1] == 0   ? STI_LOOP_VS
               : s.step[0] == 0 ? STI_LOOP_SV
                                : STI_LOOP_VV;
    s.loop = sti_elementwise_now()->binary[kind][form];
    int64_t pieces = strided_pieces(&s);
    if (s.step[0] == 0 && s.step[1] == 0)
        sti_team_run(team, pieces, spread_piece, &s);
    else if (s.rank == 0)
        sti_team_run(team, (s.length + PIECE - 1) / PIECE, chunk_piece, &s);
    else
        sti_team_run(team, pieces, broadcast_piece, &s);
}

typedef struct bias_work {
    sti_binary_loop *loop;
    int64_t rows, c, rows_per_piece;
    const float *x, *bias;
    float *z;
} bias_work;

static void bias_piece(void *arg, int64_t piece, int worker)
{
    const bias_work *w = arg;
    int64_t row = piece * w->rows_per_piece, end = row + w->rows_per_piece;
    (void)worker;
    for (; row < end && row < w->rows; row++)
        w->loop(w->c, w->x + row * w->c, w->bias, w->z + row * w->c);
}

void sti_bias_f32(const sti_team *team, int64_t rows, int64_t c, const float *x,
                  const float *bias, float *z)
{
    bias_work w = {.loop = sti_elementwise_now()->binary[STI_BINARY_ADD][STI_LOOP_VV],
                   .rows = rows,
                   .c = c,
                   .rows_per_piece = c >= PIECE ? 1 : PIECE / (c > 0 ? c : 1),
                   .x = x,
                   .bias = bias,
                   .z = z};
    sti_team_run(team, (rows + w.rows_per_piece - 1) / w.rows_per_piece, bias_piece,
                 &w);
}

static void copy_row(const strided *s, const uint32_t *src, uint32_t *dst)
{
    int64_t n = s->length, from = s->step[0], to = s->step[1];
    if (from == 1 && to == 1) {
        memcpy(dst, src, (size_t)n * sizeof *dst);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        dst[i * to] = src[i * from];
}

static void copy_piece(void *arg, int64_t piece, int worker)
{
    const strided *s = arg;
    int64_t row = piece * s->rows_per_piece, end = row + s->rows_per_piece;
    uint32_t *dst = s->out;
    odometer o;
    (void)worker;
    if (end > s->rows)
        end = s->rows;
    odometer_set(&o, s, 2, row);
    for (; row < end; row++) {
        copy_row(s, s->src + o.at[0], dst + o.at[1]);
        odometer_next(&o, s, 2);
    }
}

/* Copies whose source and destination run along different axes go by square tiles, so
 * that both sides use whole cache lines: the innermost axis of the odometer and the
 * loop are cut into TILE by TILE. A piece is one tile row of one outer index. */
static void tile_piece(void *arg, int64_t piece, int worker)
{
    const strided *s = arg;
    strided outer = *s;
    int in = s->rank - 1; /* the axis tiled against the loop */
    int64_t tiles = (s->dim[in] + TILE - 1) / TILE;
    odometer o;
    (void)worker;
    outer.rank = in;
    odometer_set(&o, &outer, 2, piece / tiles);
    int64_t begin = piece % tiles * TILE, end = begin + TILE;
    if (end > s->dim[in])
        end = s->dim[in];
    for (int64_t j0 = 0; j0 < s->length; j0 += TILE) {
        int64_t j1 = j0 + TILE < s->length ? j0 + TILE : s->length;
        for (int64_t i = begin; i < end; i++) {
            const uint32_t *src = s->src + o.at[0] + i * s->stride[0][in];
            uint32_t *dst = (uint32_t *)s->out + o.at[1] + i * s->stride[1][in];
            for (int64_t j = j0; j < j1; j++)
                dst[j * s->step[1]] = src[j * s->step[0]];
        }
    }
}

/* Bring the axis along which src is contiguous next to the loop. */
static bool strided_tiles(strided *s)
{
    if (s->step[0] == 0 || s->step[0] == 1 || s->rank == 0)
        return false;
    for (int i = 0; i < s->rank; i++) {
        if (s->stride[0][i] != 1)
            continue;
        int last = s->rank - 1;
        int64_t dim = s->dim[i];
        s->dim[i] = s->dim[last];
        s->dim[last] = dim;
        for (int o = 0; o < 2; o++) {
            int64_t stride = s->stride[o][i];
            s->stride[o][i] = s->stride[o][last];
            s->stride[o][last] = stride;
        }
        return true;
    }
    return false;
}

void sti_copy_strided_32(const sti_team *team, int rank, const int64_t *dim,
                         const int64_t *src_stride, const int64_t *dst_stride,
                         const void *src, void *dst)
{
    int64_t const *const stride[OPERANDS] = {src_stride, dst_stride, NULL};
    strided s = {.src = src, .out = dst};
    for (int i = 0; i < rank; i++)
        if (dim[i] == 0)
            return;
    strided_init(&s, 2, rank, dim, stride);
    int64_t pieces = strided_pieces(&s);
    if (strided_tiles(&s)) {
        int64_t width = s.dim[s.rank - 1];
        sti_team_run(team, s.rows / width * ((width + TILE - 1) / TILE), tile_piece,
                     &s);
        return;
    }
    sti_team_run(team, pieces, copy_piece, &s);
}
