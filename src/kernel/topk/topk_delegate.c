/* Delegates: the best (or two best) of each block stand for it.
 *
 * If k delegates come before a block's delegate, by key and then by block, then k
 * elements come before every element of the block, by key and then by index: the block
 * holds no winner. So exactly k blocks are gone back to, and there only elements at or
 * above the k-th delegate matter. With the two best of each block in one list, the same
 * argument holds for the block's second: where only the best is among the k, the rest
 * of the block is out, and the best itself is known with its position. */
#include "kernel/topk/topk_catch.h"
#include "kernel/topk/topk_key.h"

#include <math.h>
#include <string.h>

/* GUESS_LEAST: elements to look at for each winner that make a sample worth while. */
enum { SAMPLE_LINE = 16, SAMPLE_LINES = 256, GUESS_LEAST = 16, SHARPEN_LEAST = 4 };
enum { BATCH = 16, TOUCH_BYTES = 1024, FETCH_WINNERS = 1 << 14 };

typedef struct first_pass {
    const sti_topk_job *job;
    int64_t per_piece; /* blocks */
    bool two_best;
    sti_topk_catch *caught; /* or NULL */
} first_pass;

static void first_piece(void *arg, int64_t piece, int worker)
{
    const first_pass *f = arg;
    const sti_topk_job *job = f->job;
    const int64_t first = piece * f->per_piece;
    const int64_t last = sti_topk_min(first + f->per_piece, job->plan->blocks);
    (void)worker;
    if (f->caught)
        sti_topk_catch_piece(f->caught, piece, first, last);
    else if (f->two_best)
        job->ops->delegates2(job->view, job->plan->exponent, first, last,
                             job->scratch->delegates + 2 * first,
                             job->scratch->position + first, NULL);
    else
        job->ops->delegates(job->view, job->plan->exponent, first, last,
                            job->scratch->delegates + first);
}

static void make_delegates(const sti_topk_job *job, bool two_best,
                           sti_topk_catch *caught)
{
    const sti_topk_plan *p = job->plan;
    const int64_t per_piece = sti_topk_pass_blocks(p);
    first_pass f = {job, per_piece, two_best, caught};
    sti_team_take(job->team, sti_topk_ceil(p->blocks, per_piece), first_piece, &f);
}

/* What the delegates say before any block is gone back to. */
typedef struct walk_back {
    const sti_topk_job *job;
    uint32_t least, best; /* of the chosen; `least` is then raised */
    bool two_best;
    int64_t capacity;
    /* What each piece has found still to matter behind it. Pieces begin with the most
     * that those before them have said by then: which is all of them with one thread,
     * and a matter of time alone with more. */
    atomic_uint *behind; /* [back] */
} walk_back;

/* Delegates of at least `key`, of which there are k, by shares of the list. */
typedef struct taking {
    const sti_topk_view *list;
    uint32_t key;
    uint64_t *packed; /* [STI_TOPK_SHARES, k] */
    int64_t k, count[STI_TOPK_SHARES];
} taking;

static void take_share(void *arg, int64_t share, int worker)
{
    taking *t = arg;
    const int64_t each = sti_topk_ceil(t->list->n, STI_TOPK_SHARES);
    int64_t none = 0;
    (void)worker;
    t->count[share] =
        sti_topk_ops_now(STI_TOPK_KEYS)
            ->collect(t->list, share * each,
                      sti_topk_min((share + 1) * each, t->list->n), t->key, UINT32_MAX,
                      t->packed + share * t->k, &none);
}

