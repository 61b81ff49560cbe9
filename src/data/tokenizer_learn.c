/* Learning byte pairs: the most frequent pair of neighbours in the words of a text
 * becomes a token, again and again (Sennrich et al. 2016). Counts are integers and ties
 * go to the lower pair, so the result is a function of the text alone. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "data/tokenizer.h"

enum {
    LONGEST_WORD = 256, /* what is longer is learned from in pieces */
    FEWEST = 2          /* a pair that occurs once is not worth a token */
};

/* A distinct word: its tokens so far, and how often it occurs. */
typedef struct learn_word {
    int64_t first; /* in `tokens` */
    int64_t times;
    int32_t count, next_same_hash;
} learn_word;

typedef struct learn_pair {
    int32_t left, right;
    int64_t times;
    int64_t queued; /* `times` when last put in the heap; 0: not there */
    int32_t *words; /* where it may occur, ascending */
    int32_t word_count, word_capacity;
} learn_pair;

typedef struct learner {
    stint_tokenizer *t;
    learn_word *words;
    int64_t word_count, word_capacity;
    int32_t *tokens;
    int64_t token_count, token_capacity;
    sti_pair_map word_of; /* hash of a word's bytes to the first such word */
    learn_pair *pairs;
    int64_t pair_count, pair_capacity;
    sti_pair_map pair_of;
    struct learn_entry {
        int64_t times;
        int32_t pair;
    } * heap;
    int64_t heaped, heap_capacity;
} learner;

/* Room for one more of an array that doubles. */
static stint_status room(void **array, int64_t used, int64_t *capacity, size_t each)
{
    if (used < *capacity)
        return STINT_OK;
    const int64_t wanted = *capacity ? 2 * *capacity : 1024;
    void *more = sti_realloc(*array, (size_t)wanted * each, "byte pairs");
    if (!more)
        return STINT_E_MEMORY;
    *array = more;
    *capacity = wanted;
    return STINT_OK;
}

/* ---- words ---- */

static uint64_t hash_of(const char *bytes, size_t n_bytes)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n_bytes; i++)
        h = (h ^ (uint8_t)bytes[i]) * UINT64_C(0x100000001b3);
    return h >> 1; /* a map's key is below 2^64 - 1 */
}

static bool same_word(const learner *l, const learn_word *word, const char *bytes,
                      size_t n_bytes)
{
    if ((size_t)word->count != n_bytes)
        return false;
    for (size_t i = 0; i < n_bytes; i++)
        if (l->tokens[word->first + (int64_t)i] != l->t->byte_token[(uint8_t)bytes[i]])
            return false;
    return true;
}

static stint_status add_word(learner *l, const char *bytes, size_t n_bytes)
{
    const uint64_t hash = hash_of(bytes, n_bytes);
    const int32_t head = sti_pair_map_find(&l->word_of, hash);
    for (int32_t i = head; i >= 0; i = l->words[i].next_same_hash)
        if (same_word(l, &l->words[i], bytes, n_bytes)) {
            l->words[i].times++;
            return STINT_OK;
        }
    stint_status status =
        room((void **)&l->words, l->word_count, &l->word_capacity, sizeof *l->words);
    if (status != STINT_OK)
        return status;
    if (l->word_count == INT32_MAX)
        return sti_fail(STINT_E_UNSUPPORTED, "more than %d different words", INT32_MAX);
    l->words[l->word_count] = (learn_word){.first = l->token_count,
                                           .times = 1,
                                           .count = (int32_t)n_bytes,
                                           .next_same_hash = head};
    for (size_t i = 0; i < n_bytes; i++) {
        status = room((void **)&l->tokens, l->token_count, &l->token_capacity,
                      sizeof *l->tokens);
        if (status != STINT_OK)
            return status;
        l->tokens[l->token_count++] = l->t->byte_token[(uint8_t)bytes[i]];
    }
    return sti_pair_map_put(&l->word_of, hash, (int32_t)l->word_count++);
}

