#include "solve/rank_system.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "solve/rank_facts.h"
#include "solve/rank_krylov.h"
#include "solve/rank_order.h"
#include "solve/system_krylov.h"

struct sti_rank_system {
    sti_rank_system_desc d;
    sti_rank_system_info info;
    sti_rank_facts facts;
    sti_part part; /* of the transposed matrix, if it is */
    sti_rank_trsv *trsv;
    sti_rank_krylov *krylov;
    sti_rank_order order; /* of the rows that iterations have, or none */
    double *scratch;      /* [n] likewise */
    char name[256];
};

static const char *name_of(const sti_rank_system *s)
{
    return s->d.d.name ? s->d.d.name : "the matrix";
}

/* ---- the choice ---- */

static sti_matrix_traits traits_of(const sti_rank_facts *f)
{
    sti_matrix_traits t = {
        .rows = f->n, .columns = f->n, .kind = f->kind, .positive = true};
    t.diagonal = f->kind == STI_MATRIX_LOWER;
    for (int64_t i = 0; i < f->n; i++) {
        t.positive = t.positive && f->diagonal[i] > 0;
        t.diagonal = t.diagonal && f->lower[i] == 0 && f->upper[i] == 0;
    }
    return t;
}

/* The triangle as it is solved, after a transposition. */
static sti_part part_of(const sti_system_desc *d, sti_matrix_kind kind)
{
    sti_part part = d->triangle;
    if (part == STI_PART_WHOLE)
        part = kind == STI_MATRIX_UPPER ? STI_PART_UPPER : STI_PART_LOWER;
    if (d->transpose)
        part = part == STI_PART_LOWER ? STI_PART_UPPER : STI_PART_LOWER;
    return part;
}

static stint_status check_diagonal(const sti_rank_system *s)
{
    const double least = s->d.d.single ? (double)FLT_MIN : DBL_MIN;
    const double *diagonal = s->facts.diagonal;
    for (int64_t i = 0; !s->d.d.unit && i < s->facts.n; i++) {
        if (isnan(diagonal[i]))
            return sti_fail(STINT_E_INPUT,
                            "%s: row %" PRId64 " has no diagonal entry; one that is "
                            "not zero was wanted",
                            name_of(s), i + 1);
        if (!(fabs(diagonal[i]) >= least))
            return sti_fail(STINT_E_INPUT,
                            "%s: the diagonal entry of row %" PRId64
                            " is %g; one that is not zero (or denormal) was wanted",
                            name_of(s), i + 1, diagonal[i]);
    }
    return STINT_OK;
}

/* ---- triangles ---- */

static stint_status load_rows(void *user, const int32_t *local, const int32_t *names,
                              int64_t own, sti_csr *rows_out)
{
    const sti_rank_system *s = user;
    return sti_rank_load(s->d.source, &s->facts,
                         &(sti_rank_pick){local, names, own, s->part}, rows_out);
}

static stint_status make_trsv(sti_rank_system *s)
{
    const sti_system_desc *d = &s->d.d;
    const bool upper = s->part == STI_PART_UPPER;
    const sti_stretch_reach low = {s->facts.lower_first, s->facts.lower_last};
    const sti_stretch_reach up = {s->facts.upper_first, s->facts.upper_last};
    int32_t *level = NULL;
    int64_t levels = 0;
    stint_status st =
        sti_rank_find_levels(s->d.comm, s->d.source, &s->facts, upper, &level, &levels);
    if (st != STINT_OK)
        return st;
    st = sti_rank_trsv_create(
        &(sti_rank_trsv_desc){.comm = s->d.comm,
                              .n = s->facts.n,
                              .upper = upper,
                              .unit = d->unit,
                              .single = d->single,
                              .keep = true,
                              .share = s->d.share,
                              .threads = d->threads,
                              .tasks = d->tasks,
                              .columns = d->columns,
                              .level = level,
                              .levels = levels,
                              .count = upper ? s->facts.upper : s->facts.lower,
                              .reach = upper ? up : low,
                              .rows = load_rows,
                              .rows_user = s},
        &s->trsv);
    sti_free(level);
    return st;
}

