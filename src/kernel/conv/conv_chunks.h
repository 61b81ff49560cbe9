/* The sums of a weight gradient: chunks of pixels are the leaves of the tree of gemm.h.
 * It is cut into subtrees of 2^i chunks each, a piece of work each, and their results
 * are joined. Private to the kernel room. */
#ifndef STI_KERNEL_CONV_CHUNKS_H
#define STI_KERNEL_CONV_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

enum { STI_CONV_MAX_TREES = 8 };

typedef struct sti_conv_chunks {
    int64_t chunks, tree_chunks, trees;
    size_t levels; /* sums of a subtree that live at a time */
} sti_conv_chunks;

/* At most `most` subtrees, 1 to STI_CONV_MAX_TREES; at least one chunk. */
sti_conv_chunks sti_conv_chunks_cut(int64_t chunks, int64_t most);

/* Overwrites sums. */
typedef void sti_conv_chunk_fn(void *arg, int64_t chunk, float *sums);

/* Sums of a subtree: stack [levels, size], its result in the first. */
void sti_conv_chunks_sum(const sti_conv_chunks *chunks, int64_t tree, size_t size,
                         float *stack, sti_conv_chunk_fn *make, void *arg);

/* Results of the subtrees, `count` floats of each, into the first. */
void sti_conv_chunks_join(const sti_conv_chunks *chunks, float *const *result,
                          size_t count);

/* The same by a team: first [count] and rest [trees - 1, count], into first. */
void sti_conv_chunks_join_all(const sti_team *team, const sti_conv_chunks *chunks,
                              float *first, float *rest, size_t count);

#endif
