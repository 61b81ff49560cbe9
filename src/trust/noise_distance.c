/* Distances between models, a tensor at a time: memory for each run's copy of the
 * largest one. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "store/compact_file.h"
#include "store/safetensors.h"
#include "trust/noise_metrics.h"

typedef struct distances {
    const char *const *path;
    int64_t runs;
    sti_tensor_file **file; /* [runs] */
    float **data;           /* [runs], room for the largest tensor */
    double *squares;        /* [runs, runs], of differences, above the diagonal */
    double *norm;           /* [runs], squared */
} distances;

static stint_status open_files(distances *d)
{
    size_t most = 0;
    d->file = sti_alloc_array(d->runs, sizeof *d->file, "models");
    d->data = sti_alloc_array(d->runs, sizeof *d->data, "models");
    d->squares = sti_alloc_array(d->runs * d->runs, sizeof *d->squares, "distances");
    d->norm = sti_alloc_array(d->runs, sizeof *d->norm, "distances");
    if (!d->file || !d->data || !d->squares || !d->norm)
        return STINT_E_MEMORY;
    for (int64_t r = 0; r < d->runs; r++) {
        stint_status st = sti_model_tensors_open(d->path[r], &d->file[r]);
        if (st != STINT_OK)
            return st;
    }
    for (int64_t i = 0; i < sti_tensor_file_count(d->file[0]); i++) {
        const size_t bytes = sti_tensor_file_row(d->file[0], i)->bytes;
        most = bytes > most ? bytes : most;
    }
    for (int64_t r = 0; r < d->runs; r++)
        if (!(d->data[r] = sti_alloc(most, "models")))
            return STINT_E_MEMORY;
    return STINT_OK;
}

static stint_status read_tensor(distances *d, const sti_tensor_row *row)
{
    for (int64_t r = 0; r < d->runs; r++) {
        const sti_tensor_row *own = sti_tensor_file_find(d->file[r], row->name);
        if (!own || own->type != STI_TENSOR_F32 || own->bytes != row->bytes)
            return sti_fail(STINT_E_INPUT, "%s: has no tensor '%s' like that of %s",
                            d->path[r], row->name, d->path[0]);
        stint_status st = sti_tensor_file_read(d->file[r], own, d->data[r]);
        if (st != STINT_OK)
            return st;
    }
    return STINT_OK;
}

static double squared_distance(const float *a, const float *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double d = (double)a[i] - (b ? (double)b[i] : 0);
        sum += d * d;
    }
    return sum;
}

static void add_tensor(distances *d, int64_t count)
{
    for (int64_t a = 0; a < d->runs; a++) {
        d->norm[a] += squared_distance(d->data[a], NULL, count);
        for (int64_t b = a + 1; b < d->runs; b++)
            d->squares[a * d->runs + b] +=
                squared_distance(d->data[a], d->data[b], count);
    }
}

/* |a/|a| - b/|b||^2 = (|a - b|^2 - (|a| - |b|)^2) / (|a| |b|), which is exactly 0 for
 * equal vectors. */
static double normalised(double squares, double norm_a, double norm_b)
{
    const double a = sqrt(norm_a), b = sqrt(norm_b);
    return a > 0 && b > 0 ? sqrt(fmax(squares - (a - b) * (a - b), 0) / (a * b)) : 0;
}

static stint_status find_distances(distances *d, double *raw, double *unit)
{
    stint_status st = open_files(d);
    double sum[2] = {0, 0};
    for (int64_t i = 0; st == STINT_OK && i < sti_tensor_file_count(d->file[0]); i++) {
        const sti_tensor_row *row = sti_tensor_file_row(d->file[0], i);
        st = read_tensor(d, row);
        if (st == STINT_OK)
            add_tensor(d, (int64_t)(row->bytes / sizeof(float)));
    }
    if (st != STINT_OK)
        return st;
    for (int64_t a = 0; a < d->runs; a++)
        for (int64_t b = a + 1; b < d->runs; b++) {
            sum[0] += sqrt(d->squares[a * d->runs + b]);
            sum[1] += normalised(d->squares[a * d->runs + b], d->norm[a], d->norm[b]);
        }
    const double pairs = (double)d->runs * (double)(d->runs - 1) / 2;
    *raw = sum[0] / pairs;
    *unit = sum[1] / pairs;
    return STINT_OK;
}

stint_status sti_noise_distances(const char *const *path, int64_t runs,
                                 double *distance_out, double *normalised_out)
{
    distances d = {.path = path, .runs = runs};
    stint_status st = find_distances(&d, distance_out, normalised_out);
    for (int64_t r = 0; r < runs; r++) {
        if (d.file)
            sti_tensor_file_close(d.file[r]);
        if (d.data)
            sti_free(d.data[r]);
    }
    sti_free(d.file);
    sti_free(d.data);
    sti_free(d.squares);
    sti_free(d.norm);
    return st;
}
