/* Decoding for the fast loop, see cpu_decoded.c: done once an image.
 *
 * What the fast loop makes must be plain where it is fetched, and what follows must
 * find on the bus what it would have found: the last bytes before a mapper's own are
 * never decoded. A branch's target is told by its distance, where it lies in the same
 * part of the image, since parts go where a mapper puts them. */
#include <stdbool.h>

#include "atari/bus.h"
#include "atari/cpu_decoded.h"

enum { PART = STI_DECODED_BYTES };

/* How an opcode's operand must lie for the fast loop to have it. */
typedef enum form {
    FORM_NONE, /* it never has */
    FORM_ALONE,
    FORM_BYTE, /* a constant, or found out when it runs */
    FORM_BRANCH,
    FORM_RAM,     /* page 0, RAM */
    FORM_LOAD,    /* the same, or a register of TIA */
    FORM_STORE,   /* the same */
    FORM_POINTER, /* page 0, two bytes of RAM */
    FORM_WORD     /* found out when it runs */
} form;

/* clang-format off */
static const uint8_t forms[256] = {
    [0x88] = FORM_ALONE, [0xc8] = FORM_ALONE, [0xca] = FORM_ALONE, [0xe8] = FORM_ALONE,
    [0x8a] = FORM_ALONE, [0x98] = FORM_ALONE, [0xa8] = FORM_ALONE, [0xaa] = FORM_ALONE,
    [0x18] = FORM_ALONE, [0x38] = FORM_ALONE, [0xea] = FORM_ALONE, [0x60] = FORM_ALONE,
    [0x0a] = FORM_ALONE, [0x2a] = FORM_ALONE, [0x4a] = FORM_ALONE, [0x6a] = FORM_ALONE,
    [0x48] = FORM_ALONE, [0x68] = FORM_ALONE, [0x9a] = FORM_ALONE, [0xba] = FORM_ALONE,
    [0xd8] = FORM_ALONE, [0xf8] = FORM_ALONE, [0xb8] = FORM_ALONE,
    [0xa9] = FORM_BYTE, [0xa2] = FORM_BYTE, [0xa0] = FORM_BYTE, [0x09] = FORM_BYTE,
    [0x29] = FORM_BYTE, [0x49] = FORM_BYTE, [0x69] = FORM_BYTE, [0xe9] = FORM_BYTE,
    [0xc9] = FORM_BYTE, [0xe0] = FORM_BYTE, [0xc0] = FORM_BYTE,
    [0x10] = FORM_BRANCH, [0x30] = FORM_BRANCH, [0x50] = FORM_BRANCH, [0x70] = FORM_BRANCH,
    [0x90] = FORM_BRANCH, [0xb0] = FORM_BRANCH, [0xd0] = FORM_BRANCH, [0xf0] = FORM_BRANCH,
    [0xa5] = FORM_LOAD, [0xa6] = FORM_LOAD, [0xa4] = FORM_LOAD, [0x24] = FORM_LOAD,
    [0x05] = FORM_RAM, [0x25] = FORM_RAM, [0x45] = FORM_RAM, [0x65] = FORM_RAM,
    [0xe5] = FORM_RAM, [0xc5] = FORM_RAM, [0xe4] = FORM_RAM, [0xc4] = FORM_RAM,
    [0xe6] = FORM_RAM, [0xc6] = FORM_RAM, [0x06] = FORM_RAM, [0x26] = FORM_RAM,
    [0x46] = FORM_RAM, [0x66] = FORM_RAM, [0xc7] = FORM_RAM, [0xa7] = FORM_RAM,
    [0x85] = FORM_STORE, [0x86] = FORM_STORE, [0x84] = FORM_STORE,
    [0xb5] = FORM_BYTE, [0xb4] = FORM_BYTE, [0xb6] = FORM_BYTE,
    [0x95] = FORM_BYTE, [0x94] = FORM_BYTE, [0x96] = FORM_BYTE, [0x75] = FORM_BYTE,
    [0xf5] = FORM_BYTE, [0xd5] = FORM_BYTE, [0x15] = FORM_BYTE, [0x35] = FORM_BYTE,
    [0x55] = FORM_BYTE, [0xf6] = FORM_BYTE, [0xd6] = FORM_BYTE,
    [0xb1] = FORM_POINTER, [0x11] = FORM_POINTER, [0x31] = FORM_POINTER,
    [0x51] = FORM_POINTER, [0x71] = FORM_POINTER, [0xf1] = FORM_POINTER,
    [0xd1] = FORM_POINTER, [0xb3] = FORM_POINTER, [0x91] = FORM_POINTER,
    [0xad] = FORM_WORD, [0xae] = FORM_WORD, [0xac] = FORM_WORD, [0x2c] = FORM_WORD,
    [0xcd] = FORM_WORD, [0x0d] = FORM_WORD, [0x2d] = FORM_WORD, [0x4d] = FORM_WORD,
    [0xbd] = FORM_WORD, [0xb9] = FORM_WORD, [0xbc] = FORM_WORD, [0xbe] = FORM_WORD,
    [0x1d] = FORM_WORD, [0x3d] = FORM_WORD, [0x5d] = FORM_WORD, [0x19] = FORM_WORD,
    [0x39] = FORM_WORD, [0x59] = FORM_WORD, [0x7d] = FORM_WORD, [0x79] = FORM_WORD,
    [0xfd] = FORM_WORD, [0xf9] = FORM_WORD, [0xdd] = FORM_WORD, [0xd9] = FORM_WORD,
    [0x4c] = FORM_WORD, [0x20] = FORM_WORD, [0x9d] = FORM_WORD, [0x99] = FORM_WORD,
    [0x8d] = FORM_WORD, [0x8e] = FORM_WORD, [0x8c] = FORM_WORD,
};

