/* Inside the codec's room: the plan of a block, what kernels get, the block's layout.
 *
 * An array is cut into chunks that know nothing of each other, so that they pack and
 * unpack at once. A chunk is quantised to integers w: w = q, or with dither q for
 * q < 0, 0 for an exact zero and q + 1 for q >= 0. Then w is coded without loss: the
 * predictor takes a guess from it, what remains becomes a token (and bits below it),
 * and a token is coded under the distribution of its context. The context is a bucket,
 * by quarters of octaves, of how much is going on: magnitudes or differences of w to
 * the left and above plus what is usual for the channel; buckets that behave alike
 * share a distribution. Where values are of two known kinds each has half of the
 * buckets, by halves of octaves.
 *
 * Coding is rANS (Duda 2013; interleaved as Giesen 2014): 16 states of 31 bits, value i
 * of a chunk in state i % 16, words of 16 bits, probabilities of 11 bits. All 16 values
 * of a step are coded at once, so neighbours must lie at least 16 values back. */
#ifndef STI_CODEC_CODEC_PRIV_H
#define STI_CODEC_CODEC_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/team.h"
#include "codec/codec.h"

enum {
    STI_CODEC_LANES = 16,
    STI_CODEC_CHUNK_LOG2 = 16, /* values a chunk; of small arrays 2^14 */
    STI_CODEC_SMALL_LOG2 = 14,
    STI_CODEC_GROUP = 4, /* chunks that one thread unpacks together */
    STI_CODEC_BUCKETS = 64,
    STI_CODEC_CONTEXTS = 32, /* at most */
    STI_CODEC_TOKENS_LOG2 = 8,
    STI_CODEC_TOKENS = 1 << STI_CODEC_TOKENS_LOG2,
    STI_CODEC_ESCAPE = 255, /* the token of what has no probability */
    STI_CODEC_PLAIN = 128,  /* below: the value itself; above: 8 tokens an octave */
    STI_CODEC_ESCAPE_BITS = 24,
    STI_CODEC_PART_BITS = 12, /* most bits below a token that go into a state at once */
    STI_CODEC_SCALE_LOG2 = 11,
    STI_CODEC_SCALE = 1 << STI_CODEC_SCALE_LOG2,
    STI_CODEC_STATE_BITS = 31,
    STI_CODEC_STATE_MIN = 1 << 15,
    STI_CODEC_STATES_BYTES = 64,
    STI_CODEC_OUTLIER_BYTES = 6,
    STI_CODEC_PAD_BYTES = 96 /* behind the last chunk, for kernels that read ahead */
};

/* Where neighbours are and how w is coded. */
typedef struct sti_codec_form {
    stint_codec_predictor predictor;
    bool direct_positive; /* DIRECT and no w < 0: w itself is coded */
    int64_t left, up;     /* values back, >= 16 */
    int64_t channels;     /* period of `usual` */
    const int32_t *usual; /* [channels + 16] added to the activity */
    const uint8_t *map;   /* [STI_CODEC_BUCKETS] to contexts */
    const uint8_t *kind;  /* one bit a value of the array, or NULL */
} sti_codec_form;

typedef struct sti_codec_quant {
    float step, inverse; /* D and 1 / D */
    float limit;         /* |x' - x| in float that proves the bound */
    float dither_unit;   /* D / 256 */
    bool dither;
    bool positive; /* w < 0 is not to be had: exact instead */
    uint64_t seed, id;
    uint32_t shard;
} sti_codec_quant;

/* Values [begin, begin + n) of the array, begin a multiple of 256. */
typedef struct sti_codec_span {
    const float *x;      /* at begin */
    const float *next;   /* [n], to be fetched into the caches meanwhile; may be x */
    const uint8_t *mask; /* of the whole array, or NULL */
    int64_t begin, n;
    int64_t place; /* of begin, where outliers count from */
} sti_codec_span;

typedef struct sti_codec_found {
    float max_error;
    int64_t zeros, outliers;
    bool unmasked; /* a value that is not zero where the mask is 0 */
} sti_codec_found;

