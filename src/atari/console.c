/* Power on, and the frame: what ALE does around the processor's instructions. */
#include "atari/console.h"

#include <string.h>

#include "atari/bus.h"

int sti_cart_lines(const sti_cart *cart)
{
    const int lines = cart->frame.lines ? cart->frame.lines : STI_SCREEN_LINES;
    return cart->pal && lines == STI_SCREEN_LINES ? STI_SCREEN_LINES_MOST : lines;
}

int sti_cart_first_line(const sti_cart *cart)
{
    return cart->frame.first_line ? cart->frame.first_line : STI_FIRST_LINE;
}

static void bus_begin(sti_bus *bus, sti_console *console, const sti_cart *cart,
                      uint8_t *cart_ram, sti_screen *screen)
{
    enum { LINES_MOST = 290, LINES_MOST_PAL = 342 };
    const int lines = cart->pal ? LINES_MOST_PAL : LINES_MOST;
    *bus = (sti_bus){.console = console,
                     .cart = cart,
                     .cart_ram = cart_ram,
                     .direct = cart->mapper->direct,
                     .direct_bytes = cart->mapper->direct_bytes,
                     .screen = screen,
                     .paint = sti_paint_now(),
                     .listens_low = cart->mapper->low_read || cart->mapper->low_write,
                     .clocks_most = (lines + 1) * STI_LINE_CLOCKS,
                     .due = INT32_MIN};
    sti_mapper_view(bus);
}

static void bus_display(sti_bus *bus)
{
    bus->display = bus->console->tia.frame_start +
                   sti_cart_first_line(bus->cart) * STI_LINE_CLOCKS;
    bus->display_end = bus->display + sti_cart_lines(bus->cart) * STI_LINE_CLOCKS;
}

void sti_console_reset(sti_console *console, const sti_cart *cart, uint8_t *cart_ram,
                       sti_screen *screen, sti_draw_fn *draw, void *user)
{
    sti_bus bus;
    sti_riot riot = {.shift = 6};
    memcpy(riot.ram, console->riot.ram, sizeof riot.ram);
    bus_begin(&bus, console, cart, cart_ram, screen);
    riot.timer = (uint8_t)(25 + draw(user) % 75);
    console->riot = riot;
    sti_tia_reset(&console->tia);
    console->tia.drawn_to = sti_cart_first_line(cart) * STI_LINE_CLOCKS;
    for (uint32_t i = 0; i < cart->ram_bytes; i++)
        cart_ram[i] = (uint8_t)draw(user);
    const sti_dpc dpc = console->cart.dpc; /* what ALE's reset leaves as it is */
    console->cart = (sti_cart_state){.dpc = dpc};
    cart->mapper->reset(&bus);
    sti_mapper_view(&bus);
    console->cpu = (sti_cpu){.sp = 0xff, .nonzero = 1, .was_read = true};
    console->cpu.pc = sti_bus_read(&bus, &console->cpu, 0xfffc);
    console->cpu.pc |= (uint16_t)(sti_bus_read(&bus, &console->cpu, 0xfffd) << 8);
    console->jammed = false;
    if (screen) {
        memset(screen->now, 0, STI_SCREEN_BYTES);
        memset(screen->before, 0, STI_SCREEN_BYTES);
    }
}

/* All clocks count from the new frame, which begins where the beam is on its line. */
static void frame_begin(sti_console *console, const sti_cart *cart, sti_screen *screen)
{
    sti_tia *tia = &console->tia;
    const uint32_t cycles = console->cpu.cycles;
    const uint32_t on_line =
        (cycles * 3 - (uint32_t)tia->frame_start) % STI_LINE_CLOCKS;
    tia->frame_start = -(int32_t)on_line;
    tia->drawn_to = tia->frame_start + sti_cart_first_line(cart) * STI_LINE_CLOCKS;
    tia->line_left = STI_LINE_CLOCKS;
    tia->vsync_end = (int32_t)((uint32_t)tia->vsync_end - cycles * 3);
    tia->hmove_at = (int32_t)((uint32_t)tia->hmove_at - cycles * 3);
    tia->dump_end = (int32_t)((uint32_t)tia->dump_end - cycles);
    console->riot.set_at = (int32_t)((uint32_t)console->riot.set_at - cycles);
    console->riot.read_at = (int32_t)((uint32_t)console->riot.read_at - cycles);
    console->cart.dpc.cycles = (int32_t)((uint32_t)console->cart.dpc.cycles - cycles);
    console->cpu.cycles = 0;
    if (cart->pal)
        for (int i = 0; i < 4; i++)
            tia->colour[i] =
                (uint8_t)((tia->colour[i] & 0xfe) | (tia->lines_before & 1));
    console->greyed = false;
    if (screen) {
        uint8_t *before = screen->before;
        screen->before = screen->now;
        screen->now = before;
    }
}

/* The beam's line, counted from the frame's beginning. */
static int32_t line_now(const sti_console *console)
{
    return (int32_t)((console->cpu.cycles * 3 - (uint32_t)console->tia.frame_start) /
                     STI_LINE_CLOCKS);
}

/* A frame that was cut: what the beam has not come to loses its colours. */
static void grey_out(sti_console *console, const sti_cart *cart, sti_screen *screen)
{
    int32_t line = line_now(console) - sti_cart_first_line(cart);
    line = line < 0 ? 0 : line;
    if (screen)
        for (int32_t i = line * STI_LINE_PIXELS;
             i < sti_cart_lines(cart) * STI_LINE_PIXELS; i++)
            screen->now[i] = (uint8_t)((screen->now[i] & 0x0f) >> 1);
    console->greyed = true;
}

/* All of a picture from a byte on. */
static void blacken(const sti_bus *bus, int32_t from)
{
    const int32_t bytes = sti_cart_lines(bus->cart) * STI_LINE_PIXELS;
    if (from < bytes)
        memset(bus->screen->now + from, 0, (size_t)(bytes - from));
}

/* The first byte of a picture that the beam has not come to. */
static int32_t beam_byte(const sti_bus *bus)
{
    const int32_t clocks = bus->console->tia.drawn_to - bus->display;
    const int32_t x = clocks % STI_LINE_CLOCKS - STI_BLANK_CLOCKS;
    return clocks / STI_LINE_CLOCKS * STI_LINE_PIXELS + (x > 0 ? x : 0);
}

void sti_console_frame(sti_console *console, const sti_cart *cart, uint8_t *cart_ram,
                       sti_screen *screen, bool exact)
{
    sti_bus bus;
    const bool goes_on = console->in_frame;
    if (!goes_on)
        frame_begin(console, cart, screen);
    console->in_frame = true;
    bus_begin(&bus, console, cart, cart_ram, screen);
    bus_display(&bus);
    bus.drawn_from = bus.drawn_till = 0;
    if (goes_on && screen && screen->black)
        blacken(&bus, 0); /* what was drawn of it is in another picture */
    if (!console->jammed) {
        if (exact)
            sti_cpu_run_exact(&bus, STI_FRAME_INSTRUCTIONS);
        else
            sti_cpu_run_ale(&bus, STI_FRAME_INSTRUCTIONS);
    }
    sti_tia_settle(&bus);
    sti_tia_catch_up(&bus);
    if (!goes_on && screen && screen->black)
        blacken(&bus, beam_byte(&bus));
    if (!console->in_frame) {
        console->tia.lines_before = (int16_t)line_now(console);
        sti_tia_spill(&bus);
        return;
    }
    console->cut_frames++;
    if (!console->greyed)
        grey_out(console, cart, screen);
}
