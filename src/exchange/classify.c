#include "exchange/classify.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/finite.h"
#include "base/shown.h"
#include "base/stop.h"
#include "data/data.h"
#include "infer/evaluate.h"
#include "infer/recall.h"
#include "op/op.h"

/* ---- ports ---- */

static bool is_colour(int64_t channels)
{
    return channels == 1 || channels == 3;
}

/* [n, classes], or with axes of length 1 behind. */
static int32_t classes_of(const sti_classifier_ports *p)
{
    const stint_shape *s = &p->output->shape;
    const int64_t count = stint_shape_count(s);
    if (s->rank < 2 || s->dtype != STINT_F32 || s->dim[0] != p->batch ||
        count != s->dim[0] * s->dim[1] || s->dim[1] < 2 || s->dim[1] > INT32_MAX)
        return 0;
    return (int32_t)s->dim[1];
}

static bool ends_in_softmax(const sti_imported *m, stint_value v)
{
    const sti_node *node = sti_graph_value(m->graph, v)->producer;
    while (node && node->op->flags & STI_OP_VIEW)
        node = sti_graph_value(m->graph, node->in[0])->producer;
    return node && strcmp(node->op->name, "softmax") == 0;
}

bool sti_classifier_takes(const stint_shape *s, int layout, bool *last)
{
    const bool pictures = s->rank == 4 && s->dtype == STINT_F32;
    const bool first = pictures && layout != STI_LAYOUT_NHWC && is_colour(s->dim[1]);
    *last = pictures && !first && layout != STI_LAYOUT_NCHW && is_colour(s->dim[3]);
    return first || *last;
}

stint_status sti_classifier_find(const sti_imported *m, sti_classifier_ports *out)
{
    sti_classifier_ports p = {.input = m->lowered.input, .output = m->lowered.output};
    const stint_shape *s = m->lowered.inputs == 1 ? &p.input->shape : NULL;
    if (!s || p.input->type == STI_EXCHANGE_BOOL || m->lowered.outputs < 1 ||
        !sti_classifier_takes(s, m->images.layout, &p.last))
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: its inputs are not one of pictures ([n, 1 or 3, height, "
                        "width], or channels last); give arrays by --input",
                        sti_shown(m->path));
    p.batch = s->dim[0];
    p.channels = s->dim[p.last ? 3 : 1];
    p.height = s->dim[p.last ? 1 : 2];
    p.width = s->dim[p.last ? 2 : 3];
    p.classes = classes_of(&p);
    p.probabilities = ends_in_softmax(m, p.output->value);
    *out = p;
    return STINT_OK;
}

void sti_classifier_put(const sti_classifier_ports *p, const sti_imported *m,
                        int64_t slot, const uint8_t *pixels)
{
    const sti_image_form *f = &m->images;
    const int64_t size = p->height * p->width;
    float *to = sti_imported_data(m, p->input);
    if (!to)
        return; /* nothing reads it */
    to += slot * size * p->channels;
    if (!pixels)
        memset(to, 0, (size_t)(size * p->channels) * sizeof *to);
    for (int64_t i = 0; pixels && i < size; i++)
        for (int64_t c = 0; c < p->channels; c++)
            to[p->last ? i * p->channels + c : c * size + i] =
                ((float)pixels[i * p->channels + c] * f->scale - f->mean[c]) /
                f->deviation[c];
}

void sti_classifier_take(const sti_classifier_ports *p, const sti_imported *m,
                         int64_t slot, float *scores_out)
{
    const float *from = sti_imported_data(m, p->output);
    for (int32_t c = 0; c < p->classes; c++) {
        const float x = from[slot * p->classes + c];
        scores_out[c] = p->probabilities ? logf(x > 1e-37f ? x : 1e-37f) : x;
    }
}

/* ---- data ---- */

stint_status sti_classifier_open_data(const sti_classifier_ports *p,
                                      const sti_imported *m,
                                      const stint_data_desc *desc,
                                      stint_data **data_out)
{
    stint_data_desc wanted = *desc;
    stint_data *data = NULL;
    if (p->classes == 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: its first output %s has no score for each class; `stint "
                        "run` takes it",
                        sti_shown(m->path), sti_shape_text(&p->output->shape));
    if (p->height != p->width)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: pictures of %" PRId64 " x %" PRId64
                        "; labelled data are brought to squares alone, import it again "
                        "with --shape",
                        sti_shown(m->path), p->height, p->width);
    wanted.size = p->height;
    wanted.channels = (int)p->channels;
    const stint_status st = stint_data_open(&wanted, &data);
    if (st != STINT_OK)
        return st;
    const stint_data_info *info = stint_data_describe(data);
    if (info->classes != p->classes) {
        const stint_status other =
            sti_fail(STINT_E_INPUT,
                     "%s: images of %d classes, but the network has scores for %d",
                     info->path, (int)info->classes, (int)p->classes);
        stint_data_close(data);
        return other;
    }
    *data_out = data;
    return STINT_OK;
}

typedef struct split_run {
    const sti_classifier_ports *ports;
    sti_imported *m;
    stint_data *data;
    sti_data_decoders *decoders;
    uint8_t *pixels;
    float *scores;
    stint_train_progress_fn *progress;
    void *user;
    int64_t start_ns, count;
} split_run;

static stint_status fill_batch(const split_run *r, int64_t first)
{
    stint_status st = STINT_OK;
    for (int64_t slot = 0; slot < r->ports->batch && st == STINT_OK; slot++) {
        const bool there = first + slot < r->count;
        if (there)
            st = sti_data_decode(r->data, first + slot, r->decoders, 0, r->pixels);
        if (st == STINT_OK)
            sti_classifier_put(r->ports, r->m, slot, there ? r->pixels : NULL);
    }
    return st;
}