/* Ready for coding: by context * STI_CODEC_TOKENS + token. The lower 32 bits: a
 * reciprocal; the upper ones: STI_CODEC_SCALE - frequency, 12 bits; bias, 13 bits;
 * shift, 4 bits; all ones for tokens without a probability. */
typedef struct sti_codec_coder {
    const uint64_t *entry;
} sti_codec_coder;

/* One chunk to decode: stream in, w out. */
typedef struct sti_codec_stream {
    uint32_t state[STI_CODEC_LANES];
    const uint8_t *words, *end; /* the next word; behind the last */
    const uint8_t *mask;
    int64_t begin, n;
    void *w;          /* int32 [n], any alignment of 4 */
    const void *also; /* [n] of 4 bytes that are written soon; may be w */
} sti_codec_stream;

typedef struct sti_codec_kernels {
    /* w_out [n]; appends outliers (place 16 bits, value 32 bits) to list while they are
     * fewer than `room`; all are counted. list may be NULL. */
    void (*quantise)(const sti_codec_quant *quant, const sti_codec_span *span,
                     int32_t *w_out, uint8_t *list, int64_t room,
                     sti_codec_found *found);
    /* In place: w to x'. */
    void (*restore)(const sti_codec_quant *quant, int64_t begin, int64_t n, void *w);
    /* sum[c] += |w[c] - guess| for n channels; the neighbours are there. */
    void (*add_residuals)(stint_codec_predictor predictor, int64_t left, int64_t up,
                          const int32_t *w, int64_t n, int64_t *sum);
    /* Adds tokens of values [from, n) of a chunk that begins at `begin` of the array to
     * counts [STI_CODEC_BUCKETS][STI_CODEC_TOKENS]; from a multiple of 16. */
    void (*count)(const sti_codec_form *form, int64_t begin, const int32_t *w,
                  const uint8_t *mask, int64_t from, int64_t n, uint32_t *counts);
    /* Writes words downwards from `top`, then the states below them; the result points
     * at the states, or is NULL when they would pass `floor`. */
    uint8_t *(*encode)(const sti_codec_form *form, const sti_codec_coder *coder,
                       int64_t begin, const int32_t *w, const uint8_t *mask, int64_t n,
                       uint8_t *floor, uint8_t *top);
    /* Goes on with values [from, to) of chunks of one length: 1 of them, or
     * STI_CODEC_GROUP. from a multiple of 16, to as well or the chunks' end; w before
     * `from` is there as far as neighbours reach. table [contexts][STI_CODEC_SCALE]:
     * token, 8 bits; slot - start, 12; frequency - 1, 12. Reads up to
     * STI_CODEC_PAD_BYTES past `end`. False: past the end of a stream. */
    bool (*decode)(const sti_codec_form *form, const uint32_t *table, int streams,
                   sti_codec_stream *stream, int64_t from, int64_t to);
    uint32_t (*checksum)(const void *bytes, size_t n_bytes); /* CRC-32C */
} sti_codec_kernels;

extern const sti_codec_kernels sti_codec_kernels_ref, sti_codec_kernels_avx2,
    sti_codec_kernels_avx512;

/* ---- the model: what the head of a block says about coding ---- */

typedef struct sti_codec_model {
    stint_codec_predictor predictor;
    bool direct_positive;
    int contexts;
    uint8_t map[STI_CODEC_BUCKETS];
    uint16_t frequency[STI_CODEC_CONTEXTS]
                      [STI_CODEC_TOKENS]; /* rows sum to STI_CODEC_SCALE */
} sti_codec_model;

/* What follows from the shape alone. */
typedef struct sti_codec_layout {
    int64_t count, chunk, chunks; /* values; values a chunk; chunks */
    int64_t left, up, channels;   /* channels 1: no `usual` */
} sti_codec_layout;

sti_codec_layout sti_codec_layout_of(int rank, const int64_t *dim);

