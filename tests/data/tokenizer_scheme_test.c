/* Tokenisers with a scheme of their own: where text is cut, what is normalised, pieces
 * by naive merging and by every path there is, our form and back, and what is refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/tokenizer.h"

static char root[] = "/tmp/stint_scheme_XXXXXX";

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[300];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) == 0 ? 0 : -1;
}

/* A folder with this tokenizer.json, read. */
static stint_status read_json(const char *json, stint_tokenizer **out)
{
    char path[300];
    snprintf(path, sizeof path, "%s/tokenizer.json", root);
    assert_int_equal(sti_file_write(path, json, strlen(json)), STINT_OK);
    return stint_tokenizer_read(root, out);
}

/* ---- words ---- */

/* Words of text, "|" between them. */
static const char *words_of(const sti_token_scheme *s, const char *text)
{
    static char out[400];
    const size_t n_bytes = strlen(text);
    size_t used = 0;
    for (size_t at = 0, end; at < n_bytes; at = end) {
        end = sti_text_scheme_word_end(s, text, n_bytes, at);
        assert_true(end > at && end <= n_bytes);
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%.*s", at ? "|" : "",
                                 (int)(end - at), text + at);
    }
    return out;
}

static void test_words(void **state)
{
    const sti_token_scheme llama3 = {.words = STI_WORDS_LLAMA3, .number = 3};
    const sti_token_scheme qwen2 = {.words = STI_WORDS_LLAMA3, .number = 1};
    const sti_token_scheme digits = {.number = 1}, plain = {.number = 0};
    const sti_token_scheme spaces = {.words = STI_WORDS_SPACES, .pieces = true};
    (void)state;
    assert_string_equal(words_of(&llama3, "It's 12345 days"), "It|'s| |123|45| days");
    assert_string_equal(words_of(&qwen2, "It'S 123"), "It|'S| |1|2|3");
    assert_string_equal(words_of(&llama3, "a  b\n\n c(d)!!\nx"),
                        "a| | b|\n\n| c|(d|)!!\n|x");
    assert_string_equal(words_of(&llama3, "x \n \n  y"), "x| \n \n| | y");
    assert_string_equal(words_of(&llama3, "\tq\r\n"), "\tq|\r\n");
    assert_string_equal(words_of(&llama3, " \xc3\xa9t\xc3\xa9 ?!"),
                        " \xc3\xa9t\xc3\xa9| ?!");
    assert_string_equal(words_of(&digits, "ab 12c 3"), "ab| |1|2|c| |3");
    assert_string_equal(words_of(&plain, "ab 12c 3"), "ab| 12|c| 3");
    assert_string_equal(words_of(&spaces, " a  b"), " a| | b");
}

static void expect_normal(const sti_token_scheme *s, const char *text, bool first,
                          const char *want)
{
    sti_text out = {0};
    assert_int_equal(sti_text_scheme_normalise(s, text, strlen(text), first, &out),
                     STINT_OK);
    assert_string_equal(out.data ? out.data : "", want);
    sti_text_fini(&out);
}

