/* Shared by the files of top-k.
 *
 * Every element has a 32-bit unsigned key, larger is better (topk_key.h). A packed
 * element is key << 32 | ~index: packed elements are all different, and their
 * descending order is the order of the contract. A row is selected from in three steps:
 * bounds of the k-th key from delegates, a sample or histograms; the few elements
 * between the bounds are packed and cut exactly; the winners are emitted by ascending
 * index. */
/* clang-format off */
/* The files, each of which uses those above it only (scripts/check_circles.py):
 *
 *   topk_ref, _avx2, _avx512, topk_ops   loops of an instruction set; which are in use
 *   topk_cut, topk_pool                  exact cuts of lists; lists of unknown length
 *   topk_plan, topk_costs                method and sizes of parts; a machine's costs
 *   topk_scratch, topk_emit              memory of a row; where its winners go
 *   topk_short_row, topk_threshold_scan,
 *   topk_narrow, topk_catch, topk_delegate   the methods
 *   topk_row                             a row by the method of its plan
 *   topk_request, topk, topk_merge       the public calls
 *
 * Which way a row of n elements goes: the first line that fits. The limits are the
 * constants below (STI_TOPK_...), and no line changes a result.
 *
 *   n                            and                   way, and why
 *   <= TINY, or                  one row of plain f32, straight_avx512: keys stay in
 *   <= STRAIGHT with k <= FEW    unsorted, AVX-512     registers; a call is a few dozen
 *                                                      cycles, fewer than other ways ask
 *   <= SHORT                     AUTO or NARROW        short_row: keys are made once and
 *                                                      lie in the nearest cache (16 KiB);
 *                                                      no plan, no layout
 *   > desc->part                                       in parts, each as below: 32-bit
 *                                                      positions, bounded workspace
 *   any                          a method is given     that one, where it is possible
 *   <= SHORT                     AUTO                  NARROW: not worth a prediction
 *   any                          AUTO                  the least time that topk_plan.c
 *                                                      predicts, of those possible:
 *     <= SHORT_ROW_MOST                                NARROW by short_row: two lists of
 *                                                      keys fit the second cache (512 KiB)
 *     <= NARROW_MOST                                   NARROW: lists within a core's
 *                                                      caches; longer ones are memory
 *     any                        k < n / line          DELEGATE, and DELEGATE2 of 4-byte
 *                                                      elements: fewer blocks than all
 *       >= CATCH_LEAST           n/2^13 <= k <= n/2^8  ... which catches winners on its
 *                                                      way: blocks gone back to would be
 *                                                      a read from memory each
 *     any                                              PACK, THRESHOLD, RADIX
 */
/* clang-format on */
#ifndef STI_KERNEL_TOPK_PRIV_H
#define STI_KERNEL_TOPK_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/team.h"
#include "stint/topk.h"

/* How elements lie in memory; the types of the public header and two of our own. */
typedef enum sti_topk_form {
    STI_TOPK_F32,
    STI_TOPK_F16,
    STI_TOPK_BF16,
    STI_TOPK_I32,
    STI_TOPK_I8,
    STI_TOPK_SUM,  /* f32 x + addend */
    STI_TOPK_KEYS, /* 32-bit keys as they are: delegates */
    STI_TOPK_FORMS
} sti_topk_form;

/* Constants of the map from bits to keys, see topk_key.h. */
typedef struct sti_topk_map {
    uint32_t keep, flip;      /* bits kept, bits flipped */
    uint32_t zero;            /* 1: -0 equals +0 */
    uint32_t low, top, shift; /* floats: least key, key of NaN, final turn */
} sti_topk_map;

typedef struct sti_topk_view {
    sti_topk_form form;
    sti_topk_map map;
    const unsigned char *x, *addend;
    int64_t n; /* <= 2^31 */
} sti_topk_view;

