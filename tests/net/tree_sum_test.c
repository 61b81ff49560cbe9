/* The sum over ranks against the definition of the tree, bit by bit. */
#include "net/tree_sum.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "net/comm_priv.h"
#include "net/comm_world.h"
#include "net/slow_watermark.h"

typedef struct sum_case {
    int64_t shards, count;
    const int *rows; /* ranks of the first host, the second, ..., 0; NULL: one host */
    const float *want;
    int64_t bytes_sent[WORLD_MAX];
    double mean_sent[WORLD_MAX]; /* as was known before */
} sum_case;

/* Numbers of very different sizes, so that any other order gives other bits. */
static float value_of(int64_t shard, int64_t i)
{
    uint32_t x = (uint32_t)(shard * 2654435761u + i * 40503u + 12345u);
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    float scale = (float)(1 << (x % 17));
    return ((float)(x >> 8) / 8388608.0F - 1.0F) * scale;
}

static float define(int64_t lo, int64_t hi, int64_t i)
{
    int64_t half = 1;
    if (hi == lo + 1)
        return value_of(lo, i);
    while (2 * half < hi - lo)
        half *= 2;
    return define(lo, lo + half, i) + define(lo + half, hi, i);
}

typedef struct store {
    float *block[64];
    int64_t count;
} store;

static void add_blocks(void *user, int into, int from)
{
    store *s = user;
    for (int64_t i = 0; i < s->count; i++)
        s->block[into][i] += s->block[from][i];
}

/* The rank's own shards, joined as a step engine does. */
static int run_shards(const sum_case *c, int size, int rank, store *s)
{
    sti_shard_range own = sti_tree_sum_shards(c->shards, size, rank);
    sti_shard_stack stack = {.depth = 0};
    for (int64_t shard = own.first; shard < own.first + own.count; shard++) {
        for (int64_t i = 0; i < c->count; i++)
            s->block[stack.depth][i] = value_of(shard, i);
        sti_shard_push(&stack, shard, 1, stack.depth, add_blocks, s);
    }
    return stack.depth;
}

/* As if hosts had these numbers of ranks. */
static void name_hosts(sti_comm *comm, const int *rows)
{
    for (int host = 0, r = 0; rows && rows[host]; host++)
        for (int i = 0; i < rows[host]; i++)
            snprintf(comm->hosts[r++], COMM_HOST_BYTES, "host%d", host);
}

static void sum_up(world_rank *rank)
{
    sum_case *c = rank->user;
    sti_comm *comm = rank->comm;
    int size = sti_comm_size(comm), me = sti_comm_rank(comm);
    int64_t messages, bytes;
    sti_tree_sum *sum = NULL;
    store s = {.count = c->count};
    for (int i = 0; i < 8; i++)
        s.block[i] = malloc((size_t)c->count * sizeof(float));
    name_hosts(comm, c->rows);
    RANK_CHECK(rank, sti_tree_sum_create(comm, c->shards, c->count, &sum) == STINT_OK);
    sti_tree_sum_traffic(sum, &messages, &bytes);
    c->bytes_sent[me] = bytes;
    c->mean_sent[me] = sti_tree_sum_sent(comm, c->shards, c->count);
    for (int round = 1; round <= 2; round++) {
        int blocks = run_shards(c, size, me, &s);
        RANK_CHECK(rank,
                   sti_tree_sum_run(sum, &sti_team_serial, NULL, s.block, blocks) == 0);
        RANK_CHECK(rank,
                   !memcmp(s.block[0], c->want, (size_t)c->count * sizeof(float)));
        RANK_CHECK(rank, sti_comm_count(comm).bytes_sent == round * bytes);
        RANK_CHECK(rank, sti_comm_count(comm).messages_sent == round * messages);
    }
    sti_tree_sum_destroy(sum);
    for (int i = 0; i < 8; i++)
        free(s.block[i]);
}

static void check_mean(const sum_case *c, int size)
{
    int64_t all = 0;
    for (int r = 0; r < size; r++)
        all += c->bytes_sent[r];
    for (int r = 0; r < size; r++)
        assert_int_equal(llround(c->mean_sent[r] * size), all);
}

/* Beside the one who makes the values: the same bits. The rank's only block is made
 * bit by bit, ranks at different speeds. */
static void sum_up_behind_watermark(world_rank *rank)
{
    sum_case *c = rank->user;
    const int me = sti_comm_rank(rank->comm);
    sti_tree_sum *sum = NULL;
    slow_watermark watermark;
    name_hosts(rank->comm, c->rows);
    float *values = malloc((size_t)c->count * sizeof *values);
    float *block = malloc((size_t)c->count * sizeof *block);
    for (int64_t i = 0; i < c->count; i++)
        values[i] = value_of(me, i);
    RANK_CHECK(rank,
               sti_tree_sum_create(rank->comm, c->shards, c->count, &sum) == STINT_OK);
    for (int round = 0; round < 3; round++) {
        slow_watermark_begin(&watermark, rank->comm, block, values, c->count,
                             1 + c->count / (3 + 4 * me),
                             (unsigned)(300 * ((me + round) % 3)));
        RANK_CHECK(rank, sti_tree_sum_run(sum, &sti_team_serial, &watermark.watermark,
                                          &block, 1) == STINT_OK);
        RANK_CHECK(rank, slow_watermark_end(&watermark));
        RANK_CHECK(rank, !memcmp(block, c->want, (size_t)c->count * sizeof *block));
    }
    sti_tree_sum_destroy(sum);
    free(values);
    free(block);
}

