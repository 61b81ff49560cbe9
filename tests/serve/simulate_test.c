/* The simulator beside closed forms of queues, and the scheduler's choices by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/linear_program.h"
#include "serve/serve_plan.h"
#include "serve/simulate.h"

/* A model on sizes 1 and 2 with times time1, time2 [batch_most]. */
static void make_tables(const double *time1, const double *time2, int batch_most,
                        double sla_s, int units, sti_serve_tables *t)
{
    *t = (sti_serve_tables){.units = units, .sizes = 2, .size = {1, 2}, .models = 1};
    sti_serve_model *m = &t->model[0];
    snprintf(m->name, sizeof m->name, "m");
    assert_int_equal(sti_serve_model_init(m, 2, batch_most), 0);
    m->weight = 1;
    m->sla_s = sla_s;
    for (int b = 0; b < batch_most; b++) {
        m->p50[b] = m->p95[b] = time1[b];
        m->p50[batch_most + b] = m->p95[batch_most + b] = time2[b];
        m->share[b] = 1.0 / batch_most;
    }
}

/* The paper's scheduler, one query at a time, nothing refused or given up. */
static sti_simulate_desc plain(const sti_serve_tables *t, const sti_serve_cut *cut,
                               const sti_traffic *traffic)
{
    return (sti_simulate_desc){
        .scheduler = {.tables = t, .cut = cut, .admit_all = true, .serve_late = true},
        .traffic = traffic,
        .queries = 400000};
}

static double mean_wait(const sti_simulate_desc *d)
{
    sti_serve_result r;
    assert_int_equal(sti_simulate(d, &r), 0);
    assert_int_equal(r.sent, d->queries);
    assert_int_equal(r.served, d->queries);
    const double wait = r.wait_mean_s;
    sti_serve_result_fini(&r);
    return wait;
}

static void near(double got, double wanted, double share)
{
    if (fabs(got - wanted) > share * wanted)
        fail_msg("%g is not within %g of %g", got, share, wanted);
}

static void test_closed_forms(void **state)
{
    (void)state;
    const double one[] = {1, 3}, two[] = {1, 1};
    sti_serve_tables t;
    sti_traffic traffic = {.rate_per_s = 0.6, .seed = 3};
    make_tables(one, two, 2, 1e9, 4, &t);
    sti_serve_cut single = {.count = {1}}, three = {.count = {3}};
    /* M/D/1: rho T / (2 (1 - rho)). */
    assert_int_equal(sti_traffic_batches("1", 2, &traffic), 0);
    sti_simulate_desc d = plain(&t, &single, &traffic);
    near(mean_wait(&d), 0.6 / (2 * 0.4), 0.03);
    /* M/G/1: lambda E[T^2] / (2 (1 - rho)), batches of one and three seconds. */
    assert_int_equal(sti_traffic_batches("dist:1=0.5,2=0.5", 2, &traffic), 0);
    traffic.rate_per_s = 0.3;
    near(mean_wait(&d), 0.3 * 5 / (2 * 0.4), 0.03);
    /* M/M/3 by Erlang's formula C, one queue; JSED differs, since it decides early. */
    assert_int_equal(sti_traffic_batches("1", 2, &traffic), 0);
    traffic.rate_per_s = 2.1;
    d = plain(&t, &three, &traffic);
    d.exponential = true;
    d.scheduler.policy = STI_SERVE_FIFS;
    const double a = 2.1, top = a * a * a / 6 / (1 - a / 3);
    const double waits = top / (1 + a + a * a / 2 + top);
    near(mean_wait(&d), waits / (3 - a), 0.04);
    sti_serve_tables_fini(&t);
}

static sti_query query(int64_t number, int batch, double deadline)
{
    return (sti_query){.number = number, .batch = batch, .deadline_s = deadline};
}

static sti_scheduler *scheduler_of(const sti_serve_tables *t, const sti_serve_cut *cut,
                                   sti_serve_policy policy, bool merge)
{
    sti_scheduler *s;
    assert_int_equal(sti_scheduler_create(
                         &(sti_scheduler_desc){
                             .tables = t, .cut = cut, .policy = policy, .merge = merge},
                         &s),
                     0);
    return s;
}

static int offer(sti_scheduler *s, sti_query *q, double now)
{
    int p;
    assert_int_equal(sti_scheduler_offer(s, q, now, &p), 0);
    return p;
}

static sti_serve_batch *take(sti_scheduler *s, int p, double now)
{
    sti_query *late;
    double wake;
    return sti_scheduler_take(s, p, now, &late, &wake);
}

