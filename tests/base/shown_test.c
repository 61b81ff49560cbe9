/* What a terminal would obey never reaches it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/shown.h"

static void expect(const char *words, const char *keep, const char *want)
{
    char cut[64];
    sti_text out = {0};
    sti_text_add_shown(&out, words, keep);
    assert_string_equal(out.data ? out.data : "", want);
    sti_text_fini(&out);
    sti_shown_into(cut, sizeof cut, words, keep);
    assert_string_equal(cut, want);
}

static void commands_are_escaped(void **state)
{
    (void)state;
    expect("\x1b[31mred\x07", "", "\\x1b[31mred\\x07");
    expect("a\nb\tc\rd", "", "a\\nb\\tc\\rd");
    expect("a\nb\tc\rd", STI_SHOWN_LINES, "a\nb\tc\\rd");
    expect("\x7f\x01", "", "\\x7f\\x01");
    expect("\xc2\x9b"
           "2J",
           "", "\\xc2\\x9b2J"); /* C1 as a character, and as a bare byte */
    expect("\x9b"
           "2J\xff",
           "", "\\x9b2J\\xff");
    expect("\xe2\x80\xae"
           "cba\xe2\x81\xa6",
           "", "\\xe2\\x80\\xaecba\\xe2\\x81\\xa6");
    expect("\xe2\x80\xa8", "", "\\xe2\\x80\\xa8");
}

static void other_text_stays(void **state)
{
    (void)state;
    expect("", "", "");
    expect("cat \\ \"dog\"", "", "cat \\ \"dog\"");
    expect("\xc2\xa0\xc3\xa9 \xe2\x80\xa7 \xe2\x82\xac \xf0\x9f\x98\x80", "",
           "\xc2\xa0\xc3\xa9 \xe2\x80\xa7 \xe2\x82\xac \xf0\x9f\x98\x80");
}

static void what_does_not_fit_is_cut_whole(void **state)
{
    char small[6];
    (void)state;
    sti_shown_into(small, sizeof small, "ab\x1b[", "");
    assert_string_equal(small, "ab");
    sti_shown_into(small, sizeof small, "abcd\xc3\xa9", "");
    assert_string_equal(small, "abcd");
    sti_shown_into(small, sizeof small, "abc\xc3\xa9", "");
    assert_string_equal(small, "abc\xc3\xa9");
}

static void eight_names_stand_at_once(void **state)
{
    const char *first = sti_shown("\x1b");
    (void)state;
    for (int i = 0; i < 7; i++)
        sti_shown("other");
    assert_string_equal(first, "\\x1b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_are_escaped),
        cmocka_unit_test(other_text_stays),
        cmocka_unit_test(what_does_not_fit_is_cut_whole),
        cmocka_unit_test(eight_names_stand_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
