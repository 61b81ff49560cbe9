#include "trust/memory_estimate.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernel/reduce/bit_count.h"

enum {
    PERMUTATIONS = 4, /* by which chance is judged */
    TESTS = 32,       /* test images of a piece */
    NEAREST = 8,
    LEAST_RUNS = 2 /* with an example, and without it */
};
#define MEMORISED   0.25
#define CHANCE_MOST 0.05
#define CUT_LEAST   0.05 /* of influence: nothing below is called strong */

/* Training examples sorted by class, in groups of eight that never cross a class
 * (padded with columns of zeros), and what is known of each. */
typedef struct packed {
    int64_t groups, words;
    uint64_t *bits;    /* [groups, words, 8] */
    int32_t *example;  /* [groups, 8]; -1: padding */
    int32_t *with;     /* n1, [groups, 8] */
    int64_t *first;    /* [classes + 1]: first group of each class */
    int64_t *examples; /* [classes]: in each */
} packed;

typedef struct tally {
    int64_t pairs, undefined;
    int64_t histogram[STINT_MEMORY_BINS];
} tally;

typedef struct scan {
    const sti_memory_bits *bits;
    packed set;
    bool every_class;
    int64_t nearest;
    uint32_t *count;         /* [threads, groups * 8] */
    tally *tally;            /* [threads] */
    stint_memory_pair *pair; /* [test, nearest], or NULL: only counted */
} scan;

/* ---- one pair ---- */

typedef struct estimate {
    double value, error;
} estimate;

static double influence_of(int64_t both, int64_t right, int64_t with, int64_t runs)
{
    return (double)both / (double)with - (double)(right - both) / (double)(runs - with);
}

static bool is_defined(int64_t with, int64_t runs)
{
    return with >= LEAST_RUNS && runs - with >= LEAST_RUNS;
}

static estimate estimate_of(int64_t both, int64_t right, int64_t with, int64_t runs)
{
    if (!is_defined(with, runs))
        return (estimate){(double)NAN, (double)NAN};
    const double n1 = (double)with, n0 = (double)(runs - with);
    const double p1 = (double)both / n1, p0 = (double)(right - both) / n0;
    return (estimate){p1 - p0, sqrt(p1 * (1 - p1) / n1 + p0 * (1 - p0) / n0)};
}

static int bin_of(double influence)
{
    const int bin = (int)((influence + 1) * (STINT_MEMORY_BINS / 2));
    return bin < STINT_MEMORY_BINS ? bin : STINT_MEMORY_BINS - 1;
}

static double bin_start(int bin)
{
    return (double)(bin - STINT_MEMORY_BINS / 2) / (STINT_MEMORY_BINS / 2);
}

static int64_t ones(const uint64_t *column, int64_t words)
{
    return sti_bit_and_count_pair(column, column, words);
}

/* ---- memorisation ---- */

static estimate memorisation_of(const sti_memory_bits *b, const uint64_t *member,
                                int64_t i)
{
    const uint64_t *right = b->train_right + i * b->words;
    return estimate_of(sti_bit_and_count_pair(member, right, b->words),
                       ones(right, b->words), ones(member, b->words), b->runs);
}

/* A column with its runs in another order. */
static void permute(const uint64_t *column, const int32_t *order, int64_t runs,
                    int64_t words, uint64_t *out)
{
    memset(out, 0, (size_t)words * sizeof *out);
    for (int64_t r = 0; r < runs; r++)
        out[r / 64] |= (column[order[r] / 64] >> (order[r] % 64) & 1) << (r % 64);
}

typedef struct ranked {
    double value;
    int64_t index;
} ranked;

static int by_value(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (isnan(x->value) || isnan(y->value))
        return isnan(x->value) != isnan(y->value)
                   ? (isnan(x->value) ? 1 : -1)
                   : (x->index > y->index) - (x->index < y->index);
    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static stint_status sort_order(stint_memory *m)
{
    ranked *all = sti_alloc_array(m->train, sizeof *all, "order");
    if (!all)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < m->train; i++)
        all[i] = (ranked){m->memorisation[i], i};
    qsort(all, (size_t)m->train, sizeof *all, by_value);
    for (int64_t i = 0; i < m->train; i++)
        m->order[i] = all[i].index;
    sti_free(all);
    return STINT_OK;
}

static void find_memorisation(const sti_memory_bits *b, stint_memory *m)
{
    for (int64_t i = 0; i < b->train; i++) {
        const estimate e = memorisation_of(b, b->member + i * b->words, i);
        m->memorisation[i] = e.value;
        m->error[i] = e.error;
        m->undefined += isnan(e.value);
        m->memorised += e.value >= m->memorised_from;
    }
}

