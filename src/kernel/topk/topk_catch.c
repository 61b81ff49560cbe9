/* Catching: winners are taken while the pass that makes delegates has them in the
 * caches, so that no block is gone back to afterwards, in a page of its own, out of
 * memory.
 *
 * The first piece of the pass is a sample, from which a bound is guessed that a little
 * more than k elements are at or above. From then on a piece keeps what is at or above
 * it: the best of a block with its position, or where the second best is there too, all
 * that a second look at the block finds. If k elements have been caught, the winners
 * are among them. If fewer, or more than there is room for, little was lost: the
 * delegates are there to choose from, and data whose pieces are so different is what
 * they are good at. Where equals of the bound are many, no more than k of them are
 * kept: a piece asks how many those before it have caught, and with k there only what
 * is better than the bound matters. */
#include "kernel/topk/topk_catch.h"
#include "kernel/topk/topk_key.h"

enum {
    LOOK_BLOCKS = 128,
    RUNS = 64, /* of the first piece */
    PIECE_MOST = 1024,
    MOST_FETCHED = 256,
    AHEAD = 6, /* entries */
    FETCH_BYTES = 1024
};
#define NO_BOUND UINT64_MAX /* yet; beyond every key */

void sti_topk_catch_begin(sti_topk_catch *c, const sti_topk_job *job)
{
    c->job = job;
    sti_topk_pool_init(&c->pool, job->scratch, sti_topk_catch_segments(job->plan),
                       STI_TOPK_CATCH_SEGMENT);
    for (int64_t i = 0; i < job->plan->pieces; i++)
        atomic_init(&job->scratch->caught[i].count, 0);
    atomic_init(&c->bound, NO_BOUND);
}

typedef struct piece_catch {
    sti_topk_catch *c;
    int64_t piece, before; /* caught in the pieces before */
    int64_t count;         /* in this one, in runs that are full */
    uint64_t least;        /* key that is caught */
    uint64_t bound;        /* key that matters: one more where k are there */
    sti_topk_run *run;     /* the last of */
    sti_topk_run *runs[RUNS];
    int run_count;
    bool first; /* its own bound is not yet closer than delegates tell */
} piece_catch;

static int64_t caught_here(const piece_catch *p)
{
    return p->count + (p->run ? p->run->count : 0);
}

/* Whether anything does; and from which key on. A piece that has many more than are
 * wanted in all is nothing like another one that the bound is from. */
static bool still_matters(piece_catch *p)
{
    const int64_t k = p->c->job->plan->k, here = caught_here(p);
    if (here > k + PIECE_MOST && !p->first)
        sti_topk_pool_give_up(&p->c->pool);
    p->bound = p->least + (p->before + here >= k);
    return p->bound <= UINT32_MAX && !sti_topk_pool_is_full(&p->c->pool);
}

/* Room for `most` more; false where the pool is full. */
static bool make_room(piece_catch *p, int64_t most)
{
    if (p->run && p->run->count + most <= STI_TOPK_CATCH_SEGMENT)
        return true;
    p->count += p->run ? p->run->count : 0;
    p->run = sti_topk_pool_next(&p->c->pool, p->piece);
    if (p->run && p->run_count < RUNS)
        p->runs[p->run_count++] = p->run;
    return p->run != NULL;
}

/* The memory that will be written to comes while the pass runs. */
static void fetch_room(piece_catch *p)
{
    if (make_room(p, 1))
        for (int64_t i = 0; i < p->c->job->plan->sample_lo && i < MOST_FETCHED; i += 8)
            __builtin_prefetch(p->run->at + i, 1);
}

static bool catch_block(piece_catch *p, int64_t block)
{
    const sti_topk_job *job = p->c->job;
    const int64_t size = INT64_C(1) << job->plan->exponent, begin = block * size;
    if (!make_room(p, size))
        return false;
    p->run->count +=
        job->ops->rare(job->view, begin, sti_topk_min(begin + size, job->view->n),
                       (uint32_t)p->bound, p->run->at + p->run->count);
    return true;
}

/* Whether an entry and the next are the two best of a block. */
static inline bool are_two(const uint64_t *entry)
{
    return ((uint32_t)entry[0] ^ (uint32_t)entry[1]) == 1;
}

