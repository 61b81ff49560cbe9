/* stint plan, of a recipe that trains on clicks. */
#include <inttypes.h>
#include <math.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/cli_embed.h"
#include "cli/cli_stock.h"

static void embedding_json(const stint_embed_plan *p, sti_json *j)
{
    sti_json_begin_object(j, "embedding");
    sti_json_int(j, "rows", p->rows);
    sti_json_int(j, "row_bytes", p->row_bytes);
    sti_json_int(j, "bytes", p->table_bytes);
    sti_json_int(j, "cache_rows", p->cache_rows);
    sti_json_int(j, "cache_bytes", p->cache_bytes);
    sti_json_int(j, "rows_missed", p->rows_missed);
    sti_json_float(j, "step_s", p->step_s);
    sti_json_float(j, "dense_step_s", p->dense_step_s);
    sti_json_float(j, "reads_per_s", p->reads_per_s);
    sti_json_begin_array(j, "curve");
    for (int i = 0; i < p->point_count; i++) {
        const stint_embed_point *at = &p->point[i];
        sti_json_begin_object(j, NULL);
        sti_json_int(j, "cache_bytes", at->cache_bytes);
        sti_json_int(j, "cache_rows", at->cache_rows);
        sti_json_int(j, "rows_missed", at->rows_missed);
        sti_json_int(j, "pages_read", at->pages_read);
        sti_json_float(j, "step_s", at->step_s);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
    sti_json_end_object(j);
}

static void plan_json(const sti_cli_call *call, const stint_embed_plan *p,
                      sti_text *out)
{
    const stint_plan_result *m = &p->memory;
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "recipe", call->recipe_name);
    sti_json_int(&j, "peak_bytes", (int64_t)m->peak_bytes);
    sti_json_bool(&j, "fits", m->fits);
    sti_json_int(&j, "budget_bytes", (int64_t)m->budget_bytes);
    sti_json_int(&j, "smallest_bytes", (int64_t)m->smallest_bytes);
    sti_json_int(&j, "steps", p->steps);
    sti_json_int(&j, "batch", p->batch);
    sti_json_int(&j, "samples", p->samples);
    sti_json_int(&j, "train_samples", p->train_samples);
    sti_json_int(&j, "threads", m->threads);
    sti_json_int(&j, "lanes", m->lanes);
    sti_json_int(&j, "parameters", m->parameters);
    embedding_json(p, &j);
    sti_json_begin_array(&j, "parts");
    for (int i = 0; i < m->part_count; i++) {
        sti_json_begin_object(&j, NULL);
        sti_json_text(&j, "name", m->parts[i].name);
        sti_json_text(&j, "detail", m->parts[i].detail);
        sti_json_int(&j, "bytes", (int64_t)m->parts[i].bytes);
        sti_json_end_object(&j);
    }
    sti_json_end_array(&j);
    sti_json_end_object(&j);
}

static void curve_words(const stint_embed_plan *p, sti_text *out)
{
    sti_text_printf(out, "\n  %-12s %12s %14s %10s\n", "cache", "rows", "missing/epoch",
                    "step");
    for (int i = 0; i < p->point_count; i++) {
        const stint_embed_point *at = &p->point[i];
        sti_text_printf(out, "  %-12s", sti_bytes_text((size_t)at->cache_bytes));
        sti_text_printf(out, " %12" PRId64 " %14" PRId64, at->cache_rows,
                        at->rows_missed);
        sti_text_printf(out, " %10s\n", sti_time_text(at->step_s));
    }
    if (p->reads_per_s > 0)
        sti_text_printf(out,
                        "(the disk reads %.0f pages of 4 KiB a second at random)\n",
                        p->reads_per_s);
}

