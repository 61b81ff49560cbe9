#include "recommend/learner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/number.h"
#include "base/units.h"
#include "model/model_section.h"
#include "net/net.h"
#include "stint/op.h"
#include "train/optimizer_section.h"
#include "train/ranking.h"
#include "train/run_section.h"
#include "train/train_section.h"

/* ---- what a recipe says ---- */

static stint_status read_layers(const char *key, const char *list, int64_t *units,
                                int *count_out)
{
    *count_out = 0;
    if (!list || strcmp(list, "none") == 0)
        return STINT_OK;
    for (const char *at = list; *at;) {
        const char *end = at + strcspn(at, ",");
        if (*count_out == STINT_CLICK_LAYERS ||
            !sti_digits_read(at, end, 1 << 20, &units[*count_out]) ||
            units[*count_out] < 1)
            return sti_fail(STINT_E_USAGE,
                            "model.%s: '%s'; at most %d numbers of units, 512,256, or "
                            "none, were wanted",
                            key, list, STINT_CLICK_LAYERS);
        (*count_out)++;
        at = end + (*end == ',');
        while (*at == ' ')
            at++;
    }
    return STINT_OK;
}

stint_status sti_learner_model(const stint_recipe *recipe, stint_click_model_desc *out)
{
    const sti_model_values *m = sti_model_section_of(recipe);
    *out = (stint_click_model_desc){.width = m->width ? m->width : 16};
    stint_status st = read_layers("bottom", m->bottom, out->bottom, &out->bottom_count);
    if (st == STINT_OK)
        st = read_layers("top", m->top, out->top, &out->top_count);
    return st;
}

int64_t sti_learner_steps(const stint_recipe *recipe, const sti_clicks *clicks)
{
    const sti_train_values *t = sti_train_section_of(recipe);
    return t->steps > 0 ? t->steps
                        : (t->epochs * clicks->train + t->batch - 1) / t->batch;
}

/* ---- the graph ---- */

int sti_learner_inputs(const sti_clicks *clicks, bool training, const char *names[3])
{
    int count = 0;
    if (clicks->dense > 0)
        names[count++] = "dense";
    if (clicks->fields > 0)
        names[count++] = "rows";
    if (training)
        names[count++] = "label";
    return count;
}

stint_status sti_learner_graph(const stint_click_model_desc *model,
                               const sti_clicks *clicks, int64_t samples,
                               stint_graph *g, stint_value *logits_out,
                               stint_value *loss_out)
{
    const stint_shape dense = STINT_SHAPE(samples, clicks->dense);
    const stint_shape rows = STINT_SHAPE(samples, clicks->fields, model->width);
    const stint_shape label = STINT_SHAPE(samples, 1);
    const stint_value x = clicks->dense > 0 ? stint_input(g, "dense", &dense) : -1;
    const stint_value r = clicks->fields > 0 ? stint_input(g, "rows", &rows) : -1;
    *logits_out = stint_click_model_build(g, model, x, r);
    if (loss_out)
        *loss_out =
            stint_binary_cross_entropy(g, *logits_out, stint_input(g, "label", &label));
    return stint_graph_check(g);
}

/* ---- samples into inputs ---- */

static void gather_sample(const sti_clicks *c, const sti_feed_slot *slot,
                          const sti_row_batch *by_row, float *const *row, int64_t width,
                          int64_t i, float *out)
{
    const uint32_t *rank =
        sti_clicks_ranks(c, slot->samples + (size_t)i * c->sample_bytes);
    uint32_t id = slot->id_from[i];
    for (int f = 0; f < c->fields; f++, out += width) {
        const uint32_t first = c->field[f].first, end = first + c->field[f].slots;
        bool any = false;
        for (uint32_t k = first; k < end; k++) {
            if (rank[k] == STI_CLICKS_NO_ROW)
                continue;
            const float *from = row[by_row->place[id++]];
            if (!any)
                memcpy(out, from, (size_t)width * sizeof *out);
            for (int64_t j = 0; j < width && any; j++)
                out[j] += from[j];
            any = true;
        }
        if (!any)
            memset(out, 0, (size_t)width * sizeof *out);
    }
}

