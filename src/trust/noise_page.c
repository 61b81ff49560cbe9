#include "trust/noise_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "page/page.h"
#include "page/strips.h"
#include "page/table.h"

/* ---- the picture ---- */

static const stint_noise_arm *arm_of(const void *result, int row)
{
    return &((const stint_noise_result *)result)->arm[row];
}

static int64_t each_run(const void *result, int row)
{
    return arm_of(result, row)->runs;
}

static int64_t each_class(const void *result, int row)
{
    (void)row;
    return ((const stint_noise_result *)result)->classes;
}

static double accuracy_of(const void *result, int row, int64_t i)
{
    return arm_of(result, row)->accuracy[i];
}

static double stdev_of(const void *result, int row, int64_t i)
{
    (void)i;
    return arm_of(result, row)->accuracy_stdev;
}

static double churn_of(const void *result, int row, int64_t i)
{
    (void)i;
    return arm_of(result, row)->churn;
}

static double distance_of(const void *result, int row, int64_t i)
{
    (void)i;
    return arm_of(result, row)->distance_normalised;
}

static double spread_of(const void *result, int row, int64_t i)
{
    return arm_of(result, row)->class_part[i].accuracy_spread;
}

static const sti_strips_panel panels[] = {
    {"accuracy on the test inputs, a dot a run", 100, " %", false, each_run,
     accuracy_of},
    {"its standard deviation over the runs", 100, " %", true, NULL, stdev_of},
    {"churn: test inputs with another answer, mean over pairs of runs", 100, " %", true,
     NULL, churn_of},
    {"distance of the weights, scaled to unit length, mean over pairs", 1, "", true,
     NULL, distance_of},
    {"spread of each class: its deviation over that of all, a dot a class", 1, "", true,
     each_class, spread_of},
};

/* ---- the page ---- */

static void add_cell(sti_text *out, double value, double scale)
{
    if (isnan(value))
        sti_table_number(out, "none");
    else
        sti_table_number(out, "%.4g", scale * value);
}

static void add_arm(const stint_noise_arm *a, sti_text *out)
{
    sti_table_row(out);
    sti_table_words(out, a->name, NULL);
    sti_table_number(out, "%" PRId64, a->runs);
    add_cell(out, a->accuracy_mean, 100);
    add_cell(out, a->accuracy_stdev, 100);
    add_cell(out, a->churn, 100);
    add_cell(out, a->distance, 1);
    add_cell(out, a->distance_normalised, 1);
    add_cell(out, a->fpr_stdev, 100);
    add_cell(out, a->fnr_stdev, 100);
    if (a->onset_step < 0)
        sti_table_number(out, "never");
    else
        sti_table_number(out, "step %" PRId64 ", %s", a->onset_step, a->onset_tensor);
    sti_table_row_end(out);
}

static void add_parts(const stint_noise_arm *arm, const stint_noise_part *part,
                      int64_t count, const char *what, sti_text *out)
{
    static const sti_table_column columns[] = {
        {.name = ""},
        {.name = "inputs", .number = true},
        {.name = "accuracy %", .number = true},
        {.name = "deviation", .number = true},
        {.name = "over that of the whole", .number = true},
        {.name = "of false positives", .number = true},
        {.name = "of false negatives", .number = true}};
    char summary[128];
    (void)snprintf(summary, sizeof summary, "%s: %s", arm->name, what);
    sti_table_fold_begin(out, summary, columns, sizeof columns / sizeof columns[0]);
    for (int64_t i = 0; i < count; i++) {
        sti_table_row(out);
        sti_table_words(out, part[i].name, NULL);
        sti_table_number(out, "%" PRId64, part[i].count);
        add_cell(out, part[i].accuracy_mean, 100);
        add_cell(out, part[i].accuracy_stdev, 100);
        add_cell(out, part[i].accuracy_spread, 1);
        add_cell(out, part[i].fpr_spread, 1);
        add_cell(out, part[i].fnr_spread, 1);
        sti_table_row_end(out);
    }
    sti_table_fold_end(out);
}

static void add_arms(const stint_noise_result *r, sti_text *out)
{
    static const sti_table_column columns[] = {
        {.name = "what varies"},
        {.name = "runs", .number = true},
        {.name = "accuracy %", .number = true},
        {.name = "deviation", .number = true},
        {.name = "churn %", .number = true},
        {.name = "distance", .number = true},
        {.name = "of unit length", .number = true},
        {.name = "false positives, deviation", .number = true},
        {.name = "false negatives, deviation", .number = true},
        {.name = "differ from", .number = true}};
    sti_page_section(out, "Figures");
    sti_page_card_begin(out);
    sti_table_begin(out, columns, sizeof columns / sizeof columns[0]);
    for (int a = 0; a < r->arms; a++)
        add_arm(&r->arm[a], out);
    sti_table_end(out);
    sti_page_card_end(out);
    sti_page_section_end(out);
}

static void add_page(const stint_noise_result *r, const char *title,
                     const sti_strips *strips, sti_text *out)
{
    sti_text lead = {0};
    sti_page_begin(out, "Stint: noise between runs", "How much is luck");
    sti_text_add_html(&lead, title);
    sti_text_printf(&lead, ", %" PRId64 " test inputs", r->inputs);
    sti_page_lead(out, lead.data ? lead.data : "");
    out->failed |= lead.failed;
    sti_text_fini(&lead);
    sti_page_card_begin(out);
    sti_strips_add(out, strips);
    sti_page_card_end(out);
    add_arms(r, out);
    sti_page_section(out, "Parts of the data");
    sti_page_card_begin(out);
    for (int a = 0; a < r->arms; a++)
        add_parts(&r->arm[a], r->arm[a].class_part, r->classes, "classes", out);
    for (int a = 0; a < r->arms && r->groups > 0; a++)
        add_parts(&r->arm[a], r->arm[a].group_part, r->groups, "groups", out);
    sti_page_card_end(out);
    sti_page_section_end(out);
    sti_page_end(out, NULL);
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

static stint_status write_both(const stint_noise_result *result, const char *title,
                               const char *folder, const sti_strips *strips)
{
    sti_text svg = {0}, page = {0};
    sti_strips_add_alone(&svg, strips);
    stint_status st = write_file(folder, "noise.svg", &svg);
    if (st == STINT_OK) {
        add_page(result, title, strips, &page);
        st = write_file(folder, "noise.html", &page);
    }
    sti_text_fini(&svg);
    sti_text_fini(&page);
    return st;
}

stint_status sti_noise_page(const stint_noise_result *result, const char *title,
                            const char *folder)
{
    const char **names = sti_alloc_array(result->arms, sizeof *names, "page");
    if (!names)
        return STINT_E_MEMORY;
    for (int a = 0; a < result->arms; a++)
        names[a] = result->arm[a].name;
    const sti_strips strips = {.label = "noise of the arms",
                               .panel = panels,
                               .panels = sizeof panels / sizeof panels[0],
                               .row = names,
                               .rows = result->arms,
                               .user = result};
    stint_status st = write_both(result, title, folder, &strips);
    sti_free(names);
    return st;
}
