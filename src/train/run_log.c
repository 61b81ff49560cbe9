#include "train/run_log.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "train/train_section.h"

struct sti_run_log {
    int fd;
    char *path;
    sti_text line; /* kept between lines: no allocation once it is long enough */
    sti_json json;
};

/* ---- lines ---- */

static void begin_line(sti_run_log *log, const char *event)
{
    log->line.length = 0;
    log->json = (sti_json){.out = &log->line};
    sti_json_begin_object(&log->json, NULL);
    sti_json_text(&log->json, "event", event);
}

static stint_status end_line(sti_run_log *log)
{
    sti_json_end_object(&log->json);
    sti_text_add(&log->line, "\n");
    if (log->line.failed)
        return sti_fail(STINT_E_MEMORY, "%s: out of memory for a line", log->path);
    return sti_write_all(log->fd, log->path, log->line.data, log->line.length);
}

static void add_parts(sti_json *json, const stint_plan_result *plan)
{
    sti_json_begin_array(json, "parts");
    for (int i = 0; i < plan->part_count; i++) {
        sti_json_begin_object(json, NULL);
        sti_json_text(json, "name", plan->parts[i].name);
        sti_json_text(json, "detail", plan->parts[i].detail);
        sti_json_int(json, "bytes", (int64_t)plan->parts[i].bytes);
        sti_json_end_object(json);
    }
    sti_json_end_array(json);
}

static void add_tensors(sti_json *json, const stint_plan_result *plan)
{
    static const char *const forms[] = {"kept", "small form", "recomputed", "packed"};
    sti_json_begin_array(json, "tensors");
    for (int i = 0; i < plan->tensor_count; i++) {
        sti_json_begin_object(json, NULL);
        sti_json_text(json, "name", plan->tensors[i].name);
        sti_json_text(json, "form", forms[plan->tensors[i].form]);
        sti_json_int(json, "bytes", (int64_t)plan->tensors[i].bytes);
        sti_json_int(json, "held_bytes", (int64_t)plan->tensors[i].held_bytes);
        sti_json_end_object(json);
    }
    sti_json_end_array(json);
}

/* Where not everything is trained: what is, and what is kept for it. */
static void add_trained(sti_json *json, const sti_job *job)
{
    const sti_update_set *set = job->inputs.network.update;
    const stint_graph *g = job->setup.train.graph;
    if (!set)
        return;
    sti_json_begin_array(json, "trained");
    for (int32_t i = 0; i < sti_graph_output_count(g); i++) {
        const sti_output *output = &sti_graph_outputs(g)[i];
        const stint_shape shape = stint_value_shape(g, output->value);
        const sti_update_tensor *t = sti_update_set_find(set, output->name);
        if (output->kind != STI_OUTPUT_GRADIENT)
            continue;
        sti_json_begin_object(json, NULL);
        sti_json_text(json, "tensor", output->name);
        sti_json_float(json, "share", t ? (double)t->share / STI_SHARE_WHOLE : 1);
        sti_json_float(json, "gain", t ? t->gain : (double)NAN);
        sti_json_int(json, "bytes",
                     (int64_t)stint_shape_bytes(&shape) * (1 + job->setup.moments));
        sti_json_end_object(json);
    }
    sti_json_end_array(json);
}

static void add_text_data(sti_json *json, const sti_job *job)
{
    const sti_corpus *text = job->inputs.text;
    const stint_tokenizer_info *info = stint_tokenizer_describe(text->tokenizer);
    sti_json_text(json, "data", text->path);
    sti_json_text(json, "text_sha256", text->text_sha256);
    sti_json_text(json, "tokenizer_sha256", info->hash);
    sti_json_int(json, "vocabulary", info->vocabulary);
    sti_json_int(json, "context", job->inputs.network.context);
    sti_json_int(json, "train_count", job->inputs.train_count);
    sti_json_int(json, "test_count", job->inputs.test_count);
    sti_json_int(json, "train_tokens", text->train.end - text->train.begin);
    sti_json_int(json, "test_tokens", text->test.end - text->test.begin);
}