/* The size classes of the rule above: elements of a row, */
enum {
    STI_TOPK_TINY = 64,      /* keys of 4 registers */
    STI_TOPK_STRAIGHT = 256, /* keys of 16 registers, of few winners */
    STI_TOPK_SHORT = 4096,
    STI_TOPK_SHORT_ROW_MOST = 16 * STI_TOPK_SHORT,
    STI_TOPK_NARROW_MOST = (1 << 19) - 1,
    STI_TOPK_CATCH_LEAST = 1 << 22
};
/* and winners: one a lane of a register of keys, and so few that each is looked for. */
enum { STI_TOPK_FEW = 16, STI_TOPK_HANDFUL = 4, STI_TOPK_LANES = 16 };

/* A row whose keys are made once and then held. */
typedef struct sti_topk_short_row {
    int64_t n, k;    /* 1 <= k <= n */
    uint32_t *keys;  /* [n], then the zeros that topk_short_row.c sees to */
    uint32_t *spare; /* likewise, scratch */
    uint32_t best;   /* key */
    uint32_t high[STI_TOPK_LANES], low[STI_TOPK_LANES]; /* best, least of every 16th */
    int64_t base;
    int64_t *index;           /* [k] */
    const unsigned char *raw; /* elements of 32 bits that are given as they are */
    unsigned char *values;    /* [k], of raw, or NULL */
    uint64_t *packed;         /* [k], instead of index and values, or NULL */
    bool sorted, refuse_nan;  /* of a call, as are these: */
    unsigned char *memory;    /* [sti_topk_short_row_bytes], aligned to 64 */
    unsigned char *given;     /* [k] values of any form, or NULL */
} sti_topk_short_row;

/* Elements that are caught while the two best of blocks are looked for: those with
 * key >= bound. The blocks are read at four places at once, and each place has a list,
 * packed, by ascending index; the lists follow each other likewise. */
enum { STI_TOPK_STREAMS = 4, STI_TOPK_EARLY = 2048 };
typedef struct sti_topk_early_candidates {
    uint32_t bound;
    int64_t blocks; /* that have been seen to, from the first one on */
    int64_t count[STI_TOPK_STREAMS];
    uint64_t list[STI_TOPK_STREAMS][STI_TOPK_EARLY];
} sti_topk_early_candidates;

/* The machine-dependent loops; begin and end are element indices. */
typedef struct sti_topk_ops {
    /* d[s - first] = best key of elements [s << a, (s + 1) << a) of the view, the last
     * one may be short, first <= s < last. */
    void (*delegates)(const sti_topk_view *v, int a, int64_t first, int64_t last,
                      uint32_t *d);
    /* d[2(s - first)], d[.. + 1]: best and second best key (0 where there is none);
     * position: of the best within its block. early: NULL, or its bound given; blocks
     * is 0 where there were too many elements, or nothing was caught. */
    void (*delegates2)(const sti_topk_view *v, int a, int64_t first, int64_t last,
                       uint32_t *d, uint16_t *position,
                       sti_topk_early_candidates *early);
    /* Pack the elements with lo <= key <= hi to out (room for all; nothing is written
     * behind the last one). Their count; *above += elements with key > hi. */
    int64_t (*collect)(const sti_topk_view *v, int64_t begin, int64_t end, uint32_t lo,
                       uint32_t hi, uint64_t *out, int64_t *above);
    /* Pack the elements with key >= lo, of a block with hardly any: no branch that they
     * decide, so that the next blocks' memory is not waited for. There is room for all
     * of the block, and it may be written to. */
    int64_t (*rare)(const sti_topk_view *v, int64_t begin, int64_t end, uint32_t lo,
                    uint64_t *out);
    /* As collect, without packing. */
    int64_t (*count)(const sti_topk_view *v, int64_t begin, int64_t end, uint32_t lo,
                     uint32_t hi, int64_t *above);
    /* The keys with lo <= key <= hi, in order; *above as in collect. Up to
     * STI_TOPK_SLACK more words may be written behind them. */
    int64_t (*keys)(const sti_topk_view *v, int64_t begin, int64_t end, uint32_t lo,
                    uint32_t hi, uint32_t *out, int64_t *above);
    /* A threshold in a list of bare keys that exactly `rank` of them are at or above,
     * or where equal keys forbid that, the rank-th largest. Their number. */
    uint32_t (*bisect)(const uint32_t *keys, int64_t count, int64_t rank,
                       int64_t *at_least);
    /* Index (plus base) and value of the elements with key >= lo; their count. */
    int64_t (*emit)(const sti_topk_view *v, int64_t begin, int64_t end, uint32_t lo,
                    int64_t base, int64_t *index_out, unsigned char *value_out);
    /* Fill in keys, best, high and low for the n elements of a view. */
    void (*short_row)(const sti_topk_view *v, sti_topk_short_row *b);
    /* For a view of at most STI_TOPK_TINY elements, or at most STI_TOPK_FEW winners:
     * short_row and winners in one. False where there is a key of at least `refused`
     * (0: none is): index[0] is then where the first is. NULL: short_row and winners do
     * it. */
    bool (*few)(const sti_topk_view *v, const sti_topk_short_row *b, uint32_t refused);
    /* The k winners of a short row, by ascending index. The same for all forms. */
    void (*winners)(const sti_topk_short_row *b);
    /* counts[(key - lo) >> shift]++ for lo <= key <= hi. */
    void (*histogram)(const sti_topk_view *v, int64_t begin, int64_t end, uint32_t lo,
                      uint32_t hi, int shift, uint32_t *counts);
} sti_topk_ops;

