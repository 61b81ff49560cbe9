/* The choice among strategies: each is predicted from costs of this host, and the least
 * of analysis plus all planned solves is taken. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"
#include "solve/trsv_cost.h"
#include "solve/trsv_walk.h"

const char *const sti_trsv_strategy_names[STI_TRSV_STRATEGIES] = {
    "auto", "natural", "level", "pool", "superstep", "supernode", "push"};

/* Work of analyses in passes over the matrix as a serial solve makes one: from a copy
 * in level order to supersteps, which try every row some times. */
enum { LEVEL_PASSES = 6, POOL_PASSES = 4, SUPERSTEP_PASSES = 40, PANEL_PASSES = 6 };

typedef struct choosing {
    sti_trsv *plan;
    const sti_trsv_costs *costs;
    double solves;
    double pass_s;  /* of the natural order */
    double level_s; /* predicted, one thread */
    double best_s;  /* of one solve */
} choosing;

/* ---- sizes ---- */

static size_t entries_bytes(const sti_trsv_desc *d)
{
    return (size_t)d->a->start[d->a->rows] * (sizeof(int32_t) + sti_trsv_real_bytes(d));
}

size_t sti_trsv_least_bytes(const sti_trsv_desc *d)
{
    const size_t n = (size_t)d->a->rows, real = sti_trsv_real_bytes(d);
    const size_t single = d->single ? ((size_t)d->a->start[n] + n) * real : 0;
    const size_t pack = d->columns > 1 ? n * (size_t)sti_trsv_block(d) * real : 0;
    return sizeof(sti_trsv) + n * sizeof(int32_t) + single + pack;
}

/* Transposed copy, copy in order, orders and steps, and what finds them. */
size_t sti_trsv_most_bytes(const sti_trsv_desc *d)
{
    const size_t n = (size_t)d->a->rows, real = sti_trsv_real_bytes(d);
    const size_t own = n * real * (size_t)(d->columns > 1 ? sti_trsv_block(d) : 1);
    const size_t turned = d->transpose ? (n + 2) * 8 + (size_t)d->a->start[n] * 12 : 0;
    return sti_trsv_least_bytes(d) + turned + entries_bytes(d) + own +
           n * (2 * 4 + 4 + real) + n * 64;
}

static size_t copy_bytes(const sti_trsv *plan)
{
    const size_t n = (size_t)plan->natural.n, real = sti_trsv_real_bytes(&plan->d);
    size_t bytes = sti_trsv_least_bytes(&plan->d);
    if (plan->turned.start)
        bytes += (n + 2) * 8 + (size_t)plan->turned.start[n] * 12;
    if (plan->steps)
        bytes += (size_t)plan->start[n] * (4 + real) + n * (8 + real) +
                 (size_t)plan->step_room * sizeof *plan->steps +
                 (size_t)plan->wait_room * sizeof *plan->waits +
                 (size_t)plan->order.tasks * (sizeof *plan->progress + 8);
    if (plan->panels)
        bytes += (size_t)plan->panel_values * real + n * real +
                 (size_t)plan->panel_count * sizeof *plan->panels +
                 (size_t)plan->panel_row_count * 4;
    if (plan->own)
        bytes +=
            n * real * (size_t)(plan->d.columns > 1 ? sti_trsv_block(&plan->d) : 1);
    return bytes;
}

/* ---- the triangle ---- */

