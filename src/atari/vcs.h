/* One console with everything it needs: to be switched on as ALE switches it on, and
 * run frame by frame with a picture. What the program `stint play run` works with, and
 * the one console that an environment boots before it makes many. */
#ifndef STI_ATARI_VCS_H
#define STI_ATARI_VCS_H

#include "atari/console.h"

/* The actions of ALE, 0 to 17, and the console's own switches. */
enum {
    STI_ACTION_NOOP,
    STI_ACTION_FIRE,
    STI_ACTION_UP,
    STI_ACTION_RIGHT,
    STI_ACTION_LEFT,
    STI_ACTION_DOWN,
    STI_ACTIONS = 18,
    STI_ACTION_RESET = 40,
    STI_ACTION_SELECT = 41
};

/* "NOOP", "UPFIRE", ...; action 0 to 17. */
const char *sti_action_name(int action);
/* What the console sees of it. Paddles move by 23000 ohms a call. */
void sti_action_apply(sti_input *input, const sti_cart *cart, int action);
void sti_input_reset(sti_input *input); /* nothing pressed, paddles in the middle */

/* MT19937 (Matsumoto and Nishimura 1998): what ALE's bytes of chance come from. */
typedef struct sti_twister {
    uint32_t state[624];
    int at;
} sti_twister;
void sti_twister_seed(sti_twister *twister, uint32_t seed);
uint32_t sti_twister_draw(void *twister); /* a sti_draw_fn */

typedef struct sti_vcs {
    sti_console console;
    sti_cart *cart;    /* the caller's; its `pal` is found out here */
    uint8_t *cart_ram; /* [cart->ram_bytes] */
    uint8_t *pictures; /* both of the screen */
    sti_screen screen;
    sti_twister chance;
    bool exact;
} sti_vcs;

/* Plugs in a cartridge: RAM is filled by chance as ALE fills it, and 60 frames are run
 * to see whether the program makes a PAL picture. STINT_E_MEMORY. */
stint_status sti_vcs_init(sti_vcs *vcs, sti_cart *cart);
void sti_vcs_fini(sti_vcs *vcs); /* of zeros is fine */

/* Off and on again; RAM stays. */
void sti_vcs_reset(sti_vcs *vcs);
/* A frame with an action of ALE's or a switch. */
void sti_vcs_frame(sti_vcs *vcs, int action);
/* ALE's getScreen: [sti_cart_lines][160] colour bytes of the last frame. */
const uint8_t *sti_vcs_picture(const sti_vcs *vcs);

#endif
