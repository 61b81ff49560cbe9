/* An exchange graph as text: what the metadata of a model file holds.
 *
 *     stint network 1
 *     opset 17
 *     producer "pytorch"
 *     input "image" f32 1 3 224 224
 *     output "logits" f32 1 1000
 *     tensor "conv1.weight" f32 64 3 7 7 order 2 3 1 0 trained
 *     node "Conv" "/conv1/Conv" in "image" "conv1.weight" "" out "y" ints "pads" 3 3 3
 * 3
 *
 * One line a thing; strings in quotes, with \" \\ and \xNN inside; numbers with a point
 * in hexadecimal form, so that they come back to the bit. Operators and their
 * attributes are ONNX's of the opset named. The first line says the version: readers
 * refuse others. A tensor's numbers lie in the file beside the text, under its name,
 * axes in `order`.
 *
 * The text is verified on reading like any file from outside: words, counts, names that
 * are made twice; lowering it (lower.h) checks the rest. */
#ifndef STI_EXCHANGE_EXCHANGE_TEXT_H
#define STI_EXCHANGE_EXCHANGE_TEXT_H

#include "exchange/exchange_graph.h"

enum { STI_NETWORK_TEXT_VERSION = 1 };

/* Append. STINT_E_UNSUPPORTED: an attribute is a tensor or graph; STINT_E_MEMORY. */
stint_status sti_network_text_write(const sti_exchange_graph *g, sti_text *out);

/* Tensors get no numbers: floats and words are NULL. STINT_E_INPUT names `name`, the
 * line and what was wanted; STINT_E_UNSUPPORTED: another version. */
stint_status sti_network_text_read(const char *text, const char *name,
                                   sti_exchange_graph **graph_out);

#endif
