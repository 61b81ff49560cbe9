/* Checkpoints and models of agents: a session's file with all that was lived through
 * and the environments themselves beside the weights, so that a resumed run goes on to
 * the same bits. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "play/play.h"
#include "play/play_meta.h"
#include "store/safetensors.h"

enum { BLOBS_MOST = STI_PLAY_LAGS + 20 };

typedef struct blobs {
    stint_session_blob blob[BLOBS_MOST];
    char name[BLOBS_MOST][32];
    int count;
    int64_t place[2];
} blobs;

static void add(blobs *b, const char *name, void *data, size_t bytes)
{
    snprintf(b->name[b->count], sizeof b->name[0], "%s", name);
    b->blob[b->count] =
        (stint_session_blob){.name = b->name[b->count], .bytes = bytes, .data = data};
    b->count++;
}

static void save_state(void *user, int64_t i, void *out)
{
    const sti_play *p = user;
    stint_env_save(p->envs, i, out);
}

static stint_status load_state(void *user, int64_t i, const void *state)
{
    const sti_play *p = user;
    return stint_env_load(p->envs, i, state);
}

/* The states of the environments, one by one. */
static void add_states(sti_play *p, blobs *b)
{
    const size_t state = stint_env_describe(p->envs)->state_bytes;
    add(b, "play.environments", NULL, (size_t)p->rollout.envs * state);
    b->blob[b->count - 1].piece_bytes = state;
    b->blob[b->count - 1].make = save_state;
    b->blob[b->count - 1].take = load_state;
    b->blob[b->count - 1].user = p;
}

/* Where everything lies. */
static void list(sti_play *p, blobs *b)
{
    sti_rollout *r = &p->rollout;
    const size_t all = (size_t)(r->envs * r->slots);
    char name[32];
    *b = (blobs){.place = {p->rounds, p->updates}};
    add(b, "play.place", b->place, sizeof b->place);
    add(b, "play.counts", &r->counts, sizeof r->counts);
    add_states(p, b);
    add(b, "play.frames", r->frames, all * r->frame_bytes);
    add(b, "play.age", r->age, all * sizeof *r->age);
    add(b, "play.action", r->action, all * sizeof *r->action);
    add(b, "play.mu", r->mu, all * sizeof *r->mu);
    add(b, "play.value", r->value, all * sizeof *r->value);
    add(b, "play.reward", r->reward, all * sizeof *r->reward);
    add(b, "play.discount", r->discount, all * sizeof *r->discount);
    add(b, "play.weight", r->weight, all * sizeof *r->weight);
    add(b, "play.version", r->version, (size_t)r->slots * sizeof *r->version);
    add(b, "play.begins", r->begins, (size_t)r->envs);
    add(b, "play.sum", r->sum, (size_t)r->envs * sizeof *r->sum);
    for (int64_t i = 0; i <= p->agent.lag; i++) {
        snprintf(name, sizeof name, "play.weights.%d", (int)i);
        add(b, name, p->weights[i], p->weights_bytes);
    }
    if (p->best.candidate) {
        add(b, "play.best", &p->best.place, sizeof p->best.place);
        add(b, "play.candidate", p->best.candidate, p->weights_bytes);
        add(b, "play.chosen", p->best.chosen, p->weights_bytes);
    }
}

static stint_status write_file(const sti_play *p, const char *path, bool model,
                               const blobs *b)
{
    char sha[65], actions[32];
    sti_text recipe = {0};
    stint_status st = sti_recipe_write(p->recipe, model, &recipe);
    if (st != STINT_OK)
        return st;
    stint_session_sha256(p->session, sha);
    snprintf(actions, sizeof actions, "%d", p->shape.actions);
    const stint_session_text texts[] = {
        {STI_PLAY_META_RECIPE, recipe.data},
        {STI_PLAY_META_ENV, stint_env_describe(p->envs)->identity},
        {STI_PLAY_META_NETWORK, sti_agent_network_name(p->shape.network)},
        {STI_PLAY_META_ACTIONS, actions},
        {STI_PLAY_META_WEIGHTS, sha}};
    st = stint_session_save(p->session, path, model, b->blob, b->count, texts, 5);
    sti_text_fini(&recipe);
    return st;
}

