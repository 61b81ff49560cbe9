#include "serve/infer_request.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/shown.h"
#include "data/data_section.h"
#include "media/image.h"
#include "serve/json_numbers.h"

/* A number of an answer as text, with what a text that grows has to spare; what JSON
 * may take beside its numbers. */
enum { TEXT_OF_VALUE = 40, JSON_MOST = 1 << 16 };

static const char *const output_names[STI_OUTPUTS] = {"probabilities", "class",
                                                      "logits"};

/* A request that is read. */
typedef struct reader {
    const sti_served *model;
    const sti_infer_limits *limits;
    int status; /* HTTP's, of a failure */
    char *body;
    size_t json_bytes, bytes, binary_at; /* where the next binary data begins */
    sti_json_numbers numbers;
    sti_infer_request *out;
} reader;

void sti_infer_request_fini(sti_infer_request *request)
{
    sti_free(request->pixels);
    sti_free(request->probabilities);
    *request = (sti_infer_request){.batch = 0};
}

static int64_t image_values(const sti_served *m)
{
    return m->height * m->width * m->channels;
}

static stint_status make_room(reader *r, int64_t batch)
{
    sti_infer_request *q = r->out;
    const int64_t classes = r->model->classes;
    const int most = r->limits->batch_most;
    if (batch < 1 || batch > most)
        return sti_fail(STINT_E_INPUT, "a batch of %" PRId64 ": 1 to %d were wanted",
                        batch, most);
    q->batch = (int)batch;
    q->pixels =
        sti_alloc_array(batch * image_values(r->model), sizeof *q->pixels, "request");
    q->probabilities = sti_alloc_array(2 * batch * classes, sizeof(float), "request");
    if (!q->pixels || !q->probabilities)
        return STINT_E_MEMORY;
    q->logits = q->probabilities + batch * classes;
    return STINT_OK;
}

/* From 0..255 to what the network takes; as in stint_predict, to the bit. */
static void normalise(const reader *r, int64_t count, float *x)
{
    const sti_data_norm *norm = &r->model->file->norm;
    for (int64_t i = 0; i < count; i++) {
        const int64_t c = i % r->model->channels;
        x[i] = (x[i] / 255.0f - norm->mean[c]) / norm->deviation[c];
    }
}

static stint_status check_values(const float *x, int64_t count, bool bytes)
{
    for (int64_t i = 0; i < count; i++) {
        if (!(fabsf(x[i]) < 3e38f))
            return sti_fail(STINT_E_INPUT, "data: NaN or infinity at %" PRId64, i);
        if (bytes && !(x[i] >= 0 && x[i] <= 255 && x[i] <= floorf(x[i])))
            return sti_fail(STINT_E_INPUT,
                            "data: %g at %" PRId64 "; UINT8 is whole, 0 to 255",
                            (double)x[i], i);
    }
    return STINT_OK;
}

size_t sti_infer_request_bytes(const sti_infer_request *q)
{
    const size_t classes = (size_t)q->model->classes, batch = (size_t)q->batch;
    size_t values = (size_t)image_values(q->model) + 2 * classes;
    for (int o = 0; o < STI_OUTPUTS; o++)
        if (q->wanted[o])
            values += (o == STI_OUTPUT_CLASS ? 2 : classes) *
                      (q->binary[o] ? 2 : TEXT_OF_VALUE / sizeof(float));
    return batch * values * sizeof(float);
}

/* ---- images ---- */

/* A small file may hold a picture of any size. */
static stint_status check_decoding(reader *r, const uint8_t *stored, size_t bytes)
{
    sti_image_info info;
    const int colour = r->model->channels == 3;
    if (sti_image_probe(stored, bytes, true, &info) != 1)
        return STINT_OK; /* the decoder says what is wrong with it */
    const size_t takes = info.buffer_bytes[colour] + info.library_bytes;
    if (takes <= r->limits->decode_bytes)
        return STINT_OK;
    r->status = 413;
    return sti_fail(STINT_E_INPUT,
                    "an image of %" PRId64 " x %" PRId64
                    " pixels takes %zu bytes to decode; at most %zu (--max-body)",
                    info.width, info.height, takes, r->limits->decode_bytes);
}

