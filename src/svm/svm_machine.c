#include "svm/svm_machine.h"

#include "base/fail.h"
#include "base/memory.h"
#include "solve/low_rank.h"
#include "svm/linear_product.h"

static bool is_linear(const sti_kernel_source *source)
{
    return source->function->kind == STI_GRAM_LINEAR;
}

static sti_kernel_product_size product_size(sti_svm_machine_size size)
{
    return (sti_kernel_product_size){.n = size.n,
                                     .columns = size.columns,
                                     .crossing = size.crossing,
                                     .threads = size.threads,
                                     .comm = size.comm,
                                     .device = size.device};
}

sti_svm_machine_parts sti_svm_machine_bytes(const sti_kernel_source *source,
                                            sti_svm_machine_size size)
{
    const size_t n = (size_t)size.n, columns = (size_t)size.columns;
    sti_svm_machine_parts parts = {
        .vectors = (2 * columns + 2) * n * sizeof(double) +
                   sti_krylov_bytes(size.n, size.columns, size.rank > 0)};
    if (is_linear(source))
        parts.product = sti_linear_product_bytes(source->rows, size.columns) +
                        sti_kernel_columns_bytes(source->rows, size.threads);
    else
        parts.product = sti_kernel_product_bytes(source, product_size(size));
    if (size.rank > 0)
        parts.preconditioner =
            sti_low_rank_bytes(size.n, size.rank, size.columns, size.threads);
    return parts;
}

static stint_status create_product(sti_svm_machine *m, const sti_kernel_source *source,
                                   const sti_kernel_store *store)
{
    stint_status st;
    if (!is_linear(source))
        return sti_kernel_product_create(source, store, product_size(m->size), &m->team,
                                         &m->product);
    st = sti_linear_product_create(source->rows, m->size.columns, &m->team, &m->linear);
    if (st == STINT_OK)
        st = sti_kernel_columns_create(source, m->size.threads, &m->columns);
    return st;
}

stint_status sti_svm_machine_init(sti_svm_machine *m, const sti_kernel_source *source,
                                  const sti_kernel_store *store,
                                  sti_svm_machine_size size)
{
    stint_status st;
    *m = (sti_svm_machine){.size = size,
                           .team = {size.threads},
                           .single = source->single && !is_linear(source)};
    STI_TRY(create_product(m, source, store));
    if (size.rank > 0)
        STI_TRY(sti_low_rank_create(size.n, size.rank, size.columns, size.threads,
                                    &m->low_rank));
    m->ridge = sti_alloc_array(size.n, sizeof(double), "svm.ridge");
    m->diagonal = sti_alloc_array(size.n, sizeof(double), "svm.diagonal");
    m->b = sti_alloc_array(size.n * size.columns, sizeof(double), "svm.sides");
    m->x = sti_alloc_array(size.n * size.columns, sizeof(double), "svm.solutions");
    st = m->ridge && m->diagonal && m->b && m->x ? STINT_OK : STINT_E_MEMORY;
out:
    if (st != STINT_OK)
        sti_svm_machine_fini(m);
    return st;
}

void sti_svm_machine_fini(sti_svm_machine *m)
{
    sti_kernel_product_destroy(m->product);
    sti_linear_product_destroy(m->linear);
    sti_kernel_columns_destroy(m->columns);
    sti_low_rank_destroy(m->low_rank);
    sti_free(m->ridge);
    sti_free(m->diagonal);
    sti_free(m->b);
    sti_free(m->x);
    *m = (sti_svm_machine){.size = {.n = 0}};
}

/* Rows, tiles between their ranges, K's diagonal. */
static stint_status select_rows(sti_svm_machine *m, const sti_kernel_ranges *ranges)
{
    if (m->product) {
        const stint_status st = sti_kernel_product_select(m->product, ranges, m->ridge);
        sti_kernel_product_diagonal(m->product, m->diagonal);
        return st;
    }
    sti_linear_product_select(m->linear, ranges->rows, m->ridge);
    sti_kernel_columns_select(m->columns, ranges->rows);
    sti_kernel_columns_diagonal(m->columns, m->diagonal);
    return STINT_OK;
}

static stint_status make_preconditioner(sti_svm_machine *m, int64_t n, int64_t rank)
{
    const sti_low_rank_desc desc = {
        .n = n,
        .rank = rank,
        .diagonal = m->diagonal,
        .ridge = m->ridge,
        .pivots = m->product ? sti_kernel_product_pivots : sti_kernel_columns_pivots,
        .columns = m->product ? sti_kernel_product_columns : sti_kernel_columns_get,
        .arg = m->product ? (void *)m->product : (void *)m->columns};
    return sti_low_rank_make(m->low_rank, &m->team, &desc);
}

stint_status sti_svm_machine_solve(sti_svm_machine *m, const sti_kernel_ranges *ranges,
                                   int64_t columns, const sti_svm_machine_goal *goal,
                                   sti_krylov_result *result_out)
{
    const int64_t n = ranges->rows[0].count + ranges->rows[1].count;
    const bool preconditioned = m->low_rank && goal->rank > 0;
    *result_out = (sti_krylov_result){0};
    stint_status st = select_rows(m, ranges);
    if (st == STINT_OK && preconditioned)
        st = make_preconditioner(m, n, goal->rank);
    if (st != STINT_OK)
        return st;
    const sti_krylov_desc desc = {
        .n = n,
        .columns = columns,
        .tolerance = goal->tolerance,
        .iterations = goal->iterations,
        .product = m->product ? sti_kernel_product_run : sti_linear_product_run,
        .product_arg = m->product ? (void *)m->product : (void *)m->linear,
        .exact = m->single ? sti_kernel_product_run_exact : NULL,
        .precondition = preconditioned ? sti_low_rank_apply : NULL,
        .precondition_arg = m->low_rank,
        .warm = goal->warm,
        .progress = goal->progress,
        .progress_user = goal->progress_user};
    return sti_krylov_solve(&m->team, &desc, m->b, m->x, result_out);
}
