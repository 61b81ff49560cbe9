/* stint_eval: a model file over a test split. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/stop.h"
#include "data/data_section.h"
#include "infer/eval_run.h"
#include "infer/eval_use.h"
#include "infer/evaluate.h"
#include "infer/model_use.h"
#include "infer/recall.h"
#include "model/field_terms.h"

/* A batch of one lane: losses are summed alike for any number of threads. */
#define BATCH_DEFAULT  32
#define TOKENS_DEFAULT 1024 /* of text */
#define POINTS_DEFAULT 1024 /* of a field */

typedef struct eval_run {
    stint_model_file *model;
    stint_data *data;
    sti_corpus *text;        /* in place of data, for a text model */
    sti_field_points *field; /* likewise, for a field */
    sti_network network;
    sti_infer *infer;
    sti_data_decoders **decoders; /* [lanes] */
    int lanes;
    bool plans;                              /* the memory of the process */
    size_t memory_bytes, planned_peak_bytes; /* of it; 0: no budget, no plan */
    sti_corpus_part part;                    /* of the text */
    sti_evaluation evaluation;
    const sti_hearing *hearing; /* NULL: the model as it is, once */
    sti_posterior *posterior;   /* NULL: not wanted */
    int64_t count;              /* samples */
    stint_train_progress_fn *progress;
    void *user;
    int64_t start_ns;
} eval_run;

/* As the model's own tokeniser has it. */
static stint_status open_text(eval_run *run, const stint_data_desc *desc)
{
    const sti_data_values *data = sti_data_section_of(run->model->recipe);
    const sti_corpus_desc wanted = {.path = desc->path,
                                    .tokenizer = run->model->tokenizer,
                                    .validation = data->validation,
                                    .budget_bytes = run->memory_bytes};
    sti_corpus_part *part = &run->part;
    if (!run->model->tokenizer)
        return sti_fail(STINT_E_INPUT,
                        "the model holds no tokeniser, so it cannot read "
                        "text; it takes token identities only");
    stint_status st = sti_corpus_open(&wanted, &run->text);
    if (st != STINT_OK)
        return sti_fail_context(st, "data for this model");
    *part = desc->split == STINT_DATA_TRAIN ? run->text->train : run->text->test;
    if (desc->split == STINT_DATA_ALL) {
        *part = run->text->train;
        part->end = run->text->test.end;
        part->bytes = sti_corpus_bytes(run->text);
    }
    run->count = sti_corpus_test_windows(part, run->model->network.context);
    if (run->count == 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: that part of the text has %" PRId64
                        " tokens, but two are needed to predict one; give more text, "
                        "or --split all",
                        run->text->path, part->end - part->begin);
    return STINT_OK;
}

/* Was it trained on the outline of a picture? */
static stint_status find_outline(const stint_model_file *model, bool *outline_out)
{
    sti_field_terms terms = {.any = false};
    const stint_status st = sti_field_terms_parse(sti_field_section_of(model->recipe),
                                                  &model->network.names, &terms);
    *outline_out = st == STINT_OK && sti_field_has_normals(&terms);
    sti_field_terms_fini(&terms);
    return st;
}

static stint_status open_field(eval_run *run, const stint_data_desc *desc)
{
    const stint_field_desc *field = &run->model->network.field;
    sti_field_want want = {.path = desc->path,
                           .size = desc->size,
                           .channels = field->outputs == 1   ? 1
                                       : field->outputs == 3 ? 3
                                                             : 0};
    stint_status st = find_outline(run->model, &want.outline);
    if (st == STINT_OK)
        st = sti_field_points_open(&want, &run->field);
    if (st != STINT_OK)
        return sti_fail_context(st, "data for this model");
    run->count = run->field->count;
    if (run->field->coordinates == field->coordinates &&
        run->field->outputs == field->outputs)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s: points of %d coordinates and %d values, but the field has "
                    "%" PRId64 " and %" PRId64,
                    run->field->path, run->field->coordinates, run->field->outputs,
                    field->coordinates, field->outputs);
}

