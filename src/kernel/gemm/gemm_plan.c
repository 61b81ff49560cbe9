/* The planner of the blocked product: the only place where its blocks, copies and
 * scratch are decided. */
#include "kernel/gemm/gemm_plan.h"

#include "kernel/gemm/gemm_block.h"
#include "kernel/machine/cpu_kind.h"

/* The block sizes, sorted by unit. Each is a limit that a plan obeys, found by
 * measurement; none changes a bit of a result. A "block" is what stays in the
 * second-level cache, a "pass" a range of k that a block goes through at once. */

/* Limits in rows of A and C. */
enum {
    FEW_ROWS = 24,         /* up to so many, B in place is read in long passes */
    ALIASED_ROWS = 24,     /* up to so many, a B whose rows share sets is in place */
    LOW_PANEL_ROWS = 16,   /* up to so many, packed panels are short, */
    LOW_ROWS = 6,          /* up to so many, tiles are not three panels wide */
    SHORT_K_ROWS = 56,     /* of a block where k is short */
    PARTIAL_ROWS = 280,    /* of a block whose partial sums take scratch */
    LEAST_BLOCK_ROWS = 96, /* of a block, whatever the limits in floats say */
    TRANSPOSED_GROUP_ROWS = 128 /* up to so many, a B in columns goes in small groups */
};

/* Limits in columns of B and C, or in floats between their rows. */
enum {
    IN_PLACE_COLS = 256,      /* in place as a whole; */
    IN_PLACE_LD = 512,        /* floats between rows of A and of B there; */
    IN_PLACE_LOW_COLS = 1000, /* both where k is short and the rows are few */
    COPY_A_COLS = 64,         /* more than so many pay for a copy of A, */
    COPY_ALIASED_A_COLS = 48, /* or so many where its rows share sets and B is copied */
    WIDE_COLS = 5 * STI_PANEL,  /* from so many on, tiles are three panels wide */
    GROUP_COLS = 192,           /* packed at a time, */
    PANEL_GROUP_COLS = 64,      /* where it is packed by panels, */
    TRANSPOSED_GROUP_COLS = 64, /* and of a B in columns for few rows */
    PANELS_MOST = 4             /* that a group may be longer by */
};

/* Limits in steps of k. */
enum {
    IN_PLACE_K = 256,     /* up to so many, A and B are read in place */
    IN_PLACE_LOW_K = 8,   /* up to so many, C is all that moves */
    SHORT_K = 64,         /* up to so many, k is short: low blocks of A */
    ALIASED_LONG_K = 128, /* from so many on, tiles last (aliased_long_rows) */
    PARTIAL_K = 256,      /* a pass where partial sums take scratch, */
    SHORT_PASS_K = 192,   /* in short passes, */
    PANEL_K = 128,        /* where B is packed by panels: 24 KiB of the widest, */
    LOW_PANEL_K = 64,     /* the same for few rows (LOW_PANEL_ROWS), */
    TRANSPOSED_K = 1024,  /* where a B in columns goes in small groups, */
    LANES_K = 256,        /* where rows are lanes: B stays in the first-level cache, */
    LANES_FAR_K = 64      /* and pages of a far A are gone through one by one */
};

/* Limits in floats. */
enum {
    A_BLOCK = 160 << 10,      /* of A copied by a thread, */
    A_BLOCK_TEAM = 320 << 10, /* and by all together (LEAST_BLOCK_ROWS go before) */
    PARTIAL_BLOCK = 72 << 10, /* of C held as partial sums */
    STREAM_BLOCK = 4096,      /* of C where B streams past it */
    SMALL_C = 512 << 10,      /* up to so many, C stays in the second-level cache */
    LANES_FAR_A = 3 << 20,    /* from so many on, an A in steps comes from memory */
    KEPT_B = 1 << 20,         /* of B kept for all rows by a thread, */
    KEPT_B_TEAM = 4 << 20,    /* and by all together, */
    KEPT_B_LEAST = 256 << 10  /* but so many in any case */
};

/* Limits that differ between kinds of CPU, a column each. They were measured on Zen 4,
 * with AVX2 and with AVX-512; those of AVX512_FULL on Sapphire and Emerald Rapids. */