static stint_status decode(reader *r, const uint8_t *stored, size_t bytes, int number)
{
    const sti_served *m = r->model;
    const int64_t count = image_values(m);
    float *x = r->out->pixels + number * count;
    uint8_t *pixels = sti_alloc_array(count, 1, "request");
    stint_status st = pixels ? check_decoding(r, stored, bytes) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_data_decode_image(stored, bytes, sti_recipe_fit(m->file->recipe),
                                   m->height, m->width, m->channels, pixels);
    if (st == STINT_E_INPUT && r->status == 400)
        r->status = 422;
    for (int64_t i = 0; st == STINT_OK && i < count; i++)
        x[i] = (float)pixels[i];
    sti_free(pixels);
    if (st == STINT_OK)
        normalise(r, count, x);
    return st;
}

static stint_status decode_all(reader *r, const uint8_t *data, size_t bytes)
{
    stint_status st = STINT_OK;
    size_t at = 0;
    for (int i = 0; i < r->out->batch && st == STINT_OK; i++) {
        uint32_t length = 0;
        if (bytes - at >= 4)
            length = data[at] | (uint32_t)data[at + 1] << 8 |
                     (uint32_t)data[at + 2] << 16 | (uint32_t)data[at + 3] << 24;
        if (bytes - at < 4 || length > bytes - at - 4)
            return sti_fail(STINT_E_INPUT,
                            "image: element %d of BYTES ends beyond its data", i);
        st = decode(r, data + at + 4, length, i);
        at += 4 + (size_t)length;
    }
    if (st == STINT_OK && at != bytes)
        st = sti_fail(STINT_E_INPUT, "image: %zu bytes more than its elements take",
                      bytes - at);
    return st;
}

/* ---- the input ---- */

/* As it was sent, as far as it is of whole numbers; in words[room]. */
static const char *shape_text(const json_t *shape, char *words, size_t room)
{
    const size_t dims = json_array_size(shape);
    size_t at = 0;
    if (!json_is_array(shape))
        return "none";
    for (size_t i = 0; i < dims; i++) {
        const json_t *n = json_array_get(shape, i);
        if (!json_is_integer(n) || room - at < 32)
            return i > 0 && json_is_integer(n) ? "too many numbers"
                                               : "not of whole numbers";
        at += (size_t)snprintf(words + at, room - at, "%s%" JSON_INTEGER_FORMAT,
                               i > 0 ? ", " : "[", json_integer_value(n));
    }
    snprintf(words + at, room - at, "%s", dims > 0 ? "]" : "[]");
    return words;
}

static stint_status read_shape(reader *r, const json_t *input, bool encoded,
                               int64_t *batch_out)
{
    const json_t *shape = json_object_get(input, "shape");
    const sti_served *m = r->model;
    const int64_t want[] = {0, m->height, m->width, m->channels};
    const size_t dims = encoded ? 1 : 4;
    bool good = json_array_size(shape) == dims;
    char seen[80];
    for (size_t i = 0; good && i < dims; i++) {
        const json_t *n = json_array_get(shape, i);
        good = json_is_integer(n) && (i == 0 || json_integer_value(n) == want[i]);
    }
    if (!good && encoded)
        return sti_fail(STINT_E_INPUT, "image: shape: %s; [batch] was wanted of BYTES",
                        shape_text(shape, seen, sizeof seen));
    if (!good)
        return sti_fail(STINT_E_INPUT,
                        "image: shape: %s; [batch, %" PRId64 ", %" PRId64 ", %" PRId64
                        "] was wanted",
                        shape_text(shape, seen, sizeof seen), m->height, m->width,
                        m->channels);
    *batch_out = json_integer_value(json_array_get(shape, 0));
    return STINT_OK;
}

/* Bytes of the input behind the JSON; NULL: its data is in the JSON. */
static stint_status read_binary(reader *r, const json_t *input,
                                const uint8_t **data_out, size_t *bytes_out)
{
    const json_t *size =
        json_object_get(json_object_get(input, "parameters"), "binary_data_size");
    *data_out = NULL;
    if (!size)
        return STINT_OK;
    const json_int_t n = json_integer_value(size);
    if (!json_is_integer(size) || n < 0 || (uint64_t)n > r->bytes - r->binary_at)
        return sti_fail(STINT_E_INPUT,
                        "image: binary_data_size: %zu bytes follow the JSON",
                        r->bytes - r->binary_at);
    *data_out = (const uint8_t *)r->body + r->binary_at;
    *bytes_out = (size_t)n;
    r->binary_at += (size_t)n;
    return STINT_OK;
}

