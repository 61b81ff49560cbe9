/* Cuts and their bounds: the worked example of the formulas, and many small tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/linear_program.h"
#include "base/rng.h"
#include "serve/paris_priv.h"

static const char example[] =
    "{\"format\":\"stint-serve-tables\",\"units\":14,\"legal\":\"any\",\"models\":[{"
    "\"name\":\"m\",\"sla_s\":1,\"sizes\":[1,2],\"batches\":[1,2,3,4],"
    "\"p50_s\":[[0.010,0.016,0.024,0.032],[0.008,0.010,0.013,0.016]],"
    "\"p95_s\":[[0.010,0.016,0.024,0.032],[0.008,0.010,0.013,0.016]],"
    "\"share\":[0.4,0.3,0.2,0.1]}]}";

static void read_example(sti_serve_tables *t)
{
    assert_int_equal(sti_serve_tables_parse(example, strlen(example), "t", t), 0);
}

static void test_example(void **state)
{
    (void)state;
    sti_serve_tables t;
    sti_serve_cut cut;
    sti_paris p;
    read_example(&t);
    assert_int_equal(sti_paris_cut(&t, STI_PARIS_KNEE, &p, &cut), 0);
    assert_int_equal(p.model[0].knee[0], 1);
    assert_int_equal(p.model[0].knee[1], 4);
    assert_true(fabs(p.model[0].demand_s[0] - 0.0040) < 1e-12);
    assert_true(fabs(p.model[0].demand_s[1] - 0.0072) < 1e-12);
    assert_true(fabs(p.wanted[0] - 3.0435) < 1e-3 && fabs(p.wanted[1] - 5.478) < 1e-3);
    assert_int_equal(cut.count[0], 4);
    assert_int_equal(cut.count[1], 5);
    sti_serve_tables_fini(&t);
}

static void test_bound_and_climb(void **state)
{
    (void)state;
    sti_serve_tables t;
    sti_serve_cut cut = {.count = {4, 5}};
    double per_s;
    if (!sti_linear_program_known())
        skip();
    read_example(&t);
    assert_int_equal(sti_serve_bound(&t, &cut, &per_s), 0);
    assert_true(fabs(per_s - 773) < 1);
    assert_int_equal(sti_serve_climb(&t, &cut, &per_s), 0);
    assert_true(fabs(per_s - 833) < 1);
    assert_int_equal(sti_serve_cut_units(&t, &cut), 14);
    /* Too short a deadline for large batches on the small size. */
    t.model[0].sla_s = 0.02;
    sti_serve_cut small = {.count = {14, 0}};
    assert_int_equal(sti_serve_bound(&t, &small, &per_s), 0);
    assert_true(per_s <= 0);
    sti_serve_tables_fini(&t);
}

/* Where only a size below a batch's own is in time (the larger one had a bad moment as
 * it was measured), that one takes it. */
static void test_smaller_in_time(void **state)
{
    (void)state;
    static const char text[] =
        "{\"format\":\"stint-serve-tables\",\"units\":2,\"models\":[{\"name\":\"m\","
        "\"sla_s\":0.02,\"sizes\":[1,2],\"batches\":[1,2,3],"
        "\"p50_s\":[[0.001,0.002,0.003],[0.001,0.0015,0.002]],"
        "\"p95_s\":[[0.001,0.002,0.003],[0.001,0.0015,0.03]]}]}";
    sti_serve_tables t;
    sti_serve_cut cut;
    sti_paris p;
    assert_int_equal(sti_serve_tables_parse(text, strlen(text), "t", &t), 0);
    assert_int_equal(sti_paris_cut(&t, STI_PARIS_KNEE, &p, &cut), 0);
    assert_true(cut.count[0] > 0);
    sti_serve_tables_fini(&t);
}

static void test_impossible(void **state)
{
    (void)state;
    sti_serve_tables t;
    sti_serve_cut cut;
    sti_paris p;
    read_example(&t);
    t.model[0].sla_s = 0.015;
    assert_int_equal(sti_paris_cut(&t, STI_PARIS_KNEE, &p, &cut), STINT_E_BUDGET);
    assert_non_null(strstr(stint_last_error(), "a batch of 4 within 15 ms"));
    /* A segment whose time is above the limit is the next larger size's. */
    t.model[0].sla_s = 0.016;
    t.model[0].p95[1] = 0.017;
    assert_int_equal(sti_paris_cut(&t, STI_PARIS_KNEE, &p, &cut), 0);
    sti_serve_tables_fini(&t);
}

