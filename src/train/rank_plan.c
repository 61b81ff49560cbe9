/* Plans of ranks that pack; see the header. */
#include "train/rank_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "train/error_section.h"
#include "train/plan_refusal.h"
#include "train/run_section.h"

static size_t budget_of(const sti_setup *setup)
{
    return sti_run_section_of(setup->inputs->recipe)->memory_bytes;
}

/* May the plan of a run like this pack? */
static bool may_pack(const sti_setup *setup, const sti_choice_hints *hints)
{
    const sti_error_values *error = sti_error_section_of(setup->inputs->recipe);
    return error->tau > 0 && !hints->exact &&
           (error->pack == STI_PACK_ALL || budget_of(setup) > 0);
}

static bool packs(const sti_network *network)
{
    return network->bounds >= 0;
}

/* ---- the process that does all shards alone ---- */

/* Its networks are built, of the caller's to free. */
static stint_status alone_init(const sti_setup *setup, sti_setup *alone)
{
    *alone = sti_setup_like(setup);
    alone->comm = NULL;
    sti_setup_cut(alone, setup->batch, setup->shards);
    return sti_setup_build(alone);
}

/* What it holds; *fits false: nothing within its budget. */
static stint_status plan_alone(sti_rank_plan *ranks, const sti_setup *setup,
                               const sti_choice_hints *hints, sti_held *held,
                               bool *fits)
{
    sti_setup alone;
    sti_step_plan plan = {.lanes = 0};
    stint_status st;
    *held = (sti_held){.packs = 0};
    STI_TRY(alone_init(setup, &alone));
    STI_TRY(sti_step_choose(&alone, hints, &plan));
    STI_TRY(sti_held_of(&alone.train, &plan, held));
    *fits = plan.result.fits;
    ranks->lanes = plan.lanes;
out:
    sti_step_plan_fini(&plan);
    sti_setup_fini(&alone);
    return st;
}

/* ---- a rank's own proposal ---- */

/* By this rank's shards and account: exactly if that fits. */
static stint_status plan_here(sti_rank_plan *ranks, sti_setup *setup,
                              const sti_choice_hints *hints, bool exact,
                              sti_step_plan *plan)
{
    sti_choice_hints first = *hints;
    stint_status st;
    ranks->alone = false;
    first.exact = hints->exact || exact;
    st = sti_step_rechoose(setup, plan, &first);
    if (st == STINT_OK && !plan->result.fits && exact && !hints->exact)
        st = sti_step_rechoose(setup, plan, hints);
    return st;
}

stint_status sti_rank_plan_choose(sti_rank_plan *ranks, sti_setup *setup,
                                  const sti_choice_hints *hints, sti_step_plan *plan)
{
    sti_held held;
    bool fits = false;
    stint_status st;
    *ranks = (sti_rank_plan){.alone = false};
    if (!setup->comm || !may_pack(setup, hints))
        return sti_step_choose(setup, hints, plan);
    STI_TRY(plan_alone(ranks, setup, hints, &held, &fits));
    ranks->alone = fits && held.packs > 0;
    if (ranks->alone)
        STI_TRY(sti_step_hold(setup, plan, &held));
    if (!ranks->alone || !plan->result.fits)
        STI_TRY(plan_here(ranks, setup, hints, fits && held.packs == 0, plan));
out:
    sti_held_fini(&held);
    return st;
}

/* ---- one proposal for all ---- */

typedef struct message {
    int32_t packs, forms, lanes;
    bool alone;
    double slowdown;
} message;

/* What rank `from` holds, on all ranks. Those who ask for it free it. */
static stint_status share_held(sti_rank_plan *ranks, const sti_setup *setup,
                               const sti_step_plan *plan, int from, sti_held *held)
{
    sti_comm *comm = setup->comm;
    const bool mine = sti_comm_rank(comm) == from;
    message m = {0};
    stint_status st = STINT_OK;
    *held = (sti_held){.packs = 0};
    if (mine)
        st = sti_held_of(&setup->train, plan, held);
    if (mine)
        m = (message){.packs = held->packs,
                      .forms = held->forms,
                      .lanes = ranks->lanes,
                      .alone = ranks->alone,
                      .slowdown = held->slowdown};
    STI_TRY(sti_comm_agree(comm, st));
    STI_TRY(sti_comm_broadcast(comm, from, &m, sizeof m));
    if (!mine)
        st = sti_held_init(held, m.packs, m.forms);
    STI_TRY(sti_comm_agree(comm, st));
    STI_TRY(sti_comm_broadcast(comm, from, held->pack,
                               (size_t)m.packs * sizeof *held->pack));
    STI_TRY(sti_comm_broadcast(comm, from, held->form,
                               (size_t)m.forms * sizeof *held->form));
    held->slowdown = m.slowdown;
    *ranks = (sti_rank_plan){.alone = m.alone, .lanes = m.lanes, .decides = from};
out:
    return st;
}

