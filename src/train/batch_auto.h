/* batch = auto: the batch that a memory budget holds. */
#ifndef STI_TRAIN_BATCH_AUTO_H
#define STI_TRAIN_BATCH_AUTO_H

#include "base/recipe.h"
#include "train/job.h"

/* As sti_job_create; where train.batch is auto, of *settled_out, a copy of `recipe` for
 * the caller to destroy once the job is gone (also on failure; else untouched), with
 * batch, learning rate and warm-up settled by these rules.
 *
 * Shards stay as many as the recipe says, so the images of a shard grow. The largest
 * batch is what fits the budget, at most 16 times the reference batch and an eighth of
 * the training images. It and its halves, four at most, run a few steps each; the
 * largest that trains at 97 % of the best speed or more is taken. The learning rate is
 * multiplied by batch / reference_batch; where it rises and the schedule has no warm-up
 * of its own, the first twentieth of the run becomes one (Goyal et al. 2017). Should
 * that batch not fit when the job is made, the largest that does takes its place.
 *
 * out (absolute; NULL: none): a run's folder whose recipe.ini, if it is there, has the
 * numbers already: a resumed run goes on with them. Without probe (to plan) the largest
 * batch is taken untried. STINT_E_BUDGET when not even one image a shard fits;
 * STINT_E_USAGE with ranks (comm not NULL), which measure machines of their own;
 * STINT_E_INTERRUPTED and such when stopped while trying. */
stint_status sti_batch_create_job(const stint_recipe *recipe, sti_comm *comm,
                                  const char *out, bool probe,
                                  stint_recipe **settled_out, sti_job *job);

/* Images a second of a few steps of a training by this recipe, without its scheme and
 * from new weights, which are thrown away; 0: its batch does not fit. */
stint_status sti_batch_probe(const stint_recipe *recipe, double *images_per_s_out);

#endif