static stint_status look_natural(sti_trsv *plan)
{
    const sti_csr *a = plan->d.a;
    sti_sparse_natural *t = &plan->natural;
    const int64_t entries = a->start[a->rows];
    plan->count = sti_alloc_array(a->rows, sizeof *plan->count, "trsv.counts");
    if (!plan->count)
        return STINT_E_MEMORY;
    const stint_status st = sti_trsv_look(&plan->d, plan->d.upper, a, plan->count);
    if (st != STINT_OK)
        return st;
    *t = (sti_sparse_natural){.n = a->rows,
                              .start = a->start,
                              .column = a->column,
                              .count = plan->count,
                              .value = a->value,
                              .upper = plan->d.upper,
                              .unit = plan->d.unit};
    if (plan->d.single) {
        /* Turned, a unit triangle has its diagonal, too. */
        plan->single = sti_alloc_array(entries + a->rows, sizeof(float), "trsv.floats");
        if (!plan->single)
            return STINT_E_MEMORY;
        for (int64_t e = 0; e < entries; e++)
            plan->single[e] = (float)a->value[e];
        t->value = plan->single;
    }
    return STINT_OK;
}

/* The transposed triangle in the place of the stored one. */
static stint_status turn(sti_trsv *plan)
{
    sti_sparse_natural *t = &plan->natural;
    stint_status st = sti_trsv_turn(t, plan->d.a, &plan->turned);
    if (st != STINT_OK)
        return st;
    const sti_csr *a = &plan->turned;
    t->start = a->start;
    t->column = a->column;
    t->value = a->value;
    t->upper = !t->upper;
    for (int64_t i = 0; i < a->rows; i++)
        plan->count[i] = (int32_t)(a->start[i + 1] - a->start[i] - 1);
    if (plan->d.single) {
        for (int64_t e = 0; e < a->start[a->rows]; e++)
            plan->single[e] = (float)a->value[e];
        t->value = plan->single;
    }
    return STINT_OK;
}

/* ---- strategies made ---- */

static stint_status make_copy(sti_trsv *plan)
{
    stint_status st = sti_trsv_copy(plan);
    return st == STINT_OK ? sti_trsv_make_steps(plan) : st;
}

static stint_status make_level(choosing *c)
{
    sti_trsv *plan = c->plan;
    stint_status st = STINT_OK;
    sti_trsv_drop_copy(plan);
    if (!plan->order.row)
        st = sti_trsv_level_order(&plan->natural, &plan->order);
    if (st == STINT_OK)
        st = sti_trsv_whole(&plan->order, plan->natural.n);
    if (st == STINT_OK)
        st = make_copy(plan);
    plan->info.strategy = STI_TRSV_LEVEL;
    c->best_s = c->level_s;
    return st;
}

/* Tasks so that a level has two a thread, of 16 rows at least. */
static int64_t tasks_for(const sti_trsv *plan)
{
    const int64_t n = plan->natural.n, threads = plan->d.threads;
    const int64_t levels = plan->order.levels > 0 ? plan->order.levels : 1;
    int64_t rows = n / levels / (2 * threads);
    rows = rows < 16 ? 16 : rows;
    if (plan->d.tasks > 0)
        return plan->d.tasks < INT32_MAX / threads / 2 ? plan->d.tasks * threads
                                                       : INT32_MAX / 2;
    return n / rows > 1 ? n / rows : 1;
}

static stint_status make_pool(choosing *c)
{
    sti_trsv *plan = c->plan;
    stint_status st = STINT_OK;
    sti_trsv_drop_copy(plan);
    if (!plan->order.row)
        st = sti_trsv_level_order(&plan->natural, &plan->order);
    if (st == STINT_OK) {
        const int64_t most = plan->natural.n > 0 ? plan->natural.n : 1;
        const int64_t tasks = tasks_for(plan);
        st = sti_trsv_cut(&plan->natural, tasks < most ? tasks : most, &plan->order);
    }
    if (st == STINT_OK)
        st = make_copy(plan);
    plan->info.strategy = STI_TRSV_POOL;
    if (st == STINT_OK)
        c->best_s = sti_trsv_predict_tasks(c->costs, plan, c->level_s);
    return st;
}

