/* The loop over steps. Whatever happens between two steps happens here: epochs close,
 * checkpoints are written, requests to stop are met. A step itself allocates nothing.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/rng.h"
#include "train/average.h"
#include "train/grow_noise.h"
#include "train/kl_course.h"
#include "train/prune.h"
#include "train/recipe_view.h"
#include "train/run.h"
#include "train/select.h"
#include "train/shrink_recipe.h"

/* ---- a step ---- */

static const int32_t *samples_at(sti_run *run, const sti_course_point *at)
{
    const int64_t epoch = at->epoch;
    const uint64_t seed = sti_recipe_seed(run->recipe, STI_STREAM_SHUFFLE);
    if (epoch != run->order_epoch && run->balanced)
        sti_balanced_order_draw(run->balanced, seed, epoch, run->order);
    else if (epoch != run->order_epoch)
        sti_shuffle(seed, STI_STREAM_SHUFFLE, (uint64_t)epoch,
                    run->job.inputs.train_count, run->order);
    run->order_epoch = epoch;
    return run->order + at->image;
}

/* The images of the step after this one, unless another epoch's order is needed. */
static void prefetch_next(sti_run *run, int64_t step)
{
    const sti_course_point next = sti_course_at(&run->job.course, step + 1);
    const int64_t each = next.accumulate * run->job.setup.train.images; /* a shard */
    if (run->job.inputs.train_data && next.image > 0 && step + 1 < run->job.steps)
        sti_data_prefetch(run->job.inputs.train_data,
                          samples_at(run, &next) + run->engine->local.first * each,
                          run->engine->local.count * each);
}

static stint_status not_finite(sti_run *run, const sti_step_batch *batch)
{
    const bool at_once = batch->update != NULL;
    stint_status st = sti_step_engine_diagnose(run->engine, batch);
    run->common = true; /* all ranks have the same sum */
    return sti_fail_context(
        st,
        "step %" PRId64 ": the loss or a gradient is not finite, so %s and the "
        "checkpoints in %s stay; try a lower optimizer.lr or a longer "
        "schedule.warmup%s. First bad tensor",
        batch->step + 1,
        at_once
            ? "it and the updates after it were not made (update.at_once made those "
              "before it), the last checkpoint is what counts,"
            : "the weights were left as they were",
        run->checkpoints, sti_shrink_words(run, batch->step));
}

static void count_step(sti_run *run, const sti_step_result *result, int64_t batch,
                       double seconds)
{
    sti_position *p = &run->position;
    double images = (double)batch;
    p->step++;
    p->epoch_loss += result->loss * images;
    p->epoch_correct += result->correct;
    p->epoch_images += batch;
    p->line_loss += result->loss * images;
    p->line_correct += result->correct;
    p->line_images += batch;
    run->images += batch;
    run->epoch_images += batch;
    run->line_images += batch;
    run->batch = batch;
    run->steps_here++;
    run->step_s += seconds;
    run->epoch_s += seconds;
    run->line_s += seconds;
}

static sti_data_augment augment_of_epoch(const sti_run *run, int64_t epoch)
{
    const sti_recipe_view v = sti_recipe_view_of(run->recipe);
    return (sti_data_augment){.crop_pad = (int)v.data->crop_pad,
                              .flip = v.data->flip,
                              .scale_crop = v.data->scale_crop,
                              .seed = sti_recipe_seed(run->recipe, STI_STREAM_AUGMENT),
                              .epoch = (uint64_t)epoch};
}

static sti_mixup mixup_of_epoch(const sti_run *run, int64_t epoch)
{
    const sti_data_values *data = sti_data_section_of(run->recipe);
    return (sti_mixup){.mixup = data->mixup,
                       .cutmix = data->cutmix,
                       .seed = sti_recipe_seed(run->recipe, STI_STREAM_AUGMENT),
                       .epoch = (uint64_t)epoch};
}

static sti_step_batch batch_of_step(sti_run *run, const sti_data_augment *augment,
                                    const sti_mixup *mixup, const sti_course_point *at,
                                    int64_t step)
{
    const sti_recipe_view v = sti_recipe_view_of(run->recipe);
    return (sti_step_batch){
        .samples = samples_at(run, at),
        .accumulate = at->accumulate,
        .augment = augment,
        .mixup = mixup->mixup > 0 || mixup->cutmix > 0 ? mixup : NULL,
        .norm = &run->norm,
        .loss_weights = run->loss.weight,
        .class_weights = run->job.inputs.class_weights,
        .kl_weight = (float)sti_kl_weight(v.bayes, run->job.inputs.train_count,
                                          &run->job.course, at),
        .seed = sti_recipe_seed(run->recipe, STI_STREAM_DROPOUT),
        .noise = (uint64_t)v.noise->order,
        .step = step};
}

