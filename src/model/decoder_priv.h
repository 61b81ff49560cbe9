/* What a decoder is made of: decoder.c lays it out and loads it, decoder_step.c runs
 * it. */
#ifndef STI_MODEL_DECODER_PRIV_H
#define STI_MODEL_DECODER_PRIV_H

#include "kernel/attention/attention_cache.h"
#include "kernel/attention/rotary.h"
#include "model/decoder.h"
#include "model/decoder_matrix.h"

enum {
    TILE = STI_DECODER_ROWS,    /* tokens read at a time, at most */
    BLOCK = STI_ATTENTION_BLOCK /* the cache grows by */
};

typedef struct norm_weights {
    float *scale, *shift; /* [width]; shift of gpt only */
} norm_weights;

typedef struct linear_weights {
    sti_decoder_matrix w;
    float *bias; /* [n]; NULL: none */
} linear_weights;

typedef struct decoder_layer {
    norm_weights norm[2], query_norm, key_norm; /* the last two with qk_norm only */
    linear_weights qkv, proj, gate, up, down;   /* gate: the one of gpt */
    sti_attention_cache cache;
} decoder_layer;

/* Activations of a tile, rows beside each other. */
typedef struct decoder_work {
    float *x, *a, *branch; /* [TILE, width]; a also [TILE, heads size] */
    float *qkv;            /* [TILE, packed] */
    float *hidden, *other; /* [TILE, hidden]; other of llama only */
    float *mean, *inv;     /* [TILE]; inv [TILE, heads] with qk_norm */
    float *heads;          /* [TILE, heads, size], likewise */
    float *logits;         /* [wanted, vocabulary] */
    void *scratch;
} decoder_work;

struct sti_decoder {
    sti_decoder_desc desc;
    bool llama;
    int64_t size, packed; /* of a head; of a row of qkv */
    sti_team team;
    float *block;
    decoder_layer *layer; /* [depth] */
    sti_decoder_matrix words, head;
    float *positions; /* [context, width]; gpt only */
    norm_weights last;
    decoder_work work;
    float *slice; /* the loader's buffer */
};

/* How rows of one text from a position on are rotated, in qkv. */
sti_rotary sti_decoder_rotary(const sti_decoder *decoder, int64_t rows,
                              int64_t position);

#endif
