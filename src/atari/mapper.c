/* Mappers: how images larger than 4 KiB, and RAM, get into the 4 KiB at 1000. A mapper
 * is one row of `mappers` below. What the processor reads without one's help is the
 * range `direct`; the other accesses come here with their whole address. */
#include <string.h>

#include "atari/bus.h"
#include "atari/mapper_dpc.h"

static void set_slices(sti_bus *bus, int first, int count, unsigned slice)
{
    for (int i = 0; i < count; i++)
        bus->console->cart.slice[first + i] = (uint16_t)(slice + (unsigned)i);
    sti_mapper_view(bus);
}

static void set_bank(sti_bus *bus, unsigned bank)
{
    set_slices(bus, 0, 4, bank * 4);
}

static uint8_t rom_at(const sti_bus *bus, uint16_t address)
{
    return bus->slice[address >> 10 & 3][address & 0x3ff];
}

/* ---- 2K, 4K, CV ---- */

static void reset_2k(sti_bus *bus)
{
    set_slices(bus, 0, 2, 0);
    set_slices(bus, 2, 2, 0);
}

static void reset_first(sti_bus *bus)
{
    set_bank(bus, 0);
}

static uint8_t read_rom(sti_bus *bus, sti_cpu *cpu, uint16_t address)
{
    (void)cpu;
    return rom_at(bus, address);
}

/* CV has 1 KiB of RAM, read at 1000 and written at 1400, and 2 KiB of image at 1800; in
 * an image of 4 KiB these are the second half, and the first KiB is what the RAM begins
 * as.
 */
static void reset_cv(sti_bus *bus)
{
    const unsigned half = bus->cart->bytes == 4096 ? 2 : 0;
    set_slices(bus, 0, 2, half);
    set_slices(bus, 2, 2, half);
    if (half)
        memcpy(bus->cart_ram, bus->cart->rom, 1024);
}

static uint8_t read_cv(sti_bus *bus, sti_cpu *cpu, uint16_t address)
{
    (void)cpu;
    return address & 0xc00 ? rom_at(bus, address) : bus->cart_ram[address & 0x3ff];
}

static void write_cv(sti_bus *bus, sti_cpu *cpu, uint16_t address, uint8_t value)
{
    (void)cpu;
    if ((address & 0xc00) == 0x400)
        bus->cart_ram[address & 0x3ff] = value;
}

/* ---- F8, F6, F4, FA: an access of a hot spot takes a bank ---- */

/* The first hot spot by the number of banks: 1FF8, 1FF6, 1FF4; FA has three from 1FF8.
 */
static void touch_banks(sti_bus *bus, uint16_t address)
{
    const unsigned banks = bus->cart->bytes / 4096;
    const unsigned first = banks <= 3 ? 0xff8 : banks == 4 ? 0xff6 : 0xff4;
    const unsigned spot = (address & 0xfffu) - first;
    if (spot < banks)
        set_bank(bus, spot);
}

static uint8_t read_banks(sti_bus *bus, sti_cpu *cpu, uint16_t address)
{
    (void)cpu;
    touch_banks(bus, address);
    return rom_at(bus, address);
}

static void write_banks(sti_bus *bus, sti_cpu *cpu, uint16_t address, uint8_t value)
{
    (void)cpu;
    (void)value;
    touch_banks(bus, address);
}

static void reset_second(sti_bus *bus)
{
    set_bank(bus, 1);
}

static void reset_third(sti_bus *bus)
{
    set_bank(bus, 2);
}

/* With RAM at their beginning: its first copy is written, the second one read. */
static uint8_t read_banks_ram(sti_bus *bus, sti_cpu *cpu, uint16_t address)
{
    const uint32_t ram = bus->cart->ram_bytes, offset = address & 0xfff;
    if (offset >= ram && offset < 2 * ram)
        return bus->cart_ram[offset - ram];
    return read_banks(bus, cpu, address);
}

static void write_banks_ram(sti_bus *bus, sti_cpu *cpu, uint16_t address, uint8_t value)
{
    (void)cpu;
    if ((address & 0xfffu) < bus->cart->ram_bytes)
        bus->cart_ram[address & 0xfff] = value;
    else
        touch_banks(bus, address);
}

/* In ALE the hot spots of F4SC are met by reads alone. */
static void write_f4sc(sti_bus *bus, sti_cpu *cpu, uint16_t address, uint8_t value)
{
    (void)cpu;
    if ((address & 0xfffu) < bus->cart->ram_bytes)
        bus->cart_ram[address & 0xfff] = value;
}

