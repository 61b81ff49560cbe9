/* The records of an event file, read back by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "train/tensorboard.h"

static uint64_t little(const uint8_t *at, int n_bytes)
{
    uint64_t value = 0;
    for (int i = n_bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

static uint32_t masked(const uint8_t *at, size_t n_bytes)
{
    uint32_t crc = sti_crc32c(0, at, n_bytes);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

/* Checks the frame; *at moves behind the record. */
static const uint8_t *record(const uint8_t **at, const uint8_t *end, size_t *length)
{
    assert_true(end - *at >= 16);
    *length = (size_t)little(*at, 8);
    assert_int_equal(little(*at + 8, 4), masked(*at, 8));
    const uint8_t *body = *at + 12;
    assert_true((size_t)(end - body) >= *length + 4);
    assert_int_equal(little(body + *length, 4), masked(body, *length));
    *at = body + *length + 4;
    return body;
}

static void test_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/stint_board_XXXXXX";
    sti_tensorboard *board;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(sti_tensorboard_open(folder, &board), STINT_OK);
    assert_int_equal(sti_tensorboard_scalar(board, "loss/train", 300, 1.5), STINT_OK);
    assert_int_equal(sti_tensorboard_scalar(board, "x", 301, (double)NAN), STINT_OK);
    assert_int_equal(sti_tensorboard_scalar(NULL, "x", 301, 1), STINT_OK);
    sti_tensorboard_close(board);

    sti_arena *arena = sti_arena_create("test");
    char **names;
    int64_t count;
    void *data;
    size_t n_bytes, length;
    assert_int_equal(sti_dir_list(arena, folder, &names, &count), STINT_OK);
    assert_int_equal(count, 1);
    assert_non_null(strstr(names[0], "tfevents"));
    char *path = sti_path_join(arena, folder, names[0]);
    assert_int_equal(sti_file_read(path, 4096, &data, &n_bytes), STINT_OK);
    const uint8_t *at = data, *end = at + n_bytes;
    const uint8_t *body = record(&at, end, &length);
    assert_int_equal(body[0], 0x09); /* wall_time */
    assert_int_equal(body[9], 0x1a); /* file_version */
    assert_memory_equal(body + 11, "brain.Event:2", 13);
    body = record(&at, end, &length);
    static const uint8_t want[] = {0x10, 0xac, 0x02,                /* step 300 */
                                   0x2a, 19,   0x0a, 17,  0x0a, 10, /* Summary, Value */
                                   'l',  'o',  's',  's', '/',  't', /* tag */
                                   'r',  'a',  'i',  'n', 0x15, 0,
                                   0,    0xc0, 0x3f}; /* 1.5f */
    assert_int_equal(length, 9 + sizeof want);
    assert_memory_equal(body + 9, want, sizeof want);
    assert_ptr_equal(at, end); /* the NaN left nothing */
    sti_free(data);
    remove(path);
    remove(folder);
    sti_arena_destroy(arena);
}

static void test_unwritable(void **state)
{
    (void)state;
    sti_tensorboard *board;
    assert_int_equal(sti_tensorboard_open("/proc/stint", &board), STINT_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_unwritable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
