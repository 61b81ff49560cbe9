/* A compressed sum goes on when a plan with other packs moves the results of a step:
 * bits and what is owed follow their layers, on every rank. What it owes goes to a
 * checkpoint and back by pieces. */
#include "train_support.h" /* cmocka, which the next stands on */

#include "base/fail.h"
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

/* Whose gradient is of several pieces. */
static stint_recipe *large_recipe(void)
{
    return make_recipe("moves", "model.name", "resnet8", "model.width", "48",
                       "train.shards", "3", "data.size", "16", "net.bits", "2", NULL);
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

/* Bytes of a state as they come. */
typedef struct kept {
    char *bytes;
    size_t used, room;
} kept;

static stint_status keep_bytes(void *user, const void *bytes, size_t n_bytes)
{
    kept *k = user;
    if (n_bytes > k->room - k->used)
        return STINT_E_IO;
    memcpy(k->bytes + k->used, bytes, n_bytes);
    k->used += n_bytes;
    return STINT_OK;
}

/* On rank 0 *out is the caller's to free; its hash is that of its bytes. */
static void keep_state(world_rank *me, sti_exchange *e, float **out, int64_t *count)
{
    char passed[65], straight[65];
    sti_sha256 sha;
    *count = sti_exchange_state_count(e);
    if (sti_comm_rank(me->comm) > 0) {
        RANK_CHECK(me, sti_exchange_follow_save(e) == STINT_OK);
        return;
    }
    *out = malloc((size_t)*count * sizeof **out);
    kept k = {(char *)*out, 0, (size_t)*count * sizeof **out};
    sti_sha256_init(&sha);
    RANK_CHECK(me, sti_exchange_add_sha256(e, &sha) == STINT_OK);
    sti_sha256_hex(&sha, passed);
    RANK_CHECK(me, sti_exchange_write(e, keep_bytes, &k) == STINT_OK);
    RANK_CHECK(me, k.used == k.room);
    sti_sha256_init(&sha);
    sti_sha256_add(&sha, *out, k.used);
    sti_sha256_hex(&sha, straight);
    RANK_CHECK(me, strcmp(passed, straight) == 0);
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

static stint_status read_kept(void *user, int64_t first, int64_t count, float *out)
{
    memcpy(out, (const float *)user + first, (size_t)count * sizeof *out);
    return STINT_OK;
}

/* Another exchange goes on where one ended. */
static void save_and_load(world_rank *me)
{
    moving *m = me->user;
    sti_exchange *e = NULL, *next = NULL;
    float *mine = NULL;
    int64_t count;
    const bool first = sti_comm_rank(me->comm) == 0;
    RANK_CHECK(me, sti_exchange_create(&m->desc, me->comm, m->from, &e) == STINT_OK);
    for (int64_t step = 0; step < 3; step++)
        run_step(me, e, m->from, step);
    keep_state(me, e, first ? &m->before : &mine, first ? &m->before_count : &count);
    sti_exchange_destroy(e);
    RANK_CHECK(me, sti_exchange_create(&m->desc, me->comm, m->from, &next) == STINT_OK);
    const sti_exchange_source source = {first ? m->before_count : 0, read_kept,
                                        first ? m->before : NULL};
    RANK_CHECK(me, sti_exchange_load(next, &source) == STINT_OK);
    keep_state(me, next, first ? &m->after : &mine, first ? &m->after_count : &count);
    sti_exchange_destroy(next);
}

static void a_state_comes_back(void **state)
{
    (void)state;
    sti_job job;
    world_rank ranks[RANKS];
    stint_recipe *large = large_recipe();
    assert_int_equal(sti_job_create(large, NULL, &job), STINT_OK);
    moving m = {.from = &job.setup.train, .desc = sti_exchange_of_recipe(large)};
    world_run_local(ranks, RANKS, save_and_load, &m);
    assert_int_equal(m.before_count, m.after_count);
    assert_true(m.before_count / RANKS > 2 << 18);
    assert_memory_equal(m.before, m.after, (size_t)m.before_count * sizeof *m.before);
    free(m.before);
    free(m.after);
    sti_job_fini(&job);
    stint_recipe_destroy(large);
}

/* Rank 0's disk is full after its own residual: it says so, and nobody waits for it. */
static void fail_to_save(world_rank *me)
{
    moving *m = me->user;
    sti_exchange *e = NULL;
    kept k = {NULL, 0, 0};
    sti_sha256 sha;
    RANK_CHECK(me, sti_exchange_create(&m->desc, me->comm, m->from, &e) == STINT_OK);
    if (sti_comm_rank(me->comm) > 0) {
        me->status = sti_exchange_follow_save(e);
    } else {
        sti_sha256_init(&sha);
        RANK_CHECK(me, sti_exchange_add_sha256(e, &sha) == STINT_OK);
        me->status = sti_exchange_write(e, keep_bytes, &k);
        sti_comm_give_up(me->comm, sti_fail(me->status, "no space"));
        /* Then it saves alone, and owes nothing. */
        k.room = (size_t)sti_exchange_state_count(e) * sizeof(float);
        k.bytes = malloc(k.room);
        RANK_CHECK(me, sti_exchange_add_sha256(e, &sha) == STINT_OK);
        RANK_CHECK(me, sti_exchange_write(e, keep_bytes, &k) == STINT_OK);
        RANK_CHECK(me, k.used == k.room && k.bytes[0] == 0 &&
                           memcmp(k.bytes, k.bytes + 1, k.room / 2) == 0);
        free(k.bytes);
    }
    sti_exchange_destroy(e);
}

static void a_failure_to_save_is_told(void **state)
{
    (void)state;
    sti_job job;
    world_rank ranks[RANKS];
    stint_recipe *all = recipe("all");
    assert_int_equal(sti_job_create(all, NULL, &job), STINT_OK);
    moving m = {.from = &job.setup.train, .desc = sti_exchange_of_recipe(all)};
    world_run_local(ranks, RANKS, fail_to_save, &m);
    assert_int_equal(ranks[0].status, STINT_E_IO);
    assert_int_equal(ranks[RANKS - 1].status, STINT_E_IO);
    assert_non_null(strstr(ranks[RANKS - 1].text, "no space"));
    sti_job_fini(&job);
    stint_recipe_destroy(all);
}

/* Rank 0 holds no more than the others but a piece, however many they are; messages of
 * 2 bits are a fraction of the gradient. */
static void no_rank_holds_what_others_owe(void **state)
{
    (void)state;
    sti_job job;
    stint_recipe *huge =
        make_recipe("moves", "model.name", "resnet8", "model.width", "200",
                    "train.shards", "8", "data.size", "16", "net.bits", "2", NULL);
    assert_int_equal(sti_job_create(huge, NULL, &job), STINT_OK);
    const sti_network *net = &job.setup.train;
    const size_t block = net->plan->region_bytes[STI_REGION_RESULT];
    sti_exchange_desc d = sti_exchange_of_recipe(huge);
    assert_true(d.allreduce.feedback && block > (size_t)40 << 20);
    const size_t two = sti_exchange_bytes(&d, 0, 2, net);
    assert_true(two > block && two < block + block / 2);
    for (int ranks = 2; ranks <= 8; ranks *= 2) {
        const size_t first = sti_exchange_bytes(&d, 0, ranks, net);
        assert_true(first - sti_exchange_bytes(&d, 1, ranks, net) <= 1 << 20);
        assert_true(first < two + block / 8);
    }
    sti_job_fini(&job);
    stint_recipe_destroy(huge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(residuals_follow_their_layers),
                                       cmocka_unit_test(a_state_comes_back),
                                       cmocka_unit_test(a_failure_to_save_is_told),
                                       cmocka_unit_test(no_rank_holds_what_others_owe)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
