/* The public calls: what is asked for is checked, rows go to threads, rows too long for
 * 32-bit positions (or for the workspace wanted) are taken in parts.
 *
 * A part's winners are appended to those so far, in index order; the values of this
 * list of at most 2k are then selected from like any other row, for an element's place
 * in it stands for its index. A single short row goes straight to its loops. */
#include "stint/topk.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/memory.h"
#include "kernel/topk/topk_wide.h"

static stint_status workspace_fail(const sti_topk_request *r)
{
    return sti_fail(STINT_E_USAGE,
                    "top-k: the workspace for %" PRId64 " of %" PRId64
                    " elements does not fit an address space",
                    r->k, r->n);
}

stint_status stint_topk_workspace_bytes(const stint_topk_desc *desc, size_t *bytes_out)
{
    sti_topk_request r;
    if (sti_topk_is_wide(desc->type))
        return sti_topk_wide_bytes(desc, bytes_out);
    stint_status status = sti_topk_request_make(desc, &r);
    if (status != STINT_OK)
        return status;
    size_t bytes;
    if (!sti_topk_request_bytes(&r, &bytes))
        return workspace_fail(&r);
    *bytes_out = bytes;
    return STINT_OK;
}

/* ---- one row ---- */

static void select_all(const sti_topk_view *view, const sti_topk_sink *sink)
{
    const sti_topk_ops *ops = sti_topk_ops_now(view->form);
    int64_t none = 0;
    if (sink->packed)
        ops->collect(view, 0, view->n, 0, UINT32_MAX, sink->packed, &none);
    else
        ops->emit(view, 0, view->n, 0, sink->base, sink->index, sink->values);
}

static void select_planned(const sti_topk_request *r, const sti_topk_view *view,
                           const sti_topk_plan *plan, sti_topk_scratch *scratch,
                           const sti_topk_sink *sink)
{
    const sti_topk_job job = {.team = &r->team,
                              .plan = plan,
                              .ops = sti_topk_ops_now(view->form),
                              .view = view,
                              .scratch = scratch,
                              .sink = sink};
    sti_topk_row(&job);
}

/* Select from a part or a list. */
static void select_view(const sti_topk_request *r, const sti_topk_view *view, int64_t k,
                        stint_topk_method method, const sti_topk_sink *sink,
                        sti_topk_layout scratch)
{
    if (k == view->n) {
        select_all(view, sink);
        return;
    }
    const sti_topk_plan plan = sti_topk_plan_for(r, view->form, view->n, k, method);
    select_planned(r, view, &plan, sti_topk_scratch_take(&scratch, &plan), sink);
}

static sti_topk_view view_of(const sti_topk_request *r, const void *x,
                             const float *addend, int64_t row, int64_t begin, int64_t n)
{
    const size_t skip = (size_t)(row * r->stride + begin);
    return (sti_topk_view){
        .form = r->form,
        .map = r->map,
        .x = (const unsigned char *)x + skip * r->element_bytes,
        .addend = addend ? (const unsigned char *)addend + skip * sizeof *addend : NULL,
        .n = n};
}

/* m->packed, sorted, to the sink. */
static void give_sorted(const sti_topk_request *r, const sti_topk_view *view,
                        const sti_topk_slot *m, const sti_topk_sink *sink)
{
    const uint64_t *best = sti_topk_sort(m->packed, m->other, r->k, m->counts);
    sti_topk_decode(&r->team, view, best, r->k, sink);
}

static void select_row(const sti_topk_request *r, const sti_topk_view *view,
                       const sti_topk_slot *m, const sti_topk_sink *sink)
{
    const sti_topk_sink packed = {.packed = m->packed};
    const sti_topk_sink *to = r->desc->sorted ? &packed : sink;
    if (r->k == r->n)
        select_all(view, to);
    else
        select_planned(r, view, &r->plan, m->scratch, to);
    if (r->desc->sorted)
        give_sorted(r, view, m, sink);
}

/* The k best of the first `count` of the list; their number. */
static int64_t shrink_list(const sti_topk_request *r, const sti_topk_slot *m,
                           int64_t count)
{
    const sti_topk_view view = {
        .form = r->list_form, .map = r->map, .x = m->list, .n = count};
    const sti_topk_sink places = {.packed = m->packed};
    if (count <= r->k)
        return count;
    select_view(r, &view, r->k, STINT_TOPK_RADIX, &places, m->layout);
    const size_t bytes = r->element_bytes;
    for (int64_t i = 0; i < r->k; i++) {
        const int64_t from = sti_topk_packed_index(m->packed[i]);
        m->list_index[i] = m->list_index[from];
        memmove(m->list + (size_t)i * bytes, m->list + (size_t)from * bytes, bytes);
    }
    return r->k;
}

