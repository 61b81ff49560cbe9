#include "atari/play_run.h"

#include <inttypes.h>
#include <string.h>

#include "atari/snapshot.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/rng.h"

/* ---- actions ---- */

static stint_status parse_line(const char *line, size_t length, int64_t number,
                               const char *name, int *action_out)
{
    int action = 0, digits = 0;
    size_t i = 0;
    *action_out = -1;
    while (i < length && (line[i] == ' ' || line[i] == '\t'))
        i++;
    for (; i < length && line[i] >= '0' && line[i] <= '9' && digits < 4; i++, digits++)
        action = action * 10 + (line[i] - '0');
    while (i < length && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r'))
        i++;
    if (i < length && line[i] != '#')
        digits = -1;
    if (digits == 0)
        return STINT_OK;
    if (digits < 0 || action >= STI_ACTIONS)
        return sti_fail(STINT_E_INPUT,
                        "%s:%" PRId64
                        ": '%.*s' is no action; one is wanted a line, 0 to "
                        "17 (0 nothing, 1 fire, 2 up, 3 right, 4 left, 5 down, ...)",
                        name, number, (int)(length < 40 ? length : 40), line);
    *action_out = action;
    return STINT_OK;
}

stint_status sti_actions_parse(const char *text, size_t n_bytes, const char *name,
                               uint8_t **actions_out, int64_t *count_out)
{
    uint8_t *actions = sti_alloc(n_bytes / 2 + 1, "atari.actions");
    int64_t count = 0, number = 1;
    if (!actions)
        return STINT_E_MEMORY;
    for (const char *at = text, *end = text + n_bytes; at < end; number++) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        int action = 0;
        const stint_status st =
            parse_line(at, (size_t)((next ? next : end) - at), number, name, &action);
        if (st != STINT_OK) {
            sti_free(actions);
            return st;
        }
        if (action >= 0)
            actions[count++] = (uint8_t)action;
        at = next ? next + 1 : end;
    }
    *actions_out = actions;
    *count_out = count;
    return STINT_OK;
}

static stint_status read_actions(const char *path, int64_t frames,
                                 uint8_t **actions_out)
{
    enum { BYTES_MOST = 1 << 28 };
    void *data = NULL;
    uint8_t *actions = NULL;
    size_t n_bytes = 0;
    int64_t count = 0;
    stint_status st = sti_file_read(path, BYTES_MOST, &data, &n_bytes);
    if (st == STINT_OK)
        st = sti_actions_parse(data, n_bytes, path, &actions, &count);
    sti_free(data);
    if (st == STINT_OK && count < frames) {
        sti_free(actions);
        return sti_fail(STINT_E_INPUT,
                        "%s: %" PRId64 " actions, and %" PRId64 " frames are to be "
                        "played; give --frames %" PRId64 " or more lines",
                        path, count, frames, count);
    }
    if (st == STINT_OK)
        *actions_out = actions;
    return st;
}

/* ---- frames ---- */

typedef struct player {
    const sti_play_desc *desc;
    sti_vcs *vcs;
    const sti_game *game;
    sti_play_result *result;
    sti_sha256 hash;
    uint8_t *script; /* NULL: none */
    uint8_t choices[STI_ACTIONS];
    int choice_count, last;
} player;

/* Words 0 and 1 of a frame's chance: stickiness and the action. */
static int next_action(const player *p, int64_t frame)
{
    uint32_t chance[4];
    sti_random4(p->desc->seed, STI_STREAM_PLAY, (uint64_t)frame, 0, chance);
    if ((double)sti_uniform(chance[0]) < p->desc->sticky)
        return p->last;
    if (p->script)
        return p->script[frame];
    if (strcmp(p->desc->actions, "noop") == 0)
        return STI_ACTION_NOOP;
    return p->choices[sti_below(chance[1], (uint32_t)p->choice_count)];
}

static stint_status play_frame(player *p, sti_score *score, int64_t frame)
{
    sti_vcs *vcs = p->vcs;
    const size_t picture = (size_t)(sti_cart_lines(vcs->cart) * STI_LINE_PIXELS);
    stint_status st = STINT_OK;
    if (score->over) {
        p->last = STI_ACTION_NOOP;
        STI_TRY(sti_game_boot(p->game, vcs, score));
    }
    p->last = next_action(p, frame);
    sti_vcs_frame(vcs, sti_game_action(p->game, p->last));
    sti_game_step(p->game, vcs->console.riot.ram, score);
    if (vcs->console.jammed) {
        p->result->jammed = true;
        p->result->jammed_at = vcs->console.jammed_at;
        score->over = true;
    }
    p->result->reward += score->reward;
    p->result->episodes += score->over;
    sti_sha256_add(&p->hash, sti_vcs_picture(vcs), picture);
    sti_sha256_add(&p->hash, vcs->console.riot.ram, STI_RAM_BYTES);
out:
    return st;
}

static stint_status play_begin(player *p, sti_score *score)
{
    const sti_play_desc *desc = p->desc;
    const bool by_file =
        strcmp(desc->actions, "noop") != 0 && strcmp(desc->actions, "random") != 0;
    stint_status st = STINT_OK;
    p->choice_count = sti_game_actions(p->game, p->choices);
    if (by_file)
        STI_TRY(read_actions(desc->actions, desc->frames, &p->script));
    sti_game_begin(p->game, score);
    if (desc->load)
        return sti_snapshot_load(desc->load, p->vcs, p->game, score);
    if (!desc->cold)
        return sti_game_boot(p->game, p->vcs, score);
    sti_vcs_reset(p->vcs);
out:
    return st;
}

stint_status sti_play_run(const sti_play_desc *desc, sti_vcs *vcs, const sti_game *game,
                          sti_play_result *result_out)
{
    sti_play_result result = {.frames = desc->frames, .drawn = desc->frames};
    player p = {.desc = desc, .vcs = vcs, .game = game, .result = &result};
    sti_score score = {0};
    uint32_t cut_before = 0;
    int64_t begin = 0;
    stint_status st = play_begin(&p, &score);
    sti_sha256_init(&p.hash);
    cut_before = vcs->console.cut_frames;
    begin = sti_clock_ns();
    for (int64_t frame = 0; frame < desc->frames && st == STINT_OK; frame++)
        st = play_frame(&p, &score, frame);
    result.seconds = sti_seconds_since(begin);
    sti_free(p.script);
    if (st == STINT_OK && desc->save)
        st = sti_snapshot_save(desc->save, vcs, game, &score);
    if (st != STINT_OK)
        return st;
    sti_sha256_hex(&p.hash, result.sha256);
    result.lives = sti_game_lives(game, &score);
    result.cut = vcs->console.cut_frames - cut_before;
    *result_out = result;
    return STINT_OK;
}
