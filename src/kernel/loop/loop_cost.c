/* The model of cost: a least-recently-used list of tiles with a mark where each cache
 * ends. Tiles are numbered: of A and B where they lie, their packed slots, and of C. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/loop/loop_tune.h"

enum { L1, L2, LLC, FAR, ZONES };

/* What no calibration gives, fitted, with the exponent of overlap(), to the times of
 * every candidate of ten shapes on one and two threads: 400x400x600, 1100x250x300,
 * 200x1200x400, 600x450x500, 72x700x1800, 384x512x640, 1536x192x288, 100x1536x512,
 * 500x300x700, 64x500x2304. */
#define CALL_S      28e-9  /* a call: finding slots, and the body itself */
#define TILE_FACTOR 1.35   /* a tile of registers among others costs more than alone */
#define LLC_FACTOR  1.8    /* tiles are read faster than a stream of 16 MiB */
#define FROM_FACTOR 0.75   /* reading what is packed: part of it hides */
#define ROW_S       0.6e-9 /* and a row of it that comes from beyond the second level */
#define C_FACTOR    0.33   /* stores of C wait for nobody */
#define LINE_SHARE  45     /* travels of a cache line between threads in a fork */
#define LINE_WHOLE                                                    \
    0.7 /* where rows begin with lines, prefetching makes them travel \
         */

/* A tile; links are numbers of tiles, 0 is the head of the list. */
typedef struct row {
    int32_t newer, older;
    int32_t bytes;
    int16_t zone; /* where it lies, ZONES: never touched */
} row;

typedef struct tracer {
    const sti_machine *machine;
    const sti_loop_gemm *gemm;
    row *rows;
    int64_t *tags;             /* what the slots of this thread hold */
    int32_t oldest[3];         /* of the first zones; 0: the zone is empty */
    double inside[3], room[3]; /* bytes */
    double bytes_per_s[ZONES];
    int cold; /* zone of what was never touched */
    int64_t k_tiles, m_tiles, n_tiles;
    int32_t first_a, first_b, first_c, first_slot_a, first_slot_b;
    uint16_t *owner; /* thread of every tile of C */
    double seconds;
} tracer;

void sti_loop_trace_fini(sti_loop_trace *trace)
{
    sti_free(trace->rows);
    *trace = (sti_loop_trace){0};
}

/* ---- the list ---- */

static void list_remove(tracer *t, int32_t i)
{
    row *r = &t->rows[i];
    if (r->zone < FAR && t->oldest[r->zone] == i)
        t->oldest[r->zone] =
            r->newer > 0 && t->rows[r->newer].zone == r->zone ? r->newer : 0;
    if (r->zone < FAR)
        t->inside[r->zone] -= r->bytes;
    t->rows[r->newer].older = r->older;
    t->rows[r->older].newer = r->newer;
}

/* The oldest tiles of a full zone go to the next. */
static void list_settle(tracer *t, int zone)
{
    while (t->inside[zone] > t->room[zone]) {
        const int32_t i = t->oldest[zone];
        row *r = &t->rows[i];
        t->oldest[zone] = r->newer > 0 && t->rows[r->newer].zone == zone ? r->newer : 0;
        t->inside[zone] -= r->bytes;
        r->zone = (int16_t)(zone + 1);
        if (zone + 1 == FAR)
            continue;
        t->inside[zone + 1] += r->bytes;
        if (t->oldest[zone + 1] == 0)
            t->oldest[zone + 1] = i;
    }
}

/* Touch a tile; gives the zone where it was found. */
static int list_touch(tracer *t, int64_t tile, int64_t bytes)
{
    const int32_t i = (int32_t)tile;
    row *r = &t->rows[i];
    const int found = r->zone == ZONES ? t->cold : r->zone;
    if (r->zone != ZONES)
        list_remove(t, i);
    r->bytes = (int32_t)bytes;
    r->zone = L1;
    r->newer = 0;
    r->older = t->rows[0].older;
    t->rows[r->older].newer = i;
    t->rows[0].older = i;
    t->inside[L1] += r->bytes;
    if (t->oldest[L1] == 0)
        t->oldest[L1] = i;
    for (int zone = L1; zone < FAR; zone++)
        list_settle(t, zone);
    return found;
}

