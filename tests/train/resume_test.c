/* Stopping, going on, and what must not be resumed. */
#include <math.h>

#include "base/fail.h"
#include "store/position.h"
#include "train_support.h"

static char reference[65];

static stint_recipe *recipe(const char *out, const char *key, const char *value)
{
    return make_recipe(out, "train.epochs", "3", "run.checkpoint_every", "4",
                       "run.log_every", "5", "data.crop_pad", "1", "schedule.name",
                       "cosine", "run.keep", "3", key, value, NULL);
}

/* Lines of the log without those that differ by nature, and without times. */
static char *read_log(const char *out)
{
    char name[64], line[8192], *all = calloc(1, 1 << 20);
    snprintf(name, sizeof name, "%s/log.jsonl", out);
    FILE *f = fopen(in_folder(name), "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (!strstr(line, "\"step\"") || strstr(line, "\"resume\""))
            continue;
        char *end = strstr(line, "\"images_per_s\"");
        strncat(all, line, end ? (size_t)(end - line) : strlen(line));
        strcat(all, "\n");
    }
    fclose(f);
    return all;
}

static void test_reference(void **state)
{
    (void)state;
    stint_train_result r =
        train(recipe("whole", NULL, NULL), (stint_train_desc){0}, STINT_OK);
    strcpy(reference, r.weights_sha256);
}

typedef struct stopper {
    int64_t at;
    stint_status how;
} stopper;

static void stop_at(void *user, const stint_train_progress *p)
{
    const stopper *s = user;
    if (s->at == 0 ? p->evaluating && p->step > 0 : p->step >= s->at && !p->evaluating)
        stint_stop(s->how);
}

/* The progress callback comes at most every 0.1 s: slow the steps' clock by stopping
 * from another side where a test must hit one step. Here any step will do. */
static void test_stop_and_resume(void **state)
{
    (void)state;
    for (int64_t at = 0; at < 18; at += 5) {
        stopper s = {at, at % 2 ? STINT_E_TERMINATED : STINT_E_INTERRUPTED};
        stint_train_desc desc = {.force = true, .progress = stop_at, .user = &s};
        stint_train_result r = {0};
        stint_recipe *first = recipe("stopped", NULL, NULL);
        stint_status st = stint_train(first, &desc, &r);
        stint_recipe_destroy(first);
        if (st == STINT_OK) {
            assert_string_equal(r.weights_sha256, reference);
            continue;
        }
        assert_int_equal(st, s.how);
        assert_non_null(strstr(stint_last_error(), "--resume"));
        r = train(recipe("stopped", "run.threads", "2"),
                  (stint_train_desc){.resume = true}, STINT_OK);
        assert_string_equal(r.weights_sha256, reference);
        char *a = read_log("whole"), *b = read_log("stopped");
        assert_string_equal(a, b);
        free(a);
        free(b);
    }
}

/* A run that its time ended is given more of it. */
static void test_more_time(void **state)
{
    (void)state;
    stint_train_result r =
        train(recipe("timed", "train.time", "1us"), (stint_train_desc){0}, STINT_OK);
    assert_int_equal(r.steps, 6); /* an epoch */
    r = train(recipe("timed", "train.time", "1h"), (stint_train_desc){.resume = true},
              STINT_OK);
    assert_string_equal(r.weights_sha256, reference);
}

static void test_stop_before_start(void **state)
{
    (void)state;
    stint_stop(STINT_E_INTERRUPTED);
    train(recipe("early", NULL, NULL), (stint_train_desc){0}, STINT_E_INTERRUPTED);
    assert_false(sti_path_is_dir(in_folder("early/checkpoints"))); /* nothing to save */
    stint_train_result r = train(recipe("early", NULL, NULL),
                                 (stint_train_desc){.resume = true}, STINT_OK);
    assert_string_equal(r.weights_sha256, reference);
}

static int count_files(const char *folder)
{
    sti_arena *arena = sti_arena_create("test");
    char **names;
    int64_t count;
    assert_int_equal(sti_dir_list(arena, in_folder(folder), &names, &count), STINT_OK);
    sti_arena_destroy(arena);
    return (int)count;
}

static void test_keeps_the_newest(void **state)
{
    (void)state;
    assert_int_equal(count_files("whole/checkpoints"), 3);
    assert_true(
        sti_path_is_file(in_folder("whole/checkpoints/step-00000018.safetensors")));
    assert_true(
        sti_path_is_file(in_folder("whole/checkpoints/step-00000016.safetensors")));
}

