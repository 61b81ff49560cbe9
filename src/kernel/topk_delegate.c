/* Delegates: the best (or two best) of each block stand for it.
 *
 * If k delegates come before a block's delegate, by key and then by block, then k
 * elements come before every element of the block, by key and then by index: the block
 * holds no winner. So exactly k blocks are gone back to, and there only elements at or
 * above the k-th delegate matter. With the two best of each block in one list, the same
 * argument holds for the block's second: where only the best is among the k, the rest
 * of the block is out, and the best itself is known with its position. */
#include "kernel/topk_key.h"

#include <math.h>
#include <stdatomic.h>

/* GUESS_LEAST: elements to look at for each winner that make a sample worth while. */
enum { SAMPLE_LINE = 16, GUESS_LEAST = 16 };
enum { TOUCH_BLOCKS = 16, TOUCH_BYTES = 1024 };

typedef struct first_pass {
    const sti_topk_job *job;
    int64_t per_piece; /* blocks */
    bool beta;
} first_pass;

static void first_piece(void *arg, int64_t piece, int worker)
{
    const first_pass *f = arg;
    const sti_topk_job *job = f->job;
    const int64_t first = piece * f->per_piece;
    const int64_t last = sti_topk_min(first + f->per_piece, job->plan->blocks);
    (void)worker;
    if (f->beta)
        job->ops->delegates2(job->view, job->plan->exponent, first, last,
                             job->room->delegates + 2 * first,
                             job->room->position + first);
    else
        job->ops->delegates(job->view, job->plan->exponent, first, last,
                            job->room->delegates + first);
}

static void make_delegates(const sti_topk_job *job, bool beta)
{
    const sti_topk_plan *p = job->plan;
    /* Whole groups of 16 blocks a piece. */
    const int64_t per_piece =
        sti_topk_ceil(sti_topk_ceil(p->blocks, p->pieces), 16) * 16;
    first_pass f = {job, per_piece, beta};
    sti_team_run(job->team, sti_topk_ceil(p->blocks, per_piece), first_piece, &f);
}

/* The k best delegates, packed, by ascending block. Their least key. */
static uint32_t choose_delegates(const sti_topk_job *job)
{
    sti_topk_room *room = job->room;
    const sti_topk_sink sink = {.packed = room->chosen};
    const sti_topk_view list = {.form = STI_TOPK_KEYS,
                                .x = (const unsigned char *)room->delegates,
                                .n = room->inner_plan.n};
    const sti_topk_job inner = {.team = job->team,
                                .plan = &room->inner_plan,
                                .ops = sti_topk_ops_now(STI_TOPK_KEYS),
                                .view = &list,
                                .room = room->inner,
                                .sink = &sink};
    sti_topk_row(&inner);
    uint32_t least = UINT32_MAX;
    for (int64_t i = 0; i < job->plan->k; i++) {
        const uint32_t key = (uint32_t)(room->chosen[i] >> 32);
        least = key < least ? key : least;
    }
    return least;
}

/* A list of candidates that never holds many more than k: when it is full, the k best
 * of it are kept, and then only what is strictly better than all but k - 1 of them
 * matters, for later indices are higher. */
typedef struct candidates {
    sti_topk_run run;
    int64_t capacity, k;
    uint32_t least; /* key that still matters */
    const sti_topk_cutter *cutter;
    atomic_uint *behind; /* where `least` is told */
} candidates;

static void keep_best(candidates *c)
{
    const uint64_t cut = sti_topk_cut(c->cutter, &c->run, 1, c->k);
    uint64_t *x = c->run.at, worst = UINT64_MAX;
    int64_t kept = 0;
    for (int64_t i = 0; i < c->run.count; i++)
        if (x[i] >= cut) {
            worst = x[i] < worst ? x[i] : worst;
            x[kept++] = x[i];
        }
    c->run.count = kept;
    const uint32_t key = (uint32_t)(worst >> 32);
    if (key >= c->least)
        c->least = key == UINT32_MAX ? key : key + 1;
    atomic_store_explicit(c->behind, c->least, memory_order_relaxed);
}

