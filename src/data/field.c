#include "data/field_priv.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/npy.h"
#include "base/units.h"
#include "media/image.h"
#include "media/resize.h"

#define PICTURE_BYTES_MAX ((size_t)1 << 30)

/* ---- pictures ---- */

static float value_of_pixel(uint8_t pixel)
{
    return (float)((double)pixel / 127.5 - 1.0);
}

/* A decoded view becomes values, resampled to size x size if that is asked for. */
static stint_status take_view(const sti_image_view *view, int64_t size,
                              sti_field_points *f)
{
    f->outputs = f->columns = (int)view->channels;
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

static stint_status open_picture(const sti_field_want *want, sti_field_points *f)
{
    void *stored = NULL;
    size_t n_bytes = 0;
    sti_image_info info;
    stint_status st = sti_file_read(want->path, PICTURE_BYTES_MAX, &stored, &n_bytes);
    if (st != STINT_OK)
        return st;
    if (sti_image_probe(stored, n_bytes, true, &info) != 1)
        st = sti_fail(
            STINT_E_INPUT,
            "%s: no JPEG, PNG, WebP or BMP picture of a possible size; a field "
            "is fitted to a picture, a sound, a mesh, or to a folder with "
            "points.npy and values.npy",
            want->path);
    else if ((st = decode_picture(stored, n_bytes, &info, want, f)) != STINT_OK)
        st = sti_fail_context(st, "%s", want->path);
    sti_free(stored);
    f->coordinates = 2;
    return st == STINT_OK && want->outline ? sti_field_take_outline(f) : st;
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
    f->columns = f->outputs;
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
    if (f->columns > f->outputs) /* of an outline or mesh: normals are to be learnt */
        return false;
    for (int64_t i = f->outputs; i < f->count * f->outputs; i++)
        if (f->values[i] != f->values[i % f->outputs])
            return false;
    return true;
}

static stint_status check_values(const sti_field_want *want, const sti_field_points *f)
{
    if (f->count > INT32_MAX)
        return sti_fail(STINT_E_UNSUPPORTED, "%s: more than 2^31 points", f->path);
    if (!want->constant && is_constant(f))
        return sti_fail(STINT_E_INPUT,
                        "%s: all %" PRId64
                        " points have the same value, so there is nothing to learn",
                        f->path, f->count);
    return STINT_OK;
}

/* ---- differences of a picture ---- */

/* Value at a pixel, clamped to the picture. */
static double pixel_at(const sti_field_points *f, int64_t y, int64_t x, int c)
{
    y = y < 0 ? 0 : y >= f->height ? f->height - 1 : y;
    x = x < 0 ? 0 : x >= f->width ? f->width - 1 : x;
    return (double)f->values[(y * f->width + x) * f->outputs + c];
}

/* Central differences in units of the coordinates; at the edges one-sided ones. */
static void first_differences(const sti_field_points *f, int64_t y, int64_t x, int c,
                              float *out)
{
    const double wide = (double)((x > 0) + (x < f->width - 1)) * 2 / (double)f->width;
    const double high = (double)((y > 0) + (y < f->height - 1)) * 2 / (double)f->height;
    out[0] = wide > 0
                 ? (float)((pixel_at(f, y, x + 1, c) - pixel_at(f, y, x - 1, c)) / wide)
                 : 0.0f;
    out[1] = high > 0
                 ? (float)((pixel_at(f, y + 1, x, c) - pixel_at(f, y - 1, x, c)) / high)
                 : 0.0f;
}

static void second_differences(const sti_field_points *f, int64_t y, int64_t x, int c,
                               float *out)
{
    const double wide = 2 / (double)f->width, high = 2 / (double)f->height;
    const double here = 2 * pixel_at(f, y, x, c);
    out[0] = (float)((pixel_at(f, y, x + 1, c) - here + pixel_at(f, y, x - 1, c)) /
                     (wide * wide));
    out[1] = (float)((pixel_at(f, y + 1, x + 1, c) - pixel_at(f, y + 1, x - 1, c) -
                      pixel_at(f, y - 1, x + 1, c) + pixel_at(f, y - 1, x - 1, c)) /
                     (4 * wide * high));
    out[2] = (float)((pixel_at(f, y + 1, x, c) - here + pixel_at(f, y - 1, x, c)) /
                     (high * high));
}

static stint_status add_differences(sti_field_points *f, int order)
{
    const int columns = f->outputs * (order >= 2 ? 6 : 3);
    if (order == 1 && f->columns > f->outputs) /* they are its normals */
        return STINT_OK;
    if (f->height == 0)
        return sti_fail(
            STINT_E_INPUT,
            "%s: differences of data, as U_x, are those of pictures; a list "
            "of points has none",
            f->path);
    float *all = sti_alloc_array(f->count * columns, sizeof *all, "field.values");
    if (!all)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < f->count; i++) {
        float *row = all + i * columns;
        const int64_t y = i / f->width, x = i % f->width;
        memcpy(row, f->values + i * f->outputs, (size_t)f->outputs * sizeof *row);
        for (int c = 0; c < f->outputs; c++) {
            first_differences(f, y, x, c, row + f->outputs + 2 * c);
            if (order >= 2)
                second_differences(f, y, x, c, row + 3 * f->outputs + 3 * c);
        }
    }
    sti_free(f->values);
    f->values = all;
    f->columns = columns;
    return STINT_OK;
}

