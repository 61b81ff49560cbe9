#include "trust/noise_page.h"

#include <inttypes.h>
#include <math.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "train/report_priv.h"

/* ---- the picture ---- */

enum {
    WIDTH = 680,
    LEFT = 110,
    RIGHT = 96,
    ROW = 22,  /* of an arm */
    HEAD = 26, /* above the rows of a panel */
    PANEL_GAP = 16
};

/* The values of each arm in one figure: dots when there are several, else a bar. */
typedef struct noise_panel {
    const char *title;
    double scale; /* values are shown times this */
    const char *unit;
    bool from_zero;
    int64_t (*count)(const stint_noise_result *r, const stint_noise_arm *arm);
    double (*value)(const stint_noise_arm *arm, int64_t i);
} noise_panel;

static int64_t one(const stint_noise_result *r, const stint_noise_arm *arm)
{
    (void)r;
    (void)arm;
    return 1;
}

static int64_t each_run(const stint_noise_result *r, const stint_noise_arm *arm)
{
    (void)r;
    return arm->runs;
}

static int64_t each_class(const stint_noise_result *r, const stint_noise_arm *arm)
{
    (void)arm;
    return r->classes;
}

static double accuracy_of(const stint_noise_arm *arm, int64_t i)
{
    return arm->accuracy[i];
}

static double stdev_of(const stint_noise_arm *arm, int64_t i)
{
    (void)i;
    return arm->accuracy_stdev;
}

static double churn_of(const stint_noise_arm *arm, int64_t i)
{
    (void)i;
    return arm->churn;
}

static double distance_of(const stint_noise_arm *arm, int64_t i)
{
    (void)i;
    return arm->distance_normalised;
}

static double spread_of(const stint_noise_arm *arm, int64_t i)
{
    return arm->class_part[i].accuracy_spread;
}

static const noise_panel panels[] = {
    {"accuracy on the test images, a dot a run", 100, " %", false, each_run,
     accuracy_of},
    {"its standard deviation over the runs", 100, " %", true, one, stdev_of},
    {"churn: test images with another answer, mean over pairs of runs", 100, " %", true,
     one, churn_of},
    {"distance of the weights, scaled to unit length, mean over pairs", 1, "", true,
     one, distance_of},
    {"spread of each class: its deviation over that of all, a dot a class", 1, "", true,
     each_class, spread_of},
};
enum { PANELS = sizeof panels / sizeof panels[0] };

static void find_range(const stint_noise_result *r, const noise_panel *p, double *low,
                       double *high)
{
    *low = p->from_zero ? 0 : HUGE_VAL;
    *high = p->from_zero ? 0 : -HUGE_VAL;
    for (int a = 0; a < r->arms; a++)
        for (int64_t i = 0; i < p->count(r, &r->arm[a]); i++) {
            const double v = p->scale * p->value(&r->arm[a], i);
            if (isnan(v))
                continue;
            *low = fmin(*low, v);
            *high = fmax(*high, v);
        }
    if (!(*high > *low))
        *high = *low + 1; /* all the same: at the left edge */
}

static double place(double value, double low, double high)
{
    return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT);
}

static void add_bar(const noise_panel *p, const stint_noise_arm *arm, double y,
                    const double range[2], sti_text *out)
{
    const double v = p->scale * p->value(arm, 0);
    const double x = place(v, range[0], range[1]);
    sti_text_printf(out,
                    "<rect class=\"mark\" x=\"%d\" y=\"%.0f\" width=\"%.1f\" "
                    "height=\"12\" rx=\"2\"/><text class=\"value\" x=\"%.1f\" "
                    "y=\"%.0f\">%.4g%s</text>\n",
                    LEFT, y - 6, x - LEFT, x + 6, y + 4, v, p->unit);
}