static void give_list(const sti_topk_request *r, const sti_topk_slot *m,
                      const sti_topk_sink *sink)
{
    const size_t bytes = r->element_bytes;
    if (!r->desc->sorted) {
        memcpy(sink->index, m->list_index, (size_t)r->k * sizeof *sink->index);
        if (sink->values)
            memcpy(sink->values, m->list, (size_t)r->k * bytes);
        return;
    }
    const sti_topk_view view = {
        .form = r->list_form, .map = r->map, .x = m->list, .n = r->k};
    const sti_topk_sink packed = {.packed = m->packed};
    const sti_topk_sink places = {.index = sink->index, .values = sink->values};
    select_all(&view, &packed);
    give_sorted(r, &view, m, &places);
    for (int64_t i = 0; i < r->k; i++)
        sink->index[i] = m->list_index[sink->index[i]];
}

static void select_parts(const sti_topk_request *r, const void *x, const float *addend,
                         int64_t row, const sti_topk_slot *m, const sti_topk_sink *sink)
{
    int64_t held = 0;
    for (int64_t at = 0; at < r->n; at += r->part) {
        const int64_t n = sti_topk_min(r->part, r->n - at);
        const int64_t k = sti_topk_min(r->k, n);
        const sti_topk_view view = view_of(r, x, addend, row, at, n);
        const sti_topk_sink more = {.index = m->list_index + held,
                                    .values = m->list + (size_t)held * r->element_bytes,
                                    .base = sink->base + at};
        select_view(r, &view, k, r->desc->method, &more, m->layout);
        held = shrink_list(r, m, held + k);
    }
    give_list(r, m, sink);
}

typedef struct rows_work {
    const sti_topk_request *r;
    const void *x;
    const float *addend;
    int64_t *index;
    unsigned char *values;
    unsigned char *memory;
    size_t slot_bytes;
    atomic_llong bad_row; /* lowest row with a NaN that is an error */
} rows_work;

/* Is there a NaN among these floats, whatever its sign? */
static bool any_nan(const unsigned char *values, int64_t count, sti_topk_form form)
{
    int32_t most = 0;
    if (form == STI_TOPK_F32) {
        for (int64_t i = 0; i < count; i++) {
            int32_t bits;
            memcpy(&bits, values + 4 * i, sizeof bits);
            bits &= 0x7FFFFFFF;
            most = bits > most ? bits : most;
        }
        return most > 0x7F800000;
    }
    for (int64_t i = 0; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, values + 2 * i, sizeof bits);
        bits &= 0x7FFF;
        most = bits > most ? bits : most;
    }
    return most > (form == STI_TOPK_F16 ? 0x7C00 : 0x7F80);
}

/* Lowest index of a winner that is NaN, or -1: NaN ranks first, so the first NaN of the
 * row is among the winners. */
static int64_t find_nan(const rows_work *w, int64_t row)
{
    const sti_topk_request *r = w->r;
    const int64_t *index = w->index + row * r->k;
    const size_t bytes = r->element_bytes;
    sti_topk_view from = view_of(r, w->x, w->addend, row, 0, r->n);
    if (w->values)
        from = (sti_topk_view){.form = r->list_form,
                               .map = r->map,
                               .x = w->values + (size_t)(row * r->k) * bytes};
    int64_t first = -1;
    if (w->values && !any_nan(from.x, r->k, from.form))
        return -1;
    for (int64_t i = 0; i < r->k; i++) {
        const int64_t in_row = index[i] - r->desc->index_base;
        if (sti_topk_key_at(&from, w->values ? i : in_row) == r->map.top &&
            (first < 0 || in_row < first))
            first = in_row;
    }
    return first;
}

/* Index of the first NaN of a row that has been run. */
static int64_t named_nan(const rows_work *w, int64_t row)
{
    const sti_topk_request *r = w->r;
    return r->short_row ? w->index[row * r->k] : find_nan(w, row) + r->desc->index_base;
}

static bool refuses_nan(const stint_topk_desc *d, sti_topk_form form)
{
    return d->nan == STINT_TOPK_NAN_ERROR && sti_topk_has_nan(form);
}

