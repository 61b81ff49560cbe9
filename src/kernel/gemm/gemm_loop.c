/* Blocked product: for every chunk of k, blocks of A that stay in the second-level
 * cache and panels of B that flow through it meet in register tiles. Columns of B are
 * packed once for all rows of a piece where there are several blocks of them. Partial
 * sums of chunks wait on a stack that is a binary counter, which is the tree of
 * gemm.h. */
#include "kernel/gemm/gemm_block.h"

#include <string.h>

#include "kernel/gemm/brgemm.h"

enum {
    IN_PLACE_K = 256, /* up to so much k, and columns, A and B are read in place */
    IN_PLACE_COLS = 256,
    IN_PLACE_LD = 512,
    IN_PLACE_ROWS = 252,       /* at a time; */
    IN_PLACE_LOW_COLS = 1000,  /* more columns where no more rows meet short k, */
    IN_PLACE_LOW_K = 8,        /* if not so short that but C moves */
    IN_PLACE_STEPS = 24 << 10, /* floats of A stored in steps of k, */
    IN_PLACE_SLOW = 128 << 10, /* and where the second-level cache keeps up */
    A_FLOATS = 160 << 10,      /* of A copied by a thread, and by all together */
    A_TEAM_FLOATS = 320 << 10, /* (LEAST_ROWS go before that) */
    LEAST_ROWS = 96,
    PARTIAL_ROWS = 280, /* where partial sums take scratch as well */
    PARTIAL_FLOATS = 72 << 10,
    PARTIAL_K = 256,
    PLAIN_ROWS = 1024,         /* up to so many rows read B in place, */
    CROWDED_ROWS = 24,         /* fewer where its steps push each other out, */
    CROWDED_LONG_ROWS = 128,   /* but more where tiles are long enough */
    CROWDED_LONG_K = 128,      /* to fetch the next panel ahead */
    FLOW_FLOATS = 4096,        /* of C at a time where B flows */
    WIDE_COLS = 5 * STI_PANEL, /* from here on tiles are three panels wide, */
    LOW_ROWS = 6,              /* but of so few rows four */
    SHORT_K = 64,              /* low blocks of A, tiles along rows of C */
    SHORT_ROWS = 56,
    SMALL_C_FLOATS = 512 << 10, /* a C that stays in the second-level cache pays for */
    SMALL_C_K = 192,            /* short passes over an A in steps */
    GROUP_COLS = 192,           /* of B packed at a time, */
    TURNED_ROWS = 128,          /* for so few rows, of a B in columns, only */
    TURNED_COLS = 64,           /* so many, */
    TURNED_K = 1024,            /* but of more k */
    TURN_K = 256,    /* steps of a narrow B that leave room in the first-level cache, */
    TURN_FAR_K = 64, /* fewer where so large an A in steps comes from memory, */
    TURN_FAR_FLOATS = 3 << 20,  /* which likes its pages walked through */
    KEEP_FLOATS = 1 << 20,      /* kept for all rows by a thread, */
    KEEP_TEAM_FLOATS = 4 << 20, /* and by all together (KEEP_LEAST go before that) */
    KEEP_LEAST = 256 << 10
};

typedef struct block_plan {
    const sti_block_job *job;
    const sti_gemm_kernels *kernels;
    int64_t row_parts, col_parts, part_rows, part_cols; /* pieces of an item */
    int64_t block_rows, block_cols, block_k;            /* steps within a piece */
    int64_t chunks;
    int levels;    /* partial blocks of C held at once; 0: C itself */
    bool in_place; /* one call of the tiles for many rows */
    bool copy_a, copy_b;
    bool quads;         /* rows of A are copied in quads of k */
    bool steps_by_tile; /* steps of A are copied by each tile, not for all at once */
    bool flow;          /* so few rows that B flows past them */
    bool rows_turned;   /* so few columns that rows are the lanes */
    bool wide;          /* whole tiles have three panels */
    bool across;        /* the tiles of some rows go on over all panels */
    bool short_passes;  /* so that what the next one copies is fetched meanwhile */
    bool keep_b; /* packed columns serve all blocks of rows; else a group at a time */
    int64_t a_ld;
    size_t a_floats, b_floats, c_floats, worker_floats;
    int64_t group_cols; /* of B packed at a time */
    float *scratch;
} block_plan;

/* What will be copied once the tiles under way are done, and is fetched meanwhile. */
typedef struct block_fetch {
    const float *at;
    int64_t ld, rows, cols;
} block_fetch;

enum { FETCHES = 2 };

