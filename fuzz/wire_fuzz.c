/* Hostile bytes from a peer: greetings, headers, cards, signs of life. What reads as
 * something is written again and must be what was read. */
#include <stdlib.h>
#include <string.h>

#include "net/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void greetings(const uint8_t *data)
{
    wire_hello hello;
    uint8_t again[WIRE_HELLO];
    if (!sti_wire_get_hello(data, &hello))
        return;
    sti_wire_put_hello(&hello, again);
    if (memcmp(again, data, WIRE_HELLO) != 0)
        abort();
}

static void headers(const uint8_t *data)
{
    uint32_t tag;
    uint64_t n_bytes;
    uint8_t again[WIRE_HEADER];
    if (!sti_wire_get_header(data, &tag, &n_bytes))
        return;
    sti_wire_put_header(tag, n_bytes, again);
    if (memcmp(again, data, WIRE_HEADER) != 0)
        abort();
}

static void cards(const uint8_t *data)
{
    wire_card card, twice;
    uint8_t again[WIRE_CARD];
    if (!sti_wire_get_card(data, &card))
        return;
    sti_wire_put_card(&card, again);
    if (!sti_wire_get_card(again, &twice) || memcmp(&card, &twice, sizeof card) != 0)
        abort();
}

/* As a communicator reads them: what was taken off the front is gone. */
static void lives(const uint8_t *data, size_t size)
{
    wire_life life;
    uint8_t again[WIRE_LIFE];
    int taken;
    while ((taken = sti_wire_get_life(data, size, &life)) > 0) {
        if ((size_t)taken > size || sti_wire_put_life(&life, again) > WIRE_LIFE)
            abort();
        data += taken;
        size -= (size_t)taken;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lives(data, size);
    if (size >= WIRE_HEADER)
        headers(data);
    if (size >= WIRE_HELLO)
        greetings(data);
    if (size >= WIRE_CARD)
        cards(data);
    return 0;
}
