/* stint data check: read everything once and tell all that is wrong, not only the
 * first.
 *
 * Findings of the index come while it is built (through a sink instead of as errors);
 * the images are then decoded in parallel rounds whose findings are told in sample
 * order. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "data/data_priv.h"

#define ROUND      1024
#define TEXT_BYTES 512

typedef struct result {
    bool found;
    sti_finding kind;
    char text[TEXT_BYTES];
    sti_image_info seen; /* width 0: nothing */
} result;

/* What the pictures of a split are like. */
typedef struct check_sizes {
    int64_t count, turned;          /* pictures; those whose pixels lie otherwise */
    int64_t least_w, least_h, w, h; /* the smallest and the largest by area */
    bool mixed;
    double largest_aspect; /* longer side over shorter, of the longest picture */
} check_sizes;

typedef struct check_job {
    const stint_data *data;
    sti_data_decoders *decoders;
    uint8_t *pixels; /* [threads, h, w, c] */
    int64_t pixel_bytes, first;
    result *results; /* [ROUND] */
    bool any_channels;
    check_sizes sizes;
} check_job;

static bool named_for_other(const char *name, sti_image_kind kind)
{
    const int named = sti_image_kind_of_name(name);
    return named >= 0 && named != (int)kind;
}

/* Remarks on an image that did decode. */
static void remark(const check_job *job, int64_t index, const sti_image_info *seen,
                   result *r)
{
    char name[300];
    sti_data_sample_name(job->data, index, name, sizeof name);
    if (named_for_other(name, seen->kind)) {
        r->found = true;
        r->kind = STI_FIND_EXTENSION;
        (void)snprintf(r->text, sizeof r->text,
                       "%s is a %s file by its contents (it is read)", name,
                       sti_image_kind_name(seen->kind));
    } else if (job->any_channels && seen->channels != (int)job->data->info.channels) {
        r->found = true;
        r->kind = STI_FIND_CHANNELS;
        (void)snprintf(
            r->text, sizeof r->text,
            "%s is %s, the first image is not: it will be turned %s; `channels` in "
            "[data] decides for all",
            name, seen->channels == 3 ? "in colour" : "grey",
            seen->channels == 3 ? "grey" : "to colour");
    } else if (seen->bad_orientation) {
        r->found = true;
        r->kind = STI_FIND_ORIENTATION;
        (void)snprintf(r->text, sizeof r->text,
                       "%s has an orientation tag that means nothing (it is read as it "
                       "is stored)",
                       name);
    }
}

static void check_piece(void *arg, int64_t piece, int worker)
{
    const check_job *job = arg;
    int64_t index = job->first + piece;
    result *r = &job->results[piece];
    r->seen = (sti_image_info){0};
    stint_status st = sti_data_decode(job->data, index, job->decoders, worker,
                                      job->pixels + worker * job->pixel_bytes);
    const bool seen = sti_data_decode_seen(job->decoders, worker, &r->seen);
    r->found = st != STINT_OK;
    if (r->found) {
        r->kind = sti_data_decode_fault(job->decoders, worker);
        (void)snprintf(r->text, sizeof r->text, "%s", stint_last_error());
    } else if (seen) {
        remark(job, index, &r->seen, r);
    }
}

/* Pictures that could be read at least as far as their size. */
static void count_size(check_sizes *s, const sti_image_info *seen)
{
    if (seen->width == 0)
        return;
    const double w = (double)seen->width, h = (double)seen->height;
    s->largest_aspect = fmax(s->largest_aspect, fmax(w / h, h / w));
    s->turned += seen->orientation != 1;
    if (s->count++ == 0) {
        s->w = s->least_w = seen->width;
        s->h = s->least_h = seen->height;
        return;
    }
    s->mixed = s->mixed || seen->width != s->w || seen->height != s->h;
    if (seen->width * seen->height > s->w * s->h) {
        s->w = seen->width;
        s->h = seen->height;
    } else if (seen->width * seen->height < s->least_w * s->least_h) {
        s->least_w = seen->width;
        s->least_h = seen->height;
    }
}

/* What is done about sizes, or could be. */
static stint_status tell_sizes(const check_job *job, sti_data_sink *sink)
{
    const check_sizes *s = &job->sizes;
    const stint_data *data = job->data;
    const char *split = sti_data_split_name(data->split);
    stint_status st = STINT_OK;
    if (s->turned > 0)
        st = sti_data_find(sink, STI_FIND_SIZES,
                           "%s: %" PRId64 " of %" PRId64 " images are stored lying or "
                           "mirrored; they are turned as their orientation tag says",
                           split, s->turned, s->count);
    if (st != STINT_OK || (!s->mixed && !(data->size && s->largest_aspect > 1)))
        return st;
    char sizes[96] = "";
    if (s->mixed)
        (void)snprintf(sizes, sizeof sizes,
                       "sizes from %" PRId64 "x%" PRId64 " to %" PRId64 "x%" PRId64
                       "; ",
                       s->least_w, s->least_h, s->w, s->h);
    const double lost = 100 * (1 - 1 / s->largest_aspect);
    return sti_data_find(sink, STI_FIND_SIZES,
                         "%s: %s%s, fit = squash distorts proportions by up to %.2f, "
                         "crop cuts off up to %.0f %% of a picture, pad leaves up to "
                         "%.0f %% of an image grey",
                         split, sizes,
                         data->size ? "at this size" : "with a `size` in [data]",
                         s->largest_aspect, lost, lost);
}

