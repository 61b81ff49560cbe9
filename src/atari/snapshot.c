#include "atari/snapshot.h"

#include <stddef.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"

/* A file is: the line MAGIC; 64 characters of the image's SHA-256; the game's name in
 * 32 bytes; the fields below, each little-endian, in the order of the table; the
 * cartridge's RAM; both pictures; and a CRC-32C of all of it. Every number has the
 * range that the chips rely on, so a damaged file never becomes a console. */
static const char MAGIC[] = "stint atari snapshot 1\n";

enum { HEX = 64, NAME = 32, CRC = 4, BYTES_MOST = 1 << 20 };

typedef struct field {
    uint16_t at;   /* in the struct */
    uint8_t bytes; /* of one number: 1, 2, 4, 8 */
    uint16_t count;
    int64_t least, most;
} field;

/* clang-format off */
#define MEMBER_BYTES(type, member) sizeof(((type *)0)->member)
#define ONE(type, member, low, high) \
    {offsetof(type, member), MEMBER_BYTES(type, member), 1, low, high}
#define MANY(type, member, low, high) \
    {offsetof(type, member), MEMBER_BYTES(type, member[0]), \
     MEMBER_BYTES(type, member) / MEMBER_BYTES(type, member[0]), low, high}
#define BYTE(member) ONE(sti_console, member, 0, 255)
#define FLAG(member) ONE(sti_console, member, 0, 1)
#define TIME(member) ONE(sti_console, member, INT32_MIN, INT32_MAX)

static const field console_fields[] = {
    ONE(sti_console, cpu.cycles, 0, UINT32_MAX), ONE(sti_console, cpu.pc, 0, 65535),
    BYTE(cpu.a), BYTE(cpu.x), BYTE(cpu.y), BYTE(cpu.sp), BYTE(cpu.negative), BYTE(cpu.nonzero),
    FLAG(cpu.carry), FLAG(cpu.overflow), FLAG(cpu.decimal), FLAG(cpu.interrupt),
    BYTE(cpu.bus), FLAG(cpu.was_read),
    MANY(sti_console, riot.ram, 0, 255), TIME(riot.set_at), TIME(riot.read_at), BYTE(riot.timer),
    ONE(sti_console, riot.shift, 0, 10), FLAG(riot.was_read), BYTE(riot.port_a_output),
    ONE(sti_console, tia.frame_start, 1 - STI_LINE_CLOCKS, 0), TIME(tia.drawn_to),
    TIME(tia.vsync_end), TIME(tia.hmove_at), TIME(tia.dump_end),
    ONE(sti_console, tia.playfield, 0, 0xfffff),
    ONE(sti_console, tia.line_left, 0, STI_LINE_CLOCKS), ONE(sti_console, tia.lines_before, 0, 32767),
    ONE(sti_console, tia.latches, 0, 0x7fff), ONE(sti_console, tia.enabled, 0, 63),
    BYTE(tia.vsync), BYTE(tia.vblank), BYTE(tia.ctrlpf), FLAG(tia.mirrored),
    MANY(sti_console, tia.colour, 0, 255),
#define PLAYER(i) \
    BYTE(tia.player[i].nusiz), BYTE(tia.player[i].graphics), BYTE(tia.player[i].delayed), \
    BYTE(tia.player[i].shown), FLAG(tia.player[i].reflected), FLAG(tia.player[i].late), \
    FLAG(tia.player[i].skips_first), FLAG(tia.player[i].missile_on), FLAG(tia.player[i].missile_locked)
    PLAYER(0), PLAYER(1),
    FLAG(tia.ball_on), FLAG(tia.ball_delayed), FLAG(tia.ball_late),
    MANY(sti_console, tia.place, 0, STI_LINE_PIXELS - 1), MANY(sti_console, tia.motion, 0, 15),
    FLAG(tia.hmove_blank), FLAG(tia.stars), ONE(sti_console, tia.star_phase, 0, 3),
    ONE(sti_console, tia.star, 0, STI_STAR_NONE), FLAG(tia.dumping),
    BYTE(input.port_a), BYTE(input.switches), MANY(sti_console, input.fire, 0, 1),
    MANY(sti_console, input.paddle, 0, 1000000),
    MANY(sti_console, cart.slice, 0, 65535), ONE(sti_console, cart.ram_bank, 0, 31),
    FLAG(cart.ram_mapped), ONE(sti_console, cart.dpc.part_clock, 0, 0), TIME(cart.dpc.cycles),
    MANY(sti_console, cart.dpc.counter, 0, 0x7ff), MANY(sti_console, cart.dpc.top, 0, 255),
    MANY(sti_console, cart.dpc.bottom, 0, 255), MANY(sti_console, cart.dpc.flag, 0, 255),
    MANY(sti_console, cart.dpc.music, 0, 1), BYTE(cart.dpc.random),
    FLAG(in_frame), FLAG(greyed), FLAG(jammed), ONE(sti_console, jammed_at, 0, 65535),
    ONE(sti_console, cut_frames, 0, UINT32_MAX),
};

