/* The vector environment: threads, observations and episodes, whatever the kind. */
#include "stint/env.h"

#include <inttypes.h>
#include <string.h>

#include "base/control_group.h"
#include "base/fail.h"
#include "base/memory.h"
#include "env/env_kind.h"

enum { CHUNK = 8 }; /* environments that a thread takes at once */

static const sti_env_kind *const kinds[] = {&sti_env_atari, &sti_env_chain};

static stint_status find_kind(const char *name, const sti_env_kind **kind_out)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(name, kinds[i]->name) == 0) {
            *kind_out = kinds[i];
            return STINT_OK;
        }
    return sti_fail(STINT_E_USAGE, "environment '%.40s': atari and chain are the kinds",
                    name);
}

static stint_status check_desc(const stint_env_desc *d)
{
    if (d->envs < 0 || d->envs > 1 << 20)
        return sti_fail(STINT_E_USAGE,
                        "%" PRId64 " environments: 1 to 1048576 are wanted", d->envs);
    if (d->frameskip < 0 || d->frameskip > 1000)
        return sti_fail(STINT_E_USAGE,
                        "frameskip %d: 1 to 1000 frames a step are wanted",
                        d->frameskip);
    if (d->stack < 0 || d->stack > 64)
        return sti_fail(STINT_E_USAGE, "stack %d: 1 to 64 are wanted", d->stack);
    if (d->size != 0 && d->size != 84)
        return sti_fail(STINT_E_UNSUPPORTED, "size %d: frames are observed as 84 x 84",
                        d->size);
    if (!(d->sticky >= 0 && d->sticky <= 1))
        return sti_fail(STINT_E_USAGE, "sticky %g: a chance is wanted, 0 to 1",
                        d->sticky);
    if (d->noop_max < 0 || d->noop_max > 1000 || d->max_frames < 0 || d->threads < 0)
        return sti_fail(STINT_E_USAGE,
                        "noop_max %d, max_frames %" PRId64 ", threads %d: none may be "
                        "below 0, and 1000 idle frames are the most",
                        d->noop_max, d->max_frames, d->threads);
    return STINT_OK;
}

static stint_env_desc with_defaults(const stint_env_desc *given)
{
    stint_env_desc d = *given;
    d.envs = d.envs ? d.envs : 1;
    d.frameskip = d.frameskip ? d.frameskip : 4;
    d.stack = d.stack ? d.stack : 4;
    d.size = 84;
    d.noop_max = d.noop_max ? d.noop_max : 30;
    d.max_frames = d.max_frames ? d.max_frames : 108000;
    return d;
}

static void add_text(sti_sha256 *hash, const char *text)
{
    sti_sha256_add(hash, text ? text : "", text ? strlen(text) + 1 : 1);
}

/* What an episode depends on, beside what the kind adds. */
static void begin_identity(stint_env *env)
{
    const stint_env_desc *d = &env->desc;
    const int64_t numbers[] = {d->frameskip,     d->noop_max,    d->fire_reset,
                               d->episodic_life, d->clip_reward, d->max_frames};
    sti_sha256_init(&env->hash);
    add_text(&env->hash, env->kind->name);
    add_text(&env->hash, d->game);
    add_text(&env->hash, d->reward);
    add_text(&env->hash, d->lives);
    add_text(&env->hash, d->done);
    add_text(&env->hash, d->observe);
    if (d->actions)
        add_text(&env->hash, d->actions);
    sti_sha256_add(&env->hash, numbers, sizeof numbers);
    sti_sha256_add(&env->hash, &d->sticky, sizeof d->sticky);
}

static stint_status make(stint_env *env)
{
    stint_env_facts *f = &env->facts;
    stint_status st = STINT_OK;
    begin_identity(env);
    STI_TRY(env->kind->open(env, &env->desc));
    sti_sha256_hex(&env->hash, f->identity);
    f->kind = env->kind->name;
    f->envs = env->desc.envs;
    f->stack = env->desc.stack;
    f->frameskip = env->desc.frameskip;
    f->observation_bytes = (size_t)(f->stack * f->height * f->width);
    f->state_bytes = sizeof f->identity + sizeof(sti_env_slot) + env->kind_bytes +
                     (size_t)(f->height * f->width);
    f->env_bytes = sizeof(sti_env_slot) + env->kind_bytes + f->observation_bytes;
    /* The kind's blocks are not touched yet. */
    STI_TRY(sti_memory_limit_check((size_t)f->envs * f->env_bytes,
                                   "so many environments", "a smaller number"));
    env->slot = sti_alloc_array(f->envs, sizeof *env->slot, "env.slots");
    env->ring = sti_alloc_array(f->envs, f->observation_bytes, "env.observations");
    if (!env->slot || !env->ring)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < f->envs; i++)
        env->slot[i].seed = env->desc.seed;
    /* The caller's texts were read by now. */
    env->desc.rom = env->desc.game = env->desc.reward = env->desc.lives = NULL;
    env->desc.done = env->desc.observe = env->desc.kind = env->desc.actions = NULL;
out:
    return st;
}

stint_status stint_env_open(const stint_env_desc *desc, stint_env **env_out)
{
    const sti_env_kind *kind = NULL;
    stint_env *env = NULL;
    stint_status st = STINT_OK;
    STI_TRY(check_desc(desc));
    STI_TRY(find_kind(desc->kind ? desc->kind : "atari", &kind));
    env = sti_alloc(sizeof *env, "env");
    if (!env)
        return STINT_E_MEMORY;
    env->kind = kind;
    env->desc = with_defaults(desc);
    STI_TRY(sti_threads_choose(desc->threads, &env->team.threads, NULL));
    STI_TRY(make(env));
    *env_out = env;
    return STINT_OK;
out:
    stint_env_close(env);
    return st;
}

