/* From samples to tensors: decoding, augmentation, normalisation.
 *
 * Every piece of a parallel loop is one sample (or one block of samples, for sums of
 * integers), so the result does not know how many threads there were. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/rng.h"
#include "data/data_priv.h"

#define FAILURE_BYTES 768
#define MEASURE_BLOCK 64
#define MEASURE_ROUND 64 /* blocks between two calls of progress */

/* What one thread needs; on cache lines of its own. */
typedef struct worker {
    sti_image_decoder *images;
    uint8_t *stored; /* a sample's bytes */
    uint8_t *source; /* its pixels before resizing */
    uint8_t *pixels; /* [h, w, c] */
    void *scratch;   /* of resizing */
    sti_image_info seen;
    sti_finding fault;
    uint64_t sums[3], squares[3];
    /* The first failure in a loop: loops are cut contiguously, so it is the lowest. */
    stint_status failed;
    int64_t failed_at;
    char failure[FAILURE_BYTES];
} worker;

struct sti_data_decoders {
    int count;
    worker *workers; /* [count] */
};

static size_t source_bytes(const stint_data *data)
{
    return data->layout == STI_LAYOUT_ENCODED
               ? (size_t)(data->size ? data->max_pixels
                                     : data->info.height * data->info.width) *
                     4
               : (size_t)(data->stored_height * data->stored_width * 3);
}

static size_t pixel_bytes(const stint_data *data)
{
    return (size_t)(data->info.height * data->info.width * data->info.channels);
}

static size_t scratch_bytes(const stint_data *data)
{
    return data->size ? sti_resize_scratch_bytes(data->max_height, data->max_width,
                                                 data->size, data->size, 3)
                      : 0;
}

static stint_status worker_init(worker *w, const stint_data *data)
{
    w->stored = sti_alloc((size_t)data->max_file_bytes, "data.stored");
    w->source = sti_alloc(source_bytes(data), "data.source");
    w->pixels = sti_alloc(pixel_bytes(data), "data.pixels");
    w->scratch = sti_alloc(scratch_bytes(data), "data.resize");
    if (!w->stored || !w->source || !w->pixels || !w->scratch)
        return STINT_E_MEMORY;
    return data->layout == STI_LAYOUT_ENCODED ? sti_image_decoder_create(&w->images)
                                              : STINT_OK;
}

stint_status sti_data_decoders_create(const stint_data *data, int workers,
                                      sti_data_decoders **decoders_out)
{
    sti_data_decoders *d = sti_alloc(sizeof *d, "data.decoders");
    if (!d)
        return STINT_E_MEMORY;
    stint_status st = STINT_E_MEMORY;
    if ((d->workers = sti_alloc_array(workers, sizeof *d->workers, "data.decoders")))
        st = STINT_OK;
    for (int i = 0; i < workers && st == STINT_OK; i++) {
        d->count = i + 1;
        st = worker_init(&d->workers[i], data);
    }
    if (st == STINT_OK)
        *decoders_out = d;
    else
        sti_data_decoders_destroy(d);
    return st;
}

void sti_data_decoders_destroy(sti_data_decoders *decoders)
{
    if (!decoders)
        return;
    for (int i = 0; i < decoders->count; i++) {
        worker *w = &decoders->workers[i];
        sti_image_decoder_destroy(w->images);
        sti_free(w->stored);
        sti_free(w->source);
        sti_free(w->pixels);
        sti_free(w->scratch);
    }
    sti_free(decoders->workers);
    sti_free(decoders);
}

size_t sti_data_memory_bytes(const stint_data *data, int decoder_sets, int workers)
{
    /* libjpeg and libpng: rows and tables (measured on 32x32: 20 to 60 KiB), and for
     * progressive files the coefficients of the whole image. */
    size_t library =
        data->layout == STI_LAYOUT_ENCODED
            ? 64 * 1024 + (size_t)(data->max_pixels ? data->max_pixels : 1) * 6
            : 0;
    size_t each = sizeof(worker) + (size_t)data->max_file_bytes + source_bytes(data) +
                  pixel_bytes(data) + scratch_bytes(data) + library;
    size_t index = (size_t)data->info.count * sizeof *data->samples + data->names_bytes;
    return index + each * (size_t)decoder_sets * (size_t)workers;
}

/* ---- one sample ---- */

/* Put the sample's name before what is recorded. */
static stint_status name_failure(const stint_data *data, int64_t index, stint_status st)
{
    char name[300];
    sti_data_sample_name(data, index, name, sizeof name);
    return sti_fail_context(st, "%s", name);
}

static stint_status check_size(const stint_data *data, const sti_image_info *seen,
                               sti_finding *fault)
{
    *fault = STI_FIND_WRONG_SIZE;
    if (!data->size &&
        (seen->width != data->info.width || seen->height != data->info.height))
        return sti_fail(STINT_E_INPUT,
                        "%" PRId64 "x%" PRId64 " pixels, the others have %" PRId64
                        "x%" PRId64 "; remove it, or resize all with `size` in [data]",
                        seen->width, seen->height, data->info.width, data->info.height);
    if (data->size &&
        (seen->width > data->max_width || seen->height > data->max_height ||
         seen->width * seen->height > data->max_pixels))
        return sti_fail(STINT_E_INPUT,
                        "has changed since the data was opened; run again");
    return STINT_OK;
}

