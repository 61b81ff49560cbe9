/* The cache's policies against models that look at every slot, and unique rows of
 * batches against a table. */
#include "embed/cache_flow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "embed/row_batch.h"

enum { ROWS = 60, BATCHES = 400, MOST = 6, SLOTS = 20, HOT = 4 };

typedef struct course {
    uint32_t rank[BATCHES][MOST];
    int64_t count[BATCHES];
} course;

/* Skewed ranks, each once a batch, ascending. */
static void make_course(course *c, uint64_t seed)
{
    for (int64_t b = 0; b < BATCHES; b++) {
        uint32_t ids[MOST], scratch[MOST];
        for (int i = 0; i < MOST; i++) {
            uint32_t w[4];
            sti_random4(seed, STI_STREAM_TEST, (uint64_t)b, (uint64_t)i, w);
            const float u = sti_uniform(w[0]);
            ids[i] = (uint32_t)(u * u * ROWS);
        }
        c->count[b] = sti_row_batch_unique(ids, MOST, scratch);
        memcpy(c->rank[b], ids, sizeof ids);
    }
}

static stint_status look(void *user, int64_t batch, uint32_t *rank_out,
                         int64_t *count_out)
{
    const course *c = user;
    memcpy(rank_out, c->rank[batch], sizeof c->rank[batch]);
    *count_out = c->count[batch];
    return STINT_OK;
}

static sti_cache_desc desc_of(course *c, sti_cache_policy policy, int64_t lookahead)
{
    return (sti_cache_desc){.policy = policy,
                            .rows = ROWS,
                            .hot = HOT,
                            .slots = SLOTS,
                            .lookahead = lookahead,
                            .entries = (lookahead + 3) * MOST,
                            .most = MOST,
                            .batches = BATCHES,
                            .look = look,
                            .user = c};
}

/* ---- a model that looks at everything ---- */

typedef struct model {
    const course *c;
    sti_cache_policy policy;
    int64_t lookahead;
    uint32_t rank[SLOTS];
    int64_t used[SLOTS]; /* clock of the last use (lru), or of coming in (lfu) */
    int64_t uses[SLOTS];
    int64_t clock, missed;
} model;

/* The next batch after b that has the rank, as far as is seen from batch b. */
static int64_t next_use(const model *m, uint32_t rank, int64_t b)
{
    for (int64_t k = b + 1; k < BATCHES && k <= b + m->lookahead; k++)
        for (int64_t i = 0; i < m->c->count[k]; i++)
            if (m->c->rank[k][i] == rank)
                return k;
    return -1;
}

static bool in_batch(const model *m, uint32_t rank, int64_t b)
{
    for (int64_t i = 0; i < m->c->count[b]; i++)
        if (m->c->rank[b][i] == rank)
            return true;
    return false;
}

/* Is slot a to go rather than b, at batch now? */
static bool goes_first(const model *m, int a, int b, int64_t now)
{
    if (m->policy == STI_CACHE_STATIC)
        return m->rank[a] > m->rank[b];
    if (m->policy == STI_CACHE_LRU)
        return m->used[a] < m->used[b];
    if (m->policy == STI_CACHE_LFU)
        return m->uses[a] != m->uses[b] ? m->uses[a] < m->uses[b]
                                        : m->used[a] < m->used[b];
    const int64_t x = next_use(m, m->rank[a], now), y = next_use(m, m->rank[b], now);
    if (x < 0 && y < 0)
        return m->rank[a] > m->rank[b];
    if (x < 0 || y < 0)
        return x < 0;
    /* The index orders equal uses by a quarter of the rank; any order misses as much.
     */
    return x != y ? x > y : m->rank[a] / 4 > m->rank[b] / 4;
}

static int find(const model *m, uint32_t rank)
{
    for (int s = 0; s < SLOTS; s++)
        if (m->rank[s] == rank)
            return s;
    return -1;
}

static void run_batch(model *m, int64_t b)
{
    for (int64_t i = 0; i < m->c->count[b]; i++) {
        const uint32_t rank = m->c->rank[b][i];
        int victim = -1;
        if (rank < HOT || find(m, rank) >= 0)
            continue;
        for (int s = 0; s < SLOTS; s++)
            if (!in_batch(m, m->rank[s], b) &&
                (victim < 0 || goes_first(m, s, victim, b)))
                victim = s;
        m->rank[victim] = rank;
        m->uses[victim] = 0;
        m->used[victim] = ++m->clock;
        m->missed++;
    }
    for (int64_t i = 0; i < m->c->count[b]; i++) {
        const int s = m->c->rank[b][i] < HOT ? -1 : find(m, m->c->rank[b][i]);
        if (s < 0)
            continue;
        m->uses[s]++;
        if (m->policy == STI_CACHE_LRU)
            m->used[s] = ++m->clock;
    }
}

static int64_t model_misses(const course *c, sti_cache_policy policy, int64_t lookahead)
{
    model m = {.c = c, .policy = policy, .lookahead = lookahead};
    for (int s = 0; s < SLOTS; s++)
        m.rank[s] = (uint32_t)(HOT + s);
    for (int64_t b = 0; b < BATCHES; b++)
        run_batch(&m, b);
    return m.missed;
}

