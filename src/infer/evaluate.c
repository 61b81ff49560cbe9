#include "infer/evaluate.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"
#include "kernel/softmax/softmax.h"
#include "net/shard_tree.h"

static int64_t batches_of(int64_t count, int64_t images)
{
    return (count + images - 1) / images;
}

static int64_t answers_of(int64_t count, int32_t classes)
{
    return classes > 0 ? count : 0;
}

size_t sti_evaluation_bytes(int64_t count, int32_t classes, int64_t images, int lanes)
{
    return (size_t)answers_of(count, classes) * (sizeof(int32_t) + sizeof(float)) +
           (size_t)batches_of(count, images) * sizeof(double) +
           (size_t)lanes * (size_t)images * sizeof(int32_t);
}

stint_status sti_evaluation_init(sti_evaluation *e, int64_t count, int32_t classes,
                                 int64_t images, int lanes)
{
    *e = (sti_evaluation){.count = count,
                          .classes = classes,
                          .batches = batches_of(count, images),
                          .images = images};
    const int64_t answers = answers_of(count, classes);
    e->predicted = sti_alloc_array(answers, sizeof *e->predicted, "predictions");
    e->probability = sti_alloc_array(answers, sizeof *e->probability, "predictions");
    e->batch_loss = sti_alloc_array(e->batches, sizeof *e->batch_loss, "test loss");
    e->samples = sti_alloc_array(lanes * images, sizeof *e->samples, "test batch");
    if (e->predicted && e->probability && e->batch_loss && e->samples)
        return STINT_OK;
    sti_evaluation_fini(e);
    return STINT_E_MEMORY;
}

size_t sti_evaluation_parts_bytes(int64_t images, int lanes)
{
    return (size_t)lanes * (size_t)images * sizeof(float);
}

stint_status sti_evaluation_in_parts(sti_evaluation *e, int lanes)
{
    e->row_loss = sti_alloc_array(lanes * e->images, sizeof *e->row_loss, "test loss");
    return e->row_loss ? STINT_OK : STINT_E_MEMORY;
}

void sti_evaluation_fini(sti_evaluation *e)
{
    sti_free(e->row_loss);
    sti_free(e->predicted);
    sti_free(e->probability);
    sti_free(e->batch_loss);
    sti_free(e->samples);
    *e = (sti_evaluation){0};
}

typedef struct eval_round {
    sti_infer_lanes *lanes;
    const sti_eval_source *source;
    sti_evaluation *evaluation;
    int64_t first, end; /* batch of lane 0; of the last batch of this rank, plus 1 */
} eval_round;

stint_train_progress sti_evaluation_at(int64_t start_ns, int64_t done, int64_t total)
{
    const double seconds = sti_seconds_since(start_ns);
    return (stint_train_progress){
        .loss = (double)NAN,
        .accuracy = (double)NAN,
        .test_loss = (double)NAN,
        .test_accuracy = (double)NAN,
        .images_per_s = seconds > 0 ? (double)done / seconds : 0,
        .rss_bytes = sti_process_now_bytes(),
        .seconds_left = seconds * (double)(total - done) / (double)done,
        .evaluating = true,
        .evaluated = done,
        .to_evaluate = total};
}

int32_t sti_largest_logit(const float *logits, int32_t classes)
{
    int32_t best = 0;
    for (int32_t c = 1; c < classes; c++)
        if (logits[c] > logits[best])
            best = c;
    return best;
}

/* What a lane runs at once: a batch, or a part of one. */
typedef struct eval_part {
    int lane;
    int64_t batch, first, end; /* its samples, of those that there are */
} eval_part;

