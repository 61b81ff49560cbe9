/* The wire format of Protocol Buffers, read in place: fields of a message as views into
 * memory that the caller keeps. Nothing is copied and nothing is allocated, so a
 * hostile file can cost neither memory nor stack: whoever descends counts the depth.
 *
 *     sti_proto p = sti_proto_of(bytes, n);
 *     sti_proto_field f;
 *     while (sti_proto_next(&p, &f))
 *         if (f.number == 7 && f.kind == STI_PROTO_BYTES) ...
 *     if (p.broken) ...
 */
#ifndef STI_EXCHANGE_WIRE_READER_H
#define STI_EXCHANGE_WIRE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sti_proto_kind {
    STI_PROTO_VARINT = 0,
    STI_PROTO_WORD64 = 1,
    STI_PROTO_BYTES = 2, /* text, bytes, messages, packed numbers */
    STI_PROTO_WORD32 = 5
} sti_proto_kind;

typedef struct sti_proto {
    const uint8_t *at, *end;
    bool broken; /* a field that does not fit, or is of an unknown kind */
} sti_proto;

typedef struct sti_proto_field {
    uint32_t number;
    sti_proto_kind kind;
    uint64_t value; /* of a number; its low 32 bits of a WORD32 */
    const uint8_t *bytes;
    size_t n_bytes; /* of BYTES */
} sti_proto_field;

sti_proto sti_proto_of(const void *bytes, size_t n_bytes);
sti_proto sti_proto_inside(const sti_proto_field *field);
/* The next field; false at the end, and once the message is broken. */
bool sti_proto_next(sti_proto *p, sti_proto_field *field);
/* The next number of a packed field, of the kind that its type is packed as. */
bool sti_proto_varint(sti_proto *p, uint64_t *value);
bool sti_proto_word32(sti_proto *p, uint32_t *value);
bool sti_proto_word64(sti_proto *p, uint64_t *value);

#endif
