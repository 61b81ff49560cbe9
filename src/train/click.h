/* Pruning of kernels and their shapes within one training run, after ClickTrain (arXiv
 * 2011.10170).
 *
 * Up to the `select` share of the run the network trains as ever; over the last batches
 * before it the squares of weight times gradient are averaged, one number a weight.
 * Then K shapes are chosen that serve all layers, kernels are ranked by importance over
 * their layer, and each kernel gets its best shape. Until `hard` a group lasso draws
 * what will go to zero; from then on it is zero. */
#ifndef STI_TRAIN_CLICK_H
#define STI_TRAIN_CLICK_H

#include <stdint.h>

#include "stint/status.h"

struct sti_run;
struct sti_projection;
struct stint_recipe;

/* Has a run of so many steps room for the phases of its method? STINT_E_INPUT. Can its
 * ratio be reached? STINT_E_BUDGET. */
stint_status sti_click_check(const struct stint_recipe *recipe,
                             const struct sti_projection *projection, int64_t steps);
/* New weights are in the engine: can the size or latency of kernel(auto) be reached?
 * STINT_E_BUDGET. */
stint_status sti_click_init(struct sti_run *run);
/* The shares of layers that an earlier process of the run has settled. */
stint_status sti_click_take_over(struct sti_run *run);
/* After the last step. */
stint_status sti_click_end(struct sti_run *run);

/* The steps after which what goes is chosen, and is zero. */
typedef struct sti_click_phases {
    int64_t gather, select, hard;
} sti_click_phases;
sti_click_phases sti_click_phases_of(const struct sti_run *run);

/* As sti_shrink_between and sti_shrink_gradients of method click. */
stint_status sti_click_between(struct sti_run *run);
void sti_click_gradients(struct sti_run *run, int64_t step, char *block);

/* sum[i] += (w[i] g[i] scale)^2 */
void sti_click_gather(int64_t n, float scale, const float *w, const float *g,
                      float *sum);
/* The gradient, times scale, of the lasso
 *     lasso * sum over kernels (sqrt(|w outside of its shape|^2 + 1e-8)
 *                               + goes ? sqrt(|w|^2 + 1e-8) : 0)
 * added to g. Tap t of kernel k is number t * kernels + k; in_shape and stays are 1 or
 * 0 for each number. What is kept gets nothing, to the bit. */
void sti_click_lasso(int64_t kernels, int64_t taps, double lasso, float scale,
                     const float *w, const float *in_shape, const float *stays,
                     float *g);
/* Spearman's rank correlation of two rankings of n numbers; ties count as their mean
 * rank. scratch: 6 n floats. 1 where one of them is constant. */
double sti_click_correlation(int64_t n, const float *a, const float *b, float *scratch);

#endif
