/* Encoding by byte pairs: in a word, the pair with the lowest rank merges first, the
 * leftmost of equal ones, until no pair has a rank (Sennrich et al. 2016). */
#include <string.h>

#include "base/fail.h"
#include "base/stop.h"
#include "data/tokenizer.h"

/* Words longer than this use a heap: a line of a million equal letters is a word too.
 */
enum { SCAN_TOKENS = 48, LOOK_EVERY = 1 << 16 };

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

/* A long text takes long; whoever was asked to stop stops. */
static stint_status look(void)
{
    const stint_status stop = sti_stop_asked();
    return stop == STINT_OK ? STINT_OK : sti_fail(stop, "stopped while encoding text");
}

/* ---- long words ---- */

/* A possible merge of what stands at `at` with its successor; stale when the pair of
 * the rank no longer stands there. */
typedef struct candidate {
    int32_t rank, at;
} candidate;

/* A word as it merges, in the slots of its bytes: what has merged is a token at its
 * first slot, and of the slots that it covers the second and the last hold its length,
 * negated. */
typedef struct long_word {
    const stint_tokenizer *t;
    int32_t *slot;
    int32_t count;
    candidate *heap;
    int64_t heaped;
} long_word;

static bool comes_before(const candidate *a, const candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

/* The slot after a token; `count` after the last. */
static int32_t next_of(const long_word *w, int32_t at)
{
    return at + 1 < w->count && w->slot[at + 1] < 0 ? at - w->slot[at + 1] : at + 1;
}

static void heap_push(long_word *w, int32_t at)
{
    const int32_t next = next_of(w, at);
    if (next >= w->count)
        return;
    const candidate c = {.rank = sti_pair_map_find(
                             &w->t->rank, sti_pair_key(w->slot[at], w->slot[next])),
                         .at = at};
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

static void merge_at(long_word *w, candidate c)
{
    const int32_t at = c.at, next = next_of(w, at), *merge = w->t->merge[c.rank];
    if (w->slot[at] != merge[0] || next >= w->count || w->slot[next] != merge[1])
        return;
    const int32_t end = next_of(w, next);
    w->slot[at] = merge[2];
    w->slot[next] = -1;
    w->slot[at + 1] = w->slot[end - 1] = at - end;
    if (at > 0)
        heap_push(w, w->slot[at - 1] < 0 ? at + w->slot[at - 1] : at - 1);
    heap_push(w, at);
}

static stint_status merge_heap(const stint_tokenizer *t, int32_t *token, int64_t *count)
{
    const int64_t n = *count; /* STI_WORD_BYTES at most */
    long_word w = {.t = t, .slot = token, .count = (int32_t)n};
    /* A merge takes one out and puts two in. */
    w.heap = sti_alloc_array(2 * n, sizeof *w.heap, "long word");
    if (!w.heap)
        return STINT_E_MEMORY;
    for (int32_t i = 0; i < w.count; i++)
        heap_push(&w, i);
    stint_status st = STINT_OK;
    for (int64_t i = 0; w.heaped > 0 && st == STINT_OK; i++) {
        if (i % LOOK_EVERY == 0)
            st = look();
        merge_at(&w, heap_pop(&w));
    }
    *count = 0;
    for (int32_t i = 0, next; i < w.count; i = next) {
        next = next_of(&w, i);
        token[(*count)++] = token[i];
    }
    sti_free(w.heap);
    return st;
}

stint_status sti_bpe_encode(const stint_tokenizer *t, const char *text, size_t n_bytes,
                            int32_t *tokens_out, int64_t *count_out)
{
    size_t plain_end = 0;
    *count_out = 0;
    for (size_t at = 0, end; at < n_bytes; at = end) {
        int32_t *token = tokens_out + *count_out, special;
        int64_t count = 0;
        stint_status status = look();
        end = sti_bpe_piece_end(t, text, n_bytes, at, &plain_end, &special);
        if (special >= 0)
            token[count++] = special;
        for (size_t i = at; i < end && special < 0; i++)
            token[count++] = t->byte_token[(uint8_t)text[i]];
        if (count <= SCAN_TOKENS)
            merge_scan(t, token, &count);
        else if (status == STINT_OK)
            status = merge_heap(t, token, &count);
        if (status != STINT_OK)
            return status;
        *count_out += count;
    }
    return STINT_OK;
}
