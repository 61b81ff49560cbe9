/* Error-bounded lossy compression of float arrays, made for the activations of
 * networks: every value comes back within a stated distance, zeros come back as zeros,
 * and what cannot be held to the bound (NaN, infinities, huge values) comes back bit
 * for bit.
 *
 * After COMET (arXiv 2111.09562) and the dual quantisation of cuSZ, with an entropy
 * coder of its own: x becomes an integer q = round(x / 2 bound), and the integers are
 * coded by rANS under the distribution that their neighbours in space and their channel
 * suggest. With dither a counter-based noise is added before rounding and taken away
 * again after, so that the error is uniform and independent of x. docs/codec.md has the
 * format and an example.
 *
 * Nothing here allocates or keeps a pointer: the caller brings blocks and workspace,
 * and asks for their sizes first:
 *
 *   stint_codec_max_bytes(&desc, &max_bytes);
 *   stint_codec_workspace_bytes(&desc, &workspace_bytes);
 *   stint_codec_pack(&desc, x, NULL, block, max_bytes, workspace, workspace_bytes, &r);
 *   stint_codec_unpack(&desc, block, r.bytes, NULL, x, workspace, workspace_bytes);
 *
 * Calls may run at once with workspaces of their own.
 */
#ifndef STINT_CODEC_H
#define STINT_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most axes of an array. */
enum { STINT_CODEC_RANK = 4 };

/** What is coded in place of the integer q itself. left and up are the same channel of
 * the pixel before and of the pixel above. */
typedef enum stint_codec_predictor {
    /* The cheapest on a sample of the values. */
    STINT_CODEC_AUTO,
    /* q. */
    STINT_CODEC_DIRECT,
    /* q - left: Lorenzo's predictor in one dimension. */
    STINT_CODEC_LEFT,
    /* q - left - up + left of up: Lorenzo's in two. */
    STINT_CODEC_PLANE,
    /* q - (left + up) / 2. */
    STINT_CODEC_MEAN,
    /* Their number; no predictor. */
    STINT_CODEC_PREDICTORS
} stint_codec_predictor;

/** How to pack. Zero means "choose for me", "none" or "off"; rank, dim and bound are
 * required. */
typedef struct stint_codec_desc {
    /* Axes in use, 1 to 4. */
    int rank;
    /* Their lengths, the last one contiguous and taken as channels: [n, h, w, c],
     * [h, w, c], [n, c] or [n]. At most 2^40 values in all. */
    int64_t dim[STINT_CODEC_RANK];
    /* Above 0: |x' - x| <= bound for every value, in the unit of the values. */
    double bound;
    /* Make errors uniform and independent of the values. */
    bool dither;
    /* Key of the dither: a seed, and what sets this array apart from all others of a
     * run, as layer << 48 | step. */
    uint64_t seed, id;
    /* A part of that key, too; below 2^24. */
    uint32_t shard;
    /* What is coded; zero chooses. */
    stint_codec_predictor predictor;
    /* Threads; 0: one. Never changes a byte. */
    int threads;
} stint_codec_desc;

/** What packing did. It is a plain value, with nothing to free. */
typedef struct stint_codec_result {
    /* Bytes of the packed block; where it did not fit, that it needs. */
    size_t bytes;
    /* Largest |x' - x| that occurred. */
    double max_error;
    /* Values that are exactly zero, masked ones included. */
    int64_t zeros;
    /* Values stored bit for bit beside the stream. */
    int64_t outliers;
    /* Values in chunks that were smaller left alone, bit for bit. */
    int64_t raw;
    /* The predictor that was taken. */
    stint_codec_predictor predictor;
    /* Distributions that were used. */
    int contexts;
} stint_codec_result;

/** What a packed block says about itself. Fields that stint_codec_desc and
 * stint_codec_result have mean the same here. */
typedef struct stint_codec_info {
    int rank;
    int64_t dim[STINT_CODEC_RANK];
    /* Product of dim. */
    int64_t count;
    double bound;
    bool dither;
    /* Unpacking wants the mask that packing had. */
    bool masked;
    size_t bytes;
    double max_error;
    int64_t zeros, outliers, raw;
    stint_codec_predictor predictor;
    int contexts;
} stint_codec_info;

/* ---- sizes ---- */

/** Bytes that the packed block cannot exceed, whatever the values: those of the raw
 * array and a little. STINT_E_USAGE for an impossible desc: rank, a negative dim, more
 * than 2^40 values, a bound that is not above 0 and finite, an unknown predictor, or a
 * shard of 2^24 and more. */
STINT_API stint_status stint_codec_max_bytes(const stint_codec_desc *desc,
                                             size_t *bytes_out);

/** Bytes of workspace that both packing and unpacking of this shape with this many
 * threads need; bound and options do not matter. STINT_E_USAGE for an impossible shape,
 * as above. */
