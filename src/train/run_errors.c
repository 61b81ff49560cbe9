/* errors.json: the surest mistakes of the last evaluation, for the report. */
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "data/data_section.h"
#include "train/report.h"
#include "train/run_log.h"

typedef struct worst {
    int64_t index[STI_REPORT_ERRORS]; /* surest first, then by index */
    int count;
    int64_t wrong; /* of all */
} worst;

static void insert(worst *w, const sti_evaluation *e, int64_t sample)
{
    int at = w->count;
    while (at > 0 && e->probability[w->index[at - 1]] < e->probability[sample])
        at--;
    if (at == STI_REPORT_ERRORS)
        return;
    if (w->count < STI_REPORT_ERRORS)
        w->count++;
    for (int i = w->count - 1; i > at; i--)
        w->index[i] = w->index[i - 1];
    w->index[at] = sample;
}

static void add_error(sti_json *json, const sti_evaluation *e, const stint_data *data,
                      int64_t sample)
{
    char name[512];
    sti_data_sample_name(data, sample, name, sizeof name);
    sti_json_begin_object(json, NULL);
    sti_json_int(json, "index", sample);
    sti_json_int(json, "label", sti_data_label(data, sample));
    sti_json_int(json, "predicted", e->predicted[sample]);
    sti_json_float(json, "probability", (double)e->probability[sample]);
    sti_json_text(json, "name", name);
    sti_json_end_object(json);
}

stint_status sti_run_errors_write(const char *path, const stint_recipe *recipe,
                                  const sti_evaluation *e, const stint_data *data)
{
    worst w = {.count = 0};
    sti_text text = {0};
    sti_json json = {.out = &text};
    const stint_data_info *info = stint_data_describe(data);
    for (int64_t i = 0; i < e->count; i++) {
        if (e->predicted[i] == sti_data_label(data, i))
            continue;
        w.wrong++;
        insert(&w, e, i);
    }
    sti_json_begin_object(&json, NULL);
    sti_json_text(&json, "data", info->path);
    sti_json_text(&json, "format", info->format);
    sti_json_int(&json, "size", sti_data_section_of(recipe)->size);
    sti_json_int(&json, "channels", info->channels);
    sti_json_int(&json, "fit", sti_recipe_fit(recipe));
    sti_json_float(&json, "validation", sti_data_section_of(recipe)->validation);
    sti_json_bool(&json, "nested", sti_data_section_of(recipe)->nested);
    sti_json_int(&json, "wrong", w.wrong);
    sti_json_int(&json, "count", e->count);
    sti_json_begin_array(&json, "errors");
    for (int i = 0; i < w.count; i++)
        add_error(&json, e, data, w.index[i]);
    sti_json_end_array(&json);
    sti_json_end_object(&json);
    sti_text_add(&text, "\n");
    stint_status st = text.failed ? sti_fail(STINT_E_MEMORY, "%s: out of memory", path)
                                  : sti_file_write(path, text.data, text.length);
    sti_text_fini(&text);
    return st;
}