static stint_status decode_image(const stint_data *data, worker *w, size_t n_bytes,
                                 uint8_t *pixels_out)
{
    w->fault = STI_FIND_NOT_IMAGE;
    int found = sti_image_probe(w->stored, n_bytes, &w->seen);
    if (found == 0 && n_bytes > 0) {
        w->fault = STI_FIND_TRUNCATED;
        return sti_fail(STINT_E_INPUT,
                        "cut short within its header; replace or remove it");
    }
    if (found != 1)
        return sti_fail(STINT_E_INPUT, "%s; replace or remove it",
                        n_bytes ? "neither a JPEG nor a PNG image of a possible size"
                                : "an empty file");
    stint_status st = check_size(data, &w->seen, &w->fault);
    if (st != STINT_OK)
        return st;
    int channels = (int)data->info.channels;
    if ((st = sti_image_decode(w->images, w->stored, n_bytes, &w->seen, channels,
                               w->source, &w->fault)) != STINT_OK)
        return st;
    if (data->size)
        sti_resize_u8(w->seen.height, w->seen.width, data->size, data->size, channels,
                      w->source, pixels_out, w->scratch);
    else
        memcpy(pixels_out, w->source, pixel_bytes(data));
    return STINT_OK;
}

/* Rows [h, w] or planes [3, h, w] to [h, w, channels]. */
static void arrange(const stint_data *data, const uint8_t *stored, uint8_t *pixels)
{
    int64_t count = data->stored_height * data->stored_width;
    bool grey = data->info.channels == 1, rows = data->layout == STI_LAYOUT_ROWS;
    for (int64_t i = 0; i < count; i++) {
        uint32_t r = stored[i], g = rows ? r : stored[i + count],
                 b = rows ? r : stored[i + 2 * count];
        if (grey) {
            pixels[i] = (uint8_t)((19595u * r + 38470u * g + 7471u * b + 32768u) >> 16);
        } else {
            pixels[3 * i] = (uint8_t)r;
            pixels[3 * i + 1] = (uint8_t)g;
            pixels[3 * i + 2] = (uint8_t)b;
        }
    }
}

static void decode_raw(const stint_data *data, worker *w, uint8_t *pixels_out)
{
    if (!data->size) {
        arrange(data, w->stored, pixels_out);
        return;
    }
    arrange(data, w->stored, w->source);
    sti_resize_u8(data->stored_height, data->stored_width, data->size, data->size,
                  data->info.channels, w->source, pixels_out, w->scratch);
}

static stint_status decode_with(const stint_data *data, int64_t index, worker *w,
                                uint8_t *pixels_out)
{
    size_t n_bytes = data->samples[index].bytes;
    if (data->kept) {
        memcpy(pixels_out, data->kept + (size_t)index * pixel_bytes(data),
               pixel_bytes(data));
        return STINT_OK;
    }
    w->fault = STI_FIND_UNREADABLE;
    w->seen = (sti_image_info){0};
    stint_status st = data->source->read(data, index, w->stored, n_bytes);
    if (st != STINT_OK)
        return st; /* names the file */
    if (data->layout != STI_LAYOUT_ENCODED) {
        decode_raw(data, w, pixels_out);
        return STINT_OK;
    }
    st = decode_image(data, w, n_bytes, pixels_out);
    return st == STINT_OK ? st : name_failure(data, index, st);
}

stint_status sti_data_decode(const stint_data *data, int64_t index,
                             sti_data_decoders *decoders, int worker_index,
                             uint8_t *pixels_out)
{
    if (index < 0 || index >= data->info.count || worker_index < 0 ||
        worker_index >= decoders->count)
        return sti_fail(STINT_E_BUG,
                        "data: sample %" PRId64 " of %" PRId64 ", worker %d of %d",
                        index, data->info.count, worker_index, decoders->count);
    return decode_with(data, index, &decoders->workers[worker_index], pixels_out);
}

sti_finding sti_data_decode_fault(const sti_data_decoders *decoders, int worker_index)
{
    return decoders->workers[worker_index].fault;
}

bool sti_data_decode_seen(const sti_data_decoders *decoders, int worker_index,
                          sti_image_info *seen)
{
    *seen = decoders->workers[worker_index].seen;
    return seen->width > 0;
}

/* ---- failures of parallel loops ---- */

static void clear_failures(sti_data_decoders *decoders)
{
    for (int i = 0; i < decoders->count; i++)
        decoders->workers[i].failed = STINT_OK;
}

static void keep_failure(worker *w, int64_t at, stint_status st)
{
    if (w->failed != STINT_OK)
        return;
    w->failed = st;
    w->failed_at = at;
    (void)snprintf(w->failure, sizeof w->failure, "%s", stint_last_error());
}

