/* Small data sets for the tests of this room, made with the same libraries that users'
 * files come from. Everything lives in one temporary folder per test program. */
#ifndef STI_TESTS_DATA_FIXTURE_H
#define STI_TESTS_DATA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <archive.h>
#include <archive_entry.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <turbojpeg.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "data/data.h"

#define PATH_BYTES 512

static char fixture_root[PATH_BYTES];

/* Set-up and tear-down of a group of tests. */
static inline int fixture_begin(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(fixture_root, sizeof fixture_root, "%s/stint-data-XXXXXX",
                   tmp && *tmp ? tmp : "/tmp");
    return mkdtemp(fixture_root) ? 0 : -1;
}

static inline void fixture_remove(const char *path)
{
    char **names = NULL;
    int64_t count = 0;
    sti_arena *arena = sti_arena_create("fixture");
    if (sti_path_is_dir(path) && sti_dir_list(arena, path, &names, &count) == STINT_OK)
        for (int64_t i = 0; i < count; i++)
            fixture_remove(sti_path_join(arena, path, names[i]));
    (void)remove(path);
    sti_arena_destroy(arena);
}

static inline int fixture_end(void **state)
{
    (void)state;
    fixture_remove(fixture_root);
    return 0;
}

/* Path below the fixture's folder; one of many rotating buffers. */
static inline const char *fixture_path(const char *format, ...)
{
    static char buffers[512][2 * PATH_BYTES];
    static int turn;
    char *out = buffers[turn++ % 512];
    int n = snprintf(out, PATH_BYTES, "%s/", fixture_root);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(out + n, PATH_BYTES, format, args);
    va_end(args);
    return out;
}

static inline void fixture_write(const char *path, const void *bytes, size_t n)
{
    char *slash, folder[2 * PATH_BYTES];
    (void)snprintf(folder, sizeof folder, "%s", path);
    if ((slash = strrchr(folder, '/')))
        *slash = '\0';
    assert_int_equal(sti_dir_create(folder), STINT_OK);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* A picture that depends on `seed`; smooth, so that JPEG stays near it. */
static inline void fixture_pixels(int seed, int h, int w, int channels, uint8_t *out)
{
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (int c = 0; c < channels; c++)
                *out++ = (uint8_t)(40 + (seed * 37 + c * 53) % 120 + 3 * x + 2 * y);
}

static inline size_t fixture_png(int seed, int h, int w, png_uint_32 format,
                                 uint8_t *out, size_t out_bytes)
{
    uint8_t pixels[64 * 64 * 8];
    fixture_pixels(seed, h, w, (int)PNG_IMAGE_SAMPLE_SIZE(format), pixels);
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)w,
                       .height = (png_uint_32)h,
                       .format = format};
    png_alloc_size_t n = out_bytes;
    assert_true(png_image_write_to_memory(&image, out, &n, 0, pixels, 0, NULL));
    return n;
}

static inline size_t fixture_jpeg(int seed, int h, int w, int pixel_format,
                                  int subsampling, uint8_t *out)
{
    uint8_t pixels[64 * 64 * 4];
    unsigned char *jpeg = NULL;
    unsigned long n = 0;
    tjhandle handle = tjInitCompress();
    fixture_pixels(seed, h, w, tjPixelSize[pixel_format], pixels);
    assert_int_equal(tjCompress2(handle, pixels, w, 0, h, pixel_format, &jpeg, &n,
                                 subsampling, 95, 0),
                     0);
    memcpy(out, jpeg, n);
    tjFree(jpeg);
    (void)tjDestroy(handle);
    return n;
}

static inline void fixture_png_file(const char *path, int seed, int side)
{
    uint8_t bytes[32768];
    fixture_write(path, bytes,
                  fixture_png(seed, side, side, PNG_FORMAT_RGB, bytes, sizeof bytes));
}

static inline void fixture_jpeg_file(const char *path, int seed, int side)
{
    uint8_t bytes[32768];
    fixture_write(path, bytes,
                  fixture_jpeg(seed, side, side, TJPF_RGB, TJSAMP_444, bytes));
}

/* <root>/<name>/{train,test}/{cat,dog,eel}/N.{png,jpg}: `each` images a class, 8x8. */
static inline const char *fixture_folder(const char *name, int each)
{
    static const char *const classes[] = {"dog", "cat", "eel"};
    for (int split = 0; split < 2; split++) {
        for (int c = 0; c < 3; c++) {
            for (int i = 0; i < each; i++) {
                int seed = split * 100 + c * 10 + i;
                const char *path =
                    fixture_path("%s/%s/%s/%03d.%s", name, split ? "test" : "train",
                                 classes[c], i, i % 2 ? "jpg" : "png");
                if (i % 2)
                    fixture_jpeg_file(path, seed, 8);
                else
                    fixture_png_file(path, seed, 8);
            }
        }
    }
    return fixture_path("%s", name);
}

typedef struct fixture_tar {
    struct archive *archive;
} fixture_tar;

/* format: "ustar", "pax" or "gnutar". */
static inline fixture_tar fixture_tar_open(const char *path, const char *format)
{
    fixture_tar tar = {archive_write_new()};
    assert_int_equal(archive_write_set_format_by_name(tar.archive, format), ARCHIVE_OK);
    assert_int_equal(archive_write_open_filename(tar.archive, path), ARCHIVE_OK);
    return tar;
}

static inline void fixture_tar_add(fixture_tar *tar, const char *name, unsigned type,
                                   const void *bytes, size_t n)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)n);
    if (type == AE_IFLNK)
        archive_entry_set_symlink(entry, "elsewhere.png");
    assert_int_equal(archive_write_header(tar->archive, entry), ARCHIVE_OK);
    if (n)
        assert_int_equal(archive_write_data(tar->archive, bytes, n), n);
    archive_entry_free(entry);
}

