/* Frames against those of ale-py 0.12.1: hashes of colours and RAM over 60 frames and
 * more of programs made by chance (rom_make.h), and of our own. The hashes are ALE's:
 * bench/play_ale.py asks it for them, with the files that this test writes when it is
 * called with --write FOLDER (and how many, for more than the test has). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "atari/game.h"
#include "atari/paint.h"
#include "atari/play_run.h"
#include "atari/snapshot.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "rom_make.h"

enum { FRAMES = 60 };

#include "frames_golden.h"

static sti_vcs vcs;

static int action_of(int frame)
{
    return frame * 7 % STI_ACTIONS;
}

static void hash_frames(sti_vcs *v, int first, int frames, sti_sha256 *hash)
{
    for (int frame = first; frame < first + frames; frame++) {
        sti_vcs_frame(v, action_of(frame));
        sti_sha256_add(hash, sti_vcs_picture(v),
                       (size_t)sti_cart_lines(v->cart) * STI_LINE_PIXELS);
        sti_sha256_add(hash, v->console.riot.ram, STI_RAM_BYTES);
    }
}

static void check_frames(const uint8_t *rom, size_t bytes, const char *name,
                         const char *golden)
{
    sti_cart cart = {0};
    const sti_game game = {0};
    sti_score score = {0};
    sti_sha256 hash;
    char hex[65] = "";
    assert_int_equal(sti_cart_load(rom, bytes, name, &cart), STINT_OK);
    assert_int_equal(sti_vcs_init(&vcs, &cart), STINT_OK);
    assert_int_equal(sti_game_boot(&game, &vcs, &score), STINT_OK);
    sti_sha256_init(&hash);
    hash_frames(&vcs, 0, FRAMES, &hash);
    sti_sha256_hex(&hash, hex);
    if (strcmp(hex, golden) != 0)
        fail_msg("%s: %s, ALE has %s", name, hex, golden);
    sti_vcs_fini(&vcs);
    sti_cart_close(&cart);
}

static void test_made_by_chance(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        uint8_t rom[ROM_MAKE_BYTES];
        char name[32];
        (void)snprintf(name, sizeof name, "chance %zu", i);
        rom_make(i, (int)(i % 4), rom);
        check_frames(rom, sizeof rom, name, made[i]);
    }
}

static void test_our_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        char path[512];
        void *data = NULL;
        size_t bytes = 0;
        (void)snprintf(path, sizeof path, "%s/../recipes/roms/%s.bin",
                       STINT_TEST_SOURCE_DIR, own[i].name);
        assert_int_equal(sti_file_read(path, 1 << 20, &data, &bytes), STINT_OK);
        check_frames(data, bytes, own[i].name, own[i].golden);
        sti_free(data);
    }
}

/* A program that waits for the timer by A, X and Y, at every rate and from every
 * number, notes what it reads behind each wait, and makes a VSYNC now and then. intim:
 * the timer's address as the waits name it. */
static void make_waits(uint8_t intim, uint8_t rom[4096])
{
    static const uint8_t loads[3] = {0xad, 0xae, 0xac}, notes[3] = {0x85, 0x86, 0x84};
    uint8_t *at = rom;
    memset(rom, 0xea, 4096);
    for (int k = 0; k < 12; k++) {
        const uint8_t wait[] = {0xe6,
                                0x80,
                                0xa5,
                                0x80,
                                0x8d,
                                (uint8_t)(0x94 + k / 3),
                                0x02, /* set it */
                                loads[k % 3],
                                intim,
                                0x02,
                                0xd0,
                                0xfb, /* the wait */
                                notes[k % 3],
                                (uint8_t)(0x81 + 2 * k),
                                loads[k % 3],
                                intim,
                                0x02,
                                notes[k % 3],
                                (uint8_t)(0x82 + 2 * k)};
        static const uint8_t frame[] = {0xa9, 0x02, 0x85, 0x00, 0x85, 0x02, 0x85,
                                        0x02, 0x85, 0x02, 0xa9, 0x00, 0x85, 0x00};
        memcpy(at, wait, sizeof wait);
        at += sizeof wait;
        if (k % 3 == 2) {
            memcpy(at, frame, sizeof frame);
            at += sizeof frame;
        }
    }
    memcpy(at, (const uint8_t[]){0x4c, 0x00, 0xf0}, 3);
    rom[0xffc] = 0x00;
    rom[0xffd] = 0xf0;
}