static void add_field_data(sti_json *json, const sti_job *job)
{
    const sti_field_points *field = job->inputs.field;
    sti_json_text(json, "data", field->path);
    sti_json_text(json, "field_sha256", field->sha256);
    sti_json_int(json, "train_count", job->inputs.train_count);
    sti_json_int(json, "test_count", job->inputs.test_count);
    sti_json_int(json, "coordinates", field->coordinates);
    sti_json_int(json, "outputs", field->outputs);
    sti_json_int(json, "height", field->height);
    sti_json_int(json, "width", field->width);
}

static void add_data(sti_json *json, const sti_job *job)
{
    if (job->inputs.field) {
        add_field_data(json, job);
        return;
    }
    if (job->inputs.text) {
        add_text_data(json, job);
        return;
    }
    const stint_data_info *info = stint_data_describe(job->inputs.train_data);
    sti_json_text(json, "data", info->path);
    sti_json_int(json, "classes", info->classes);
    sti_json_begin_array(json, "class_names");
    for (int32_t i = 0; i < info->classes; i++)
        sti_json_text(json, NULL, info->class_names[i]);
    sti_json_end_array(json);
    sti_json_int(json, "train_count", job->inputs.train_count);
    sti_json_int(json, "test_count", job->inputs.test_count);
    sti_json_int(json, "height", info->height);
    sti_json_int(json, "width", info->width);
    sti_json_int(json, "channels", info->channels);
}

static void start_line(sti_run_log *log, const sti_job *job)
{
    sti_json *json = &log->json;
    begin_line(log, "start");
    sti_json_text(json, "version", stint_version());
    sti_json_float(json, "time", sti_clock_unix_s());
    sti_json_text(json, "cpu", sti_cpu_name());
    sti_json_text(json, "isa", sti_isa_name(sti_isa_now()));
    sti_json_text(json, "network", job->inputs.network.name);
    add_data(json, job);
    sti_json_int(json, "batch", job->setup.batch);
    sti_json_int(json, "shards", job->setup.shards);
    sti_json_int(json, "steps", job->steps);
    sti_json_int(json, "epochs", job->epochs);
    sti_json_int(json, "seed", sti_train_section_of(job->inputs.recipe)->seed);
    sti_json_int(json, "parameters", job->plan.result.parameters);
    sti_json_int(json, "threads", job->setup.threads);
    sti_json_text(json, "threads_why", job->setup.threads_why);
    sti_json_int(json, "lanes", job->plan.lanes);
    sti_json_int(json, "planned_peak_bytes", (int64_t)job->plan.result.peak_bytes);
    sti_json_int(json, "budget_bytes", (int64_t)job->plan.result.budget_bytes);
    sti_json_float(json, "slowdown", job->plan.result.slowdown);
    add_parts(json, &job->plan.result);
    add_tensors(json, &job->plan.result);
    add_trained(json, job);
    sti_json_end_object(json);
    sti_text_add(&log->line, "\n");
}

/* ---- taking up an older log ---- */

/* A line that stays: a whole object of a step that is not run again. */
static bool is_kept(const char *line, size_t length, int64_t step, bool epoch_open)
{
    json_t *object = json_loadb(line, length, 0, NULL);
    const char *event = json_string_value(json_object_get(object, "event"));
    const json_t *at = json_object_get(object, "step");
    bool kept = event && json_is_integer(at) && json_integer_value(at) <= step &&
                strcmp(event, "start") != 0 && strcmp(event, "end") != 0;
    if (kept && epoch_open && strcmp(event, "epoch") == 0 &&
        json_integer_value(at) == step)
        kept = false;
    json_decref(object);
    return kept;
}

static void copy_lines(const char *path, int64_t step, bool epoch_open,
                       sti_writer *writer)
{
    FILE *old = NULL;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    if (sti_file_open_stream(path, &old) != STINT_OK)
        return; /* none: the log begins here */
    while ((length = getline(&line, &capacity, old)) > 0)
        if (line[length - 1] == '\n' && is_kept(line, (size_t)length, step, epoch_open))
            sti_writer_add(writer, line, (size_t)length);
    free(line);
    fclose(old);
}

static stint_status write_beginning(sti_run_log *log, int64_t step, bool epoch_open)
{
    sti_writer *writer;
    stint_status st = sti_writer_open(log->path, &writer);
    if (st != STINT_OK)
        return st;
    sti_writer_add(writer, log->line.data, log->line.length);
    if (step >= 0)
        copy_lines(log->path, step, epoch_open, writer);
    return sti_writer_commit(writer);
}

