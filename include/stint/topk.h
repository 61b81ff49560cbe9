/* The k best of n values, with their positions, at about one read of the values.
 *
 * Most of the work is not looking: representatives of blocks (delegates) or a sample
 * say which blocks can hold a winner at all. After "Dr. Top-k" (Gaihre et al., SC'21,
 * arXiv 2109.08219), whose delegates, filter and in-place radix selection are here in
 * the form that suits a CPU; positions, ties and special values have one exact meaning,
 * below, so that a result is a pure function of the values: not of threads, machine,
 * method or workspace.
 *
 *   const stint_topk_desc desc = {.n = n, .k = 10, .sorted = true};
 *   size_t bytes;
 *   stint_topk_workspace_bytes(&desc, &bytes);
 *   stint_topk(&desc, x, NULL, index, values, workspace, bytes);
 *
 * That gives the positions and values of the ten largest of n floats, the largest
 * first; each call returns STINT_OK or says what was wrong.
 *
 * Nothing here but stint_topk_costs_host and _measure allocates, and nothing keeps a
 * pointer. Calls may run at once with outputs and workspaces of their own. */
#ifndef STINT_TOPK_H
#define STINT_TOPK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what is asked for ---- */

/** Type of the elements. F16 is IEEE half precision, BF16 the upper half of an f32,
 * both in 16 bits; I is a signed, U an unsigned integer of so many bits. A NumPy bool
 * is a U8. Elements are ranked in their own type: no two that differ are taken as
 * equal. F64 and integers of 64 and 16 bits are always selected by radix. */
typedef enum stint_topk_type {
    STINT_TOPK_F32,
    STINT_TOPK_F16,
    STINT_TOPK_BF16,
    STINT_TOPK_I32,
    STINT_TOPK_I8,
    STINT_TOPK_U32,
    STINT_TOPK_U8,
    STINT_TOPK_F64,
    STINT_TOPK_I64,
    STINT_TOPK_U64,
    STINT_TOPK_I16,
    STINT_TOPK_U16,
    /* Their number; no type. */
    STINT_TOPK_TYPES
} stint_topk_type;

/** What makes an element x good: x, -x or |x|. */
typedef enum stint_topk_key {
    STINT_TOPK_MAX,
    STINT_TOPK_MIN,
    STINT_TOPK_ABS
} stint_topk_key;

/** Where NaN stands. All NaN rank alike, whatever their sign and payload, and whatever
 * the key. */
typedef enum stint_topk_nan {
    /* Refuse: STINT_E_INPUT names the first one. */
    STINT_TOPK_NAN_ERROR,
    /* Better than everything. */
    STINT_TOPK_NAN_FIRST,
    /* Worse than everything. */
    STINT_TOPK_NAN_LAST
} stint_topk_nan;

/** How to go about it; never changes the result. */
typedef enum stint_topk_method {
    /* By predicted time. */
    STINT_TOPK_AUTO,
    /* Key and index of every element, then radix selection. */
    STINT_TOPK_PACK,
    /* The best of each block first. */
    STINT_TOPK_DELEGATE,
    /* The best two of each block first (the paper's beta delegates, beta = 2; by name
     * "beta"). */
    STINT_TOPK_DELEGATE2,
    /* Bounds of the k-th from a sample, then one pass. */
    STINT_TOPK_THRESHOLD,
    /* Histograms of the values where they lie. */
    STINT_TOPK_RADIX,
    /* Bounds from a few keys, again and again; for rows below 2^19. */
    STINT_TOPK_NARROW,
    /* Their number; no method. */
    STINT_TOPK_METHODS,
    /* Deprecated: the name in version 0.1. */
    STINT_TOPK_BETA = STINT_TOPK_DELEGATE2
} stint_topk_method;

/** Predicted costs of one thread of a machine. They steer the choice of method and
 * block size, never the result. Filled by one of the calls at the end of this header,
 * copied freely, looked into by nobody: what is in it changes with the methods. */
typedef struct stint_topk_costs {
    double opaque[16];
} stint_topk_costs;

/** What is asked for. Zero means "choose for me" or the first word of each list.
 *
 * An element ranks before another if its key is larger, or at equal keys if its index
 * is lower. -0 ranks below +0 unless zeros_equal (for |x| they are equal either way).
 * The magnitude of the least signed integer is one more than that of the greatest; that
 * of an unsigned one is itself. Infinities
 * rank where their size puts them. */
