/* Learning byte pairs: the most frequent pair of neighbours in the words of a text
 * becomes a token, again and again (Sennrich et al. 2016). Counts are integers and ties
 * go to the lower pair, so the result is a function of the text alone.
 *
 * A merge visits the places of its pair and no others, and changes counts by what it
 * did there: O(n log n) for a text of n bytes, whatever its words are. Memory is at
 * most about 20 bytes a byte of different words (learn.h). */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "data/learn.h"
#include "data/tokenizer.h"

/* What a merge did beside a token: occurrences of it with its neighbour. */
typedef struct beside {
    int64_t left_times;  /* it stands before the new token, and stood before its left */
    int64_t right_times; /* it stands after the new token */
    int64_t gone_times;  /* it stood after its right */
    uint32_t left_count, right_count; /* places; later: positions filled in */
    int32_t left_pair, right_pair;    /* records of what is new, or -1 */
} beside;

typedef struct learner {
    stint_tokenizer *t;
    sti_learn_words words;
    sti_learn_pairs pairs;
    sti_text_watch watch;
    beside *beside; /* of each token; all zero between merges */
    int64_t beside_capacity;
    int32_t *touched; /* tokens that are beside this merge */
    int64_t touched_count, touched_capacity;
} learner;

/* ---- the pairs of bytes, to begin with ---- */

typedef struct byte_pairs {
    int64_t times[256][256];
    uint32_t count[256][256]; /* places; later: positions filled in */
    int32_t pair[256][256];
} byte_pairs;

static stint_status add_byte_pairs(learner *l, byte_pairs *b)
{
    stint_status st = STINT_OK;
    for (int32_t left = 0; left < 256; left++)
        for (int32_t right = 0; right < 256 && st == STINT_OK; right++) {
            b->pair[left][right] = -1;
            if (b->times[left][right] >= STI_LEARN_FEWEST)
                st = sti_learn_pairs_add(&l->pairs, left, right, b->times[left][right],
                                         b->count[left][right], &b->pair[left][right]);
            b->count[left][right] = 0;
        }
    return st;
}

static stint_status count_byte_pairs(learner *l)
{
    const int32_t *slot = l->words.slot;
    byte_pairs *b = sti_alloc(sizeof *b, "byte pairs");
    if (!b)
        return STINT_E_MEMORY;
    for (int64_t i = 1; i < l->words.count; i++) {
        const int32_t left = sti_slot_token(&l->words, i - 1);
        if (slot[i] & STI_SLOT_FIRST)
            continue;
        b->times[left][slot[i]] += sti_learn_words_times(&l->words, i);
        b->count[left][slot[i]]++;
    }
    const stint_status st = add_byte_pairs(l, b);
    for (int64_t i = 1; i < l->words.count && st == STINT_OK; i++) {
        const int32_t left = sti_slot_token(&l->words, i - 1);
        const int32_t pair = slot[i] & STI_SLOT_FIRST ? -1 : b->pair[left][slot[i]];
        if (pair >= 0)
            l->pairs.position[l->pairs.pair[pair].first +
                              (int64_t)b->count[left][slot[i]]++] = (uint32_t)(i - 1);
    }
    sti_free(b);
    return st;
}

/* ---- a merge ---- */

/* The counts beside the merge of a token; it is remembered for later. */
static beside *touch(learner *l, int32_t token)
{
    beside *b = &l->beside[token];
    if (b->left_times == 0 && b->right_times == 0 && b->gone_times == 0)
        l->touched[l->touched_count++] = token;
    return b;
}

/* Merge a pair wherever it stands, from left to right. Its positions become those where
 * it did, and their number is returned. */