STINT_API stint_status stint_codec_workspace_bytes(const stint_codec_desc *desc,
                                                   size_t *bytes_out);

/* ---- packing and unpacking ---- */

/** Pack x [dim] into out, which has room for capacity_bytes.
 *
 * mask: NULL, or one bit a value (bit i % 8 of byte i / 8) that the caller keeps anyway
 * and will pass again when unpacking, as the signs of a ReLU: where it is 0 x must be
 * zero and nothing is stored.
 * out NULL: nothing is written, and result_out->bytes is the size; capacity_bytes is
 * not looked at. workspace: as many bytes as stint_codec_workspace_bytes says.
 *
 * The block is the same byte for byte for any number of threads and any instruction
 * set. Denormals count as zeros if the bound allows it (else they are exact); -0 comes
 * back as +0. No pointer needs any alignment but x that of float.
 *
 * STINT_E_USAGE: impossible desc; STINT_E_INPUT: null pointers, a workspace that is too
 * small, or a value that is not zero where the mask is 0; STINT_E_BUDGET:
 * capacity_bytes is too small, result_out is filled and its bytes say what is needed,
 * and out holds nothing of use. */
STINT_API stint_status stint_codec_pack(const stint_codec_desc *desc, const float *x,
                                        const uint8_t *mask, void *out,
                                        size_t capacity_bytes, void *workspace,
                                        size_t workspace_bytes,
                                        stint_codec_result *result_out);

/** Read the head of a packed block of `bytes` bytes.
 *
 * STINT_E_INPUT: no block, damaged, or shorter than it says; STINT_E_UNSUPPORTED: of a
 * newer version. Any bytes may be given; all sizes that come back fit `bytes`. */
STINT_API stint_status stint_codec_info_read(const void *packed, size_t bytes,
                                             stint_codec_info *info_out);

/** Unpack a block of `bytes` bytes into x_out [dim].
 *
 * desc says what is expected: rank and dim must be those of the block; threads is the
 * number of threads; the rest is not looked at. mask: the one that packing had, or
 * NULL. workspace: as many bytes as stint_codec_workspace_bytes(desc) says.
 *
 * STINT_E_INPUT: damaged (checksum), truncated, another shape, a mask that is missing
 * or not wanted, null pointers, workspace too small; x_out may then hold anything. Any
 * bytes may be given: nothing outside of the buffers is touched. */
STINT_API stint_status stint_codec_unpack(const stint_codec_desc *desc,
                                          const void *packed, size_t bytes,
                                          const uint8_t *mask, float *x_out,
                                          void *workspace, size_t workspace_bytes);

/* ---- arrays of double ----
 *
 * The same for double: rounded to float and packed within what is left of the bound;
 * values that would come back outside of it are kept bit for bit, which is looked at
 * for each in double precision. -0 comes back as +0, as do values below the least float
 * if the bound allows it; NaN keeps its payload. A block of doubles has another head
 * than one of floats. There is no mask. */

/** Bytes that the packed block cannot exceed: 9 a value, a float's block and a little.
 * STINT_E_USAGE as stint_codec_max_bytes. */
STINT_API stint_status stint_codec_f64_max_bytes(const stint_codec_desc *desc,
                                                 size_t *bytes_out);

/** Bytes of workspace for packing and unpacking. STINT_E_USAGE as
 * stint_codec_workspace_bytes. */
STINT_API stint_status stint_codec_f64_workspace_bytes(const stint_codec_desc *desc,
                                                       size_t *bytes_out);

/** Pack x [dim] into out, which has room for stint_codec_f64_max_bytes.
 * result_out->outliers counts all values that are kept exactly. STINT_E_INPUT: null
 * pointers, or less memory than the calls above say; other errors as stint_codec_pack.
 */
STINT_API stint_status stint_codec_f64_pack(const stint_codec_desc *desc,
                                            const double *x, void *out,
                                            size_t capacity_bytes, void *workspace,
                                            size_t workspace_bytes,
                                            stint_codec_result *result_out);

/** Whether bytes begin like a block of doubles, not of floats. */
STINT_API bool stint_codec_is_f64(const void *packed, size_t bytes);

/** Read the head of a whole block of doubles. Errors as stint_codec_info_read. */
STINT_API stint_status stint_codec_f64_info_read(const void *packed, size_t bytes,
                                                 stint_codec_info *info_out);

/** Unpack a whole block of doubles into x_out [dim]. Errors as stint_codec_unpack. */
STINT_API stint_status stint_codec_f64_unpack(const stint_codec_desc *desc,
                                              const void *packed, size_t bytes,
                                              double *x_out, void *workspace,
                                              size_t workspace_bytes);

/** A word for a predictor, as `stint codec info` prints it, "direct"; "unknown" for a
 * number that is none. A constant that is not freed. */
STINT_API const char *stint_codec_predictor_name(stint_codec_predictor predictor);

#ifdef __cplusplus
}
#endif

#endif
