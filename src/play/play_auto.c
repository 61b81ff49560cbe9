/* What `auto` stands for, found by trying; and what would fit a budget.
 *
 * Each candidate is opened, plays and learns for a moment. Taken is the one that makes
 * the most updates a second, of those whose plan fits the budget, whose updates learn
 * from enough steps to be worth making, and whose lag the method bears: V-trace weighs
 * what older policies did, the others take it as their own. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "play/play.h"
#include "train/run_section.h"
#include "train/train_section.h"

enum { STEPS_LEAST = 256, WARM = 2, TURNS_MOST = 256 };
static const double seconds_each = 0.3;

typedef struct cut {
    int64_t envs, horizon, every, groups;
} cut;

bool sti_play_is_auto(const stint_recipe *recipe)
{
    const sti_agent_values *a = sti_agent_section_of(recipe);
    return sti_env_section_of(recipe)->envs == 0 || a->horizon == 0 || a->every == 0 ||
           a->groups == 0;
}

static void take(stint_recipe *recipe, const cut *c)
{
    sti_env_values *env = sti_recipe_edit(recipe, &sti_env_section);
    sti_agent_values *agent = sti_recipe_edit(recipe, &sti_agent_section);
    env->envs = c->envs;
    agent->horizon = c->horizon;
    agent->every = c->every;
    agent->groups = c->groups;
}

/* ---- candidates ---- */

static const int64_t envs_tried[] = {16, 32, 64, 128};
static const int64_t ways_tried[][3] = {/* horizon, every, groups */
                                        {5, 5, 1},
                                        {8, 8, 1},
                                        {16, 16, 1},
                                        {20, 5, 4},
                                        {20, 1, 20}};
enum { ENVS = sizeof envs_tried / sizeof envs_tried[0] };
enum { WAYS = sizeof ways_tried / sizeof ways_tried[0] };

/* Where the recipe names a number, that is the only candidate. */
static int64_t asked_or(int64_t asked, int64_t tried)
{
    return asked > 0 ? asked : tried;
}

static cut candidate(const stint_recipe *recipe, int i)
{
    const sti_agent_values *a = sti_agent_section_of(recipe);
    const int64_t *way = ways_tried[i % WAYS];
    const int64_t groups = asked_or(a->groups, way[2]);
    int64_t envs = asked_or(sti_env_section_of(recipe)->envs, envs_tried[i / WAYS]);
    const int64_t parts = groups * sti_train_section_of(recipe)->shards;
    if (sti_env_section_of(recipe)->envs == 0) /* groups and shards divide them */
        envs = (envs + parts - 1) / parts * parts;
    return (cut){envs, asked_or(a->horizon, way[0]), asked_or(a->every, way[1]),
                 groups};
}

static bool is_worth_trying(const stint_recipe *recipe, const cut *c)
{
    const sti_agent_values *a = sti_agent_section_of(recipe);
    const int64_t parts = c->groups * sti_train_section_of(recipe)->shards;
    const bool behind = c->groups > 1 || c->every < c->horizon;
    const bool asked = a->groups > 0 && a->every > 0 && a->horizon > 0;
    return c->envs % parts == 0 && c->envs / c->groups * c->horizon >= STEPS_LEAST &&
           (asked || !behind || a->method == STI_AGENT_VTRACE);
}

/* Updates a second, or 0 where it does not fit; *tried_bytes becomes its peak, if that
 * is more. */
static stint_status try_one(const stint_recipe *recipe, double *updates_per_s,
                            size_t *tried_bytes)
{
    sti_play p = {.recipe = NULL};
    int64_t start = 0, turns = 0;
    stint_status st = sti_play_open(recipe, NULL, false, *tried_bytes, &p);
    *updates_per_s = 0;
    if (st == STINT_E_BUDGET)
        return STINT_OK;
    if (st == STINT_OK)
        *tried_bytes = stint_session_describe(p.session)->peak_bytes;
    for (int turn = 0; turn < TURNS_MOST && st == STINT_OK; turn++) {
        if (turn == WARM)
            start = sti_clock_ns();
        st = sti_play_turn(&p, NULL);
        turns += turn >= WARM;
        if (turn >= WARM && sti_seconds_since(start) > seconds_each)
            break;
    }
    if (st == STINT_OK && turns > 0)
        *updates_per_s = (double)turns / sti_seconds_since(start);
    sti_play_close(&p);
    return st;
}

