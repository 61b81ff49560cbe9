/* The k best of n values, with their positions, at about one read of the values.
 *
 * Most of the work is not looking: representatives of blocks (delegates) or a sample
 * say which blocks can hold a winner at all. After "Dr. Top-k" (Gaihre et al., SC'21,
 * arXiv 2109.08219), whose delegates, filter and in-place radix selection are here in
 * the form that suits a CPU; positions, ties and special values have one exact meaning,
 * below, so that a result is a pure function of the values: not of threads, machine,
 * method or workspace. */
#ifndef STINT_TOPK_H
#define STINT_TOPK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stint_topk_type {
    STINT_TOPK_F32,
    STINT_TOPK_F16,
    STINT_TOPK_BF16,
    STINT_TOPK_I32,
    STINT_TOPK_I8
} stint_topk_type;

/* What makes an element good: x, -x or |x|. */
typedef enum stint_topk_key {
    STINT_TOPK_MAX,
    STINT_TOPK_MIN,
    STINT_TOPK_ABS
} stint_topk_key;

/* Where NaN stands. All NaN rank alike, whatever their sign, payload and the key. */
typedef enum stint_topk_nan {
    STINT_TOPK_NAN_ERROR, /* refuse: STINT_E_INPUT names the first one */
    STINT_TOPK_NAN_FIRST, /* better than everything */
    STINT_TOPK_NAN_LAST   /* worse than everything */
} stint_topk_nan;

/* How to go about it; never changes the result. */
typedef enum stint_topk_method {
    STINT_TOPK_AUTO,      /* by predicted time */
    STINT_TOPK_PACK,      /* key and index of every element, then radix selection */
    STINT_TOPK_DELEGATE,  /* the best of each block first */
    STINT_TOPK_DELEGATE2, /* the best two of each block first ("beta" by name) */
    STINT_TOPK_THRESHOLD, /* bounds of the k-th from a sample, then one pass */
    STINT_TOPK_RADIX,     /* histograms of the values where they lie */
    STINT_TOPK_NARROW,    /* bounds from a few keys, again and again; rows of < 2^19 */
    STINT_TOPK_METHODS,
    STINT_TOPK_BETA = STINT_TOPK_DELEGATE2 /* deprecated: the name in version 0.1 */
} stint_topk_method;

/** Predicted costs of one thread of a machine. They steer the choice of method and
 * block size, never the result. Filled by stint_topk_costs_default, _host or _measure,
 * copied freely, looked into by nobody: what is in it changes with the methods. */
typedef struct stint_topk_costs {
    double opaque[16];
} stint_topk_costs;

/** What is asked for. Zero means "choose for me" or the first word of each list.
 *
 * An element ranks before another if its key is larger, or at equal keys if its index
 * is lower. -0 ranks below +0 unless zeros_equal (for |x| they are equal either way).
 * The magnitude of the least integer is one more than that of the greatest. */
typedef struct stint_topk_desc {
    stint_topk_type type;
    stint_topk_key key;
    stint_topk_nan nan;
    bool zeros_equal;
    bool sorted;        /* best first; else by ascending index */
    int64_t rows;       /* 0: one. Rows are selected from separately */
    int64_t n;          /* elements a row */
    int64_t stride;     /* elements from row to row; 0: n */
    int64_t k;          /* winners a row; min(k, n) are given */
    int64_t index_base; /* added to every index */
    int threads;        /* 0: one */
    stint_topk_method method;
    int exponent; /* log2 of the block of STINT_TOPK_DELEGATE and _DELEGATE2; 0: chosen
                   */
    int64_t part; /* values of a row looked at together; 0: 2^30. Bounds workspace */
    bool has_addend;               /* elements are x + addend (f32 only) */
    const stint_topk_costs *costs; /* NULL: those of stint_topk_costs_default */
} stint_topk_desc;

/** Bytes of workspace that stint_topk needs. STINT_E_USAGE for an impossible desc. */
STINT_API stint_status stint_topk_workspace_bytes(const stint_topk_desc *desc,
                                                  size_t *bytes_out);

/** The min(k, n) best of each row.
 *
 * x [rows, n] of the type, rows `stride` apart, any alignment; never written. addend:
 * like x, NULL unless has_addend; the sum is what is ranked and given (denormals
 * count as zero in that addition). index_out [rows, min(k, n)]; values_out likewise, of
 * the type, any alignment, may be NULL. workspace: as many bytes as
 * stint_topk_workspace_bytes says, any alignment.
 *
 * STINT_E_USAGE: impossible desc, null pointers or too small a workspace (the message
 * names the field or argument); STINT_E_INPUT: a NaN under STINT_TOPK_NAN_ERROR (the
 * message names row and index of the first); the outputs then hold nothing of use.
 * Keeps no pointer, allocates nothing; threads may call it at once with workspaces of
 * their own. */
STINT_API stint_status stint_topk(const stint_topk_desc *desc, const void *x,
                                  const float *addend, int64_t *index_out,
                                  void *values_out, void *workspace,
                                  size_t workspace_bytes);

/** A list of winners, best first, as a sorted stint_topk gives it. */
typedef struct stint_topk_list {
    int64_t count;
    const void *values;
    const int64_t *index; /* no index is in both lists of a merge */
} stint_topk_list;

/** The best min(k, a + b) of two lists, best first, O(k). Uses type, key, nan,
 * zeros_equal and k of desc. Merging is associative and commutative bit for bit, so
 * lists of parts, processes or hosts may be joined in any tree: the result is that of
 * one call on everything. Outputs must not overlap the lists. STINT_E_USAGE: a type or
 * k that cannot be, a list without values or indices. */
STINT_API stint_status stint_topk_merge(const stint_topk_desc *desc,
                                        const stint_topk_list *a,
                                        const stint_topk_list *b, int64_t *index_out,
                                        void *values_out, int64_t *count_out);

/** Bytes of one list of k winners on the wire: values and 64-bit indices. */
STINT_API size_t stint_topk_list_bytes(stint_topk_type type, int64_t k);

/** Which method AUTO (or a forced one that fits) comes to for these sizes, its block
 * exponent (0 where it has none), and the predicted seconds of one row. */
STINT_API stint_status stint_topk_explain(const stint_topk_desc *desc,
                                          stint_topk_method *method_out,
                                          int *exponent_out, double *seconds_out);
STINT_API const char *stint_topk_method_name(stint_topk_method method);

/** Built in: an AVX-512 server core of 2023. */
STINT_API void stint_topk_costs_default(stint_topk_costs *costs_out);
/** Of this machine: read from $XDG_CACHE_HOME/stint (or ~/.cache/stint), else measured
 * in about 0.4 seconds and written there. Never fails: without memory or a
 * writable folder the measured, else the built-in costs are given. */
STINT_API void stint_topk_costs_host(stint_topk_costs *costs_out);
/** Measure now (no file is touched). STINT_E_MEMORY. */
STINT_API stint_status stint_topk_costs_measure(stint_topk_costs *costs_out);

#ifdef __cplusplus
}
#endif

#endif
