/* Inside the compressed sum. */
#ifndef STI_NET_SQUEEZE_PRIV_H
#define STI_NET_SQUEEZE_PRIV_H

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
    /* In `coded`, beside those of the slices before: the encoded slice and (in rounds
     * of their own) its floats. */
    size_t coded_at, raw_at;
} squeeze_slice;

struct sti_squeeze {
    sti_comm *comm;
    sti_squeeze_desc desc;
    int layer_count, piece_count, slice_count, move_count;
    int64_t total;
    sti_squeeze_layer *layers;
    int *bits; /* a layer */
    squeeze_piece *pieces;
    squeeze_slice *slices;
    sti_move *moves;
    sti_comm_request *requests; /* a move */
    size_t *landing_at;         /* a move: where its receive lands in `landing` */
    uint8_t *coded, *landing;
    float *residual;
    size_t memory_bytes;
    /* Top-k lists, one after another: a layer's k places (uint32), then its values. */
    int64_t *layer_k; /* a layer: 0, it is not sent so */
    size_t list_bytes, topk_bytes;
    uint8_t *lists; /* [size] of list_bytes */
    int64_t *index;
    void *topk_workspace;
};

bool sti_squeeze_is_compressed(const sti_squeeze *s, int layer);
bool sti_squeeze_is_sparse(const sti_squeeze *s, int layer);

/* ---- squeeze_topk.c ---- */

stint_status sti_squeeze_topk_create(sti_squeeze *s);
void sti_squeeze_topk_destroy(sti_squeeze *s);
stint_status sti_squeeze_topk_run(sti_squeeze *s, float *vector);

stint_status sti_squeeze_not_finite(sti_squeeze *s, int layer, int64_t value);

#endif
