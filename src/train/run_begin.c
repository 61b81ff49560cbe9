/* The beginning of a run: memory is taken, weights are new or a checkpoint's, files are
 * opened. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "store/model_file.h"
#include "train/average.h"
#include "train/grow_noise.h"
#include "train/prune.h"
#include "train/recipe_view.h"
#include "train/run.h"
#include "train/select.h"
#include "train/shrink_recipe.h"

typedef struct measuring {
    sti_run *run;
} measuring;

static void tell_measured(void *user, int64_t done, int64_t total)
{
    const measuring *m = user;
    const stint_train_desc *desc = m->run->desc;
    if (!desc->progress)
        return;
    desc->progress(desc->user, &(stint_train_progress){.steps = m->run->job.steps,
                                                       .epochs = m->run->job.epochs,
                                                       .test_loss = (double)NAN,
                                                       .test_accuracy = (double)NAN,
                                                       .evaluating = true,
                                                       .evaluated = done,
                                                       .to_evaluate = total});
}

/* Every image of a split is looked at: for its sums, its hash, and whether it can be
 * decoded at all. */
static stint_status look_at(sti_run *run, const stint_data *data, sti_data_norm *norm,
                            char hash_out[65])
{
    sti_team team = {.threads = run->job.setup.threads};
    sti_data_decoders *decoders;
    measuring m = {run};
    stint_status st = sti_data_decoders_create(data, team.threads, &decoders);
    if (st != STINT_OK)
        return st;
    st = sti_data_measure(data, &team, decoders, tell_measured, &m, norm);
    if (st == STINT_OK)
        sti_data_measured_hash(decoders, hash_out);
    sti_data_decoders_destroy(decoders);
    return st;
}

/* What new weights are to be trained with, and what tells the images from others. */
static stint_status measure_images(sti_run *run)
{
    const sti_inputs *in = &run->job.inputs;
    const stint_model_file *given = in->start ? in->start : in->reference;
    char *hash = run->job.images_hash;
    sti_data_norm held_out;
    if (in->text || in->field) { /* neither tokens nor points are normalised */
        if (given)
            run->own_norm = given->norm;
        return STINT_OK;
    }
    stint_status st = look_at(run, in->train_data, &run->own_norm, hash);
    if (st == STINT_OK && sti_select_looks(run)) {
        hash[64] = ' ';
        st = look_at(run, in->validation_data, &held_out, hash + 65);
    }
    if (given)
        run->own_norm = given->norm;
    return st;
}

/* The weights of the reference, which nothing may change until the run ends. */
static stint_status load_reference(sti_run *run)
{
    sti_loss_state_init(sti_loss_section_of(run->recipe), &run->loss);
    stint_status st = sti_model_load_reference(
        run->job.inputs.reference, &run->job.setup.train, run->engine->fixed);
    if (st == STINT_OK)
        sti_model_reference_sha256(run->job.inputs.reference, &run->job.setup.train,
                                   run->engine->fixed, run->reference_sha256);
    return st;
}

