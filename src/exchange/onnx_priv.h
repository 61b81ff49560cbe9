/* What the two halves of the reader of ONNX files share. */
#ifndef STI_EXCHANGE_ONNX_PRIV_H
#define STI_EXCHANGE_ONNX_PRIV_H

#include "exchange/onnx_read.h"
#include "exchange/wire_reader.h"

typedef struct sti_onnx_reader {
    const char *name, *folder;
    sti_arena *arena;
    /* Graphs that are being read, within each other. */
    int depth;
} sti_onnx_reader;

/* Most bytes of a text, and attributes of a node: what the text of a model file holds.
 */
enum { STI_ONNX_TEXT_MOST = 4000, STI_ONNX_ATTRS_MOST = 32 };

/* A text of the file in the arena; STINT_E_INPUT where it has a NUL or is too long. */
stint_status sti_onnx_text(sti_onnx_reader *r, const sti_proto_field *field,
                           const char **text_out);
stint_status sti_onnx_tensor(sti_onnx_reader *r, const sti_proto_field *field,
                             sti_exchange_tensor *t);
/* "NAME: damaged, in WHAT". */
stint_status sti_onnx_damaged(const sti_onnx_reader *r, const char *what);

#endif