static stint_status make_superstep(choosing *c)
{
    sti_trsv *plan = c->plan;
    const double handoff = c->costs->handoff_s > 0 ? c->costs->handoff_s : 1e-7;
    sti_trsv_drop_copy(plan);
    /* A superstep's end costs about what ten lines cost that go from core to core. */
    stint_status st =
        sti_trsv_supersteps(&plan->natural, plan->d.threads,
                            10 * handoff / c->costs->entry_s, &plan->order);
    if (st == STINT_OK)
        st = make_copy(plan);
    plan->info.strategy = STI_TRSV_SUPERSTEP;
    if (st == STINT_OK) {
        const double serial =
            sti_trsv_predict_serial(c->costs, &plan->d, &plan->natural, &plan->order);
        c->best_s = sti_trsv_predict_tasks(c->costs, plan, serial);
    }
    return st;
}

static stint_status make_supernode(choosing *c)
{
    sti_trsv *plan = c->plan;
    sti_trsv_drop_copy(plan);
    const stint_status st = sti_trsv_make_panels(plan);
    plan->info.strategy = STI_TRSV_SUPERNODE;
    if (st == STINT_OK)
        c->best_s = sti_trsv_predict_panels(c->costs, plan);
    return st;
}

static void drop_panels(sti_trsv *plan)
{
    sti_free(plan->panels);
    sti_free(plan->panel_rows);
    sti_free(plan->panel_value);
    plan->panels = NULL;
    plan->panel_rows = NULL;
    plan->panel_value = NULL;
    sti_trsv_drop_copy(plan);
}

/* ---- the choice ---- */

static bool has_room(const sti_trsv *plan)
{
    const size_t room = plan->d.room_bytes;
    return room == 0 || sti_trsv_most_bytes(&plan->d) <= room;
}

static stint_status stay_natural(choosing *c)
{
    c->plan->info.strategy = STI_TRSV_NATURAL;
    c->best_s = c->pass_s;
    return STINT_OK;
}

/* Do most entries stand beside the one before them? Where there are panels they do; a
 * sample of rows is looked at. */
static bool looks_dense(const sti_sparse_natural *t)
{
    const int64_t step = t->n / 4096 + 1;
    int64_t entries = 0, beside = 0, rows = 0;
    for (int64_t i = 0; i < t->n; i += step, rows++)
        for (int64_t k = 0; k < t->count[i]; k++, entries++) {
            const int64_t e = sti_trsv_entry(t, i, k);
            const int64_t before = k > 0 ? t->column[sti_trsv_entry(t, i, k - 1)] : -9;
            const int64_t apart = t->column[e] - before;
            beside += apart == 1 || apart == -1;
        }
    return entries > 8 * rows && 10 * beside > 7 * entries;
}

/* What the best order could take at least: every row as a lane, nothing waits. */
static double floor_of(const choosing *c)
{
    const sti_trsv *plan = c->plan;
    double entries = 0;
    for (int64_t i = 0; i < plan->natural.n; i++)
        entries += plan->natural.count[i];
    const sti_trsv_costs *k = c->costs;
    const double entry = fmin(k->entry_s, k->group_entry_s);
    const double row = fmin(k->row_s, k->group_row_s);
    return (entries * entry + (double)plan->natural.n * row) / plan->d.threads;
}

/* Would an analysis of so many passes pay, if a solve then took `seconds`? */
static bool pays(const choosing *c, double seconds, double passes)
{
    return passes * c->pass_s + c->solves * seconds < c->solves * c->best_s;
}

static stint_status try_supernode(choosing *c)
{
    sti_trsv *plan = c->plan;
    if (!looks_dense(&plan->natural) || !pays(c, c->best_s / 3, PANEL_PASSES))
        return STINT_OK;
    const double before = c->best_s;
    const sti_trsv_strategy other = plan->info.strategy;
    const stint_status st = make_supernode(c);
    if (st != STINT_OK || c->best_s < before)
        return st;
    drop_panels(plan);
    plan->info.strategy = other;
    c->best_s = before;
    return STINT_OK;
}