static inline void fixture_tar_close(fixture_tar *tar)
{
    assert_int_equal(archive_write_close(tar->archive), ARCHIVE_OK);
    assert_int_equal(archive_write_free(tar->archive), ARCHIVE_OK);
}

/* Six images of three classes below a prefix; length: of the long names. */
static inline void fixture_tar_images(fixture_tar *tar, const char *prefix, int length)
{
    static const char *const classes[] = {"eel", "cat", "dog"};
    uint8_t bytes[32768];
    char name[300], longer[200];
    memset(longer, 'x', sizeof longer);
    longer[length] = '\0';
    for (int c = 0; c < 3; c++) {
        (void)snprintf(name, sizeof name, "%s%s", prefix, classes[c]);
        fixture_tar_add(tar, name, AE_IFDIR, NULL, 0);
        for (int i = 0; i < 2; i++) {
            size_t n =
                fixture_png(c * 10 + i, 8, 8, PNG_FORMAT_RGB, bytes, sizeof bytes);
            (void)snprintf(name, sizeof name, "%s%s/%d%s.png", prefix, classes[c], i,
                           i ? longer : "");
            fixture_tar_add(tar, name, AE_IFREG, bytes, n);
        }
    }
}

static inline void fixture_put32(uint8_t *out, uint32_t value)
{
    out[0] = (uint8_t)(value >> 24);
    out[1] = (uint8_t)(value >> 16);
    out[2] = (uint8_t)(value >> 8);
    out[3] = (uint8_t)value;
}

/* Plain or, when the name ends in .gz, gzipped. */
static inline void fixture_write_maybe_gz(const char *path, const void *bytes, size_t n)
{
    fixture_write(path, bytes, n);
    if (strcmp(sti_path_extension(path), ".gz") != 0)
        return;
    gzFile f = gzopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, bytes, (unsigned)n), n);
    assert_int_equal(gzclose(f), Z_OK);
}

/* n images of side x side with labels i * step % 10. */
static inline void fixture_idx(const char *name, const char *prefix, const char *ending,
                               int n, int side, int step)
{
    size_t bytes = 16 + (size_t)(n * side * side);
    uint8_t *images = calloc(1, bytes), *labels = calloc(1, 8 + (size_t)n);
    assert_non_null(images);
    assert_non_null(labels);
    fixture_put32(images, 0x803);
    fixture_put32(images + 4, (uint32_t)n);
    fixture_put32(images + 8, (uint32_t)side);
    fixture_put32(images + 12, (uint32_t)side);
    fixture_put32(labels, 0x801);
    fixture_put32(labels + 4, (uint32_t)n);
    for (int i = 0; i < n; i++) {
        labels[8 + i] = (uint8_t)(i * step % 10);
        fixture_pixels(i, side, side, 1, images + 16 + i * side * side);
    }
    fixture_write_maybe_gz(
        fixture_path("%s/%s-images-idx3-ubyte%s", name, prefix, ending), images, bytes);
    fixture_write_maybe_gz(
        fixture_path("%s/%s-labels-idx1-ubyte%s", name, prefix, ending), labels,
        8 + (size_t)n);
    free(images);
    free(labels);
}

/* n records with labels i * 3 % 10; label_bytes 2 for CIFAR-100. */
static inline void fixture_cifar(const char *path, int n, int label_bytes)
{
    size_t each = (size_t)label_bytes + 3072;
    uint8_t *bytes = calloc((size_t)n, each);
    assert_non_null(bytes);
    for (int i = 0; i < n; i++) {
        bytes[(size_t)i * each + (size_t)label_bytes - 1] = (uint8_t)(i * 3 % 10);
        fixture_pixels(i, 32, 96, 1, bytes + (size_t)i * each + label_bytes);
    }
    fixture_write(path, bytes, (size_t)n * each);
    free(bytes);
}

/* What must go well; else the test fails with the message. */
static inline stint_data *fixture_open(const stint_data_desc *desc)
{
    stint_data *data = NULL;
    stint_status st = stint_data_open(desc, &data);
    if (st != STINT_OK)
        fail_msg("%s", stint_last_error());
    return data;
}

static inline sti_data_decoders *fixture_decoders(const stint_data *data, int workers)
{
    sti_data_decoders *decoders = NULL;
    assert_int_equal(sti_data_decoders_create(data, workers, &decoders), STINT_OK);
    return decoders;
}

static inline void fixture_decode(const stint_data *data, int64_t index,
                                  uint8_t *pixels)
{
    sti_data_decoders *decoders = fixture_decoders(data, 1);
    if (sti_data_decode(data, index, decoders, 0, pixels) != STINT_OK)
        fail_msg("%s", stint_last_error());
    sti_data_decoders_destroy(decoders);
}

/* Open and expect a failure whose text has all the given pieces (NULL-ended). */
static inline void fixture_refused(const stint_data_desc *desc, stint_status wanted,
                                   ...)
{
    stint_data *data = NULL;
    stint_status st = stint_data_open(desc, &data);
    if (st == STINT_OK)
        stint_data_close(data);
    if (st != wanted)
        fail_msg("status %d, wanted %d: %s", (int)st, (int)wanted, stint_last_error());
    va_list args;
    va_start(args, wanted);
    for (const char *piece; (piece = va_arg(args, const char *));) {
        if (!strstr(stint_last_error(), piece))
            fail_msg("'%s' is not in: %s", piece, stint_last_error());
    }
    va_end(args);
}

#endif
