#include "kernel/topk/topk_wide.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/memory.h"

enum {
    DIGIT_BITS = 11,
    DIGITS = 1 << DIGIT_BITS,
    GATHERED_MOST = 1 << 16, /* keys that are looked at by themselves */
    PIECE_LEAST = 1 << 16    /* elements that are worth a thread */
};

typedef struct pair {
    uint64_t key;
    int64_t index;
} pair;

/* The memory of a row at work. */
typedef struct room {
    int64_t *counts;    /* [pieces, DIGITS] */
    int64_t *above;     /* [pieces + 1]: winners for sure, then where they go */
    int64_t *equal;     /* [pieces + 1]: of the k-th key, then how many come before */
    uint64_t *keys;     /* [gathered] */
    pair *best, *other; /* [k], for sorting */
} room;

typedef struct wide_call {
    const stint_topk_desc *desc;
    sti_topk_wide_map map;
    size_t bytes; /* of an element */
    int64_t rows, stride, n, k, gathered;
    int pieces; /* of a row, a thread each */
    int slots;  /* rows worked on at once */
    const unsigned char *x;
    int64_t *index;
    unsigned char *values;
    unsigned char *memory;
    size_t slot_bytes;
    atomic_llong bad_row;
} wide_call;

/* A row, its threads, and the k-th key as far as it is known: `prefix` >> shift. */
typedef struct row_work {
    const wide_call *c;
    const room *m;
    const unsigned char *x;
    const sti_team *team;
    int64_t row;
    uint64_t prefix;
    int shift;       /* bits below what is known; 64: nothing is */
    int digit_shift; /* of the digit that is counted */
    int64_t wanted;  /* rank of the k-th among those that share the prefix */
    int64_t ties;    /* of the k-th key that win */
} row_work;

/* ---- what is asked for ---- */

static int digit_shift_of(int shift)
{
    return shift > DIGIT_BITS ? shift - DIGIT_BITS : 0;
}

static stint_status describe(const stint_topk_desc *d, wide_call *c)
{
    stint_status status = sti_topk_check_words(d);
    if (status == STINT_OK)
        status = sti_topk_check_sizes(d);
    if (status != STINT_OK)
        return status;
    const int threads = d->threads ? d->threads : 1;
    *c = (wide_call){.desc = d,
                     .map = sti_topk_wide_map_make(d),
                     .bytes = sti_topk_wide_element_bytes(d->type),
                     .rows = d->rows ? d->rows : 1,
                     .stride = d->stride ? d->stride : d->n,
                     .n = d->n,
                     .k = sti_topk_winners_of(d),
                     .gathered = sti_topk_min(d->n, GATHERED_MOST),
                     .pieces = 1,
                     .slots = 1};
    if (c->rows > 1 && (c->n < 1 << 17 || c->rows >= 4 * threads))
        c->slots = (int)sti_topk_min(c->rows, threads);
    else
        c->pieces = (int)sti_topk_max(
            1, sti_topk_min(threads, sti_topk_ceil(c->n, PIECE_LEAST)));
    return STINT_OK;
}

static room take_room(sti_topk_layout *layout, const wide_call *c)
{
    const int64_t sorted = c->desc->sorted ? c->k : 0;
    room m;
    m.counts = sti_topk_take(layout, (int64_t)c->pieces * DIGITS, sizeof *m.counts);
    m.above = sti_topk_take(layout, c->pieces + 1, sizeof *m.above);
    m.equal = sti_topk_take(layout, c->pieces + 1, sizeof *m.equal);
    m.keys = sti_topk_take(layout, c->gathered, sizeof *m.keys);
    m.best = sti_topk_take(layout, sorted, sizeof *m.best);
    m.other = sti_topk_take(layout, sorted, sizeof *m.other);
    return m;
}

