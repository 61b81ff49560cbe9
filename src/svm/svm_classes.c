/* Classes of a table. */
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "svm/svm_train.h"

static int64_t find_label(const double *label, int64_t count, double y)
{
    for (int64_t c = count; c-- > 0;)
        if (label[c] == y)
            return c;
    return -1;
}

/* As LIBSVM since 3.17: of -1 and +1 the latter comes first. */
static void put_plus_first(double *label, int64_t classes, int32_t *class_of,
                           int64_t rows)
{
    if (classes != 2 || label[0] != -1 || label[1] != 1)
        return;
    label[0] = 1;
    label[1] = -1;
    for (int64_t i = 0; i < rows; i++)
        class_of[i] = 1 - class_of[i];
}

stint_status sti_svm_classes_of(const sti_table *table, int32_t *class_of,
                                double *label_out, int64_t *classes_out)
{
    int64_t classes = 0;
    if (!table->y)
        return sti_fail(STINT_E_INPUT, "the rows have no labels; training needs them");
    for (int64_t i = 0; i < table->x.rows; i++) {
        int64_t c = find_label(label_out, classes, table->y[i]);
        if (c < 0 && classes == STI_SVM_CLASSES_MOST)
            return sti_fail(STINT_E_INPUT,
                            "more than %d different labels; for numbers as targets "
                            "there is -s ls_svr",
                            STI_SVM_CLASSES_MOST);
        if (c < 0)
            label_out[c = classes++] = table->y[i];
        class_of[i] = (int32_t)c;
    }
    if (classes < 2)
        return sti_fail(STINT_E_INPUT,
                        "all rows are of one class; there must be two or "
                        "more to tell apart");
    if (!table->names)
        put_plus_first(label_out, classes, class_of, table->x.rows);
    *classes_out = classes;
    return STINT_OK;
}

stint_status sti_svm_check_numbers(const sti_table *table)
{
    return table->y && !table->names
               ? STINT_OK
               : sti_fail(STINT_E_INPUT,
                          "regression needs a number as the label of every row");
}

stint_status sti_svm_count_classes(const sti_table *table, int64_t *classes_out,
                                   int64_t count_out[STI_SVM_CLASSES_MOST])
{
    double label[STI_SVM_CLASSES_MOST];
    int32_t *class_of = sti_alloc_array(table->x.rows, sizeof *class_of, "svm.classes");
    if (!class_of)
        return STINT_E_MEMORY;
    memset(count_out, 0, STI_SVM_CLASSES_MOST * sizeof *count_out);
    const stint_status st = sti_svm_classes_of(table, class_of, label, classes_out);
    for (int64_t i = 0; st == STINT_OK && i < table->x.rows; i++)
        count_out[class_of[i]]++;
    sti_free(class_of);
    return st;
}