/* Images beyond the cut when membership is that of other runs. */
static int64_t memorised_by_chance(const sti_memory_bits *b, const int32_t *order,
                                   double from, uint64_t *column)
{
    int64_t count = 0;
    for (int64_t i = 0; i < b->train; i++) {
        permute(b->member + i * b->words, order, b->runs, b->words, column);
        count += memorisation_of(b, column, i).value >= from;
    }
    return count;
}

/* ---- packing ---- */

static void packed_fini(packed *p)
{
    sti_free(p->bits);
    sti_free(p->example);
    sti_free(p->with);
    sti_free(p->first);
    sti_free(p->examples);
    *p = (packed){0};
}

/* Which training examples are looked at: all (from NULL), or the memorised ones. */
static bool is_chosen(const stint_memory *from, int64_t i)
{
    return !from || from->memorisation[i] >= from->memorised_from;
}

static stint_status packed_measure(packed *p, const sti_memory_bits *b,
                                   const stint_memory *from)
{
    p->words = b->words;
    p->first = sti_alloc_array(b->classes + 1, sizeof *p->first, "classes");
    p->examples = sti_alloc_array(b->classes, sizeof *p->examples, "classes");
    if (!p->first || !p->examples)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < b->train; i++)
        p->examples[b->train_label[i]] += is_chosen(from, i);
    for (int32_t c = 0; c < b->classes; c++)
        p->first[c + 1] =
            p->first[c] + (p->examples[c] + STI_BIT_LANES - 1) / STI_BIT_LANES;
    p->groups = p->first[b->classes];
    const int64_t lanes = p->groups * STI_BIT_LANES;
    p->bits = sti_alloc_array(lanes * b->words, sizeof *p->bits, "columns");
    p->example = sti_alloc_array(lanes, sizeof *p->example, "columns");
    p->with = sti_alloc_array(lanes, sizeof *p->with, "columns");
    return p->bits && p->example && p->with ? STINT_OK : STINT_E_MEMORY;
}

static void packed_put(packed *p, int64_t lane, int64_t example, const uint64_t *column)
{
    uint64_t *to = p->bits + lane / STI_BIT_LANES * p->words * STI_BIT_LANES +
                   lane % STI_BIT_LANES;
    for (int64_t w = 0; w < p->words; w++)
        to[w * STI_BIT_LANES] = column[w];
    p->example[lane] = (int32_t)example;
    p->with[lane] = (int32_t)ones(column, p->words);
}

/* order: of the runs, by which membership is permuted; NULL: as it is. */
static stint_status packed_init(packed *p, const sti_memory_bits *b,
                                const stint_memory *from, const int32_t *order)
{
    stint_status st = packed_measure(p, b, from);
    int64_t *next = sti_alloc_array(b->classes, sizeof *next, "classes");
    uint64_t *column = sti_alloc_array(b->words, sizeof *column, "column");
    if (!next || !column)
        st = STINT_E_MEMORY;
    for (int64_t i = 0; st == STINT_OK && i < p->groups * STI_BIT_LANES; i++)
        p->example[i] = -1;
    for (int64_t i = 0; st == STINT_OK && i < b->train; i++) {
        const int32_t c = b->train_label[i];
        const uint64_t *from_column = b->member + i * b->words;
        if (!is_chosen(from, i))
            continue;
        if (order)
            permute(from_column, order, b->runs, b->words, column);
        packed_put(p, p->first[c] * STI_BIT_LANES + next[c]++, i,
                   order ? column : from_column);
    }
    sti_free(next);
    sti_free(column);
    return st;
}

/* ---- all pairs ---- */

/* Strongest first; of equal ones the lower example. */
static void keep_pair(stint_memory_pair *nearest, int64_t n, stint_memory_pair pair)
{
    int64_t at = n;
    while (at > 0 &&
           (nearest[at - 1].train < 0 || nearest[at - 1].influence < pair.influence ||
            (nearest[at - 1].influence == pair.influence &&
             nearest[at - 1].train > pair.train)))
        at--;
    if (at == n)
        return;
    memmove(nearest + at + 1, nearest + at, (size_t)(n - 1 - at) * sizeof *nearest);
    nearest[at] = pair;
}

