/* report.html of an agent's run: returns with their interval, losses, where the time
 * went, and a sheet of frames that the agent plays. */
#define _GNU_SOURCE /* getline */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "media/image_encode.h"
#include "page/chart.h"
#include "page/table.h"
#include "play/player.h"

/* Values of a point of the curves. */
enum { RETURN, LOW, HIGH, LOSS, ENTROPY, RATE };

typedef struct play_report {
    sti_arena *arena;
    const char *folder;
    json_t *begin, *update, *end; /* the last of each */
    sti_series curve;             /* over millions of raw frames */
} play_report;

/* ---- reading ---- */

static double number(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static const char *text(const json_t *event, const char *key)
{
    const char *value = json_string_value(json_object_get(event, key));
    return value ? value : "";
}

static void keep(json_t **place, json_t *event)
{
    json_decref(*place);
    *place = json_incref(event);
}

static void take_update(play_report *r, json_t *event)
{
    const sti_series_point point = {.x = number(event, "env_frames") * 1e-6,
                                    .value = {[RETURN] = number(event, "return_mean"),
                                              [LOW] = number(event, "return_low"),
                                              [HIGH] = number(event, "return_high"),
                                              [LOSS] = number(event, "loss"),
                                              [ENTROPY] = number(event, "entropy"),
                                              [RATE] = number(event, "frames_per_s"),
                                              [RATE + 1] = STI_SERIES_NONE}};
    if (isfinite(point.x))
        sti_series_add(&r->curve, &point);
    keep(&r->update, event);
}

static void take_line(play_report *r, const char *line, size_t length)
{
    json_t *event = json_loadb(line, length, 0, NULL);
    const char *name = text(event, "event");
    if (strcmp(name, "begin") == 0)
        keep(&r->begin, event);
    else if (strcmp(name, "update") == 0)
        take_update(r, event);
    else if (strcmp(name, "end") == 0)
        keep(&r->end, event);
    json_decref(event);
}

static stint_status read_log(play_report *r)
{
    const char *path = sti_path_join(r->arena, r->folder, "log.jsonl");
    FILE *file = NULL;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    stint_status st = path ? sti_file_open_stream(path, &file) : STINT_E_MEMORY;
    if (st != STINT_OK)
        return st;
    while ((length = getline(&line, &capacity, file)) > 0)
        if (line[length - 1] == '\n')
            take_line(r, line, (size_t)length);
    free(line);
    fclose(file);
    if (!r->begin || text(r->begin, "method")[0] == '\0')
        return sti_fail(STINT_E_INPUT, "%s: is no log of an agent's run", path);
    return STINT_OK;
}

/* ---- writing ---- */

static void figure(sti_text *out, double value, int digits, const char *meaning)
{
    char words[64];
    if (!isfinite(value))
        return;
    snprintf(words, sizeof words, "%.*f", digits, value);
    sti_page_figure(out, words, meaning);
}

static void add_head(const play_report *r, sti_text *out)
{
    sti_text lead = {0}, name = {0};
    const char *rom = sti_path_name(text(r->begin, "rom"));
    sti_text_printf(&name, "%s on %s", text(r->begin, "method"),
                    *rom ? rom : text(r->begin, "kind"));
    sti_page_begin(out, NULL, name.data ? name.data : "");
    sti_text_printf(&lead, "network %s, ", text(r->begin, "network"));
    sti_text_printf(&lead,
                    "%s environments, horizon %.0f, an update every %.0f steps, "
                    "%.0f group(s), lag %.0f, seed %.0f",
                    sti_count_text((int64_t)number(r->begin, "envs")),
                    number(r->begin, "horizon"), number(r->begin, "every"),
                    number(r->begin, "groups"), number(r->begin, "lag"),
                    number(r->begin, "seed"));
    sti_page_lead(out, lead.data ? lead.data : "");
    sti_text_fini(&lead);
    sti_text_fini(&name);
}

static void add_figures(const play_report *r, sti_text *out)
{
    const json_t *u = r->update;
    sti_page_figures_begin(out);
    figure(out, number(u, "return_mean"), 2, "mean return of the last episodes");
    figure(out, number(u, "return_low"), 2, "lower end of its 95 % interval");
    figure(out, number(u, "return_high"), 2, "upper end");
    figure(out, number(u, "env_frames") * 1e-6, 3, "million frames");
    figure(out, number(u, "update"), 0, "updates");
    figure(out, number(u, "policy_lag"), 2, "updates between acting and learning");
    if (isfinite(number(r->end, "model_return_mean"))) {
        figure(out, number(r->end, "model_update"), 0,
               "update whose weights the model has");
        figure(out, number(r->end, "model_return_mean"), 2,
               "mean return that these were chosen by");
    }
    sti_page_figures_end(out);
}

static void add_chart(sti_text *out, const play_report *r, const char *title,
                      const sti_chart_line *lines, int count)
{
    sti_page_card_begin(out);
    sti_chart_add(out, &(sti_chart){.title = title,
                                    .x_label = "million frames",
                                    .unit = "",
                                    .line = lines,
                                    .lines = count,
                                    .y_max = STI_SERIES_NONE});
    sti_page_card_end(out);
    (void)r;
}

static void add_curves(const play_report *r, sti_text *out)
{
    const sti_series *c = &r->curve;
    const sti_chart_line returns[] = {
        {c, LOW, 1, 1, STI_PAGE_FAINT, "95 % interval", STI_CHART_CURVE},
        {c, HIGH, 1, 1, STI_PAGE_FAINT, "its upper end", STI_CHART_CURVE},
        {c, RETURN, 1, 1, STI_PAGE_SECOND, "mean of the last episodes",
         STI_CHART_CURVE}};
    const sti_chart_line loss = {c,      LOSS,           1, 1, STI_PAGE_PLAIN,
                                 "loss", STI_CHART_CURVE};
    const sti_chart_line entropy = {c,      ENTROPY,        1, 1, STI_PAGE_PLAIN,
                                    "nats", STI_CHART_CURVE};
    const sti_chart_line rate = {
        c, RATE, 1, 1, STI_PAGE_PLAIN, "frames a second", STI_CHART_CURVE};
    sti_page_section(out, "How it learnt");
    add_chart(out, r, "Return", returns, 3);
    sti_page_columns_begin(out);
    add_chart(out, r, "Loss", &loss, 1);
    add_chart(out, r, "Entropy of the policy", &entropy, 1);
    add_chart(out, r, "Frames a second", &rate, 1);
    sti_page_columns_end(out);
    sti_page_section_end(out);
}

static void add_shares(const play_report *r, sti_text *out)
{
    static const char *const keys[] = {"act_share", "step_share", "train_share"};
    static const char *const names[] = {"acting", "stepping", "learning"};
    sti_page_section(out, "Where the time went");
    sti_page_shares_begin(out, 10);
    for (int i = 0; i < 3; i++) {
        const double share = 100 * number(r->update, keys[i]);
        if (isfinite(share))
            sti_page_share(out, names[i], share > 100 ? 100 : share, names[i]);
    }
    sti_page_shares_end(out);
    sti_page_note(out, "Shares of the time of this process. Playing and learning may "
                       "run side by side, so they can add up to more than all of it.");
    sti_page_section_end(out);
}

static void add_memory(const play_report *r, sti_text *out)
{
    static const sti_table_column columns[] = {{.name = "part"},
                                               {.name = "bytes", .number = true}};
    const json_t *parts = json_object_get(r->begin, "parts");
    sti_page_section(out, "Memory, as planned");
    sti_table_begin(out, columns, 2);
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        sti_table_row(out);
        sti_table_words(out, text(part, "name"), text(part, "detail"));
        sti_table_bytes(out, number(part, "bytes"));
        sti_table_row_end(out);
    }
    sti_table_row_sum(out);
    sti_table_words(out, "peak", NULL);
    sti_table_bytes(out, number(r->begin, "planned_peak_bytes"));
    sti_table_row_end(out);
    sti_table_end(out);
    sti_page_section_end(out);
}

