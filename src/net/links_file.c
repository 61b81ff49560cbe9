/* links.json: one object; numbers are seconds and bytes. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "net/link_model.h"

enum { MAX_BYTES = 64 << 20, VERSION = 1, MAX_RANKS = 65536 };

/* ---- writing ---- */

static void write_segment(sti_json *j, const sti_link_segment *s)
{
    sti_json_begin_object(j, NULL);
    sti_json_float(j, "from_bytes", s->from_bytes);
    sti_json_float(j, "alpha_s", s->alpha_s);
    sti_json_float(j, "beta_s_per_byte", s->beta_s);
    sti_json_bool(j, "alpha_bounded", s->bounded);
    sti_json_float(j, "stream_s_per_byte", s->stream_s);
    sti_json_begin_array(j, "quantiles");
    for (int q = 0; q < STI_LINK_QUANTILES; q++)
        sti_json_float(j, NULL, s->quantile[q]);
    sti_json_end_array(j);
    sti_json_end_object(j);
}

static void write_model(sti_json *j, const sti_link_model *m)
{
    sti_json_begin_object(j, NULL);
    sti_json_int(j, "from", m->from);
    sti_json_int(j, "to", m->to);
    sti_json_int(j, "samples", m->samples);
    sti_json_float(j, "p95_over_median", m->spread);
    sti_json_float(j, "median_interval", m->confident);
    sti_json_begin_array(j, "segments");
    for (int k = 0; k < m->count; k++)
        write_segment(j, &m->segment[k]);
    sti_json_end_array(j);
    sti_json_end_object(j);
}

/* By the reader's own rules. */
static stint_status check_readable(const sti_text *text, const char *path)
{
    sti_links back;
    sti_arena *arena = sti_arena_create("net.links");
    stint_status st =
        arena ? sti_links_parse(text->data, text->length, path, arena, &back)
              : STINT_E_MEMORY;
    sti_arena_destroy(arena);
    return st == STINT_E_INPUT
               ? sti_fail_context(STINT_E_FAILED,
                                  "the measurement is of no use, and was not written")
               : st;
}

stint_status sti_links_write(const sti_links *links, const char *path)
{
    sti_text text = {0};
    sti_json j = {.out = &text, .pretty = true};
    sti_json_begin_object(&j, NULL);
    sti_json_text(&j, "format", "stint links");
    sti_json_int(&j, "version", VERSION);
    sti_json_text(&j, "kind", links->kind);
    sti_json_int(&j, "ranks", links->ranks);
    sti_json_float(&j, "seconds", links->seconds);
    sti_json_float(&j, "encode_s_per_value", links->encode_s);
    sti_json_float(&j, "decode_s_per_value", links->decode_s);
    sti_json_begin_array(&j, "quantile_percent");
    for (int q = 0; q < STI_LINK_QUANTILES; q++)
        sti_json_float(&j, NULL, sti_link_percent[q]);
    sti_json_end_array(&j);
    sti_json_begin_array(&j, "links");
    for (int i = 0; i < links->count; i++)
        write_model(&j, &links->models[i]);
    sti_json_end_array(&j);
    sti_json_end_object(&j);
    sti_text_add(&text, "\n");
    stint_status st = text.failed ? STINT_E_MEMORY : check_readable(&text, path);
    if (st == STINT_OK)
        st = sti_file_write(path, text.data, text.length);
    sti_text_fini(&text);
    return st;
}

/* ---- reading ---- */

/* The first thing that is wrong. */
typedef struct reader {
    const char *wrong;
} reader;

static double number(reader *r, const json_t *object, const char *key, double least,
                     double max_value)
{
    const json_t *value = json_object_get(object, key);
    const double x = json_is_number(value) ? json_number_value(value) : least - 1;
    if (!(x >= least && x <= max_value) && !r->wrong)
        r->wrong = key;
    return x >= least && x <= max_value ? x : least;
}

static json_t *array(reader *r, const json_t *object, const char *key, size_t least,
                     size_t max_value)
{
    json_t *value = json_object_get(object, key);
    if (json_is_array(value) && json_array_size(value) >= least &&
        json_array_size(value) <= max_value)
        return value;
    r->wrong = r->wrong ? r->wrong : key;
    return NULL;
}

