#include "net/wire.h"

#include <string.h>

static const char magic[8] = {'s', 't', 'i', 'n', 't', 'n', 'e', 't'};

static void put(uint8_t *out, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *in, int n_bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < n_bytes; i++)
        value |= (uint64_t)in[i] << (8 * i);
    return value;
}

/* magic, version u32, channel u32, rank u32, size u32, token */
void sti_wire_put_hello(const wire_hello *hello, uint8_t out[WIRE_HELLO])
{
    memcpy(out, magic, 8);
    put(out + 8, WIRE_VERSION, 4);
    put(out + 12, (uint64_t)hello->channel, 4);
    put(out + 16, (uint64_t)hello->rank, 4);
    put(out + 20, (uint64_t)hello->size, 4);
    memcpy(out + 24, hello->token, WIRE_TOKEN);
}

uint32_t sti_wire_hello_version(const uint8_t in[WIRE_HELLO])
{
    return memcmp(in, magic, 8) == 0 ? (uint32_t)get(in + 8, 4) : 0;
}

bool sti_wire_get_hello(const uint8_t in[WIRE_HELLO], wire_hello *hello_out)
{
    uint64_t channel = get(in + 12, 4), rank = get(in + 16, 4), size = get(in + 20, 4);
    if (sti_wire_hello_version(in) != WIRE_VERSION)
        return false;
    if (channel >= WIRE_CHANNELS || size < 1 || size > WIRE_RANKS || rank >= size)
        return false;
    *hello_out = (wire_hello){
        .channel = (wire_channel)channel, .rank = (int)rank, .size = (int)size};
    memcpy(hello_out->token, in + 24, WIRE_TOKEN);
    return true;
}

/* tag u32, zero u32, bytes u64 */
void sti_wire_put_header(uint32_t tag, uint64_t n_bytes, uint8_t out[WIRE_HEADER])
{
    put(out, tag, 8);
    put(out + 8, n_bytes, 8);
}

bool sti_wire_get_header(const uint8_t in[WIRE_HEADER], uint32_t *tag_out,
                         uint64_t *bytes_out)
{
    *tag_out = (uint32_t)get(in, 4);
    *bytes_out = get(in + 8, 8);
    return get(in + 4, 4) == 0 && *bytes_out <= INT64_MAX;
}

/* kind u8; of giving up: status u32, length u16, text */
size_t sti_wire_put_life(const wire_life *life, uint8_t out[WIRE_LIFE])
{
    out[0] = (uint8_t)life->kind;
    if (life->kind != WIRE_GIVES_UP)
        return 1;
    size_t length = strnlen(life->text, WIRE_TEXT);
    put(out + 1, (uint64_t)life->status, 4);
    put(out + 5, length, 2);
    memcpy(out + 7, life->text, length);
    return 7 + length;
}

/* What another rank says and may be printed: no escapes for terminals. */
static void get_text(const uint8_t *in, size_t n_bytes, char *text_out)
{
    for (size_t i = 0; i < n_bytes && in[i]; i++)
        text_out[i] = (char)(in[i] < 32 || in[i] == 127 ? ' ' : in[i]);
}

static bool is_failure(uint64_t status)
{
    return (status >= STINT_E_FAILED && status <= STINT_E_BUG) ||
           status == STINT_E_INTERRUPTED || status == STINT_E_TERMINATED;
}

int sti_wire_get_life(const uint8_t *in, size_t n_bytes, wire_life *life_out)
{
    *life_out = (wire_life){.kind = n_bytes > 0 ? (wire_life_kind)in[0] : WIRE_LIVES};
    if (n_bytes == 0)
        return 0;
    if (in[0] == WIRE_LIVES || in[0] == WIRE_LEAVES)
        return 1;
    if (in[0] != WIRE_GIVES_UP)
        return -1;
    if (n_bytes < 7)
        return 0;
    uint64_t status = get(in + 1, 4), length = get(in + 5, 2);
    if (!is_failure(status) || length > WIRE_TEXT)
        return -1;
    if (n_bytes < 7 + length)
        return 0;
    life_out->status = (stint_status)status;
    get_text(in + 7, length, life_out->text);
    return (int)(7 + length);
}

/* token, door, host, port u16, count u16, addresses of a family byte and 16 bytes,
 * build, purpose */
void sti_wire_put_card(const wire_card *card, uint8_t out[WIRE_CARD])
{
    memset(out, 0, WIRE_CARD);
    memcpy(out, card->token, WIRE_TOKEN);
    memcpy(out + WIRE_TOKEN, card->door, WIRE_DOOR);
    out += WIRE_TOKEN + WIRE_DOOR;
    memcpy(out, card->host, strnlen(card->host, WIRE_HOST - 1));
    out += WIRE_HOST;
    put(out, card->port, 2);
    put(out + 2, (uint64_t)card->count, 2);
    for (int i = 0; i < card->count && i < WIRE_ADDRESSES; i++) {
        out[4 + 17 * i] = card->addresses[i].family;
        memcpy(out + 5 + 17 * i, card->addresses[i].bytes, 16);
    }
    out += 4 + 17 * WIRE_ADDRESSES;
    memcpy(out, card->build, strnlen(card->build, WIRE_BUILD));
    memcpy(out + WIRE_BUILD, card->purpose, strnlen(card->purpose, WIRE_PURPOSE));
}

bool sti_wire_get_card(const uint8_t in[WIRE_CARD], wire_card *card_out)
{
    const uint8_t *host = in + WIRE_TOKEN + WIRE_DOOR, *rest = host + WIRE_HOST;
    uint64_t count = get(rest + 2, 2);
    if (count > WIRE_ADDRESSES || !memchr(host, 0, WIRE_HOST))
        return false;
    *card_out = (wire_card){.port = (uint16_t)get(rest, 2), .count = (int)count};
    memcpy(card_out->token, in, WIRE_TOKEN);
    memcpy(card_out->door, in + WIRE_TOKEN, WIRE_DOOR);
    get_text(host, WIRE_HOST, card_out->host);
    const uint8_t *words = rest + 4 + 17 * WIRE_ADDRESSES;
    get_text(words, WIRE_BUILD, card_out->build);
    get_text(words + WIRE_BUILD, WIRE_PURPOSE, card_out->purpose);
    for (int i = 0; i < (int)count; i++) {
        wire_address *a = &card_out->addresses[i];
        a->family = rest[4 + 17 * i];
        memcpy(a->bytes, rest + 5 + 17 * i, 16);
        if (a->family != 4 && a->family != 6)
            return false;
    }
    return true;
}
