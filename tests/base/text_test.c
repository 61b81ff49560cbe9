#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"

static void test_growth(void **state)
{
    (void)state;
    sti_text text = {0};
    for (int i = 0; i < 1000; i++) {
        sti_text_add(&text, "ab");
        sti_text_printf(&text, "%03d", i);
    }
    sti_text_add_bytes(&text, NULL, 0);
    assert_int_equal(text.length, 5000);
    assert_int_equal(strlen(text.data), 5000);
    assert_memory_equal(text.data + 4990, "ab998ab999", 10);
    assert_false(text.failed);
    sti_text_fini(&text);
    assert_null(text.data);
    sti_text_fini(&text);
}

static void test_failure_sticks(void **state)
{
    (void)state;
    sti_text text = {0};
    sti_text_add(&text, "kept");
    sti_alloc_fail_nth(1);
    sti_text_printf(&text, "%200d", 1);
    assert_true(text.failed);
    sti_text_add(&text, "more");
    sti_text_add_base64(&text, "abc", 3);
    assert_string_equal(text.data, "kept");
    sti_text_fini(&text);
    sti_alloc_fail_nth(1);
    sti_text_add(&text, "x");
    assert_true(text.failed);
    sti_text_fini(&text);
}

static void test_nearest(void **state)
{
    (void)state;
    static const char *const names[] = {
        "batch", "epochs", "learning_rate", "momentum", "seed", "lr", "out"};
    const int count = sizeof names / sizeof *names;
    assert_string_equal(sti_text_nearest("bacth", names, count), "batch");
    assert_string_equal(sti_text_nearest("epoch", names, count), "epochs");
    assert_string_equal(sti_text_nearest("learning-rate", names, count),
                        "learning_rate");
    assert_string_equal(sti_text_nearest("Momentun", names, count), "momentum");
    assert_string_equal(sti_text_nearest("sede", names, count), "seed");
    assert_null(sti_text_nearest("architecture", names, count));
    assert_null(sti_text_nearest("zz", names, count));
    assert_null(sti_text_nearest("", names, count));
    assert_null(sti_text_nearest("x", names, 0));
    char longest[200];
    memset(longest, 'a', sizeof longest);
    longest[199] = '\0';
    assert_null(sti_text_nearest(longest, names, count));
}

static void test_base64(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } cases[] = {{"", ""},
                 {"f", "Zg=="},
                 {"fo", "Zm8="},
                 {"foo", "Zm9v"},
                 {"foob", "Zm9vYg=="},
                 {"fooba", "Zm9vYmE="},
                 {"foobar", "Zm9vYmFy"},
                 {"\xff\xfe\xfd", "//79"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sti_text text = {0};
        sti_text_add(&text, ":");
        sti_text_add_base64(&text, cases[i].in, strlen(cases[i].in));
        assert_string_equal(text.data + 1, cases[i].out);
        sti_text_fini(&text);
    }
}

static void test_html(void **state)
{
    (void)state;
    sti_text text = {0};
    sti_text_add_html(&text, "a<b> & \"c\" 'd' \xC3\xA9");
    assert_string_equal(text.data,
                        "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39; \xC3\xA9");
    sti_text_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growth),  cmocka_unit_test(test_failure_sticks),
        cmocka_unit_test(test_nearest), cmocka_unit_test(test_base64),
        cmocka_unit_test(test_html),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
