/* Values of a GGUF file, and a tokeniser among them. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data/tokenizer.h"
#include "store/gguf_write.h"

#define SPACE "\xe2\x96\x81" /* U+2581 stands for one */

enum { TYPE_U32 = 4, TYPE_I32, TYPE_F32, TYPE_BOOL, TYPE_TEXT, TYPE_ARRAY };
enum { NORMAL = 1, UNKNOWN, CONTROL, BYTE = 6 }; /* tokens */

static void put_number(sti_text *out, uint64_t value, int bytes)
{
    uint8_t at[8];
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
    sti_text_add_bytes(out, at, (size_t)bytes);
}

void sti_gguf_put_u32(sti_text *out, uint32_t value)
{
    put_number(out, value, 4);
}

void sti_gguf_put_u64(sti_text *out, uint64_t value)
{
    put_number(out, value, 8);
}

void sti_gguf_put_f32(sti_text *out, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(out, bits, 4);
}

void sti_gguf_put_bytes(sti_text *out, const char *bytes, size_t n_bytes)
{
    put_number(out, n_bytes, 8);
    sti_text_add_bytes(out, bytes, n_bytes);
}

static void put_key(sti_text *out, const char *key, uint32_t type)
{
    sti_gguf_put_bytes(out, key, strlen(key));
    sti_gguf_put_u32(out, type);
}

void sti_gguf_put_key_u32(sti_text *out, const char *key, uint32_t value)
{
    put_key(out, key, TYPE_U32);
    sti_gguf_put_u32(out, value);
}

void sti_gguf_put_key_f32(sti_text *out, const char *key, float value)
{
    put_key(out, key, TYPE_F32);
    sti_gguf_put_f32(out, value);
}

void sti_gguf_put_key_bool(sti_text *out, const char *key, bool value)
{
    put_key(out, key, TYPE_BOOL);
    put_number(out, value, 1);
}

void sti_gguf_put_key_text(sti_text *out, const char *key, const char *text)
{
    put_key(out, key, TYPE_TEXT);
    sti_gguf_put_bytes(out, text, strlen(text));
}

void sti_gguf_put_key_array(sti_text *out, const char *key, uint32_t type,
                            int64_t count)
{
    put_key(out, key, TYPE_ARRAY);
    sti_gguf_put_u32(out, type);
    sti_gguf_put_u64(out, (uint64_t)count);
}

/* ---- tokens ---- */

static int type_of(const stint_tokenizer *t, int32_t token)
{
    const bool one = t->start[token + 1] - t->start[token] == 1;
    if (t->scheme.pieces && token == t->scheme.unknown)
        return UNKNOWN;
    for (int32_t i = 0; i < t->special_count; i++)
        if (t->special[i].token == token)
            return CONTROL;
    return t->scheme.pieces && one &&
                   t->byte_token[(uint8_t)t->bytes[t->start[token]]] == token
               ? BYTE
               : NORMAL;
}

/* A token as the format names it, in place of what `text` holds. */
static void name_of(const stint_tokenizer *t, int32_t token, sti_text *text)
{
    size_t n_bytes;
    const char *bytes = stint_tokenizer_token(t, token, &n_bytes);
    const int type = type_of(t, token);
    text->length = 0;
    if (type == BYTE)
        sti_text_printf(text, "<0x%02X>", (uint8_t)*bytes);
    else if (type != NORMAL)
        sti_text_add_bytes(text, bytes, n_bytes);
    else if (!t->scheme.pieces)
        sti_byte_alphabet_add(bytes, n_bytes, text);
    else
        for (size_t i = 0; i < n_bytes; i++)
            sti_text_add_bytes(text, bytes[i] == ' ' ? SPACE : bytes + i,
                               bytes[i] == ' ' ? strlen(SPACE) : 1);
}

/* How llama.cpp names the words of a scheme; NULL: it has no such. */
static const char *words_of(const sti_token_scheme *s)
{
    const bool nfc = s->steps == 1 && s->step[0] == STI_NORMAL_NFC;
    if (s->prefix || s->steps > nfc)
        return NULL;
    if (s->words == STI_WORDS_LLAMA3 && s->number == 1 && !s->whole_words)
        return "qwen2";
    if (nfc)
        return NULL;
    if (s->words == STI_WORDS_LLAMA3 && s->number == 3)
        return s->whole_words ? "llama-bpe" : "dbrx";
    if (s->words == STI_WORDS_GPT2 && !s->whole_words && s->number <= 1)
        return s->number ? "smollm" : "gpt-2";
    return NULL;
}

