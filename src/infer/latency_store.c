/* Latencies that are kept from one call to the next. */
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "infer/latency.h"
#include "net/net.h"

enum { KEY_LENGTH = 64, LINES_MOST = 1000, FIGURES = 3 };
#define STORE_NAME      "latency.txt"
#define STORE_MAX_BYTES ((size_t)1 << 20)

static stint_status key_of(const sti_network *network, int threads,
                           char key_out[KEY_LENGTH + 1])
{
    char build[WIRE_BUILD + 1], words[256];
    sti_text graph = {0};
    sti_sha256 sha;
    sti_build_hash(build);
    stint_status st = sti_graph_print(network->plan->graph, &graph);
    if (st == STINT_OK) {
        snprintf(words, sizeof words, "%.150s, %s, %d threads, %s", sti_cpu_name(),
                 sti_isa_name(sti_isa_now()), threads, build);
        sti_sha256_init(&sha);
        sti_sha256_add(&sha, words, strlen(words) + 1);
        sti_sha256_add(&sha, graph.data, graph.length);
        sti_sha256_hex(&sha, key_out);
    }
    sti_text_fini(&graph);
    return st;
}

/* The text of the file, or NULL: there is none. */
static char *read_store(const char *path)
{
    void *text = NULL;
    size_t bytes;
    if (!sti_path_is_file(path))
        return NULL;
    if (sti_file_read(path, STORE_MAX_BYTES, &text, &bytes) != STINT_OK)
        sti_log(STINT_LOG_WARNING, "%s is ignored: %s", path, stint_last_error());
    return text;
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

static const char *find_line(const char *text, const char *key)
{
    for (const char *line = text; line && *line; line = next_line(line))
        if (strncmp(line, key, KEY_LENGTH) == 0 && line[KEY_LENGTH] == ' ')
            return line;
    return NULL;
}

static bool parse_figures(const char *text, double figures_out[FIGURES])
{
    for (int i = 0; i < FIGURES; i++) {
        char word[64];
        const size_t length = strcspn(text, " \n");
        if (length == 0 || length >= sizeof word)
            return false;
        memcpy(word, text, length);
        word[length] = '\0';
        if (sti_parse_float(word, &figures_out[i]) != STINT_OK || figures_out[i] < 0)
            return false;
        text += length + (text[length] == ' ');
    }
    return true;
}

bool sti_latency_kept(const sti_network *network, int threads, sti_latency *latency_out)
{
    char path[2048], key[KEY_LENGTH + 1];
    double figures[FIGURES];
    if (!sti_cache_path(STORE_NAME, path, sizeof path) ||
        key_of(network, threads, key) != STINT_OK)
        return false;
    char *text = read_store(path);
    const char *line = find_line(text, key);
    const bool found = line && parse_figures(line + KEY_LENGTH + 1, figures);
    if (found)
        *latency_out = (sti_latency){
            .ms = figures[0], .low_ms = figures[1], .high_ms = figures[2]};
    sti_free(text);
    return found;
}

/* The newest lines but that of `key`, and a new one. */
static void add_lines(const char *old, const char *key, const sti_latency *l,
                      sti_text *out)
{
    int64_t lines = 0;
    for (const char *line = old; line && *line; line = next_line(line))
        lines++;
    for (const char *line = old; line && *line; line = next_line(line))
        if (lines-- < LINES_MOST && strncmp(line, key, KEY_LENGTH) != 0)
            sti_text_add_bytes(out, line, (size_t)(next_line(line) - line));
    sti_text_printf(out, "%s %s %s %s\n", key, sti_float_text(l->ms),
                    sti_float_text(l->low_ms), sti_float_text(l->high_ms));
}

static stint_status keep_at(char *path, const char *key, const sti_latency *latency)
{
    sti_text text = {0};
    char *slash = strrchr(path, '/');
    *slash = '\0';
    stint_status st = sti_dir_create(path);
    const int lock = st == STINT_OK ? sti_dir_lock(path) : -1;
    *slash = '/';
    if (st == STINT_OK)
        st = sti_path_check_file(path);
    if (st == STINT_OK) {
        char *old = read_store(path);
        add_lines(old, key, latency, &text);
        sti_free(old);
        st =
            text.failed ? STINT_E_MEMORY : sti_file_write(path, text.data, text.length);
    }
    sti_dir_unlock(lock);
    sti_text_fini(&text);
    return st;
}

void sti_latency_keep(const sti_network *network, int threads,
                      const sti_latency *latency)
{
    char path[2048], key[KEY_LENGTH + 1];
    if (!sti_cache_path(STORE_NAME, path, sizeof path))
        return;
    stint_status st = key_of(network, threads, key);
    if (st == STINT_OK)
        st = keep_at(path, key, latency);
    if (st != STINT_OK)
        sti_log(STINT_LOG_WARNING, "this latency is not kept: %s", stint_last_error());
}
