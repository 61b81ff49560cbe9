/* Opening datasets: which source, which classes, which image size. */
#include "data/data.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "data/data_priv.h"

/* One row a kind of source; detection tries them in this order. */
static const sti_data_source *const sources[] = {&sti_data_folder, &sti_data_tar,
                                                 &sti_data_idx,    &sti_data_cifar,
                                                 &sti_data_list,   &sti_data_classes};
#define SOURCES (sizeof sources / sizeof *sources)

/* ---- choosing a source ---- */

static const sti_data_source *detect(const char *path, const char *format,
                                     stint_data_split split, bool nested)
{
    const bool any = !format || strcmp(format, "auto") == 0;
    for (size_t i = 0; i < SOURCES; i++) {
        if ((!any && strcmp(format, sources[i]->name) != 0) ||
            !sources[i]->present(path, split, nested))
            continue;
        if (split == STINT_DATA_TRAIN || !sources[i]->pairs ||
            detect(path, format, STINT_DATA_TRAIN, nested) == sources[i])
            return sources[i];
    }
    return NULL;
}

bool stint_data_has_split(const char *path, const char *format, stint_data_split split)
{
    return sti_data_has_part(path, format, split, false);
}

bool sti_data_has_part(const char *path, const char *format, stint_data_split split,
                       bool nested)
{
    return detect(path, format, split, nested) != NULL;
}

static stint_status check_format(const char *format)
{
    if (!format || strcmp(format, "auto") == 0)
        return STINT_OK;
    for (size_t i = 0; i < SOURCES; i++)
        if (strcmp(format, sources[i]->name) == 0)
            return STINT_OK;
    return sti_fail(STINT_E_USAGE,
                    "data format '%s': wanted auto, folder, tar, idx, cifar or csv",
                    format);
}

/* Why a path is no folder that can be looked into; STINT_OK: it is one. */
static stint_status no_folder(const char *path, stint_data_split split)
{
    if (sti_path_is_file(path)) {
        stint_status st = sti_data_packed(path, split);
        return st != STINT_OK ? st
                              : sti_fail(STINT_E_INPUT,
                                         "%s is a file; give the folder that holds "
                                         "train.tar or train/",
                                         path);
    }
    if (!sti_path_is_dir(path) && access(path, F_OK) == 0)
        return sti_fail(STINT_E_INPUT, "%s is no folder; give --data one", path);
    if (!sti_path_is_dir(path))
        return sti_fail(
            STINT_E_INPUT,
            "%s does not exist; give --data a folder that does, or fetch a set "
            "with `stint data get` or `stint data glyphs`",
            path);
    return access(path, R_OK | X_OK) == 0 ? STINT_OK
                                          : sti_fail_errno("%s: cannot be read", path);
}

/* Why nothing was detected, in the most helpful words. */
static stint_status nothing_there(const char *path, const char *format,
                                  stint_data_split split)
{
    const char *name = sti_data_split_name(split);
    stint_status st = no_folder(path, split);
    if (st != STINT_OK || (st = sti_data_packed(path, split)) != STINT_OK)
        return st;
    for (size_t i = 0; i < SOURCES && split == STINT_DATA_TEST; i++)
        if (sources[i]->present(path, STINT_DATA_TRAIN, false))
            return sti_fail(STINT_E_INPUT,
                            "%s has no test split, only a training one (%s)", path,
                            sources[i]->name);
    if (format && strcmp(format, "auto") != 0) {
        for (size_t i = 0; i < SOURCES; i++)
            if (strcmp(format, sources[i]->name) == 0)
                return sti_fail(STINT_E_INPUT,
                                "%s has no %s split of format %s; wanted %s", path,
                                name, format, sources[i]->wants);
    }
    return sti_fail(STINT_E_INPUT,
                    "%s has no %s split; wanted one of: %s; %s; %s; %s; %s; %s", path,
                    name, sources[0]->wants, sources[1]->wants, sources[2]->wants,
                    sources[3]->wants, sources[4]->wants, sources[5]->wants);
}

/* ---- image size ---- */

/* From so many pixels on it is worth reading more to know how an image is decoded. */
#define MANY_PIXELS 1000000

/* Header of sample `index`; buffer [max_file_bytes]. exact: to be read to its end where
 * an orientation may stand there. */