/* ---- FE: the bank is address line 13, of which the 6507 has no pin ---- */

static uint8_t read_fe(sti_bus *bus, sti_cpu *cpu, uint16_t address)
{
    (void)cpu;
    return bus->cart->rom[(address & 0xfff) + (address & 0x2000 ? 0 : 4096)];
}

/* ---- UA: hot spots 0220 and 0240, which TIA sees, too ---- */

static void touch_ua(sti_bus *bus, uint16_t address)
{
    if ((address & 0x1fff) == 0x220)
        set_bank(bus, 0);
    else if ((address & 0x1fff) == 0x240)
        set_bank(bus, 1);
}

static bool low_read_ua(sti_bus *bus, uint16_t address, uint8_t *value_out)
{
    (void)value_out;
    touch_ua(bus, address);
    return false;
}

static void low_write_ua(sti_bus *bus, uint16_t address, uint8_t value)
{
    (void)value;
    touch_ua(bus, address);
}

/* ---- E0: 1 KiB parts, three of which are chosen by 1FE0-7, 1FE8-F, 1FF0-7 ---- */

static void reset_e0(sti_bus *bus)
{
    set_bank(bus, 1); /* parts 4 to 7 */
}

static void touch_e0(sti_bus *bus, uint16_t address)
{
    const unsigned spot = (address & 0xfffu) - 0xfe0;
    if (spot < 24)
        set_slices(bus, (int)(spot >> 3), 1, spot & 7);
}

static uint8_t read_e0(sti_bus *bus, sti_cpu *cpu, uint16_t address)
{
    (void)cpu;
    touch_e0(bus, address);
    return rom_at(bus, address);
}

static void write_e0(sti_bus *bus, sti_cpu *cpu, uint16_t address, uint8_t value)
{
    (void)cpu;
    (void)value;
    touch_e0(bus, address);
}

/* ---- E7: 2 KiB parts below, one of them RAM; 256 bytes of RAM at 1800 ---- */

static void reset_e7(sti_bus *bus)
{
    set_slices(bus, 0, 2, 0);
    set_slices(bus, 2, 2, 14);
}

static void touch_e7(sti_bus *bus, uint16_t address)
{
    const unsigned spot = (address & 0xfffu) - 0xfe0;
    if (spot < 8) {
        bus->console->cart.ram_mapped = spot == 7;
        set_slices(bus, 0, 2, 2 * spot);
    } else if (spot < 12) {
        bus->console->cart.ram_bank = (uint8_t)(spot & 3);
    }
}

static uint8_t read_e7(sti_bus *bus, sti_cpu *cpu, uint16_t address)
{
    const sti_cart_state *state = &bus->console->cart;
    const uint32_t offset = address & 0xfff;
    (void)cpu;
    if (state->ram_mapped && offset >= 0x400 && offset < 0x800)
        return bus->cart_ram[offset & 0x3ff];
    if (offset >= 0x900 && offset < 0xa00)
        return bus->cart_ram[1024 + 256 * state->ram_bank + (offset & 0xff)];
    touch_e7(bus, address);
    return rom_at(bus, address);
}

static void write_e7(sti_bus *bus, sti_cpu *cpu, uint16_t address, uint8_t value)
{
    const sti_cart_state *state = &bus->console->cart;
    const uint32_t offset = address & 0xfff;
    (void)cpu;
    if (state->ram_mapped && offset < 0x400)
        bus->cart_ram[offset] = value;
    else if (offset >= 0x800 && offset < 0x900)
        bus->cart_ram[1024 + 256 * state->ram_bank + (offset & 0xff)] = value;
    else
        touch_e7(bus, address);
}

/* ---- 3F and 3E: writes to TIA's first addresses choose the lower 2 KiB ---- */

static void set_lower(sti_bus *bus, unsigned bank)
{
    bus->console->cart.ram_mapped = false;
    set_slices(bus, 0, 2, 2 * (bank % (bus->cart->bytes / 2048)));
}

static void reset_lower(sti_bus *bus)
{
    set_slices(bus, 2, 2, bus->cart->bytes / 1024 - 2);
    set_lower(bus, 0);
}

static void low_write_3f(sti_bus *bus, uint16_t address, uint8_t value)
{
    if ((address & 0x1fff) < 0x40)
        set_lower(bus, value);
}

static void low_write_3e(sti_bus *bus, uint16_t address, uint8_t value)
{
    if ((address & 0x1fff) == 0x3f) {
        set_lower(bus, value);
    } else if ((address & 0x1fff) == 0x3e) {
        bus->console->cart.ram_mapped = true;
        bus->console->cart.ram_bank = value & 31;
    }
}

