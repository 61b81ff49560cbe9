#include "solve/system.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"
#include "solve/precond.h"
#include "solve/rcm.h"
#include "solve/system_krylov.h"
#include "solve/vectors.h"

struct sti_system {
    sti_system_desc d;
    sti_system_info info;
    sti_team team;
    sti_trsv *trsv;
    sti_trsv_device *device; /* in its place */
    sti_csr permuted;
    int32_t *order;   /* [n] old numbers of new rows; NULL: as they are */
    const sti_csr *a; /* that iterations multiply by */
    sti_preconditioner precond;
    double *b, *x; /* [columns, n] in the order */
    char name[256];
};

/* ---- the choice ---- */

static const char *name_of(const sti_system_desc *d)
{
    return d->name ? d->name : "the matrix";
}

static sti_method method_for(const sti_system_desc *d, const sti_matrix_traits *traits)
{
    const sti_matrix_kind kind = traits->kind;
    if (d->method != STI_METHOD_AUTO)
        return d->method;
    if (d->triangle != STI_PART_WHOLE || kind == STI_MATRIX_LOWER ||
        kind == STI_MATRIX_UPPER)
        return STI_METHOD_TRSV;
    return kind == STI_MATRIX_SYMMETRIC && traits->positive ? STI_METHOD_CG
                                                            : STI_METHOD_GMRES;
}

static sti_precond precond_for(const sti_system_desc *d, sti_method method)
{
    if (method == STI_METHOD_TRSV)
        return STI_PRECOND_NONE;
    if (d->precond != STI_PRECOND_AUTO)
        return d->precond;
    return method == STI_METHOD_CG ? STI_PRECOND_IC0 : STI_PRECOND_ILU0;
}

static stint_status check_krylov(const sti_system_desc *d, const sti_system_info *info,
                                 bool diagonal)
{
    const char *method = sti_method_names[info->method];
    if (d->device)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s runs on the CPU alone; --device cuda is for triangular "
                        "solves",
                        method);
    if (d->single)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s is in doubles alone; floats are for triangular solves",
                        method);
    if (d->triangle != STI_PART_WHOLE || d->unit || d->transpose)
        return sti_fail(STINT_E_USAGE,
                        "a triangle, its transpose or a unit diagonal is for trsv, not "
                        "for %s",
                        method);
    if ((info->method == STI_METHOD_CG || info->precond == STI_PRECOND_IC0) &&
        info->kind != STI_MATRIX_SYMMETRIC && !diagonal)
        return sti_fail(STINT_E_INPUT,
                        "%s is not symmetric; %s wants a symmetric matrix, gmres and "
                        "bicgstab with ilu0 take any",
                        name_of(d), info->method == STI_METHOD_CG ? "cg" : "ic0");
    if (info->method == STI_METHOD_CG && info->precond == STI_PRECOND_ILU0)
        return sti_fail(STINT_E_USAGE,
                        "cg wants a symmetric preconditioner: ic0, gs, jacobi or none");
    return STINT_OK;
}

static stint_status check_trsv(const sti_system_desc *d, const sti_system_info *info)
{
    if (d->rcm)
        return sti_fail(STINT_E_USAGE,
                        "--order rcm would make another matrix of a triangle; it is "
                        "for cg, gmres and bicgstab");
    if (d->device && (d->strategy != STI_TRSV_AUTO || d->tasks > 0))
        return sti_fail(STINT_E_USAGE,
                        "--strategy and --tasks are of the CPU; --device cuda has a "
                        "thread for every row");
    if (d->precond != STI_PRECOND_AUTO && d->precond != STI_PRECOND_NONE)
        return sti_fail(STINT_E_USAGE,
                        "a triangular solve has no preconditioner; --precond %s is for "
                        "cg, gmres and bicgstab",
                        sti_precond_names[d->precond]);
    if (d->triangle == STI_PART_WHOLE && info->kind != STI_MATRIX_LOWER &&
        info->kind != STI_MATRIX_UPPER)
        return sti_fail(STINT_E_INPUT,
                        "%s has entries on both sides of its diagonal; --triangle says "
                        "which part to solve with",
                        name_of(d));
    return STINT_OK;
}