static void test_finished_run_is_resumed_at_once(void **state)
{
    (void)state;
    stint_train_result r = train(recipe("whole", NULL, NULL),
                                 (stint_train_desc){.resume = true}, STINT_OK);
    assert_string_equal(r.weights_sha256, reference);
    assert_int_equal(r.steps, 18);
}

static void test_never_replaces_silently(void **state)
{
    (void)state;
    train(recipe("whole", NULL, NULL), (stint_train_desc){0}, STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "--resume"));
    assert_non_null(strstr(stint_last_error(), "--force"));
    assert_true(sti_path_is_file(in_folder("whole/model.safetensors")));
}

static void test_other_recipe(void **state)
{
    (void)state;
    train(recipe("whole", "optimizer.lr", "0.5"), (stint_train_desc){.resume = true},
          STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "optimizer.lr (now 0.5, was 0.02)"));
    make_data("other", 160, 50);
    train(recipe("whole", "data.path", in_folder("other")),
          (stint_train_desc){.resume = true}, STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "other data"));
}

/* "constant" leaves the end open; all else as make_recipe has it. */
static stint_recipe *open_end(const char *out, const char *key, const char *value,
                              const char *key_2, const char *value_2)
{
    return make_recipe(out, key, value, "run.keep", "9", key_2, value_2, NULL);
}

static void not_resumed(stint_recipe *r, const char *words)
{
    train(r, (stint_train_desc){.resume = true}, STINT_E_USAGE);
    if (!strstr(stint_last_error(), words))
        fail_msg("'%s' does not say '%s'", stint_last_error(), words);
}

static void test_end_moved(void **state)
{
    (void)state;
    stint_train_result four = train(open_end("four", "train.epochs", "4", NULL, NULL),
                                    (stint_train_desc){0}, STINT_OK);
    not_resumed(open_end("four", "train.epochs", "2", NULL, NULL),
                "--epochs 4 or more");
    not_resumed(open_end("four", "train.steps", "23", NULL, NULL),
                "at step 24 already, but this one is to end after step 23");
    train(open_end("moved", "train.steps", "8", NULL, NULL), (stint_train_desc){0},
          STINT_OK);
    stint_train_result r = train(open_end("moved", "train.epochs", "4", NULL, NULL),
                                 (stint_train_desc){.resume = true}, STINT_OK);
    assert_string_equal(r.weights_sha256, four.weights_sha256);
}

/* The rate of a warm-up that the end cut is of that end; one that was not may go on. */
static void test_end_moved_in_warmup(void **state)
{
    (void)state;
    train(open_end("warm", "train.steps", "8", "schedule.warmup", "2"),
          (stint_train_desc){0}, STINT_OK);
    not_resumed(open_end("warm", "train.epochs", "3", "schedule.warmup", "2"),
                "schedule.warmup");
    train(open_end("mild", "train.steps", "8", "schedule.warmup", "1"),
          (stint_train_desc){0}, STINT_OK);
    stint_train_result r =
        train(open_end("mild", "train.epochs", "3", "schedule.warmup", "1"),
              (stint_train_desc){.resume = true}, STINT_OK);
    stint_train_result whole =
        train(open_end("warm", "train.epochs", "3", "schedule.warmup", "1"),
              (stint_train_desc){.force = true}, STINT_OK);
    assert_string_equal(r.weights_sha256, whole.weights_sha256);
}

static stint_recipe *selecting(const char *out, const char *steps)
{
    return make_recipe(out, "train.steps", steps, "train.select", "accuracy",
                       "train.validation", "0.2", NULL);
}

static void test_end_moved_after_selection(void **state)
{
    (void)state;
    train(selecting("chosen", "7"), (stint_train_desc){0}, STINT_OK);
    not_resumed(selecting("chosen", "15"), "train.select");
    train(selecting("chosen", "10"), (stint_train_desc){.force = true}, STINT_OK);
    stint_train_result r =
        train(selecting("chosen", "15"), (stint_train_desc){.resume = true}, STINT_OK);
    stint_train_result whole =
        train(selecting("straight", "15"), (stint_train_desc){0}, STINT_OK);
    assert_string_equal(r.weights_sha256, whole.weights_sha256);
}

/* A key that is new is in one list or the other: what a resumed run may change is
 * thought about, not forgotten. */