static uint32_t join_all(learner *l, const sti_learn_pair *pair, int32_t result)
{
    sti_learn_words *w = &l->words;
    uint32_t *position = l->pairs.position + pair->first;
    uint32_t joined = 0;
    for (uint32_t i = 0; i < pair->count; i++) {
        const int64_t at = position[i];
        const int64_t next = sti_slot_pair(w, at, pair->left, pair->right);
        if (next < 0)
            continue;
        const int64_t times = sti_learn_words_times(w, at);
        const int64_t before = sti_slot_before(w, at), after = sti_slot_next(w, next);
        if (before >= 0 && sti_slot_token(w, before) != result) {
            beside *b = touch(l, sti_slot_token(w, before));
            b->left_times += times;
            b->left_count++;
        }
        if (after >= 0)
            touch(l, sti_slot_token(w, after))->gone_times += times;
        sti_slot_join(w, at, next, result);
        position[joined++] = (uint32_t)at;
    }
    return joined;
}

/* What stands after the new token is known when all of them are there. */
static void count_after(learner *l, const sti_learn_pair *pair, uint32_t joined)
{
    sti_learn_words *w = &l->words;
    const uint32_t *position = l->pairs.position + pair->first;
    for (uint32_t i = 0; i < joined; i++) {
        const int64_t after = sti_slot_next(w, position[i]);
        if (after < 0)
            continue;
        beside *b = touch(l, sti_slot_token(w, after));
        b->right_times += sti_learn_words_times(w, position[i]);
        b->right_count++;
    }
}

static stint_status add_new(learner *l, int32_t left, int32_t right, int64_t times,
                            uint32_t *count, int32_t *pair_out)
{
    stint_status st = STINT_OK;
    *pair_out = -1;
    if (times >= STI_LEARN_FEWEST)
        st = sti_learn_pairs_add(&l->pairs, left, right, times, *count, pair_out);
    *count = 0;
    return st;
}

/* Counts of the pairs that were there fall, those that are new get records. */
static stint_status change_counts(learner *l, const sti_learn_pair *merged,
                                  int32_t result)
{
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < l->touched_count && st == STINT_OK; i++) {
        const int32_t token = l->touched[i];
        beside *b = &l->beside[token];
        if (b->left_times > 0)
            sti_learn_pairs_take(&l->pairs, token, merged->left, b->left_times);
        if (b->gone_times > 0)
            sti_learn_pairs_take(&l->pairs, merged->right, token, b->gone_times);
        st = add_new(l, token, result, b->left_times, &b->left_count, &b->left_pair);
        if (st == STINT_OK)
            st = add_new(l, result, token, b->right_times, &b->right_count,
                         &b->right_pair);
    }
    return st;
}

static void put_position(learner *l, int32_t pair, uint32_t *filled, int64_t at)
{
    if (pair >= 0)
        l->pairs.position[l->pairs.pair[pair].first + (int64_t)(*filled)++] =
            (uint32_t)at;
}

/* Where the new pairs stand, in ascending order since the merges are. */
static void fill_positions(learner *l, const sti_learn_pair *merged, uint32_t joined,
                           int32_t result)
{
    const sti_learn_words *w = &l->words;
    for (uint32_t i = 0; i < joined; i++) {
        const int64_t at = l->pairs.position[(int64_t)merged->first + i];
        const int64_t before = sti_slot_before(w, at), after = sti_slot_next(w, at);
        if (before >= 0 && sti_slot_token(w, before) != result) {
            beside *b = &l->beside[sti_slot_token(w, before)];
            put_position(l, b->left_pair, &b->left_count, before);
        }
        if (after >= 0) {
            beside *b = &l->beside[sti_slot_token(w, after)];
            put_position(l, b->right_pair, &b->right_count, at);
        }
    }
}

static size_t learner_bytes(const learner *l)
{
    return (size_t)l->words.count * sizeof *l->words.slot +
           sti_learn_pairs_bytes(&l->pairs) +
           (size_t)l->t->info.vocabulary * (sizeof *l->beside + sizeof *l->touched);
}

