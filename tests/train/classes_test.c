/* Classes that count differently, come equally often, or are others than those of the
 * model that a training begins with. */
#include <math.h>

#include "base/fail.h"
#include "store/safetensors.h"
#include "train/class_weights.h"
#include "train/inputs.h"
#include "train_support.h"

static char told[1024];

static void keep_told(void *user, stint_log_level level, const char *text)
{
    (void)user;
    (void)level;
    if (strncmp(text, "train.start: ", 13) == 0)
        snprintf(told, sizeof told, "%s", text);
}

/* Seven of ten images are of class 0, two of class 1 and one of class 2. */
static int label_of_ten(int i)
{
    static const int label[] = {0, 0, 1, 0, 0, 2, 0, 1, 0, 0};
    return label[i % 10];
}

static int label_of_three(int i)
{
    return i % 3;
}

static void make_labelled(const char *name, int (*label_of)(int i))
{
    const char *folder = in_folder(name);
    assert_int_equal(sti_dir_create(folder), STINT_OK);
    write_labelled(folder, "train", 120, 2000, label_of);
    write_labelled(folder, "t10k", 30, 600000, label_of);
}

static int set_up(void **state)
{
    set_up_images(state);
    make_labelled("uneven", label_of_ten);
    make_labelled("three", label_of_three);
    return 0;
}

/* ---- weights ---- */

static void weights_of(const char *text, bool evenly, float out[3])
{
    stint_data *data = NULL;
    const stint_data_desc desc = {.path = in_folder("uneven")};
    assert_int_equal(stint_data_open(&desc, &data), STINT_OK);
    assert_int_equal(sti_class_weights_make(text, data, evenly, out), STINT_OK);
    stint_data_close(data);
}

/* Shares of the classes are 0.7, 0.2 and 0.1. */
static void weights_by_hand(void **state)
{
    float w[3];
    (void)state;
    weights_of("balanced", false, w);
    assert_true(fabs((double)w[0] - 1 / 2.1) < 1e-7);
    assert_true(fabs((double)w[1] - 1 / 0.6) < 1e-7);
    assert_true(fabs((double)w[2] - 1 / 0.3) < 1e-6);
    weights_of("1, 2,0.5", false, w); /* mean 0.7 + 0.4 + 0.05 */
    assert_true(fabs((double)w[0] - 1 / 1.15) < 1e-7);
    assert_true(fabs((double)w[1] - 2 / 1.15) < 1e-7);
    assert_true(fabs((double)w[2] - 0.5 / 1.15) < 1e-7);
    weights_of("1,2,0", true, w); /* an epoch has a third of each */
    assert_true(w[0] == 1 && w[1] == 2 && w[2] == 0);
}

static stint_recipe *uneven(const char *out, const char *key, const char *value)
{
    return make_recipe(out, "data.path", in_folder("uneven"), "train.epochs", "1", key,
                       value, NULL);
}

/* Weights that are all the same are none, to the last bit; others are not. */
static void equal_weights_are_none(void **state)
{
    static const char *const same[] = {"none", "1,1,1", "7,7,7"};
    stint_train_result first = {.seed = 0}, r;
    (void)state;
    for (int i = 0; i < 3; i++) {
        r = train(uneven("same", "loss.class_weights", same[i]),
                  (stint_train_desc){.force = true}, STINT_OK);
        if (i == 0)
            first = r;
        assert_string_equal(r.weights_sha256, first.weights_sha256);
    }
    r = train(uneven("same", "loss.class_weights", "1,1,1.5"),
              (stint_train_desc){.force = true}, STINT_OK);
    assert_string_not_equal(r.weights_sha256, first.weights_sha256);
}

/* Neither threads nor lanes nor a stop in the middle of an epoch change a bit. */
static void same_bits_however_it_runs(void **state)
{
    static const char *const keys[][2] = {{"data.sampling", "balanced"},
                                          {"loss.class_weights", "balanced"},
                                          {"loss.class_weights", "0.5,1,4"}};
    (void)state;
    for (int k = 0; k < 3; k++) {
        stint_train_result r[4];
        for (int i = 0; i < 4; i++) {
            const bool resumed = i == 3;
            if (resumed)
                train(make_recipe("bits", "data.path", in_folder("uneven"), keys[k][0],
                                  keys[k][1], "train.steps", "7", NULL),
                      (stint_train_desc){.force = true}, STINT_OK);
            r[i] = train(
                make_recipe("bits", "data.path", in_folder("uneven"), keys[k][0],
                            keys[k][1], "train.steps", "13", "run.threads",
                            i == 1 ? "3" : "1", "run.lanes", i == 2 ? "2" : "1", NULL),
                (stint_train_desc){.force = !resumed, .resume = resumed}, STINT_OK);
            assert_string_equal(r[i].weights_sha256, r[0].weights_sha256);
        }
    }
}

