/* Inside learning byte pairs: the different words of a text, and where their pairs
 * stand. Shared by learn_*.c and tokenizer_learn.c. */
#ifndef STI_DATA_LEARN_H
#define STI_DATA_LEARN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/text_watch.h"

/* Room for `wanted` items of an array that doubles. */
stint_status sti_learn_room(void **array, int64_t wanted, int64_t *capacity,
                            size_t each_bytes);

/* ---- words ---- */

/* The different words of a text one after the other, those that occur as often side by
 * side. A byte has a slot. What has merged is a token at its first slot; of the slots
 * that are covered, the second and the last hold the length, negated. So both
 * neighbours are found without links, and a slot says by its sign whether a token
 * begins there. */
typedef struct sti_learn_words {
    int32_t *slot;
    int64_t count;
    /* Words that occur `times` often end before slot `end`; ascending. */
    struct sti_learn_group {
        int64_t end, times;
    } * group;
    int64_t group_count, group_capacity;
    int64_t at_group; /* of the position last asked for */
} sti_learn_words;

/* `byte_token`: the token of each byte. STINT_E_UNSUPPORTED: the different words are
 * longer than positions count. */
stint_status sti_learn_words_init(const char *text, size_t n_bytes,
                                  const int32_t byte_token[256], sti_text_watch *watch,
                                  sti_learn_words *words);
void sti_learn_words_fini(sti_learn_words *words);
/* How often the word of a slot occurs. Fastest when slots ascend. */
int64_t sti_learn_words_times(sti_learn_words *words, int64_t at);

#define STI_SLOT_FIRST (1 << 30) /* a word begins there */

static inline int32_t sti_slot_token(const sti_learn_words *w, int64_t at)
{
    return w->slot[at] & (STI_SLOT_FIRST - 1);
}

/* The slot after a token, of whatever word. */
static inline int64_t sti_slot_end(const sti_learn_words *w, int64_t at)
{
    const int64_t next = at + 1;
    return next < w->count && w->slot[next] < 0 ? at - w->slot[next] : next;
}

/* The token after this one in its word; -1: none. */
static inline int64_t sti_slot_next(const sti_learn_words *w, int64_t at)
{
    const int64_t next = sti_slot_end(w, at);
    return next < w->count && !(w->slot[next] & STI_SLOT_FIRST) ? next : -1;
}

/* The token before this one in its word; -1: none. */
static inline int64_t sti_slot_before(const sti_learn_words *w, int64_t at)
{
    if (w->slot[at] & STI_SLOT_FIRST)
        return -1;
    return w->slot[at - 1] < 0 ? at + w->slot[at - 1] : at - 1;
}

/* Does this pair stand at a slot? Its right one's slot, or -1. */
static inline int64_t sti_slot_pair(const sti_learn_words *w, int64_t at, int32_t left,
                                    int32_t right)
{
    if (w->slot[at] < 0 || sti_slot_token(w, at) != left)
        return -1;
    const int64_t next = sti_slot_next(w, at);
    return next >= 0 && sti_slot_token(w, next) == right ? next : -1;
}

/* The tokens at `at` and `next` become one. */
static inline void sti_slot_join(sti_learn_words *w, int64_t at, int64_t next,
                                 int32_t token)
{
    const int64_t end = sti_slot_end(w, next);
    w->slot[at] = token | (w->slot[at] & STI_SLOT_FIRST);
    w->slot[next] = -1;
    w->slot[at + 1] = w->slot[end - 1] = -(int32_t)(end - at);
}

/* ---- pairs ---- */

enum { STI_LEARN_FEWEST = 2 }; /* a pair that occurs once is not worth a token */

/* All occurrences of a pair begin in one merge, that of the newer of its tokens: from
 * then on there are only fewer. So a pair that begins with less than STI_LEARN_FEWEST
 * needs no record, and a list of positions is made once, in its final size; what it
 * holds too much is seen by a look at the slots. */
typedef struct sti_learn_pair {
    int32_t left, right;
    int64_t times;         /* occurrences, with those of equal words */
    uint32_t first, count; /* in `position`, ascending slots of `left` */
} sti_learn_pair;

typedef struct sti_learn_pairs {
    sti_learn_pair *pair; /* in the order of `first` */
    int64_t count, capacity;
    int32_t *index; /* open addressing to pairs; 0: free, else one more */
    int64_t slots;
    uint32_t *position;
    int64_t used, position_capacity;
    /* Most frequent first, ties to the lower pair; `times` may be out of date. */
    struct sti_learn_entry {
        int64_t times;
        int32_t pair;
    } * heap;
    int64_t heaped, heap_capacity;
    int64_t kept_pairs, kept_positions; /* after the last sti_learn_pairs_collect */
} sti_learn_pairs;

void sti_learn_pairs_fini(sti_learn_pairs *pairs);
size_t sti_learn_pairs_bytes(const sti_learn_pairs *pairs);
/* A record, with room for `count` positions that the caller fills in. */
stint_status sti_learn_pairs_add(sti_learn_pairs *pairs, int32_t left, int32_t right,
                                 int64_t times, int64_t count, int32_t *pair_out);
/* So many occurrences less of a pair that may have no record. */
void sti_learn_pairs_take(sti_learn_pairs *pairs, int32_t left, int32_t right,
                          int64_t times);
/* The most frequent pair, taken out of the heap, or -1. */
int32_t sti_learn_pairs_best(sti_learn_pairs *pairs);
/* Throw away, when it is worth it, pairs that can no longer merge and positions where a
 * pair no longer stands. Numbers of pairs change. */
stint_status sti_learn_pairs_collect(sti_learn_pairs *pairs,
                                     const sti_learn_words *words);

#endif
