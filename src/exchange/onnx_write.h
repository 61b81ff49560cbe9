/* Trained networks of ours as ONNX files. */
#ifndef STI_EXCHANGE_ONNX_WRITE_H
#define STI_EXCHANGE_ONNX_WRITE_H

#include "exchange/imported.h"
#include "store/model_file.h"

enum { STI_ONNX_WRITE_FIRST = 17, STI_ONNX_WRITE_LAST = 21 };

typedef struct sti_onnx_write_options {
    int64_t opset;
    int64_t batch; /* 0: left open, "n" in the file */
    /* Images go in as pixels from 0 to 1, and the first nodes normalise them. */
    bool normalise;
} sti_onnx_write_options;

/* Images: input "images" [n, c, h, w] f32 as the network is trained on, that is
 * normalised unless options say otherwise; output "logits" [n, classes]. Weights that
 * the network rounds as it runs (quantise.bits) are int8, with a DequantizeLinear for
 * each, of one scale an output channel: the same numbers to the bit. Text: input
 * "tokens" [n, context] i64, output "logits" [n, context, vocabulary]. The file is
 * written atomically. STINT_E_UNSUPPORTED names an operator that there is no form for;
 * STINT_E_INPUT: a tensor is missing; STINT_E_IO; STINT_E_MEMORY. */
stint_status sti_onnx_write(const stint_model_file *model, const char *path,
                            const sti_onnx_write_options *options);

/* An imported network, as its model file has it: nodes, names, opset and batch are
 * those of the file, and options' are not looked at. STINT_E_UNSUPPORTED: numbers of 16
 * bits with a point, or normalise where its input is none of pictures. */
stint_status sti_onnx_write_imported(const sti_imported *network, const char *path,
                                     const sti_onnx_write_options *options);

#endif
