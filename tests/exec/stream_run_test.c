/* What plan/stream says against threads and rings that really run: 1,000 random graphs
 * block when they are said to, run at their least depths, and block with one block less
 * in any ring. A watchdog ends what neither ends nor blocks. */
#include "exec/stream_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"

enum {
    GRAPHS = 1000,
    PROCESSES = 6,
    STREAMS = 12,
    BLOCKS = 6,
    EVENTS = STREAMS * BLOCKS
};

typedef struct drawn {
    sti_event event[PROCESSES][EVENTS];
    sti_process process[PROCESSES];
    sti_stream_ring stream[STREAMS];
    sti_stream_graph graph;
    uint64_t seed, at;
} drawn;

static uint32_t draw(drawn *d, uint32_t below)
{
    uint32_t w[4];
    sti_random4(d->seed, STI_STREAM_TEST, d->at++, 0, w);
    return w[0] % below;
}

static void shuffle(drawn *d, sti_event *event, int64_t count)
{
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = draw(d, (uint32_t)i + 1);
        const sti_event swap = event[i];
        event[i] = event[j];
        event[j] = swap;
    }
}

/* Each process but the first reads of one to three others before it in a random order
 * of events: that one that transposes, one that repeats and one that reads its operands
 * one after another are among them. */
static void draw_graph(drawn *d, uint64_t seed)
{
    *d = (drawn){.seed = seed};
    const int processes = 2 + (int)draw(d, PROCESSES - 1);
    int64_t count[PROCESSES] = {0};
    int streams = 0;
    for (int p = 1; p < processes; p++)
        for (uint32_t k = 1 + draw(d, 2); k > 0; k--) {
            const int from = (int)draw(d, (uint32_t)p);
            const int64_t blocks = 1 + draw(d, BLOCKS);
            d->stream[streams] =
                (sti_stream_ring){"ring", from, p, 1 + draw(d, 3), sizeof(int64_t)};
            for (int64_t b = 0; b < blocks; b++) {
                d->event[from][count[from]++] =
                    (sti_event){STI_EVENT_WRITE, streams, 0};
                d->event[p][count[p]++] = (sti_event){STI_EVENT_READ, streams, 0};
            }
            streams++;
        }
    for (int p = 0; p < processes; p++) {
        shuffle(d, d->event[p], count[p]);
        d->process[p] = (sti_process){"process", d->event[p], count[p], 1};
    }
    d->graph = (sti_stream_graph){d->process, processes, d->stream, streams, 1, 2, 1};
}

/* Every block carries its number and its ring. */
static stint_status follow(void *user, int32_t process, sti_rings *rings)
{
    const drawn *d = user;
    int64_t number[STREAMS] = {0};
    for (int64_t i = 0; i < d->process[process].count; i++) {
        const sti_event *e = &d->event[process][i];
        const int64_t want = number[e->stream]++ * STREAMS + e->stream;
        if (e->kind == STI_EVENT_WRITE) {
            int64_t *block = sti_rings_begin_write(rings, e->stream);
            if (!block)
                return STINT_OK;
            *block = want;
            sti_rings_end_write(rings, e->stream);
            continue;
        }
        const int64_t *block = sti_rings_begin_read(rings, e->stream);
        if (!block)
            return STINT_OK;
        if (*block != want)
            return sti_fail(STINT_E_BUG, "another block than was written");
        sti_rings_end_read(rings, e->stream);
    }
    return STINT_OK;
}

/* Does it block? */
static bool really_blocks(drawn *d)
{
    sti_rings *rings = NULL;
    void *memory = sti_alloc(sti_stream_ring_bytes(&d->graph) + 64, "test.rings");
    assert_int_equal(sti_rings_create(&d->graph, memory, &rings), STINT_OK);
    const stint_status st = sti_rings_run(rings, follow, d);
    const bool blocked = sti_rings_blocked(rings);
    assert_int_equal(st, blocked ? STINT_E_FAILED : STINT_OK);
    sti_rings_destroy(rings);
    sti_free(memory);
    return blocked;
}

static bool said_to_block(drawn *d)
{
    sti_stream_timing timing;
    assert_int_equal(sti_stream_time(&d->graph, &timing), STINT_OK);
    return timing.blocks;
}

static void graphs_block_as_said(void **state)
{
    int blocked = 0, rings = 0;
    (void)state;
    alarm(300);
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        static drawn d;
        sti_stream_timing timing;
        draw_graph(&d, seed);
        const bool blocks = said_to_block(&d);
        assert_int_equal(really_blocks(&d), blocks);
        blocked += blocks;
        assert_int_equal(sti_stream_set_depths(&d.graph, INFINITY, &timing), STINT_OK);
        assert_false(timing.blocks);
        assert_false(really_blocks(&d));
        for (int32_t s = 0; s < d.graph.streams; s++, rings++) {
            d.stream[s].depth--;
            assert_true(said_to_block(&d));
            assert_true(really_blocks(&d));
            d.stream[s].depth++;
        }
    }
    alarm(0);
    print_message("%d of %d graphs block at random depths; %d rings\n", blocked, GRAPHS,
                  rings);
    assert_true(blocked > GRAPHS / 10 && blocked < GRAPHS * 9 / 10);
}

/* ---- failures end all ---- */

static stint_status fail_in_the_middle(void *user, int32_t process, sti_rings *rings)
{
    const drawn *d = user;
    if (process == d->graph.processes - 1)
        return sti_fail(STINT_E_IO, "the disk is full");
    return follow(user, process, rings);
}

static void failures_end_all(void **state)
{
    static drawn d;
    (void)state;
    alarm(60);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        sti_rings *rings = NULL;
        sti_stream_timing timing;
        draw_graph(&d, seed);
        assert_int_equal(sti_stream_set_depths(&d.graph, 1, &timing), STINT_OK);
        void *memory = sti_alloc(sti_stream_ring_bytes(&d.graph), "test.rings");
        assert_int_equal(sti_rings_create(&d.graph, memory, &rings), STINT_OK);
        assert_int_equal(sti_rings_run(rings, fail_in_the_middle, &d), STINT_E_IO);
        assert_string_equal(stint_last_error(), "the disk is full");
        sti_rings_destroy(rings);
        sti_free(memory);
    }
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_block_as_said),
        cmocka_unit_test(failures_end_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
