/* The file half of checkpoints: texts and positions that come back to the bit, tensors
 * of a network listed, written and read, and a folder from which old files go. */
#include "store/checkpoint_file.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"

static char folder[] = "/tmp/stint_checkpoint_file_XXXXXX";

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[300];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? 0 : -1;
}

static const char *inside(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void test_texts(void **state)
{
    const float floats[] = {0.1f, -3, 1e-20f};
    const int64_t ints[] = {32, -7, 3};
    double back[3];
    sti_meta_texts t = {.count = 0};
    (void)state;
    sti_meta_add(&t, "a", "plain");
    sti_meta_add_int(&t, "b", INT64_C(-9007199254740993));
    sti_meta_add_float(&t, "c", (double)NAN);
    sti_meta_add_floats(&t, "d", floats, 3);
    sti_meta_add_ints(&t, "e", ints, 3);
    assert_int_equal(t.count, 5);
    assert_string_equal(sti_meta_find(&t, "a"), "plain");
    assert_string_equal(sti_meta_find(&t, "b"), "-9007199254740993");
    assert_string_equal(sti_meta_find(&t, "c"), "");
    assert_string_equal(sti_meta_find(&t, "e"), "32 -7 3");
    assert_null(sti_meta_find(&t, "f"));
    assert_true(sti_meta_numbers(sti_meta_find(&t, "d"), 3, back));
    for (int i = 0; i < 3; i++)
        assert_true((float)back[i] == floats[i]);
    assert_false(sti_meta_numbers(sti_meta_find(&t, "d"), 2, back));
    assert_false(sti_meta_numbers("1 2", 3, back));
    assert_false(sti_meta_numbers("1 x", 2, back));
    assert_false(sti_meta_numbers("", 1, back));
    assert_false(sti_meta_numbers(NULL, 1, back));
}

static void write_texts(const sti_meta_texts *t, const char *path)
{
    const float x = 0;
    const sti_tensor_row row = {
        .name = "x", .rank = 1, .dim = {1}, .bytes = sizeof x, .data = &x};
    assert_int_equal(sti_tensor_file_write(path, &row, 1, t->row, t->count), STINT_OK);
}

static const sti_position somewhere = {.step = 41,
                                       .epoch_loss = 1.0 / 3,
                                       .epoch_correct = 17,
                                       .epoch_images = 128,
                                       .line_loss = 1e-300,
                                       .line_images = 64,
                                       .train_loss = 2.5,
                                       .train_accuracy = 0.1,
                                       .test_loss = 0.7,
                                       .test_accuracy = 0.25,
                                       .chosen_step = 40,
                                       .chosen_right = 9,
                                       .chosen_others = 3,
                                       .better_step = 20,
                                       .chosen_epoch = 4,
                                       .better_epoch = 2,
                                       .grow_accumulate = 6,
                                       .grow_step = 30,
                                       .grow_epoch = 2,
                                       .grow_image = 96,
                                       .noise_squares = 1e-9 / 3,
                                       .noise_trace = 0.3,
                                       .noise_weight = 1.0 / 7};

static void test_position(void **state)
{
    sti_meta_texts t = {.count = 0};
    sti_tensor_file *f = NULL;
    sti_position back;
    (void)state;
    sti_position_add(&somewhere, false, &t);
    assert_int_equal(t.count, sti_position_field_count);
    write_texts(&t, inside("position"));
    memset(&back, 0xff, sizeof back);
    assert_int_equal(sti_tensor_file_open(inside("position"), &f), STINT_OK);
    assert_int_equal(sti_position_read(f, &back), STINT_OK);
    assert_memory_equal(&back, &somewhere, sizeof back);
    sti_tensor_file_close(f);
}

/* What is not known is NaN; a file of an older build lacks the late fields; one that
 * lacks another, or holds none, is refused. */
static void test_position_of_other_files(void **state)
{
    sti_position p = somewhere, back;
    sti_meta_texts t = {.count = 0};
    sti_tensor_file *f = NULL;
    (void)state;
    p.test_loss = (double)NAN;
    sti_position_add(&p, false, &t);
    /* Steps and epochs of the best and seven of growing batches are the last. */
    t.count -= 11;
    write_texts(&t, inside("older"));
    assert_int_equal(sti_tensor_file_open(inside("older"), &f), STINT_OK);
    assert_int_equal(sti_position_read(f, &back), STINT_OK);
    assert_true(isnan(back.test_loss));
    assert_int_equal(back.better_step, 0);
    assert_int_equal(back.chosen_epoch, 0);
    assert_int_equal(back.grow_accumulate, 0);
    assert_true(back.noise_weight == 0);
    sti_tensor_file_close(f);

    t.count = 0;
    sti_position_add(&somewhere, true, &t); /* a model file's */
    write_texts(&t, inside("facts"));
    assert_int_equal(sti_tensor_file_open(inside("facts"), &f), STINT_OK);
    assert_int_equal(sti_position_read(f, &back), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "its position is incomplete"));
    sti_tensor_file_close(f);

    t.count = 0;
    p.step = -1;
    sti_position_add(&p, false, &t);
    write_texts(&t, inside("negative"));
    assert_int_equal(sti_tensor_file_open(inside("negative"), &f), STINT_OK);
    assert_int_equal(sti_position_read(f, &back), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "its step is below 0"));
    sti_tensor_file_close(f);

    t.row[0].text = "many"; /* the step */
    write_texts(&t, inside("words"));
    assert_int_equal(sti_tensor_file_open(inside("words"), &f), STINT_OK);
    assert_int_equal(sti_position_read(f, &back), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "its position cannot be read"));
    sti_tensor_file_close(f);
}

