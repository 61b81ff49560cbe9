/* Tokenisers of GGUF files: "gpt2", byte pairs of bytes; "llama", SentencePiece's byte
 * pairs, whose merges follow from scores; "t5", its unigrams. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "data/tokenizer.h"
#include "store/gguf_model.h"

/* Types of tokens. */
enum { NORMAL = 1, UNKNOWN, CONTROL, USER, UNUSED, BYTE };

static stint_status without(const sti_gguf *f, const char *what)
{
    return sti_fail(STINT_E_UNSUPPORTED, "%s: %s", sti_gguf_path(f), what);
}

/* How llama.cpp cuts words: by the name of its pattern. */
static stint_status read_words(const sti_gguf *f, sti_token_scheme *s)
{
    static const struct {
        const char *name;
        sti_words words;
        int number;
        bool nfc, whole_words;
    } rows[] = {{"gpt-2", STI_WORDS_GPT2, 0, false, false},
                {"llama-bpe", STI_WORDS_LLAMA3, 3, false, true},
                {"dbrx", STI_WORDS_LLAMA3, 3, false, false},
                {"qwen2", STI_WORDS_LLAMA3, 1, true, false},
                {"smollm", STI_WORDS_GPT2, 1, false, false}};
    const char *name = sti_gguf_text(f, "tokenizer.ggml.pre");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(name ? name : "gpt-2", rows[i].name) == 0) {
            s->words = rows[i].words;
            s->number = rows[i].number;
            s->whole_words = rows[i].whole_words;
            s->step[0] = STI_NORMAL_NFC;
            s->steps = rows[i].nfc;
            return STINT_OK;
        }
    return sti_fail(STINT_E_UNSUPPORTED,
                    "%s: words of the kind \"tokenizer.ggml.pre\" = '%.40s'; gpt-2, "
                    "llama-bpe, qwen2 and smollm are known",
                    sti_gguf_path(f), name);
}

/* A copy that ends with a NUL. */
static char *text_of(const char *text, size_t bytes)
{
    char *copy = memchr(text, 0, bytes) ? NULL : sti_alloc(bytes + 1, "token");
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}

/* A token as the byte alphabet has it; special ones are written as they read. */
static stint_status add_bytes(stint_tokenizer *t, const char *text, size_t bytes,
                              bool special)
{
    sti_text out = {0};
    const bool plain = special || !sti_byte_alphabet_read(text, bytes, &out);
    stint_status st = out.failed ? STINT_E_MEMORY
                      : plain    ? sti_tokenizer_add_token(t, text, bytes)
                                 : sti_tokenizer_add_token(t, out.data, out.length);
    sti_text_fini(&out);
    return st;
}

static stint_status add_piece(stint_tokenizer *t, const char *text, size_t bytes,
                              bool byte)
{
    char *copy = text_of(text, bytes);
    if (!copy)
        return sti_fail(STINT_E_INPUT, "token %d holds a NUL, or there is no memory",
                        t->info.vocabulary);
    const stint_status st = sti_tokenizer_add_piece(t, copy, byte);
    sti_free(copy);
    return st;
}

/* All tokens; a special one is taken whole wherever text has it. */
static stint_status add_tokens(const sti_gguf *f, stint_tokenizer *t)
{
    sti_gguf_items tokens, types = {0};
    const char *text;
    size_t bytes;
    stint_status st = STINT_OK;
    if (!sti_gguf_array(f, "tokenizer.ggml.tokens", &tokens) ||
        tokens.count > INT32_MAX / 2)
        return without(f, "it has no list of tokens");
    (void)sti_gguf_array(f, "tokenizer.ggml.token_type", &types);
    while (st == STINT_OK && sti_gguf_next_text(&tokens, &text, &bytes)) {
        int64_t type = NORMAL;
        (void)sti_gguf_next_int(&types, &type);
        const bool special = type == CONTROL || type == USER || type == UNKNOWN;
        if (type == UNKNOWN)
            t->scheme.unknown = t->info.vocabulary;
        if (bytes == 0)
            return sti_fail(STINT_E_INPUT, "%s: token %d is empty", sti_gguf_path(f),
                            t->info.vocabulary);
        st = t->scheme.pieces ? add_piece(t, text, bytes, type == BYTE)
                              : add_bytes(t, text, bytes, special);
        if (st == STINT_OK && special && type != UNKNOWN)
            st = sti_tokenizer_add_special(t, t->info.vocabulary - 1);
    }
    return st;
}

