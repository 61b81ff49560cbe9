/* Whole characters come out however the bytes are cut; broken ones become U+FFFD, as
 * Python's decoder has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

#define BAD "\xef\xbf\xbd"

/* bytes, cut in pieces of `step`; want: the text at the end. */
static void expect(const char *bytes, size_t n_bytes, const char *want)
{
    for (size_t step = 1; step <= n_bytes; step++) {
        sti_utf8_stream s = {0};
        sti_text out = {0};
        for (size_t at = 0; at < n_bytes; at += step)
            sti_utf8_stream_add(&s, bytes + at,
                                n_bytes - at < step ? n_bytes - at : step, &out);
        sti_utf8_stream_end(&s, &out);
        assert_string_equal(out.data, want);
        sti_text_fini(&out);
    }
}

static void whole_characters_come_out(void **state)
{
    (void)state;
    expect("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z", 11,
           "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z");
}

static void nothing_torn_goes_out(void **state)
{
    (void)state;
    sti_utf8_stream s = {0};
    sti_text out = {0};
    sti_utf8_stream_add(&s, "x\xf0\x9f\x98", 4, &out);
    assert_string_equal(out.data, "x");
    sti_utf8_stream_add(&s, "\x80", 1, &out);
    assert_string_equal(out.data, "x\xf0\x9f\x98\x80");
    sti_utf8_stream_end(&s, &out);
    assert_int_equal(out.length, 5);
    sti_text_fini(&out);
}

static void broken_bytes_are_replaced(void **state)
{
    (void)state;
    expect("\xff", 1, BAD);
    expect("a\x80z", 3, "a" BAD "z");
    expect("\xc3", 1, BAD);
    expect("\xc3z", 2, BAD "z");
    expect("\xe2\x82", 2, BAD);
    expect("\xe2\x82\xe2\x82\xac", 5, BAD "\xe2\x82\xac");
    expect("\xc0\xaf", 2, BAD BAD);                 /* overlong */
    expect("\xe0\x80\xaf", 3, BAD BAD BAD);         /* overlong */
    expect("\xed\xa0\x80", 3, BAD BAD BAD);         /* surrogate */
    expect("\xf4\x90\x80\x80", 4, BAD BAD BAD BAD); /* beyond the last */
    expect("\xf0\x9f\x98\xf0\x9f\x98\x80", 7, BAD "\xf0\x9f\x98\x80");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_characters_come_out),
        cmocka_unit_test(nothing_torn_goes_out),
        cmocka_unit_test(broken_bytes_are_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
