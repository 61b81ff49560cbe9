/* Reading a run's folder: the log a line at a time, in constant memory. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "train/report_priv.h"

enum { LINE_BYTES_MAX = 1 << 22 }; /* the longest is "start", with all class names */

/* ---- fields of an object; absent or of another type: the default ---- */

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : STI_REPORT_NONE;
}

static void whole(const json_t *object, const char *key, int64_t *out)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_integer(value))
        *out = json_integer_value(value);
}

static void real(const json_t *object, const char *key, double *out)
{
    double value = number(object, key);
    if (isfinite(value))
        *out = value;
}

static void text(sti_arena *arena, const json_t *object, const char *key,
                 const char **out)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_string(value))
        *out = sti_arena_strdup(arena, json_string_value(value));
}

/* ---- events ---- */

static sti_report_part *part_by_name(sti_report_run *run, const char *name)
{
    for (int i = 0; i < run->parts; i++)
        if (strcmp(run->part[i].name, name) == 0)
            return &run->part[i];
    if (run->parts == STI_REPORT_PARTS)
        return NULL;
    sti_report_part *part = &run->part[run->parts];
    *part = (sti_report_part){.name = sti_arena_strdup(run->arena, name),
                              .detail = "",
                              .planned = STI_REPORT_NONE,
                              .measured = STI_REPORT_NONE};
    if (!part->name)
        return NULL;
    run->parts++;
    return part;
}

static void read_parts(sti_report_run *run, const json_t *list, bool measured)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(row, "name"));
        sti_report_part *part = name ? part_by_name(run, name) : NULL;
        if (!part)
            continue;
        text(run->arena, row, "detail", &part->detail);
        real(row, "bytes", measured ? &part->measured : &part->planned);
    }
}

static void read_class_names(sti_report_run *run, const json_t *list)
{
    size_t count = json_array_size(list);
    if (count == 0 || count > INT32_MAX)
        return;
    run->class_names = sti_arena_alloc(run->arena, count * sizeof *run->class_names);
    run->classes = run->class_names ? (int32_t)count : 0;
    for (size_t i = 0; run->class_names && i < count; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        run->class_names[i] = sti_arena_strdup(run->arena, name ? name : "?");
    }
}

static void read_tensors(sti_report_run *run, const json_t *list)
{
    size_t count = json_array_size(list);
    if (count == 0 || count > INT32_MAX)
        return;
    run->tensor = sti_arena_alloc(run->arena, count * sizeof *run->tensor);
    run->tensors = run->tensor ? (int)count : 0;
    for (int i = 0; i < run->tensors; i++) {
        const json_t *row = json_array_get(list, (size_t)i);
        sti_report_tensor *t = &run->tensor[i];
        t->name = t->form = "";
        t->bytes = t->held = 0;
        text(run->arena, row, "name", &t->name);
        text(run->arena, row, "form", &t->form);
        real(row, "bytes", &t->bytes);
        real(row, "held_bytes", &t->held);
    }
}

static void read_trained(sti_report_run *run, const json_t *list)
{
    const size_t count = json_array_size(list);
    run->trained_count = 0;
    if (count == 0 || count > INT32_MAX)
        return;
    run->trained = sti_arena_alloc(run->arena, count * sizeof *run->trained);
    run->trained_count = run->trained ? (int)count : 0;
    for (int i = 0; i < run->trained_count; i++) {
        const json_t *row = json_array_get(list, (size_t)i);
        sti_report_trained *t = &run->trained[i];
        *t = (sti_report_trained){.name = "", .share = 1, .gain = STI_REPORT_NONE};
        text(run->arena, row, "tensor", &t->name);
        real(row, "share", &t->share);
        real(row, "gain", &t->gain);
        real(row, "bytes", &t->bytes);
    }
}

static void read_start(sti_report_run *run, const json_t *e)
{
    run->parts = 0;
    text(run->arena, e, "network", &run->network);
    text(run->arena, e, "data", &run->data);
    text(run->arena, e, "cpu", &run->cpu);
    text(run->arena, e, "isa", &run->isa);
    text(run->arena, e, "version", &run->version);
    text(run->arena, e, "threads_why", &run->threads_why);
    whole(e, "train_count", &run->train_count);
    whole(e, "test_count", &run->test_count);
    whole(e, "height", &run->height);
    whole(e, "width", &run->width);
    whole(e, "channels", &run->channels);
    whole(e, "context", &run->context);
    whole(e, "coordinates", &run->coordinates);
    whole(e, "batch", &run->batch);
    whole(e, "shards", &run->shards);
    whole(e, "steps", &run->steps);
    whole(e, "epochs", &run->epochs);
    whole(e, "seed", &run->seed);
    whole(e, "parameters", &run->parameters);
    whole(e, "threads", &run->threads);
    whole(e, "lanes", &run->lanes);
    real(e, "time", &run->time);
    real(e, "planned_peak_bytes", &run->planned_peak);
    real(e, "budget_bytes", &run->budget);
    real(e, "slowdown", &run->slowdown);
    read_class_names(run, json_object_get(e, "class_names"));
    read_tensors(run, json_object_get(e, "tensors"));
    read_trained(run, json_object_get(e, "trained"));
    read_parts(run, json_object_get(e, "parts"), false);
}