/* The second step of a run that works harder to fit its budget is timed by operator, to
 * set what was expected of it beside what it is. */
static bool is_timed(const sti_run *run)
{
    /* Only the first of several ranks is timed, which has the log. */
    return run->log && run->steps_here == 1 && run->job.plan.result.slowdown > 1 &&
           !run->desc->profile;
}

static stint_status begin_timing(sti_run *run, sti_profile *timing)
{
    stint_status st = sti_profile_begin(timing, run->job.setup.train.plan->graph,
                                        run->job.setup.shards, run->job.plan.lanes,
                                        run->engine->lane_team.threads);
    if (st == STINT_OK)
        run->engine->profile = timing;
    return st;
}

static stint_status end_timing(sti_run *run, int64_t step)
{
    sti_profile *timing = run->engine->profile;
    double measured = sti_profile_slowdown(timing);
    run->engine->profile = NULL;
    sti_profile_fini(timing);
    sti_log(STINT_LOG_INFO,
            "fitting the budget: a step takes %.2f times as long, expected %.2f",
            measured, run->job.plan.result.slowdown);
    return sti_run_log_slowdown(run->log, step, run->job.plan.result.slowdown,
                                measured);
}

/* At the beginning of an epoch in which the share still grows. What was cut by a run
 * that was stopped there is cut again: nothing changes. */
static void prune_more(sti_run *run, const sti_course_point *at)
{
    const sti_recipe_view v = sti_recipe_view_of(run->recipe);
    if (run->engine->mask && !run->projection && at->image == 0 && at->epoch > 0 &&
        at->epoch <= v.prune->epochs)
        sti_prune(run->engine, sti_prune_share(v.prune, at->epoch), v.prune->scope);
}

/* Forward and backward of a step's batch, timed if need be. */
static stint_status run_batch(sti_run *run, sti_step_batch *batch, bool collect,
                              sti_step_result *result)
{
    sti_profile timing = {0};
    const bool timed = is_timed(run);
    stint_status st = timed ? begin_timing(run, &timing) : STINT_OK;
    if (st == STINT_OK)
        st = sti_run_batch(run, batch, collect, result);
    if (timed && st == STINT_OK)
        return end_timing(run, batch->step + 1);
    if (timed) {
        run->engine->profile = NULL;
        sti_profile_fini(&timing);
    }
    return st;
}

/* The parts of the loss, and their weights for the next step. */
static void follow_parts(sti_run *run, const sti_step_result *result, int64_t step)
{
    if (!run->job.inputs.reference)
        return;
    for (int i = 0; i < STI_LOSS_PARTS; i++) {
        run->part[i] = result->part[i];
        run->part_weight[i] =
            run->job.inputs.network.loss.factor[i] * run->loss.weight[i];
    }
    sti_loss_state_update(sti_loss_section_of(run->recipe),
                          sti_optimizer_section_of(run->recipe), result->part, run->lr,
                          step, &run->loss);
}

/* How bits of gradients were chosen, if they were. */
static stint_status log_net(const sti_run *run)
{
    const char *why =
        run->engine->exchange ? sti_exchange_news(run->engine->exchange) : NULL;
    return run->log && why ? sti_run_log_net(run->log, run->position.step, why)
                           : STINT_OK;
}

/* What the step says of the noise of gradients, and whether batches grow by it. */
static void follow_noise(sti_run *run, const sti_step_result *result, double squares,
                         const sti_course_point *at)
{
    const double runs = (double)run->engine->runs;
    const sti_noise_sample sample = {.micro = sti_setup_images(&run->job.setup),
                                     .batch = at->batch,
                                     .micro_squares = result->squares,
                                     .batch_squares = squares / (runs * runs)};
    if (!run->job.course.open)
        return;
    sti_noise_add(&sample, sti_grow_section_of(run->recipe)->smooth, &run->position);
    sti_noise_grow(run->recipe, run->job.inputs.train_count, &run->job.course,
                   &run->position);
    run->job.steps = run->job.course.steps;
}

