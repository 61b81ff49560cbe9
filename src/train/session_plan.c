/* How a session runs its steps: shards side by side and what is made again, the fastest
 * way that fits a budget. The ways are those of step_choice.c; the account is another
 * one, since a session reads no data. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/units.h"
#include "plan/budget.h"
#include "train/memory_account.h"
#include "train/recipe_view.h"
#include "train/run_section.h"
#include "train/session_priv.h"

typedef struct session_way {
    double seconds;
    int lanes;
    int32_t option;
} session_way;

typedef struct session_chooser {
    stint_session *s;
    const stint_session_desc *desc;
    size_t budget_bytes;
    int threads;
    sti_network best; /* planned; what is kept in the end */
    size_t least_bytes;
    int least_lanes;
} session_chooser;

static double rounds_of(const session_chooser *c, int lanes)
{
    const int64_t shards = c->s->desc.shards;
    if (lanes > 1)
        return (double)((shards + lanes - 1) / lanes);
    return c->threads > 1 ? (double)shards / (0.7 * c->threads) : (double)shards;
}

static void add_others(const stint_session_desc *d, sti_account *account)
{
    for (int i = 0; i < d->other_count; i++)
        sti_account_add(account, d->others[i].name, d->others[i].detail,
                        d->others[i].bytes);
}

/* What a way takes, part by part; net: planned for its lanes. */
static void account_of(const session_chooser *c, const sti_network *net, int lanes,
                       sti_account *account)
{
    static const char *const libraries[] = {"ld-",        "libc.", "libm.",
                                            "libnettle.", "libz.", NULL};
    sti_step_engine_desc desc = c->s->desc;
    sti_step_engine_sizes z;
    const size_t nodes = (size_t)sti_graph_node_count(net->graph);
    const size_t now = sti_alloc_now_bytes(), held = c->desc->others_held_bytes;
    const sti_account_process process = {.libraries = libraries, .apart_bytes = now};
    desc.train = net;
    desc.lanes = lanes;
    sti_step_engine_measure(&desc, &z);
    *account = (sti_account){.count = 0};
    sti_account_add(account, "parameters", "weights and running statistics",
                    z.params + z.states);
    sti_account_add(account, "optimiser", "moments of the weights",
                    z.moments * (size_t)desc.moments);
    sti_account_add(account, "gradients", "blocks of the shard tree",
                    z.results * (size_t)z.slots);
    sti_account_add(account, "activations", "inputs, what passes, scratch",
                    (z.arena + z.fetch) * (size_t)lanes);
    if (z.net > 0)
        sti_account_add(account, "network", "segments on their way", z.net);
    add_others(c->desc, account);
    sti_account_add(account, "graphs", "nodes, plans, lists of calls",
                    (now > held ? now - held : 0) + nodes * 400 * (size_t)lanes);
    sti_account_add_process(account, &process, c->threads);
    sti_account_raise(account, "trying", "once: others than what was chosen",
                      c->desc->tried_bytes);
}

/* The network rewritten as the option says and planned, for the caller to take. */
static stint_status make_way(const session_chooser *c, const sti_budget *budget,
                             const session_way *way, sti_network *net_out)
{
    stint_status st;
    *net_out = c->s->net;
    net_out->graph = NULL;
    net_out->plan = NULL;
    STI_TRY(sti_graph_copy(c->s->net.graph, &net_out->graph));
    if (way->option > 0)
        STI_TRY(sti_budget_apply(net_out->graph, budget->options[way->option].form,
                                 budget->values));
    STI_TRY(sti_network_plan(net_out, sti_lane_threads(c->threads, way->lanes)));
    return st;
out:
    sti_network_fini(net_out);
    return st;
}

/* Keeps the way if it is the first that fits or the least so far; true: it fits. */
static bool take_way(session_chooser *c, sti_network *net, const session_way *way,
                     double fastest)
{
    sti_account account;
    account_of(c, net, way->lanes, &account);
    const bool fits = c->budget_bytes == 0 || account.total_bytes <= c->budget_bytes;
    if (!fits && c->least_bytes > 0 && account.total_bytes >= c->least_bytes) {
        sti_network_fini(net);
        return false;
    }
    sti_network_fini(&c->best);
    c->best = *net;
    c->least_bytes = account.total_bytes;
    c->least_lanes = way->lanes;
    c->s->plan.rewritten = way->option > 0;
    sti_memory_take_account(&account, way->lanes, &c->s->plan.result);
    c->s->plan.result.slowdown = way->seconds / fastest;
    return fits;
}