/* ---- a call ---- */

/* Arithmetic and the reading of both operands go on at once; the slower rules, and the
 * others are not quite free: the norm of exponent 3/2, between the sum and the largest.
 */
static double overlap(double u, double a, double b)
{
    const double sum = u * sqrt(u) + a * sqrt(a) + b * sqrt(b);
    return cbrt(sum * sum);
}

/* Columns as the tiles do them: whole panels of 32, then of 16. */
static double padded_columns(int64_t cols)
{
    return (double)((cols + STI_LOOP_PANEL - 1) / STI_LOOP_PANEL * STI_LOOP_PANEL);
}

typedef struct cut {
    int64_t k, ks, other, length;
} cut;

/* Where an operand, stored in so many rows, is read from; packs it first when its slot
 * holds another tile. */
static int touch_operand(tracer *t, const sti_loop_slots *s, const cut *c, int64_t rows,
                         int64_t source, int64_t first_slot, int64_t *tags)
{
    const int64_t bytes = c->ks * c->length * 4;
    if (s->direct)
        return list_touch(t, source, bytes);
    const int64_t slot = sti_loop_slot(s, c->k, c->other);
    if (tags[slot] != source) {
        const int from = list_touch(t, source, bytes);
        tags[slot] = source;
        t->seconds += FROM_FACTOR * (double)bytes / t->bytes_per_s[from] +
                      (double)bytes / t->machine->pack_bytes_per_s +
                      (from > L2 ? ROW_S * (double)rows : 0);
    }
    return list_touch(t, first_slot + slot, bytes);
}

static int nearest_for(const tracer *t, double bytes)
{
    return bytes <= t->room[L1] ? L1 : L2;
}

/* The tiles in registers: `rows_of` of them along m, `panels` along n. The first along
 * m meets B where it lies, the first along n A; the others find them near. */
static void call_tiles(tracer *t, const cut *a, const cut *b, int home_a, int home_b)
{
    const sti_machine *m = t->machine;
    const double panels = ceil((double)b->length / STI_LOOP_PANEL);
    const double strips = ceil((double)a->length / STI_LOOP_STRIP);
    const double cols = padded_columns(b->length) / panels;
    const double rows = (double)a->length / strips;
    const double u =
        2 * rows * cols * (double)a->ks / m->tile_flop_per_s + TILE_FACTOR * m->tile_s;
    const double bytes_a = rows * (double)a->ks * 4, bytes_b = cols * (double)a->ks * 4;
    const int near_a = nearest_for(t, bytes_a * strips + bytes_b);
    const int near_b = nearest_for(t, bytes_b * 1.5);
    const double near_a_s = bytes_a / t->bytes_per_s[near_a];
    const double near_b_s = bytes_b / t->bytes_per_s[near_b];
    const double far_a_s = bytes_a / t->bytes_per_s[home_a > near_a ? home_a : near_a];
    const double far_b_s = bytes_b / t->bytes_per_s[home_b > near_b ? home_b : near_b];
    t->seconds += overlap(u, far_a_s, far_b_s) +
                  (panels - 1) * overlap(u, near_a_s, far_b_s) +
                  (strips - 1) * overlap(u, far_a_s, near_b_s) +
                  (panels - 1) * (strips - 1) * overlap(u, near_a_s, near_b_s);
}

/* Where the neighbour along a row of C is another thread's, the lines at the border are
 * fetched by both, and travel. A fork is made of such
 * travels. */
