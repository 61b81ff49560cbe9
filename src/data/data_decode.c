/* Decoders, and one sample's pixels: read, decoded, turned upright and fitted. */
#include "data/data_decode.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/data_fit.h"

/* ---- sizes ---- */

static size_t source_bytes(const stint_data *data)
{
    return data->layout == STI_LAYOUT_ENCODED
               ? (size_t)(data->size ? data->max_pixels
                                     : data->info.height * data->info.width) *
                     4
               : (size_t)(data->stored_height * data->stored_width * 3);
}

size_t sti_data_pixel_bytes(const stint_data *data)
{
    return (size_t)(data->info.height * data->info.width * data->info.channels);
}

static size_t scratch_bytes(const stint_data *data)
{
    return sti_fit_scratch_bytes(data->fit, data->size, data->cuts, data->max_height,
                                 data->max_width, data->info.width);
}

static stint_status worker_init(sti_data_worker *w, const stint_data *data)
{
    w->stored = sti_alloc((size_t)data->max_file_bytes, "data.stored");
    w->source = sti_alloc(source_bytes(data), "data.source");
    w->pixels = sti_alloc(sti_data_pixel_bytes(data), "data.pixels");
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
        sti_data_worker *w = &decoders->workers[i];
        sti_image_decoder_destroy(w->images);
        sti_free(w->stored);
        sti_free(w->source);
        sti_free(w->pixels);
        sti_free(w->scratch);
    }
    sti_free(decoders->workers);
    sti_free(decoders);
}

/* What decoding takes beside the file: pixels, as far as they are written, and the
 * library. Where all images must be of one size only the first was looked at, and the
 * others may be of any kind: four bytes a pixel, and all coefficients of a JPEG. */
static size_t decoding_bytes(const stint_data *data)
{
    if (data->layout != STI_LAYOUT_ENCODED)
        return source_bytes(data);
    if (!data->size)
        return source_bytes(data) + 64 * 1024 +
               (size_t)(data->max_pixels ? data->max_pixels : 1) * 6;
    return data->max_buffer_bytes[data->info.channels > 1] + data->max_library_bytes;
}