typedef struct kind_limits {
    /* Floats: up to so many, an A in steps of k is read in place. */
    int64_t in_place_a_k_major;
    /* Rows: up to so many, a B is read in place whose rows share no set and begin on a
     * cache line, */
    int64_t whole_line_rows;
    /* or anywhere, so that most of its vectors lie on two lines; */
    int64_t split_line_rows;
    /* and one whose rows alias sets where tiles last, since the next panel is fetched
     * meanwhile. */
    int64_t aliased_long_rows;
    /* Rows: up to so many, it is packed by panels instead; 0: never. */
    int64_t panel_rows;
} kind_limits;

static const kind_limits limits_of[STI_CPU_KINDS] = {
    [STI_CPU_AVX2] = {.in_place_a_k_major = 24 << 10,
                      .whole_line_rows = 1024,
                      .split_line_rows = 1024,
                      .aliased_long_rows = 24},
    [STI_CPU_AVX512_HALF] = {.in_place_a_k_major = 128 << 10,
                             .whole_line_rows = 1024,
                             .split_line_rows = 1024,
                             .aliased_long_rows = 128},
    [STI_CPU_AVX512_FULL] = {.in_place_a_k_major = 24 << 10,
                             .whole_line_rows = 1024,
                             .split_line_rows = 24,
                             .aliased_long_rows = 24,
                             .panel_rows = 128},
};

/* Equal blocks of at most `most`, a multiple of `unit`. */
static int64_t block_length(int64_t length, int64_t most, int64_t unit)
{
    return length == 0
               ? unit
               : sti_gemm_round_up(
                     sti_gemm_ceil_div(length, sti_gemm_ceil_div(length, most)), unit);
}

static int stack_levels(int64_t chunks)
{
    int levels = 1;
    for (int64_t c = chunks; c > 1; c /= 2)
        levels++;
    return levels;
}

/* Rows so far apart fall on one set of the first-level cache, and those of a tile push
 * each other out. */
static bool aliases_cache_sets(int64_t ld)
{
    return ld % 1024 == 0;
}

/* Whether C is what moves, and but moves out. */
static bool store_bound(const sti_block_job *job)
{
    return job->k <= SHORT_K && !job->load_a && !job->load_b && !job->bias &&
           !job->accumulate;
}

/* ---- the grid of pieces ---- */

/* The time of a piece, in multiply-adds of a row of A with one of B: an element packed
 * is worth some, one of B that is read in place fewer. */
static double piece_cost(const sti_block_job *job, int64_t rows, int64_t cols)
{
    const bool plain_b =
        !job->load_b && !job->b_columns && !aliases_cache_sets(job->ldb);
    return (double)rows * (double)cols + 16.0 * (double)rows +
           (plain_b ? 2.0 : 16.0) * (double)cols;
}

/* A grid of pieces for so many threads: cut where less is then packed twice, A by every
 * column of the grid and B by every row. */
static void plan_grid(const sti_block_job *job, sti_block_plan *p)
{
    const int64_t m = job->m, n = job->n, threads = p->threads;
    p->row_parts = p->col_parts = 1;
    p->part_rows = m;
    p->part_cols = n;
    if (threads <= 1 || job->items >= 4 * threads || m * n == 0 ||
        job->k < STI_BLOCK_SHARED / (m * n))
        return;
    /* Threads that write parts of one row of C would fetch each other's lines. */
    const bool whole_rows = store_bound(job) && m >= threads * SHORT_K_ROWS;
    double best = 0;
    for (int64_t r = whole_rows ? threads : 1; r <= threads; r++) {
        const int64_t c = sti_gemm_ceil_div(threads, r);
        const int64_t rows = sti_gemm_ceil_div(m, r);
        const int64_t cols =
            block_length(n, sti_gemm_ceil_div(n, c), STI_GEMM_TILE_COLS);
        const double cost = piece_cost(job, rows, sti_gemm_min(cols, n));
        if (best == 0 || cost < best) {
            best = cost;
            p->part_rows = rows;
            p->part_cols = cols;
        }
    }
    p->row_parts = sti_gemm_ceil_div(m, p->part_rows);
    p->col_parts = sti_gemm_ceil_div(n, p->part_cols);
}