/* A value that does not exist has no dot. */
static void add_dots(const noise_panel *p, const stint_noise_arm *arm, int64_t count,
                     double y, const double range[2], sti_text *out)
{
    sti_text_printf(
        out, "<line class=\"rail\" x1=\"%d\" x2=\"%d\" y1=\"%.0f\" y2=\"%.0f\"/>\n",
        LEFT, WIDTH - RIGHT, y, y);
    for (int64_t i = 0; i < count; i++) {
        const double v = p->scale * p->value(arm, i);
        if (!isnan(v))
            sti_text_printf(out,
                            "<circle class=\"mark\" cx=\"%.1f\" cy=\"%.0f\" r=\"4\" "
                            "fill-opacity=\".6\"><title>%.5g%s</title></circle>\n",
                            place(v, range[0], range[1]), y, v, p->unit);
    }
}

static void add_row(const stint_noise_result *r, const noise_panel *p, int a, double y,
                    const double range[2], sti_text *out)
{
    const stint_noise_arm *arm = &r->arm[a];
    sti_text_printf(out, "<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\">%s</text>\n",
                    LEFT - 10, y + 4, arm->name);
    if (p->count == one)
        add_bar(p, arm, y, range, out);
    else
        add_dots(p, arm, p->count(r, arm), y, range, out);
}

static void add_panel(const stint_noise_result *r, const noise_panel *p, double top,
                      sti_text *out)
{
    double range[2];
    find_range(r, p, &range[0], &range[1]);
    sti_text_printf(out, "<text class=\"title\" x=\"%d\" y=\"%.0f\">%s", LEFT, top + 14,
                    p->title);
    if (p->count != one)
        sti_text_printf(out, " (%.4g to %.4g%s)", range[0], range[1], p->unit);
    sti_text_add(out, "</text>\n");
    for (int a = 0; a < r->arms; a++)
        add_row(r, p, a, top + HEAD + (a + 0.5) * ROW, range, out);
}

static void add_svg(const stint_noise_result *r, sti_text *out)
{
    const int height = HEAD + r->arms * ROW + PANEL_GAP;
    sti_text_printf(out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                    "role=\"img\" aria-label=\"noise of the arms\"><style>\n",
                    WIDTH, PANELS * height);
    sti_text_add(
        out, "svg{font:12px system-ui,sans-serif;background:#fff}text{fill:#1d1d1b}"
             ".title{font-weight:600}.value{fill:#66655f}.rail{stroke:#e4e3de}"
             ".mark{fill:#2f6fd0}\n@media(prefers-color-scheme:dark){svg{background:"
             "#1e1e1d}text{fill:#ececea}.value{fill:#a3a29b}.rail{stroke:#33332f}"
             ".mark{fill:#78a9f5}}\n</style>\n");
    for (int p = 0; p < PANELS; p++)
        add_panel(r, &panels[p], 6 + p * height, out);
    sti_text_add(out, "</svg>\n");
}

/* ---- the page ---- */

static void add_cell(sti_text *out, double value, double scale)
{
    if (isnan(value))
        sti_text_add(out, "<td class=\"n\">none</td>");
    else
        sti_text_printf(out, "<td class=\"n\">%.4g</td>", scale * value);
}

static void add_arm(const stint_noise_arm *a, sti_text *out)
{
    sti_text_printf(out, "<tr><td>%s</td><td class=\"n\">%" PRId64 "</td>", a->name,
                    a->runs);
    add_cell(out, a->accuracy_mean, 100);
    add_cell(out, a->accuracy_stdev, 100);
    add_cell(out, a->churn, 100);
    add_cell(out, a->distance, 1);
    add_cell(out, a->distance_normalised, 1);
    add_cell(out, a->fpr_stdev, 100);
    add_cell(out, a->fnr_stdev, 100);
    if (a->onset_step < 0)
        sti_text_add(out, "<td class=\"n\">never</td></tr>\n");
    else
        sti_text_printf(out, "<td class=\"n\">step %" PRId64 ", %s</td></tr>\n",
                        a->onset_step, a->onset_tensor);
}