/* Waits that are passed over end as those that are run, which are the same waits by
 * another address of the timer; also where the safety stop cuts them. */
static void test_waits(void **state)
{
    (void)state;
    static sti_vcs other;
    uint8_t rom[4096];
    sti_cart cart[2] = {{0}};
    sti_vcs *v[2] = {&vcs, &other};
    for (int i = 0; i < 2; i++) {
        make_waits(i ? 0x94 : 0x84, rom);
        assert_int_equal(sti_cart_load(rom, sizeof rom, "waits", &cart[i]), STINT_OK);
        assert_int_equal(sti_vcs_init(v[i], &cart[i]), STINT_OK);
    }
    uint32_t cut = 0;
    for (int frame = 0; frame < 2500; frame++) {
        for (int i = 0; i < 2; i++)
            sti_vcs_frame(v[i], 0);
        assert_memory_equal(v[0]->console.riot.ram, v[1]->console.riot.ram,
                            STI_RAM_BYTES);
        assert_int_equal(v[0]->console.cpu.cycles, v[1]->console.cpu.cycles);
        assert_int_equal(v[0]->console.cpu.pc, v[1]->console.cpu.pc);
        assert_int_equal(v[0]->console.cut_frames, v[1]->console.cut_frames);
        assert_int_equal(v[0]->console.cpu.a, v[1]->console.cpu.a);
        assert_int_equal(v[0]->console.cpu.negative, v[1]->console.cpu.negative);
        cut = v[0]->console.cut_frames;
    }
    assert_true(cut > 10);
    for (int i = 0; i < 2; i++) {
        sti_vcs_fini(v[i]);
        sti_cart_close(&cart[i]);
    }
}

/* The loop over decoded instructions leaves all as the interpreter does, registers and
 * what the bus held included: on programs made by chance, on our own with their
 * mappers, and where a frame is cut. */
static void check_tiers(const uint8_t *rom, size_t bytes, int frames)
{
    static sti_vcs other;
    sti_cart cart[2] = {{0}};
    sti_vcs *v[2] = {&vcs, &other};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sti_cart_load(rom, bytes, "rom", &cart[i]), STINT_OK);
        if (i == 1) /* kind 0, which the loop leaves to the interpreter */
            memset(cart[i].decoded, 0,
                   sti_cpu_decoded_count(cart[i].bytes) * sizeof *cart[i].decoded);
        assert_int_equal(sti_vcs_init(v[i], &cart[i]), STINT_OK);
    }
    for (int frame = 0; frame < frames; frame++) {
        for (int i = 0; i < 2; i++)
            sti_vcs_frame(v[i], action_of(frame));
        assert_memory_equal(&v[0]->console.cpu, &v[1]->console.cpu, sizeof(sti_cpu));
        assert_memory_equal(&v[0]->console.riot, &v[1]->console.riot, sizeof(sti_riot));
        assert_memory_equal(&v[0]->console.tia, &v[1]->console.tia, sizeof(sti_tia));
        assert_memory_equal(sti_vcs_picture(v[0]), sti_vcs_picture(v[1]),
                            STI_SCREEN_LINES * STI_LINE_PIXELS);
        assert_int_equal(v[0]->console.cut_frames, v[1]->console.cut_frames);
    }
    for (int i = 0; i < 2; i++) {
        sti_vcs_fini(v[i]);
        sti_cart_close(&cart[i]);
    }
}

/* Opcodes and operands by chance, which get everywhere. */
static void make_noise(unsigned seed, uint8_t rom[4096])
{
    srand(seed);
    for (int i = 0; i < 4096; i++)
        rom[i] = (uint8_t)(rand() >> 7);
    for (int i = 0; i + 3 < 4096; i += 3 + rand() % 5) {
        static const uint8_t usual[] = {0xca, 0xd0, 0x85, 0xa5, 0x95, 0xb1, 0x20, 0x60,
                                        0x69, 0xc9, 0xbd, 0x48, 0x68, 0x88, 0xa9, 0xe6};
        rom[i] = usual[rand() % 16];
        rom[i + 1] |= rand() % 2 ? 0x80 : 0;
    }
    for (int i = 0; i < 4096; i++) /* what stops the processor would end it soon */
        if ((rom[i] & 0x1f) == 0x12 || (rom[i] & 0x9f) == 0x02)
            rom[i] = 0xea;
    rom[0xffc] = (uint8_t)rand();
    rom[0xffd] = (uint8_t)(0xf0 | (rand() & 15));
}