/* False where there is a NaN that is refused. */
static bool run_row(const rows_work *w, int64_t row, unsigned char *memory)
{
    const sti_topk_request *r = w->r;
    const sti_topk_slot *m = (const void *)memory;
    const sti_topk_sink sink = {.index = w->index + row * r->k,
                                .values = w->values ? w->values + (size_t)(row * r->k) *
                                                                      r->element_bytes
                                                    : NULL,
                                .base = r->desc->index_base};
    const sti_topk_view view = view_of(r, w->x, w->addend, row, 0, r->n);
    const bool refuse = refuses_nan(r->desc, r->form);
    if (r->short_row) {
        sti_topk_short_row b = {.n = r->n,
                                .k = r->k,
                                .base = sink.base,
                                .index = sink.index,
                                .sorted = r->desc->sorted,
                                .refuse_nan = refuse,
                                .memory = memory,
                                .given = sink.values};
        return sti_topk_short_row_select(&view, &b);
    }
    if (r->n > r->part)
        select_parts(r, w->x, w->addend, row, m, &sink);
    else
        select_row(r, &view, m, &sink);
    return !refuse || find_nan(w, row) < 0;
}

static void row_piece(void *arg, int64_t row, int worker)
{
    rows_work *w = arg;
    if (run_row(w, row, w->memory + (size_t)worker * w->slot_bytes))
        return;
    long long seen = atomic_load(&w->bad_row);
    while (row < seen && !atomic_compare_exchange_weak(&w->bad_row, &seen, row))
        continue;
}

static stint_status check_pointers(const sti_topk_request *r, const void *x,
                                   const float *addend, const int64_t *index_out,
                                   const void *workspace, size_t given_bytes,
                                   size_t needed_bytes)
{
    if (!x || !index_out || (r->desc->has_addend && !addend))
        return sti_fail(STINT_E_USAGE,
                        "top-k: %s is NULL, but there are %" PRId64 " elements a row",
                        !x           ? "x"
                        : !index_out ? "index_out"
                                     : "addend",
                        r->n);
    if (!workspace || given_bytes < needed_bytes)
        return sti_fail(STINT_E_USAGE,
                        "top-k: workspace of %zu bytes, but %zu are needed; "
                        "stint_topk_workspace_bytes tells",
                        workspace ? given_bytes : (size_t)0, needed_bytes);
    return STINT_OK;
}

static void run_rows(rows_work *w)
{
    const sti_topk_request *r = w->r;
    for (int slot = 0; slot < r->slots; slot++) {
        sti_topk_layout layout = {.base = w->memory + (size_t)slot * w->slot_bytes};
        sti_topk_take_slot(&layout, r);
    }
    if (r->slots > 1) {
        const sti_team team = {.threads = r->slots};
        sti_team_run(&team, r->rows, row_piece, w);
        return;
    }
    const unsigned mode = sti_float_mode_enter();
    for (int64_t row = 0; row < r->rows; row++)
        row_piece(w, row, 0);
    sti_float_mode_leave(mode);
}

static unsigned char *align_memory(void *workspace)
{
    unsigned char *memory = workspace;
    return memory + (64 - (uintptr_t)memory % 64) % 64;
}

/* One short row of which nothing has to be refused but a NaN. False: not that, and
 * nothing is done. */
static bool run_short_row(const stint_topk_desc *d, const void *x, const float *addend,
                          int64_t *index, void *values, void *workspace,
                          size_t given_bytes, stint_status *status_out)
{
    const int64_t k = sti_topk_winners_of(d);
    if (!sti_topk_is_short_row(d) || d->rows < 0 || d->rows > 1 ||
        !sti_topk_words_are_good(d) || d->part > STI_TOPK_PART_DEFAULT ||
        d->index_base > INT64_MAX - d->n || !x || !index ||
        (d->has_addend && !addend) || !workspace ||
        given_bytes < 64 + sti_topk_short_row_bytes(d->n, k, d->sorted))
        return false;
    sti_topk_view view;
    sti_topk_short_row b;
    view.form = sti_topk_form_of(d);
    view.map = sti_topk_map_make(d, view.form);
    view.x = x;
    view.addend = (const unsigned char *)addend;
    view.n = d->n;
    b.n = d->n;
    b.k = k;
    b.base = d->index_base;
    b.index = index;
    b.sorted = d->sorted;
    b.refuse_nan = refuses_nan(d, view.form);
    b.memory = align_memory(workspace);
    b.given = values;
    const unsigned mode = d->has_addend ? sti_float_mode_enter() : 0;
    const bool good = sti_topk_short_row_select(&view, &b);
    if (d->has_addend)
        sti_float_mode_leave(mode);
    *status_out = good ? STINT_OK : sti_topk_nan_fail(0, index[0]);
    return true;
}

