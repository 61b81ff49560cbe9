/* One page with one of everything, page_gallery.html in the build folder: well-formed,
 * escaped, and to be looked at in a browser. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "page/busy_lanes.h"
#include "page/chart.h"
#include "page/pattern.h"
#include "page/strips.h"
#include "page/table.h"

enum { POINTS = 40, ROWS = 3, DOTS = 8 };

/* "…/page_gallery.html" beside the built program. */
static const char *built(const char *name)
{
    static char path[1024];
    (void)snprintf(path, sizeof path, "%s", STINT_BINARY);
    char *slash = strrchr(path, '/');
    assert_non_null(slash);
    (void)snprintf(slash + 1, sizeof path - (size_t)(slash + 1 - path), "%s", name);
    return path;
}

static void add_figures(sti_text *out)
{
    sti_page_figures_begin(out);
    sti_page_figure(out, "97.25 %", "a share");
    sti_page_figure(out, "1 h 59 min 59 s", "a long value");
    sti_page_figure(out, "34.0 MiB", "a size; planned 34.5 MiB");
    sti_page_figure(out, "< & > \" '", "what must be escaped: <b>");
    sti_page_figures_end(out);
}

static void fill_series(sti_series *s)
{
    assert_true(sti_series_init(s));
    for (int i = 1; i <= POINTS; i++) {
        sti_series_point p = {.x = i,
                              .value = {10.0 / i, 5.0 + (i * 7) % 11, -3.0 + i}};
        if (i == 20)
            p.value[0] = STI_SERIES_NONE;
        sti_series_add(s, &p);
    }
}

static void add_charts(sti_text *out, const sti_series *s)
{
    const sti_chart_line lines[] = {
        {s, 0, 1, 1, STI_PAGE_FAINT, "faint", STI_CHART_CURVE},
        {s, 0, 1, 0.8, STI_PAGE_FIRST, "first, <dotted>", STI_CHART_DOTTED_CURVE},
        {s, 0, 1, 0.6, STI_PAGE_SECOND, "second", STI_CHART_DOTTED_CURVE}};
    const sti_chart_line bars[] = {
        {s, 1, 1, 1, STI_PAGE_FIRST, "bars", STI_CHART_BARS},
        {s, 2, 1, 0.2, STI_PAGE_SECOND, "others, some below zero", STI_CHART_BARS}};
    const sti_chart_line dots = {s, 1, 1, 1000, STI_PAGE_PLAIN, "dots", STI_CHART_DOTS};
    sti_chart chart = {.title = "Curves & their legend",
                       .x_label = "epoch",
                       .unit = " %",
                       .line = lines,
                       .lines = 3,
                       .from_zero = true,
                       .y_max = 8};
    sti_page_columns_begin(out);
    sti_chart_add(out, &chart);
    chart = (sti_chart){.title = "Bars",
                        .x_label = "step",
                        .unit = "",
                        .line = bars,
                        .lines = 2,
                        .y_max = STI_SERIES_NONE};
    sti_chart_add(out, &chart);
    chart = (sti_chart){.title = "Dots",
                        .x_label = "step",
                        .unit = "",
                        .line = &dots,
                        .lines = 1,
                        .y_max = STI_SERIES_NONE};
    sti_chart_add(out, &chart);
    sti_page_columns_end(out);
}

static void add_tables(sti_text *out)
{
    static const sti_table_column columns[] = {
        {.name = "part"},
        {.name = "planned", .number = true, .key = true, .colour = STI_PAGE_FIRST},
        {.name = "measured", .number = true, .key = true, .colour = STI_PAGE_SECOND}};
    sti_page_card_begin(out);
    sti_table_begin_barred(out, columns);
    for (int i = 0; i < 3; i++) {
        sti_table_row(out);
        sti_table_words(out, "weights", "with a detail below <them>");
        sti_table_bytes(out, 1e6 * (i + 1));
        sti_table_bytes(out, i == 1 ? STI_SERIES_NONE : 9e5 * (i + 1));
        sti_table_bars(out, 1e6 * (i + 1), i == 1 ? STI_SERIES_NONE : 9e5 * (i + 1),
                       3e6);
        sti_table_row_end(out);
    }
    sti_table_row_sum(out);
    sti_table_words(out, "sum", NULL);
    sti_table_bytes(out, 6e6);
    sti_table_bytes(out, 5e6);
    sti_table_bars(out, 6e6, 5e6, 6e6);
    sti_table_row_end(out);
    sti_table_end(out);
    sti_table_fold_begin(out, "Rows to unfold", columns, 3);
    sti_table_row(out);
    sti_table_words(out, "one", "");
    sti_table_number(out, "%.2f < x", 1.5);
    sti_table_number(out, "never");
    sti_table_row_end(out);
    sti_table_fold_end(out);
    sti_page_card_end(out);
}

static int64_t dot_count(const void *user, int row)
{
    (void)user;
    return DOTS - row;
}

static double dot_value(const void *user, int row, int64_t i)
{
    const double *values = user;
    return i == 2 ? STI_SERIES_NONE : values[(row * DOTS + (int)i) % 9];
}

