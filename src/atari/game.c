#include "atari/game.h"

#include <ctype.h>
#include <nettle/md5.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"

enum { RESET_FRAMES = 4, BOOT_FRAMES = 60, MODE_PRESSES = 10000 };

/* ---- which game ---- */

static const sti_title *title_named(const char *name, size_t length)
{
    for (int i = 0; i < sti_title_count; i++)
        if (strlen(sti_titles[i].name) == length &&
            strncmp(sti_titles[i].name, name, length) == 0)
            return &sti_titles[i];
    return NULL;
}

static const sti_title *title_of_image(const sti_cart *cart)
{
    struct md5_ctx md5;
    uint8_t digest[MD5_DIGEST_SIZE];
    char hex[2 * MD5_DIGEST_SIZE + 1] = "";
    md5_init(&md5);
    md5_update(&md5, cart->bytes, cart->rom);
    md5_digest(&md5, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    for (int i = 0; i < sti_title_count; i++)
        if (strcmp(sti_titles[i].md5, hex) == 0)
            return &sti_titles[i];
    return NULL;
}

/* "roms/seaquest.bin" is taken for seaquest. */
static const sti_title *title_of_file(const char *path)
{
    const char *name = sti_path_name(path);
    const char *dot = strrchr(name, '.');
    return title_named(name, dot ? (size_t)(dot - name) : strlen(name));
}

static stint_status find_title(const sti_game_desc *desc, const sti_title *of_image,
                               const sti_title **title_out)
{
    const bool rules = desc->reward || desc->lives || desc->done;
    *title_out = NULL;
    if (strcmp(desc->name, "none") == 0)
        return STINT_OK;
    if (strcmp(desc->name, "auto") != 0) {
        *title_out = title_named(desc->name, strlen(desc->name));
        if (*title_out)
            return STINT_OK;
        return sti_fail(
            STINT_E_INPUT,
            "game %.60s: no title of this name has rules here (as seaquest, "
            "space_invaders, ... do); for a program of your own give them: "
            "--game none --reward ram:0xA1,bcd3 --done ram:0xA8==2",
            desc->name);
    }
    *title_out = of_image ? of_image : title_of_file(desc->path);
    if (*title_out || rules)
        return STINT_OK;
    return sti_fail(
        STINT_E_INPUT,
        "%s: neither the image nor the file's name is one of the titles that "
        "have rules; give some, as --reward ram:0xA1,bcd3 --lives ram:0xB0 "
        "--done ram:0xA8==2, or --game none for a program without rewards",
        desc->path);
}

stint_status sti_game_choose(const sti_game_desc *desc, sti_cart *cart,
                             sti_game *game_out)
{
    const sti_title *of_image = title_of_image(cart);
    sti_game game = {0};
    stint_status st = STINT_OK;
    STI_TRY(find_title(desc, of_image, &game.title));
    STI_TRY(sti_value_rule_parse(desc->reward, "reward", &game.reward));
    STI_TRY(sti_value_rule_parse(desc->lives, "lives", &game.lives));
    STI_TRY(sti_test_rule_parse(desc->done, "done", &game.done));
    STI_TRY(sti_action_rule_parse(desc->actions, "actions", &game.actions));
    if (of_image)
        cart->frame = of_image->frame;
    *game_out = game;
out:
    return st;
}

const char *sti_game_name(const sti_game *game)
{
    return game->title ? game->title->name : "none";
}

int sti_game_actions(const sti_game *game, uint8_t actions_out[STI_ACTIONS])
{
    const uint32_t title = game->title ? game->title->minimal : 0;
    const uint32_t taken = game->actions ? game->actions : title;
    int count = 0;
    for (int action = 0; action < STI_ACTIONS; action++)
        if (!taken || taken >> action & 1)
            actions_out[count++] = (uint8_t)action;
    return count;
}

int sti_game_action(const sti_game *game, int action)
{
    const bool fire = strstr(sti_action_name(action), "FIRE") != NULL;
    return game->title && game->title->no_fire && fire ? STI_ACTION_NOOP : action;
}

/* ---- rewards, lives, ends ---- */

void sti_game_begin(const sti_game *game, sti_score *score)
{
    *score = game->title ? game->title->first : (sti_score){0};
}

/* The rules stand in for what a title says of the same thing. A reward begins with the
 * second frame, when there is something to have grown from. */
static void step_rules(const sti_game *game, const uint8_t *ram, sti_score *score,
                       const sti_score *before)
{
    if (game->reward.count > 0) {
        const int64_t value = sti_value_rule_read(&game->reward, ram);
        score->reward = before->started ? value - before->score : 0;
        score->score = value;
        score->started = true;
    }
    if (game->lives.count > 0)
        score->lives = (int32_t)sti_value_rule_read(&game->lives, ram);
    if (game->done.count > 0)
        score->over = sti_test_rule_holds(&game->done, ram);
}

void sti_game_step(const sti_game *game, const uint8_t *ram, sti_score *score)
{
    const sti_score before = *score;
    if (game->title)
        game->title->step(ram, score);
    step_rules(game, ram, score, &before);
}

int32_t sti_game_lives(const sti_game *game, const sti_score *score)
{
    const char *how = game->title ? game->title->lives : NULL;
    if (game->lives.count > 0 || !game->title)
        return score->lives;
    if (how && strcmp(how, "0") == 0)
        return 0;
    return how == NULL && score->over ? 0 : score->lives;
}

/* ---- the way to an episode ---- */

typedef struct boot {
    const sti_game *game;
    sti_vcs *vcs;
    sti_score *score;
} boot;

static void frames(boot *b, int action, int count)
{
    for (int i = 0; i < count; i++) {
        sti_vcs_frame(b->vcs, action);
        sti_game_step(b->game, b->vcs->console.riot.ram, b->score);
    }
}

static uint8_t byte_at(const boot *b, uint8_t at)
{
    return b->vcs->console.riot.ram[at & 0x7f];
}

/* SELECT for some frames, of which the rules see nothing, and a frame without. */
static void press_select(boot *b, int count)
{
    for (int i = 0; i < count; i++)
        sti_vcs_frame(b->vcs, STI_ACTION_SELECT);
    frames(b, STI_ACTION_NOOP, 1);
}

static bool in_mode(const boot *b, const sti_title_mode *mode)
{
    const uint8_t byte = byte_at(b, mode->at);
    const unsigned value =
        mode->mask ? (unsigned)byte >> mode->shift & mode->mask : byte;
    if (mode->with_at && byte_at(b, mode->with_at) != mode->with)
        return false;
    return value == mode->mode ||
           (mode->also && value == (uint8_t)(mode->mode + mode->also));
}

/* An action and a frame without, as a step takes them: not once the game is over. */
static void tap(boot *b, int action)
{
    if (!b->score->over)
        frames(b, action, 1);
    if (!b->score->over)
        frames(b, STI_ACTION_NOOP, 1);
}

static bool menu_down(boot *b)
{
    const uint8_t before = byte_at(b, 0xb0);
    for (int i = 0; i < MODE_PRESSES; i++) {
        if (byte_at(b, 0xb0) != before)
            return true;
        tap(b, STI_ACTION_DOWN);
    }
    return false;
}

/* Double Dunk's options: the four from the third on are switched off. */
static bool choose_in_menu(boot *b)
{
    static const uint8_t options[4] = {0x08, 0x10, 0x04, 0x20};
    press_select(b, 1);
    if (!menu_down(b))
        return false;
    for (int i = 0; i < 4; i++) {
        int presses = 0;
        if (!menu_down(b))
            return false;
        for (; byte_at(b, 0x80) & options[i]; tap(b, STI_ACTION_LEFT))
            if (++presses == MODE_PRESSES)
                return false;
    }
    frames(b, STI_ACTION_RESET, RESET_FRAMES);
    tap(b, 10); /* UPFIRE */
    return true;
}

static bool choose_mode(boot *b, const sti_title_mode *mode)
{
    for (int i = 0; i < mode->noops && !b->score->over; i++)
        frames(b, STI_ACTION_NOOP, 1);
    if (mode->reset)
        frames(b, STI_ACTION_RESET, RESET_FRAMES);
    if (mode->before)
        press_select(b, mode->before);
    for (int i = 0; !in_mode(b, mode); i++) {
        if (i == MODE_PRESSES)
            return false;
        press_select(b, mode->frames ? mode->frames : 1);
    }
    b->score->other |= mode->sets_other;
    frames(b, STI_ACTION_RESET, RESET_FRAMES);
    return true;
}

stint_status sti_game_boot(const sti_game *game, sti_vcs *vcs, sti_score *score)
{
    boot b = {game, vcs, score};
    const sti_title *title = game->title;
    sti_input_reset(&vcs->console.input);
    sti_vcs_reset(vcs);
    sti_game_begin(game, score);
    frames(&b, STI_ACTION_NOOP, BOOT_FRAMES);
    frames(&b, STI_ACTION_RESET, RESET_FRAMES);
    sti_game_begin(game, score);
    if (title && ((title->mode.menu && !choose_in_menu(&b)) ||
                  (title->mode.at && !choose_mode(&b, &title->mode))))
        return sti_fail(STINT_E_INPUT,
                        "game %s: SELECT was pressed %d times and RAM never showed the "
                        "game's first mode: the program is another one; --game none "
                        "with rules of its own runs it",
                        title->name, MODE_PRESSES);
    frames(&b, STI_ACTION_RESET, RESET_FRAMES);
    if (title)
        frames(&b, title->start.action, title->start.frames);
    return STINT_OK;
}