static const field chance_fields[] = {
    MANY(sti_twister, state, 0, UINT32_MAX), ONE(sti_twister, at, 0, 624),
};

#define SCORE_MOST INT64_C(1000000000000)
static const field score_fields[] = {
    ONE(sti_score, score, -SCORE_MOST, SCORE_MOST), ONE(sti_score, reward, -SCORE_MOST, SCORE_MOST),
    ONE(sti_score, other, -SCORE_MOST, SCORE_MOST), ONE(sti_score, lives, INT32_MIN, INT32_MAX),
    ONE(sti_score, over, 0, 1), ONE(sti_score, started, 0, 1),
};
/* clang-format on */

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* The one number that is no integer; it lies in 0 to 1. */
static bool is_clock(const field *f, const field *table)
{
    return table == console_fields &&
           f->at == offsetof(sti_console, cart.dpc.part_clock);
}

static void write_fields(const void *from, const field *table, size_t count,
                         sti_text *out)
{
    for (size_t f = 0; f < count; f++)
        for (size_t i = 0; i < table[f].count; i++) {
            const uint8_t *at =
                (const uint8_t *)from + table[f].at + i * table[f].bytes;
            uint8_t bytes[8];
            for (int b = 0; b < table[f].bytes; b++)
                bytes[b] = at[b];
            sti_text_add_bytes(out, bytes, table[f].bytes);
        }
}

stint_status sti_snapshot_write(const sti_vcs *vcs, const sti_game *game,
                                const sti_score *score, sti_text *out)
{
    char name[NAME] = "";
    uint8_t crc[CRC] = {0};
    strncpy(name, sti_game_name(game), NAME - 1);
    sti_text_add(out, MAGIC);
    sti_text_add_bytes(out, vcs->cart->sha256, HEX);
    sti_text_add_bytes(out, name, NAME);
    write_fields(&vcs->console, console_fields, COUNT(console_fields), out);
    write_fields(&vcs->chance, chance_fields, COUNT(chance_fields), out);
    write_fields(score, score_fields, COUNT(score_fields), out);
    sti_text_add_bytes(out, vcs->cart_ram, vcs->cart->ram_bytes);
    sti_text_add_bytes(out, vcs->screen.now, STI_SCREEN_BYTES);
    sti_text_add_bytes(out, vcs->screen.before, STI_SCREEN_BYTES);
    sti_text_add_bytes(out, crc, CRC);
    if (out->failed)
        return sti_fail(STINT_E_MEMORY, "no memory for a snapshot");
    sti_snapshot_seal((uint8_t *)out->data, out->length);
    return STINT_OK;
}

void sti_snapshot_seal(uint8_t *bytes, size_t n_bytes)
{
    const uint32_t crc = n_bytes >= CRC ? sti_crc32c(0, bytes, n_bytes - CRC) : 0;
    for (size_t i = 0; i < CRC && n_bytes >= CRC; i++)
        bytes[n_bytes - CRC + i] = (uint8_t)(crc >> 8 * i);
}

typedef struct snapshot_reader {
    const uint8_t *at, *end;
    const char *name;
} snapshot_reader;

static stint_status damaged(const snapshot_reader *r, const char *what)
{
    return sti_fail(STINT_E_INPUT,
                    "%s: the snapshot is damaged (%s); save it again with stint play "
                    "run --save",
                    r->name, what);
}

/* A number as its field's C type has it. */
static int64_t number_of(const uint8_t *at, const field *f)
{
    uint64_t bits = 0;
    for (int b = f->bytes - 1; b >= 0; b--)
        bits = bits << 8 | at[b];
    if (f->least < 0 && f->bytes < 8 && bits >> (8 * f->bytes - 1))
        bits |= ~UINT64_C(0) << 8 * f->bytes;
    return (int64_t)bits;
}

static bool in_range(const uint8_t *at, const field *f, const field *table)
{
    const int64_t number = number_of(at, f);
    double clock = 0;
    if (!is_clock(f, table))
        return number >= f->least && number <= f->most;
    memcpy(&clock, at, sizeof clock);
    return clock >= 0 && clock < 1;
}

static stint_status read_fields(snapshot_reader *r, void *to, const field *table,
                                size_t count)
{
    for (size_t f = 0; f < count; f++)
        for (size_t i = 0; i < table[f].count; i++) {
            if ((size_t)(r->end - r->at) < table[f].bytes)
                return damaged(r, "it ends early");
            if (!in_range(r->at, &table[f], table))
                return damaged(r, "a number is out of its range");
            memcpy((uint8_t *)to + table[f].at + i * table[f].bytes, r->at,
                   table[f].bytes);
            r->at += table[f].bytes;
        }
    return STINT_OK;
}