/* ---- tensors of a network ---- */

typedef struct blocks {
    sti_network network;
    float *params, *other;
    size_t bytes;
} blocks;

static void make_blocks(blocks *b)
{
    const sti_network_desc desc = {.name = "lenet5",
                                   .model = {.classes = 10},
                                   .height = 28,
                                   .width = 28,
                                   .channels = 1};
    *b = (blocks){.bytes = 0};
    assert_int_equal(sti_network_build(&desc, STINT_EVAL, 1, &b->network), STINT_OK);
    assert_int_equal(sti_network_plan(&b->network, 1), STINT_OK);
    b->bytes = b->network.plan->region_bytes[STI_REGION_PARAM];
    b->params = sti_alloc(b->bytes, "test");
    b->other = sti_alloc(b->bytes, "test");
    for (size_t i = 0; i < b->bytes / sizeof(float); i++)
        b->params[i] = (float)i + 0.5f;
}

static void free_blocks(blocks *b)
{
    sti_free(b->params);
    sti_free(b->other);
    sti_network_fini(&b->network);
}

/* Written from one block, read into another: every byte of every tensor is there. */
static void test_tensors(void **state)
{
    sti_arena *arena = sti_arena_create("test");
    sti_tensor_list out, in;
    sti_tensor_file *f = NULL;
    char sha_out[65], sha_in[65];
    sti_sha256 sha;
    blocks b;
    (void)state;
    make_blocks(&b);
    assert_int_equal(sti_tensor_list_init(&out, arena, 40), STINT_OK);
    assert_int_equal(sti_tensor_list_init(&in, arena, 40), STINT_OK);
    assert_int_equal(sti_tensor_list_add_network(&out, &b.network, STI_ROLE_PARAM,
                                                 STI_TENSOR_MOMENT_0, b.params),
                     STINT_OK);
    assert_int_equal(sti_tensor_list_add_network(&in, &b.network, STI_ROLE_PARAM,
                                                 STI_TENSOR_MOMENT_0, b.other),
                     STINT_OK);
    assert_int_equal(out.count, 10); /* five layers, weights and biases */
    assert_memory_equal(out.rows[0].name, "optimizer.0.", 12);
    assert_int_equal(
        sti_tensor_file_write(inside("tensors"), out.rows, out.count, NULL, 0),
        STINT_OK);
    assert_int_equal(sti_tensor_file_open(inside("tensors"), &f), STINT_OK);
    for (int64_t i = 0; i < in.count; i++)
        assert_int_equal(sti_tensor_list_read(&in, i, f), STINT_OK);
    sti_sha256_init(&sha);
    sti_tensor_list_add_sha256(&out, 0, out.count, &sha);
    sti_sha256_hex(&sha, sha_out);
    sti_sha256_init(&sha);
    sti_tensor_list_add_sha256(&in, 0, in.count, &sha);
    sti_sha256_hex(&sha, sha_in);
    assert_string_equal(sha_out, sha_in);
    /* Another shape, and a name that is not there. */
    in.rows[0].dim[0]++;
    assert_int_equal(sti_tensor_list_read(&in, 0, f), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "has no tensor 'optimizer.0."));
    in.rows[1].name = "nowhere";
    assert_int_equal(sti_tensor_list_read(&in, 1, f), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "'nowhere' of the right shape"));
    sti_tensor_file_close(f);
    free_blocks(&b);
    sti_arena_destroy(arena);
}

/* ---- files ---- */

static void put(const char *name)
{
    assert_int_equal(sti_file_write(inside(name), "x", 1), STINT_OK);
}

static void test_files(void **state)
{
    static const int64_t steps[] = {7, 12, 300, 123456789};
    sti_arena *arena = sti_arena_create("test");
    char name[STI_CHECKPOINT_NAME_BYTES], **names = NULL;
    int64_t count = -1;
    (void)state;
    assert_int_equal(sti_checkpoint_list(arena, inside("none"), &names, &count),
                     STINT_OK);
    assert_int_equal(count, 0);
    for (int i = 3; i >= 0; i--) {
        sti_checkpoint_name(steps[i], name);
        put(name);
    }
    put("step-1.safetensors.part");
    put("step-x.safetensors");
    assert_int_equal(sti_checkpoint_list(arena, folder, &names, &count), STINT_OK);
    assert_int_equal(count, 4);
    for (int i = 0; i < 4; i++) { /* nine digits come after eight */
        sti_checkpoint_name(steps[i], name);
        assert_string_equal(names[i], name);
    }
    /* Two up to step 300 stay, and what is newer than it. */
    assert_int_equal(sti_checkpoint_remove_old(folder, "step-00000300.safetensors", 2),
                     STINT_OK);
    assert_int_equal(sti_checkpoint_list(arena, folder, &names, &count), STINT_OK);
    assert_int_equal(count, 3);
    assert_string_equal(names[0], "step-00000012.safetensors");
    assert_string_equal(names[2], "step-123456789.safetensors");
    assert_true(sti_path_is_file(inside("step-x.safetensors")));
    sti_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_position),
        cmocka_unit_test(test_position_of_other_files),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
