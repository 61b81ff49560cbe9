/* The choice of bits on layers of a compressed sum. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "comm_world.h"
#include "net/compressed_allreduce.h"

static const sti_compressed_layer layers[] = {
    {"small", 0, 4096, 2}, {"bias", 4096, 512, 1}, {"large", 4608, 65536, 2}};
enum { TOTAL = 4608 + 65536 };

typedef struct job {
    sti_bits_policy policy;
    sti_bits_report report[WORLD_MAX];
    int bits[WORLD_MAX][3];
    int64_t bytes[WORLD_MAX];
    double squared[3]; /* of rank 0's vector, with the bits chosen */
} job;

static void run_choice(world_rank *me)
{
    job *j = me->user;
    const int rank = sti_comm_rank(me->comm);
    const sti_compressed_allreduce_desc desc = {.form = {.bits = 4, .bucket = 1024},
                                                .keep = 1};
    sti_compressed_allreduce *s = NULL;
    int64_t messages, bytes = 0;
    float *x = malloc(TOTAL * sizeof *x);
    for (int64_t i = 0; i < TOTAL; i++) {
        uint32_t w[4];
        sti_random4(1, STI_STREAM_TEST, (uint64_t)rank, (uint64_t)i, w);
        x[i] = (sti_uniform(w[0]) - 0.5f) * (i < 4096 ? 20.0f : 1.0f);
    }
    RANK_CHECK(me, sti_compressed_allreduce_create(me->comm, &desc, layers, 3, TOTAL,
                                                   &s) == STINT_OK);
    me->status = sti_compressed_choose_bits(s, &j->policy, x, &j->report[rank]);
    for (int l = 0; l < 3; l++) {
        j->bits[rank][l] = sti_compressed_bits(s, l);
        if (rank == 0 && j->bits[0][l] <= 8) {
            const double u = (l == 0 ? 20.0 : 1.0) / ((1 << j->bits[0][l]) - 1);
            j->squared[l] = u * u / 12 * (double)layers[l].count;
        }
    }
    sti_compressed_traffic(s, &messages, &bytes);
    j->bytes[rank] = bytes;
    RANK_CHECK(me, sti_compressed_allreduce_run(s, &sti_team_serial, NULL, 1, x) ==
                       STINT_OK);
    sti_compressed_allreduce_destroy(s);
    free(x);
}

static void run_three(job *j)
{
    world_rank world[WORLD_MAX];
    world_run_local(world, 3, run_choice, j);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(world[r].status, STINT_OK);
        assert_memory_equal(j->bits[0], j->bits[r], sizeof j->bits[0]);
        assert_memory_equal(&j->report[0], &j->report[r], sizeof j->report[0]);
    }
    assert_int_equal(j->bits[0][1], STI_COMPRESSED_RAW);
}

/* The small layer has the large values: it gets the bits. */
static void an_error_budget(void **state)
{
    (void)state;
    job j = {.policy = {.min_bits = 2, .max_bits = 8, .uniform = 4, .error_factor = 1}};
    run_three(&j);
    assert_true(j.bits[0][0] > 4 && j.bits[0][2] < 4);
    double uniform = 0;
    for (int l = 0; l < 3; l += 2) {
        const double u = (l == 0 ? 20.0 : 1.0) / 15;
        uniform += u * u / 12 * (double)layers[l].count;
    }
    assert_true(j.squared[0] + j.squared[2] <= uniform * 1.05);
    assert_true(j.report[0].bytes < j.report[0].raw_bytes / 7.8);
    /* The average rank counts: slices are equal in values, not in bytes. */
    const double mean = (double)(j.bytes[0] + j.bytes[1] + j.bytes[2]) / 3;
    assert_true(fabs(mean / j.report[0].bytes - 1) < 0.02);
}

static void a_link_budget(void **state)
{
    (void)state;
    job j = {.policy = {.min_bits = 2, .max_bits = 8, .wire_bytes = 60000}};
    run_three(&j);
    assert_true(j.report[0].fits && j.report[0].bytes <= 60000);
    assert_true(j.report[0].bytes > 50000 && j.bits[0][0] > j.bits[0][2]);
    const double error = j.report[0].error;
    j.policy.wire_bytes = 90000;
    run_three(&j);
    assert_true(j.report[0].bytes <= 90000 && j.report[0].error < error);
    j.policy.wire_bytes = 1e9; /* wide enough: nothing is lost */
    run_three(&j);
    assert_true(j.bits[0][0] == STI_COMPRESSED_RAW &&
                j.bits[0][2] == STI_COMPRESSED_RAW);
    assert_true(j.report[0].error == 0 && j.report[0].min_bits == STI_COMPRESSED_RAW);
    j.policy.wire_bytes = 1000; /* too narrow: as few as may be, and it says so */
    run_three(&j);
    assert_false(j.report[0].fits);
    assert_true(j.bits[0][0] == 2 && j.bits[0][2] == 2);
}

static void run_refused(world_rank *me)
{
    const sti_compressed_allreduce_desc desc = {.form = {.bits = 4, .bucket = 1024},
                                                .keep = 1};
    static const sti_bits_policy bad[] = {
        {.min_bits = 0, .max_bits = 8, .wire_bytes = 1},
        {.min_bits = 4, .max_bits = 3, .wire_bytes = 1},
        {.min_bits = 2, .max_bits = 9, .wire_bytes = 1},
        {.min_bits = 2, .max_bits = 8, .uniform = 1, .error_factor = 1},
        {.min_bits = 2, .max_bits = 8, .uniform = 4}};
    sti_compressed_allreduce *s = NULL;
    sti_bits_report report;
    static const float x[TOTAL];
    RANK_CHECK(me, sti_compressed_allreduce_create(me->comm, &desc, layers, 3, TOTAL,
                                                   &s) == STINT_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        RANK_CHECK(me,
                   sti_compressed_choose_bits(s, &bad[i], x, &report) == STINT_E_USAGE);
    sti_compressed_allreduce_destroy(s);
}

static void refused(void **state)
{
    (void)state;
    world_rank world[WORLD_MAX];
    world_run_local(world, 2, run_refused, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_budget),
        cmocka_unit_test(a_link_budget),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
