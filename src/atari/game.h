/* Games: what is a reward, how many lives there are, when it is over, and how it is
 * started. 63 titles have rules of their own, a row each of game_titles.c, as the
 * Arcade Learning Environment has them; for any other program the caller gives rules.
 */
#ifndef STI_ATARI_GAME_H
#define STI_ATARI_GAME_H

#include "atari/rule.h"
#include "atari/vcs.h"

/* What the rules of a game remember from frame to frame. */
typedef struct sti_score {
    int64_t score;  /* or what the last reward is reckoned from */
    int64_t reward; /* of the last frame */
    int64_t other;  /* a second thing that a title looks back at */
    int32_t lives;
    bool over;
    bool started; /* of titles that wait for something before they count */
} sti_score;

/* How a title with modes comes to the first of them: SELECT is pressed until a byte of
 * RAM equals it. */
typedef struct sti_title_mode {
    uint8_t at;            /* 0: the title has no modes */
    uint8_t mode;          /* the byte's value */
    uint8_t frames;        /* that SELECT is held, 1 at least */
    uint8_t also;          /* the byte may be mode + also */
    uint8_t before;        /* frames of SELECT before the byte is looked at */
    uint8_t shift, mask;   /* of the byte; mask 0: all of it */
    uint8_t with_at, with; /* a second byte and its value */
    uint8_t noops;         /* frames before */
    bool reset;            /* RESET before */
    bool sets_other;       /* score->other, for a frame */
    bool menu;             /* options of a menu, see game.c */
} sti_title_mode;

typedef struct sti_title {
    const char *name; /* ALE's, "space_invaders" */
    const char *md5;  /* of the image that ALE takes for it */
    uint32_t minimal; /* actions, a bit each; 0: all 18 */
    sti_score first;  /* at the beginning of an episode */
    void (*step)(const uint8_t *ram, sti_score *score);
    const char *lives; /* NULL: score->lives while it is not over; "0": none are
                          counted; "over": score->lives to the end */
    struct {
        uint8_t action, frames;
    } start;
    sti_title_mode mode;
    sti_cart_frame frame; /* how that image is shown and played */
    bool no_fire;         /* actions with the button do nothing */
} sti_title;

extern const sti_title sti_titles[];
extern const int sti_title_count;

/* A title, or rules. */
typedef struct sti_game {
    const sti_title *title; /* NULL: the rules */
    sti_value_rule reward, lives;
    sti_test_rule done;
    uint32_t actions; /* a bit each; 0: the title's */
} sti_game;

/* name "auto" finds the title of the cartridge by its image or, as ALE does, by the
 * name of its file; "none" has no rules; else a title's name. The image's own title
 * sets cart->frame. The four rules may be NULL; they stand in place of a title's.
 * STINT_E_INPUT: no such title (with the nearest), or auto finds none and there are no
 * rules (with an example). */
typedef struct sti_game_desc {
    const char *name, *path;
    const char *reward, *lives, *done;
    const char *actions;
} sti_game_desc;
stint_status sti_game_choose(const sti_game_desc *desc, sti_cart *cart,
                             sti_game *game_out);
const char *sti_game_name(const sti_game *game); /* "none" where there is no title */
/* Actions that the game takes, 0 to 17 ascending; their number. */
int sti_game_actions(const sti_game *game, uint8_t actions_out[STI_ACTIONS]);

void sti_game_begin(const sti_game *game, sti_score *score);
/* After each frame. */
void sti_game_step(const sti_game *game, const uint8_t *ram, sti_score *score);
int32_t sti_game_lives(const sti_game *game, const sti_score *score);
/* What the console gets of an action that a player takes. */
int sti_game_action(const sti_game *game, int action);

/* Power on, 60 frames, RESET for 4, the title's mode, RESET for 4, and its start
 * actions: where an episode begins. STINT_E_INPUT where SELECT never brings the mode.
 */
stint_status sti_game_boot(const sti_game *game, sti_vcs *vcs, sti_score *score);

#endif
