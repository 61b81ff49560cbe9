/* The course of a run: which images each step takes, at which rate, when batches grow.
 *
 * After AdaBatch (Devarakonda, Naumov and Garland 2017): every so many epochs the batch
 * is multiplied by a factor m and the learning rate by d, so that the rate an image
 * falls by d / m as in a run of one batch, while updates, and what ranks exchange for
 * them, become fewer. A batch grows by the micro-batches of a shard: networks, shard
 * tree and exchange stay as they are.
 *
 * Steps are of unequal size, so that the clock of a run is not its steps but epochs and
 * images. The course tells both apart: it is a list of stages, each with the step,
 * epoch and image that it begins at, and everything else is a function of the step and
 * of that list. Without [grow] there is one stage, and its last, incomplete batch of an
 * epoch is left out; a growing run takes the whole micro-batches a shard that are left,
 * at a rate scaled by their share of a batch.
 *
 * With `images` micro-batches grow before there are more of them, which is the paper's
 * way: a stage then has networks of its own (train/run_grow.c). */
#ifndef STI_TRAIN_GROW_H
#define STI_TRAIN_GROW_H

#include "base/recipe.h"

typedef struct sti_stage {
    int64_t step;         /* steps, */
    int64_t epoch, image; /* epochs and images of the epoch before it */
    int64_t accumulate;   /* micro-batches a shard */
    int64_t micro; /* times the images of the first ones ([grow] images); else 1 */
    double lr_factor;
} sti_stage;

typedef struct sti_course {
    int64_t unit;  /* images of a micro-batch of each shard: batches are multiples */
    int64_t units; /* of an epoch; images that are left are of no batch */
    int64_t epochs, steps;
    bool grows;       /* [grow] is on: incomplete batches count */
    bool open;        /* stages follow from what the run finds */
    int64_t limit;    /* steps that an open course ends after; 0: none */
    sti_stage *stage; /* [count], owned */
    int count;
} sti_course;

/* From [train] and [grow] over a training set of `count` images (or sequences), which a
 * batch is no more than. With [grow], stages are parts of train.epochs, and train.steps
 * may end the run before: STINT_E_USAGE where there are fewer. STINT_E_MEMORY. */
stint_status sti_course_create(const stint_recipe *recipe, int64_t count,
                               sti_course *course_out);
void sti_course_fini(sti_course *course); /* a zeroed one is fine */

/* Let a course without [grow] end after so many steps. */
void sti_course_end(sti_course *course, int64_t steps);
/* Another stage for an open course, in the place of those that began at its step or
 * later, and of older ones where there is no more room for them. */
void sti_course_go_on(sti_course *course, const sti_stage *stage);

/* Where a run is when so many steps are done, and the step that follows. */
typedef struct sti_course_point {
    int64_t epoch, image;      /* epochs done, and images of the one under way */
    int64_t accumulate, batch; /* of the step: micro-batches a shard, images in all */
    int64_t micro;             /* as its stage has it */
    int64_t whole;             /* images of a batch that the epoch's end does not cut */
    double lr_factor;          /* of what [schedule] says, at */
    int64_t tick;              /* this time: steps, or units of a growing run */
} sti_course_point;
sti_course_point sti_course_at(const sti_course *course, int64_t step);

/* Epochs that are done or under way after so many steps: the number, from 1, of the
 * epoch that the last step was of. */
int64_t sti_course_epoch(const sti_course *course, int64_t step);
/* The same with the share of the epoch under way. */
double sti_course_epochs(const sti_course *course, int64_t step);
/* Images that so many steps take. */
int64_t sti_course_images(const sti_course *course, int64_t step);
/* Images of the largest batch. */
int64_t sti_course_largest(const sti_course *course);
/* Ticks of an epoch and of the run, for sti_schedule_init. */
int64_t sti_course_epoch_ticks(const sti_course *course);
int64_t sti_course_ticks(const sti_course *course);
/* Steps of stage i. */
int64_t sti_course_stage_steps(const sti_course *course, int i);

#endif
