/* Inside the compressed sum. */
#ifndef STI_NET_COMPRESSED_PRIV_H
#define STI_NET_COMPRESSED_PRIV_H

#include "net/compressed_allreduce.h"
#include "net/rounds.h"
#include "stint/topk.h"

/* Consecutive values of one layer in one slice. */
typedef struct allreduce_piece {
    int layer;
    int64_t at, n; /* in the vector */
} allreduce_piece;

typedef struct allreduce_slice {
    int first_piece, piece_count;
    int64_t values;
    size_t bytes; /* encoded, under the bits of now */
    /* In `coded`, beside those of the slices before in its part: the encoded slice and
     * (in rounds of their own) its floats. */
    size_t coded_at, raw_at;
} allreduce_slice;

/* What is exchanged on its own: a slice for each rank. Parts do not wait for each
 * other. */
typedef struct allreduce_part {
    int64_t from;    /* no value before this place of the vector is in a part so far */
    size_t coded_at; /* its room in `coded`, perhaps that of an earlier one, too */
} allreduce_part;

/* Bytes of `coded` and `landing`. */
typedef struct sti_compressed_room {
    size_t coded, landing;
} sti_compressed_room;

struct sti_compressed_allreduce {
    sti_comm *comm;
    sti_compressed_allreduce_desc desc;
    int layer_count, piece_count;
    int64_t total;
    sti_compressed_layer *layers;
    int *bits;  /* a layer */
    int *order; /* layers, the last of the vector first */
    allreduce_piece *pieces;
    allreduce_part *parts;
    allreduce_slice *slices;  /* [parts, ranks] */
    sti_rounds rounds;        /* as many parts at a time as there is room for */
    sti_move *moves;          /* of every part */
    size_t *landing_at;       /* [parts, moves]: where its receive lands in `landing` */
    sti_compressed_room room; /* of */
    uint8_t *coded, *landing;
    float *residual;
    bool held;  /* the residual is neither read nor written */
    bool *owes; /* a layer: without feedback now, but with a residual of the time before
                 */
    /* Top-k lists, one after another: a layer's k places (uint32), then its values. */
    int64_t *layer_k; /* a layer: 0, it is not sent so */
    size_t list_bytes;
    uint8_t *lists; /* [size] of list_bytes */
    int64_t *index;
    void *topk_workspace;
};

enum { STI_COMPRESSED_CUT = 4 }; /* layers are cut at multiples of so many values */

/* ---- compressed_room.c ---- */

int sti_compressed_parts_at_most(const sti_compressed_allreduce_desc *desc,
                                 int64_t values);
sti_compressed_room sti_compressed_room_of(const sti_compressed_allreduce_desc *desc,
                                           int size,
                                           const sti_compressed_extent *extent);
/* Where everything lies under the bits of now, and how many parts go at a time. With
 * two levels the room becomes what that takes: as much under all bits. */
void sti_compressed_place(sti_compressed_allreduce *s);

/* ---- compressed_layout.c ---- */

sti_gradient_form sti_compressed_form_of(const sti_compressed_allreduce *s, int layer);
allreduce_slice *sti_compressed_slice(const sti_compressed_allreduce *s, int part,
                                      int slice);
size_t sti_compressed_piece_bytes(const sti_compressed_allreduce *s,
                                  const allreduce_piece *p);
size_t sti_compressed_move_bytes(const sti_compressed_allreduce *s, int part,
                                 const sti_move *move);
/* Where the slices of a move begin in `coded`. */
uint8_t *sti_compressed_move_coded(const sti_compressed_allreduce *s, int part,
                                   const sti_move *move);

/* Layers of so many bits owe what rounding took; of more, and float32, they do not. */
bool sti_compressed_feeds_back(const sti_compressed_allreduce *s, int bits);
bool sti_compressed_takes_layer(const sti_compressed_allreduce *s, int layer);
bool sti_compressed_is_sparse(const sti_compressed_allreduce *s, int layer);
/* Ends the sum for all ranks; the result is the status to return. */
stint_status sti_compressed_not_finite(sti_compressed_allreduce *s, int layer,
                                       int64_t value);

/* ---- compressed_run.c ---- */

extern const sti_rounds_ways sti_compressed_ways; /* user: a run */

/* ---- compressed_topk.c ---- */

/* How many values of each layer are listed. */
stint_status sti_compressed_topk_count(sti_compressed_allreduce *s);
stint_status
sti_compressed_topk_create(sti_compressed_allreduce *s); /* once they are counted */
void sti_compressed_topk_destroy(sti_compressed_allreduce *s);
stint_status sti_compressed_topk_run(sti_compressed_allreduce *s, float *vector);

#endif