static bool is_known(const stint_tokenizer *t)
{
    const sti_token_scheme *s = &t->scheme;
    if (t->info.kind < STINT_TOKENIZER_BPE)
        return false;
    if (!s->pieces)
        return words_of(s) != NULL;
    return s->steps == 0 && !s->whole_words &&
           (s->prefix == STI_PREFIX_DOUBLE || s->prefix == STI_PREFIX_NEVER) &&
           s->words == STI_WORDS_WHOLE;
}

static void put_names(const stint_tokenizer *t, sti_text *text, sti_text *out)
{
    const int32_t count = t->info.vocabulary;
    sti_gguf_put_key_array(out, "tokenizer.ggml.tokens", TYPE_TEXT, count);
    for (int32_t i = 0; i < count; i++) {
        name_of(t, i, text);
        sti_gguf_put_bytes(out, text->data ? text->data : "", text->length);
    }
    sti_gguf_put_key_array(out, "tokenizer.ggml.token_type", TYPE_I32, count);
    for (int32_t i = 0; i < count; i++)
        sti_gguf_put_u32(out, (uint32_t)type_of(t, i));
}

/* Scores whose order is that of the merges, where a file listed these. */
static void put_scores(const stint_tokenizer *t, sti_text *out)
{
    const int32_t count = t->info.vocabulary;
    sti_gguf_put_key_array(out, "tokenizer.ggml.scores", TYPE_F32, count);
    double *made =
        t->score ? NULL : sti_alloc_array(count, sizeof *made, "scores of tokens");
    for (int32_t i = 0; made && i < count; i++)
        made[i] = type_of(t, i) == NORMAL ? -(double)(t->merge_count + i) : 0;
    for (int32_t i = t->merge_count - 1; made && i >= 0; i--)
        made[t->merge[i][2]] = -(double)i;
    for (int32_t i = 0; i < count; i++)
        sti_gguf_put_f32(out, (float)(t->score ? t->score[i] : made ? made[i] : 0));
    out->failed |= !t->score && !made;
    sti_free(made);
}

static void put_merges(const stint_tokenizer *t, sti_text *text, sti_text *out)
{
    sti_text line = {0};
    sti_gguf_put_key_array(out, "tokenizer.ggml.merges", TYPE_TEXT, t->merge_count);
    for (int32_t i = 0; i < t->merge_count; i++) {
        line.length = 0;
        for (int side = 0; side < 2; side++) {
            name_of(t, t->merge[i][side], text);
            sti_text_add_bytes(&line, text->data ? text->data : "", text->length);
            if (side == 0)
                sti_text_add_bytes(&line, " ", 1);
        }
        sti_gguf_put_bytes(out, line.data ? line.data : "", line.length);
    }
    out->failed |= line.failed;
    sti_text_fini(&line);
}

int64_t sti_gguf_put_tokenizer(const stint_tokenizer *t, int64_t end_token,
                               sti_text *out)
{
    sti_text text = {0};
    int64_t keys = 4;
    if (!t || !is_known(t))
        return 0;
    const bool unigram = t->info.kind == STINT_TOKENIZER_UNIGRAM;
    sti_gguf_put_key_text(out, "tokenizer.ggml.model",
                          unigram            ? "t5"
                          : t->scheme.pieces ? "llama"
                                             : "gpt2");
    put_names(t, &text, out); /* two keys */
    if (t->scheme.pieces) {
        put_scores(t, out);
        sti_gguf_put_key_bool(out, "tokenizer.ggml.add_space_prefix",
                              t->scheme.prefix != STI_PREFIX_NEVER);
        keys++;
    } else {
        sti_gguf_put_key_text(out, "tokenizer.ggml.pre", words_of(&t->scheme));
        put_merges(t, &text, out);
        keys++;
    }
    sti_gguf_put_key_bool(out, "tokenizer.ggml.add_bos_token",
                          t->info.begin_token >= 0);
    keys++;
    if (t->info.begin_token >= 0) {
        sti_gguf_put_key_u32(out, "tokenizer.ggml.bos_token_id",
                             (uint32_t)t->info.begin_token);
        keys++;
    }
    if (end_token >= 0) {
        sti_gguf_put_key_u32(out, "tokenizer.ggml.eos_token_id", (uint32_t)end_token);
        keys++;
    }
    out->failed |= text.failed;
    sti_text_fini(&text);
    return keys;
}
