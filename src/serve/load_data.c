#include "serve/load_data.h"

#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/shown.h"

#define DATA_MAX_BYTES ((size_t)256 << 20)

/* ---- reading ---- */

static stint_status make_list(sti_load_data *d, int64_t count)
{
    d->begin = sti_alloc_array(count + 1, sizeof *d->begin, "data");
    return d->begin ? STINT_OK : STINT_E_MEMORY;
}

/* Lines are moved together: without ends, and without those that are empty. */
static stint_status read_prompts(const char *path, sti_load_data *d)
{
    void *text = NULL;
    size_t bytes = 0, kept = 0;
    int64_t lines = 1;
    stint_status st = sti_file_read(path, DATA_MAX_BYTES, &text, &bytes);
    if (st != STINT_OK)
        return st;
    d->all = text;
    for (size_t i = 0; i < bytes; i++)
        lines += d->all[i] == '\n';
    if ((st = make_list(d, lines)) != STINT_OK)
        return st;
    for (size_t i = 0, end; i < bytes; i = end + 1) {
        const char *found = memchr(d->all + i, '\n', bytes - i);
        end = found ? (size_t)(found - d->all) : bytes;
        const size_t length = end - i - (end > i && d->all[end - 1] == '\r');
        if (length == 0)
            continue;
        memmove(d->all + kept, d->all + i, length);
        d->begin[d->count++] = kept;
        kept += length;
    }
    d->begin[d->count] = kept;
    return STINT_OK;
}

static bool is_image(const char *name)
{
    static const char *const known[] = {".png", ".jpg", ".jpeg", ".webp"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(sti_path_extension(name), known[i]) == 0)
            return true;
    return false;
}

static stint_status add_file(const char *path, sti_load_data *d)
{
    void *bytes = NULL;
    size_t count = 0;
    const size_t had = d->begin[d->count];
    stint_status st;
    STI_TRY(sti_file_read(path, DATA_MAX_BYTES - had, &bytes, &count));
    char *more = sti_realloc(d->all, had + count + 1, "data");
    if (!more) {
        st = STINT_E_MEMORY;
        goto out;
    }
    d->all = more;
    memcpy(d->all + had, bytes, count);
    d->begin[++d->count] = had + count;
out:
    sti_free(bytes);
    return st;
}

static stint_status read_folder(sti_arena *arena, const char *path, sti_load_data *d)
{
    char **name;
    int64_t count = 0;
    stint_status st;
    STI_TRY(sti_dir_list(arena, path, &name, &count));
    STI_TRY(make_list(d, count));
    for (int64_t i = 0; i < count; i++) {
        if (!is_image(name[i]))
            continue;
        const char *file = sti_path_join(arena, path, name[i]);
        STI_TRY(file ? add_file(file, d) : STINT_E_MEMORY);
    }
out:
    return st;
}

static stint_status read_images(const char *path, sti_load_data *d)
{
    stint_status st;
    if (!sti_path_is_dir(path)) {
        st = make_list(d, 1);
        return st == STINT_OK ? add_file(path, d) : st;
    }
    sti_arena *arena = sti_arena_create("data");
    st = arena ? read_folder(arena, path, d) : STINT_E_MEMORY;
    sti_arena_destroy(arena);
    return st;
}

stint_status sti_load_data_read(const char *path, bool texts, sti_load_data *data_out)
{
    *data_out = (sti_load_data){.texts = texts};
    stint_status st =
        texts ? read_prompts(path, data_out) : read_images(path, data_out);
    if (st == STINT_OK && data_out->count == 0)
        st = sti_fail(STINT_E_INPUT, "%s: %s", sti_shown(path),
                      texts ? "there is no line with a prompt"
                            : "there is no image (.png, .jpg, .webp) in the folder");
    if (st != STINT_OK)
        sti_load_data_fini(data_out);
    return st;
}

void sti_load_data_fini(sti_load_data *data)
{
    sti_free(data->all);
    sti_free(data->begin);
    *data = (sti_load_data){.count = 0};
}

/* ---- bodies ---- */

static void add_prompt(const sti_load_data *d, int64_t number, int tokens,
                       sti_text *out)
{
    const int64_t i = number % d->count;
    sti_text prompt = {0};
    sti_json j = {.out = out};
    sti_text_add_bytes(&prompt, d->all + d->begin[i], d->begin[i + 1] - d->begin[i]);
    sti_json_begin_object(&j, NULL);
    sti_json_text(&j, "text_input", prompt.data ? prompt.data : "");
    sti_json_begin_object(&j, "parameters");
    sti_json_int(&j, "max_tokens", tokens);
    sti_json_int(&j, "seed", number);
    sti_json_end_object(&j);
    sti_json_end_object(&j);
    out->failed = out->failed || prompt.failed;
    sti_text_fini(&prompt);
}

static size_t image_bytes(const sti_load_data *d, int64_t i)
{
    return d->begin[i % d->count + 1] - d->begin[i % d->count];
}

static void add_images(const sti_load_data *d, int64_t first, int count, sti_text *out)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += 4 + image_bytes(d, first + i);
    sti_text_printf(out,
                    "{\"inputs\":[{\"name\":\"image\",\"datatype\":\"BYTES\",\"shape\":"
                    "[%d],\"parameters\":{\"binary_data_size\":%zu}}],\"parameters\":{"
                    "\"binary_data_output\":true}}",
                    count, bytes);
}

void sti_load_data_body(const sti_load_data *d, int64_t number, int size, sti_text *out,
                        size_t *head_bytes_out)
{
    const int64_t first = number * size;
    out->length = 0;
    *head_bytes_out = 0;
    if (d->texts) {
        add_prompt(d, number, size, out);
        return;
    }
    add_images(d, first, size, out);
    *head_bytes_out = out->length;
    for (int64_t i = first; i < first + size; i++) {
        const size_t bytes = image_bytes(d, i);
        const uint8_t length[4] = {(uint8_t)bytes, (uint8_t)(bytes >> 8),
                                   (uint8_t)(bytes >> 16), (uint8_t)(bytes >> 24)};
        sti_text_add_bytes(out, length, 4);
        sti_text_add_bytes(out, d->all + d->begin[i % d->count], bytes);
    }
}