/* The small partition while it is in time, then the large one, then none. */
static void test_elsa_steps(void **state)
{
    (void)state;
    const double one[] = {10, 20}, two[] = {6, 8};
    sti_serve_tables t;
    const sti_serve_cut cut = {.count = {1, 1}};
    int p;
    make_tables(one, two, 2, 1e9, 3, &t);
    sti_scheduler *s = scheduler_of(&t, &cut, STI_SERVE_ELSA, false);
    sti_query q[] = {query(0, 1, 15), query(1, 1, 15), query(2, 1, 15), query(3, 1, 15),
                     query(4, 2, 100)};
    assert_int_equal(offer(s, &q[0], 0), 0); /* done at 10 */
    sti_serve_batch *small = take(s, 0, 0);
    assert_int_equal(offer(s, &q[1], 0), 1); /* 20 there, 6 here */
    sti_serve_batch *large = take(s, 1, 0);
    assert_int_equal(offer(s, &q[2], 0), 1); /* 12 */
    assert_int_equal(sti_scheduler_offer(s, &q[3], 0, &p), STINT_E_BUDGET);
    assert_true(fabs(q[3].expected_s - 18) < 1e-9); /* the least late */
    assert_int_equal(offer(s, &q[4], 0), 0);        /* 30 is in time */
    assert_true(sti_scheduler_withdraw(s, &q[4]) && !sti_scheduler_withdraw(s, &q[4]));
    assert_int_equal(sti_scheduler_waiting(s), 1);
    sti_scheduler_done(s, 0, small, 10);
    sti_scheduler_done(s, 1, large, 6);
    large = take(s, 1, 6);
    assert_ptr_equal(large->first, &q[2]);
    sti_scheduler_done(s, 1, large, 12);
    sti_scheduler_destroy(s);
    sti_serve_tables_fini(&t);
}

/* Queries that wait are merged up to what gets through most, never past a deadline;
 * what can no longer be in time is given up. */
static void test_merging(void **state)
{
    (void)state;
    const double one[] = {10, 12, 14, 30}, two[] = {9, 9, 9, 9};
    sti_serve_tables t;
    const sti_serve_cut cut = {.count = {1}};
    int p;
    make_tables(one, two, 4, 1e9, 1, &t);
    sti_scheduler *s = scheduler_of(&t, &cut, STI_SERVE_ELSA, true);
    sti_query q[] = {query(0, 1, 50), query(1, 1, 22), query(2, 1, 50), query(3, 1, 50),
                     query(4, 1, 33)};
    (void)offer(s, &q[0], 0);
    sti_serve_batch *batch = take(s, 0, 0); /* until 10 */
    assert_int_equal(batch->images, 1);
    (void)offer(s, &q[1], 0); /* done at 20, due at 22 */
    (void)offer(s, &q[2], 0); /* with it at 22 */
    (void)offer(s, &q[3], 0); /* with both it would be 24: a batch of its own, at 32 */
    /* With q[3] done at 34, alone at 32 but q[3] at 42: in time. */
    assert_int_equal(sti_scheduler_offer(s, &q[4], 0, &p), 0);
    sti_scheduler_done(s, 0, batch, 10);
    batch = take(s, 0, 10);
    assert_int_equal(batch->images, 2);
    sti_scheduler_done(s, 0, batch, 40);
    sti_query *late;
    double wake;
    batch = sti_scheduler_take(s, 0, 40, &late, &wake); /* q[4] is lost */
    assert_ptr_equal(late, &q[4]);
    assert_ptr_equal(batch->first, &q[3]);
    sti_scheduler_done(s, 0, batch, 50);
    sti_scheduler_destroy(s);
    sti_serve_tables_fini(&t);
}

/* A batch that its earliest deadline does not leave the time for goes on without it. */
static void test_hasty(void **state)
{
    (void)state;
    const double one[] = {10, 12, 14, 30}, two[] = {9, 9, 9, 9};
    sti_serve_tables t;
    const sti_serve_cut cut = {.count = {1}};
    sti_query *late;
    double wake;
    make_tables(one, two, 4, 1e9, 1, &t);
    sti_scheduler *s = scheduler_of(&t, &cut, STI_SERVE_ELSA, true);
    sti_query q[] = {query(0, 1, 50), query(1, 1, 36), query(2, 1, 60),
                     query(3, 1, 60)};
    (void)offer(s, &q[0], 0);
    sti_serve_batch *batch = take(s, 0, 0); /* until 10, as it seems */
    for (int i = 1; i < 4; i++)
        (void)offer(s, &q[i], 0); /* all three at 24 */
    sti_scheduler_done(s, 0, batch, 25);
    batch = sti_scheduler_take(s, 0, 25, &late, &wake);
    /* Alone it would be done at 35, but all of them at 39. */
    assert_ptr_equal(late, &q[1]);
    assert_null(late->next);
    assert_int_equal(batch->images, 2);
    assert_true(batch->deadline_s > 59 && batch->deadline_s < 61);
    assert_int_equal(sti_scheduler_waiting(s), 0);
    sti_scheduler_done(s, 0, batch, 37);
    sti_scheduler_destroy(s);
    sti_serve_tables_fini(&t);
}

