/* What is asked for: checked, planned, and the workspace that it takes. */
#include "kernel/topk/topk_request.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define WINNERS_IN_PARTS (INT64_C(3) << 30) /* with a part's own, 32-bit places */

stint_status sti_topk_nan_fail(int64_t row, int64_t index)
{
    return sti_fail(STINT_E_INPUT,
                    "top-k: NaN at row %" PRId64 ", index %" PRId64
                    "; NaN may be ranked first or last instead (the field nan; --nan)",
                    row, index);
}

/* The field of `value`, which has words from 0 to `last`. */
static stint_status no_word(const char *field, int value, int last)
{
    return sti_fail(STINT_E_USAGE,
                    "top-k: %s %d, but stint_topk_%s in stint/topk.h goes from 0 to %d",
                    field, value, field, last);
}

stint_status sti_topk_check_words(const stint_topk_desc *d)
{
    if (sti_topk_words_are_good(d))
        return STINT_OK;
    if (d->type < 0 || d->type >= STINT_TOPK_TYPES)
        return no_word("type", (int)d->type, STINT_TOPK_TYPES - 1);
    if (d->key < 0 || d->key > STINT_TOPK_ABS)
        return no_word("key", (int)d->key, STINT_TOPK_ABS);
    if (d->nan < 0 || d->nan > STINT_TOPK_NAN_LAST)
        return no_word("nan", (int)d->nan, STINT_TOPK_NAN_LAST);
    if (d->method < 0 || d->method >= STINT_TOPK_METHODS)
        return no_word("method", (int)d->method, STINT_TOPK_METHODS - 1);
    if (d->has_addend && d->type != STINT_TOPK_F32)
        return sti_fail(STINT_E_USAGE,
                        "top-k: an addend is only possible for f32 elements");
    if (d->threads < 0 || d->threads > STI_TOPK_THREADS_MAX)
        return sti_fail(STINT_E_USAGE, "top-k: %d threads, but must be from 0 to %d",
                        d->threads, STI_TOPK_THREADS_MAX);
    return sti_fail(STINT_E_USAGE,
                    "top-k: block exponent %d, but must be from 0 (chosen) to %d",
                    d->exponent, STI_TOPK_EXPONENT_MAX);
}

static stint_status negative(const char *field, int64_t value)
{
    return sti_fail(STINT_E_USAGE, "top-k: %s %" PRId64 ", but it may not be negative",
                    field, value);
}

stint_status sti_topk_check_sizes(const stint_topk_desc *d)
{
    if (d->k < 0)
        return negative("k", d->k);
    if (d->n < 0)
        return negative("n", d->n);
    if (d->rows < 0)
        return negative("rows", d->rows);
    if (d->part < 0 || d->part > STI_TOPK_PART_DEFAULT)
        return sti_fail(STINT_E_USAGE,
                        "top-k: part %" PRId64 ", but it holds from 0 (chosen) to 2^30 "
                        "values",
                        d->part);
    const int64_t rows = d->rows ? d->rows : 1, stride = d->stride ? d->stride : d->n;
    if (rows > 1 && stride < d->n)
        return sti_fail(
            STINT_E_USAGE,
            "top-k: rows of %" PRId64 " elements every %" PRId64
            " elements overlap; a stride of 0 puts them one after the other",
            d->n, d->stride);
    size_t row_bytes, bytes;
    if (!sti_mul_bytes(stride, 8, &row_bytes) || row_bytes > INT64_MAX ||
        !sti_mul_bytes(rows, row_bytes, &bytes) || bytes > INT64_MAX ||
        !sti_mul_bytes(sti_topk_winners_of(d), 64, &bytes) ||
        d->index_base > INT64_MAX - d->n)
        return sti_fail(STINT_E_USAGE,
                        "top-k: %" PRId64 " rows of %" PRId64
                        " elements from index %" PRId64
                        " on do not fit an address space",
                        rows, stride, d->index_base);
    return STINT_OK;
}

