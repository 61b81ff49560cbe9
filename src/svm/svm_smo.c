#include "svm/svm_smo.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/shard_tree.h"
#include "svm/smo_program.h"
#include "svm/svm_rows.h"

/* What one machine after another is solved in. */
typedef struct solver {
    sti_smo_rows *rows;
    sti_smo *smo;
    sti_smo_program program;
    double *beta, *weight; /* [points of a machine] */
} solver;

/* A training at work. */
typedef struct trainer {
    const sti_smo_desc *d;
    const sti_svm_plan *plan;
    sti_svm_model *model;
    sti_smo_machine *machine;
    sti_team team;
    const sti_team *inner; /* of a machine */
    int solvers;
    sti_svm_rows rows;
    solver *solver;    /* [solvers] */
    int32_t *class_of; /* [points] */
    double label[STI_SVM_CLASSES_MOST];
    int64_t count[STI_SVM_CLASSES_MOST], begin[STI_SVM_CLASSES_MOST];
    int64_t *order; /* [points] rows by class */
    double *target; /* [points] of a regression, or NULL */
    double *weight; /* [points] in the order of `order`, or NULL */
    double *mean;
    double *coef;         /* [coefs, points] */
    stint_status *status; /* [machines] */
    sti_comm *comm;       /* or NULL */
    sti_shard_range own;  /* this rank's machines */
    int64_t done;
} trainer;

static bool classifies(sti_svm_type type)
{
    return type == STI_SVM_C_SVC || type == STI_SVM_NU_SVC;
}

/* Machines that are one working set each are solved side by side. */
static bool side_by_side(const sti_svm_plan *plan)
{
    return plan->machines > 1 && plan->largest <= STI_SMO_SET;
}

/* Are the sums of a single machine shared out? Where there are several, every rank has
 * some of them. */
static bool shares_sums(const sti_smo_desc *d, const sti_svm_plan *plan)
{
    return d->comm && plan->machines == 1;
}

/* ---- the plan ---- */

static stint_status measure(const sti_smo_desc *d, sti_svm_plan *plan)
{
    const sti_csr *x = &d->table->x;
    int64_t count[STI_SVM_CLASSES_MOST], most[2] = {0, 0};
    *plan = (sti_svm_plan){.points = x->rows,
                           .features = x->columns - d->table->first,
                           .nonzeros = x->start[x->rows],
                           .machines = 1,
                           .classes = 2,
                           .columns = 1,
                           .largest = x->rows,
                           .dense = d->places.shared
                                        ? sti_svm_shared_dense(d->places.shared)
                                        : sti_svm_rows_dense(x)};
    stint_status st = sti_svm_check_rows(&d->function, d->table, NULL);
    if (st == STINT_OK)
        st = sti_svm_rows_columns(&d->function, x, plan->features, plan->dense,
                                  &plan->spread);
    if (st != STINT_OK || d->type == STI_SVM_ONE_CLASS)
        return st;
    if (!classifies(d->type))
        return sti_svm_check_numbers(d->table);
    st = sti_svm_count_classes(d->table, &plan->classes, count);
    for (int64_t c = 0; st == STINT_OK && c < plan->classes; c++) {
        most[1] = count[c] > most[1] ? count[c] : most[1];
        if (most[1] > most[0]) {
            const int64_t swap = most[0];
            most[0] = most[1];
            most[1] = swap;
        }
    }
    if (st != STINT_OK)
        return st;
    plan->machines = plan->classes * (plan->classes - 1) / 2;
    plan->largest = most[0] + most[1];
    plan->columns = plan->classes - 1;
    return st;
}

/* Bytes of a row that is kept, of the largest machine. */
static size_t row_bytes(const sti_svm_plan *plan)
{
    return (size_t)plan->largest * sizeof(float);
}