/* One piece: where it stands and what it holds. */
typedef struct block_piece {
    const block_plan *plan;
    int64_t item, m0, rows, n0, cols;
    float *a, *b, *partial;
    int a_most; /* rows of a tile by which a is packed */
    block_fetch fetch[FETCHES];
    int64_t fetch_tiles; /* that are left to fetch it */
} block_piece;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t round_up(int64_t a, int64_t to)
{
    return ceil_div(a, to) * to;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Equal blocks of at most `most`, a multiple of `unit`. */
static int64_t block_length(int64_t length, int64_t most, int64_t unit)
{
    return length == 0 ? unit
                       : round_up(ceil_div(length, ceil_div(length, most)), unit);
}

static int stack_levels(int64_t chunks)
{
    int levels = 1;
    for (int64_t c = chunks; c > 1; c /= 2)
        levels++;
    return levels;
}

enum { PART_ROWS = 14 /* of tiles in quads */, PART_COLS = 32, PANELS_MOST = 4 };

/* Rows so far apart fall on one set of the first-level cache, and those of a tile push
 * each other out. */
static bool crowded(int64_t ld)
{
    return ld % 1024 == 0;
}

/* Whether C is what moves, and but moves out. */
static bool c_moves(const sti_block_job *job)
{
    return job->k <= SHORT_K && !job->load_a && !job->load_b && !job->bias &&
           !job->accumulate;
}

/* A grid of pieces for so many threads: cut where less is then packed twice, A by every
 * column of the grid and B by every row. */
static void plan_grid(block_plan *p, int threads)
{
    const sti_block_job *job = p->job;
    const int64_t m = job->m, n = job->n;
    p->row_parts = p->col_parts = 1;
    p->part_rows = m;
    p->part_cols = n;
    if (threads <= 1 || job->items >= 4 * threads || m * n == 0 ||
        job->k < STI_BLOCK_SHARED / (m * n))
        return;
    const bool plain_b = !job->load_b && !job->b_columns && !crowded(job->ldb);
    /* Threads that write parts of one row of C would fetch each other's lines. */
    const bool whole_rows = c_moves(job) && m >= threads * SHORT_ROWS;
    double best = 0;
    for (int64_t r = whole_rows ? threads : 1; r <= threads; r++) {
        const int64_t c = ceil_div(threads, r);
        const int64_t rows = ceil_div(m, r);
        const int64_t cols = block_length(n, ceil_div(n, c), PART_COLS);
        /* Time of the largest piece, in multiply-adds of a row of A with one of B; an
         * element packed is worth some, one of B that is read in place less. */
        const double cost = (double)rows * (double)smaller(cols, n) +
                            16.0 * (double)rows +
                            (plain_b ? 2.0 : 16.0) * (double)smaller(cols, n);
        if (best == 0 || cost < best) {
            best = cost;
            p->part_rows = rows;
            p->part_cols = cols;
        }
    }
    p->row_parts = ceil_div(m, p->part_rows);
    p->col_parts = ceil_div(n, p->part_cols);
}

/* Up to so many rows read B in place. */
static int64_t in_place_rows(const sti_block_job *job)
{
    if (!crowded(job->ldb))
        return PLAIN_ROWS;
    return job->k >= CROWDED_LONG_K ? CROWDED_LONG_ROWS : CROWDED_ROWS;
}

/* A copy of A pays where many columns read it. B is read as it lies, a panel of it from
 * the second-level cache by tile after tile: a copy pays where its steps would push
 * each other out of there, where very many rows read it, or where steps of A meet at
 * least twice as many rows as columns, which goes by short passes. */
static void plan_copies(block_plan *p)
{
    const sti_block_job *job = p->job;
    const int64_t cols = smaller(p->part_cols, job->n);
    const int64_t rows = smaller(p->part_rows, job->m);
    const bool low =
        job->k > IN_PLACE_LOW_K && job->k <= SHORT_K && rows <= IN_PLACE_ROWS;
    const int64_t most_cols = low ? IN_PLACE_LOW_COLS : IN_PLACE_COLS;
    const int64_t most_ld = low ? IN_PLACE_LOW_COLS : IN_PLACE_LD;
    p->in_place = !job->load_a && !job->load_b && !job->b_columns && p->levels == 0 &&
                  job->k <= IN_PLACE_K && cols <= most_cols &&
                  job->lda <= IN_PLACE_LD && job->ldb <= most_ld;
    const bool tall = job->a_steps && p->levels == 0 && rows > CROWDED_ROWS &&
                      rows >= 2 * cols && rows * cols <= SMALL_C_FLOATS;
    p->copy_b = job->load_b || job->b_columns || rows > in_place_rows(job) || tall;
    const bool many_cols = cols > (p->copy_b && crowded(job->lda) ? 48 : 64);
    /* Steps of A lie apart, and each tile reads few floats of their lines, which fall
     * on few sets of the first-level cache. */
    const int64_t steps = sti_cpu_halves_vectors() ? IN_PLACE_SLOW : IN_PLACE_STEPS;
    if (job->a_steps && many_cols && rows * job->k > steps)
        p->in_place = false;
    p->rows_turned = !job->load_a && !job->load_b &&
                     sti_gemm_turns(job->m, job->n, job->k, job->a_steps);
    p->in_place = p->in_place && !p->rows_turned;
    if (p->in_place || p->rows_turned) {
        p->copy_b = job->b_columns;
        return;
    }
    p->flow = !job->load_b && job->m > 0 && job->m <= STI_GEMM_FLOW && job->k > 0;
    p->copy_a = job->load_a || (many_cols && !p->flow);
    p->copy_b = p->copy_b && !p->flow;
    p->quads = p->copy_a && !job->load_a && !job->a_steps;
    p->short_passes = p->copy_a && p->copy_b && tall && !job->load_a && !job->load_b &&
                      !job->b_columns;
    p->across = p->copy_a && p->levels == 0 && c_moves(job);
    p->steps_by_tile =
        p->copy_a && job->a_steps && !job->load_a && !p->across && !p->short_passes;
    p->wide = p->copy_a && cols >= WIDE_COLS && rows > LOW_ROWS && !p->short_passes;
}

/* Rows of A at a time: as much as the second-level cache likes, but not more for all
 * threads together than a few of them would take. */
static int64_t plan_rows(const block_plan *p, int threads)
{
    if (p->levels > 0)
        return PARTIAL_ROWS;
    if (p->job->k <= SHORT_K)
        return SHORT_ROWS;
    const int64_t floats = smaller(A_FLOATS, A_TEAM_FLOATS / threads);
    const int64_t rows = floats / (p->block_k + 16);
    return rows < LEAST_ROWS ? LEAST_ROWS : rows;
}

/* Columns at a time: of packed ones, as many as may be kept. */
static int64_t plan_cols(const block_plan *p, int threads, int64_t cols)
{
    if (p->flow)
        return FLOW_FLOATS / p->job->m;
    if (p->levels > 0)
        return PARTIAL_FLOATS / p->block_rows;
    if (!p->keep_b)
        return cols;
    int64_t floats = smaller(KEEP_FLOATS, KEEP_TEAM_FLOATS / threads);
    floats = floats < KEEP_LEAST ? KEEP_LEAST : floats;
    return floats / p->block_k;
}

/* Steps of k at a time where rows are lanes. */
static int64_t turn_steps(const sti_block_job *job)
{
    const bool far =
        job->a_steps && job->m * smaller(job->k, STI_GEMM_CHUNK) > TURN_FAR_FLOATS;
    return far ? TURN_FAR_K : TURN_K;
}

/* Where k is short, C is what moves: low blocks over all columns then write it in
 * order. Where B is read in place for few rows, passes are long, as C goes by in each.
 */
static void plan_blocks(block_plan *p, int threads)
{
    const sti_block_job *job = p->job;
    const int64_t k = smaller(job->k, STI_GEMM_CHUNK);
    const bool stream = !p->copy_b && job->m <= CROWDED_ROWS;
    const bool turned =
        p->copy_b && job->b_columns && p->levels == 0 && job->m <= TURNED_ROWS;
    p->group_cols = turned ? TURNED_COLS : GROUP_COLS;
    const int64_t pass = p->flow           ? STI_GEMM_CHUNK
                         : stream          ? STI_BLOCK_K
                         : p->rows_turned  ? turn_steps(job)
                         : turned          ? TURNED_K
                         : p->levels > 0   ? PARTIAL_K
                         : p->short_passes ? SMALL_C_K
                                           : STI_BLOCK_K;
    p->block_k = block_length(k, pass, 16);
    const int64_t tile_rows = p->wide ? 9 : 14, tile_cols = p->wide ? 48 : 32;
    const int64_t rows = smaller(p->part_rows, job->m);
    p->block_rows = block_length(rows, plan_rows(p, threads), tile_rows);
    p->keep_b = p->copy_b && p->levels == 0 && p->block_rows < rows;
    const int64_t cols = smaller(p->part_cols, job->n);
    p->block_cols = block_length(cols, plan_cols(p, threads, cols), tile_cols);
}

static block_plan block_plan_make(const sti_block_job *job, int threads)
{
    block_plan p = {.job = job};
    p.chunks = job->k > 0 ? ceil_div(job->k, STI_GEMM_CHUNK) : 1;
    p.levels = p.chunks > 1 ? stack_levels(p.chunks) : job->store_c != NULL;
    plan_grid(&p, threads);
    plan_copies(&p);
    plan_blocks(&p, threads);
    const int64_t ks = round_up(smaller(job->k, p.block_k), 16);
    p.a_ld = ks + 16;
    if (p.copy_a)
        p.a_floats = (size_t)(p.block_rows * p.a_ld);
    if (p.copy_b)
        p.b_floats = (size_t)(ks * ((p.keep_b ? p.block_cols : p.group_cols) +
                                    PANELS_MOST * STI_PANEL));
    p.c_floats = (size_t)(p.block_rows * p.block_cols);
    p.worker_floats = p.a_floats + p.b_floats + (size_t)p.levels * p.c_floats;
    p.worker_floats = (size_t)round_up((int64_t)p.worker_floats, 16);
    return p;
}

size_t sti_block_scratch_bytes(const sti_block_job *job, int threads)
{
    size_t most = 0; /* over all teams up to that size */
    for (int t = 1; t <= threads; t++) {
        const block_plan p = block_plan_make(job, t);
        const size_t floats = (size_t)t * p.worker_floats;
        most = floats > most ? floats : most;
    }
    return 64 + most * sizeof(float);
}

/* What one pass over a range of k does to a block: where the sums live, whether they
 * start from what is there, and whether this is the last pass. */
typedef struct block_pass {
    float *c;
    int64_t ldc;
    bool load, finish;
    bool packed; /* all columns, by a block of rows before this */
    int64_t k0, ks;
} block_pass;

/* Columns of B as the tiles read them. */
typedef struct block_panel {
    const float *b;
    int64_t b_step, j0, cols;
    int nv;
    int64_t count;  /* of them side by side, where tiles go across all */
    bool copy_rows; /* of A, each tile's just before it runs */
} block_panel;

/* Rows r.. of the block in A itself. */
static const float *plain_rows(const block_piece *s, const block_pass *pass, int64_t r)
{
    const sti_block_job *job = s->plan->job;
    const float *item = job->a + s->item * job->a_item;
    return job->a_steps ? item + pass->k0 * job->lda + s->m0 + r
                        : item + (s->m0 + r) * job->lda + pass->k0;
}

/* Where a copy holds the rows from r on. */
static float *copied_rows(const block_piece *s, const block_pass *pass, int64_t r)
{
    const block_plan *p = s->plan;
    if (p->quads)
        return s->a + r * round_up(pass->ks, STI_GEMM_QUAD);
    return s->a + r * (p->job->a_steps ? pass->ks : p->a_ld);
}

/* Behind each gathered row: whether the tile that it came with holds anything. */
static float *row_holds(const block_piece *s, const block_pass *pass, int64_t r)
{
    return copied_rows(s, pass, r) + s->plan->a_ld - 1;
}

static void load_rows(const block_piece *s, const block_pass *pass, int64_t r,
                      int64_t rows)
{
    const sti_block_job *job = s->plan->job;
    const bool any = job->load_a(job, s->item, s->m0 + r, rows, pass->k0, pass->ks,
                                 copied_rows(s, pass, r), s->plan->a_ld);
    for (int64_t i = r; i < r + rows; i++)
        *row_holds(s, pass, i) = any;
}

/* Of a tile, which another panel may have cut elsewhere. */
static bool rows_hold(const block_piece *s, const block_pass *pass, int64_t r,
                      int64_t rows)
{
    bool any = false;
    for (int64_t i = r; i < r + rows; i++)
        any = any || *row_holds(s, pass, i) != 0;
    return any;
}

/* Copy the rows of the tile from row r on. */
static void copy_rows(const block_piece *s, const block_pass *pass, int64_t r,
                      int64_t rows)
{
    const sti_block_job *job = s->plan->job;
    const sti_gemm_kernels *kernels = s->plan->kernels;
    float *dst = copied_rows(s, pass, r);
    if (job->load_a)
        load_rows(s, pass, r, rows);
    else if (job->a_steps)
        kernels->pack(plain_rows(s, pass, r), job->lda, pass->ks, rows, rows, dst);
    else
        kernels->pack_quads(plain_rows(s, pass, r), job->lda, pass->ks, rows, dst);
}

/* Steps that were fetched before are copied for all tiles at once: one takes but a part
 * of each line of A. */
static void copy_steps(const block_piece *s, const block_pass *pass, int most)
{
    for (int64_t r = 0, rows; r < s->rows; r += rows) {
        const int64_t left = s->rows - r, high = sti_gemm_next_rows(left, most);
        rows = sti_gemm_equal_tiles(left, most) * high;
        s->plan->kernels->pack(plain_rows(s, pass, r), s->plan->job->lda, pass->ks,
                               rows, high, copied_rows(s, pass, r));
    }
}

/* The tile's A: copied ones in rows, or in steps as long as the tile is high. */
static void place_rows(const block_piece *s, const block_pass *pass, int64_t r,
                       sti_gemm_tile *t)
{
    const block_plan *p = s->plan;
    const int64_t lda = p->job->lda;
    t->a_row = p->copy_a ? p->a_ld : lda;
    t->a_step = p->copy_a ? t->rows : lda;
    t->a = p->copy_a ? copied_rows(s, pass, r) : plain_rows(s, pass, r);
    if (p->flow) {
        t->a_step = p->job->a_steps ? lda : 1;
        t->a_row = p->job->a_steps ? 1 : t->a_row;
    }
    if (p->quads)
        t->a_line = t->rows * round_up(pass->ks, STI_GEMM_QUAD);
    else if (!p->job->a_steps)
        t->a_line = t->rows * t->a_row;
    else
        t->a_line = p->copy_a ? t->rows * pass->ks : t->rows;
}

/* The tiles fetch their share of what is left. */
static void fetch_next(block_piece *s, sti_gemm_tile *t)
{
    block_fetch *f = s->fetch[0].rows > 0 ? &s->fetch[0] : &s->fetch[1];
    int64_t portions = 0;
    const int64_t width = (int64_t)t->nv * STI_PANEL;
    for (int i = 0; i < FETCHES; i++)
        portions += s->fetch[i].rows * ceil_div(s->fetch[i].cols, width);
    t->next_rows = 0;
    if (portions == 0)
        return;
    const int64_t tiles = s->fetch_tiles > t->lines ? s->fetch_tiles : t->lines;
    const int64_t share = ceil_div(portions, tiles);
    t->next = f->at;
    t->next_row = f->ld;
    t->next_cols = f->cols;
    t->next_rows = ceil_div(share, ceil_div(f->cols, width));
    const int64_t enough = ceil_div(f->rows, t->next_rows);
    t->lines = t->lines < enough ? t->lines : enough;
    const int64_t rows = t->lines * t->next_rows;
    f->at += rows * f->ld;
    f->rows -= rows < f->rows ? rows : f->rows;
    s->fetch_tiles = tiles - t->lines;
}

/* A tile that copied its rows fetches those of the next one. */
static void fetch_rows(const block_piece *s, const block_pass *pass, int64_t r,
                       int most, sti_gemm_tile *t)
{
    const sti_block_job *job = s->plan->job;
    const int64_t rows = r < s->rows ? sti_gemm_next_rows(s->rows - r, most) : 0;
    t->next = r < s->rows ? plain_rows(s, pass, r) : NULL;
    t->next_row = job->lda;
    t->next_rows = job->a_steps && rows > 0 ? pass->ks : rows;
    t->next_cols = job->a_steps ? rows : pass->ks;
}

/* What all tiles of the panel share. */
static sti_gemm_tile panel_tile(const block_piece *s, const block_pass *pass,
                                const block_panel *panel)
{
    static const int64_t zero_run[1] = {0};
    const block_plan *p = s->plan;
    const sti_block_job *job = p->job;
    const bool part = panel->cols < (int64_t)panel->nv * STI_PANEL;
    sti_gemm_tile t = {
        .b = panel->b,
        .a_run = zero_run,
        .b_step = panel->b_step,
        .runs = 1,
        .run_k = pass->ks,
        .c_row = pass->ldc,
        .cols = panel->cols,
        .nv = panel->nv,
        .b_part = !p->copy_b && part,
        .load = pass->load,
    };
    if (pass->finish) {
        t.relu = job->relu;
        t.bias =
            job->bias ? job->bias + s->item * job->bias_item + s->n0 + panel->j0 : NULL;
    }
    return t;
}

/* Whether tiles copy their rows of A, each its own just before it runs. */
static bool copies_rows(const block_plan *p, const block_panel *panel)
{
    return panel->copy_rows && (p->quads || p->steps_by_tile);
}

/* How high tiles are: as high as A is packed. Steps that all tiles share are packed
 * here. */
static int panel_rows(block_piece *s, const block_pass *pass, const block_panel *panel)
{
    const block_plan *p = s->plan;
    const bool steps = p->job->a_steps && !p->job->load_a;
    int most = p->flow ? STI_GEMM_FLOW
                       : sti_gemm_most_rows(p->kernels, panel->nv, panel->cols);
    if (p->quads)
        most = (int)smaller(most, PART_ROWS); /* even those of one panel */
    if (panel->copy_rows && steps && !p->steps_by_tile)
        copy_steps(s, pass, most);
    if (panel->copy_rows)
        s->a_most = most;
    else if (p->copy_a && (steps || p->quads))
        most = s->a_most;
    return most;
}

static void run_tiles(const block_plan *p, const sti_gemm_tile *t)
{
    if (p->flow && p->job->b_columns)
        p->kernels->flow_columns(t);
    else if (p->flow)
        p->kernels->flow(t);
    else if (p->quads)
        p->kernels->quads(t);
    else if (p->job->a_steps)
        p->kernels->tn(t);
    else
        p->kernels->nn(t);
}

/* Where k is short, along rows of C, which is what moves. Tiles are over before they
 * could fetch anything. */
static void across_tiles(block_piece *s, const block_pass *pass,
                         const block_panel *panel)
{
    const block_plan *p = s->plan;
    sti_gemm_tile t = panel_tile(s, pass, panel);
    const int most = panel_rows(s, pass, panel);
    for (int64_t r = 0; r < s->rows; r += t.rows) {
        t.rows = sti_gemm_next_rows(s->rows - r, most);
        place_rows(s, pass, r, &t);
        t.lines = panel->count;
        t.a_line = 0;
        t.b_line = panel->cols * (p->copy_b ? pass->ks : 1);
        t.c_line = panel->cols;
        t.c = pass->c + r * pass->ldc + panel->j0;
        if (panel->copy_rows && p->quads)
            copy_rows(s, pass, r, t.rows);
        run_tiles(p, &t);
    }
}

static void panel_tiles(block_piece *s, const block_pass *pass,
                        const block_panel *panel)
{
    const block_plan *p = s->plan;
    const sti_block_job *job = p->job;
    sti_gemm_tile t = panel_tile(s, pass, panel);
    const int most = panel_rows(s, pass, panel);
    for (int64_t r = 0; r < s->rows; r += t.lines * t.rows) {
        const int64_t left = s->rows - r;
        t.rows = sti_gemm_next_rows(left, most);
        if (p->rows_turned && left >= STI_GEMM_TURN_ROWS) {
            t.rows = STI_GEMM_TURN_ROWS;
            t.lines = left / STI_GEMM_TURN_ROWS;
            place_rows(s, pass, r, &t);
            t.c = pass->c + r * pass->ldc + panel->j0;
            job->a_steps ? p->kernels->turned_steps(&t) : p->kernels->turned(&t);
            continue;
        }
        const bool copies = copies_rows(p, panel), alone = job->load_a || copies;
        t.lines = alone ? 1 : sti_gemm_equal_tiles(left, most);
        if (copies)
            fetch_rows(s, pass, r + t.rows, most, &t);
        else
            fetch_next(s, &t);
        place_rows(s, pass, r, &t);
        t.c_line = t.rows * pass->ldc;
        t.c = pass->c + r * pass->ldc + panel->j0;
        t.c_next = r + t.lines * t.rows < s->rows ? t.c + t.lines * t.c_line
                                                  : pass->c + panel->j0 + panel->cols;
        if (panel->copy_rows && alone)
            copy_rows(s, pass, r, t.rows);
        if (job->load_a && !p->flow) /* which takes one step at least */
            t.run_k = rows_hold(s, pass, r, t.rows) ? pass->ks : 0;
        run_tiles(p, &t);
    }
}

/* The columns of a panel that begins so far before the end. */
static int64_t panel_cols(const block_piece *s, int64_t left, int *nv)
{
    const block_plan *p = s->plan;
    if (p->flow) {
        *nv = 1;
        return left;
    }
    /* Not by s->rows: what one block has packed the next, lower one may use. */
    const int64_t rows = smaller(p->job->m, p->block_rows);
    const int64_t cols = sti_gemm_whole_cols(p->kernels, left);
    if (p->wide)
        *nv = sti_gemm_many_panels(p->kernels, cols);
    else if (!p->copy_b)
        *nv = p->copy_a ? sti_gemm_many_panels(p->kernels, cols)
                        : sti_gemm_wide_panels(p->kernels, cols);
    else if (p->job->load_b)
        *nv = sti_gemm_panels(p->kernels, rows, cols);
    else
        *nv = sti_gemm_whole_panels(p->kernels, rows, cols);
    /* Tiles are as high as A is packed. */
    if (*nv == 3 && !p->wide && p->copy_b && p->copy_a && (p->quads || p->job->a_steps))
        *nv = 2;
    return smaller(left, (int64_t)*nv * STI_PANEL);
}

/* Columns from j on in B itself. */
static const float *plain_cols(const block_piece *s, const block_pass *pass, int64_t j)
{
    const sti_block_job *job = s->plan->job;
    const float *item = job->b + s->item * job->b_item;
    return job->b_columns ? item + (s->n0 + j) * job->ldb + pass->k0
                          : item + pass->k0 * job->ldb + s->n0 + j;
}

static void pack_cols(const block_piece *s, const block_pass *pass, int64_t j,
                      int64_t cols, int64_t width, float *dst)
{
    const sti_block_job *job = s->plan->job;
    const sti_gemm_kernels *kernels = s->plan->kernels;
    if (job->load_b)
        job->load_b(job, kernels, s->item, s->n0 + j, cols, pass->k0, pass->ks, width,
                    dst);
    else if (job->b_columns)
        kernels->pack_transposed(plain_cols(s, pass, j), job->ldb, pass->ks, cols,
                                 width, dst);
    else
        kernels->pack(plain_cols(s, pass, j), job->ldb, pass->ks, cols, width, dst);
}

/* Columns from j on that are packed together: panels of one width. */
static int64_t group_cols(const block_piece *s, int64_t j)
{
    int nv, next;
    int64_t cols = panel_cols(s, s->cols - j, &nv);
    while (j + cols < s->cols &&
           cols + (int64_t)nv * STI_PANEL <= s->plan->group_cols) {
        const int64_t more = panel_cols(s, s->cols - j - cols, &next);
        if (next != nv)
            break;
        cols += more;
    }
    return cols;
}

/* How many panels from column j on to `end` are as wide as the first one. */
static int64_t equal_panels(const block_piece *s, int64_t j, int64_t end)
{
    int nv;
    const int64_t cols = panel_cols(s, s->cols - j, &nv);
    int64_t count = 1;
    while (j + count * cols < end &&
           panel_cols(s, s->cols - j - count * cols, &nv) == cols)
        count++;
    return count;
}

/* The columns of B after a panel: as they lie, or packed by an earlier block of rows.
 */
static void fetch_columns(block_piece *s, const block_pass *pass,
                          const block_panel *panel)
{
    const block_plan *p = s->plan;
    const int64_t next = panel->j0 + panel->cols;
    block_fetch *f = &s->fetch[0];
    *f = (block_fetch){.ld = panel->b_step, .cols = panel->cols};
    if (p->copy_b && next < s->cols)
        f->at = panel->b + panel->cols * pass->ks;
    else if (!p->copy_b && next < s->cols)
        f->at = panel->b + panel->cols;
    else if (!p->copy_b && pass->k0 + pass->ks < p->job->k)
        f->at = plain_cols(s, pass, 0) + pass->ks * p->job->ldb;
    f->rows = f->at ? pass->ks : 0;
    s->fetch_tiles = ceil_div(s->rows, p->kernels->max_rows[panel->nv]);
}

/* Of the group of columns from a panel on to `end`, without those that fetch rows. */
static int64_t group_tiles(const block_piece *s, const block_panel *panel, int64_t end)
{
    const block_plan *p = s->plan;
    const int64_t panels = ceil_div(end - panel->j0, panel->b_step);
    return (panels - copies_rows(p, panel)) *
           ceil_div(s->rows, p->kernels->max_rows[panel->nv]);
}

/* What is packed after a group of columns that ends before j: the next one, or the
 * first of the next pass. */
static void fetch_group(block_piece *s, const block_pass *pass, int64_t j,
                        int64_t tiles)
{
    const block_plan *p = s->plan;
    const sti_block_job *job = p->job;
    block_pass next = *pass;
    s->fetch[0].rows = 0;
    if (j == s->cols) {
        j = 0;
        next.k0 += pass->ks;
        next.ks = smaller(job->k - next.k0, pass->ks);
    }
    if (job->load_b || next.ks <= 0 || (next.k0 > pass->k0 && p->keep_b))
        return;
    const int64_t cols = group_cols(s, j);
    s->fetch[0] = (block_fetch){.at = plain_cols(s, &next, j),
                                .ld = job->ldb,
                                .rows = job->b_columns ? cols : next.ks,
                                .cols = job->b_columns ? next.ks : cols};
    s->fetch_tiles = tiles;
}

/* Short passes: what the next block of rows copies of A, or the next pass of A and B.
 */
static void fetch_copied(block_piece *s, const block_pass *pass, int64_t m0, int64_t m1)
{
    const block_plan *p = s->plan;
    const sti_block_job *job = p->job;
    s->fetch[0].rows = s->fetch[1].rows = 0;
    int64_t next = s->m0 + p->block_rows, k0 = pass->k0;
    if (next >= m1) {
        next = m0;
        k0 += pass->ks;
    }
    if (!p->short_passes || k0 == job->k)
        return;
    const int64_t ks = smaller(job->k - k0, pass->ks);
    s->fetch[0] =
        (block_fetch){.at = job->a + s->item * job->a_item + k0 * job->lda + next,
                      .ld = job->lda,
                      .rows = ks,
                      .cols = smaller(p->block_rows, m1 - next)};
    if (k0 > pass->k0)
        s->fetch[1] =
            (block_fetch){.at = job->b + s->item * job->b_item + k0 * job->ldb + s->n0,
                          .ld = job->ldb,
                          .rows = ks,
                          .cols = s->cols};
    s->fetch_tiles = ceil_div(s->rows, PART_ROWS) * ceil_div(s->cols, PART_COLS);
}

/* All columns of the block, a panel after the other; those of a group are packed just
 * before its first. */
static void piece_pass(block_piece *s, const block_pass *pass)
{
    const block_plan *p = s->plan;
    int64_t from = 0; /* s->b holds columns from .. packed */
    int64_t packed = pass->packed ? s->cols : 0;
    for (int64_t j = 0; j < s->cols;) {
        block_panel panel = {.j0 = j, .copy_rows = p->copy_a && j == 0};
        panel.cols = panel_cols(s, s->cols - j, &panel.nv);
        if (!p->copy_b) {
            panel.b = plain_cols(s, pass, j);
            panel.b_step = p->job->ldb;
        } else {
            panel.b_step = (int64_t)panel.nv * STI_PANEL;
            if (j >= packed) {
                from = p->keep_b ? 0 : j;
                packed = j + group_cols(s, j);
                pack_cols(s, pass, j, packed - j, panel.b_step,
                          s->b + (j - from) * pass->ks);
                if (!p->short_passes)
                    fetch_group(s, pass, packed, group_tiles(s, &panel, packed));
            }
            panel.b = s->b + (j - from) * pass->ks;
        }
        if (p->across) {
            panel.count = equal_panels(s, j, p->copy_b ? packed : s->cols);
            across_tiles(s, pass, &panel);
            j += panel.count * panel.cols;
            continue;
        }
        if (!p->short_passes && (!p->copy_b || pass->packed))
            fetch_columns(s, pass, &panel);
        panel_tiles(s, pass, &panel);
        j += panel.cols;
    }
}

/* Passes over k that the caches like. */
static int64_t pass_length(const block_plan *p, int64_t k)
{
    const int64_t passes = k > 0 ? ceil_div(k, p->block_k) : 1;
    return round_up(ceil_div(k, passes), 16);
}

/* One chain of a block of partial sums: k0 .. k1. */
static void piece_chain(block_piece *s, block_pass pass, bool last, int64_t k0,
                        int64_t k1)
{
    const int64_t length = pass_length(s->plan, k1 - k0);
    do {
        pass.k0 = k0;
        pass.ks = smaller(k1 - k0, length);
        pass.finish = last && k0 + pass.ks == k1;
        piece_pass(s, &pass);
        pass.load = true;
        k0 += pass.ks;
    } while (k0 < k1);
}

static void block_copy(float *dst, int64_t dst_ld, const float *src, int64_t src_ld,
                       int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(dst + r * dst_ld, src + r * src_ld, (size_t)cols * sizeof *dst);
}

/* left += right, the two sides of a tree node. */
static void block_join(const block_piece *s, float *left, const float *right)
{
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t j = 0; j < s->cols; j++)
            left[r * s->plan->block_cols + j] += right[r * s->plan->block_cols + j];
}

