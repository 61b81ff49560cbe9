#include "svm/svm_train.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "net/shard_tree.h"
#include "svm/svm_machine.h"
#include "svm/svm_rows.h"

/* Machines that one thread, or all of them together, solve one after another. */
typedef struct worker {
    struct trainer *t;
    int index;
    sti_svm_machine machine;
    sti_svm_train_result result; /* of its machines */
    int64_t failed;              /* the first of its machines that did; -1: none */
    stint_status status;
    char words[1024];
} worker;

/* A training at work. */
typedef struct trainer {
    const sti_svm_train_desc *d;
    const sti_svm_plan *plan;
    sti_svm_model *model;
    sti_team team; /* of workers, where there are several; else of all threads */
    sti_svm_rows rows;
    sti_kernel_source source;
    sti_kernel_store *store;
    sti_row_range *ranges; /* [plan->ranges] */
    int32_t *class_of;     /* [points] */
    double *mean;          /* [features], or NULL */
    double *part;          /* [machines] of the objective */
    worker *workers;       /* [plan->workers] */
    sti_shard_range own;   /* this rank's machines */
    atomic_llong solved;
} trainer;

/* C of a row. */
static double cost_of(const trainer *t, int64_t row)
{
    const sti_svm_train_desc *d = t->d;
    return d->c * (d->weight ? d->weight[t->class_of[row]] : 1) *
           (d->point_weight ? d->point_weight[row] : 1);
}

/* The rows of every class behind one another, in their order within one. */
static void sort_rows(trainer *t)
{
    sti_svm_model *m = t->model;
    int64_t at = 0;
    for (int64_t c = 0; c < m->classes; c++)
        for (int64_t i = 0; i < t->plan->points; i++)
            if (t->class_of[i] == c) {
                m->order[at++] = i;
                m->class_count[c]++;
            }
}

static void on_iteration(void *user, int64_t iteration, double relative)
{
    worker *w = user;
    trainer *t = w->t;
    if (iteration <= STI_SVM_HISTORY && !(w->result.history[iteration - 1] >= relative))
        w->result.history[iteration - 1] = relative;
    if (w->index == 0 && t->d->progress)
        t->d->progress(t->d->progress_user, atomic_load(&t->solved), t->plan->machines,
                       iteration, relative);
}

/* The solutions of a machine out of, or into, what is kept of the last training. */
static void move_start(worker *w, const sti_kernel_ranges *ranges, int64_t columns,
                       bool keep)
{
    const trainer *t = w->t;
    sti_svm_start_move(t->d->start, t->plan->points, t->plan->machines > 1,
                       t->plan->classes, ranges, columns, w->machine.x, keep);
}

/* Solve for `columns` right-hand sides, the last of them all ones. */
static stint_status solve(worker *w, const sti_kernel_ranges *ranges, int64_t columns)
{
    trainer *t = w->t;
    const sti_svm_train_desc *d = t->d;
    const int64_t n = ranges->rows[0].count + ranges->rows[1].count;
    sti_krylov_result result;
    for (int64_t i = 0; i < n; i++)
        w->machine.b[(columns - 1) * n + i] = 1;
    const bool warm = d->start && d->start->filled;
    if (warm)
        move_start(w, ranges, columns, false);
    const sti_svm_machine_goal goal = {.tolerance = d->tolerance,
                                       .iterations = d->iterations > 0 ? d->iterations
                                                                       : 10 * n + 1000,
                                       .rank = sti_svm_plan_rank(d, t->plan, n),
                                       .warm = warm,
                                       .progress = on_iteration,
                                       .progress_user = w};
    stint_status st =
        sti_svm_machine_solve(&w->machine, ranges, columns, &goal, &result);
    if (st == STINT_E_FAILED && w->machine.single)
        st = sti_fail_context(st, "tiles in float, where --precision double may do");
    if (st == STINT_OK && d->start)
        move_start(w, ranges, columns, true);
    if (result.iterations > w->result.iterations)
        w->result.iterations = result.iterations;
    w->result.residual = fmax(w->result.residual, result.residual);
    atomic_fetch_add(&t->solved, 1);
    return st;
}