static stint_status resume_line(sti_run_log *log, int64_t step)
{
    begin_line(log, "resume");
    sti_json_int(&log->json, "step", step);
    sti_json_float(&log->json, "time", sti_clock_unix_s());
    return end_line(log);
}

stint_status sti_run_log_open(const char *path, const sti_job *job, int64_t resume_step,
                              bool epoch_open, sti_run_log **log_out)
{
    sti_run_log *log = sti_alloc(sizeof *log, "run log");
    if (!log)
        return STINT_E_MEMORY;
    log->fd = -1;
    log->path = sti_strdup(path);
    stint_status st = log->path ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        start_line(log, job);
        if (log->line.failed)
            st = sti_fail(STINT_E_MEMORY, "%s: out of memory for a line", path);
    }
    if (st == STINT_OK)
        st = write_beginning(log, resume_step, epoch_open);
    if (st == STINT_OK) {
        log->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (log->fd < 0)
            st = sti_fail_errno("%s: cannot be written", path);
    }
    if (st == STINT_OK && resume_step >= 0)
        st = resume_line(log, resume_step);
    if (st != STINT_OK) {
        sti_run_log_close(log);
        return st;
    }
    *log_out = log;
    return STINT_OK;
}

void sti_run_log_close(sti_run_log *log)
{
    if (!log)
        return;
    if (log->fd >= 0)
        close(log->fd);
    sti_text_fini(&log->line);
    sti_free(log->path);
    sti_free(log);
}

/* ---- events ---- */

static void add_loss_parts(sti_json *json, const sti_log_parts *parts)
{
    static const char *const names[] = {"hard", "pairing", "soft"};
    sti_json_begin_object(json, "loss_parts");
    for (int i = 0; i < STI_LOSS_PARTS; i++)
        if (isfinite(parts->part[i]))
            sti_json_float(json, names[i], parts->part[i]);
    sti_json_end_object(json);
    sti_json_begin_object(json, "loss_weights");
    for (int i = 0; i < STI_LOSS_PARTS; i++)
        if (isfinite(parts->part[i]))
            sti_json_float(json, names[i], (double)parts->weight[i]);
    sti_json_end_object(json);
}

stint_status sti_run_log_step(sti_run_log *log, const sti_position *p,
                              const sti_log_figures *figures,
                              const sti_log_parts *parts)
{
    sti_json *json = &log->json;
    double images = (double)p->line_images;
    begin_line(log, "step");
    sti_json_int(json, "step", p->step);
    if (isfinite(figures->epoch))
        sti_json_float(json, "epoch", figures->epoch);
    sti_json_float(json, "loss", p->line_loss / images);
    sti_json_float(json, "accuracy", p->line_correct / images);
    sti_json_int(json, "batch", figures->batch);
    sti_json_float(json, "lr", figures->lr);
    sti_json_float(json, "gradient_norm", figures->gradient_norm);
    if (isfinite(figures->noise_scale))
        sti_json_float(json, "noise_scale", figures->noise_scale);
    if (parts)
        add_loss_parts(json, parts);
    sti_json_float(json, "images_per_s", figures->images_per_s);
    return end_line(log);
}

stint_status sti_run_log_epoch(sti_run_log *log, const sti_position *p, int64_t epoch,
                               bool tested, const sti_log_validation *held_out,
                               double images_per_s, double seconds)
{
    sti_json *json = &log->json;
    begin_line(log, "epoch");
    sti_json_int(json, "epoch", epoch);
    sti_json_int(json, "step", p->step);
    sti_json_float(json, "train_loss", p->train_loss);
    sti_json_float(json, "train_accuracy", p->train_accuracy);
    if (tested) {
        sti_json_float(json, "test_loss", p->test_loss);
        sti_json_float(json, "test_accuracy", p->test_accuracy);
    }
    if (held_out) {
        const double count = (double)held_out->count;
        sti_json_float(json, "validation_loss", held_out->loss);
        if (held_out->right >= 0)
            sti_json_float(json, "validation_accuracy",
                           (double)held_out->right / count);
        if (held_out->others >= 0)
            sti_json_float(json, "validation_mismatch",
                           (double)held_out->others / count);
        sti_json_bool(json, "chosen", p->chosen_step == p->step);
    }
    sti_json_float(json, "images_per_s", images_per_s);
    sti_json_float(json, "seconds", seconds);
    sti_json_known(json, "rss_bytes", (int64_t)sti_process_now_bytes());
    return end_line(log);
}

