/* The console: all that an Atari 2600 with a cartridge remembers from one cycle to the
 * next, but for the image of the cartridge and the RAM in it.
 *
 * A console is plain memory: a copy of it (and of the cartridge's RAM) is a snapshot,
 * and thousands of them lie side by side. The chips are written to give the frames of
 * the Arcade Learning Environment, which is a contract of its own: its television
 * interface is a model of spans and delays, not of counters (tia.c).
 *
 * Colours are bytes as the program writes them, bit 0 clear (set on odd frames of PAL).
 * Clocks are colour clocks, three a processor cycle, 228 a line; both count from the
 * frame's beginning. Nothing here is safe for two threads at once; two consoles are two
 * things. */
#ifndef STI_ATARI_CONSOLE_H
#define STI_ATARI_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "atari/cart.h"
#include "atari/registers.h"

enum {
    STI_LINE_PIXELS = 160,
    STI_LINE_CLOCKS = 228,
    STI_BLANK_CLOCKS = 68,
    STI_SCREEN_LINES = 210, /* that a picture shows, NTSC; 250 PAL */
    STI_SCREEN_LINES_MOST = 250,
    STI_SCREEN_BYTES = 160 * 300, /* of a buffer, with room behind the picture */
    STI_FIRST_LINE = 34,          /* of the picture */
    STI_RAM_BYTES = 128,
    STI_FRAME_INSTRUCTIONS = 25000 /* at most, after which a frame is cut */
};

/* What can be on a line, in the order of `line`. */
typedef enum sti_thing {
    STI_PLAYFIELD,
    STI_BALL,
    STI_PLAYER0,
    STI_PLAYER1,
    STI_MISSILE0,
    STI_MISSILE1,
    STI_THINGS
} sti_thing;

/* Colours, by what has them. */
enum { STI_COLOUR_P0, STI_COLOUR_P1, STI_COLOUR_PF, STI_COLOUR_BK };

/* A player with the missile of its colour. */
typedef struct sti_player {
    uint8_t nusiz, graphics, delayed, shown; /* GRPx, its delayed copy, what is drawn */
    bool reflected, late;                    /* REFPx, VDELPx */
    bool skips_first;                /* copy of the player, till the line ends */
    bool missile_on, missile_locked; /* ENAMx, RESMPx */
} sti_player;

/* How missile 0 is drawn on this line while the star field of Cosmic Ark is on. */
typedef enum sti_star { STI_STAR_PLAIN, STI_STAR_WIDE, STI_STAR_NONE } sti_star;

typedef struct sti_tia {
    uint64_t line[STI_THINGS][3]; /* pixels covered, bit x & 63 of word x >> 6 */
    int32_t frame_start;  /* clock, 0 or less: the line that a frame begins in */
    int32_t drawn_to;     /* clock till which all has been seen to */
    int32_t vsync_end;    /* clock from which clearing VSYNC ends the frame */
    int32_t hmove_at;     /* clock of the last HMOVE */
    int32_t dump_end;     /* cycle in which the paddles began to charge */
    uint32_t playfield;   /* 20 bits, bit 0 leftmost */
    int16_t line_left;    /* clocks from drawn_to to the end of the line */
    int16_t lines_before; /* of the last whole frame */
    uint16_t latches;     /* collisions, in the order of the registers */
    uint8_t stale;        /* things whose `line` is out of date, a bit each */
    uint8_t enabled;      /* things that can be seen, a bit each */
    uint8_t vsync, vblank, ctrlpf;
    bool mirrored; /* right half of the playfield, on this line */
    uint8_t colour[4];
    sti_player player[2];
    bool ball_on, ball_delayed, ball_late;
    uint8_t place[STI_THINGS];  /* leftmost pixel, 0..159 */
    uint8_t motion[STI_THINGS]; /* high nibble of HMxx */
    bool hmove_blank;           /* the next 8 first pixels are black */
    bool stars;
    uint8_t star_phase, star;
    bool dumping;
} sti_tia;

/* RAM, interval timer and ports. */
typedef struct sti_riot {
    uint8_t ram[STI_RAM_BYTES];
    int32_t set_at, read_at; /* cycles: timer written, first read after it ran out */
    uint8_t timer, shift;
    bool was_read;         /* since it ran out */
    uint8_t port_a_output; /* SWACNT */
} sti_riot;

/* What the player and the switches do. Lines are active low where the console's are. */
typedef struct sti_input {
    uint8_t port_a, switches; /* SWCHA, SWCHB */
    bool fire[2];             /* pressed, of joysticks */
    int32_t paddle[2];        /* resistance in ohms */
} sti_input;

typedef struct sti_console {
    sti_cpu cpu;
    sti_riot riot;
    sti_tia tia;
    sti_input input;
    sti_cart_state cart;
    bool in_frame;       /* a frame was cut and goes on */
    bool greyed;         /* its picture has been greyed out */
    bool jammed;         /* an opcode stopped the processor ... */
    uint16_t jammed_at;  /* ... at this address */
    uint32_t cut_frames; /* frames without a VSYNC, cut at the safety stop */
} sti_console;

/* Where a frame is drawn; the last two are kept, since a picture shows where the
 * beam did not come what it showed two frames before. */
typedef struct sti_screen {
    uint8_t *now, *before; /* [STI_SCREEN_BYTES] each */
    bool black;            /* where the beam did not come is black instead */
} sti_screen;

/* Power on: all but RAM is as it begins. draw gives random bytes, see boot.h.
 * cart_ram [cart->ram_bytes]; screen may be NULL, else both pictures become black. */
typedef uint32_t sti_draw_fn(void *user);
void sti_console_reset(sti_console *console, const sti_cart *cart, uint8_t *cart_ram,
                       sti_screen *screen, sti_draw_fn *draw, void *user);

/* Run a frame: to the end of its VSYNC, or to a safety stop. screen NULL: no pixels are
 * made; all else is the same. exact: the processor with every access of the chip
 * (cpu_body.h) in the place of ALE's. */
void sti_console_frame(sti_console *console, const sti_cart *cart, uint8_t *cart_ram,
                       sti_screen *screen, bool exact);

/* Lines of a picture, 210 of most, and the line of the frame that it begins with. */
int sti_cart_lines(const sti_cart *cart);
int sti_cart_first_line(const sti_cart *cart);

#endif
