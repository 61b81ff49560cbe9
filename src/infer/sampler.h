/* The next token from logits: temperature, the k likeliest, the likeliest that make up
 * a share p (Holtzman et al. 2020), in this order. What is drawn for token i of a run
 * is a function of logits, settings, seed and i. */
#ifndef STI_INFER_SAMPLER_H
#define STI_INFER_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

typedef struct sti_sampler_desc {
    double temperature; /* 0: always the likeliest, the lowest token on ties */
    int64_t top_k;      /* 0: all */
    double top_p;       /* 1: all */
    uint64_t seed;
} sti_sampler_desc;

typedef struct sti_sampler {
    sti_sampler_desc desc;
    int64_t vocabulary;
    size_t workspace_bytes;
    int64_t *index;  /* [vocabulary] */
    float *value;    /* [vocabulary] */
    void *workspace; /* of stint_topk */
} sti_sampler;

/* STINT_E_USAGE: a setting out of its range, NaN too. */
stint_status sti_sampler_check(const sti_sampler_desc *desc);
/* Bytes that init allocates. */
stint_status sti_sampler_bytes(const sti_sampler_desc *desc, int64_t vocabulary,
                               size_t *bytes_out);
stint_status sti_sampler_init(const sti_sampler_desc *desc, int64_t vocabulary,
                              sti_sampler *sampler);
void sti_sampler_fini(sti_sampler *sampler); /* a zeroed one is fine */

/* One sampler for texts of different settings: room for any top_k and top_p, and the
 * settings that the next draws follow, which have been checked. The text that a setting
 * and a seed give is that of a sampler of its own. STINT_E_MEMORY: some top_k takes
 * more room than was foreseen, which is then allocated, and there is none. */
stint_status sti_sampler_bytes_any(int64_t vocabulary, size_t *bytes_out);
stint_status sti_sampler_init_any(int64_t vocabulary, sti_sampler *sampler);
stint_status sti_sampler_reserve(sti_sampler *sampler, const sti_sampler_desc *desc);
void sti_sampler_set(sti_sampler *sampler, const sti_sampler_desc *desc);

/* logits [vocabulary]; i counts the tokens drawn so far. Allocates nothing.
 * STINT_E_FAILED: a logit is NaN, or +infinity. */
stint_status sti_sampler_draw(sti_sampler *sampler, const float *logits, int64_t i,
                              int32_t *token_out);

#endif