static double sum_of(int64_t n, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* s of column c becomes alpha = s - b t; rho = -b is returned. */
static double finish_column(worker *w, int64_t n, int64_t columns, int64_t c,
                            double *objective)
{
    double *s = w->machine.x + c * n;
    const double *ones = w->machine.x + (columns - 1) * n, *y = w->machine.b + c * n;
    const double b = sum_of(n, s) / sum_of(n, ones);
    for (int64_t i = 0; i < n; i++) {
        s[i] = fma(-b, ones[i], s[i]);
        *objective += 0.5 * s[i] * y[i];
    }
    return -b;
}

/* The classes of pair number `pair` in the order 0-1, 0-2, ..., 1-2, ... */
static void classes_of_pair(int64_t classes, int64_t pair, int64_t *a_out,
                            int64_t *b_out)
{
    int64_t a = 0;
    while (pair >= classes - 1 - a)
        pair -= classes - 1 - a++;
    *a_out = a;
    *b_out = a + 1 + pair;
}

/* Class a is +1, class b -1. */
static stint_status train_pair(worker *w, int64_t pair)
{
    trainer *t = w->t;
    sti_svm_model *m = t->model;
    int64_t a, b, at = 0;
    classes_of_pair(m->classes, pair, &a, &b);
    const sti_kernel_ranges ranges = {{t->ranges[a], t->ranges[b]}, {a, b}};
    for (int r = 0; r < 2; r++)
        for (int64_t i = 0; i < ranges.rows[r].count; i++, at++) {
            w->machine.b[at] = r == 0 ? 1 : -1;
            w->machine.ridge[at] = 1 / cost_of(t, m->order[ranges.rows[r].begin + i]);
        }
    const stint_status st = solve(w, &ranges, 2);
    if (st != STINT_OK)
        return st;
    m->rho[pair] = finish_column(w, at, 2, 0, &t->part[pair]);
    memcpy(m->coef + (b - 1) * t->plan->points + ranges.rows[0].begin, w->machine.x,
           sizeof(double) * (size_t)ranges.rows[0].count);
    memcpy(m->coef + a * t->plan->points + ranges.rows[1].begin,
           w->machine.x + ranges.rows[0].count,
           sizeof(double) * (size_t)ranges.rows[1].count);
    return STINT_OK;
}

/* One matrix for all columns: a class each against the rest, the targets, or the one
 * pair that there is. */
static stint_status train_whole(worker *w)
{
    trainer *t = w->t;
    sti_svm_model *m = t->model;
    const int64_t n = t->plan->points, columns = t->plan->columns;
    const sti_kernel_ranges ranges = {{{0, n}, {n, 0}}, {0, 0}};
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = m->order[i];
        const int32_t class = t->class_of[row];
        w->machine.ridge[i] = 1 / cost_of(t, row);
        for (int64_t c = 0; c + 1 < columns; c++)
            w->machine.b[c * n + i] = t->d->regression ? t->d->table->y[row]
                                      : class == c     ? 1
                                                       : -1;
    }
    const stint_status st = solve(w, &ranges, columns);
    for (int64_t c = 0; st == STINT_OK && c + 1 < columns; c++) {
        m->rho[c] = finish_column(w, n, columns, c, &t->part[0]);
        memcpy(m->coef + c * n, w->machine.x + c * n, sizeof(double) * (size_t)n);
    }
    return st;
}

static void machine_piece(void *arg, int64_t piece, int index)
{
    trainer *t = arg;
    worker *w = &t->workers[index];
    if (w->failed >= 0)
        return;
    const stint_status st =
        t->plan->machines > 1 ? train_pair(w, t->own.first + piece) : train_whole(w);
    if (st == STINT_OK)
        return;
    w->failed = piece;
    w->status = st;
    (void)snprintf(w->words, sizeof w->words, "%s", stint_last_error());
}

/* The workers' results as one, and the failure of the first machine that failed. */
static stint_status join_workers(trainer *t, sti_svm_train_result *result)
{
    const worker *first = NULL;
    for (int64_t i = 0; i < t->plan->workers; i++) {
        const worker *w = &t->workers[i];
        const sti_svm_train_result *r = &w->result;
        result->iterations =
            r->iterations > result->iterations ? r->iterations : result->iterations;
        result->residual = fmax(result->residual, r->residual);
        for (int k = 0; k < STI_SVM_HISTORY; k++)
            result->history[k] = fmax(result->history[k], r->history[k]);
        if (w->failed >= 0 && (!first || w->failed < first->failed))
            first = w;
    }
    return first ? sti_fail(first->status, "%s", first->words) : STINT_OK;
}

