#include "serve/serve_tables.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/shown.h"

#define FORMAT "stint-serve-tables"

stint_status sti_serve_model_init(sti_serve_model *model, int sizes, int batch_most)
{
    const int64_t times = (int64_t)sizes * batch_most;
    model->batch_most = batch_most;
    model->p50 = sti_alloc_array(times, sizeof *model->p50, "latency table");
    model->p95 = sti_alloc_array(times, sizeof *model->p95, "latency table");
    model->share = sti_alloc_array(batch_most, sizeof *model->share, "latency table");
    if (!model->p50 || !model->p95 || !model->share)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < times; i++)
        model->p50[i] = model->p95[i] = HUGE_VAL;
    return STINT_OK;
}

void sti_serve_tables_fini(sti_serve_tables *tables)
{
    for (int m = 0; m < tables->models; m++) {
        sti_free(tables->model[m].p50);
        sti_free(tables->model[m].p95);
        sti_free(tables->model[m].share);
    }
    *tables = (sti_serve_tables){.models = 0};
}

int sti_serve_find_model(const sti_serve_tables *tables, const char *name)
{
    for (int m = 0; m < tables->models; m++)
        if (strcmp(tables->model[m].name, name) == 0)
            return m;
    return -1;
}

int sti_serve_fill_row(double *row, int batch_most)
{
    int made = 0;
    for (int b = 0, before = -1; b < batch_most; b++) {
        if (!(row[b] > 0))
            continue;
        for (int h = before + 1; h < b; h++) {
            const double way = (double)(h - before) / (b - before);
            row[h] = before < 0 ? row[b] : row[before] + way * (row[b] - row[before]);
            made++;
        }
        before = b;
    }
    return made;
}

int sti_serve_largest_in_time(const sti_serve_tables *t, const sti_serve_model *m)
{
    double beyond = 0;
    int b = m->batch_most;
    while (t->late > 0 && b > 1 && beyond + m->share[b - 1] <= t->late)
        beyond += m->share[--b];
    return b;
}

/* ---- reading ---- */

/* The place of a value that is read, for messages. */
typedef struct reader {
    const char *path, *model; /* model: its name, or NULL */
    sti_serve_tables *tables;
    int batch[STI_SERVE_BATCH], batches; /* of the model that is read */
    int size[STI_SERVE_SIZES], sizes;    /* likewise */
} reader;

static stint_status refuse(const reader *r, const char *key, const char *wanted)
{
    return sti_fail(STINT_E_INPUT, "%s: %s%s%s: %s was wanted", r->path,
                    r->model ? sti_shown(r->model) : "", r->model ? ", " : "", key,
                    wanted);
}

/* A rising list of whole numbers from 1 to `most`. */
static stint_status read_list(const reader *r, const json_t *object, const char *key,
                              int most, int room, int *list, int *count_out)
{
    const json_t *array = json_object_get(object, key);
    const size_t count = json_array_size(array);
    if (count < 1 || count > (size_t)room)
        return refuse(r, key, "a list of whole numbers");
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(array, i);
        const json_int_t n = json_integer_value(value);
        if (!json_is_integer(value) || n < 1 || n > most || (i > 0 && n <= list[i - 1]))
            return refuse(r, key, "a rising list of whole numbers");
        list[i] = (int)n;
    }
    *count_out = (int)count;
    return STINT_OK;
}

static stint_status read_header(reader *r, const json_t *root)
{
    sti_serve_tables *t = r->tables;
    const char *format = json_string_value(json_object_get(root, "format"));
    const char *legal = json_string_value(json_object_get(root, "legal"));
    const json_t *units = json_object_get(root, "units");
    const json_t *cpus = json_object_get(root, "cpus");
    const json_int_t n = json_integer_value(units);
    if (!format || strcmp(format, FORMAT) != 0)
        return refuse(r, "format", "\"" FORMAT "\"");
    if (!json_is_integer(units) || n < 1 || n > STI_SERVE_UNITS)
        return refuse(r, "units", "a whole number from 1 to 1024");
    if (legal && strcmp(legal, "any") != 0 && strcmp(legal, "mig7") != 0)
        return refuse(r, "legal", "any or mig7");
    t->units = (int)n;
    t->mig7 = legal && strcmp(legal, "mig7") == 0;
    t->cpus = (int)json_integer_value(cpus);
    if (cpus && (!json_is_integer(cpus) || json_integer_value(cpus) < 1 ||
                 json_integer_value(cpus) > n || t->mig7))
        return refuse(r, "cpus", "a whole number of CPUs, at most one a unit");
    if (t->mig7 && t->units % 7 != 0)
        return refuse(r, "units", "with mig7 a multiple of 7");
    return STINT_OK;
}