static stint_status room_bytes(const wide_call *c, size_t *slot_out, size_t *all_out)
{
    sti_topk_layout one = {0};
    take_room(&one, c);
    if (one.overflow || !sti_mul_bytes(c->slots, one.used_bytes, all_out) ||
        !sti_add_bytes(*all_out, 64, all_out))
        return sti_fail(STINT_E_USAGE,
                        "top-k: the workspace for %" PRId64 " of %" PRId64
                        " elements does not fit an address space",
                        c->k, c->n);
    *slot_out = one.used_bytes;
    return STINT_OK;
}

stint_status sti_topk_wide_bytes(const stint_topk_desc *desc, size_t *bytes_out)
{
    wide_call c;
    size_t slot_bytes;
    const stint_status status = describe(desc, &c);
    return status == STINT_OK ? room_bytes(&c, &slot_bytes, bytes_out) : status;
}

/* ---- one row ---- */

static uint64_t key_at(const row_work *w, int64_t i)
{
    return sti_topk_wide_key(sti_topk_wide_bits_at(w->x, i, w->c->bytes), &w->c->map);
}

/* The digit that is counted; the last one has fewer bits. */
static int64_t digit_of(const row_work *w, uint64_t key)
{
    const int bits = w->shift - w->digit_shift;
    return (int64_t)(key >> w->digit_shift & (((uint64_t)1 << bits) - 1));
}

static bool shares_prefix(const row_work *w, uint64_t key)
{
    return w->shift == 64 || key >> w->shift == w->prefix >> w->shift;
}

static int64_t piece_begin(const wide_call *c, int64_t piece)
{
    return c->n / c->pieces * piece + c->n % c->pieces * piece / c->pieces;
}

static void count_digits(void *arg, int64_t piece, int worker)
{
    const row_work *w = arg;
    int64_t *counts = w->m->counts + piece * DIGITS;
    (void)worker;
    memset(counts, 0, DIGITS * sizeof *counts);
    for (int64_t i = piece_begin(w->c, piece), end = piece_begin(w->c, piece + 1);
         i < end; i++) {
        const uint64_t key = key_at(w, i);
        if (shares_prefix(w, key))
            counts[digit_of(w, key)]++;
    }
}

/* The digit of the k-th key becomes part of the prefix; how many share it all. */
static int64_t take_digit(row_work *w, int pieces)
{
    for (int digit = (1 << (w->shift - w->digit_shift)) - 1;; digit--) {
        int64_t count = 0;
        for (int piece = 0; piece < pieces; piece++)
            count += w->m->counts[piece * DIGITS + digit];
        if (count >= w->wanted) {
            w->prefix |= (uint64_t)digit << w->digit_shift;
            w->shift = w->digit_shift;
            return count;
        }
        w->wanted -= count;
    }
}

static void gather_piece(void *arg, int64_t piece, int worker)
{
    const row_work *w = arg;
    uint64_t *out = w->m->keys + w->m->above[piece];
    (void)worker;
    for (int64_t i = piece_begin(w->c, piece), end = piece_begin(w->c, piece + 1);
         i < end; i++) {
        const uint64_t key = key_at(w, i);
        if (shares_prefix(w, key))
            *out++ = key;
    }
}

/* Keys that share the prefix, whose last digit, of 11 bits, has just been counted. */
static void gather(row_work *w)
{
    const int64_t digit = (int64_t)(w->prefix >> w->digit_shift & (DIGITS - 1));
    int64_t at = 0;
    for (int piece = 0; piece < w->c->pieces; piece++) {
        w->m->above[piece] = at;
        at += w->m->counts[piece * DIGITS + digit];
    }
    sti_team_run(w->team, w->c->pieces, gather_piece, w);
}

/* The rest of the k-th key, among `count` gathered ones. */
static void search_gathered(row_work *w, int64_t count)
{
    uint64_t *keys = w->m->keys;
    while (w->shift > 0) {
        memset(w->m->counts, 0, DIGITS * sizeof *w->m->counts);
        w->digit_shift = digit_shift_of(w->shift);
        for (int64_t i = 0; i < count; i++)
            w->m->counts[digit_of(w, keys[i])]++;
        take_digit(w, 1);
        int64_t kept = 0;
        for (int64_t i = 0; i < count; i++)
            if (shares_prefix(w, keys[i]))
                keys[kept++] = keys[i];
        count = kept;
    }
}