static void bad_keys_are_refused(void **state)
{
    static const struct {
        const char *key, *value;
        stint_status status;
        const char *words;
    } cases[] = {
        {"loss.class_weights", "1,2", STINT_E_INPUT,
         "2 weights, but "}, /* the path of the data */
        {"loss.class_weights", "1,2", STINT_E_INPUT,
         "has 3 classes, from '0' to '2'; give one a class"},
        {"loss.class_weights", "1,2,3,4", STINT_E_INPUT, "4 weights, but "},
        {"loss.class_weights", "1,-2,3", STINT_E_USAGE, "'1,-2,3' is neither none"},
        {"loss.class_weights", "1,nan,3", STINT_E_USAGE, "is neither none"},
        {"loss.class_weights", "1,inf,3", STINT_E_USAGE, "is neither none"},
        {"loss.class_weights", "1,1e7,3", STINT_E_USAGE, "from 0 to 1000000"},
        {"loss.class_weights", "even", STINT_E_USAGE, "is neither none"},
        {"loss.class_weights", "0,0,0", STINT_E_INPUT, "nothing would be learnt"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused(uneven("bad", cases[i].key, cases[i].value), cases[i].status,
                cases[i].words);
    stint_recipe *r = uneven("bad", "train.epochs", "1");
    assert_int_equal(stint_recipe_set(r, "loss.class_weights", "1,,3"), STINT_E_USAGE);
    assert_int_equal(stint_recipe_set(r, "loss.class_weights", "1,2,"), STINT_E_USAGE);
    stint_recipe_destroy(r);
    refused(make_recipe("bad", "data.path", in_folder("uneven"), "loss.class_weights",
                        "balanced", "data.sampling", "balanced", NULL),
            STINT_E_USAGE, "would count rare classes twice");
    assert_false(sti_path_is_dir(in_folder("bad")));
}

/* Every allocation on the way to the weights may fail. */
static void memory_that_runs_out(void **state)
{
    static const char *const weights[] = {"3,1,1", "balanced"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        stint_status st = STINT_E_MEMORY;
        const size_t before = sti_alloc_now_bytes();
        for (int n = 1; st != STINT_OK; n++) {
            stint_recipe *r = uneven("memory", "loss.class_weights", weights[k]);
            sti_inputs in;
            assert_int_equal(sti_inputs_open_data(r, &in), STINT_OK);
            sti_alloc_fail_nth(n);
            st = sti_inputs_open_models(&in);
            sti_alloc_fail_nth(0);
            if (st != STINT_OK && st != STINT_E_MEMORY)
                fail_msg("allocation %d: status %d: %s", n, (int)st,
                         stint_last_error());
            sti_inputs_close(&in);
            stint_recipe_destroy(r);
            assert_true(n < 500);
        }
        assert_int_equal(sti_alloc_now_bytes(), before);
    }
}

/* ---- a new classifier ---- */

static sti_tensor_file *open_weights(const char *run)
{
    char path[600];
    sti_tensor_file *file = NULL;
    snprintf(path, sizeof path, "%s/model.safetensors", in_folder(run));
    assert_int_equal(sti_tensor_file_open(path, &file), STINT_OK);
    return file;
}

static bool same_tensor(const sti_tensor_file *a, const sti_tensor_file *b,
                        const char *name)
{
    const sti_tensor_row *x = sti_tensor_file_find(a, name);
    const sti_tensor_row *y = sti_tensor_file_find(b, name);
    assert_non_null(x);
    assert_non_null(y);
    if (x->bytes != y->bytes)
        return false;
    char *p = malloc(x->bytes), *q = malloc(y->bytes);
    assert_int_equal(sti_tensor_file_read(a, x, p), STINT_OK);
    assert_int_equal(sti_tensor_file_read(b, y, q), STINT_OK);
    const bool same = memcmp(p, q, x->bytes) == 0;
    free(p);
    free(q);
    return same;
}

/* Three classes from a network of four: with a rate that moves nothing, the classifier
 * is that of a new run of the same seed, and all else that of the model. */
static void all_is_kept_but_the_classifier(void **state)
{
    (void)state;
    train(make_recipe("base", "train.steps", "4", NULL), (stint_train_desc){0},
          STINT_OK);
    stint_set_log(keep_told, NULL);
    for (int i = 0; i < 2; i++)
        train(make_recipe(i ? "new" : "next", "data.path", in_folder("three"),
                          "train.steps", "1", "optimizer.lr", "1e-30",
                          "optimizer.weight_decay", "0", i ? NULL : "train.start",
                          in_folder("base"), NULL),
              (stint_train_desc){0}, STINT_OK);
    stint_set_log(NULL, NULL);
    assert_non_null(strstr(told, "tells 4 classes apart ('0' to '3'), these images are "
                                 "of 3 ('0' to '2')"));
    sti_tensor_file *base = open_weights("base"), *next = open_weights("next"),
                    *new = open_weights("new");
    int64_t kept = 0, begun = 0;
    for (int64_t i = 0; i < sti_tensor_file_count(next); i++) {
        const sti_tensor_row *row = sti_tensor_file_row(next, i);
        const bool last = row->dim[row->rank - 1] == 3;
        const bool bias = row->rank == 1;
        if (last && !bias)
            assert_true(same_tensor(next, new, row->name));
        else if (!last && !bias) /* biases begin at 0, which a rate of 1e-30 moves */
            assert_true(same_tensor(next, base, row->name));
        kept += !last;
        begun += last;
    }
    assert_int_equal(begun, 2);
    assert_int_equal(kept, sti_tensor_file_count(base) - 2);
    sti_tensor_file_close(base);
    sti_tensor_file_close(next);
    sti_tensor_file_close(new);
}

/* The same classes: nothing is said, and nothing begins anew. */
static void the_same_classes_are_kept_whole(void **state)
{
    (void)state;
    told[0] = '\0';
    stint_set_log(keep_told, NULL);
    train(make_recipe("whole", "train.start", in_folder("base"), "train.steps", "1",
                      "optimizer.lr", "1e-30", "optimizer.weight_decay", "0", NULL),
          (stint_train_desc){0}, STINT_OK);
    stint_set_log(NULL, NULL);
    assert_string_equal(told, "");
    sti_tensor_file *base = open_weights("base"), *whole = open_weights("whole");
    for (int64_t i = 0; i < sti_tensor_file_count(whole); i++) {
        const sti_tensor_row *row = sti_tensor_file_row(whole, i);
        if (row->rank > 1)
            assert_true(same_tensor(whole, base, row->name));
    }
    sti_tensor_file_close(base);
    sti_tensor_file_close(whole);
}

/* A run with a new classifier is stopped and goes on to the same bits; another network
 * is refused in words. */
static void a_new_classifier_is_resumed(void **state)
{
    char sha[65] = "";
    (void)state;
    for (int i = 0; i < 3; i++) {
        stint_train_result r = train(
            make_recipe("on", "data.path", in_folder("three"), "train.start",
                        in_folder("base"), "train.steps", i == 1 ? "3" : "8", NULL),
            (stint_train_desc){.force = i < 2, .resume = i == 2}, STINT_OK);
        if (i == 0)
            memcpy(sha, r.weights_sha256, sizeof sha);
        if (i == 2)
            assert_string_equal(r.weights_sha256, sha);
    }
    refused(make_recipe("other", "data.path", in_folder("three"), "train.start",
                        in_folder("base"), "model.name", "resnet8", "model.width", "8",
                        NULL),
            STINT_E_INPUT, "the recipe's is resnet8 of width 8 (");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_by_hand),
        cmocka_unit_test(equal_weights_are_none),
        cmocka_unit_test(same_bits_however_it_runs),
        cmocka_unit_test(bad_keys_are_refused),
        cmocka_unit_test(memory_that_runs_out),
        cmocka_unit_test(all_is_kept_but_the_classifier),
        cmocka_unit_test(the_same_classes_are_kept_whole),
        cmocka_unit_test(a_new_classifier_is_resumed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
