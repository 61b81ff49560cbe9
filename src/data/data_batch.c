/* From samples to tensors: augmentation, normalisation, and what is summed over a
 * split.
 *
 * Every piece of a parallel loop is one sample (or one block of samples, for sums of
 * integers), so the result does not know how many threads there were. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/stop.h"
#include "data/data_decode.h"

#define MEASURE_BLOCK 64
#define MEASURE_ROUND 64 /* blocks between two calls of progress */

/* ---- keeping all ---- */

typedef struct keep_job {
    const stint_data *data;
    sti_data_decoders *decoders;
    uint8_t *pixels;
} keep_job;

static void keep_piece(void *arg, int64_t piece, int worker_index)
{
    const keep_job *job = arg;
    sti_data_worker *w = &job->decoders->workers[worker_index];
    stint_status st = sti_data_decode_sample(
        job->data, piece, w,
        job->pixels + (size_t)piece * sti_data_pixel_bytes(job->data));
    if (st != STINT_OK)
        sti_data_keep_failure(w, piece, st);
}

size_t sti_data_kept_bytes(const stint_data *data)
{
    return (size_t)data->info.count * sti_data_pixel_bytes(data);
}

stint_status sti_data_keep(stint_data *data, const sti_team *team,
                           sti_data_decoders *decoders)
{
    keep_job job = {.data = data, .decoders = decoders};
    if (data->kept)
        return STINT_OK;
    if (!(job.pixels = sti_alloc(sti_data_kept_bytes(data), "images in memory")))
        return STINT_E_MEMORY;
    sti_data_clear_failures(decoders);
    sti_team_run(team, data->info.count, keep_piece, &job);
    stint_status st = sti_data_lowest_failure(decoders);
    if (st == STINT_OK)
        data->kept = job.pixels;
    else
        sti_free(job.pixels);
    return st;
}

stint_status sti_data_sha256(const stint_data *data, sti_data_decoders *decoders,
                             char hex_out[65])
{
    const stint_data_info *info = &data->info;
    const int64_t shape[] = {info->count, info->height, info->width, info->channels};
    sti_data_worker *w = &decoders->workers[0];
    stint_status st = STINT_OK;
    sti_sha256 sha;
    sti_sha256_init(&sha);
    sti_sha256_add(&sha, shape, sizeof shape);
    for (int32_t c = 0; c < info->classes; c++)
        sti_sha256_add(&sha, info->class_names[c], strlen(info->class_names[c]) + 1);
    for (int64_t i = 0; i < info->count && st == STINT_OK; i++) {
        st = sti_data_decode_sample(data, i, w, w->pixels);
        sti_sha256_add(&sha, &data->samples[i].label, sizeof data->samples[i].label);
        sti_sha256_add(&sha, w->pixels, sti_data_pixel_bytes(data));
    }
    sti_sha256_hex(&sha, hex_out);
    return st;
}

/* ---- batches ---- */

typedef struct batch_job {
    const stint_data *data;
    sti_data_decoders *decoders;
    const int32_t *samples;
    const sti_data_augment *augment;
    float values[3][256]; /* what a byte becomes, by channel */
    float *x;
    int32_t *labels;
} batch_job;

/* Where the crop begins, relative to the image, and whether it is mirrored. */
typedef struct placement {
    int64_t top, left;
    bool mirrored;
} placement;

static placement draw_placement(const sti_data_augment *augment, int32_t sample)
{
    placement p = {0, 0, false};
    uint32_t words[4];
    if (!augment || (!augment->flip && augment->crop_pad <= 0))
        return p;
    sti_random4(augment->seed, STI_STREAM_AUGMENT, augment->epoch, (uint64_t)sample,
                words);
    if (augment->crop_pad > 0) {
        uint32_t choices = 2 * (uint32_t)augment->crop_pad + 1;
        p.top = (int64_t)sti_below(words[0], choices) - augment->crop_pad;
        p.left = (int64_t)sti_below(words[1], choices) - augment->crop_pad;
    }
    p.mirrored = augment->flip && words[2] >> 31;
    return p;
}

