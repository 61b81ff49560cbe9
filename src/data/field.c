#include "data/field.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/npy.h"
#include "base/units.h"
#include "media/image.h"
#include "media/resize.h"

#define PICTURE_BYTES_MAX ((size_t)1 << 30)

float sti_field_cell(int64_t i, int64_t n)
{
    return (float)((double)(2 * i + 1) / (double)n - 1.0);
}

/* ---- pictures ---- */

static float value_of_pixel(uint8_t pixel)
{
    return (float)((double)pixel / 127.5 - 1.0);
}

/* A decoded view becomes values, resampled to size x size if that is asked for. */
static stint_status take_view(const sti_image_view *view, int64_t size,
                              sti_field_points *f)
{
    f->outputs = (int)view->channels;
    f->height = size ? size : view->height;
    f->width = size ? size : view->width;
    f->count = f->height * f->width;
    const int64_t numbers = f->count * view->channels;
    uint8_t *pixels = sti_alloc_array(numbers, 1, "field.pixels");
    void *scratch = sti_alloc(sti_resize_view_scratch_bytes(view->height, view->width,
                                                            f->width, view->channels),
                              "field.resize");
    f->values = sti_alloc_array(numbers, sizeof(float), "field.values");
    const bool there = pixels && scratch && f->values;
    if (there && size) {
        const sti_resize_axis y = {.in = view->height, .full = size, .out = size};
        const sti_resize_axis x = {.in = view->width, .full = size, .out = size};
        sti_resize_view(view, &y, &x, STI_RESIZE_TRIANGLE, pixels,
                        (size_t)(size * view->channels), scratch);
    } else if (there) {
        sti_image_view_copy(view, pixels);
    }
    for (int64_t i = 0; there && i < numbers; i++)
        f->values[i] = value_of_pixel(pixels[i]);
    sti_free(pixels);
    sti_free(scratch);
    return there ? STINT_OK : STINT_E_MEMORY;
}

static stint_status decode_picture(const uint8_t *stored, size_t n_bytes,
                                   const sti_image_info *info,
                                   const sti_field_want *want, sti_field_points *f)
{
    const int channels = want->channels ? want->channels : info->channels;
    sti_image_decoder *decoder = NULL;
    sti_image_view view;
    sti_image_fault fault;
    uint8_t *buffer = sti_alloc_array(info->height * info->width, 4, "field.picture");
    stint_status st = buffer ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_image_decoder_create(&decoder);
    if (st == STINT_OK)
        st = sti_image_decode(decoder, stored, n_bytes, info, channels, buffer, &view,
                              &fault);
    if (st == STINT_OK)
        st = take_view(&view, want->size, f);
    sti_image_decoder_destroy(decoder);
    sti_free(buffer);
    return st;
}

/* Files that a field could be fitted to, but that nothing here reads. */
static stint_status refuse_file(const char *path)
{
    static const char *const sounds[] = {".wav",  ".flac", ".ogg", ".opus",
                                         ".aiff", ".mp3",  ".au"};
    static const char *const meshes[] = {".obj", ".stl", ".ply", ".off",
                                         ".glb", ".fbx", ".dae"};
    const char *extension = sti_path_extension(path);
    for (size_t i = 0; i < sizeof sounds / sizeof *sounds; i++)
        if (strcasecmp(extension, sounds[i]) == 0)
            return sti_fail(STINT_E_UNSUPPORTED,
                            "%s: a sound, and this build has no library that reads "
                            "sounds; give a folder with its samples as points.npy "
                            "[n, 1] and values.npy",
                            path);
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++)
        if (strcasecmp(extension, meshes[i]) == 0)
            return sti_fail(STINT_E_UNSUPPORTED,
                            "%s: a mesh, and this build has no library that reads "
                            "meshes; give a folder with points.npy [n, 3] and "
                            "values.npy",
                            path);
    return sti_fail(STINT_E_INPUT,
                    "%s: no JPEG, PNG, WebP or BMP picture of a possible size; a field "
                    "is fitted to a picture, or to a folder with points.npy and "
                    "values.npy",
                    path);
}

static stint_status open_picture(const sti_field_want *want, sti_field_points *f)
{
    void *stored = NULL;
    size_t n_bytes = 0;
    sti_image_info info;
    stint_status st = sti_file_read(want->path, PICTURE_BYTES_MAX, &stored, &n_bytes);
    if (st != STINT_OK)
        return st;
    if (sti_image_probe(stored, n_bytes, true, &info) != 1)
        st = refuse_file(want->path);
    else if ((st = decode_picture(stored, n_bytes, &info, want, f)) != STINT_OK)
        st = sti_fail_context(st, "%s", want->path);
    sti_free(stored);
    f->coordinates = 2;
    return st;
}

/* ---- arrays ---- */

static stint_status check_array(const sti_npy *a, const char *path, int64_t most)
{
    if (a->kind == 'f' && (a->item_bytes == 4 || a->item_bytes == 8) && a->rank == 2 &&
        a->dim[0] >= 1 && a->dim[1] >= 1 && a->dim[1] <= most)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s: an array of %d axes of %c%d; wanted float32 or float64 of "
                    "shape [n, 1 to %" PRId64 "]",
                    path, a->rank, a->kind, a->item_bytes, most);
}