static double random_uniform(uint64_t i)
{
    uint32_t word[4];
    sti_random4(7, STI_STREAM_TEST, i, 0, word);
    return (double)sti_uniform(word[0]);
}

/* Tables of falling efficiency at random, with the sizes given. */
static void random_tables(uint64_t seed, const int *size, int sizes, int units,
                          bool mig7, sti_serve_tables *t)
{
    *t = (sti_serve_tables){.units = units, .mig7 = mig7, .sizes = sizes, .models = 1};
    memcpy(t->size, size, (size_t)sizes * sizeof *size);
    sti_serve_model *m = &t->model[0];
    const int most = 8;
    snprintf(m->name, sizeof m->name, "m");
    assert_int_equal(sti_serve_model_init(m, sizes, most), 0);
    m->weight = 1;
    m->sla_s = 1e3;
    for (int k = 0; k < sizes; k++) {
        const double knee = 1 + size[k] * 3 * random_uniform(seed * 100 + (uint64_t)k);
        for (int b = 1; b <= most; b++)
            m->p50[k * most + b - 1] = m->p95[k * most + b - 1] =
                (b + knee / 4) / size[k];
    }
    for (int b = 0; b < most; b++)
        m->share[b] = 1.0 / most;
}

static void check_cut(const sti_serve_tables *t)
{
    sti_serve_cut cut, again;
    sti_paris p;
    sti_text text = {0};
    assert_int_equal(sti_paris_cut(t, STI_PARIS_KNEE, &p, &cut), 0);
    assert_true(sti_serve_cut_units(t, &cut) <= t->units);
    assert_true(sti_serve_cut_partitions(t, &cut) > 0);
    double wanted = 0;
    for (int k = 0; k < t->sizes; k++)
        wanted += p.wanted[k] * t->size[k];
    assert_true(fabs(wanted - t->units) < 1e-9 * t->units);
    sti_serve_cut_text(t, &cut, &text);
    assert_int_equal(sti_serve_cut_parse(t, text.data, &again), 0);
    assert_memory_equal(again.count, cut.count, sizeof cut.count);
    sti_text_fini(&text);
}

static void test_random_tables(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 3, 4, 7};
    for (uint64_t i = 0; i < 3000; i++) {
        sti_serve_tables t;
        const bool mig7 = i % 2 == 0;
        random_tables(i, sizes, 5, mig7 ? 7 * (1 + (int)(i % 8)) : 7 + (int)(i % 40),
                      mig7, &t);
        check_cut(&t);
        sti_serve_tables_fini(&t);
    }
}

/* All cuts of one device, by force: the climb's bound is within 5 % of the best. */
/* Shares of CPUs: each on one CPU, none of them overfull; what PARIS and the climb make
 * of random tables fits so, and leaves no room for a unit more. */
static void assert_placed(const sti_serve_tables *t, const sti_serve_cut *cut)
{
    int first[STI_SERVE_UNITS], used[8] = {0}, p = 0;
    assert_true(sti_serve_cut_place(t, cut, first));
    for (int k = 0; k < t->sizes; k++)
        for (int i = 0; i < cut->count[k]; i++, p++) {
            const int cpus = sti_serve_size_cpus(t, t->size[k]);
            for (int c = 0; c < (cpus ? cpus : 1); c++)
                used[first[p] + c] += cpus ? t->units / t->cpus : t->size[k];
        }
    for (int c = 0; c < 8; c++)
        assert_true(used[c] <= (c < t->cpus ? t->units / t->cpus : 0));
}

static void test_shares_of_cpus(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 3, 4, 7, 14, 28};
    sti_serve_tables t;
    sti_serve_cut cut;
    sti_paris p;
    double per_s;
    for (uint64_t i = 0; i < 2000; i++) {
        const int cpus = 1 << i % 3;
        random_tables(5000 + i, sizes, 5 + (int)(i % 3), 7 * cpus, false, &t);
        t.cpus = cpus;
        assert_int_equal(sti_paris_cut(&t, STI_PARIS_KNEE, &p, &cut), 0);
        assert_placed(&t, &cut);
        if (i < 60 && sti_linear_program_known()) {
            assert_int_equal(sti_serve_climb(&t, &cut, &per_s), 0);
            assert_placed(&t, &cut);
        }
        sti_serve_tables_fini(&t);
    }
    /* Twelve units of fourteen, and yet three shares of four do not go on two CPUs. */
    random_tables(1, sizes, 6, 14, false, &t);
    t.cpus = 2;
    assert_false(
        sti_serve_cut_place(&t, &(sti_serve_cut){.count = {0, 0, 0, 3}}, NULL));
    assert_true(sti_serve_cut_place(&t, &(sti_serve_cut){.count = {0, 0, 2, 2}}, NULL));
    assert_false(
        sti_serve_cut_place(&t, &(sti_serve_cut){.count = {1, 0, 0, 0, 2}}, NULL));
    assert_true(sti_serve_cut_equal(&t, 3, &cut) && cut.count[2] == 4);
    sti_serve_tables_fini(&t);
}

