#include "serve/text_request.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/shown.h"

/* A tree of JSON takes many times its text, unless that is one long word. */
enum { MARKS_MOST = 2048 };

/* ---- parameters ---- */

/* How one parameter is read: its value into the request. */
typedef struct parameter {
    const char *name;
    stint_status (*read)(const json_t *value, sti_text_request *r);
} parameter;

static stint_status read_whole(const json_t *value, const char *name, json_int_t least,
                               json_int_t most, int64_t *out)
{
    const json_int_t n = json_integer_value(value);
    if (!json_is_integer(value) || n < least || n > most)
        return sti_fail(STINT_E_INPUT, "%s: a whole number, %lld to %lld, was wanted",
                        name, (long long)least, (long long)most);
    *out = n;
    return STINT_OK;
}

static stint_status read_number(const json_t *value, const char *name, double *out)
{
    if (!json_is_number(value))
        return sti_fail(STINT_E_INPUT, "%s: a number was wanted", name);
    *out = json_number_value(value);
    return STINT_OK;
}

static stint_status read_draws(const json_t *value, sti_text_request *r)
{
    return read_whole(value, "max_tokens", 1, STI_TEXT_DRAWS_MOST, &r->draws);
}

static stint_status read_seed(const json_t *value, sti_text_request *r)
{
    int64_t seed = 0;
    const stint_status st = read_whole(value, "seed", 0, (json_int_t)INT64_MAX, &seed);
    r->sampler.seed = (uint64_t)seed;
    return st;
}

static stint_status read_temperature(const json_t *value, sti_text_request *r)
{
    return read_number(value, "temperature", &r->sampler.temperature);
}

static stint_status read_top_k(const json_t *value, sti_text_request *r)
{
    return read_whole(value, "top_k", 1, 1000000000, &r->sampler.top_k);
}

static stint_status read_top_p(const json_t *value, sti_text_request *r)
{
    return read_number(value, "top_p", &r->sampler.top_p);
}

static stint_status read_timeout(const json_t *value, sti_text_request *r)
{
    double us = 0;
    stint_status st = read_number(value, "timeout", &us);
    if (st == STINT_OK && (!(us > 0) || us > 1e12))
        st = sti_fail(STINT_E_INPUT, "timeout: microseconds above 0 were wanted");
    r->timeout_s = us * 1e-6;
    return st;
}

static stint_status read_stream(const json_t *value, sti_text_request *r)
{
    if (!json_is_boolean(value))
        return sti_fail(STINT_E_INPUT, "stream: true or false was wanted");
    r->stream = json_is_true(value);
    return STINT_OK;
}

static stint_status add_stop(const json_t *value, sti_text_request *r)
{
    const char *text = json_string_value(value);
    const size_t bytes = json_string_length(value);
    if (!text || bytes < 1 || bytes > STI_TEXT_STOP_BYTES || memchr(text, 0, bytes) ||
        r->stops == STI_TEXT_STOPS)
        return sti_fail(STINT_E_INPUT,
                        "stop: at most %d texts of 1 to %d bytes were wanted",
                        STI_TEXT_STOPS, STI_TEXT_STOP_BYTES);
    snprintf(r->stop[r->stops++], STI_TEXT_STOP_BYTES + 1, "%s", text);
    return STINT_OK;
}

static stint_status read_stop(const json_t *value, sti_text_request *r)
{
    stint_status st = STINT_OK;
    if (!json_is_array(value))
        return add_stop(value, r);
    for (size_t i = 0; i < json_array_size(value) && st == STINT_OK; i++)
        st = add_stop(json_array_get(value, i), r);
    return st;
}

static const parameter parameters[] = {
    {"max_tokens", read_draws},        {"seed", read_seed},    {"stop", read_stop},
    {"temperature", read_temperature}, {"top_k", read_top_k},  {"top_p", read_top_p},
    {"timeout", read_timeout},         {"stream", read_stream}};
enum { PARAMETERS = sizeof parameters / sizeof parameters[0] };

/* False: there is no such parameter. */
static bool read_parameter(const char *name, const json_t *value, sti_text_request *r,
                           stint_status *st)
{
    for (int i = 0; i < PARAMETERS; i++)
        if (strcmp(name, parameters[i].name) == 0) {
            *st = json_is_null(value) ? STINT_OK : parameters[i].read(value, r);
            return true;
        }
    return false;
}