/* Pairs: two opcodes and what they are together. */
typedef struct pair { uint8_t first, second, kind; } pair;
static const pair
    /* nothing, then a branch */
    counts[] = {
        {0xca, 0xd0, STI_KIND_DEX_BNE}, {0x88, 0xd0, STI_KIND_DEY_BNE},
        {0xe8, 0xd0, STI_KIND_INX_BNE}, {0xc8, 0xd0, STI_KIND_INY_BNE},
        {0xca, 0x10, STI_KIND_DEX_BPL}, {0x88, 0x10, STI_KIND_DEY_BPL}},
    /* a byte, then a branch */
    tests[] = {
        {0xc9, 0xd0, STI_KIND_CMP_BNE}, {0xc9, 0xf0, STI_KIND_CMP_BEQ},
        {0xc9, 0x90, STI_KIND_CMP_BCC}, {0xc9, 0xb0, STI_KIND_CMP_BCS},
        {0xe0, 0xd0, STI_KIND_CPX_BNE}, {0xc0, 0xd0, STI_KIND_CPY_BNE},
        {0xe9, 0xb0, STI_KIND_SBC_BCS}, {0xc6, 0xd0, STI_KIND_DEC_BNE}},
    /* nothing, then a byte */
    sums[] = {
        {0x38, 0xe9, STI_KIND_SEC_SBC}, {0x38, 0xe5, STI_KIND_SEC_SBC_RAM},
        {0x18, 0x69, STI_KIND_CLC_ADC}, {0x18, 0x65, STI_KIND_CLC_ADC_RAM}},
    /* a byte or a word, then a register of TIA */
    shows[] = {
        {0xa9, 0x85, STI_KIND_LDA_TIA}, {0xa5, 0x85, STI_KIND_LDA_RAM_TIA},
        {0xbd, 0x85, STI_KIND_LDA_X_TIA}, {0xb9, 0x85, STI_KIND_LDA_Y_TIA},
        {0xb1, 0x85, STI_KIND_LDA_POINTER_TIA}, {0xb5, 0x85, STI_KIND_LDA_RAM_X_TIA}},
    /* a byte, then a byte of RAM */
    moves[] = {
        {0xa9, 0x85, STI_KIND_LDA_STA}, {0xa5, 0x85, STI_KIND_LDA_RAM_STA}};
/* clang-format on */

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* Code from a place of a part on: so many bytes till another's begin. */
typedef struct code {
    const uint8_t *at;
    uint32_t place, room;
} code;

static bool is_tia(unsigned address)
{
    return !(address & 0x1080);
}

static bool is_sync(unsigned address)
{
    return is_tia(address) && (address & 0x3f) == STI_TIA_WSYNC;
}

static uint8_t kind_of_pair(const pair *pairs, size_t count, uint8_t first,
                            uint8_t second)
{
    for (size_t i = 0; i < count; i++)
        if (pairs[i].first == first && pairs[i].second == second)
            return pairs[i].kind;
    return STI_KIND_SLOW;
}

#define KIND(table, c, length) \
    kind_of_pair((table), COUNT(table), (c)->at[0], (c)->at[length])

/* Operand of the branch whose distance is the code's byte `at`; false: it leaves the
 * part. */
static bool near_branch(const code *c, uint32_t at, uint16_t *operand_out)
{
    const uint32_t from = c->place + at + 1;
    const uint32_t to = from + (uint32_t)(int8_t)c->at[at];
    *operand_out = (uint16_t)(c->at[at] | ((from ^ to) & 0xff00 ? 0x100 : 0));
    return to < PART;
}

static sti_decoded decode_count(const code *c)
{
    sti_decoded d = {.kind = KIND(counts, c, 1), .extra = c->at[0]};
    if (d.kind == STI_KIND_SLOW || !near_branch(c, 2, &d.operand))
        return (sti_decoded){.kind = STI_KIND_SLOW};
    if (c->at[2] == 0xfd && (d.kind == STI_KIND_DEX_BNE || d.kind == STI_KIND_DEY_BNE))
        d.kind = STI_KIND_SPIN;
    return d;
}

/* Pairs of three bytes. */
static sti_decoded decode_three(const code *c)
{
    const sti_decoded d = decode_count(c);
    const uint8_t sum = KIND(sums, c, 1);
    const bool of_ram = sum == STI_KIND_SEC_SBC_RAM || sum == STI_KIND_CLC_ADC_RAM;
    if (sum != STI_KIND_SLOW && (!of_ram || c->at[2] >= 0x80))
        return (sti_decoded){.kind = sum, .operand = c->at[2]};
    return d;
}

