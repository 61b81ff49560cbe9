#include "recommend/scorer.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "kernel/maths/maths.h"
#include "stint/op.h"
#include "train/ranking.h"

stint_status sti_scorer_open(const stint_click_model_desc *model,
                             const sti_clicks *clicks, int64_t batch, int64_t parts,
                             int threads, sti_scorer *scorer)
{
    const char *names[3];
    stint_graph *g = NULL;
    stint_value logits = -1;
    *scorer = (sti_scorer){
        .clicks = clicks, .width = model->width, .batch = batch, .part = batch / parts};
    stint_status st = stint_graph_create(STINT_EVAL, &g);
    if (st == STINT_OK)
        st = sti_learner_graph(model, clicks, scorer->part, g, &logits, NULL);
    if (st != STINT_OK) {
        stint_graph_destroy(g);
        return st;
    }
    const stint_named_value output = {"logits", logits};
    const stint_use_desc desc = {.graph = g,
                                 .inputs = names,
                                 .input_count =
                                     sti_learner_inputs(clicks, false, names),
                                 .outputs = &output,
                                 .output_count = 1,
                                 .threads = threads};
    return stint_use_open(&desc, &scorer->use);
}

void sti_scorer_close(sti_scorer *scorer)
{
    stint_use_close(scorer->use);
    sti_feed_fini(&scorer->feed);
    sti_free(scorer->probability);
    sti_free(scorer->logit);
    sti_free(scorer->label);
    *scorer = (sti_scorer){.use = NULL};
}

static void fill(void *user, int64_t part, void *const *input)
{
    const sti_scorer *j = user;
    (void)sti_learner_gather(j->clicks, j->now, j->by_row, j->row, j->width,
                             part * j->part, j->part, input);
}

static void take(void *user, int64_t part, const void *const *output)
{
    sti_scorer *j = user;
    const float *logit = output[0];
    for (int64_t k = 0; k < j->part; k++) {
        const int64_t i = part * j->part + k;
        if (i < j->now->count)
            j->logit[j->first + i] = logit[k];
    }
}

static void take_labels(sti_scorer *j)
{
    for (int64_t i = 0; i < j->now->count; i++) {
        float label;
        memcpy(&label, j->now->samples + (size_t)i * j->clicks->sample_bytes,
               sizeof label);
        j->label[j->first + i] = label > 0;
    }
}

static stint_status tell(sti_scorer *j, const stint_embed_eval_desc *desc)
{
    if (!desc || !desc->scores)
        return STINT_OK;
    for (int64_t i = 0; i < j->now->count; i++)
        j->probability[i] = sti_sigmoid_f32(j->logit[j->first + i]);
    return desc->scores(desc->user, j->first, j->now->count, j->probability);
}

static stint_status run_batch(sti_scorer *j, int64_t batch)
{
    int64_t ids = 0;
    stint_status st = STINT_OK;
    if (j->store)
        STI_TRY(sti_row_store_step(j->store, batch, &j->by_row, &j->row));
    else
        STI_TRY(sti_feed_load(&j->feed, batch, 0, NULL, NULL, &ids));
    j->now = &j->feed.slot[j->store ? batch % j->feed.desc.rings : 0];
    j->first = batch * j->batch;
    stint_use_run(j->use, (j->now->count + j->part - 1) / j->part, fill, take, j);
    take_labels(j);
    if (j->store)
        STI_TRY(sti_row_store_done(j->store, batch));
out:
    return st;
}

static stint_status make_room(sti_scorer *j, const sti_feed_desc *feed, int64_t count)
{
    j->probability = sti_alloc_array(j->batch, sizeof *j->probability, "scores");
    j->logit = sti_alloc_array(count + 1, sizeof *j->logit, "scores");
    j->label = sti_alloc((size_t)count + 1, "scores");
    if (!j->probability || !j->logit || !j->label)
        return STINT_E_MEMORY;
    return sti_feed_init(&j->feed, feed);
}

static stint_status rank_all(sti_scorer *j, int64_t count, stint_embed_scores *out)
{
    sti_ranking r;
    const stint_status st = sti_rank_scores(j->logit, j->label, count, &r);
    if (st != STINT_OK)
        return st;
    *out = (stint_embed_scores){.count = r.count,
                                .positives = r.positives,
                                .auc = r.auc,
                                .log_loss = r.log_loss,
                                .accuracy = r.accuracy,
                                .calibration = r.calibration};
    return STINT_OK;
}

stint_status sti_scorer_run(sti_scorer *j, sti_row_store *store, int rings,
                            int64_t first, int64_t count,
                            const stint_embed_eval_desc *desc,
                            stint_embed_scores *scores_out)
{
    const sti_feed_desc feed = {.clicks = j->clicks,
                                .first = first,
                                .count = count,
                                .once = true,
                                .batch = j->batch,
                                .rings = rings};
    const int64_t batches = sti_feed_batches(&feed);
    stint_status st;
    j->store = store;
    STI_TRY(make_room(j, &feed, count));
    if (store)
        STI_TRY(sti_row_store_begin(store, &(sti_row_course){.batches = batches,
                                                             .load = sti_feed_load,
                                                             .user = &j->feed,
                                                             .look = sti_feed_look,
                                                             .look_user = &j->feed}));
    for (int64_t b = 0; b < batches; b++) {
        STI_TRY(run_batch(j, b));
        STI_TRY(tell(j, desc));
    }
    STI_TRY(rank_all(j, count, scores_out));
out:
    return st;
}