/* Model 0 within 5 s, model 1, which takes 20, within 100. */
static void make_pair(double sla_s, sti_serve_tables *t)
{
    const double one[] = {1}, two[] = {0.5}, long1[] = {20}, long2[] = {9};
    sti_serve_tables other;
    make_tables(one, two, 1, sla_s, 2, t);
    make_tables(long1, long2, 1, 100, 2, &other);
    t->model[t->models++] = other.model[0];
    t->model[0].weight = t->model[1].weight = 0.5;
}

/* What blocks another model keeps to the first partition that has it in time, while the
 * other is asked for. */
static void test_blocking(void **state)
{
    (void)state;
    sti_serve_tables t;
    const sti_serve_cut cut = {.count = {2}};
    make_pair(5, &t);
    sti_scheduler *s = scheduler_of(&t, &cut, STI_SERVE_ELSA, false);
    sti_query slow[] = {query(0, 1, 100), query(1, 1, 100), query(2, 1, 100)};
    sti_query fast[] = {query(3, 1, 5), query(4, 1, 6)};
    for (int i = 0; i < 3; i++)
        slow[i].model = 1;
    assert_int_equal(offer(s, &slow[0], 0), 0);
    sti_serve_batch *long_one = take(s, 0, 0);
    assert_int_equal(offer(s, &fast[0], 0), 1);
    sti_serve_batch *short_one = take(s, 1, 0);
    assert_int_equal(offer(s, &slow[1], 0.5), 0); /* 40; on the other 21 */
    sti_scheduler_done(s, 1, short_one, 1);
    assert_int_equal(offer(s, &fast[1], 1), 1);
    sti_scheduler_done(s, 1, take(s, 1, 1), 2);
    assert_int_equal(offer(s, &slow[2], 3), 1); /* nobody asks for the other now */
    sti_scheduler_done(s, 1, take(s, 1, 3), 23);
    sti_scheduler_done(s, 0, long_one, 23);
    sti_scheduler_done(s, 0, take(s, 0, 23), 43);
    sti_scheduler_destroy(s);
    sti_serve_tables_fini(&t);
}

/* One partition gets through more, but not where one model waits behind another. */
static void test_cut_of_two(void **state)
{
    (void)state;
    const sti_serve_options options = {.cut = "auto", .batch_max = 1};
    sti_serve_tables t;
    sti_serve_plan plan;
    if (!sti_linear_program_known())
        skip();
    make_pair(50, &t);
    assert_int_equal(sti_serve_plan_make(&options, &t, &plan), 0);
    assert_true(plan.cut.count[0] == 0 && plan.cut.count[1] == 1);
    t.model[0].sla_s = 5;
    assert_int_equal(sti_serve_plan_make(&options, &t, &plan), 0);
    assert_true(plan.cut.count[0] == 2 && plan.cut.count[1] == 0);
    near(plan.bound_per_s, 2 / 10.5, 1e-9);
    sti_serve_tables_fini(&t);
}

/* Where small batches take longer than they did alone, more are merged. */
static void test_merging_follows(void **state)
{
    (void)state;
    const double one[] = {10, 20, 30, 39}, two[] = {9, 9, 9, 9};
    sti_serve_tables t;
    const sti_serve_cut cut = {.count = {1}};
    make_tables(one, two, 4, 1e9, 1, &t);
    sti_scheduler *s = scheduler_of(&t, &cut, STI_SERVE_ELSA, true);
    double now = 0;
    int merged = 0;
    for (int64_t i = 0; i < 40; i++) {
        sti_query q[] = {query(2 * i, 1, 1e9), query(2 * i + 1, 1, 1e9)};
        (void)offer(s, &q[0], now);
        (void)offer(s, &q[1], now);
        for (sti_serve_batch *batch; (batch = take(s, 0, now));) {
            merged = batch->images;
            assert_true(i > 0 || merged == 1);
            now += merged == 1 ? 15 : 20;
            sti_scheduler_done(s, 0, batch, now);
        }
    }
    assert_int_equal(merged, 2);
    sti_scheduler_destroy(s);
    sti_serve_tables_fini(&t);
}