static stint_status probe_sample(const stint_data *data, int64_t index, bool exact,
                                 uint8_t *buffer, sti_image_info *info)
{
    char name[300];
    size_t all = data->samples[index].bytes;
    size_t n = all < STI_IMAGE_PROBE_BYTES ? all : STI_IMAGE_PROBE_BYTES;
    for (;; n = all) { /* the first bytes are nearly always enough */
        stint_status st = data->source->read(data, index, buffer, n);
        if (st != STINT_OK)
            return st;
        int found = sti_image_probe(buffer, n, n == all, info);
        if (found == 1 && !(exact && info->later) &&
            !(info->scans_later && info->width * info->height > MANY_PIXELS))
            return STINT_OK;
        if (found < 0 || n == all)
            break;
    }
    sti_data_sample_name(data, index, name, sizeof name);
    return sti_fail(
        STINT_E_INPUT,
        "%s is not a JPEG, PNG, WebP or BMP image, or is cut short; `stint data check "
        "%s` lists all such files",
        name, data->info.path);
}

/* Buffers must hold this picture, too. */
static void widen_bounds(stint_data *data, const sti_image_info *info)
{
    /* Where the orientation is not known yet, it may stand on end. */
    const int64_t longer = info->width > info->height ? info->width : info->height;
    const int64_t width = info->later ? longer : info->width;
    const int64_t height = info->later ? longer : info->height;
    if (width > data->max_width)
        data->max_width = width;
    if (height > data->max_height)
        data->max_height = height;
    if (info->width * info->height > data->max_pixels)
        data->max_pixels = info->width * info->height;
    for (int colour = 0; colour < 2; colour++)
        if (info->buffer_bytes[colour] > data->max_buffer_bytes[colour])
            data->max_buffer_bytes[colour] = info->buffer_bytes[colour];
    if (info->library_bytes > data->max_library_bytes)
        data->max_library_bytes = info->library_bytes;
}

/* The first image that can be read decides; with resizing, the largest bounds buffers.
 * While checking, broken images are left for the reading pass to tell. */
static stint_status probe_images(stint_data *data, bool checking)
{
    sti_image_info info, first = {0};
    uint8_t *buffer = sti_alloc((size_t)data->max_file_bytes, "data.probe");
    stint_status st = buffer ? STINT_OK : STINT_E_MEMORY;
    for (int64_t i = 0; i < data->info.count && st == STINT_OK; i++) {
        if ((st = probe_sample(data, i, !data->size, buffer, &info)) != STINT_OK) {
            if (checking && st == STINT_E_INPUT)
                st = STINT_OK;
            continue;
        }
        if (!first.width)
            first = info;
        widen_bounds(data, &info);
        if (!data->size)
            break;
    }
    sti_free(buffer);
    data->info.channels = first.channels;
    data->stored_height = first.height;
    data->stored_width = first.width;
    return st;
}

stint_status sti_data_find_mixed(const stint_data *data, bool *mixed_out)
{
    sti_image_info info;
    *mixed_out = false;
    if (data->layout != STI_LAYOUT_ENCODED)
        return STINT_OK;
    uint8_t *buffer = sti_alloc((size_t)data->max_file_bytes, "data.probe");
    if (!buffer)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < data->info.count && !*mixed_out; i++)
        *mixed_out =
            probe_sample(data, i, true, buffer, &info) == STINT_OK &&
            (info.width != data->stored_width || info.height != data->stored_height);
    sti_free(buffer);
    return STINT_OK;
}