static stint_status unknown(const char *name)
{
    return sti_fail(STINT_E_INPUT,
                    "there is no parameter '%s'; max_tokens, seed, stop, temperature, "
                    "top_k, top_p and timeout there are",
                    sti_shown(name));
}

static stint_status read_parameters(json_t *object, sti_text_request *r)
{
    const char *name;
    json_t *value;
    stint_status st = STINT_OK;
    if (!json_is_object(object))
        return sti_fail(STINT_E_INPUT, "parameters: an object was wanted");
    json_object_foreach(object, name, value)
    {
        if (!read_parameter(name, value, r, &st))
            st = unknown(name);
        if (st != STINT_OK)
            return st;
    }
    return st;
}

/* ---- the two forms ---- */

static stint_status take_prompt(const json_t *value, const char *key,
                                sti_text_request *r)
{
    if (json_array_size(value) == 1)
        value = json_array_get(value, 0);
    if (!json_is_string(value))
        return sti_fail(STINT_E_INPUT, "%s: one text was wanted", key);
    r->prompt_bytes = json_string_length(value);
    if (r->prompt_bytes == 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: it is empty: give at least one character to go on from",
                        key);
    r->prompt = sti_alloc(r->prompt_bytes, "prompt");
    if (!r->prompt)
        return STINT_E_MEMORY;
    memcpy(r->prompt, json_string_value(value), r->prompt_bytes);
    return STINT_OK;
}

static stint_status take_name(const json_t *value, const char *key, char *out,
                              size_t room)
{
    const char *text = json_string_value(value);
    if (!text || json_string_length(value) >= room || strlen(text) >= room)
        return sti_fail(STINT_E_INPUT, "%s: at most %zu bytes were wanted", key,
                        room - 1);
    snprintf(out, room, "%s", text);
    return STINT_OK;
}

/* text_input, id, and parameters, in an object of their own or beside (as Triton has
 * them). */
static stint_status read_generate(json_t *root, sti_text_request *r)
{
    const char *name;
    json_t *value;
    stint_status st = STINT_OK;
    json_object_foreach(root, name, value)
    {
        if (strcmp(name, "text_input") == 0)
            st = take_prompt(value, name, r);
        else if (strcmp(name, "id") == 0)
            st = take_name(value, name, r->id, sizeof r->id);
        else if (strcmp(name, "parameters") == 0)
            st = read_parameters(value, r);
        else if (!read_parameter(name, value, r, &st))
            st = unknown(name);
        if (st != STINT_OK)
            return st;
    }
    return r->prompt ? st : sti_fail(STINT_E_INPUT, "text_input: a text was wanted");
}

/* What clients send though it is the standard: taken only as that. */
static bool is_standard(const char *name, const json_t *value)
{
    static const struct {
        const char *name;
        int value;
    } known[] = {{"n", 1},        {"best_of", 1},          {"echo", 0},
                 {"logprobs", 0}, {"presence_penalty", 0}, {"frequency_penalty", 0}};
    if (json_is_null(value) || strcmp(name, "user") == 0)
        return true;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(name, known[i].name) == 0)
            return json_is_number(value) ? json_number_value(value) == known[i].value
                                         : json_is_false(value) && !known[i].value;
    return false;
}

static stint_status read_completion(json_t *root, sti_text_request *r)
{
    const char *name;
    json_t *value;
    stint_status st = STINT_OK;
    json_object_foreach(root, name, value)
    {
        if (strcmp(name, "prompt") == 0)
            st = take_prompt(value, name, r);
        else if (strcmp(name, "model") == 0)
            st = take_name(value, name, r->model, sizeof r->model);
        else if (!read_parameter(name, value, r, &st) && !is_standard(name, value))
            st = unknown(name);
        if (st != STINT_OK)
            return st;
    }
    return r->prompt ? st : sti_fail(STINT_E_INPUT, "prompt: a text was wanted");
}

/* ---- the body ---- */