void stint_env_close(stint_env *env)
{
    if (!env)
        return;
    sti_env_async_destroy(env->async);
    env->kind->close(env);
    sti_free(env->slot);
    sti_free(env->ring);
    sti_free(env);
}

const stint_env_facts *stint_env_describe(const stint_env *env)
{
    return &env->facts;
}

/* ---- reset and step ---- */

typedef struct env_work {
    stint_env *env;
    const uint8_t *mask;
    const uint64_t *seeds;
    const int32_t *actions;
    const stint_env_step_result *result;
} env_work;

static void reset_piece(void *arg, int64_t piece, int worker)
{
    const env_work *work = arg;
    stint_env *env = work->env;
    for (int64_t i = piece * CHUNK; i < (piece + 1) * CHUNK && i < env->facts.envs;
         i++) {
        if (work->mask && !work->mask[i])
            continue;
        if (work->seeds) {
            env->slot[i].seed = work->seeds[i];
            env->slot[i].episode = 0;
        }
        sti_env_begin_episode(env, i, worker);
    }
}

static int64_t pieces(const stint_env *env)
{
    return (env->facts.envs + CHUNK - 1) / CHUNK;
}

stint_status stint_env_reset(stint_env *env, const uint8_t *mask, const uint64_t *seeds)
{
    env_work work = {.env = env, .mask = mask, .seeds = seeds};
    const stint_status st = sti_env_async_check(env);
    if (st != STINT_OK)
        return st;
    sti_team_take(&env->team, pieces(env), reset_piece, &work);
    return STINT_OK;
}

static void step_one(const env_work *work, int64_t i, int worker)
{
    const stint_env_step_result *r = work->result;
    sti_env_outcome out = {0};
    sti_env_step_one(work->env, i, work->actions[i], worker, &out);
    if (r && r->reward)
        r->reward[i] = out.reward;
    if (r && r->ended)
        r->ended[i] = out.ended;
    if (r && r->truncated)
        r->truncated[i] = out.truncated;
    if (r && r->lives)
        r->lives[i] = work->env->slot[i].lives;
}

static void step_piece(void *arg, int64_t piece, int worker)
{
    const env_work *work = arg;
    const int64_t envs = work->env->facts.envs;
    for (int64_t i = piece * CHUNK; i < (piece + 1) * CHUNK && i < envs; i++)
        step_one(work, i, worker);
}

stint_status stint_env_step(stint_env *env, const int32_t *actions,
                            const stint_env_step_result *result)
{
    env_work work = {.env = env, .actions = actions, .result = result};
    stint_status st = sti_env_async_check(env);
    for (int64_t i = 0; i < env->facts.envs && st == STINT_OK; i++)
        st = sti_env_check_action(env, i, actions[i]);
    if (st != STINT_OK)
        return st;
    sti_team_take(&env->team, pieces(env), step_piece, &work);
    return STINT_OK;
}

/* ---- what is seen ---- */

const uint8_t *stint_env_frame(const stint_env *env, int64_t i, int age)
{
    const int stack = env->facts.stack;
    return sti_env_frame_at(env, i,
                            (env->slot[i].newest - age % stack + stack) % stack);
}

void stint_env_observe(const stint_env *env, uint8_t *out)
{
    const size_t bytes = sti_env_frame_bytes(env);
    for (int64_t i = 0; i < env->facts.envs; i++)
        for (int age = env->facts.stack - 1; age >= 0; age--, out += bytes)
            memcpy(out, stint_env_frame(env, i, age), bytes);
}

const uint8_t *stint_env_ram(const stint_env *env, int64_t i)
{
    return env->kind->ram(env, i);
}

void stint_env_frames(const stint_env *env, int64_t *emulated_out, int64_t *drawn_out)
{
    *emulated_out = *drawn_out = 0;
    for (int64_t i = 0; i < env->facts.envs; i++) {
        *emulated_out += env->slot[i].emulated;
        *drawn_out += env->slot[i].drawn;
    }
}

/* ---- snapshots: whose, the slot, the kind's own, the newest observation ---- */

void stint_env_save(const stint_env *env, int64_t i, void *state_out)
{
    uint8_t *at = state_out;
    memcpy(at, env->facts.identity, sizeof env->facts.identity);
    at += sizeof env->facts.identity;
    memcpy(at, &env->slot[i], sizeof env->slot[i]);
    at += sizeof env->slot[i];
    env->kind->save(env, i, at);
    memcpy(at + env->kind_bytes, stint_env_frame(env, i, 0), sti_env_frame_bytes(env));
}

stint_status stint_env_load(stint_env *env, int64_t i, const void *state)
{
    const uint8_t *at = state;
    const int64_t emulated = env->slot[i].emulated, drawn = env->slot[i].drawn;
    if (memcmp(at, env->facts.identity, sizeof env->facts.identity) != 0)
        return sti_fail(STINT_E_INPUT,
                        "a state of other environments; image, rules and settings must "
                        "be those that it was saved with");
    at += sizeof env->facts.identity;
    memcpy(&env->slot[i], at, sizeof env->slot[i]);
    env->slot[i].emulated = emulated;
    env->slot[i].drawn = drawn;
    at += sizeof env->slot[i];
    env->kind->load(env, i, at);
    memset(sti_env_frame_at(env, i, 0), 0, env->facts.observation_bytes);
    memcpy(sti_env_frame_at(env, i, env->slot[i].newest), at + env->kind_bytes,
           sti_env_frame_bytes(env));
    return STINT_OK;
}
