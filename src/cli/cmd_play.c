/* stint play: an Atari 2600 program looked at, and played frame by frame. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "atari/palette.h"
#include "atari/play_run.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/shown.h"
#include "base/units.h"
#include "cli/cli.h"
#include "media/image_encode.h"

typedef struct play_args {
    const char *game, *reward, *lives, *done;
    const char *actions, *load, *save, *png;
    int64_t frames, seed;
    double sticky;
    int boot, cpu;
    sti_cli_common common;
} play_args;

/* clang-format off */
#define PLAY_ROW(field, kind, standard, words)                                        \
    .type = (kind), .default_text = (standard), .offset = offsetof(play_args, field), \
    .flag = true, .help = (words)
#define PLAY_GAME_ROWS                                                                \
    {.name = "game", .unit = "NAME",                                                  \
     PLAY_ROW(game, STI_OPTION_TEXT, "auto",                                          \
              "title whose rules hold; auto: by the image or the file's name; none: " \
              "no rewards")},                                                         \
    {.name = "reward", .unit = "RULE",                                                \
     PLAY_ROW(reward, STI_OPTION_TEXT, "",                                            \
              "score in RAM, as ram:0xA1,bcd3 or ram:0x8D-ram:0x8E; a reward is what "\
              "it grew by")},                                                         \
    {.name = "lives", .unit = "RULE",                                                 \
     PLAY_ROW(lives, STI_OPTION_TEXT, "", "lives in RAM, as ram:0xB0")},              \
    {.name = "done", .unit = "RULE",                                                  \
     PLAY_ROW(done, STI_OPTION_TEXT, "",                                              \
              "when an episode is over, as ram:0xA8==2 | ram:0xB0>=21")}
/* clang-format on */

static const sti_option info_rows[] = {PLAY_GAME_ROWS, STI_CLI_COMMON_ROWS(play_args)};
static const sti_option run_rows[] = {
    {.name = "frames",
     .letter = 'n',
     .min = 1,
     .max = 1e12,
     .unit = "N",
     PLAY_ROW(frames, STI_OPTION_INT, "600", "frames to play, 60 a second of a game")},
    {.name = "actions",
     .letter = 'a',
     .unit = "FILE",
     PLAY_ROW(actions, STI_OPTION_TEXT, "random",
              "file with an action (0 to 17) a line and frame; random: of the game's "
              "own, by chance; noop: none")},
    PLAY_GAME_ROWS,
    {.name = "seed",
     .min = 0,
     .max = STI_OPTION_COUNT_MAX,
     .unit = "N",
     PLAY_ROW(seed, STI_OPTION_INT, "1", "of random actions and of --sticky")},
    {.name = "sticky",
     .min = 0,
     .max = 1,
     .unit = "P",
     PLAY_ROW(sticky, STI_OPTION_FLOAT, "0",
              "chance that a frame repeats the action before")},
    {.name = "boot",
     .choices = "ale|cold",
     .unit = "HOW",
     PLAY_ROW(
         boot, STI_OPTION_CHOICE, "ale",
         "ale: 60 frames, RESET and the start actions come before the first frame; "
         "cold: it is that of power on")},
    {.name = "cpu",
     .choices = "ale|exact",
     .unit = "KIND",
     PLAY_ROW(cpu, STI_OPTION_CHOICE, "ale",
              "ale: the processor that ALE's frames come of; exact: each access of the "
              "chip at its own cycle")},
    {.name = "load",
     .unit = "FILE",
     PLAY_ROW(load, STI_OPTION_PATH, "", "go on from a snapshot")},
    {.name = "save",
     .unit = "FILE",
     PLAY_ROW(save, STI_OPTION_PATH, "", "write a snapshot after the last frame")},
    {.name = "png",
     .unit = "FILE",
     PLAY_ROW(png, STI_OPTION_PATH, "", "write the last frame as a picture")},
    STI_CLI_COMMON_ROWS(play_args),
};

static stint_status open_game(const sti_cli_call *call, sti_cart *cart, sti_game *game)
{
    const play_args *args = call->args;
    const sti_game_desc desc = {.name = args->game ? args->game : "auto",
                                .path = call->operands[0],
                                .reward = args->reward,
                                .lives = args->lives,
                                .done = args->done};
    stint_status st = sti_cart_open(call->operands[0], cart);
    if (st == STINT_OK)
        st = sti_game_choose(&desc, cart, game);
    return st;
}