static stint_status lowest_failure(const sti_data_decoders *decoders)
{
    const worker *lowest = NULL;
    for (int i = 0; i < decoders->count; i++) {
        const worker *w = &decoders->workers[i];
        if (w->failed != STINT_OK && (!lowest || w->failed_at < lowest->failed_at))
            lowest = w;
    }
    return lowest ? sti_fail(lowest->failed, "%s", lowest->failure) : STINT_OK;
}

/* ---- keeping all ---- */

typedef struct keep_job {
    const stint_data *data;
    sti_data_decoders *decoders;
    uint8_t *pixels;
} keep_job;

static void keep_piece(void *arg, int64_t piece, int worker_index)
{
    const keep_job *job = arg;
    worker *w = &job->decoders->workers[worker_index];
    stint_status st = decode_with(job->data, piece, w,
                                  job->pixels + (size_t)piece * pixel_bytes(job->data));
    if (st != STINT_OK)
        keep_failure(w, piece, st);
}

size_t sti_data_kept_bytes(const stint_data *data)
{
    return (size_t)data->info.count * pixel_bytes(data);
}

stint_status sti_data_keep(stint_data *data, const sti_team *team,
                           sti_data_decoders *decoders)
{
    keep_job job = {.data = data, .decoders = decoders};
    if (data->kept)
        return STINT_OK;
    if (!(job.pixels = sti_alloc(sti_data_kept_bytes(data), "images in memory")))
        return STINT_E_MEMORY;
    clear_failures(decoders);
    sti_team_run(team, data->info.count, keep_piece, &job);
    stint_status st = lowest_failure(decoders);
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
    worker *w = &decoders->workers[0];
    stint_status st = STINT_OK;
    sti_sha256 sha;
    sti_sha256_init(&sha);
    sti_sha256_add(&sha, shape, sizeof shape);
    for (int32_t c = 0; c < info->classes; c++)
        sti_sha256_add(&sha, info->class_names[c], strlen(info->class_names[c]) + 1);
    for (int64_t i = 0; i < info->count && st == STINT_OK; i++) {
        st = decode_with(data, i, w, w->pixels);
        sti_sha256_add(&sha, &data->samples[i].label, sizeof data->samples[i].label);
        sti_sha256_add(&sha, w->pixels, pixel_bytes(data));
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
    worker *w = &job->decoders->workers[worker_index];
    int32_t sample = job->samples[piece];
    float *x = job->x + piece * (int64_t)pixel_bytes(job->data);
    if (job->labels)
        job->labels[piece] = sample < 0 ? -1 : job->data->samples[sample].label;
    if (sample < 0) {
        memset(x, 0, pixel_bytes(job->data) * sizeof *x);
        return;
    }
    stint_status st = decode_with(job->data, sample, w, w->pixels);
    if (st != STINT_OK)
        keep_failure(w, piece, st);
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
    for (int64_t i = 0; i < count; i++)
        if (samples[i] >= data->info.count)
            return sti_fail(STINT_E_BUG, "data: sample %" PRId32 " of %" PRId64,
                            samples[i], data->info.count);
    for (int c = 0; c < (int)data->info.channels; c++)
        for (int v = 0; v < 256; v++)
            job.values[c][v] = ((float)v / 255.0f - norm->mean[c]) / norm->deviation[c];
    clear_failures(decoders);
    sti_team_run(team, count, batch_piece, &job);
    return lowest_failure(decoders);
}

/* ---- mean and deviation ---- */

typedef struct measure_job {
    const stint_data *data;
    sti_data_decoders *decoders;
    int64_t first_block;
} measure_job;

static void measure_piece(void *arg, int64_t piece, int worker_index)
{
    const measure_job *job = arg;
    const stint_data *data = job->data;
    worker *w = &job->decoders->workers[worker_index];
    int64_t channels = data->info.channels;
    int64_t first = (job->first_block + piece) * MEASURE_BLOCK;
    int64_t last = first + MEASURE_BLOCK;
    for (int64_t i = first; i < last && i < data->info.count; i++) {
        stint_status st = decode_with(data, i, w, w->pixels);
        if (st != STINT_OK) {
            keep_failure(w, i, st);
            return;
        }
        int64_t n = data->info.height * data->info.width;
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
    clear_failures(decoders);
    for (int i = 0; i < decoders->count; i++) {
        memset(decoders->workers[i].sums, 0, sizeof decoders->workers[i].sums);
        memset(decoders->workers[i].squares, 0, sizeof decoders->workers[i].squares);
    }
    for (int64_t at = 0; at < blocks && st == STINT_OK; at += MEASURE_ROUND) {
        measure_job job = {data, decoders, at};
        int64_t n = blocks - at < MEASURE_ROUND ? blocks - at : MEASURE_ROUND;
        sti_team_run(team, n, measure_piece, &job);
        st = lowest_failure(decoders);
        int64_t done = (at + n) * MEASURE_BLOCK;
        if (progress && st == STINT_OK)
            progress(user, done < data->info.count ? done : data->info.count,
                     data->info.count);
    }
    if (st == STINT_OK)
        finish_measure(data, decoders, norm_out);
    return st;
}
