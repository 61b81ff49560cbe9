/* The wire format of Protocol Buffers, appended to a text. */
#ifndef STI_EXCHANGE_WIRE_WRITER_H
#define STI_EXCHANGE_WIRE_WRITER_H

#include <stdint.h>

#include "base/text.h"

void sti_proto_add_int(sti_text *out, uint32_t number, int64_t value);
void sti_proto_add_float(sti_text *out, uint32_t number, float value);
void sti_proto_add_bytes(sti_text *out, uint32_t number, const void *bytes,
                         size_t n_bytes);
void sti_proto_add_text(sti_text *out, uint32_t number, const char *words);
/* A message, which is emptied; its failure is out's. */
void sti_proto_add_message(sti_text *out, uint32_t number, sti_text *message);

#endif
