/* Methods that bound the k-th key first - from a sample, or by histograms of the keys
 * where they lie - and then scan the row once: elements above both bounds are counted,
 * those between are packed, and a selection among these is exact. */
#include "kernel/topk/topk_key.h"
#include "kernel/topk/topk_pool.h"

typedef struct threshold_scan {
    const sti_topk_job *job;
    uint32_t lo, hi;
    bool count_only; /* what lies between is all ties, or all winners: only its number
                        is wanted */
    bool tied;       /* lo may be just above the k-th, where a value is often */
    sti_topk_pool pool;
    int64_t above, inside, run_count; /* afterwards: totals, runs in scratch->ordered */
} threshold_scan;

/* ---- one pass ---- */

static void scan_piece(void *arg, int64_t piece, int worker)
{
    threshold_scan *s = arg;
    const sti_topk_job *job = s->job;
    const int64_t end = sti_topk_piece_begin(job->plan, piece + 1);
    int64_t at = sti_topk_piece_begin(job->plan, piece), above = 0, inside = 0;
    sti_topk_run *run = NULL;
    (void)worker;
    if (s->count_only)
        inside = job->ops->count(job->view, at, end, s->lo, s->hi, &above);
    for (; !s->count_only && at < end; at += STI_TOPK_LOOK) {
        if (!run || run->count + STI_TOPK_LOOK > STI_TOPK_SEGMENT)
            if (sti_topk_pool_is_full(&s->pool) ||
                !(run = sti_topk_pool_next(&s->pool, piece)))
                return;
        const int64_t count =
            job->ops->collect(job->view, at, sti_topk_min(at + STI_TOPK_LOOK, end),
                              s->lo, s->hi, run->at + run->count, &above);
        run->count += count;
        inside += count;
    }
    job->scratch->above[piece] = above;
    job->scratch->inside[piece] = inside;
}

/* False when the pool is too small. */
static bool scan_row(threshold_scan *s)
{
    const sti_topk_plan *p = s->job->plan;
    sti_topk_pool_init(&s->pool, s->job->scratch, sti_topk_pool_segments(p),
                       STI_TOPK_SEGMENT);
    sti_team_run(s->job->team, p->pieces, scan_piece, s);
    if (sti_topk_pool_is_full(&s->pool))
        return false;
    s->above = s->inside = 0;
    for (int64_t i = 0; i < p->pieces; i++) {
        s->above += s->job->scratch->above[i];
        s->inside += s->job->scratch->inside[i];
    }
    s->run_count = sti_topk_pool_order(&s->pool, p->pieces);
    return true;
}

/* ---- emission ---- */

/* Winners of each piece to scratch->offset, as running totals; `cut` as in the pool. */
static void find_offsets(const threshold_scan *s, uint64_t cut, int64_t wanted)
{
    const sti_topk_scratch *scratch = s->job->scratch;
    int64_t total = 0, run = 0;
    for (int64_t i = 0; i < s->job->plan->pieces; i++) {
        int64_t inside = s->count_only ? sti_topk_min(scratch->inside[i], wanted) : 0;
        wanted -= inside;
        for (; run < s->run_count && scratch->ordered[run].piece == i; run++)
            for (int64_t j = 0; j < scratch->ordered[run].count; j++)
                inside += scratch->ordered[run].at[j] >= cut;
        scratch->offset[i] = total;
        total += scratch->above[i] + inside;
    }
    scratch->offset[s->job->plan->pieces] = total;
}

/* The winners, when above <= k <= above + inside. */
static void emit_scanned(const threshold_scan *s)
{
    const sti_topk_job *job = s->job;
    const sti_topk_scratch *scratch = job->scratch;
    const int64_t wanted = job->plan->k - s->above;
    uint32_t key = s->lo;
    int64_t last = STI_TOPK_TO_END;
    uint64_t cut = 0;
    if (wanted == 0) {
        key = s->hi + 1; /* there are such: not beyond the last key */
        cut = UINT64_MAX;
    } else if (s->count_only) {
        if (wanted < s->inside)
            last = sti_topk_find_tie(job, s->lo, wanted);
    } else {
        cut = sti_topk_cut(&scratch->cutter, scratch->ordered, s->run_count, wanted);
        if (s->above == 0) {
            sti_topk_emit_runs(job, scratch->ordered, s->run_count, cut);
            return;
        }
        if (cut > 0) {
            key = (uint32_t)(cut >> 32);
            last = sti_topk_packed_index(cut);
        }
    }
    find_offsets(s, cut, wanted);
    sti_topk_emit_pieces(job, key, last);
}