static void block_finish(const block_piece *s, float *block)
{
    const sti_block_job *job = s->plan->job;
    const float *bias = job->bias;
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t j = 0; j < s->cols; j++) {
            float *v = block + r * s->plan->block_cols + j;
            if (bias)
                *v += bias[s->item * job->bias_item + s->n0 + j];
            if (job->relu)
                *v = 0.0F > *v ? 0.0F : *v;
        }
}

/* More than 4096 k: a stack of partial blocks,
 * joined whenever two have equal weight. */
static void piece_chunks(block_piece *s, float *c)
{
    const block_plan *p = s->plan;
    const sti_block_job *job = p->job;
    const int64_t ld = p->block_cols;
    int top = 0; /* blocks on the stack */
    for (int64_t chunk = 0; chunk < p->chunks; chunk++) {
        float *block = s->partial + (size_t)top * p->c_floats;
        const int64_t k0 = chunk * STI_GEMM_CHUNK;
        const int64_t k1 = job->k - k0 < STI_GEMM_CHUNK ? job->k : k0 + STI_GEMM_CHUNK;
        const bool load = chunk == 0 && job->accumulate;
        if (load)
            block_copy(block, ld, c, job->ldc, s->rows, s->cols);
        piece_chain(s, (block_pass){.c = block, .ldc = ld, .load = load}, false, k0,
                    k1);
        top++;
        for (int64_t count = chunk + 1; count % 2 == 0; count /= 2, top--)
            block_join(s, s->partial + (size_t)(top - 2) * p->c_floats,
                       s->partial + (size_t)(top - 1) * p->c_floats);
    }
    for (; top > 1; top--)
        block_join(s, s->partial + (size_t)(top - 2) * p->c_floats,
                   s->partial + (size_t)(top - 1) * p->c_floats);
    block_finish(s, s->partial);
    if (!job->store_c)
        block_copy(c, job->ldc, s->partial, ld, s->rows, s->cols);
}

