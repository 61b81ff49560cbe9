/* Gradient of the weights on bfloat16.
 *
 * A product over pixels: for each tap, dw [ci][co] += x^T dy, where a pair is two
 * neighbouring pixels of an output row. Rows of x are laid out so that every pixel has
 * its right neighbour (one stride on) in the upper half, which serves all taps; rows of
 * dy as pairs of pixels. Rows of a few images are taken together, so that a tile stays
 * in registers for long.
 *
 * Chunks (runs of output rows) are the leaves of the tree. At most SLOTS_MAX subtrees
 * of 2^e chunks are pieces of work; a piece keeps a stack of partial sums, one a level.
 */
#include <string.h>

#include "kernel/conv_bf16_priv.h"

enum {
    SLOTS_MAX = 8,
    SLOTS_FLOATS = 2 << 20, /* all slots together, unless one is larger */
    LINE_PAIRS = 24 << 10,  /* rows of x held at once: 96 KiB */
    ROWS_MAX = 64,          /* rows of dy held at once */
    JOIN_FLOATS = 16 << 10  /* a piece of the last joins */
};

typedef struct weight_job {
    const sti_conv_shape *shape;
    const sti_bf16 *x, *dy;
    float *dw, *slots; /* slot 0 is dw; slots holds the others */
    const sti_bf16_tile_kernels *tiles;
    const sti_bf16_kernels *loops;
    int64_t pairs;     /* of a row of dy */
    int64_t line_cols; /* pixels of a row of x with neighbours */
    int64_t rows, chunk_rows, chunks;
    int64_t slot_chunks, slot_count;
    int levels;
    int64_t block,
        blocks; /* columns (co) of a piece; a multiple of 16 but for the last */
    int64_t max_lines;
    int64_t line_pairs, dy_pairs, sum_floats; /* of a worker, each a multiple of 16 */
    char *scratch;
    size_t worker_bytes;
} weight_job;

static weight_job weight_make(const sti_conv_shape *s)
{
    weight_job j = {.shape = s, .pairs = sti_conv_ceil_div(s->ow, 2)};
    const int64_t weights = s->kh * s->kw * s->ci * s->co;
    j.line_cols = s->stride * (2 * j.pairs - 2) + s->kw;
    j.rows = s->n * s->oh;
    j.chunk_rows = sti_conv_max(1, STI_GEMM_CHUNK / (2 * j.pairs));
    j.chunks = sti_conv_ceil_div(j.rows, j.chunk_rows);
    j.slot_chunks = 1;
    j.levels = 1;
    for (;;) {
        j.slot_count = sti_conv_ceil_div(j.chunks, j.slot_chunks);
        if (j.slot_count == 1 ||
            (j.slot_count <= SLOTS_MAX && j.slot_count * weights <= SLOTS_FLOATS))
            break;
        j.slot_chunks *= 2;
        j.levels++;
    }
    j.block = j.slot_count * sti_conv_ceil_div(s->co, 64) < 4 ? 32 : 64;
    j.blocks = sti_conv_ceil_div(s->co, j.block);
    j.block = sti_conv_min(j.block, s->co);
    const int64_t line = j.line_cols * s->ci;
    j.max_lines = sti_conv_max(LINE_PAIRS / sti_conv_max(line, 1), s->kh);
    j.line_pairs = sti_conv_round_up(j.max_lines * line, 16);
    j.dy_pairs = ROWS_MAX * j.pairs * sti_conv_round_up(j.block, STI_BF16_PANEL);
    j.sum_floats = sti_conv_round_up(s->kh * s->kw * s->ci * j.block, 16) * j.levels;
    const int64_t plain =
        sti_conv_round_up((j.line_cols + s->stride) * s->ci, 32) / 2; /* one row */
    j.worker_bytes =
        (size_t)(j.line_pairs + j.dy_pairs + j.sum_floats + plain) * sizeof(float);
    return j;
}

size_t sti_conv_bf16_weight_scratch_bytes(const sti_conv_shape *s, int threads)
{
    const weight_job j = weight_make(s);
    const int64_t weights = s->kh * s->kw * s->ci * s->co;
    return 128 + (size_t)threads * j.worker_bytes +
           (size_t)((j.slot_count - 1) * weights) * sizeof(float);
}

