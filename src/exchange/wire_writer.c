#include "exchange/wire_writer.h"

#include <string.h>

static void add_varint(sti_text *out, uint64_t value)
{
    do {
        const uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        sti_text_add_bytes(out, &byte, 1);
        value >>= 7;
    } while (value);
}

static void add_tag(sti_text *out, uint32_t number, int kind)
{
    add_varint(out, (uint64_t)number << 3 | (unsigned)kind);
}

void sti_proto_add_int(sti_text *out, uint32_t number, int64_t value)
{
    add_tag(out, number, 0);
    add_varint(out, (uint64_t)value);
}

void sti_proto_add_float(sti_text *out, uint32_t number, float value)
{
    add_tag(out, number, 5);
    sti_text_add_bytes(out, &value, sizeof value);
}

void sti_proto_add_bytes(sti_text *out, uint32_t number, const void *bytes,
                         size_t n_bytes)
{
    add_tag(out, number, 2);
    add_varint(out, n_bytes);
    if (n_bytes)
        sti_text_add_bytes(out, bytes, n_bytes);
}

void sti_proto_add_text(sti_text *out, uint32_t number, const char *words)
{
    sti_proto_add_bytes(out, number, words, strlen(words));
}

void sti_proto_add_message(sti_text *out, uint32_t number, sti_text *message)
{
    out->failed = out->failed || message->failed;
    sti_proto_add_bytes(out, number, message->data, message->length);
    sti_text_fini(message);
}
