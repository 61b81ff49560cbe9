/* The compressed sum of gradients over ranks. After CGX (arXiv 2111.08617).
 *
 * Every rank brings a vector of layers; after a run every rank holds the same bytes, an
 * approximation of the sum whose error is that of the quantiser
 * (codec/gradient_codec.h) at the bits of each layer. Layers with fewer than two
 * dimensions or fewer than min_count values travel as float32 and their sum is exact
 * (in the order of the ranks), as biases and scales of norms need.
 *
 * Dense layers are laid end to end, the last of the vector first, and cut into parts of
 * about `fusion` values. Each part is exchanged on its own, as soon as its values are
 * final (net/ready_watermark.h): while one is on its way, others are encoded or still
 * computed. A part is cut into one slice a rank, at multiples of 4 values. A slice may
 * hold pieces of several layers; each piece is encoded on its own under its layer's
 * bits. Sums are added in a fixed order, whoever is first: the result is a function of
 * vectors, step and seed. It does depend on the number of ranks.
 *
 * Error feedback keeps what rounding took and adds it to the next step's vector (Seide
 * et al. 2014; Karimireddy et al. 2019): one float a value, to be saved in checkpoints.
 * Layers of 7 and 8 bits go without, once they have been given what is owed.
 *
 * With `keep` below 1 only that share of each dense layer's values, the largest in
 * magnitude, is sent, as float32 with their places, and all else is fed back (Aji and
 * Heafield 2017). Every rank then gets every other's list. */
#ifndef STI_NET_COMPRESSED_ALLREDUCE_H
#define STI_NET_COMPRESSED_ALLREDUCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/team.h"
#include "codec/gradient_codec.h"
#include "net/comm.h"
#include "net/exchange_schedule.h"
#include "net/ready_watermark.h"

enum {
    STI_COMPRESSED_RAW = 32, /* bits of a layer that travels as float32 */
    STI_COMPRESSED_MIN_COUNT = 1024,
    STI_COMPRESSED_FUSION = 1 << 20,
    /* Layers of more bits need no feedback: an error below a hundredth is not worth two
     * passes a step. */
    STI_COMPRESSED_FEEDBACK_BITS = 6
};

/* Tags of its messages. */
enum {
    STI_TAG_COMPRESSED_TOPK = 0x2001,
    STI_TAG_COMPRESSED = 0x10000000 /* + the part */
};

typedef struct sti_compressed_layer {
    const char *name; /* outlives the sum */
    int64_t first;    /* of its values in the vector */
    int64_t count;
    int dims;
} sti_compressed_layer;

typedef struct sti_compressed_allreduce_desc {
    sti_gradient_form form; /* of layers that are compressed; bits may be changed */
    sti_scheme scheme;
    int group; /* ranks a host, for two levels */
    bool feedback;
    double keep;       /* in (0, 1]; 1: all */
    int64_t min_count; /* 0: STI_COMPRESSED_MIN_COUNT */
    int64_t fusion;    /* values of a part; 0: STI_COMPRESSED_FUSION */
    /* Messages of all parts have room at once under so many bits of the layers that are
     * compressed; with more, parts go by turns. 0: form.bits. No result depends on it.
     */
    int room_bits;
    uint64_t seed;
} sti_compressed_allreduce_desc;

typedef struct sti_compressed_allreduce sti_compressed_allreduce;

/* Every rank calls it with the same layers and desc; STINT_E_INPUT names the lowest
 * rank that differs from rank 0. STINT_E_USAGE: an impossible desc. Layers do not
 * overlap; `total` is the length of the vector. Borrows comm. */
stint_status sti_compressed_allreduce_create(sti_comm *comm,
                                             const sti_compressed_allreduce_desc *desc,
                                             const sti_compressed_layer *layers,
                                             int layer_count, int64_t total,
                                             sti_compressed_allreduce **allreduce_out);
void sti_compressed_allreduce_destroy(
    sti_compressed_allreduce *allreduce); /* NULL is fine */

/* Layers of a vector: values of those that are compressed and of those that are not. */
typedef struct sti_compressed_extent {
    int64_t coded, raw;
    int layers;
} sti_compressed_extent;