static void plan_words(const stint_embed_plan *p, sti_text *out)
{
    const stint_plan_result *m = &p->memory;
    sti_text_printf(out, "%s samples, ", sti_count_text(p->samples));
    sti_text_printf(out, "%s to train on; ", sti_count_text(p->train_samples));
    sti_text_printf(out, "%s rows of ", sti_count_text(p->rows));
    sti_text_printf(out, "%s, ", sti_bytes_text((size_t)p->row_bytes));
    sti_text_printf(out, "%s on disk; ", sti_bytes_text((size_t)p->table_bytes));
    sti_text_printf(out, "%s in memory\n\n", sti_count_text(p->cache_rows));
    for (int i = 0; i < m->part_count; i++)
        sti_text_printf(out, "  %-18s %11s  %s\n", m->parts[i].name,
                        sti_bytes_text(m->parts[i].bytes), m->parts[i].detail);
    sti_text_printf(out, "  %-18s %11s\n", "peak", sti_bytes_text(m->peak_bytes));
    sti_text_printf(out, "  %-18s %11s\n", "least", sti_bytes_text(m->smallest_bytes));
    if (!m->fits) {
        sti_text_printf(out, "\nDoes not fit %s\n", sti_bytes_text(m->budget_bytes));
        return;
    }
    sti_text_printf(out, "\n%s steps miss ", sti_count_text(p->steps));
    sti_text_printf(out, "%s rows; a step takes about ",
                    sti_count_text(p->rows_missed));
    sti_text_printf(out, "%s, ", sti_time_text(p->step_s));
    sti_text_printf(out, "the dense part alone %s\n", sti_time_text(p->dense_step_s));
    curve_words(p, out);
}

/* ---- the curve as a picture ---- */

enum { WIDTH = 640, HEIGHT = 360, LEFT = 80, RIGHT = 20, TOP = 30, BOTTOM = 50 };

typedef struct scale {
    double x, y; /* of the largest cache and the most missing rows */
} scale;

static double x_of(const scale *s, double bytes)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * (s->x > 0 ? bytes / s->x : 0);
}

static double y_of(const scale *s, double rows)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (s->y > 0 ? rows / s->y : 0);
}

static scale scale_of(const stint_embed_plan *p)
{
    scale s = {0, 0};
    for (int i = 0; i < p->point_count; i++) {
        s.x = fmax(s.x, (double)p->point[i].cache_bytes);
        s.y = fmax(s.y, (double)p->point[i].rows_missed);
    }
    return s;
}

static void add_axes(const scale *s, sti_text *out)
{
    sti_text_printf(
        out,
        "<text x=\"%d\" y=\"18\">rows that an epoch's batches miss, over the "
        "memory for rows</text>\n",
        LEFT);
    sti_text_printf(out, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#888\"/>\n",
                    LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT);
    for (int i = 0; i <= 4; i++) {
        sti_text_printf(out,
                        "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                        x_of(s, s->x * i / 4), HEIGHT - BOTTOM + 18,
                        sti_bytes_text((size_t)(s->x * i / 4)));
        sti_text_printf(
            out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 6,
            y_of(s, s->y * i / 4) + 4, sti_count_text((int64_t)(s->y * i / 4)));
    }
}

static stint_status write_svg(const stint_embed_plan *p, const char *path)
{
    const scale s = scale_of(p);
    sti_text out = {0};
    sti_text_printf(&out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                    "font-family=\"sans-serif\" font-size=\"12\" fill=\"#777\">\n",
                    WIDTH, HEIGHT);
    add_axes(&s, &out);
    sti_text_add(&out, "<polyline fill=\"none\" stroke=\"#2a7\" stroke-width=\"2\" "
                       "points=\"");
    for (int i = 0; i < p->point_count; i++)
        sti_text_printf(&out, "%.1f,%.1f ", x_of(&s, (double)p->point[i].cache_bytes),
                        y_of(&s, (double)p->point[i].rows_missed));
    sti_text_add(&out, "\"/>\n</svg>\n");
    const stint_status st =
        out.failed ? sti_fail(STINT_E_MEMORY, "out of memory for a picture")
                   : sti_file_write(path, out.data, out.length);
    sti_text_fini(&out);
    return st;
}

stint_status sti_cli_embed_plan(sti_cli_call *call, const char *svg)
{
    stint_embed_plan plan;
    sti_text text = {0};
    sti_cli_say_recipe(call);
    stint_status st = stint_embed_plan_of(call->recipe, &plan);
    if (st != STINT_OK)
        return st;
    if (svg)
        st = write_svg(&plan, svg);
    if (call->common->json)
        plan_json(call, &plan, &text);
    else
        plan_words(&plan, &text);
    if (st == STINT_OK)
        st = sti_cli_answer(call, &text);
    else
        sti_text_fini(&text);
    if (st == STINT_OK && !plan.memory.fits)
        st = sti_fail(
            STINT_E_BUDGET,
            "the run needs %s, --memory allows %s; the least that would do is "
            "--memory %zu",
            sti_bytes_text(plan.memory.smallest_bytes),
            sti_bytes_text(plan.memory.budget_bytes), plan.memory.smallest_bytes);
    stint_plan_fini(&plan.memory);
    return st;
}