/* One size: ELSA is JSED; no deadline: always the smallest size. */
static void test_policies_agree(void **state)
{
    (void)state;
    const double one[] = {0.010, 0.016, 0.024, 0.032},
                 two[] = {0.008, 0.01, 0.013, 0.016};
    sti_serve_tables t;
    sti_serve_result a, b;
    const sti_serve_cut equal = {.count = {0, 7}}, mixed = {.count = {4, 5}};
    sti_traffic traffic = {.rate_per_s = 500, .seed = 1};
    make_tables(one, two, 4, 0.05, 14, &t);
    assert_int_equal(sti_traffic_batches("lognormal:0.5,0.9", 4, &traffic), 0);
    sti_simulate_desc d = plain(&t, &equal, &traffic);
    d.queries = 20000;
    assert_int_equal(sti_simulate(&d, &a), 0);
    d.scheduler.policy = STI_SERVE_JSED;
    assert_int_equal(sti_simulate(&d, &b), 0);
    assert_true(!(a.p99_s < b.p99_s) && !(a.p99_s > b.p99_s));
    sti_serve_result_fini(&a);
    sti_serve_result_fini(&b);
    d = plain(&t, &mixed, &traffic);
    d.queries = 20000;
    t.model[0].sla_s = 1e9;
    traffic.rate_per_s = 50;
    assert_int_equal(sti_simulate(&d, &a), 0);
    for (int p = 4; p < 9; p++)
        assert_int_equal(a.partition[p].images, 0);
    sti_serve_result_fini(&a);
    sti_serve_tables_fini(&t);
}

/* What is sent is accounted for; more load is refused, not late. */
static void test_overload(void **state)
{
    (void)state;
    const double one[] = {0.010, 0.016, 0.024, 0.032},
                 two[] = {0.008, 0.01, 0.013, 0.016};
    sti_serve_tables t;
    sti_serve_result r;
    double per_s;
    const sti_serve_cut cut = {.count = {4, 5}};
    sti_traffic traffic = {.rate_per_s = 3000, .seed = 1};
    make_tables(one, two, 4, 0.05, 14, &t);
    assert_int_equal(sti_traffic_batches("lognormal:0.5,0.9", 4, &traffic), 0);
    sti_simulate_desc d = {.scheduler = {.tables = &t, .cut = &cut, .merge = true},
                           .traffic = &traffic,
                           .queries = 30000};
    assert_int_equal(sti_simulate(&d, &r), 0);
    assert_int_equal(r.sent, r.served + r.rejected + r.late + r.failed);
    assert_true(r.rejected > r.sent / 2 && r.in_time == r.served);
    const double goodput = (double)r.in_time / r.seconds;
    sti_serve_result_fini(&r);
    assert_int_equal(sti_simulate_rate(&d, 0.95, 10000, &per_s, &r), 0);
    assert_true(per_s > 300 && per_s < 3000 && goodput > 0.8 * per_s);
    assert_true(r.violations <= 0.05);
    sti_serve_result_fini(&r);
    sti_serve_tables_fini(&t);
}

static void test_traffic(void **state)
{
    (void)state;
    sti_traffic t = {.seed = 1};
    double share[8], sum = 0, at;
    int batch;
    assert_int_equal(sti_traffic_parse("time,batch\n0,1\r\n0.5,8\n2.25\n", "f", &t), 0);
    assert_int_equal(t.count, 3);
    assert_int_equal(sti_traffic_batches("4", 8, &t), 0);
    assert_true(sti_traffic_next(&t, 2, 0, &at, &batch) && batch == 4);
    assert_false(sti_traffic_next(&t, 3, 0, &at, &batch));
    sti_traffic_fini(&t);
    assert_int_equal(sti_traffic_batches("lognormal:1.386,0.9", 8, &t), 0);
    sti_traffic_shares(&t, 8, share);
    for (int b = 0; b < 8; b++)
        sum += share[b];
    assert_true(fabs(sum - 1) < 1e-12 && share[3] > share[6]);
    static const char *const bad[] = {"0",           "9",        "1.5",
                                      "lognormal:1", "dist:",    "dist:1=",
                                      "dist:9=1",    "dist:1=0", "x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(sti_traffic_batches(bad[i], 8, &t), STINT_E_USAGE);
    assert_int_equal(sti_traffic_parse("1,1\n0.5,1\n", "f", &t), STINT_E_INPUT);
    sti_traffic_fini(&t);
    assert_int_equal(sti_traffic_parse("", "f", &t), STINT_E_INPUT);
    assert_int_equal(sti_traffic_arrivals("poisson:0", &t), STINT_E_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_forms), cmocka_unit_test(test_elsa_steps),
        cmocka_unit_test(test_merging),      cmocka_unit_test(test_policies_agree),
        cmocka_unit_test(test_overload),     cmocka_unit_test(test_traffic),
        cmocka_unit_test(test_hasty),        cmocka_unit_test(test_blocking),
        cmocka_unit_test(test_cut_of_two),   cmocka_unit_test(test_merging_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