static void tell_trsv(sti_rank_system *s)
{
    const sti_rank_trsv_info *from = sti_rank_trsv_info_of(s->trsv);
    const int32_t *names;
    const sti_csr *rows = sti_rank_trsv_rows(s->trsv, &names);
    s->info.system.trsv = (sti_trsv_info){.strategy = STI_TRSV_POOL,
                                          .tasks = from->tasks,
                                          .levels = from->levels,
                                          .threads = s->d.d.threads};
    s->info.system.predicted_s = from->predicted_s;
    s->info.messages = from->messages;
    s->info.bytes = from->bytes;
    s->info.shares = from->shares;
    s->info.matrix_bytes = (size_t)rows->start[rows->rows] * 12 +
                           (size_t)rows->rows * 8 + from->plan_bytes;
}

/* ---- what is called ---- */

static stint_status check_asked(const sti_rank_system *s)
{
    if (s->d.d.strategy != STI_TRSV_AUTO && s->d.d.strategy != STI_TRSV_POOL)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "--strategy %s is of one process; ranks share a pool",
                        sti_trsv_strategy_names[s->d.d.strategy]);
    return STINT_OK;
}

static stint_status look(sti_rank_system *s)
{
    stint_status st;
    STI_TRY(check_asked(s));
    st = sti_rank_look(s->d.source, s->d.d.transpose, name_of(s), &s->facts);
    STI_TRY(sti_comm_agree(s->d.comm, st));
    s->info.n = s->facts.n;
    s->info.entries = s->facts.entries;
    const sti_matrix_traits traits = traits_of(&s->facts);
    STI_TRY(sti_system_choose_by(&s->d.d, &traits, &s->info.system));
    s->part = part_of(&s->d.d, s->facts.kind);
    if (s->info.system.method == STI_METHOD_TRSV)
        st = check_diagonal(s);
out:
    return st;
}

static void tell_krylov(sti_rank_system *s)
{
    const sti_rank_krylov_info *from = sti_rank_krylov_info_of(s->krylov);
    s->info.system.trsv = from->trsv;
    s->info.system.factor_s = from->factor_s;
    s->info.system.predicted_s = from->predicted_s;
    s->info.system.shift = from->shift;
    s->info.messages = from->messages;
    s->info.bytes = from->bytes;
    s->info.matrix_bytes = from->matrix_bytes;
    s->info.shares = from->shares;
}

/* From here on entries, and what is known of rows, are in the order. */
static stint_status make_order(sti_rank_system *s)
{
    const sti_matrix_kind kind = s->facts.kind;
    stint_status st;
    STI_TRY(sti_rank_order_init(s->d.comm, s->d.source, &s->facts, &s->order));
    sti_rank_facts_fini(&s->facts);
    s->d.source = &s->order.source;
    st = sti_rank_look(s->d.source, false, name_of(s), &s->facts);
    s->facts.kind = kind; /* a triangle is none in another order */
    s->scratch =
        sti_alloc_array(s->order.source.rows, sizeof *s->scratch, "ranks.order");
    if (st == STINT_OK && !s->scratch)
        st = STINT_E_MEMORY;
    STI_TRY(sti_comm_agree(s->d.comm, st));
    sti_system_name_order(name_of(s), s->name, sizeof s->name);
    s->d.d.name = s->name;
out:
    return st;
}

static stint_status make_krylov(sti_rank_system *s)
{
    stint_status st;
    if (s->d.d.rcm)
        STI_TRY(make_order(s));
    STI_TRY(sti_rank_krylov_create(&(sti_rank_krylov_desc){.comm = s->d.comm,
                                                           .source = s->d.source,
                                                           .facts = &s->facts,
                                                           .order = s->order.order,
                                                           .d = &s->d.d,
                                                           .info = &s->info.system,
                                                           .share = s->d.share},
                                   &s->krylov));
    tell_krylov(s);
out:
    return st;
}