static double no_value(const void *user, int row, int64_t i)
{
    (void)user;
    (void)row;
    (void)i;
    return STI_SERIES_NONE;
}

static const double values[9] = {90.1, 91.5, 92, 90.7, 93.25, 91.9, 92.4, 90, 93};
static const char *const row_names[ROWS] = {"ALGO+IMPL", "ALGO <1>", "CONTROL"};
static const sti_strips_panel panels[] = {
    {"a dot a run", 1, " %", false, dot_count, dot_value},
    {"a bar & its value", 0.01, "", true, NULL, dot_value},
    {"nothing known", 1, "", false, dot_count, no_value}};
static const sti_strips strips = {.label = "strips",
                                  .panel = panels,
                                  .panels = 3,
                                  .row = row_names,
                                  .rows = ROWS,
                                  .user = values};

static void add_sheet(sti_text *out)
{
    uint8_t pixels[8 * 8 * 3], png[1024];
    for (int i = 0; i < 8 * 8 * 3; i++)
        pixels[i] = (uint8_t)(i * 37);
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = 8,
                       .height = 8,
                       .format = PNG_FORMAT_RGB};
    png_alloc_size_t n = sizeof png;
    assert_true(png_image_write_to_memory(&image, png, &n, 0, pixels, 0, NULL));
    for (int i = 0; i < 15; i++) {
        if (i == 12)
            sti_page_sheet_end(out);
        if (i == 0)
            sti_page_sheet_begin(out);
        else if (i == 12)
            sti_page_large_sheet_begin(out);
        sti_page_picture_begin(out);
        sti_page_image(out, png, n, "a tooltip with \"quotes\" & <tags>");
        sti_page_picture_end(out,
                             "is <b>cat</b><br>taken for <b class=\"bad\">dog</b>");
    }
    sti_page_sheet_end(out);
}

static void add_words(sti_text *out)
{
    sti_page_shares_begin(out, 40);
    sti_page_share(out, "a name that is longer than there is room for", 71.5,
                   "143 of 200 right");
    sti_page_share(out, "b<", 0, "none");
    sti_page_share(out, "c", 100, "all");
    sti_page_shares_end(out);
    sti_page_columns_begin(out);
    sti_page_preformatted(out,
                          "[model]\nname = resnet18 ; <b>\n; a line that is much "
                          "longer than a narrow screen has room for, to be pushed\n");
    sti_page_facts_begin(out);
    sti_page_fact(out, "CPU", "of some kind");
    sti_page_fact(out, "SHA-256",
                  "a1168af6e92349112de8c348aa7b005e64c66e4d90bb7bfaa13b0f1");
    sti_page_fact(out, "left out", "");
    sti_page_facts_end(out);
    sti_page_columns_end(out);
}

/* An arrow, whose first cells are full. */
static void add_pattern(sti_text *out)
{
    static sti_pattern pattern = {.n = 400};
    sti_page_columns_begin(out);
    for (int64_t i = 0; i < pattern.n; i++) {
        sti_pattern_count(&pattern, i, i);
        for (int64_t j = 0; j < 40; j++)
            sti_pattern_count(&pattern, i, j);
    }
    sti_pattern_add(out, &pattern, "An arrow, <half>");
    const sti_pattern small = {.n = 2, .cell = {{1, 0}, {0, 3}}};
    sti_pattern_add(out, &small, "Two rows");
    sti_page_columns_end(out);
}

static void add_lanes(sti_text *out)
{
    static const sti_lanes_span spans[] = {
        {0, 0, 0.002, 0}, {1, 0.0005, 0.003, 0.001}, {0, 0.0025, 0.0041, 0.0002}};
    sti_lanes_add(out, &(sti_lanes){.title = "Two threads, <busy>",
                                    .name = "thread",
                                    .span = spans,
                                    .spans = 3,
                                    .lanes = 2});
}

static void fill_page(sti_page_file *page)
{
    sti_text *out = &page->text;
    sti_series series;
    fill_series(&series);
    sti_page_begin(out, NULL, "One of everything & <more>");
    sti_page_lead(out,
                  "<span class=\"state ok\">finished</span> and <span class=\"state "
                  "not\">not</span>");
    add_figures(out);
    sti_page_section(out, "Charts");
    sti_page_note(out, "A remark of %d words: <&>.", 5);
    add_charts(out, &series);
    sti_page_card_begin(out);
    sti_strips_add(out, &strips);
    sti_page_card_end(out);
    add_pattern(out);
    add_lanes(out);
    sti_page_section_end(out);
    sti_page_section(out, "Tables");
    add_tables(out);
    sti_page_section_end(out);
    sti_page_section(out, "Pictures");
    add_sheet(out);
    sti_page_section_end(out);
    sti_page_section(out, "Words");
    add_words(out);
    sti_page_section_end(out);
    sti_page_end(out, "Made by a test.");
    sti_series_fini(&series);
}

