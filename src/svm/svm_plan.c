/* Classes of a table, and what a training takes. */
#include <inttypes.h>
#include <string.h>

#include "base/control_group.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"
#include "solve/krylov.h"
#include "svm/kernel_product.h"
#include "svm/svm_rows.h"
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

/* ---- what it takes ---- */

const char *const sti_svm_libraries[] = {"ld-", "libc.", "libm.", NULL};

/* Rows, columns and tiles of the largest machine. */
static stint_status measure(const sti_svm_train_desc *d, sti_svm_plan *plan)
{
    const sti_csr *x = &d->table->x;
    double label[STI_SVM_CLASSES_MOST];
    int64_t count[STI_SVM_CLASSES_MOST] = {0};
    *plan = (sti_svm_plan){.points = x->rows,
                           .features = x->columns - d->table->first,
                           .nonzeros = x->start[x->rows],
                           .machines = 1,
                           .classes = 2,
                           .columns = 2,
                           .largest = x->rows,
                           .dense = sti_svm_rows_dense(x)};
    plan->tiles = sti_kernel_product_tiles(x->rows, 0);
    if (d->regression)
        return d->table->y && !d->table->names
                   ? STINT_OK
                   : sti_fail(STINT_E_INPUT,
                              "regression needs a number as the label of "
                              "every row");
    int32_t *class_of = sti_alloc_array(x->rows, sizeof *class_of, "svm.classes");
    if (!class_of)
        return STINT_E_MEMORY;
    const stint_status st =
        sti_svm_classes_of(d->table, class_of, label, &plan->classes);
    for (int64_t i = 0; st == STINT_OK && i < x->rows; i++)
        count[class_of[i]]++;
    sti_free(class_of);
    if (st != STINT_OK)
        return st;
    if (d->classes_by == STI_SVM_REST) {
        plan->columns = plan->classes + 1;
        return STINT_OK;
    }
    plan->machines = plan->classes * (plan->classes - 1) / 2;
    plan->largest = plan->tiles = 0;
    for (int64_t a = 0; a < plan->classes; a++)
        for (int64_t b = 0; b < a; b++) {
            const int64_t tiles = sti_kernel_product_tiles(count[a], count[b]);
            plan->tiles = tiles > plan->tiles ? tiles : plan->tiles;
            if (count[a] + count[b] > plan->largest)
                plan->largest = count[a] + count[b];
        }
    return STINT_OK;
}

static void add_parts(const sti_svm_train_desc *d, sti_svm_plan *plan, int64_t kept)
{
    const sti_gram_rows shape = {.columns = plan->features,
                                 .dense = plan->dense ? d->table->x.value
                                                      : NULL}; /* any: only whether */
    const size_t n = (size_t)plan->largest, columns = (size_t)plan->columns;
    sti_account *a = &plan->account;
    plan->kept = kept;
    *a = (sti_account){0};
    sti_account_add(a, "table", "rows as they were read", d->table->bytes);
    sti_account_add(a, "rows", plan->dense ? "dense" : "sparse",
                    sti_svm_rows_bytes(&d->table->x, plan->features, plan->dense) +
                        (size_t)plan->points * 24 +
                        (size_t)plan->features * sizeof(double));
    sti_account_add(
        a, "product", "a tile a thread, sums of a band",
        sti_kernel_product_bytes(&shape, plan->largest, plan->columns, d->threads));
    sti_account_add(a, "vectors", "right-hand sides, solutions, directions",
                    2 * n * columns * sizeof(double) +
                        sti_krylov_bytes(plan->largest, plan->columns));
    const size_t coefs = d->regression                   ? 1
                         : d->classes_by == STI_SVM_REST ? (size_t)plan->classes
                                                         : (size_t)plan->classes - 1;
    sti_account_add(a, "model", "alphas",
                    (size_t)plan->points * coefs * sizeof(double));
    sti_account_add(a, "tiles", "of the kernel matrix, kept",
                    (size_t)kept * STI_GRAM_TILE_BYTES);
    sti_account_raise(a, "reading", "the text of the file beside the table",
                      d->table->peak_bytes);
    const sti_account_process process = {.libraries = sti_svm_libraries,
                                         .apart_bytes = sti_alloc_now_bytes()};
    sti_account_add_process(a, &process, d->threads);
}

/* What the kernel matrix may take where nobody said. */
size_t sti_svm_standard_budget(void)
{
    sti_memory_limit limit;
    sti_memory_limit_read("", &limit);
    return limit.bytes / 2;
}

stint_status sti_svm_plan_training(const sti_svm_train_desc *d, sti_svm_plan *plan)
{
    const stint_status st = measure(d, plan);
    if (st != STINT_OK)
        return st;
    add_parts(d, plan, d->store == STI_STORE_ALL ? plan->tiles : 0);
    plan->smallest_bytes = plan->account.total_bytes;
    const size_t budget = d->budget_bytes ? d->budget_bytes : sti_svm_standard_budget();
    if (d->store == STI_STORE_AUTO && plan->smallest_bytes < budget) {
        /* One tile less for the reserve's share of all the others. */
        size_t left = budget - plan->smallest_bytes;
        if (d->cache_bytes > 0 && d->cache_bytes < left)
            left = d->cache_bytes;
        const size_t each = STI_GRAM_TILE_BYTES + STI_GRAM_TILE_BYTES / 256;
        int64_t kept = (int64_t)(left / each);
        kept = kept > plan->tiles ? plan->tiles : kept;
        add_parts(d, plan, kept);
    }
    return sti_account_check(&plan->account, d->budget_bytes, NULL);
}