stint_status sti_run_log_state(sti_run_log *log, int64_t step, const sti_saver *saver)
{
    sti_json *json = &log->json;
    char hex[65];
    begin_line(log, "state");
    sti_json_int(json, "step", step);
    sti_saver_tensor_sha256(saver, -1, hex);
    sti_json_text(json, "sha256", hex);
    sti_json_begin_object(json, "tensors");
    for (int64_t i = 0; i < sti_saver_tensors(saver); i++) {
        const char *name = sti_saver_tensor_sha256(saver, i, hex);
        hex[16] = '\0';
        sti_json_text(json, name, hex);
    }
    sti_json_end_object(json);
    return end_line(log);
}

static void add_reader(sti_json *json, const sti_error_reader *reader, const char *name)
{
    sti_json_begin_object(json, NULL);
    sti_json_text(json, "param", name);
    sti_json_float(json, "allowed", reader->allowed);
    sti_json_float(json, "predicted", reader->predicted);
    if (reader->reach > 0)
        sti_json_float(json, "reach", reader->reach);
    if (reader->error >= 0)
        sti_json_float(json, "measured", reader->measured);
    sti_json_end_object(json);
}

static void add_bounds_row(sti_json *json, const sti_error_control *control, int i)
{
    const sti_error_row *row = sti_error_control_row(control, i);
    sti_json_begin_object(json, NULL);
    sti_json_text(json, "layer", row->name);
    sti_json_text(json, "form",
                  row->choice.form == STI_PACK_VALUE ? "value"
                  : row->choice.form == STI_PACK_SUM ? "normalised, sum"
                                                     : "normalised");
    sti_json_float(json, "bound", row->bound);
    sti_json_float(json, "next_bound", row->limit);
    sti_json_int(json, "plain_bytes", (int64_t)row->plain_bytes);
    sti_json_int(json, "bits_bytes", (int64_t)row->bits_bytes);
    sti_json_int(json, "bytes", (int64_t)row->bytes);
    sti_json_int(json, "capacity", row->choice.capacity);
    sti_json_float(json, "nonzero", row->nonzero);
    sti_json_float(json, "exact", row->exact);
    sti_json_float(json, "error_share", row->error_share);
    sti_json_begin_array(json, "gradients");
    for (int k = 0; k < row->reader_count; k++)
        add_reader(json, &row->readers[k],
                   sti_error_control_param(control, row->readers[k].param));
    sti_json_end_array(json);
    sti_json_end_object(json);
}

stint_status sti_run_log_bounds(sti_run_log *log, int64_t step,
                                const sti_error_control *control)
{
    sti_json *json = &log->json;
    begin_line(log, "bounds");
    sti_json_int(json, "step", step);
    sti_json_begin_array(json, "rows");
    for (int i = 0; i < sti_error_control_count(control); i++)
        add_bounds_row(json, control, i);
    sti_json_end_array(json);
    return end_line(log);
}

stint_status sti_run_log_net(sti_run_log *log, int64_t step, const char *why)
{
    begin_line(log, "net");
    sti_json_int(&log->json, "step", step);
    sti_json_text(&log->json, "why", why);
    return end_line(log);
}

stint_status sti_run_log_early_stop(sti_run_log *log, int64_t step,
                                    int64_t better_epoch)
{
    begin_line(log, "enough");
    sti_json_int(&log->json, "step", step);
    sti_json_int(&log->json, "better_epoch", better_epoch);
    return end_line(log);
}

stint_status sti_run_log_slowdown(sti_run_log *log, int64_t step, double expected,
                                  double measured)
{
    sti_json *json = &log->json;
    begin_line(log, "slowdown");
    sti_json_int(json, "step", step);
    sti_json_float(json, "expected", expected);
    sti_json_float(json, "measured", measured);
    return end_line(log);
}

