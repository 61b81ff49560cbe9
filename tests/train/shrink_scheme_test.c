#include "train/scheme.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "stint/status.h"

static sti_shrink_scheme scheme;

static void parse(const char *text)
{
    assert_int_equal(sti_scheme_parse(text, &scheme), STINT_OK);
}

static void words_and_their_brackets(void **state)
{
    (void)state;
    parse("prune(0.9, layer)@fc* + quantise(int4)");
    assert_int_equal(scheme.count, 2);
    assert_int_equal(scheme.word[0].kind, STI_SCHEME_PRUNE);
    assert_true(scheme.word[0].layer);
    assert_true(scheme.word[0].share[0] == 0.9);
    assert_string_equal(scheme.word[0].glob, "fc*");
    assert_int_equal(scheme.word[1].number, STI_WEIGHT_INT);
    assert_int_equal(scheme.word[1].bits, 4);
    parse("structure(25%,align=16,l2)");
    assert_true(scheme.word[0].share[0] == 0.25);
    assert_int_equal(scheme.word[0].align, 16);
    assert_int_equal(scheme.word[0].criterion, STI_CRITERION_L2);
    parse("block(4x8,0)+lowrank(0.5)+quantise(f16)");
    assert_int_equal(scheme.word[0].block_rows, 4);
    assert_int_equal(scheme.word[0].block_columns, 8);
    assert_int_equal(scheme.word[2].number, STI_WEIGHT_F16);
    parse("pattern(12)+kernel(0.1/0.2/30%)");
    assert_int_equal(scheme.word[0].patterns, 12);
    assert_int_equal(scheme.word[1].shares, 3);
    assert_true(scheme.word[1].share[2] == 0.3);
    assert_false(sti_scheme_is_automatic(&scheme));
    assert_true(sti_scheme_has(&scheme, STI_SCHEME_KERNEL));
    assert_false(sti_scheme_has(&scheme, STI_SCHEME_ROW));
}

/* What is wrong, where, and the way out. */
static void wrong_schemes(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"prun(0.9)", "did you mean prune"},
        {"prune(0.9)+quantize(int8)", "character 12"},
        {"prune(1)", "below 1"},
        {"prune(-0.1)", "below 1"},
        {"prune(nan)", "below 1"},
        {"prune()", "below 1"},
        {"prune", "brackets"},
        {"prune(0.5", "brackets"},
        {"prune(0.5)x", "@GLOB"},
        {"prune(0.5)@", "@GLOB"},
        {"prune(0.5,align=4)", "'align=4' is not layer"},
        {"prune(0.5)+", "missing"},
        {"", "missing"},
        {"block(4x4)", "missing"},
        {"block(4,0.5)", "ROWSxCOLUMNS"},
        {"block(0x4,0.5)", "ROWSxCOLUMNS"},
        {"pattern(13)", "1 to 12"},
        {"pattern(0)", "1 to 12"},
        {"quantise(int9)", "int2 to int8"},
        {"quantise(int)", "int2 to int8"},
        {"kernel(0.1/0.2/1.5)", "a list"},
        {"row(0.5,align=0)", "align=N"},
        {"prune(0)+prune(0)+prune(0)+prune(0)+prune(0)+prune(0)+prune(0)+prune(0)+"
         "prune(0)",
         "more than 8"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(sti_scheme_parse(cases[i].text, &scheme), STINT_E_USAGE);
        if (!strstr(stint_last_error(), cases[i].says))
            fail_msg("'%s' says: %s", cases[i].text, stint_last_error());
    }
}

static void auto_gets_its_share(void **state)
{
    const double share = 0.875, list[] = {0.25, 0.5};
    sti_text out = {0};
    (void)state;
    sti_scheme_settle("prune( auto)@auto*+kernel(auto,layer)+block(2x2, auto)", &share,
                      1, &out);
    assert_string_equal(out.data,
                        "prune( 0.875)@auto*+kernel(0.875,layer)+block(2x2, 0.875)");
    sti_text_fini(&out);
    sti_scheme_settle("kernel(auto)", list, 2, &out);
    assert_string_equal(out.data, "kernel(0.25/0.5)");
    sti_text_fini(&out);
    parse("kernel(auto)");
    assert_true(sti_scheme_is_automatic(&scheme));
}

/* A recipe.ini that a run wrote is the recipe that it began with. */
static void settled_schemes_are_known(void **state)
{
    (void)state;
    assert_true(sti_scheme_is_settled("kernel(0.5)", "kernel(auto)"));
    assert_true(sti_scheme_is_settled("pattern(4)+kernel(0.05/0.5/1e-3)@a*",
                                      "pattern(4)+kernel(auto)@a*"));
    assert_false(sti_scheme_is_settled("kernel(auto)", "kernel(auto)"));
    assert_false(sti_scheme_is_settled("kernel(0.5)", "kernel(0.5)"));
    assert_false(sti_scheme_is_settled("kernel(0.5)", "prune(auto)"));
    assert_false(sti_scheme_is_settled("kernel(0.5)+", "kernel(auto)"));
    assert_false(sti_scheme_is_settled("kernel()", "kernel(auto)"));
    assert_false(
        sti_scheme_is_settled("pattern(8)+kernel(0.5)", "pattern(4)+kernel(auto)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_their_brackets),
        cmocka_unit_test(wrong_schemes),
        cmocka_unit_test(auto_gets_its_share),
        cmocka_unit_test(settled_schemes_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
