/* Encoding by byte pairs: in a word, the pair with the lowest rank merges first, the
 * leftmost of equal ones, until no pair has a rank (Sennrich et al. 2016). */
#include <string.h>

#include "data/tokenizer.h"

/* Words longer than this use a heap: a line of a million equal letters is a word too.
 */
enum { SCAN_TOKENS = 48 };

static void merge_scan(const stint_tokenizer *t, int32_t *token, int64_t *count)
{
    int64_t n = *count;
    while (n > 1) {
        int32_t best = -1;
        int64_t at = 0;
        for (int64_t i = 0; i + 1 < n; i++) {
            const int32_t rank =
                sti_pair_map_find(&t->rank, sti_pair_key(token[i], token[i + 1]));
            if (rank >= 0 && (best < 0 || rank < best)) {
                best = rank;
                at = i;
            }
        }
        if (best < 0)
            break;
        token[at] = t->merge[best][2];
        memmove(token + at + 1, token + at + 2, (size_t)(n - at - 2) * sizeof *token);
        n--;
    }
    *count = n;
}

/* ---- long words ---- */

/* A possible merge of what stands at `at` with its successor; stale when either has
 * changed since. */
typedef struct candidate {
    int32_t rank, left, right;
    int64_t at;
} candidate;

typedef struct long_word {
    const stint_tokenizer *t;
    int32_t *token;         /* -1: merged away */
    int64_t *next, *before; /* -1: none */
    candidate *heap;
    int64_t heaped;
} long_word;

static bool comes_before(const candidate *a, const candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_push(long_word *w, int64_t at)
{
    const int64_t next = w->next[at];
    if (next < 0)
        return;
    candidate c = {.left = w->token[at], .right = w->token[next], .at = at};
    c.rank = sti_pair_map_find(&w->t->rank, sti_pair_key(c.left, c.right));
    if (c.rank < 0)
        return;
    int64_t i = w->heaped++;
    for (; i > 0 && comes_before(&c, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = c;
}

static candidate heap_pop(long_word *w)
{
    const candidate top = w->heap[0], last = w->heap[--w->heaped];
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < w->heaped; i = child) {
        if (child + 1 < w->heaped && comes_before(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (!comes_before(&w->heap[child], &last))
            break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    return top;
}

static void merge_at(long_word *w, const candidate *c)
{
    const int64_t gone = w->next[c->at], after = w->next[gone];
    w->token[c->at] = w->t->merge[c->rank][2];
    w->token[gone] = -1;
    w->next[c->at] = after;
    if (after >= 0)
        w->before[after] = c->at;
    if (w->before[c->at] >= 0)
        heap_push(w, w->before[c->at]);
    heap_push(w, c->at);
}

static stint_status merge_heap(const stint_tokenizer *t, int32_t *token, int64_t *count)
{
    const int64_t n = *count;
    long_word w = {.t = t, .token = token};
    stint_status status = STINT_E_MEMORY;
    w.next = sti_alloc_array(n, sizeof *w.next, "long word");
    w.before = sti_alloc_array(n, sizeof *w.before, "long word");
    w.heap = sti_alloc_array(3 * n, sizeof *w.heap, "long word"); /* 2 a merge */
    if (!w.next || !w.before || !w.heap)
        goto done;
    for (int64_t i = 0; i < n; i++) {
        w.next[i] = i + 1 < n ? i + 1 : -1;
        w.before[i] = i - 1;
    }
    for (int64_t i = 0; i < n; i++)
        heap_push(&w, i);
    while (w.heaped > 0) {
        const candidate c = heap_pop(&w);
        const int64_t next = w.token[c.at] == c.left ? w.next[c.at] : -1;
        if (next >= 0 && w.token[next] == c.right)
            merge_at(&w, &c);
    }
    *count = 0;
    for (int64_t i = 0; i >= 0; i = w.next[i])
        token[(*count)++] = token[i];
    status = STINT_OK;
done:
    sti_free(w.next);
    sti_free(w.before);
    sti_free(w.heap);
    return status;
}

stint_status sti_bpe_encode(const stint_tokenizer *t, const char *text, size_t n_bytes,
                            int32_t *tokens_out, int64_t *count_out)
{
    *count_out = 0;
    for (size_t at = 0, end; at < n_bytes; at = end) {
        int32_t *token = tokens_out + *count_out;
        int64_t count = 0;
        stint_status status = STINT_OK;
        end = sti_word_end(text, n_bytes, at);
        for (size_t i = at; i < end; i++)
            token[count++] = t->byte_token[(uint8_t)text[i]];
        if (count <= SCAN_TOKENS)
            merge_scan(t, token, &count);
        else
            status = merge_heap(t, token, &count);
        if (status != STINT_OK)
            return status;
        *count_out += count;
    }
    return STINT_OK;
}