extern const sti_topk_ops *const sti_topk_ref[STI_TOPK_FORMS],
    *const sti_topk_avx2[STI_TOPK_FORMS], *const sti_topk_avx512[STI_TOPK_FORMS];
const sti_topk_ops *sti_topk_ops_now(sti_topk_form form);
/* One row of f32 with the words of desc checked, at most STI_TOPK_TINY of them, or
 * STI_TOPK_STRAIGHT where no more than STI_TOPK_FEW win; unsorted, -0 below +0.
 * False: there is a NaN, and nothing is done. */
bool sti_topk_straight_avx512(const stint_topk_desc *d, const void *x, int64_t *index,
                              void *values);

/* ---- memory: one layout function both counts and hands out ---- */

typedef struct sti_topk_layout {
    unsigned char *base; /* NULL: only count */
    size_t used_bytes;
    bool overflow;
} sti_topk_layout;

void *sti_topk_take(sti_topk_layout *layout, int64_t count, size_t each_bytes);

/* ---- packed elements (topk_cut.c) ---- */

/* Packed elements in ascending index order; runs follow each other likewise. */
typedef struct sti_topk_run {
    uint64_t *at;
    int64_t count;
    int64_t first, winners; /* of those that are emitted */
    int32_t piece;          /* of the view, that it came from */
} sti_topk_run;

enum { STI_TOPK_BINS = 2048 };

typedef struct sti_topk_cutter {
    uint64_t *spare; /* [spare_count] */
    int64_t spare_count;
    uint32_t *counts; /* [STI_TOPK_BINS] */
} sti_topk_cutter;

/* A value with exactly k of the runs' elements at or above it, 1 <= k <= total: radix
 * selection in place, from the highest bit in which they differ. The runs stay as they
 * are. */
uint64_t sti_topk_cut(const sti_topk_cutter *cutter, const sti_topk_run *runs,
                      int64_t run_count, int64_t k);
/* Rank-th largest (1 = largest) of `count` keys, which are reordered. */
uint32_t sti_topk_kth(uint32_t *keys, int64_t count, int64_t rank, uint32_t *counts);
/* Descending; `packed` is in ascending index order. other [count] is scratch. The
 * result is in the returned one of the two. */
uint64_t *sti_topk_sort(uint64_t *packed, uint64_t *other, int64_t count,
                        uint32_t *counts);

/* ---- planning (topk_plan.c) ---- */