/* The k best delegates, packed, by ascending block. */
static void choose_delegates(const sti_topk_job *job)
{
    sti_topk_scratch *scratch = job->scratch;
    const sti_topk_plan *p = &scratch->inner_plan;
    const sti_topk_sink sink = {.packed = scratch->chosen};
    const sti_topk_view list = {.form = STI_TOPK_KEYS,
                                .x = (const unsigned char *)scratch->delegates,
                                .n = p->n};
    const sti_topk_job inner = {.team = job->team,
                                .plan = p,
                                .ops = sti_topk_ops_now(STI_TOPK_KEYS),
                                .view = &list,
                                .scratch = scratch->inner,
                                .sink = &sink};
    if (!sti_topk_narrows(p) || job->plan->back < STI_TOPK_SHARES) {
        if (p->method == STINT_TOPK_NARROW)
            sti_topk_by_narrowing(&inner);
        else
            sti_topk_by_threshold(&inner);
        return;
    }
    int64_t ties;
    taking t = {.list = &list, .packed = scratch->pool, .k = p->k};
    t.key = sti_topk_narrow(&inner, &ties);
    if (ties > 0) {
        sti_topk_emit_row(&inner, t.key, ties);
        return;
    }
    sti_team_take(job->team, STI_TOPK_SHARES, take_share, &t);
    uint64_t *out = scratch->chosen;
    for (int64_t share = 0; share < STI_TOPK_SHARES; share++) {
        memcpy(out, t.packed + share * p->k, (size_t)t.count[share] * sizeof *out);
        out += t.count[share];
    }
}

static void bound_chosen(walk_back *w)
{
    const sti_topk_job *job = w->job;
    const sti_topk_scratch *scratch = job->scratch;
    scratch->chosen[job->plan->k] = scratch->chosen[job->plan->k - 1];
    uint64_t least = UINT64_MAX, best = 0;
    for (int64_t i = 0; i < job->plan->k; i++) {
        least = scratch->chosen[i] < least ? scratch->chosen[i] : least;
        best = scratch->chosen[i] > best ? scratch->chosen[i] : best;
    }
    w->least = (uint32_t)(least >> 32);
    w->best = (uint32_t)(best >> 32);
}

/* A list of candidates that never holds many more than k: when it is full, the k best
 * of it are kept, and then only what is strictly better than all but k - 1 of them
 * matters, for later indices are higher. Where nothing is better, that is so as soon as
 * there are k. */
typedef struct candidates {
    sti_topk_run run;
    int64_t capacity, k;
    uint32_t least; /* key that still matters */
    bool alike;     /* there are none but the best key of all and its equals */
    const sti_topk_cutter *cutter;
    atomic_uint *behind; /* where `least` is told */
} candidates;

static void raise_least(candidates *c, uint32_t least)
{
    c->least = least;
    atomic_store_explicit(c->behind, least, memory_order_relaxed);
}

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
        raise_least(c, key == UINT32_MAX ? key : key + 1);
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
    if (c->alike && c->run.count >= c->k) {
        raise_least(c, c->least + 1);
        c->alike = false;
    }
}

/* Whether this entry and the next are the two best of one block: a list of the two best
 * has them at 2s and 2s + 1. */
static inline bool both_chosen(const uint64_t *chosen)
{
    return ((uint32_t)chosen[0] ^ (uint32_t)chosen[1]) == 1;
}

static inline uint32_t key_of(uint64_t packed)
{
    return (uint32_t)(packed >> 32);
}

/* Whether chosen entry i has its block gone back to: there can be more in the block
 * only where the second best matters too. Behind the last entry is one that is nobody's
 * other. */
static inline bool goes_back(const walk_back *w, int64_t i, uint32_t least)
{
    const uint64_t *chosen = w->job->scratch->chosen;
    return w->two_best
               ? (int)both_chosen(chosen + i) & (int)(key_of(chosen[i + 1]) >= least)
               : key_of(chosen[i]) >= least;
}

static int64_t block_of(const walk_back *w, int64_t i)
{
    return sti_topk_packed_index(w->job->scratch->chosen[i]) >> w->two_best;
}

/* The first entry of a piece: two of one block stay together. */
static int64_t split_chosen(const walk_back *w, int64_t piece)
{
    const sti_topk_plan *p = w->job->plan;
    const int64_t at = sti_topk_min(piece * sti_topk_ceil(p->k, p->back), p->k);
    return at +
           (w->two_best && at > 0 && both_chosen(w->job->scratch->chosen + at - 1));
}

/* Some entries, and which of them have their blocks gone back to. */
typedef struct batch {
    int64_t begin, end, count;
    int64_t at[2 * BATCH];
} batch;

