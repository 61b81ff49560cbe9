/* Learning byte pairs beside Hugging Face's `tokenizers`: tokenizer_learn_oracle.py
 * records the merges. Long words, memory, budgets and a wish to stop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/stop.h"
#include "data/learn_texts.h"
#include "data/tokenizer.h"
#include "stint/train.h"

typedef struct learn_case {
    int text;
    size_t bytes;
    int32_t vocabulary, merges;
    const char *digest;
} learn_case;

#include "data/tokenizer_learn_oracle.h"

static void hash_side(sti_sha256 *hash, const stint_tokenizer *t, int32_t token)
{
    size_t n_bytes;
    const char *bytes = stint_tokenizer_token(t, token, &n_bytes);
    uint8_t length[4];
    for (int i = 0; i < 4; i++)
        length[i] = (uint8_t)(n_bytes >> 8 * i);
    sti_sha256_add(hash, length, sizeof length);
    sti_sha256_add(hash, bytes, n_bytes);
}

static void check_case(const learn_case *c)
{
    char hex[65];
    sti_sha256 hash;
    stint_tokenizer *t;
    char *text = malloc(c->bytes);
    assert_non_null(text);
    const size_t n_bytes = learn_text_make(&learn_texts[c->text], text, c->bytes);
    assert_int_equal(
        stint_tokenizer_learn(STINT_TOKENIZER_BPE, c->vocabulary, text, n_bytes, &t),
        STINT_OK);
    sti_sha256_init(&hash);
    for (int32_t i = 0; i < t->merge_count; i++) {
        hash_side(&hash, t, t->merge[i][0]);
        hash_side(&hash, t, t->merge[i][1]);
    }
    sti_sha256_hex(&hash, hex);
    if (t->merge_count != c->merges || memcmp(hex, c->digest, 16) != 0)
        fail_msg("%s, %d tokens: %d merges %.16s, wanted %d %s",
                 learn_texts[c->text].name, c->vocabulary, t->merge_count, hex,
                 c->merges, c->digest);
    stint_tokenizer_close(t);
    free(text);
}

/* The first, while nothing else has raised the peak: 20 bytes a byte of text, which is
 * one word of 10 MB. */
static void memory_has_a_bound(void **state)
{
    (void)state;
    enum { BYTES = 10 * 1000 * 1000 };
    stint_tokenizer *t;
    char *text = malloc(BYTES);
    assert_non_null(text);
    const size_t n_bytes = learn_text_make(&learn_texts[4], text, BYTES);
    const size_t before = sti_process_now_bytes();
    assert_int_equal(stint_tokenizer_learn(STINT_TOKENIZER_BPE, 600, text, n_bytes, &t),
                     STINT_OK);
#ifndef __SANITIZE_ADDRESS__
    assert_in_range(sti_process_peak_bytes() - before, 4 * n_bytes, 19 * n_bytes);
#endif
    (void)before;
    stint_tokenizer_close(t);
    free(text);
}

static void merges_are_those_of_tokenizers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof learn_cases / sizeof *learn_cases; i++)
        check_case(&learn_cases[i]);
}

/* 20,000 different characters without a break used to be cut between their bytes. */
static void words_are_cut_at_characters(void **state)
{
    (void)state;
    const size_t n_bytes = STI_WORD_BYTES + 3 * 1000;
    const size_t count = n_bytes / 3;
    char *text = malloc(3 * count); /* its end is where a sanitizer looks */
    assert_non_null(text);
    for (size_t i = 0; i < count; i++)
        utf8proc_encode_char(0x4e00 + (int32_t)(i % 20000), (uint8_t *)text + 3 * i);
    const size_t end = sti_word_end(text, 3 * count, 0);
    assert_int_equal(end, STI_WORD_BYTES / 3 * 3);
    assert_int_equal(sti_word_end(text, 3 * count, end), 3 * count);
    assert_int_equal(sti_word_end(text, 60000, 0), 60000);
    /* In the middle of a character, and at the end of the text. */
    assert_int_equal(sti_word_end(text, 3 * count, 3 * count - 2), 3 * count);
    assert_int_equal(sti_word_end(text, 3 * count - 1, 3 * count - 3), 3 * count - 1);
    stint_tokenizer *t;
    assert_int_equal(
        stint_tokenizer_learn(STINT_TOKENIZER_BPE, 300, text, 60000 * 3, &t), STINT_OK);
    stint_tokenizer_close(t);
    free(text);
}

