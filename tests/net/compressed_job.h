/* A compressed sum as its tests run it: seven layers, values that are known everywhere,
 * some steps on ranks of one process, whose results must agree and whose bytes were
 * told. */
#ifndef STI_TESTS_COMPRESSED_JOB_H
#define STI_TESTS_COMPRESSED_JOB_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"
#include "comm_world.h"
#include "net/compressed_allreduce.h"
#include "slow_watermark.h"

enum { LAYERS = 7, STEPS = 3 };

/* A bias, a norm and a small matrix travel as they are. */
static const sti_compressed_layer layers[LAYERS] = {
    {"stem", 0, 1728, 4},    {"bias", 1728, 2000, 1}, {"small", 3728, 1023, 2},
    {"wide", 4751, 9001, 2}, {"one", 13752, 1, 1},    {"head", 13753, 1024, 2},
    {"last", 14777, 8193, 4}};
enum { TOTAL = 14777 + 8193 };
static const bool compressed[LAYERS] = {true, false, false, true, false, true, true};

typedef struct job {
    sti_compressed_allreduce_desc desc;
    int steps;
    bool alike, restless, slow; /* slow: values come bit by bit */
    int bits[LAYERS];           /* or 0: desc's */
    int later, later_bits;      /* from that step on, for all layers; or 0 */
    bool unused;   /* before each step a sum of other values, of which no use is made */
    float *result; /* [ranks, TOTAL] of the last step */
    double sum_of_errors; /* of rank 0, over steps */
    float *sums;          /* [TOTAL] of all results of rank 0, or NULL */
    int64_t bytes[WORLD_MAX], wanted_bytes[WORLD_MAX], messages[WORLD_MAX],
        wanted_messages[WORLD_MAX];
} job;

static inline float value(int rank, int64_t step, int64_t i)
{
    uint32_t w[4];
    sti_random4(17, STI_STREAM_TEST, (uint64_t)step << 8 | (uint64_t)rank, (uint64_t)i,
                w);
    return sti_uniform(w[0]) + sti_uniform(w[1]) + sti_uniform(w[2]) - 1.5f;
}

static inline void fill(const job *j, int rank, int64_t step, float *x)
{
    for (int64_t i = 0; i < TOTAL; i++)
        x[i] = value(j->alike ? 0 : rank, step, i);
}

static inline stint_status
run_behind_watermark(world_rank *me, sti_compressed_allreduce *s, int step, float *x)
{
    const int rank = sti_comm_rank(me->comm);
    float *values = malloc(TOTAL * sizeof *values);
    slow_watermark watermark;
    memcpy(values, x, TOTAL * sizeof *x);
    slow_watermark_begin(&watermark, me->comm, x, values, TOTAL,
                         1 + TOTAL / (3 + 5 * rank),
                         (unsigned)(200 * ((rank + step) % 3)));
    const stint_status st = sti_compressed_allreduce_run(s, &sti_team_serial,
                                                         &watermark.watermark, step, x);
    RANK_CHECK(me, slow_watermark_end(&watermark));
    free(values);
    return st;
}

static inline void set_all_bits(world_rank *me, sti_compressed_allreduce *s, int bits)
{
    int all[LAYERS];
    for (int l = 0; l < LAYERS; l++)
        all[l] = bits;
    RANK_CHECK(me, sti_compressed_set_bits(s, all) == STINT_OK);
}

static inline void run_unused(world_rank *me, sti_compressed_allreduce *s, int step)
{
    const job *j = me->user;
    float *x = malloc(TOTAL * sizeof *x);
    fill(j, sti_comm_rank(me->comm), step + 100, x);
    sti_compressed_hold_residual(s, true);
    RANK_CHECK(me, sti_compressed_allreduce_run(s, &sti_team_serial, NULL, step, x) ==
                       STINT_OK);
    sti_compressed_hold_residual(s, false);
    free(x);
}

