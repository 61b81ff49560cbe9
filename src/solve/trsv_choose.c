/* The choice among strategies: each is predicted from costs of this host, and the least
 * of analysis plus all planned solves is taken. */
#include "solve/trsv_choose.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"
#include "solve/trsv_stretch.h"

/* Work of analyses in passes over the matrix as a serial solve makes one: from a copy
 * in level order to supersteps, which try every row some times. For no more solves than
 * the least of them none can pay, and none is looked at. */
enum { LEVEL_PASSES = 12, POOL_PASSES = 10, SUPERSTEP_PASSES = 40, PANEL_PASSES = 10 };
enum { FEW_SOLVES = PANEL_PASSES };

enum { NEAR_BYTES = 1 << 19 };

/* One thread's seconds that are too short to be shared. */
#define SHARED_LEAST_S 1e-4
/* What stretches are to be worth then, beside the order of levels. */
#define NEARNESS 0.7
/* What several threads must be predicted to take of one's, where they are not tried. */
#define SHARED_MOST 0.85

/* ---- orders ---- */

/* Stretches so long are tried for one thread: short ones lie near, are copied fast, and
 * long ones have more to do at once. */
enum { SHORT_ROWS = 8192, LONG_ROWS = 65536 };

static stint_status find_by_level(sti_trsv_choice *c)
{
    sti_trsv_order *o = &c->plan->order;
    stint_status st = STINT_OK;
    if (c->by_level)
        return st;
    st = sti_trsv_level_order(&c->plan->natural, o);
    c->by_level = o->row;
    o->row = NULL;
    return st;
}

/* The plan's order by stretches, unless it is that already. */
static stint_status order_by(sti_trsv_choice *c, const sti_trsv_cutting *cut)
{
    const sti_trsv_cutting *now = &c->ordered;
    if (now->period == cut->period && now->parts == cut->parts &&
        now->lines == cut->lines)
        return STINT_OK;
    c->ordered = *cut;
    return sti_trsv_stretches(&c->plan->natural, cut, c->by_level, &c->plan->order);
}

/* One thread at least: every row as a lane, nothing waits. */
static double lanes_s(const sti_trsv_choice *c)
{
    const sti_trsv *plan = c->plan;
    double entries = 0;
    for (int64_t i = 0; i < plan->natural.n; i++)
        entries += plan->natural.count[i];
    const sti_trsv_costs *k = c->costs;
    const double entry = fmin(k->entry_s, k->group_entry_s);
    const double row = fmin(k->row_s, k->group_row_s);
    return entries * entry + (double)plan->natural.n * row;
}

static stint_status try_serial(sti_trsv_choice *c, const sti_trsv_cutting *cut)
{
    sti_trsv *plan = c->plan;
    const stint_status st = order_by(c, cut);
    if (st != STINT_OK)
        return st;
    const double seconds =
        sti_trsv_predict_serial(c->costs, &plan->d, &plan->natural, &plan->order);
    if (c->serial.parts == 0 || seconds < 0.95 * c->level_s) {
        c->level_s = seconds;
        c->serial = *cut;
    }
    return st;
}

/* Long stretches gain where levels of the whole have lanes to fill that those of short
 * ones have not. */
static bool long_ones_may_gain(const sti_trsv_choice *c)
{
    const sti_trsv *plan = c->plan;
    return plan->natural.n >= STI_SPARSE_LANES * plan->order.levels &&
           c->level_s > 1.5 * lanes_s(c);
}

/* The order of levels of the whole, or of stretches, for one thread. */
static stint_status order_serial(sti_trsv_choice *c)
{
    const int64_t n = c->plan->natural.n;
    const int64_t longest = n < LONG_ROWS ? n : LONG_ROWS;
    const int64_t shortest = longest < SHORT_ROWS ? longest : SHORT_ROWS;
    stint_status st = find_by_level(c);
    if (st == STINT_OK)
        st = try_serial(c, &(sti_trsv_cutting){shortest > 0 ? shortest : 1, 1, 1});
    if (st == STINT_OK && longest > shortest && long_ones_may_gain(c))
        st = try_serial(c, &(sti_trsv_cutting){longest, 1, 1});
    return st;
}

/* ---- strategies made ---- */

static stint_status make_copy(sti_trsv *plan)
{
    stint_status st = sti_trsv_copy(plan);
    return st == STINT_OK ? sti_trsv_make_steps(plan) : st;
}

