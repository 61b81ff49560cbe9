/* The blocked product behind GEMM and the convolutions that gather their operands: A
 * and B come in blocks from callbacks, C leaves dense or through a callback. Pieces are
 * blocks of C, cut by shape alone; the order of sums is that of gemm.h. Private to the
 * kernel room. */
#ifndef STI_KERNEL_GEMM_BLOCK_H
#define STI_KERNEL_GEMM_BLOCK_H

#include "kernel/gemm/gemm.h"
#include "kernel/gemm/gemm_plan.h"
#include "kernel/gemm/gemm_tile.h"

enum {
    STI_BLOCK_ROWS = 336, /* 24 tiles of 14, 12 of 28 */
    STI_BLOCK_K = 512     /* the tile's rows of A and a few steps of B stay in the first
                           * cache, a panel of B in the second */
};

typedef struct sti_block_job sti_block_job;
struct sti_block_job {
    int64_t items; /* products: a batch, or the groups of a convolution */
    int64_t m, n, k;
    bool a_k_major; /* A lies in steps of k (load_a must then be NULL), else in rows */
    bool b_columns; /* B lies in columns (load_b must then be NULL), else in steps */
    bool accumulate;
    const void *arg;
    /* Fill dst [rows][ld] with rows m0.. and k0.. of A, those of a tile; ld > ks. False
     * where they are nothing but zeros, which are then left out of the sums. NULL: A
     * lies in memory as the tiles read it. */
    bool (*load_a)(const sti_block_job *job, int64_t item, int64_t m0, int64_t rows,
                   int64_t k0, int64_t ks, float *dst, int64_t ld);
    /* Fill panels dst [panel][ks][width] with columns n0.., zero beyond cols. NULL: B
     * lies in memory as the tiles read it. */
    void (*load_b)(const sti_block_job *job, const sti_gemm_kernels *kernels,
                   int64_t item, int64_t n0, int64_t cols, int64_t k0, int64_t ks,
                   int64_t width, float *dst);
    /* Operands that have no load: A in rows (a_k_major: steps) lda apart, B in steps
     * (b_columns: columns) ldb apart, items a_item and b_item apart. */
    const float *a, *b;
    int64_t a_item, lda, b_item, ldb;
    /* Rows of C are ldc apart, items c_item; or, where store_c is set, finished blocks
     * [rows][ld] go there and c is unused (accumulate must then be off). */
    float *c;
    int64_t c_item, ldc;
    void (*store_c)(const sti_block_job *job, int64_t item, int64_t m0, int64_t rows,
                    int64_t n0, int64_t cols, const float *block, int64_t ld);
    const float *bias; /* [n] a item, bias_item apart; or NULL */
    int64_t bias_item;
    bool relu;
    float sine; /* not 0: outputs become sin(sine y), a block at a time; no store_c */
};

/* Multiply-adds from which on threads share a product: those of some 2.5 us of one
 * thread, where a team that stands by gathers and parts in 0.7. */
enum { STI_BLOCK_SHARED = 1 << 17 };

/* The plan of a job for so many threads. Of the job's pointers it only matters which
 * are NULL. */
sti_block_plan sti_block_plan_make(const sti_block_job *job, int threads);

/* Run a job by its plan, in plan->scratch_bytes of scratch; the team may be smaller
 * than the plan's. */
void sti_block_plan_run(const sti_team *team, const sti_block_plan *plan,
                        const sti_block_job *job, void *scratch);

/* For callers that keep no plan: the most that a plan takes for a team of so many
 * threads or fewer, and a run by a plan that is made on the spot. */
size_t sti_block_scratch_bytes(const sti_block_job *job, int threads);
void sti_block_run(const sti_team *team, const sti_block_job *job, void *scratch);

/* y = sin(factor y) on rows of c that are ldc apart, as the element-wise kernels have
 * scale and sin. */
void sti_block_sine(float factor, int64_t rows, int64_t cols, float *c, int64_t ldc);

/* One bit an element of the flat y [count]; pieces own whole bytes. */
void sti_block_mask(const sti_team *team, const float *y, int64_t count, uint8_t *mask);

/* First 64-byte boundary at or after p. */
static inline float *sti_block_align(void *p)
{
    return (float *)(((uintptr_t)p + 63) & ~(uintptr_t)63);
}

#endif