static bool is_same(const cut *a, const cut *b)
{
    return a->envs == b->envs && a->horizon == b->horizon && a->every == b->every &&
           a->groups == b->groups;
}

static stint_status search(stint_recipe *recipe, const stint_recipe *asked,
                           size_t *tried_bytes)
{
    cut best = {0}, last = {0};
    double most = 0;
    stint_status st = STINT_OK;
    for (int i = 0; i < ENVS * WAYS && st == STINT_OK; i++) {
        const cut c = candidate(asked, i);
        double rate = 0;
        if (!is_worth_trying(asked, &c) || is_same(&c, &last))
            continue;
        last = c;
        take(recipe, &c);
        st = try_one(recipe, &rate, tried_bytes);
        if (rate > most) {
            most = rate;
            best = c;
        }
    }
    if (st == STINT_OK && most <= 0)
        return sti_fail(STINT_E_BUDGET,
                        "none of the numbers that auto tries fits --memory, its groups "
                        "and train.shards; give env.envs, agent.horizon, agent.every "
                        "and agent.groups");
    if (st != STINT_OK)
        return st;
    take(recipe, &best);
    sti_log(STINT_LOG_INFO,
            "auto: %" PRId64 " environments in %" PRId64 " groups, horizon %" PRId64
            ", an update every %" PRId64 " steps: %.1f updates/s",
            best.envs, best.groups, best.horizon, best.every, most);
    return STINT_OK;
}

/* ---- settling ---- */

/* A run that goes on has found its numbers already. */
static stint_status take_settled(stint_recipe *recipe, const char *folder)
{
    stint_recipe *then = NULL;
    sti_arena *arena = sti_arena_create("auto");
    const char *path = arena ? sti_path_join(arena, folder, "recipe.ini") : NULL;
    stint_status st = path ? stint_recipe_load(path, &then) : STINT_E_MEMORY;
    if (st == STINT_OK) {
        const sti_agent_values *a = sti_agent_section_of(then);
        take(recipe,
             &(cut){sti_env_section_of(then)->envs, a->horizon, a->every, a->groups});
    }
    stint_recipe_destroy(then);
    sti_arena_destroy(arena);
    return st;
}

stint_status sti_play_settle(const stint_recipe *recipe, const char *resume_folder,
                             stint_recipe **settled_out, size_t *tried_bytes_out)
{
    stint_recipe *copy = NULL;
    *settled_out = NULL;
    *tried_bytes_out = 0;
    if (!sti_play_is_auto(recipe))
        return STINT_OK;
    stint_status st = sti_recipe_copy(recipe, &copy);
    if (st == STINT_OK)
        st = resume_folder ? take_settled(copy, resume_folder)
                           : search(copy, recipe, tried_bytes_out);
    if (st != STINT_OK) {
        stint_recipe_destroy(copy);
        return st;
    }
    *settled_out = copy;
    return STINT_OK;
}

/* ---- budgets ---- */

/* The most environments that fit, by halves; 0: not even the fewest. */
static int64_t envs_that_fit(const stint_recipe *recipe)
{
    stint_recipe *copy = NULL;
    int64_t found = 0;
    const int64_t parts =
        sti_agent_section_of(recipe)->groups * sti_train_section_of(recipe)->shards;
    int64_t envs = sti_env_section_of(recipe)->envs;
    if (sti_recipe_copy(recipe, &copy) != STINT_OK)
        return 0;
    while (found == 0 && (envs = envs / 2 / parts * parts) > 0) {
        sti_play p = {.recipe = NULL};
        ((sti_env_values *)sti_recipe_edit(copy, &sti_env_section))->envs = envs;
        if (sti_play_open(copy, NULL, true, 0, &p) != STINT_OK)
            break;
        found = p.plan.fits ? envs : 0;
        sti_play_close(&p);
    }
    stint_recipe_destroy(copy);
    return found;
}

stint_status sti_play_explain_budget(const stint_recipe *recipe)
{
    char why[1024];
    snprintf(why, sizeof why, "%s", stint_last_error());
    const int64_t envs = envs_that_fit(recipe);
    if (envs > 0)
        return sti_fail(STINT_E_BUDGET, "%s; or env.envs = %" PRId64 ", which fits",
                        why, envs);
    return sti_fail(STINT_E_BUDGET, "%s; fewer environments would not fit either", why);
}
