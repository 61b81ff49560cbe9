/* A training of several ranks: what they agree on and tell each other outside of the
 * sum of gradients. Rank 0 alone reads and writes the out folder; all others hold the
 * same bits at every step, so nothing is lost with them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/numerics.h"
#include "base/stop.h"
#include "store/model_file.h"
#include "train/recipe_view.h"
#include "train/run.h"
#include "train/update_choice.h"

bool sti_run_is_first(const sti_run *run)
{
    return !run->comm || sti_comm_rank(run->comm) == 0;
}

stint_status sti_run_agree(sti_run *run, stint_status mine)
{
    if (!run->comm)
        return mine;
    stint_status st = sti_comm_agree(run->comm, mine);
    run->common =
        st != STINT_OK && sti_comm_failure(run->comm, NULL, 0, NULL) == STINT_OK;
    return st;
}

/* ---- are all ranks about to do the same? ---- */

enum { PIXELS_OF = 64 }; /* images of a split */

typedef struct identity {
    char build[128], data[256], models[128];
    char way[128]; /* what all do at the same step, and no recipe's weights depend on */
} identity;

/* Hash the pixels of images spread evenly over the data, as many as can be decoded
 * before a start. The steps complain of an image that cannot be decoded. */
static stint_status add_pixels(const stint_data *data, sti_sha256 *sha)
{
    const stint_data_info *info = stint_data_describe(data);
    const int64_t images = info->count < PIXELS_OF ? info->count : PIXELS_OF;
    const size_t bytes = (size_t)(info->height * info->width * info->channels);
    sti_data_decoders *decoders = NULL;
    uint8_t *pixels = sti_alloc(bytes, "net.identity");
    stint_status st =
        pixels ? sti_data_decoders_create(data, 1, &decoders) : STINT_E_MEMORY;
    for (int64_t i = 0; i < images && st == STINT_OK; i++)
        if (sti_data_decode(data, i * info->count / images, decoders, 0, pixels) ==
            STINT_OK)
            sti_sha256_add(sha, pixels, bytes);
    sti_data_decoders_destroy(decoders);
    sti_free(pixels);
    return st;
}

static stint_status hash_data(const stint_data *data, char hex_out[65])
{
    sti_sha256 sha;
    int64_t count = data ? stint_data_describe(data)->count : 0;
    stint_status st = STINT_OK;
    sti_sha256_init(&sha);
    for (int64_t i = 0; i < count; i++) {
        int32_t label = sti_data_label(data, i);
        sti_sha256_add(&sha, &label, sizeof label);
    }
    if (count > 0)
        st = add_pixels(data, &sha);
    sti_sha256_hex(&sha, hex_out);
    return st;
}

static stint_status describe_data(const sti_job *job, char *out, size_t bytes)
{
    char train[65], test[65];
    if (job->inputs.text) {
        snprintf(out, bytes, "text of SHA-256 %.16s, tokenizer %.16s",
                 job->inputs.text->text_sha256,
                 stint_tokenizer_describe(job->inputs.text->tokenizer)->hash);
        return STINT_OK;
    }
    if (job->inputs.field) {
        snprintf(out, bytes, "points and values of SHA-256 %.16s",
                 job->inputs.field->sha256);
        return STINT_OK;
    }
    const stint_data_info *info = stint_data_describe(job->inputs.train_data);
    stint_status st = hash_data(job->inputs.train_data, train);
    if (st == STINT_OK)
        st = hash_data(job->inputs.test_data, test);
    if (st != STINT_OK)
        return st;
    snprintf(out, bytes,
             "%" PRId64 " and %" PRId64 " images of %" PRId64 "x%" PRId64
             ", %d classes, labels and pixels %.16s %.16s",
             job->inputs.train_count, job->inputs.test_count, info->height, info->width,
             (int)info->classes, train, test);
    return STINT_OK;
}