stint_status sti_system_choose_by(const sti_system_desc *desc,
                                  const sti_matrix_traits *traits,
                                  sti_system_info *info_out)
{
    *info_out = (sti_system_info){0};
    if (traits->rows != traits->columns)
        return sti_fail(STINT_E_INPUT,
                        "%s is %" PRId64 " x %" PRId64 "; a square one was wanted",
                        name_of(desc), traits->rows, traits->columns);
    info_out->kind = traits->kind;
    info_out->method = method_for(desc, traits);
    info_out->precond = precond_for(desc, info_out->method);
    return info_out->method == STI_METHOD_TRSV
               ? check_trsv(desc, info_out)
               : check_krylov(desc, info_out, traits->diagonal);
}

stint_status sti_system_choose(const sti_system_desc *desc, sti_system_info *info_out)
{
    const sti_csr *a = desc->a;
    sti_matrix_traits traits = {.rows = a->rows, .columns = a->columns};
    if (a->rows == a->columns) {
        traits.kind = sti_matrix_kind_of(a);
        traits.positive =
            traits.kind == STI_MATRIX_SYMMETRIC && sti_matrix_has_positive_diagonal(a);
        traits.diagonal =
            traits.kind == STI_MATRIX_LOWER && sti_matrix_bandwidth(a) == 0;
    }
    return sti_system_choose_by(desc, &traits, info_out);
}

static bool is_upper(const sti_system_desc *d, const sti_system_info *info)
{
    return d->triangle == STI_PART_UPPER ||
           (d->triangle == STI_PART_WHOLE && info->kind == STI_MATRIX_UPPER);
}

static sti_trsv_desc trsv_desc(const sti_system_desc *d, const sti_system_info *info)
{
    return (sti_trsv_desc){.a = d->a,
                           .upper = is_upper(d, info),
                           .transpose = d->transpose,
                           .unit = d->unit,
                           .part = d->triangle != STI_PART_WHOLE,
                           .single = d->single,
                           .threads = d->threads,
                           .strategy = d->strategy,
                           .tasks = d->tasks,
                           .solves = d->solves,
                           .columns = d->columns,
                           .room_bytes = d->room_bytes,
                           .name = d->name};
}

sti_operator sti_system_operator(const sti_system_desc *desc,
                                 const sti_system_info *info)
{
    sti_operator op = {.a = desc->a};
    if (info->method == STI_METHOD_TRSV) {
        op.part = is_upper(desc, info) ? STI_PART_UPPER : STI_PART_LOWER;
        op.transpose = desc->transpose;
        op.unit = desc->unit;
    }
    return op;
}

/* ---- memory ---- */

static int64_t columns_of(const sti_system_desc *d)
{
    return d->columns > 0 ? d->columns : 1;
}

static size_t krylov_bytes(const sti_system_desc *d, const sti_system_info *info)
{
    return sti_system_krylov_bytes(d, info, d->a->rows);
}

/* A solve's two triangles; factors beside them. */
static size_t precond_bytes(const sti_system_desc *d, const sti_system_info *info,
                            bool least)
{
    const size_t n = (size_t)d->a->rows, entries = (size_t)d->a->start[n];
    const size_t pack =
        columns_of(d) > 1 ? sizeof(double) * n * (size_t)columns_of(d) : 0;
    sti_trsv_desc t = trsv_desc(d, info);
    if (info->precond == STI_PRECOND_NONE)
        return 0;
    if (info->precond == STI_PRECOND_JACOBI)
        return n * sizeof(double);
    t.transpose = info->precond == STI_PRECOND_IC0;
    const size_t plans =
        2 * (least ? sti_trsv_least_bytes(&t) : sti_trsv_most_bytes(&t));
    const size_t factor = info->precond == STI_PRECOND_GS ? n * sizeof(double)
                                                          : (n + 1) * 8 + 12 * entries;
    return pack + plans + factor;
}

void sti_system_account(const sti_system_desc *desc, const sti_system_info *info,
                        bool least, sti_account *account)
{
    const size_t n = (size_t)desc->a->rows, entries = (size_t)desc->a->start[n];
    const sti_trsv_desc t = trsv_desc(desc, info);
    if (info->method == STI_METHOD_TRSV) {
        sti_account_add(account, "plan", "of the triangular solve",
                        desc->device ? sti_trsv_device_bytes(&t)
                        : least      ? sti_trsv_least_bytes(&t)
                                     : sti_trsv_most_bytes(&t));
    } else {
        sti_account_add(account, "precond", sti_precond_names[info->precond],
                        precond_bytes(desc, info, least));
        sti_account_add(account, "krylov", sti_method_names[info->method],
                        krylov_bytes(desc, info));
        if (desc->rcm) /* two copies while it is made, neighbours before */
            sti_account_add(account, "order", "reverse Cuthill-McKee",
                            2 * ((n + 2) * 8 + entries * 12) + n * 32);
    }
    sti_account_add(account, "residual", "", 2 * n * sizeof(double));
}

