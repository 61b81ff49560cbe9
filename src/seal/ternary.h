/* An mlp of ternary weights and signs as sums of bits with thresholds.
 *
 * With model.activation = sign, model.input_bits = b and quantise.bits = 2 every value
 * between the layers is one of few numbers at even distances, so what a unit sums up is
 * a count of bits: an input q of 0 to M = 2^b - 1 counts as it is where the weight is
 * 1, as M - q where it is -1. Scale, batch-norm and sign become one comparison of the
 * count with a whole number; the logits of the last layer are whole numbers, too, after
 * one rounding of their factors. */
#ifndef STI_SEAL_TERNARY_H
#define STI_SEAL_TERNARY_H

#include "store/model_file.h"

/* The factors of the last layer's counts are at most 2^10. */
enum { STI_TERNARY_FACTOR_BITS = 10 };

typedef struct sti_ternary_layer {
    int64_t inputs, units;
    int8_t *weight; /* [units][inputs]: -1, 0, 1 */
    /* [units], of hidden layers: 1 where (count >= least) differs from flip. */
    int64_t *least;
    uint8_t *flip;
    /* [units], of the last layer: score = factor count + offset, both 0 or more. */
    int64_t *factor, *offset;
} sti_ternary_layer;

typedef struct sti_ternary {
    const stint_model_file *model;
    int input_bits;
    int64_t layers; /* the last one gives the scores */
    sti_ternary_layer *layer;
    int64_t largest_score;
} sti_ternary;

/* STINT_E_INPUT: a network of another kind (with the keys of the recipe that make one),
 * or weights that are not finite; STINT_E_IO; STINT_E_MEMORY. The model must outlive
 * it. */
stint_status sti_ternary_read(const stint_model_file *model, sti_ternary *out);
void sti_ternary_fini(sti_ternary *net);

/* Largest count of a layer: of all its inputs, whatever their weights. */
int64_t sti_ternary_largest_count(const sti_ternary *net, int64_t layer);

/* Pixels of the size that the network takes as its inputs [height width channels]. */
void sti_ternary_inputs(const sti_ternary *net, const uint8_t *pixels,
                        uint8_t *inputs_out);

#endif