/* What ALE reads there is the cartridge. */
static bool low_read_lower(sti_bus *bus, uint16_t address, uint8_t *value_out)
{
    const sti_cart_state *state = &bus->console->cart;
    if ((address & 0x1fff) >= 0x40)
        return false;
    *value_out = state->ram_mapped
                     ? bus->cart_ram[1024 * state->ram_bank + (address & 0x3f)]
                     : bus->slice[0][address & 0x3f];
    return true;
}

static uint8_t read_3e(sti_bus *bus, sti_cpu *cpu, uint16_t address)
{
    const sti_cart_state *state = &bus->console->cart;
    (void)cpu;
    if (state->ram_mapped)
        return bus->cart_ram[1024 * state->ram_bank + (address & 0x3ff)];
    return rom_at(bus, address);
}

static void write_3e(sti_bus *bus, sti_cpu *cpu, uint16_t address, uint8_t value)
{
    const sti_cart_state *state = &bus->console->cart;
    (void)cpu;
    if (state->ram_mapped && (address & 0xc00) == 0x400)
        bus->cart_ram[1024 * state->ram_bank + (address & 0x3ff)] = value;
}

/* ---- the table ---- */

enum { HOT = 0xfc0 }; /* the 64 bytes that hold the hot spots */

static const sti_mapper map_2k = {"2K",     0,    0x1000, reset_2k,
                                  read_rom, NULL, NULL,   NULL};
static const sti_mapper map_4k = {"4K",     0,    0x1000, reset_first,
                                  read_rom, NULL, NULL,   NULL};
static const sti_mapper map_cv = {"CV",    0x800,    0x800, reset_cv,
                                  read_cv, write_cv, NULL,  NULL};
static const sti_mapper map_f8 = {"F8",       0,           HOT,  reset_second,
                                  read_banks, write_banks, NULL, NULL};
static const sti_mapper map_f6 = {"F6",       0,           HOT,  reset_first,
                                  read_banks, write_banks, NULL, NULL};
static const sti_mapper map_f4 = {"F4",       0,           HOT,  reset_first,
                                  read_banks, write_banks, NULL, NULL};
static const sti_mapper map_f8sc = {
    "F8SC",         0x100,           HOT - 0x100, reset_second,
    read_banks_ram, write_banks_ram, NULL,        NULL};
static const sti_mapper map_f6sc = {
    "F6SC",         0x100,           HOT - 0x100, reset_first,
    read_banks_ram, write_banks_ram, NULL,        NULL};
static const sti_mapper map_f4sc = {
    "F4SC", 0x100, HOT - 0x100, reset_first, read_banks_ram, write_f4sc, NULL, NULL};
static const sti_mapper map_fa = {
    "FA", 0x200, HOT - 0x200, reset_third, read_banks_ram, write_banks_ram, NULL, NULL};
static const sti_mapper map_fe = {"FE", 0, 0, reset_first, read_fe, NULL, NULL, NULL};
static const sti_mapper map_ua = {"UA",     0,    0x1000,      reset_first,
                                  read_rom, NULL, low_read_ua, low_write_ua};
static const sti_mapper map_e0 = {"E0",    0,        HOT,  reset_e0,
                                  read_e0, write_e0, NULL, NULL};
static const sti_mapper map_e7 = {"E7",    0xa00,    HOT - 0xa00, reset_e7,
                                  read_e7, write_e7, NULL,        NULL};
static const sti_mapper map_3f = {"3F",     0,    0x1000,         reset_lower,
                                  read_rom, NULL, low_read_lower, low_write_3f};
static const sti_mapper map_3e = {"3E",    0x800,    0x800,          reset_lower,
                                  read_3e, write_3e, low_read_lower, low_write_3e};
static const sti_mapper map_dpc = {
    "DPC", 0x80, HOT - 0x80, sti_dpc_reset, sti_dpc_read, sti_dpc_write, NULL, NULL};

/* ---- which mapper an image has ---- */

/* Whether a signature is there so many times. (ALE's search: it leaves out the last
 * place where one could begin, and goes on a byte behind each that it finds.) */
static bool has(const uint8_t *rom, uint32_t bytes, const char *signature,
                uint32_t length, int times)
{
    for (uint32_t i = 0; i + length < bytes; i++)
        if (memcmp(rom + i, signature, length) == 0) {
            if (--times == 0)
                return true;
            i += length;
        }
    return false;
}

#define HAS(text, times) has(rom, bytes, (text), sizeof(text) - 1, (times))