static inline int64_t sti_codec_chunk_n(const sti_codec_layout *l, int64_t chunk)
{
    const int64_t rest = l->count - chunk * l->chunk;
    return rest < l->chunk ? rest : l->chunk;
}

/* Mean activities (times 4) as codes of a byte, and usual [channels + 16] from those.
 */
uint8_t sti_codec_usual_code(int64_t activity);
void sti_codec_usual_expand(const uint8_t *code, int64_t channels, int32_t *usual_out);

/* Contexts and frequencies for counts of a sample of `sampled` of `count` values. */
void sti_codec_model_fit(const uint32_t *counts, int64_t sampled, int64_t count,
                         void *scratch, sti_codec_model *model);
size_t sti_codec_fit_scratch_bytes(void);
/* Estimated bits of the sample under a model of its own, tables included. */
double sti_codec_model_cost(const uint32_t *counts);

void sti_codec_coder_build(const sti_codec_model *model, uint64_t *entry);
void sti_codec_table_build(const sti_codec_model *model, int context, uint32_t *table);

enum { STI_CODEC_MODEL_BYTES = STI_CODEC_BUCKETS + STI_CODEC_CONTEXTS * 512 };
/* Map and frequencies as bytes, at most STI_CODEC_MODEL_BYTES. */
size_t sti_codec_model_write(const sti_codec_model *model, uint8_t *out);
/* False if damaged; model->contexts must be set. */
bool sti_codec_model_read(const uint8_t *bytes, size_t n_bytes, sti_codec_model *model);

/* ---- the block ---- */

/* The head, little-endian; then `usual` codes [channels], the model, an entry a chunk,
 * the chunks, padding. */
typedef struct sti_codec_head {
    uint8_t magic[8];
    uint32_t version, checksum; /* of everything from `bytes` to the first chunk */
    uint64_t bytes;             /* of the block */
    int64_t dim[STINT_CODEC_RANK];
    double bound, max_error;
    uint64_t seed, id;
    int64_t zeros, outliers, raw;
    float step;
    uint32_t shard;
    uint32_t front_bytes; /* head, usual, model and entries */
    uint32_t model_bytes;
    uint8_t rank, flags, predictor, contexts;
    uint8_t type; /* STI_CODEC_F32 */
    uint8_t unused[3];
} sti_codec_head;

enum { STI_CODEC_F32 = 1 };
enum {
    STI_CODEC_DITHER = 1,
    STI_CODEC_MASKED = 2,
    STI_CODEC_POSITIVE = 4,
    STI_CODEC_KINDS = 8
};

typedef struct sti_codec_entry {
    uint32_t bytes, outliers; /* outliers = STI_CODEC_RAW: as it is, nothing coded */
    uint32_t checksum;
} sti_codec_entry;

/* Smaller bounds would need arithmetic on denormals: everything is raw. */
#define STI_CODEC_LEAST_BOUND 0x1p-100

#define STI_CODEC_RAW     UINT32_MAX
#define STI_CODEC_VERSION UINT32_C(2)

/* STINT_E_USAGE with the reason; the layout of the shape. The second looks at rank and
 * dim alone. */
stint_status sti_codec_check(const stint_codec_desc *desc,
                             sti_codec_layout *layout_out);
stint_status sti_codec_check_shape(const stint_codec_desc *desc,
                                   sti_codec_layout *layout_out);

/* Bytes in front of the first chunk; contexts 0: nothing is coded, no `usual`. */
size_t sti_codec_front_bytes(const sti_codec_layout *layout, int contexts,
                             size_t model_bytes);
void sti_codec_head_begin(sti_codec_head *head); /* zeros, magic and version */

/* From bound to step; `most` is the largest |x| that is to be coded well. */
void sti_codec_quant_set(const stint_codec_desc *desc, float most,
                         sti_codec_quant *quant_out);

/* Head of a block, its fields checked against each other and against n_bytes, and the
 * checksum of all that precedes the chunks. */
stint_status sti_codec_head_read(const void *packed, size_t n_bytes,
                                 sti_codec_head *head_out);

#endif