stint_status sti_run_log_shrink(sti_run_log *log, const sti_log_shrink *line)
{
    sti_json *json = &log->json;
    begin_line(log, "shrink");
    sti_json_int(json, "step", line->step);
    if (line->phase)
        sti_json_text(json, "phase", line->phase);
    else {
        sti_json_int(json, "compression", line->number);
        sti_json_float(json, "mu", line->mu);
        sti_json_float(json, "distance", line->distance);
        sti_json_float(json, "multipliers", line->multipliers);
        sti_json_float(json, "loss", line->loss);
        sti_json_float(json, "compressed_loss", line->compressed_loss);
        sti_json_bool(json, "chosen", line->chosen);
    }
    if (line->phase && line->weights == 0)
        sti_json_float(json, "correlation", line->correlation);
    if (line->weights > 0) {
        sti_json_int(json, "nonzeros", line->nonzeros);
        sti_json_int(json, "weights", line->weights);
    }
    return end_line(log);
}

stint_status sti_run_log_growth(sti_run_log *log, int64_t step,
                                const sti_error_control *control)
{
    sti_json *json = &log->json;
    begin_line(log, "growth");
    sti_json_int(json, "step", step);
    sti_json_begin_array(json, "rows");
    for (int i = 0; i < sti_error_control_count(control); i++) {
        const sti_error_row *row = sti_error_control_row(control, i);
        if (!row->overflow)
            continue;
        sti_json_begin_object(json, NULL);
        sti_json_text(json, "layer", row->name);
        sti_json_int(json, "bytes", (int64_t)row->bytes);
        sti_json_int(json, "capacity", row->choice.capacity);
        sti_json_end_object(json);
    }
    sti_json_end_array(json);
    return end_line(log);
}

stint_status sti_run_log_plan(sti_run_log *log, int64_t step,
                              const stint_plan_result *plan, int packs)
{
    sti_json *json = &log->json;
    begin_line(log, "plan");
    sti_json_int(json, "step", step);
    sti_json_int(json, "planned_peak_bytes", (int64_t)plan->peak_bytes);
    sti_json_int(json, "packed", packs);
    sti_json_int(json, "lanes", plan->lanes);
    sti_json_float(json, "slowdown", plan->slowdown);
    return end_line(log);
}

static void add_class_counts(sti_json *json, const sti_evaluation *e,
                             const stint_data *data, bool correct)
{
    sti_json_begin_array(json, correct ? "class_correct" : "class_count");
    for (int32_t c = 0; c < e->classes; c++) {
        int64_t n = 0;
        for (int64_t i = 0; i < e->count; i++)
            n += sti_data_label(data, i) == c && (!correct || e->predicted[i] == c);
        sti_json_int(json, NULL, n);
    }
    sti_json_end_array(json);
}

stint_status sti_run_log_end(sti_run_log *log, stint_status status,
                             const stint_train_result *r, const sti_evaluation *e,
                             const stint_data *test_data)
{
    sti_json *json = &log->json;
    begin_line(log, "end");
    sti_json_text(json, "status",
                  status == STINT_OK ? "ok" : stint_status_name(status));
    sti_json_int(json, "steps", r->steps);
    sti_json_float(json, "train_loss", r->train_loss);
    sti_json_float(json, "test_loss", r->test_loss);
    sti_json_float(json, "test_accuracy", r->test_accuracy);
    if (r->chosen_epoch > 0) {
        sti_json_int(json, "chosen_epoch", r->chosen_epoch);
        sti_json_float(json, "validation_loss", r->validation_loss);
        sti_json_float(json, "validation_accuracy", r->validation_accuracy);
        sti_json_float(json, "validation_mismatch", r->validation_mismatch);
    }
    sti_json_float(json, "images_per_s", r->images_per_s);
    if (r->tokens_per_s > 0) {
        sti_json_float(json, "tokens_per_s", r->tokens_per_s);
        sti_json_float(json, "bits_per_byte", r->bits_per_byte);
    }
    sti_json_float(json, "seconds", r->seconds);
    sti_json_int(json, "planned_peak_bytes", (int64_t)r->planned_peak_bytes);
    sti_json_known(json, "peak_rss_bytes", (int64_t)r->peak_rss_bytes);
    sti_json_text(json, "weights_sha256", r->weights_sha256);
    if (e) {
        add_class_counts(json, e, test_data, false);
        add_class_counts(json, e, test_data, true);
    }
    return end_line(log);
}