static int by_time(const void *pa, const void *pb)
{
    const session_way *a = pa, *b = pb;
    if (a->seconds != b->seconds)
        return a->seconds > b->seconds ? 1 : -1;
    if (a->option != b->option)
        return a->option > b->option ? 1 : -1;
    return (a->lanes < b->lanes) - (a->lanes > b->lanes);
}

enum { WAYS_MOST = 1024 };

/* All options at all numbers of lanes, fastest first; the number there are. */
static int list_ways(const session_chooser *c, sti_budget *const budget[2],
                     int64_t wanted, session_way *ways)
{
    const int64_t shards = c->s->desc.shards;
    int count = 0;
    int64_t most = wanted > 0 ? wanted : c->threads;
    most = most < shards ? most : shards;
    for (int64_t lanes = most; lanes >= (wanted > 0 ? most : 1); lanes--) {
        const sti_budget *b = budget[lanes == 1];
        for (int32_t i = 0; i < b->count && count < WAYS_MOST; i++)
            ways[count++] = (session_way){
                b->options[i].seconds * rounds_of(c, (int)lanes), (int)lanes, i};
    }
    qsort(ways, (size_t)count, sizeof *ways, by_time);
    return count;
}

static stint_status try_ways(session_chooser *c, sti_budget *const budget[2],
                             int64_t wanted)
{
    session_way *ways = sti_alloc_array(WAYS_MOST, sizeof *ways, "ways");
    stint_status st = ways ? STINT_OK : STINT_E_MEMORY;
    const int count = ways ? list_ways(c, budget, wanted, ways) : 0;
    for (int i = 0; i < count && st == STINT_OK; i++) {
        sti_network net;
        st = make_way(c, budget[ways[i].lanes == 1], &ways[i], &net);
        if (st == STINT_OK && take_way(c, &net, &ways[i], ways[0].seconds))
            break;
    }
    sti_free(ways);
    return st;
}

static stint_status explore(const session_chooser *c, int threads, sti_budget **out)
{
    return sti_budget_create(
        &(sti_budget_desc){.graph = c->s->net.graph, .threads = threads}, out);
}

/* The lowest peak that there is, in the plan's result: one lane, all that can be made
 * again is. */
static stint_status find_smallest(session_chooser *c, const sti_budget *budget)
{
    const session_way way = {.lanes = 1, .option = budget->count - 1};
    stint_plan_result *r = &c->s->plan.result;
    sti_network net;
    sti_account account;
    const stint_status st = make_way(c, budget, &way, &net);
    if (st != STINT_OK)
        return st;
    account_of(c, &net, 1, &account);
    sti_network_fini(&net);
    r->smallest_bytes =
        account.total_bytes < r->peak_bytes ? account.total_bytes : r->peak_bytes;
    return STINT_OK;
}

stint_status sti_session_choose(stint_session *s, const stint_session_desc *desc)
{
    const sti_run_values *run = sti_run_section_of(desc->recipe);
    session_chooser c = {.s = s, .desc = desc, .budget_bytes = run->memory_bytes};
    sti_budget *budget[2] = {NULL, NULL};
    stint_plan_result *r = &s->plan.result;
    stint_status st;
    c.threads = s->desc.threads;
    STI_TRY(explore(&c, 1, &budget[0]));
    STI_TRY(explore(&c, c.threads, &budget[1]));
    STI_TRY(try_ways(&c, budget, run->lanes));
    STI_TRY(find_smallest(&c, budget[1]));
    sti_network_fini(&s->net);
    s->net = c.best;
    c.best.graph = NULL;
    c.best.plan = NULL;
    s->plan.lanes = s->desc.lanes = c.least_lanes;
    r->budget_bytes = c.budget_bytes;
    r->fits = sti_step_plan_holds(r, c.budget_bytes);
    r->threads = c.threads;
    r->shards = s->desc.shards;
    r->parameters = sti_network_parameters(&s->net);
    r->forward_flop = sti_network_forward_flop(&s->net);
out:
    sti_network_fini(&c.best);
    sti_budget_destroy(budget[0]);
    sti_budget_destroy(budget[1]);
    return st;
}
