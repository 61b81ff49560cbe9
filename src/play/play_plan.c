/* What a training will take, and how fast it will be. */
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "play/play.h"

enum { WARM = 2, TURNS_MOST = 64 };
static const double seconds_enough = 1.0;

/* Raw frames a second of a few turns, and which part takes the most of them. */
static stint_status measure(sti_play *p, stint_play_plan *plan)
{
    stint_status st = STINT_OK;
    int64_t start = sti_clock_ns(), frames = 0;
    for (int turn = 0; turn < TURNS_MOST && st == STINT_OK; turn++) {
        if (turn == WARM) {
            start = sti_clock_ns();
            frames = p->rollout.counts.frames;
            p->train_ns = p->rollout.act_ns = p->rollout.step_ns = 0;
        }
        st = sti_play_turn(p, NULL);
        if (turn > WARM && sti_seconds_since(start) > seconds_enough)
            break;
    }
    if (st != STINT_OK)
        return st;
    plan->frames_per_s =
        (double)(p->rollout.counts.frames - frames) / sti_seconds_since(start);
    plan->limit = p->train_ns >= p->rollout.act_ns && p->train_ns >= p->rollout.step_ns
                      ? "train"
                  : p->rollout.step_ns >= p->rollout.act_ns ? "step"
                                                            : "act";
    return st;
}

stint_status stint_play_plan_of(const stint_recipe *recipe, stint_play_plan *plan_out)
{
    sti_play p = {.recipe = NULL};
    stint_play_plan plan = {.limit = ""};
    stint_recipe *settled = NULL;
    size_t tried_bytes = 0;
    stint_status st = stint_recipe_check(recipe);
    STI_TRY(st);
    STI_TRY(sti_play_settle(recipe, NULL, &settled, &tried_bytes));
    recipe = settled ? settled : recipe;
    STI_TRY(sti_play_open(recipe, NULL, true, tried_bytes, &p));
    plan.memory = p.plan;
    p.plan = (stint_plan_result){0};
    plan.envs = p.env.envs;
    plan.horizon = p.agent.horizon;
    plan.every = p.agent.every;
    plan.groups = p.agent.groups;
    sti_play_close(&p);
    if (plan.memory.fits) {
        STI_TRY(sti_play_open(recipe, NULL, false, tried_bytes, &p));
        STI_TRY(measure(&p, &plan));
    }
    *plan_out = plan;
    plan.memory = (stint_plan_result){0};
out:
    stint_plan_fini(&plan.memory);
    sti_play_close(&p);
    stint_recipe_destroy(settled);
    return st;
}
