/* What bench/play_titles.py asks of our side: a title's rules on a console whose RAM is
 * poked.
 *
 *     play_titles_bench TITLE ROM < records
 *
 * The image is booted as the title is. A record is a command and 128 bytes: 0 pokes
 * them into RAM, runs a frame and prints reward, lives and end; 1 remembers the state,
 * 2 goes back to it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "atari/game.h"
#include "stint/stint.h"

static sti_vcs vcs;
static uint8_t kept_ram[32768];

static int play(const sti_game *game)
{
    sti_score score = {0}, kept_score = {0};
    sti_console kept = {0};
    uint8_t record[1 + STI_RAM_BYTES];
    if (sti_game_boot(game, &vcs, &score) != STINT_OK)
        return 1;
    while (fread(record, sizeof record, 1, stdin) == 1) {
        if (record[0] == 1) {
            kept = vcs.console;
            kept_score = score;
            memcpy(kept_ram, vcs.cart_ram, vcs.cart->ram_bytes);
        } else if (record[0] == 2) {
            vcs.console = kept;
            score = kept_score;
            memcpy(vcs.cart_ram, kept_ram, vcs.cart->ram_bytes);
        } else {
            memcpy(vcs.console.riot.ram, record + 1, STI_RAM_BYTES);
            sti_vcs_frame(&vcs, STI_ACTION_NOOP);
            sti_game_step(game, vcs.console.riot.ram, &score);
            printf("%" PRId64 " %d %d\n", score.reward, sti_game_lives(game, &score),
                   score.over);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    sti_cart cart = {0};
    sti_game game = {0};
    if (argc != 3) {
        fprintf(stderr, "play_titles_bench TITLE ROM < records\n");
        return 2;
    }
    const sti_game_desc desc = {.name = argv[1], .path = argv[2]};
    int status = 1;
    if (sti_cart_open(argv[2], &cart) == STINT_OK &&
        sti_game_choose(&desc, &cart, &game) == STINT_OK &&
        sti_vcs_init(&vcs, &cart) == STINT_OK)
        status = play(&game);
    if (status != 0)
        fprintf(stderr, "play_titles_bench: %s\n", stint_last_error());
    sti_vcs_fini(&vcs);
    sti_cart_close(&cart);
    return status;
}