/* Magic, check sum, whose cartridge and whose rules. */
static stint_status read_head(snapshot_reader *r, const sti_cart *cart,
                              const sti_game *game, const uint8_t *bytes,
                              size_t n_bytes)
{
    const size_t magic = sizeof MAGIC - 1;
    char name[NAME] = "";
    uint32_t crc = 0;
    if (n_bytes < magic + HEX + NAME + CRC || memcmp(bytes, MAGIC, magic) != 0)
        return sti_fail(
            STINT_E_INPUT,
            "%s: no snapshot of a console (stint play run --save writes one)", r->name);
    for (size_t i = 0; i < CRC; i++)
        crc |= (uint32_t)bytes[n_bytes - CRC + i] << 8 * i;
    if (crc != sti_crc32c(0, bytes, n_bytes - CRC))
        return damaged(r, "its check sum is another");
    if (memcmp(bytes + magic, cart->sha256, HEX) != 0)
        return sti_fail(
            STINT_E_INPUT,
            "%s: a snapshot of another cartridge, sha256 %.12s...; this one's "
            "is %.12s...",
            r->name, (const char *)bytes + magic, cart->sha256);
    memcpy(name, bytes + magic + HEX, NAME - 1);
    if (strcmp(name, sti_game_name(game)) != 0)
        return sti_fail(
            STINT_E_INPUT,
            "%s: the snapshot was played by the rules of '%.31s', not '%s'; "
            "give --game %.31s",
            r->name, name, sti_game_name(game), name);
    r->at = bytes + magic + HEX + NAME;
    r->end = bytes + n_bytes - CRC;
    return STINT_OK;
}

/* What the ranges alone do not say: slices are within the image, the frame's clock is
 * where a frame can be. */
static stint_status check_console(const snapshot_reader *r, const sti_cart *cart,
                                  const sti_console *console)
{
    const sti_tia *tia = &console->tia;
    const int32_t display =
        tia->frame_start + sti_cart_first_line(cart) * STI_LINE_CLOCKS;
    const int32_t into = tia->drawn_to - display;
    for (int i = 0; i < 4; i++)
        if ((console->cart.slice[i] + 1u) * 1024 > cart->bytes)
            return damaged(r, "a bank is not in the image");
    if (cart->ram_bytes < 32768 && console->cart.ram_bank > 3)
        return damaged(r, "a bank of RAM is not in the cartridge");
    if (console->in_frame &&
        (into < 0 || into > sti_cart_lines(cart) * STI_LINE_CLOCKS ||
         (into + tia->line_left) % STI_LINE_CLOCKS != 0))
        return damaged(r, "the beam is nowhere");
    return STINT_OK;
}

stint_status sti_snapshot_read(const uint8_t *bytes, size_t n_bytes, const char *name,
                               sti_vcs *vcs, const sti_game *game, sti_score *score)
{
    const sti_cart *cart = vcs->cart;
    const size_t rest = cart->ram_bytes + 2 * (size_t)STI_SCREEN_BYTES;
    snapshot_reader r = {.name = name};
    sti_console console = {0};
    sti_score new_score = {0};
    sti_twister chance = {0};
    stint_status st = STINT_OK;
    STI_TRY(read_head(&r, cart, game, bytes, n_bytes));
    STI_TRY(read_fields(&r, &console, console_fields, COUNT(console_fields)));
    STI_TRY(read_fields(&r, &chance, chance_fields, COUNT(chance_fields)));
    STI_TRY(read_fields(&r, &new_score, score_fields, COUNT(score_fields)));
    STI_TRY(check_console(&r, cart, &console));
    if ((size_t)(r.end - r.at) != rest)
        return damaged(&r, "it has another length");
    console.tia.stale = (1u << STI_THINGS) - 1;
    vcs->console = console;
    vcs->chance = chance;
    *score = new_score;
    memcpy(vcs->cart_ram, r.at, cart->ram_bytes);
    memcpy(vcs->screen.now, r.at + cart->ram_bytes, STI_SCREEN_BYTES);
    memcpy(vcs->screen.before, r.at + cart->ram_bytes + STI_SCREEN_BYTES,
           STI_SCREEN_BYTES);
out:
    return st;
}

stint_status sti_snapshot_save(const char *path, const sti_vcs *vcs,
                               const sti_game *game, const sti_score *score)
{
    sti_text text = {0};
    stint_status st = sti_snapshot_write(vcs, game, score, &text);
    if (st == STINT_OK)
        st = sti_file_write(path, text.data, text.length);
    sti_text_fini(&text);
    return st;
}

stint_status sti_snapshot_load(const char *path, sti_vcs *vcs, const sti_game *game,
                               sti_score *score)
{
    void *data = NULL;
    size_t n_bytes = 0;
    stint_status st = sti_path_check_file(path);
    if (st == STINT_OK)
        st = sti_file_read(path, BYTES_MOST, &data, &n_bytes);
    if (st == STINT_OK)
        st = sti_snapshot_read(data, n_bytes, path, vcs, game, score);
    sti_free(data);
    return st;
}
