/* Cartridges: an image, the way it is mapped into the 4 KiB that the processor sees of
 * it, and what the mapper remembers. */
#ifndef STI_ATARI_CART_H
#define STI_ATARI_CART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "atari/cpu_decoded.h"
#include "stint/status.h"

enum { STI_CART_BYTES_MOST = 512 * 1024 };

typedef struct sti_mapper sti_mapper;

/* How a known image is shown and played; zeros are what all others have. */
typedef struct sti_cart_frame {
    uint8_t first_line, lines; /* of the picture; 0: 34, and 210 or for PAL 250 */
    bool no_hmove_blank;       /* HMOVE blackens nothing */
    bool paddles;              /* plugged in, in the place of joysticks */
    bool paddles_swapped;      /* the first one is read where the second is */
    bool ports_swapped;        /* the first joystick is in the right port */
} sti_cart_frame;

/* An image, shared by all consoles that run it. */
typedef struct sti_cart {
    uint8_t *rom;
    sti_decoded *decoded; /* [sti_cpu_decoded_count(bytes)] */
    uint32_t bytes;
    uint32_t ram_bytes; /* RAM in the cartridge, which each console has of its own */
    const sti_mapper *mapper;
    sti_cart_frame frame;
    bool pal; /* more than 285 lines a frame (sti_vcs_init finds out) */
    char sha256[65];
} sti_cart;

/* Data fetchers of the DPC, the chip in one cartridge. */
typedef struct sti_dpc {
    double part_clock; /* of its oscillator, 0 to 1 */
    int32_t cycles;    /* till which the music was played */
    uint16_t counter[8];
    uint8_t top[8], bottom[8], flag[8];
    bool music[3];
    uint8_t random;
} sti_dpc;

/* What a mapper remembers: which 1 KiB parts of the image stand at 1000, 1400, 1800 and
 * 1C00, and which part of its RAM (0: none or the first). */
typedef struct sti_cart_state {
    uint16_t slice[4];
    uint8_t ram_bank;
    bool ram_mapped; /* in the place of slices 0 and 1 */
    sti_dpc dpc;
} sti_cart_state;

/* Reads an image, finds its mapper by size and signature (as ALE does), and hashes it.
 * STINT_E_IO, STINT_E_INPUT: empty, larger than 512 KiB, or of a size that no mapper
 * has; the message lists the sizes. The caller closes. */
stint_status sti_cart_open(const char *path, sti_cart *cart_out);
/* The same of bytes in memory, which are copied; name is for messages. */
stint_status sti_cart_load(const uint8_t *bytes, size_t n_bytes, const char *name,
                           sti_cart *cart_out);
void sti_cart_close(sti_cart *cart); /* of zeros is fine */
const char *sti_cart_mapper_name(const sti_cart *cart);

#endif