static stint_status settle_size(stint_data *data, const stint_data_desc *desc,
                                sti_data_sink *sink)
{
    stint_status st = STINT_OK;
    if (data->layout == STI_LAYOUT_ENCODED) {
        if ((st = probe_images(data, sink->found != NULL)) != STINT_OK)
            return st;
    } else {
        data->info.channels = data->layout == STI_LAYOUT_PLANES ? 3 : 1;
        data->max_width = data->transposed ? data->stored_height : data->stored_width;
        data->max_height = data->transposed ? data->stored_width : data->stored_height;
        data->max_pixels = data->stored_width * data->stored_height;
    }
    const stint_data_info *like = desc->like;
    if (desc->channels)
        data->info.channels = desc->channels;
    else if (like && like->channels)
        data->info.channels = like->channels;
    const bool turned = data->transposed;
    data->info.height = data->size ? data->size
                        : turned   ? data->stored_width
                                   : data->stored_height;
    data->info.width = data->size ? data->size
                       : turned   ? data->stored_height
                                  : data->stored_width;
    if (!like || !like->height ||
        (like->height == data->info.height && like->width == data->info.width))
        return STINT_OK;
    return sti_data_find(sink, STI_FIND_WRONG_SIZE,
                         "%s: %s images are %" PRId64 "x%" PRId64 ", wanted %" PRId64
                         "x%" PRId64 "; `size` in [data] resizes them",
                         data->info.path, sti_data_split_name(data->split),
                         data->info.width, data->info.height, like->width,
                         like->height);
}

/* ---- holding out ---- */

/* Is the k-th sample of its class one of those held out? Evenly spread. */
static bool is_held_out(int64_t k, double share)
{
    return (int64_t)((double)(k + 1) * share) > (int64_t)((double)k * share);
}

/* A pure function of the order of the samples: every process and every run holds out
 * the same ones. Buffers stay as large as the whole split needs. */
static stint_status hold_out(stint_data *data, double share, bool held_out)
{
    int64_t kept = 0;
    int64_t *seen = sti_alloc_array(data->info.classes, sizeof *seen, "data.classes");
    if (!seen)
        return STINT_E_MEMORY;
    memset(seen, 0, (size_t)data->info.classes * sizeof *seen);
    for (int64_t i = 0; i < data->info.count; i++)
        if (is_held_out(seen[data->samples[i].label]++, share) == held_out)
            data->samples[kept++] = data->samples[i];
    sti_free(seen);
    if (kept == 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: no image is left of %" PRId64
                        " when a share of %s of each class is held out",
                        data->info.path, data->info.count, sti_float_text(share));
    data->info.count = kept;
    return STINT_OK;
}

/* ---- opening ---- */

static stint_status check_desc(const stint_data_desc *desc)
{
    if (!desc->path || !*desc->path)
        return sti_fail(STINT_E_USAGE, "no data given; name a folder with --data PATH");
    if (desc->channels != 0 && desc->channels != 1 && desc->channels != 3)
        return sti_fail(STINT_E_USAGE,
                        "data channels %d: wanted 1 (grey), 3 (colour) or 0",
                        desc->channels);
    if (desc->size < 0 || desc->size > 4096)
        return sti_fail(STINT_E_USAGE,
                        "data size %" PRId64 ": wanted 1..4096, or 0 for as is",
                        desc->size);
    if (!(desc->hold_out >= 0 && desc->hold_out < 1))
        return sti_fail(STINT_E_USAGE, "data held out %s: wanted a share below 1",
                        sti_float_text(desc->hold_out));
    if (!(desc->validation < 1))
        return sti_fail(STINT_E_USAGE, "data validation %s: wanted a share below 1",
                        sti_float_text(desc->validation));
    return check_format(desc->format);
}

static stint_status open_source(stint_data *data, const stint_data_desc *desc,
                                sti_data_sink *sink)
{
    const char *path = sti_path_absolute(data->arena, desc->path);
    if (!path)
        return STINT_E_MEMORY;
    data->info.path = path;
    data->source = detect(path, desc->format, desc->split, desc->nested);
    if (!data->source)
        return nothing_there(path, desc->format, desc->split);
    data->info.format = data->source->name;
    data->info.from = path;
    const stint_data_info *like = desc->like && desc->like->classes ? desc->like : NULL;
    stint_status st = data->source->open(data, like, sink);
    if (st == STINT_OK)
        st = settle_size(data, desc, sink);
    return st == STINT_OK && desc->hold_out > 0
               ? hold_out(data, desc->hold_out, desc->held_out)
               : st;
}