static void add_block(candidates *c, const sti_topk_job *job, int64_t block)
{
    const int a = job->plan->exponent;
    const int64_t begin = block << a;
    const int64_t end = sti_topk_min((block + 1) << a, job->view->n);
    if (c->run.count > c->k && c->run.count + (end - begin) > c->capacity)
        keep_best(c);
    c->run.count +=
        job->ops->rare(job->view, begin, end, c->least, c->run.at + c->run.count);
}

typedef struct walk_back {
    const sti_topk_job *job;
    uint32_t least;
    bool beta;
    int64_t capacity;
    /* What each piece has found still to matter behind it. Pieces begin with the most
     * that those before them have said by then: which is all of them with one thread,
     * and a matter of time alone with more. */
    atomic_uint *behind; /* [back] */
} walk_back;

/* Whether this entry and the next are the two best of one block. */
static bool both_chosen(const uint64_t *chosen)
{
    return sti_topk_packed_index(chosen[0]) / 2 == sti_topk_packed_index(chosen[1]) / 2;
}

/* Beta lists hold best and second of a block at 2s and 2s + 1; a pair stays together.
 */
static int64_t split_chosen(const walk_back *w, int64_t piece)
{
    const sti_topk_plan *p = w->job->plan;
    const uint64_t *chosen = w->job->room->chosen;
    const int64_t at = sti_topk_min(piece * sti_topk_ceil(p->k, p->back), p->k);
    if (w->beta && at > 0 && at < p->k && both_chosen(chosen + at - 1))
        return at + 1;
    return at;
}

/* Whether the block of chosen entry i is gone back to for it. */
static bool goes_back(const walk_back *w, int64_t i, int64_t end, uint32_t least)
{
    const uint64_t *chosen = w->job->room->chosen;
    if (!w->beta)
        return (uint32_t)(chosen[i] >> 32) >= least;
    return i + 1 < end && both_chosen(chosen + i) &&
           (uint32_t)(chosen[i + 1] >> 32) >= least;
}

/* Chosen entry i of a beta list; how many entries it used. Only where the second best
 * matters too can there be more in the block. */
static int64_t add_beta(candidates *c, const walk_back *w, int64_t i, int64_t end)
{
    const uint64_t *chosen = w->job->room->chosen;
    const int64_t block = sti_topk_packed_index(chosen[i]) / 2;
    if (goes_back(w, i, end, c->least)) {
        add_block(c, w->job, block);
        return 2;
    }
    if (c->run.count == c->capacity)
        keep_best(c);
    const uint32_t key = (uint32_t)(chosen[i] >> 32);
    const int64_t at = w->job->room->position[block];
    if (key >= c->least)
        c->run.at[c->run.count++] =
            sti_topk_pack(key, (block << w->job->plan->exponent) + at);
    return 1;
}

static inline void touch(const sti_topk_view *v, int64_t i)
{
    const size_t bytes = sti_topk_element_bytes(v->form);
    (void)*(const volatile unsigned char *)(v->x + (size_t)i * bytes);
}

/* The blocks of the next entries but a few, whose memory then comes while those few are
 * looked at. Each is in a page of its own, and prefetching may give up where the
 * address of a page is not known, so one byte of each is read. */
static void touch_blocks(const walk_back *w, int64_t from, int64_t end, uint32_t least)
{
    const sti_topk_view *v = w->job->view;
    const uint64_t *chosen = w->job->room->chosen;
    const int a = w->job->plan->exponent;
    const size_t bytes = sti_topk_element_bytes(v->form),
                 row_bytes = (size_t)v->n * bytes;
    for (int64_t i = from; i < end; i++) {
        const int64_t block = sti_topk_packed_index(chosen[i]) / (w->beta ? 2 : 1);
        if (!goes_back(w, i, w->job->plan->k, least))
            continue;
        const size_t begin = ((size_t)block << a) * bytes;
        const size_t most = bytes << a, span = most < TOUCH_BYTES ? most : TOUCH_BYTES;
        touch(v, block << a);
        for (size_t at = begin + 64; at < begin + span && at < row_bytes; at += 64)
            __builtin_prefetch(v->x + at);
    }
}