/* Instructions that the loop makes in one piece, some with what they need before them;
 * 0: any byte. A branch goes over two bytes, or back in a loop that ends. */
static const struct {
    uint8_t length, bytes[7];
} pieces[] = {{3, {0xca, 0xd0, 0xfd}},
              {3, {0x88, 0xd0, 0xfd}},
              {3, {0xca, 0xd0, 0x02}},
              {3, {0xc8, 0xd0, 0x02}},
              {4, {0xea, 0xe8, 0xd0, 0xfc}},
              {4, {0xea, 0x88, 0xd0, 0xfc}},
              {5, {0xa2, 0x05, 0xca, 0x10, 0xfd}},
              {5, {0xa0, 0x07, 0x88, 0x10, 0xfd}},
              {4, {0xc6, 0x90, 0xd0, 0xfc}},
              {4, {0xc9, 0, 0xd0, 0x02}},
              {4, {0xc9, 0, 0xf0, 0x02}},
              {4, {0xc9, 0, 0x90, 0x02}},
              {4, {0xc9, 0, 0xb0, 0x02}},
              {4, {0xe0, 0, 0xd0, 0x02}},
              {4, {0xc0, 0, 0xd0, 0x02}},
              {7, {0xd8, 0xa9, 0, 0xe9, 0x0f, 0xb0, 0xfc}},
              {4, {0xe9, 0, 0xb0, 0x02}},
              {3, {0x38, 0xe9, 0}},
              {3, {0x38, 0xe5, 0x85}},
              {3, {0x18, 0x69, 0}},
              {3, {0x18, 0x65, 0x93}},
              {4, {0xa9, 0, 0x85, 0x1b}},
              {4, {0xa9, 0, 0x85, 0x02}},
              {4, {0xa5, 0x88, 0x85, 0x0e}},
              {4, {0xb5, 0, 0x85, 0x1c}},
              {5, {0xbd, 0, 0xf3, 0x85, 0x0f}},
              {5, {0xb9, 0, 0xf7, 0x85, 0x0d}},
              {4, {0xb1, 0x80, 0x85, 0x1b}},
              {4, {0xa9, 0, 0x85, 0x92}},
              {4, {0xa5, 0x95, 0x85, 0x9d}},
              {4, {0xa6, 0x91, 0x86, 0x02}},
              {4, {0xa4, 0x92, 0x84, 0x09}},
              {3, {0x8d, 0x02, 0x40}},
              {3, {0x9d, 0x80, 0x02}},
              {2, {0x91, 0x82}},
              {2, {0xb3, 0x80}},
              {2, {0xc7, 0x96}},
              {2, {0xf6, 0x98}},
              {3, {0x2c, 0, 0x02}},
              {2, {0x24, 0x07}},
              {2, {0xa5, 0x0c}},
              {2, {0xf1, 0x80}},
              {3, {0x7d, 0, 0xf5}},
              {1, {0xf8}},
              {1, {0xd8}},
              {1, {0x28}}};

/* Pieces by chance in frames that end, over all of the image. */
static void make_pieces(unsigned seed, uint8_t rom[4096])
{
    static const uint8_t begin[] = {
        0xa9, 0x02, 0x85, 0x00, 0x85, 0x02, 0x85, 0x02, 0x85, 0x02, 0xa9, 0x00, 0x85,
        0x00, 0xa9, 0xf4, 0x85, 0x81, 0xa9, 0x00, 0x85, 0x83, 0xa2, 0x80, 0x9a};
    int at = (int)sizeof begin;
    srand(seed);
    memset(rom, 0xea, 4096);
    memcpy(rom, begin, sizeof begin);
    while (at < 0xfe0) {
        const size_t k = (size_t)rand() % (sizeof pieces / sizeof pieces[0]);
        for (int b = 0; b < pieces[k].length; b++)
            rom[at++] = pieces[k].bytes[b] ? pieces[k].bytes[b] : (uint8_t)rand();
        for (int b = 0; b < 2 + rand() % 2; b++)
            rom[at++] = rand() % 4 ? 0xea : 0xc8;
    }
    memcpy(rom + 0xfee, (const uint8_t[]){0x4c, 0x00, 0xf0}, 3);
    rom[0xffc] = 0x00;
    rom[0xffd] = 0xf0;
}

