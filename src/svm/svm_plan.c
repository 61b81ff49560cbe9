/* What a training takes. */
#include <inttypes.h>
#include <string.h>

#include "base/control_group.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"
#include "solve/low_rank.h"
#include "svm/svm_machine.h"
#include "svm/svm_report.h"
#include "svm/svm_rows.h"
#include "svm/svm_train.h"

/* Rows of a machine whose tiles a thread is best left alone with. */
enum { SMALL_MACHINE = 4096 };

/* The mean of K's diagonal over that of D; what the preconditioner goes by. */
static stint_status measure_ratio(const sti_svm_train_desc *d, sti_svm_plan *plan)
{
    const sti_csr *x = &d->table->x;
    double *term = sti_alloc_array(x->rows, sizeof *term, "svm.terms");
    double sum = 0, value;
    if (!term)
        return STINT_E_MEMORY;
    const sti_gram_rows rows = {
        .rows = x->rows, .columns = x->columns, .sparse = *x, .term = term};
    sti_gram_terms(&d->function, &rows, term);
    for (int64_t i = 0; i < x->rows; i++) {
        sti_gram_diagonal(&d->function, &rows, i, 1, &value);
        sum += value;
    }
    sti_free(term);
    plan->ratio = sum / (double)x->rows * d->c;
    return STINT_OK;
}

/* What tiles a machine or all of them have. */
static void measure_tiles(const sti_svm_train_desc *d, sti_svm_plan *plan,
                          const int64_t *count)
{
    int64_t crossing = 0;
    plan->ranges = plan->machines > 1 ? plan->classes : 1;
    plan->stored = 0;
    for (int64_t a = 0; a < plan->ranges; a++) {
        const int64_t rows = plan->ranges > 1 ? count[a] : plan->points;
        sti_band_range own = {0, sti_band_count(rows)};
        if (d->comm && plan->ranges == 1)
            own = sti_kernel_product_bands(rows, sti_comm_size(d->comm),
                                           sti_comm_rank(d->comm));
        plan->first_band = own.first;
        plan->stored += sti_triangle_values(rows, own.end, 0) -
                        sti_triangle_values(rows, own.first, 0);
        for (int64_t b = 0; b < a; b++) {
            const int64_t values =
                sti_rectangle_values(count[a], count[b], sti_band_count(count[a]), 0);
            crossing = values > crossing ? values : crossing;
        }
    }
    plan->crossing = crossing;
    if (d->function.kind == STI_GRAM_LINEAR)
        plan->stored = plan->crossing = 0;
}

static void measure_pairs(sti_svm_plan *plan, const int64_t *count)
{
    plan->machines = plan->classes * (plan->classes - 1) / 2;
    plan->largest = 0;
    for (int64_t a = 0; a < plan->classes; a++)
        for (int64_t b = 0; b < a; b++)
            if (count[a] + count[b] > plan->largest)
                plan->largest = count[a] + count[b];
}

/* Rows, columns and values of the largest machine. */
static stint_status measure(const sti_svm_train_desc *d, sti_svm_plan *plan)
{
    const sti_csr *x = &d->table->x;
    int64_t count[STI_SVM_CLASSES_MOST] = {0};
    *plan = (sti_svm_plan){.points = x->rows,
                           .features = x->columns - d->table->first,
                           .nonzeros = x->start[x->rows],
                           .machines = 1,
                           .classes = 2,
                           .columns = 2,
                           .largest = x->rows,
                           .dense = d->places.shared
                                        ? sti_svm_shared_dense(d->places.shared)
                                        : sti_svm_rows_dense(x)};
    stint_status st = sti_svm_check_rows(&d->function, d->table, NULL);
    if (st == STINT_OK && d->device && !plan->dense)
        st = sti_fail(STINT_E_UNSUPPORTED,
                      "--device cuda: fewer than one entry in eight is there, so rows "
                      "stay sparse, and tiles of those are made by the CPU alone");
    if (st == STINT_OK)
        st = sti_svm_rows_columns(&d->function, x, plan->features, plan->dense,
                                  &plan->spread);
    if (st != STINT_OK || (st = measure_ratio(d, plan)) != STINT_OK)
        return st;
    if (d->regression) {
        measure_tiles(d, plan, count);
        return sti_svm_check_numbers(d->table);
    }
    if ((st = sti_svm_count_classes(d->table, &plan->classes, count)) != STINT_OK)
        return st;
    if (d->classes_by == STI_SVM_REST)
        plan->columns = plan->classes + 1;
    else
        measure_pairs(plan, count);
    measure_tiles(d, plan, count);
    return STINT_OK;
}

