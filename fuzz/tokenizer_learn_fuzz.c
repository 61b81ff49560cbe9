/* Any text to learn byte pairs from: the merges must be those of a plain loop that
 * counts all pairs anew each time, and encoding with them must lose nothing. */
#include "fuzz_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 1024, MOST_MERGES = 24 };

typedef struct plain {
    int32_t token[MOST_BYTES];
    bool first[MOST_BYTES]; /* of a word */
    size_t count;
} plain;

static bool is_pair(const plain *p, size_t i, int32_t left, int32_t right)
{
    return i + 1 < p->count && !p->first[i + 1] && p->token[i] == left &&
           p->token[i + 1] == right;
}

/* The most frequent pair, ties to the lower one; false: none occurs twice. */
static bool most_frequent(const plain *p, int32_t *left, int32_t *right)
{
    size_t most = 1;
    for (size_t i = 0; i + 1 < p->count; i++) {
        const int32_t a = p->token[i], b = p->token[i + 1];
        size_t times = 0;
        for (size_t j = 0; !p->first[i + 1] && j + 1 < p->count; j++)
            times += is_pair(p, j, a, b);
        if (times > most ||
            (times == most && most > 1 && (a < *left || (a == *left && b < *right)))) {
            most = times;
            *left = a;
            *right = b;
        }
    }
    return most > 1;
}

static void join(plain *p, int32_t left, int32_t right, int32_t result)
{
    size_t to = 0;
    for (size_t i = 0; i < p->count; i++) {
        const bool hit = is_pair(p, i, left, right);
        p->first[to] = p->first[i];
        p->token[to++] = hit ? result : p->token[i];
        i += hit;
    }
    p->count = to;
}

static void check_merges(const stint_tokenizer *t, const char *text, size_t n_bytes)
{
    static plain p;
    int32_t left, right;
    p.count = 0;
    for (size_t at = 0, end; at < n_bytes; at = end) {
        end = sti_word_end(text, n_bytes, at);
        if (end <= at || end > n_bytes)
            abort();
        for (size_t i = at; i < end; i++) {
            p.first[p.count] = i == at;
            p.token[p.count++] = t->byte_token[(uint8_t)text[i]];
        }
    }
    for (int32_t m = 0; m < t->merge_count; m++) {
        if (!most_frequent(&p, &left, &right) || t->merge[m][0] != left ||
            t->merge[m][1] != right || t->merge[m][2] != 256 + m)
            abort();
        join(&p, left, right, 256 + m);
    }
    if (t->merge_count < MOST_MERGES && most_frequent(&p, &left, &right))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stint_tokenizer *t;
    const size_t n_bytes = size < MOST_BYTES ? size : MOST_BYTES;
    char *text = malloc(n_bytes ? n_bytes : 1); /* not a byte more than there is */
    if (!text)
        return 0;
    memcpy(text, data, n_bytes);
    /* Where a word ends is asked about pieces of text, too. */
    for (size_t at = 0, end; at < n_bytes; at = end) {
        end = sti_word_end(text, n_bytes, at);
        if (end <= at || end > n_bytes)
            abort();
    }
    if (stint_tokenizer_learn(STINT_TOKENIZER_BPE, 256 + MOST_MERGES, text, n_bytes,
                              &t) == STINT_OK) {
        check_merges(t, text, n_bytes);
        if (!fuzz_round_trip(t, text, n_bytes))
            abort();
        stint_tokenizer_close(t);
    }
    free(text);
    return 0;
}