static void test_tiers(void **state)
{
    (void)state;
    for (unsigned seed = 300; seed < 340; seed++) {
        uint8_t rom[ROM_MAKE_BYTES];
        rom_make(seed, (int)(seed % 4), rom);
        check_tiers(rom, sizeof rom, seed % 4 ? 3 : 20);
        make_noise(seed, rom);
        check_tiers(rom, 4096, 3);
        make_pieces(seed, rom);
        check_tiers(rom, 4096, 4);
    }
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        char path[512];
        void *data = NULL;
        size_t bytes = 0;
        (void)snprintf(path, sizeof path, "%s/../recipes/roms/%s.bin",
                       STINT_TEST_SOURCE_DIR, own[i].name);
        assert_int_equal(sti_file_read(path, 1 << 20, &data, &bytes), STINT_OK);
        check_tiers(data, bytes, 20);
        sti_free(data);
    }
}

/* Skipping the drawing changes nothing but the picture: not RAM, not the latches. */
static void test_undrawn(void **state)
{
    (void)state;
    for (uint64_t seed = 100; seed < 112; seed++) {
        uint8_t rom[ROM_MAKE_BYTES];
        sti_cart cart = {0};
        sti_console blind;
        rom_make(seed, (int)(seed % 4), rom);
        assert_int_equal(sti_cart_load(rom, sizeof rom, "rom", &cart), STINT_OK);
        assert_int_equal(sti_vcs_init(&vcs, &cart), STINT_OK);
        blind = vcs.console;
        for (int frame = 0; frame < 40; frame++) {
            sti_vcs_frame(&vcs, action_of(frame));
            sti_action_apply(&blind.input, &cart, action_of(frame));
            sti_console_frame(&blind, &cart, vcs.cart_ram, NULL, false);
            assert_memory_equal(blind.riot.ram, vcs.console.riot.ram, STI_RAM_BYTES);
            assert_int_equal(blind.tia.latches, vcs.console.tia.latches);
            assert_memory_equal(blind.tia.place, vcs.console.tia.place, STI_THINGS);
            assert_int_equal(blind.cpu.cycles, vcs.console.cpu.cycles);
        }
        sti_vcs_fini(&vcs);
        sti_cart_close(&cart);
    }
}

/* A picture over what anything left there is one that was black before. */
static void test_black(void **state)
{
    static uint8_t left[STI_SCREEN_BYTES], clean[STI_SCREEN_BYTES];
    (void)state;
    for (uint64_t seed = 200; seed < 224; seed++) {
        uint8_t rom[ROM_MAKE_BYTES];
        sti_cart cart = {0};
        sti_console other;
        rom_make(seed, (int)(seed % 4), rom);
        assert_int_equal(sti_cart_load(rom, sizeof rom, "rom", &cart), STINT_OK);
        assert_int_equal(sti_vcs_init(&vcs, &cart), STINT_OK);
        other = vcs.console;
        for (int frame = 0; frame < 10; frame++) {
            sti_screen over = {.now = left, .before = left, .black = true};
            sti_screen on_black = {.now = clean, .before = clean};
            memset(left, 0xa5 + frame, sizeof left);
            memset(clean, 0, sizeof clean);
            sti_console_frame(&vcs.console, &cart, vcs.cart_ram, &over, false);
            sti_console_frame(&other, &cart, vcs.cart_ram, &on_black, false);
            assert_memory_equal(left, clean,
                                (size_t)sti_cart_lines(&cart) * STI_LINE_PIXELS);
        }
        sti_vcs_fini(&vcs);
        sti_cart_close(&cart);
    }
}

static uint64_t bits_by_chance(void)
{
    uint64_t bits = 0;
    for (int i = 0; i < 64; i++)
        bits |= (uint64_t)(rand() >> 8 & 1) << i;
    return rand() % 3 ? bits : bits & 1 ? ~UINT64_C(0) : 0;
}

/* Spans of every instruction set are those of a loop over pixels, and leave the rest of
 * the row. */