int64_t sti_svm_plan_rank(const sti_svm_train_desc *d, const sti_svm_plan *plan,
                          int64_t n)
{
    const int64_t rank = d->rank < 0 ? sti_low_rank_choose(n, plan->ratio) : d->rank;
    return rank < n ? rank : n;
}

/* ---- memory ---- */

/* How much of the kernel matrix is kept, and by how many machines at a time. */
typedef struct keeping {
    int64_t workers, stored, crossing;
} keeping;

static void add_parts(const sti_svm_train_desc *d, sti_svm_plan *plan, keeping keep)
{
    const sti_gram_rows shape = {.rows = d->table->x.rows,
                                 .columns = plan->spread,
                                 .dense = plan->dense ? d->table->x.value
                                                      : NULL, /* any: only whether */
                                 .sparse = d->table->x};
    const sti_kernel_source source = {&shape, &d->function, d->single};
    const size_t workers = (size_t)keep.workers, rows = (size_t)plan->points;
    plan->workers = keep.workers;
    plan->threads = keep.workers > 1 ? 1 : d->threads;
    const sti_svm_machine_parts m = sti_svm_machine_bytes(
        &source, (sti_svm_machine_size){plan->largest, plan->columns, plan->rank,
                                        keep.crossing, plan->threads, NULL, d->device});
    sti_account *a = &plan->account;
    *a = (sti_account){0};
    sti_account_add(a, "table", "rows as they were read", d->table->bytes);
    sti_account_add(a, "rows", plan->dense ? "dense" : "sparse",
                    sti_svm_rows_bytes(&d->table->x, plan->features, plan->dense) +
                        rows * (d->point_weight ? 32 : 24) +
                        (d->places.shared ? rows * 16 : 0) +
                        (plan->dense ? (size_t)plan->features * sizeof(double) : 0));
    sti_account_add(a, "product",
                    "a tile a thread, sums of bands, kept tiles of a pair",
                    workers * m.product);
    sti_account_add(a, "vectors", "right-hand sides, solutions, directions",
                    workers * m.vectors);
    sti_account_add(a, "factor", "of low rank, the preconditioner",
                    workers * m.preconditioner);
    const size_t coefs = d->regression                   ? 1
                         : d->classes_by == STI_SVM_REST ? (size_t)plan->classes
                                                         : (size_t)plan->classes - 1;
    sti_account_add(a, "model", "alphas", rows * coefs * sizeof(double));
    sti_account_add(a, "tiles", "of the kernel matrix, kept",
                    (size_t)keep.stored * sti_kernel_source_value_bytes(&source));
    if (d->report)
        sti_account_add(
            a, "page", "predictions of the training rows",
            sti_svm_report_bytes(&d->table->x, plan->features,
                                 plan->columns > 2 ? plan->columns : plan->machines,
                                 d->threads));
    if (d->shared_bytes > 0)
        sti_account_add(a, "shared", "tiles that all folds read", d->shared_bytes);
    if (d->beside_bytes > 0)
        sti_account_add(a, "folds", "rows of them, their order and answers",
                        d->beside_bytes);
    sti_account_raise(a, "reading", "the text of the file beside the table",
                      d->table->peak_bytes);
    sti_account_add_measured(a, plan->process.bytes, d->threads);
}

