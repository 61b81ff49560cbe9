/* A compressed sum goes on when a plan with other packs moves the results of a step:
 * bits and what is owed follow their layers, on every rank. */
#include "train_support.h" /* cmocka, which the next stands on */

#include "base/rng.h"
#include "net/comm_world.h"
#include "train/job.h"

enum { RANKS = 3 };

/* What the ranks work on. */
typedef struct moving {
    const sti_network *from, *to;
    sti_exchange_desc desc;
    float *before, *after; /* states of rank 0, [counts] */
    int64_t before_count, after_count;
} moving;

static int set_up(void **state)
{
    (void)state;
    make_folder();
    make_data("data", 60, 20);
    return 0;
}

static stint_recipe *recipe(const char *pack)
{
    return make_recipe("moves", "model.name", "resnet8", "train.shards", "3",
                       "data.size", "16", "error.pack", pack, "net.bits", "2", NULL);
}

static float *random_block(int rank, int64_t step, int64_t total)
{
    float *x = malloc((size_t)total * sizeof *x);
    for (int64_t i = 0; i < total; i++) {
        uint32_t w[4];
        sti_random4(23, STI_STREAM_TEST, (uint64_t)step << 8 | (uint64_t)rank,
                    (uint64_t)i, w);
        x[i] = sti_uniform(w[0]) - 0.5f;
    }
    return x;
}

static void run_step(world_rank *me, sti_exchange *e, const sti_network *net,
                     int64_t step)
{
    const int64_t total = (int64_t)(net->plan->region_bytes[STI_REGION_RESULT] / 4);
    float *x = random_block(sti_comm_rank(me->comm), step, total);
    RANK_CHECK(me, sti_exchange_run(e, &sti_team_serial, NULL, step, x) == STINT_OK);
    free(x);
}

static void keep_state(world_rank *me, sti_exchange *e, float **out, int64_t *count)
{
    RANK_CHECK(me, sti_exchange_save(e) == STINT_OK);
    const float *state = sti_exchange_state(e, count);
    if (!state)
        return;
    *out = malloc((size_t)*count * sizeof **out);
    memcpy(*out, state, (size_t)*count * sizeof **out);
}

static void move(world_rank *me)
{
    moving *m = me->user;
    sti_exchange *e = NULL;
    int64_t count;
    float *mine = NULL;
    const bool first = sti_comm_rank(me->comm) == 0;
    RANK_CHECK(me, sti_exchange_create(&m->desc, me->comm, m->from, &e) == STINT_OK);
    if (!e)
        return;
    for (int64_t step = 0; step < 3; step++)
        run_step(me, e, m->from, step);
    keep_state(me, e, first ? &m->before : &mine, first ? &m->before_count : &count);
    RANK_CHECK(me, sti_exchange_move(e, m->to) == STINT_OK);
    keep_state(me, e, first ? &m->after : &mine, first ? &m->after_count : &count);
    run_step(me, e, m->to, 3);
    sti_exchange_destroy(e);
}

static const sti_compressed_layer *find(const sti_compressed_layer *list, int count,
                                        const char *name)
{
    for (int i = 0; i < count; i++)
        if (list[i].dims > 0 && strcmp(list[i].name, name) == 0)
            return &list[i];
    fail_msg("no layer %s", name);
    return NULL;
}

/* Residuals and bits of every gradient, which lie elsewhere now; how many values are
 * owed. */
static int64_t check_moved(const moving *m, sti_arena *arena)
{
    sti_compressed_layer *from, *to;
    int from_count, to_count;
    int64_t owed = 0, moved = 0;
    assert_int_equal(sti_exchange_list_layers(m->from, arena, &from, &from_count),
                     STINT_OK);
    assert_int_equal(sti_exchange_list_layers(m->to, arena, &to, &to_count), STINT_OK);
    assert_int_not_equal(from_count, to_count);
    const int64_t from_total = (m->before_count - from_count) / RANKS;
    const int64_t to_total = (m->after_count - to_count) / RANKS;
    for (int l = 0; l < from_count; l++) {
        if (from[l].dims == 0)
            continue;
        const sti_compressed_layer *there = find(to, to_count, from[l].name);
        moved += there->first != from[l].first;
        assert_true(m->before[RANKS * from_total + l] ==
                    m->after[RANKS * to_total + (there - to)]);
        for (int64_t r = 0; r < RANKS; r++) {
            const float *a = m->before + r * from_total + from[l].first;
            const float *b = m->after + r * to_total + there->first;
            assert_memory_equal(a, b, (size_t)from[l].count * sizeof *a);
            for (int64_t i = 0; i < from[l].count; i++)
                owed += a[i] != 0.0f;
        }
    }
    assert_true(moved > 0);
    return owed;
}

/* From packs to none, and back. */
static void residuals_follow_their_layers(void **state)
{
    (void)state;
    sti_job packed, plain;
    world_rank ranks[RANKS];
    stint_recipe *all = recipe("all"), *none = recipe("auto");
    sti_arena *arena = sti_arena_create("test");
    assert_int_equal(sti_job_create(all, NULL, &packed), STINT_OK);
    assert_int_equal(sti_job_create(none, NULL, &plain), STINT_OK);
    assert_true(packed.setup.train.bounds >= 0 && plain.setup.train.bounds < 0);
    for (int back = 0; back < 2; back++) {
        moving m = {.from = back ? &plain.setup.train : &packed.setup.train,
                    .to = back ? &packed.setup.train : &plain.setup.train,
                    .desc = sti_exchange_of_recipe(all)};
        world_run_local(ranks, RANKS, move, &m);
        assert_true(check_moved(&m, arena) > 1000);
        free(m.before);
        free(m.after);
    }
    sti_arena_destroy(arena);
    sti_job_fini(&packed);
    sti_job_fini(&plain);
    stint_recipe_destroy(all);
    stint_recipe_destroy(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(residuals_follow_their_layers)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