static void walk_piece(void *arg, int64_t piece, int worker)
{
    const walk_back *w = arg;
    const sti_topk_room *room = w->job->room;
    const int64_t end = split_chosen(w, piece + 1);
    sti_topk_cutter cutter = {.counts =
                                  room->cutter.counts + (piece + 1) * STI_TOPK_BINS};
    candidates c = {.run = {.at = room->pool + piece * w->capacity},
                    .capacity = w->capacity,
                    .k = w->job->plan->k,
                    .least = w->least,
                    .cutter = &cutter,
                    .behind = &w->behind[piece]};
    (void)worker;
    for (int64_t before = 0; before < piece; before++) {
        const uint32_t told =
            atomic_load_explicit(&w->behind[before], memory_order_relaxed);
        c.least = told > c.least ? told : c.least;
    }
    const int64_t begin = split_chosen(w, piece);
    int64_t ready = begin, touched = begin; /* by the step before, by this one */
    for (int64_t i = begin; i < end;) {
        if (i >= ready) {
            const int64_t next = sti_topk_min(touched + TOUCH_BLOCKS, end);
            touch_blocks(w, touched, next, c.least);
            ready = sti_topk_max(touched, i + 1);
            touched = next;
        }
        if ((uint32_t)(room->chosen[i] >> 32) < c.least) {
            i++;
            continue;
        }
        if (w->beta)
            i += add_beta(&c, w, i, end);
        else
            add_block(&c, w->job, sti_topk_packed_index(room->chosen[i++]));
    }
    room->runs[piece] = c.run;
}

/* The k-th delegate is a weak bound where winners lie together: in ascending data all
 * of them are in the last few blocks. So the blocks of the best delegates, enough of
 * them to hold k elements, are looked at first; if k elements there are at or above the
 * bound, the k-th of those is a better one, and most chosen blocks fall below it
 * unseen. */
static uint32_t sharpen_bound(const walk_back *w)
{
    const sti_topk_job *job = w->job;
    sti_topk_room *room = job->room;
    const int64_t k = job->plan->k, blocks = (k >> job->plan->exponent) + 1;
    const int64_t entries = w->beta ? 2 * blocks : blocks;
    if (entries >= k)
        return w->least;
    const sti_topk_run chosen = {.at = room->chosen, .count = k};
    const uint64_t cut = sti_topk_cut(&room->cutter, &chosen, 1, entries);
    sti_topk_run found = {.at = room->pool};
    const int64_t room_left =
        job->plan->back * w->capacity - (INT64_C(1) << job->plan->exponent);
    int64_t last = -1, none = 0;
    for (int64_t i = 0; i < k && found.count <= room_left; i++) {
        const int64_t place = sti_topk_packed_index(room->chosen[i]);
        const int64_t block = w->beta ? place / 2 : place;
        if (room->chosen[i] < cut || block == last)
            continue;
        last = block;
        found.count += job->ops->collect(
            job->view, block << job->plan->exponent,
            sti_topk_min((block + 1) << job->plan->exponent, job->view->n), w->least,
            UINT32_MAX, found.at + found.count, &none);
    }
    if (found.count < k)
        return w->least;
    uint64_t worst = UINT64_MAX;
    const uint64_t kth = sti_topk_cut(&room->cutter, &found, 1, k);
    for (int64_t i = 0; i < found.count; i++)
        if (found.at[i] >= kth && found.at[i] < worst)
            worst = found.at[i];
    const uint32_t bound = (uint32_t)(worst >> 32);
    return bound > w->least ? bound : w->least;
}