/* pixels [h, w, c] to x [h, w, c], moved and mirrored; outside the image is zero. */
static void place(const batch_job *job, const uint8_t *pixels, placement p, float *x)
{
    const stint_data_info *info = &job->data->info;
    int64_t h = info->height, w = info->width, c = info->channels;
    for (int64_t row = 0; row < h; row++) {
        int64_t from_row = row + p.top;
        float *out = x + row * w * c;
        if (from_row < 0 || from_row >= h) {
            memset(out, 0, (size_t)(w * c) * sizeof *out);
            continue;
        }
        for (int64_t column = 0; column < w; column++, out += c) {
            int64_t from = (p.mirrored ? w - 1 - column : column) + p.left;
            bool inside = from >= 0 && from < w;
            const uint8_t *in = pixels + (from_row * w + (inside ? from : 0)) * c;
            for (int64_t k = 0; k < c; k++)
                out[k] = inside ? job->values[k][in[k]] : 0.0f;
        }
    }
}

static void batch_piece(void *arg, int64_t piece, int worker_index)
{
    const batch_job *job = arg;
    sti_data_worker *w = &job->decoders->workers[worker_index];
    int32_t sample = job->samples[piece];
    float *x = job->x + piece * (int64_t)sti_data_pixel_bytes(job->data);
    if (job->labels)
        job->labels[piece] = sample < 0 ? -1 : job->data->samples[sample].label;
    if (sample < 0) {
        memset(x, 0, sti_data_pixel_bytes(job->data) * sizeof *x);
        return;
    }
    stint_status st =
        sti_data_decode_augmented(job->data, sample, w, job->augment, w->pixels);
    if (st != STINT_OK)
        sti_data_keep_failure(w, piece, st);
    else
        place(job, w->pixels, draw_placement(job->augment, sample), x);
}

stint_status sti_data_batch(const stint_data *data, const sti_team *team,
                            sti_data_decoders *decoders, const int32_t *samples,
                            int64_t count, const sti_data_augment *augment,
                            const sti_data_norm *norm, float *x_out,
                            int32_t *labels_out)
{
    batch_job job = {.data = data,
                     .decoders = decoders,
                     .samples = samples,
                     .augment = augment,
                     .x = x_out,
                     .labels = labels_out};
    if (augment && augment->scale_crop > 0 && (!data->cuts || data->kept))
        return sti_fail(STINT_E_BUG, "data: opened without room for scale_crop");
    for (int64_t i = 0; i < count; i++)
        if (samples[i] >= data->info.count)
            return sti_fail(STINT_E_BUG, "data: sample %" PRId32 " of %" PRId64,
                            samples[i], data->info.count);
    for (int c = 0; c < (int)data->info.channels; c++)
        for (int v = 0; v < 256; v++)
            job.values[c][v] = ((float)v / 255.0f - norm->mean[c]) / norm->deviation[c];
    sti_data_clear_failures(decoders);
    sti_team_run(team, count, batch_piece, &job);
    return sti_data_lowest_failure(decoders);
}

/* ---- mean and deviation ---- */

typedef struct measure_job {
    const stint_data *data;
    sti_data_decoders *decoders;
    int64_t first_block;
} measure_job;

/* A sample's own hash, of its place, label and pixels; added up over all samples, in
 * whatever order, these tell one split from another. */
static void add_share(const stint_data *data, int64_t index, sti_data_worker *w)
{
    const size_t bytes =
        (size_t)(data->info.height * data->info.width * data->info.channels);
    const int32_t label = sti_data_label(data, index);
    char hex[65], word[17] = "";
    sti_sha256 sha;
    sti_sha256_init(&sha);
    sti_sha256_add(&sha, &index, sizeof index);
    sti_sha256_add(&sha, &label, sizeof label);
    sti_sha256_add(&sha, w->pixels, bytes);
    sti_sha256_hex(&sha, hex);
    for (int i = 0; i < 4; i++) {
        memcpy(word, hex + (ptrdiff_t)16 * i, 16);
        w->shares[i] += strtoull(word, NULL, 16);
    }
}

