/* Playing a game frame by frame, as `stint play run` does: actions from a file, by
 * chance or none; ended games begin anew; every frame is hashed. */
#ifndef STI_ATARI_PLAY_RUN_H
#define STI_ATARI_PLAY_RUN_H

#include "atari/game.h"

typedef struct sti_play_desc {
    int64_t frames;
    const char *actions; /* "noop", "random", or a file: an action a line and frame */
    uint64_t seed;       /* of random actions and of stickiness */
    double sticky;       /* chance that a frame repeats the last action */
    bool cold;           /* begin at power on, not where an episode begins */
    const char *load, *save; /* snapshots; NULL: none */
} sti_play_desc;

typedef struct sti_play_result {
    int64_t frames, drawn, episodes, cut; /* episodes: that ended; cut: without VSYNC */
    int64_t reward;
    double seconds; /* of the frames alone */
    int32_t lives;
    bool jammed;
    uint16_t jammed_at;
    char sha256[65]; /* of each frame's picture, then its RAM */
} sti_play_result;

/* vcs is initialised; it is left at the last frame. A jammed processor ends its
 * episode. STINT_E_INPUT: an action outside of 0 to 17 (with its line), a file with
 * fewer than frames, a snapshot that does not fit. */
stint_status sti_play_run(const sti_play_desc *desc, sti_vcs *vcs, const sti_game *game,
                          sti_play_result *result_out);

/* The actions of a text, a line each; blank lines and what follows a # do not count.
 * The caller frees *actions_out. */
stint_status sti_actions_parse(const char *text, size_t n_bytes, const char *name,
                               uint8_t **actions_out, int64_t *count_out);

#endif