static void consider(const scan *s, int64_t test, int64_t lane, int64_t both,
                     int64_t right, double influence)
{
    stint_memory_pair *nearest = s->pair + test * s->nearest;
    const stint_memory_pair *last = nearest + s->nearest - 1;
    if (last->train >= 0 && influence < last->influence)
        return;
    const estimate e = estimate_of(both, right, s->set.with[lane], s->bits->runs);
    keep_pair(nearest, s->nearest,
              (stint_memory_pair){s->set.example[lane], test, e.value, e.error});
}

static void scan_test(const scan *s, int64_t test, uint32_t *count, tally *t)
{
    const sti_memory_bits *b = s->bits;
    const uint64_t *column = b->test_right + test * b->words;
    const int32_t label = b->test_label[test];
    const int64_t begin = s->every_class ? 0 : s->set.first[label];
    const int64_t end = s->every_class ? s->set.groups : s->set.first[label + 1];
    const int64_t right = ones(column, b->words);
    sti_bit_and_count(s->set.bits + begin * b->words * STI_BIT_LANES, end - begin,
                      b->words, column, count);
    for (int64_t lane = begin * STI_BIT_LANES; lane < end * STI_BIT_LANES; lane++) {
        const int64_t both = count[lane - begin * STI_BIT_LANES];
        const int64_t with = s->set.with[lane];
        if (s->set.example[lane] < 0)
            continue;
        t->pairs++;
        if (!is_defined(with, b->runs)) {
            t->undefined++;
            continue;
        }
        const double influence = influence_of(both, right, with, b->runs);
        t->histogram[bin_of(influence)]++;
        if (s->pair)
            consider(s, test, lane, both, right, influence);
    }
}

static void scan_piece(void *arg, int64_t piece, int worker)
{
    const scan *s = arg;
    uint32_t *count = s->count + worker * s->set.groups * STI_BIT_LANES;
    for (int64_t j = piece * TESTS; j < (piece + 1) * TESTS && j < s->bits->test; j++)
        scan_test(s, j, count, &s->tally[worker]);
}

/* The pairs there must have been. */
static int64_t pairs_of(const scan *s)
{
    int64_t pairs = 0, all = 0;
    for (int32_t c = 0; c < s->bits->classes; c++)
        all += s->set.examples[c];
    for (int64_t j = 0; j < s->bits->test; j++)
        pairs += s->every_class ? all : s->set.examples[s->bits->test_label[j]];
    return pairs;
}

/* Look at the pairs of chosen training examples with all test examples. */
static stint_status scan_all(scan *s, const sti_team *team, const stint_memory *from,
                             const int32_t *order, tally *sum)
{
    stint_status st = packed_init(&s->set, s->bits, from, order);
    *sum = (tally){0};
    if (st == STINT_OK) {
        s->count = sti_alloc_array(team->threads * s->set.groups * STI_BIT_LANES,
                                   sizeof *s->count, "counts");
        s->tally = sti_alloc_array(team->threads, sizeof *s->tally, "histogram");
        st = s->count && s->tally ? STINT_OK : STINT_E_MEMORY;
    }
    if (st == STINT_OK)
        sti_team_run(team, (s->bits->test + TESTS - 1) / TESTS, scan_piece, s);
    for (int t = 0; st == STINT_OK && t < team->threads; t++) {
        sum->pairs += s->tally[t].pairs;
        sum->undefined += s->tally[t].undefined;
        for (int i = 0; i < STINT_MEMORY_BINS; i++)
            sum->histogram[i] += s->tally[t].histogram[i];
    }
    if (st == STINT_OK && sum->pairs != pairs_of(s))
        st = sti_fail(STINT_E_BUG, "influence: %" PRId64 " pairs of %" PRId64,
                      sum->pairs, pairs_of(s));
    sti_free(s->count);
    sti_free(s->tally);
    s->count = NULL;
    s->tally = NULL;
    packed_fini(&s->set);
    return st;
}

/* ---- chance ---- */

/* The lowest cut at which at most 5 % of the pairs are expected by chance. */
static void choose_cut(const tally *real, const tally *chance, stint_memory *m)
{
    int64_t found = 0, expected = 0;
    for (int bin = STINT_MEMORY_BINS - 1; bin_start(bin) >= CUT_LEAST; bin--) {
        found += real->histogram[bin];
        expected += chance->histogram[bin];
        const double share = (double)expected / PERMUTATIONS / (double)found;
        if (found == 0)
            continue;
        if (share > CHANCE_MOST)
            break;
        m->influence_from = bin_start(bin);
        m->influence_chance = share;
        m->influences = found;
    }
}

static void add_tally(tally *to, const tally *from)
{
    for (int i = 0; i < STINT_MEMORY_BINS; i++)
        to->histogram[i] += from->histogram[i];
}