/* The k-th key, and how many of its equals win. */
static void find_key(row_work *w)
{
    w->prefix = 0;
    w->shift = 8 * (int)w->c->bytes;
    w->wanted = w->c->k;
    while (w->shift > 0) {
        w->digit_shift = digit_shift_of(w->shift);
        sti_team_run(w->team, w->c->pieces, count_digits, w);
        const int64_t count = take_digit(w, w->c->pieces);
        if (w->shift > 0 && count <= w->c->gathered) {
            gather(w);
            search_gathered(w, count);
        }
    }
    w->ties = w->wanted;
}

static void count_winners(void *arg, int64_t piece, int worker)
{
    const row_work *w = arg;
    int64_t above = 0, equal = 0;
    (void)worker;
    for (int64_t i = piece_begin(w->c, piece), end = piece_begin(w->c, piece + 1);
         i < end; i++) {
        const uint64_t key = key_at(w, i);
        above += key > w->prefix;
        equal += key == w->prefix;
    }
    w->m->above[piece] = above;
    w->m->equal[piece] = equal;
}

/* Counts into places: winners before each piece, equals before it. */
static void place_winners(row_work *w)
{
    int64_t at = 0, equal = 0;
    for (int piece = 0; piece < w->c->pieces; piece++) {
        const int64_t above = w->m->above[piece], own = w->m->equal[piece];
        const int64_t left = sti_topk_max(0, w->ties - equal);
        w->m->above[piece] = at;
        w->m->equal[piece] = equal;
        at += above + sti_topk_min(own, left);
        equal += own;
    }
}

static void emit_piece(void *arg, int64_t piece, int worker)
{
    const row_work *w = arg;
    const wide_call *c = w->c;
    int64_t at = w->m->above[piece], equal = w->m->equal[piece];
    int64_t *index = c->index + w->row * c->k;
    (void)worker;
    for (int64_t i = piece_begin(c, piece), end = piece_begin(c, piece + 1); i < end;
         i++) {
        const uint64_t key = key_at(w, i);
        if (key < w->prefix || (key == w->prefix && equal++ >= w->ties))
            continue;
        if (c->desc->sorted)
            w->m->best[at] = (pair){key, i};
        index[at++] = i;
    }
}

/* Best first; at equal keys in the order that they have. */
static pair *merge_sort(pair *from, pair *to, int64_t count)
{
    for (int64_t run = 1; run < count; run *= 2) {
        for (int64_t begin = 0; begin < count; begin += 2 * run) {
            const int64_t middle = sti_topk_min(begin + run, count);
            const int64_t end = sti_topk_min(middle + run, count);
            int64_t i = begin, j = middle, at = begin;
            while (i < middle && j < end)
                to[at++] = from[j].key > from[i].key ? from[j++] : from[i++];
            while (i < middle)
                to[at++] = from[i++];
            while (j < end)
                to[at++] = from[j++];
        }
        pair *const before = from;
        from = to;
        to = before;
    }
    return from;
}

/* Indices are places in the row until now. False: a NaN that is refused, whose index
 * comes first. */
static bool finish_row(const row_work *w)
{
    const wide_call *c = w->c;
    int64_t *index = c->index + w->row * c->k;
    if (c->map.is_float && c->desc->nan == STINT_TOPK_NAN_ERROR)
        for (int64_t i = 0; i < c->k; i++)
            if (key_at(w, index[i]) == c->map.nan_key) {
                index[0] = index[i] + c->desc->index_base;
                return false;
            }
    if (c->desc->sorted) {
        const pair *best = merge_sort(w->m->best, w->m->other, c->k);
        for (int64_t i = 0; i < c->k; i++)
            index[i] = best[i].index;
    }
    for (int64_t i = 0; i < c->k; i++) {
        if (c->values)
            memcpy(c->values + (size_t)(w->row * c->k + i) * c->bytes,
                   w->x + (size_t)index[i] * c->bytes, c->bytes);
        index[i] += c->desc->index_base;
    }
    return true;
}