static void add_parts(const sti_smo_desc *d, sti_svm_plan *plan, int64_t kept)
{
    const sti_csr *x = &d->table->x;
    const sti_gram_rows shape = {.rows = x->rows,
                                 .columns = plan->spread,
                                 .dense = plan->dense ? x->value : NULL, /* any */
                                 .sparse = *x};
    const bool beside = side_by_side(plan);
    const size_t solvers = beside ? (size_t)d->threads : 1;
    const size_t points = (size_t)plan->points;
    const int64_t variables = sti_smo_variables(d->type, plan->largest);
    sti_account *a = &plan->account;
    plan->kept = kept;
    *a = (sti_account){0};
    sti_account_add(a, "table", "rows as they were read", d->table->bytes);
    sti_account_add(a, "rows", plan->dense ? "dense" : "sparse",
                    sti_svm_rows_bytes(x, plan->features, plan->dense) +
                        points * (d->places.shared ? 52 : 36) +
                        (plan->dense ? (size_t)plan->features * sizeof(double) : 0));
    sti_account_add(
        a, "blocks", "of rows of the kernel matrix, at work",
        solvers * sti_smo_rows_bytes(&shape, plan->largest, beside ? 1 : d->threads));
    sti_account_add(a, "set", "variables and a working set",
                    (shares_sums(d, plan) ? points * sizeof(double) : 0) +
                        solvers * (sti_smo_bytes(plan->largest, variables) +
                                   (size_t)variables * 5 * sizeof(double)));
    sti_account_add(a, "model", "alphas and support vectors, at most",
                    points * (2 * (size_t)plan->columns + 4) * sizeof(double) +
                        (size_t)plan->nonzeros * (sizeof(double) + sizeof(int32_t)));
    sti_account_add(a, "kept", "rows of the kernel matrix",
                    (size_t)kept * row_bytes(plan));
    if (d->shared_bytes > 0)
        sti_account_add(a, "shared", "tiles that all folds read", d->shared_bytes);
    if (d->beside_bytes > 0)
        sti_account_add(a, "folds", "rows of them, their order and answers",
                        d->beside_bytes);
    sti_account_raise(a, "reading", "the text of the file beside the table",
                      d->table->peak_bytes);
    sti_account_add_measured(a, plan->process.bytes, d->threads);
}

stint_status sti_smo_plan(const sti_smo_desc *d, sti_svm_plan *plan)
{
    const stint_status st = measure(d, plan);
    if (st != STINT_OK)
        return st;
    plan->values =
        sti_smo_variables(d->type, plan->largest) > STI_SMO_SET ? plan->largest : 0;
    plan->process = sti_svm_process_of(&d->process);
    add_parts(d, plan, 0);
    plan->smallest_bytes = plan->account.total_bytes;
    plan->taken_bytes = sti_svm_account_taken(&plan->account);
    const size_t budget =
        d->budget_bytes ? d->budget_bytes : plan->process.budget_bytes;
    const size_t each = row_bytes(plan) + row_bytes(plan) / 256;
    size_t room = plan->taken_bytes < budget ? budget - plan->taken_bytes : 0;
    if (d->cache_bytes > 0 && d->cache_bytes < room)
        room = d->cache_bytes;
    const int64_t kept = (int64_t)(room / (each > 0 ? each : 1));
    add_parts(d, plan, kept < plan->values ? kept : plan->values);
    return sti_account_check(&plan->account, d->budget_bytes, NULL);
}

/* ---- machines ---- */

typedef struct progress_of {
    const trainer *t;
    bool tells;
} progress_of;

static void on_set(void *user, int64_t iterations, double gap)
{
    const progress_of *p = user;
    const sti_smo_desc *d = p->t->d;
    if (p->tells && d->progress)
        d->progress(d->progress_user, __atomic_load_n(&p->t->done, __ATOMIC_RELAXED),
                    p->t->plan->machines, iterations, gap);
}

