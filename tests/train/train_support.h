/* Tiny data and short runs for the tests of training. */
#ifndef STI_TRAIN_SUPPORT_H
#define STI_TRAIN_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/recipe.h"
#include "base/rng.h"
#include "stint/train.h"

enum { SIDE = 28, CLASSES = 4 };

static char support_folder[64];

static inline void make_folder(void)
{
    strcpy(support_folder, "/tmp/stint_train_XXXXXX");
    assert_non_null(mkdtemp(support_folder));
}

static inline void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", support_folder);
    if (system(command) != 0)
        fprintf(stderr, "%s is left\n", support_folder);
}

static inline const char *in_folder(const char *name)
{
    static char path[4][512];
    static int next;
    char *at = path[next++ % 4];
    snprintf(at, sizeof path[0], "%s/%s", support_folder, name);
    return at;
}

static inline void put_big(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* A bar whose direction is the class, at a random place, over noise. */
static inline void draw(uint8_t *pixels, int label, uint32_t seed)
{
    uint32_t r[4];
    sti_random4(seed, STI_STREAM_TEST, 1, 0, r);
    int at = 6 + (int)sti_below(r[0], SIDE - 12);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            int d = label == 0   ? y - at
                    : label == 1 ? x - at
                    : label == 2 ? x - y + (at - SIDE / 2) / 2
                                 : x + y - SIDE - (at - SIDE / 2) / 2;
            uint32_t noise[4];
            sti_random4(seed, STI_STREAM_TEST, 2, (uint64_t)(y * SIDE + x), noise);
            pixels[y * SIDE + x] =
                (uint8_t)((d >= -1 && d <= 1 ? 150 : 0) + sti_below(noise[0], 100));
        }
}

/* label_of: of image i. */
static inline void write_labelled(const char *folder, const char *prefix, int count,
                                  uint32_t seed, int (*label_of)(int i))
{
    char path[600];
    size_t image_bytes = 16 + (size_t)count * SIDE * SIDE;
    uint8_t *images = calloc(1, image_bytes), *labels = calloc(1, 8 + (size_t)count);
    put_big(images, 0x803);
    put_big(images + 4, (uint32_t)count);
    put_big(images + 8, SIDE);
    put_big(images + 12, SIDE);
    put_big(labels, 0x801);
    put_big(labels + 4, (uint32_t)count);
    for (int i = 0; i < count; i++) {
        int label = label_of(i);
        labels[8 + i] = (uint8_t)label;
        draw(images + 16 + (size_t)i * SIDE * SIDE, label, seed + (uint32_t)i);
    }
    snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte", folder, prefix);
    assert_int_equal(sti_file_write(path, images, image_bytes), STINT_OK);
    snprintf(path, sizeof path, "%s/%s-labels-idx1-ubyte", folder, prefix);
    assert_int_equal(sti_file_write(path, labels, 8 + (size_t)count), STINT_OK);
    free(images);
    free(labels);
}

static inline int label_in_turn(int i)
{
    return i % CLASSES;
}

static inline void write_idx(const char *folder, const char *prefix, int count,
                             uint32_t seed)
{
    write_labelled(folder, prefix, count, seed, label_in_turn);
}

/* support_folder/data with so many images; test_count 0: no test split. */
static inline void make_data(const char *name, int train_count, int test_count)
{
    const char *folder = in_folder(name);
    assert_int_equal(sti_dir_create(folder), STINT_OK);
    write_idx(folder, "train", train_count, 1000);
    if (test_count > 0)
        write_idx(folder, "t10k", test_count, 500000);
}

/* Set-up of a group of tests on the same few images. */
static inline int set_up_images(void **state)
{
    (void)state;
    make_folder();
    make_data("data", 150, 50);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    remove_folder();
    return 0;
}

/* A recipe on support_folder/data into support_folder/out, then "key", "value", ...,
 * NULL. */
static inline stint_recipe *make_recipe(const char *out, ...)
{
    stint_recipe *r;
    va_list args;
    assert_int_equal(stint_recipe_create(&r), STINT_OK);
    const char *const base[][2] = {
        {"model.name", "lenet5"},    {"data.path", in_folder("data")},
        {"run.out", in_folder(out)}, {"train.batch", "24"},
        {"train.shards", "6"},       {"train.epochs", "2"},
        {"optimizer.lr", "0.02"},    {"run.threads", "1"}};
    for (size_t i = 0; i < sizeof base / sizeof base[0]; i++)
        assert_int_equal(stint_recipe_set(r, base[i][0], base[i][1]), STINT_OK);
    va_start(args, out);
    for (const char *key; (key = va_arg(args, const char *));) {
        const char *value = va_arg(args, const char *);
        if (stint_recipe_set(r, key, value) != STINT_OK)
            fail_msg("%s = %s: %s", key, value, stint_last_error());
    }
    va_end(args);
    return r;
}

/* Train and free the recipe; fails the test unless the status is as wanted. */
static inline stint_train_result train(stint_recipe *recipe, stint_train_desc desc,
                                       stint_status want)
{
    stint_train_result result = {0};
    stint_status st = stint_train(recipe, &desc, &result);
    stint_recipe_destroy(recipe);
    if (st != want)
        fail_msg("status %d, wanted %d: %s", (int)st, (int)want, stint_last_error());
    return result;
}

/* A training that fails so, with these words. */
static inline void refused(stint_recipe *r, stint_status want, const char *words)
{
    train(r, (stint_train_desc){0}, want);
    if (!strstr(stint_last_error(), words))
        fail_msg("'%s' does not say '%s'", stint_last_error(), words);
}

#endif