static void test_spans(void **state)
{
    (void)state;
    srand(5);
    for (int trial = 0; trial < 4000; trial++) {
        sti_paint paint = {.colour = {0x36, 0xc8, 0x0e, 0x80}};
        uint8_t row[2][STI_LINE_PIXELS], want[STI_LINE_PIXELS];
        const int x0 = rand() % STI_LINE_PIXELS;
        const int x1 = x0 + 1 + rand() % (STI_LINE_PIXELS - x0);
        for (int word = 0; word < 3; word++) {
            uint64_t taken = word == 2 ? ~UINT64_C(0xffffffff) : 0;
            for (int c = 0; c < 3; c++) {
                paint.bits[c][word] = bits_by_chance() & ~taken;
                taken |= paint.bits[c][word];
            }
        }
        for (int x = 0; x < STI_LINE_PIXELS; x++) {
            int colour = 3;
            for (int c = 0; c < 3; c++)
                if (paint.bits[c][x >> 6] >> (x & 63) & 1)
                    colour = c;
            row[0][x] = row[1][x] = (uint8_t)x;
            want[x] = x >= x0 && x < x1 ? paint.colour[colour] : (uint8_t)x;
        }
        sti_paint_span_ref(&paint, row[0], x0, x1);
        assert_memory_equal(row[0], want, sizeof want);
#if defined(__x86_64__)
        if (sti_isa_has(STI_ISA_AVX2)) {
            sti_paint_span_avx2(&paint, row[1], x0, x1);
            assert_memory_equal(row[1], want, sizeof want);
        }
#endif
    }
}

/* What is loaded goes on as what was saved. */
static void test_snapshot(void **state)
{
    const sti_game game = {0};
    uint8_t rom[ROM_MAKE_BYTES];
    sti_cart cart = {0};
    sti_score score = {.score = -5, .lives = 3}, other = {0};
    sti_text text = {0};
    sti_sha256 hash;
    char there[65] = "", back[65] = "";
    (void)state;
    rom_make(7, 3, rom);
    assert_int_equal(sti_cart_load(rom, sizeof rom, "rom", &cart), STINT_OK);
    assert_int_equal(sti_vcs_init(&vcs, &cart), STINT_OK);
    sti_sha256_init(&hash);
    hash_frames(&vcs, 0, 50, &hash);
    assert_int_equal(sti_snapshot_write(&vcs, &game, &score, &text), STINT_OK);
    sti_sha256_init(&hash);
    hash_frames(&vcs, 50, 50, &hash);
    sti_sha256_hex(&hash, there);
    sti_vcs_reset(&vcs);
    assert_int_equal(sti_snapshot_read((const uint8_t *)text.data, text.length, "text",
                                       &vcs, &game, &other),
                     STINT_OK);
    assert_int_equal(other.score, -5);
    assert_int_equal(other.lives, 3);
    sti_sha256_init(&hash);
    hash_frames(&vcs, 50, 50, &hash);
    sti_sha256_hex(&hash, back);
    assert_string_equal(there, back);
    /* One bit wrong, anywhere: refused. */
    for (size_t i = 0; i < text.length; i += 97) {
        text.data[i] ^= 4;
        assert_int_equal(sti_snapshot_read((const uint8_t *)text.data, text.length,
                                           "text", &vcs, &game, &other),
                         STINT_E_INPUT);
        text.data[i] ^= 4;
    }
    sti_text_fini(&text);
    sti_vcs_fini(&vcs);
    sti_cart_close(&cart);
}

static int write_roms(const char *folder, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t rom[ROM_MAKE_BYTES];
        char path[512];
        rom_make(i, (int)(i % 4), rom);
        (void)snprintf(path, sizeof path, "%s/chance%02zu.bin", folder, i);
        if (sti_file_write(path, rom, sizeof rom) != STINT_OK)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_made_by_chance), cmocka_unit_test(test_our_own),
        cmocka_unit_test(test_waits),          cmocka_unit_test(test_tiers),
        cmocka_unit_test(test_undrawn),        cmocka_unit_test(test_black),
        cmocka_unit_test(test_spans),          cmocka_unit_test(test_snapshot),
    };
    if (argc >= 3 && strcmp(argv[1], "--write") == 0)
        return write_roms(argv[2], argc > 3 ? strtoul(argv[3], NULL, 10)
                                            : sizeof made / sizeof made[0]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