/* Machines of a rank: all, but where several are shared out. */
static sti_shard_range machines_of(const trainer *t, int rank)
{
    const sti_shard_range all = {0, t->plan->machines};
    return t->d->comm && t->plan->machines > 1
               ? sti_shard_part(all, sti_comm_size(t->d->comm), rank)
               : all;
}

/* Alphas, rho and objective of a pair from the rank that has them. */
static stint_status pass_pair(trainer *t, int owner, int64_t pair)
{
    sti_svm_model *m = t->model;
    int64_t a, b;
    stint_status st;
    classes_of_pair(m->classes, pair, &a, &b);
    const int64_t points = t->plan->points;
    const sti_row_range u = t->ranges[a], v = t->ranges[b];
    STI_TRY(sti_comm_broadcast(t->d->comm, owner, m->coef + (b - 1) * points + u.begin,
                               sizeof(double) * (size_t)u.count));
    STI_TRY(sti_comm_broadcast(t->d->comm, owner, m->coef + a * points + v.begin,
                               sizeof(double) * (size_t)v.count));
    STI_TRY(sti_comm_broadcast(t->d->comm, owner, &m->rho[pair], sizeof(double)));
    st = sti_comm_broadcast(t->d->comm, owner, &t->part[pair], sizeof(double));
out:
    return st;
}

/* The largest of all ranks of what is counted. */
static stint_status pass_result(sti_comm *comm, sti_svm_train_result *result)
{
    for (int r = 0; r < sti_comm_size(comm); r++) {
        sti_svm_train_result *other = sti_alloc(sizeof *other, "svm.result");
        if (!other)
            return STINT_E_MEMORY;
        *other = *result;
        const stint_status st = sti_comm_broadcast(comm, r, other, sizeof *other);
        if (st == STINT_OK) {
            if (other->iterations > result->iterations)
                result->iterations = other->iterations;
            result->residual = fmax(result->residual, other->residual);
            for (int k = 0; k < STI_SVM_HISTORY; k++)
                result->history[k] = fmax(result->history[k], other->history[k]);
        }
        sti_free(other);
        if (st != STINT_OK)
            return st;
    }
    return STINT_OK;
}

/* Every rank's machines to all. */
static stint_status pass_machines(trainer *t, sti_svm_train_result *result)
{
    stint_status st = STINT_OK;
    for (int r = 0; r < sti_comm_size(t->d->comm); r++) {
        const sti_shard_range own = machines_of(t, r);
        for (int64_t i = 0; i < own.count && st == STINT_OK; i++)
            st = pass_pair(t, r, own.first + i);
    }
    return st == STINT_OK ? pass_result(t->d->comm, result) : st;
}

static stint_status train_machines(trainer *t, sti_svm_train_result *result)
{
    const bool shared = t->d->comm && t->plan->machines > 1;
    t->own = machines_of(t, t->d->comm ? sti_comm_rank(t->d->comm) : 0);
    if (t->plan->workers > 1)
        sti_team_take(&t->team, t->own.count, machine_piece, t);
    else
        for (int64_t i = 0; i < t->own.count; i++)
            machine_piece(t, i, 0);
    stint_status st = join_workers(t, result);
    if (shared && (st = sti_comm_agree(t->d->comm, st)) == STINT_OK)
        st = pass_machines(t, result);
    for (int64_t i = 0; i < t->plan->machines; i++)
        result->objective += t->part[i];
    return st;
}

/* The model's arrays, all but alphas and rho filled. */
static stint_status begin_model(trainer *t)
{
    const sti_svm_train_desc *d = t->d;
    const sti_table *table = d->table;
    sti_svm_model *m = t->model;
    double label[STI_SVM_CLASSES_MOST] = {0};
    *m = (sti_svm_model){.type = d->regression ? STI_SVM_EPSILON_SVR : STI_SVM_C_SVC,
                         .function = d->function,
                         .classes_by = d->regression ? STI_SVM_PAIRS : d->classes_by,
                         .classes = t->plan->classes,
                         .names = d->regression ? NULL : table->names,
                         .x = table->x,
                         .first = table->first,
                         .borrows = true};
    const bool rest = m->classes_by == STI_SVM_REST;
    m->coefs = d->regression ? 1 : rest ? m->classes : m->classes - 1;
    m->rho_count = d->regression ? 1 : rest ? m->classes : t->plan->machines;
    m->rho = sti_alloc_array(m->rho_count, sizeof *m->rho, "svm.rho");
    m->order = sti_alloc_array(t->plan->points, sizeof *m->order, "svm.order");
    m->coef = sti_alloc_array(m->coefs * t->plan->points, sizeof *m->coef, "svm.alpha");
    m->class_count = sti_alloc_array(m->classes, sizeof *m->class_count, "svm.counts");
    t->class_of = sti_alloc_array(t->plan->points, sizeof *t->class_of, "svm.classes");
    if (!d->regression)
        m->label = sti_alloc_array(m->classes, sizeof *m->label, "svm.labels");
    if (!m->rho || !m->order || !m->coef || !m->class_count || !t->class_of ||
        (!d->regression && !m->label))
        return STINT_E_MEMORY;
    stint_status st = sti_svm_model_keep(m, &d->places, NULL);
    if (st == STINT_OK && !d->regression) {
        int64_t classes;
        st = sti_svm_classes_of(table, t->class_of, label, &classes);
        memcpy(m->label, label, sizeof(double) * (size_t)m->classes);
    }
    if (st == STINT_OK)
        sort_rows(t);
    return st;
}