int sti_learner_gather(const sti_clicks *c, const sti_feed_slot *slot,
                       const sti_row_batch *by_row, float *const *row, int64_t width,
                       int64_t first, int64_t count, void *const *input)
{
    const size_t numbers = (size_t)c->dense * sizeof(float);
    const int64_t vectors = c->fields * width;
    float *dense = c->dense > 0 ? input[0] : NULL;
    float *rows = c->fields > 0 ? input[c->dense > 0] : NULL;
    for (int64_t k = 0; k < count; k++) {
        const int64_t i = first + k;
        const bool there = i < slot->count;
        const char *sample = slot->samples + (size_t)i * c->sample_bytes;
        if (dense && there)
            memcpy(dense + k * c->dense, sti_clicks_numbers(c, sample), numbers);
        else if (dense)
            memset(dense + k * c->dense, 0, numbers);
        if (rows && there)
            gather_sample(c, slot, by_row, row, width, i, rows + k * vectors);
        else if (rows)
            memset(rows + k * vectors, 0, (size_t)vectors * sizeof *rows);
    }
    return (c->dense > 0) + (c->fields > 0);
}

static void fill(void *user, int64_t shard, void *const *input)
{
    const sti_learner *l = user;
    const int64_t n = l->batch / l->shards;
    const int at = sti_learner_gather(&l->clicks, l->now, l->by_row, l->row,
                                      l->model.width, shard * n, n, input);
    float *label = input[at];
    for (int64_t k = 0; k < n; k++)
        memcpy(&label[k],
               l->now->samples + (size_t)(shard * n + k) * l->clicks.sample_bytes,
               sizeof *label);
}

static void take(void *user, int64_t shard, const void *const *gradient)
{
    sti_learner *l = user;
    const int64_t samples = l->batch / l->shards;
    const int64_t n = samples * l->clicks.fields * l->model.width;
    memcpy(l->gradient + (shard - l->own_first / samples) * n, gradient[0],
           (size_t)n * sizeof *l->gradient);
}

/* ---- rows ---- */

enum { PIECE_ROWS = 64 };

static void update_piece(void *arg, int64_t piece, int worker)
{
    sti_learner *l = arg;
    const sti_row_batch *b = l->owned;
    const int64_t end =
        (piece + 1) * PIECE_ROWS < b->count ? (piece + 1) * PIECE_ROWS : b->count;
    const float *gradient = l->ranks > 1 ? l->share.far : l->gradient;
    const uint32_t *index = l->ranks > 1 ? l->share.index : b->vector;
    float *scratch = l->row_scratch + worker * l->model.width;
    for (int64_t u = piece * PIECE_ROWS; u < end; u++)
        sti_row_update_f32(&l->update, gradient, b->start[u + 1] - b->start[u],
                           index + b->start[u], scratch, l->record[u]);
}

/* The rate of rows follows the schedule of the dense part. */
static double row_rate(const sti_learner *l)
{
    const double top = sti_optimizer_section_of(l->recipe)->lr;
    if (l->embedding.lr <= 0)
        return l->last.lr;
    return top > 0 ? l->embedding.lr * (l->last.lr / top) : l->embedding.lr;
}

static void update_rows(sti_learner *l)
{
    l->update = sti_row_update_of(
        (sti_row_rule)l->embedding.optimizer, l->model.width, row_rate(l),
        l->embedding.epsilon, 1.0 / (double)l->shards, stint_session_steps(l->session));
    sti_team_run(&l->team, (l->owned->count + PIECE_ROWS - 1) / PIECE_ROWS,
                 update_piece, l);
}

stint_status sti_learner_begin(sti_learner *l, int64_t step)
{
    if (!l->store)
        return STINT_OK;
    return sti_row_store_begin(
        l->store,
        &(sti_row_course){.first = step,
                          .batches = l->steps,
                          .load = l->ranks > 1 ? sti_row_share_load : sti_feed_load,
                          .user = l->ranks > 1 ? (void *)&l->share : &l->feed,
                          .look = sti_feed_look,
                          .look_user = &l->feed,
                          .trained = true});
}