static stint_status run_step(sti_run *run)
{
    const sti_recipe_view v = sti_recipe_view_of(run->recipe);
    int64_t start_ns = sti_clock_ns(), step = run->position.step;
    const sti_course_point at = sti_course_at(&run->job.course, step);
    sti_data_augment augment = augment_of_epoch(run, at.epoch);
    const sti_mixup mixup = mixup_of_epoch(run, at.epoch);
    sti_step_batch batch = batch_of_step(run, &augment, &mixup, &at, step);
    bool collect = run->control && sti_error_control_collects(run->control, step);
    sti_step_result result;
    stint_status st = sti_run_grow_networks(run, at.micro);
    if (st != STINT_OK)
        return st;
    prefetch_next(run, step);
    prune_more(run, &at);
    run->lr = sti_shrink_rate(run, step, sti_schedule_lr(&run->schedule, at.tick)) *
              at.lr_factor;
    const sti_update_step update = sti_step_engine_update_step(
        run->engine, v.optimizer, run->lr, step, &run->seen);
    const bool at_once = sti_graph_update_rule(run->job.setup.train.graph) != NULL;
    batch.update = at_once ? &update : NULL;
    st = run_batch(run, &batch, collect, &result);
    if (st != STINT_OK)
        return st;
    sti_shrink_gradients(run, step, result.block);
    /* Those of micro-batches are of all weights, pruned ones too. */
    const double whole =
        run->job.course.open
            ? sti_step_engine_gradient_squares(run->engine, result.block)
            : 0;
    sti_prune_gradients(run->engine, result.block);
    const double squares =
        at_once ? run->seen.squares
                : sti_step_engine_gradient_squares(run->engine, result.block);
    if (!isfinite(result.loss) || !isfinite(squares))
        return not_finite(run, &batch);
    run->gradient_norm = sqrt(squares) / (double)run->engine->runs;
    sti_step_engine_update(run->engine, v.optimizer, run->lr,
                           sti_update_clip(v.optimizer, run->gradient_norm),
                           sti_shrink_optimizer_step(run, step), result.block);
    sti_average_add(run->engine, v.train->average, step + 1);
    follow_parts(run, &result, step);
    int64_t step_ns = sti_clock_ns() - start_ns;
    count_step(run, &result, at.batch, (double)step_ns * 1e-9);
    follow_noise(run, &result, whole, &at);
    if (run->engine->profile) {
        run->engine->profile->step_ns += step_ns;
        run->engine->profile->steps++;
    }
    /* The plan may have lost its packs on the way. */
    return collect && run->control ? sti_run_choose_bounds(run, &result, step + 1)
                                   : STINT_OK;
}

/* After steps that run.hash_every divides, the last, and before the first. */
static stint_status log_hashes(sti_run *run)
{
    const int64_t every = sti_run_section_of(run->recipe)->hash_every;
    const int64_t step = run->position.step;
    if (!run->log || every == 0 || (step % every != 0 && step != run->job.steps))
        return STINT_OK;
    return sti_run_log_state(run->log, step, run->saver);
}

static stint_status log_step(sti_run *run)
{
    sti_position *p = &run->position;
    if (!run->log)
        return STINT_OK;
    stint_status hashed = log_hashes(run);
    if (hashed != STINT_OK || p->step % sti_run_section_of(run->recipe)->log_every != 0)
        return hashed;
    const double rate = sti_run_images_per_s(run->line_images, run->line_s);
    const sti_log_parts parts = {run->part, run->part_weight};
    const sti_log_figures figures = {
        .batch = run->batch,
        .lr = run->lr,
        .gradient_norm = run->gradient_norm,
        .noise_scale =
            run->job.course.open ? sti_noise_scale(&run->position) : (double)NAN,
        .epoch = run->job.course.grows ? sti_course_epochs(&run->job.course, p->step)
                                       : (double)NAN,
        .images_per_s = rate};
    stint_status st = sti_run_log_step(run->log, p, &figures,
                                       run->job.inputs.reference ? &parts : NULL);
    double images = (double)p->line_images;
    if (st == STINT_OK)
        st = sti_tensorboard_scalar(run->board, "loss/train", p->step,
                                    p->line_loss / images);
    if (st == STINT_OK)
        st = sti_tensorboard_scalar(run->board, "lr", p->step, run->lr);
    if (st == STINT_OK)
        st = sti_tensorboard_scalar(run->board, "images_per_s", p->step, rate);
    p->line_loss = p->line_correct = 0;
    p->line_images = run->line_images = 0;
    run->line_s = 0;
    return st;
}

/* ---- between steps ---- */

static stint_status save(sti_run *run)
{
    sti_exchange *exchange = run->engine->exchange;
    if (!sti_run_is_first(run))
        return exchange ? sti_exchange_follow_save(exchange) : STINT_OK;
    return sti_saver_write_checkpoint(run->saver, &run->position, run->checkpoints,
                                      sti_run_section_of(run->recipe)->keep);
}