/* ---- frames ---- */

enum { FRAMES = 12, FIRST = 8, APART = 6 };

static stint_status add_frame(const sti_player *p, int step, sti_text *out)
{
    const stint_env_facts *facts = stint_env_describe(p->envs);
    sti_text png = {0};
    char words[64];
    const stint_status st = sti_png_encode(stint_env_frame(p->envs, 0, 0),
                                           facts->height, facts->width, 1, &png);
    snprintf(words, sizeof words, "step %d", step);
    if (st == STINT_OK) {
        sti_page_picture_begin(out);
        sti_page_image(out, png.data, png.length, words);
        sti_page_picture_end(out, words);
    }
    sti_text_fini(&png);
    return st;
}

/* What the agent sees while it plays; there is nothing to see of RAM. */
static stint_status add_sheet(const play_report *r, sti_text *out)
{
    sti_player p = {.recipe = NULL};
    stint_status st = sti_player_open(r->folder, NULL, 1, 12345, 1, &p);
    if (st != STINT_OK || stint_env_describe(p.envs)->height == 1) {
        sti_player_close(&p);
        return STINT_OK; /* the model may be gone, or not there yet */
    }
    sti_page_section(out, "What it sees at play");
    sti_page_sheet_begin(out);
    for (int i = 0; i < FRAMES && st == STINT_OK; i++) {
        st = sti_rollout_run(&p.rollout, i == 0 ? FIRST : APART, 0);
        if (st == STINT_OK)
            st = add_frame(&p, FIRST + i * APART, out);
    }
    sti_page_sheet_end(out);
    sti_page_section_end(out);
    sti_player_close(&p);
    return st;
}

static stint_status write_page(const play_report *r, sti_page_file *page)
{
    sti_text *out = &page->text;
    add_head(r, out);
    if (r->update)
        add_figures(r, out);
    add_curves(r, out);
    if (r->update)
        add_shares(r, out);
    const stint_status st = add_sheet(r, out);
    add_memory(r, out);
    sti_page_end(out, "The same recipe, image and seed give the same weights on any "
                      "number of threads.");
    return st;
}

stint_status sti_play_write_report(const char *folder)
{
    play_report r = {.arena = sti_arena_create("report"), .folder = folder};
    sti_page_file page;
    stint_status st = r.arena && sti_series_init(&r.curve) ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = read_log(&r);
    if (st == STINT_OK) {
        const char *path = sti_path_join(r.arena, folder, "report.html");
        st = path ? sti_page_file_open(&page, path) : STINT_E_MEMORY;
        if (st == STINT_OK)
            st = sti_page_file_close(&page, write_page(&r, &page));
    }
    json_decref(r.begin);
    json_decref(r.update);
    json_decref(r.end);
    sti_series_fini(&r.curve);
    sti_arena_destroy(r.arena);
    return st;
}

stint_status stint_play_report(const char *run)
{
    return sti_play_write_report(run);
}
