/* Gradients in 1 to 8 bits a value, for the exchange between ranks.
 *
 * A piece of n values is cut into buckets of B; each has a scale of its own. Max-min:
 *     u = (hi - lo) / (2^b - 1),  code = min(round((x - lo) / u), 2^b - 1),
 *     x' = lo + u code.
 * QSGD (Alistarh et al. 2017): s = 2^(b-1) - 1 levels and a sign, n the L2 norm or the
 * largest |x| of the bucket,
 *     level = min(round(s |x| / n), s),  code = s + sign level,  x' = (code - s) u,
 * u = n / s. After CGX (arXiv 2111.08617) in layout and use.
 *
 * Bytes, little-endian: the headers of all buckets first (max-min: u, lo; QSGD: u;
 * float each), then the codes as one stream, b bits a value, lowest bit first, rounded
 * up to 8 bytes. A piece has sti_gradient_bytes(form, n) bytes, whatever its values.
 *
 * round() is to nearest, ties to even; or unbiased, by a number r of 16 bits of Philox:
 * t to nearest in parts of 2^-(16 - b), and floor of that plus r / 2^16, r cut to such
 * parts. So a value counts as the nearest of 2^16 places in its bucket's range, and
 * those are rounded without bias. A result is a function of values, form and key, the
 * same with every instruction set and number of threads. Denormals count as zeros. A
 * bucket whose range is below 2^-100 becomes constant. */
#ifndef STI_CODEC_GRADIENT_CODEC_H
#define STI_CODEC_GRADIENT_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

typedef enum sti_gradient_method {
    STI_GRADIENT_MAXMIN,
    STI_GRADIENT_QSGD_L2,
    STI_GRADIENT_QSGD_MAX
} sti_gradient_method;

typedef enum sti_gradient_rounding {
    STI_GRADIENT_NEAREST,
    STI_GRADIENT_STOCHASTIC,
    /* One random number for all ranks, shifted by part / parts: errors of like values
     * cancel in the mean. Each rank's own rounding stays unbiased. After Suresh et al.,
     * "Correlated quantization for distributed mean estimation" (2022). */
    STI_GRADIENT_CORRELATED
} sti_gradient_rounding;

enum {
    STI_GRADIENT_BITS_MAX = 8,
    STI_GRADIENT_BUCKET_MIN = 8,
    STI_GRADIENT_BUCKET_MAX = 65536,
    STI_GRADIENT_CLIP_PARTS = 8
};

typedef struct sti_gradient_form {
    int bits;       /* 1..8; QSGD from 2 */
    int64_t bucket; /* 8..65536, a multiple of 8 */
    sti_gradient_method method;
    sti_gradient_rounding rounding;
    /* max-min: lo and hi moved inwards to the least squared error found; not where
     * rounding is unbiased and the key's parts are STI_GRADIENT_CLIP_PARTS or more */
    bool clip;
} sti_gradient_form;

/* What the random numbers are for. Every field is part of the counter; of correlated
 * rounding `rank` is not, and part of `parts` (part < parts) is the shift. */
typedef struct sti_gradient_key {
    uint64_t seed, step;  /* step < 2^40 */
    uint32_t layer;       /* < 2^24 */
    uint32_t rank, phase; /* < 2^16 each; phase tells encodings of one layer apart */
    uint32_t part, parts;
} sti_gradient_key;

/* STINT_E_USAGE with what is wrong. Everything below wants a form that passed. */
stint_status sti_gradient_check(const sti_gradient_form *form);

/* Bytes of n values encoded; 0 for none. */
size_t sti_gradient_bytes(const sti_gradient_form *form, int64_t n);

/* x [n] to out, sti_gradient_bytes of it. The result is -1, or the index of the first
 * value that is not finite or not below 2^100 in magnitude; out then holds nothing of
 * use. out may have any alignment. */
int64_t sti_gradient_encode(const sti_team *team, const sti_gradient_form *form,
                            const sti_gradient_key *key, int64_t n, const float *x,
                            void *out);

/* Encode x + owed, as sti_gradient_encode. What rounding takes of the sum is left in
 * owed [n], a bucket at a time while it is in the cache. */
int64_t sti_gradient_encode_owed(const sti_team *team, const sti_gradient_form *form,
                                 const sti_gradient_key *key, int64_t n, const float *x,
                                 float *owed, void *out);

typedef enum sti_gradient_into {
    STI_GRADIENT_SET, /* y = x' */
    STI_GRADIENT_ADD, /* y += x' */
    STI_GRADIENT_TAKE /* y -= x': what is left of y after encoding it */
} sti_gradient_into;

/* in: what encode made of n values under the same form (any bytes may be given). False:
 * a header is not a number that encode writes, and y [n] is untouched. */
bool sti_gradient_decode(const sti_team *team, const sti_gradient_form *form, int64_t n,
                         const void *in, sti_gradient_into into, float *y);

#endif