static void take_answers(const eval_round *r, const sti_exec *exec, const eval_part *p)
{
    const sti_network *net = r->lanes->network;
    sti_evaluation *e = r->evaluation;
    const float *logits = sti_exec_address(exec, net->logits);
    const float *probabilities = sti_exec_address(exec, net->probabilities);
    for (int64_t i = 0; p->first + i < p->end; i++) {
        const int64_t sample = p->first + i;
        int32_t best = sti_largest_logit(logits + i * e->classes, e->classes);
        e->predicted[sample] = best;
        e->probability[sample] = probabilities[i * e->classes + best];
        if (e->logits)
            memcpy(e->logits + sample * e->classes, logits + i * e->classes,
                   (size_t)e->classes * sizeof *logits);
    }
}

/* Inputs of a batch: images, or windows of text. */
static stint_status load_batch(const eval_round *r, int lane, const int32_t *samples)
{
    const sti_network *net = r->lanes->network;
    const sti_eval_source *from = r->source;
    const sti_exec *exec = r->lanes->lane[lane].exec;
    void *input = sti_exec_address(exec, net->input);
    int32_t *labels = sti_exec_address(exec, net->labels);
    const sti_corpus_cut cut = {.part = from->part, .context = net->context};
    if (from->text)
        return sti_corpus_batch(from->text, &cut, samples, net->images, input, labels);
    if (from->field) {
        sti_field_points_take(from->field, samples, net->images, from->field->outputs,
                              input, sti_exec_address(exec, net->labels));
        return STINT_OK;
    }
    const stint_status st =
        sti_data_batch(from->data, &r->lanes->lane_team, from->decoders[lane], samples,
                       net->images, NULL, from->norm, input, labels);
    for (int64_t i = 0; from->strangers && i < net->images; i++)
        labels[i] = -1;
    return st;
}

static void hear(const eval_round *r, const sti_exec *exec, const eval_part *p)
{
    const sti_network *net = r->lanes->network;
    const sti_evaluation *e = r->evaluation;
    const float *probabilities = sti_exec_address(exec, net->probabilities);
    for (int64_t i = 0; p->first + i < p->end; i++)
        sti_opinions_add(e->draws->opinions, p->first + i,
                         probabilities + i * e->classes);
}

/* One network, or every one that is drawn, over the inputs that are there. */
static void run_networks(const eval_round *r, sti_exec *exec, const eval_part *p)
{
    const sti_team *team = &r->lanes->lane_team;
    const sti_eval_draws *d = r->evaluation->draws;
    if (!d)
        sti_exec_run(exec, team, &(sti_step){.step = p->batch});
    for (int64_t k = 0; d && k < d->count; k++) {
        sti_exec_run(exec, team, &(sti_step){.seed = d->seed, .step = d->first + k});
        hear(r, exec, p);
    }
}

/* The loss is a mean over all rows of the batch, padding counted in. */
static double summed_loss(const sti_network *net, const sti_exec *exec)
{
    const float *loss = sti_exec_address(exec, net->loss);
    const int64_t rows = net->images * (net->context ? net->context : 1);
    return (double)*loss * (double)rows;
}

/* Sum over the points of a batch of the mean square of their outputs. */
static double summed_squares(const sti_network *net, const sti_exec *exec,
                             const int32_t *samples)
{
    const int64_t outputs = sti_graph_value(net->graph, net->logits)->shape.dim[1];
    const float *y = sti_exec_address(exec, net->logits);
    const float *target = sti_exec_address(exec, net->labels);
    double sum = 0;
    for (int64_t i = 0; i < net->images * outputs; i++) {
        const double error = (double)y[i] - (double)target[i];
        if (samples[i / outputs] >= 0)
            sum += error * error;
    }
    return sum / (double)outputs;
}

/* Losses of a part's images, as the network has them, to their place in the batch. */
static void keep_row_losses(const eval_round *r, const sti_exec *exec,
                            const eval_part *p)
{
    const sti_evaluation *e = r->evaluation;
    const sti_team alone = {.threads = 1};
    const float *logits = sti_exec_address(exec, r->lanes->network->logits);
    float *to = e->row_loss + p->lane * e->images + p->first - p->batch * e->images;
    for (int64_t i = 0; p->first + i < p->end; i++) {
        const int32_t label =
            r->source->strangers ? -1 : sti_data_label(r->source->data, p->first + i);
        const sti_cross_entropy row = {
            .rows = 1, .n = e->classes, .x = logits + i * e->classes, .label = &label};
        sti_cross_entropy_f32(&alone, &row, to + i);
    }
}