/* The pool, for a level order that is there; or that order again. */
static stint_status try_pool(choosing *c)
{
    sti_trsv *plan = c->plan;
    const double handoff = c->costs->handoff_s;
    const double ideal =
        c->level_s / plan->d.threads + (double)plan->order.levels * handoff;
    if (plan->d.threads < 2 || handoff <= 0 || !pays(c, ideal, POOL_PASSES))
        return STINT_OK;
    stint_status st = make_pool(c);
    if (st == STINT_OK && c->best_s >= 0.85 * c->level_s)
        st = make_level(c);
    return st;
}

static stint_status try_superstep(choosing *c)
{
    sti_trsv *plan = c->plan;
    const double before = c->best_s;
    const sti_trsv_strategy other = plan->info.strategy;
    if (plan->d.threads < 2 || c->costs->handoff_s <= 0 ||
        !pays(c, c->level_s / plan->d.threads, SUPERSTEP_PASSES))
        return STINT_OK;
    stint_status st = make_superstep(c);
    if (st != STINT_OK || c->best_s < 0.85 * before)
        return st;
    sti_free(plan->order.row); /* level order anew */
    plan->order.row = NULL;
    return other == STI_TRSV_POOL ? make_pool(c) : make_level(c);
}

static stint_status choose(choosing *c)
{
    sti_trsv *plan = c->plan;
    stint_status st = stay_natural(c);
    if (!has_room(plan) || plan->natural.n == 0)
        return st;
    st = try_supernode(c);
    if (st != STINT_OK || plan->panels || !pays(c, floor_of(c), LEVEL_PASSES))
        return st;
    st = sti_trsv_level_order(&plan->natural, &plan->order);
    if (st != STINT_OK)
        return st;
    c->level_s =
        sti_trsv_predict_serial(c->costs, &plan->d, &plan->natural, &plan->order);
    const double natural_s = c->best_s;
    c->best_s = fmin(c->level_s, natural_s);
    st = try_pool(c);
    if (st == STINT_OK && !plan->steps && c->level_s < 0.97 * natural_s)
        st = make_level(c);
    if (st == STINT_OK)
        st = try_superstep(c);
    return st;
}

static stint_status refuse_room(const sti_trsv *plan)
{
    char need[32], has[32];
    (void)snprintf(need, sizeof need, "%s",
                   sti_bytes_text(sti_trsv_most_bytes(&plan->d)));
    (void)snprintf(has, sizeof has, "%s", sti_bytes_text(plan->d.room_bytes));
    return sti_fail(STINT_E_BUDGET,
                    "strategy %s takes up to %s and there is room for %s; natural "
                    "takes none, --memory of %zu bytes more would do",
                    sti_trsv_strategy_names[plan->d.strategy], need, has,
                    sti_trsv_most_bytes(&plan->d) - plan->d.room_bytes);
}

static stint_status make_asked(choosing *c)
{
    sti_trsv *plan = c->plan;
    const sti_trsv_strategy asked = plan->d.strategy;
    if (asked == STI_TRSV_NATURAL)
        return stay_natural(c);
    if (!has_room(plan))
        return refuse_room(plan);
    if (asked == STI_TRSV_SUPERNODE)
        return make_supernode(c);
    stint_status st = sti_trsv_level_order(&plan->natural, &plan->order);
    if (st != STINT_OK)
        return st;
    c->level_s =
        sti_trsv_predict_serial(c->costs, &plan->d, &plan->natural, &plan->order);
    return asked == STI_TRSV_LEVEL  ? make_level(c)
           : asked == STI_TRSV_POOL ? make_pool(c)
                                    : make_superstep(c);
}

/* A transposed triangle is pushed where a copy has no room or does not pay. */
static bool is_pushed(const choosing *c)
{
    const sti_trsv_desc *d = &c->plan->d;
    if (!d->transpose)
        return false;
    if (d->strategy == STI_TRSV_PUSH)
        return true;
    return d->strategy == STI_TRSV_NATURAL ||
           (d->strategy == STI_TRSV_AUTO && (!has_room(c->plan) || c->solves < 4));
}