/* Sizes of the tables are those of all models. */
static stint_status add_sizes(reader *r)
{
    sti_serve_tables *t = r->tables;
    for (int i = 0; i < r->sizes; i++) {
        int at = 0;
        while (at < t->sizes && t->size[at] < r->size[i])
            at++;
        if (at < t->sizes && t->size[at] == r->size[i])
            continue;
        if (t->sizes == STI_SERVE_SIZES || r->size[i] > t->units)
            return refuse(r, "sizes", "at most 16 sizes, none above units");
        if (t->mig7 && (r->size[i] > 7 || !strchr("12347", '0' + r->size[i])))
            return refuse(r, "sizes", "with mig7 1, 2, 3, 4 or 7");
        memmove(&t->size[at + 1], &t->size[at], (size_t)(t->sizes - at) * sizeof(int));
        t->size[at] = r->size[i];
        t->sizes++;
    }
    return STINT_OK;
}

static stint_status read_name(reader *r, const json_t *object, sti_serve_model *m)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    const json_t *sla = json_object_get(object, "sla_s");
    if (!name || !*name || strlen(name) >= STI_SERVE_NAME ||
        sti_serve_find_model(r->tables, name) >= 0)
        return refuse(r, "name", "a name of its own for each model");
    snprintf(m->name, sizeof m->name, "%s", name);
    r->model = m->name;
    m->sla_s = json_number_value(sla);
    if (!json_is_number(sla) || !(m->sla_s > 0))
        return refuse(r, "sla_s", "a time in seconds above 0");
    return STINT_OK;
}

/* A row: an entry a batch that is listed. */
static stint_status read_row(const reader *r, const json_t *array, const char *key,
                             double *row, int batch_most, int *holes)
{
    if (json_array_size(array) != (size_t)r->batches)
        return refuse(r, key, "a row a size with a time a batch");
    memset(row, 0, (size_t)batch_most * sizeof *row);
    int given = 0;
    for (int i = 0; i < r->batches; i++) {
        const json_t *value = json_array_get(array, (size_t)i);
        const double s = json_number_value(value);
        if (json_is_null(value)) {
            ++*holes;
            continue;
        }
        if (!json_is_number(value) || !(s > 0) || s > 1e6)
            return refuse(r, key,
                          "seconds above 0, or null where nothing was measured");
        row[r->batch[i] - 1] = s;
        given++;
    }
    if (given == 0 || !(row[batch_most - 1] > 0))
        return refuse(r, key, "a time of the largest batch in each row");
    (void)sti_serve_fill_row(row, batch_most);
    return STINT_OK;
}

static int size_index(const sti_serve_tables *t, int size)
{
    int i = 0;
    while (t->size[i] != size)
        i++;
    return i;
}

static stint_status read_times(const reader *r, const json_t *object, const char *key,
                               double *times, int batch_most)
{
    const json_t *rows = json_object_get(object, key);
    if (json_array_size(rows) != (size_t)r->sizes)
        return refuse(r, key, "a row a size with a time a batch");
    for (int i = 0; i < r->sizes; i++) {
        const int k = size_index(r->tables, r->size[i]);
        const stint_status st =
            read_row(r, json_array_get(rows, (size_t)i), key, times + k * batch_most,
                     batch_most, &r->tables->holes);
        if (st != STINT_OK)
            return st;
    }
    return STINT_OK;
}

/* Shares of the batches that are listed; absent: all alike. */
static stint_status read_shares(const reader *r, const json_t *object,
                                sti_serve_model *m)
{
    const json_t *array = json_object_get(object, "share");
    double sum = 0;
    if (array && json_array_size(array) != (size_t)r->batches)
        return refuse(r, "share", "an entry a batch");
    for (int i = 0; i < r->batches; i++) {
        const json_t *value = json_array_get(array, (size_t)i);
        const double share = array ? json_number_value(value) : 1;
        if ((array && !json_is_number(value)) || !(share >= 0) || share > 1e9)
            return refuse(r, "share", "numbers of 0 or more");
        m->share[r->batch[i] - 1] = share;
        sum += share;
    }
    if (!(sum > 0))
        return refuse(r, "share", "a batch of some share");
    for (int b = 0; b < m->batch_most; b++)
        m->share[b] /= sum;
    return STINT_OK;
}

/* First pass: names and sizes, so that rows have their places in the second. */
static stint_status read_sizes(reader *r, const json_t *object)
{
    stint_status st = read_list(r, object, "sizes", STI_SERVE_UNITS, STI_SERVE_SIZES,
                                r->size, &r->sizes);
    return st == STINT_OK ? add_sizes(r) : st;
}

