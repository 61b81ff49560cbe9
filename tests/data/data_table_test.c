/* Tables from text: what is read, and what is refused by which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/data_table.h"

static void refused(sti_table_format format, const char *text, const char *words)
{
    sti_table table;
    assert_int_equal(sti_table_parse(text, strlen(text), "t", format, &table),
                     STINT_E_INPUT);
    if (!strstr(stint_last_error(), words))
        fail_msg("'%s': %s; wanted %s", text, stint_last_error(), words);
}

static void libsvm_rows(void **state)
{
    static const char text[] = "# head\n+1 1:0.5 3:-2e0 # x\n-1\t2:0 4:7\n";
    static const int32_t columns[] = {1, 3, 4};
    static const double values[] = {0.5, -2, 7};
    sti_table table;
    (void)state;
    assert_int_equal(
        sti_table_parse(text, sizeof text - 1, "t", STI_TABLE_LIBSVM, &table),
        STINT_OK);
    assert_int_equal(table.x.rows, 2);
    assert_int_equal(table.x.columns, 5);
    assert_int_equal(table.x.start[1], 2);
    assert_int_equal(table.x.start[2], 3); /* the zero is left out */
    assert_memory_equal(table.x.column, columns, sizeof columns);
    assert_memory_equal(table.x.value, values, sizeof values);
    assert_true(table.y[0] == 1 && table.y[1] == -1 && !table.names);
    sti_table_fini(&table);
}

/* A text of some megabytes, with comments, zeros, an index 0 and a denormal; `word`
 * stands where a label might, `fault` in one line. */
static char *long_text(const char *word, const char *fault, size_t *bytes_out)
{
    enum { LINES = 60000, LONGEST = 64 };
    char *text = malloc((size_t)LINES * LONGEST), *at = text;
    for (int i = 0; i < LINES; i++) {
        if (i % 7 == 3)
            at += sprintf(at, "# a comment 1:2\n");
        at += sprintf(at, "%s%d %d:0.%d %d:0 %d:%d # x\n", i % 3 ? "" : word, i % 5,
                      i == 40000 ? 0 : i % 11 + 1, i, i % 11 + 13, i % 11 + 40, -i);
        if (i == 50000)
            at += sprintf(at, "2 3:4e-320%s\n", fault);
    }
    *bytes_out = (size_t)(at - text);
    return text;
}

static void read_by(const char *path, int threads, stint_status want, sti_table *table)
{
    assert_int_equal(
        sti_table_read(&(sti_table_desc){.path = path, .threads = threads}, table),
        want);
}

static void same_for_any_threads(void **state)
{
    static const char path[] = "data_table_test.libsvm";
    sti_table one, many;
    (void)state;
    for (int words = 0; words < 2; words++) {
        size_t bytes;
        char *text = long_text(words ? "w" : "", "", &bytes);
        assert_int_equal(sti_file_write(path, text, bytes), STINT_OK);
        read_by(path, 1, STINT_OK, &one);
        assert_true(one.x.rows == 60001 && one.first == 0);
        for (int threads = 2; threads < 5; threads++) {
            read_by(path, threads, STINT_OK, &many);
            assert_true(many.x.rows == one.x.rows && many.x.columns == one.x.columns);
            assert_true(many.first == one.first && many.bytes == one.bytes);
            assert_true(many.peak_bytes == one.peak_bytes);
            assert_memory_equal(one.x.start, many.x.start, 8 * 60002);
            assert_memory_equal(one.x.column, many.x.column,
                                4 * (size_t)one.x.start[60001]);
            assert_memory_equal(one.x.value, many.x.value,
                                8 * (size_t)one.x.start[60001]);
            assert_memory_equal(one.y, many.y, 8 * 60001);
            assert_true(many.name_count == one.name_count);
            sti_table_fini(&many);
        }
        sti_table_fini(&one);
        free(text);
    }
    remove(path);
}

static void same_faults_for_any_threads(void **state)
{
    static const char path[] = "data_table_test.libsvm";
    static const char *const faults[] = {" 3:1", " x:1", "\n", "\n1:1"};
    sti_table table;
    (void)state;
    for (int f = 0; f < 4; f++) {
        size_t bytes;
        char *text = long_text("", faults[f], &bytes), words[512];
        assert_int_equal(sti_file_write(path, text, bytes), STINT_OK);
        read_by(path, 1, STINT_E_INPUT, &table);
        (void)snprintf(words, sizeof words, "%s", stint_last_error());
        assert_non_null(strstr(words, "libsvm:5714")); /* lines and comments before */
        read_by(path, 3, STINT_E_INPUT, &table);
        assert_string_equal(words, stint_last_error());
        free(text);
    }
    remove(path);
}