/* ---- play info ---- */

/* What stands for the rules: those that were given, else the title's own. */
static const char *rule_words(const char *given, const sti_game *game)
{
    if (given)
        return given;
    return game->title ? game->title->name : "none";
}

static void info_words(sti_cli_call *call, const sti_cart *cart, const sti_game *game,
                       const uint8_t *actions, int count, sti_text *out)
{
    const play_args *args = call->args;
    sti_text_printf(out, "%s: %s, %s bytes\nsha256 %s\ngame   %s\nactions",
                    sti_shown(call->operands[0]), sti_cart_mapper_name(cart),
                    sti_count_text(cart->bytes), cart->sha256, sti_game_name(game));
    for (int i = 0; i < count; i++)
        sti_text_printf(out, " %d %s", actions[i], sti_action_name(actions[i]));
    sti_text_printf(out, "\nreward %s\n", sti_shown(rule_words(args->reward, game)));
    sti_text_printf(out, "lives  %s\n", sti_shown(rule_words(args->lives, game)));
    sti_text_printf(out, "done   %s\n", sti_shown(rule_words(args->done, game)));
}

static void info_json(sti_cli_call *call, const sti_cart *cart, const sti_game *game,
                      const uint8_t *actions, int count, sti_text *out)
{
    const play_args *args = call->args;
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "path", call->operands[0]);
    sti_json_text(&j, "mapper", sti_cart_mapper_name(cart));
    sti_json_int(&j, "bytes", cart->bytes);
    sti_json_text(&j, "sha256", cart->sha256);
    sti_json_text(&j, "game", sti_game_name(game));
    sti_json_begin_array(&j, "actions");
    for (int i = 0; i < count; i++)
        sti_json_int(&j, NULL, actions[i]);
    sti_json_end_array(&j);
    sti_json_text(&j, "reward", rule_words(args->reward, game));
    sti_json_text(&j, "lives", rule_words(args->lives, game));
    sti_json_text(&j, "done", rule_words(args->done, game));
    sti_json_end_object(&j);
}

static stint_status info_run(sti_cli_call *call)
{
    sti_cart cart = {0};
    sti_game game = {0};
    uint8_t actions[STI_ACTIONS];
    stint_status st = open_game(call, &cart, &game);
    if (st == STINT_OK) {
        sti_text text = {0};
        const int count = sti_game_actions(&game, actions);
        if (call->common->json)
            info_json(call, &cart, &game, actions, count, &text);
        else
            info_words(call, &cart, &game, actions, count, &text);
        st = sti_cli_answer(call, &text);
    }
    sti_cart_close(&cart);
    return st;
}

const sti_cli_command sti_cmd_play_info = {
    .name = "play info",
    .summary = "say what an Atari program is, and by which rules it is played",
    .operands = "ROM",
    .example = "stint play info recipes/roms/rally.bin --game none",
    .about = "The mapper is found by size and signature. Lives, rewards and ends are "
             "those of a title, or rules of one's own.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(info_rows, play_args),
    .run = info_run,
};

/* ---- play run ---- */

static stint_status write_png(const char *path, const sti_vcs *vcs)
{
    const int lines = sti_cart_lines(vcs->cart), pixels = lines * STI_LINE_PIXELS;
    const uint8_t *picture = sti_vcs_picture(vcs);
    uint8_t *rgb = sti_alloc((size_t)pixels * 3, "play.png");
    sti_text png = {0};
    stint_status st = rgb ? STINT_OK : STINT_E_MEMORY;
    for (int i = 0; i < pixels && rgb; i++)
        sti_palette_rgb(vcs->cart->pal, picture[i], rgb + 3 * i);
    if (st == STINT_OK)
        st = sti_png_encode(rgb, lines, STI_LINE_PIXELS, 3, &png);
    if (st == STINT_OK)
        st = sti_file_write(path, png.data, png.length);
    sti_text_fini(&png);
    sti_free(rgb);
    return st;
}

static double frames_per_s(const sti_play_result *r)
{
    return r->seconds > 0 ? (double)r->frames / r->seconds : 0;
}

