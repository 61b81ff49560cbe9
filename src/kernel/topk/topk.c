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
#include "kernel/topk/topk_key.h"

enum { PART_DEFAULT = 1 << 30, THREADS_MAX = 1024, EXPONENT_MAX = 15 };
#define WINNERS_IN_PARTS (INT64_C(3) << 30) /* with a part's own, 32-bit places */

typedef struct request {
    const stint_topk_desc *desc;
    stint_topk_costs costs;
    sti_topk_form form, list_form; /* of x, of a list of values */
    sti_topk_map map;
    size_t element_bytes;
    int64_t rows, stride, n, k, part; /* k <= n */
    int slots;                        /* rows worked on at once */
    bool short_row;                   /* rows are short, and by no other method */
    sti_topk_plan plan;               /* of a row that is taken whole */
    sti_team team;
} request;

/* ---- checking ---- */

static stint_status check_words(const stint_topk_desc *d)
{
    if (d->type < 0 || d->type > STINT_TOPK_I8 || d->key < 0 ||
        d->key > STINT_TOPK_ABS || d->nan < 0 || d->nan > STINT_TOPK_NAN_LAST ||
        d->method < 0 || d->method >= STINT_TOPK_METHODS)
        return sti_fail(STINT_E_USAGE,
                        "top-k: type %d, key %d, nan %d, method %d: one of them is not "
                        "in stint/topk.h",
                        (int)d->type, (int)d->key, (int)d->nan, (int)d->method);
    if (d->has_addend && d->type != STINT_TOPK_F32)
        return sti_fail(STINT_E_USAGE,
                        "top-k: an addend is only possible for f32 elements");
    if (d->threads < 0 || d->threads > THREADS_MAX)
        return sti_fail(STINT_E_USAGE, "top-k: %d threads, but must be from 0 to %d",
                        d->threads, THREADS_MAX);
    if (d->exponent < 0 || d->exponent > EXPONENT_MAX)
        return sti_fail(STINT_E_USAGE,
                        "top-k: block exponent %d, but must be from 0 (chosen) to %d",
                        d->exponent, EXPONENT_MAX);
    return STINT_OK;
}

static int64_t winners_of(const stint_topk_desc *d)
{
    return d->k < d->n ? d->k : d->n;
}

static stint_status check_sizes(const stint_topk_desc *d)
{
    if (d->k < 0 || d->n < 0 || d->rows < 0 || d->part < 0 || d->part > PART_DEFAULT)
        return sti_fail(STINT_E_USAGE,
                        "top-k: k %" PRId64 ", n %" PRId64 ", rows %" PRId64
                        ", part %" PRId64
                        "; none may be negative, and a part holds at most 2^30 values",
                        d->k, d->n, d->rows, d->part);
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
        !sti_mul_bytes(winners_of(d), 64, &bytes) || d->index_base > INT64_MAX - d->n)
        return sti_fail(STINT_E_USAGE,
                        "top-k: %" PRId64 " rows of %" PRId64
                        " elements from index %" PRId64
                        " on do not fit an address space",
                        rows, stride, d->index_base);
    return STINT_OK;
}

static bool is_short_row(const stint_topk_desc *d)
{
    return d->n > 0 && d->n <= STI_TOPK_SHORT && d->k > 0 &&
           (d->part == 0 || d->part >= d->n) &&
           (d->method == STINT_TOPK_AUTO || d->method == STINT_TOPK_NARROW);
}

static bool floats(sti_topk_form form)
{
    return form != STI_TOPK_I32 && form != STI_TOPK_I8;
}

static stint_status request_make(const stint_topk_desc *d, request *r)
{
    stint_status status = check_words(d);
    if (status == STINT_OK)
        status = check_sizes(d);
    if (status != STINT_OK)
        return status;
    if (d->n > (d->part ? d->part : PART_DEFAULT) && winners_of(d) > WINNERS_IN_PARTS)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "top-k: %" PRId64
                        " winners of a row taken in parts; at most %" PRId64
                        " are possible",
                        winners_of(d), (int64_t)WINNERS_IN_PARTS);
    *r = (request){.desc = d,
                   .form = sti_topk_form_of(d),
                   .rows = d->rows ? d->rows : 1,
                   .stride = d->stride ? d->stride : d->n,
                   .n = d->n,
                   .k = winners_of(d),
                   .part = d->part ? d->part : PART_DEFAULT,
                   .short_row = is_short_row(d),
                   .team = {.threads = d->threads ? d->threads : 1}};
    r->list_form = r->form == STI_TOPK_SUM ? STI_TOPK_F32 : r->form;
    r->map = sti_topk_map_make(d, r->form);
    r->element_bytes = sti_topk_element_bytes(r->form);
    stint_topk_costs_default(&r->costs);
    if (d->costs)
        r->costs = *d->costs;
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