static stint_status judge_chance(scan *s, const sti_team *team, uint64_t seed,
                                 const tally *real, stint_memory *m)
{
    const sti_memory_bits *b = s->bits;
    int32_t *order = sti_alloc_array(b->runs, sizeof *order, "order of runs");
    uint64_t *column = sti_alloc_array(b->words, sizeof *column, "column");
    stint_status st = order && column ? STINT_OK : STINT_E_MEMORY;
    tally chance = {0}, one;
    int64_t memorised = 0;
    s->pair = NULL;
    for (int p = 0; p < PERMUTATIONS && st == STINT_OK; p++) {
        /* Epochs that no run's subset has. */
        sti_shuffle(seed, STI_STREAM_SUBSET, UINT64_MAX - (uint64_t)p, b->runs, order);
        memorised += memorised_by_chance(b, order, m->memorised_from, column);
        st = scan_all(s, team, m, order, &one);
        if (st == STINT_OK)
            add_tally(&chance, &one);
    }
    if (st == STINT_OK) {
        if (m->memorised > 0)
            m->memorised_chance =
                (double)memorised / PERMUTATIONS / (double)m->memorised;
        choose_cut(real, &chance, m);
    }
    sti_free(order);
    sti_free(column);
    return st;
}

/* ---- all ---- */

static stint_status create_result(const sti_memory_bits *b,
                                  const stint_memory_desc *desc, stint_memory *m)
{
    *m = (stint_memory){.runs = b->runs,
                        .train = b->train,
                        .test = b->test,
                        .memorised_from =
                            desc->memorised > 0 ? desc->memorised : MEMORISED,
                        .memorised_chance = (double)NAN,
                        .every_class = desc->every_class,
                        .influence_from = (double)NAN,
                        .influence_chance = (double)NAN,
                        .nearest = desc->nearest > 0 ? desc->nearest : NEAREST};
    m->memorisation =
        sti_alloc_array(b->train, sizeof *m->memorisation, "memorisation");
    m->error = sti_alloc_array(b->train, sizeof *m->error, "memorisation");
    m->order = sti_alloc_array(b->train, sizeof *m->order, "memorisation");
    m->pair =
        sti_alloc_array(b->test, (size_t)m->nearest * sizeof *m->pair, "influence");
    if (!m->memorisation || !m->error || !m->order || !m->pair)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < b->test * m->nearest; i++)
        m->pair[i] = (stint_memory_pair){-1, i / m->nearest, (double)NAN, (double)NAN};
    return STINT_OK;
}

/* Largest where half of the runs are right on either side. */
static double error_bound(const sti_memory_bits *b)
{
    double bound = 0;
    for (int64_t i = 0; i < b->train; i++) {
        const int64_t with = ones(b->member + i * b->words, b->words);
        if (!is_defined(with, b->runs))
            continue;
        const double here = sqrt(0.25 / (double)with + 0.25 / (double)(b->runs - with));
        bound = here > bound ? here : bound;
    }
    return bound;
}

stint_status sti_memory_estimate(const sti_memory_bits *bits,
                                 const stint_memory_desc *desc, uint64_t seed,
                                 const sti_team *team, stint_memory *m)
{
    scan s = {.bits = bits, .every_class = desc->every_class};
    tally all, real;
    *m = (stint_memory){0};
    if (bits->runs < 2 * LEAST_RUNS)
        return sti_fail(STINT_E_USAGE,
                        "%" PRId64 " runs: an image needs two with it and two without; "
                        "give --runs 4 at least, some hundreds to tell images apart",
                        bits->runs);
    stint_status st = create_result(bits, desc, m);
    if (st == STINT_OK) {
        find_memorisation(bits, m);
        m->error_bound = error_bound(bits);
        st = sort_order(m);
    }
    if (st == STINT_OK)
        st = scan_all(&s, team, NULL, NULL, &all);
    if (st == STINT_OK) {
        m->pairs = all.pairs;
        m->undefined_pairs = all.undefined;
        memcpy(m->histogram, all.histogram, sizeof m->histogram);
        s.pair = m->pair;
        s.nearest = m->nearest;
        st = scan_all(&s, team, m, NULL, &real);
    }
    if (st == STINT_OK)
        st = judge_chance(&s, team, seed, &real, m);
    if (st != STINT_OK)
        stint_memory_fini(m);
    return st;
}

void stint_memory_fini(stint_memory *m)
{
    sti_free(m->memorisation);
    sti_free(m->error);
    sti_free(m->order);
    sti_free(m->pair);
    *m = (stint_memory){0};
}