static stint_status run(choosing *c)
{
    sti_trsv *plan = c->plan;
    stint_status st = look_natural(plan);
    if (st != STINT_OK)
        return st;
    if (is_pushed(c)) {
        plan->info.strategy = STI_TRSV_PUSH;
        c->best_s = sti_trsv_predict_push(c->costs, &plan->natural);
        return STINT_OK;
    }
    if (plan->d.transpose)
        st = turn(plan);
    if (st != STINT_OK)
        return st;
    c->pass_s = sti_trsv_predict_serial(c->costs, &plan->d, &plan->natural, NULL);
    return plan->d.strategy == STI_TRSV_AUTO ? choose(c) : make_asked(c);
}

/* ---- what is called ---- */

static stint_status alloc_vectors(sti_trsv *plan)
{
    const int64_t n = plan->natural.n, block = sti_trsv_block(&plan->d);
    const size_t real = sti_trsv_real_bytes(&plan->d);
    const size_t many = plan->d.columns > 1 ? (size_t)block * real : real;
    if (plan->steps || plan->panels) {
        plan->own = sti_alloc_array(n, many, "trsv.own");
        if (!plan->own)
            return STINT_E_MEMORY;
    }
    if (plan->d.columns > 1) {
        plan->pack = sti_alloc_array(n, (size_t)block * real, "trsv.pack");
        if (!plan->pack)
            return STINT_E_MEMORY;
    }
    return STINT_OK;
}

static void finish(choosing *c)
{
    sti_trsv *plan = c->plan;
    sti_trsv_info *info = &plan->info;
    const bool pooled =
        info->strategy == STI_TRSV_POOL || info->strategy == STI_TRSV_SUPERSTEP;
    info->levels = plan->order.levels;
    info->widest = plan->order.widest;
    info->tasks = plan->steps ? plan->order.tasks : 1;
    info->waits = plan->wait_count;
    info->threads = pooled ? plan->d.threads : 1;
    info->bytes = copy_bytes(plan);
    /* A block of right-hand sides passes for about two and a half of one. */
    const int64_t block = sti_trsv_block(&plan->d);
    const int64_t blocks = (plan->d.columns + block - 1) / block;
    info->predicted_s = c->best_s * (plan->d.columns > 1 ? 2.5 * (double)blocks : 1);
    sti_free(plan->order.row);
    sti_free(plan->order.level);
    plan->order.row = plan->order.level = NULL;
}

static stint_status check_shape(const sti_trsv_desc *d)
{
    const char *name = d->name ? d->name : "the matrix";
    if (d->a->rows != d->a->columns)
        return sti_fail(STINT_E_INPUT,
                        "%s is %" PRId64 " x %" PRId64 "; a square one was wanted",
                        name, d->a->rows, d->a->columns);
    if (d->a->start[d->a->rows] > INT32_MAX || d->a->rows > INT32_MAX - 1)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s has %" PRId64 " entries; %d at most "
                        "are taken",
                        name, d->a->start[d->a->rows], INT32_MAX);
    return STINT_OK;
}

/* ---- a trial ---- */

enum { TRIAL_SOLVES = 50, TRIAL_RUNS = 3 };

/* Seconds of a solve of zeros, the middle one of three. */
static double time_solve(sti_trsv *plan, void *x)
{
    double seconds[TRIAL_RUNS];
    for (int run = 0; run < TRIAL_RUNS; run++) {
        const int64_t start = sti_clock_ns();
        sti_trsv_solve(plan, 1, x, x);
        seconds[run] = sti_seconds_since(start);
    }
    const double least = fmin(fmin(seconds[0], seconds[1]), seconds[2]);
    const double most = fmax(fmax(seconds[0], seconds[1]), seconds[2]);
    return seconds[0] + seconds[1] + seconds[2] - least - most;
}