/* The lowest rank whose plan does not fit; -1: there is none. */
static stint_status find_short(const sti_setup *setup, const sti_step_plan *plan,
                               int *rank_out)
{
    const int size = sti_comm_size(setup->comm);
    int64_t lowest = plan->result.fits ? 0 : size - sti_comm_rank(setup->comm);
    const stint_status st = sti_comm_max(setup->comm, &lowest, 1);
    *rank_out = lowest > 0 ? size - (int)lowest : -1;
    return st;
}

static void tell_short(const sti_setup *setup, int rank)
{
    if (sti_comm_rank(setup->comm) == 0)
        sti_log(STINT_LOG_WARNING,
                "memory: rank %d (%s) has no room for what one process would hold "
                "packed; what it has room for holds for all, so that these weights are "
                "those of no other number of processes",
                rank, sti_comm_host(setup->comm, rank));
}

static stint_status own_plan(sti_rank_plan *ranks, sti_setup *setup,
                             const sti_choice_hints *hints, sti_step_plan *plan)
{
    const stint_status st = plan_here(ranks, setup, hints, false, plan);
    return st == STINT_OK && !plan->result.fits ? sti_plan_refuse(&plan->result) : st;
}

/* All hold what rank `decides` does, or what the first of those does that have no room
 * for it. */
static stint_status settle(sti_rank_plan *ranks, sti_setup *setup,
                           const sti_choice_hints *hints, int decides,
                           sti_step_plan *plan)
{
    const int size = sti_comm_size(setup->comm);
    sti_held held = {.packs = 0};
    stint_status st;
    for (int i = 0; i <= size; i++) {
        STI_TRY(share_held(ranks, setup, plan, decides, &held));
        st = sti_comm_agree(setup->comm, sti_step_hold(setup, plan, &held));
        sti_held_fini(&held);
        if (st == STINT_OK)
            st = find_short(setup, plan, &decides);
        if (st != STINT_OK || decides < 0)
            return st;
        tell_short(setup, decides);
        if (sti_comm_rank(setup->comm) == decides)
            st = own_plan(ranks, setup, hints, plan);
        STI_TRY(sti_comm_agree(setup->comm, st));
    }
    return sti_fail(STINT_E_BUDGET,
                    "memory: what one of these processes has room for, another has "
                    "not; give all of them the same --memory and threads");
out:
    sti_held_fini(&held);
    return st;
}

typedef struct proposal {
    bool packs;
    size_t budget_bytes; /* SIZE_MAX: none */
} proposal;

/* The rank with the least --memory, of those that pack; -1: none does. */
static int least_of(const proposal *all, int size, bool *differ)
{
    int least = -1;
    *differ = false;
    for (int r = 0; r < size; r++) {
        *differ |= all[r].budget_bytes != all[0].budget_bytes;
        if (all[r].packs &&
            (least < 0 || all[r].budget_bytes < all[least].budget_bytes))
            least = r;
    }
    return least;
}

static void tell_least(const sti_setup *setup, int rank, size_t bytes)
{
    if (sti_comm_rank(setup->comm) == 0)
        sti_log(STINT_LOG_INFO,
                "memory: the processes have different budgets; what all of them hold "
                "packed, rank %d (%s) decides, which has the least, %s",
                rank, sti_comm_host(setup->comm, rank), sti_bytes_text(bytes));
}