/* ---- making ---- */

static stint_status make_trsv(sti_system *s)
{
    const sti_trsv_desc d = trsv_desc(&s->d, &s->info);
    const stint_status st = sti_trsv_analyse(&d, &s->trsv);
    if (st != STINT_OK)
        return st;
    s->info.trsv = *sti_trsv_info_of(s->trsv);
    s->info.analysis_s = s->info.trsv.analysis_s;
    s->info.predicted_s = s->info.trsv.predicted_s;
    s->info.bytes = s->info.trsv.bytes;
    return STINT_OK;
}

static stint_status make_device(sti_system *s)
{
    const sti_trsv_desc d = trsv_desc(&s->d, &s->info);
    const int64_t start = sti_clock_ns();
    const stint_status st =
        sti_trsv_device_create(s->d.device, &d, &s->info.trsv.levels, &s->device);
    s->info.analysis_s = sti_seconds_since(start);
    return st;
}

static stint_status make_order(sti_system *s)
{
    const int64_t n = s->d.a->rows;
    s->order = sti_alloc_array(n, sizeof *s->order, "solve.order");
    if (!s->order)
        return STINT_E_MEMORY;
    stint_status st = sti_rcm_order(s->d.a, s->order);
    if (st == STINT_OK)
        st = sti_csr_permute(s->d.a, s->order, &s->permuted);
    s->a = &s->permuted;
    return st;
}

void sti_system_name_order(const char *name, char *text_out, size_t text_bytes)
{
    (void)snprintf(text_out, text_bytes, "%.200s, rows as --order rcm numbers them",
                   name);
}

/* Plans are for as many solves as iterations may be, unless room is short. */
static stint_status make_precond(sti_system *s)
{
    sti_trsv_desc t = trsv_desc(&s->d, &s->info);
    t.upper = t.transpose = t.unit = t.part = false;
    t.a = NULL;
    if (s->order) {
        sti_system_name_order(name_of(&s->d), s->name, sizeof s->name);
        t.name = s->name;
    }
    t.solves = 30 * (s->d.solves > 0 ? s->d.solves : 1);
    const size_t others = krylov_bytes(&s->d, &s->info);
    if (t.room_bytes > 0)
        t.room_bytes = t.room_bytes > others ? (t.room_bytes - others) / 4 + 1 : 1;
    const stint_status st =
        sti_preconditioner_init(s->info.precond, s->a, &t, &s->precond);
    if (st == STINT_OK && s->precond.forward) {
        s->info.trsv = *sti_trsv_info_of(s->precond.forward);
        s->info.analysis_s +=
            s->info.trsv.analysis_s + sti_trsv_info_of(s->precond.backward)->analysis_s;
        s->info.predicted_s = s->info.trsv.predicted_s +
                              sti_trsv_info_of(s->precond.backward)->predicted_s;
        s->info.bytes +=
            s->info.trsv.bytes + sti_trsv_info_of(s->precond.backward)->bytes;
    }
    s->info.factor_s = s->precond.factor_s;
    s->info.shift = s->precond.shift;
    return st;
}

static stint_status make_krylov(sti_system *s)
{
    const int64_t count = s->d.a->rows * columns_of(&s->d);
    const int64_t start = sti_clock_ns();
    stint_status st = STINT_OK;
    s->a = s->d.a;
    if (s->d.rcm)
        st = make_order(s);
    s->info.analysis_s = sti_seconds_since(start);
    if (st == STINT_OK && (s->order || columns_of(&s->d) > 1)) {
        s->b = sti_alloc_array(count, sizeof *s->b, "solve.sides");
        s->x = sti_alloc_array(count, sizeof *s->x, "solve.sides");
        st = s->b && s->x ? STINT_OK : STINT_E_MEMORY;
    }
    s->info.bytes = krylov_bytes(&s->d, &s->info);
    return st == STINT_OK ? make_precond(s) : st;
}