static void the_gallery_is_well_formed(void **state)
{
    (void)state;
    char command[4096], page_path[1024];
    sti_page_file page;
    sti_text svg = {0};
    (void)snprintf(page_path, sizeof page_path, "%s", built("page_gallery.html"));
    assert_int_equal(sti_page_file_open(&page, page_path), STINT_OK);
    fill_page(&page);
    assert_int_equal(sti_page_file_close(&page, STINT_OK), STINT_OK);
    sti_strips_add_alone(&svg, &strips);
    const char *svg_path = built("page_gallery.svg");
    assert_int_equal(sti_file_write(svg_path, svg.data, svg.length), STINT_OK);
    sti_text_fini(&svg);
    (void)snprintf(command, sizeof command,
                   "python3 '%s/page/well_formed.py' '%s' '%s'", STINT_TEST_SOURCE_DIR,
                   page_path, svg_path);
    assert_int_equal(system(command), 0);
}

static void words_are_escaped(void **state)
{
    (void)state;
    sti_text out = {0};
    sti_page_begin(&out, "<t>", "<h>");
    sti_page_figure(&out, "<v>", "<m>");
    sti_page_note(&out, "%s", "<n>");
    sti_page_fact(&out, "<f>", "<g>");
    sti_page_share(&out, "<s>", 50, "<u>");
    sti_table_words(&out, "<w>", "<x>");
    sti_table_number(&out, "%s", "<y>");
    sti_page_image(&out, "", 0, "<z>");
    for (const char *c = "thvmnfgsuwxyz"; *c; c++) {
        const char raw[4] = {'<', *c, '>', 0};
        if (strstr(out.data, raw))
            fail_msg("%s is on the page as it was given", raw);
    }
    sti_text_fini(&out);
}

/* A page that fails leaves the file that was there. */
static void a_failed_page_leaves_the_old_one(void **state)
{
    (void)state;
    const char *path = built("page_kept.html");
    sti_page_file page;
    void *data = NULL;
    size_t n = 0;
    assert_int_equal(sti_file_write(path, "old", 3), STINT_OK);
    assert_int_equal(sti_page_file_open(&page, path), STINT_OK);
    for (int i = 0; i < 3000; i++)
        sti_page_note(&page.text, "a line that fills what is flushed");
    assert_int_equal(sti_page_file_flush(&page), STINT_OK);
    assert_int_equal(page.text.length, 0);
    assert_int_equal(sti_page_file_close(&page, STINT_E_INPUT), STINT_E_INPUT);
    page = (sti_page_file){0};
    assert_int_equal(sti_page_file_open(&page, path), STINT_OK);
    page.text.failed = true;
    assert_int_equal(sti_page_file_close(&page, STINT_OK), STINT_E_MEMORY);
    assert_int_equal(sti_file_read(path, 100, &data, &n), STINT_OK);
    assert_string_equal(data, "old");
    sti_free(data);
    (void)unlink(path);
}

static void a_series_stays_of_one_size(void **state)
{
    (void)state;
    sti_series s;
    assert_true(sti_series_init(&s));
    for (int i = 1; i <= 100000; i++)
        sti_series_add(&s, &(sti_series_point){.x = i, .value = {i}});
    assert_in_range(s.count, STI_SERIES_POINTS / 4, STI_SERIES_POINTS);
    for (int i = 1; i < s.count; i++)
        assert_true(s.point[i].x > s.point[i - 1].x &&
                    s.point[i].value[0] > s.point[i - 1].value[0]);
    const int before = s.count;
    sti_series_add(&s, &(sti_series_point){.x = s.point[9].x, .value = {-1}});
    assert_true(s.count <= 10 && before > 10); /* it went back: what followed is gone */
    sti_series_fini(&s);
}

static void charts_without_points_are_left_out(void **state)
{
    (void)state;
    sti_text out = {0};
    sti_series s;
    assert_true(sti_series_init(&s));
    const sti_chart_line line = {&s, 0, 1, 1, STI_PAGE_PLAIN, "x", STI_CHART_BARS};
    const sti_chart chart = {.title = "t",
                             .x_label = "x",
                             .unit = "",
                             .line = &line,
                             .lines = 1,
                             .y_max = STI_SERIES_NONE};
    sti_chart_add(&out, &chart);
    assert_int_equal(out.length, 0);
    sti_series_add(&s, &(sti_series_point){.x = 1, .value = {STI_SERIES_NONE}});
    sti_chart_add(&out, &chart);
    assert_int_equal(out.length, 0);
    sti_series_add(&s, &(sti_series_point){.x = 2, .value = {7}});
    sti_chart_add(&out, &chart);
    assert_non_null(strstr(out.data, "<rect"));
    assert_null(strstr(out.data, "nan"));
    sti_series_fini(&s);
    sti_text_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gallery_is_well_formed),
        cmocka_unit_test(words_are_escaped),
        cmocka_unit_test(a_failed_page_leaves_the_old_one),
        cmocka_unit_test(a_series_stays_of_one_size),
        cmocka_unit_test(charts_without_points_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
