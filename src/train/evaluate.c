#include "train/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/stop.h"

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
    *e = (sti_evaluation){
        .count = count, .classes = classes, .batches = batches_of(count, images)};
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

void sti_evaluation_fini(sti_evaluation *e)
{
    sti_free(e->predicted);
    sti_free(e->probability);
    sti_free(e->batch_loss);
    sti_free(e->samples);
    *e = (sti_evaluation){0};
}

typedef struct eval_round {
    sti_crew *crew;
    const sti_data_norm *norm;
    sti_evaluation *evaluation;
    int64_t first, end; /* batch of lane 0; of the last batch of this rank, plus 1 */
} eval_round;

static const stint_data *data_of(const eval_round *r)
{
    const sti_crew_desc *desc = &r->crew->desc;
    return r->evaluation->of == STI_EVALUATE_TEST    ? desc->test_data
           : r->evaluation->of == STI_EVALUATE_TRAIN ? desc->train_data
                                                     : desc->validation_data;
}

int32_t sti_largest_logit(const float *logits, int32_t classes)
{
    int32_t best = 0;
    for (int32_t c = 1; c < classes; c++)
        if (logits[c] > logits[best])
            best = c;
    return best;
}

static void take_answers(const eval_round *r, const sti_lane *lane, int64_t batch)
{
    const sti_network *net = r->crew->desc.eval;
    sti_evaluation *e = r->evaluation;
    const float *logits = sti_exec_address(lane->eval, net->logits);
    const float *probabilities = sti_exec_address(lane->eval, net->probabilities);
    for (int64_t i = 0; i < net->images; i++) {
        int64_t sample = batch * net->images + i;
        if (sample >= e->count)
            break;
        int32_t best = sti_largest_logit(logits + i * e->classes, e->classes);
        e->predicted[sample] = best;
        e->probability[sample] = probabilities[i * e->classes + best];
        if (e->logits)
            memcpy(e->logits + sample * e->classes, logits + i * e->classes,
                   (size_t)e->classes * sizeof *logits);
    }
}

/* Inputs of a batch: images, or windows of text. */
static stint_status load_batch(const eval_round *r, sti_lane *lane,
                               const int32_t *samples)
{
    const sti_crew *crew = r->crew;
    const sti_network *net = crew->desc.eval;
    void *input = sti_exec_address(lane->eval, net->input);
    int32_t *labels = sti_exec_address(lane->eval, net->labels);
    const sti_corpus_cut cut = {.part = r->evaluation->part, .context = net->context};
    if (crew->desc.text)
        return sti_corpus_batch(crew->desc.text, &cut, samples, net->images, input,
                                labels);
    return sti_data_batch(data_of(r), &crew->lane_team,
                          r->evaluation->of == STI_EVALUATE_TEST ? lane->test_decoders
                                                                 : lane->train_decoders,
                          samples, net->images, NULL, r->norm, input, labels);
}

/* The loss is a mean over all rows of the batch, padding counted in. */
static double summed_loss(const sti_network *net, const sti_lane *lane)
{
    const float *loss = sti_exec_address(lane->eval, net->loss);
    const int64_t rows = net->images * (net->context ? net->context : 1);
    return (double)*loss * (double)rows;
}

static stint_status run_batch(const eval_round *r, sti_lane *lane, int index)
{
    const sti_crew *crew = r->crew;
    const sti_network *net = crew->desc.eval;
    int64_t batch = r->first + index;
    int32_t *samples = r->evaluation->samples + index * net->images;
    for (int64_t i = 0; i < net->images; i++) {
        int64_t sample = batch * net->images + i;
        samples[i] = sample < r->evaluation->count ? (int32_t)sample : -1;
    }
    stint_status st = load_batch(r, lane, samples);
    if (st != STINT_OK)
        return st;
    sti_exec_run(lane->eval, &crew->lane_team, &(sti_step){0, batch, 0});
    r->evaluation->batch_loss[batch] = summed_loss(net, lane);
    if (!crew->desc.text)
        take_answers(r, lane, batch);
    return STINT_OK;
}

static void run_lane(void *arg, int64_t piece, int worker)
{
    const eval_round *r = arg;
    sti_lane *lane = &r->crew->lanes[piece];
    (void)worker;
    lane->status = run_batch(r, lane, (int)piece);
    if (lane->status != STINT_OK)
        snprintf(lane->failure, sizeof lane->failure, "%s", stint_last_error());
}