static void tell(const split_run *r, int64_t done)
{
    const stint_train_progress p = sti_evaluation_at(r->start_ns, done, r->count);
    if (r->progress)
        r->progress(r->user, &p);
}

static stint_status run_batches(split_run *r, sti_classifier_scores_fn *scores,
                                void *user)
{
    const sti_team team = {.threads = r->m->threads};
    stint_status st = STINT_OK;
    for (int64_t first = 0; first < r->count && st == STINT_OK;
         first += r->ports->batch) {
        st = fill_batch(r, first);
        if (st == STINT_OK)
            sti_imported_run(r->m, &team);
        for (int64_t slot = 0;
             slot < r->ports->batch && first + slot < r->count && st == STINT_OK;
             slot++) {
            sti_classifier_take(r->ports, r->m, slot, r->scores);
            scores(user, first + slot, r->scores);
            tell(r, first + slot + 1);
        }
        if (st == STINT_OK)
            st = sti_stop_asked();
    }
    return st;
}

stint_status sti_classifier_run(const sti_classifier_ports *p, sti_imported *m,
                                stint_data *data, stint_train_progress_fn *progress,
                                void *progress_user, sti_classifier_scores_fn *scores,
                                void *user)
{
    split_run r = {.ports = p,
                   .m = m,
                   .data = data,
                   .progress = progress,
                   .user = progress_user,
                   .start_ns = sti_clock_ns(),
                   .count = stint_data_describe(data)->count};
    r.pixels = sti_alloc_array(p->height * p->width, (size_t)p->channels, "pixels");
    r.scores = sti_alloc_array(p->classes, sizeof *r.scores, "scores");
    stint_status st = r.pixels && r.scores ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_data_decoders_create(data, 1, &r.decoders);
    if (st == STINT_OK)
        st = run_batches(&r, scores, user);
    sti_data_decoders_destroy(r.decoders);
    sti_free(r.pixels);
    sti_free(r.scores);
    return st;
}

/* ---- evaluation ---- */

typedef struct tally {
    const stint_data *data;
    stint_eval_result *result;
    double loss; /* sum */
} tally;

/* Cross-entropy of the label, by the largest score so that nothing overflows. */
static double loss_of(const float *scores, int32_t classes, int32_t label)
{
    const double most = (double)scores[sti_largest_logit(scores, classes)];
    double sum = 0;
    for (int32_t c = 0; c < classes; c++)
        sum += exp((double)scores[c] - most);
    return log(sum) + most - (double)scores[label];
}

static void count_answer(void *user, int64_t sample, const float *scores)
{
    tally *t = user;
    stint_eval_result *r = t->result;
    const int32_t label = sti_data_label(t->data, sample);
    const int32_t answer = sti_largest_logit(scores, r->classes);
    t->loss += sti_first_not_finite(scores, r->classes) >= 0
                   ? (double)NAN
                   : loss_of(scores, r->classes, label);
    r->class_count[label]++;
    r->class_correct[label] += answer == label;
    r->confusion[(int64_t)label * r->classes + answer]++;
}

static stint_status result_init(stint_eval_result *r, int32_t classes)
{
    *r = (stint_eval_result){
        .classes = classes, .bits_per_byte = (double)NAN, .relative_l2 = (double)NAN};
    r->class_count = sti_alloc_array(classes, sizeof *r->class_count, "class counts");
    r->class_correct =
        sti_alloc_array(classes, sizeof *r->class_correct, "class counts");
    r->confusion =
        sti_alloc_array((int64_t)classes * classes, sizeof *r->confusion, "confusion");
    return r->class_count && r->class_correct && r->confusion ? STINT_OK
                                                              : STINT_E_MEMORY;
}

static void sum_up(stint_eval_result *r, double loss, int64_t count, double seconds)
{
    int64_t correct = 0;
    for (int32_t c = 0; c < r->classes; c++)
        correct += r->class_correct[c];
    const sti_recall recall =
        sti_recall_of(r->classes, r->class_count, r->class_correct);
    r->count = count;
    r->loss = loss / (double)count;
    r->accuracy = (double)correct / (double)count;
    r->images_per_s = (double)count / seconds;
    r->balanced_accuracy = recall.mean;
    r->lowest_recall = recall.lowest;
    r->lowest_class = recall.lowest_class;
    r->peak_rss_bytes = sti_process_peak_bytes();
}

stint_status sti_classifier_eval(const sti_classifier_ports *p, sti_imported *m,
                                 stint_data *data, stint_train_progress_fn *progress,
                                 void *user, stint_eval_result *result_out)
{
    stint_eval_result r;
    tally t = {.data = data, .result = &r};
    const int64_t start = sti_clock_ns();
    stint_status st = result_init(&r, p->classes);
    if (st == STINT_OK)
        st = sti_classifier_run(p, m, data, progress, user, count_answer, &t);
    if (st == STINT_OK && !isfinite(t.loss))
        st = sti_fail(STINT_E_INPUT,
                      "%s: its scores are no finite numbers; take another copy, or "
                      "other --mean, --std and --scale",
                      sti_shown(m->path));
    if (st != STINT_OK) {
        stint_eval_fini(&r);
        return st;
    }
    sum_up(&r, t.loss, stint_data_describe(data)->count, sti_seconds_since(start));
    *result_out = r;
    return STINT_OK;
}
