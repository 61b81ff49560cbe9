/* Consoles: emulation, rewards, ends and observations of many at once.
 *
 * Frames that no observation takes are not drawn. Where an episode ends, a console is
 * not switched off and on: one of the states that follow the beginning, which were made
 * once, is copied into its place. */
#include <string.h>

#include "atari/game.h"
#include "atari/palette.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "env/area_mean.h"
#include "env/env_kind.h"

/* One console. Its cartridge's RAM lies behind the last of them. */
typedef struct atari_state {
    _Alignas(64) sti_console console;
    sti_score score;
} atari_state;

typedef struct atari {
    sti_cart cart;
    sti_game game;
    uint8_t actions[STI_ACTIONS];
    bool observe_ram;
    int starts;                 /* states that an episode may begin with */
    size_t observed_bytes;      /* of one observation */
    atari_state *state;         /* [envs + starts] */
    uint8_t *cart_ram;          /* [envs + starts][cart.ram_bytes] */
    uint8_t *start_observation; /* [starts][observed_bytes] */
    uint8_t *pictures;          /* [threads][2][STI_SCREEN_BYTES] */
    uint8_t grey[256];
} atari;

static atari *own_of(const stint_env *env)
{
    return env->own;
}

static uint8_t *cart_ram_of(const atari *a, int64_t i)
{
    return a->cart_ram + (size_t)i * a->cart.ram_bytes;
}

/* ---- frames ---- */

/* A frame with an action of the game's; picture NULL: it is not drawn. Where the beam
 * does not come the picture is black: what ALE would show there, a picture of two
 * frames before, is kept for nobody. */
static void run_frame(const atari *a, int64_t i, int action, uint8_t *picture)
{
    atari_state *state = &a->state[i];
    sti_screen screen = {.now = picture, .before = picture, .black = true};
    sti_action_apply(&state->console.input, &a->cart, action);
    sti_console_frame(&state->console, &a->cart, cart_ram_of(a, i),
                      picture ? &screen : NULL, false);
    sti_game_step(&a->game, state->console.riot.ram, &state->score);
    state->score.over |= state->console.jammed;
}

static void observe(const atari *a, int64_t i, const uint8_t *now,
                    const uint8_t *before, uint8_t *out)
{
    if (a->observe_ram)
        memcpy(out, a->state[i].console.riot.ram, STI_RAM_BYTES);
    else
        sti_area_mean(now, before, sti_cart_lines(&a->cart), a->grey, out);
}

/* ---- opening ---- */

static bool has_fire(const stint_env *env)
{
    const atari *a = own_of(env);
    for (int k = 0; k < env->facts.actions; k++)
        if (a->actions[k] == STI_ACTION_FIRE)
            return true;
    return false;
}

/* Start k follows the one before by an idle frame; where FIRE is to be pressed, that is
 * the first frame of all, and takes the place of an idle one. */
static void frame_before_start(const atari *a, int k, bool fire, sti_vcs *vcs,
                               sti_score *score)
{
    if ((k == 0 && !fire) || (k == 1 && fire))
        return;
    sti_vcs_frame(vcs, k == 0 ? STI_ACTION_FIRE : STI_ACTION_NOOP);
    sti_game_step(&a->game, vcs->console.riot.ram, score);
}

/* They end early where the game would be over. */
static void record_starts(stint_env *env, sti_vcs *vcs, sti_score *score)
{
    atari *a = own_of(env);
    const bool fire = env->desc.fire_reset && has_fire(env);
    for (int k = 0; k < env->desc.noop_max; k++) {
        const int64_t place = env->desc.envs + k;
        frame_before_start(a, k, fire, vcs, score);
        if (score->over || vcs->console.jammed)
            return;
        a->state[place].console = vcs->console;
        a->state[place].score = *score;
        memcpy(cart_ram_of(a, place), vcs->cart_ram, a->cart.ram_bytes);
        observe(a, place, sti_vcs_picture(vcs), NULL,
                a->start_observation + (size_t)k * a->observed_bytes);
        a->starts = k + 1;
    }
}

