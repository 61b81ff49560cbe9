/* A compression scheme: what a network's weights are made into, as words.
 *
 *     WORD [@GLOB] { + WORD [@GLOB] }
 *
 *     prune(S)      single weights       row(S)       outputs of dense layers
 *     block(RxC,S)  tiles                filter(S)    outputs of convolutions
 *     kernel(S)     kernels              structure(S) rows and filters together
 *     pattern(K)    4 taps of a 3 x 3 kernel, K shapes
 *     lowrank(S)    a product of two thin matrices
 *     quantise(N)   f16, or int2 to int8 with a scale an output channel
 *
 * S is the share that is removed: a number in [0, 1), a list a/b/c of one a layer, or
 * `auto`. Further words in the brackets: `layer` (a threshold a layer, else there is
 * one over all), `align=N` (outputs that stay come in multiples of N), and what a tile
 * or output is scored by: rms (the default), l2, max, min, mean, sum. GLOB picks
 * tensors by name, with or without ".weight". Words are projected from left to right
 * (train/project.h). After Condensa (arXiv 1911.02497), whose schemes are programs. */
#ifndef STI_TRAIN_SCHEME_H
#define STI_TRAIN_SCHEME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "codec/weight_form.h"
#include "stint/status.h"

enum { STI_SCHEME_WORDS = 8, STI_SCHEME_SHARES = 64, STI_SCHEME_GLOB_BYTES = 96 };

typedef enum sti_scheme_kind {
    STI_SCHEME_PRUNE,
    STI_SCHEME_BLOCK,
    STI_SCHEME_ROW,
    STI_SCHEME_FILTER,
    STI_SCHEME_STRUCTURE,
    STI_SCHEME_KERNEL,
    STI_SCHEME_PATTERN,
    STI_SCHEME_LOWRANK,
    STI_SCHEME_QUANTISE,
    STI_SCHEME_KINDS
} sti_scheme_kind;

typedef enum sti_criterion {
    STI_CRITERION_RMS,
    STI_CRITERION_L2,
    STI_CRITERION_MAX,
    STI_CRITERION_MIN,
    STI_CRITERION_MEAN,
    STI_CRITERION_SUM
} sti_criterion;

typedef struct sti_scheme_word {
    sti_scheme_kind kind;
    char glob[STI_SCHEME_GLOB_BYTES]; /* "": every tensor */
    int shares;                       /* 0: it has none, or `automatic` */
    double share[STI_SCHEME_SHARES];  /* [shares] */
    bool automatic;
    bool layer;                        /* a threshold a layer */
    int64_t align;                     /* 1: any number of outputs stays */
    sti_criterion criterion;           /* of what is scored as a whole */
    int64_t block_rows, block_columns; /* of block */
    int patterns;                      /* of pattern */
    sti_weight_number number;          /* of quantise */
    int bits;                          /* of STI_WEIGHT_INT */
} sti_scheme_word;

typedef struct sti_shrink_scheme {
    int count;
    sti_scheme_word word[STI_SCHEME_WORDS];
} sti_shrink_scheme;

const char *sti_scheme_kind_name(sti_scheme_kind kind);

/* STINT_E_USAGE: which word cannot be read, where it begins, and what it may be. */
stint_status sti_scheme_parse(const char *text, sti_shrink_scheme *scheme_out);
/* Does a word say `auto`? */
bool sti_scheme_is_automatic(const sti_shrink_scheme *scheme);
/* Is there a word of this kind? */
bool sti_scheme_has(const sti_shrink_scheme *scheme, sti_scheme_kind kind);
/* The text of a scheme with every `auto` replaced by this share, or by a list of
 * shares for kernels (shares > 1). */
void sti_scheme_settle(const char *text, const double *share, int shares,
                       sti_text *out);

/* Is a text what sti_scheme_settle makes of another, which has an `auto`? */
bool sti_scheme_is_settled(const char *settled, const char *open);

#endif