/* ---- the path ---- */

/* A job and the size of its largest piece. */
typedef struct piece_size {
    const sti_block_job *job;
    int64_t rows, cols;
    int levels;
} piece_size;

/* Up to so many rows read B in place. */
static int64_t in_place_rows(const sti_block_job *job)
{
    const kind_limits *limits = &limits_of[sti_cpu_kind_now()];
    if (!aliases_cache_sets(job->ldb))
        return job->ldb % STI_PANEL == 0 ? limits->whole_line_rows
                                         : limits->split_line_rows;
    return job->k < ALIASED_LONG_K ? ALIASED_ROWS : limits->aliased_long_rows;
}

/* Whether few rows meet a B whose rows alias sets, which tile after tile would fetch
 * from the second-level cache anew, through a page of its own for each step of k: then
 * a panel is packed at a time, in short passes that the first-level cache holds. */
static bool packs_by_panel(const piece_size *s)
{
    const sti_block_job *job = s->job;
    return !job->load_b && !job->b_columns && aliases_cache_sets(job->ldb) &&
           job->k >= ALIASED_LONG_K &&
           s->rows <= limits_of[sti_cpu_kind_now()].panel_rows;
}

/* Whether steps of A meet at least twice as many rows as columns, and C stays near. */
static bool is_tall(const piece_size *s)
{
    return s->job->a_k_major && s->levels == 0 && s->rows > ALIASED_ROWS &&
           s->rows >= 2 * s->cols && s->rows * s->cols <= SMALL_C;
}

/* Whether B is copied. It is read as it lies, a panel of it from the second-level cache
 * by tile after tile: a copy pays where its steps would push each other out of there,
 * where very many rows read it, or in short passes. */
static bool copies_b(const piece_size *s)
{
    const sti_block_job *job = s->job;
    return job->load_b || job->b_columns || s->rows > in_place_rows(job) ||
           is_tall(s) || packs_by_panel(s);
}

/* Whether so many columns read A that a copy pays. */
static bool many_columns(const piece_size *s)
{
    const bool aliased = copies_b(s) && aliases_cache_sets(s->job->lda);
    return s->cols > (aliased ? COPY_ALIASED_A_COLS : COPY_A_COLS);
}

/* Whether A in steps is read in place too slowly: steps lie apart, and each tile reads
 * few floats of their lines, which fall on few sets of the first-level cache. */
static bool steps_are_slow(const piece_size *s)
{
    const int64_t floats = limits_of[sti_cpu_kind_now()].in_place_a_k_major;
    return s->job->a_k_major && many_columns(s) && s->rows * s->job->k > floats;
}

/* Whether passes are short: see the path. */
static bool takes_short_passes(const piece_size *s)
{
    const sti_block_job *job = s->job;
    return many_columns(s) && is_tall(s) && !job->load_b && !job->b_columns;
}

static bool fits_in_place(const piece_size *s)
{
    const sti_block_job *job = s->job;
    const bool low = job->k > IN_PLACE_LOW_K && job->k <= SHORT_K &&
                     s->rows <= STI_GEMM_IN_PLACE_ROWS;
    return !job->load_a && !job->load_b && !job->b_columns && s->levels == 0 &&
           job->k <= IN_PLACE_K &&
           s->cols <= (low ? IN_PLACE_LOW_COLS : IN_PLACE_COLS) &&
           job->lda <= IN_PLACE_LD &&
           job->ldb <= (low ? IN_PLACE_LOW_COLS : IN_PLACE_LD) && !steps_are_slow(s);
}