static stint_status read_plain(reader *r, const json_t *input, bool bytes,
                               const uint8_t *data, size_t data_bytes)
{
    const int64_t count = r->out->batch * image_values(r->model);
    const json_t *list = json_object_get(input, "data");
    float *x = r->out->pixels;
    int64_t given = (int64_t)(data_bytes / (bytes ? 1 : 4));
    const json_int_t n = json_integer_value(list);
    if (!data && json_is_integer(list) && n >= 0 && n < r->numbers.lists) {
        given = r->numbers.first[n + 1] - r->numbers.first[n];
        if (given == count)
            memcpy(x, r->numbers.value + r->numbers.first[n],
                   (size_t)count * sizeof *x);
    } else if (!data) {
        return sti_fail(STINT_E_INPUT, "image: data: numbers were wanted");
    }
    if (given != count || (data && data_bytes % (bytes ? 1 : 4) != 0))
        return sti_fail(STINT_E_INPUT,
                        "image: %" PRId64 " values; its shape takes %" PRId64, given,
                        count);
    for (int64_t i = 0; data && bytes && i < count; i++)
        x[i] = data[i];
    if (data && !bytes)
        memcpy(x, data, (size_t)count * sizeof *x);
    const stint_status st = check_values(x, count, bytes);
    if (st == STINT_OK)
        normalise(r, count, x);
    return st;
}

static stint_status read_input(reader *r, const json_t *root)
{
    const json_t *inputs = json_object_get(root, "inputs");
    const json_t *input = json_array_get(inputs, 0);
    const char *name = json_string_value(json_object_get(input, "name"));
    const char *type = json_string_value(json_object_get(input, "datatype"));
    const uint8_t *data;
    size_t bytes = 0;
    int64_t batch = 0;
    stint_status st;
    if (json_array_size(inputs) != 1 || !name || strcmp(name, "image") != 0)
        return sti_fail(STINT_E_INPUT, "inputs: one of the name image was wanted");
    if (!type || (strcmp(type, "UINT8") != 0 && strcmp(type, "FP32") != 0 &&
                  strcmp(type, "BYTES") != 0))
        return sti_fail(STINT_E_INPUT,
                        "image: datatype %s: UINT8, FP32 or BYTES was "
                        "wanted",
                        type ? sti_shown(type) : "none");
    const bool encoded = strcmp(type, "BYTES") == 0;
    STI_TRY(read_shape(r, input, encoded, &batch));
    STI_TRY(make_room(r, batch));
    STI_TRY(read_binary(r, input, &data, &bytes));
    if (encoded && !data)
        st = sti_fail(STINT_E_INPUT, "image: BYTES are taken as binary data behind the "
                                     "JSON (binary_data_size)");
    else if (encoded)
        st = decode_all(r, data, bytes);
    else
        st = read_plain(r, input, strcmp(type, "UINT8") == 0, data, bytes);
    if (st == STINT_OK && r->binary_at != r->bytes)
        st = sti_fail(STINT_E_INPUT, "%zu bytes behind the JSON belong to no input",
                      r->bytes - r->binary_at);
out:
    return st;
}

/* ---- what is asked for ---- */

static stint_status read_outputs(reader *r, const json_t *root)
{
    const json_t *outputs = json_object_get(root, "outputs");
    const json_t *parameters = json_object_get(root, "parameters");
    const bool binary = json_is_true(json_object_get(parameters, "binary_data_output"));
    sti_infer_request *q = r->out;
    for (int o = 0; o < STI_OUTPUTS; o++) {
        q->wanted[o] = !outputs && o != STI_OUTPUT_LOGITS;
        q->binary[o] = binary;
    }
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        const json_t *output = json_array_get(outputs, i);
        const char *name = json_string_value(json_object_get(output, "name"));
        const json_t *data =
            json_object_get(json_object_get(output, "parameters"), "binary_data");
        int o = 0;
        while (o < STI_OUTPUTS && (!name || strcmp(name, output_names[o]) != 0))
            o++;
        if (o == STI_OUTPUTS)
            return sti_fail(STINT_E_INPUT,
                            "outputs: %s; probabilities, class and logits "
                            "there are",
                            name ? sti_shown(name) : "one without a name");
        q->wanted[o] = true;
        q->binary[o] = data ? json_is_true(data) : binary;
    }
    return STINT_OK;
}