/* Of one slot: the list for parts, `packed` and `other` for sorting. */
typedef struct row_memory {
    int64_t *list_index;       /* [list_capacity] */
    unsigned char *list;       /* likewise */
    uint64_t *packed;          /* [k] */
    uint64_t *other;           /* [k] */
    uint32_t *counts;          /* [STI_TOPK_BINS] */
    sti_topk_layout layout;    /* for one selection */
    sti_topk_scratch *scratch; /* in it, for whole rows that are no part */
} row_memory;

static sti_topk_plan plan_for(const request *r, sti_topk_form form, int64_t n,
                              int64_t k, stint_topk_method method)
{
    return sti_topk_plan_make(form, n, k, method, r->desc->exponent, &r->costs);
}

static size_t selection_bytes(const request *r, sti_topk_form form, int64_t n,
                              int64_t k, stint_topk_method method)
{
    sti_topk_layout count = {0};
    if (k <= 0 || k >= n)
        return 0;
    const sti_topk_plan plan = plan_for(r, form, n, k, method);
    sti_topk_scratch_take(&count, &plan);
    return count.overflow ? SIZE_MAX / 2 : count.used_bytes;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The list so far and a part's winners: at most so many. */
static int64_t list_capacity(const request *r)
{
    return r->k + sti_topk_min(r->k, r->part);
}

/* Of the largest selection that a row in parts needs. */
static size_t parts_bytes(const request *r)
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

static void take_parts(sti_topk_layout *layout, const request *r, row_memory *m)
{
    const int64_t list = list_capacity(r);
    m->list_index = sti_topk_take(layout, list, sizeof *m->list_index);
    m->list = sti_topk_take(layout, list, r->element_bytes);
    m->layout.base = sti_topk_take(layout, (int64_t)parts_bytes(r), 1);
}

/* One slot; NULL where the layout only counts. */
static row_memory *take_slot(sti_topk_layout *layout, const request *r)
{
    if (r->short_row) {
        const size_t bytes = sti_topk_short_row_bytes(r->n, r->k, r->desc->sorted);
        sti_topk_take(layout, 1, bytes);
        return NULL;
    }
    const bool parts = r->n > r->part, sort = r->desc->sorted;
    row_memory counted, *slot = sti_topk_take(layout, 1, sizeof *slot);
    row_memory *m = slot ? slot : &counted;
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

static bool workspace_bytes(const request *r, size_t *bytes_out)
{
    sti_topk_layout one = {0};
    take_slot(&one, r);
    return !one.overflow && sti_mul_bytes(r->slots, one.used_bytes, bytes_out) &&
           *bytes_out <= INT64_MAX && sti_add_bytes(*bytes_out, 64, bytes_out);
}

static stint_status workspace_fail(const request *r)
{
    return sti_fail(STINT_E_USAGE,
                    "top-k: the workspace for %" PRId64 " of %" PRId64
                    " elements does not fit an address space",
                    r->k, r->n);
}

stint_status stint_topk_workspace_bytes(const stint_topk_desc *desc, size_t *bytes_out)
{
    request r;
    stint_status status = request_make(desc, &r);
    if (status != STINT_OK)
        return status;
    size_t bytes;
    if (!workspace_bytes(&r, &bytes))
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

static void select_planned(const request *r, const sti_topk_view *view,
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

/* Of a part or a list. */
static void select_view(const request *r, const sti_topk_view *view, int64_t k,
                        stint_topk_method method, const sti_topk_sink *sink,
                        sti_topk_layout scratch)
{
    if (k == view->n) {
        select_all(view, sink);
        return;
    }
    const sti_topk_plan plan = plan_for(r, view->form, view->n, k, method);
    select_planned(r, view, &plan, sti_topk_scratch_take(&scratch, &plan), sink);
}

static sti_topk_view view_of(const request *r, const void *x, const float *addend,
                             int64_t row, int64_t begin, int64_t n)
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
static void give_sorted(const request *r, const sti_topk_view *view,
                        const row_memory *m, const sti_topk_sink *sink)
{
    const uint64_t *best = sti_topk_sort(m->packed, m->other, r->k, m->counts);
    sti_topk_decode(&r->team, view, best, r->k, sink);
}

static void select_row(const request *r, const sti_topk_view *view, const row_memory *m,
                       const sti_topk_sink *sink)
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
static int64_t shrink_list(const request *r, const row_memory *m, int64_t count)
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

static void give_list(const request *r, const row_memory *m, const sti_topk_sink *sink)
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

static void select_parts(const request *r, const void *x, const float *addend,
                         int64_t row, const row_memory *m, const sti_topk_sink *sink)
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
    const request *r;
    const void *x;
    const float *addend;
    int64_t *index;
    unsigned char *values;
    unsigned char *memory;
    size_t slot_bytes;
    atomic_llong bad_row; /* lowest row with a NaN that is an error */
} rows_work;

/* Of floats: whether there is a NaN, whatever its sign. */
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
    const request *r = w->r;
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

/* Of a row that has been run. */
static int64_t named_nan(const rows_work *w, int64_t row)
{
    const request *r = w->r;
    return r->short_row ? w->index[row * r->k] : find_nan(w, row) + r->desc->index_base;
}

static bool refuses_nan(const stint_topk_desc *d, sti_topk_form form)
{
    return d->nan == STINT_TOPK_NAN_ERROR && floats(form);
}

/* False where there is a NaN that is refused. */
static bool run_row(const rows_work *w, int64_t row, unsigned char *memory)
{
    const request *r = w->r;
    const row_memory *m = (const void *)memory;
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

static stint_status check_pointers(const request *r, const void *x, const float *addend,
                                   const int64_t *index_out, const void *workspace,
                                   size_t given_bytes, size_t needed_bytes)
{
    if (!x || !index_out || (r->desc->has_addend && !addend))
        return sti_fail(STINT_E_INPUT,
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
    const request *r = w->r;
    for (int slot = 0; slot < r->slots; slot++) {
        sti_topk_layout layout = {.base = w->memory + (size_t)slot * w->slot_bytes};
        take_slot(&layout, r);
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

static stint_status nan_fail(int64_t row, int64_t index)
{
    return sti_fail(STINT_E_INPUT,
                    "top-k: NaN at row %" PRId64 ", index %" PRId64
                    "; NaN may be ranked first or last instead (the field nan; --nan)",
                    row, index);
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
    const int64_t k = winners_of(d);
    if (!is_short_row(d) || d->rows < 0 || d->rows > 1 || check_words(d) != STINT_OK ||
        d->part > PART_DEFAULT || d->index_base > INT64_MAX - d->n || !x || !index ||
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
    *status_out = good ? STINT_OK : nan_fail(0, index[0]);
    return true;
}

static stint_status run_any(const stint_topk_desc *desc, const void *x,
                            const float *addend, int64_t *index_out, void *values_out,
                            void *workspace, size_t workspace_size)
{
    request r;
    size_t bytes;
    stint_status status;
    if (run_short_row(desc, x, addend, index_out, values_out, workspace, workspace_size,
                      &status))
        return status;
    status = request_make(desc, &r);
    if (status != STINT_OK)
        return status;
    if (r.k == 0)
        return STINT_OK;
    if (!workspace_bytes(&r, &bytes))
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
    return nan_fail(bad, named_nan(&w, bad));
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
    return run_any(desc, x, addend, index_out, values_out, workspace, workspace_size);
}

stint_status stint_topk_explain(const stint_topk_desc *desc,
                                stint_topk_method *method_out, int *exponent_out,
                                double *seconds_out)
{
    request r;
    stint_status status = request_make(desc, &r);
    if (status != STINT_OK)
        return status;
    const int64_t n = sti_topk_min(r.n, r.part), k = sti_topk_min(r.k, n);
    *method_out = STINT_TOPK_PACK;
    *exponent_out = 0;
    *seconds_out = 0;
    if (k == 0 || k == n)
        return STINT_OK;
    const sti_topk_plan plan = plan_for(&r, r.form, n, k, desc->method);
    *method_out = plan.method;
    *exponent_out = plan.exponent;
    *seconds_out = plan.predicted_ns * 1e-9 * (double)sti_topk_ceil(r.n, n);
    return STINT_OK;
}