typedef struct sti_topk_plan {
    stint_topk_method method;
    int64_t n, k; /* 1 <= k < n */
    sti_topk_form form;
    int exponent;      /* a: blocks of 2^a elements */
    int64_t blocks;    /* ceil(n / 2^a) */
    int64_t back;      /* pieces of the walk back to the blocks */
    int64_t pieces;    /* of a pass over the row */
    int64_t sample;    /* elements */
    int64_t sample_lo; /* rank in the sample of the lower bound */
    int64_t sample_hi; /* of the upper bound; 0: none */
    int64_t pool;      /* elements between the bounds that there is room for */
    double predicted_ns;
} sti_topk_plan;

/* Elements of a pool's segment, and how many are looked at between two checks. */
enum { STI_TOPK_SEGMENT = 8192, STI_TOPK_LOOK = 1024 };
enum { STI_TOPK_BACK_MAX = 8 }; /* pieces of a walk back */
/* Words that may be written behind a list of keys. */
enum { STI_TOPK_SLACK = 64 };
/* Shares of a list that threads go through side by side. */
enum { STI_TOPK_SHARES = 4 };
/* Words of each of the two lists that narrowing keeps. */
int64_t sti_topk_key_room(const sti_topk_plan *plan);
int64_t sti_topk_pool_segments(const sti_topk_plan *plan);
/* The first element of a piece of a pass over the row; plan->pieces: n. */
int64_t sti_topk_piece_begin(const sti_topk_plan *plan, int64_t piece);
/* Whether winners are caught during the pass that makes delegates (topk_catch.c):
 * sample_lo is then the rank of the bound in a piece, pool what there is room for. */
bool sti_topk_catches(const sti_topk_plan *plan);
enum { STI_TOPK_CATCH_SEGMENT = 1024 }; /* elements */
int64_t sti_topk_catch_segments(const sti_topk_plan *plan);
/* Blocks of a piece of the pass that makes delegates. */
int64_t sti_topk_pass_blocks(const sti_topk_plan *plan);
/* Candidates that a piece of the walk back to the blocks has room for. */
int64_t sti_topk_back_elements(const sti_topk_plan *plan);

/* What is in stint_topk_costs, in nanoseconds. */
typedef struct sti_topk_costs {
    double read_near, read_far; /* 64 bytes looked at once: from cache, from memory */
    double delegate;            /* one more block in the first pass */
    double delegate2_near;      /* as read_near, for the two best */
    double delegate2;           /* as delegate, for the two best */
    double select;              /* an element of a list, packed and selected from */
    double block, line;         /* go back to a block; each 64 bytes of it */
    double sample;              /* one sampled element */
    double scan;                /* 64 bytes scanned by a threshold */
    double emit;                /* one winner */
    double histogram;           /* one element counted */
} sti_topk_costs;

void sti_topk_costs_builtin(sti_topk_costs *costs_out);
static inline sti_topk_costs sti_topk_costs_of(const stint_topk_costs *given)
{
    sti_topk_costs costs;
    memcpy(&costs, given, sizeof costs);
    return costs;
}

sti_topk_plan sti_topk_plan_make(sti_topk_form form, int64_t n, int64_t k,
                                 stint_topk_method method, int exponent,
                                 const sti_topk_costs *costs);

/* ---- one row (topk_row.c and its parts) ---- */

struct sti_topk_tally; /* topk_catch.h */

typedef struct sti_topk_scratch {
    int64_t *above, *inside, *offset; /* [pieces + 1] */
    uint32_t *histogram;              /* [pieces, STI_TOPK_BINS] */
    uint32_t *sample;                 /* [sample] */
    uint32_t *keys;                   /* [2][key room] */
    uint64_t *pool;                   /* [segments, STI_TOPK_SEGMENT] */
    sti_topk_run *runs, *ordered;     /* [segments] */
    sti_topk_cutter cutter;
    uint32_t *delegates;
    uint16_t *position;
    struct sti_topk_tally *caught; /* [pieces + 1] */
    uint64_t *chosen; /* [k + 1]: delegates that are winners among themselves; the last
                         one again */
    struct sti_topk_scratch *inner; /* to choose them */
    sti_topk_plan inner_plan;
} sti_topk_scratch;

sti_topk_scratch *sti_topk_scratch_take(sti_topk_layout *layout,
                                        const sti_topk_plan *plan);

