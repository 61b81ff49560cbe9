/* Which epoch's weights a run's model gets: the last, or the best by images or text
 * held out of training (train.validation, train.select).
 *
 * The best so far lies in model.safetensors itself, written when an epoch is better
 * than all before, so that choosing takes no memory; what it was judged by is part of
 * the position, so that a resumed run chooses as one that was not stopped. Only epochs
 * of the full sparsity are judged. Where the last train.patience of them were no better
 * than the best before, the run is at its end; ranks, which all have the same answers,
 * end together. */
#ifndef STI_TRAIN_SELECT_H
#define STI_TRAIN_SELECT_H

#include "train/run.h"

/* Does the run choose among epochs? (A compression scheme takes the compressed weights
 * of the lowest loss, which is what train.select = loss asks for.) */
bool sti_select_wanted(const sti_run *run);
/* Does it look at held-out images at all: for that, or to judge compressions? */
bool sti_select_looks(const sti_run *run);
/* The reference's answers to the held-out images, where they count. Of rank 0, before
 * the memory of a step is taken. */
stint_status sti_select_begin(sti_run *run);
/* After an epoch, counted from 1: ask the network, and note in the position whether its
 * weights are the ones to keep (position.chosen_step is then position.step). A stop
 * that was asked for is handed on. */
stint_status sti_select_epoch(sti_run *run, int64_t epoch);
/* Are there to be no more epochs? */
bool sti_select_is_enough(const sti_run *run);
/* The epochs, from 1, whose weights are the chosen ones, and that was the last to be
 * better than all before. */
int64_t sti_select_chosen_epoch(const sti_run *run);
int64_t sti_select_better_epoch(const sti_run *run);
/* The chosen weights back into the engine, on all ranks. */
stint_status sti_select_end(sti_run *run);

#endif