static void test_keys_that_may_change(void **state)
{
    static const char *const may[] = {"data.path",
                                      "data.format",
                                      "data.tokenizer_path",
                                      "train.epochs",
                                      "train.steps",
                                      "train.time",
                                      "train.start",
                                      "train.eval_every",
                                      "loss.reference",
                                      "net.overlap",
                                      "run.out",
                                      "run.threads",
                                      "run.memory",
                                      "run.lanes",
                                      "run.keep",
                                      "run.checkpoint_every",
                                      "run.log_every",
                                      "run.hash_every",
                                      "run.answers",
                                      "run.tensorboard",
                                      "env.rom",
                                      "agent.overlap",
                                      "update.gains",
                                      "update.at_once",
                                      "update.keep",
                                      "embedding.path",
                                      "embedding.policy",
                                      "embedding.lookahead",
                                      "embedding.hot",
                                      "embedding.prefetch",
                                      "embedding.io",
                                      "embedding.cache"};
    const sti_recipe_table *table = sti_recipe_table_get();
    stint_recipe *r = make_recipe("keys", NULL);
    size_t found = 0;
    (void)state;
    for (int i = 0; i < table->count; i++) {
        const sti_recipe_section *section = table->section_of[i];
        const sti_option *row = &table->row[i];
        char key[96];
        bool listed = false;
        snprintf(key, sizeof key, "%s.%s", row->section, row->name);
        for (size_t k = 0; k < sizeof may / sizeof may[0]; k++)
            listed = listed || strcmp(may[k], key) == 0;
        const bool is_free =
            row->same_weights || (section->free_now && section->free_now(r, row));
        if (is_free != listed)
            fail_msg("%s %s be changed by a resume", key, is_free ? "may" : "may not");
        found += listed;
    }
    assert_int_equal(found, sizeof may / sizeof may[0]);
    stint_recipe_destroy(r);
}

enum { IMAGE = SIDE * SIDE, IMAGES_AT = 16 };

/* Training images of support_folder/NAME, changed. */
static void change_images(const char *name, void (*change)(uint8_t *images))
{
    char path[600];
    void *data;
    size_t n_bytes;
    snprintf(path, sizeof path, "%s/train-images-idx3-ubyte", in_folder(name));
    assert_int_equal(sti_file_read(path, 1 << 26, &data, &n_bytes), STINT_OK);
    change((uint8_t *)data + IMAGES_AT);
    assert_int_equal(sti_file_write(path, data, n_bytes), STINT_OK);
    sti_free(data);
}

/* Swaps images of classes 1 and 2; no sum over all pixels knows of it. */
static void swap_two(uint8_t *images)
{
    uint8_t *a = images + 41 * IMAGE, *b = images + 42 * IMAGE, keep[IMAGE];
    memcpy(keep, a, IMAGE);
    memcpy(a, b, IMAGE);
    memcpy(b, keep, IMAGE);
}

static void replace_one(uint8_t *images)
{
    draw(images + 149 * IMAGE, 149 % CLASSES, 77777);
}

static void test_other_images(void **state)
{
    void (*const changes[])(uint8_t *) = {swap_two, replace_one};
    (void)state;
    for (int i = 0; i < 2; i++) {
        make_data("changing", 150, 50);
        stint_recipe *first = recipe("changed", "data.path", in_folder("changing"));
        train(first, (stint_train_desc){.force = true}, STINT_OK);
        change_images("changing", changes[i]);
        train(recipe("changed", "data.path", in_folder("changing")),
              (stint_train_desc){.resume = true}, STINT_E_INPUT);
        assert_non_null(strstr(stint_last_error(), "was trained on other images"));
        assert_non_null(strstr(stint_last_error(), "changing has now"));
    }
    /* The same in another place, and other test images, change no weights. */
    make_data("changing", 150, 48);
    stint_train_result r = train(recipe("changed", "data.path", in_folder("changing")),
                                 (stint_train_desc){.resume = true}, STINT_OK);
    assert_string_equal(r.weights_sha256, reference);
}

static int changed_image;

static void spoil(uint8_t *images)
{
    images[changed_image * IMAGE + 3] ^= 64;
}

static stint_recipe *judging(void)
{
    stint_recipe *r = selecting("judged", "5");
    assert_int_equal(stint_recipe_set(r, "data.path", in_folder("changing")), STINT_OK);
    return r;
}

/* Held-out images, a fifth of all, decide which weights the model gets. */
static void test_other_images_of_selection(void **state)
{
    (void)state;
    unlink(in_folder("changing/t10k-images-idx3-ubyte"));
    unlink(in_folder("changing/t10k-labels-idx1-ubyte"));
    make_data("changing", 150, 0);
    train(judging(), (stint_train_desc){0}, STINT_OK);
    for (changed_image = 0; changed_image < 20; changed_image++) {
        change_images("changing", spoil);
        train(judging(), (stint_train_desc){.resume = true}, STINT_E_INPUT);
        assert_non_null(strstr(stint_last_error(), "was trained on other images"));
        change_images("changing", spoil);
    }
    train(judging(), (stint_train_desc){.resume = true}, STINT_OK);
}