size_t sti_data_memory_bytes(const stint_data *data, int decoder_sets, int workers)
{
    size_t each = sizeof(sti_data_worker) + (size_t)data->max_file_bytes +
                  decoding_bytes(data) + sti_data_pixel_bytes(data) +
                  scratch_bytes(data);
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

/* What to do about images of many sizes. */
static stint_status wrong_size(const stint_data *data, const sti_image_info *seen)
{
    char advice[160] = "remove it, or resize all with `size` in [data]";
    if (data->usual_size)
        (void)snprintf(advice, sizeof advice,
                       "add `size = %" PRId64
                       "` under [data], the size that this model is usually given "
                       "(`fit` there says how)",
                       data->usual_size);
    return sti_fail(
        STINT_E_INPUT,
        "%" PRId64 "x%" PRId64 " pixels, the others have %" PRId64 "x%" PRId64 "; %s",
        seen->width, seen->height, data->info.width, data->info.height, advice);
}

static stint_status check_size(const stint_data *data, const sti_image_info *seen,
                               sti_finding *fault)
{
    *fault = STI_FIND_WRONG_SIZE;
    if (!data->size &&
        (seen->width != data->info.width || seen->height != data->info.height))
        return wrong_size(data, seen);
    if (data->size &&
        (seen->width > data->max_width || seen->height > data->max_height ||
         seen->width * seen->height > data->max_pixels))
        return sti_fail(STINT_E_INPUT,
                        "has changed since the data was opened; run again");
    return STINT_OK;
}

static sti_finding finding_of(sti_image_fault fault)
{
    return fault == STI_IMAGE_CUT_SHORT ? STI_FIND_TRUNCATED : STI_FIND_BROKEN;
}

/* The upright picture of the file in w->stored. */
static stint_status decode_image(const stint_data *data, sti_data_worker *w,
                                 size_t n_bytes, sti_image_view *view_out)
{
    w->fault = STI_FIND_NOT_IMAGE;
    int found = sti_image_probe(w->stored, n_bytes, true, &w->seen);
    if (found == 0 && n_bytes > 0) {
        w->fault = STI_FIND_TRUNCATED;
        return sti_fail(STINT_E_INPUT,
                        "cut short within its header; replace or remove it");
    }
    if (found != 1)
        return sti_fail(STINT_E_INPUT, "%s; replace or remove it",
                        n_bytes ? "not a JPEG, PNG, WebP or BMP image of a possible "
                                  "size"
                                : "an empty file");
    stint_status st = check_size(data, &w->seen, &w->fault);
    if (st != STINT_OK)
        return st;
    sti_image_fault fault;
    st = sti_image_decode(w->images, w->stored, n_bytes, &w->seen,
                          (int)data->info.channels, w->source, view_out, &fault);
    if (st != STINT_OK)
        w->fault = finding_of(fault);
    return st;
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

/* The upright picture of a sample, in w->source. */
static stint_status decode_view(const stint_data *data, int64_t index,
                                sti_data_worker *w, sti_image_view *view_out)
{
    size_t n_bytes = data->samples[index].bytes;
    w->fault = STI_FIND_UNREADABLE;
    w->seen = (sti_image_info){0};
    stint_status st = data->source->read(data, index, w->stored, n_bytes);
    if (st != STINT_OK)
        return st; /* names the file */
    if (data->layout == STI_LAYOUT_ENCODED) {
        st = decode_image(data, w, n_bytes, view_out);
        return st == STINT_OK ? st : name_failure(data, index, st);
    }
    arrange(data, w->stored, w->source);
    *view_out =
        sti_image_view_turned(w->source, data->stored_height, data->stored_width,
                              data->info.channels, data->transposed ? 5 : 1);
    return STINT_OK;
}

stint_status sti_data_decode_sample(const stint_data *data, int64_t index,
                                    sti_data_worker *w, uint8_t *pixels_out)
{
    sti_image_view view;
    if (data->kept) {
        memcpy(pixels_out, data->kept + (size_t)index * sti_data_pixel_bytes(data),
               sti_data_pixel_bytes(data));
        return STINT_OK;
    }
    stint_status st = decode_view(data, index, w, &view);
    if (st == STINT_OK)
        sti_fit_view(&view, data->fit, data->info.height, data->info.width, pixels_out,
                     w->scratch);
    return st;
}

stint_status sti_data_decode_augmented(const stint_data *data, int64_t index,
                                       sti_data_worker *w,
                                       const sti_data_augment *augment,
                                       uint8_t *pixels_out)
{
    sti_image_view view;
    if (!augment || augment->scale_crop <= 0)
        return sti_data_decode_sample(data, index, w, pixels_out);
    stint_status st = decode_view(data, index, w, &view);
    if (st != STINT_OK)
        return st;
    const sti_data_cut cut = sti_fit_draw_cut(augment, index, view.height, view.width);
    sti_fit_cut(&view, &cut, data->info.height, data->info.width, pixels_out,
                w->scratch);
    return STINT_OK;
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
    return sti_data_decode_sample(data, index, &decoders->workers[worker_index],
                                  pixels_out);
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

void sti_data_clear_failures(sti_data_decoders *decoders)
{
    for (int i = 0; i < decoders->count; i++)
        decoders->workers[i].failed = STINT_OK;
}

void sti_data_keep_failure(sti_data_worker *w, int64_t at, stint_status st)
{
    if (w->failed != STINT_OK)
        return;
    w->failed = st;
    w->failed_at = at;
    (void)snprintf(w->failure, sizeof w->failure, "%s", stint_last_error());
}

stint_status sti_data_lowest_failure(const sti_data_decoders *decoders)
{
    const sti_data_worker *lowest = NULL;
    for (int i = 0; i < decoders->count; i++) {
        const sti_data_worker *w = &decoders->workers[i];
        if (w->failed != STINT_OK && (!lowest || w->failed_at < lowest->failed_at))
            lowest = w;
    }
    return lowest ? sti_fail(lowest->failed, "%s", lowest->failure) : STINT_OK;
}
