#include "atari/vcs.h"

#include "base/memory.h"

enum { PADDLE_LEAST = 27450, PADDLE_MOST = 790196, PADDLE_STEP = 23000 };

/* ---- actions ---- */

/* Directions of an action, in the order of the port's bits (right, left, down, up), and
 * the button. */
enum { RIGHT = 8, LEFT = 4, DOWN = 2, UP = 1, FIRE = 16 };

static const struct {
    const char *name;
    uint8_t held;
} actions[STI_ACTIONS] = {
    {"NOOP", 0},
    {"FIRE", FIRE},
    {"UP", UP},
    {"RIGHT", RIGHT},
    {"LEFT", LEFT},
    {"DOWN", DOWN},
    {"UPRIGHT", UP | RIGHT},
    {"UPLEFT", UP | LEFT},
    {"DOWNRIGHT", DOWN | RIGHT},
    {"DOWNLEFT", DOWN | LEFT},
    {"UPFIRE", UP | FIRE},
    {"RIGHTFIRE", RIGHT | FIRE},
    {"LEFTFIRE", LEFT | FIRE},
    {"DOWNFIRE", DOWN | FIRE},
    {"UPRIGHTFIRE", UP | RIGHT | FIRE},
    {"UPLEFTFIRE", UP | LEFT | FIRE},
    {"DOWNRIGHTFIRE", DOWN | RIGHT | FIRE},
    {"DOWNLEFTFIRE", DOWN | LEFT | FIRE},
};

const char *sti_action_name(int action)
{
    return actions[action].name;
}

void sti_input_reset(sti_input *input)
{
    *input = (sti_input){.port_a = 0xff, .switches = 0x3f};
    input->paddle[0] = input->paddle[1] = (PADDLE_LEAST + PADDLE_MOST) / 2;
}

static void move_paddle(sti_input *input, uint8_t held)
{
    int32_t *ohms = &input->paddle[0];
    if (held & RIGHT)
        *ohms -= PADDLE_STEP;
    else if (held & LEFT)
        *ohms += PADDLE_STEP;
    *ohms = *ohms < PADDLE_LEAST ? PADDLE_LEAST : *ohms;
    *ohms = *ohms > PADDLE_MOST ? PADDLE_MOST : *ohms;
}

void sti_action_apply(sti_input *input, const sti_cart *cart, int action)
{
    const uint8_t held = action < STI_ACTIONS ? actions[action].held : 0;
    input->switches = (uint8_t)(0x3f & ~((action == STI_ACTION_RESET) |
                                         (action == STI_ACTION_SELECT) << 1));
    input->port_a = 0xff;
    input->fire[0] = input->fire[1] = false;
    if (!cart->frame.paddles) {
        const bool right = cart->frame.ports_swapped;
        input->port_a = (uint8_t) ~((held & 15) << (right ? 0 : 4));
        input->fire[right] = held & FIRE;
        return;
    }
    move_paddle(input, held);
    if (held & FIRE) /* buttons of paddles are where right and left of a joystick are */
        input->port_a = cart->frame.paddles_swapped ? 0xbf : 0x7f;
}

/* ---- chance ---- */

void sti_twister_seed(sti_twister *twister, uint32_t seed)
{
    uint32_t *s = twister->state;
    s[0] = seed;
    for (uint32_t i = 1; i < 624; i++)
        s[i] = 1812433253u * (s[i - 1] ^ s[i - 1] >> 30) + i;
    twister->at = 624;
}

static void twist(uint32_t s[624])
{
    for (int i = 0; i < 624; i++) {
        const uint32_t y = (s[i] & 0x80000000u) | (s[(i + 1) % 624] & 0x7fffffffu);
        s[i] = s[(i + 397) % 624] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
}

uint32_t sti_twister_draw(void *twister)
{
    sti_twister *t = twister;
    uint32_t y = 0;
    if (t->at == 624) {
        twist(t->state);
        t->at = 0;
    }
    y = t->state[t->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* ---- the machine ---- */

void sti_vcs_reset(sti_vcs *vcs)
{
    sti_console_reset(&vcs->console, vcs->cart, vcs->cart_ram, &vcs->screen,
                      sti_twister_draw, &vcs->chance);
}

static void run_frame(sti_vcs *vcs)
{
    sti_console_frame(&vcs->console, vcs->cart, vcs->cart_ram, &vcs->screen,
                      vcs->exact);
}

/* As ALE finds out: of frames 31 to 60, at least 15 have more than 285 lines. */
static void find_standard(sti_vcs *vcs)
{
    const sti_console *console = &vcs->console;
    int tall = 0;
    vcs->cart->pal = false;
    sti_vcs_reset(vcs);
    for (int frame = 0; frame < 60; frame++) {
        run_frame(vcs);
        const uint32_t clocks =
            console->cpu.cycles * 3 - (uint32_t)console->tia.frame_start;
        tall += frame >= 30 && clocks / STI_LINE_CLOCKS > 285;
    }
    vcs->cart->pal = tall >= 15;
}

stint_status sti_vcs_init(sti_vcs *vcs, sti_cart *cart)
{
    enum { SEED = 4753849 }; /* ALE's */
    *vcs = (sti_vcs){.cart = cart};
    vcs->cart_ram = sti_alloc(cart->ram_bytes, "atari.cart_ram");
    vcs->pictures = sti_alloc(2 * STI_SCREEN_BYTES, "atari.pictures");
    if (!vcs->cart_ram || !vcs->pictures) {
        sti_vcs_fini(vcs);
        return STINT_E_MEMORY;
    }
    vcs->console.cart.dpc.random = 1;
    vcs->screen =
        (sti_screen){.now = vcs->pictures, .before = vcs->pictures + STI_SCREEN_BYTES};
    sti_twister_seed(&vcs->chance, SEED);
    for (int i = 0; i < STI_RAM_BYTES; i++)
        vcs->console.riot.ram[i] = (uint8_t)sti_twister_draw(&vcs->chance);
    (void)sti_twister_draw(&vcs->chance); /* the timer, which a reset draws anew */
    sti_input_reset(&vcs->console.input);
    find_standard(vcs);
    sti_vcs_reset(vcs);
    sti_input_reset(&vcs->console.input);
    return STINT_OK;
}

void sti_vcs_fini(sti_vcs *vcs)
{
    sti_free(vcs->cart_ram);
    sti_free(vcs->pictures);
    vcs->cart_ram = vcs->pictures = NULL;
}

void sti_vcs_frame(sti_vcs *vcs, int action)
{
    sti_action_apply(&vcs->console.input, vcs->cart, action);
    run_frame(vcs);
}

const uint8_t *sti_vcs_picture(const sti_vcs *vcs)
{
    return vcs->screen.now;
}