static void run_words(const sti_play_result *r, sti_text *out)
{
    sti_text_printf(out,
                    "%s frame%s, %s episode%s ended, reward %" PRId64 ", lives %d\n"
                    "%.0f frames/s\nframes sha256 %s\n",
                    sti_count_text(r->frames), sti_s(r->frames),
                    sti_count_text(r->episodes), sti_s(r->episodes), r->reward,
                    r->lives, frames_per_s(r), r->sha256);
    if (r->cut)
        sti_text_printf(out, "%s frame%s had no VSYNC and %s cut\n",
                        sti_count_text(r->cut), sti_s(r->cut),
                        r->cut == 1 ? "was" : "were");
    if (r->jammed)
        sti_text_printf(out, "an opcode at %04X stopped the processor\n", r->jammed_at);
}

static void run_json(const sti_play_result *r, sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_int(&j, "frames", r->frames);
    sti_json_int(&j, "drawn", r->drawn);
    sti_json_int(&j, "episodes", r->episodes);
    sti_json_int(&j, "reward", r->reward);
    sti_json_int(&j, "lives", r->lives);
    sti_json_float(&j, "frames_per_s", frames_per_s(r));
    sti_json_text(&j, "frames_sha256", r->sha256);
    sti_json_int(&j, "cut_frames", r->cut);
    if (r->jammed)
        sti_json_int(&j, "jammed_at", r->jammed_at);
    sti_json_end_object(&j);
}

static stint_status play(sti_cli_call *call, sti_vcs *vcs, const sti_game *game)
{
    const play_args *args = call->args;
    const sti_play_desc desc = {.frames = args->frames,
                                .actions = args->actions ? args->actions : "random",
                                .seed = (uint64_t)args->seed,
                                .sticky = args->sticky,
                                .cold = args->boot == 1,
                                .load = args->load,
                                .save = args->save};
    sti_play_result result = {0};
    sti_text text = {0};
    stint_status st = STINT_OK;
    vcs->exact = args->cpu == 1;
    STI_TRY(sti_play_run(&desc, vcs, game, &result));
    if (args->png)
        STI_TRY(write_png(args->png, vcs));
    if (call->common->json)
        run_json(&result, &text);
    else
        run_words(&result, &text);
    st = sti_cli_answer(call, &text);
out:
    return st;
}

/* No answer takes the place of what is read, nor of the other answer. */
static stint_status check_outputs(const sti_cli_call *call)
{
    const play_args *args = call->args;
    const char *ins[] = {call->operands[0], args->actions};
    stint_status st = STINT_OK;
    for (int i = 0; i < 2 && st == STINT_OK; i++) {
        if (ins[i])
            STI_TRY(sti_cli_check_out(ins[i], args->save));
        if (ins[i])
            STI_TRY(sti_cli_check_out(ins[i], args->png));
    }
    if (args->load)
        STI_TRY(sti_cli_check_out(args->load, args->png));
    if (args->save && args->png && sti_path_is_same(args->save, args->png))
        return sti_fail(STINT_E_USAGE, "--save and --png are both %s", args->png);
out:
    return st;
}

static stint_status run_run(sti_cli_call *call)
{
    sti_cart cart = {0};
    sti_game game = {0};
    sti_vcs *vcs = sti_alloc(sizeof *vcs, "play.console");
    stint_status st = vcs ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = check_outputs(call);
    if (st == STINT_OK)
        st = open_game(call, &cart, &game);
    if (st == STINT_OK)
        st = sti_vcs_init(vcs, &cart);
    if (st == STINT_OK)
        st = play(call, vcs, &game);
    if (vcs)
        sti_vcs_fini(vcs);
    sti_free(vcs);
    sti_cart_close(&cart);
    return st;
}

const sti_cli_command sti_cmd_play_run = {
    .name = "play run",
    .summary = "play an Atari 2600 program frame by frame",
    .operands = "ROM",
    .example = "stint play run recipes/roms/rally.bin --game none --frames 600 --png "
               "rally.png",
    .about =
        "Frames are those of the Arcade Learning Environment 0.12.1, colours and "
        "RAM: frames_sha256 is of 210 x 160 colour bytes and 128 of RAM a frame. A "
        "game that has ended begins anew before the next action.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(run_rows, play_args),
    .run = run_run,
};