static void test_watermark(void **state)
{
    (void)state;
    static const int rows[] = {3, 3, 0};
    for (int size = 2; size <= 6; size++) {
        world_rank ranks[WORLD_MAX];
        sum_case c = {.shards = size, .count = 300001, .rows = size == 6 ? rows : NULL};
        float *want = malloc((size_t)c.count * sizeof *want);
        for (int64_t i = 0; i < c.count; i++)
            want[i] = define(0, size, i);
        c.want = want;
        for (int w = 0; w < WORLDS; w++)
            worlds[w](ranks, size, sum_up_behind_watermark, &c);
        free(want);
    }
}

static void check_case(int64_t shards, int64_t count, int ranks_most, sum_case *c)
{
    world_rank ranks[WORLD_MAX];
    float *want = malloc((size_t)count * sizeof *want);
    for (int64_t i = 0; i < count; i++)
        want[i] = define(0, shards, i);
    for (int size = 1; size <= ranks_most && size <= shards; size++) {
        *c = (sum_case){.shards = shards, .count = count, .want = want};
        world_run_local(ranks, size, sum_up, c);
        check_mean(c, size);
        if (size == 2 || size == 3)
            world_run_tcp(ranks, size, sum_up, c);
    }
    free(want);
}

static void test_sums(void **state)
{
    (void)state;
    sum_case c;
    for (int64_t shards = 1; shards <= 19; shards++)
        check_case(shards, shards % 3 ? 3001 : 1, 9, &c);
    check_case(16, 600001, 5, &c); /* more parts than are on their way at a time */
}

/* Hosts of several ranks, which join their own blocks first: the same bits. */
static void test_hosts(void **state)
{
    (void)state;
    static const int rows[][9] = {{2, 2},       {2, 2, 2},    {3, 3}, {4, 4, 4},
                                  {2, 4, 2},    {1, 3},       {6, 3}, {4, 4, 4, 4},
                                  {2, 2, 2, 2}, {1, 1, 1, 1}, {5, 5}, {3, 3, 3, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int size = 0;
        for (const int *row = rows[i]; *row; row++)
            size += *row;
        for (int64_t shards = size; shards <= 2 * size + 1; shards += 1 + size / 2) {
            world_rank ranks[WORLD_MAX];
            sum_case c = {.shards = shards, .count = 5003, .rows = rows[i]};
            float *want = malloc((size_t)c.count * sizeof *want);
            for (int64_t k = 0; k < c.count; k++)
                want[k] = define(0, shards, k);
            c.want = want;
            world_run_local(ranks, size, sum_up, &c);
            check_mean(&c, size);
            if (i < 3 && shards == size)
                world_run_tcp(ranks, size, sum_up, &c);
            free(want);
        }
    }
}

/* What is planned for one is what it takes. */
static void test_bytes(void **state)
{
    (void)state;
    for (int size = 2; size <= 12; size++) {
        static const int rows[] = {2, 2, 2, 2, 2, 2, 2, 0};
        sti_comm *comms[WORLD_MAX];
        assert_int_equal(sti_comm_create_local(size, comms), STINT_OK);
        for (int r = 0; r < size; r += size - 1) {
            sti_tree_sum *sum;
            if (size % 2 == 0)
                name_hosts(comms[r], rows + 7 - size / 2);
            const size_t bytes = sti_tree_sum_bytes(comms[r], 3 * size - 1, 1000003);
            const size_t before = sti_alloc_now_bytes();
            assert_int_equal(sti_tree_sum_create(comms[r], 3 * size - 1, 1000003, &sum),
                             STINT_OK);
            const size_t taken = sti_alloc_now_bytes() - before;
            assert_true(taken > 0 && taken <= bytes + 16 * 64);
            assert_true(bytes <= taken);
            sti_tree_sum_destroy(sum);
        }
        for (int r = 0; r < size; r++)
            sti_comm_destroy(comms[r]);
    }
}

/* Nobody sends more than 2 (R-1)/R of a block. */
static void test_traffic(void **state)
{
    (void)state;
    const int64_t count = 1 << 16;
    for (int size = 2; size <= 8; size *= 2) {
        world_rank ranks[WORLD_MAX];
        sum_case c = {.shards = 8, .count = count};
        float *want = malloc((size_t)count * sizeof *want);
        for (int64_t i = 0; i < count; i++)
            want[i] = define(0, 8, i);
        c.want = want;
        world_run_local(ranks, size, sum_up, &c);
        int64_t all = 0;
        for (int r = 0; r < size; r++)
            all += c.bytes_sent[r];
        assert_int_equal(all, 2 * (size - 1) * count * 4);
        for (int r = 0; r < size; r++)
            assert_true(c.bytes_sent[r] <= 2 * count * 4);
        free(want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums), cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_bytes), cmocka_unit_test(test_watermark),
        cmocka_unit_test(test_traffic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