/* The blocks' memory comes while those of the batch before are looked at. Each is in a
 * page of its own, and prefetching may give up where the address of a page is not
 * known, so one byte of each is read, of all of them at once; the rest of a block is
 * fetched when one of the batch before is looked at, for what is asked for in a burst
 * is waited for. */
static void touch_blocks(const walk_back *w, const batch *b)
{
    for (int64_t j = 0; j < b->count; j++)
        sti_topk_touch(w->job->view, block_of(w, b->at[j]) << w->job->plan->exponent);
}

static inline void fetch_block(const walk_back *w, const batch *b, int64_t j)
{
    const sti_topk_view *v = w->job->view;
    const int a = w->job->plan->exponent;
    const size_t bytes = sti_topk_element_bytes(v->form),
                 row_bytes = (size_t)v->n * bytes, most = bytes << a,
                 span = most < TOUCH_BYTES ? most : TOUCH_BYTES;
    const size_t begin = ((size_t)block_of(w, b->at[j]) << a) * bytes;
    const size_t end = begin + span < row_bytes ? begin + span : row_bytes;
    for (size_t at = begin + 64; at < end; at += 64)
        __builtin_prefetch(v->x + at);
}

/* The entries from `begin` on, no more than `most`, and their blocks. Which of them
 * have one follows no pattern, hence no branch. */
static void take_batch(const walk_back *w, int64_t begin, int64_t most, uint32_t least,
                       batch *b)
{
    int64_t count = 0, i = begin;
    const int64_t end = sti_topk_min(begin + (BATCH << w->two_best), most);
    for (; i < end; i++) {
        b->at[count] = i;
        count += goes_back(w, i, least);
    }
    i += w->two_best && i < most && both_chosen(w->job->scratch->chosen + i - 1);
    b->begin = begin;
    b->end = i;
    b->count = count;
}

/* Entries that stand for themselves alone, in a list of the two best. The second best
 * is below `least` where it is not gone back to. */
static void add_singles(candidates *c, const walk_back *w, int64_t i, int64_t end)
{
    const sti_topk_scratch *scratch = w->job->scratch;
    const int a = w->job->plan->exponent;
    if (c->run.count > c->k && c->run.count + (end - i) > c->capacity)
        keep_best(c);
    const uint32_t least = c->least;
    uint64_t *out = c->run.at;
    int64_t count = c->run.count;
    for (; i < end; i++) {
        const uint32_t key = key_of(scratch->chosen[i]);
        if (key < least)
            continue;
        const int64_t block = block_of(w, i);
        out[count++] = sti_topk_pack(key, (block << a) + scratch->position[block]);
    }
    c->run.count = count;
}

/* Entry i, whose block was to be gone back to by the bound of some time ago. */
static void add_back(candidates *c, const walk_back *w, int64_t i)
{
    if (goes_back(w, i, c->least))
        add_block(c, w->job, block_of(w, i));
    else if (w->two_best)
        add_singles(c, w, i, i + 1);
}

static void fetch_blocks(const walk_back *w, const batch *b, int64_t from)
{
    for (int64_t j = from; j < b->count; j++)
        fetch_block(w, b, j);
}

static void add_batch(candidates *c, const walk_back *w, const batch *b,
                      const batch *next)
{
    int64_t i = b->begin;
    for (int64_t j = 0; j < b->count; j++) {
        if (j < next->count)
            fetch_block(w, next, j);
        if (w->two_best)
            add_singles(c, w, i, b->at[j]);
        add_back(c, w, b->at[j]);
        i = b->at[j] + 1 + w->two_best;
    }
    fetch_blocks(w, next, b->count);
    if (w->two_best)
        add_singles(c, w, i, b->end);
}