static void test_climb_near_best(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 3, 4, 7};
    if (!sti_linear_program_known())
        skip();
    for (uint64_t i = 0; i < 12; i++) {
        sti_serve_tables t;
        sti_serve_cut cut;
        sti_paris p;
        double best = 0, own;
        random_tables(1000 + i, sizes, 5, 14, true, &t);
        for (int c = 0; c < STI_MIG7_CUTS * STI_MIG7_CUTS; c++) {
            sti_serve_cut each = {.count = {0}};
            double per_s;
            each.device[c / STI_MIG7_CUTS]++;
            each.device[c % STI_MIG7_CUTS]++;
            sti_mig7_count(&t, &each);
            assert_int_equal(sti_serve_bound(&t, &each, &per_s), 0);
            best = fmax(best, per_s);
        }
        assert_int_equal(sti_paris_cut(&t, STI_PARIS_KNEE, &p, &cut), 0);
        assert_int_equal(sti_serve_climb(&t, &cut, &own), 0);
        assert_true(own >= 0.95 * best && own <= best * (1 + 1e-9));
        sti_serve_tables_fini(&t);
    }
}

static void refused(const char *text, const char *words)
{
    sti_serve_tables t;
    assert_int_equal(sti_serve_tables_parse(text, strlen(text), "f.json", &t),
                     STINT_E_INPUT);
    if (!strstr(stint_last_error(), words))
        fail_msg("\"%s\" is not in \"%s\"", words, stint_last_error());
}

static void test_bad_tables(void **state)
{
    (void)state;
#define HEAD  "{\"format\":\"stint-serve-tables\",\"units\":2,"
#define MODEL HEAD "\"models\":[{\"name\":\"m\",\"sla_s\":1,"
    refused("{", "line 1");
    refused("{\"format\":\"x\"}", "format");
    refused(HEAD "\"legal\":\"mig7\"}", "multiple of 7");
    refused(HEAD "\"models\":[]}", "1 to 16 models");
    refused(MODEL "\"sizes\":[3],\"batches\":[1]}]}", "above units");
    refused(MODEL "\"sizes\":[1],\"batches\":[2,1]}]}", "rising");
    refused(MODEL "\"sizes\":[1],\"batches\":[1],\"p50_s\":[[0]],\"p95_s\":[[1]]}]}",
            "above 0");
    refused(MODEL "\"sizes\":[1],\"batches\":[1,2],\"p50_s\":[[1,null]]}]}",
            "of the largest batch");
    sti_serve_tables t;
    const char *holes =
        MODEL "\"sizes\":[1],\"batches\":[1,2,4],\"p50_s\":[[1,null,4]],"
              "\"p95_s\":[[1,2,4]]}]}";
    assert_int_equal(sti_serve_tables_parse(holes, strlen(holes), "t", &t), 0);
    assert_int_equal(t.holes, 1);
    assert_true(fabs(t.model[0].p50[1] - 2) < 1e-12);
    assert_true(fabs(t.model[0].p50[2] - 3) < 1e-12);
    sti_serve_tables_fini(&t);
}

/* What is written reads back the same. */
static void test_round_trip(void **state)
{
    (void)state;
    sti_serve_tables t, again;
    sti_text text = {0};
    read_example(&t);
    sti_serve_tables_write(&t, &text);
    assert_int_equal(sti_serve_tables_parse(text.data, text.length, "t", &again), 0);
    assert_int_equal(again.units, 14);
    assert_memory_equal(again.model[0].p95, t.model[0].p95, 8 * sizeof(double));
    for (int b = 0; b < 4; b++)
        assert_true(fabs(again.model[0].share[b] - t.model[0].share[b]) < 1e-15);
    sti_text_fini(&text);
    sti_serve_tables_fini(&t);
    sti_serve_tables_fini(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example),         cmocka_unit_test(test_bound_and_climb),
        cmocka_unit_test(test_impossible),      cmocka_unit_test(test_random_tables),
        cmocka_unit_test(test_climb_near_best), cmocka_unit_test(test_bad_tables),
        cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_smaller_in_time),
        cmocka_unit_test(test_shares_of_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