/* What a long word becomes is what merging by rank makes of it, in a plain loop. */
static void long_words_are_encoded_alike(void **state)
{
    (void)state;
    enum { BYTES = 3000 };
    static char text[BYTES];
    static int32_t fast[BYTES], slow[BYTES];
    for (int k = 0; k < 5; k++) {
        stint_tokenizer *t;
        int64_t count, n;
        const size_t n_bytes = learn_text_make(&learn_texts[k], text, BYTES);
        assert_int_equal(
            stint_tokenizer_learn(STINT_TOKENIZER_BPE, 500, text, n_bytes, &t),
            STINT_OK);
        assert_int_equal(stint_tokenizer_encode(t, text, n_bytes, fast, &count),
                         STINT_OK);
        n = 0;
        for (size_t at = 0, end; at < n_bytes; at = end) {
            int64_t length = 0;
            int32_t *word = slow + n;
            end = sti_word_end(text, n_bytes, at);
            for (size_t i = at; i < end; i++)
                word[length++] = t->byte_token[(uint8_t)text[i]];
            for (int32_t m = 0; m < t->merge_count; m++) {
                int64_t to = 0;
                for (int64_t i = 0; i < length; i++) {
                    const bool hit = i + 1 < length && word[i] == t->merge[m][0] &&
                                     word[i + 1] == t->merge[m][1];
                    word[to++] = hit ? t->merge[m][2] : word[i];
                    i += hit;
                }
                length = to;
            }
            n += length;
        }
        assert_int_equal(count, n);
        assert_memory_equal(fast, slow, (size_t)n * sizeof *slow);
        stint_tokenizer_close(t);
    }
}

/* Merges in an order that no learning gives: shuffled, so that a token may be a part
 * before it is made, and with every other pair that makes a token's bytes beside the
 * one that was learnt. */
static void disorder(stint_tokenizer *t, uint64_t *random)
{
    const int32_t learnt = t->merge_count;
    for (int32_t i = 0; i < learnt; i++) {
        size_t n_bytes, l, r;
        const char *bytes = stint_tokenizer_token(t, t->merge[i][2], &n_bytes);
        for (int32_t left = 0; left < t->info.vocabulary; left++)
            for (int32_t right = 0; right < t->info.vocabulary; right++) {
                const char *a = stint_tokenizer_token(t, left, &l),
                           *b = stint_tokenizer_token(t, right, &r);
                if (l + r == n_bytes && memcmp(bytes, a, l) == 0 &&
                    memcmp(bytes + l, b, r) == 0 && left != t->merge[i][0])
                    assert_int_equal(
                        sti_tokenizer_add_merge(t, left, right, t->merge[i][2]),
                        STINT_OK);
            }
    }
    assert_true(t->merge_count > learnt);
    for (int32_t i = t->merge_count - 1; i > 0; i--) {
        const int32_t j = (int32_t)(learn_random(random) % (uint64_t)(i + 1));
        int32_t other[3];
        memcpy(other, t->merge[i], sizeof other);
        memcpy(t->merge[i], t->merge[j], sizeof other);
        memcpy(t->merge[j], other, sizeof other);
    }
    for (int32_t i = 0; i < t->merge_count; i++)
        assert_int_equal(
            sti_pair_map_put(&t->rank, sti_pair_key(t->merge[i][0], t->merge[i][1]), i),
            STINT_OK);
}

/* The definition: the lowest rank, the leftmost of equal ones, again and again. */
static int64_t merge_slowly(const stint_tokenizer *t, int32_t *token, int64_t n)
{
    for (;;) {
        int32_t best = INT32_MAX;
        int64_t at = 0;
        for (int64_t i = 0; i + 1 < n; i++) {
            const int32_t rank =
                sti_pair_map_find(&t->rank, sti_pair_key(token[i], token[i + 1]));
            if (rank >= 0 && rank < best) {
                best = rank;
                at = i;
            }
        }
        if (best == INT32_MAX)
            return n;
        token[at] = t->merge[best][2];
        memmove(token + at + 1, token + at + 2, (size_t)(n - at - 2) * sizeof *token);
        n--;
    }
}