static void fill_way(const sti_run *run, int64_t steps, identity *out)
{
    const sti_recipe_view v = sti_recipe_view_of(run->recipe);
    snprintf(out->build, sizeof out->build, "Stint %s, numerics %s", stint_version(),
             STI_NUMERICS_VERSION);
    snprintf(out->way, sizeof out->way,
             "%s, %" PRId64 " steps, train.eval_every %" PRId64
             ", run.checkpoint_every %" PRId64,
             run->desc->resume ? "--resume" : "no --resume", steps, v.train->eval_every,
             v.run->checkpoint_every);
}

static stint_status fill_identity(const sti_run *run, identity *out)
{
    memset(out, 0, sizeof *out);
    const stint_status st = describe_data(&run->job, out->data, sizeof out->data);
    fill_way(run, run->job.steps, out);
    snprintf(out->models, sizeof out->models, "start %.16s, reference %.16s",
             run->job.inputs.start ? run->job.inputs.start->weights_sha256 : "none",
             run->job.inputs.reference ? run->job.inputs.reference->weights_sha256
                                       : "none");
    return st;
}

static stint_status differs(const sti_run *run, const char *what, const char *there,
                            const char *here)
{
    int me = sti_comm_rank(run->comm);
    return sti_fail(STINT_E_USAGE,
                    "the ranks are not about to do the same; %s: %s on rank 0 (%s), %s "
                    "on rank %d (%s); start all with the same",
                    what, there, sti_comm_host(run->comm, 0), here, me,
                    sti_comm_host(run->comm, me));
}

static stint_status compare_identity(const sti_run *run, const identity *first,
                                     const identity *mine)
{
    if (strcmp(first->build, mine->build) != 0)
        return differs(run, "program", first->build, mine->build);
    if (strcmp(first->data, mine->data) != 0)
        return differs(run, "data", first->data, mine->data);
    if (strcmp(first->models, mine->models) != 0)
        return differs(run, "models", first->models, mine->models);
    if (strcmp(first->way, mine->way) != 0)
        return differs(run, "options", first->way, mine->way);
    return STINT_OK;
}

static stint_status compare_recipes(const sti_run *run, const char *first_text)
{
    stint_recipe *first;
    sti_text list = {0};
    char name[96], me[32];
    snprintf(me, sizeof me, "rank %d", sti_comm_rank(run->comm));
    snprintf(name, sizeof name, "recipe of rank 0 (%s)", sti_comm_host(run->comm, 0));
    stint_status st = sti_recipe_parse(first_text, name, &first);
    if (st != STINT_OK)
        return st;
    sti_recipe_differences(run->recipe, me, first, "rank 0", &list);
    if (list.length)
        st = sti_fail(STINT_E_USAGE,
                      "the ranks are not about to do the same; %s (%s) has another "
                      "recipe than rank 0 (%s): %s; start all with the same options",
                      me, sti_comm_host(run->comm, sti_comm_rank(run->comm)),
                      sti_comm_host(run->comm, 0), list.data);
    sti_text_fini(&list);
    stint_recipe_destroy(first);
    return st;
}

/* The text of rank 0's recipe on all ranks; the caller frees. */
static stint_status share_recipe(const sti_run *run, char **text_out)
{
    sti_text text = {0};
    stint_status st = sti_recipe_write(run->recipe, true, &text);
    int64_t length = st == STINT_OK ? (int64_t)text.length : 0;
    char *shared = NULL;
    st = sti_comm_agree(run->comm, st);
    if (st == STINT_OK)
        st = sti_comm_broadcast(run->comm, 0, &length, sizeof length);
    if (st == STINT_OK) {
        shared = sti_alloc((size_t)length + 1, "net.recipe");
        st = sti_comm_agree(run->comm, shared ? STINT_OK : STINT_E_MEMORY);
    }
    if (st == STINT_OK && sti_run_is_first(run))
        memcpy(shared, text.data, (size_t)length);
    if (st == STINT_OK)
        st = sti_comm_broadcast(run->comm, 0, shared, (size_t)length);
    sti_text_fini(&text);
    if (st != STINT_OK) {
        sti_free(shared);
        return st;
    }
    *text_out = shared;
    return STINT_OK;
}