/* Classes a and b, or all points where there are none (a = b = 0). */
static stint_status solve(trainer *t, int64_t machine, int64_t a, int64_t b, int worker)
{
    solver *s = &t->solver[worker];
    const bool pairs = a != b;
    const int64_t n = t->plan->points;
    const sti_row_range range[2] = {{pairs ? t->begin[a] : 0, pairs ? t->count[a] : n},
                                    {pairs ? t->begin[b] : n, pairs ? t->count[b] : 0}};
    const double *w = t->d->weight;
    double *weight = t->weight ? s->weight : NULL;
    const sti_smo_points points = {
        .count = range[0].count + range[1].count,
        .positives = range[0].count,
        .y = t->target,
        .weight = weight,
        .cost = {t->d->c * (pairs && w ? w[a] : 1), t->d->c * (pairs && w ? w[b] : 1)}};
    for (int64_t r = 0, at = 0; weight && r < 2; at += range[r++].count)
        memcpy(weight + at, t->weight + range[r].begin,
               sizeof(double) * (size_t)range[r].count);
    progress_of told = {t, worker == 0};
    sti_smo_result result;
    if (!sti_smo_program_begin(&s->program, t->d, &points))
        return STINT_E_USAGE;
    sti_smo_rows_select(s->rows, range);
    const stint_status st = sti_smo_solve(s->smo, &s->program.problem, s->program.alpha,
                                          on_set, &told, &result);
    sti_smo_program_end(&s->program, t->d, &points, &result, s->beta,
                        &t->machine[machine]);
    t->model->rho[machine] = t->machine[machine].rho;
    memcpy(t->coef + (pairs ? b - 1 : 0) * n + range[0].begin, s->beta,
           sizeof(double) * (size_t)range[0].count);
    if (pairs)
        memcpy(t->coef + a * n + range[1].begin, s->beta + range[0].count,
               sizeof(double) * (size_t)range[1].count);
    __atomic_fetch_add(&t->done, 1, __ATOMIC_RELAXED);
    return st;
}

static void machine_piece(void *arg, int64_t piece, int worker)
{
    trainer *t = arg;
    int64_t a = 0, left = piece;
    for (; left >= t->plan->classes - 1 - a; a++)
        left -= t->plan->classes - 1 - a;
    const bool pairs = classifies(t->d->type);
    t->status[piece] = solve(t, piece, a, pairs ? a + 1 + left : a, worker);
}

static stint_status refuse(const trainer *t, int64_t machine, stint_status st)
{
    const sti_smo_machine *m = &t->machine[machine];
    if (sti_smo_rows_status(t->solver[0].rows) != STINT_OK)
        return st; /* the words are those of the ranks */
    if (st == STINT_E_USAGE)
        return sti_fail(
            st,
            "-n %g: nu must be at most twice the share of the smaller class "
            "of every pair",
            t->d->nu);
    if (st == STINT_E_FAILED && isnan(m->gap))
        return sti_fail(st,
                        "machine %" PRId64 " of %" PRId64 ": kernel values are too "
                        "large for floats; scaled data or a smaller -g, -d or -r was "
                        "wanted",
                        machine + 1, t->plan->machines);
    if (st == STINT_E_FAILED)
        return sti_fail(st,
                        "machine %" PRId64 " of %" PRId64 ": the conditions are still "
                        "missed by %.3g (-e %g) after %" PRId64
                        " iterations; a larger -i or -e, or scaled data, was wanted",
                        machine + 1, t->plan->machines, m->gap, t->d->tolerance,
                        m->iterations);
    return sti_fail(st, "stopped before the machine was solved; no model was written");
}

/* Machines of a rank: all, but where several are shared out. */
static sti_shard_range machines_of(const trainer *t, int rank)
{
    const sti_shard_range all = {0, t->plan->machines};
    return t->comm && t->plan->machines > 1
               ? sti_shard_part(all, sti_comm_size(t->comm), rank)
               : all;
}

static void own_piece(void *arg, int64_t piece, int worker)
{
    trainer *t = arg;
    machine_piece(t, t->own.first + piece, worker);
}

static stint_status run_own_machines(trainer *t)
{
    const unsigned mode = sti_float_mode_enter(); /* as in pieces of a team */
    const int64_t end = t->own.first + t->own.count;
    if (t->solvers > 1)
        sti_team_take(&t->team, t->own.count, own_piece, t);
    int64_t m = t->own.first;
    for (; m < end; m++) {
        if (t->solvers == 1)
            machine_piece(t, m, 0);
        if (t->status[m] != STINT_OK)
            break;
    }
    sti_float_mode_leave(mode);
    return m < end ? refuse(t, m, t->status[m]) : STINT_OK;
}