/* A model of numbers alone has no rows to wait for. */
static stint_status load_alone(sti_learner *l, int64_t step)
{
    int64_t ids;
    l->now = &l->feed.slot[0];
    return sti_feed_load(&l->feed, step, 0, NULL, NULL, &ids);
}

/* The rows of this rank's samples: its own table's, or those that owners send. */
static stint_status fetch_rows(sti_learner *l, int64_t step)
{
    const int ring = (int)(step % l->feed_desc.rings);
    if (l->ranks == 1) {
        l->by_row = l->owned;
        l->row = l->record;
        return STINT_OK;
    }
    sti_comm_set_context(l->share.desc.comm, "the exchange of rows", step + 1);
    l->by_row = &l->share.need[ring];
    l->row = l->share.row;
    return sti_row_share_rows(&l->share, ring, l->owned, l->record);
}

stint_status sti_learner_step(sti_learner *l)
{
    const int64_t step = stint_session_steps(l->session);
    stint_status st;
    if (!l->store) {
        st = load_alone(l, step);
        return st == STINT_OK ? stint_session_step(l->session, &l->last) : st;
    }
    STI_TRY(sti_row_store_step(l->store, step, &l->owned, &l->record));
    l->now = &l->feed.slot[step % l->feed_desc.rings];
    STI_TRY(fetch_rows(l, step));
    STI_TRY(stint_session_step(l->session, &l->last));
    if (l->ranks > 1)
        STI_TRY(sti_row_share_gradients(&l->share, (int)(step % l->feed_desc.rings),
                                        l->owned, l->gradient));
    update_rows(l);
    STI_TRY(sti_row_store_done(l->store, step));
out:
    return st;
}

/* ---- opening ---- */

static stint_status describe(sti_learner *l, const sti_learner_desc *d)
{
    const sti_train_values *t = sti_train_section_of(d->recipe);
    const int rule = l->embedding.optimizer;
    stint_status st;
    STI_TRY(sti_clicks_open(d->ranks, &l->clicks));
    STI_TRY(sti_learner_model(d->recipe, &l->model));
    if (l->clicks.train < 1)
        return sti_fail(STINT_E_INPUT,
                        "%s: no sample is left to train on; set "
                        "data.validation",
                        d->ranks);
    if (l->ranks > l->shards || (l->clicks.rows > 0 && l->ranks > l->clicks.rows))
        return sti_fail(STINT_E_USAGE,
                        "%" PRId64 " shards and %" PRId64 " rows cannot be shared out "
                        "to %d processes; start at most %" PRId64,
                        l->shards, l->clicks.rows, l->ranks,
                        l->clicks.rows > 0 && l->clicks.rows < l->shards
                            ? l->clicks.rows
                            : l->shards);
    l->steps = sti_learner_steps(d->recipe, &l->clicks);
    l->feed_desc =
        (sti_feed_desc){.clicks = &l->clicks,
                        .count = l->clicks.train,
                        .shuffle = t->order == STI_ORDER_SHUFFLE,
                        .seed = sti_recipe_seed(d->recipe, STI_STREAM_SHUFFLE),
                        .batch = l->batch,
                        .rings = (int)l->embedding.prefetch + 1,
                        .part = (uint32_t)l->rank,
                        .parts = (uint32_t)l->ranks};
    l->rows = (sti_row_store_desc){
        .folder = l->folder,
        .hot = l->embedding.hot,
        .policy = (sti_cache_policy)l->embedding.policy,
        .lookahead = l->embedding.lookahead,
        .depth = (int)l->embedding.prefetch,
        .io = (sti_async_way)l->embedding.io,
        .io_bytes = sti_async_bytes((sti_async_way)l->embedding.io, STI_ASYNC_DEPTH),
        .most = sti_feed_most(&l->feed_desc),
        .resume = d->resume};
    STI_TRY(sti_row_layout_of(l->clicks.rows, l->model.width,
                              sti_row_state_floats((sti_row_rule)rule, l->model.width),
                              sti_recipe_seed(d->recipe, STI_STREAM_INIT),
                              (float)l->embedding.scale, &l->rows.layout));
    sti_row_layout_part(&l->rows.layout, l->rank, l->ranks);
    l->rows.cached = l->rows.layout.rows;
    sti_row_share_samples(l->shards, l->batch, l->ranks, l->rank, &l->own_first,
                          &l->own_count);
    l->eval_parts = l->shards / l->ranks;
    l->eval_rings = l->ranks > 1 ? 1 : l->feed_desc.rings;
out:
    return st;
}