static stint_status add_scores(const sti_gguf *f, stint_tokenizer *t)
{
    sti_gguf_items scores;
    t->score = sti_alloc_array(t->info.vocabulary, sizeof *t->score, "scores");
    if (!t->score)
        return STINT_E_MEMORY;
    if (!sti_gguf_array(f, "tokenizer.ggml.scores", &scores) ||
        scores.count != t->info.vocabulary)
        return without(f, "its tokens have no scores");
    for (int32_t i = 0; i < t->info.vocabulary; i++)
        if (!sti_gguf_next_float(&scores, &t->score[i]))
            return without(f, "its scores are no numbers");
    return STINT_OK;
}

static stint_status add_merges(const sti_gguf *f, stint_tokenizer *t)
{
    sti_gguf_items merges;
    const char *text;
    size_t bytes;
    sti_text lines = {0};
    if (!sti_gguf_array(f, "tokenizer.ggml.merges", &merges))
        return without(f, "its tokens have no merges");
    while (sti_gguf_next_text(&merges, &text, &bytes)) {
        sti_text_add_bytes(&lines, text, bytes);
        sti_text_add_bytes(&lines, "\n", 1);
    }
    const stint_status st =
        lines.failed ? STINT_E_MEMORY
                     : sti_tokenizer_add_merges(t, lines.data ? lines.data : "",
                                                lines.length, sti_gguf_path(f));
    sti_text_fini(&lines);
    return st;
}

static void read_begin(const sti_gguf *f, const char *model, stint_tokenizer *t)
{
    int64_t token;
    bool adds = strcmp(model, "llama") == 0;
    (void)sti_gguf_bool(f, "tokenizer.ggml.add_bos_token", &adds);
    if (adds && sti_gguf_int(f, "tokenizer.ggml.bos_token_id", &token) && token >= 0 &&
        token < t->info.vocabulary)
        t->info.begin_token = (int32_t)token;
}

static stint_status read_scheme(const sti_gguf *f, const char *model,
                                stint_tokenizer *t)
{
    bool space = true;
    t->scheme.unknown = -1;
    if (strcmp(model, "gpt2") == 0)
        return read_words(f, &t->scheme);
    (void)sti_gguf_bool(f, "tokenizer.ggml.add_space_prefix", &space);
    t->scheme.pieces = true;
    t->scheme.words = STI_WORDS_WHOLE;
    t->scheme.fuse_unknown = true;
    t->scheme.prefix = space ? STI_PREFIX_DOUBLE : STI_PREFIX_NEVER;
    for (int i = 0; i < 256; i++)
        t->byte_token[i] = -1;
    return STINT_OK;
}

static stint_status read_all(const sti_gguf *f, const char *model, stint_tokenizer *t)
{
    const bool pairs = strcmp(model, "gpt2") == 0, scored = strcmp(model, "llama") == 0;
    stint_status st = read_scheme(f, model, t);
    if (st == STINT_OK)
        st = add_tokens(f, t);
    if (st == STINT_OK)
        st = pairs ? add_merges(f, t) : add_scores(f, t);
    if (st == STINT_OK && scored)
        st = sti_tokenizer_merges_of_scores(t);
    if (st == STINT_OK)
        read_begin(f, model, t);
    return st == STINT_OK ? sti_tokenizer_finish(t) : st;
}

stint_status sti_gguf_tokenizer(const sti_gguf *f, stint_tokenizer **tokenizer_out)
{
    const char *model = sti_gguf_text(f, "tokenizer.ggml.model");
    stint_tokenizer *t = NULL;
    *tokenizer_out = NULL;
    if (!model || strcmp(model, "none") == 0)
        return without(f, "it holds no tokeniser");
    const bool unigram = strcmp(model, "t5") == 0;
    if (strcmp(model, "gpt2") != 0 && strcmp(model, "llama") != 0 && !unigram)
        return without(f, "its tokeniser is of another kind than gpt2, llama and t5");
    stint_status st = sti_tokenizer_create(
        unigram ? STINT_TOKENIZER_UNIGRAM : STINT_TOKENIZER_BPE, &t);
    if (st == STINT_OK && (st = read_all(f, model, t)) == STINT_E_INPUT)
        st = sti_fail_context(st, "%s: tokeniser", sti_gguf_path(f));
    if (st != STINT_OK)
        stint_tokenizer_close(t);
    else
        *tokenizer_out = t;
    return st;
}
