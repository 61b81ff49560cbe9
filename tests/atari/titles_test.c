/* Rewards, lives and ends of the titles against those of ale-py 0.12.1: hashes of what
 * ALE says of 150 frames of a program of ours that leaves RAM alone, while RAM is
 * poked. The hashes are ALE's: bench/play_titles.py --golden asks it for them. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "atari/game.h"
#include "base/file.h"
#include "titles_golden.h"

enum { STEPS = 150, BY_CHANCE = -1, BY_ADDRESS = 256 };

static sti_vcs vcs;

/* ---- the programs: they count RAM up while SELECT is pressed, and some always ---- */

static const struct {
    int idle, fill; /* counted by a frame without SELECT; RAM's bytes at power on */
} kinds[] = {{0, BY_CHANCE}, {1, BY_CHANCE}, {0, 0},         {1, 0},
             {0, 0x11},      {1, 0x11},      {0, 0x5a},      {1, 0x5a},
             {0, 0xc3},      {1, 0xc3},      {1, BY_ADDRESS}};

typedef struct writer {
    uint8_t *rom;
    int at;
} writer;

static void put(writer *w, int count, const uint8_t *bytes)
{
    memcpy(w->rom + w->at, bytes, (size_t)count);
    w->at += count;
}

#define PUT(w, ...)                                       \
    put((w), (int)sizeof((const uint8_t[]){__VA_ARGS__}), \
        (const uint8_t[]){__VA_ARGS__})

static void make_program(int kind, uint8_t rom[4096])
{
    writer w = {rom, 0};
    const int fill = kinds[kind].fill;
    memset(rom, 0xea, 4096);
    PUT(&w, 0x78, 0xd8);
    if (fill == BY_ADDRESS)
        PUT(&w, 0xa2, 0x80, 0x8a, 0x4a, 0x95, 0x00, 0xe8, 0xd0, 0xf9);
    else if (fill != BY_CHANCE)
        PUT(&w, 0xa9, (uint8_t)fill, 0xa2, 0x80, 0x95, 0x00, 0xe8, 0xd0, 0xfb);
    const uint8_t frame = (uint8_t)w.at;
    PUT(&w, 0xa9, 2, 0x85, 0, 0x85, 2, 0x85, 2, 0x85, 2, 0xa9, 0, 0x85, 0);
    PUT(&w, 0xad, 0x82, 0x02, 0x29, 0x02);
    if (kinds[kind].idle == 0)
        PUT(&w, 0xd0, 7);
    PUT(&w, 0xa2, 0x80, 0xf6, 0x00, 0xe8, 0xd0, 0xfb);
    PUT(&w, 0xa0, 220, 0x85, 2, 0x88, 0xd0, 0xfb, 0x4c, frame, 0xf0);
    rom[0xffc] = 0x00;
    rom[0xffd] = 0xf0;
}

/* ---- bytes by chance (Marsaglia's xorshift of 32 bits) ---- */

static uint32_t below(uint32_t *state, uint32_t n)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state % n;
}

static uint8_t digits(uint32_t *state)
{
    static const uint8_t flags[5] = {0, 1, 0xff, 0x80, 5};
    if (below(state, 10) >= 7)
        return flags[below(state, 5)];
    const uint32_t high = below(state, 10);
    return (uint8_t)(high << 4 | below(state, 10));
}

static void change(uint32_t *state, uint8_t ram[STI_RAM_BYTES])
{
    static const uint8_t values[8] = {0, 1, 2, 5, 0x0a, 0xff, 0x80, 0xa0};
    for (uint32_t left = 1 + below(state, 5); left > 0; left--) {
        const uint32_t at = below(state, STI_RAM_BYTES), what = below(state, 9);
        ram[at] = what < 8 ? values[what] : (uint8_t)below(state, 256);
    }
}

static void draw(uint32_t *state, uint8_t ram[STI_RAM_BYTES])
{
    const uint32_t kind = below(state, 10);
    if (kind >= 6) {
        change(state, ram);
        return;
    }
    for (int i = 0; i < STI_RAM_BYTES; i++)
        ram[i] = kind < 3 ? (uint8_t)below(state, 256) : digits(state);
}

/* ---- the test ---- */

static void play(const sti_game *game, int title, sti_score score, sti_sha256 *hash)
{
    const sti_console start = vcs.console;
    const sti_score first = score;
    const int idle = kinds[titles[title].kind].idle;
    uint8_t ram[STI_RAM_BYTES] = {0};
    uint32_t chance = (uint32_t)title + 1;
    for (int step = 0; step < STEPS; step++) {
        char line[64];
        if (score.over) {
            vcs.console = start;
            score = first;
        }
        draw(&chance, ram);
        for (int i = 0; i < STI_RAM_BYTES; i++)
            vcs.console.riot.ram[i] = (uint8_t)(ram[i] - idle);
        sti_vcs_frame(&vcs, STI_ACTION_NOOP);
        sti_game_step(game, vcs.console.riot.ram, &score);
        const int length =
            snprintf(line, sizeof line, "%" PRId64 " %d %d\n", score.reward,
                     sti_game_lives(game, &score), score.over);
        sti_sha256_add(hash, line, (size_t)length);
    }
}

static void check_title(int title)
{
    const sti_game_desc desc = {.name = titles[title].name, .path = "own.bin"};
    uint8_t rom[4096];
    sti_cart cart = {0};
    sti_game game = {0};
    sti_score score = {0};
    sti_sha256 hash;
    char hex[65];
    make_program(titles[title].kind, rom);
    assert_int_equal(sti_cart_load(rom, sizeof rom, "own", &cart), STINT_OK);
    assert_int_equal(sti_game_choose(&desc, &cart, &game), STINT_OK);
    assert_int_equal(sti_vcs_init(&vcs, &cart), STINT_OK);
    assert_int_equal(sti_game_boot(&game, &vcs, &score), STINT_OK);
    sti_sha256_init(&hash);
    play(&game, title, score, &hash);
    sti_sha256_hex(&hash, hex);
    if (strcmp(hex, titles[title].golden) != 0)
        fail_msg("%s: %s, ALE has %s", desc.name, hex, titles[title].golden);
    sti_vcs_fini(&vcs);
    sti_cart_close(&cart);
}

static void test_titles(void **state)
{
    (void)state;
    assert_int_equal(sizeof titles / sizeof titles[0], sti_title_count);
    for (int title = 0; title < sti_title_count; title++)
        check_title(title);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_titles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