/* One block of C through all of k, summed up in scratch. */
static void piece_block(block_piece *s)
{
    const block_plan *p = s->plan;
    const sti_block_job *job = p->job;
    float *c =
        job->store_c ? NULL : job->c + s->item * job->c_item + s->m0 * job->ldc + s->n0;
    if (p->chunks > 1)
        piece_chunks(s, c);
    else
        piece_chain(s, (block_pass){.c = s->partial, .ldc = p->block_cols}, true, 0,
                    job->k);
    if (job->store_c)
        job->store_c(job, s->item, s->m0, s->rows, s->n0, s->cols, s->partial,
                     p->block_cols);
}

/* The columns n0 .. of rows m0 .. m1, summed up where they are: passes over k, and in
 * each all blocks of rows. */
static void piece_columns(block_piece *s, int64_t m0, int64_t m1)
{
    const block_plan *p = s->plan;
    const sti_block_job *job = p->job;
    const int64_t length = pass_length(p, job->k);
    block_pass pass = {.ldc = job->ldc, .load = job->accumulate};
    do {
        pass.ks = smaller(job->k - pass.k0, length);
        pass.finish = pass.k0 + pass.ks == job->k;
        pass.packed = false;
        for (s->m0 = m0; s->m0 < m1; s->m0 += p->block_rows) {
            s->rows = smaller(p->block_rows, m1 - s->m0);
            pass.c = job->c + s->item * job->c_item + s->m0 * job->ldc + s->n0;
            fetch_copied(s, &pass, m0, m1);
            piece_pass(s, &pass);
            pass.packed = p->keep_b;
        }
        pass.load = true;
        pass.k0 += pass.ks;
    } while (pass.k0 < job->k);
}

