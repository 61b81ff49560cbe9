/* Products by string: reading the text, choosing what is left out, and the body that
 * packs tiles and calls BRGEMM. */
#include "kernel/loop/loop_gemm.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "kernel/gemm/brgemm.h"
#include "kernel/gemm/gemm_block.h"

enum {
    PANEL = STI_LOOP_PANEL,
    A_FLOATS = 1 << 18,    /* packed tiles of A, 1 MiB */
    B_FLOATS = 1 << 19,    /* and of B, 2 MiB */
    PART_FLOATS = 1 << 18, /* of C, where sums go through a tree */
    TILE_MAX = 4096
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t round_up(int64_t a, int64_t to)
{
    return ceil_div(a, to) * to;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- the text ---- */

typedef struct words {
    char string[STI_LOOP_GEMM_TEXT];
    int64_t tile[STI_LOOP_GEMM_LOOPS];                       /* 0: not given */
    int64_t block[STI_LOOP_GEMM_LOOPS][STI_LOOP_BLOCKS_MAX]; /* tiles */
    int blocks[STI_LOOP_GEMM_LOOPS];
} words;

/* 1 .. most. */
static bool read_count(const char **p, int64_t most, int64_t *value_out)
{
    int64_t value = 0;
    const char *digit = *p;
    for (; isdigit((unsigned char)*digit) && value <= most; digit++)
        value = 10 * value + (*digit - '0');
    if (digit == *p || value < 1 || value > most)
        return false;
    *p = digit;
    *value_out = value;
    return true;
}

static bool read_tile(const char **p, words *w)
{
    if (!read_count(p, TILE_MAX, &w->tile[STI_LOOP_M]) || *(*p)++ != 'x')
        return false;
    if (!read_count(p, TILE_MAX, &w->tile[STI_LOOP_N]) || *(*p)++ != 'x')
        return false;
    return read_count(p, STI_GEMM_CHUNK, &w->tile[STI_LOOP_K]);
}

static bool read_block_words(const char **p, words *w)
{
    const int x = **p - 'a';
    if (x < 0 || x >= STI_LOOP_GEMM_LOOPS || w->blocks[x] > 0)
        return false;
    do {
        (*p)++;
        if (w->blocks[x] == STI_LOOP_BLOCKS_MAX ||
            !read_count(p, 1 << 24, &w->block[x][w->blocks[x]++]))
            return false;
    } while (**p == ',');
    return true;
}

static stint_status read_words(const char *text, words *w)
{
    const size_t length = strcspn(text, " ");
    *w = (words){.string = ""};
    if (strlen(text) >= STI_LOOP_GEMM_TEXT)
        return sti_fail(STINT_E_USAGE, "loops '%.20s...': longer than %d characters",
                        text, STI_LOOP_GEMM_TEXT - 1);
    memcpy(w->string, text, length);
    for (const char *p = text + length; *p;) {
        const char *word = ++p; /* after the blank */
        const bool good =
            isdigit((unsigned char)*p) ? read_tile(&p, w) : read_block_words(&p, w);
        if (!good || (*p && *p != ' '))
            return sti_fail(
                STINT_E_USAGE,
                "loops '%s': '%s' is neither a tile, as 56x64x512 (m, n, "
                "k, at most 4096 each), nor blocks in tiles, as b4 or c16,4",
                text, word);
    }
    return STINT_OK;
}

/* ---- what is left out ---- */

/* Equal parts of at most `most`, a multiple of `unit`. */
static int64_t equal_part(int64_t length, int64_t most, int64_t unit)
{
    return length < 1 ? unit : round_up(ceil_div(length, ceil_div(length, most)), unit);
}

static void choose_tile(const sti_gemm_shape *s, int64_t *tile)
{
    const int64_t k = least(s->k, STI_GEMM_CHUNK);
    if (tile[STI_LOOP_M] == 0)
        tile[STI_LOOP_M] = equal_part(s->m, 84, 14);
    if (tile[STI_LOOP_N] == 0)
        tile[STI_LOOP_N] = equal_part(s->n, 128, PANEL);
    if (tile[STI_LOOP_K] == 0)
        tile[STI_LOOP_K] = equal_part(k, 512, 16);
}

/* How often the loop's letter occurs; letters of a grid's axis, of a clause and of
 * "sfc" do not count. */
static int occurrences(const char *string, int loop)
{
    int n = 0;
    bool grid = false;
    if (string[0] == 's')
        return 1;
    for (const char *p = string; *p && *p != '@'; p++) {
        grid = *p == '{' || (grid && *p != '}');
        n += !grid && tolower((unsigned char)*p) == 'a' + loop;
    }
    return n;
}

/* Blocks that no occurrence takes would be left out in silence. */
static stint_status check_blocks_used(const char *text, const words *w)
{
    for (int x = 0; x < STI_LOOP_GEMM_LOOPS; x++) {
        const int used = occurrences(w->string, x) - 1;
        if (w->blocks[x] > 0 && w->blocks[x] != used)
            return sti_fail(STINT_E_USAGE,
                            "loops '%s': %c occurs %d time%s, which takes %d block "
                            "size%s; %d %s given",
                            text, 'a' + x, used + 1, sti_s(used + 1), used, sti_s(used),
                            w->blocks[x], w->blocks[x] == 1 ? "is" : "are");
    }
    return STINT_OK;
}

/* Blocks of a loop that the string wants and the text does not give: each level holds
 * the square root, cube root, .. of the tiles. */
static void choose_blocks(const words *w, int loop, int64_t length, int64_t step,
                          sti_loop_spec *spec)
{
    const int wanted = occurrences(w->string, loop) - 1;
    const int64_t tiles = ceil_div(length, step);
    spec->blocks = w->blocks[loop];
    for (int r = 0; r < spec->blocks; r++)
        spec->block[r] = w->block[loop][r] * step;
    if (spec->blocks > 0 || wanted < 1 || wanted > STI_LOOP_BLOCKS_MAX)
        return;
    int64_t factor = 1;
    for (;;) { /* the largest factor whose (wanted + 1)-th power is within the tiles */
        int64_t power = 1;
        for (int i = 0; i <= wanted && power <= tiles; i++)
            power *= factor + 1;
        if (power > tiles)
            break;
        factor++;
    }
    for (int r = wanted - 1; r >= 0; r--, step *= factor)
        spec->block[r] = step * factor;
    spec->blocks = wanted;
}

/* ---- slots ---- */

/* Tiles of a loop that the levels from `level` on run through. */
static int64_t span(const sti_loop_gemm *g, int level, int loop)
{
    const sti_loop_spec *s = &g->loop.spec[loop];
    int64_t length = s->end - s->start;
    for (int i = 0; i < level; i++) {
        const sti_loop_level *l = &g->loop.level[i];
        if (l->loop == loop || (l->kind == STI_LOOP_CURVE && l->other == loop))
            length = least(length,
                           g->loop.level[i].kind == STI_LOOP_CURVE ? s->step : l->step);
    }
    return length > 0 ? ceil_div(length, s->step) : 1;
}

static void choose_slots(const sti_loop_gemm *g, int other, int64_t floats,
                         sti_loop_slots *s)
{
    const bool curve = g->loop.level[g->loop.levels > 1].kind == STI_LOOP_CURVE ||
                       g->loop.level[0].kind == STI_LOOP_CURVE;
    const int64_t most = floats > s->floats ? floats / s->floats : 1;
    s->k = s->other = 1;
    for (int level = 0; level <= g->loop.levels; level++) {
        const int64_t k = span(g, level, STI_LOOP_K), n = span(g, level, other);
        if (k * n > most && !(curve && k <= most && n > 1))
            continue;
        s->k = k;
        s->other = least(n, most / k); /* a curve stays near, so a part will do */
        return;
    }
}

/* Where a packed copy would be read too seldom to pay, or rows lie well as they are
 * (a stride of many whole pages puts all rows of a tile into few sets of a cache). */
static void choose_packing(sti_loop_gemm *g)
{
    const sti_gemm_shape *s = &g->shape;
    const int64_t *tile = g->tile;
    g->a.direct = s->n <= 4 * PANEL || s->lda % 256 != 0;
    g->b.direct = s->m <= 28 && !s->trans_b;
    g->a.ld = round_up(tile[s->trans_a ? STI_LOOP_M : STI_LOOP_K], 16) + 16;
    g->a.floats = g->a.ld * tile[s->trans_a ? STI_LOOP_K : STI_LOOP_M];
    g->b.floats = round_up(tile[STI_LOOP_N], PANEL) * tile[STI_LOOP_K];
    choose_slots(g, STI_LOOP_M, A_FLOATS, &g->a);
    choose_slots(g, STI_LOOP_N, B_FLOATS, &g->b);
}

/* Sums through the tree need partial blocks of C: then C is done in parts. */
static void choose_parts(sti_loop_gemm *g)
{
    const sti_gemm_shape *s = &g->shape;
    const int64_t *tile = g->tile;
    g->part_rows = s->m;
    g->part_cols = s->n;
    for (int64_t chunks = ceil_div(s->k, STI_GEMM_CHUNK); chunks > 1; chunks /= 2)
        g->levels++;
    if (g->levels == 0 || s->n == 0)
        return;
    const int64_t cols = PART_FLOATS / tile[STI_LOOP_M] / tile[STI_LOOP_N];
    g->part_cols = least(s->n, (cols > 0 ? cols : 1) * tile[STI_LOOP_N]);
    const int64_t rows = PART_FLOATS / g->part_cols / tile[STI_LOOP_M];
    g->part_rows = least(s->m, (rows > 0 ? rows : 1) * tile[STI_LOOP_M]);
}

static int64_t slot_floats(const sti_loop_slots *s)
{
    return s->direct ? 0 : s->k * s->other * s->floats;
}

static int64_t slot_tags(const sti_loop_slots *s)
{
    return s->direct ? 0 : s->k * s->other;
}

static void plan_scratch(sti_loop_gemm *g)
{
    g->partial_floats = g->levels * round_up(g->part_rows * g->part_cols, 16);
    g->worker_floats = round_up(slot_floats(&g->a) + slot_floats(&g->b), 16);
    g->worker_tags = slot_tags(&g->a) + slot_tags(&g->b);
}

stint_status sti_loop_gemm_bind(const char *text, const sti_gemm_shape *shape,
                                int threads, sti_loop_gemm *gemm_out)
{
    words w;
    sti_loop_gemm g = {.shape = *shape};
    sti_loop_spec spec[STI_LOOP_GEMM_LOOPS] = {{.reduces = true}};
    stint_status status = read_words(text, &w);
    if (status != STINT_OK)
        return status;
    memcpy(g.tile, w.tile, sizeof g.tile);
    choose_tile(shape, g.tile);
    choose_parts(&g);
    spec[STI_LOOP_K].end = least(shape->k, STI_GEMM_CHUNK);
    spec[STI_LOOP_M].end = g.part_rows;
    spec[STI_LOOP_N].end = g.part_cols;
    for (int x = 0; x < STI_LOOP_GEMM_LOOPS; x++) {
        spec[x].step = g.tile[x];
        choose_blocks(&w, x, spec[x].end, g.tile[x], &spec[x]);
    }
    status = sti_loop_bind(w.string, spec, STI_LOOP_GEMM_LOOPS, threads, &g.loop);
    if (status == STINT_OK)
        status = check_blocks_used(text, &w);
    if (status != STINT_OK)
        return status;
    for (int x = 0; x < STI_LOOP_GEMM_LOOPS; x++)
        if (g.loop.spec[x].start != 0 || g.loop.spec[x].end != spec[x].end ||
            g.loop.spec[x].step != spec[x].step)
            return sti_fail(STINT_E_USAGE,
                            "loops '%s': the range of %c is 0 to %" PRId64
                            " by %" PRId64
                            ", as the product has it; write blocks after "
                            "the string, as in 'bcab 56x64x512 b4'",
                            text, 'a' + x, spec[x].end, spec[x].step);
    choose_packing(&g);
    plan_scratch(&g);
    *gemm_out = g;
    return STINT_OK;
}

/* ---- running ---- */

typedef struct product {
    const sti_loop_gemm *gemm;
    const sti_gemm_kernels *kernels;
    const float *a, *b;
    const sti_epilogue *epilogue; /* applied with the last k; NULL: not here */
    float *c;                     /* of row m0 and column n0 */
    int64_t ldc, m0, n0;
    bool load; /* the first k starts from what is there */
    int64_t k0, k1;
    /* A worker's slots, and which tile each holds, from 1 on. */
    float *slots;
    int64_t *tags;
} product;

static void pack_a(const product *p, int64_t m, int64_t rows, int64_t k, int64_t ks,
                   float *dst)
{
    const sti_gemm_shape *s = &p->gemm->shape;
    const int64_t ld = p->gemm->a.ld;
    if (s->trans_a)
        for (int64_t i = 0; i < ks; i++)
            memcpy(dst + i * ld, p->a + (k + i) * s->lda + m,
                   (size_t)rows * sizeof *dst);
    else
        for (int64_t r = 0; r < rows; r++)
            memcpy(dst + r * ld, p->a + (m + r) * s->lda + k, (size_t)ks * sizeof *dst);
}

static void pack_b(const product *p, int64_t n, int64_t cols, int64_t k, int64_t ks,
                   float *dst)
{
    const sti_gemm_shape *s = &p->gemm->shape;
    if (s->trans_b)
        p->kernels->pack_transposed(p->b + n * s->ldb + k, s->ldb, ks, cols, PANEL,
                                    dst);
    else
        p->kernels->pack(p->b + k * s->ldb + n, s->ldb, ks, cols, PANEL, dst);
}

/* One tile of an operand: first indices and lengths. */
typedef struct part {
    int64_t k, ks, other, length;
} part;

/* The slot of a tile; *fresh_out: it holds another and is to be packed. */
static float *slot_of(const product *p, const sti_loop_slots *s, int other,
                      const part *t, float *slots, int64_t *tags, bool *fresh_out)
{
    const int64_t i = t->k / p->gemm->tile[STI_LOOP_K];
    const int64_t j = t->other / p->gemm->tile[other];
    const int64_t slot = sti_loop_slot(s, i, j);
    const sti_gemm_shape *shape = &p->gemm->shape;
    const int64_t length = other == STI_LOOP_M ? shape->m : shape->n;
    const int64_t tag = 1 + t->k * ceil_div(length, p->gemm->tile[other]) + j;
    *fresh_out = tags[slot] != tag;
    tags[slot] = tag;
    return slots + slot * s->floats;
}

static const float *tile_a(const product *p, const part *t, float *slots, int64_t *tags,
                           int64_t *lda_out)
{
    const sti_loop_gemm *g = p->gemm;
    const sti_gemm_shape *s = &g->shape;
    bool fresh;
    if (g->a.direct) {
        *lda_out = s->lda;
        return s->trans_a ? p->a + t->k * s->lda + t->other
                          : p->a + t->other * s->lda + t->k;
    }
    float *slot = slot_of(p, &g->a, STI_LOOP_M, t, slots, tags, &fresh);
    if (fresh)
        pack_a(p, t->other, t->length, t->k, t->ks, slot);
    *lda_out = g->a.ld;
    return slot;
}

static const float *tile_b(const product *p, const part *t, float *slots, int64_t *tags)
{
    bool fresh;
    float *slot = slot_of(p, &p->gemm->b, STI_LOOP_N, t, slots, tags, &fresh);
    if (fresh)
        pack_b(p, t->other, t->length, t->k, t->ks, slot);
    return slot;
}

static void product_tile(void *arg, const int64_t *at, const int64_t *to,
                         sti_loop_where where)
{
    const product *p = arg;
    const sti_loop_gemm *g = p->gemm;
    const part a = {at[STI_LOOP_K], to[STI_LOOP_K] - at[STI_LOOP_K], at[STI_LOOP_M],
                    to[STI_LOOP_M] - at[STI_LOOP_M]};
    const part b = {a.k, a.ks, at[STI_LOOP_N], to[STI_LOOP_N] - at[STI_LOOP_N]};
    float *slots = p->slots + where.worker * g->worker_floats;
    int64_t *tags = p->tags + where.worker * g->worker_tags;
    const bool finish = p->epilogue && to[STI_LOOP_K] == p->k1;
    sti_brgemm call = {.m = a.length,
                       .k = a.ks,
                       .ldb = g->b.direct ? g->shape.ldb : PANEL,
                       .ldc = p->ldc,
                       .trans_a = g->shape.trans_a,
                       .accumulate = p->load || at[STI_LOOP_K] > p->k0,
                       .relu = finish && p->epilogue->relu};
    const float *ta = tile_a(p, &a, slots, tags, &call.lda);
    const float *tb = g->b.direct ? p->b + b.k * g->shape.ldb + b.other
                                  : tile_b(p, &b, slots + slot_floats(&g->a),
                                           tags + slot_tags(&g->a));
    float *c = p->c + (a.other - p->m0) * p->ldc + b.other - p->n0;
    const int64_t width = g->b.direct ? b.length : PANEL;
    for (int64_t j = 0; j < b.length; j += width) {
        call.n = least(width, b.length - j);
        call.bias =
            finish && p->epilogue->bias ? p->epilogue->bias + b.other + j : NULL;
        sti_brgemm_stride_f32(&call, 1, ta, tb + j * b.ks, 0, 0, c + j);
    }
}

/* ---- chunks of k ---- */

/* A part of C: rows of left and right, `left_ld` and part_cols apart. */
typedef struct join {
    float *left;
    const float *right;
    int64_t left_ld, right_ld, rows, cols, n0;
    const sti_epilogue *epilogue;
} join;

enum { JOIN_ROWS = 16 };

static void join_piece(void *arg, int64_t piece, int worker)
{
    const join *j = arg;
    const int64_t end = least(j->rows, (piece + 1) * JOIN_ROWS);
    (void)worker;
    for (int64_t r = piece * JOIN_ROWS; r < end; r++)
        for (int64_t i = 0; i < j->cols; i++)
            j->left[r * j->left_ld + i] += j->right[r * j->right_ld + i];
}

static void finish_piece(void *arg, int64_t piece, int worker)
{
    const join *j = arg;
    const int64_t end = least(j->rows, (piece + 1) * JOIN_ROWS);
    (void)worker;
    for (int64_t r = piece * JOIN_ROWS; r < end; r++)
        for (int64_t i = 0; i < j->cols; i++) {
            float *v = j->left + r * j->left_ld + i;
            if (j->epilogue->bias)
                *v += j->epilogue->bias[j->n0 + i];
            if (j->epilogue->relu)
                *v = 0.0F > *v ? 0.0F : *v;
        }
}

/* A part of C and where its partial sums lie: C itself, then blocks above it. */
typedef struct part_of_c {
    const sti_team *team;
    const sti_loop_gemm *gemm;
    int64_t m0, n0, rows, cols;
    float *c, *partial;
} part_of_c;

static float *stack_at(const part_of_c *s, int level, int64_t *ld_out)
{
    const sti_loop_gemm *g = s->gemm;
    *ld_out = level == 0 ? g->shape.ldc : g->part_cols;
    if (level == 0)
        return s->c + s->m0 * g->shape.ldc + s->n0;
    return s->partial + (level - 1) * round_up(g->part_rows * g->part_cols, 16);
}

static void stack_join(const part_of_c *s, int level)
{
    join j = {.rows = s->rows, .cols = s->cols};
    j.left = stack_at(s, level, &j.left_ld);
    j.right = stack_at(s, level + 1, &j.right_ld);
    sti_team_run(s->team, ceil_div(s->rows, JOIN_ROWS), join_piece, &j);
}

static void run_range(const part_of_c *s, product *p, int64_t k0, int64_t k1)
{
    sti_loop loop = s->gemm->loop;
    loop.spec[STI_LOOP_K].start = p->k0 = k0;
    loop.spec[STI_LOOP_K].end = p->k1 = k1;
    loop.spec[STI_LOOP_M].start = p->m0 = s->m0;
    loop.spec[STI_LOOP_M].end = s->m0 + s->rows;
    loop.spec[STI_LOOP_N].start = p->n0 = s->n0;
    loop.spec[STI_LOOP_N].end = s->n0 + s->cols;
    sti_loop_run(&loop, s->team, product_tile, NULL, NULL, p);
}

/* The tree of gemm.h as a binary counter. */
static void run_chunks(const part_of_c *s, product *p, const sti_epilogue *epilogue)
{
    const sti_gemm_shape *shape = &s->gemm->shape;
    int top = 0;
    p->epilogue = NULL;
    for (int64_t chunk = 0; chunk * STI_GEMM_CHUNK < shape->k; chunk++) {
        const int64_t k0 = chunk * STI_GEMM_CHUNK;
        p->c = stack_at(s, top++, &p->ldc);
        p->load = chunk == 0 && shape->accumulate;
        run_range(s, p, k0, least(shape->k, k0 + STI_GEMM_CHUNK));
        for (int64_t count = chunk + 1; count % 2 == 0; count /= 2)
            stack_join(s, --top - 1);
    }
    for (; top > 1; top--)
        stack_join(s, top - 2);
    join end = {.rows = s->rows, .cols = s->cols, .n0 = s->n0, .epilogue = epilogue};
    end.left = stack_at(s, 0, &end.left_ld);
    if (epilogue && (epilogue->bias || epilogue->relu))
        sti_team_run(s->team, ceil_div(s->rows, JOIN_ROWS), finish_piece, &end);
}

static void run_part(const part_of_c *s, product *p, const sti_epilogue *epilogue)
{
    const sti_gemm_shape *shape = &s->gemm->shape;
    if (s->gemm->levels > 0) {
        run_chunks(s, p, epilogue);
        return;
    }
    p->c = stack_at(s, 0, &p->ldc);
    p->epilogue = epilogue;
    p->load = shape->accumulate;
    run_range(s, p, 0, shape->k);
}

static void write_mask(const sti_team *team, const sti_gemm_shape *shape,
                       const sti_epilogue *epilogue, const float *c)
{
    if (epilogue && epilogue->relu_mask)
        sti_block_mask(team, c, shape->m * shape->n, epilogue->relu_mask);
}

/* No products: only what comes after them. */
static void run_empty(const sti_gemm_shape *shape, const sti_epilogue *epilogue,
                      float *c)
{
    sti_brgemm call = {.m = shape->m,
                       .n = shape->n,
                       .ldc = shape->ldc,
                       .accumulate = shape->accumulate};
    if (epilogue) {
        call.bias = epilogue->bias;
        call.relu = epilogue->relu;
    }
    sti_brgemm_stride_f32(&call, 0, NULL, NULL, 0, 0, c);
}

void sti_loop_gemm_f32(const sti_team *team, const sti_loop_gemm *g, const float *a,
                       const float *b, const sti_epilogue *epilogue, float *c_out,
                       void *scratch)
{
    const sti_gemm_shape *shape = &g->shape;
    product p = {.gemm = g, .kernels = sti_gemm_kernels_now(), .a = a, .b = b};
    part_of_c s = {.team = team, .gemm = g, .c = c_out};
    if (shape->m == 0 || shape->n == 0)
        return;
    if (shape->k == 0) {
        run_empty(shape, epilogue, c_out);
        write_mask(team, shape, epilogue, c_out);
        return;
    }
    s.partial = sti_block_align(scratch);
    p.slots = s.partial + g->partial_floats;
    p.tags = (int64_t *)(void *)(p.slots + team->threads * g->worker_floats);
    memset(p.tags, 0, (size_t)(team->threads * g->worker_tags) * sizeof *p.tags);
    for (s.m0 = 0; s.m0 < shape->m; s.m0 += g->part_rows)
        for (s.n0 = 0; s.n0 < shape->n; s.n0 += g->part_cols) {
            s.rows = least(g->part_rows, shape->m - s.m0);
            s.cols = least(g->part_cols, shape->n - s.n0);
            run_part(&s, &p, epilogue);
        }
    write_mask(team, shape, epilogue, c_out);
}