/* Summed and rounded as the loss of a network that takes the whole batch at once. */
static double joined_loss(const sti_evaluation *e, int lane, int64_t there)
{
    const float sum = sti_sum_short_f32(there, e->row_loss + lane * e->images);
    return (double)(sum / (float)e->images) * (double)e->images;
}

static stint_status run_part(const eval_round *r, const eval_part *p)
{
    const sti_network *net = r->lanes->network;
    sti_exec *exec = r->lanes->lane[p->lane].exec;
    sti_evaluation *e = r->evaluation;
    int32_t *samples = e->samples + p->lane * e->images;
    for (int64_t i = 0; i < net->images; i++)
        samples[i] = p->first + i < p->end ? (int32_t)(p->first + i) : -1;
    stint_status st = load_batch(r, p->lane, samples);
    if (st != STINT_OK)
        return st;
    run_networks(r, exec, p);
    if (e->row_loss)
        keep_row_losses(r, exec, p);
    else
        e->batch_loss[p->batch] = r->source->field ? summed_squares(net, exec, samples)
                                                   : summed_loss(net, exec);
    if (!r->source->text && !r->source->field)
        take_answers(r, exec, p);
    return STINT_OK;
}

static stint_status run_batch(const eval_round *r, int lane)
{
    sti_evaluation *e = r->evaluation;
    const int64_t batch = r->first + lane, images = r->lanes->network->images;
    const int64_t first = batch * e->images, rest = e->count - first;
    const int64_t end = first + (rest < e->images ? rest : e->images);
    stint_status st = STINT_OK;
    for (int64_t at = first; at < end && st == STINT_OK; at += images)
        st = run_part(r, &(eval_part){.lane = lane,
                                      .batch = batch,
                                      .first = at,
                                      .end = end - at < images ? end : at + images});
    if (e->row_loss && st == STINT_OK)
        e->batch_loss[batch] = joined_loss(e, lane, end - first);
    return st;
}

static void run_lane(void *arg, int64_t piece, int worker)
{
    const eval_round *r = arg;
    (void)worker;
    sti_lane_keep(&r->lanes->lane[piece].status, run_batch(r, (int)piece));
}

/* A single lane is no piece of a loop, inside of which its own loops were serial. */
static stint_status run_round(eval_round *r, int lanes)
{
    if (lanes == 1 && r->lanes->count == 1)
        run_lane(r, 0, 0);
    else
        sti_team_run(&r->lanes->team, lanes, run_lane, r);
    return sti_lanes_status(&r->lanes->lane[0].status, sizeof r->lanes->lane[0], lanes);
}

/* Warm the page cache for the round after this one. */
static void prefetch(const eval_round *r)
{
    int32_t next[64];
    const int64_t images = r->evaluation->images;
    int64_t ahead = r->lanes->count * images;
    int64_t first = r->first * images + ahead;
    if (r->source->text || r->source->field)
        return;
    for (int64_t i = 0; i < ahead && first + i < r->evaluation->count;) {
        int64_t n = 0;
        while (n < 64 && i < ahead && first + i < r->evaluation->count)
            next[n++] = (int32_t)(first + i++);
        sti_data_prefetch(r->source->data, next, n);
    }
}

static sti_shard_range local_batches(const sti_evaluation *e, const sti_comm *comm,
                                     int rank)
{
    const sti_shard_range all = {0, e->batches};
    return comm ? sti_shard_part(all, sti_comm_size(comm), rank) : all;
}

