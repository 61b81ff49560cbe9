/* Inside the compressed sum. */
#ifndef STI_NET_SQUEEZE_PRIV_H
#define STI_NET_SQUEEZE_PRIV_H

#include "net/rounds.h"
#include "net/squeeze.h"
#include "stint/topk.h"

/* Consecutive values of one layer in one slice. */
typedef struct squeeze_piece {
    int layer;
    int64_t at, n; /* in the vector */
} squeeze_piece;

typedef struct squeeze_slice {
    int first_piece, piece_count;
    int64_t values;
    size_t bytes; /* encoded, under the bits of now */
    /* In `coded`, beside those of the slices before in its part: the encoded slice and
     * (in rounds of their own) its floats. */
    size_t coded_at, raw_at;
} squeeze_slice;

/* What is exchanged on its own: a slice for each rank. Parts do not wait for each
 * other. */
typedef struct squeeze_part {
    int64_t from;    /* no value before this place of the vector is in a part so far */
    size_t coded_at; /* its room in `coded` */
} squeeze_part;

struct sti_squeeze {
    sti_comm *comm;
    sti_squeeze_desc desc;
    int layer_count, piece_count;
    int64_t total;
    sti_squeeze_layer *layers;
    int *bits;  /* a layer */
    int *order; /* layers, the last of the vector first */
    squeeze_piece *pieces;
    squeeze_part *parts;
    squeeze_slice *slices; /* [parts, ranks] */
    sti_rounds rounds;     /* all parts at a time */
    sti_move *moves;       /* of every part */
    size_t *landing_at;    /* [parts, moves]: where its receive lands in `landing` */
    uint8_t *coded, *landing;
    float *residual;
    bool *owes; /* a layer: without feedback now, but with a residual of the time before
                 */
    /* Top-k lists, one after another: a layer's k places (uint32), then its values. */
    int64_t *layer_k; /* a layer: 0, it is not sent so */
    size_t list_bytes;
    uint8_t *lists; /* [size] of list_bytes */
    int64_t *index;
    void *topk_workspace;
};

/* ---- squeeze_layout.c ---- */

sti_gradient_form sti_squeeze_form_of(const sti_squeeze *s, int layer);
squeeze_slice *sti_squeeze_slice(const sti_squeeze *s, int part, int slice);
size_t sti_squeeze_piece_bytes(const sti_squeeze *s, const squeeze_piece *p);
size_t sti_squeeze_move_bytes(const sti_squeeze *s, int part, const sti_move *move);
/* Where the slices of a move begin in `coded`. */
uint8_t *sti_squeeze_move_coded(const sti_squeeze *s, int part, const sti_move *move);

/* Layers of so many bits owe what rounding took; of more, and float32, they do not. */
bool sti_squeeze_feeds_back(const sti_squeeze *s, int bits);
bool sti_squeeze_is_compressed(const sti_squeeze *s, int layer);
bool sti_squeeze_is_sparse(const sti_squeeze *s, int layer);
/* Ends the sum for all ranks; the result is the status to return. */
stint_status sti_squeeze_not_finite(sti_squeeze *s, int layer, int64_t value);

/* ---- squeeze_run.c ---- */

extern const sti_rounds_ways sti_squeeze_ways; /* user: a run */

/* ---- squeeze_topk.c ---- */

/* How many values of each layer are listed. */
stint_status sti_squeeze_topk_count(sti_squeeze *s);
stint_status sti_squeeze_topk_create(sti_squeeze *s); /* once they are counted */
void sti_squeeze_topk_destroy(sti_squeeze *s);
stint_status sti_squeeze_topk_run(sti_squeeze *s, float *vector);

#endif