static double shared_lines_s(const tracer *t, const cut *a, const cut *b, int thread)
{
    const uint16_t *of = t->owner + a->other * t->n_tiles;
    const bool left = b->other > 0 && of[b->other - 1] != thread;
    const bool right = b->other + 1 < t->n_tiles && of[b->other + 1] != thread;
    const double share = t->gemm->shape.ldc % 16 == 0 ? LINE_WHOLE : 1;
    return share * (double)((left + right) * a->length) * t->machine->fork_s /
           LINE_SHARE;
}

static void own_call(void *arg, const int64_t *at, const int64_t *to,
                     sti_loop_where where)
{
    tracer *t = arg;
    const sti_loop_gemm *g = t->gemm;
    (void)to;
    t->owner[at[STI_LOOP_M] / g->tile[STI_LOOP_M] * t->n_tiles +
             at[STI_LOOP_N] / g->tile[STI_LOOP_N]] = (uint16_t)where.thread;
}

static void trace_call(void *arg, const int64_t *at, const int64_t *to,
                       sti_loop_where where)
{
    tracer *t = arg;
    const sti_loop_gemm *g = t->gemm;
    const int64_t ks = to[STI_LOOP_K] - at[STI_LOOP_K];
    const int64_t k = at[STI_LOOP_K] / g->tile[STI_LOOP_K];
    const cut a = {k, ks, at[STI_LOOP_M] / g->tile[STI_LOOP_M],
                   to[STI_LOOP_M] - at[STI_LOOP_M]};
    const cut b = {k, ks, at[STI_LOOP_N] / g->tile[STI_LOOP_N],
                   to[STI_LOOP_N] - at[STI_LOOP_N]};
    int64_t *tags_b = t->tags + (g->a.direct ? 0 : g->a.k * g->a.other);
    const int home_a =
        touch_operand(t, &g->a, &a, g->shape.trans_a ? ks : a.length,
                      t->first_a + a.other * t->k_tiles + k, t->first_slot_a, t->tags);
    const int home_b =
        touch_operand(t, &g->b, &b, g->shape.trans_b ? b.length : ks,
                      t->first_b + b.other * t->k_tiles + k, t->first_slot_b, tags_b);
    const int64_t bytes_c = a.length * b.length * 4;
    const int home_c =
        list_touch(t, t->first_c + a.other * t->n_tiles + b.other, bytes_c);
    const bool load = k > 0 || g->shape.accumulate;
    t->seconds += CALL_S + C_FACTOR * (double)bytes_c * (load ? 2 : 1) /
                               t->bytes_per_s[home_c > L2 ? home_c : L2];
    t->seconds += shared_lines_s(t, &a, &b, where.thread);
    call_tiles(t, &a, &b, home_a, home_b);
}

/* ---- a product ---- */

static int64_t tiles_of(const sti_loop_gemm *g, int loop)
{
    const sti_loop_spec *s = &g->loop.spec[loop];
    return (s->end - s->start + s->step - 1) / s->step;
}

static int64_t slots_of(const sti_loop_slots *s)
{
    return s->direct ? 0 : s->k * s->other;
}

/* Numbers of the tiles; gives how many there are. */
static int64_t number_tiles(tracer *t)
{
    const sti_loop_gemm *g = t->gemm;
    t->k_tiles = tiles_of(g, STI_LOOP_K);
    t->m_tiles = tiles_of(g, STI_LOOP_M);
    t->n_tiles = tiles_of(g, STI_LOOP_N);
    int64_t next = 1;
    t->first_a = (int32_t)next;
    next += t->k_tiles * t->m_tiles;
    t->first_b = (int32_t)next;
    next += t->k_tiles * t->n_tiles;
    t->first_c = (int32_t)next;
    next += t->m_tiles * t->n_tiles;
    t->first_slot_a = (int32_t)next;
    next += slots_of(&g->a);
    t->first_slot_b = (int32_t)next;
    return next + slots_of(&g->b);
}

