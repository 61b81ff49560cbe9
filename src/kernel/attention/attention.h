/* Multi-head attention in tiles, forward and backward, without a matrix of all scores
 * (Dao et al., "FlashAttention", 2022), as one operator over packed rows.
 *
 * qkv [batch, length, (heads + 2 kv_heads) size]: the queries of all heads, then keys,
 * then values; head h reads key and value head h / (heads / kv_heads). For each query t
 *
 *     s_j = (q_t / sqrt(size)) . k_j for keys j <= t (all keys unless causal),
 *     y_t = sum_j softmax(s)_j v_j                       y [batch, length, heads size]
 *
 * With a window a query sees the keys j > t - window alone (Beltagy et al. 2020).
 *
 * Keys come in blocks of 64 from key 0; the running maximum and sum of a query are
 * updated block by block (Milakov and Gimelshein 2018), and stay as its two saved
 * numbers. Products are chains of fused multiply-adds (brgemm.h), so the bits depend on
 * shapes alone. */
#ifndef STI_KERNEL_ATTENTION_H
#define STI_KERNEL_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

typedef struct sti_attention {
    int64_t batch, length, heads, kv_heads, size;
    bool causal;
    int64_t window; /* keys that a query sees, its own the last; 0: all. Causal only */
} sti_attention;

/* Floats of a row of qkv. */
static inline int64_t sti_attention_width(const sti_attention *a)
{
    return (a->heads + 2 * a->kv_heads) * a->size;
}

/* Multiply-adds counted as two, half of the scores where causal. */
double sti_attention_flop(const sti_attention *args);

/* stats [batch, heads, length, 2]: largest score, sum of exp(score - largest). */
size_t sti_attention_scratch_bytes(const sti_attention *args, int threads);
void sti_attention_f32(const sti_team *team, const sti_attention *args,
                       const float *qkv, float *y, float *stats, void *scratch);

/* dqkv from dy, qkv, y and stats; every element is written. */
size_t sti_attention_grad_scratch_bytes(const sti_attention *args, int threads);
void sti_attention_grad_f32(const sti_team *team, const sti_attention *args,
                            const float *dy, const float *qkv, const float *y,
                            const float *stats, float *dqkv, void *scratch);

#endif
