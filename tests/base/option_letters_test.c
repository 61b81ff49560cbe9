/* Letters of the command line that other programs' manuals ask for: with a suffix, with
 * two values, and an h that is no help. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/option.h"

typedef struct settings {
    const char *weights, *bounds;
    int shrinking;
    bool quiet;
} settings;

#define AT(field) .offset = offsetof(settings, field), .flag = true

static const sti_option rows[] = {
    {.name = "weights",
     .letter = 'w',
     .type = STI_OPTION_LIST,
     .default_text = "",
     AT(weights),
     .suffixed = true,
     .help = "factors"},
    {.name = "bounds",
     .letter = 'y',
     .type = STI_OPTION_LIST,
     .default_text = "",
     AT(bounds),
     .words = 2,
     .help = "two numbers"},
    {.name = "shrinking",
     .letter = 'h',
     .type = STI_OPTION_CHOICE,
     .choices = "0|1",
     .default_text = "1",
     AT(shrinking),
     .help = "of rows"},
    {.name = "quiet",
     .letter = 'q',
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     AT(quiet),
     .help = "say less"},
};

typedef struct parsed {
    settings s;
    bool help;
    int operands;
    char operand[32];
    stint_status status;
} parsed;

static sti_arena *arena;

static int set_up(void **state)
{
    (void)state;
    arena = sti_arena_create("options");
    return arena ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sti_arena_destroy(arena);
    return 0;
}

/* The words of a line between blanks. */
static parsed parse(const char *line)
{
    parsed p = {.help = false};
    char text[200], *argv[16], **operands = NULL;
    int argc = 0;
    sti_option_set set = {.rows = rows,
                          .count = sizeof rows / sizeof *rows,
                          .target = &p.s,
                          .arena = arena};
    strcpy(text, line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    assert_int_equal(sti_options_default(&set), STINT_OK);
    p.status =
        sti_options_read_command(&set, argc, argv, &operands, &p.operands, &p.help);
    if (p.status == STINT_OK && p.operands == 1)
        strcpy(p.operand, operands[0]);
    return p;
}

static void suffixes_make_a_list(void **state)
{
    (void)state;
    parsed p = parse("-w1 2 -w-1 5 data");
    assert_string_equal(p.s.weights, "1=2,-1=5");
    assert_string_equal(p.operand, "data");
    p = parse("-w 1=2,-1=5 data");
    assert_string_equal(p.s.weights, "1=2,-1=5");
    p = parse("-w1=2 data");
    assert_string_equal(p.s.weights, "1=2");
    p = parse("--weights a=3 -wb 4");
    assert_string_equal(p.s.weights, "b=4"); /* the last word on it */
    p = parse("-w1");
    assert_int_equal(p.status, STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "needs a value"));
}

static void two_words(void **state)
{
    (void)state;
    parsed p = parse("-y -1 2.5 data");
    assert_string_equal(p.s.bounds, "-1,2.5");
    assert_string_equal(p.operand, "data");
    p = parse("--bounds 0 1 data");
    assert_string_equal(p.s.bounds, "0,1");
    p = parse("--bounds=0,1 data");
    assert_string_equal(p.s.bounds, "0,1");
    p = parse("-y 1");
    assert_int_equal(p.status, STINT_E_USAGE);
}

static void an_h_alone_is_help(void **state)
{
    (void)state;
    parsed p = parse("-h 0 data");
    assert_false(p.help);
    assert_int_equal(p.s.shrinking, 0);
    assert_string_equal(p.operand, "data");
    assert_false(parse("-h1 data").help);
    assert_false(parse("-qh0 data").help);
    assert_true(parse("-h").help);
    assert_true(parse("-h data").help);
    assert_true(parse("-h -q").help);
    assert_true(parse("--help").help);
    assert_int_equal(parse("-h 2 data").status, STINT_E_USAGE);
}

/* The list says so: -h stands beside its row, not beside --help. */
static void help_lists_it_once(void **state)
{
    sti_text text = {0};
    (void)state;
    sti_options_write_help(rows, sizeof rows / sizeof *rows, 80, &text);
    assert_non_null(strstr(text.data, "-h, --shrinking"));
    assert_null(strstr(text.data, "-h, --help"));
    assert_non_null(strstr(text.data, "as -h alone does"));
    sti_text_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suffixes_make_a_list), cmocka_unit_test(two_words),
        cmocka_unit_test(an_h_alone_is_help), cmocka_unit_test(help_lists_it_once)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
