/* Hostile programs, snapshots, lists of actions and rules for the console. The first
 * byte of the input says which: a program is loaded and run on both processors, a
 * snapshot is sealed anew and loaded, so that what lies behind its check sum is met,
 * and run, too. */
#include <stdlib.h>
#include <string.h>

#include "atari/play_run.h"
#include "atari/snapshot.h"
#include "base/memory.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t sizes[] = {2, 4, 8, 10, 12, 16, 32, 64};

static uint32_t draw_zero(void *user)
{
    (void)user;
    return 0;
}

/* The bytes again and again, in the size of a mapper: a frame on each processor. */
static void run_program(const uint8_t *data, size_t size)
{
    static uint8_t rom[65536], cart_ram[32768], pictures[2][STI_SCREEN_BYTES];
    static sti_console console;
    const size_t bytes = 1024u * sizes[data[0] % sizeof sizes];
    sti_screen screen = {.now = pictures[0], .before = pictures[1]};
    sti_cart cart = {0};
    for (size_t i = 0; i < bytes; i++)
        rom[i] = data[i % size];
    if (sti_cart_load(rom, bytes, "rom", &cart) == STINT_OK) {
        memset(&console, 0, sizeof console);
        sti_console_reset(&console, &cart, cart_ram, &screen, draw_zero, NULL);
        sti_console_frame(&console, &cart, cart_ram, &screen, false);
        sti_console_frame(&console, &cart, cart_ram, &screen, true);
    }
    sti_cart_close(&cart);
}

/* A machine with 8 KiB that was saved once. */
static sti_vcs vcs;
static sti_cart cart_8k;
static sti_text saved;

static void forget_saved(void)
{
    sti_vcs_fini(&vcs);
    sti_cart_close(&cart_8k);
    sti_text_fini(&saved);
}

static void save_once(void)
{
    static const uint8_t loop[] = {0x85, 0x02, 0xe6, 0x80, 0xa5, 0x80, 0x85,
                                   0x1b, 0x85, 0x10, 0x4c, 0x00, 0xf0};
    static uint8_t rom[8192];
    const sti_game game = {0};
    const sti_score score = {0};
    memset(rom, 0xf0, sizeof rom);
    memcpy(rom, loop, sizeof loop);
    memcpy(rom + 4096, loop, sizeof loop);
    rom[300] = 1; /* the halves differ, so that they are banks */
    rom[20] = 1;
    rom[0xffc] = rom[0x1ffc] = 0;
    if (sti_cart_load(rom, sizeof rom, "rom", &cart_8k) != STINT_OK ||
        sti_vcs_init(&vcs, &cart_8k) != STINT_OK ||
        sti_snapshot_write(&vcs, &game, &score, &saved) != STINT_OK ||
        atexit(forget_saved) != 0)
        abort();
}

/* The snapshot with bytes of the input in it, at places that the input names. */
static void run_snapshot(const uint8_t *data, size_t size)
{
    enum { HEAD = 119, FIELDS = 3200 };
    const sti_game game = {0};
    sti_score score = {0};
    uint8_t *bytes = NULL;
    if (!saved.data)
        save_once();
    bytes = malloc(saved.length);
    if (!bytes)
        return;
    memcpy(bytes, saved.data, saved.length);
    for (size_t i = 0; i + 2 < size; i += 3)
        bytes[HEAD + (data[i] | (size_t)data[i + 1] << 8) % FIELDS] = data[i + 2];
    sti_snapshot_seal(bytes, saved.length);
    if (sti_snapshot_read(bytes, saved.length, "snapshot", &vcs, &game, &score) ==
        STINT_OK)
        sti_vcs_frame(&vcs, STI_ACTION_FIRE);
    free(bytes);
}

/* Actions and rules are texts. */
static void read_text(const uint8_t *data, size_t size)
{
    static const uint8_t ram[128] = {1, 2, 3};
    char *text = malloc(size + 1);
    uint8_t *actions = NULL;
    int64_t count = 0;
    sti_value_rule value = {0};
    sti_test_rule test = {0};
    uint32_t taken = 0;
    if (!text)
        return;
    memcpy(text, data, size);
    text[size] = '\0';
    if (sti_actions_parse(text, size, "actions", &actions, &count) == STINT_OK)
        for (int64_t i = 0; i < count; i++)
            if (actions[i] >= STI_ACTIONS)
                abort();
    sti_free(actions);
    if (sti_value_rule_parse(text, "reward", &value) == STINT_OK)
        (void)sti_value_rule_read(&value, ram);
    if (sti_test_rule_parse(text, "done", &test) == STINT_OK)
        (void)sti_test_rule_holds(&test, ram);
    if (sti_action_rule_parse(text, "actions", &taken) == STINT_OK &&
        taken >> STI_ACTIONS != 0)
        abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    switch (data[0] % 3) {
    case 0:
        run_program(data + 1, size - 1);
        break;
    case 1:
        run_snapshot(data + 1, size - 1);
        break;
    default:
        read_text(data + 1, size - 1);
    }
    return 0;
}