/* Where the rows of a machine stand: all of them, or a class each. */
static void begin_ranges(trainer *t)
{
    int64_t at = 0;
    t->ranges[0] = (sti_row_range){0, t->plan->points};
    for (int64_t r = 0; t->plan->ranges > 1 && r < t->plan->ranges; r++) {
        t->ranges[r] = (sti_row_range){at, t->model->class_count[r]};
        at += t->model->class_count[r];
    }
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
    t->source = (sti_kernel_source){&t->rows.rows, &t->d->function, t->d->single};
    stint_status st =
        sti_svm_rows_create(&t->d->function, &table->x, t->model->order, table->first,
                            plan->features, plan->dense, mean, &t->rows);
    if (st == STINT_OK && places->shared)
        st = sti_svm_rows_keep(sti_svm_shared_kept(places->shared), places->number,
                               t->model->order, &t->rows);
    return st;
}

static stint_status begin_work(trainer *t)
{
    const sti_svm_plan *plan = t->plan;
    const sti_team all = {t->d->threads};
    const sti_svm_machine_size size = {
        plan->largest,  plan->columns, plan->rank,
        plan->crossing, plan->threads, plan->machines > 1 ? NULL : t->d->comm,
        t->d->device};
    stint_status st = STINT_E_MEMORY;
    t->ranges = sti_alloc_array(plan->ranges, sizeof *t->ranges, "svm.ranges");
    t->part = sti_alloc_array(plan->machines, sizeof *t->part, "svm.objective");
    t->workers = sti_alloc_array(plan->workers, sizeof *t->workers, "svm.workers");
    if (!t->ranges || !t->part || !t->workers)
        goto out;
    begin_ranges(t);
    STI_TRY(begin_rows(t));
    STI_TRY(sti_kernel_store_create(&t->source, plan->ranges, t->ranges, plan->stored,
                                    plan->first_band, &t->store));
    STI_TRY(sti_kernel_store_fill(t->store, &all));
    for (int i = 0; i < plan->workers; i++) {
        worker *w = &t->workers[i];
        *w = (worker){.t = t, .index = i, .failed = -1};
        STI_TRY(sti_svm_machine_init(&w->machine, &t->source, t->store, size));
    }
out:
    return st;
}

static void end_work(trainer *t)
{
    for (int64_t i = 0; t->workers && i < t->plan->workers; i++)
        sti_svm_machine_fini(&t->workers[i].machine);
    sti_free(t->workers);
    sti_free(t->ranges);
    sti_free(t->part);
    sti_free(t->class_of);
    sti_free(t->mean);
    sti_kernel_store_destroy(t->store);
    sti_svm_rows_fini(&t->rows);
}

stint_status sti_svm_train(const sti_svm_train_desc *desc, const sti_svm_plan *plan,
                           sti_svm_model *model_out, sti_svm_train_result *result_out)
{
    trainer t = {
        .d = desc, .plan = plan, .model = model_out, .team = {(int)plan->workers}};
    const int64_t start = sti_clock_ns();
    *result_out = (sti_svm_train_result){0};
    stint_status st;
    STI_TRY(begin_model(&t));
    STI_TRY(begin_work(&t));
    result_out->kernel_seconds = sti_seconds_since(start);
    STI_TRY(train_machines(&t, result_out));
    if (desc->start)
        desc->start->filled = true;
out:
    end_work(&t);
    result_out->seconds = sti_seconds_since(start);
    if (st != STINT_OK)
        sti_svm_model_fini(model_out);
    return st;
}