static float array_number(const sti_npy *a, int64_t i)
{
    float narrow;
    double wide;
    if (a->item_bytes == 4) {
        memcpy(&narrow, (const char *)a->data + 4 * i, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, (const char *)a->data + 8 * i, sizeof wide);
    return (float)wide;
}

/* An array of a folder as numbers of its own. */
static stint_status read_array(const char *folder, const char *name, int64_t most,
                               int64_t *rows_out, int *columns_out, float **numbers_out)
{
    sti_arena *arena = sti_arena_create("field.path");
    const char *path = arena ? sti_path_join(arena, folder, name) : NULL;
    sti_npy array = {0};
    float *numbers = NULL;
    stint_status st = path ? sti_npy_open(path, &array) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = check_array(&array, path, most);
    if (st == STINT_OK) {
        numbers = sti_alloc_array(array.count, sizeof *numbers, "field.numbers");
        st = numbers ? STINT_OK : STINT_E_MEMORY;
    }
    for (int64_t i = 0; st == STINT_OK && i < array.count; i++) {
        numbers[i] = array_number(&array, i);
        if (!isfinite(numbers[i]))
            st = sti_fail(STINT_E_INPUT,
                          "%s: row %" PRId64 ", column %" PRId64 " is not finite", path,
                          i / array.dim[1], i % array.dim[1]);
    }
    if (st == STINT_OK) {
        *rows_out = array.dim[0];
        *columns_out = (int)array.dim[1];
        *numbers_out = numbers;
    } else {
        sti_free(numbers);
    }
    sti_npy_close(&array);
    sti_arena_destroy(arena);
    return st;
}

static stint_status open_folder(const char *path, sti_field_points *f)
{
    int64_t rows = 0;
    stint_status st = read_array(path, "points.npy", STI_FIELD_COORDINATES_MAX,
                                 &f->count, &f->coordinates, &f->points);
    if (st == STINT_OK)
        st = read_array(path, "values.npy", STI_FIELD_VALUES_MAX, &rows, &f->outputs,
                        &f->values);
    if (st == STINT_OK && rows != f->count)
        st = sti_fail(STINT_E_INPUT,
                      "%s: %" PRId64 " points and %" PRId64
                      " rows of values; wanted as many of each",
                      path, f->count, rows);
    return st;
}

/* ---- all kinds ---- */

static bool is_constant(const sti_field_points *f)
{
    for (int64_t i = f->outputs; i < f->count * f->outputs; i++)
        if (f->values[i] != f->values[i % f->outputs])
            return false;
    return true;
}

static stint_status check_values(const sti_field_points *f)
{
    if (f->count > INT32_MAX)
        return sti_fail(STINT_E_UNSUPPORTED, "%s: more than 2^31 points", f->path);
    if (is_constant(f))
        return sti_fail(STINT_E_INPUT,
                        "%s: all %" PRId64
                        " points have the same value, so there is nothing to learn",
                        f->path, f->count);
    return STINT_OK;
}

static void hash_points(sti_field_points *f)
{
    const int64_t shape[5] = {f->count, f->coordinates, f->outputs, f->height,
                              f->width};
    sti_sha256 sha;
    sti_sha256_init(&sha);
    sti_sha256_add(&sha, shape, sizeof shape);
    if (f->points)
        sti_sha256_add(&sha, f->points,
                       (size_t)(f->count * f->coordinates) * sizeof(float));
    sti_sha256_add(&sha, f->values, (size_t)(f->count * f->outputs) * sizeof(float));
    sti_sha256_hex(&sha, f->sha256);
}

stint_status sti_field_points_open(const sti_field_want *want,
                                   sti_field_points **points_out)
{
    sti_field_points *f = sti_alloc(sizeof *f, "field");
    if (!f)
        return STINT_E_MEMORY;
    f->path = sti_strdup(want->path);
    stint_status st = f->path ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_path_is_dir(want->path) ? open_folder(want->path, f)
                                         : open_picture(want, f);
    if (st == STINT_OK)
        st = check_values(f);
    if (st != STINT_OK) {
        sti_field_points_close(f);
        return st;
    }
    hash_points(f);
    *points_out = f;
    return STINT_OK;
}

void sti_field_points_close(sti_field_points *points)
{
    if (!points)
        return;
    sti_free(points->points);
    sti_free(points->values);
    sti_free(points->path);
    sti_free(points);
}

static void take_point(const sti_field_points *f, int64_t i, float *out)
{
    if (f->points) {
        memcpy(out, f->points + i * f->coordinates,
               (size_t)f->coordinates * sizeof *out);
        return;
    }
    out[0] = sti_field_cell(i % f->width, f->width);
    out[1] = sti_field_cell(i / f->width, f->height);
}

void sti_field_points_take(const sti_field_points *f, const int32_t *samples,
                           int64_t count, float *points_out, float *values_out)
{
    const size_t point_bytes = (size_t)f->coordinates * sizeof(float);
    const size_t value_bytes = (size_t)f->outputs * sizeof(float);
    for (int64_t s = 0; s < count; s++) {
        float *point = points_out + s * f->coordinates;
        float *value = values_out + s * f->outputs;
        if (samples[s] < 0) {
            memset(point, 0, point_bytes);
            memset(value, 0, value_bytes);
            continue;
        }
        take_point(f, samples[s], point);
        memcpy(value, f->values + (int64_t)samples[s] * f->outputs, value_bytes);
    }
}

int64_t sti_field_points_bytes(const sti_field_points *f)
{
    return f->count * (f->outputs + (f->points ? f->coordinates : 0)) *
           (int64_t)sizeof(float);
}

bool sti_field_points_is(const char *path)
{
    sti_arena *arena = sti_arena_create("field.path");
    bool is = false;
    if (arena && sti_path_is_dir(path)) {
        const char *points = sti_path_join(arena, path, "points.npy");
        const char *values = sti_path_join(arena, path, "values.npy");
        is = points && values && sti_path_is_file(points) && sti_path_is_file(values);
    } else {
        is = sti_path_is_file(path) && sti_image_kind_of_name(path) >= 0;
    }
    sti_arena_destroy(arena);
    return is;
}
