/* The average of the weights over the steps of a run, which is what is judged and kept:
 * train.average (Polyak and Juditsky 1992, with forgetting).
 *
 * After update n, counted from 1, every parameter and running statistic x moves its
 * average a by a += (1 - d)(x - a), with d = min(train.average, (1 + n) / (10 + n)):
 * the first steps, far from where the run ends, are soon forgotten. The average lies in
 * blocks of the engine that are laid out as its parameters and states, is part of every
 * checkpoint, and changes nothing of how the run trains. A pruned weight has 0 as its
 * average from the step on in which it is cut. */
#ifndef STI_TRAIN_AVERAGE_H
#define STI_TRAIN_AVERAGE_H

#include "train/step_engine.h"

/* All of these do nothing for an engine without averages. */

/* Begin with the weights that there are. */
void sti_average_start(sti_step_engine *engine);
/* After the update of step n, counted from 1. */
void sti_average_add(sti_step_engine *engine, double average, int64_t n);
/* Weights and their average change places: before the network is judged or written, and
 * again after it. */
void sti_average_swap(sti_step_engine *engine);

#endif