/* Save and hand on why the run stops. */
static stint_status stop_here(sti_run *run, stint_status why)
{
    stint_status st = save(run);
    if (st != STINT_OK)
        return st;
    run->common = true;
    return sti_fail(why,
                    "stopped after step %" PRId64 " of %" PRId64
                    "; the checkpoint is saved, --resume goes on from it",
                    run->position.step, run->job.steps);
}

/* Packed tensors have outgrown the budget, and nothing else fits either. What was
 * reached is kept. */
static stint_status stop_short(sti_run *run)
{
    char words[2048];
    snprintf(words, sizeof words, "%s", stint_last_error());
    stint_status st = save(run);
    if (st != STINT_OK)
        return st;
    return sti_fail(STINT_E_BUDGET,
                    "after step %" PRId64
                    " packed activations take more than they did: "
                    "%s; the checkpoint is saved, --resume goes on from it within a "
                    "larger budget",
                    run->position.step, words);
}

static bool is_stop(stint_status st)
{
    return st == STINT_E_INTERRUPTED || st == STINT_E_TERMINATED;
}

static stint_status evaluate(sti_run *run)
{
    int64_t start_ns = sti_clock_ns();
    stint_status st =
        sti_step_engine_evaluate(run->engine, STI_EVALUATE_TEST, &run->norm,
                                 &run->evaluation, sti_run_tell_evaluated, run);
    if (st != STINT_OK)
        return st;
    run->evaluation_s = sti_seconds_since(start_ns);
    if (run->engine->profile) {
        run->engine->profile->evaluate_ns += sti_clock_ns() - start_ns;
        run->engine->profile->evaluations++;
    }
    run->evaluated = true;
    run->position.test_loss = run->evaluation.loss;
    run->position.test_accuracy = run->evaluation.accuracy;
    return STINT_OK;
}

static stint_status board_epoch(sti_run *run, bool tested)
{
    const sti_position *p = &run->position;
    stint_status st = sti_tensorboard_scalar(run->board, "accuracy/train", p->step,
                                             p->train_accuracy);
    if (st == STINT_OK && tested)
        st = sti_tensorboard_scalar(run->board, "loss/test", p->step, p->test_loss);
    if (st == STINT_OK && tested)
        st = sti_tensorboard_scalar(run->board, "accuracy/test", p->step,
                                    p->test_accuracy);
    return st;
}

/* The epoch's sums become its line in the log; the model file follows it. */
static stint_status record_epoch(sti_run *run, int64_t epoch, bool tested)
{
    sti_position *p = &run->position;
    double images = (double)p->epoch_images;
    const double rate = sti_run_images_per_s(run->epoch_images, run->epoch_s);
    p->train_loss = p->epoch_loss / images;
    p->train_accuracy = p->epoch_correct / images;
    p->epoch_loss = p->epoch_correct = 0;
    p->epoch_images = run->epoch_images = 0;
    const sti_log_validation held_out = {
        .count = run->job.inputs.validation_count,
        .right = run->job.inputs.text ? -1 : run->validation_right,
        .loss = run->validation.loss,
        .others = run->reference_answer ? run->validation_others : -1};
    stint_status st = run->log
                          ? sti_run_log_epoch(run->log, p, epoch, tested,
                                              sti_select_wanted(run) ? &held_out : NULL,
                                              rate, run->epoch_s)
                          : STINT_OK;
    if (st == STINT_OK)
        st = board_epoch(run, tested);
    if (st == STINT_OK && sti_run_is_first(run) && !sti_shrink_chooses(run->recipe) &&
        (!sti_select_wanted(run) || p->chosen_step == p->step))
        st = sti_saver_write_model(run->saver, p, run->model_path);
    run->epoch_s = 0;
    return st;
}

static bool epoch_is_over(const sti_run *run)
{
    const sti_position *p = &run->position;
    return p->epoch_images > 0 &&
           (sti_course_at(&run->job.course, p->step).image == 0 ||
            p->step == run->job.steps);
}

static stint_status log_early_stop(sti_run *run, int64_t epoch)
{
    const int64_t best = sti_select_better_epoch(run);
    if (!run->log || run->position.step == run->job.steps)
        return STINT_OK;
    sti_log(STINT_LOG_INFO,
            "no epoch since %" PRId64 " was better, so the run ends after %" PRId64
            " of %" PRId64 " (train.patience)",
            best, epoch, run->job.epochs);
    return sti_run_log_early_stop(run->log, run->position.step, best);
}