static stint_status run_round(eval_round *r, int lanes)
{
    if (lanes == 1 && r->crew->desc.lanes == 1)
        run_lane(r, 0, 0);
    else
        sti_team_run(&r->crew->team, lanes, run_lane, r);
    for (int i = 0; i < lanes; i++)
        if (r->crew->lanes[i].status != STINT_OK)
            return sti_fail(r->crew->lanes[i].status, "%s", r->crew->lanes[i].failure);
    return STINT_OK;
}

/* Warm the page cache for the round after this one. */
static void prefetch(const eval_round *r)
{
    const sti_crew *crew = r->crew;
    int32_t next[64];
    int64_t ahead = crew->desc.lanes * crew->desc.eval->images;
    int64_t first = r->first * crew->desc.eval->images + ahead;
    if (crew->desc.text)
        return;
    for (int64_t i = 0; i < ahead && first + i < r->evaluation->count;) {
        int64_t n = 0;
        while (n < 64 && i < ahead && first + i < r->evaluation->count)
            next[n++] = (int32_t)(first + i++);
        sti_data_prefetch(data_of(r), next, n);
    }
}

static sti_shard_range own_batches(const sti_evaluation *e, const sti_comm *comm,
                                   int rank)
{
    const sti_shard_range all = {0, e->batches};
    return comm ? sti_shard_part(all, sti_comm_size(comm), rank) : all;
}

/* Every rank's answers to all, as bytes. */
static stint_status share_answers(sti_evaluation *e, int64_t images, sti_comm *comm)
{
    stint_status st = STINT_OK;
    sti_comm_set_place(comm, "the answers to test images", 0);
    for (int r = 0; r < sti_comm_size(comm) && st == STINT_OK; r++) {
        sti_shard_range own = own_batches(e, comm, r);
        int64_t first = own.first * images, end = (own.first + own.count) * images;
        end = end < e->count ? end : e->count;
        if (own.count == 0)
            continue;
        st = sti_comm_broadcast(comm, r, e->batch_loss + own.first,
                                (size_t)own.count * sizeof *e->batch_loss);
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

/* data NULL: of text. */
static void sum_up(const stint_data *data, sti_evaluation *e)
{
    double loss = 0;
    int64_t correct = 0;
    for (int64_t b = 0; b < e->batches; b++)
        loss += e->batch_loss[b];
    if (!data) {
        e->loss = loss / (double)(e->part.end - e->part.begin - 1);
        e->accuracy = (double)NAN;
        return;
    }
    for (int64_t i = 0; i < e->count; i++)
        correct += e->predicted[i] == sti_data_label(data, i);
    e->loss = loss / (double)e->count;
    e->accuracy = (double)correct / (double)e->count;
}

stint_status sti_evaluate(sti_crew *crew, const sti_data_norm *norm, sti_evaluation *e,
                          sti_evaluation_progress_fn *progress, void *user)
{
    sti_comm *comm = crew->desc.comm;
    sti_shard_range own = own_batches(e, comm, comm ? sti_comm_rank(comm) : 0);
    eval_round r = {.crew = crew,
                    .norm = norm,
                    .evaluation = e,
                    .first = own.first,
                    .end = own.first + own.count};
    for (int i = 0; i < crew->desc.lanes; i++)
        sti_exec_set_region(crew->lanes[i].eval, STI_REGION_RESULT,
                            crew->results + (size_t)crew->lanes[i].first_slot *
                                                crew->sizes.results);
    while (r.first < r.end) {
        int64_t left = r.end - r.first;
        int lanes = left < crew->desc.lanes ? (int)left : crew->desc.lanes;
        prefetch(&r);
        stint_status st = run_round(&r, lanes);
        if (st == STINT_OK && !comm && sti_stop_asked() != STINT_OK)
            st = sti_fail(sti_stop_asked(), "stopped while evaluating");
        if (st != STINT_OK)
            return st;
        r.first += lanes;
        if (progress) {
            int64_t done = (r.first - own.first) * crew->desc.eval->images;
            int64_t all = own.count * crew->desc.eval->images;
            progress(user, done < e->count ? done : e->count,
                     all < e->count ? all : e->count);
        }
    }
    if (comm) {
        stint_status st = share_answers(e, crew->desc.eval->images, comm);
        if (st != STINT_OK)
            return st;
    }
    sum_up(data_of(&r), e);
    return STINT_OK;
}