/* Adds a layer. */
void sti_compressed_extent_add(sti_compressed_extent *extent,
                               const sti_compressed_allreduce_desc *desc, int64_t count,
                               int dims);
/* Bytes of messages that one takes: those to send, and those that land. */
size_t sti_compressed_message_bytes(const sti_compressed_allreduce_desc *desc, int size,
                                    const sti_compressed_extent *extent);
/* Bytes that one takes at most beside messages, and what is as long as the vector
 * (residual; lists of the largest) or as its list of layers: tables of parts, slices,
 * requests. */
size_t sti_compressed_table_bytes(const sti_compressed_allreduce_desc *desc, int size,
                                  int64_t total);

/* What a run sends, with the bits of desc for all layers that are compressed. */
typedef struct sti_compressed_load {
    int64_t values, raw_values; /* of all layers; of those that are not compressed */
    int64_t dense_values;       /* that go in slices, */
    double coded_bytes;         /* which are so large, */
    double list_bytes;          /* and a rank's list of the largest of the others */
    double rank_bytes;          /* that a rank sends, on average over all */
} sti_compressed_load;

/* Before there is one: makes no more than the cuts and sends nothing, so that comm may
 * be of ranks that are only planned. STINT_E_USAGE as sti_compressed_allreduce_create.
 */
stint_status sti_compressed_allreduce_measure(sti_comm *comm,
                                              const sti_compressed_allreduce_desc *desc,
                                              const sti_compressed_layer *layers,
                                              int layer_count, int64_t total,
                                              sti_compressed_load *out);

/* Bits of each layer from now on, on every rank: 1..8, or STI_COMPRESSED_RAW; those
 * that the filter keeps out stay as they are. Collective: STINT_E_INPUT when ranks
 * differ.
 */
stint_status sti_compressed_set_bits(sti_compressed_allreduce *allreduce,
                                     const int *bits);
int sti_compressed_bits(const sti_compressed_allreduce *allreduce, int layer);

/* How bits of layers are chosen: the fewest bytes whose squared error stays within
 * error_factor times that of `uniform` bits for all; or, with wire_bytes > 0, the least
 * squared error with at most so many bytes sent by a rank. */
typedef struct sti_bits_policy {
    int min_bits, max_bits; /* bits: 1 <= min_bits <= max_bits <= 8 */
    int uniform;
    double error_factor;
    double wire_bytes;
} sti_bits_policy;

typedef struct sti_bits_report {
    double bytes, raw_bytes; /* a rank sends on average: as chosen, as float32 */
    double error; /* expected, relative to the vector's size, of one encoding */
    int min_bits,
        max_bits; /* bits chosen; STI_COMPRESSED_RAW for both: nothing is compressed */
    bool fits;    /* in wire_bytes */
} sti_bits_report;

/* Chooses from rank 0's vector of this step and sets the bits on all ranks. When not
 * even the least bits fit wire_bytes they are taken, and the report says so.
 * Collective. Allocates. */
stint_status sti_compressed_choose_bits(sti_compressed_allreduce *allreduce,
                                        const sti_bits_policy *policy,
                                        const float *vector,
                                        sti_bits_report *report_out);

/* vector [total] becomes the sum; watermark: what of it is final, NULL: all. `step`
 * keys the rounding. STINT_E_FAILED, on all ranks: a value is not finite; the words
 * name layer, value, rank. STINT_E_PEER: a message makes no sense. The communicator has
 * then failed. Allocates nothing. */
stint_status sti_compressed_allreduce_run(sti_compressed_allreduce *allreduce,
                                          const sti_team *team,
                                          sti_ready_watermark *watermark, int64_t step,
                                          float *vector);

/* Until said otherwise, runs take nothing from the residual and leave it as it is: for
 * sums of which no use is made. On all ranks alike. */
void sti_compressed_hold_residual(sti_compressed_allreduce *allreduce, bool held);

/* What one run sends from this rank: exactly. */
void sti_compressed_traffic(const sti_compressed_allreduce *allreduce,
                            int64_t *messages_out, int64_t *bytes_out);

/* [total], zero at first; NULL without feedback. The caller may read it between runs (a
 * checkpoint) and write it (resume). */
float *sti_compressed_residual(sti_compressed_allreduce *allreduce);

#endif