static void merges_in_disorder_are_kept_to(void **state)
{
    (void)state;
    enum { BYTES = 1500, ROUNDS = 24 };
    static char text[BYTES];
    static int32_t fast[BYTES], slow[BYTES];
    uint64_t random = 7;
    for (int round = 0; round < ROUNDS; round++) {
        stint_tokenizer *t;
        const learn_text *kind = &learn_texts[round % 2 ? 0 : 2];
        const size_t n_bytes = learn_text_make(kind, text, BYTES);
        for (size_t i = 0; i < n_bytes && round % 2 == 0; i++)
            text[i] = "aaab"[learn_random(&random) % 4];
        assert_int_equal(stint_tokenizer_learn(STINT_TOKENIZER_BPE, 262 + 2 * round,
                                               text, n_bytes, &t),
                         STINT_OK);
        disorder(t, &random);
        int64_t count = (int64_t)n_bytes;
        for (int64_t i = 0; i < count; i++)
            fast[i] = slow[i] = t->byte_token[(uint8_t)text[i]];
        const int64_t want = merge_slowly(t, slow, count);
        assert_int_equal(sti_bpe_merge_long(t, fast, &count), STINT_OK);
        assert_int_equal(count, want);
        assert_memory_equal(fast, slow, (size_t)want * sizeof *slow);
        stint_tokenizer_close(t);
    }
}

static void budgets_and_stops_are_met(void **state)
{
    (void)state;
    enum { BYTES = 1000 * 1000 };
    stint_tokenizer *t;
    char *text = malloc(BYTES);
    assert_non_null(text);
    const size_t n_bytes = learn_text_make(&learn_texts[0], text, BYTES);
    assert_int_equal(sti_tokenizer_learn(STINT_TOKENIZER_BPE, 600, text, n_bytes,
                                         sti_process_now_bytes() + 5 * n_bytes, &t),
                     STINT_E_BUDGET);
    assert_non_null(strstr(stint_last_error(), "learning byte pairs needs"));
    assert_null(t);
    stint_stop(STINT_E_TERMINATED);
    assert_int_equal(stint_tokenizer_learn(STINT_TOKENIZER_BPE, 600, text, n_bytes, &t),
                     STINT_E_TERMINATED);
    sti_stop_clear();
    free(text);
}

static void allocations_may_fail(void **state)
{
    (void)state;
    static char text[5000];
    const size_t n_bytes = learn_text_make(&learn_texts[12], text, sizeof text);
    stint_status st = STINT_E_MEMORY;
    const size_t before = sti_alloc_now_bytes();
    for (int64_t nth = 1; st != STINT_OK; nth++) {
        stint_tokenizer *t;
        assert_in_range(nth, 1, 1000);
        sti_alloc_fail_nth(nth);
        st = stint_tokenizer_learn(STINT_TOKENIZER_BPE, 800, text, n_bytes, &t);
        sti_alloc_fail_nth(0);
        assert_true(st == STINT_OK || st == STINT_E_MEMORY);
        stint_tokenizer_close(t);
        assert_int_equal(sti_alloc_now_bytes(), before);
    }
    stint_tokenizer *t;
    static int32_t tokens[5000];
    assert_int_equal(stint_tokenizer_learn(STINT_TOKENIZER_BPE, 300, "aaabab", 6, &t),
                     STINT_OK);
    memset(text, 'a', sizeof text);
    for (int64_t nth = 1, count; nth < 8; nth++) {
        const size_t held = sti_alloc_now_bytes();
        sti_alloc_fail_nth(nth);
        st = stint_tokenizer_encode(t, text, sizeof text, tokens, &count);
        sti_alloc_fail_nth(0);
        assert_int_equal(st, nth < 5 ? STINT_E_MEMORY : STINT_OK);
        assert_int_equal(sti_alloc_now_bytes(), held);
    }
    stint_tokenizer_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_has_a_bound),
        cmocka_unit_test(merges_are_those_of_tokenizers),
        cmocka_unit_test(words_are_cut_at_characters),
        cmocka_unit_test(long_words_are_encoded_alike),
        cmocka_unit_test(merges_in_disorder_are_kept_to),
        cmocka_unit_test(budgets_and_stops_are_met),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