/* A worker at work on one piece. */
typedef struct weight_piece {
    const weight_job *job;
    sti_bf16_pair *lines; /* [max_lines][line_cols][ci]: a pixel and its neighbour */
    uint32_t *dy;         /* [panel][rows][pairs][16 nv] */
    float *sums;          /* [levels][kh][kw][ci][block] */
    sti_bf16 *plain;      /* a zero-padded row of x */
    int64_t j0, cols;
    int64_t group_rows;
    int64_t run[ROWS_MAX]; /* where in lines the window of each row begins */
} weight_piece;

/* Row y of an image, zero outside, every pixel beside the one a stride on. */
static void load_line(const weight_piece *p, int64_t image, int64_t y,
                      sti_bf16_pair *dst)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    const int64_t cols = j->line_cols + s->stride, c = s->ci;
    if (y < 0 || y >= s->h) {
        memset(dst, 0, (size_t)(j->line_cols * c) * sizeof *dst);
        return;
    }
    const int64_t from = sti_conv_min(s->pad, cols);
    const int64_t to = sti_conv_max(from, sti_conv_min(cols, s->w + s->pad));
    memset(p->plain, 0, (size_t)(from * c) * sizeof *p->plain);
    memcpy(p->plain + from * c, j->x + ((image * s->h + y) * s->w + from - s->pad) * c,
           (size_t)((to - from) * c) * sizeof *p->plain);
    memset(p->plain + to * c, 0, (size_t)((cols - to) * c) * sizeof *p->plain);
    j->loops->interleave(j->line_cols * c, p->plain, p->plain + s->stride * c,
                         (uint32_t *)(void *)dst);
}

/* Rows of x for output rows row.. (over all images), as many as fit and belong to the
 * chunk; sets run[] and the number of rows. */
static void load_lines(weight_piece *p, int64_t row, int64_t end)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    const int64_t line = j->line_cols * s->ci;
    int64_t lines = 0, base = 0; /* of the image at hand: its line 0 in the buffer */
    p->group_rows = 0;
    for (; row < end && p->group_rows < ROWS_MAX; row++) {
        const int64_t image = row / s->oh, y = row % s->oh * s->stride - s->pad;
        if (p->group_rows == 0 || y == -s->pad)
            base = lines - y;
        const int64_t last = base + y + s->kh; /* one past */
        if (last > j->max_lines)
            break;
        lines = sti_conv_max(lines, base + y);
        for (; lines < last; lines++)
            load_line(p, image, lines - base, p->lines + lines * line);
        p->run[p->group_rows++] = (base + y) * line;
    }
}

static void load_dy(const weight_piece *p, int64_t row)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    const int64_t whole = s->ow / 2;
    for (int64_t c = 0, cols; c < p->cols; c += cols) {
        const int64_t width = (int64_t)sti_bf16_panels(p->cols - c) * STI_BF16_PANEL;
        cols = sti_conv_min(p->cols - c, width);
        uint32_t *dst = p->dy + ROWS_MAX * j->pairs * c;
        const sti_bf16 *src = j->dy + row * s->ow * s->co + p->j0 + c;
        for (int64_t r = 0; r < p->group_rows; r++, src += s->ow * s->co) {
            j->loops->interleave_rows(whole, cols, src, s->co, 2 * s->co, dst, width);
            dst += whole * width;
            if (s->ow % 2 == 0)
                continue;
            j->loops->interleave(cols, src + 2 * whole * s->co, NULL, dst);
            dst += width;
        }
    }
}

/* All taps and channels over the rows that are loaded. */
static void group_tiles(const weight_piece *p, float *sum, bool load)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    for (int64_t col = 0, cols; col < p->cols; col += cols) {
        const int nv = sti_bf16_panels(p->cols - col);
        cols = sti_conv_min(p->cols - col, (int64_t)nv * STI_BF16_PANEL);
        sti_bf16_tile t = {
            .b = p->dy + ROWS_MAX * j->pairs * col,
            .a_row = 1,
            .a_step = 2 * s->stride * s->ci,
            .a_run = p->run,
            .runs = p->group_rows,
            .run_k = j->pairs,
            .c_row = j->block,
            .cols = cols,
            .nv = nv,
            .lines = 1,
            .load = load,
        };
        for (int64_t c = 0; c < s->ci; c += t.rows) {
            t.rows = sti_bf16_next_rows(s->ci - c, nv);
            for (int64_t tap = 0; tap < s->kh * s->kw; tap++) {
                t.a = p->lines + (tap / s->kw * j->line_cols + tap % s->kw) * s->ci + c;
                t.c = sum + (tap * s->ci + c) * j->block + col;
                j->tiles->steps(&t);
            }
        }
    }
}