/* A pair's alphas, rho and what is told of it, from the rank that has them. */
static stint_status pass_pair(trainer *t, int owner, int64_t pair)
{
    const int64_t n = t->plan->points;
    int64_t a = 0, left = pair;
    stint_status st;
    for (; left >= t->plan->classes - 1 - a; a++)
        left -= t->plan->classes - 1 - a;
    const int64_t b = a + 1 + left;
    STI_TRY(sti_comm_broadcast(t->comm, owner, t->coef + (b - 1) * n + t->begin[a],
                               sizeof(double) * (size_t)t->count[a]));
    STI_TRY(sti_comm_broadcast(t->comm, owner, t->coef + a * n + t->begin[b],
                               sizeof(double) * (size_t)t->count[b]));
    STI_TRY(sti_comm_broadcast(t->comm, owner, &t->model->rho[pair], sizeof(double)));
    st = sti_comm_broadcast(t->comm, owner, &t->machine[pair], sizeof *t->machine);
out:
    return st;
}

static stint_status run_machines(trainer *t)
{
    t->own = machines_of(t, t->comm ? sti_comm_rank(t->comm) : 0);
    stint_status st = run_own_machines(t);
    if (!t->comm)
        return st;
    if (st != STINT_OK && t->plan->machines == 1 && st != STINT_E_FAILED)
        return sti_comm_give_up(t->comm, st); /* others wait for its sums */
    st = sti_comm_agree(t->comm, st);
    for (int r = 0; r < sti_comm_size(t->comm); r++) {
        const sti_shard_range own = machines_of(t, r);
        for (int64_t i = 0; i < own.count && st == STINT_OK; i++)
            if (t->plan->machines > 1)
                st = pass_pair(t, r, own.first + i);
    }
    return st;
}

/* ---- the model ---- */

static stint_status take_model_arrays(trainer *t, int64_t vectors, int64_t entries)
{
    sti_svm_model *m = t->model;
    m->x.start = sti_alloc_array(vectors + 1, sizeof *m->x.start, "svm.starts");
    m->x.column = sti_alloc_array(entries, sizeof *m->x.column, "svm.columns");
    m->x.value = sti_alloc_array(entries, sizeof *m->x.value, "svm.values");
    m->coef = sti_alloc_array(m->coefs * vectors, sizeof *m->coef, "svm.alpha");
    return m->x.start && m->x.column && m->x.value && m->coef ? STINT_OK
                                                              : STINT_E_MEMORY;
}

/* Rows with an alpha other than 0, as they stand in order[]: their places. */
static int64_t find_vectors(const trainer *t, int64_t *place, int64_t *entries_out)
{
    const sti_csr *x = &t->d->table->x;
    const int64_t n = t->plan->points;
    int64_t vectors = 0;
    *entries_out = 0;
    for (int64_t i = 0; i < n; i++) {
        bool any = false;
        for (int64_t c = 0; c < t->model->coefs; c++)
            any = any || t->coef[c * n + i] != 0;
        if (any) {
            place[vectors++] = i;
            *entries_out += x->start[t->order[i] + 1] - x->start[t->order[i]];
        }
    }
    return vectors;
}

static void fill_model(trainer *t, int64_t vectors, const int64_t *place)
{
    sti_svm_model *m = t->model;
    const sti_csr *x = &t->d->table->x;
    int64_t at = 0;
    for (int64_t i = 0; i < vectors; i++) {
        const int64_t row = t->order[place[i]], from = x->start[row];
        const int64_t entries = x->start[row + 1] - from;
        for (int64_t c = 0; c < m->coefs; c++)
            m->coef[c * vectors + i] = t->coef[c * t->plan->points + place[i]];
        memcpy(m->x.column + at, x->column + from, sizeof(int32_t) * (size_t)entries);
        memcpy(m->x.value + at, x->value + from, sizeof(double) * (size_t)entries);
        at += entries;
        m->x.start[i + 1] = at;
        if (m->class_count)
            m->class_count[t->class_of[row]]++;
    }
    m->x.rows = vectors;
    m->x.columns = x->columns;
}

