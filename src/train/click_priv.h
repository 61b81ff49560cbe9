/* What the files of method click share. Importance is in the engine's first shadow,
 * what stays (1 or 0 for each number) in the second. */
#ifndef STI_TRAIN_CLICK_PRIV_H
#define STI_TRAIN_CLICK_PRIV_H

#include "train/project.h"

struct sti_run;
struct stint_recipe;

/* The word of this kind that takes a target, or NULL. */
const sti_scheme_word *sti_click_word(const sti_projection *p, const sti_target *t,
                                      sti_scheme_kind kind);
static inline int64_t sti_click_kernels(const sti_target *t)
{
    return t->form.channels * t->form.columns;
}
/* The importance of each kernel of a target, the sum of its taps'. */
void sti_click_sum_taps(const sti_target *t, const float *importance, float *kernel);
/* The layer's least kernels, the share rounded up but never all of them: 0 in stays_out
 * [numbers of the target], 1 for the rest. */
void sti_click_rank_kernels(sti_projection *p, const sti_target *t, double share,
                            const float *importance, float *stays_out);
/* K shapes for the scheme's patterns, by the kernels that stay, into p->shapes. */
void sti_click_choose_shapes(struct sti_run *run);

/* ---- click_shares.c: shares of layers for kernel(auto) ---- */

/* A share for every layer that kernel takes, in their order: the least importance is
 * lost at the ratio, size or latency of the recipe, by multiple-choice knapsack over
 * steps of 5 %. The shares of a run that is gone on with, where it had come so far. On
 * all ranks; the first one measures. STINT_E_BUDGET with what can be had. */
stint_status sti_click_share_out(struct sti_run *run, double *share_out);
/* Before anything is trained: can they be had at all? STINT_E_BUDGET. The ratio by the
 * shapes of weights; size and latency by new weights that are in the engine. */
stint_status sti_click_check_ratio(const struct stint_recipe *recipe,
                                   const sti_projection *p);
stint_status sti_click_check_limits(struct sti_run *run);
/* After the last step: is the compact file within the size? Logged if it is not. */
stint_status sti_click_check_size(struct sti_run *run);

/* ---- click_settled.c: shares that were chosen, in recipe.ini ---- */

/* The shares that sti_click_take_over found; false: there are none. */
bool sti_click_settled(const struct sti_run *run, double *share_out);
/* Put shares into the scheme and write recipe.ini anew. */
stint_status sti_click_settle(struct sti_run *run, const double *share, int layers);

#endif