static sti_series_point read_point(const json_t *e, const char *x,
                                   const char *const *keys, int count)
{
    sti_series_point point = {.x = number(e, x)};
    for (int i = 0; i < STI_SERIES_VALUES; i++)
        point.value[i] = i < count ? number(e, keys[i]) : STI_REPORT_NONE;
    return point;
}

static void read_step(sti_report_run *run, const json_t *e)
{
    static const char *const keys[] = {"loss",         "accuracy", "lr",
                                       "images_per_s", "batch",    "noise_scale"};
    sti_series_point point = read_point(e, "step", keys, 6);
    const double epoch = number(e, "epoch");
    if (isfinite(epoch))
        point.x = epoch;
    run->step_in_epochs |= isfinite(epoch);
    if (isfinite(point.x))
        sti_series_add(&run->step, &point);
}

static void read_epoch(sti_report_run *run, const json_t *e)
{
    static const char *const keys[] = {"train_loss",    "train_accuracy", "test_loss",
                                       "test_accuracy", "images_per_s",   "seconds",
                                       "rss_bytes"};
    sti_series_point point = read_point(e, "epoch", keys, 7);
    if (!isfinite(point.x))
        return;
    sti_series_add(&run->epoch, &point);
    whole(e, "step", &run->steps_done);
    real(e, "train_loss", &run->train_loss);
    real(e, "test_loss", &run->test_loss);
    real(e, "test_accuracy", &run->test_accuracy);
}

static int64_t *read_counts(sti_report_run *run, const json_t *list)
{
    if (run->classes == 0 || json_array_size(list) != (size_t)run->classes)
        return NULL;
    int64_t *count = sti_arena_alloc(run->arena, (size_t)run->classes * sizeof *count);
    for (int32_t c = 0; count && c < run->classes; c++)
        count[c] = json_integer_value(json_array_get(list, (size_t)c));
    return count;
}

static void read_end(sti_report_run *run, const json_t *e)
{
    text(run->arena, e, "status", &run->status);
    text(run->arena, e, "weights_sha256", &run->sha256);
    real(e, "test_accuracy", &run->test_accuracy);
    real(e, "test_loss", &run->test_loss);
    real(e, "train_loss", &run->train_loss);
    real(e, "images_per_s", &run->rate);
    real(e, "seconds", &run->seconds);
    real(e, "peak_rss_bytes", &run->peak_rss);
    whole(e, "steps", &run->steps_done);
    read_parts(run, json_object_get(e, "measured"), true);
    run->class_count = read_counts(run, json_object_get(e, "class_count"));
    run->class_correct = read_counts(run, json_object_get(e, "class_correct"));
}

static bool read_event(sti_report_run *run, const json_t *e)
{
    const char *event = json_string_value(json_object_get(e, "event"));
    if (!event)
        return false;
    if (strcmp(event, "start") == 0)
        read_start(run, e);
    else if (strcmp(event, "resume") == 0)
        run->resumes++;
    else if (strcmp(event, "step") == 0)
        read_step(run, e);
    else if (strcmp(event, "epoch") == 0)
        read_epoch(run, e);
    else if (strcmp(event, "net") == 0)
        text(run->arena, e, "why", &run->net_why);
    else if (strcmp(event, "slowdown") == 0)
        real(e, "measured", &run->slowdown_measured);
    else if (strcmp(event, "end") == 0)
        read_end(run, e);
    return true;
}

/* ---- the log ---- */

typedef struct line_reader {
    FILE *file;
    sti_text line;
    bool cut; /* the line was longer than a line can be */
} line_reader;

static bool next_line(line_reader *r)
{
    char chunk[4096];
    r->line.length = 0;
    r->cut = false;
    while (fgets(chunk, sizeof chunk, r->file)) {
        size_t length = strlen(chunk);
        bool ends = length > 0 && chunk[length - 1] == '\n';
        if (r->line.length + length > LINE_BYTES_MAX)
            r->cut = true;
        else
            sti_text_add_bytes(&r->line, chunk, length);
        if (ends)
            return true;
    }
    return r->line.length > 0;
}

static stint_status read_lines(line_reader *r, const char *path, sti_report_run *run)
{
    int64_t events = 0;
    while (next_line(r)) {
        if (r->line.failed)
            return STINT_E_MEMORY;
        /* A crash may have left a torn last line: no error, just no event. */
        json_t *e = r->cut ? NULL : json_loadb(r->line.data, r->line.length, 0, NULL);
        if (e)
            events += read_event(run, e);
        json_decref(e);
    }
    if (events == 0)
        return sti_fail(STINT_E_INPUT,
                        "%s holds no log of a run; give the folder that `stint train "
                        "--out` wrote",
                        path);
    return STINT_OK;
}