/* The plan as rows lie, which takes what it has made back. */
static void fall_back(choosing *c)
{
    sti_trsv *plan = c->plan;
    drop_panels(plan);
    sti_trsv_order_fini(&plan->order);
    sti_free(plan->own);
    plan->own = NULL;
    plan->info.strategy = STI_TRSV_NATURAL;
}

/* Where many solves are planned and memory is not short, the plan is tried, and so are
 * rows as they lie: what a model has wrong of this matrix shows. The model's choice
 * stands unless it loses. No memory for the trial is no failure. */
static void try_plan(choosing *c)
{
    sti_trsv *plan = c->plan;
    const bool natural = plan->info.strategy == STI_TRSV_NATURAL;
    if (plan->d.room_bytes > 0 || c->solves < TRIAL_SOLVES || plan->natural.n == 0 ||
        plan->d.strategy == STI_TRSV_PUSH)
        return;
    void *x =
        sti_alloc_array(plan->natural.n, sti_trsv_real_bytes(&plan->d), "trsv.trial");
    if (!x)
        return;
    plan->info.threads = plan->order.tasks > 1 ? plan->d.threads : 1;
    c->best_s = time_solve(plan, x);
    if (!natural && plan->d.strategy == STI_TRSV_AUTO && plan->d.columns == 1 &&
        plan->info.strategy != STI_TRSV_PUSH) {
        sti_trsv as_it_lies = {.d = plan->d, .natural = plan->natural};
        as_it_lies.info = (sti_trsv_info){.strategy = STI_TRSV_NATURAL, .threads = 1};
        const double seconds = time_solve(&as_it_lies, x);
        if (seconds < 0.97 * c->best_s) {
            fall_back(c);
            c->best_s = seconds;
        }
    }
    sti_free(x);
}

stint_status sti_trsv_analyse(const sti_trsv_desc *desc, sti_trsv **plan_out)
{
    stint_status st = check_shape(desc);
    if (st != STINT_OK)
        return st;
    const sti_trsv_costs *costs = sti_trsv_costs_host(desc->room_bytes > 0);
    const int64_t start = sti_clock_ns();
    sti_trsv *plan = sti_alloc(sizeof *plan, "trsv.plan");
    if (!plan)
        return STINT_E_MEMORY;
    plan->d = *desc;
    plan->d.threads = desc->threads > 0 ? desc->threads : 1;
    plan->d.columns = desc->columns > 0 ? desc->columns : 1;
    choosing c = {.plan = plan,
                  .costs = costs,
                  .solves = desc->solves > 0 ? (double)desc->solves : 1e6};
    st = run(&c);
    if (st == STINT_OK)
        st = alloc_vectors(plan);
    if (st != STINT_OK) {
        sti_trsv_destroy(plan);
        return st;
    }
    try_plan(&c);
    finish(&c);
    plan->info.analysis_s = sti_seconds_since(start);
    *plan_out = plan;
    return STINT_OK;
}

void sti_trsv_destroy(sti_trsv *plan)
{
    if (!plan)
        return;
    drop_panels(plan);
    sti_trsv_order_fini(&plan->order);
    sti_free(plan->turned.start);
    sti_free(plan->turned.column);
    sti_free(plan->turned.value);
    sti_free(plan->count);
    sti_free(plan->single);
    sti_free(plan->own);
    sti_free(plan->pack);
    sti_free(plan);
}

const sti_trsv_info *sti_trsv_info_of(const sti_trsv *plan)
{
    return &plan->info;
}

stint_status sti_trsv_refill(sti_trsv *plan)
{
    if (plan->panels) {
        drop_panels(plan);
        return sti_trsv_make_panels(plan);
    }
    return plan->steps ? sti_trsv_fill_copy(plan) : STINT_OK;
}