void sti_data_measured_hash(const sti_data_decoders *decoders, char hex_out[65])
{
    for (int i = 0; i < 4; i++) {
        uint64_t sum = 0;
        for (int k = 0; k < decoders->count; k++)
            sum += decoders->workers[k].shares[i];
        snprintf(hex_out + (ptrdiff_t)16 * i, 17, "%016" PRIx64, sum);
    }
}

static void measure_piece(void *arg, int64_t piece, int worker_index)
{
    const measure_job *job = arg;
    const stint_data *data = job->data;
    sti_data_worker *w = &job->decoders->workers[worker_index];
    int64_t channels = data->info.channels;
    int64_t first = (job->first_block + piece) * MEASURE_BLOCK;
    int64_t last = first + MEASURE_BLOCK;
    for (int64_t i = first; i < last && i < data->info.count; i++) {
        stint_status st = sti_data_decode_sample(data, i, w, w->pixels);
        if (st != STINT_OK) {
            sti_data_keep_failure(w, i, st);
            return;
        }
        int64_t n = data->info.height * data->info.width;
        add_share(data, i, w);
        for (int64_t c = 0; c < channels; c++) {
            uint64_t sum = 0, square = 0;
            for (int64_t k = 0; k < n; k++) {
                uint32_t v = w->pixels[k * channels + c];
                sum += v;
                square += v * v;
            }
            w->sums[c] += sum;
            w->squares[c] += square;
        }
    }
}

/* Integer totals of all workers; only the last steps are floating point,
 * in one order. */
static void finish_measure(const stint_data *data, const sti_data_decoders *decoders,
                           sti_data_norm *norm)
{
    double n =
        (double)data->info.count * (double)data->info.height * (double)data->info.width;
    for (int c = 0; c < 3; c++) {
        uint64_t sum = 0, square = 0;
        norm->mean[c] = 0.0f;
        norm->deviation[c] = 1.0f;
        if (c >= (int)data->info.channels)
            continue;
        for (int i = 0; i < decoders->count; i++) {
            sum += decoders->workers[i].sums[c];
            square += decoders->workers[i].squares[c];
        }
        double mean = (double)sum / n / 255.0;
        double variance = (double)square / n / 65025.0 - mean * mean;
        /* Images of one flat colour have no spread to divide by. */
        double least = 1.0 / 255.0;
        norm->mean[c] = (float)mean;
        norm->deviation[c] = (float)(variance > least * least ? sqrt(variance) : least);
    }
}

stint_status sti_data_measure(const stint_data *data, const sti_team *team,
                              sti_data_decoders *decoders,
                              stint_data_progress_fn *progress, void *user,
                              sti_data_norm *norm_out)
{
    int64_t blocks = (data->info.count + MEASURE_BLOCK - 1) / MEASURE_BLOCK;
    stint_status st = STINT_OK;
    sti_data_clear_failures(decoders);
    for (int i = 0; i < decoders->count; i++) {
        memset(decoders->workers[i].sums, 0, sizeof decoders->workers[i].sums);
        memset(decoders->workers[i].squares, 0, sizeof decoders->workers[i].squares);
        memset(decoders->workers[i].shares, 0, sizeof decoders->workers[i].shares);
    }
    for (int64_t at = 0; at < blocks && st == STINT_OK; at += MEASURE_ROUND) {
        measure_job job = {data, decoders, at};
        int64_t n = blocks - at < MEASURE_ROUND ? blocks - at : MEASURE_ROUND;
        sti_team_run(team, n, measure_piece, &job);
        st = sti_data_lowest_failure(decoders);
        if (st == STINT_OK && sti_stop_asked() != STINT_OK)
            st = sti_fail(sti_stop_asked(), "stopped while measuring the images");
        int64_t done = (at + n) * MEASURE_BLOCK;
        if (progress && st == STINT_OK)
            progress(user, done < data->info.count ? done : data->info.count,
                     data->info.count);
    }
    if (st == STINT_OK)
        finish_measure(data, decoders, norm_out);
    return st;
}