stint_status sti_rank_system_prepare(sti_rank_system *system)
{
    sti_rank_system *s = system;
    const int64_t begun = sti_clock_ns();
    stint_status st;
    if (s->info.system.method == STI_METHOD_TRSV) {
        STI_TRY(make_trsv(s));
        tell_trsv(s);
    } else {
        STI_TRY(make_krylov(s));
    }
    s->info.system.analysis_s = sti_seconds_since(begun) - s->info.system.factor_s;
out:
    return st;
}

/* ---- memory ---- */

/* A rank's share of so many entries, which none exceeds by much. */
static size_t share_of(const sti_rank_system *s, int64_t entries)
{
    const size_t all = (size_t)entries, size = (size_t)sti_comm_size(s->d.comm);
    return all / size + all / 16 + 4096;
}

static int64_t triangle_entries(const sti_rank_system *s, sti_part part)
{
    int64_t sum = s->facts.n;
    const int32_t *count = part == STI_PART_UPPER ? s->facts.upper : s->facts.lower;
    for (int64_t i = 0; i < s->facts.n; i++)
        sum += count[i];
    return sum;
}

/* Steps, waits, windows of all ranks' x and the copy of one triangle. */
static size_t plan_bytes(const sti_rank_system *s, sti_part part, bool kept)
{
    const size_t n = (size_t)s->facts.n, size = (size_t)sti_comm_size(s->d.comm);
    const size_t real = s->d.d.single ? sizeof(float) : sizeof(double);
    const size_t block = s->d.d.columns == 1 ? 1 : s->d.d.single ? 16 : 8;
    return share_of(s, triangle_entries(s, part)) * ((kept ? 12 : 0) + 4 + real) +
           (n / size + 4096) * 72 + (n + (size << 15)) * block * real +
           ((size_t)2 << 20) + n * 4;
}

void sti_rank_system_account(const sti_rank_system *system, sti_account *account)
{
    const sti_rank_system *s = system;
    const size_t n = (size_t)s->facts.n;
    const sti_precond precond = s->info.system.precond;
    sti_account_add(account, "rows", "counts, levels and places of all", n * 72);
    if (s->info.system.method == STI_METHOD_TRSV) {
        sti_account_add(account, "matrix", "this rank's rows, plan and windows",
                        plan_bytes(s, s->part, true));
    } else {
        size_t plans = 0;
        sti_account_add(account, "matrix", "this rank's rows",
                        share_of(s, s->facts.entries) * 12);
        sti_account_add(account, "krylov", sti_method_names[s->info.system.method],
                        sti_system_krylov_bytes(&s->d.d, &s->info.system, s->facts.n) +
                            2 * n * sizeof(double));
        if (s->d.d.rcm)
            sti_account_add(account, "order", "reverse Cuthill-McKee",
                            sti_rank_order_bytes(s->d.comm, &s->facts) +
                                n * sizeof(double));
        if (precond != STI_PRECOND_NONE && precond != STI_PRECOND_JACOBI)
            plans = plan_bytes(s, STI_PART_LOWER, true) +
                    plan_bytes(s, STI_PART_UPPER, false);
        if (precond == STI_PRECOND_IC0 || precond == STI_PRECOND_ILU0)
            plans += (size_t)s->facts.entries * 12 + n * 20; /* what others' rows map */
        sti_account_add(account, "precond", sti_precond_names[precond], plans);
    }
    sti_account_add(account, "residual", "", 3 * n * 2 * sizeof(double));
}

