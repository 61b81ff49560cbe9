/* Plans made, tried and given back. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/pages.h"
#include "solve/trsv_choose.h"
#include "solve/trsv_walk.h"

static stint_status alloc_vectors(sti_trsv *plan)
{
    const int64_t n = plan->natural.n, block = sti_trsv_block(&plan->d);
    const size_t real = sti_trsv_real_bytes(&plan->d);
    const size_t many = plan->d.columns > 1 ? (size_t)block * real : real;
    if (plan->steps || plan->panels) {
        plan->own = sti_pages_array(n, many, "trsv.own");
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

static void finish(sti_trsv_choice *c)
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
    info->bytes = sti_trsv_plan_bytes(plan);
    /* A block of right-hand sides passes for about two and a half of one. */
    const int64_t block = sti_trsv_block(&plan->d);
    const int64_t blocks = (plan->d.columns + block - 1) / block;
    info->predicted_s = c->best_s * (plan->d.columns > 1 ? 2.5 * (double)blocks : 1);
    sti_free(plan->order.row);
    sti_free(plan->order.level);
    plan->order.row = plan->order.level = NULL;
}

stint_status sti_trsv_check_shape(const sti_trsv_desc *d)
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

/* The plan as rows lie, which takes what it has made back. */
static void fall_back(sti_trsv_choice *c)
{
    sti_trsv *plan = c->plan;
    sti_trsv_drop_panels(plan);
    sti_trsv_order_fini(&plan->order);
    sti_free(plan->own);
    plan->own = NULL;
    plan->info.strategy = STI_TRSV_NATURAL;
}

/* Several threads must be so much faster than one. */
#define WORTH 0.95

/* Does one thread lose that solves by the very plan of several? Stretches are about as
 * good for one, so there is no need to make what one would have. */
static bool one_loses(sti_trsv_choice *c)
{
    sti_trsv *plan = c->plan;
    const int threads = plan->info.threads;
    if (c->ordered.parts < 2)
        return false;
    plan->info.threads = 1;
    const double alone = sti_trsv_time(plan, c->trial, c->level_s);
    plan->info.threads = threads;
    return c->best_s < WORTH * alone;
}

/* Threads that lose to what one of them is told to take hinder each other, or have no
 * CPU of their own, or one was told too little: the order of one thread in their place,
 * if that is better. */
static stint_status try_one_thread(sti_trsv_choice *c)
{
    sti_trsv *plan = c->plan;
    const double before = c->best_s;
    const bool pooled = plan->info.strategy == STI_TRSV_POOL;
    if (plan->info.threads == 1 || c->level_s > c->pass_s || before < c->level_s ||
        one_loses(c))
        return STINT_OK;
    stint_status st = sti_trsv_choose_level(c);
    plan->info.threads = 1;
    if (st == STINT_OK)
        c->best_s = sti_trsv_time(plan, c->trial, c->level_s);
    if (st != STINT_OK || !pooled || before > WORTH * c->best_s)
        return st;
    st = sti_trsv_choose_pool(c);
    plan->info.threads = plan->d.threads;
    c->best_s = before;
    return st;
}

/* Where a trial is made, the plan is held against what rows as they lie took: what a
 * model has wrong of this matrix shows. Its choice stands unless it loses. */
static stint_status try_plan(sti_trsv_choice *c)
{
    sti_trsv *plan = c->plan;
    stint_status st = STINT_OK;
    if (!c->trial || plan->info.strategy == STI_TRSV_NATURAL)
        return st;
    plan->info.threads = plan->order.tasks > 1 ? plan->d.threads : 1;
    c->best_s = sti_trsv_time(plan, c->trial, c->best_s);
    if (plan->d.strategy != STI_TRSV_AUTO || plan->d.columns > 1)
        return st;
    st = try_one_thread(c);
    if (st == STINT_OK && c->pass_s < 0.97 * c->best_s) {
        fall_back(c);
        c->best_s = c->pass_s;
    }
    return st;
}

stint_status sti_trsv_analyse(const sti_trsv_desc *desc, sti_trsv **plan_out)
{
    stint_status st = sti_trsv_check_shape(desc);
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
    sti_trsv_choice c = {.plan = plan,
                         .costs = costs,
                         .solves = desc->solves > 0 ? (double)desc->solves : 1e6};
    st = sti_trsv_choose(&c);
    if (st == STINT_OK)
        st = alloc_vectors(plan);
    if (st == STINT_OK)
        st = try_plan(&c);
    sti_trsv_choice_fini(&c);
    if (st != STINT_OK) {
        sti_trsv_destroy(plan);
        return st;
    }
    finish(&c);
    plan->info.analysis_s = sti_seconds_since(start);
    *plan_out = plan;
    return STINT_OK;
}

void sti_trsv_destroy(sti_trsv *plan)
{
    if (!plan)
        return;
    sti_trsv_drop_panels(plan);
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
        sti_trsv_drop_panels(plan);
        return sti_trsv_make_panels(plan);
    }
    return plan->steps ? sti_trsv_fill_copy(plan) : STINT_OK;
}
