/* What packing and unpacking hold while they run; all of it lies in the caller's
 * workspace. */
#ifndef STI_CODEC_CODEC_WORK_H
#define STI_CODEC_CODEC_WORK_H

#include "codec/codec_priv.h"

/* Chunks packed at once, however many threads there are. */
enum { STI_CODEC_THREADS = 64, STI_CODEC_CANDIDATES = STINT_CODEC_PREDICTORS - 1 };
/* Values quantised at once, and made, where the array does not lie in memory. */
enum { STI_CODEC_MADE = 2048 };

typedef struct sti_codec_pack_job {
    const stint_codec_desc *desc;
    sti_codec_layout layout;
    sti_codec_source source;
    const uint8_t *mask;
    uint8_t *out; /* NULL: only the size is wanted */
    size_t capacity;
    const sti_codec_kernels *kernels;
    sti_team team; /* of at most STI_CODEC_THREADS */
    sti_codec_quant quant;
    sti_codec_form form;
    sti_codec_coder coder;
    bool negative; /* some w of the probe */

    /* workspace */
    sti_codec_model *model;
    void *fit;
    uint32_t *counts;                  /* [threads or candidates][buckets][tokens] */
    uint64_t *entry;                   /* of the coder */
    int32_t *usual;                    /* [candidates][channels + lanes] */
    uint8_t *usual_code, *model_coded; /* [candidates][channels], then the chosen one */
    int64_t *sums;                     /* [candidates + 1][channels] */
    sti_codec_entry *entries;
    int32_t *w[STI_CODEC_THREADS];
    uint8_t *stream[STI_CODEC_THREADS];
    float *made[STI_CODEC_THREADS]; /* [STI_CODEC_MADE] */

    /* results */
    size_t model_bytes, front_bytes, bytes;
    sti_codec_found found;
    int64_t raw;
} sti_codec_pack_job;

/* STINT_E_INPUT: not zero where the mask is 0. p->bytes is then of no use, else it is
 * the block's size; beyond p->capacity nothing of use was written. */
stint_status sti_codec_pack_run(sti_codec_pack_job *p);

typedef struct sti_codec_unpack_job {
    const uint8_t *packed;
    sti_codec_head head;
    sti_codec_layout layout;
    const uint8_t *mask;
    sti_codec_sink sink;
    const sti_codec_kernels *kernels;
    sti_codec_quant quant;
    sti_codec_form form;

    /* workspace */
    sti_codec_model *model;
    uint32_t *table;
    int32_t *usual;
    int64_t *offset;  /* [groups] of a group's first chunk */
    uint8_t *damaged; /* [groups] */
    float *part;      /* [threads][part_n], where sink.x is NULL */
    int64_t part_n;   /* values of a group of chunks */
} sti_codec_unpack_job;

/* STINT_E_INPUT: damaged. */
stint_status sti_codec_unpack_run(const sti_team *team, sti_codec_unpack_job *job);

#endif