static stint_status read_model(reader *r, const json_t *object)
{
    sti_serve_tables *t = r->tables;
    sti_serve_model *m = &t->model[t->models];
    stint_status st;
    STI_TRY(read_name(r, object, m));
    t->models++;
    STI_TRY(read_list(r, object, "sizes", STI_SERVE_UNITS, STI_SERVE_SIZES, r->size,
                      &r->sizes));
    STI_TRY(read_list(r, object, "batches", STI_SERVE_BATCH, STI_SERVE_BATCH, r->batch,
                      &r->batches));
    STI_TRY(sti_serve_model_init(m, t->sizes, r->batch[r->batches - 1]));
    STI_TRY(read_times(r, object, "p50_s", m->p50, m->batch_most));
    STI_TRY(read_times(r, object, "p95_s", m->p95, m->batch_most));
    STI_TRY(read_shares(r, object, m));
out:
    return st;
}

static stint_status read_models(reader *r, const json_t *root)
{
    const json_t *models = json_object_get(root, "models");
    const size_t count = json_array_size(models);
    stint_status st = STINT_OK;
    if (count < 1 || count > STI_SERVE_MODELS)
        return refuse(r, "models", "a list of 1 to 16 models");
    for (size_t i = 0; i < count && st == STINT_OK; i++)
        st = read_sizes(r, json_array_get(models, i));
    for (size_t i = 0; i < count && st == STINT_OK; i++) {
        r->model = NULL;
        st = read_model(r, json_array_get(models, i));
    }
    for (int m = 0; m < r->tables->models; m++)
        r->tables->model[m].weight = 1.0 / r->tables->models;
    return st;
}

stint_status sti_serve_tables_parse(const char *text, size_t bytes, const char *path,
                                    sti_serve_tables *tables_out)
{
    json_error_t error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    *tables_out = (sti_serve_tables){.models = 0};
    if (!root)
        return sti_fail(STINT_E_INPUT, "%s: no JSON: line %d: %s", path, error.line,
                        sti_shown(error.text));
    reader r = {.path = path, .tables = tables_out};
    stint_status st = read_header(&r, root);
    if (st == STINT_OK)
        st = read_models(&r, root);
    json_decref(root);
    if (st != STINT_OK)
        sti_serve_tables_fini(tables_out);
    return st;
}

stint_status sti_serve_tables_read(const char *path, sti_serve_tables *tables_out)
{
    void *text = NULL;
    size_t bytes = 0;
    stint_status st = sti_file_read(path, 64 << 20, &text, &bytes);
    if (st == STINT_OK)
        st = sti_serve_tables_parse(text, bytes, path, tables_out);
    sti_free(text);
    return st;
}

/* ---- writing ---- */

static void write_times(const sti_serve_tables *t, const sti_serve_model *m,
                        const char *key, const double *times, sti_json *j)
{
    sti_json_begin_array(j, key);
    for (int k = 0; k < t->sizes; k++) {
        if (!(times[k * m->batch_most] < HUGE_VAL))
            continue;
        sti_json_begin_array(j, NULL);
        for (int b = 0; b < m->batch_most; b++)
            sti_json_float(j, NULL, times[k * m->batch_most + b]);
        sti_json_end_array(j);
    }
    sti_json_end_array(j);
}

static void write_model(const sti_serve_tables *t, const sti_serve_model *m,
                        sti_json *j)
{
    sti_json_begin_object(j, NULL);
    sti_json_text(j, "name", m->name);
    sti_json_float(j, "sla_s", m->sla_s);
    sti_json_begin_array(j, "sizes");
    for (int k = 0; k < t->sizes; k++)
        if (sti_serve_p50(m, k)[0] < HUGE_VAL)
            sti_json_int(j, NULL, t->size[k]);
    sti_json_end_array(j);
    sti_json_begin_array(j, "batches");
    for (int b = 1; b <= m->batch_most; b++)
        sti_json_int(j, NULL, b);
    sti_json_end_array(j);
    write_times(t, m, "p50_s", m->p50, j);
    write_times(t, m, "p95_s", m->p95, j);
    sti_json_begin_array(j, "share");
    for (int b = 0; b < m->batch_most; b++)
        sti_json_float(j, NULL, m->share[b]);
    sti_json_end_array(j);
    sti_json_end_object(j);
}

void sti_serve_tables_write(const sti_serve_tables *tables, sti_text *out)
{
    sti_json j = {.out = out, .pretty = true};
    sti_json_begin_object(&j, NULL);
    sti_json_text(&j, "format", FORMAT);
    sti_json_int(&j, "units", tables->units);
    if (tables->cpus > 0)
        sti_json_int(&j, "cpus", tables->cpus);
    sti_json_text(&j, "legal", tables->mig7 ? "mig7" : "any");
    sti_json_begin_array(&j, "models");
    for (int m = 0; m < tables->models; m++)
        write_model(tables, &tables->model[m], &j);
    sti_json_end_array(&j);
    sti_json_end_object(&j);
    sti_text_add(out, "\n");
}