static bool is_cv(const uint8_t *rom, uint32_t bytes)
{
    return HAS("\x9d\xff\xf3", 1) || HAS("\x99\x00\xf4", 1);
}

static bool is_3e(const uint8_t *rom, uint32_t bytes)
{
    return HAS("\x85\x3e\xa9\x00", 1);
}

static bool is_3f(const uint8_t *rom, uint32_t bytes)
{
    return HAS("\x85\x3f", 2);
}

static bool is_ua(const uint8_t *rom, uint32_t bytes)
{
    return HAS("\x8d\x40\x02", 1);
}

static bool is_e0(const uint8_t *rom, uint32_t bytes)
{
    return HAS("\x8d\xe0\x1f", 1) || HAS("\x8d\xe0\x5f", 1) || HAS("\x8d\xe9\xff", 1) ||
           HAS("\xad\xe9\xff", 1) || HAS("\xad\xed\xff", 1) || HAS("\xad\xf3\xbf", 1);
}

static bool is_fe(const uint8_t *rom, uint32_t bytes)
{
    return HAS("\x20\x00\xd0\xc6\xc5", 1) || HAS("\x20\xc3\xf8\xa5\x82", 1) ||
           HAS("\xd0\xfb\x20\x73\xfe", 1) || HAS("\x20\x00\xf0\x84\xd6", 1);
}

static bool all_alike(const uint8_t *rom, uint32_t from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (rom[from + i] != rom[from])
            return false;
    return true;
}

/* RAM of 128 bytes in each bank: nothing is in the image where it lies. */
static bool is_sc(const uint8_t *rom, uint32_t bytes)
{
    for (uint32_t bank = 0; bank < bytes; bank += 4096)
        if (!all_alike(rom, bank, 256))
            return false;
    return true;
}

/* The 512 bytes for the RAM of the last bank hold nothing, and those around do. */
static bool is_e7(const uint8_t *rom, uint32_t bytes)
{
    (void)bytes;
    return all_alike(rom, 0x3800, 0x200) &&
           (!all_alike(rom, 0x37e0, 0x40) || !all_alike(rom, 0x39e0, 0x40));
}

/* The first row whose size is the image's and whose test it passes. Size 0: any
 * multiple of 2048. */
static const struct {
    uint32_t bytes, ram_bytes;
    bool (*test)(const uint8_t *rom, uint32_t bytes);
    const sti_mapper *mapper;
} kinds[] = {
    {2048, 1024, is_cv, &map_cv},   {2048, 0, NULL, &map_2k},
    {4096, 1024, is_cv, &map_cv},   {4096, 0, NULL, &map_4k},
    {8192, 128, is_sc, &map_f8sc},  {8192, 0, is_e0, &map_e0},
    {8192, 32768, is_3e, &map_3e},  {8192, 0, is_3f, &map_3f},
    {8192, 0, is_ua, &map_ua},      {8192, 0, is_fe, &map_fe},
    {8192, 0, NULL, &map_f8},       {10240, 0, NULL, &map_dpc},
    {10495, 0, NULL, &map_dpc},     {10496, 0, NULL, &map_dpc},
    {12288, 256, NULL, &map_fa},    {16384, 128, is_sc, &map_f6sc},
    {16384, 2048, is_e7, &map_e7},  {16384, 32768, is_3e, &map_3e},
    {16384, 0, is_3f, &map_3f},     {16384, 0, NULL, &map_f6},
    {32768, 128, is_sc, &map_f4sc}, {32768, 32768, is_3e, &map_3e},
    {32768, 0, is_3f, &map_3f},     {32768, 0, NULL, &map_f4},
    {0, 32768, is_3e, &map_3e},     {0, 0, is_3f, &map_3f},
};

const sti_mapper *sti_mapper_find(const uint8_t *rom, uint32_t bytes,
                                  uint32_t *ram_bytes_out)
{
    *ram_bytes_out = 0;
    /* Twice the same is half of it. */
    if (bytes == 8192 && !is_sc(rom, bytes) && memcmp(rom, rom + 4096, 4096) == 0)
        return &map_4k;
    if (bytes == 4096 && !is_cv(rom, bytes) && memcmp(rom, rom + 2048, 2048) == 0)
        return &map_2k;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const bool fits = kinds[i].bytes == bytes ||
                          (kinds[i].bytes == 0 && bytes >= 4096 && bytes % 2048 == 0);
        if (fits && (!kinds[i].test || kinds[i].test(rom, bytes))) {
            *ram_bytes_out = kinds[i].ram_bytes;
            return kinds[i].mapper;
        }
    }
    return NULL;
}