/* The new token, with working space for it. */
static stint_status add_token(learner *l, const sti_learn_pair *pair)
{
    stint_status st = STINT_OK;
    const int32_t result = l->t->info.vocabulary;
    STI_TRY(sti_learn_room((void **)&l->beside, result + 1, &l->beside_capacity,
                           sizeof *l->beside));
    STI_TRY(sti_learn_room((void **)&l->touched, result + 1, &l->touched_capacity,
                           sizeof *l->touched));
    STI_TRY(sti_tokenizer_add_joined(l->t, pair->left, pair->right));
    st = sti_tokenizer_add_merge(l->t, pair->left, pair->right, result);
out:
    return st;
}

static stint_status merge_pair(learner *l, int32_t best, int32_t vocabulary)
{
    const sti_learn_pair merged = l->pairs.pair[best]; /* records may move */
    const int32_t result = l->t->info.vocabulary;
    stint_status st = add_token(l, &merged);
    if (st != STINT_OK)
        return st;
    l->pairs.pair[best].times = 0; /* it stands nowhere from here on */
    const uint32_t joined = join_all(l, &merged, result);
    count_after(l, &merged, joined);
    st =
        sti_text_watch_look(&l->watch, learner_bytes(l) + 2 * joined * sizeof(uint32_t),
                            "tokens", result, vocabulary);
    if (st == STINT_OK)
        st = change_counts(l, &merged, result);
    if (st == STINT_OK)
        fill_positions(l, &merged, joined, result);
    for (int64_t i = 0; i < l->touched_count; i++)
        l->beside[l->touched[i]] = (beside){0};
    l->touched_count = 0;
    return st == STINT_OK ? sti_learn_pairs_collect(&l->pairs, &l->words) : st;
}

/* ---- all of it ---- */

/* In the order of GPT-2's stand-ins: printable bytes first. */
static stint_status add_alphabet(stint_tokenizer *t)
{
    int32_t code_point[256];
    sti_byte_alphabet(code_point);
    stint_status status = STINT_OK;
    for (int32_t point = 0; point < 512 && status == STINT_OK; point++)
        for (int b = 0; b < 256 && status == STINT_OK; b++)
            if (code_point[b] == point) {
                t->byte_token[b] = t->info.vocabulary;
                status = sti_tokenizer_add_token(t, (char[]){(char)b}, 1);
            }
    return status;
}

static stint_status learn(learner *l, int32_t vocabulary, const char *text,
                          size_t n_bytes)
{
    stint_status st =
        sti_learn_words_init(text, n_bytes, l->t->byte_token, &l->watch, &l->words);
    if (st == STINT_OK)
        st =
            sti_text_watch_look(&l->watch, 2 * (size_t)l->words.count * sizeof(int32_t),
                                "tokens", l->t->info.vocabulary, vocabulary);
    if (st == STINT_OK)
        st = count_byte_pairs(l);
    while (l->t->info.vocabulary < vocabulary && st == STINT_OK) {
        const int32_t best = sti_learn_pairs_best(&l->pairs);
        if (best < 0)
            break;
        st = merge_pair(l, best, vocabulary);
    }
    return st;
}

stint_status sti_bpe_learn(stint_tokenizer *t, int32_t vocabulary, const char *text,
                           size_t n_bytes, size_t budget_bytes)
{
    if (vocabulary < 256)
        return sti_fail(
            STINT_E_USAGE,
            "a byte-pair vocabulary of %d tokens: wanted at least 256, one a "
            "byte",
            vocabulary);
    learner l = {.t = t};
    sti_text_watch_begin(&l.watch, "learning byte pairs", budget_bytes);
    stint_status status = add_alphabet(t);
    if (status == STINT_OK)
        status = learn(&l, vocabulary, text, n_bytes);
    sti_learn_pairs_fini(&l.pairs);
    sti_learn_words_fini(&l.words);
    sti_free(l.beside);
    sti_free(l.touched);
    return status;
}