static void arff_rows(void **state)
{
    static const char text[] =
        "% x\n@relation r\n@attribute 'a b' real\n@attribute class "
        "{low, 'hi there'}\n@attribute c numeric\n@data\n"
        "1, 'hi there' ,2\n{2 5}\n{0 4, 1 'hi there'}\n";
    static const int32_t columns[] = {1, 2, 2, 1};
    static const double values[] = {1, 2, 5, 4}, labels[] = {1, 0, 1};
    sti_table table;
    (void)state;
    assert_int_equal(
        sti_table_parse(text, sizeof text - 1, "t", STI_TABLE_ARFF, &table), STINT_OK);
    assert_int_equal(table.x.rows, 3);
    assert_int_equal(table.x.columns, 3);
    assert_memory_equal(table.x.column, columns, sizeof columns);
    assert_memory_equal(table.x.value, values, sizeof values);
    assert_memory_equal(table.y, labels, sizeof labels);
    assert_string_equal(table.names[1], "hi there");
    sti_table_fini(&table);
}

static void bad_libsvm(void **state)
{
    (void)state;
    refused(STI_TABLE_LIBSVM, "", "holds no rows");
    refused(STI_TABLE_LIBSVM, "1 1:1\n\n1 1:1\n", "t:2: an empty line");
    refused(STI_TABLE_LIBSVM, "1 2:1 1:1\n", "t:1: index 1 comes after 2");
    refused(STI_TABLE_LIBSVM, "1 1:1\n2:1\n", "t:2: no label, but line 1");
    refused(STI_TABLE_LIBSVM, "1 1:1x\n", "t:1: value '1x'");
    refused(STI_TABLE_LIBSVM, "1 1:\n", "t:1: value ''");
    refused(STI_TABLE_LIBSVM, "1 -1:1\n", "t:1: '-1:1'");
    refused(STI_TABLE_LIBSVM, "1 99999999999:1\n", "t:1:");
    refused(STI_TABLE_LIBSVM, "1 1:1e400\n", "t:1: value '1e400'");
    refused(STI_TABLE_LIBSVM, "-inf 1:1\n", "t:1: the label is -inf");
}

static void bad_arff(void **state)
{
    (void)state;
    refused(STI_TABLE_ARFF, "@attribute a real\n", "t:1: '@attribute a real'");
    refused(STI_TABLE_ARFF, "@relation r\n@attribute a date\n", "t:2: an attribute of");
    refused(STI_TABLE_ARFF, "@relation r\n@attribute a real\n", "before any @data");
    refused(STI_TABLE_ARFF, "@relation r\n@attribute a {x}\n@attribute b {y}\n",
            "t:3: attribute 'b' would be a second label");
    refused(STI_TABLE_ARFF, "@relation r\n@attribute a real\n@data\n1,2\n",
            "t:4: 2 values");
    refused(STI_TABLE_ARFF, "@relation r\n@attribute a real\n@data\n?\n",
            "missing ones are not read");
    refused(STI_TABLE_ARFF, "@relation r\n@attribute a real\n@data\n{1 2}\n",
            "t:4: '1'");
    refused(STI_TABLE_ARFF, "@relation r\n@attribute a real\n@data\n{0 2\n", "t:4:");
    refused(STI_TABLE_ARFF, "@relation r\n@attribute c {x}\n@data\ny\n",
            "label 'y' is none of the words of line 2");
    refused(STI_TABLE_ARFF, "@relation r\n@attribute c {0, 1}\n@data\n1\n2\n",
            "t:5: label '2' is none of the numbers of line 2");
    refused(STI_TABLE_ARFF, "@relation r\n@attribute c {1,0,1.0}\n@data\n1\n",
            "t:2: the label's number 1 is there twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(libsvm_rows),
                                       cmocka_unit_test(same_for_any_threads),
                                       cmocka_unit_test(same_faults_for_any_threads),
                                       cmocka_unit_test(arff_rows),
                                       cmocka_unit_test(bad_libsvm),
                                       cmocka_unit_test(bad_arff)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
