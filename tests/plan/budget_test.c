/* The budget solver: a sequence in which memory falls and time rises, the same one each
 * time, and honest about what it plans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/budget.h"
#include "plan/small_net.h"

static size_t arena_of(const stint_graph *g, const uint8_t *form, int threads,
                       double *seconds)
{
    stint_graph *copy;
    sti_plan *plan;
    assert_int_equal(sti_graph_copy(g, &copy), STINT_OK);
    if (form)
        assert_int_equal(sti_budget_apply(copy, form, sti_graph_value_count(g)),
                         STINT_OK);
    assert_int_equal(sti_plan_create(copy, threads, &plan), STINT_OK);
    size_t bytes = plan->region_bytes[STI_REGION_ARENA];
    *seconds = sti_budget_seconds(copy);
    sti_plan_destroy(plan);
    stint_graph_destroy(copy);
    return bytes;
}

static void memory_falls_and_time_rises(void **state)
{
    (void)state;
    stint_graph *g = small_net(4);
    for (int threads = 1; threads <= 2; threads++) {
        sti_budget *b = NULL;
        double seconds;
        assert_int_equal(
            sti_budget_create(&(sti_budget_desc){.graph = g, .threads = threads}, &b),
            STINT_OK);
        assert_true(b->count > 5);
        assert_int_equal(b->options[0].arena_bytes,
                         arena_of(g, NULL, threads, &seconds));
        for (int32_t i = 0; i < b->count; i++) {
            const sti_budget_option *o = &b->options[i];
            assert_int_equal(o->arena_bytes, arena_of(g, o->form, threads, &seconds));
            assert_true(o->seconds == seconds);
            if (i > 0) {
                assert_true(o->arena_bytes < b->options[i - 1].arena_bytes);
                assert_true(o->seconds >= b->options[i - 1].seconds);
                assert_true(o->made_again > 0);
            }
        }
        const sti_budget_option *last = &b->options[b->count - 1];
        printf("%d threads: %zu -> %zu bytes in %d options, time x %.3f\n", threads,
               b->options[0].arena_bytes, last->arena_bytes, (int)b->count,
               last->seconds / b->options[0].seconds);
        assert_true(last->arena_bytes * 2 < b->options[0].arena_bytes);
        sti_budget_destroy(b);
    }
    stint_graph_destroy(g);
}

static void same_graph_same_sequence(void **state)
{
    (void)state;
    stint_graph *g = small_net(3);
    sti_budget *a = NULL, *b = NULL;
    assert_int_equal(
        sti_budget_create(&(sti_budget_desc){.graph = g, .threads = 1}, &a), STINT_OK);
    assert_int_equal(
        sti_budget_create(&(sti_budget_desc){.graph = g, .threads = 1}, &b), STINT_OK);
    assert_int_equal(a->count, b->count);
    for (int32_t i = 0; i < a->count; i++)
        assert_memory_equal(a->options[i].form, b->options[i].form, (size_t)a->values);
    sti_budget_destroy(a);
    sti_budget_destroy(b);
    stint_graph_destroy(g);
}

static void graph_stays_as_it_was(void **state)
{
    (void)state;
    stint_graph *g = small_net(2);
    sti_text before = {0}, after = {0};
    sti_budget *b = NULL;
    assert_int_equal(sti_graph_print(g, &before), STINT_OK);
    assert_int_equal(
        sti_budget_create(&(sti_budget_desc){.graph = g, .threads = 2}, &b), STINT_OK);
    assert_int_equal(sti_graph_print(g, &after), STINT_OK);
    assert_string_equal(before.data, after.data);
    sti_text_fini(&before);
    sti_text_fini(&after);
    sti_budget_destroy(b);
    stint_graph_destroy(g);
}

static bool is_scope(const stint_graph *g, stint_value v, const char *scope)
{
    const sti_node *node = sti_graph_value(g, v)->producer;
    return node && !node->backward && strcmp(node->scope, scope) == 0;
}

/* The first convolution reads the images alone, and takes less time than a block. What
 * comes after it would need it. */
static void all_is_packed_but_what_is_cheaper_to_make_again(void **state)
{
    (void)state;
    stint_graph *g = small_net(2);
    const int32_t values = sti_graph_value_count(g);
    uint8_t *form = malloc((size_t)values);
    sti_pack_candidate *list = malloc((size_t)values * sizeof *list);
    sti_budget sizes = {0};
    int packed = 0, again = 0, candidates = 0;
    assert_non_null(form);
    assert_non_null(list);
    assert_int_equal(sti_budget_blocks(g, NULL, 0, &sizes), STINT_OK);
    assert_int_equal(sti_budget_pack_all(g, &sizes, form), STINT_OK);
    assert_int_equal(sti_pack_candidates(g, list, &candidates), STINT_OK);
    for (int i = 0; i < candidates; i++) {
        const stint_value v = list[i].value;
        const bool first = is_scope(g, v, "conv");
        assert_int_equal(form[v], first ? STI_FORM_RECOMPUTE : STI_FORM_PACK);
        packed += !first;
    }
    for (stint_value v = 0; v < values; v++)
        if (form[v] == STI_FORM_RECOMPUTE) {
            assert_true(is_scope(g, v, "conv") || is_scope(g, v, "norm"));
            again++;
        }
    assert_in_range(again, 1, 2);
    assert_true(packed > 3);
    assert_int_equal(sti_budget_apply(g, form, values), STINT_OK);
    free(list);
    free(form);
    sti_free(sizes.blocks);
    stint_graph_destroy(g);
}

/* The first failures meet the copying, the later ones the search. */
static void out_of_memory_is_told(void **state)
{
    (void)state;
    stint_graph *g = small_net(1);
    size_t before = sti_alloc_now_bytes();
    int64_t start = sti_alloc_count();
    sti_budget *b = NULL;
    assert_int_equal(
        sti_budget_create(&(sti_budget_desc){.graph = g, .threads = 1}, &b), STINT_OK);
    int64_t calls = sti_alloc_count() - start;
    sti_budget_destroy(b);
    for (int64_t n = 1; n <= calls; n += 1 + n / 7) {
        b = NULL;
        sti_alloc_fail_nth(n);
        assert_int_equal(
            sti_budget_create(&(sti_budget_desc){.graph = g, .threads = 1}, &b),
            STINT_E_MEMORY);
        sti_alloc_fail_nth(0);
        assert_null(b);
        assert_int_equal(sti_alloc_now_bytes(), before);
    }
    stint_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_falls_and_time_rises),
        cmocka_unit_test(same_graph_same_sequence),
        cmocka_unit_test(graph_stays_as_it_was),
        cmocka_unit_test(all_is_packed_but_what_is_cheaper_to_make_again),
        cmocka_unit_test(out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