static stint_status read_options(reader *r, const json_t *root)
{
    const char *id = json_string_value(json_object_get(root, "id"));
    const json_t *timeout =
        json_object_get(json_object_get(root, "parameters"), "timeout");
    const double us = json_number_value(timeout);
    if (id && strlen(id) >= sizeof r->out->id)
        return sti_fail(STINT_E_INPUT, "id: at most 127 bytes were wanted");
    if (timeout && (!json_is_number(timeout) || !(us > 0) || us > 1e12))
        return sti_fail(STINT_E_INPUT, "timeout: microseconds above 0 were wanted");
    snprintf(r->out->id, sizeof r->out->id, "%s", id ? id : "");
    r->out->timeout_s = timeout ? us * 1e-6 : 0;
    return STINT_OK;
}

static stint_status read_json(reader *r)
{
    json_error_t error;
    char *end = r->body + r->json_bytes;
    const char kept = *end;
    size_t bytes = r->json_bytes;
    stint_status st = sti_json_take_numbers(
        r->body, &bytes, (int64_t)r->limits->batch_most * image_values(r->model),
        &r->numbers);
    *end = kept; /* what is behind the JSON stays as it is */
    if (st != STINT_OK)
        return st;
    /* A tree of JSON takes many times its text. */
    if (bytes > JSON_MOST) {
        r->status = 413;
        return sti_fail(STINT_E_INPUT, "%zu bytes of JSON beside data: at most %d",
                        bytes, JSON_MOST);
    }
    json_t *root = json_loadb(r->body, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(root)) {
        json_decref(root);
        return sti_fail(STINT_E_INPUT, "no JSON object: %s", sti_shown(error.text));
    }
    STI_TRY(read_options(r, root));
    STI_TRY(read_outputs(r, root));
    STI_TRY(read_input(r, root));
out:
    json_decref(root);
    return st;
}

stint_status sti_infer_request_parse(const sti_served *model,
                                     const sti_infer_limits *limits, char *body,
                                     size_t bytes, size_t json_bytes, bool image,
                                     sti_infer_request *request_out,
                                     int *http_status_out)
{
    stint_status st;
    reader r = {.model = model,
                .limits = limits,
                .status = 400,
                .body = body,
                .json_bytes = json_bytes,
                .bytes = bytes,
                .binary_at = json_bytes,
                .out = request_out};
    *request_out = (sti_infer_request){.model = model};
    if (image) {
        request_out->wanted[STI_OUTPUT_PROBABILITIES] = true;
        request_out->wanted[STI_OUTPUT_CLASS] = true;
        if ((st = make_room(&r, 1)) == STINT_OK)
            st = decode(&r, (const uint8_t *)body, bytes, 0);
    } else {
        st = read_json(&r);
    }
    sti_free(r.numbers.value);
    *http_status_out = st == STINT_E_MEMORY ? 503 : r.status;
    if (st != STINT_OK)
        sti_infer_request_fini(request_out);
    return st;
}

/* ---- answers ---- */

static int64_t best_class(const float *p, int64_t classes)
{
    int64_t best = 0;
    for (int64_t c = 1; c < classes; c++)
        if (p[c] > p[best])
            best = c;
    return best;
}

static const float *values_of(const sti_infer_request *q, int output)
{
    return output == STI_OUTPUT_LOGITS ? q->logits : q->probabilities;
}

static size_t output_bytes(const sti_infer_request *q, int output)
{
    return output == STI_OUTPUT_CLASS
               ? (size_t)q->batch * sizeof(int64_t)
               : (size_t)(q->batch * q->model->classes) * sizeof(float);
}

int64_t sti_infer_answer_numbers(const sti_infer_request *q)
{
    int64_t count = 0;
    for (int o = 0; o < STI_OUTPUTS; o++)
        if (q->wanted[o] && !q->binary[o])
            count += q->batch * (o == STI_OUTPUT_CLASS ? 1 : q->model->classes);
    return count;
}

static void add_data(const sti_infer_request *q, int output, sti_json *j)
{
    const int64_t classes = q->model->classes;
    sti_json_begin_array(j, "data");
    for (int64_t i = 0; i < q->batch * classes; i++) {
        if (output != STI_OUTPUT_CLASS)
            sti_json_float(j, NULL, (double)values_of(q, output)[i]);
        else if (i % classes == 0)
            sti_json_int(j, NULL, best_class(q->probabilities + i, classes));
    }
    sti_json_end_array(j);
}