static stint_status finish_model(trainer *t)
{
    sti_svm_model *m = t->model;
    int64_t entries;
    int64_t *place = sti_alloc_array(t->plan->points, sizeof *place, "svm.places");
    if (!place)
        return STINT_E_MEMORY;
    const int64_t vectors = find_vectors(t, place, &entries);
    m->label = classifies(t->d->type)
                   ? sti_alloc_array(m->classes, sizeof *m->label, "svm.labels")
                   : NULL;
    m->class_count =
        m->label ? sti_alloc_array(m->classes, sizeof *m->class_count, "svm.counts")
                 : NULL;
    stint_status st = take_model_arrays(t, vectors, entries);
    if (classifies(t->d->type) && (!m->label || !m->class_count))
        st = STINT_E_MEMORY;
    if (st == STINT_OK) {
        if (m->label)
            memcpy(m->label, t->label, sizeof(double) * (size_t)m->classes);
        fill_model(t, vectors, place);
        for (int64_t i = 0; i < vectors; i++) /* from places to rows of the table */
            place[i] = t->order[place[i]];
        st = sti_svm_model_keep(m, &t->d->places, place);
    }
    sti_free(place);
    return st;
}

/* ---- life ---- */

static stint_status sort_rows(trainer *t)
{
    const sti_table *table = t->d->table;
    const int64_t n = t->plan->points;
    int64_t classes = 1, at = 0;
    if (classifies(t->d->type)) {
        const stint_status st =
            sti_svm_classes_of(table, t->class_of, t->label, &classes);
        if (st != STINT_OK)
            return st;
    }
    for (int64_t c = 0; c < classes; c++) {
        t->begin[c] = at;
        for (int64_t i = 0; i < n; i++)
            if (t->class_of[i] == c)
                t->order[at++] = i;
        t->count[c] = at - t->begin[c];
    }
    for (int64_t i = 0; t->target && i < n; i++)
        t->target[i] = table->y[i];
    for (int64_t i = 0; t->weight && i < n; i++)
        t->weight[i] = t->d->point_weight[t->order[i]];
    return STINT_OK;
}

static stint_status make_solver(trainer *t, solver *s)
{
    const sti_svm_plan *plan = t->plan;
    const int64_t variables = sti_smo_variables(t->d->type, plan->largest);
    stint_status st;
    STI_TRY(sti_smo_rows_create(t->inner, &t->rows.rows, &t->d->function, plan->largest,
                                (size_t)plan->kept * row_bytes(plan), &s->rows));
    if (shares_sums(t->d, plan))
        STI_TRY(sti_smo_rows_share(s->rows, t->comm));
    STI_TRY(sti_smo_create(t->inner, s->rows, plan->largest, variables, &s->smo));
    s->program.bound = sti_alloc_array(variables, sizeof(double), "svm.bounds");
    s->program.linear = sti_alloc_array(variables, sizeof(double), "svm.linear");
    s->program.alpha = sti_alloc_array(variables, sizeof(double), "svm.alpha");
    s->beta = sti_alloc_array(plan->largest, sizeof(double), "svm.beta");
    s->weight = sti_alloc_array(plan->largest, sizeof(double), "svm.weights");
    st = s->program.bound && s->program.linear && s->program.alpha && s->beta &&
                 s->weight
             ? STINT_OK
             : STINT_E_MEMORY;
out:
    return st;
}

