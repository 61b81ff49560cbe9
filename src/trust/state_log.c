#define _GNU_SOURCE /* getline */
#include "trust/state_log.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"

typedef struct reader {
    sti_arena *arena;
    const char *path;
    sti_state_log *log;
    int64_t capacity;
} reader;

static stint_status bad_line(const reader *r)
{
    return sti_fail(STINT_E_INPUT, "%s: a line of hashes cannot be read", r->path);
}

static bool is_hex(const char *text, size_t digits)
{
    return text && strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

static stint_status take_names(reader *r, json_t *tensors)
{
    sti_state_log *log = r->log;
    const char *name;
    json_t *value;
    int64_t i = 0;
    log->tensors = (int64_t)json_object_size(tensors);
    log->name =
        sti_arena_alloc(r->arena, (size_t)(log->tensors + 1) * sizeof *log->name);
    if (!log->name)
        return STINT_E_MEMORY;
    json_object_foreach(
        tensors, name,
        value) if (!(log->name[i++] =
                         sti_arena_strdup(r->arena, name))) return STINT_E_MEMORY;
    return STINT_OK;
}

static stint_status take_hashes(reader *r, json_t *tensors, sti_state_line *line)
{
    line->hash =
        sti_arena_alloc(r->arena, (size_t)(r->log->tensors + 1) * sizeof *line->hash);
    if (!line->hash)
        return STINT_E_MEMORY;
    if ((int64_t)json_object_size(tensors) != r->log->tensors)
        return bad_line(r);
    for (int64_t i = 0; i < r->log->tensors; i++) {
        const char *text = json_string_value(json_object_get(tensors, r->log->name[i]));
        if (!is_hex(text, 16))
            return bad_line(r);
        line->hash[i] = strtoull(text, NULL, 16);
    }
    return STINT_OK;
}

static stint_status grow(reader *r)
{
    sti_state_log *log = r->log;
    if (log->lines < r->capacity)
        return STINT_OK;
    const int64_t capacity = r->capacity ? 2 * r->capacity : 64;
    sti_state_line *more = sti_arena_alloc(r->arena, (size_t)capacity * sizeof *more);
    if (!more)
        return STINT_E_MEMORY;
    if (log->lines)
        memcpy(more, log->line, (size_t)log->lines * sizeof *more);
    log->line = more;
    r->capacity = capacity;
    return STINT_OK;
}

/* A step that comes again, after a resume, takes the place of the earlier ones. */
static stint_status take_state(reader *r, json_t *event)
{
    sti_state_log *log = r->log;
    json_t *tensors = json_object_get(event, "tensors");
    json_t *step = json_object_get(event, "step");
    const char *sha256 = json_string_value(json_object_get(event, "sha256"));
    if (!json_is_object(tensors) || !json_is_integer(step) || !is_hex(sha256, 64))
        return bad_line(r);
    while (log->lines > 0 && log->line[log->lines - 1].step >= json_integer_value(step))
        log->lines--;
    stint_status st = log->name ? STINT_OK : take_names(r, tensors);
    if (st == STINT_OK)
        st = grow(r);
    if (st != STINT_OK)
        return st;
    sti_state_line *line = &log->line[log->lines];
    *line = (sti_state_line){.step = json_integer_value(step),
                             .sha256 = sti_arena_strdup(r->arena, sha256)};
    st = line->sha256 ? take_hashes(r, tensors, line) : STINT_E_MEMORY;
    log->lines += st == STINT_OK;
    return st;
}

static stint_status take_line(reader *r, const char *text, size_t length)
{
    json_t *event = json_loadb(text, length, 0, NULL);
    const char *name = json_string_value(json_object_get(event, "event"));
    stint_status st = STINT_OK;
    if (name && strcmp(name, "state") == 0) {
        st = take_state(r, event);
    } else if (name && strcmp(name, "end") == 0) {
        const char *status = json_string_value(json_object_get(event, "status"));
        r->log->ended = status && strcmp(status, "ok") == 0;
    } else if (name) {
        r->log->ended = false; /* it went on after its end */
    }
    json_decref(event);
    return st;
}

stint_status sti_state_log_read(const char *path, sti_arena *arena,
                                sti_state_log *log_out)
{
    reader r = {.arena = arena, .path = path, .log = log_out};
    stint_status st = STINT_OK;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    *log_out = (sti_state_log){.lines = 0};
    FILE *file = NULL;
    st = sti_file_open_stream(path, &file);
    if (st != STINT_OK)
        return st;
    while (st == STINT_OK && (length = getline(&line, &capacity, file)) > 0)
        if (line[length - 1] == '\n')
            st = take_line(&r, line, (size_t)length);
    free(line);
    fclose(file);
    return st;
}

static const char *first_tensor(const sti_state_log *a, const sti_state_log *b,
                                const sti_state_line *x, const sti_state_line *y)
{
    for (int64_t i = 0; i < a->tensors && i < b->tensors; i++) {
        if (strcmp(a->name[i], b->name[i]) != 0)
            return NULL;
        if (x->hash[i] != y->hash[i])
            return a->name[i];
    }
    return NULL;
}

bool sti_state_log_part(const sti_state_log *a, const sti_state_log *b,
                        int64_t *step_out, const char **tensor_out)
{
    for (int64_t i = 0, k = 0; i < a->lines && k < b->lines;) {
        const sti_state_line *x = &a->line[i], *y = &b->line[k];
        if (x->step == y->step && strcmp(x->sha256, y->sha256) != 0) {
            *step_out = x->step;
            *tensor_out = first_tensor(a, b, x, y);
            return true;
        }
        i += x->step <= y->step;
        k += y->step <= x->step;
    }
    return false;
}