static stint_status make_starts(stint_env *env)
{
    sti_vcs *vcs = sti_alloc(sizeof *vcs, "env.boot");
    sti_score score = {0};
    stint_status st = vcs ? STINT_OK : STINT_E_MEMORY;
    STI_TRY(st);
    STI_TRY(sti_vcs_init(vcs, &own_of(env)->cart));
    STI_TRY(sti_game_boot(&own_of(env)->game, vcs, &score));
    record_starts(env, vcs, &score);
    if (own_of(env)->starts == 0)
        st = sti_fail(STINT_E_INPUT,
                      "by its rules (done) the game is over before it begins, or an "
                      "opcode stops the processor; stint play run shows which");
out:
    if (vcs)
        sti_vcs_fini(vcs);
    sti_free(vcs);
    return st;
}

static stint_status choose_observation(atari *a, const stint_env_desc *desc)
{
    const char *what = desc->observe ? desc->observe : "frames";
    if (strcmp(what, "frames") != 0 && strcmp(what, "ram") != 0)
        return sti_fail(STINT_E_USAGE, "observe '%.40s': frames or ram", what);
    a->observe_ram = strcmp(what, "ram") == 0;
    a->observed_bytes = a->observe_ram ? STI_RAM_BYTES : STI_OBSERVED * STI_OBSERVED;
    return STINT_OK;
}

static stint_status reserve(stint_env *env)
{
    atari *a = own_of(env);
    const int64_t all = env->desc.envs + env->desc.noop_max;
    a->state = sti_alloc_array(all, sizeof *a->state, "env.consoles");
    a->cart_ram = sti_alloc_array(all, a->cart.ram_bytes, "env.cart_ram");
    a->start_observation =
        sti_alloc_array(env->desc.noop_max, a->observed_bytes, "env.starts");
    a->pictures = sti_alloc_array(env->team.threads, 2 * (size_t)STI_SCREEN_BYTES,
                                  "env.pictures");
    return a->state && a->cart_ram && a->start_observation && a->pictures
               ? STINT_OK
               : STINT_E_MEMORY;
}

static stint_status atari_open(stint_env *env, const stint_env_desc *desc)
{
    const sti_game_desc game = {.name = desc->game ? desc->game : "auto",
                                .path = desc->rom,
                                .reward = desc->reward,
                                .lives = desc->lives,
                                .done = desc->done,
                                .actions = desc->actions};
    atari *a = sti_alloc(sizeof *a, "env.atari");
    stint_status st = a ? STINT_OK : STINT_E_MEMORY;
    env->own = a;
    if (st == STINT_OK && !desc->rom)
        st = sti_fail(STINT_E_USAGE,
                      "an environment of kind atari wants `rom`, the path "
                      "of a cartridge's image");
    STI_TRY(st);
    STI_TRY(choose_observation(a, desc));
    STI_TRY(sti_cart_open(desc->rom, &a->cart));
    STI_TRY(sti_game_choose(&game, &a->cart, &a->game));
    sti_sha256_add(&env->hash, a->cart.sha256, sizeof a->cart.sha256);
    STI_TRY(reserve(env));
    for (int colour = 0; colour < 256; colour++)
        a->grey[colour] = sti_palette_grey(a->cart.pal, (uint8_t)colour);
    env->facts.actions = sti_game_actions(&a->game, a->actions);
    env->facts.height = a->observe_ram ? 1 : STI_OBSERVED;
    env->facts.width = a->observe_ram ? STI_RAM_BYTES : STI_OBSERVED;
    env->kind_bytes = sizeof(atari_state) + a->cart.ram_bytes;
    STI_TRY(make_starts(env));
out:
    return st;
}

static void atari_close(stint_env *env)
{
    atari *a = own_of(env);
    if (!a)
        return;
    sti_cart_close(&a->cart);
    sti_free(a->state);
    sti_free(a->cart_ram);
    sti_free(a->start_observation);
    sti_free(a->pictures);
    sti_free(a);
}

/* ---- episodes ---- */

/* Chance of an episode's step: which start, or which frames repeat an action. */
static void draw(const stint_env *env, int64_t i, uint64_t what, uint32_t out[4])
{
    const sti_env_slot *slot = &env->slot[i];
    sti_random4(slot->seed, STI_STREAM_PLAY,
                (uint64_t)i << 32 | (slot->episode & 0xffffffff), what, out);
}