static void add_output(const sti_infer_request *q, int output, sti_json *j)
{
    sti_json_begin_object(j, NULL);
    sti_json_text(j, "name", output_names[output]);
    sti_json_text(j, "datatype", output == STI_OUTPUT_CLASS ? "INT64" : "FP32");
    sti_json_begin_array(j, "shape");
    sti_json_int(j, NULL, q->batch);
    if (output != STI_OUTPUT_CLASS)
        sti_json_int(j, NULL, q->model->classes);
    sti_json_end_array(j);
    if (q->binary[output]) {
        sti_json_begin_object(j, "parameters");
        sti_json_int(j, "binary_data_size", (int64_t)output_bytes(q, output));
        sti_json_end_object(j);
    } else {
        add_data(q, output, j);
    }
    sti_json_end_object(j);
}

static void add_binary(const sti_infer_request *q, int output, sti_text *out)
{
    const int64_t classes = q->model->classes;
    if (output != STI_OUTPUT_CLASS) {
        sti_text_add_bytes(out, values_of(q, output), output_bytes(q, output));
        return;
    }
    for (int i = 0; i < q->batch; i++) {
        const int64_t best = best_class(q->probabilities + i * classes, classes);
        sti_text_add_bytes(out, &best, sizeof best);
    }
}

void sti_infer_answer(const sti_infer_request *q, sti_text *out,
                      size_t *header_bytes_out)
{
    bool binary = false;
    sti_json j = {.out = out};
    sti_json_begin_object(&j, NULL);
    sti_json_text(&j, "model_name", q->model->name);
    sti_json_text(&j, "model_version", q->version);
    if (*q->id)
        sti_json_text(&j, "id", q->id);
    sti_json_begin_array(&j, "outputs");
    for (int o = 0; o < STI_OUTPUTS; o++)
        if (q->wanted[o])
            add_output(q, o, &j);
    sti_json_end_array(&j);
    sti_json_end_object(&j);
    *header_bytes_out = 0;
    for (int o = 0; o < STI_OUTPUTS; o++)
        binary = binary || (q->wanted[o] && q->binary[o]);
    if (binary)
        *header_bytes_out = out->length;
    for (int o = 0; o < STI_OUTPUTS; o++)
        if (q->wanted[o] && q->binary[o])
            add_binary(q, o, out);
}

static void add_tensor(sti_json *j, const char *name, const char *type,
                       const int64_t *shape, int dims)
{
    sti_json_begin_object(j, NULL);
    sti_json_text(j, "name", name);
    sti_json_text(j, "datatype", type);
    sti_json_begin_array(j, "shape");
    for (int i = 0; i < dims; i++)
        sti_json_int(j, NULL, shape[i]);
    sti_json_end_array(j);
    sti_json_end_object(j);
}

void sti_infer_metadata(const sti_served *m, const char *name, double sla_s,
                        int batch_most, sti_text *out)
{
    char version[13];
    const int64_t image[] = {-1, m->height, m->width, m->channels};
    const int64_t scores[] = {-1, m->classes};
    sti_json j = {.out = out};
    snprintf(version, sizeof version, "%s", m->file->weights_sha256);
    sti_json_begin_object(&j, NULL);
    sti_json_text(&j, "name", name);
    sti_json_begin_array(&j, "versions");
    sti_json_text(&j, NULL, version);
    sti_json_end_array(&j);
    sti_json_text(&j, "platform", "stint");
    sti_json_begin_array(&j, "inputs");
    add_tensor(&j, "image", "UINT8", image, 4);
    sti_json_end_array(&j);
    sti_json_begin_array(&j, "outputs");
    add_tensor(&j, output_names[0], "FP32", scores, 2);
    add_tensor(&j, output_names[1], "INT64", scores, 1);
    add_tensor(&j, output_names[2], "FP32", scores, 2);
    sti_json_end_array(&j);
    sti_json_begin_object(&j, "parameters");
    sti_json_float(&j, "sla_s", sla_s);
    sti_json_int(&j, "batch_max", batch_most);
    sti_json_end_object(&j);
    sti_json_end_object(&j);
}