static stint_status create_parts(sti_run *run)
{
    sti_step_engine_desc desc = sti_job_engine(&run->job);
    stint_status st = sti_step_engine_create(&desc, &run->engine);
    if (st == STINT_OK && run->desc->profile) {
        st = sti_profile_begin(run->desc->profile, run->job.setup.train.plan->graph,
                               run->engine->local.count, desc.lanes,
                               run->engine->lane_team.threads);
        run->engine->profile = run->desc->profile;
    }
    if (st == STINT_OK && sti_shrink_wanted(run->recipe))
        st = sti_shrink_create_projection(run->recipe, &run->job.setup.train, false,
                                          &run->projection);
    if (st == STINT_OK)
        st = sti_shrink_begin(run);
    if (st == STINT_OK)
        st = sti_saver_create(&run->job, run->engine, run->projection, &run->norm,
                              run->job.setup.train.weights >= 0 ? &run->loss : NULL,
                              &run->saver);
    if (st == STINT_OK && run->job.inputs.reference)
        st = load_reference(run);
    if (st == STINT_OK)
        st = sti_run_create_control(run);
    if (st == STINT_OK && run->job.inputs.test_count > 0)
        st = sti_evaluation_init(&run->evaluation, run->job.inputs.test_count,
                                 (int32_t)run->job.inputs.network.model.classes,
                                 run->job.setup.train.images, run->job.plan.lanes);
    if (st == STINT_OK && sti_select_looks(run)) {
        st = sti_evaluation_init(&run->validation, run->job.inputs.validation_count,
                                 (int32_t)run->job.inputs.network.model.classes,
                                 run->job.setup.train.images, run->job.plan.lanes);
    }
    if (st != STINT_OK)
        return st;
    if (sti_data_section_of(run->recipe)->sampling == STI_SAMPLING_BALANCED)
        st = sti_balanced_order_create(run->job.inputs.train_data, &run->balanced);
    if (st != STINT_OK)
        return st;
    run->order =
        sti_alloc_array(run->job.inputs.train_count, sizeof *run->order, "order");
    run->order_epoch = -1;
    sti_schedule_init(&run->schedule, sti_schedule_section_of(run->recipe),
                      sti_optimizer_section_of(run->recipe)->lr,
                      sti_course_epoch_ticks(&run->job.course),
                      sti_course_ticks(&run->job.course));
    return run->order ? STINT_OK : STINT_E_MEMORY;
}

/* Memory that a checkpoint which turned out broken may have filled. */
static void clear_moments(sti_run *run)
{
    for (int i = 0; i < run->job.setup.moments; i++)
        memset(run->engine->moments[i], 0, run->engine->sizes.moments);
}

static stint_status draw_weights(sti_run *run)
{
    return sti_network_init_weights(&run->job.setup.train, &run->engine->team,
                                    sti_recipe_seed(run->recipe, STI_STREAM_INIT),
                                    run->engine->params, run->engine->states);
}

static void say_new_classifier(const sti_run *run)
{
    const stint_model_file *m = run->job.inputs.start;
    const int64_t there = m->network.model.classes;
    const stint_data_info *info = stint_data_describe(run->job.inputs.train_data);
    if (!m->class_names) {
        sti_log(STINT_LOG_INFO,
                "train.start: %s has scores for %d classes, these images are of %d "
                "('%s' to '%s'): its weights are kept but for the classifier, which "
                "begins anew",
                sti_train_section_of(run->recipe)->start, (int)there,
                (int)info->classes, info->class_names[0],
                info->class_names[info->classes - 1]);
        return;
    }
    sti_log(
        STINT_LOG_INFO,
        "train.start: %s tells %d classes apart ('%s' to '%s'), these images are of "
        "%d ('%s' to '%s'): its weights are kept but for the classifier, which "
        "begins anew",
        sti_train_section_of(run->recipe)->start, (int)there, m->class_names[0],
        m->class_names[there - 1], (int)info->classes, info->class_names[0],
        info->class_names[info->classes - 1]);
}

/* The weights of the model to begin with; where its classes are others, a new
 * classifier is among them. */
static stint_status start_weights(sti_run *run)
{
    const sti_inputs *in = &run->job.inputs;
    if (in->new_classifier && sti_run_is_first(run))
        say_new_classifier(run);
    const bool new_spreads =
        in->network.bayes.samples > 0 && in->start->network.bayes.samples == 0;
    const bool adapters = in->network.lora.rank > 0;
    stint_status st =
        in->new_classifier || new_spreads || adapters ? draw_weights(run) : STINT_OK;
    return st == STINT_OK ? sti_model_start(in->start, &in->network,
                                            &run->job.setup.train, in->new_classifier,
                                            run->engine->params, run->engine->states)
                          : st;
}

/* New weights, or those of the model to begin with; then what pruning leaves. */
static stint_status init_weights(sti_run *run)
{
    const sti_recipe_view v = sti_recipe_view_of(run->recipe);
    stint_status st = run->job.inputs.start ? start_weights(run) : draw_weights(run);
    if (st == STINT_OK && v.noise->ulp > 0)
        st = sti_network_flip_ulp(&run->job.setup.train, (uint64_t)v.noise->ulp,
                                  run->engine->params);
    if (st == STINT_OK && run->engine->mask && !run->projection)
        sti_prune(run->engine, sti_prune_share(v.prune, 0), v.prune->scope);
    if (st == STINT_OK)
        sti_average_start(run->engine);
    return st == STINT_OK ? sti_shrink_init(run) : st;
}