static void atari_reset(stint_env *env, int64_t i, int worker, uint8_t *observation)
{
    const atari *a = own_of(env);
    uint32_t chance[4];
    int64_t from = env->desc.envs;
    (void)worker;
    draw(env, i, UINT64_MAX, chance);
    from += sti_below(chance[0], (uint32_t)a->starts);
    a->state[i] = a->state[from];
    memcpy(cart_ram_of(a, i), cart_ram_of(a, from), a->cart.ram_bytes);
    memcpy(observation,
           a->start_observation + (size_t)(from - env->desc.envs) * a->observed_bytes,
           a->observed_bytes);
    env->slot[i].lives = sti_game_lives(&a->game, &a->state[i].score);
}

/* The action of a frame: the step's, or by stickiness the one before. */
static int frame_action(stint_env *env, int64_t i, int32_t action, int frame)
{
    const atari *a = own_of(env);
    sti_env_slot *slot = &env->slot[i];
    if (env->desc.sticky > 0) {
        uint32_t chance[4];
        draw(env, i, slot->step * (uint64_t)env->desc.frameskip + (uint64_t)frame,
             chance);
        if ((double)sti_uniform(chance[0]) < env->desc.sticky)
            action = slot->last_action;
    }
    slot->last_action = action;
    return sti_game_action(&a->game, a->actions[action]);
}

static void settle(const stint_env *env, int64_t i, int64_t reward, bool lost,
                   sti_env_outcome *out)
{
    const atari *a = own_of(env);
    const sti_score *score = &a->state[i].score;
    if (env->desc.clip_reward)
        reward = reward > 0 ? 1 : reward < 0 ? -1 : 0;
    out->reward = (float)reward;
    out->lives = sti_game_lives(&a->game, score);
    out->ended = score->over || lost;
    out->truncated = !out->ended && env->slot[i].frames >= env->desc.max_frames;
}

/* The last two frames of a step are drawn, where they enter an observation. An episode
 * that ends before them shows what was seen last. */
static void atari_step(stint_env *env, int64_t i, int32_t action, int worker,
                       const uint8_t *before, uint8_t *observation,
                       sti_env_outcome *out)
{
    const atari *a = own_of(env);
    sti_env_slot *slot = &env->slot[i];
    uint8_t *picture[2];
    int64_t reward = 0;
    int drawn = 0;
    bool lost = false;
    picture[0] = a->pictures + (size_t)worker * 2 * STI_SCREEN_BYTES;
    picture[1] = picture[0] + STI_SCREEN_BYTES;
    for (int frame = 0; frame < env->desc.frameskip; frame++) {
        const bool draw_it = !a->observe_ram && frame + 2 >= env->desc.frameskip;
        const int32_t lives = slot->lives;
        run_frame(a, i, frame_action(env, i, action, frame),
                  draw_it ? picture[drawn] : NULL);
        drawn += draw_it;
        reward += a->state[i].score.reward;
        slot->frames++;
        slot->emulated++;
        slot->lives = sti_game_lives(&a->game, &a->state[i].score);
        lost = env->desc.episodic_life && slot->lives < lives && slot->lives > 0;
        if (a->state[i].score.over || lost || slot->frames >= env->desc.max_frames)
            break;
    }
    slot->drawn += drawn;
    if (drawn > 0 || a->observe_ram)
        observe(a, i, picture[drawn > 1], drawn > 1 ? picture[0] : NULL, observation);
    else
        memmove(observation, before, a->observed_bytes);
    settle(env, i, reward, lost, out);
}

/* ---- the rest ---- */

static const uint8_t *atari_ram(const stint_env *env, int64_t i)
{
    return own_of(env)->state[i].console.riot.ram;
}

static void atari_save(const stint_env *env, int64_t i, void *state_out)
{
    const atari *a = own_of(env);
    memcpy(state_out, &a->state[i], sizeof a->state[i]);
    memcpy((uint8_t *)state_out + sizeof a->state[i], cart_ram_of(a, i),
           a->cart.ram_bytes);
}

static void atari_load(stint_env *env, int64_t i, const void *state)
{
    const atari *a = own_of(env);
    memcpy(&a->state[i], state, sizeof a->state[i]);
    memcpy(cart_ram_of(a, i), (const uint8_t *)state + sizeof a->state[i],
           a->cart.ram_bytes);
}

const sti_env_kind sti_env_atari = {
    .name = "atari",
    .open = atari_open,
    .close = atari_close,
    .reset = atari_reset,
    .step = atari_step,
    .ram = atari_ram,
    .save = atari_save,
    .load = atari_load,
};