static void add_words(sti_sha256 *sha, const sti_tensor_file *f, const char *key)
{
    const char *text = sti_tensor_file_text(f, key);
    sti_sha256_add(sha, key, strlen(key) + 1);
    sti_sha256_add(sha, text, strlen(text) + 1);
}

/* The checkpoint as builds without that hash wrote it. */
static void forget_images(const char *name)
{
    static const char *const keys[] = {
        STI_META_VERSION, STI_META_KIND,  STI_META_NUMERICS, STI_META_NETWORK,
        STI_META_CLASSES, STI_META_IMAGE, STI_META_MEAN,     STI_META_DEVIATION,
        STI_META_RECIPE,  STI_META_COUNT};
    enum { KEYS = sizeof keys / sizeof keys[0] };
    sti_tensor_row rows[64];
    sti_tensor_text texts[64];
    char path[512], hex[65];
    int count = 0;
    sti_sha256 sha;
    sti_tensor_file *f;
    snprintf(path, sizeof path, "%s", in_folder(name));
    assert_int_equal(sti_tensor_file_open(path, &f), STINT_OK);
    assert_non_null(sti_tensor_file_text(f, STI_META_IMAGES));
    const int64_t tensors = sti_tensor_file_count(f);
    sti_sha256_init(&sha);
    for (int64_t i = 0; i < tensors; i++) {
        rows[i] = *sti_tensor_file_row(f, i);
        void *data = malloc(rows[i].bytes);
        assert_int_equal(sti_tensor_file_read(f, &rows[i], data), STINT_OK);
        sti_sha256_add(&sha, data, rows[i].bytes);
        rows[i].data = data;
    }
    for (int i = 0; i < KEYS + sti_position_field_count; i++) {
        const char *key = i < KEYS ? keys[i] : sti_position_fields[i - KEYS].key;
        add_words(&sha, f, key);
        texts[count++] = (sti_tensor_text){key, sti_tensor_file_text(f, key)};
    }
    sti_sha256_hex(&sha, hex);
    texts[count++] = (sti_tensor_text){STI_META_CHECKPOINT, hex};
    assert_int_equal(sti_tensor_file_write(path, rows, tensors, texts, count),
                     STINT_OK);
    for (int64_t i = 0; i < tensors; i++)
        free((void *)(uintptr_t)rows[i].data);
    sti_tensor_file_close(f);
}

static char logged[4096];

static void keep_log(void *user, stint_log_level level, const char *text)
{
    (void)user;
    (void)level;
    strncat(logged, text, sizeof logged - strlen(logged) - 1);
    strncat(logged, "\n", sizeof logged - strlen(logged) - 1);
}

static void test_checkpoint_without_hash(void **state)
{
    (void)state;
    train(recipe("older", "train.steps", "4"), (stint_train_desc){0}, STINT_OK);
    forget_images("older/checkpoints/step-00000004.safetensors");
    stint_set_log(keep_log, NULL);
    train(recipe("older", "train.steps", "4"), (stint_train_desc){.resume = true},
          STINT_OK);
    stint_set_log(NULL, NULL);
    assert_non_null(strstr(logged, "whether they are still the same is not known"));
    assert_non_null(strstr(logged, "resuming after step 4 of 4"));
    logged[0] = '\0';
}

static void test_nothing_to_resume(void **state)
{
    (void)state;
    stint_train_result r =
        train(recipe("new", NULL, NULL), (stint_train_desc){.resume = true}, STINT_OK);
    assert_string_equal(r.weights_sha256, reference);
}

static void damage(const char *name, long offset_from_end, bool cut)
{
    char path[512];
    snprintf(path, sizeof path, "%s", in_folder(name));
    void *data;
    size_t n_bytes;
    assert_int_equal(sti_file_read(path, 1 << 26, &data, &n_bytes), STINT_OK);
    ((uint8_t *)data)[n_bytes - (size_t)offset_from_end] ^= 4;
    assert_int_equal(
        sti_file_write(path, data, cut ? n_bytes - (size_t)offset_from_end : n_bytes),
        STINT_OK);
    sti_free(data);
}