static stint_status start_fresh(sti_run *run)
{
    run->position = (sti_position){.train_loss = (double)NAN,
                                   .train_accuracy = (double)NAN,
                                   .test_loss = (double)NAN,
                                   .test_accuracy = (double)NAN};
    clear_moments(run);
    sti_loss_state_init(sti_loss_section_of(run->recipe), &run->loss);
    run->norm = run->own_norm;
    return init_weights(run);
}

/* Weights, position and normalisation: from a checkpoint, or new. *step_out: that of
 * the checkpoint, or -1. Of rank 0: the others get all by sti_run_share_start, and make
 * what they can themselves, so that it need not be sent. */
static stint_status load_or_init(sti_run *run, int64_t *step_out)
{
    bool found = false;
    stint_status st = STINT_OK;
    *step_out = -1;
    if (!sti_run_is_first(run))
        return run->desc->resume ? sti_run_follow_adoptions(run) : init_weights(run);
    /* A checkpoint of a part that is trained holds that part alone. */
    if (run->desc->resume && run->job.inputs.network.update)
        st = init_weights(run);
    if (st == STINT_OK && run->desc->resume) {
        sti_saver_on_adopt(run->saver, sti_run_adopt_packs, run);
        st = sti_saver_resume(run->saver, run->checkpoints, &run->position, &found);
        if (st == STINT_OK && !found)
            sti_log(STINT_LOG_INFO,
                    "%s: no checkpoint to resume from; starting from the beginning",
                    run->out);
    }
    if (run->desc->resume) {
        const stint_status told = sti_run_end_adoptions(run);
        st = st == STINT_OK ? told : st;
    }
    if (st != STINT_OK)
        return st;
    if (!found)
        return start_fresh(run);
    *step_out = run->position.step;
    sti_log(STINT_LOG_INFO, "resuming after step %" PRId64 " of %" PRId64,
            run->position.step, run->job.steps);
    return STINT_OK;
}

static stint_status open_logs(sti_run *run, int64_t resume_step)
{
    const char *board = sti_run_section_of(run->recipe)->tensorboard;
    stint_status st = sti_run_write_recipe(run);
    if (st == STINT_OK)
        st = sti_run_log_open(run->log_path, &run->job, resume_step,
                              run->position.epoch_images > 0, &run->log);
    if (st == STINT_OK && board && *board)
        st = sti_tensorboard_open(board, &run->board);
    return st;
}

/* The out folder, and what comes before the engine's memory is taken. */
static stint_status begin_out(sti_run *run)
{
    if (!sti_run_is_first(run))
        return STINT_OK;
    stint_status st = sti_run_lock_folder(run);
    if (st == STINT_OK)
        st = measure_images(run);
    return st == STINT_OK ? sti_select_begin(run) : st;
}

static stint_status begin_files(sti_run *run, int64_t resume_step)
{
    stint_status st = STINT_OK;
    if (!sti_run_is_first(run))
        return STINT_OK;
    if (!run->desc->resume)
        st = sti_run_remove_old(run);
    if (st == STINT_OK)
        st = sti_run_remove_leavings(run);
    return st == STINT_OK ? open_logs(run, resume_step) : st;
}

stint_status sti_run_begin(sti_run *run)
{
    int64_t resume_step = -1;
    stint_status st = sti_run_agree(run, begin_out(run));
    if (st != STINT_OK)
        return st;
    st = create_parts(run);
    if (st == STINT_OK)
        st = load_or_init(run, &resume_step);
    st = sti_run_agree(run, st);
    if (st == STINT_OK)
        st = sti_run_share_start(run);
    if (st == STINT_OK)
        st = sti_run_share_bounds(run);
    if (st == STINT_OK && run->job.course.open) {
        sti_noise_resume(run->recipe, &run->position, &run->job.course);
        run->job.steps = run->job.course.steps;
    }
    if (st == STINT_OK)
        st = sti_run_agree(run, begin_files(run, resume_step));
    return st;
}
