#include "train/select.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "infer/eval_run.h"
#include "train/recipe_view.h"
#include "train/shrink_recipe.h"

bool sti_select_wanted(const sti_run *run)
{
    return sti_train_section_of(run->recipe)->select != STI_SELECT_LAST &&
           !sti_shrink_section_of(run->recipe)->scheme;
}

bool sti_select_looks(const sti_run *run)
{
    return sti_select_wanted(run) ||
           (sti_shrink_chooses(run->recipe) && run->job.inputs.validation_count > 0);
}

/* ---- the reference's answers ---- */

static stint_status ask_reference(sti_run *run, float *logits)
{
    const sti_job *job = &run->job;
    const stint_data_desc held_out =
        sti_recipe_data_desc(job->inputs.recipe, STI_PART_VALIDATION);
    const int64_t count = job->inputs.validation_count;
    const int32_t classes = (int32_t)job->inputs.network.model.classes;
    /* No more at once than a step of training has. */
    stint_status st =
        sti_eval_logits(job->inputs.reference, &held_out, job->plan.lanes,
                        job->setup.train.images * job->plan.lanes, NULL, NULL, logits);
    for (int64_t i = 0; i < count && st == STINT_OK; i++) {
        const int32_t best = sti_largest_logit(logits + i * classes, classes);
        run->reference_answer[i] = best;
        run->reference_right += best == sti_data_label(job->inputs.validation_data, i);
    }
    return st;
}

stint_status sti_select_begin(sti_run *run)
{
    const sti_job *job = &run->job;
    if (sti_train_section_of(run->recipe)->select != STI_SELECT_MISMATCH)
        return STINT_OK;
    const size_t row_bytes = (size_t)job->inputs.network.model.classes * sizeof(float);
    float *logits = sti_alloc_array(job->inputs.validation_count, row_bytes, "scores");
    run->reference_answer =
        sti_alloc_array(job->inputs.validation_count, sizeof *run->reference_answer,
                        "reference's answers");
    stint_status st =
        logits && run->reference_answer ? ask_reference(run, logits) : STINT_E_MEMORY;
    sti_free(logits);
    sti_memory_trim();
    return st;
}

/* ---- an epoch ---- */

static int sign(int64_t x)
{
    return (x > 0) - (x < 0);
}

/* Than the chosen epoch: 1, as good: 0, worse: -1. */
static int how_much_better(const sti_run *run, int64_t right, int64_t others)
{
    const sti_position *p = &run->position;
    if (p->chosen_step == 0)
        return 1;
    if (sti_train_section_of(run->recipe)->select == STI_SELECT_LOSS)
        return (run->validation.loss < p->chosen_loss) -
               (run->validation.loss > p->chosen_loss);
    if (sti_train_section_of(run->recipe)->select == STI_SELECT_ACCURACY)
        return sign(right - p->chosen_right);
    const double least =
        (double)run->reference_right - sti_train_section_of(run->recipe)->select_drop *
                                           (double)run->job.inputs.validation_count;
    const bool now = (double)right >= least, then = (double)p->chosen_right >= least;
    if (now != then)
        return now ? 1 : -1;
    if (others != p->chosen_others)
        return sign(p->chosen_others - others);
    return sign(right - p->chosen_right);
}

static bool is_judged(const sti_run *run, int64_t epoch)
{
    const sti_recipe_view v = sti_recipe_view_of(run->recipe);
    return v.prune->sparsity == 0 || epoch > v.prune->epochs;
}

stint_status sti_select_epoch(sti_run *run, int64_t epoch)
{
    sti_evaluation *e = &run->validation;
    int64_t right = 0, others = 0;
    stint_status st = sti_step_engine_evaluate(run->engine, STI_EVALUATE_VALIDATION,
                                               &run->norm, e, NULL, NULL);
    for (int64_t i = 0; i < e->count && e->classes > 0 && st == STINT_OK; i++) {
        right += e->predicted[i] == sti_data_label(run->job.inputs.validation_data, i);
        if (run->reference_answer)
            others += e->predicted[i] != run->reference_answer[i];
    }
    run->validation_right = right;
    run->validation_others = others;
    const int better = how_much_better(run, right, others);
    /* Later epochs win what is equal: the rate has fallen, they are trained better. */
    if (st != STINT_OK || !is_judged(run, epoch) || better < 0)
        return st;
    if (better > 0) {
        run->position.better_step = run->position.step;
        run->position.better_epoch = epoch;
    }
    run->position.chosen_step = run->position.step;
    run->position.chosen_epoch = epoch;
    run->position.chosen_right = right;
    run->position.chosen_others = others;
    run->position.chosen_loss = run->validation.loss;
    return STINT_OK;
}

/* Stages of batches that grew by noise are forgotten, so an epoch is noted when it
 * ends.
 */
static int64_t epoch_of(const sti_run *run, int64_t noted, int64_t step)
{
    return noted > 0 ? noted : sti_course_epoch(&run->job.course, step);
}

bool sti_select_is_enough(const sti_run *run)
{
    const int64_t patience = sti_train_section_of(run->recipe)->patience;
    const sti_position *p = &run->position;
    return patience > 0 && p->better_step > 0 &&
           sti_course_at(&run->job.course, p->step).epoch -
                   epoch_of(run, p->better_epoch, p->better_step) >=
               patience;
}

int64_t sti_select_chosen_epoch(const sti_run *run)
{
    return epoch_of(run, run->position.chosen_epoch, run->position.chosen_step);
}

int64_t sti_select_better_epoch(const sti_run *run)
{
    return epoch_of(run, run->position.better_epoch, run->position.better_step);
}

/* ---- the end ---- */

stint_status sti_select_end(sti_run *run)
{
    stint_status st = STINT_OK;
    if (!sti_select_wanted(run))
        return STINT_OK;
    if (sti_run_is_first(run))
        st = sti_model_reload(run->model_path, run->position.chosen_step,
                              run->job.inputs.network.name, &run->job.setup.train,
                              run->engine->params, run->engine->states);
    st = sti_run_agree(run, st);
    run->evaluated = false; /* that was the last epoch */
    return st == STINT_OK ? sti_run_share_weights(run) : st;
}