static bool bounds_hold(const threshold_scan *s)
{
    const int64_t k = s->job->plan->k;
    return s->above <= k && k <= s->above + s->inside;
}

/* ---- bounds from a sample ---- */

enum { SAMPLE_PIECE = 4096, SCANS_MOST = 5 };

/* Stratified, with a fixed scramble within the stratum, so that neither an order nor a
 * period of the data meets the sample's. Stratum j begins at floor(j n / s), which is
 * followed by addition. */
static void sample_piece(void *arg, int64_t piece, int worker)
{
    const sti_topk_job *job = arg;
    const int64_t n = job->view->n, s = job->plan->sample;
    const int64_t first = piece * SAMPLE_PIECE;
    const int64_t end = sti_topk_min(s, first + SAMPLE_PIECE);
    int64_t begin = first * n / s, part = first * n % s;
    (void)worker;
    for (int64_t j = first; j < end; j++) {
        int64_t next = begin + n / s;
        part += n % s;
        if (part >= s) {
            part -= s;
            next++;
        }
        uint64_t h = ((uint64_t)j + 1) * UINT64_C(0x9E3779B97F4A7C15);
        h = (h ^ h >> 29) * UINT64_C(0xBF58476D1CE4E5B9) >> 32;
        const int64_t i = begin + (int64_t)(h * (uint64_t)(next - begin) >> 32);
        job->scratch->sample[j] = sti_topk_key_at(job->view, i);
        begin = next;
    }
}

static int64_t sampled_between(const sti_topk_plan *p, const sti_topk_scratch *scratch,
                               uint32_t lo, uint32_t hi)
{
    int64_t between = 0;
    for (int64_t i = 0; i < p->sample; i++)
        between += scratch->sample[i] >= lo && scratch->sample[i] <= hi;
    return between;
}

static bool fits_pool(const sti_topk_plan *p, int64_t sampled)
{
    return (double)sampled / (double)p->sample * (double)p->n <= 0.9 * (double)p->pool;
}

/* Bounds from the sample's ranks. Where equal elements make what lies between them too
 * much for the pool, the k-th is very likely one of those: one value is both bounds,
 * and its ties are only counted. */
static void bound_by_sample(threshold_scan *s)
{
    const sti_topk_plan *p = s->job->plan;
    const sti_topk_scratch *scratch = s->job->scratch;
    s->lo = sti_topk_kth(scratch->sample, p->sample, p->sample_lo, scratch->histogram);
    s->hi = UINT32_MAX;
    if (p->sample_hi > 0)
        s->hi =
            sti_topk_kth(scratch->sample, p->sample, p->sample_hi, scratch->histogram);
    if (!fits_pool(p, sampled_between(p, scratch, s->lo, s->hi))) {
        const int64_t rank =
            (int64_t)((double)p->k / (double)p->n * (double)p->sample + 0.5);
        s->lo = s->hi = sti_topk_kth(scratch->sample, p->sample, sti_topk_max(rank, 1),
                                     scratch->histogram);
        /* If there is room for it and for all above it, no second pass is needed. */
        if (p->sample_hi == 0 &&
            fits_pool(p, sampled_between(p, scratch, s->lo, UINT32_MAX))) {
            s->hi = UINT32_MAX;
            s->tied = true;
        }
    }
    s->count_only = s->lo == s->hi;
}

/* Keys that the k-th may have. */
typedef struct bracket {
    uint32_t lo, hi;
} bracket;

