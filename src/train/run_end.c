/* The end of a run: the model, its answers and mistakes, the result, the last line of
 * the log. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/npy.h"
#include "infer/recall.h"
#include "model/posterior.h"
#include "store/model_file.h"
#include "train/average.h"
#include "train/grow_noise.h"
#include "train/lora_merge.h"
#include "train/recipe_view.h"
#include "train/run.h"
#include "train/select.h"
#include "train/shrink_recipe.h"

static stint_status check_reference(const sti_run *run)
{
    char sha256[65];
    if (!run->job.inputs.reference)
        return STINT_OK;
    sti_model_reference_sha256(run->job.inputs.reference, &run->job.setup.train,
                               run->engine->fixed, sha256);
    if (strcmp(sha256, run->reference_sha256) != 0 ||
        strcmp(sha256, run->job.inputs.reference->weights_sha256) != 0)
        return sti_fail(STINT_E_BUG, "the reference's weights changed in training");
    return STINT_OK;
}

/* What the answers say by class, of a run that gave some. */
static stint_status fill_recall(const sti_run *run, stint_train_result *r)
{
    const stint_data *test = run->job.inputs.test_data;
    sti_recall recall;
    if (!run->evaluated || !test)
        return STINT_OK;
    const stint_status st = sti_recall_find(&run->evaluation, test, &recall);
    if (st != STINT_OK || recall.lowest_class < 0)
        return st;
    r->balanced_accuracy = recall.mean;
    r->lowest_recall = recall.lowest;
    snprintf(r->lowest_class, sizeof r->lowest_class, "%s",
             stint_data_describe(test)->class_names[recall.lowest_class]);
    return STINT_OK;
}

/* How far the weights are from their prior, and how wide they are. */
static stint_status fill_posterior(const sti_run *run, stint_train_result *r)
{
    const sti_bayes_desc *bayes = &run->job.inputs.network.bayes;
    sti_posterior posterior;
    if (bayes->samples == 0)
        return STINT_OK;
    const stint_status st =
        sti_posterior_of(&run->job.setup.train, run->engine->params, bayes, &posterior);
    if (st != STINT_OK)
        return st;
    r->kl = posterior.kl;
    memcpy(r->sigma, posterior.sigma, sizeof r->sigma);
    return STINT_OK;
}

static void fill_result(const sti_run *run, stint_train_result *r)
{
    const sti_position *p = &run->position;
    *r = (stint_train_result){
        .train_loss = p->train_loss,
        .test_loss = p->test_loss,
        .test_accuracy = p->test_accuracy,
        .images_per_s = run->step_s > 0 ? (double)run->images / run->step_s : 0,
        .psnr = (double)NAN,
        .relative_l2 = (double)NAN,
        .bits_per_byte = (double)NAN,
        .balanced_accuracy = (double)NAN,
        .lowest_recall = (double)NAN,
        .seconds = sti_seconds_since(run->start_ns),
        .planned_peak_bytes = run->job.plan.result.peak_bytes,
        .peak_rss_bytes = sti_process_peak_bytes(),
        .seed = (uint64_t)sti_train_section_of(run->recipe)->seed,
        .threads = run->job.setup.threads,
        .lanes = run->job.plan.lanes,
        .batch = sti_course_at(&run->job.course, p->step > 0 ? p->step - 1 : 0).whole,
        .batch_first = run->job.setup.batch,
        .noise_scale = run->job.course.open ? sti_noise_scale(p) : (double)NAN,
        .kl = (double)NAN,
        .sigma = {(double)NAN, (double)NAN, (double)NAN},
        .shards = run->job.setup.shards,
        .steps = p->step,
        .epochs = run->job.epochs,
        .parameters = run->job.plan.result.parameters,
        .validation_loss = (double)NAN,
        .validation_accuracy = (double)NAN,
        .validation_mismatch = (double)NAN};
    for (int i = 0; i < STI_LOSS_PARTS && run->job.inputs.reference; i++) {
        r->loss_part[i] = run->part[i];
        r->loss_weight[i] = (double)run->part_weight[i];
    }
    if (p->chosen_step > 0) {
        const double count = (double)run->job.inputs.validation_count;
        r->chosen_epoch = sti_select_chosen_epoch(run);
        r->validation_loss = p->chosen_loss;
        if (!run->job.inputs.text)
            r->validation_accuracy = (double)p->chosen_right / count;
        if (sti_train_section_of(run->recipe)->select == STI_SELECT_MISMATCH)
            r->validation_mismatch = (double)p->chosen_others / count;
    }
    if (run->job.inputs.text) {
        r->tokens_per_s = r->images_per_s * (double)run->job.inputs.network.context;
        r->bits_per_byte =
            sti_corpus_bits_per_byte(&run->job.inputs.text->test, p->test_loss);
    }
    const sti_inputs *in = &run->job.inputs;
    if (in->field && in->field_test != in->field)
        r->relative_l2 =
            in->field_test
                ? sqrt(p->test_loss / sti_field_points_mean_square(in->field_test))
                : (double)NAN;
    else if (in->field)
        r->psnr = 10 * log10(4 / p->test_loss);
    sti_saver_weights_sha256(run->saver, r->weights_sha256);
    snprintf(r->out, sizeof r->out, "%s", run->out);
}