static bool operand_is_plain(const code *c)
{
    const uint8_t operand = c->at[1];
    switch (c->at[0]) {
    case 0xa5:
    case 0xc6:
        return operand >= 0x80;
    case 0xb1:
        return operand >= 0x80 && operand != 0xff;
    default:
        return true;
    }
}

/* Pairs of four bytes. */
static sti_decoded decode_four(const code *c)
{
    sti_decoded d = {.kind = KIND(tests, c, 2), .extra = c->at[1]};
    if (!operand_is_plain(c))
        return (sti_decoded){.kind = STI_KIND_SLOW};
    if (d.kind != STI_KIND_SLOW && near_branch(c, 3, &d.operand))
        return d;
    d = (sti_decoded){STI_KIND_SLOW, c->at[3], c->at[1]};
    if (c->at[3] >= 0x80)
        d.kind = KIND(moves, c, 2);
    else if (!is_sync(c->at[3]))
        d.kind = KIND(shows, c, 2);
    return d;
}

/* Those of five. */
static sti_decoded decode_five(const code *c)
{
    sti_decoded d = {STI_KIND_SLOW, c->at[4], (uint16_t)(c->at[1] | c->at[2] << 8)};
    if (is_tia(c->at[4]) && !is_sync(c->at[4]))
        d.kind = KIND(shows, c, 3);
    return d;
}

static sti_decoded decode_pair(const code *c)
{
    const form f = forms[c->at[0]];
    const uint32_t first = f == FORM_ALONE ? 1 : f < FORM_WORD ? 2 : 3;
    if (f == FORM_NONE || c->room <= first + 2)
        return (sti_decoded){.kind = STI_KIND_SLOW};
    return first == 1 ? decode_three(c) : first == 2 ? decode_four(c) : decode_five(c);
}

/* A store at an address of TIA. */
static sti_decoded decode_store(uint8_t opcode, uint8_t address)
{
    static const uint8_t stores[3] = {STI_KIND_STY_TIA, STI_KIND_STA_TIA,
                                      STI_KIND_STX_TIA};
    static const uint8_t syncs[3] = {STI_KIND_STY_WSYNC, STI_KIND_STA_WSYNC,
                                     STI_KIND_STX_WSYNC};
    const unsigned which = opcode & 3; /* 84, 85, 86 */
    return (sti_decoded){.kind = is_sync(address) ? syncs[which] : stores[which],
                         .operand = address};
}

/* One of page 0 or without operand. */
static sti_decoded decode_short(const code *c)
{
    const form f = forms[c->at[0]];
    sti_decoded d = {.kind = c->at[0], .operand = c->at[1]};
    const bool ram = c->at[1] >= 0x80;
    if (f == FORM_BRANCH && !near_branch(c, 1, &d.operand))
        d = (sti_decoded){STI_KIND_FAR, c->at[0], c->at[1]};
    else if (f == FORM_STORE && !ram)
        d = decode_store(c->at[0], c->at[1]);
    else if (f == FORM_LOAD && !ram)
        d = (sti_decoded){STI_KIND_READ_TIA, c->at[0], c->at[1]};
    else if ((f == FORM_RAM && !ram) ||
             (f == FORM_POINTER && (!ram || c->at[1] == 0xff)))
        d.kind = STI_KIND_SLOW;
    return d;
}

/* At least four bytes of room are there. */
static sti_decoded decode_one(const code *c)
{
    const form f = forms[c->at[0]];
    sti_decoded d = decode_pair(c);
    if (d.kind != STI_KIND_SLOW || f == FORM_NONE)
        return d;
    if (f < FORM_WORD)
        return decode_short(c);
    return (sti_decoded){c->at[0], 0, (uint16_t)(c->at[1] | c->at[2] << 8)};
}

size_t sti_cpu_decoded_count(uint32_t bytes)
{
    return ((size_t)bytes + PART - 1) / PART * STI_DECODED_PART;
}

/* Code is read from the image's parts of 1 KiB, so an instruction that does not lie in
 * one of them is left alone. Where the plain part of the 4 KiB begins or ends within a
 * part, the mapper keeps that one in its place, but for the end, which is that of all
 * parts. */
void sti_cpu_decode(const uint8_t *rom, uint32_t bytes, uint32_t direct,
                    uint32_t direct_end, sti_decoded *decoded_out)
{
    const uint32_t end = direct_end % PART ? direct_end % PART : PART;
    for (uint32_t part = 0; part * PART < bytes;
         part++, decoded_out += STI_DECODED_PART) {
        const uint32_t begin = part % 4 == direct / PART ? direct % PART : 0;
        const uint32_t stop = part * PART + end < bytes ? part * PART + end : bytes;
        for (uint32_t i = 0; i < STI_DECODED_PART; i++) {
            const uint32_t at = part * PART + i;
            decoded_out[i] = (sti_decoded){.kind = STI_KIND_SLOW};
            if (i >= begin && at + 3 < stop)
                decoded_out[i] = decode_one(&(code){rom + at, i, stop - at});
        }
    }
}