/* Where few values are very often, the k-th may not be the one that the sample says,
 * but the next one: the nearest that the sample knows, and if it knows none, the few
 * elements between those that it is not. */
static void next_tie(threshold_scan *s, bracket *b)
{
    const sti_topk_plan *p = s->job->plan;
    const uint32_t *sample = s->job->scratch->sample;
    const bool higher = s->above >= p->k;
    bool found = false;
    uint32_t best = higher ? UINT32_MAX : 0;
    if (higher)
        b->lo = s->hi + 1;
    else
        b->hi = s->lo - 1;
    for (int64_t i = 0; i < p->sample; i++) {
        if (sample[i] < b->lo || sample[i] > b->hi)
            continue;
        found = true;
        best = higher ? (sample[i] < best ? sample[i] : best)
                      : (sample[i] > best ? sample[i] : best);
    }
    s->lo = found ? best : b->lo;
    s->hi = found ? best : b->hi;
    s->count_only = s->lo == s->hi;
}

/* False when the guess did not hold. */
static bool scan_by_sample(const sti_topk_job *job)
{
    const sti_topk_plan *p = job->plan;
    sti_topk_job copy = *job;
    threshold_scan s = {.job = job};
    sti_team_run(job->team, sti_topk_ceil(p->sample, SAMPLE_PIECE), sample_piece,
                 &copy);
    bound_by_sample(&s);
    bracket b = {0, UINT32_MAX};
    for (int pass = 0; pass < SCANS_MOST; pass++) {
        if (!scan_row(&s))
            return false;
        if (bounds_hold(&s)) {
            emit_scanned(&s);
            return true;
        }
        if (!s.count_only && !s.tied)
            return false;
        s.tied = false;
        next_tie(&s, &b);
    }
    return false;
}

/* ---- bounds from histograms ---- */

typedef struct counting {
    const sti_topk_job *job;
    uint32_t lo, hi;
    int shift;
} counting;

static void count_piece(void *arg, int64_t piece, int worker)
{
    const counting *c = arg;
    uint32_t *counts = c->job->scratch->histogram + piece * STI_TOPK_BINS;
    (void)worker;
    memset(counts, 0, STI_TOPK_BINS * sizeof *counts);
    c->job->ops->histogram(c->job->view, sti_topk_piece_begin(c->job->plan, piece),
                           sti_topk_piece_begin(c->job->plan, piece + 1), c->lo, c->hi,
                           c->shift, counts);
}

static int64_t bin_total(const sti_topk_job *job, int64_t bin)
{
    int64_t total = 0;
    for (int64_t i = 0; i < job->plan->pieces; i++)
        total += job->scratch->histogram[i * STI_TOPK_BINS + bin];
    return total;
}

/* In place, from the top digit down: the bounds narrow to the digit in which the
 * running count from above reaches k. No element moves until those between the bounds
 * fit the pool; all of them may be winners, or ties, before that. */
void sti_topk_by_radix(const sti_topk_job *job)
{
    const sti_topk_plan *p = job->plan;
    const int bits = 8 * (int)sti_topk_element_bytes(job->view->form);
    threshold_scan s = {.job = job, .hi = UINT32_MAX >> (32 - bits)};
    int64_t rank = p->k, inside = p->n;
    for (int left = bits; left > 0 && inside > p->pool && inside != rank;) {
        const int digit_bits = left < 11 ? left : 11;
        counting c = {job, s.lo, s.hi, left - digit_bits};
        sti_team_run(job->team, p->pieces, count_piece, &c);
        int64_t digit = (INT64_C(1) << digit_bits) - 1;
        while (rank > (inside = bin_total(job, digit))) {
            rank -= inside;
            digit--;
        }
        left -= digit_bits;
        s.lo += (uint32_t)digit << left;
        s.hi = s.lo + (uint32_t)((UINT64_C(1) << left) - 1);
    }
    s.count_only = s.lo == s.hi || inside == rank;
    scan_row(&s);
    emit_scanned(&s);
}

void sti_topk_by_threshold(const sti_topk_job *job)
{
    if (!scan_by_sample(job))
        sti_topk_by_radix(job);
}