static stint_status read_rounds(check_job *job, const stint_data_check_desc *desc,
                                const sti_team *team, sti_data_sink *sink)
{
    int64_t count = job->data->info.count;
    stint_status st = STINT_OK;
    for (job->first = 0; job->first < count && st == STINT_OK; job->first += ROUND) {
        int64_t n = count - job->first < ROUND ? count - job->first : ROUND;
        sti_team_run(team, n, check_piece, job);
        for (int64_t i = 0; i < n; i++)
            count_size(&job->sizes, &job->results[i].seen);
        for (int64_t i = 0; i < n && st == STINT_OK; i++)
            if (job->results[i].found)
                st = sti_data_find(sink, job->results[i].kind, "%s",
                                   job->results[i].text);
        if (desc->progress)
            desc->progress(desc->user, job->first + n, count);
    }
    return st == STINT_OK ? tell_sizes(job, sink) : st;
}

/* Decode every sample of one split. */
static stint_status read_split(const stint_data *data,
                               const stint_data_check_desc *desc, sti_data_sink *sink)
{
    sti_team team = {desc->threads > 0 ? desc->threads : 1};
    check_job job = {.data = data, .any_channels = desc->channels == 0};
    job.pixel_bytes = data->info.height * data->info.width * data->info.channels;
    stint_status st = sti_data_decoders_create(data, team.threads, &job.decoders);
    if (st != STINT_OK)
        return st;
    job.pixels = sti_alloc_array(team.threads, (size_t)job.pixel_bytes, "data.pixels");
    job.results = sti_alloc_array(ROUND, sizeof *job.results, "data.check");
    st = job.pixels && job.results ? read_rounds(&job, desc, &team, sink)
                                   : STINT_E_MEMORY;
    sti_free(job.results);
    sti_free(job.pixels);
    sti_data_decoders_destroy(job.decoders);
    return st;
}

/* Open and read one split; whatever stops it is told as a problem too. */
static stint_status check_split(const stint_data_check_desc *desc,
                                stint_data_split split, const stint_data_info *like,
                                sti_data_sink *sink, stint_data **data_out)
{
    stint_data_desc open = {.path = desc->path,
                            .split = split,
                            .format = desc->format,
                            .size = desc->size,
                            .channels = desc->channels,
                            .nested = desc->nested,
                            .like = like};
    stint_status st = sti_data_open_checked(&open, sink, data_out);
    if (st == STINT_OK)
        st = read_split(*data_out, desc, sink);
    if (st == STINT_E_INPUT || st == STINT_E_IO)
        return sti_data_find(
            sink, st == STINT_E_IO ? STI_FIND_UNREADABLE : STI_FIND_DAMAGED_INDEX, "%s",
            stint_last_error());
    return st;
}

static void tell_totals(const sti_data_sink *sink, stint_data_check_result *out)
{
    for (int kind = 0; kind < STI_FIND_COUNT; kind++)
        *(kind >= STI_FIND_SKIPPED ? &out->notes : &out->problems) +=
            sink->counts[kind];
    sti_data_tell_rest(sink, "");
}

static stint_status check_splits(const stint_data_check_desc *desc, sti_data_sink *sink,
                                 stint_data_check_result *out)
{
    stint_data *train = NULL, *test = NULL;
    stint_status st = check_split(desc, STINT_DATA_TRAIN, NULL, sink, &train);
    if (train) {
        out->train_count = train->info.count;
        out->classes = train->info.classes;
        out->height = train->info.height;
        out->width = train->info.width;
        out->channels = train->info.channels;
    }
    if (train && train->info.classes == 1 && st == STINT_OK)
        st = sti_data_find(sink, STI_FIND_EMPTY_CLASS,
                           "%s: all training images are of one class, '%s'; there must "
                           "be two or more to learn to tell apart",
                           train->info.path, train->info.class_names[0]);
    if (st == STINT_OK &&
        sti_data_has_part(desc->path, desc->format, STINT_DATA_TEST, desc->nested)) {
        /* An unreadable training split has no say over the test split. */
        const stint_data_info nothing = {0};
        st = check_split(desc, STINT_DATA_TEST, train ? &train->info : &nothing, sink,
                         &test);
        out->test_count = test ? test->info.count : 0;
    } else if (st == STINT_OK && train) {
        st = sti_data_find(sink, STI_FIND_SKIPPED,
                           "%s has no test split: accuracy can be measured on training "
                           "images only",
                           train->info.path);
    }
    stint_data_close(train);
    stint_data_close(test);
    return st;
}

stint_status stint_data_check(const stint_data_check_desc *desc,
                              stint_data_check_result *result_out)
{
    sti_data_sink sink = {.found = desc->found, .user = desc->user};
    *result_out = (stint_data_check_result){0};
    stint_status st = check_splits(desc, &sink, result_out);
    if (st != STINT_OK)
        return st;
    tell_totals(&sink, result_out);
    return result_out->problems == 0
               ? STINT_OK
               : sti_fail(STINT_E_INPUT, "%s: %" PRId64 " problem%s found", desc->path,
                          result_out->problems, sti_s(result_out->problems));
}