static void walk_piece(void *arg, int64_t piece, int worker)
{
    const walk_back *w = arg;
    const sti_topk_scratch *scratch = w->job->scratch;
    const int64_t end = split_chosen(w, piece + 1);
    sti_topk_cutter cutter = {.counts =
                                  scratch->cutter.counts + (piece + 1) * STI_TOPK_BINS};
    candidates c = {.run = {.at = scratch->pool + piece * w->capacity},
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
    c.alike = c.least == w->best && w->best < UINT32_MAX;
    batch b[2];
    int now = 0;
    take_batch(w, split_chosen(w, piece), end, c.least, &b[0]);
    touch_blocks(w, &b[0]);
    fetch_blocks(w, &b[0], 0);
    for (; b[now].begin < end; now ^= 1) {
        take_batch(w, b[now].end, end, c.least, &b[now ^ 1]);
        touch_blocks(w, &b[now ^ 1]);
        add_batch(&c, w, &b[now], &b[now ^ 1]);
    }
    scratch->runs[piece] = c.run;
}

/* Keys at the start of the pool, which is free before the walk. */
static uint32_t *key_list(const walk_back *w)
{
    return (uint32_t *)(void *)w->job->scratch->pool;
}

static uint32_t raised(const walk_back *w, const uint32_t *keys, int64_t count,
                       int64_t rank)
{
    int64_t at_least;
    const uint32_t bound =
        sti_topk_ops_now(STI_TOPK_KEYS)->bisect(keys, count, rank, &at_least);
    return bound > w->least ? bound : w->least;
}

/* The k-th delegate is a weak bound where winners lie together: in ascending data all
 * of them are in the last few blocks. So the blocks of the best delegates, enough of
 * them to hold k elements, are looked at first; if k elements there are at or above the
 * bound, the k-th of those is a better one, and most chosen blocks fall below it
 * unseen. It is not worth while to go on where they turn out to hold few. */
static uint32_t sharpen_bound(const walk_back *w)
{
    const sti_topk_job *job = w->job;
    const uint64_t *chosen = job->scratch->chosen;
    const int a = job->plan->exponent;
    const int64_t k = job->plan->k, blocks = (k >> a) + 1,
                  entries = blocks << w->two_best;
    if (entries >= k || w->best == w->least)
        return w->least;
    uint32_t *keys = key_list(w);
    for (int64_t i = 0; i < k; i++)
        keys[i] = key_of(chosen[i]);
    const uint32_t enough = raised(w, keys, k, entries);
    const int64_t room_left =
        2 * job->plan->back * w->capacity - STI_TOPK_SLACK - (INT64_C(1) << a);
    int64_t i = 0, last = -1, used = 0, seen = 0, count = 0, none = 0;
    batch b = {.count = 1};
    for (int64_t most = SHARPEN_LEAST; b.count > 0; most = BATCH) {
        for (b.count = 0; i < k && used < entries && b.count < most; i++) {
            if (key_of(chosen[i]) < enough)
                continue;
            used++;
            b.at[b.count] = i;
            b.count += block_of(w, i) != last;
            last = block_of(w, i);
        }
        touch_blocks(w, &b);
        fetch_blocks(w, &b, 0);
        for (int64_t j = 0; j < b.count && count <= room_left; j++) {
            const int64_t begin = block_of(w, b.at[j]) << a;
            const int64_t end = sti_topk_min(begin + (INT64_C(1) << a), job->view->n);
            count += job->ops->keys(job->view, begin, end, w->least, UINT32_MAX,
                                    keys + count, &none);
        }
        seen += b.count;
        if (count < seen << a >> 2)
            break;
    }
    return count < k ? w->least : raised(w, keys, count, k);
}

/* A line of each of the blocks at the entries of a list, or of every so many; the
 * number of lines. */
static int64_t sample_blocks(const walk_back *w, const int64_t *list, int64_t blocks,
                             uint32_t *sample)
{
    const sti_topk_job *job = w->job;
    const int a = job->plan->exponent;
    const uint32_t lines = 1U << a >> 4;
    const int64_t every = sti_topk_ceil(blocks, SAMPLE_LINES);
    int64_t at[BATCH], taken = 0, none = 0;
    for (int64_t i = 0; i < blocks;) {
        int held = 0;
        for (; i < blocks && held < BATCH; i += every) {
            const uint32_t line = ((uint32_t)i * UINT32_C(2654435761) >> 8) % lines;
            at[held] =
                sti_topk_min((block_of(w, list[i]) << a) + SAMPLE_LINE * (int64_t)line,
                             job->view->n - SAMPLE_LINE);
            sti_topk_touch(job->view, at[held++]);
        }
        for (int j = 0; j < held; j++, taken++)
            job->ops->keys(job->view, at[j], at[j] + SAMPLE_LINE, 0, UINT32_MAX,
                           sample + SAMPLE_LINE * taken, &none);
    }
    return taken;
}

/* Where winners lie in many more blocks than that, though not in all of those chosen,
 * the bound is still weak, and there may be a hundred candidates for each winner. Lines
 * of the blocks that are gone back to are then a sample, from which a better bound is
 * guessed, far enough below the k-th: eight standard deviations, for the elements of a
 * line may be alike. Whether it is one is seen by counting. */
static uint32_t guess_bound(const walk_back *w)
{
    const sti_topk_plan *p = w->job->plan;
    int64_t *list = (int64_t *)(void *)w->job->scratch->pool, blocks = 0;
    if (w->best == w->least || p->back == 1)
        return w->least;
    for (int64_t i = 0; i < p->k; i++) {
        list[blocks] = i;
        blocks += goes_back(w, i, w->least);
    }
    if (blocks << p->exponent < GUESS_LEAST * p->k)
        return w->least;
    uint32_t *sample = (uint32_t *)(void *)(list + blocks);
    const int64_t lines = sample_blocks(w, list, blocks, sample);
    const double share =
        (double)(SAMPLE_LINE * lines) / ldexp((double)blocks, p->exponent);
    const double q = (double)p->k * share;
    const int64_t rank = (int64_t)(q + 8 * sqrt(q) + 8);
    return rank < SAMPLE_LINE * lines ? raised(w, sample, SAMPLE_LINE * lines, rank)
                                      : w->least;
}

/* The candidates' number. */
static int64_t walk(walk_back *w)
{
    const sti_topk_job *job = w->job;
    int64_t count = 0;
    for (int64_t piece = 0; piece < job->plan->back; piece++)
        atomic_init(&w->behind[piece], 0);
    sti_team_take(job->team, job->plan->back, walk_piece, w);
    for (int64_t piece = 0; piece < job->plan->back; piece++)
        count += job->scratch->runs[piece].count;
    return count;
}

/* The memory that winners are written to comes while the last of them are told from
 * the rest. */
static void fetch_sink(const sti_topk_job *job)
{
    const sti_topk_sink *sink = job->sink;
    const int64_t count = sti_topk_min(job->plan->k, FETCH_WINNERS);
    if (sink->packed)
        return;
    for (int64_t i = 0; i < count; i += 8)
        __builtin_prefetch(sink->index + i, 1);
    for (int64_t i = 0; sink->values && i < count; i += 16)
        __builtin_prefetch(sink->values + 4 * i, 1);
}

/* The winners when they have been caught on the way. */
static bool emit_caught(const sti_topk_job *job, sti_topk_catch *caught)
{
    const int64_t runs = sti_topk_catch_end(caught);
    if (runs == 0)
        return false;
    fetch_sink(job);
    const uint64_t cut =
        sti_topk_cut(&job->scratch->cutter, job->scratch->ordered, runs, job->plan->k);
    sti_topk_emit_runs(job, job->scratch->ordered, runs, cut);
    return true;
}

void sti_topk_by_delegates(const sti_topk_job *job)
{
    const sti_topk_plan *p = job->plan;
    atomic_uint behind[STI_TOPK_BACK_MAX];
    walk_back w = {.job = job,
                   .two_best = p->method == STINT_TOPK_DELEGATE2,
                   .behind = behind,
                   .capacity = sti_topk_back_elements(p)};
    if (sti_topk_catches(p)) {
        sti_topk_catch caught;
        sti_topk_catch_begin(&caught, job);
        make_delegates(job, w.two_best, &caught);
        if (emit_caught(job, &caught))
            return;
    } else {
        make_delegates(job, w.two_best, NULL);
    }
    choose_delegates(job);
    bound_chosen(&w);
    w.least = sharpen_bound(&w);
    const uint32_t sure = w.least;
    w.least = guess_bound(&w);
    if (walk(&w) < p->k) {
        w.least = sure;
        walk(&w);
    }
    const uint64_t cut =
        sti_topk_cut(&job->scratch->cutter, job->scratch->runs, p->back, p->k);
    sti_topk_emit_runs(job, job->scratch->runs, p->back, cut);
}