static size_t gradient_bytes(const sti_learner *l)
{
    return 4 * (size_t)(l->own_count * l->clicks.fields * l->model.width);
}

enum { OTHERS = 5 };
#define FILE_BYTES ((size_t)64 << 10)

/* What judging at the end takes beside all else: samples and scores of the test part,
 * and the graph in use, which needs less than one that is trained. */
static size_t test_bytes(const sti_learner *l)
{
    const int64_t count = l->clicks.samples - l->clicks.train;
    return sti_feed_bytes(&l->feed_desc) + 4 * (size_t)l->batch +
           (size_t)(5 * count + sti_ranking_bytes(count)) + l->graph_bytes;
}

/* Rows to and fro while it trains, or their gathering at the end. */
static size_t exchange_bytes(const sti_learner *l)
{
    const size_t steps =
        sti_row_share_bytes(&l->feed_desc, l->shards, l->model.width, l->ranks);
    const size_t end = sti_learner_join_bytes(l);
    return steps > end ? steps : end;
}

static void list_others(const sti_learner *l, size_t rows,
                        stint_plan_part parts[OTHERS])
{
    parts[0] =
        (stint_plan_part){"rows", "of the table in memory, those on their way", rows};
    parts[1] = (stint_plan_part){"row gradients", "of a batch", gradient_bytes(l)};
    parts[2] = (stint_plan_part){"samples", "batches on their way, files",
                                 sti_feed_bytes(&l->feed_desc) + FILE_BYTES};
    parts[3] = (stint_plan_part){"test part", "scores, labels, the graph in use",
                                 test_bytes(l)};
    parts[4] =
        (stint_plan_part){"rows to and fro", "of other processes, and their gradients",
                          l->clicks.fields > 0 ? exchange_bytes(l) : 0};
}

/* Steps of an epoch, for the schedule. */
static int64_t epoch_steps(const sti_learner *l)
{
    return l->clicks.train > l->batch ? l->clicks.train / l->batch : 1;
}

static stint_status make_session(sti_learner *l, const sti_learner_desc *d, size_t rows,
                                 bool plan_only)
{
    static const char *const taken[] = {"rows"};
    const char *names[3];
    stint_plan_part parts[OTHERS];
    stint_graph *g = NULL;
    stint_value logits = -1, loss = -1;
    stint_status st = stint_graph_create(STINT_TRAIN, &g);
    if (st == STINT_OK)
        st = sti_learner_graph(&l->model, &l->clicks, l->batch / l->shards, g, &logits,
                               &loss);
    if (st != STINT_OK) {
        stint_graph_destroy(g);
        return st;
    }
    list_others(l, rows, parts);
    const stint_session_desc desc = {.graph = g,
                                     .loss = loss,
                                     .inputs = names,
                                     .input_count =
                                         sti_learner_inputs(&l->clicks, true, names),
                                     .fill = fill,
                                     .user = l,
                                     .taken = taken,
                                     .taken_count = l->clicks.fields > 0 ? 1 : 0,
                                     .take = take,
                                     .recipe = d->recipe,
                                     .steps = l->steps,
                                     .epoch_steps = epoch_steps(l),
                                     .others = parts,
                                     .other_count = l->ranks > 1 ? OTHERS : OTHERS - 1,
                                     .net = d->net};
    return plan_only ? stint_session_plan(&desc, &l->plan)
                     : stint_session_open(&desc, &l->session);
}