stint_status sti_play_save(sti_play *p, const char *path, bool model)
{
    blobs b = {.count = 0};
    if (!model)
        list(p, &b);
    return write_file(p, path, model, &b);
}

/* ---- reading ---- */

static stint_status compare_recipes(const sti_play *p, const sti_tensor_file *file)
{
    const char *text = sti_tensor_file_text(file, STI_PLAY_META_RECIPE);
    const char *path = sti_tensor_file_path(file);
    stint_recipe *then = NULL;
    sti_text differences = {0};
    if (!text)
        return sti_fail(STINT_E_INPUT, "%s: is no checkpoint of an agent", path);
    stint_status st = sti_recipe_parse_stored(text, path, &then);
    if (st == STINT_OK)
        sti_recipe_differences(p->recipe, "now", then, "was", &differences);
    if (st == STINT_OK && differences.length > 0)
        st = sti_fail(STINT_E_USAGE,
                      "%s: the run cannot go on with another recipe: %s; train anew "
                      "with --force",
                      path, differences.data);
    sti_text_fini(&differences);
    stint_recipe_destroy(then);
    return st;
}

/* A place that no run of these lags comes to. */
static stint_status check_place(const sti_play *p, const blobs *b, const char *path)
{
    const int64_t rounds = b->place[0], updates = b->place[1];
    const sti_rollout_counts *c = &p->rollout.counts;
    /* One round more where it was played ahead of an update that failed. */
    const int64_t ahead = 1 + sti_play_may_overlap(p);
    const bool fits = updates >= 0 && updates <= stint_session_steps(p->session) &&
                      rounds >= updates && rounds <= updates + ahead;
    const int64_t time =
        !fits || rounds == 0 ? 0 : p->agent.horizon + (rounds - 1) * p->agent.every;
    if (!fits || c->time != time || c->episodes < 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: rounds, updates and steps do not fit each other", path);
    return STINT_OK;
}

static void take_place(sti_play *p, const blobs *b)
{
    p->rounds = b->place[0];
    p->updates = b->place[1];
    p->rollout.frames_before = p->rollout.counts.frames;
}

stint_status sti_play_load(sti_play *p, const char *path)
{
    sti_tensor_file *file = NULL;
    blobs b = {.count = 0};
    const stint_session_text texts[] = {
        {STI_PLAY_META_ENV, stint_env_describe(p->envs)->identity}};
    stint_status st;
    STI_TRY(sti_tensor_file_open(path, &file));
    STI_TRY(compare_recipes(p, file));
    list(p, &b);
    STI_TRY(stint_session_load(p->session, path, b.blob, b.count, texts, 1));
    STI_TRY(check_place(p, &b, path));
    take_place(p, &b);
out:
    sti_tensor_file_close(file);
    return st;
}

/* ---- ranks ---- */

/* What is made piece by piece on rank 0 is taken so by the others. */
static stint_status share_pieces(const stint_session_blob *b, sti_comm *comm)
{
    const bool first = sti_comm_rank(comm) == 0;
    void *piece = sti_alloc(b->piece_bytes, "play.piece");
    stint_status st = sti_comm_agree(comm, piece ? STINT_OK : STINT_E_MEMORY);
    for (size_t k = 0; k * b->piece_bytes < b->bytes && st == STINT_OK; k++) {
        if (first)
            b->make(b->user, (int64_t)k, piece);
        st = sti_comm_broadcast(comm, 0, piece, b->piece_bytes);
        if (st == STINT_OK && !first)
            st = b->take(b->user, (int64_t)k, piece);
    }
    sti_free(piece);
    return st;
}

stint_status sti_play_share(sti_play *p, sti_comm *comm)
{
    blobs b;
    list(p, &b);
    sti_comm_set_context(comm, "the start from a checkpoint", 0);
    stint_status st = stint_session_share(p->session);
    for (int i = 0; i < b.count && st == STINT_OK; i++)
        st = b.blob[i].data
                 ? sti_comm_broadcast(comm, 0, b.blob[i].data, b.blob[i].bytes)
                 : share_pieces(&b.blob[i], comm);
    if (st == STINT_OK)
        take_place(p, &b);
    return st;
}
