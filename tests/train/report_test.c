/* The report from made-up runs: complete, escaped, bounded, and readable when parts are
 * missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "train/report_priv.h"

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/stint-report-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static const char *in_folder(const char *name)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const void *bytes, size_t n_bytes)
{
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n_bytes, file), n_bytes);
    fclose(file);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

/* Ten test images of 8 x 6 in IDX files; the data room wants training files too. */
static void put_images(void)
{
    enum { COUNT = 10, HEIGHT = 6, WIDTH = 8 };
    uint8_t images[16 + COUNT * HEIGHT * WIDTH] = {0, 0, 8, 3,      0, 0, 0, COUNT,
                                                   0, 0, 0, HEIGHT, 0, 0, 0, WIDTH};
    uint8_t labels[8 + COUNT] = {0, 0, 8, 1, 0, 0, 0, COUNT};
    for (int i = 0; i < COUNT * HEIGHT * WIDTH; i++)
        images[16 + i] = (uint8_t)(i * 5);
    for (int i = 0; i < COUNT; i++)
        labels[8 + i] = (uint8_t)(i % 2);
    put("train-images-idx3-ubyte", images, sizeof images);
    put("train-labels-idx1-ubyte", labels, sizeof labels);
    put("t10k-images-idx3-ubyte", images, sizeof images);
    put("t10k-labels-idx1-ubyte", labels, sizeof labels);
}

static void put_run(void)
{
    FILE *log = fopen(in_folder("log.jsonl"), "w");
    assert_non_null(log);
    fprintf(log,
            "{\"event\":\"start\",\"network\":\"resnet8\",\"data\":\"/x/a<b&c\","
            "\"class_names\":[\"cat\",\"<script>alert(1)</script>\"],\"classes\":2,"
            "\"steps\":400,\"epochs\":4,\"batch\":64,\"shards\":4,\"seed\":7,"
            "\"planned_peak_bytes\":90000000,\"parameters\":79444,\"threads\":2,"
            "\"parts\":[{\"name\":\"parameters\",\"detail\":\"f32\",\"bytes\":318000},"
            "{\"name\":\"process\",\"detail\":\"\",\"bytes\":8000000}]}\n");
    for (int step = 1; step <= 400; step++) {
        fprintf(log,
                "{\"event\":\"step\",\"step\":%d,\"loss\":%g,\"accuracy\":%g,"
                "\"lr\":0.1,\"images_per_s\":900}\n",
                step, 3.0 / step, 1 - 1.0 / step);
        if (step % 100 == 0)
            fprintf(log,
                    "{\"event\":\"epoch\",\"epoch\":%d,\"step\":%d,\"train_loss\":%g,"
                    "\"train_accuracy\":0.9,\"test_loss\":0.4,\"test_accuracy\":0.85,"
                    "\"images_per_s\":900}\n",
                    step / 100, step, 3.0 / step);
    }
    fprintf(log, "{\"event\":\"end\",\"status\":\"ok\",\"test_accuracy\":0.875,"
                 "\"test_loss\":0.41,\"images_per_s\":901,\"seconds\":31,"
                 "\"peak_rss_bytes\":89000000,\"weights_sha256\":\"abc\","
                 "\"measured\":[{\"name\":\"parameters\",\"bytes\":318000}],"
                 "\"class_count\":[5,5],\"class_correct\":[5,4]}\n");
    fclose(log);
    put_text("recipe.ini", "[model]\nname = resnet8 ; <b>\n");
}

static void put_errors(void)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"data\":\"%s\",\"format\":\"auto\",\"size\":0,\"channels\":0,"
             "\"wrong\":2,\"count\":10,\"errors\":["
             "{\"index\":3,\"label\":1,\"predicted\":0,\"probability\":0.93,"
             "\"name\":\"image 3\"},"
             "{\"index\":99,\"label\":1,\"predicted\":0,\"name\":\"gone\"}]}",
             folder);
    put_text("errors.json", text);
}

static char *page(void)
{
    void *data = NULL;
    size_t bytes = 0;
    if (sti_report_write(folder) != STINT_OK)
        fail_msg("%s", stint_last_error());
    assert_int_equal(sti_file_read(in_folder("report.html"), 1 << 24, &data, &bytes),
                     STINT_OK);
    return data;
}

static void expect(const char *text, const char *words, bool there)
{
    if ((strstr(text, words) != NULL) != there)
        fail_msg("'%s' is %sin the page", words, there ? "not " : "");
}

static void a_full_run_has_every_section(void **state)
{
    (void)state;
    put_images();
    put_run();
    put_errors();
    char *text = page();
    expect(text, "87.50 %", true);
    expect(text, "How it learnt", true);
    expect(text, "Memory, planned and measured", true);
    expect(text, "Accuracy by class", true);
    expect(text, "Batch, images", false); /* which are all of one size */
    expect(text, "data:image/png;base64,iVBORw0KGgo", true);
    expect(text, "the data has changed", true); /* index 99 of 10 */
    expect(text, "Recipe and machine", true);
    expect(text, "</html>", true);
    sti_free(text);
}

