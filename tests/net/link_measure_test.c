/* Measuring links between threads: every pair gets a model, and one rank is refused. */
#include "net/link_measure.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_pair),
                                       cmocka_unit_test(one_rank)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