stint_status sti_system_create(const sti_system_desc *desc, sti_system **system_out)
{
    sti_system_info info;
    stint_status st = sti_system_choose(desc, &info);
    if (st != STINT_OK)
        return st;
    sti_system *s = sti_alloc(sizeof *s, "solve.system");
    if (!s)
        return STINT_E_MEMORY;
    s->d = *desc;
    s->d.threads = desc->threads > 0 ? desc->threads : 1;
    s->team.threads = s->d.threads;
    s->info = info;
    st = info.method != STI_METHOD_TRSV ? make_krylov(s)
         : desc->device                 ? make_device(s)
                                        : make_trsv(s);
    if (st != STINT_OK) {
        sti_system_destroy(s);
        return st;
    }
    *system_out = s;
    return STINT_OK;
}

void sti_system_destroy(sti_system *system)
{
    if (!system)
        return;
    sti_trsv_destroy(system->trsv);
    sti_trsv_device_destroy(system->device);
    sti_preconditioner_fini(&system->precond);
    sti_free(system->permuted.start);
    sti_free(system->permuted.column);
    sti_free(system->permuted.value);
    sti_free(system->order);
    sti_free(system->b);
    sti_free(system->x);
    sti_free(system);
}

const sti_system_info *sti_system_info_of(const sti_system *system)
{
    return &system->info;
}

/* ---- solving ---- */

static stint_status product(void *arg, int64_t count, const double *const *x,
                            double *const *y)
{
    const sti_system *s = arg;
    const stint_status stop = s->d.stops ? sti_stop_asked() : STINT_OK;
    if (stop != STINT_OK)
        return sti_fail(stop, "stopped between two iterations");
    for (int64_t c = 0; c < count; c++)
        sti_operator_product(&s->team, s->a, x[c], y[c]);
    return STINT_OK;
}

static stint_status solve_krylov(sti_system *s, int64_t columns, const double *b,
                                 double *x, int64_t *iterations_out)
{
    return sti_system_krylov(
        &(sti_krylov_run){.d = &s->d,
                          .info = &s->info,
                          .team = &s->team,
                          .n = s->d.a->rows,
                          .order = s->order,
                          .b = s->b,
                          .x = s->x,
                          .product = product,
                          .product_arg = s,
                          .precondition = s->info.precond != STI_PRECOND_NONE
                                              ? sti_preconditioner_apply
                                              : NULL,
                          .precondition_arg = &s->precond},
        columns, b, x, iterations_out);
}

/* A float's residual is that of its value as a double. */
static stint_status judge_single(const sti_operator *op, int64_t count, int64_t columns,
                                 const float *b, const float *x, sti_residual *out)
{
    double *sides = sti_alloc_array(2 * count, sizeof *sides, "solve.doubles");
    if (!sides)
        return STINT_E_MEMORY;
    for (int64_t k = 0; k < count; k++) {
        sides[k] = (double)b[k];
        sides[count + k] = (double)x[k];
    }
    const stint_status st =
        sti_operator_residual(op, columns, sides, sides + count, out);
    sti_free(sides);
    return st;
}

stint_status sti_system_judge(const sti_system *system, int64_t columns, const void *b,
                              const void *x, sti_residual *residual_out)
{
    const sti_operator op = sti_system_operator(&system->d, &system->info);
    if (system->d.single)
        return judge_single(&op, system->d.a->rows * columns, columns, b, x,
                            residual_out);
    return sti_operator_residual(&op, columns, b, x, residual_out);
}

stint_status sti_system_solve(sti_system *system, int64_t columns, const void *b,
                              void *x, int64_t *iterations_out)
{
    if (system->info.method != STI_METHOD_TRSV)
        return solve_krylov(system, columns, b, x, iterations_out);
    *iterations_out = 1;
    if (system->device)
        return sti_trsv_device_solve(system->device, columns, b, x);
    sti_trsv_solve(system->trsv, columns, b, x);
    return STINT_OK;
}

bool sti_system_watch(sti_system *system, sti_trsv_span *spans)
{
    sti_trsv *plan = system->trsv ? system->trsv : system->precond.forward;
    const int64_t n = system->d.a->rows;
    double *x = plan ? sti_alloc_array(n, sizeof *x, "solve.watched") : NULL;
    if (x) /* zeros take the time of any other side */
        sti_trsv_watch(plan, x, x, spans);
    sti_free(x);
    return x != NULL;
}

const int32_t *sti_system_order(const sti_system *system)
{
    return system->order;
}