/* Products whose copies of A and B would cost more than they save. */
static void piece_in_place(const block_piece *s, int64_t m1, int64_t n1)
{
    static const int64_t zero[1] = {0};
    const sti_block_job *job = s->plan->job;
    sti_brgemm g = {
        .n = n1 - s->n0,
        .k = job->k,
        .lda = job->lda,
        .ldb = job->ldb,
        .ldc = job->ldc,
        .trans_a = job->a_steps,
        .accumulate = job->accumulate,
        .relu = job->relu,
        .bias = job->bias ? job->bias + s->item * job->bias_item + s->n0 : NULL,
    };
    const float *a = job->a + s->item * job->a_item;
    const float *b = job->b + s->item * job->b_item + s->n0;
    float *c = job->c + s->item * job->c_item + s->n0;
    for (int64_t m0 = s->m0; m0 < m1; m0 += g.m) {
        g.m = smaller(IN_PLACE_ROWS, m1 - m0);
        sti_brgemm_offset_f32(&g, 1, a + m0 * (job->a_steps ? 1 : job->lda), b, zero,
                              zero, c + m0 * job->ldc);
    }
}

static void piece_run(void *arg, int64_t piece, int worker)
{
    const block_plan *p = arg;
    const sti_block_job *job = p->job;
    block_piece s = {.plan = p};
    const int64_t n0 = piece % p->col_parts * p->part_cols;
    piece /= p->col_parts;
    const int64_t m0 = piece % p->row_parts * p->part_rows;
    const int64_t n1 = smaller(job->n, n0 + p->part_cols);
    const int64_t m1 = smaller(job->m, m0 + p->part_rows);
    s.item = piece / p->row_parts;
    if (p->in_place) {
        s.n0 = n0;
        s.m0 = m0;
        piece_in_place(&s, m1, n1);
        return;
    }
    s.a = p->scratch + (size_t)worker * p->worker_floats;
    s.b = s.a + p->a_floats;
    s.partial = s.b + p->b_floats;
    for (s.n0 = n0; s.n0 < n1; s.n0 += p->block_cols) {
        s.cols = smaller(p->block_cols, n1 - s.n0);
        if (p->levels == 0) {
            piece_columns(&s, m0, m1);
            continue;
        }
        for (s.m0 = m0; s.m0 < m1; s.m0 += p->block_rows) {
            s.rows = smaller(p->block_rows, m1 - s.m0);
            piece_block(&s);
        }
    }
}