size_t sti_svm_account_taken(const sti_account *a)
{
    return a->total_bytes - sti_account_bytes(a, "reading");
}

sti_svm_process sti_svm_process_look(void)
{
    const sti_account_process process = {.libraries = sti_svm_libraries,
                                         .apart_bytes = sti_alloc_now_bytes()};
    sti_memory_limit limit;
    sti_memory_limit_read("", &limit);
    return (sti_svm_process){sti_account_process_bytes(&process), limit.bytes / 2};
}

sti_svm_process sti_svm_process_of(const sti_svm_process *known)
{
    return known->bytes > 0 ? *known : sti_svm_process_look();
}

/* Values that what a budget leaves has room for, with the reserve's share of them. */
static int64_t values_in(const sti_svm_train_desc *d, size_t budget, size_t taken)
{
    size_t left = budget > taken ? budget - taken : 0;
    if (d->cache_bytes > 0 && d->cache_bytes < left)
        left = d->cache_bytes;
    return (int64_t)(left / 257 * 256 / (d->single ? sizeof(float) : sizeof(double)));
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A budget, or less of it where -m leaves so much beside what is needed anyway. */
static size_t budget_of_tiles(const sti_svm_train_desc *d, sti_svm_plan *plan,
                              size_t budget)
{
    const keeping none = {1, 0, 0};
    add_parts(d, plan, none);
    const size_t most = sti_svm_account_taken(&plan->account) + d->cache_bytes;
    return d->cache_bytes > 0 && budget > most ? most : budget;
}

/* All machines at once that have a thread, where they are small and a budget holds
 * them; else one after another, with as many tiles as the budget holds. */
static keeping choose_keeping(const sti_svm_train_desc *d, sti_svm_plan *plan,
                              size_t budget)
{
    const keeping none = {1, 0, 0};
    keeping keep = {lesser(d->threads, plan->machines), 0, plan->crossing};
    if (plan->largest > SMALL_MACHINE)
        keep.workers = 1;
    if (d->store == STI_STORE_NONE || d->device)
        return none;
    if (d->store == STI_STORE_ALL) {
        keep.stored = plan->stored;
        return keep;
    }
    if (keep.workers > 1) {
        keep.stored = 0;
        add_parts(d, plan, keep);
        const size_t taken = sti_svm_account_taken(&plan->account);
        budget = budget_of_tiles(d, plan, budget);
        if (taken <= budget) {
            keep.stored = lesser(plan->stored, values_in(d, budget, taken));
            return keep;
        }
    }
    add_parts(d, plan, none);
    const int64_t room = values_in(d, budget, sti_svm_account_taken(&plan->account));
    const int64_t stored = lesser(plan->stored, room);
    return (keeping){1, stored, lesser(plan->crossing, room - stored)};
}

stint_status sti_svm_plan_training(const sti_svm_train_desc *d, sti_svm_plan *plan)
{
    const stint_status st = measure(d, plan);
    if (st != STINT_OK)
        return st;
    plan->rank = sti_svm_plan_rank(d, plan, plan->largest);
    plan->process = sti_svm_process_of(&d->process);
    const keeping keep = choose_keeping(
        d, plan, d->budget_bytes ? d->budget_bytes : plan->process.budget_bytes);
    add_parts(d, plan, d->store == STI_STORE_ALL ? keep : (keeping){1, 0, 0});
    plan->smallest_bytes = plan->account.total_bytes;
    plan->taken_bytes = sti_svm_account_taken(&plan->account);
    add_parts(d, plan, keep);
    plan->values = plan->stored + keep.workers * plan->crossing;
    plan->kept = keep.stored + keep.workers * keep.crossing;
    plan->stored = keep.stored;
    plan->crossing = keep.crossing;
    return sti_account_check(&plan->account, d->budget_bytes, NULL);
}
