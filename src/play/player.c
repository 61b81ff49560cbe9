#include "play/player.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/team.h"
#include "play/play_meta.h"
#include "store/safetensors.h"

static const char *model_path(sti_arena *arena, const char *path)
{
    return sti_path_is_dir(path) ? sti_path_join(arena, path, "model.safetensors")
                                 : path;
}

static int network_of(const char *name)
{
    for (int i = STI_NETWORK_SMALL; name && i <= STI_NETWORK_MLP; i++)
        if (strcmp(name, sti_agent_network_name(i)) == 0)
            return i;
    return -1;
}

/* Facts of a model file. */
typedef struct player_model {
    sti_tensor_file *file;
    int network, actions;
} player_model;

static stint_status read_model(sti_player *p, const char *path, player_model *m)
{
    stint_status st = sti_tensor_file_open(path, &m->file);
    if (st != STINT_OK)
        return st;
    const char *recipe = sti_tensor_file_text(m->file, STI_PLAY_META_RECIPE);
    const char *actions = sti_tensor_file_text(m->file, STI_PLAY_META_ACTIONS);
    const char *sha = sti_tensor_file_text(m->file, STI_PLAY_META_WEIGHTS);
    m->network = network_of(sti_tensor_file_text(m->file, STI_PLAY_META_NETWORK));
    if (!recipe || !actions || !sha || strlen(sha) != 64 || m->network < 0)
        return sti_fail(
            STINT_E_INPUT,
            "%s: is no model of an agent; stint train with an [env] section "
            "makes one",
            path);
    m->actions = atoi(actions);
    memcpy(p->weights_sha256, sha, sizeof p->weights_sha256);
    return sti_recipe_parse_stored(recipe, path, &p->recipe);
}

/* The recipe of a model names its image as the folder of the run has it. */
static const char *rom_of(sti_player *p, const char *run, const char *rom)
{
    const char *own = sti_env_section_of(p->recipe)->rom;
    stint_recipe *written = NULL;
    if (rom || (own && *own))
        return rom ? rom : own;
    const char *ini =
        sti_path_is_dir(run) ? sti_path_join(p->arena, run, "recipe.ini") : NULL;
    if (ini && stint_recipe_load(ini, &written) == STINT_OK) {
        own = sti_env_section_of(written)->rom;
        own = own ? sti_arena_strdup(p->arena, own) : NULL;
        stint_recipe_destroy(written);
    }
    return own;
}

static stint_status open_envs(sti_player *p, const char *run, const char *rom,
                              uint64_t seed, int threads)
{
    sti_env_values env = *sti_env_section_of(p->recipe);
    env.envs = p->rollout.envs;
    env.rom = rom_of(p, run, rom);
    const stint_env_desc desc = sti_play_env_desc(&env, seed, threads);
    const stint_status st = stint_env_open(&desc, &p->envs);
    return st == STINT_OK ? stint_env_reset(p->envs, NULL, NULL) : st;
}

static stint_status check_actions(const sti_player *p, const player_model *m,
                                  const char *path)
{
    const int actions = stint_env_describe(p->envs)->actions;
    if (m->actions == actions)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s: was trained with %d actions, this game has %d; play the image "
                    "(--rom) that it was trained on",
                    path, m->actions, actions);
}

/* Another program of as many actions may be played, but not unnoticed. */
static void compare_program(const sti_player *p, const player_model *m)
{
    const char *then = sti_tensor_file_text(m->file, STI_PLAY_META_ENV);
    if (then && strcmp(then, stint_env_describe(p->envs)->identity) != 0)
        sti_log(STINT_LOG_WARNING,
                "%s: was trained on another program than this one, or by other rules",
                sti_tensor_file_path(m->file));
}

static stint_status open_acting(sti_player *p, const player_model *m, int threads,
                                uint64_t seed)
{
    const sti_env_values *env = sti_env_section_of(p->recipe);
    const sti_agent_shape shape =
        sti_agent_shape_of(stint_env_describe(p->envs), m->network, (int)env->stack);
    sti_agent_acting acting = {0};
    stint_status st = sti_agent_build_acting(&shape, 1, &acting);
    if (st != STINT_OK)
        return st;
    STI_TRY(stint_use_open(&(stint_use_desc){.graph = acting.graph,
                                             .inputs = sti_agent_acting_inputs,
                                             .input_count = 2,
                                             .outputs = acting.output,
                                             .output_count = 2,
                                             .threads = threads},
                           &p->use));
    STI_TRY(stint_use_load(p->use, sti_tensor_file_path(m->file)));
    STI_TRY(sti_rollout_init(
        &p->rollout, &(sti_rollout_desc){.env = p->envs,
                                         .use = p->use,
                                         .rows = 1,
                                         .slots = sti_rollout_slots(1, 1, shape.stack),
                                         .stack = shape.stack,
                                         .gamma = 1,
                                         .seed = seed}));
out:
    return st;
}

stint_status sti_player_open(const char *path, const char *rom, int64_t envs,
                             uint64_t seed, int threads, sti_player *p)
{
    player_model m = {.file = NULL};
    stint_status st;
    *p = (sti_player){.arena = sti_arena_create("player"), .rollout = {.envs = envs}};
    const char *model = p->arena ? model_path(p->arena, path) : NULL;
    st = model ? STINT_OK : STINT_E_MEMORY;
    STI_TRY(st);
    STI_TRY(sti_threads_choose(threads, &threads, NULL));
    STI_TRY(read_model(p, model, &m));
    STI_TRY(open_envs(p, path, rom, seed, threads));
    STI_TRY(check_actions(p, &m, model));
    compare_program(p, &m);
    STI_TRY(open_acting(p, &m, threads, seed));
out:
    sti_tensor_file_close(m.file);
    if (st != STINT_OK)
        sti_player_close(p);
    return st;
}

void sti_player_close(sti_player *p)
{
    sti_rollout_fini(&p->rollout);
    stint_use_close(p->use);
    stint_env_close(p->envs);
    stint_recipe_destroy(p->recipe);
    sti_arena_destroy(p->arena);
    *p = (sti_player){.recipe = NULL};
}

bool stint_play_is_run(const char *path)
{
    sti_arena *arena = sti_arena_create("player");
    const char *model = arena ? model_path(arena, path) : NULL;
    sti_tensor_file *file = NULL;
    bool is = model && sti_path_is_file(model) &&
              sti_tensor_file_open(model, &file) == STINT_OK &&
              sti_tensor_file_text(file, STI_PLAY_META_NETWORK);
    sti_tensor_file_close(file);
    sti_arena_destroy(arena);
    return is;
}