static stint_status compare(sti_run *run, const identity *own)
{
    identity mine = *own, first = *own;
    char *text = NULL;
    stint_status st = sti_comm_broadcast(run->comm, 0, &first, sizeof first);
    if (st == STINT_OK)
        st = share_recipe(run, &text);
    if (st != STINT_OK)
        return st;
    st = compare_identity(run, &first, &mine);
    if (st == STINT_OK)
        st = compare_recipes(run, text);
    sti_free(text);
    return sti_run_agree(run, st);
}

stint_status sti_run_compare_ranks(sti_run *run)
{
    identity mine;
    if (!run->comm)
        return STINT_OK;
    sti_comm_set_context(run->comm, "the comparison of recipes", 0);
    const stint_status st = sti_run_agree(run, fill_identity(run, &mine));
    return st == STINT_OK ? compare(run, &mine) : st;
}

stint_status sti_run_compare_data(sti_run *run, const char *data, int64_t steps)
{
    identity mine;
    if (!run->comm)
        return STINT_OK;
    sti_comm_set_context(run->comm, "the comparison of recipes", 0);
    memset(&mine, 0, sizeof mine);
    snprintf(mine.data, sizeof mine.data, "%s", data);
    fill_way(run, steps, &mine);
    return compare(run, &mine);
}

/* ---- the beginning ---- */

/* Rank 0's block to all who have another one. New weights are a function of the recipe,
 * so most starts send a hash. */
static stint_status share_block(sti_comm *comm, void *block, size_t n_bytes)
{
    char mine[65], first[65];
    sti_sha256 sha;
    sti_sha256_init(&sha);
    sti_sha256_add(&sha, block, n_bytes);
    sti_sha256_hex(&sha, mine);
    memcpy(first, mine, sizeof first);
    stint_status st = sti_comm_broadcast(comm, 0, first, sizeof first);
    int64_t other = memcmp(first, mine, sizeof first) != 0;
    if (st == STINT_OK)
        st = sti_comm_max(comm, &other, 1);
    return st == STINT_OK && other ? sti_comm_broadcast(comm, 0, block, n_bytes) : st;
}

stint_status sti_run_share_weights(sti_run *run)
{
    const sti_step_engine *engine = run->engine;
    if (!run->comm)
        return STINT_OK;
    stint_status st =
        sti_comm_broadcast(run->comm, 0, &run->position, sizeof run->position);
    if (st == STINT_OK)
        st = share_block(run->comm, engine->params, engine->sizes.params);
    return st == STINT_OK ? share_block(run->comm, engine->states, engine->sizes.states)
                          : st;
}

/* Ranks that read gains of their own must have chosen the same channels. */
static stint_status compare_channels(const sti_run *run)
{
    char mine[65], first[65];
    sti_sha256 sha;
    sti_sha256_init(&sha);
    sti_update_add_sha256(&run->job.inputs.update, &sha);
    sti_sha256_hex(&sha, mine);
    memcpy(first, mine, sizeof first);
    stint_status st = sti_comm_broadcast(run->comm, 0, first, sizeof first);
    int64_t other = memcmp(first, mine, sizeof first) != 0;
    if (st == STINT_OK)
        st = sti_comm_max(run->comm, &other, 1);
    return st == STINT_OK && other
               ? sti_fail(STINT_E_INPUT,
                          "update.gains: the files of the processes choose different "
                          "channels; give all of them the same file")
               : st;
}

static stint_status share_blocks(sti_run *run)
{
    const sti_step_engine *engine = run->engine;
    stint_status st = run->job.inputs.network.update ? compare_channels(run) : STINT_OK;
    if (st == STINT_OK)
        st = sti_run_share_weights(run);
    for (int i = 0; i < run->job.setup.moments && st == STINT_OK; i++)
        st = share_block(run->comm, engine->moments[i], engine->sizes.moments);
    if (st == STINT_OK && engine->mask)
        st = share_block(run->comm, engine->mask, engine->sizes.mask);
    for (int i = 0; i < engine->desc.shadows && st == STINT_OK; i++)
        st = share_block(run->comm, engine->shadow[i], engine->sizes.params);
    if (st == STINT_OK && engine->desc.averaged)
        st = share_block(run->comm, engine->average[0], engine->sizes.params);
    if (st == STINT_OK && engine->desc.averaged)
        st = share_block(run->comm, engine->average[1], engine->sizes.states);
    if (st == STINT_OK && run->projection)
        st = sti_comm_broadcast(run->comm, 0, &run->projection->shapes,
                                sizeof run->projection->shapes);
    if (st == STINT_OK && run->job.inputs.reference) /* the weights of its parts */
        st = sti_comm_broadcast(run->comm, 0, &run->loss, sizeof run->loss);
    return st;
}