static sti_gemm_path choose_path(const piece_size *s)
{
    const sti_block_job *job = s->job;
    if (!job->load_a && !job->load_b &&
        sti_gemm_takes_lanes(job->m, job->n, job->k, job->a_k_major))
        return STI_GEMM_ROWS_AS_LANES;
    if (fits_in_place(s))
        return STI_GEMM_IN_PLACE;
    if (!job->load_b && job->m > 0 && job->m <= STI_GEMM_STREAM_B_ROWS && job->k > 0)
        return STI_GEMM_STREAM_B;
    const bool copies_a = job->load_a || many_columns(s);
    if (copies_a && s->levels == 0 && store_bound(job))
        return STI_GEMM_ALONG_ROWS;
    return takes_short_passes(s) ? STI_GEMM_SHORT_PASSES : STI_GEMM_BY_PANELS;
}

static sti_gemm_a choose_a(const piece_size *s, sti_gemm_path path)
{
    if (path == STI_GEMM_IN_PLACE || path == STI_GEMM_ROWS_AS_LANES)
        return STI_GEMM_A_IN_PLACE;
    if (s->job->load_a)
        return STI_GEMM_A_GATHERED;
    if (path == STI_GEMM_STREAM_B || !many_columns(s))
        return STI_GEMM_A_IN_PLACE;
    if (!s->job->a_k_major)
        return STI_GEMM_A_QUADS;
    return path == STI_GEMM_BY_PANELS ? STI_GEMM_A_BY_TILE : STI_GEMM_A_BY_BLOCK;
}

/* (Whether packed groups are kept is decided with the blocks of rows.) */
static sti_gemm_b choose_b(const piece_size *s, sti_gemm_path path)
{
    bool copies = copies_b(s);
    if (path == STI_GEMM_IN_PLACE || path == STI_GEMM_STREAM_B)
        copies = false;
    if (path == STI_GEMM_ROWS_AS_LANES)
        copies = s->job->b_columns;
    if (!copies)
        return STI_GEMM_B_IN_PLACE;
    return packs_by_panel(s) ? STI_GEMM_B_BY_PANEL : STI_GEMM_B_BY_GROUP;
}

static void plan_path(const sti_block_job *job, sti_block_plan *p)
{
    const piece_size s = {.job = job,
                          .rows = sti_gemm_min(p->part_rows, job->m),
                          .cols = sti_gemm_min(p->part_cols, job->n),
                          .levels = p->levels};
    p->path = choose_path(&s);
    p->a = choose_a(&s, p->path);
    p->b = choose_b(&s, p->path);
    p->wide = p->a != STI_GEMM_A_IN_PLACE && s.cols >= WIDE_COLS && s.rows > LOW_ROWS &&
              !takes_short_passes(&s);
}

/* ---- blocks ---- */

/* Whether a B in columns is transposed for few rows: long passes, small groups. */
static bool transposes_for_few(const sti_block_job *job, const sti_block_plan *p)
{
    return p->b != STI_GEMM_B_IN_PLACE && job->b_columns && p->levels == 0 &&
           job->m <= TRANSPOSED_GROUP_ROWS;
}

/* Steps of k at a time. Where B is read in place for few rows, passes are long, as C
 * goes by in each. */
static int64_t pass_limit(const sti_block_job *job, const sti_block_plan *p)
{
    const int64_t k = sti_gemm_min(job->k, STI_GEMM_CHUNK);
    if (p->path == STI_GEMM_STREAM_B)
        return STI_GEMM_CHUNK;
    if (p->b == STI_GEMM_B_IN_PLACE && job->m <= FEW_ROWS)
        return STI_BLOCK_K;
    if (p->b == STI_GEMM_B_BY_PANEL)
        return job->m <= LOW_PANEL_ROWS ? LOW_PANEL_K : PANEL_K;
    if (p->path == STI_GEMM_ROWS_AS_LANES)
        return job->a_k_major && job->m * k > LANES_FAR_A ? LANES_FAR_K : LANES_K;
    if (transposes_for_few(job, p))
        return TRANSPOSED_K;
    if (p->levels > 0)
        return PARTIAL_K;
    return p->path == STI_GEMM_SHORT_PASSES ? SHORT_PASS_K : STI_BLOCK_K;
}

/* Rows of A at a time: as much as the second-level cache likes, but not more for all
 * threads together than a few of them would take. Where k is short, C is what moves:
 * low blocks over all columns then write it in order. */