static stint_status run_any(const stint_topk_desc *desc, const void *x,
                            const float *addend, int64_t *index_out, void *values_out,
                            void *workspace, size_t workspace_size)
{
    sti_topk_request r;
    size_t bytes;
    stint_status status;
    if (run_short_row(desc, x, addend, index_out, values_out, workspace, workspace_size,
                      &status))
        return status;
    status = sti_topk_request_make(desc, &r);
    if (status != STINT_OK)
        return status;
    if (r.k == 0)
        return STINT_OK;
    if (!sti_topk_request_bytes(&r, &bytes))
        return workspace_fail(&r);
    status = check_pointers(&r, x, addend, index_out, workspace, workspace_size, bytes);
    if (status != STINT_OK)
        return status;
    rows_work w = {.r = &r,
                   .x = x,
                   .addend = desc->has_addend ? addend : NULL,
                   .index = index_out,
                   .values = values_out,
                   .memory = align_memory(workspace),
                   .slot_bytes = (bytes - 64) / (size_t)r.slots};
    atomic_init(&w.bad_row, INT64_MAX);
    run_rows(&w);
    const int64_t bad = atomic_load(&w.bad_row);
    if (bad == INT64_MAX)
        return STINT_OK;
    return sti_topk_nan_fail(bad, named_nan(&w, bad));
}

/* A few floats with nothing out of the ordinary: a call is then a few dozen cycles,
 * more than most of what is not asked here would take. False: not that, and nothing is
 * done. */
static bool run_straight(const stint_topk_desc *d, const void *x, int64_t *index,
                         void *values, const void *workspace, size_t given_bytes)
{
#if defined(__x86_64__)
    /* What is zero in most calls is looked at together. */
    const int64_t unusual = (int64_t)d->type | d->rows >> 1 | d->threads >> 10 |
                            (int64_t)d->method | d->exponent | d->part |
                            d->zeros_equal | d->sorted | d->has_addend;
    if (unusual != 0 || (unsigned)d->key > STINT_TOPK_ABS ||
        (unsigned)d->nan > STINT_TOPK_NAN_LAST || d->k < 1 || d->k > d->n ||
        d->n > (d->k > STI_TOPK_FEW ? STI_TOPK_TINY : STI_TOPK_STRAIGHT) ||
        d->index_base > INT64_MAX - STI_TOPK_STRAIGHT || !x || !index || !workspace ||
        given_bytes < 64 + sti_topk_short_row_bytes(d->n, d->k, false))
        return false;
    return sti_isa_now() == STI_ISA_AVX512 &&
           sti_topk_straight_avx512(d, x, index, values);
#else
    return false;
#endif
}

stint_status stint_topk(const stint_topk_desc *desc, const void *x, const float *addend,
                        int64_t *index_out, void *values_out, void *workspace,
                        size_t workspace_size)
{
    if (run_straight(desc, x, index_out, values_out, workspace, workspace_size))
        return STINT_OK;
    if (sti_topk_is_wide(desc->type))
        return sti_topk_wide(desc, x, index_out, values_out, workspace, workspace_size);
    return run_any(desc, x, addend, index_out, values_out, workspace, workspace_size);
}

stint_status stint_topk_explain(const stint_topk_desc *desc,
                                stint_topk_method *method_out, int *exponent_out,
                                double *seconds_out)
{
    sti_topk_request r;
    if (sti_topk_is_wide(desc->type))
        return sti_topk_wide_explain(desc, method_out, exponent_out, seconds_out);
    stint_status status = sti_topk_request_make(desc, &r);
    if (status != STINT_OK)
        return status;
    const int64_t n = sti_topk_min(r.n, r.part), k = sti_topk_min(r.k, n);
    *method_out = STINT_TOPK_PACK;
    *exponent_out = 0;
    *seconds_out = 0;
    if (k == 0 || k == n)
        return STINT_OK;
    const sti_topk_plan plan = sti_topk_plan_for(&r, r.form, n, k, desc->method);
    *method_out = plan.method;
    *exponent_out = plan.exponent;
    *seconds_out = plan.predicted_ns * 1e-9 * (double)sti_topk_ceil(r.n, n);
    return STINT_OK;
}