stint_status sti_topk_request_make(const stint_topk_desc *d, sti_topk_request *r)
{
    stint_status status = sti_topk_check_words(d);
    if (status == STINT_OK)
        status = sti_topk_check_sizes(d);
    if (status != STINT_OK)
        return status;
    if (d->n > (d->part ? d->part : STI_TOPK_PART_DEFAULT) &&
        sti_topk_winners_of(d) > WINNERS_IN_PARTS)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "top-k: %" PRId64
                        " winners of a row taken in parts; at most %" PRId64
                        " are possible",
                        sti_topk_winners_of(d), (int64_t)WINNERS_IN_PARTS);
    *r = (sti_topk_request){.desc = d,
                            .form = sti_topk_form_of(d),
                            .rows = d->rows ? d->rows : 1,
                            .stride = d->stride ? d->stride : d->n,
                            .n = d->n,
                            .k = sti_topk_winners_of(d),
                            .part = d->part ? d->part : STI_TOPK_PART_DEFAULT,
                            .short_row = sti_topk_is_short_row(d),
                            .team = {.threads = d->threads ? d->threads : 1}};
    r->list_form = r->form == STI_TOPK_SUM ? STI_TOPK_F32 : r->form;
    r->map = sti_topk_map_make(d, r->form);
    r->element_bytes = sti_topk_element_bytes(r->form);
    sti_topk_costs_builtin(&r->costs);
    if (d->costs)
        r->costs = sti_topk_costs_of(d->costs);
    /* Rows side by side where one row is too little work to share. */
    const int threads = r->team.threads;
    const bool side_by_side = r->rows > 1 && (r->n < 1 << 17 || r->rows >= 4 * threads);
    if (r->n <= r->part && r->k > 0 && r->k < r->n)
        r->plan =
            sti_topk_plan_make(r->form, r->n, r->k, d->method, d->exponent, &r->costs);
    r->slots = side_by_side ? (int)sti_topk_min(r->rows, threads) : 1;
    return STINT_OK;
}

/* ---- workspace ---- */

sti_topk_plan sti_topk_plan_for(const sti_topk_request *r, sti_topk_form form,
                                int64_t n, int64_t k, stint_topk_method method)
{
    return sti_topk_plan_make(form, n, k, method, r->desc->exponent, &r->costs);
}

static size_t selection_bytes(const sti_topk_request *r, sti_topk_form form, int64_t n,
                              int64_t k, stint_topk_method method)
{
    sti_topk_layout count = {0};
    if (k <= 0 || k >= n)
        return 0;
    const sti_topk_plan plan = sti_topk_plan_for(r, form, n, k, method);
    sti_topk_scratch_take(&count, &plan);
    return count.overflow ? SIZE_MAX / 2 : count.used_bytes;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The list so far and a part's winners: at most so many. */
static int64_t list_capacity(const sti_topk_request *r)
{
    return r->k + sti_topk_min(r->k, r->part);
}

/* Bytes of the largest selection that a row in parts needs. */
static size_t parts_bytes(const sti_topk_request *r)
{
    const int64_t last = r->n % r->part, k = r->k;
    const stint_topk_method method = r->desc->method;
    const size_t full =
        selection_bytes(r, r->form, r->part, sti_topk_min(k, r->part), method);
    const size_t rest =
        selection_bytes(r, r->form, last, sti_topk_min(k, last), method);
    /* The method whose needs grow with the length, whatever k. */
    const size_t list =
        selection_bytes(r, r->list_form, list_capacity(r), k, STINT_TOPK_RADIX);
    return larger(larger(full, rest), list);
}

static void take_parts(sti_topk_layout *layout, const sti_topk_request *r,
                       sti_topk_slot *m)
{
    const int64_t list = list_capacity(r);
    m->list_index = sti_topk_take(layout, list, sizeof *m->list_index);
    m->list = sti_topk_take(layout, list, r->element_bytes);
    m->layout.base = sti_topk_take(layout, (int64_t)parts_bytes(r), 1);
}

sti_topk_slot *sti_topk_take_slot(sti_topk_layout *layout, const sti_topk_request *r)
{
    if (r->short_row) {
        const size_t bytes = sti_topk_short_row_bytes(r->n, r->k, r->desc->sorted);
        sti_topk_take(layout, 1, bytes);
        return NULL;
    }
    const bool parts = r->n > r->part, sort = r->desc->sorted;
    sti_topk_slot counted, *slot = sti_topk_take(layout, 1, sizeof *slot);
    sti_topk_slot *m = slot ? slot : &counted;
    memset(m, 0, sizeof *m);
    m->packed = sti_topk_take(layout, parts || sort ? r->k : 0, sizeof *m->packed);
    m->other = sti_topk_take(layout, sort ? r->k : 0, sizeof *m->other);
    m->counts = sti_topk_take(layout, sort ? STI_TOPK_BINS : 0, sizeof *m->counts);
    if (parts)
        take_parts(layout, r, m);
    else if (r->k > 0 && r->k < r->n)
        m->scratch = sti_topk_scratch_take(layout, &r->plan);
    return slot;
}

bool sti_topk_request_bytes(const sti_topk_request *r, size_t *bytes_out)
{
    sti_topk_layout one = {0};
    sti_topk_take_slot(&one, r);
    return !one.overflow && sti_mul_bytes(r->slots, one.used_bytes, bytes_out) &&
           *bytes_out <= INT64_MAX && sti_add_bytes(*bytes_out, 64, bytes_out);
}