static void set_speeds(tracer *t)
{
    const sti_machine *m = t->machine;
    const sti_gemm_shape *s = &t->gemm->shape;
    const double threads = t->gemm->loop.threads;
    const double all = m->dram_all_bytes_per_s / threads;
    t->bytes_per_s[L1] = m->l1_bytes_per_s;
    t->bytes_per_s[L2] = m->l2_bytes_per_s;
    t->bytes_per_s[LLC] = LLC_FACTOR * m->llc_bytes_per_s;
    t->bytes_per_s[FAR] = m->dram_bytes_per_s < all ? m->dram_bytes_per_s : all;
    t->room[L1] = 0.75 * (double)m->l1_bytes;
    t->room[L2] = 0.8 * (double)m->l2_bytes;
    t->room[LLC] = 0.75 * (double)m->llc_bytes / threads;
    const double whole =
        4 * ((double)s->m * (double)s->k + (double)s->k * (double)s->n +
             (double)s->m * (double)s->n);
    t->cold = whole < t->room[LLC] ? LLC : FAR;
}

static void begin_thread(tracer *t, int64_t rows, int64_t tags)
{
    for (int64_t i = 0; i < rows; i++)
        t->rows[i] = (row){.zone = ZONES};
    memset(t->tags, 0, (size_t)tags * sizeof *t->tags);
    for (int zone = L1; zone < FAR; zone++) {
        t->oldest[zone] = 0;
        t->inside[zone] = 0;
    }
    t->seconds = 0;
}

/* Partial sums: every chunk but the first is added to another block. */
static double join_seconds(const tracer *t)
{
    const sti_gemm_shape *s = &t->gemm->shape;
    const double joins = ceil((double)s->k / STI_GEMM_CHUNK) - 1;
    return joins * 12 * (double)s->m * (double)s->n / t->bytes_per_s[LLC] /
           t->gemm->loop.threads;
}

/* The walk covers one part of C and one chunk of k; there are so many of them. */
static double parts_of(const sti_loop_gemm *g)
{
    const double walked = (double)g->part_rows * (double)g->part_cols *
                          (double)g->loop.spec[STI_LOOP_K].end;
    const sti_gemm_shape *s = &g->shape;
    return walked > 0 ? (double)s->m * (double)s->n * (double)s->k / walked : 0;
}

stint_status sti_loop_gemm_predict(const sti_machine *machine,
                                   const sti_loop_gemm *gemm, sti_loop_trace *trace,
                                   double *seconds_out)
{
    tracer t = {.machine = machine, .gemm = gemm};
    const int64_t rows = number_tiles(&t);
    const int64_t tags = slots_of(&gemm->a) + slots_of(&gemm->b);
    const int64_t cells = t.m_tiles * t.n_tiles;
    const int64_t words = /* of 8 bytes */
        (rows * (int64_t)sizeof(row) + 7) / 8 + tags + cells / 4 + 1;
    double slowest = 0;
    if (words > trace->room) {
        void *grown = sti_alloc_array(words, 8, "loop.trace");
        if (!grown)
            return STINT_E_MEMORY;
        sti_loop_trace_fini(trace);
        *trace = (sti_loop_trace){.rows = grown, .room = words};
    }
    t.tags = trace->rows;
    t.rows = (row *)(void *)(t.tags + tags);
    t.owner = (uint16_t *)(void *)(t.rows + rows);
    set_speeds(&t);
    for (int thread = 0; thread < gemm->loop.threads; thread++)
        sti_loop_walk(&gemm->loop, thread, own_call, &t);
    for (int thread = 0; thread < gemm->loop.threads; thread++) {
        begin_thread(&t, rows, tags);
        sti_loop_walk(&gemm->loop, thread, trace_call, &t);
        slowest = t.seconds > slowest ? t.seconds : slowest;
    }
    *seconds_out = slowest * parts_of(gemm) + join_seconds(&t) +
                   (gemm->loop.threads > 1 ? machine->fork_s : 0);
    return STINT_OK;
}