void sti_block_run(const sti_team *team, const sti_block_job *job, void *scratch)
{
    if (job->m == 0 || job->n == 0)
        return;
    block_plan p = block_plan_make(job, team->threads);
    p.kernels = sti_gemm_kernels_now();
    p.scratch = sti_block_align(scratch);
    sti_team_run(team, job->items * p.row_parts * p.col_parts, piece_run, &p);
}

/* ReLU bits */

enum { MASK_PIECE = 1 << 16 }; /* elements */

typedef struct mask_job {
    const float *y;
    uint8_t *mask;
    int64_t count;
    const sti_gemm_kernels *kernels;
} mask_job;

static void mask_piece(void *arg, int64_t piece, int worker)
{
    const mask_job *job = arg;
    const int64_t i = piece * MASK_PIECE;
    const int64_t left = job->count - i;
    (void)worker;
    job->kernels->mask(job->y + i, left < MASK_PIECE ? left : MASK_PIECE,
                       job->mask + i / 8);
}

void sti_block_mask(const sti_team *team, const float *y, int64_t count, uint8_t *mask)
{
    mask_job job = {
        .y = y, .mask = mask, .count = count, .kernels = sti_gemm_kernels_now()};
    sti_team_run(team, ceil_div(count, MASK_PIECE), mask_piece, &job);
}