static void run_row(void *arg, int64_t row, int worker)
{
    wide_call *c = arg;
    sti_topk_layout layout = {.base = c->memory + (size_t)worker * c->slot_bytes};
    const room m = take_room(&layout, c);
    const sti_team team = {.threads = c->pieces};
    row_work w = {.c = c,
                  .m = &m,
                  .x = c->x + (size_t)(row * c->stride) * c->bytes,
                  .team = &team,
                  .row = row};
    find_key(&w);
    if (c->pieces > 1)
        sti_team_run(&team, c->pieces, count_winners, &w);
    else
        m.above[0] = m.equal[0] = 0;
    place_winners(&w);
    sti_team_run(&team, c->pieces, emit_piece, &w);
    if (finish_row(&w))
        return;
    long long seen = atomic_load(&c->bad_row);
    while (row < seen && !atomic_compare_exchange_weak(&c->bad_row, &seen, row))
        continue;
}

/* ---- the calls ---- */

static stint_status check_pointers(const wide_call *c, const void *x,
                                   const int64_t *index_out, const void *workspace,
                                   size_t given_bytes, size_t needed_bytes)
{
    if (!x || !index_out)
        return sti_fail(STINT_E_USAGE,
                        "top-k: %s is NULL, but there are %" PRId64 " elements a row",
                        !x ? "x" : "index_out", c->n);
    if (!workspace || given_bytes < needed_bytes)
        return sti_fail(STINT_E_USAGE,
                        "top-k: workspace of %zu bytes, but %zu are needed; "
                        "stint_topk_workspace_bytes tells",
                        workspace ? given_bytes : (size_t)0, needed_bytes);
    return STINT_OK;
}

stint_status sti_topk_wide(const stint_topk_desc *desc, const void *x,
                           int64_t *index_out, void *values_out, void *workspace,
                           size_t workspace_bytes)
{
    wide_call c;
    size_t bytes = 0;
    stint_status status = describe(desc, &c);
    if (status != STINT_OK || c.k == 0)
        return status;
    status = room_bytes(&c, &c.slot_bytes, &bytes);
    if (status == STINT_OK)
        status = check_pointers(&c, x, index_out, workspace, workspace_bytes, bytes);
    if (status != STINT_OK)
        return status;
    unsigned char *memory = workspace;
    c.memory = memory + (64 - (uintptr_t)memory % 64) % 64;
    c.x = x;
    c.index = index_out;
    c.values = values_out;
    atomic_init(&c.bad_row, INT64_MAX);
    if (c.slots > 1) {
        const sti_team team = {.threads = c.slots};
        sti_team_run(&team, c.rows, run_row, &c);
    } else {
        for (int64_t row = 0; row < c.rows; row++)
            run_row(&c, row, 0);
    }
    const int64_t bad = atomic_load(&c.bad_row);
    return bad == INT64_MAX ? STINT_OK : sti_topk_nan_fail(bad, c.index[bad * c.k]);
}

stint_status sti_topk_wide_explain(const stint_topk_desc *desc,
                                   stint_topk_method *method_out, int *exponent_out,
                                   double *seconds_out)
{
    wide_call c;
    const stint_status status = describe(desc, &c);
    if (status != STINT_OK)
        return status;
    sti_topk_costs costs;
    sti_topk_costs_builtin(&costs);
    if (desc->costs)
        costs = sti_topk_costs_of(desc->costs);
    *method_out = c.k == 0 ? STINT_TOPK_PACK : STINT_TOPK_RADIX;
    *exponent_out = 0;
    /* Two histograms and the pass that gives the winners. */
    *seconds_out =
        c.k == 0 ? 0 : 3e-9 * costs.histogram * (double)c.n / (double)c.pieces;
    return STINT_OK;
}
