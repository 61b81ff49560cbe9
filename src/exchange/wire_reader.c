#include "exchange/wire_reader.h"

sti_proto sti_proto_of(const void *bytes, size_t n_bytes)
{
    const uint8_t *at = bytes;
    return (sti_proto){at, n_bytes ? at + n_bytes : at, false};
}

sti_proto sti_proto_inside(const sti_proto_field *field)
{
    return sti_proto_of(field->bytes, field->n_bytes);
}

bool sti_proto_varint(sti_proto *p, uint64_t *value)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 70 && p->at < p->end; shift += 7) {
        const uint8_t byte = *p->at++;
        if (shift < 64)
            v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *value = v;
            return true;
        }
    }
    p->broken = true;
    return false;
}

/* Little-endian, `count` bytes. */
static bool take_word(sti_proto *p, int count, uint64_t *value)
{
    if (p->end - p->at < count) {
        p->broken = true;
        return false;
    }
    *value = 0;
    for (int i = 0; i < count; i++)
        *value |= (uint64_t)p->at[i] << (8 * i);
    p->at += count;
    return true;
}

bool sti_proto_word64(sti_proto *p, uint64_t *value)
{
    return take_word(p, 8, value);
}

bool sti_proto_word32(sti_proto *p, uint32_t *value)
{
    uint64_t wide;
    if (!take_word(p, 4, &wide))
        return false;
    *value = (uint32_t)wide;
    return true;
}

static bool take_bytes(sti_proto *p, sti_proto_field *field)
{
    uint64_t length;
    if (!sti_proto_varint(p, &length))
        return false;
    if (length > (uint64_t)(p->end - p->at)) {
        p->broken = true;
        return false;
    }
    field->bytes = p->at;
    field->n_bytes = (size_t)length;
    p->at += length;
    return true;
}

bool sti_proto_next(sti_proto *p, sti_proto_field *field)
{
    uint64_t tag;
    if (p->broken || p->at >= p->end || !sti_proto_varint(p, &tag))
        return false;
    *field = (sti_proto_field){.number = (uint32_t)(tag >> 3),
                               .kind = (sti_proto_kind)(tag & 7)};
    switch ((int)(tag & 7)) {
    case STI_PROTO_VARINT:
        return sti_proto_varint(p, &field->value);
    case STI_PROTO_WORD64:
        return take_word(p, 8, &field->value);
    case STI_PROTO_WORD32:
        return take_word(p, 4, &field->value);
    case STI_PROTO_BYTES:
        return take_bytes(p, field);
    default: /* groups are not of proto3 and not of ONNX */
        p->broken = true;
        return false;
    }
}