/* Marks of structure outside of words. */
static size_t count_marks(const char *body, size_t bytes)
{
    size_t marks = 0;
    bool inside = false;
    for (size_t i = 0; i < bytes; i++) {
        if (inside && body[i] == '\\')
            i++;
        else if (body[i] == '"')
            inside = !inside;
        else if (!inside)
            marks +=
                body[i] == ',' || body[i] == ':' || body[i] == '[' || body[i] == '{';
    }
    return marks;
}

static stint_status read_root(const char *body, size_t bytes, sti_text_request *r)
{
    json_error_t error;
    if (count_marks(body, bytes) > MARKS_MOST)
        return sti_fail(STINT_E_INPUT, "JSON of more than %d values", MARKS_MOST);
    json_t *root =
        json_loadb(body, bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    stint_status st;
    if (!json_is_object(root))
        st = sti_fail(STINT_E_INPUT, "no JSON object: %s", sti_shown(error.text));
    else
        st = r->completion ? read_completion(root, r) : read_generate(root, r);
    json_decref(root);
    return st;
}

stint_status sti_text_request_parse(const char *body, size_t bytes, bool completion,
                                    bool stream, sti_text_request *r,
                                    int *http_status_out)
{
    *r = (sti_text_request){
        .completion = completion,
        .stream = stream,
        .draws = completion ? 16 : 20,
        .sampler = {.temperature = completion ? 1.0 : 0.8, .top_p = 1}};
    stint_status st = read_root(body, bytes, r);
    r->stream = r->stream || stream;
    if (st == STINT_OK)
        st = sti_sampler_check(&r->sampler);
    *http_status_out = st == STINT_E_MEMORY ? 503 : 400;
    if (st != STINT_OK)
        sti_text_request_fini(r);
    return st;
}

/* As `stint run` has it: behind the token that prompts begin with, if the model has
 * one, unless the text names it itself. */
static stint_status encode(sti_text_request *r, const stint_tokenizer *tokenizer)
{
    const int32_t begin = stint_tokenizer_describe(tokenizer)->begin_token;
    const int64_t most = 1 + (int64_t)stint_tokenizer_most(tokenizer, r->prompt_bytes);
    r->tokens = sti_alloc_array(most, sizeof *r->tokens, "prompt");
    if (!r->tokens)
        return STINT_E_MEMORY;
    const stint_status st = stint_tokenizer_encode(
        tokenizer, r->prompt, r->prompt_bytes, r->tokens + (begin >= 0), &r->count);
    if (st != STINT_OK || begin < 0)
        return st;
    if (r->count > 0 && r->tokens[1] == begin) {
        memmove(r->tokens, r->tokens + 1, (size_t)r->count * sizeof *r->tokens);
    } else {
        r->tokens[0] = begin;
        r->count++;
    }
    return st;
}

stint_status sti_text_request_encode(sti_text_request *r,
                                     const stint_tokenizer *tokenizer, int64_t context,
                                     size_t longest, int *http_status_out)
{
    stint_status st = STINT_OK;
    if (r->prompt_bytes / longest <= (size_t)context)
        st = encode(r, tokenizer);
    else
        r->count = (int64_t)(r->prompt_bytes / longest); /* at least */
    if (st == STINT_OK && r->count > context)
        st = sti_fail(STINT_E_INPUT,
                      "the prompt has %s%" PRId64 " tokens, but the model sees at most "
                      "%" PRId64,
                      r->tokens ? "" : "more than ", r->count, context);
    if (st != STINT_OK) {
        *http_status_out = st == STINT_E_INPUT ? 422 : 503;
        return st;
    }
    int32_t *fewer = sti_realloc(r->tokens, (size_t)r->count * sizeof *fewer, "prompt");
    r->tokens = fewer ? fewer : r->tokens;
    sti_free(r->prompt);
    r->prompt = NULL;
    return STINT_OK;
}

void sti_text_request_fini(sti_text_request *r)
{
    sti_free(r->prompt);
    sti_free(r->tokens);
    r->prompt = NULL;
    r->tokens = NULL;
}

/* ---- stops ---- */

/* How many of the last bytes may be the beginning of the stop. */
static size_t torn_bytes(const char *text, size_t length, const char *stop)
{
    size_t most = strlen(stop) - 1;
    for (size_t n = most < length ? most : length; n > 0; n--)
        if (memcmp(text + length - n, stop, n) == 0)
            return n;
    return 0;
}

size_t sti_text_request_safe(const sti_text_request *r, const char *text, size_t length,
                             bool *stopped_out)
{
    size_t safe = length;
    *stopped_out = false;
    for (int i = 0; i < r->stops && length > 0; i++) {
        const char *found = strstr(text, r->stop[i]);
        if (found && (!*stopped_out || (size_t)(found - text) < safe)) {
            safe = (size_t)(found - text);
            *stopped_out = true;
        }
    }
    for (int i = 0; i < r->stops && length > 0 && !*stopped_out; i++) {
        const size_t torn = torn_bytes(text, length, r->stop[i]);
        safe = length - torn < safe ? length - torn : safe;
    }
    return safe;
}

/* ---- answers ---- */

static void add_names(const sti_text_request *r, const sti_text_reply *reply,
                      sti_json *j)
{
    char id[48];
    if (!r->completion) {
        sti_json_text(j, "model_name", reply->model);
        sti_json_text(j, "model_version", reply->version);
        if (*r->id)
            sti_json_text(j, "id", r->id);
        return;
    }
    snprintf(id, sizeof id, "cmpl-%" PRId64, reply->number);
    sti_json_text(j, "id", id);
    sti_json_text(j, "object", "text_completion");
    sti_json_int(j, "created", reply->created);
    sti_json_text(j, "model", reply->model);
    sti_json_text(j, "system_fingerprint", reply->version);
}

static void add_details(const sti_text_request *r, const sti_text_reply *reply,
                        sti_json *j)
{
    sti_json_begin_object(j, "details");
    sti_json_text(j, "finish_reason", reply->finish);
    sti_json_int(j, "prompt_tokens", r->count);
    sti_json_int(j, "tokens", reply->drawn);
    sti_json_uint(j, "seed", r->sampler.seed);
    sti_json_end_object(j);
}

static void add_choice(const sti_text_reply *reply, const char *text, sti_json *j)
{
    sti_json_begin_array(j, "choices");
    sti_json_begin_object(j, NULL);
    sti_json_text(j, "text", text);
    sti_json_int(j, "index", 0);
    sti_json_text(j, "logprobs", NULL);
    sti_json_text(j, "finish_reason", reply->finish);
    sti_json_end_object(j);
    sti_json_end_array(j);
}

static void add_usage(const sti_text_request *r, const sti_text_reply *reply,
                      sti_json *j)
{
    sti_json_begin_object(j, "usage");
    sti_json_int(j, "prompt_tokens", r->count);
    sti_json_int(j, "completion_tokens", reply->drawn);
    sti_json_int(j, "total_tokens", r->count + reply->drawn);
    sti_json_end_object(j);
}

void sti_text_answer(const sti_text_request *r, const sti_text_reply *reply,
                     const char *text, sti_text *out)
{
    sti_json j = {.out = out};
    sti_json_begin_object(&j, NULL);
    add_names(r, reply, &j);
    if (r->completion) {
        add_choice(reply, text, &j);
        add_usage(r, reply, &j);
    } else {
        sti_json_text(&j, "text_output", text);
        add_details(r, reply, &j);
    }
    sti_json_end_object(&j);
}

void sti_text_event(const sti_text_request *r, const sti_text_reply *reply,
                    const char *piece, sti_text *out)
{
    sti_json j = {.out = out};
    sti_text_add(out, "data: ");
    sti_json_begin_object(&j, NULL);
    add_names(r, reply, &j);
    if (r->completion) {
        add_choice(reply, piece, &j);
    } else {
        sti_json_text(&j, "text_output", piece);
        sti_json_bool(&j, "done", reply->finish != NULL);
        if (reply->finish)
            add_details(r, reply, &j);
    }
    sti_json_end_object(&j);
    sti_text_add(out, "\n\n");
    if (r->completion && reply->finish)
        sti_text_add(out, "data: [DONE]\n\n");
}

void sti_text_event_error(const char *words, sti_text *out)
{
    sti_json j = {.out = out};
    sti_text_add(out, "data: ");
    sti_json_begin_object(&j, NULL);
    sti_json_text(&j, "error", words);
    sti_json_end_object(&j);
    sti_text_add(out, "\n\n");
}