static stint_status open_images(const stint_model_file *model,
                                const stint_data_desc *desc, bool strangers,
                                stint_data **data_out)
{
    const sti_network_desc *net = &model->network;
    const stint_data_info like = {.height = net->height,
                                  .width = net->width,
                                  .channels = net->channels,
                                  .classes =
                                      strangers ? 0 : (int32_t)net->model.classes,
                                  .class_names = model->class_names};
    const sti_data_values *data_section = sti_data_section_of(model->recipe);
    stint_data_desc wanted = *desc;
    stint_data *data = NULL;
    if (net->field.coordinates > 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s is a field; a model of images was wanted", net->name);
    if (desc->split == STINT_DATA_ALL)
        return sti_fail(STINT_E_USAGE, "split all: is of text; images have train and "
                                       "test");
    wanted.like = &like;
    wanted.partial = !strangers;
    if (wanted.size == 0)
        wanted.size = data_section->size;
    if (wanted.fit == STINT_FIT_AUTO)
        wanted.fit = sti_recipe_fit(model->recipe);
    if (wanted.validation == 0 && data_section->validation > 0)
        wanted.validation = data_section->validation;
    wanted.nested = wanted.nested || data_section->nested;
    if (wanted.channels == 0)
        wanted.channels = (int)net->channels;
    stint_status st = stint_data_open(&wanted, &data);
    if (st != STINT_OK)
        return sti_fail_context(st, "data for this model");
    const stint_data_info *info = stint_data_describe(data);
    if (info->height != net->height || info->width != net->width ||
        info->channels != net->channels ||
        (!strangers && info->classes != like.classes)) {
        st = sti_fail(STINT_E_INPUT,
                      "%s: images of %dx%dx%d and %d classes, but the model takes "
                      "%dx%dx%d and %d; give the data it was trained for, or resize",
                      info->path, (int)info->height, (int)info->width,
                      (int)info->channels, (int)info->classes, (int)net->height,
                      (int)net->width, (int)net->channels, (int)net->model.classes);
        stint_data_close(data);
        return st;
    }
    *data_out = data;
    return STINT_OK;
}

stint_status sti_model_open_data(const stint_model_file *model,
                                 const stint_data_desc *desc, stint_data **data_out)
{
    return open_images(model, desc, false, data_out);
}

stint_status sti_model_open_strangers(const stint_model_file *model,
                                      const stint_data_desc *desc,
                                      stint_data **data_out)
{
    return open_images(model, desc, true, data_out);
}

static stint_status open_data(eval_run *run, const stint_data_desc *desc, bool tells)
{
    if (run->model->network.context)
        return open_text(run, desc);
    if (run->model->network.field.coordinates > 0)
        return open_field(run, desc);
    const bool strangers = run->hearing && run->hearing->strangers;
    const stint_status st = open_images(run->model, desc, strangers, &run->data);
    if (st != STINT_OK)
        return st;
    run->count = stint_data_describe(run->data)->count;
    return tells && !strangers ? sti_data_tell_absent(run->data) : STINT_OK;
}

/* Samples of one lane's batch. Losses are summed by batches, so threads do not count.
 */
static int64_t images_of(const eval_run *run, int64_t batch)
{
    const int64_t context = run->model->network.context;
    int64_t images = BATCH_DEFAULT;
    if (batch > 0)
        images = batch;
    else if (run->field)
        images = POINTS_DEFAULT;
    else if (context > 0)
        images = (TOKENS_DEFAULT + context - 1) / context;
    return images < run->count ? images : run->count;
}

/* The model as it is, in the memory that there is for it. */
static stint_status use_model(eval_run *run, int threads, int64_t images)
{
    const sti_eval_ask ask = {.model = run->model,
                              .data = run->data,
                              .count = run->count,
                              .images = images,
                              .threads = threads,
                              .memory_bytes = run->memory_bytes};
    sti_eval_use use = {.lanes = threads};
    const stint_status st = sti_eval_use_model(&ask, &run->network, &run->infer, &use);
    run->lanes = use.lanes;
    run->planned_peak_bytes = use.planned_peak_bytes;
    return st;
}

static stint_status create_lanes(eval_run *run, int threads, int64_t batch)
{
    const int64_t images = images_of(run, batch);
    stint_status st;
    run->lanes = threads;
    if (run->plans)
        STI_TRY(use_model(run, threads, images));
    else
        STI_TRY(
            (run->hearing && run->hearing->sampled ? sti_model_sample : sti_model_use)(
                run->model, images, threads, threads, &run->network, &run->infer));
    STI_TRY(sti_lane_decoders_create(
        run->data, run->lanes, sti_lane_threads(threads, run->lanes), &run->decoders));
    STI_TRY(sti_evaluation_init(&run->evaluation, run->count,
                                (int32_t)run->model->network.model.classes, images,
                                run->lanes));
    if (run->network.images < images)
        STI_TRY(sti_evaluation_in_parts(&run->evaluation, run->lanes));
out:
    return st;
}

static void tell(void *user, int64_t done, int64_t total)
{
    const eval_run *run = user;
    const stint_train_progress p = sti_evaluation_at(run->start_ns, done, total);
    if (run->progress)
        run->progress(run->user, &p);
}

static stint_status take_result(const eval_run *run, double seconds, void *out_)
{
    stint_eval_result *out = out_;
    const sti_evaluation *e = &run->evaluation;
    stint_eval_result r = {.count = e->count,
                           .accuracy = e->accuracy,
                           .loss = e->loss,
                           .images_per_s = (double)e->count / seconds,
                           .relative_l2 = (double)NAN,
                           .bits_per_byte = (double)NAN,
                           .balanced_accuracy = (double)NAN,
                           .lowest_recall = (double)NAN,
                           .lowest_class = -1,
                           .planned_peak_bytes = run->planned_peak_bytes,
                           .classes = e->classes};
    if (run->text) {
        r.tokens = run->part.end - run->part.begin - 1;
        r.bits_per_byte = sti_corpus_bits_per_byte(&run->part, e->loss);
        r.peak_rss_bytes = sti_process_peak_bytes();
        *out = r;
        return STINT_OK;
    }
    if (run->field) {
        r.relative_l2 = sqrt(r.loss / sti_field_points_mean_square(run->field));
        r.peak_rss_bytes = sti_process_peak_bytes();
        *out = r;
        return STINT_OK;
    }
    int64_t classes = e->classes;
    r.class_count = sti_alloc_array(classes, sizeof *r.class_count, "class counts");
    r.class_correct = sti_alloc_array(classes, sizeof *r.class_correct, "class counts");
    r.confusion = sti_alloc_array(classes * classes, sizeof *r.confusion, "confusion");
    if (!r.class_count || !r.class_correct || !r.confusion) {
        stint_eval_fini(&r);
        return STINT_E_MEMORY;
    }
    for (int64_t i = 0; i < e->count; i++)
        r.confusion[sti_data_label(run->data, i) * classes + e->predicted[i]]++;
    sti_recall_count(e, run->data, r.class_count, r.class_correct);
    const sti_recall recall = sti_recall_of(r.classes, r.class_count, r.class_correct);
    r.balanced_accuracy = recall.mean;
    r.lowest_recall = recall.lowest;
    r.lowest_class = recall.lowest_class;
    r.peak_rss_bytes = sti_process_peak_bytes();
    *out = r;
    return STINT_OK;
}

/* Evaluation with everything made and taken down around it; take (or NULL) reads what
 * it left. */
typedef stint_status take_fn(const eval_run *run, double seconds, void *out);

static stint_status run_lanes(eval_run *run, float *logits)
{
    const sti_eval_source source = {.data = run->data,
                                    .decoders = run->decoders,
                                    .norm = &run->model->norm,
                                    .text = run->text,
                                    .field = run->field,
                                    .part = run->part,
                                    .strangers =
                                        run->hearing && run->hearing->strangers};
    run->start_ns = sti_clock_ns();
    run->evaluation.logits = logits;
    run->evaluation.draws = run->hearing ? &run->hearing->draws : NULL;
    stint_status st =
        sti_evaluate(&run->infer->lanes, &source, NULL, &run->evaluation, tell, run);
    return st == STINT_OK && !isfinite(run->evaluation.loss)
               ? sti_model_not_finite(run->model)
               : st;
}

/* Before any network is heard. */
static stint_status make_opinions(const eval_run *run)
{
    sti_opinions *o = run->hearing->draws.opinions;
    if (!o->sum)
        return sti_opinions_init(o, run->count,
                                 (int32_t)run->model->network.model.classes);
    return o->count == run->count ? STINT_OK
                                  : sti_fail(STINT_E_INPUT, "%s has changed meanwhile",
                                             stint_data_describe(run->data)->path);
}

static stint_status find_posterior(const eval_run *run)
{
    const sti_bayes_desc *bayes = &run->model->network.bayes;
    if (bayes->samples > 0)
        return sti_posterior_of(&run->network, run->infer->params, bayes,
                                run->posterior);
    *run->posterior = (sti_posterior){.kl = (double)NAN,
                                      .sigma = {(double)NAN, (double)NAN, (double)NAN}};
    return STINT_OK;
}

static stint_status evaluate(eval_run *run, const stint_data_desc *data, int threads,
                             int64_t batch, float *logits, take_fn *take, void *out)
{
    int team;
    stint_status st;
    STI_TRY(sti_threads_choose(threads, &team, NULL));
    STI_TRY(open_data(run, data, !logits));
    STI_TRY(create_lanes(run, team, batch));
    if (run->hearing)
        STI_TRY(make_opinions(run));
    STI_TRY(run_lanes(run, logits));
    if (run->posterior)
        STI_TRY(find_posterior(run));
    if (take)
        STI_TRY(take(run, sti_seconds_since(run->start_ns), out));
out:
    sti_evaluation_fini(&run->evaluation);
    sti_lane_decoders_destroy(run->decoders, run->lanes);
    sti_infer_destroy(run->infer);
    sti_network_fini(&run->network);
    stint_data_close(run->data);
    sti_corpus_close(run->text);
    sti_field_points_close(run->field);
    sti_stop_clear();
    return st;
}

stint_status stint_eval_within(stint_model_file *model, const stint_eval_desc *desc,
                               stint_eval_result *result_out)
{
    eval_run run = {.model = model,
                    .plans = true,
                    .memory_bytes = desc->memory_bytes,
                    .progress = desc->progress,
                    .user = desc->user};
    if (desc->threads < 0 || desc->batch < 0)
        return sti_fail(STINT_E_USAGE,
                        "threads %d and batch %" PRId64 " must not be negative",
                        desc->threads, desc->batch);
    return evaluate(&run, &desc->data, desc->threads, desc->batch, NULL, take_result,
                    result_out);
}

stint_status stint_eval(stint_model_file *model, const stint_data_desc *data,
                        int threads, int64_t batch, stint_train_progress_fn *progress,
                        void *user, stint_eval_result *result_out)
{
    return stint_eval_within(model,
                             &(stint_eval_desc){.data = *data,
                                                .threads = threads,
                                                .batch = batch,
                                                .progress = progress,
                                                .user = user},
                             result_out);
}

stint_status sti_eval_logits(stint_model_file *model, const stint_data_desc *data,
                             int threads, int64_t batch,
                             stint_train_progress_fn *progress, void *user,
                             float *logits_out)
{
    eval_run run = {.model = model, .progress = progress, .user = user};
    if (model->network.context || model->network.field.coordinates > 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s is no model of images; this compares answers to images",
                        model->network.name);
    return evaluate(&run, data, threads, batch, logits_out, NULL, NULL);
}

/* ---- several networks ---- */

stint_status sti_eval_hear(const sti_hearing *h, stint_eval_result *result_out,
                           sti_posterior *posterior_out)
{
    eval_run run = {.model = h->model,
                    .hearing = h,
                    .posterior = posterior_out,
                    .progress = h->progress,
                    .user = h->user};
    if (h->model->network.context || h->model->network.field.coordinates > 0)
        return sti_fail(
            STINT_E_UNSUPPORTED,
            "%s is no model of images; several networks are heard of images "
            "alone",
            h->model->network.name);
    return evaluate(&run, h->data, h->threads, h->batch, NULL,
                    result_out ? take_result : NULL, result_out);
}

void stint_eval_fini(stint_eval_result *result)
{
    sti_free(result->class_count);
    sti_free(result->class_correct);
    sti_free(result->confusion);
    result->class_count = NULL;
    result->class_correct = NULL;
    result->confusion = NULL;
}