/* ---- points without a file ---- */

static stint_status new_points(int coordinates, int outputs, int64_t count,
                               sti_field_points **f_out)
{
    sti_field_points *f = sti_alloc(sizeof *f, "field");
    if (!f)
        return STINT_E_MEMORY;
    *f = (sti_field_points){.coordinates = coordinates,
                            .outputs = outputs,
                            .columns = outputs,
                            .count = count,
                            .path = sti_strdup("")};
    if (f->path) {
        *f_out = f;
        return STINT_OK;
    }
    sti_free(f);
    return STINT_E_MEMORY;
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
    if (f->values)
        sti_sha256_add(&sha, f->values,
                       (size_t)(f->count * f->columns) * sizeof(float));
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
        st = sti_path_is_dir(want->path)      ? open_folder(want->path, f)
             : sti_field_is_sound(want->path) ? sti_field_open_sound(want, f)
             : sti_field_is_mesh(want->path)  ? sti_field_open_mesh(want, f)
                                              : open_picture(want, f);
    if (st == STINT_OK)
        st = check_values(want, f);
    if (st == STINT_OK && want->differences > 0)
        st = add_differences(f, want->differences);
    if (st != STINT_OK) {
        sti_field_points_close(f);
        return st;
    }
    hash_points(f);
    *points_out = f;
    return STINT_OK;
}

stint_status sti_field_points_none(int coordinates, int outputs, int64_t count,
                                   sti_field_points **points_out)
{
    sti_field_points *f = NULL;
    const stint_status st = new_points(coordinates, outputs, count, &f);
    if (st != STINT_OK)
        return st;
    hash_points(f);
    *points_out = f;
    return STINT_OK;
}

/* Point i of a grid of `side` cells along each axis. */
static void grid_point(int coordinates, const float *low, const float *high, int64_t i,
                       int64_t side, double *point)
{
    for (int c = 0; c < coordinates; c++, i /= side) {
        const double share = ((double)(i % side) + 0.5) / (double)side;
        point[c] = (double)low[c] + share * ((double)high[c] - (double)low[c]);
    }
}

static stint_status fill_grid(sti_field_points *f, const float *low, const float *high,
                              int64_t side, sti_field_values_fn *values,
                              const void *user)
{
    double point[STI_FIELD_COORDINATES_MAX], value[STI_FIELD_VALUES_MAX];
    for (int64_t i = 0; i < f->count; i++) {
        grid_point(f->coordinates, low, high, i, side, point);
        values(user, point, value);
        for (int c = 0; c < f->coordinates; c++)
            f->points[i * f->coordinates + c] = (float)point[c];
        for (int c = 0; c < f->outputs; c++) {
            f->values[i * f->outputs + c] = (float)value[c];
            if (!isfinite(value[c]))
                return sti_fail(STINT_E_INPUT,
                                "field.exact: not finite at a point of the domain");
        }
    }
    return STINT_OK;
}

stint_status sti_field_points_grid(int coordinates, int outputs, const float *low,
                                   const float *high, int64_t count,
                                   sti_field_values_fn *values, const void *user,
                                   sti_field_points **points_out)
{
    const int64_t side = (int64_t)ceil(pow((double)count, 1.0 / coordinates) - 1e-9);
    sti_field_points *f = NULL;
    int64_t all = 1;
    for (int c = 0; c < coordinates; c++)
        all *= side;
    stint_status st = new_points(coordinates, outputs, all, &f);
    if (st != STINT_OK)
        return st;
    f->points = sti_alloc_array(all * coordinates, sizeof *f->points, "field.points");
    f->values = sti_alloc_array(all * outputs, sizeof *f->values, "field.values");
    st = f->points && f->values ? fill_grid(f, low, high, side, values, user)
                                : STINT_E_MEMORY;
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
                           int64_t count, int64_t columns, float *points_out,
                           float *values_out)
{
    const size_t point_bytes = (size_t)f->coordinates * sizeof(float);
    const size_t value_bytes = (size_t)columns * sizeof(float);
    for (int64_t s = 0; s < count; s++) {
        float *point = points_out + s * f->coordinates;
        float *value = values_out + s * columns;
        if (samples[s] < 0 || !f->values) {
            memset(point, 0, point_bytes);
            memset(value, 0, value_bytes);
            continue;
        }
        take_point(f, samples[s], point);
        memcpy(value, f->values + (int64_t)samples[s] * f->columns, value_bytes);
    }
}

double sti_field_points_mean_square(const sti_field_points *f)
{
    double sum = 0;
    for (int64_t i = 0; i < f->count * f->columns; i++)
        if (i % f->columns < f->outputs)
            sum += (double)f->values[i] * (double)f->values[i];
    return sum / (double)(f->count * f->outputs);
}

int64_t sti_field_points_bytes(const sti_field_points *f)
{
    return f->count *
           ((f->values ? f->columns : 0) + (f->points ? f->coordinates : 0)) *
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
        is = sti_path_is_file(path) &&
             (sti_image_kind_of_name(path) >= 0 || sti_field_is_sound(path) ||
              sti_field_is_mesh(path));
    }
    sti_arena_destroy(arena);
    return is;
}
