/* Measuring links between threads: every pair gets a model, and one rank is refused;
 * patterns of many messages; bytes that are not those that were sent. */
#include "net/link_patterns.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "comm_world.h"

static void run_measure(world_rank *me)
{
    const sti_measure_desc desc = {.seconds = 0.3, .max_bytes = 1 << 18};
    sti_arena *arena = sti_arena_create("test");
    sti_links links;
    me->status = sti_links_measure(me->comm, &desc, arena, &links);
    const int ranks = sti_comm_size(me->comm);
    if (me->status == STINT_OK) {
        RANK_CHECK(me, links.count == (ranks <= 4 ? ranks * (ranks - 1) : 2 * ranks));
        RANK_CHECK(me, links.encode_s > 0 && links.decode_s > 0);
        for (int i = 0; i < links.count; i++) {
            const sti_link_model *m = &links.models[i];
            RANK_CHECK(me, m->from != m->to && m->from < ranks && m->to < ranks);
            RANK_CHECK(me, m->count >= 1 && m->samples >= 3 * 24);
            RANK_CHECK(me, sti_link_seconds(m, 1000) > 0);
            for (int k = 0; k < i; k++)
                RANK_CHECK(me, links.models[k].from != m->from ||
                                   links.models[k].to != m->to);
        }
    }
    sti_arena_destroy(arena);
}

static void every_pair(void **state)
{
    (void)state;
    static const int sizes[] = {2, 3, 5};
    for (int i = 0; i < 3; i++) {
        world_rank world[WORLD_MAX];
        world_run_local(world, sizes[i], run_measure, NULL);
        for (int r = 0; r < sizes[i]; r++)
            assert_int_equal(world[r].status, STINT_OK);
    }
}

static void one_rank(void **state)
{
    (void)state;
    world_rank world[WORLD_MAX];
    world_run_local(world, 1, run_measure, NULL);
    assert_int_equal(world[0].status, STINT_E_USAGE);
}

/* ---- patterns ---- */

static const sti_measure_desc short_desc = {
    .seconds = 0.01, .max_bytes = STI_LINK_LARGEST_LEAST, .seed = 1};

static void run_pattern(world_rank *me)
{
    const int n = sti_comm_size(me->comm);
    for (sti_pattern p = STI_PATTERN_AT_ONCE; p <= STI_PATTERN_ALLREDUCE; p++) {
        /* Messages of the busiest rank, and of the buffer. */
        const double busiest = p == STI_PATTERN_AT_ONCE      ? 1
                               : p == STI_PATTERN_NEIGHBOURS ? (n > 2 ? 2 : 1)
                               : p == STI_PATTERN_ALLREDUCE  ? 2 * (n - 1.0) / n
                                                             : n - 1;
        const double buffer = p == STI_PATTERN_ALLREDUCE    ? 1
                              : p >= STI_PATTERN_ALL_TO_ALL ? n
                                                            : busiest;
        sti_pattern_row rows[STI_PATTERN_SIZES];
        me->status = sti_links_pattern(me->comm, p, &short_desc, rows);
        RANK_CHECK(me, me->status == STINT_OK);
        for (int i = 0; i < STI_PATTERN_SIZES && me->status == STINT_OK; i++) {
            const double each = (double)rows[i].bytes / rows[i].median_s;
            RANK_CHECK(me, rows[i].bytes == 4 << (2 * i));
            RANK_CHECK(me, rows[i].samples >= 3 && rows[i].low_s >= 0);
            RANK_CHECK(me, rows[i].low_s <= rows[i].median_s &&
                               rows[i].median_s <= rows[i].high_s);
            if (rows[i].median_s <= 0) { /* no longer than without messages */
                RANK_CHECK(me, isnan(rows[i].bus_bytes_per_s));
                RANK_CHECK(me, isnan(rows[i].algorithm_bytes_per_s));
                continue;
            }
            RANK_CHECK(me, fabs(rows[i].bus_bytes_per_s / each - busiest) < 1e-9);
            RANK_CHECK(me, fabs(rows[i].algorithm_bytes_per_s / each - buffer) < 1e-9);
        }
    }
}