/* Rows that the window of `future` may hold: an eighth of the memory for rows. */
static int64_t window_entries(size_t room_bytes)
{
    return (int64_t)(room_bytes / 8 / 16);
}

/* Rows in memory: what embedding.cache says, or what run.memory leaves beside the dense
 * part, whose least is found by a plan without any row. */
static stint_status size_cache(sti_learner *l, const sti_learner_desc *d)
{
    const size_t budget = sti_run_section_of(d->recipe)->memory_bytes;
    size_t room = l->embedding.cache_bytes;
    l->rows.entries = 0;
    if (l->clicks.fields == 0)
        return STINT_OK;
    const stint_status st = make_session(l, d, 0, true);
    if (st != STINT_OK)
        return st;
    l->dense_bytes =
        l->plan.smallest_bytes ? l->plan.smallest_bytes : l->plan.peak_bytes;
    for (int i = 0; i < l->plan.part_count; i++)
        if (strcmp(l->plan.parts[i].name, "activations") == 0 ||
            strcmp(l->plan.parts[i].name, "parameters") == 0)
            l->graph_bytes += l->plan.parts[i].bytes;
    l->dense_bytes += l->graph_bytes;
    if (room == 0 && budget == 0)
        return STINT_OK;
    const size_t fixed = sti_row_store_fixed_bytes(&l->rows);
    const size_t taken = l->dense_bytes + STI_LEARNER_VARIES;
    const size_t left = budget > taken ? budget - taken : 0;
    /* What grows with the total is the reserve. */
    room = room > 0 ? room + fixed : left - left / 256;
    l->rows.entries = window_entries(room > fixed ? room - fixed : 0);
    l->rows.cached = sti_row_store_fit(&l->rows, room);
    return STINT_OK;
}

stint_status sti_learner_open(const sti_learner_desc *d, sti_learner *l)
{
    const sti_train_values *t = sti_train_section_of(d->recipe);
    char identity[160];
    stint_status st;
    *l = (sti_learner){.recipe = d->recipe,
                       .embedding = *sti_embedding_section_of(d->recipe),
                       .clicks = {.fd = -1},
                       .rank = stint_net_rank(d->net),
                       .ranks = stint_net_ranks(d->net),
                       .batch = t->batch,
                       .shards = t->shards};
    snprintf(l->folder, sizeof l->folder, "%s", d->folder);
    STI_TRY(describe(l, d));
    STI_TRY(sti_threads_choose((int)sti_run_section_of(d->recipe)->threads, &l->threads,
                               NULL));
    l->team = (sti_team){.threads = l->threads};
    STI_TRY(size_cache(l, d));
    stint_plan_fini(&l->plan);
    STI_TRY(make_session(l, d, l->clicks.fields ? sti_row_store_bytes(&l->rows) : 0,
                         d->plan_only));
    if (d->plan_only)
        return STINT_OK;
    STI_TRY(sti_feed_init(&l->feed, &l->feed_desc));
    if (l->clicks.fields == 0)
        return STINT_OK;
    l->gradient = sti_alloc(gradient_bytes(l), "row gradients");
    l->row_scratch =
        sti_alloc_array(l->threads, 4 * (size_t)l->model.width, "row sums");
    if (!l->gradient || !l->row_scratch) {
        st = STINT_E_MEMORY;
        goto out;
    }
    if (l->ranks > 1)
        STI_TRY(sti_row_share_init(&l->share,
                                   &(sti_row_share_desc){.comm = sti_net_comm(d->net),
                                                         .feed = &l->feed,
                                                         .shards = l->shards,
                                                         .width = l->model.width}));
    sti_learner_identity(&l->clicks, l->embedding.optimizer, identity);
    l->rows.identity = identity;
    STI_TRY(sti_row_store_open(&l->rows, &l->store));
    l->rows.identity = NULL;
out:
    if (st != STINT_OK)
        sti_learner_close(l);
    return st;
}