stint_status sti_rank_plan_agree(sti_rank_plan *ranks, sti_setup *setup,
                                 sti_step_plan *plan)
{
    static const sti_choice_hints none = {.exact = false};
    sti_comm *comm = setup->comm;
    if (!comm)
        return STINT_OK;
    sti_comm_set_context(comm, "the plan of what is held packed", 0);
    const size_t budget = budget_of(setup);
    const proposal mine = {.packs = packs(&setup->train),
                           .budget_bytes = budget > 0 ? budget : SIZE_MAX};
    proposal *all = sti_alloc_array(sti_comm_size(comm), sizeof *all, "plans");
    bool differ;
    stint_status st = sti_comm_agree(comm, all ? STINT_OK : STINT_E_MEMORY);
    if (st == STINT_OK)
        st = sti_comm_gather_all(comm, &mine, sizeof mine, all);
    const int least = st == STINT_OK ? least_of(all, sti_comm_size(comm), &differ) : -1;
    if (least >= 0 && differ)
        tell_least(setup, least, all[least].budget_bytes);
    sti_free(all);
    return st == STINT_OK && least >= 0 ? settle(ranks, setup, &none, least, plan) : st;
}

/* ---- under way ---- */

/* The plan of the process with all shards in the place of the set-up's, if it fits. */
static stint_status enlarge_alone(sti_rank_plan *ranks, sti_setup *setup,
                                  sti_step_plan *plan, const sti_pack_choice *sizes,
                                  int count)
{
    sti_setup alone;
    sti_step_plan next = {.lanes = ranks->lanes, .rewritten = plan->rewritten};
    sti_held held = {.packs = 0};
    stint_status st;
    STI_TRY(alone_init(setup, &alone));
    STI_TRY(sti_setup_plan(&alone, &alone.train, next.lanes));
    if (plan->form) {
        next.form = sti_alloc((size_t)plan->form_values, "form");
        next.form_values = plan->form_values;
        if (!next.form) {
            st = STINT_E_MEMORY;
            goto out;
        }
        memcpy(next.form, plan->form, (size_t)plan->form_values);
    }
    next.result.slowdown = plan->result.slowdown;
    STI_TRY(sti_step_enlarge(&alone, &next, sizes, count));
    STI_TRY(sti_held_of(&alone.train, &next, &held));
    ranks->alone = next.result.fits;
    ranks->lanes = next.lanes;
    if (ranks->alone)
        STI_TRY(sti_step_hold(setup, plan, &held));
out:
    sti_held_fini(&held);
    sti_step_plan_fini(&next);
    sti_setup_fini(&alone);
    return st;
}

static stint_status enlarge(sti_rank_plan *ranks, sti_setup *setup, sti_step_plan *plan,
                            const sti_pack_choice *sizes, int count)
{
    stint_status st = STINT_OK;
    if (ranks->alone)
        st = enlarge_alone(ranks, setup, plan, sizes, count);
    return st == STINT_OK && !ranks->alone ? sti_step_enlarge(setup, plan, sizes, count)
                                           : st;
}

stint_status sti_rank_plan_again(sti_rank_plan *ranks, sti_setup *setup,
                                 sti_step_plan *plan, const sti_pack_choice *sizes,
                                 int count)
{
    const sti_choice_hints hints = {.sizes = sizes, .size_count = count};
    const int decides = ranks->decides;
    stint_status st = STINT_OK;
    sti_comm_set_context(setup->comm, "the plan of what is held packed", 0);
    if (sti_comm_rank(setup->comm) == decides)
        st = enlarge(ranks, setup, plan, sizes, count);
    st = sti_comm_agree(setup->comm, st);
    return st == STINT_OK ? settle(ranks, setup, &hints, decides, plan) : st;
}

/* How many lanes the process with all shards goes on with. */
static stint_status follow_alone(sti_rank_plan *ranks, const sti_setup *setup,
                                 const sti_held *held)
{
    sti_setup alone;
    sti_step_plan plan = {.lanes = 0};
    stint_status st;
    if (!ranks->alone)
        return STINT_OK;
    STI_TRY(alone_init(setup, &alone));
    STI_TRY(sti_step_hold(&alone, &plan, held));
    ranks->lanes = plan.lanes;
out:
    sti_step_plan_fini(&plan);
    sti_setup_fini(&alone);
    return st;
}

stint_status sti_rank_plan_adopt(sti_rank_plan *ranks, sti_setup *setup,
                                 sti_step_plan *plan, const sti_held *held)
{
    static const sti_choice_hints exact = {.exact = true};
    stint_status st;
    if (held->packs > 0) {
        st = follow_alone(ranks, setup, held);
        if (st == STINT_OK)
            st = sti_step_hold(setup, plan, held);
    } else
        st = sti_step_rechoose(setup, plan, &exact);
    if (st == STINT_OK && !plan->result.fits)
        st = sti_plan_refuse(&plan->result);
    return sti_comm_agree(setup->comm, st);
}