static stint_status begin_rows(trainer *t)
{
    const sti_svm_plan *plan = t->plan;
    const sti_table *table = t->d->table;
    const sti_svm_places *places = &t->d->places;
    const double *mean = places->shared ? sti_svm_shared_mean(places->shared) : NULL;
    if (!places->shared && plan->dense && t->d->function.kind == STI_GRAM_RBF) {
        t->mean = sti_alloc_array(plan->features, sizeof(double), "svm.mean");
        if (!t->mean)
            return STINT_E_MEMORY;
        sti_svm_mean(&table->x, table->first, plan->features, t->mean);
        mean = t->mean;
    }
    stint_status st =
        sti_svm_rows_create(&t->d->function, &table->x, t->order, table->first,
                            plan->features, plan->dense, mean, &t->rows);
    if (st == STINT_OK && places->shared)
        st = sti_svm_rows_keep(sti_svm_shared_kept(places->shared), places->number,
                               t->order, &t->rows);
    return st;
}

static stint_status begin_work(trainer *t)
{
    const sti_svm_plan *plan = t->plan;
    const bool numbers =
        t->d->type == STI_SVM_EPSILON_SVR || t->d->type == STI_SVM_NU_SVR;
    stint_status st;
    t->class_of = sti_alloc_array(plan->points, sizeof *t->class_of, "svm.classes");
    t->order = sti_alloc_array(plan->points, sizeof *t->order, "svm.order");
    t->coef =
        sti_alloc_array(plan->columns * plan->points, sizeof(double), "svm.coefs");
    t->status = sti_alloc_array(plan->machines, sizeof *t->status, "svm.status");
    t->solver = sti_alloc_array(t->solvers, sizeof *t->solver, "svm.solvers");
    t->model->rho = sti_alloc_array(plan->machines, sizeof(double), "svm.rho");
    t->target =
        numbers ? sti_alloc_array(plan->points, sizeof(double), "svm.targets") : NULL;
    t->weight = t->d->point_weight
                    ? sti_alloc_array(plan->points, sizeof(double), "svm.weights")
                    : NULL;
    if (!t->class_of || !t->order || (t->d->point_weight && !t->weight) || !t->coef ||
        !t->status || !t->solver || !t->model->rho || (numbers && !t->target))
        return STINT_E_MEMORY;
    STI_TRY(sort_rows(t));
    STI_TRY(begin_rows(t));
    for (int i = 0; i < t->solvers; i++)
        STI_TRY(make_solver(t, &t->solver[i]));
    st = STINT_OK;
out:
    return st;
}

static void end_work(trainer *t)
{
    for (int i = 0; t->solver && i < t->solvers; i++) {
        solver *s = &t->solver[i];
        sti_smo_destroy(s->smo);
        sti_smo_rows_destroy(s->rows);
        sti_free(s->program.bound);
        sti_free(s->program.linear);
        sti_free(s->program.alpha);
        sti_free(s->beta);
        sti_free(s->weight);
    }
    sti_free(t->solver);
    sti_svm_rows_fini(&t->rows);
    sti_free(t->mean);
    sti_free(t->target);
    sti_free(t->weight);
    sti_free(t->order);
    sti_free(t->class_of);
    sti_free(t->coef);
    sti_free(t->status);
    sti_free(t);
}

stint_status sti_smo_train(const sti_smo_desc *desc, const sti_svm_plan *plan,
                           sti_svm_model *model_out, sti_smo_machine *machine_out)
{
    trainer *t = sti_alloc(sizeof *t, "svm.trainer");
    if (!t)
        return STINT_E_MEMORY;
    *t = (trainer){.d = desc,
                   .plan = plan,
                   .model = model_out,
                   .machine = machine_out,
                   .comm = desc->comm,
                   .team = {desc->threads},
                   .solvers = side_by_side(plan) ? desc->threads : 1};
    t->inner = t->solvers > 1 ? &sti_team_serial : &t->team;
    *model_out =
        (sti_svm_model){.type = desc->type,
                        .function = desc->function,
                        .classes_by = STI_SVM_PAIRS,
                        .classes = plan->classes,
                        .names = classifies(desc->type) ? desc->table->names : NULL,
                        .rho_count = plan->machines,
                        .coefs = plan->columns,
                        .first = desc->table->first};
    stint_status st;
    STI_TRY(begin_work(t));
    STI_TRY(run_machines(t));
    st = finish_model(t);
out:
    end_work(t);
    if (st != STINT_OK)
        sti_svm_model_fini(model_out);
    return st;
}
