/* Error-bounded lossy compression of float arrays, made for the activations of
 * networks: every value comes back within a stated distance, zeros come back as zeros,
 * and what cannot be held to the bound (NaN, infinities, huge values) comes back bit
 * for bit.
 *
 * After COMET (arXiv 2111.09562) and the dual quantisation of cuSZ, with an entropy
 * coder of its own: x becomes an integer q = round(x / 2 bound), the integers are coded
 * by rANS under the distribution that their neighbours in space and their channel
 * suggest. With dither a counter-based noise is added before rounding and taken away
 * again after, so that the error is uniform and independent of x. */
#ifndef STINT_CODEC_H
#define STINT_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { STINT_CODEC_RANK = 4 };

/* What is coded in place of q itself. left and up are the same channel of the pixel
 * before and of the pixel above. */
typedef enum stint_codec_predictor {
    STINT_CODEC_AUTO,   /* by the cost of a sample */
    STINT_CODEC_DIRECT, /* q */
    STINT_CODEC_LEFT,   /* q - left: Lorenzo in one dimension */
    STINT_CODEC_PLANE,  /* q - left - up + left of up: Lorenzo in two */
    STINT_CODEC_MEAN,   /* q - (left + up) / 2 */
    STINT_CODEC_PREDICTORS
} stint_codec_predictor;

/** How to pack. Zero means "choose for me", "none" or "off". */
typedef struct stint_codec_desc {
    int rank;                      /* 1..4 */
    int64_t dim[STINT_CODEC_RANK]; /* last axis contiguous: [n,h,w,c], [h,w,c], [n,c] */
    double bound;                  /* > 0: |x' - x| <= bound for every value */
    bool dither;
    uint64_t seed, id; /* of the dither: a seed, and what sets this array apart from all
                          others of the run, as layer << 48 | step */
    uint32_t shard;    /* likewise; below 2^24 */
    stint_codec_predictor predictor;
    int threads; /* 0: one. Never changes a byte */
} stint_codec_desc;

/** What packing did. */
typedef struct stint_codec_result {
    size_t bytes;     /* of the packed block; when it did not fit: that it needs */
    double max_error; /* largest |x' - x| that occurred */
    int64_t zeros;    /* values that are exactly zero, masked ones included */
    int64_t outliers; /* values stored bit for bit beside the stream */
    int64_t raw;      /* values in parts that were smaller left alone, bit for bit */
    stint_codec_predictor predictor;
    int contexts; /* distributions used */
} stint_codec_result;

/** What a packed block says about itself. */
typedef struct stint_codec_info {
    int rank;
    int64_t dim[STINT_CODEC_RANK];
    int64_t count; /* product of dim */
    double bound;
    bool dither;
    bool masked; /* unpacking wants the mask that packing had */
    size_t bytes;
    double max_error;
    int64_t zeros, outliers, raw;
    stint_codec_predictor predictor;
    int contexts;
} stint_codec_info;

/** Bytes that the packed block cannot exceed, whatever the values: those of the raw
 * array and a little. STINT_E_USAGE for an impossible desc: rank, a negative dim, more
 * than 2^40 values, bound not above 0 or not finite, unknown predictor, shard. */
STINT_API stint_status stint_codec_max_bytes(const stint_codec_desc *desc,
                                             size_t *bytes_out);

/** Bytes of workspace that both packing and unpacking of this shape with this many
 * threads need (bound and options do not matter). STINT_E_USAGE as above. */
STINT_API stint_status stint_codec_workspace_bytes(const stint_codec_desc *desc,
                                                   size_t *bytes_out);

/** Pack x [dim] into out, which has room for capacity_bytes.
 *
 * mask: NULL, or one bit a value (bit i % 8 of byte i / 8) that the caller keeps anyway
 * and will pass again when unpacking, as the signs of a ReLU: where it is 0 x must be
 * zero and nothing is stored.
 * out NULL: nothing is written and result->bytes is the size (capacity is ignored).
 * STINT_E_USAGE: impossible desc; STINT_E_INPUT: null pointers, a workspace that is too
 * small, or a value that is not zero where the mask is 0; STINT_E_BUDGET: capacity too
 * small: result->bytes says what is needed and the rest of result holds, out holds
 * nothing of use. The block is the same byte for byte for any number of threads and any
 * instruction set. Denormals count as zeros if the bound allows it (else they are
 * exact); -0 comes back as +0. No pointer needs any alignment but x that of float.
 * Keeps none, allocates nothing; threads may call it at once with workspaces of their
 * own. */
STINT_API stint_status stint_codec_pack(const stint_codec_desc *desc, const float *x,
                                        const uint8_t *mask, void *out,
                                        size_t capacity_bytes, void *workspace,
                                        size_t workspace_bytes,
                                        stint_codec_result *result_out);

/** Read the head of a packed block. STINT_E_INPUT: no block, damaged, or shorter than
 * it says; STINT_E_UNSUPPORTED: of a newer version. Nothing that it gives was believed
 * unchecked: the sizes fit `bytes`. */
STINT_API stint_status stint_codec_info_read(const void *packed, size_t bytes,
                                             stint_codec_info *info_out);

/** Unpack a block into x_out. desc says what is expected: rank and dim must be those of
 * the block; threads; the rest is not looked at. mask: the one that packing had, or
 * NULL. Workspace as stint_codec_workspace_bytes(desc) says.
 *
 * STINT_E_INPUT: damaged (checksum), truncated, another shape, a mask that is missing
 * or not wanted, null pointers, workspace too small; x_out may then hold anything. Any
 * bytes may be given: nothing outside of the buffers is touched. */
STINT_API stint_status stint_codec_unpack(const stint_codec_desc *desc,
                                          const void *packed, size_t bytes,
                                          const uint8_t *mask, float *x_out,
                                          void *workspace, size_t workspace_bytes);

STINT_API const char *stint_codec_predictor_name(stint_codec_predictor predictor);

#ifdef __cplusplus
}
#endif

#endif