static int64_t rows_limit(const sti_block_job *job, const sti_block_plan *p)
{
    if (p->levels > 0)
        return PARTIAL_ROWS;
    if (job->k <= SHORT_K)
        return SHORT_K_ROWS;
    const int64_t floats = sti_gemm_min(A_BLOCK, A_BLOCK_TEAM / p->threads);
    const int64_t rows = floats / (p->block_k + 16);
    return rows < LEAST_BLOCK_ROWS ? LEAST_BLOCK_ROWS : rows;
}

/* Columns at a time: of packed ones, as many as may be kept. */
static int64_t cols_limit(const sti_block_job *job, const sti_block_plan *p,
                          int64_t cols)
{
    if (p->path == STI_GEMM_STREAM_B)
        return STREAM_BLOCK / job->m;
    if (p->levels > 0)
        return PARTIAL_BLOCK / p->block_rows;
    if (p->b != STI_GEMM_B_KEPT)
        return cols;
    const int64_t floats = sti_gemm_min(KEPT_B, KEPT_B_TEAM / p->threads);
    return (floats < KEPT_B_LEAST ? KEPT_B_LEAST : floats) / p->block_k;
}

static void plan_blocks(const sti_block_job *job, sti_block_plan *p)
{
    const int64_t k = sti_gemm_min(job->k, STI_GEMM_CHUNK);
    const int64_t rows = sti_gemm_min(p->part_rows, job->m);
    const int64_t cols = sti_gemm_min(p->part_cols, job->n);
    p->group_cols = transposes_for_few(job, p) ? TRANSPOSED_GROUP_COLS : GROUP_COLS;
    if (p->b == STI_GEMM_B_BY_PANEL)
        p->group_cols = PANEL_GROUP_COLS;
    p->block_k = block_length(k, pass_limit(job, p), 16);
    p->block_rows =
        block_length(rows, rows_limit(job, p), p->wide ? 9 : STI_GEMM_TILE_ROWS);
    if (p->b == STI_GEMM_B_BY_GROUP && p->levels == 0 && p->block_rows < rows)
        p->b = STI_GEMM_B_KEPT;
    p->block_cols =
        block_length(cols, cols_limit(job, p, cols), p->wide ? 48 : STI_GEMM_TILE_COLS);
}

/* ---- scratch ---- */

static void plan_scratch(const sti_block_job *job, sti_block_plan *p)
{
    const int64_t ks = sti_gemm_round_up(sti_gemm_min(job->k, p->block_k), 16);
    const int64_t packed_cols = p->b == STI_GEMM_B_KEPT ? p->block_cols : p->group_cols;
    p->a_ld = ks + 16;
    p->a_floats = p->a == STI_GEMM_A_IN_PLACE ? 0 : (size_t)(p->block_rows * p->a_ld);
    p->b_floats = p->b == STI_GEMM_B_IN_PLACE
                      ? 0
                      : (size_t)(ks * (packed_cols + PANELS_MOST * STI_PANEL));
    p->c_floats = (size_t)(p->block_rows * p->block_cols);
    const size_t floats = p->a_floats + p->b_floats + (size_t)p->levels * p->c_floats;
    p->worker_floats = (size_t)sti_gemm_round_up((int64_t)floats, 16);
    p->scratch_bytes = 64 + (size_t)p->threads * p->worker_floats * sizeof(float);
}

sti_block_plan sti_block_plan_make(const sti_block_job *job, int threads)
{
    sti_block_plan p = {.threads = threads};
    p.chunks = job->k > 0 ? sti_gemm_ceil_div(job->k, STI_GEMM_CHUNK) : 1;
    p.levels = p.chunks > 1 ? stack_levels(p.chunks) : job->store_c != NULL;
    plan_grid(job, &p);
    plan_path(job, &p);
    plan_blocks(job, &p);
    plan_scratch(job, &p);
    return p;
}

size_t sti_block_scratch_bytes(const sti_block_job *job, int threads)
{
    size_t most = 0;
    for (int t = 1; t <= threads; t++) {
        const size_t bytes = sti_block_plan_make(job, t).scratch_bytes;
        most = bytes > most ? bytes : most;
    }
    return most;
}
