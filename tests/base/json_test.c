#include "base/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static void write_sample(sti_json *j)
{
    sti_json_begin_object(j, NULL);
    sti_json_int(j, "whole", INT64_MIN);
    sti_json_float(j, "number", 0.1);
    sti_json_float(j, "nothing", (double)NAN);
    sti_json_float(j, "endless", (double)-INFINITY);
    sti_json_bool(j, "truth", true);
    sti_json_text(j, "words", "a \"b\" \\ \n\t\x01 \xC3\xA9");
    sti_json_text(j, "none", NULL);
    sti_json_begin_array(j, "list");
    sti_json_int(j, NULL, 1);
    sti_json_begin_object(j, NULL);
    sti_json_end_object(j);
    sti_json_begin_array(j, NULL);
    sti_json_end_array(j);
    sti_json_text(j, NULL, "x");
    sti_json_end_array(j);
    sti_json_end_object(j);
}

static void test_compact(void **state)
{
    (void)state;
    sti_text text = {0};
    write_sample(&(sti_json){.out = &text});
    assert_string_equal(
        text.data, "{\"whole\":-9223372036854775808,\"number\":0.1,\"nothing\":null,"
                   "\"endless\":null,\"truth\":true,"
                   "\"words\":\"a \\\"b\\\" \\\\ \\n\\t\\u0001 \xC3\xA9\","
                   "\"none\":null,\"list\":[1,{},[],\"x\"]}");
    sti_text_fini(&text);
}

static void test_pretty(void **state)
{
    (void)state;
    sti_text text = {0};
    sti_json j = {.out = &text, .pretty = true};
    sti_json_begin_object(&j, NULL);
    sti_json_int(&j, "a", 1);
    sti_json_begin_array(&j, "b");
    sti_json_int(&j, NULL, 2);
    sti_json_int(&j, NULL, 3);
    sti_json_end_array(&j);
    sti_json_begin_array(&j, "c");
    sti_json_end_array(&j);
    sti_json_end_object(&j);
    assert_string_equal(text.data, "{\n  \"a\": 1,\n  \"b\": [\n    2,\n    3\n  ],\n"
                                   "  \"c\": []\n}");
    sti_text_fini(&text);
}

static void test_reads_back(void **state)
{
    (void)state;
    sti_text text = {0};
    write_sample(&(sti_json){.out = &text, .pretty = true});
    json_t *root = json_loads(text.data, 0, NULL);
    assert_non_null(root);
    assert_true(json_real_value(json_object_get(root, "number")) == 0.1);
    assert_string_equal(json_string_value(json_object_get(root, "words")),
                        "a \"b\" \\ \n\t\x01 \xC3\xA9");
    assert_int_equal(json_array_size(json_object_get(root, "list")), 4);
    json_decref(root);
    sti_text_fini(&text);
}

/* File names may hold any bytes; what is written is UTF-8 all the same. */
static void test_invalid_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"a\xFFz", "\"a\xEF\xBF\xBDz\""},
        {"\xC3", "\"\xEF\xBF\xBD\""},
        {"\xC0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xED\xA0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xF0\x9F\x98\x80", "\"\xF0\x9F\x98\x80\""},
        {"\xF5\x80\x80\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sti_text text = {0};
        sti_json_text(&(sti_json){.out = &text}, NULL, cases[i].in);
        assert_string_equal(text.data, cases[i].out);
        sti_text_fini(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compact),
        cmocka_unit_test(test_pretty),
        cmocka_unit_test(test_reads_back),
        cmocka_unit_test(test_invalid_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