static void test_damaged_checkpoints(void **state)
{
    (void)state;
    train(recipe("damaged", NULL, NULL), (stint_train_desc){0}, STINT_OK);
    damage("damaged/checkpoints/step-00000018.safetensors", 100, false);
    damage("damaged/checkpoints/step-00000016.safetensors", 1000, true);
    stint_set_log(keep_log, NULL);
    stint_train_result r = train(recipe("damaged", NULL, NULL),
                                 (stint_train_desc){.resume = true}, STINT_OK);
    stint_set_log(NULL, NULL);
    assert_string_equal(r.weights_sha256, reference);
    assert_non_null(strstr(logged, "step-00000018.safetensors: it is damaged"));
    assert_non_null(strstr(logged, "step-00000016.safetensors: "));
    assert_non_null(strstr(logged, "after step 12"));
}

static void test_every_checkpoint_damaged(void **state)
{
    (void)state;
    train(recipe("ruined", "train.steps", "4"), (stint_train_desc){0}, STINT_OK);
    damage("ruined/checkpoints/step-00000004.safetensors", 10, false);
    stint_train_result r = train(recipe("ruined", "train.steps", "4"),
                                 (stint_train_desc){.resume = true}, STINT_OK);
    stint_train_result again = train(recipe("ruined", "train.steps", "4"),
                                     (stint_train_desc){.force = true}, STINT_OK);
    assert_string_equal(r.weights_sha256, again.weights_sha256);
}

static void save_now(void *user, const stint_train_progress *p)
{
    (void)user;
    if (p->step > 0)
        stint_stop(STINT_OK);
}

static void test_save_on_request(void **state)
{
    (void)state;
    stint_train_result r = train(recipe("saved", "run.keep", "100"),
                                 (stint_train_desc){.progress = save_now}, STINT_OK);
    assert_string_equal(r.weights_sha256, reference);
    assert_true(count_files("saved/checkpoints") >= 5);
}

/* The number of a field in the line of epoch 1; a test of the log fails without it. */
static double in_first_epoch(const char *out, const char *field)
{
    char name[64], line[8192];
    double number = -1;
    snprintf(name, sizeof name, "%s/log.jsonl", out);
    FILE *f = fopen(in_folder(name), "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        const char *at = strstr(line, field);
        if (strstr(line, "\"event\": \"epoch\"") == NULL &&
            strstr(line, "\"event\":\"epoch\"") == NULL)
            continue;
        assert_non_null(at);
        number = strtod(strchr(at + strlen(field), ':') + 1, NULL);
        break;
    }
    fclose(f);
    assert_true(number > 0);
    return number;
}

/* A rate is of what this process did: resumed after 4 of an epoch's 6 steps it trains
 * on two batches, in the seconds that are beside it in the log. */
static void test_rate_after_a_resume(void **state)
{
    char name[64];
    (void)state;
    train(recipe("rate", "run.keep", "10"), (stint_train_desc){0}, STINT_OK);
    assert_true(fabs(in_first_epoch("rate", "images_per_s") *
                         in_first_epoch("rate", "seconds") -
                     6 * 24) < 1);
    for (int step = 6; step <= 18; step++) {
        snprintf(name, sizeof name, "rate/checkpoints/step-%08d.safetensors", step);
        unlink(in_folder(name));
    }
    train(recipe("rate", "run.keep", "10"), (stint_train_desc){.resume = true},
          STINT_OK);
    assert_true(fabs(in_first_epoch("rate", "images_per_s") *
                         in_first_epoch("rate", "seconds") -
                     2 * 24) < 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_stop_and_resume),
        cmocka_unit_test(test_more_time),
        cmocka_unit_test(test_stop_before_start),
        cmocka_unit_test(test_keeps_the_newest),
        cmocka_unit_test(test_finished_run_is_resumed_at_once),
        cmocka_unit_test(test_never_replaces_silently),
        cmocka_unit_test(test_other_recipe),
        cmocka_unit_test(test_end_moved),
        cmocka_unit_test(test_end_moved_in_warmup),
        cmocka_unit_test(test_end_moved_after_selection),
        cmocka_unit_test(test_keys_that_may_change),
        cmocka_unit_test(test_other_images),
        cmocka_unit_test(test_other_images_of_selection),
        cmocka_unit_test(test_checkpoint_without_hash),
        cmocka_unit_test(test_nothing_to_resume),
        cmocka_unit_test(test_rate_after_a_resume),
        cmocka_unit_test(test_damaged_checkpoints),
        cmocka_unit_test(test_every_checkpoint_damaged),
        cmocka_unit_test(test_save_on_request),
    };
    return cmocka_run_group_tests(tests, set_up_images, tear_down);
}