static stint_status collect_words(learner *l, const char *text, size_t n_bytes)
{
    stint_status status = STINT_OK;
    for (size_t at = 0, end; at < n_bytes && status == STINT_OK; at = end) {
        end = sti_word_end(text, n_bytes, at);
        if (end - at > LONGEST_WORD)
            end = at + LONGEST_WORD;
        status = add_word(l, text + at, end - at);
    }
    return status;
}

/* ---- the heap of pairs: most frequent first, ties to the lower pair ---- */

static bool comes_before(const learner *l, struct learn_entry a, struct learn_entry b)
{
    const learn_pair *p = &l->pairs[a.pair], *q = &l->pairs[b.pair];
    if (a.times != b.times)
        return a.times > b.times;
    return p->left != q->left ? p->left < q->left : p->right < q->right;
}

static stint_status queue(learner *l, int32_t pair)
{
    const struct learn_entry e = {l->pairs[pair].times, pair};
    if (e.times < FEWEST || e.times == l->pairs[pair].queued)
        return STINT_OK;
    stint_status status =
        room((void **)&l->heap, l->heaped, &l->heap_capacity, sizeof *l->heap);
    if (status != STINT_OK)
        return status;
    int64_t i = l->heaped++;
    for (; i > 0 && comes_before(l, e, l->heap[(i - 1) / 2]); i = (i - 1) / 2)
        l->heap[i] = l->heap[(i - 1) / 2];
    l->heap[i] = e;
    l->pairs[pair].queued = e.times;
    return STINT_OK;
}

static struct learn_entry pop(learner *l)
{
    const struct learn_entry top = l->heap[0], last = l->heap[--l->heaped];
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < l->heaped; i = child) {
        if (child + 1 < l->heaped &&
            comes_before(l, l->heap[child + 1], l->heap[child]))
            child++;
        if (!comes_before(l, l->heap[child], last))
            break;
        l->heap[i] = l->heap[child];
    }
    l->heap[i] = last;
    return top;
}

/* The most frequent pair, or -1. A count that has changed since it was queued goes back
 * with its new value. */
static int32_t most_frequent(learner *l, stint_status *status)
{
    while (l->heaped > 0 && *status == STINT_OK) {
        const struct learn_entry e = pop(l);
        learn_pair *pair = &l->pairs[e.pair];
        if (e.times == pair->times)
            return e.pair;
        if (e.times == pair->queued)
            pair->queued = 0;
        *status = queue(l, e.pair);
    }
    return -1;
}

/* ---- counts ---- */

static stint_status find_pair(learner *l, int32_t left, int32_t right, int32_t *out)
{
    const uint64_t key = sti_pair_key(left, right);
    *out = sti_pair_map_find(&l->pair_of, key);
    if (*out >= 0)
        return STINT_OK;
    stint_status status =
        room((void **)&l->pairs, l->pair_count, &l->pair_capacity, sizeof *l->pairs);
    if (status != STINT_OK)
        return status;
    l->pairs[l->pair_count] = (learn_pair){.left = left, .right = right};
    *out = (int32_t)l->pair_count++;
    return sti_pair_map_put(&l->pair_of, key, *out);
}

static stint_status note_word(learn_pair *pair, int32_t word)
{
    if (pair->word_count > 0 && pair->words[pair->word_count - 1] == word)
        return STINT_OK;
    int64_t capacity = pair->word_capacity;
    stint_status status =
        room((void **)&pair->words, pair->word_count, &capacity, sizeof *pair->words);
    pair->word_capacity = (int32_t)capacity;
    if (status == STINT_OK)
        pair->words[pair->word_count++] = word;
    return status;
}

/* Count the pairs of a word `times` often (less than 0: take them back). */
static stint_status count_word(learner *l, int32_t word, int64_t times)
{
    const learn_word *w = &l->words[word];
    stint_status status = STINT_OK;
    for (int32_t i = 0; i + 1 < w->count && status == STINT_OK; i++) {
        const int32_t *token = l->tokens + w->first + i;
        int32_t pair;
        status = find_pair(l, token[0], token[1], &pair);
        if (status != STINT_OK)
            break;
        l->pairs[pair].times += times;
        if (times > 0)
            status = note_word(&l->pairs[pair], word);
    }
    return status;
}