/* By the end of a piece its first blocks have left the nearest caches. */
static void fetch_block(const piece_catch *p, int64_t block)
{
    const sti_topk_view *v = p->c->job->view;
    const size_t bytes = sti_topk_element_bytes(v->form) << p->c->job->plan->exponent;
    for (size_t at = 0; at < bytes && at < FETCH_BYTES; at += 64)
        __builtin_prefetch(
            (const void *)((uintptr_t)v->x + (size_t)block * bytes + at));
}

/* The entries of a list of the two best, of blocks from `first` on. */
static bool catch_entries(piece_catch *p, int64_t first, const uint64_t *entry,
                          int64_t count)
{
    const sti_topk_job *job = p->c->job;
    for (int64_t i = 0; i < count; i++) {
        const int64_t ahead = i + AHEAD;
        if (ahead + 1 < count && are_two(entry + ahead))
            fetch_block(p, first + (sti_topk_packed_index(entry[ahead]) >> 1));
        const uint32_t key = (uint32_t)(entry[i] >> 32);
        const int64_t block = first + (sti_topk_packed_index(entry[i]) >> 1);
        if (key < p->bound)
            continue;
        if (i + 1 < count && are_two(entry + i) &&
            (uint32_t)(entry[i + 1] >> 32) >= p->bound) {
            if (!catch_block(p, block))
                return false;
            if (!still_matters(p))
                return true;
            i++;
        } else {
            if (!make_room(p, 1))
                return false;
            p->run->at[p->run->count++] = sti_topk_pack(
                key, (block << job->plan->exponent) + job->scratch->position[block]);
        }
    }
    return true;
}

/* Blocks [first, last) by their delegates; false where the pool is full. */
static bool catch_by_list(piece_catch *p, int64_t first, int64_t last)
{
    const sti_topk_scratch *scratch = p->c->job->scratch;
    const sti_topk_ops *ops = sti_topk_ops_now(STI_TOPK_KEYS);
    for (; first < last && still_matters(p); first += LOOK_BLOCKS) {
        uint64_t entry[2 * LOOK_BLOCKS];
        const sti_topk_view list = {.form = STI_TOPK_KEYS,
                                    .x = (const void *)(scratch->delegates + 2 * first),
                                    .n = 2 * sti_topk_min(LOOK_BLOCKS, last - first)};
        int64_t none = 0;
        const int64_t count = ops->collect(&list, 0, list.n, (uint32_t)p->bound,
                                           UINT32_MAX, entry, &none);
        if (!catch_entries(p, first, entry, count))
            return false;
    }
    return true;
}

/* What the loop over the blocks has caught itself. */
static bool keep_early(piece_catch *p, const sti_topk_early_candidates *early)
{
    for (int j = 0; j < STI_TOPK_STREAMS; j++)
        for (int64_t i = 0; i < early->count[j];) {
            if (!make_room(p, 1))
                return false;
            const int64_t some = sti_topk_min(early->count[j] - i,
                                              STI_TOPK_CATCH_SEGMENT - p->run->count);
            memcpy(p->run->at + p->run->count, early->list[j] + i,
                   (size_t)some * sizeof *p->run->at);
            p->run->count += some;
            i += some;
        }
    return true;
}

/* ---- the bound ---- */

/* What a piece has caught below a key is dropped. */
static void drop_below(piece_catch *p, uint64_t least)
{
    p->count = 0;
    for (int r = 0; r < p->run_count; r++) {
        sti_topk_run *run = p->runs[r];
        int64_t kept = 0;
        for (int64_t i = 0; i < run->count; i++) {
            run->at[kept] = run->at[i];
            kept += run->at[i] >> 32 >= least;
        }
        run->count = kept;
        p->count += run != p->run ? kept : 0;
    }
}

static int64_t keep_from(uint32_t least, uint32_t *keys, int64_t count)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        keys[kept] = keys[i];
        kept += keys[i] >= least;
    }
    return kept;
}

/* The rank-th best element that a piece has caught: where two delegates a block were
 * too few to stand for the elements, it is far above that of the delegates. Whenever
 * `keys` is full, only those that may be it stay, and no others come any more. False
 * where too many are alike. */
