/* How a step is run: lanes, what is made again or packed in place of being kept, and
 * the memory that all of it takes. */
#ifndef STI_TRAIN_STEP_PLAN_H
#define STI_TRAIN_STEP_PLAN_H

#include "pass/pass.h"
#include "stint/train.h"
#include "train/setup.h"

/* Owns its forms and what hangs on the result (stint_plan_fini). */
typedef struct sti_step_plan {
    int lanes;
    uint8_t *form; /* [form_values]: of the network as built; NULL: all is as built */
    int32_t form_values;
    bool rewritten; /* to fit a budget */
    stint_plan_result result;
} sti_step_plan;

void sti_step_plan_fini(sti_step_plan *plan); /* a zeroed one is fine */
/* Do its parts fit this budget? 0: there is none. */
bool sti_step_plan_holds(const stint_plan_result *result, size_t budget_bytes);

/* ---- step_choice.c: choosing one ---- */

/* What is known beside the set-up. Zeroed: nothing. */
typedef struct sti_choice_hints {
    bool exact;                   /* nothing may be packed, whatever the recipe says */
    const sti_pack_choice *sizes; /* of packed blocks that have been run with */
    int size_count;
} sti_choice_hints;

/* From built, unplanned networks to lanes and rewrites: of all ways to run the step,
 * the fastest by expectation whose peak fits the budget, or, when none does, the one of
 * the lowest peak. Plans the set-up's networks, with a rewritten one in the place of
 * the training network; fills the plan: of the result parts, peak, lanes, fits,
 * slow-down and tensors, and smallest_bytes where the budget asked for rewrites. hints
 * NULL: none. */
stint_status sti_step_choose(sti_setup *setup, const sti_choice_hints *hints,
                             sti_step_plan *plan);
/* Lanes of the fastest way without any rewriting. */
int sti_step_fastest_lanes(const sti_setup *setup);
/* The lowest peak of the set-up as built, whatever its budget. This and the next leave
 * the networks planned one way or another. */
stint_status sti_step_lowest_peak(sti_setup *setup, size_t *peak_out);
/* The peak of one lane with these forms [values], or as built (NULL). */
stint_status sti_step_peak_with(sti_setup *setup, const uint8_t *form, int32_t values,
                                size_t *peak_out);

/* ---- step_tensors.c ---- */

/* What goes from forward to backward half of a network as built, with forms and the
 * blocks of packed ones by value (both NULL: as it is), into plan->tensors. */
stint_status sti_step_list_tensors(const stint_graph *graph, const uint8_t *form,
                                   const sti_pack_choice *blocks,
                                   stint_plan_result *result);

/* ---- step_repack.c: another plan for a run under way ---- */

/* The form that a value is to have, if it is not kept. */
typedef struct sti_value_form {
    stint_value value;
    int32_t form;
} sti_value_form;

/* Build and plan the training network anew with these packs, and with these rewrites
 * (forms NULL: those of the plan), lanes as they are; fills the result's parts, peak
 * and fits. On failure all is as it was. STINT_E_INPUT: a form of no value. */
stint_status sti_step_repack(sti_setup *setup, sti_step_plan *plan,
                             const sti_pack_choice *choices, int count,
                             const sti_value_form *forms, int form_count);
/* With as many lanes fewer as the budget asks for, if that helps. */
stint_status sti_step_fewer_lanes(sti_setup *setup, sti_step_plan *plan);
/* Look for a plan again, from the network as built: hints may know how large packed
 * blocks are (capacity 0: not worth packing). On failure there is no training network
 * any more. */
stint_status sti_step_rechoose(sti_setup *setup, sti_step_plan *plan,
                               const sti_choice_hints *hints);
/* Blocks as large as `sizes` says [count], of what is still worth packing; where that
 * does not fit, whatever is best now that sizes are known: other packs, or activations
 * made again. */
stint_status sti_step_enlarge(sti_setup *setup, sti_step_plan *plan,
                              const sti_pack_choice *sizes, int count);
/* The plan's forms as a list, [form_values]; their number. */
int sti_step_list_forms(const sti_step_plan *plan, sti_value_form *forms_out);

/* ---- step_held.c: what of a step is not kept as it is, to be handed on ---- */

typedef struct sti_held {
    sti_pack_choice *pack; /* [packs], own memory */
    sti_value_form *form;  /* [forms], likewise; of packed tensors, too */
    int packs, forms;
    double slowdown; /* expected by who chose it */
} sti_held;

void sti_held_fini(sti_held *held); /* a zeroed one is fine */
/* Arrays of so many, zeroed. STINT_E_MEMORY. */
stint_status sti_held_init(sti_held *held, int packs, int forms);
/* The choice that it was made of. */
sti_pack_choice sti_held_choice(const sti_node *pack);
/* What a planned training network and its plan hold how. */
stint_status sti_held_of(const sti_network *train, const sti_step_plan *plan,
                         sti_held *held_out);
/* Build and plan the set-up's training network so, with as many lanes as are fastest
 * and fit; whether it fits, the plan's result says. */
stint_status sti_step_hold(sti_setup *setup, sti_step_plan *plan, const sti_held *held);

#endif