static void test_normal(void **state)
{
    const sti_token_scheme nfc = {.step = {STI_NORMAL_NFC}, .steps = 1};
    const sti_token_scheme nfkc = {.step = {STI_NORMAL_NFKC}, .steps = 1};
    const sti_token_scheme nmt = {.step = {STI_NORMAL_NMT, STI_NORMAL_SPACES},
                                  .steps = 2};
    sti_token_scheme pieces = {.pieces = true};
    (void)state;
    expect_normal(&nfc, "e\xcc\x81", true, "\xc3\xa9");
    expect_normal(&nfc, "\xef\xac\x81", true, "\xef\xac\x81"); /* the ligature stays */
    expect_normal(&nfkc, "\xef\xac\x81", true, "fi");
    expect_normal(&nmt, "a\x01\t \n b\xe2\x80\x8b", true, "a b ");
    expect_normal(&pieces,
                  "a\xe2\x96\x81"
                  "b",
                  true, "a b");
    static const struct {
        sti_prefix prefix;
        const char *first, *later, *spaced;
    } rows[] = {{STI_PREFIX_NEVER, "a", "a", " a"},
                {STI_PREFIX_FIRST, " a", "a", " a"},
                {STI_PREFIX_ALWAYS, " a", " a", " a"},
                {STI_PREFIX_DOUBLE, " a", " a", "  a"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pieces.prefix = rows[i].prefix;
        expect_normal(&pieces, "a", true, rows[i].first);
        expect_normal(&pieces, "a", false, rows[i].later);
        expect_normal(&pieces, " a", true, rows[i].spaced);
    }
}

/* ---- pieces ---- */

#define META                                                                           \
    "\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"\xe2\x96\x81\", " \
    "\"prepend_scheme\": \"never\", \"split\": false}, "

static const char unigram_json[] =
    "{" META
    "\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], "
    "[\"a\", -2.5], [\"b\", -2.25], [\"ab\", -3.0], [\"ba\", -4.5], [\"aba\", -5.125], "
    "[\"\xe2\x96\x81\", -1.5], [\"\xe2\x96\x81"
    "a\", -3.5], [\"bb\xe2\x96\x81\", -4.0]]}}";
static const struct {
    const char *bytes;
    double score;
} unigrams[] = {{"a", -2.5},     {"b", -2.25}, {"ab", -3.0}, {"ba", -4.5},
                {"aba", -5.125}, {" ", -1.5},  {" a", -3.5}, {"bb ", -4.0}};
enum { UNIGRAMS = sizeof unigrams / sizeof *unigrams };

/* The best of all cuts, by trying every one. 'c' is unknown: 10 below the least. */
static double best_cut(const char *text)
{
    double best = *text ? -INFINITY : 0;
    for (int i = 0; i < UNIGRAMS && *text; i++) {
        const size_t length = strlen(unigrams[i].bytes);
        if (strncmp(text, unigrams[i].bytes, length) == 0)
            best = fmax(best, unigrams[i].score + best_cut(text + length));
    }
    return *text == 'c' ? -15.125 + best_cut(text + 1) : best;
}

/* Text number n of `length` letters. */
static void text_of(int n, int length, char *text)
{
    static const char letters[] = "ab c";
    for (int i = 0; i < length; i++, n /= 4)
        text[i] = letters[n % 4];
    text[length] = '\0';
}

static void test_unigram(void **state)
{
    stint_tokenizer *t = NULL;
    (void)state;
    assert_int_equal(read_json(unigram_json, &t), STINT_OK);
    assert_int_equal(stint_tokenizer_describe(t)->kind, STINT_TOKENIZER_UNIGRAM);
    for (int length = 1; length <= 7; length++)
        for (int n = 0; n < 1 << 2 * length; n++) {
            char text[8];
            int32_t tokens[16];
            int64_t count;
            double score = 0;
            text_of(n, length, text);
            assert_int_equal(
                stint_tokenizer_encode(t, text, (size_t)length, tokens, &count),
                STINT_OK);
            const char *at = text;
            for (int64_t i = 0; i < count; i++) {
                if (tokens[i] == 0) { /* a run of what is unknown */
                    assert_int_equal(*at, 'c');
                    for (; *at == 'c'; at++)
                        score -= 15.125;
                    continue;
                }
                const char *piece = unigrams[tokens[i] - 1].bytes;
                assert_memory_equal(at, piece, strlen(piece));
                at += strlen(piece);
                score += unigrams[tokens[i] - 1].score;
            }
            assert_int_equal(*at, '\0');
            assert_true(fabs(score - best_cut(text)) < 1e-9);
        }
    stint_tokenizer_close(t);
}

static const char pairs_json[] =
    "{" META
    "\"model\": {\"type\": \"BPE\", \"unk_token\": \"?\", \"byte_fallback\": true, "
    "\"vocab\": {\"?\": 0, \"a\": 1, \"b\": 2, \"\xe2\x96\x81\": 3, \"\xe2\x96\x81"
    "a\": 4, "
    "\"ab\": 5, \"aba\": 6, \"abab\": 7, \"b\xe2\x96\x81"
    "a\": 8, \"<0x63>\": 9, "
    "\"ba\": 10}, \"merges\": [\"a b\", [\"\xe2\x96\x81\", \"a\"], \"ab a\", \"b "
    "\xe2\x96\x81"
    "a\", "
    "\"ab ab\", \"b a\"]}}";
static const int32_t pair_rows[][3] = {{1, 2, 5}, {3, 1, 4}, {5, 1, 6},
                                       {2, 4, 8}, {5, 5, 7}, {2, 1, 10}};

/* The rule itself: the first row that fits anywhere, at its first place, again and
 * again. */
static int merge_naively(const char *text, int32_t *token)
{
    int count = (int)strlen(text);
    for (int i = 0; i < count; i++)
        token[i] = text[i] == 'a' ? 1 : text[i] == 'b' ? 2 : text[i] == ' ' ? 3 : 9;
    for (size_t r = 0; r < sizeof pair_rows / sizeof *pair_rows;) {
        int at = 0;
        while (at + 1 < count &&
               !(token[at] == pair_rows[r][0] && token[at + 1] == pair_rows[r][1]))
            at++;
        if (at + 1 >= count) {
            r++;
            continue;
        }
        token[at] = pair_rows[r][2];
        memmove(token + at + 1, token + at + 2,
                (size_t)(count - at - 2) * sizeof *token);
        count--;
        r = 0;
    }
    return count;
}

static void test_pairs(void **state)
{
    stint_tokenizer *t = NULL;
    (void)state;
    assert_int_equal(read_json(pairs_json, &t), STINT_OK);
    for (int length = 1; length <= 7; length++)
        for (int n = 0; n < 1 << 2 * length; n++) {
            char text[8];
            int32_t tokens[16], want[16];
            int64_t count;
            text_of(n, length, text);
            assert_int_equal(
                stint_tokenizer_encode(t, text, (size_t)length, tokens, &count),
                STINT_OK);
            assert_int_equal(count, merge_naively(text, want));
            assert_memory_equal(tokens, want, (size_t)count * sizeof *want);
        }
    int32_t tokens[16];
    int64_t count; /* a character without bytes is the unknown token */
    assert_int_equal(stint_tokenizer_encode(t, "a\xc3\xa9", 3, tokens, &count),
                     STINT_OK);
    assert_int_equal(count, 2);
    assert_int_equal(tokens[1], 0);
    stint_tokenizer_close(t);
}

/* Merges that follow from scores are those that were listed best first. */
static void test_merges_of_scores(void **state)
{
    static const char *const pieces[] = {"?", "a", "b", "\xe2\x96\x81", "ab", "abb"};
    static const double scores[] = {0, -10, -10, -10, -1, -2};
    stint_tokenizer *t = NULL;
    int32_t tokens[16];
    int64_t count;
    (void)state;
    assert_int_equal(sti_tokenizer_create(STINT_TOKENIZER_BPE, &t), STINT_OK);
    t->scheme = (sti_token_scheme){
        .words = STI_WORDS_WHOLE, .pieces = true, .prefix = STI_PREFIX_ALWAYS};
    memset(t->byte_token, 0xff, sizeof t->byte_token);
    t->score = sti_alloc_array(6, sizeof *t->score, "test");
    memcpy(t->score, scores, sizeof scores);
    for (int i = 0; i < 6; i++)
        assert_int_equal(sti_tokenizer_add_piece(t, pieces[i], true), STINT_OK);
    assert_int_equal(sti_tokenizer_merges_of_scores(t), STINT_OK);
    assert_int_equal(t->merge_count, 2);
    assert_int_equal(sti_tokenizer_finish(t), STINT_OK);
    assert_int_equal(stint_tokenizer_encode(t, "abbab", 5, tokens, &count), STINT_OK);
    assert_int_equal(count, 3);
    assert_true(tokens[0] == 3 && tokens[1] == 5 && tokens[2] == 4);
    stint_tokenizer_close(t);
}

/* ---- our form ---- */

static void test_form(void **state)
{
    static const char *const files[] = {unigram_json, pairs_json};
    (void)state;
    for (int i = 0; i < 2; i++) {
        stint_tokenizer *t = NULL, *again = NULL;
        sti_text text = {0};
        int32_t a[64], b[64];
        int64_t n, m;
        assert_int_equal(read_json(files[i], &t), STINT_OK);
        assert_int_equal(sti_tokenizer_print(t, &text), STINT_OK);
        assert_int_equal(sti_tokenizer_parse(text.data, text.length, "test", &again),
                         STINT_OK);
        assert_string_equal(t->hash, again->hash);
        assert_int_equal(stint_tokenizer_encode(t, "ab aba babb c", 13, a, &n),
                         STINT_OK);
        assert_int_equal(stint_tokenizer_encode(again, "ab aba babb c", 13, b, &m),
                         STINT_OK);
        assert_int_equal(n, m);
        assert_memory_equal(a, b, (size_t)n * sizeof *a);
        for (size_t cut = 0; cut < text.length; cut += 7) { /* whatever is missing */
            stint_tokenizer *none = NULL;
            assert_int_equal(sti_tokenizer_parse(text.data, cut, "test", &none),
                             STINT_E_INPUT);
            assert_null(none);
        }
        sti_text_fini(&text);
        stint_tokenizer_close(t);
        stint_tokenizer_close(again);
    }
}

static void test_begin(void **state)
{
    char json[2000];
    stint_tokenizer *t = NULL;
    (void)state;
    snprintf(json, sizeof json,
             "{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": "
             "[{\"SpecialToken\": {\"id\": \"?\"}}], \"special_tokens\": {\"?\": "
             "{\"ids\": [0]}}}, %s",
             pairs_json + 1);
    assert_int_equal(read_json(json, &t), STINT_OK);
    assert_int_equal(stint_tokenizer_describe(t)->begin_token, 0);
    stint_tokenizer_close(t);
    assert_int_equal(read_json(pairs_json, &t), STINT_OK);
    assert_int_equal(stint_tokenizer_describe(t)->begin_token, -1);
    stint_tokenizer_close(t);
}

/* ---- refused ---- */

static void expect_refused(const char *json, stint_status want, const char *word)
{
    stint_tokenizer *t = NULL;
    assert_int_equal(read_json(json, &t), want);
    assert_null(t);
    if (!strstr(stint_last_error(), word))
        fail_msg("'%s' does not say '%s'", stint_last_error(), word);
}

static void test_refused(void **state)
{
    (void)state;
    expect_refused("{\"model\": {\"type\": \"WordPiece\", \"vocab\": {}}}",
                   STINT_E_UNSUPPORTED, "WordPiece");
    expect_refused("{\"normalizer\": {\"type\": \"Lowercase\"}, \"model\": {}}",
                   STINT_E_UNSUPPORTED, "Lowercase");
    expect_refused("{\"normalizer\": {\"type\": \"Precompiled\"}, \"model\": {}}",
                   STINT_E_UNSUPPORTED, "Precompiled");
    expect_refused(
        "{\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, \"model\": {}}",
        STINT_E_UNSUPPORTED, "BertPreTokenizer");
    expect_refused("{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": "
                   "\"[a-z]+\"}, \"behavior\": \"Isolated\"}, \"model\": {}}",
                   STINT_E_UNSUPPORTED, "[a-z]+");
    expect_refused("{" META "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 1}}}",
                   STINT_E_INPUT, "identities 0 to 0");
    expect_refused("{" META "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, "
                   "\"merges\": [\"a b\"]}}",
                   STINT_E_INPUT, "does not have");
    expect_refused("{" META "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}}, "
                   "\"added_tokens\": [{\"id\": 3, \"content\": \"b\"}]}",
                   STINT_E_INPUT, "no token has the identity 1");
    expect_refused("{" META "\"model\": {\"type\": \"Unigram\", \"vocab\": [[1, 2]]}}",
                   STINT_E_INPUT, "(no text)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_normal),
                                       cmocka_unit_test(test_unigram),
                                       cmocka_unit_test(test_pairs),
                                       cmocka_unit_test(test_merges_of_scores),
                                       cmocka_unit_test(test_form),
                                       cmocka_unit_test(test_begin),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests_name("tokenizer_scheme", tests, set_up, tear_down);
}
