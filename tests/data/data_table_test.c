/* Tables from text: what is read, and what is refused by which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libsvm_rows), cmocka_unit_test(arff_rows),
        cmocka_unit_test(bad_libsvm), cmocka_unit_test(bad_arff)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
