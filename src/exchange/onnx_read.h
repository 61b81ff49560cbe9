/* ONNX files (github.com/onnx/onnx, onnx.proto) into an exchange graph.
 *
 * Files come from anywhere: lengths, types, counts, nesting and paths of external data
 * are checked before anything is used, and a message of the wire format is never
 * descended into deeper than a bound. */
#ifndef STI_EXCHANGE_ONNX_READ_H
#define STI_EXCHANGE_ONNX_READ_H

#include "exchange/exchange_graph.h"

/* Versions of ONNX's operators that are read. */
enum { STI_ONNX_OPSET_FIRST = 7, STI_ONNX_OPSET_LAST = 21 };

/* The file, with external data from files beside it. STINT_E_INPUT: damaged, or not
 * ONNX; STINT_E_UNSUPPORTED: of another opset, or functions, sequences, strings;
 * STINT_E_IO; STINT_E_MEMORY. */
stint_status sti_onnx_read(const char *path, sti_exchange_graph **graph_out);

/* The same from memory. name begins messages; folder: of external data, NULL: what is
 * not in the bytes is refused. */
stint_status sti_onnx_parse(const void *bytes, size_t n_bytes, const char *name,
                            const char *folder, sti_exchange_graph **graph_out);

/* One TensorProto, as the files of ONNX's own tests hold them. */
stint_status sti_onnx_parse_tensor(const void *bytes, size_t n_bytes, const char *name,
                                   sti_arena *arena, sti_exchange_tensor *tensor_out);

#endif