static stint_status open_one(const stint_data_desc *desc, sti_data_sink *sink,
                             stint_data **data_out)
{
    stint_data *data = sti_alloc(sizeof *data, "data");
    if (!data)
        return STINT_E_MEMORY;
    data->split = desc->split;
    data->size = desc->size;
    data->fit = desc->fit;
    data->cuts = desc->cuts;
    data->nested = desc->nested;
    data->partial = desc->partial && desc->like && desc->like->classes > 0;
    data->usual_size = desc->usual_size;
    data->share = desc->validation == 0 ? 0.1 : fmax(desc->validation, 0);
    data->arena = sti_arena_create("data");
    stint_status st = data->arena ? open_source(data, desc, sink) : STINT_E_MEMORY;
    if (st == STINT_OK)
        *data_out = data;
    else
        stint_data_close(data);
    return st;
}

stint_status sti_data_open_checked(const stint_data_desc *desc, sti_data_sink *sink,
                                   stint_data **data_out)
{
    stint_status st = check_desc(desc);
    if (st != STINT_OK)
        return st;
    if (desc->like || desc->split == STINT_DATA_TRAIN ||
        !sti_data_has_part(desc->path, desc->format, STINT_DATA_TRAIN, desc->nested))
        return open_one(desc, sink, data_out);
    /* A test split is judged by the training split beside it. */
    stint_data_desc own = *desc;
    stint_data *train = NULL;
    own.split = STINT_DATA_TRAIN;
    sti_data_sink silent = {.quiet = true}; /* whoever opens that one hears of it */
    if ((st = open_one(&own, sink->found ? sink : &silent, &train)) != STINT_OK)
        return st;
    own.split = STINT_DATA_TEST;
    own.like = &train->info;
    st = open_one(&own, sink, data_out);
    stint_data_close(train);
    return st;
}

stint_status stint_data_open(const stint_data_desc *desc, stint_data **data_out)
{
    sti_data_sink sink = {.quiet = desc->quiet};
    char where[900];
    const stint_status st = sti_data_open_checked(desc, &sink, data_out);
    if (st != STINT_OK)
        return st;
    (void)snprintf(where, sizeof where, " in %s", (*data_out)->info.from);
    sti_data_tell_rest(&sink, where);
    return STINT_OK;
}

void stint_data_close(stint_data *data)
{
    if (!data)
        return;
    for (int i = 0; i < data->file_count; i++)
        close(data->fds[i]);
    sti_free(data->kept);
    sti_free(data->samples);
    sti_free(data->names);
    sti_arena_destroy(data->arena);
    sti_free(data);
}

const stint_data_info *stint_data_describe(const stint_data *data)
{
    return &data->info;
}

int32_t sti_data_label(const stint_data *data, int64_t index)
{
    return data->samples[index].label;
}

void sti_data_count_classes(const stint_data *data, int64_t *counts_out)
{
    for (int32_t c = 0; c < data->info.classes; c++)
        counts_out[c] = 0;
    for (int64_t i = 0; i < data->info.count; i++)
        counts_out[data->samples[i].label]++;
}

static void log_absent(const stint_data_info *info, const int64_t *count)
{
    enum { NAMED = 5 };
    sti_text names = {0};
    int32_t absent = 0;
    for (int32_t c = 0; c < info->classes; c++) {
        if (count[c] > 0)
            continue;
        if (absent < NAMED)
            sti_text_printf(&names, "%s'%s'", absent ? ", " : "", info->class_names[c]);
        absent++;
    }
    if (absent > 0)
        sti_log(STINT_LOG_INFO,
                "%s: no images of %d of the %d classes (%s%s); what is said by class "
                "leaves them out",
                info->from, (int)absent, (int)info->classes,
                names.data ? names.data : "", absent > NAMED ? ", ..." : "");
    sti_text_fini(&names);
}

stint_status sti_data_tell_absent(const stint_data *data)
{
    int64_t *count = sti_alloc_array(data->info.classes, sizeof *count, "data.classes");
    if (!count)
        return STINT_E_MEMORY;
    sti_data_count_classes(data, count);
    log_absent(&data->info, count);
    sti_free(count);
    return STINT_OK;
}

void sti_data_sample_name(const stint_data *data, int64_t index, char *text_out,
                          size_t bytes)
{
    data->source->name_of(data, index, text_out, bytes);
}

void sti_data_prefetch(const stint_data *data, const int32_t *samples, int64_t count)
{
    for (int64_t i = 0; i < count && !data->kept; i++)
        if (samples[i] >= 0 && samples[i] < data->info.count)
            data->source->prefetch(data, samples[i]);
}