static void what_comes_from_data_is_escaped(void **state)
{
    (void)state;
    put_images();
    put_run();
    put_errors();
    char *text = page();
    expect(text, "<script", false);
    expect(text, "&lt;script&gt;", true);
    expect(text, "a&lt;b&amp;c", true);
    expect(text, "; &lt;b&gt;", true);
    expect(text, "nan", false);
    expect(text, "http", false); /* nothing from outside */
    sti_free(text);
}

static void missing_parts_are_left_out(void **state)
{
    (void)state;
    put_text("log.jsonl", "{\"event\":\"start\",\"network\":\"mlp\",\"steps\":9}\n"
                          "{\"event\":\"step\",\"step\":1,\"loss\":null}\n"
                          "{\"event\":\"later kinds are passed over\"}\n"
                          "{\"event\":\"epoch\",\"epo");
    char *text = page();
    expect(text, "not finished", true);
    expect(text, "Mistakes", false);
    expect(text, "Accuracy by class", false);
    expect(text, "</html>", true);
    sti_free(text);
}

static void no_run_is_said(void **state)
{
    (void)state;
    assert_int_equal(sti_report_write(folder), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "--out"));
    put_text("log.jsonl", "these are\nnot events\n[1]\n");
    assert_int_equal(sti_report_write(folder), STINT_E_INPUT);
    put_text("log.jsonl", "");
    assert_int_equal(sti_report_write(folder), STINT_E_INPUT);
}

static void missing_data_leaves_a_note(void **state)
{
    (void)state;
    put_run();
    put_errors();
    char *text = page();
    expect(text, "The images cannot be shown", true);
    sti_free(text);
    put_text("errors.json", "{\"errors\":[{\"index\":1,\"label\":0,\"predicted\":1}]}");
    text = page();
    expect(text, "does not say where", true);
    sti_free(text);
    put_text("errors.json", "[");
    text = page();
    expect(text, "Mistakes", false);
    sti_free(text);
}

/* A log of 300,000 lines gives a page of bounded size in bounded memory. */
static void long_logs_stay_small(void **state)
{
    (void)state;
    put_run();
    FILE *log = fopen(in_folder("log.jsonl"), "a");
    for (int step = 401; step <= 100000; step++)
        fprintf(log, "{\"event\":\"step\",\"step\":%d,\"loss\":%g}\n", step, 1.0);
    fclose(log);
    size_t before = sti_alloc_peak_bytes();
    char *text = page();
    assert_in_range(strlen(text), 1000, 200000);
    assert_in_range(sti_alloc_peak_bytes() - before, 0, 4 << 20);
    sti_free(text);
}

/* Steps of unequal size come with their epochs; batches and noise scale become a chart.
 */
static void batches_that_grow(void **state)
{
    (void)state;
    sti_report_run run = {.steps = 0};
    put_text("log.jsonl",
             "{\"event\":\"step\",\"step\":1,\"epoch\":0.5,\"loss\":2,\"batch\":32,"
             "\"lr\":1,\"noise_scale\":90}\n"
             "{\"event\":\"step\",\"step\":2,\"epoch\":1,\"loss\":2,\"batch\":32,"
             "\"lr\":1,\"noise_scale\":95}\n"
             "{\"event\":\"step\",\"step\":3,\"epoch\":2,\"loss\":1,\"batch\":64,"
             "\"lr\":0.75,\"noise_scale\":99}\n");
    assert_int_equal(sti_report_read(folder, &run), STINT_OK);
    assert_true(run.step_in_epochs && run.step.point[1].x == 1.0);
    assert_true(run.step.point[2].value[STI_STEP_BATCH] == 64);
    assert_true(run.step.point[2].value[STI_STEP_NOISE_SCALE] == 99);
    sti_report_run_fini(&run);
    char *text = page();
    expect(text, "Batch, images", true);
    expect(text, "noise scale of the gradient", true);
    sti_free(text);
}

static void resumed_steps_replace_earlier_ones(void **state)
{
    (void)state;
    sti_report_run run;
    put_text("log.jsonl", "{\"event\":\"step\",\"step\":1,\"loss\":1}\n"
                          "{\"event\":\"step\",\"step\":2,\"loss\":2}\n"
                          "{\"event\":\"step\",\"step\":3,\"loss\":3}\n"
                          "{\"event\":\"resume\",\"step\":1}\n"
                          "{\"event\":\"step\",\"step\":2,\"loss\":7}\n");
    assert_int_equal(sti_report_read(folder, &run), STINT_OK);
    assert_int_equal(run.step.count, 2);
    assert_true(run.step.point[1].value[STI_STEP_LOSS] == 7);
    assert_int_equal(run.resumes, 1);
    sti_report_run_fini(&run);
}

static void allocation_failures_are_clean(void **state)
{
    (void)state;
    put_images();
    put_run();
    put_errors();
    for (int64_t n = 1; n < 400; n++) {
        sti_alloc_fail_nth(n);
        stint_status status = sti_report_write(folder);
        sti_alloc_fail_nth(0);
        if (status == STINT_OK)
            return;
        assert_int_equal(status, STINT_E_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_full_run_has_every_section, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_comes_from_data_is_escaped, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(missing_parts_are_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_run_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(missing_data_leaves_a_note, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_logs_stay_small, set_up, tear_down),
        cmocka_unit_test_setup_teardown(batches_that_grow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(resumed_steps_replace_earlier_ones, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(allocation_failures_are_clean, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