/* A line of each block that is gone back to; their number. */
static int64_t sample_blocks(const walk_back *w, uint32_t *sample)
{
    const sti_topk_job *job = w->job;
    const uint64_t *chosen = job->room->chosen;
    const int a = job->plan->exponent;
    const uint32_t lines = 1U << a >> 4;
    int64_t at[TOUCH_BLOCKS], count = 0, none = 0;
    for (int64_t i = 0; i < job->plan->k;) {
        int held = 0;
        for (; i < job->plan->k && held < TOUCH_BLOCKS; i++) {
            if (!goes_back(w, i, job->plan->k, w->least))
                continue;
            const uint32_t line = ((uint32_t)i * UINT32_C(2654435761) >> 8) % lines;
            const int64_t block = sti_topk_packed_index(chosen[i]) / (w->beta ? 2 : 1);
            at[held] = sti_topk_min((block << a) + SAMPLE_LINE * (int64_t)line,
                                    job->view->n - SAMPLE_LINE);
            touch(job->view, at[held++]);
        }
        for (int j = 0; j < held; j++)
            count += job->ops->keys(job->view, at[j], at[j] + SAMPLE_LINE, 0,
                                    UINT32_MAX, sample + count, &none);
    }
    return count;
}

/* Where winners lie in many more blocks than that, though not in all of those chosen,
 * the bound is still weak, and there may be a hundred candidates for each winner. A
 * line of each block that is gone back to is then a sample, from which a better bound
 * is guessed, far enough below the k-th: eight standard deviations, for the elements of
 * a line may be alike. Whether it is one is seen by counting. */
static uint32_t guess_bound(const walk_back *w)
{
    const sti_topk_plan *p = w->job->plan;
    const sti_topk_room *room = w->job->room;
    uint32_t best = 0;
    int64_t blocks = 0;
    for (int64_t i = 0; i < p->k; i++) {
        const uint32_t key = (uint32_t)(room->chosen[i] >> 32);
        best = key > best ? key : best;
        blocks += goes_back(w, i, p->k, w->least);
    }
    if (best == w->least || p->back == 1 || blocks << p->exponent < GUESS_LEAST * p->k)
        return w->least;
    uint32_t *sample = (uint32_t *)(void *)room->pool;
    const int64_t count = sample_blocks(w, sample);
    const double q = ldexp((double)(p->k * SAMPLE_LINE), -p->exponent);
    const int64_t rank = (int64_t)(q + 8 * sqrt(q) + 8);
    if (rank >= count)
        return w->least;
    const uint32_t guess = sti_topk_kth(sample, count, rank, room->cutter.counts);
    return guess > w->least ? guess : w->least;
}

/* The candidates' number. */
static int64_t walk(walk_back *w)
{
    const sti_topk_job *job = w->job;
    int64_t count = 0;
    for (int64_t piece = 0; piece < job->plan->back; piece++)
        atomic_init(&w->behind[piece], 0);
    sti_team_run(job->team, job->plan->back, walk_piece, w);
    for (int64_t piece = 0; piece < job->plan->back; piece++)
        count += job->room->runs[piece].count;
    return count;
}

void sti_topk_by_delegates(const sti_topk_job *job)
{
    const sti_topk_plan *p = job->plan;
    const bool beta = p->method == STINT_TOPK_BETA;
    make_delegates(job, beta);
    atomic_uint behind[STI_TOPK_BACK_MAX];
    walk_back w = {.job = job,
                   .behind = behind,
                   .beta = beta,
                   .least = choose_delegates(job),
                   .capacity = sti_topk_back_elements(p)};
    const uint32_t sure = sharpen_bound(&w);
    w.least = sure;
    w.least = guess_bound(&w);
    if (walk(&w) < p->k) {
        w.least = sure;
        walk(&w);
    }
    const uint64_t cut =
        sti_topk_cut(&job->room->cutter, job->room->runs, p->back, p->k);
    sti_topk_emit_runs(job, job->room->runs, p->back, cut);
}