void sti_learner_close(sti_learner *l)
{
    sti_row_store_close(l->store);
    stint_session_close(l->session);
    stint_plan_fini(&l->plan);
    sti_row_share_fini(&l->share);
    sti_feed_fini(&l->feed);
    sti_free(l->gradient);
    sti_free(l->row_scratch);
    if (l->clicks.arena)
        sti_clicks_close(&l->clicks);
    *l = (sti_learner){.clicks = {.fd = -1}};
}

/* ---- misses ---- */

stint_status sti_learner_plan_misses(const sti_learner *l,
                                     const sti_row_store_desc *rows, int64_t first,
                                     int64_t batches, int64_t *missed_out)
{
    sti_feed_desc desc = l->feed_desc;
    sti_feed near = {.slot = NULL}, far = {.slot = NULL};
    sti_cache_flow flow = {.look = NULL};
    stint_status st;
    *missed_out = 0;
    if (l->clicks.fields == 0 || rows->cached >= rows->layout.rows)
        return STINT_OK;
    desc.rings = 0;
    const sti_row_course course = {
        .first = first, .batches = batches, .look = sti_feed_look, .look_user = &far};
    const sti_cache_desc cache = sti_row_store_cache(rows, &course);
    STI_TRY(sti_feed_init(&near, &desc));
    STI_TRY(sti_feed_init(&far, &desc));
    STI_TRY(sti_cache_flow_plan(&cache, rows->depth, sti_feed_look, &near, &flow));
    *missed_out = flow.missed_all;
out:
    sti_cache_flow_fini(&flow);
    sti_feed_fini(&near);
    sti_feed_fini(&far);
    return st;
}

stint_status sti_learner_least_rows(const sti_learner *l, int64_t first,
                                    int64_t batches, int64_t *rows_out)
{
    sti_row_store_desc d = l->rows;
    int64_t low = 1, high = l->rows.layout.rows, missed;
    d.policy = STI_CACHE_LRU; /* whether rows fit is the same for all, and it looks at
                                 nothing beforehand */
    while (low < high) {
        d.cached = low + (high - low) / 2;
        const stint_status st = sti_learner_plan_misses(l, &d, first, batches, &missed);
        if (st == STINT_OK)
            high = d.cached;
        else if (st == STINT_E_BUDGET)
            low = d.cached + 1;
        else
            return st;
    }
    *rows_out = low;
    return STINT_OK;
}

size_t sti_learner_rows_budget(const sti_learner *l, int64_t rows)
{
    sti_row_store_desc d = l->rows;
    const size_t fixed = sti_row_store_fixed_bytes(&d);
    size_t room = 0, need;
    d.cached = rows;
    for (;;) {
        d.entries = window_entries(room);
        need = sti_row_store_bytes(&d) - fixed;
        if (need <= room)
            return fixed + room;
        room = need;
    }
}

/* ---- all weights ---- */

typedef struct row_hash {
    sti_sha256 hash;
    size_t row_bytes;
} row_hash;

static stint_status add_rows(void *user, int64_t first, int64_t count,
                             const void *records, int64_t record_bytes)
{
    row_hash *h = user;
    (void)first;
    for (int64_t i = 0; i < count; i++)
        sti_sha256_add(&h->hash, (const char *)records + i * record_bytes,
                       h->row_bytes);
    return STINT_OK;
}

stint_status sti_learner_sha256(sti_learner *l, char hex_out[65])
{
    row_hash h = {.row_bytes = 4 * (size_t)l->model.width};
    char dense[65];
    stint_session_sha256(l->session, dense);
    sti_sha256_init(&h.hash);
    sti_sha256_add(&h.hash, dense, 64);
    const stint_status st =
        l->store ? sti_row_store_each(l->store, add_rows, &h) : STINT_OK;
    sti_sha256_hex(&h.hash, hex_out);
    return st;
}