stint_status sti_rank_system_create(const sti_rank_system_desc *desc,
                                    sti_rank_system **system_out)
{
    sti_rank_system *s = sti_alloc(sizeof *s, "ranks.system");
    if (!s)
        return STINT_E_MEMORY;
    s->d = *desc;
    s->d.d.threads = desc->d.threads > 0 ? desc->d.threads : 1;
    s->d.d.columns = desc->d.columns > 0 ? desc->d.columns : 1;
    const stint_status st = look(s);
    if (st != STINT_OK) {
        sti_rank_system_destroy(s);
        return st;
    }
    *system_out = s;
    return STINT_OK;
}

void sti_rank_system_destroy(sti_rank_system *system)
{
    if (!system)
        return;
    sti_rank_trsv_destroy(system->trsv);
    sti_rank_krylov_destroy(system->krylov);
    sti_rank_facts_fini(&system->facts);
    sti_rank_order_fini(&system->order);
    sti_free(system->scratch);
    sti_free(system);
}

const sti_rank_system_info *sti_rank_system_info_of(const sti_rank_system *system)
{
    return &system->info;
}

/* ---- rows as an operator ---- */

typedef void entry_fn(void *user, int64_t row, int64_t column, double value);

/* Entries of the own rows in the order that solve/sparse_operator.h has: a diagonal of
 * ones first, but in its place where rows are columns of the file. */
static void each_entry(const sti_rank_system *s, entry_fn *fn, void *user)
{
    const int32_t *names = NULL;
    int64_t first = 0;
    const sti_csr *a = s->trsv ? sti_rank_trsv_rows(s->trsv, &names)
                               : sti_rank_krylov_rows(s->krylov, &first);
    const bool unit = s->d.d.unit, transpose = s->d.d.transpose;
    for (int64_t k = 0; k < a->rows; k++) {
        const int64_t i = names ? names[k] : first + k;
        bool told = !unit;
        for (int64_t e = a->start[k]; e < a->start[k + 1]; e++) {
            const int32_t j = a->column[e];
            if (!told && (!transpose || j >= i)) {
                fn(user, i, i, 1);
                told = true;
            }
            if (!unit || j != i)
                fn(user, i, j, a->value[e]);
        }
        if (!told)
            fn(user, i, i, 1);
    }
}

static stint_status whole_vector(sti_rank_system *s, double *vector)
{
    return s->trsv ? sti_rank_trsv_gather(s->trsv, sizeof *vector, vector)
                   : sti_rank_krylov_spread(s->krylov, vector);
}

typedef struct placed {
    int32_t column;
    double value;
} placed;

static int compare_columns(const void *a, const void *b)
{
    const int32_t x = ((const placed *)a)->column, y = ((const placed *)b)->column;
    return (x > y) - (x < y);
}

/* The same of rows that have an order: rows are numbered by it, columns as in the file,
 * whose order of entries sums have. */
static stint_status each_ordered(const sti_rank_system *s, entry_fn *fn, void *user)
{
    int64_t first, longest = 0;
    const sti_csr *a = sti_rank_krylov_rows(s->krylov, &first);
    for (int64_t k = 0; k < a->rows; k++)
        longest = a->start[k + 1] - a->start[k] > longest
                      ? a->start[k + 1] - a->start[k]
                      : longest;
    placed *row = sti_alloc_array(longest, sizeof *row, "ranks.row");
    if (!row)
        return STINT_E_MEMORY;
    for (int64_t k = 0; k < a->rows; k++) {
        const int64_t from = a->start[k], count = a->start[k + 1] - from;
        for (int64_t e = 0; e < count; e++)
            row[e] = (placed){s->order.order[a->column[from + e]], a->value[from + e]};
        qsort(row, (size_t)count, sizeof *row, compare_columns);
        for (int64_t e = 0; e < count; e++)
            fn(user, first + k, row[e].column, row[e].value);
    }
    sti_free(row);
    return STINT_OK;
}

/* Entries of this rank's rows told, and the vectors of which fn makes those rows made
 * whole on all ranks, as rows lie. */
