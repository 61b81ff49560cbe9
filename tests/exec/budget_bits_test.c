/* Every option of the budget solver gives the bits of the graph as it was, on every
 * instruction set and any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/rng.h"
#include "exec/runner.h"
#include "plan/budget.h"
#include "plan/small_net.h"

static void fill_leaves(const runner *r, const stint_graph *g)
{
    for (stint_value v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        float *x = sti_exec_address(r->exec, v);
        int32_t *label = sti_exec_address(r->exec, v);
        if (row->role == STI_ROLE_NODE)
            continue;
        for (int64_t i = 0; i < stint_shape_count(&row->shape); i++) {
            uint32_t w[4];
            sti_random4(3, STI_STREAM_TEST, (uint64_t)v, (uint64_t)i, w);
            if (row->shape.dtype == STINT_I32)
                label[i] = (int32_t)sti_below(w[0], 5);
            else
                x[i] = 2 * sti_uniform(w[0]) - 1;
        }
    }
}

/* The result block of one run; the caller frees it. */
static void *run_once(const stint_graph *g, int threads, size_t *bytes)
{
    runner r;
    runner_init(&r, g, threads);
    fill_leaves(&r, g);
    sti_exec_run(r.exec, &(sti_team){.threads = threads},
                 &(sti_step){.seed = 5, .step = 7, .shard = 2});
    *bytes = r.plan->region_bytes[STI_REGION_RESULT];
    void *copy = sti_alloc(*bytes, "test");
    memcpy(copy, r.memory.region[STI_REGION_RESULT], *bytes);
    runner_fini(&r);
    return copy;
}

static void check_option(const stint_graph *g, const uint8_t *form, int threads,
                         const void *want, size_t bytes)
{
    stint_graph *copy;
    size_t now;
    assert_int_equal(sti_graph_copy(g, &copy), STINT_OK);
    assert_int_equal(sti_budget_apply(copy, form, sti_graph_value_count(g)), STINT_OK);
    void *result = run_once(copy, threads, &now);
    assert_int_equal(now, bytes);
    assert_memory_equal(result, want, bytes);
    sti_free(result);
    stint_graph_destroy(copy);
}

static void options_keep_the_bits(void **state)
{
    (void)state;
    const sti_isa saved = sti_isa_now();
    stint_graph *g = small_net(3);
    sti_budget *b = NULL;
    size_t bytes;
    int runs = 0;
    assert_int_equal(
        sti_budget_create(&(sti_budget_desc){.graph = g, .threads = 1}, &b), STINT_OK);
    sti_isa_force(STI_ISA_REF);
    void *want = run_once(g, 1, &bytes);
    for (int isa = 0; isa < STI_ISA_COUNT; isa++)
        for (int threads = 1; threads <= 3 && sti_isa_force((sti_isa)isa); threads++)
            for (int32_t i = threads - 1; i < b->count;
                 i += isa == STI_ISA_REF ? 9 : 2) {
                check_option(g, b->options[i].form, threads, want, bytes);
                runs++;
            }
    check_option(g, b->options[b->count - 1].form, 2, want, bytes);
    printf("%d runs of %d options\n", runs, (int)b->count);
    sti_isa_force(saved);
    sti_free(want);
    sti_budget_destroy(b);
    stint_graph_destroy(g);
}

/* Forms that nobody would choose: drop all, make all anew for each reader, or either by
 * chance. */
static void any_forms_keep_the_bits(void **state)
{
    (void)state;
    stint_graph *g = small_net(2);
    size_t bytes;
    int32_t values = sti_graph_value_count(g);
    void *want = run_once(g, 2, &bytes);
    uint8_t *form = sti_alloc((size_t)values, "test");
    for (uint32_t round = 0; round < 40; round++) {
        for (int32_t v = 0; v < values; v++) {
            uint32_t w[4];
            sti_random4(round, STI_STREAM_TEST, 1, (uint64_t)v, w);
            uint32_t dice = sti_below(w[0], 12);
            form[v] = round == 0 || dice < 6 ? STI_FORM_RECOMPUTE
                      : dice < 11            ? STI_FORM_KEEP
                                             : STI_FORM_REPEAT;
        }
        check_option(g, form, 2, want, bytes);
    }
    sti_free(form);
    sti_free(want);
    stint_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_keep_the_bits),
        cmocka_unit_test(any_forms_keep_the_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