stint_status sti_trsv_choose_level(sti_trsv_choice *c)
{
    sti_trsv *plan = c->plan;
    sti_trsv_drop_copy(plan);
    stint_status st = order_by(c, &c->serial);
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

/* Tasks of the order of levels of the whole. */
static stint_status cut_levels(sti_trsv_choice *c)
{
    sti_trsv *plan = c->plan;
    const int64_t most = plan->natural.n > 0 ? plan->natural.n : 1;
    const int64_t tasks = tasks_for(plan);
    stint_status st = order_by(c, &(sti_trsv_cutting){most, 1, 1});
    if (st == STINT_OK)
        st = sti_trsv_cut(&plan->natural, tasks < most ? tasks : most, &plan->order);
    return st;
}

/* What the order of levels cut into tasks would take, nearly. */
static double ideal_s(const sti_trsv_choice *c)
{
    return c->level_s / c->plan->d.threads +
           (double)c->plan->order.levels * c->costs->handoff_s;
}

/* Is x more than a core's own cache holds? Rows of a level lie all over it, those of a
 * stretch near each other. */
static bool lies_far(const sti_trsv *plan)
{
    return (size_t)plan->natural.n * sti_trsv_real_bytes(&plan->d) > NEAR_BYTES;
}

/* Tasks of the pool: stretches, or parts 0 for those of the order of levels; and what a
 * solve would take by them, nearly. */
static stint_status look_at_pool(sti_trsv_choice *c, sti_trsv_cutting *cut_out,
                                 double *seconds_out)
{
    sti_trsv *plan = c->plan;
    const sti_stretch_workers workers = {
        1, plan->d.threads, c->costs->handoff_s > 0 ? c->costs->handoff_s : 1e-7, NULL};
    const double by_levels = ideal_s(c);
    stint_status st = STINT_OK;
    *seconds_out = INFINITY;
    *cut_out = (sti_trsv_cutting){0};
    if (plan->d.tasks == 0)
        st = sti_trsv_choose_stretches(&plan->natural, plan->order.level, NULL,
                                       &workers, c->level_s, cut_out, seconds_out);
    if (*seconds_out * (lies_far(plan) ? NEARNESS : 1) >= by_levels) {
        *seconds_out = by_levels;
        cut_out->parts = 0;
    }
    return st;
}

static stint_status make_pool_by(sti_trsv_choice *c, const sti_trsv_cutting *cut)
{
    sti_trsv *plan = c->plan;
    sti_trsv_drop_copy(plan);
    stint_status st = cut->parts > 0 ? order_by(c, cut) : cut_levels(c);
    if (st == STINT_OK)
        st = make_copy(plan);
    plan->info.strategy = STI_TRSV_POOL;
    if (st == STINT_OK)
        c->best_s = sti_trsv_predict_tasks(c->costs, plan, c->level_s);
    return st;
}

stint_status sti_trsv_choose_pool(sti_trsv_choice *c)
{
    sti_trsv_cutting cut;
    double seconds;
    const stint_status st = look_at_pool(c, &cut, &seconds);
    return st == STINT_OK ? make_pool_by(c, &cut) : st;
}

static stint_status make_superstep(sti_trsv_choice *c)
{
    sti_trsv *plan = c->plan;
    const double handoff = c->costs->handoff_s > 0 ? c->costs->handoff_s : 1e-7;
    sti_trsv_drop_copy(plan);
    c->ordered = (sti_trsv_cutting){0};
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

static stint_status make_supernode(sti_trsv_choice *c)
{
    sti_trsv *plan = c->plan;
    sti_trsv_drop_copy(plan);
    const stint_status st = sti_trsv_make_panels(plan);
    plan->info.strategy = STI_TRSV_SUPERNODE;
    if (st == STINT_OK)
        c->best_s = sti_trsv_predict_panels(c->costs, plan);
    return st;
}

/* ---- the choice ---- */

static bool has_room(const sti_trsv *plan)
{
    const size_t room = plan->d.room_bytes;
    return room == 0 || sti_trsv_most_bytes(&plan->d) <= room;
}

static stint_status stay_natural(sti_trsv_choice *c)
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

/* Would an analysis of so many passes pay, if a solve then took `seconds`? */
static bool pays(const sti_trsv_choice *c, double seconds, double passes)
{
    return passes * c->pass_s + c->solves * seconds < c->solves * c->best_s;
}

static stint_status try_supernode(sti_trsv_choice *c)
{
    sti_trsv *plan = c->plan;
    if (!looks_dense(&plan->natural) || !pays(c, c->best_s / 3, PANEL_PASSES))
        return STINT_OK;
    const double before = c->best_s;
    const sti_trsv_strategy other = plan->info.strategy;
    const stint_status st = make_supernode(c);
    if (st != STINT_OK || c->best_s < before)
        return st;
    sti_trsv_drop_panels(plan);
    plan->info.strategy = other;
    c->best_s = before;
    return STINT_OK;
}

/* The pool, if it is predicted to pay; one that will be tried need not be sure to. */
static stint_status try_pool(sti_trsv_choice *c)
{
    sti_trsv *plan = c->plan;
    const double wanted_s = (c->trial ? 1 : SHARED_MOST) * c->level_s;
    sti_trsv_cutting cut;
    double seconds;
    if (plan->d.threads < 2 || c->costs->handoff_s <= 0 ||
        c->level_s < SHARED_LEAST_S ||
        !pays(c, c->level_s / plan->d.threads, POOL_PASSES))
        return STINT_OK;
    stint_status st = look_at_pool(c, &cut, &seconds);
    if (st != STINT_OK || seconds > SHARED_MOST * c->level_s)
        return st;
    const double before = c->best_s;
    st = make_pool_by(c, &cut);
    if (st == STINT_OK && c->best_s >= wanted_s) {
        sti_trsv_drop_copy(plan);
        plan->info.strategy = STI_TRSV_NATURAL;
        c->best_s = before;
    }
    return st;
}

static stint_status try_superstep(sti_trsv_choice *c)
{
    sti_trsv *plan = c->plan;
    const double before = c->best_s;
    const sti_trsv_strategy other = plan->info.strategy;
    /* Long to make, and not sure to gain: only where it vanishes beside the solves. */
    if (plan->d.threads < 2 || c->costs->handoff_s <= 0 ||
        c->solves < 50 * SUPERSTEP_PASSES || c->level_s < SHARED_LEAST_S ||
        !pays(c, c->level_s / plan->d.threads, SUPERSTEP_PASSES))
        return STINT_OK;
    stint_status st = make_superstep(c);
    if (st != STINT_OK || c->best_s < 0.85 * before)
        return st;
    return other == STI_TRSV_POOL ? sti_trsv_choose_pool(c) : sti_trsv_choose_level(c);
}

static stint_status choose(sti_trsv_choice *c)
{
    sti_trsv *plan = c->plan;
    stint_status st = stay_natural(c);
    if (!has_room(plan) || plan->natural.n == 0 || c->solves <= FEW_SOLVES)
        return st;
    st = try_supernode(c);
    if (st != STINT_OK || plan->panels ||
        !pays(c, lanes_s(c) / plan->d.threads, LEVEL_PASSES))
        return st;
    st = order_serial(c);
    if (st != STINT_OK)
        return st;
    const double natural_s = c->best_s;
    c->best_s = fmin(c->level_s, natural_s);
    st = try_pool(c);
    if (st == STINT_OK && !plan->steps && c->level_s < 0.97 * natural_s)
        st = sti_trsv_choose_level(c);
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

static stint_status make_asked(sti_trsv_choice *c)
{
    sti_trsv *plan = c->plan;
    const sti_trsv_strategy asked = plan->d.strategy;
    if (asked == STI_TRSV_NATURAL)
        return stay_natural(c);
    if (!has_room(plan))
        return refuse_room(plan);
    if (asked == STI_TRSV_SUPERNODE)
        return make_supernode(c);
    const stint_status st = order_serial(c);
    if (st != STINT_OK)
        return st;
    return asked == STI_TRSV_LEVEL  ? sti_trsv_choose_level(c)
           : asked == STI_TRSV_POOL ? sti_trsv_choose_pool(c)
                                    : make_superstep(c);
}

/* A transposed triangle is pushed where a copy has no room or does not pay. */
static bool is_pushed(const sti_trsv_choice *c)
{
    const sti_trsv_desc *d = &c->plan->d;
    if (!d->transpose)
        return false;
    if (d->strategy == STI_TRSV_PUSH)
        return true;
    return d->strategy == STI_TRSV_NATURAL ||
           (d->strategy == STI_TRSV_AUTO && (!has_room(c->plan) || c->solves < 4));
}

stint_status sti_trsv_choose(sti_trsv_choice *c)
{
    sti_trsv *plan = c->plan;
    stint_status st = sti_trsv_look_natural(plan);
    if (st != STINT_OK)
        return st;
    if (is_pushed(c)) {
        plan->info.strategy = STI_TRSV_PUSH;
        c->best_s = sti_trsv_predict_push(c->costs, &plan->natural);
        return STINT_OK;
    }
    if (plan->d.transpose)
        st = sti_trsv_turn_natural(plan);
    if (st != STINT_OK)
        return st;
    c->trial = sti_trsv_trial_vector(plan, c->solves);
    if (c->trial || c->solves <= FEW_SOLVES)
        c->pass_s = sti_trsv_predict_roughly(c->costs, &plan->d, &plan->natural);
    else
        c->pass_s = sti_trsv_predict_serial(c->costs, &plan->d, &plan->natural, NULL);
    if (c->trial)
        c->pass_s = sti_trsv_time_natural(plan, c->trial, c->pass_s);
    return plan->d.strategy == STI_TRSV_AUTO ? choose(c) : make_asked(c);
}

void sti_trsv_choice_fini(sti_trsv_choice *choice)
{
    sti_free(choice->by_level);
    sti_free(choice->trial);
    choice->by_level = NULL;
    choice->trial = NULL;
}