static void add_parts(const stint_noise_arm *arm, const stint_noise_part *part,
                      int64_t count, const char *what, sti_text *out)
{
    sti_text_printf(out,
                    "<details><summary>%s: %s</summary><table class=\"memory\"><tr>"
                    "<th></th><th class=\"n\">inputs</th><th class=\"n\">accuracy "
                    "%%</th><th class=\"n\">deviation</th><th class=\"n\">over that of "
                    "the whole</th><th class=\"n\">of false positives</th><th "
                    "class=\"n\">of false negatives</th></tr>\n",
                    arm->name, what);
    for (int64_t i = 0; i < count; i++) {
        sti_text_add(out, "<tr><td>");
        sti_text_add_html(out, part[i].name);
        sti_text_printf(out, "</td><td class=\"n\">%" PRId64 "</td>", part[i].count);
        add_cell(out, part[i].accuracy_mean, 100);
        add_cell(out, part[i].accuracy_stdev, 100);
        add_cell(out, part[i].accuracy_spread, 1);
        add_cell(out, part[i].fpr_spread, 1);
        add_cell(out, part[i].fnr_spread, 1);
        sti_text_add(out, "</tr>\n");
    }
    sti_text_add(out, "</table></details>\n");
}

static void add_page(const stint_noise_result *r, const char *title,
                     const sti_text *svg, sti_text *out)
{
    sti_text_add(out, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta "
                      "name=\"viewport\" content=\"width=device-width\"><title>Stint: "
                      "noise between runs</title><style>\n");
    for (int i = 0; sti_report_style[i]; i++)
        sti_text_add(out, sti_report_style[i]);
    sti_text_add(out, "</style><main><h1>How much is luck</h1><p class=\"lead\">");
    sti_text_add_html(out, title);
    sti_text_printf(out, ", %" PRId64 " test images</p>\n<div class=\"card\">\n",
                    r->inputs);
    sti_text_add_bytes(out, svg->data, svg->length);
    sti_text_add(
        out, "</div><h2>Figures</h2><div class=\"card\"><table class=\"memory\">"
             "<tr><th>what varies</th><th class=\"n\">runs</th><th class=\"n\">"
             "accuracy %</th><th class=\"n\">deviation</th><th class=\"n\">churn "
             "%</th><th class=\"n\">distance</th><th class=\"n\">of unit length"
             "</th><th class=\"n\">false positives, deviation</th><th class=\"n\">"
             "false negatives, deviation</th><th class=\"n\">differ from</th></tr>\n");
    for (int a = 0; a < r->arms; a++)
        add_arm(&r->arm[a], out);
    sti_text_add(out, "</table></div><h2>Parts of the data</h2><div class=\"card\">\n");
    for (int a = 0; a < r->arms; a++)
        add_parts(&r->arm[a], r->arm[a].class_part, r->classes, "classes", out);
    for (int a = 0; a < r->arms && r->groups > 0; a++)
        add_parts(&r->arm[a], r->arm[a].group_part, r->groups, "groups", out);
    sti_text_add(out, "</div></main></html>\n");
}

static stint_status write_file(const char *folder, const char *name,
                               const sti_text *text)
{
    sti_arena *arena = sti_arena_create("page");
    char *path = arena ? sti_path_join(arena, folder, name) : NULL;
    stint_status st = path && !text->failed
                          ? sti_file_write(path, text->data, text->length)
                          : STINT_E_MEMORY;
    sti_arena_destroy(arena);
    return st;
}

stint_status sti_noise_page(const stint_noise_result *result, const char *title,
                            const char *folder)
{
    sti_text svg = {0}, page = {0};
    add_svg(result, &svg);
    stint_status st = write_file(folder, "noise.svg", &svg);
    if (st == STINT_OK) {
        add_page(result, title, &svg, &page);
        st = write_file(folder, "noise.html", &page);
    }
    sti_text_fini(&svg);
    sti_text_fini(&page);
    return st;
}