/* Every rank's answers to all, as bytes. */
static stint_status share_answers(sti_evaluation *e, sti_comm *comm)
{
    const int64_t images = e->images;
    stint_status st = STINT_OK;
    sti_comm_set_context(comm, "the answers to test images", 0);
    for (int r = 0; r < sti_comm_size(comm) && st == STINT_OK; r++) {
        sti_shard_range local = local_batches(e, comm, r);
        int64_t first = local.first * images,
                end = (local.first + local.count) * images;
        end = end < e->count ? end : e->count;
        if (local.count == 0)
            continue;
        st = sti_comm_broadcast(comm, r, e->batch_loss + local.first,
                                (size_t)local.count * sizeof *e->batch_loss);
        if (e->classes == 0)
            continue;
        if (st == STINT_OK)
            st = sti_comm_broadcast(comm, r, e->predicted + first,
                                    (size_t)(end - first) * sizeof *e->predicted);
        if (st == STINT_OK)
            st = sti_comm_broadcast(comm, r, e->probability + first,
                                    (size_t)(end - first) * sizeof *e->probability);
    }
    return st;
}

/* Answers of the mean probabilities, and the summed loss of these: their logarithm is
 * no mean of the networks' losses. Of strangers, which have no labels, the entropies.
 */
static double judge_opinions(const sti_eval_source *source, sti_evaluation *e)
{
    const sti_opinions *o = e->draws->opinions;
    double loss = 0;
    for (int64_t i = 0; i < e->count; i++) {
        e->predicted[i] = sti_opinions_answer(o, i);
        e->probability[i] = (float)sti_opinions_mean(o, i, e->predicted[i]);
        loss += source->strangers
                    ? sti_opinions_entropy(o, i)
                    : sti_opinions_loss(o, i, sti_data_label(source->data, i));
    }
    return loss;
}

static void sum_up(const sti_eval_source *source, sti_evaluation *e)
{
    double loss = 0;
    int64_t correct = 0;
    for (int64_t b = 0; b < e->batches; b++)
        loss += e->batch_loss[b];
    if (source->text) {
        e->loss = loss / (double)(source->part.end - source->part.begin - 1);
        e->accuracy = (double)NAN;
        return;
    }
    if (source->field) {
        e->loss = loss / (double)e->count;
        e->accuracy = (double)NAN;
        return;
    }
    if (e->draws)
        loss = judge_opinions(source, e);
    for (int64_t i = 0; i < e->count; i++)
        correct += e->predicted[i] == sti_data_label(source->data, i);
    e->loss = loss / (double)e->count;
    e->accuracy = (double)correct / (double)e->count;
}

/* Samples in so many batches; of the last one what there is. */
static int64_t samples_in(const eval_round *r, int64_t batches)
{
    const int64_t samples = batches * r->evaluation->images;
    return samples < r->evaluation->count ? samples : r->evaluation->count;
}

stint_status sti_evaluate(sti_infer_lanes *lanes, const sti_eval_source *source,
                          sti_comm *comm, sti_evaluation *e,
                          sti_evaluation_progress_fn *progress, void *user)
{
    const sti_shard_range local =
        local_batches(e, comm, comm ? sti_comm_rank(comm) : 0);
    eval_round r = {lanes, source, e, local.first, local.first + local.count};
    stint_status st = STINT_OK;
    assert(e->row_loss || e->images == lanes->network->images);
    while (r.first < r.end) {
        const int64_t left = r.end - r.first;
        const int count = left < lanes->count ? (int)left : lanes->count;
        prefetch(&r);
        STI_TRY(run_round(&r, count));
        if (!comm && sti_stop_asked() != STINT_OK)
            STI_TRY(sti_fail(sti_stop_asked(), "stopped while evaluating"));
        r.first += count;
        if (progress)
            progress(user, samples_in(&r, r.first - local.first),
                     samples_in(&r, local.count));
    }
    if (e->draws)
        e->draws->opinions->networks += e->draws->count;
    if (comm)
        STI_TRY(share_answers(e, comm));
    sum_up(source, e);
out:
    return st;
}