/* Resuming a finished run trains nothing, but its answers are wanted again. */
static stint_status evaluate_finished(sti_run *run)
{
    if (run->evaluated || run->job.inputs.test_count == 0)
        return STINT_OK;
    stint_status st = sti_step_engine_evaluate(
        run->engine, STI_EVALUATE_TEST, &run->norm, &run->evaluation, NULL, NULL);
    run->evaluated = st == STINT_OK;
    if (run->evaluated && (sti_select_wanted(run) || run->projection)) {
        run->position.test_loss = run->evaluation.loss;
        run->position.test_accuracy = run->evaluation.accuracy;
    }
    return st;
}

/* The class found for each test image, in the order of the data. */
static stint_status write_answers(const sti_run *run)
{
    const sti_evaluation *e = &run->evaluation;
    char *path = sti_path_join(run->arena, run->out, "answers.npy");
    return path ? sti_npy_write(path, "<i4", 1, &e->count, e->predicted,
                                (size_t)e->count * sizeof *e->predicted)
                : STINT_E_MEMORY;
}

static stint_status write_model_and_errors(sti_run *run)
{
    stint_status st = evaluate_finished(run);
    if (!sti_run_is_first(run))
        return st;
    sti_position at = run->position;
    if (sti_select_wanted(run))
        at.step = at.chosen_step;
    if (sti_shrink_chooses(run->recipe))
        at.step = at.shrink_step - 1;
    if (st == STINT_OK)
        st = sti_saver_write_model(run->saver, &at, run->model_path);
    if (st == STINT_OK && run->job.inputs.network.lora.rank > 0)
        st = sti_lora_write_peft(&run->job.setup.train, &run->job.inputs.network,
                                 run->engine->params, run->out);
    if (st != STINT_OK || !run->evaluated || !run->job.inputs.train_data)
        return st; /* (answers and mistakes are of images) */
    st = sti_run_section_of(run->recipe)->answers ? write_answers(run) : STINT_OK;
    if (st != STINT_OK)
        return st;
    char *path = sti_path_join(run->arena, run->out, "errors.json");
    return path ? sti_run_errors_write(path, run->recipe, &run->evaluation,
                                       run->job.inputs.test_data)
                : STINT_E_MEMORY;
}

static stint_status log_end(sti_run *run, stint_status status,
                            const stint_train_result *result)
{
    if (!run->log)
        return STINT_OK;
    return sti_run_log_end(
        run->log, status, result,
        run->evaluated && run->job.inputs.train_data ? &run->evaluation : NULL,
        run->job.inputs.test_data);
}

/* The graph is about to go. Only a machine that was measured before is compared with:
 * measuring takes memory that no budget knows of. */
static stint_status close_profile(const sti_run *run)
{
    sti_machine machine;
    bool known = sti_machine_stored(&machine);
    return run->desc->profile
               ? sti_profile_end(run->desc->profile, known ? &machine : NULL)
               : STINT_OK;
}

/* What was timed until a signal came, as far as it got. */
static void close_profile_early(const sti_run *run, stint_status why)
{
    const bool stopped = why == STINT_E_INTERRUPTED || why == STINT_E_TERMINATED;
    if (stopped && run->desc->profile && run->desc->profile->graph &&
        close_profile(run) != STINT_OK)
        sti_log(STINT_LOG_WARNING, "there is no profile: %s", stint_last_error());
}

stint_status sti_run_finish(sti_run *run, stint_status st, stint_train_result *result)
{
    if (st == STINT_OK)
        st = close_profile(run);
    if (st == STINT_OK)
        st = check_reference(run);
    if (st == STINT_OK && !sti_select_wanted(run))
        sti_average_swap(run->engine); /* for good: there are no more steps */
    if (st == STINT_OK)
        st = sti_select_end(run);
    if (st == STINT_OK)
        st = sti_shrink_end(run);
    if (st == STINT_OK)
        st = write_model_and_errors(run);
    fill_result(run, result);
    if (st == STINT_OK)
        st = fill_recall(run, result);
    if (st == STINT_OK)
        st = fill_posterior(run, result);
    if (st == STINT_OK)
        st = sti_run_share_end(run, result);
    if (st == STINT_OK)
        return sti_run_agree(run, log_end(run, st, result));
    char words[2048];
    snprintf(words, sizeof words, "%s", stint_last_error());
    close_profile_early(run, st);
    if (log_end(run, st, result) != STINT_OK)
        sti_log(STINT_LOG_WARNING, "%s", stint_last_error());
    return sti_fail(st, "%s", words);
}