static void chunk_run(weight_piece *p, int64_t chunk, float *sum)
{
    const weight_job *j = p->job;
    const int64_t begin = chunk * j->chunk_rows;
    const int64_t end = sti_conv_min(begin + j->chunk_rows, j->rows);
    for (int64_t row = begin; row < end; row += p->group_rows) {
        load_lines(p, row, end);
        load_dy(p, row);
        group_tiles(p, sum, row > begin);
    }
}

static void join(float *left, const float *right, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        left[i] += right[i];
}

static weight_piece piece_make(const weight_job *j, int64_t block, int worker)
{
    const sti_conv_shape *s = j->shape;
    weight_piece p = {.job = j, .j0 = block * j->block};
    char *at = j->scratch + (size_t)worker * j->worker_bytes;
    p.cols = sti_conv_min(j->block, s->co - p.j0);
    p.lines = (sti_bf16_pair *)(void *)at;
    p.dy = (uint32_t *)(void *)at + j->line_pairs;
    p.sums = (float *)(void *)(p.dy + j->dy_pairs);
    p.plain = (sti_bf16 *)(void *)(p.sums + j->sum_floats);
    if (p.cols % STI_BF16_PANEL) /* columns that are computed but not kept */
        memset(p.dy, 0, (size_t)j->dy_pairs * sizeof *p.dy);
    return p;
}

static void weight_piece_run(void *arg, int64_t piece, int worker)
{
    const weight_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const int64_t slot = piece / j->blocks, first = slot * j->slot_chunks;
    const int64_t last = sti_conv_min(first + j->slot_chunks, j->chunks);
    const int64_t rows = s->kh * s->kw * s->ci, n = rows * j->block;
    const int64_t level = j->sum_floats / j->levels;
    weight_piece p = piece_make(j, piece % j->blocks, worker);
    float *out = slot == 0 ? j->dw : j->slots + (slot - 1) * rows * s->co;
    int top = 0;
    for (int64_t chunk = first; chunk < last; chunk++) {
        chunk_run(&p, chunk, p.sums + top++ * level);
        for (int64_t count = chunk - first + 1; count % 2 == 0; count /= 2, top--)
            join(p.sums + (top - 2) * level, p.sums + (top - 1) * level, n);
    }
    for (; top > 1; top--)
        join(p.sums + (top - 2) * level, p.sums + (top - 1) * level, n);
    for (int64_t r = 0; r < rows; r++)
        memcpy(out + r * s->co + p.j0, p.sums + r * j->block,
               (size_t)p.cols * sizeof *out);
}

static void join_slots(void *arg, int64_t piece, int worker)
{
    const weight_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const int64_t weights = s->kh * s->kw * s->ci * s->co, at = piece * JOIN_FLOATS;
    const int64_t n = sti_conv_min(JOIN_FLOATS, weights - at);
    (void)worker;
    for (int64_t step = 1; step < j->slot_count; step *= 2)
        for (int64_t i = 0; i + step < j->slot_count; i += 2 * step)
            join((i ? j->slots + (i - 1) * weights : j->dw) + at,
                 j->slots + (i + step - 1) * weights + at, n);
}

void sti_conv_bf16_weight(const sti_team *team, const sti_conv_shape *s,
                          const sti_bf16 *x, const sti_bf16 *dy, float *dw_out,
                          void *scratch)
{
    weight_job j = weight_make(s);
    const int64_t weights = s->kh * s->kw * s->ci * s->co;
    j.x = x;
    j.dy = dy;
    j.dw = dw_out;
    j.tiles = sti_bf16_tiles_now();
    j.loops = STI_BF16_KERNELS_NOW(sti_bf16_kernels);
    j.scratch = sti_conv_bf16_align(scratch);
    j.slots = (float *)(void *)(j.scratch + (size_t)team->threads * j.worker_bytes);
    sti_team_run(team, j.slot_count * j.blocks, weight_piece_run, &j);
    if (j.slot_count > 1)
        sti_team_run(team, sti_conv_ceil_div(weights, JOIN_FLOATS), join_slots, &j);
}