static stint_status sum_rows(sti_rank_system *s, entry_fn *fn, void *user,
                             double *const *vector, int vectors)
{
    const bool ordered = s->order.order != NULL;
    stint_status st = STINT_OK;
    if (ordered)
        st = each_ordered(s, fn, user);
    else
        each_entry(s, fn, user);
    STI_TRY(sti_comm_agree(s->d.comm, st));
    for (int v = 0; v < vectors; v++) {
        STI_TRY(whole_vector(s, vector[v]));
        if (ordered)
            sti_rank_order_back(&s->order, s->facts.n, vector[v], s->scratch);
    }
out:
    return st;
}

static void add_entry(void *user, int64_t row, int64_t column, double value)
{
    double *b = user;
    (void)column;
    b[row] = fma(value, 1, b[row]);
}

typedef struct judging {
    int64_t columns, column;
    const double *x;
    double *r, *size; /* [n] b - A x and |A| |x| + |b| */
} judging;

static void judge_entry(void *user, int64_t row, int64_t column, double value)
{
    const judging *s = user;
    const double x = s->x[column * s->columns + s->column];
    s->r[row] = fma(-value, x, s->r[row]);
    s->size[row] += fabs(value * x);
}

stint_status sti_rank_system_ones(sti_rank_system *system, double *b)
{
    memset(b, 0, sizeof *b * (size_t)system->facts.n);
    return sum_rows(system, add_entry, b, &b, 1);
}

stint_status sti_rank_system_judge(sti_rank_system *system, int64_t columns,
                                   const double *b, const double *x,
                                   sti_residual *residual_out)
{
    const int64_t n = system->facts.n;
    const int32_t *order = system->order.order;
    judging s = {.columns = columns, .x = x};
    s.r = sti_alloc_array(n, sizeof *s.r, "ranks.residual");
    s.size = sti_alloc_array(n, sizeof *s.size, "ranks.residual");
    *residual_out = (sti_residual){0};
    stint_status st =
        sti_comm_agree(system->d.comm, s.r && s.size ? STINT_OK : STINT_E_MEMORY);
    for (; st == STINT_OK && s.column < columns; s.column++) {
        for (int64_t i = 0; i < n; i++) {
            s.r[i] = b[(order ? order[i] : i) * columns + s.column];
            s.size[i] = fabs(s.r[i]);
        }
        st = sum_rows(system, judge_entry, &s, (double *[]){s.r, s.size}, 2);
        if (st == STINT_OK)
            sti_residual_add(n, s.r, s.size, columns, b + s.column, residual_out);
    }
    sti_free(s.r);
    sti_free(s.size);
    return st;
}

/* ---- solving ---- */

stint_status sti_rank_system_solve(sti_rank_system *system, int64_t columns,
                                   const void *b, void *x, int64_t *iterations_out)
{
    if (system->krylov)
        return sti_rank_krylov_solve(system->krylov, columns, b, x, iterations_out);
    *iterations_out = 1;
    return sti_rank_trsv_solve(system->trsv, columns, b, x, false);
}

int64_t sti_rank_system_tasks(const sti_rank_system *system)
{
    sti_rank_trsv *plan =
        system->trsv ? system->trsv : sti_rank_krylov_plan(system->krylov);
    return plan ? sti_rank_trsv_info_of(plan)->tasks : 0;
}

stint_status sti_rank_system_watch(sti_rank_system *system, sti_trsv_span *spans_out)
{
    return sti_rank_trsv_watch(
        system->trsv ? system->trsv : sti_rank_krylov_plan(system->krylov), spans_out);
}

const int32_t *sti_rank_system_order(const sti_rank_system *system)
{
    return system->order.order;
}

stint_status sti_rank_system_gather(const sti_rank_system *system, int64_t columns,
                                    void *x)
{
    const size_t real = system->d.d.single ? sizeof(float) : sizeof(double);
    if (system->krylov)
        return STINT_OK; /* x is there */
    return sti_rank_trsv_gather(system->trsv, real * (size_t)columns, x);
}