typedef struct stint_topk_desc {
    /* What x holds, what makes an element good, and where NaN stands. */
    stint_topk_type type;
    stint_topk_key key;
    stint_topk_nan nan;
    /* -0 and +0 have equal keys. */
    bool zeros_equal;
    /* Give the winners best first; else by ascending index.  */
    bool sorted;
    /* Rows, each selected from by itself; 0: one. */
    int64_t rows;
    /* Elements of a row. */
    int64_t n;
    /* Elements from the beginning of a row to that of the next; 0: n. */
    int64_t stride;
    /* Winners of a row; min(k, n) are given. */
    int64_t k;
    /* Added to every index that is given. */
    int64_t index_base;
    /* Threads, at most 1024; 0: one. They share one long row, or take rows of their
     * own. */
    int threads;
    /* Never changes the result. */
    stint_topk_method method;
    /* log2 of the block of STINT_TOPK_DELEGATE and _DELEGATE2, at most 15; 0: chosen.
     */
    int exponent;
    /* Values of a row that are looked at together, at most 2^30; 0: 2^30. Bounds the
     * workspace. */
    int64_t part;
    /* Elements are x + addend (f32 only). */
    bool has_addend;
    /* NULL: those of stint_topk_costs_default. Borrowed during the call. */
    const stint_topk_costs *costs;
} stint_topk_desc;

/* ---- selecting ---- */

/** Bytes of workspace that stint_topk needs with the same desc.
 *
 * STINT_E_USAGE for an impossible desc: a word or a number out of range, rows that
 * overlap, or sizes beyond an address space; STINT_E_UNSUPPORTED: more than 3 * 2^30
 * winners of a row that is taken in parts. */
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
 * STINT_E_USAGE or STINT_E_UNSUPPORTED as above, and STINT_E_USAGE for null pointers or
 * a workspace that is too small (the message names the argument); STINT_E_INPUT: a NaN
 * under STINT_TOPK_NAN_ERROR (the message names row and index of the first). The
 * outputs hold nothing of use after an error. With k = 0 nothing is looked at. Keeps no
 * pointer, allocates nothing; threads may call it at once with workspaces of their own.
 */
STINT_API stint_status stint_topk(const stint_topk_desc *desc, const void *x,
                                  const float *addend, int64_t *index_out,
                                  void *values_out, void *workspace,
                                  size_t workspace_bytes);

/* ---- joining ---- */

/** A list of winners, best first, as a sorted stint_topk gives it. Shares of one array
 * need an index_base of their own, so that positions are those of the whole. */
typedef struct stint_topk_list {
    /* Winners in the list; with 0 the pointers may be NULL. */
    int64_t count;
    /* Their values [count], of the type of desc. */
    const void *values;
    /* Their positions [count]; no position is in both lists of a merge. */
    const int64_t *index;
} stint_topk_list;

/** The best min(k, a + b) of two lists, best first, in O(k).
 *
 * Of desc it reads type, key, nan, zeros_equal and k. Merging is associative and
 * commutative bit for bit, so lists of parts, processes or hosts may be joined in any
 * tree: the result is that of one call on everything. index_out and values_out have
 * room for min(k, a + b) and must not overlap the lists; *count_out is their number.
 * STINT_E_USAGE: a list with a negative count or null pointers, an unknown type or
 * a negative k. */
STINT_API stint_status stint_topk_merge(const stint_topk_desc *desc,
                                        const stint_topk_list *a,
                                        const stint_topk_list *b, int64_t *index_out,
                                        void *values_out, int64_t *count_out);

/** Bytes of one list of k winners on the wire: values of the type and 64-bit indices.
 * Never fails. */
STINT_API size_t stint_topk_list_bytes(stint_topk_type type, int64_t k);

/* ---- looking ---- */

/** Say what stint_topk would do: which method AUTO (or a forced one that fits) comes to
 * for these sizes, its block exponent (0 where it has none), and the predicted seconds
 * of one row. Where all elements win, or none, there is nothing to choose: PACK, 0 and
 * 0 seconds. Errors as stint_topk_workspace_bytes. */
STINT_API stint_status stint_topk_explain(const stint_topk_desc *desc,
                                          stint_topk_method *method_out,
                                          int *exponent_out, double *seconds_out);

/** A word for a method, as `stint bench topk` prints it: "delegate"; "unknown" for a
 * number that is none. A constant that is not freed. */
STINT_API const char *stint_topk_method_name(stint_topk_method method);

/* ---- costs of this machine ----
 *
 * A program that selects often asks stint_topk_costs_host once and passes the answer in
 * stint_topk_desc.costs. */

/** The costs that are built in: those of an AVX-512 server core of 2023. */
STINT_API void stint_topk_costs_default(stint_topk_costs *costs_out);

/** The costs of this machine: read from $XDG_CACHE_HOME/stint (or ~/.cache/stint), else
 * measured in about 0.4 seconds and written there. Never fails: without memory the
 * built-in costs are given, without a writable folder those measured. */
STINT_API void stint_topk_costs_host(stint_topk_costs *costs_out);

/** Measure now, in about 0.4 seconds; no file is touched. STINT_E_MEMORY. */
STINT_API stint_status stint_topk_costs_measure(stint_topk_costs *costs_out);

#ifdef __cplusplus
}
#endif

#endif
