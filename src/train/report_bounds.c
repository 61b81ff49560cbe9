/* The report's section on packed activations: bounds, sizes and gradient errors at the
 * last choice of bounds, and how the bounds went over the steps. Read from the log's
 * "bounds" lines a second time, one at a time: they are long and few. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "page/table.h"
#include "train/report_priv.h"

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : STI_REPORT_NONE;
}

/* With so many digits after the point, or significant ones for numbers of any size. */
static void add_number(double value, bool fixed, int digits, sti_text *out)
{
    if (!isfinite(value))
        sti_table_number(out, "%s", "");
    else if (fixed)
        sti_table_number(out, "%.*f", digits, value);
    else
        sti_table_number(out, "%.*g", digits, value);
}

/* The gradient of a row whose error is nearest to what is allowed. */
static const json_t *tightest(const json_t *row)
{
    const json_t *gradient, *best = NULL;
    double max_share = -1;
    size_t i;
    json_array_foreach(json_object_get(row, "gradients"), i, gradient)
    {
        double allowed = number(gradient, "allowed");
        double share = allowed > 0 ? number(gradient, "predicted") / allowed : 0;
        if (share > max_share) {
            max_share = share;
            best = gradient;
        }
    }
    return best;
}

static void add_row(const json_t *row, sti_text *out)
{
    const char *layer = json_string_value(json_object_get(row, "layer"));
    const json_t *gradient = tightest(row);
    double plain = number(row, "plain_bytes"), bytes = number(row, "bytes");
    sti_table_row(out);
    sti_table_words(out, layer && *layer ? layer : "input", NULL);
    sti_table_bytes(out, plain);
    sti_table_bytes(out, bytes);
    add_number(plain / bytes, true, 1, out);
    add_number(number(row, "bound"), false, 2, out);
    add_number(number(row, "error_share"), true, 3, out);
    add_number(number(gradient, "allowed"), false, 2, out);
    add_number(number(gradient, "predicted"), false, 2, out);
    add_number(number(gradient, "measured"), false, 2, out);
    sti_table_row_end(out);
}

static void add_rows(const json_t *bounds, sti_text *out)
{
    static const sti_table_column columns[] = {
        {.name = "layer"},
        {.name = "as float32", .number = true},
        {.name = "packed", .number = true},
        {.name = "ratio", .number = true},
        {.name = "bound", .number = true},
        {.name = "largest error / bound", .number = true},
        {.name = "gradient error allowed", .number = true},
        {.name = "predicted", .number = true},
        {.name = "measured", .number = true}};
    const json_t *row;
    size_t i;
    sti_table_begin(out, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(json_object_get(bounds, "rows"), i, row) add_row(row, out);
    sti_table_end(out);
}

/* One line of the course: ratio of all, and the span of the bounds. */
static void add_course(const json_t *bounds, sti_text *out)
{
    const json_t *row;
    size_t i;
    double plain = 0, bytes = 0, least = (double)INFINITY, max_share = 0;
    json_array_foreach(json_object_get(bounds, "rows"), i, row)
    {
        double bound = number(row, "bound");
        plain += number(row, "plain_bytes");
        bytes += number(row, "bytes");
        least = fmin(least, bound);
        max_share = fmax(max_share, bound);
    }
    sti_table_row(out);
    add_number(number(bounds, "step"), true, 0, out);
    add_number(least, false, 2, out);
    add_number(max_share, false, 2, out);
    add_number(plain / bytes, true, 1, out);
    sti_table_row_end(out);
}

/* Blocks that were too small, and the plan that followed. */
static void add_growth(const json_t *growth, sti_text *out)
{
    const json_t *row;
    size_t i;
    sti_text_printf(out, "<li>step %.0f:", number(growth, "step"));
    json_array_foreach(json_object_get(growth, "rows"), i, row)
    {
        sti_text_add(out, i ? ", " : " ");
        const char *layer = json_string_value(json_object_get(row, "layer"));
        sti_text_add_html(out, layer && *layer ? layer : "input");
        sti_text_printf(out, " took %.0f bytes of %.0f", number(row, "bytes"),
                        number(row, "capacity"));
    }
    sti_text_add(out, "</li>\n");
}

static void add_plan(const json_t *plan, sti_text *out)
{
    sti_text_printf(out,
                    "<li>planned anew: %.0f tensors packed, peak %.1f MiB, %.0f lanes, "
                    "expected %.2f times the time</li>\n",
                    number(plan, "packed"), number(plan, "planned_peak_bytes") / 0x1p20,
                    number(plan, "lanes"), number(plan, "slowdown"));
}

/* Lines of the log; *last_out becomes the last of them, owned by the caller. */
static void read_bounds(FILE *log, sti_text *course, sti_text *changes,
                        json_t **last_out)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    while ((length = getline(&line, &capacity, log)) > 0) {
        json_t *object = json_loadb(line, (size_t)length, 0, NULL);
        const char *event = json_string_value(json_object_get(object, "event"));
        if (event && strcmp(event, "growth") == 0)
            add_growth(object, changes);
        if (event && strcmp(event, "plan") == 0)
            add_plan(object, changes);
        if (!event || strcmp(event, "bounds") != 0) {
            json_decref(object);
            continue;
        }
        add_course(object, course);
        json_decref(*last_out);
        *last_out = object;
    }
    free(line);
}

static void add_section(const json_t *last, const sti_text *course,
                        const sti_text *changes, sti_text *out)
{
    static const sti_table_column columns[] = {{.name = "step", .number = true},
                                               {.name = "finest bound", .number = true},
                                               {.name = "coarsest", .number = true},
                                               {.name = "ratio", .number = true}};
    sti_page_section(out, "Packed activations");
    sti_page_note(out, "At the last choice of bounds. Gradient errors are deviations a "
                       "weight; of several gradients the one nearest to what is "
                       "allowed.");
    sti_page_card_begin(out);
    add_rows(last, out);
    sti_page_card_end(out);
    sti_page_note(out, "Over the run:");
    sti_page_card_begin(out);
    sti_table_begin(out, columns, sizeof columns / sizeof columns[0]);
    sti_text_add(out, course->data ? course->data : "");
    sti_table_end(out);
    sti_page_card_end(out);
    if (changes->data) {
        sti_page_note(out, "Packed blocks that were too small; each time the step was "
                           "run again:");
        sti_text_printf(out, "<ul>\n%s</ul>\n", changes->data);
    }
    sti_page_section_end(out);
}

stint_status sti_report_add_bounds(const sti_report_run *run, sti_page_file *page)
{
    sti_text *out = &page->text;
    char *path = sti_path_join(run->arena, run->folder, "log.jsonl");
    FILE *log = path ? fopen(path, "re") : NULL;
    sti_text course = {0}, changes = {0};
    json_t *last = NULL;
    if (!log)
        return STINT_OK;
    read_bounds(log, &course, &changes, &last);
    fclose(log);
    if (last)
        add_section(last, &course, &changes, out);
    out->failed |= course.failed | changes.failed;
    json_decref(last);
    sti_text_fini(&course);
    sti_text_fini(&changes);
    return STINT_OK;
}