static stint_status queue_word(learner *l, int32_t word)
{
    const learn_word *w = &l->words[word];
    stint_status status = STINT_OK;
    for (int32_t i = 0; i + 1 < w->count && status == STINT_OK; i++) {
        const int32_t *token = l->tokens + w->first + i;
        status =
            queue(l, sti_pair_map_find(&l->pair_of, sti_pair_key(token[0], token[1])));
    }
    return status;
}

static bool join(learner *l, int32_t word, int32_t left, int32_t right, int32_t result)
{
    learn_word *w = &l->words[word];
    int32_t *token = l->tokens + w->first;
    int32_t to = 0;
    for (int32_t i = 0; i < w->count; i++) {
        const bool hit = i + 1 < w->count && token[i] == left && token[i + 1] == right;
        token[to++] = hit ? result : token[i];
        i += hit;
    }
    const bool changed = to < w->count;
    w->count = to;
    return changed;
}

/* Take a word's pairs out, merge, count it anew. */
static stint_status merge_word(learner *l, int32_t word, const learn_pair *merged,
                               int32_t result)
{
    const int64_t times = l->words[word].times;
    stint_status status = count_word(l, word, -times);
    if (status != STINT_OK)
        return status;
    (void)join(l, word, merged->left, merged->right, result);
    return count_word(l, word, times);
}

static stint_status merge_pair(learner *l, int32_t best)
{
    stint_tokenizer *t = l->t;
    const learn_pair merged = l->pairs[best]; /* `pairs` may move */
    const int32_t result = t->info.vocabulary;
    size_t left_bytes, right_bytes;
    char bytes[2 * LONGEST_WORD];
    memcpy(bytes, stint_tokenizer_token(t, merged.left, &left_bytes),
           (size_t)(t->start[merged.left + 1] - t->start[merged.left]));
    const char *right = stint_tokenizer_token(t, merged.right, &right_bytes);
    memcpy(bytes + left_bytes, right, right_bytes);
    l->pairs[best].words = NULL; /* it occurs no more: its list is ours */
    l->pairs[best].word_count = l->pairs[best].word_capacity = 0;
    stint_status status = sti_tokenizer_add_token(t, bytes, left_bytes + right_bytes);
    if (status == STINT_OK)
        status = sti_tokenizer_add_merge(t, merged.left, merged.right, result);
    for (int32_t i = 0; i < merged.word_count && status == STINT_OK; i++)
        status = merge_word(l, merged.words[i], &merged, result);
    for (int32_t i = 0; i < merged.word_count && status == STINT_OK; i++)
        status = queue_word(l, merged.words[i]);
    sti_free(merged.words);
    return status;
}

static stint_status add_alphabet(stint_tokenizer *t)
{
    /* In the order of GPT-2's stand-ins: printable bytes first. */
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
    stint_status status = collect_words(l, text, n_bytes);
    for (int64_t i = 0; i < l->word_count && status == STINT_OK; i++)
        status = count_word(l, (int32_t)i, l->words[i].times);
    for (int64_t i = 0; i < l->pair_count && status == STINT_OK; i++)
        status = queue(l, (int32_t)i);
    while (l->t->info.vocabulary < vocabulary && status == STINT_OK) {
        const int32_t best = most_frequent(l, &status);
        if (best < 0)
            break;
        status = merge_pair(l, best);
    }
    return status;
}

stint_status sti_bpe_learn(stint_tokenizer *t, int32_t vocabulary, const char *text,
                           size_t n_bytes)
{
    if (vocabulary < 256)
        return sti_fail(
            STINT_E_USAGE,
            "a byte-pair vocabulary of %d tokens: wanted at least 256, one a "
            "byte",
            vocabulary);
    learner l = {.t = t};
    stint_status status = add_alphabet(t);
    if (status == STINT_OK)
        status = learn(&l, vocabulary, text, n_bytes);
    for (int64_t i = 0; i < l.pair_count; i++)
        sti_free(l.pairs[i].words);
    sti_free(l.pairs);
    sti_free(l.words);
    sti_free(l.tokens);
    sti_free(l.heap);
    sti_pair_map_fini(&l.word_of);
    sti_pair_map_fini(&l.pair_of);
    return status;
}