static bool raise_least(piece_catch *p, uint32_t *keys, int64_t room_for)
{
    const sti_topk_ops *ops = sti_topk_ops_now(STI_TOPK_KEYS);
    const int64_t rank = p->c->job->plan->sample_lo;
    int64_t count = 0, at_least;
    uint32_t least = 0;
    if (p->run_count == RUNS)
        return false;
    if (caught_here(p) < 2 * rank)
        return true;
    for (int r = 0; r < p->run_count; r++)
        for (int64_t i = 0; i < p->runs[r]->count; i++) {
            keys[count] = (uint32_t)(p->runs[r]->at[i] >> 32);
            count += keys[count] >= least;
            if (count < room_for)
                continue;
            least = ops->bisect(keys, count, rank, &at_least);
            count = keep_from(least, keys, count);
            if (count > room_for / 2)
                return false;
        }
    p->least = ops->bisect(keys, count, rank, &at_least);
    drop_below(p, p->least);
    return true;
}

/* A bound from blocks [first, last), and what is caught of them by it, or by that of
 * another piece which came first. */
static bool catch_first(piece_catch *p, int64_t first, int64_t last,
                        sti_topk_early_candidates *early)
{
    const int64_t rank = p->c->job->plan->sample_lo, entries = 2 * (last - first);
    const int64_t room_for = sizeof early->list / sizeof(uint32_t) - STI_TOPK_SLACK;
    const uint32_t *list = p->c->job->scratch->delegates + 2 * first;
    unsigned long long theirs = NO_BOUND;
    int64_t at_least;
    if (entries <= rank)
        return false;
    p->before = 0;
    p->first = true;
    p->least = sti_topk_ops_now(STI_TOPK_KEYS)->bisect(list, entries, rank, &at_least);
    const bool few_values = at_least > 2 * rank; /* equals of the bound are many */
    if (!catch_by_list(p, first, last) || sti_topk_pool_is_full(&p->c->pool) ||
        (!few_values && !raise_least(p, (uint32_t *)(void *)early->list, room_for)))
        return false;
    p->first = false;
    if (atomic_compare_exchange_strong(&p->c->bound, &theirs, p->least))
        return true;
    if (theirs == p->least)
        return true;
    p->least = theirs;
    drop_below(p, NO_BOUND);
    return catch_by_list(p, first, last);
}

/* ---- pieces of the pass ---- */

void sti_topk_catch_piece(sti_topk_catch *c, int64_t piece, int64_t first, int64_t last)
{
    const sti_topk_job *job = c->job;
    const sti_topk_scratch *scratch = job->scratch;
    sti_topk_early_candidates early; /* too long to be cleared */
    piece_catch p = {.c = c, .piece = piece, .least = atomic_load(&c->bound)};
    for (int64_t i = 0; i < piece; i++)
        p.before +=
            atomic_load_explicit(&scratch->caught[i].count, memory_order_relaxed);
    const bool guessed = p.least != NO_BOUND, matters = guessed && still_matters(&p);
    early.bound = (uint32_t)p.bound;
    early.blocks = 0;
    if (matters)
        fetch_room(&p);
    job->ops->delegates2(job->view, job->plan->exponent, first, last,
                         scratch->delegates + 2 * first, scratch->position + first,
                         matters ? &early : NULL);
    bool good = true;
    if (!guessed && !sti_topk_pool_is_full(&c->pool)) {
        good = catch_first(&p, first, last, &early);
    } else if (matters) {
        good = (early.blocks == 0 || keep_early(&p, &early)) &&
               catch_by_list(&p, first + early.blocks, last);
    }
    if (!good)
        sti_topk_pool_give_up(&c->pool);
    atomic_store_explicit(&scratch->caught[piece].count, caught_here(&p),
                          memory_order_relaxed);
}

int64_t sti_topk_catch_end(sti_topk_catch *c)
{
    const sti_topk_plan *p = c->job->plan;
    int64_t caught = 0;
    for (int64_t i = 0; i < p->pieces; i++)
        caught += atomic_load_explicit(&c->job->scratch->caught[i].count,
                                       memory_order_relaxed);
    if (sti_topk_pool_is_full(&c->pool) || caught < p->k)
        return 0;
    return sti_topk_pool_order(&c->pool, p->pieces);
}