static bool is_time_over(const sti_run *run)
{
    const double time = sti_train_section_of(run->recipe)->time;
    return time > 0 && sti_seconds_since(run->start_ns) >= time;
}

static stint_status close_epoch(sti_run *run)
{
    const sti_recipe_view v = sti_recipe_view_of(run->recipe);
    int64_t epoch = sti_course_epoch(&run->job.course, run->position.step);
    sti_average_swap(run->engine); /* judged and written are the averages */
    stint_status st = sti_select_wanted(run) ? sti_select_epoch(run, epoch) : STINT_OK;
    bool enough = sti_select_is_enough(run);
    run->time_over = is_time_over(run);
    bool last = enough || run->time_over || run->position.step == run->job.steps;
    bool tested =
        run->job.inputs.test_count > 0 && !sti_shrink_chooses(run->recipe) &&
        (last || (v.train->eval_every > 0 && epoch % v.train->eval_every == 0));
    if (st == STINT_OK && tested)
        st = evaluate(run);
    if (st == STINT_OK)
        st = record_epoch(run, epoch, tested);
    sti_average_swap(run->engine);
    if (is_stop(st))
        return stop_here(run, st);
    if (st == STINT_OK && enough)
        st = log_early_stop(run, epoch);
    if (st == STINT_OK && (last || v.run->checkpoint_every == 0))
        st = save(run);
    if (st == STINT_OK)
        sti_run_tell_progress(run, true);
    return st;
}

/* A checkpoint in the course of an epoch. */
static bool checkpoint_is_due(const sti_run *run, bool asked)
{
    int64_t every = sti_run_section_of(run->recipe)->checkpoint_every;
    return asked ||
           (every > 0 && run->steps_here > 0 && run->position.step % every == 0 &&
            run->position.step < run->job.steps);
}

/* Requests to save or to stop, after whatever ended with the last step. */
static stint_status handle_requests(sti_run *run)
{
    bool asked = false;
    stint_status stop = STINT_OK, st = sti_run_share_requests(run, &asked, &stop);
    if (st == STINT_OK && checkpoint_is_due(run, asked))
        st = save(run);
    return st == STINT_OK && stop != STINT_OK ? stop_here(run, stop) : st;
}

/* Compressions, which look at images and so may be stopped. */
static stint_status shrink(sti_run *run)
{
    const stint_status st = sti_shrink_between(run);
    return is_stop(st) ? stop_here(run, st) : st;
}

static stint_status loop(sti_run *run)
{
    stint_status st = run->log && run->position.step == 0 ? log_hashes(run) : STINT_OK;
    while (st == STINT_OK) {
        st = shrink(run); /* before checkpoints, which then hold what it came to */
        if (st == STINT_OK && epoch_is_over(run))
            st = close_epoch(run);
        if (st != STINT_OK || run->position.step >= run->job.steps ||
            sti_select_is_enough(run) || run->time_over)
            return st;
        st = handle_requests(run);
        if (st == STINT_OK && (st = run_step(run)) == STINT_E_BUDGET)
            return stop_short(run);
        if (st == STINT_OK)
            st = log_net(run);
        if (st == STINT_OK)
            st = log_step(run);
        if (st != STINT_OK)
            return st;
        sti_run_tell_progress(run, false);
    }
    return st;
}

/* A rank was lost, or gave up: what this one holds is the state after the last whole
 * step, on every rank the same, and is worth keeping. */
static stint_status rescue(sti_run *run, stint_status st)
{
    char words[1024];
    if (!sti_run_is_first(run) || run->steps_here == 0)
        return st;
    snprintf(words, sizeof words, "%s", stint_last_error());
    if (save(run) != STINT_OK)
        return sti_fail(st, "%s; and the checkpoint could not be saved: %s", words,
                        stint_last_error());
    const bool owed =
        run->engine->exchange && sti_exchange_of_recipe(run->recipe).allreduce.feedback;
    return sti_fail(st,
                    "%s; the checkpoint after step %" PRId64 " of %" PRId64
                    " is saved%s, --resume goes on from it",
                    words, run->position.step, run->job.steps,
                    owed ? " without what its compressed sums still owe" : "");
}

stint_status sti_run_loop(sti_run *run)
{
    stint_status st = loop(run);
    bool lost = run->comm && sti_comm_failure(run->comm, NULL, 0, NULL) != STINT_OK;
    return st != STINT_OK && lost ? rescue(run, st) : st;
}
