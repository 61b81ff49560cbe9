/* How the parts of a loss against a reference are weighed, step by step.
 *
 *   uniform    weights 1
 *   learnable  weight exp(-s) / 2, and s / 2 counts to the loss, so that s is trained
 *              by its gradient (1 - exp(-s) part) / 2: one s a part, starting at 0,
 *              with the optimiser and the rate of the weights and no decay. |s| <= 6,
 *              and the weights are made smaller together where they add up to more
 *              than the number of parts, as in uniform
 *   softadapt  softmax(beta rate), rate: change of a part's mean from one window of
 *              steps to the next (Heydari et al. 2019). Weights add up to 1, and change
 *              after each window
 *   focal      uniform; pairing counts 1 for inputs that the reference gets right, and
 *              base / (base + right) for others
 *
 * "part" is a part times its factor of the recipe. The state is a function of the
 * losses alone, so that a run keeps its bits; it is a tensor of the checkpoint. */
#ifndef STI_TRAIN_LOSS_MIX_H
#define STI_TRAIN_LOSS_MIX_H

#include "model/network.h"
#include "train/loss_section.h"
#include "train/optimizer_section.h"

typedef struct sti_loss_state {
    float weight[STI_LOSS_PARTS];
    float s[STI_LOSS_PARTS], moment[2][STI_LOSS_PARTS];  /* learnable */
    float sum[STI_LOSS_PARTS], previous[STI_LOSS_PARTS]; /* softadapt */
    float windows;                                       /* 1: previous is there */
} sti_loss_state;

enum { STI_LOSS_STATE = sizeof(sti_loss_state) / sizeof(float) };

/* The loss of a recipe; reference is filled in by the caller. */
sti_loss_desc sti_loss_of_recipe(const sti_loss_values *loss);

void sti_loss_state_init(const sti_loss_values *loss, sti_loss_state *state);
/* After a step: part [STI_LOSS_PARTS] without factors, step counted from 0. */
void sti_loss_state_update(const sti_loss_values *loss,
                           const sti_optimizer_values *optimizer, const double *part,
                           double lr, int64_t step, sti_loss_state *state);

#endif