/* Where winners go, by ascending index: as index and value, or packed. */
typedef struct sti_topk_sink {
    int64_t *index;        /* [k] */
    unsigned char *values; /* [k] or NULL */
    int64_t base;
    uint64_t *packed; /* [k], instead of index and values, if not NULL */
} sti_topk_sink;

typedef struct sti_topk_job {
    const sti_team *team;
    const sti_topk_plan *plan;
    const sti_topk_ops *ops;
    const sti_topk_view *view;
    sti_topk_scratch *scratch;
    const sti_topk_sink *sink;
} sti_topk_job;

/* The plan.k best of the view, 1 <= k < n. */
void sti_topk_row(const sti_topk_job *job);
/* Index and value of packed elements, in their order; packed NULL: the values of the
 * sink's indices. */
void sti_topk_decode(const sti_team *team, const sti_topk_view *view,
                     const uint64_t *packed, int64_t count, const sti_topk_sink *sink);
/* Elements of the runs at or above `cut`, `total` of them, to the sink. */
void sti_topk_emit_runs(const sti_topk_job *job, sti_topk_run *runs, int64_t run_count,
                        uint64_t cut);
/* Winners out of the row in a second pass: key >= `key` up to element `last`, > `key`
 * behind it; a piece's go to the sink from scratch->offset of it on. */
#define STI_TOPK_TO_END (INT64_MAX - 1)
void sti_topk_emit_pieces(const sti_topk_job *job, uint32_t key, int64_t last);
/* Index of the element that is number `rank` (from 1) of those with this key, of which
 * scratch->inside counts those of each piece. */
int64_t sti_topk_find_tie(const sti_topk_job *job, uint32_t key, int64_t rank);
/* Elements of the row above `key`, and `ties` (0: all) of those equal to it: k in all.
 * A row of one piece. */
void sti_topk_emit_row(const sti_topk_job *job, uint32_t key, int64_t ties);
/* Values of `count` indices. */
void sti_topk_put_values(const sti_topk_view *view, int64_t base, const int64_t *index,
                         int64_t count, unsigned char *values);

/* ---- a short row by itself (topk_short_row.c) ---- */

static inline size_t sti_topk_winners_bytes(int64_t k)
{
    return ((size_t)k * sizeof(uint64_t) + 63) & ~(size_t)63;
}

static inline size_t sti_topk_keys_bytes(int64_t n)
{
    const int64_t words = (n + STI_TOPK_LANES + STI_TOPK_SLACK) & ~INT64_C(15);
    return ((size_t)words * sizeof(uint32_t) + 63) & ~(size_t)63;
}

static inline size_t sti_topk_short_row_bytes(int64_t n, int64_t k, bool sorted)
{
    const size_t sort =
        2 * sti_topk_winners_bytes(k) + STI_TOPK_BINS * sizeof(uint32_t);
    return 2 * sti_topk_keys_bytes(n) + (sorted ? sort : 0);
}

/* Given n, k, base, index, sorted, refuse_nan, memory and given. False where there is a
 * NaN that is refused: index[0] is then where. */
bool sti_topk_short_row_select(const sti_topk_view *view, sti_topk_short_row *b);
/* The k-th key of the row, or a threshold with exactly k at or above it; *ties_out of
 * its equals are among the k, 0: all. The row is too long for topk_short_row.c. */
uint32_t sti_topk_narrow(const sti_topk_job *job, int64_t *ties_out);
bool sti_topk_narrows(const sti_topk_plan *plan);
/* Methods. A threshold guessed from a sample that does not hold goes on by radix. */
void sti_topk_by_delegates(const sti_topk_job *job);
void sti_topk_by_narrowing(const sti_topk_job *job);
void sti_topk_by_short_row(const sti_topk_job *job);
void sti_topk_by_threshold(const sti_topk_job *job);
void sti_topk_by_radix(const sti_topk_job *job);

static inline int64_t sti_topk_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t sti_topk_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t sti_topk_ceil(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

#endif