static int64_t misses(course *c, sti_cache_policy policy, int64_t lookahead,
                      int64_t depth)
{
    const sti_cache_desc desc = desc_of(c, policy, lookahead);
    sti_cache_flow flow;
    assert_int_equal(sti_cache_flow_plan(&desc, depth, look, c, &flow), STINT_OK);
    const int64_t missed = flow.missed_all;
    assert_true(flow.given_dirty <= flow.given && flow.given <= missed);
    sti_cache_flow_fini(&flow);
    return missed;
}

static void policies_are_those_of_a_model(void **state)
{
    course *c = malloc(sizeof *c);
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        make_course(c, seed);
        assert_int_equal(misses(c, STI_CACHE_STATIC, 4, 0),
                         model_misses(c, STI_CACHE_STATIC, 4));
        assert_int_equal(misses(c, STI_CACHE_FUTURE, 12, 0),
                         model_misses(c, STI_CACHE_FUTURE, 12));
    }
    free(c);
}

/* With a window over all of it nothing misses less; a longer one does not miss more, by
 * more than a few. */
static void what_is_known_helps(void **state)
{
    course *c = malloc(sizeof *c);
    (void)state;
    make_course(c, 9);
    const int64_t all = misses(c, STI_CACHE_FUTURE, BATCHES, 0);
    assert_true(all < misses(c, STI_CACHE_FUTURE, 2, 0));
    assert_true(all < misses(c, STI_CACHE_STATIC, 4, 0));
    assert_true(all < misses(c, STI_CACHE_LFU, 4, 0));
    assert_true(all < misses(c, STI_CACHE_LRU, 4, 0));
    assert_true(misses(c, STI_CACHE_STATIC, 4, 0) < misses(c, STI_CACHE_LRU, 4, 0));
    for (int64_t depth = 1; depth <= 2; depth++)
        for (int policy = 0; policy < 4; policy++)
            assert_true(misses(c, (sti_cache_policy)policy, 16, depth) >= all);
    free(c);
}

/* Every row of a batch has a slot of its own that stays while the batch is under way.
 */
static void slots_stay_while_pinned(void **state)
{
    course *c = malloc(sizeof *c);
    uint32_t slot[3][MOST];
    (void)state;
    make_course(c, 3);
    for (int policy = 0; policy < 4; policy++) {
        const sti_cache_desc desc = desc_of(c, (sti_cache_policy)policy, 8);
        sti_cache_flow f;
        assert_int_equal(sti_cache_flow_init(&f, &desc), STINT_OK);
        (void)sti_cache_index_warm(&f.index);
        for (int64_t b = 0; b < BATCHES; b++) {
            assert_int_equal(
                sti_cache_flow_prepare(&f, b, c->rank[b], c->count[b], slot[b % 3]),
                STINT_OK);
            for (int64_t k = b > 2 ? b - 2 : 0; k <= b; k++)
                for (int64_t i = 0; i < c->count[k]; i++)
                    assert_int_equal(sti_cache_index_find(&f.index, c->rank[k][i]),
                                     slot[k % 3][i]);
            if (b >= 2)
                sti_cache_flow_release(&f, b - 2, slot[(b - 2) % 3], c->count[b - 2],
                                       true);
        }
        sti_cache_flow_fini(&f);
    }
    free(c);
}

static void too_few_slots_are_refused(void **state)
{
    course *c = malloc(sizeof *c);
    sti_cache_flow flow;
    (void)state;
    make_course(c, 2);
    sti_cache_desc desc = desc_of(c, STI_CACHE_LRU, 4);
    desc.hot = 0;
    desc.slots = 3;
    assert_int_equal(sti_cache_flow_plan(&desc, 1, look, c, &flow), STINT_E_BUDGET);
    sti_cache_flow_fini(&flow);
    free(c);
}

static void batches_are_sorted_by_row(void **state)
{
    enum { IDS = 5000 };
    uint32_t rank[IDS], vector[IDS], seen = 0;
    sti_row_batch b;
    (void)state;
    for (uint32_t i = 0; i < IDS; i++) {
        uint32_t w[4];
        sti_random4(4, STI_STREAM_TEST, i, 0, w);
        rank[i] = w[0] % 700 * (i % 2 ? 1 : 6000000);
        vector[i] = 3 * i;
    }
    assert_int_equal(sti_row_batch_init(&b, IDS), STINT_OK);
    sti_row_batch_build(&b, rank, vector, IDS);
    for (int64_t u = 0; u < b.count; u++) {
        assert_true(u == 0 || b.rank[u] > b.rank[u - 1]);
        for (uint32_t k = b.start[u]; k < b.start[u + 1]; k++, seen++) {
            assert_int_equal(rank[b.vector[k] / 3], b.rank[u]);
            assert_true(k == b.start[u] || b.vector[k] > b.vector[k - 1]);
        }
    }
    assert_int_equal(seen, IDS);
    for (int i = 0; i < IDS; i++)
        assert_int_equal(b.rank[b.place[i]], rank[i]);
    sti_row_batch_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_are_those_of_a_model),
        cmocka_unit_test(what_is_known_helps),
        cmocka_unit_test(slots_stay_while_pinned),
        cmocka_unit_test(too_few_slots_are_refused),
        cmocka_unit_test(batches_are_sorted_by_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