static void read_segment(reader *r, const json_t *object, double least,
                         sti_link_segment *s)
{
    s->from_bytes = number(r, object, "from_bytes", least, STI_LINK_MAX_BYTES);
    s->alpha_s = number(r, object, "alpha_s", 0, STI_LINK_MAX_S);
    s->beta_s = number(r, object, "beta_s_per_byte", 0, STI_LINK_MAX_S);
    s->bounded = json_is_true(json_object_get(object, "alpha_bounded"));
    s->stream_s =
        json_object_get(object, "stream_s_per_byte") /* files of old have none */
            ? number(r, object, "stream_s_per_byte", 0, STI_LINK_MAX_S)
            : s->beta_s;
    const json_t *q =
        array(r, object, "quantiles", STI_LINK_QUANTILES, STI_LINK_QUANTILES);
    for (size_t i = 0; q && i < STI_LINK_QUANTILES; i++) {
        const json_t *value = json_array_get(q, i);
        s->quantile[i] = json_is_number(value) ? json_number_value(value) : -1;
        if (!(s->quantile[i] >= 0 && s->quantile[i] <= STI_LINK_MAX) ||
            (i > 0 && s->quantile[i] < s->quantile[i - 1]))
            r->wrong = r->wrong ? r->wrong : "quantiles";
    }
}

static void read_model(reader *r, const json_t *object, int ranks, sti_link_model *m)
{
    m->from = (int)number(r, object, "from", 0, ranks - 1);
    m->to = (int)number(r, object, "to", 0, ranks - 1);
    m->samples = (int64_t)number(r, object, "samples", 0, 1e15);
    m->spread = number(r, object, "p95_over_median", 0, STI_LINK_MAX);
    m->confident = number(r, object, "median_interval", 0, STI_LINK_MAX);
    const json_t *segments = array(r, object, "segments", 1, STI_LINK_SEGMENTS);
    m->count = segments ? (int)json_array_size(segments) : 0;
    for (int k = 0; k < m->count; k++)
        read_segment(r, json_array_get(segments, (size_t)k),
                     k ? m->segment[k - 1].from_bytes : 0, &m->segment[k]);
}

static stint_status read_links(const json_t *root, const char *name, sti_arena *arena,
                               sti_links *out)
{
    reader r = {NULL};
    const char *format = json_string_value(json_object_get(root, "format"));
    const char *kind = json_string_value(json_object_get(root, "kind"));
    if (!format || strcmp(format, "stint links") != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: no file of links; `stint net measure` writes one", name);
    if (number(&r, root, "version", 0, 1e9) > VERSION)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: of a newer version of Stint; measure again", name);
    const sti_links links = {.ranks = (int)number(&r, root, "ranks", 2, MAX_RANKS),
                             .seconds = number(&r, root, "seconds", 0, 1e9),
                             .encode_s = number(&r, root, "encode_s_per_value", 0, 1),
                             .decode_s = number(&r, root, "decode_s_per_value", 0, 1),
                             .kind = sti_arena_strdup(arena, kind ? kind : "")};
    const json_t *list = array(&r, root, "links", 1, 1 << 20);
    *out = links;
    out->count = list ? (int)json_array_size(list) : 0;
    out->models =
        sti_arena_alloc(arena, (size_t)(out->count + 1) * sizeof *out->models);
    if (!out->models || !links.kind)
        return STINT_E_MEMORY;
    for (int i = 0; i < out->count; i++)
        read_model(&r, json_array_get(list, (size_t)i), links.ranks, &out->models[i]);
    return r.wrong
               ? sti_fail(STINT_E_INPUT,
                          "%s: \"%s\" is missing or out of range; measure again with "
                          "`stint net measure`",
                          name, r.wrong)
               : STINT_OK;
}

stint_status sti_links_parse(const char *text, size_t bytes, const char *name,
                             sti_arena *arena, sti_links *links_out)
{
    json_error_t error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return sti_fail(STINT_E_INPUT, "%s:%d: no JSON: %s", name, error.line,
                        error.text);
    sti_links links = {0};
    const stint_status st = read_links(root, name, arena, &links);
    json_decref(root);
    if (st == STINT_OK)
        *links_out = links;
    return st;
}

stint_status sti_links_read(const char *path, sti_arena *arena, sti_links *links_out)
{
    void *data = NULL;
    size_t bytes;
    stint_status st = sti_file_read(path, MAX_BYTES, &data, &bytes);
    if (st == STINT_OK)
        st = sti_links_parse(data, bytes, path, arena, links_out);
    sti_free(data);
    return st;
}