static stint_status read_log(const char *folder, sti_report_run *run)
{
    const char *path = sti_path_join(run->arena, folder, "log.jsonl");
    if (!path)
        return STINT_E_MEMORY;
    if (!sti_path_is_file(path))
        return sti_fail(STINT_E_INPUT,
                        "%s is not there; give the folder that `stint train --out` "
                        "wrote",
                        path);
    line_reader reader = {0};
    stint_status status = sti_file_open_stream(path, &reader.file);
    if (status != STINT_OK)
        return status;
    status = read_lines(&reader, path, run);
    sti_text_fini(&reader.line);
    fclose(reader.file);
    return status;
}

/* ---- errors.json and recipe.ini: both may be missing ---- */

static void read_errors(sti_report_run *run, const json_t *root)
{
    const json_t *list = json_object_get(root, "errors");
    text(run->arena, root, "data", &run->errors_data);
    text(run->arena, root, "format", &run->errors_format);
    whole(root, "size", &run->errors_size);
    whole(root, "channels", &run->errors_channels);
    whole(root, "fit", &run->errors_fit);
    real(root, "validation", &run->errors_validation);
    run->errors_nested = json_is_true(json_object_get(root, "nested"));
    whole(root, "wrong", &run->errors_wrong);
    whole(root, "count", &run->errors_count);
    for (size_t i = 0; i < json_array_size(list) && run->errors < STI_REPORT_ERRORS;
         i++) {
        const json_t *row = json_array_get(list, i);
        int64_t label = -1, predicted = -1;
        sti_report_error *error = &run->error[run->errors];
        *error =
            (sti_report_error){.index = -1, .name = "", .probability = STI_REPORT_NONE};
        whole(row, "index", &error->index);
        whole(row, "label", &label);
        whole(row, "predicted", &predicted);
        real(row, "probability", &error->probability);
        text(run->arena, row, "name", &error->name);
        error->label = (int32_t)label;
        error->predicted = (int32_t)predicted;
        if (error->index >= 0 && error->name)
            run->errors++;
    }
    run->has_errors = true;
}

static stint_status read_errors_file(const char *folder, sti_report_run *run)
{
    void *data = NULL;
    size_t bytes = 0;
    const char *path = sti_path_join(run->arena, folder, "errors.json");
    if (!path)
        return STINT_E_MEMORY;
    if (!sti_path_is_file(path))
        return STINT_OK;
    stint_status status = sti_file_read(path, LINE_BYTES_MAX, &data, &bytes);
    if (status != STINT_OK)
        return status;
    json_t *root = json_loadb(data, bytes, 0, NULL);
    if (json_is_object(root))
        read_errors(run, root);
    json_decref(root);
    sti_free(data);
    return STINT_OK;
}

static stint_status read_recipe_file(const char *folder, sti_report_run *run)
{
    void *data = NULL;
    size_t bytes = 0;
    const char *path = sti_path_join(run->arena, folder, "recipe.ini");
    if (!path)
        return STINT_E_MEMORY;
    if (!sti_path_is_file(path))
        return STINT_OK;
    stint_status status = sti_file_read(path, 1 << 20, &data, &bytes);
    run->recipe = data;
    return status;
}

stint_status sti_report_read(const char *folder, sti_report_run *run)
{
    *run = (sti_report_run){.folder = folder,
                            .planned_peak = STI_REPORT_NONE,
                            .test_accuracy = STI_REPORT_NONE,
                            .test_loss = STI_REPORT_NONE,
                            .train_loss = STI_REPORT_NONE,
                            .rate = STI_REPORT_NONE,
                            .seconds = STI_REPORT_NONE,
                            .peak_rss = STI_REPORT_NONE};
    run->arena = sti_arena_create("report");
    if (!run->arena || !sti_series_init(&run->step) || !sti_series_init(&run->epoch))
        return STINT_E_MEMORY;
    stint_status status = read_log(folder, run);
    if (status == STINT_OK)
        status = read_errors_file(folder, run);
    if (status == STINT_OK)
        status = read_recipe_file(folder, run);
    return status;
}

void sti_report_run_fini(sti_report_run *run)
{
    sti_series_fini(&run->step);
    sti_series_fini(&run->epoch);
    sti_free(run->recipe);
    sti_arena_destroy(run->arena);
}

const char *sti_report_class(const sti_report_run *run, int32_t c)
{
    if (c >= 0 && c < run->classes && run->class_names && run->class_names[c])
        return run->class_names[c];
    const char *name = sti_arena_printf(run->arena, "class %d", c);
    return name ? name : "?";
}

const char *sti_report_rate_words(const sti_report_run *run)
{
    return run->context       ? "tokens a second"
           : run->coordinates ? "points a second"
                              : "images a second";
}

double sti_report_rate_scale(const sti_report_run *run)
{
    return run->context ? (double)run->context : 1;
}