static void every_pattern(void **state)
{
    (void)state;
    static const int sizes[] = {2, 3, 5};
    world_rank world[WORLD_MAX];
    for (int i = 0; i < 3; i++)
        world_run_local(world, sizes[i], run_pattern, NULL);
    world_run_tcp(world, 3, run_pattern, NULL);
}

/* ---- a transport that changes a byte ---- */

enum { BYTES = 1000, WRONG = 500 };

static void send_now(world_rank *me, const void *bytes, size_t n_bytes)
{
    sti_comm_request request = {0};
    sti_comm_send(me->comm, 1, STI_TAG_LINK, bytes, n_bytes, &request);
    RANK_CHECK(me, sti_comm_wait_all(me->comm, &request, 1) == STINT_OK);
}

static stint_status receive_byte(world_rank *me)
{
    sti_comm_request request = {0};
    uint8_t byte;
    sti_comm_receive(me->comm, 1, STI_TAG_LINK, &byte, 1, &request);
    return sti_comm_wait_all(me->comm, &request, 1);
}

/* Rank 0 asks as link_measure.c does, of one message. */
static void run_wrong_pair(world_rank *me)
{
    if (sti_comm_rank(me->comm) == 1) {
        run_measure(me);
        return;
    }
    const int64_t order[2] = {BYTES, 7};
    uint8_t bytes[BYTES];
    RANK_CHECK(me, sti_comm_agree(me->comm, STINT_OK) == STINT_OK);
    RANK_CHECK(me, sti_comm_barrier(me->comm) == STINT_OK);
    send_now(me, order, sizeof order);
    RANK_CHECK(me, receive_byte(me) == STINT_OK);
    sti_link_fill(7, BYTES, bytes);
    bytes[WRONG] ^= 4;
    send_now(me, bytes, BYTES);
    me->status = receive_byte(me); /* rank 1 may have looked by now */
    if (me->status == STINT_OK)
        me->status = sti_comm_barrier(me->comm);
}

/* And as link_patterns.c does, in its first round, of 4 bytes. */
static void run_wrong_fan(world_rank *me)
{
    sti_pattern_row rows[STI_PATTERN_SIZES];
    int64_t ns = 0;
    uint8_t bytes[6];
    if (sti_comm_rank(me->comm) == 1) {
        me->status =
            sti_links_pattern(me->comm, STI_PATTERN_FAN_OUT, &short_desc, rows);
        return;
    }
    RANK_CHECK(me, sti_comm_agree(me->comm, STINT_OK) == STINT_OK);
    RANK_CHECK(me, sti_comm_barrier(me->comm) == STINT_OK);
    sti_link_fill(2, sizeof bytes, bytes);
    send_now(me, bytes, 4); /* what is rank 0's, not rank 1's */
    RANK_CHECK(me, sti_comm_barrier(me->comm) == STINT_OK);
    me->status = sti_comm_max(me->comm, &ns, 1); /* rank 1 may have looked by now */
    if (me->status == STINT_OK)
        me->status = sti_comm_barrier(me->comm);
}

static void wrong_bytes(void **state)
{
    (void)state;
    world_rank world[WORLD_MAX];
    world_run_local(world, 2, run_wrong_pair, NULL);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(world[r].status, STINT_E_PEER);
        assert_non_null(strstr(world[r].text, "byte 500 of 1000 from rank 0 ("));
    }
    world_run_local(world, 2, run_wrong_fan, NULL);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(world[r].status, STINT_E_PEER);
        assert_non_null(strstr(world[r].text, "byte 0 of 4 from rank 0 ("));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair), cmocka_unit_test(one_rank),
        cmocka_unit_test(every_pattern), cmocka_unit_test(wrong_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
