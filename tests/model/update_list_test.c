/* Lists of parameters to train: words stand for the names that they should, and a list
 * is read as it is written, or refused by what is wrong with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "model/network.h"

static bool matches(const char *word, const char *name)
{
    return sti_update_word_matches(word, strlen(word), name);
}

static void words_stand_for_names(void **state)
{
    (void)state;
    static const struct {
        const char *word, *name;
        bool match;
    } cases[] = {
        {"fc.weight", "fc.weight", true},
        {"fc.weight", "fc.weights", false},
        {"*", "h.3.attn.c_attn.weight", true},
        {"*.bias", "h.3.attn.c_attn.bias", true},
        {"*.bias", "h.3.attn.c_attn.bias.x", false},
        {"h.8-11.attn.*", "h.8.attn.c_attn.weight", true},
        {"h.8-11.attn.*", "h.11.attn.c_proj.bias", true},
        {"h.8-11.attn.*", "h.7.attn.c_attn.weight", false},
        {"h.8-11.attn.*", "h.12.attn.c_attn.weight", false},
        {"h.8-11.attn.*", "h.9.mlp.c_fc.weight", false},
        {"h.0-1", "h.10", false}, /* the whole number counts */
        {"h.10-11", "h.1", false},
        {"*.1-2.conv*", "layer3.1.conv2.weight", true},
        {"layer1-2.*", "layer1.0.conv1.weight", false}, /* no number of its own */
        {"a*b*c", "axxbyybzc", true},
        {"a*b*c", "axxbyyz", false},
        {"1-3", "2", true},
        {"1-", "1-", true},
        {"999999999-999999999", "999999999", true},
        {"", "", true},
        {"", "a", false},
        {"**", "", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (matches(cases[i].word, cases[i].name) != cases[i].match)
            fail_msg("'%s' and '%s'", cases[i].word, cases[i].name);
}

static void build_gpt(sti_network *net)
{
    sti_network_desc desc = {
        .name = "gpt",
        .text = {.vocabulary = 40, .depth = 3, .width = 32, .heads = 4, .kv_heads = 4},
        .context = 12};
    assert_int_equal(stint_text_model_resolve(desc.name, &desc.text, &desc.context),
                     STINT_OK);
    assert_int_equal(sti_network_build(&desc, STINT_EVAL, 1, net), STINT_OK);
}

static void lists_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *list, *says;
        int count;
    } cases[] = {
        {"h.1-2.attn.*", NULL, 8},
        {" h.0.ln_1.scale , h.0.ln_1.shift", NULL, 2},
        {"*.bias,h.0.attn.c_attn.bias", NULL, 12},
        {"h.0.*.weight@1/4,h.0.mlp.c_fc.weight@1", NULL, 4},
        {"h.0.mlp.c_fc.weight@1/3", "'1/3' is no share of h.0.mlp.c_fc.weight", 0},
        {"h.0.mlp.c_fc.weight@", "'' is no share", 0},
        {"h.0.mlp.c_fc.bias@1/2", "has no channels to train a share of", 0},
        {"h.0.ln_1.scal", "did you mean 'h.0.ln_1.scale'?", 0},
        {"h.7.*", "no parameter is called 'h.7.*'", 0},
        {"h.0.ln_1.scale,", "a name is missing", 0},
        {",,", "a name is missing", 0},
        {"", "a name is missing", 0},
    };
    sti_network net;
    build_gpt(&net);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sti_update_set set = {.count = 0};
        const stint_status st =
            sti_update_set_parse("key", cases[i].list, net.graph, &set);
        assert_int_equal(st, cases[i].says ? STINT_E_USAGE : STINT_OK);
        if (cases[i].says)
            assert_non_null(strstr(stint_last_error(), cases[i].says));
        assert_int_equal(set.count, cases[i].count);
        sti_update_set_fini(&set);
    }
    sti_network_fini(&net);
}

static void memory_runs_out(void **state)
{
    (void)state;
    sti_network net;
    stint_status st = STINT_E_MEMORY;
    build_gpt(&net);
    for (int nth = 1; st == STINT_E_MEMORY; nth++) {
        sti_update_set set = {.count = 0};
        assert_true(nth < 100);
        sti_alloc_fail_nth(nth);
        st = sti_update_set_parse("key", "*.bias", net.graph, &set);
        sti_alloc_fail_nth(0);
        sti_update_set_fini(&set);
    }
    assert_int_equal(st, STINT_OK);
    sti_network_fini(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_stand_for_names),
                                       cmocka_unit_test(lists_are_read),
                                       cmocka_unit_test(memory_runs_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
