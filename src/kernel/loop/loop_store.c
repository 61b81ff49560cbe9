/* Strings that this host keeps: a title, the machine, and a line a shape,
 *
 *     gemm f32 M N K nn|tn|nt|tt THREADS = TEXT
 *
 * where TEXT is empty for a shape whose way without a string is faster. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/text.h"
#include "kernel/loop/loop_tune.h"

#define TITLE "stint loops 1\n"

enum { STORE_BYTES = 1 << 20, KEY = 160 };

static void write_head(sti_text *out)
{
    sti_text_printf(out, TITLE "%s, %s\n", sti_cpu_name(), sti_isa_name(sti_isa_now()));
}

static void write_key(const sti_gemm_shape *s, int threads, char *key)
{
    snprintf(key, KEY, "gemm f32 %" PRId64 " %" PRId64 " %" PRId64 " %c%c %d = ", s->m,
             s->n, s->k, s->trans_a ? 't' : 'n', s->trans_b ? 't' : 'n', threads);
}

/* The lines after the head, sti_alloc'ed, or NULL: no file, or none to be believed. */
static char *read_lines(const char *path)
{
    void *text;
    size_t bytes;
    sti_text head = {0};
    char *lines = NULL;
    const stint_status readable = sti_path_check_file(path);
    if (readable == STINT_OK && !sti_path_is_file(path))
        return NULL;
    if (readable != STINT_OK ||
        sti_file_read(path, STORE_BYTES, &text, &bytes) != STINT_OK) {
        sti_log(STINT_LOG_WARNING, "%s is ignored: %s", path, stint_last_error());
        return NULL;
    }
    write_head(&head);
    if (!head.failed && strncmp(text, head.data, head.length) == 0)
        lines = sti_strdup((const char *)text + head.length);
    else
        sti_log(STINT_LOG_WARNING,
                "%s is ignored: it is of another machine, instruction set or version",
                path);
    sti_text_fini(&head);
    sti_free(text);
    return lines;
}

/* The line of a key, or NULL. */
static char *find_line(char *lines, const char *key)
{
    const size_t length = strlen(key);
    for (char *line = lines; line && *line;) {
        if (strncmp(line, key, length) == 0)
            return line;
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return NULL;
}

/* A string from a file may be anything: it must bind to this very shape. */
static bool take_text(const char *path, const sti_gemm_shape *shape, int threads,
                      const char *from, char *text_out)
{
    const size_t length = strcspn(from, "\n");
    char text[STI_LOOP_GEMM_TEXT];
    sti_loop_gemm g;
    stint_status status = STINT_OK;
    if (from[length] != '\n' || length >= sizeof text) {
        status = sti_fail(STINT_E_INPUT, "it is cut off or longer than %d characters",
                          STI_LOOP_GEMM_TEXT - 1);
    } else {
        memcpy(text, from, length);
        text[length] = '\0';
        if (length > 0)
            status = sti_loop_gemm_bind(text, shape, threads, &g);
    }
    if (status == STINT_OK)
        memcpy(text_out, text, length + 1);
    else
        sti_log(STINT_LOG_WARNING,
                "%s: the string of %" PRId64 " x %" PRId64 " x %" PRId64
                " is ignored, `stint tune gemm` finds another: %s",
                path, shape->m, shape->n, shape->k, stint_last_error());
    return status == STINT_OK;
}

bool sti_loop_store_find(const sti_gemm_shape *shape, int threads,
                         char text_out[STI_LOOP_GEMM_TEXT])
{
    char path[2048], key[KEY];
    char *lines =
        sti_cache_path("loops.txt", path, sizeof path) ? read_lines(path) : NULL;
    if (!lines)
        return false;
    write_key(shape, threads, key);
    const char *line = find_line(lines, key);
    const bool found =
        line && take_text(path, shape, threads, line + strlen(key), text_out);
    sti_free(lines);
    return found;
}

stint_status sti_loop_store_check(void)
{
    char path[2048];
    return sti_cache_path("loops.txt", path, sizeof path) ? sti_path_check_file(path)
                                                          : STINT_OK;
}

/* The new line, then the others, the latest first. */
static stint_status rewrite(const char *path, const char *key, const char *text)
{
    sti_text out = {0};
    char *lines = read_lines(path);
    write_head(&out);
    sti_text_printf(&out, "%s%s\n", key, text);
    for (char *line = lines; line && *line;) {
        char *end = strchr(line, '\n');
        if (!end)
            break;
        const size_t length = (size_t)(end + 1 - line);
        if (strncmp(line, key, strlen(key)) != 0 && out.length + length < STORE_BYTES)
            sti_text_add_bytes(&out, line, length);
        line = end + 1;
    }
    sti_free(lines);
    const stint_status status =
        out.failed ? STINT_E_MEMORY : sti_file_write(path, out.data, out.length);
    sti_text_fini(&out);
    return status;
}

stint_status sti_loop_store_keep(const sti_gemm_shape *shape, int threads,
                                 const char *text)
{
    char folder[2048], path[2048], key[KEY];
    if (!sti_cache_path("loops.txt", path, sizeof path))
        return sti_fail(STINT_E_IO, "no folder to keep loop strings in: set HOME or "
                                    "XDG_CACHE_HOME to an absolute path");
    memcpy(folder, path, sizeof path);
    *strrchr(folder, '/') = '\0';
    stint_status status = sti_path_check_file(path);
    if (status == STINT_OK)
        status = sti_dir_create(folder);
    if (status != STINT_OK)
        return status;
    write_key(shape, threads, key);
    /* Another process may add its line meanwhile, which a file written from what was
     * read before would lose. */
    const int lock = sti_dir_lock(folder);
    status = rewrite(path, key, text);
    sti_dir_unlock(lock);
    return status;
}
