/* samples/times.txt: a line that says what was timed how, then a line a time. Times of
 * another model, scheme or way of measuring are none of this search. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/file.h"
#include "shrink/shrinker.h"
#include "train/shrink_recipe.h"

enum { FILE_BYTES_MAX = 1 << 20 };

static int64_t batch_of(const sti_shrinker *s)
{
    return s->desc->batch > 0 ? s->desc->batch : 1;
}

static char *path_of(const sti_shrinker *s)
{
    return sti_path_join(s->arena, s->samples_folder, "times.txt");
}

const sti_shrink_time *sti_shrink_find_time(const sti_shrinker *s, bool guessed,
                                            double share, uint64_t seed)
{
    for (int i = 0; i < s->times; i++) {
        const sti_shrink_time *t = &s->time[i];
        if (t->guessed == guessed && t->share == share && (guessed || t->seed == seed))
            return t;
    }
    return NULL;
}

static void print_head(const sti_shrinker *s, sti_text *out)
{
    const sti_shrink_values *shrink = sti_shrink_section_of(s->recipe);
    const char *sha = s->model->weights_sha256;
    sti_text_printf(out,
                    "batch %" PRId64 " threads %d isa %s model %.16s scheme %s keep %s "
                    "patterns %d method %s\n",
                    batch_of(s), s->threads, sti_isa_name(sti_isa_now()),
                    sha ? sha : "none", s->scheme_text,
                    shrink->keep ? shrink->keep : "none", shrink->patterns,
                    sti_shrink_method_name(s->recipe));
}

static void print(const sti_shrinker *s, sti_text *out)
{
    print_head(s, out);
    for (int i = 0; i < s->times; i++) {
        const sti_shrink_time *t = &s->time[i];
        sti_text_printf(out, "%s %.17g %" PRIu64 " %.17g %.17g\n",
                        t->guessed ? "guess" : "sample", t->share, t->seed, t->ms,
                        t->base_ms);
    }
}

void sti_shrink_keep_time(sti_shrinker *s, const sti_shrink_time *time)
{
    if (s->times < STI_SHRINK_TIMES_MAX) /* (else it is measured anew) */
        s->time[s->times++] = *time;
}

stint_status sti_shrink_write_times(const sti_shrinker *s)
{
    sti_text text = {0};
    char *path = path_of(s);
    stint_status st = path ? STINT_OK : STINT_E_MEMORY;
    if (st != STINT_OK || s->times == 0)
        return st;
    print(s, &text);
    st = text.failed ? STINT_E_MEMORY : sti_dir_create(s->samples_folder);
    if (st == STINT_OK)
        st = sti_file_write(path, text.data, text.length);
    sti_text_fini(&text);
    return st;
}

static bool is_head(const sti_shrinker *s, const char *text)
{
    sti_text head = {0};
    print_head(s, &head);
    const bool same = head.data && strncmp(text, head.data, head.length) == 0;
    sti_text_fini(&head);
    return same;
}

/* Lines that are none are passed over: their times are measured anew. */
static void parse(sti_shrinker *s, const char *text)
{
    if (!is_head(s, text))
        return;
    for (const char *at = strchr(text, '\n'); at; at = strchr(at + 1, '\n')) {
        sti_shrink_time t = {.guessed = false};
        char kind[8];
        if (sscanf(at, " %7s %lf %" SCNu64 " %lf %lf", kind, &t.share, &t.seed, &t.ms,
                   &t.base_ms) != 5 ||
            !(t.ms > 0 && isfinite(t.ms) && t.base_ms > 0 && isfinite(t.base_ms)) ||
            s->times == STI_SHRINK_TIMES_MAX)
            continue;
        t.guessed = strcmp(kind, "guess") == 0;
        s->time[s->times++] = t;
    }
}

stint_status sti_shrink_read_times(sti_shrinker *s)
{
    void *data = NULL;
    size_t bytes = 0;
    char *path = path_of(s);
    if (!path)
        return STINT_E_MEMORY;
    if (!s->desc->resume || !sti_path_is_file(path))
        return STINT_OK;
    stint_status st = sti_file_read(path, FILE_BYTES_MAX, &data, &bytes);
    char *text = st == STINT_OK ? sti_alloc(bytes + 1, "times") : NULL;
    if (text) {
        memcpy(text, data, bytes);
        text[bytes] = '\0';
        parse(s, text);
    } else if (st == STINT_OK) {
        st = STINT_E_MEMORY;
    }
    sti_free(text);
    sti_free(data);
    return st;
}
