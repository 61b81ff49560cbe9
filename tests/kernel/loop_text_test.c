/* Loop strings that are wrong are refused with a sentence that says why; those that are
 * right are taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/loop/loop.h"

typedef struct misuse {
    const char *text, *word;
} misuse;

static const misuse misuses[] = {
    {"", "is empty"},
    {"bc", "loop a is missing"},
    {"abcd", "letter d has no loop"},
    {"ab c", "a loop is a letter"},
    {"abbbc", "takes 2 block sizes"},
    {"abbbbbbbc", "more than 6 times"},
    {"BaC", "two separate groups"},
    {"Abc", "loop a adds up"},
    {"A{R:2}bc", "loop a adds up"},
    {"b{R:2}ac", "takes no grid"},
    {"B{R:2}aCb", "do not mix"},
    {"B{R:2}aC{R:2}", "each axis of the grid cuts one"},
    {"B{R:3}aC{C:2}", "takes 6 threads, there are 4"},
    {"B{R:3}C{C:1}b{L:2}a", "takes no grid"},
    {"B{R:3}C{C:1}B{L:2}a", "3 x 1 x 2"},
    {"B{X:3}ac", "a grid is written"},
    {"B{R:}ac", "whole number of ways"},
    {"B{R:2ac", "whole number of ways"},
    {"B{R:0}ac", "1 to 4096 ways"},
    {"B{R:5000}ac", "1 to 4096 ways"},
    {"B{R:99999999999999999999}ac", "whole number of ways"},
    {"abcb[0,4,1]", "only the first occurrence"},
    {"ab[0,4]c", "a range is written"},
    {"ab[0,4,1,2]c", "in parentheses"},
    {"ab[0,4,1,(2]c", "end with ')'"},
    {"ab[0,4,1,(1,1,1,1,1,1)]c", "more than 5 block sizes"},
    {"ab[0,4,1,(x)]c", "a block size is"},
    {"ab[0,4,1,(2)c", "a range ends with"},
    {"ab[0,4,0]c", "step of b is 0"},
    {"ab[4,0,1]c", "backwards"},
    {"ab[0,4,1,(2)]c", "takes 0 block sizes"},
    {"ab[0,9,2,(5)]cb", "no multiple of the next, 2"},
    {"ab[0,9,2,(-2)]cb", "no multiple"},
    {"a[0,1152921504606846976,1]b[0,999999999999999,1]c", "range is written"},
    {"a[0,999999999999999999,1]b[0,999999999999999,1]c", "more than 2^60"},
    {"aBc|", "inside a shared loop"},
    {"aB|C", "goes after the last"},
    {"ab||c", "one barrier"},
    {"abc@schedule(dynamic,1)", "lets time decide"},
    {"abc@schedule(guided)", "lets time decide"},
    {"abc@num_threads(4)", "is the team's"},
    {"abc@reduction(+:x)", "one order"},
    {"abc@nowait", "the only clause"},
    {"sfc{F:0}", "from 1 on"},
    {"sfc{F:2", "from 1 on"},
    {"sfc{L:2}", "order of sums"},
    {"sfc{Q:2}", "after sfc come"},
    {"sfc{F:2}b", "after sfc come"},
};

static void misuse_is_told(void **state)
{
    const sti_loop_spec spec[3] = {
        {.end = 8, .step = 2, .block = {4}, .blocks = 1, .reduces = true},
        {.end = 9, .step = 2, .block = {4}, .blocks = 1},
        {.end = 5, .step = 1}};
    (void)state;
    for (size_t i = 0; i < sizeof misuses / sizeof misuses[0]; i++) {
        sti_loop loop = {.loops = -1};
        if (sti_loop_bind(misuses[i].text, spec, 3, 4, &loop) != STINT_E_USAGE)
            fail_msg("'%s' was taken", misuses[i].text);
        if (!strstr(stint_last_error(), misuses[i].word))
            fail_msg("'%s' gave \"%s\", without \"%s\"", misuses[i].text,
                     stint_last_error(), misuses[i].word);
        assert_int_equal(loop.loops, -1);
    }
}

static void bad_loops_are_told(void **state)
{
    sti_loop_spec spec[3] = {
        {.end = 8, .step = 2}, {.end = 9, .step = 2}, {.end = 5, .step = 1}};
    char longest[STI_LOOP_TEXT_MAX + 1];
    sti_loop loop;
    (void)state;
    memset(longest, 'a', sizeof longest);
    longest[STI_LOOP_TEXT_MAX] = '\0';
    assert_int_equal(sti_loop_bind(longest, spec, 3, 1, &loop), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "at most 511"));
    assert_int_equal(sti_loop_bind("a", spec, 0, 1, &loop), STINT_E_USAGE);
    assert_int_equal(sti_loop_bind("a", spec, 11, 1, &loop), STINT_E_USAGE);
    assert_int_equal(sti_loop_bind("abc", spec, 3, 0, &loop), STINT_E_USAGE);
    assert_int_equal(sti_loop_bind("sfc", spec, 3, 1, &loop), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "two loops and at most one"));
    spec[2].step = 0;
    assert_int_equal(sti_loop_bind("abc", spec, 3, 1, &loop), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "step of c is 0"));
}

/* Beside the strings of the table, these are right. */
static void variants_are_taken(void **state)
{
    const sti_loop_spec spec[3] = {
        {.end = 8, .step = 2, .block = {4}, .blocks = 1, .reduces = true},
        {.end = 9, .step = 2, .block = {4}, .blocks = 1},
        {.end = 0, .step = 1}};
    static const char *const strings[] = {"abc",
                                          "bcaBCb",
                                          "ab|C|",
                                          "B{R:2}aC{C:2}",
                                          "abc@schedule(static)",
                                          "a[0,8,1]b[0,9,3,(6)]cb",
                                          "aB{L:4}c"};
    sti_loop loop;
    (void)state;
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        const bool twice = strcmp(strings[i], "bcaBCb") == 0;
        const stint_status status = sti_loop_bind(strings[i], spec, 3, 4, &loop);
        assert_int_equal(status, twice ? STINT_E_USAGE : STINT_OK);
    }
    assert_int_equal(sti_loop_grid_threads("B{R:3}aC{C:2}"), 6);
    assert_int_equal(sti_loop_grid_threads("BCa"), 1);
    assert_int_equal(sti_loop_grid_threads("sfc{F:4}"), 1);
    assert_int_equal(sti_loop_grid_threads("B{R:x"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misuse_is_told),
        cmocka_unit_test(bad_loops_are_told),
        cmocka_unit_test(variants_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