static inline void run_job(world_rank *me)
{
    job *j = me->user;
    const int rank = sti_comm_rank(me->comm), size = sti_comm_size(me->comm);
    const sti_team team = {.threads = 1 + rank % 2};
    sti_compressed_allreduce *s = NULL;
    float *x = malloc(TOTAL * sizeof *x);
    RANK_CHECK(me, sti_compressed_allreduce_create(me->comm, &j->desc, layers, LAYERS,
                                                   TOTAL, &s) == STINT_OK);
    if (s && j->bits[0])
        RANK_CHECK(me, sti_compressed_set_bits(s, j->bits) == STINT_OK);
    for (int step = 1; s && step <= j->steps; step++) {
        fill(j, rank, step, x);
        if (step == j->later)
            set_all_bits(me, s, j->later_bits);
        if (j->restless)
            usleep((useconds_t)((rank * 7 + step * 3) % size * 700));
        if (j->unused)
            run_unused(me, s, step);
        const sti_comm_counts before = sti_comm_count(me->comm);
        RANK_CHECK(me, (j->slow ? run_behind_watermark(me, s, step, x)
                                : sti_compressed_allreduce_run(s, &team, NULL, step,
                                                               x)) == STINT_OK);
        const sti_comm_counts after = sti_comm_count(me->comm);
        j->bytes[rank] = after.bytes_sent - before.bytes_sent;
        j->messages[rank] = after.messages_sent - before.messages_sent;
        for (int64_t i = 0; rank == 0 && j->sums && i < TOTAL; i++)
            j->sums[i] += x[i];
    }
    if (s)
        sti_compressed_traffic(s, &j->wanted_messages[rank], &j->wanted_bytes[rank]);
    memcpy(j->result + (int64_t)rank * TOTAL, x, TOTAL * sizeof *x);
    sti_compressed_allreduce_destroy(s);
    free(x);
}

/* What all ranks together send was known before, by one that was not there. */
static inline void check_load(const job *j, int ranks, int64_t all_bytes)
{
    sti_comm *comm = NULL;
    sti_compressed_load load;
    const bool grouped = j->desc.scheme == STI_SCHEME_TWO_LEVEL;
    const size_t before = sti_alloc_now_bytes();
    assert_int_equal(sti_comm_create_planned(ranks, grouped ? j->desc.group : 1, &comm),
                     STINT_OK);
    assert_int_equal(
        sti_compressed_allreduce_measure(comm, &j->desc, layers, LAYERS, TOTAL, &load),
        STINT_OK);
    assert_int_equal(load.values, TOTAL);
    assert_int_equal(load.raw_values, 2000 + 1023 + 1);
    assert_int_equal(llround(ranks * load.rank_bytes), all_bytes);
    sti_comm_destroy(comm);
    assert_int_equal(sti_alloc_now_bytes(), before);
}

static inline void run(job *j, int ranks)
{
    world_rank world[WORLD_MAX];
    free(j->result);
    j->result = malloc((size_t)ranks * TOTAL * sizeof *j->result);
    world_run_local(world, ranks, run_job, j);
    for (int r = 1; r < ranks; r++)
        assert_memory_equal(j->result, j->result + (int64_t)r * TOTAL,
                            TOTAL * sizeof *j->result);
    int64_t all = 0;
    for (int r = 0; r < ranks; r++) {
        assert_int_equal(j->bytes[r], j->wanted_bytes[r]);
        assert_int_equal(j->messages[r], j->wanted_messages[r]);
        all += j->bytes[r];
    }
    if (!j->bits[0] && !j->later)
        check_load(j, ranks, all);
}

static inline sti_compressed_allreduce_desc plain(int bits, sti_scheme scheme)
{
    return (sti_compressed_allreduce_desc){.form = {.bits = bits, .bucket = 512},
                                           .scheme = scheme,
                                           .group = 1,
                                           .keep = 1,
                                           .seed = 9};
}

static inline double truth(const job *j, int ranks, int64_t step, int64_t i)
{
    double sum = 0;
    for (int r = 0; r < ranks; r++)
        sum += (double)value(j->alike ? 0 : r, step, i);
    return sum;
}

#endif