/* Perhaps mpirun was forgotten. */
static void tell_alone(const sti_run *run)
{
    if (sti_exchange_of_recipe(run->recipe).lossy)
        sti_log(STINT_LOG_INFO,
                "net: this is one process, so nothing is sent and nothing compressed; "
                "mpirun -n N or --net-root starts several");
}

stint_status sti_run_share_start(sti_run *run)
{
    if (!run->comm) {
        tell_alone(run);
        return STINT_OK;
    }
    sti_comm_set_context(run->comm, "the start from a checkpoint or new weights", 0);
    stint_status st = sti_comm_broadcast(run->comm, 0, &run->norm, sizeof run->norm);
    if (st == STINT_OK)
        st = share_blocks(run);
    if (st == STINT_OK && run->engine->exchange) {
        const sti_exchange_source source = sti_saver_exchange_source(run->saver);
        st = sti_exchange_load(run->engine->exchange, &source);
    }
    sti_saver_close_resumed(run->saver);
    return st;
}

/* ---- between steps ---- */

stint_status sti_run_share_requests(sti_run *run, bool *save_out,
                                    stint_status *stop_out)
{
    int64_t asks[2] = {sti_stop_take_save(), sti_stop_asked()};
    stint_status st = STINT_OK;
    if (run->comm) {
        sti_comm_set_context(run->comm, "the beginning", run->position.step + 1);
        st = sti_comm_max(run->comm, asks, 2);
    }
    *save_out = asks[0] != 0;
    *stop_out = (stint_status)asks[1];
    return st;
}

/* ---- the end ---- */

/* Every rank holds the same weights, to the bit; nobody would notice if it did not. */
static stint_status compare_weights(sti_run *run, const char local[65])
{
    sti_comm *comm = run->comm;
    char first[65];
    memcpy(first, local, sizeof first);
    stint_status st = sti_comm_broadcast(comm, 0, first, sizeof first);
    if (st == STINT_OK && memcmp(first, local, sizeof first) != 0)
        st = sti_fail(STINT_E_BUG,
                      "rank %d (%s) ends with other weights than rank 0 (%s): SHA-256 "
                      "%.16s, not %.16s; is the memory of these hosts sound?",
                      sti_comm_rank(comm), sti_comm_host(comm, sti_comm_rank(comm)),
                      sti_comm_host(comm, 0), local, first);
    return sti_run_agree(run, st);
}

stint_status sti_run_share_end(sti_run *run, stint_train_result *result)
{
    result->ranks = 1;
    if (!run->comm)
        return STINT_OK;
    sti_comm_set_context(run->comm, "the end", 0);
    stint_status st = compare_weights(run, result->weights_sha256);
    if (st != STINT_OK)
        return st;
    sti_comm_counts mine = sti_comm_count(run->comm);
    int ranks = sti_comm_size(run->comm);
    sti_comm_counts *all = sti_alloc_array(ranks, sizeof *all, "net.counts");
    st = sti_comm_agree(run->comm, all ? STINT_OK : STINT_E_MEMORY);
    if (st == STINT_OK)
        st = sti_comm_gather_all(run->comm, &mine, sizeof mine, all);
    result->ranks = ranks;
    for (int r = 0; r < ranks && st == STINT_OK; r++) {
        result->net_messages += all[r].messages_sent;
        result->net_bytes += all[r].bytes_sent;
    }
    sti_free(all);
    return st;
}
