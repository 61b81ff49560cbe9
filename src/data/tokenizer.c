/* Tokenisers: what the kinds share, bytes and characters. */
#include "data/tokenizer.h"

#include <inttypes.h>
#include <string.h>
#include <utf8proc.h>

#include "base/fail.h"
#include "base/file.h"

/* ---- UTF-8 ---- */

stint_status sti_utf8_check(const char *text, size_t n_bytes)
{
    const uint8_t *at = (const uint8_t *)text;
    for (size_t i = 0; i < n_bytes;) {
        utf8proc_int32_t point;
        const utf8proc_ssize_t step =
            at[i] < 0x80
                ? 1
                : utf8proc_iterate(at + i, (utf8proc_ssize_t)(n_bytes - i), &point);
        if (step < 1)
            return sti_fail(
                STINT_E_INPUT,
                "byte %zu (0x%02x) is no UTF-8 text; convert it, or use the "
                "byte tokeniser, which takes any data",
                i, at[i]);
        i += (size_t)step;
    }
    return STINT_OK;
}

/* ---- bytes and characters ---- */

static stint_status add_bytes(stint_tokenizer *t)
{
    stint_status status = STINT_OK;
    for (int i = 0; i < 256 && status == STINT_OK; i++)
        status = sti_tokenizer_add_token(t, (char[]){(char)i}, 1);
    return status;
}

enum { CODE_POINTS = 0x110000 };
/* A form of Unicode grows so much at most (NFKC: U+FDFA, of 3 bytes, becomes 33). */
enum { NORMAL_GROWS = 11 };

/* Characters that nobody sees, and that few want a model to learn. */
static void say_odd(const uint8_t *seen)
{
    static const struct {
        int32_t point;
        const char *what;
    } odd[] = {
        {'\r', "carriage returns (CR, of lines that end as on Windows)"},
        {0xfeff, "a byte order mark (BOM, U+FEFF, often the first of a file)"},
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (seen[odd[i].point / 8] >> odd[i].point % 8 & 1)
            sti_log(STINT_LOG_WARNING,
                    "the text has %s; they are characters of the vocabulary like any "
                    "other; take them out of the text if that is not meant",
                    odd[i].what);
}

static stint_status add_characters(stint_tokenizer *t, const char *text, size_t n_bytes)
{
    uint8_t *seen = sti_alloc(CODE_POINTS / 8, "characters");
    if (!seen)
        return STINT_E_MEMORY;
    for (size_t i = 0; i < n_bytes;) {
        utf8proc_int32_t point;
        i += (size_t)utf8proc_iterate((const uint8_t *)text + i,
                                      (utf8proc_ssize_t)(n_bytes - i), &point);
        seen[point / 8] |= (uint8_t)(1 << point % 8);
    }
    say_odd(seen);
    stint_status status = STINT_OK;
    for (int32_t point = 0; point < CODE_POINTS && status == STINT_OK; point++) {
        uint8_t bytes[4];
        if (seen[point / 8] >> point % 8 & 1)
            status = sti_tokenizer_add_token(
                t, (const char *)bytes, (size_t)utf8proc_encode_char(point, bytes));
    }
    sti_free(seen);
    return status;
}

stint_status sti_tokenizer_learn(stint_tokenizer_kind kind, int32_t vocabulary,
                                 const char *text, size_t n_bytes, size_t budget_bytes,
                                 stint_tokenizer **tokenizer_out)
{
    stint_tokenizer *t = NULL;
    *tokenizer_out = NULL;
    if (kind != STINT_TOKENIZER_BYTE && n_bytes == 0)
        return sti_fail(STINT_E_INPUT, "the text is empty: there is nothing to learn a "
                                       "vocabulary from");
    stint_status status =
        kind == STINT_TOKENIZER_BYTE ? STINT_OK : sti_utf8_check(text, n_bytes);
    if (status == STINT_OK)
        status = sti_tokenizer_create(kind, &t);
    if (status != STINT_OK)
        return status;
    if (kind == STINT_TOKENIZER_BYTE)
        status = add_bytes(t);
    else if (kind == STINT_TOKENIZER_CHAR)
        status = add_characters(t, text, n_bytes);
    else
        status = sti_bpe_learn(t, vocabulary, text, n_bytes, budget_bytes);
    if (status == STINT_OK)
        status = sti_tokenizer_finish(t);
    if (status != STINT_OK)
        stint_tokenizer_close(t);
    else
        *tokenizer_out = t;
    return status;
}

stint_status stint_tokenizer_learn(stint_tokenizer_kind kind, int32_t vocabulary,
                                   const char *text, size_t n_bytes,
                                   stint_tokenizer **tokenizer_out)
{
    return sti_tokenizer_learn(kind, vocabulary, text, n_bytes, 0, tokenizer_out);
}

static int32_t character_token(const stint_tokenizer *t, int32_t point)
{
    int32_t low = 0, high = t->info.vocabulary;
    while (low < high) {
        const int32_t mid = low + (high - low) / 2;
        if (t->code_point[mid] < point)
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->info.vocabulary && t->code_point[low] == point ? low : -1;
}

static stint_status encode_characters(const stint_tokenizer *t, const char *text,
                                      size_t n_bytes, int32_t *tokens, int64_t *count)
{
    for (size_t i = 0; i < n_bytes;) {
        utf8proc_int32_t point;
        const int step = (int)utf8proc_iterate((const uint8_t *)text + i,
                                               (utf8proc_ssize_t)(n_bytes - i), &point);
        const int32_t token = character_token(t, point);
        if (token < 0)
            return sti_fail(
                STINT_E_INPUT,
                "character '%.*s' (U+%04X) at byte %zu is not among the %d of "
                "the vocabulary; leave it out, or train with a byte-pair "
                "tokeniser, which takes any text",
                step, text + i, (unsigned)point, i, t->info.vocabulary);
        tokens[(*count)++] = token;
        i += (size_t)step;
    }
    return STINT_OK;
}

int64_t stint_tokenizer_most(const stint_tokenizer *t, size_t n_bytes)
{
    const sti_token_scheme *s = &t->scheme;
    const size_t each = s->steps > 0 ? NORMAL_GROWS : 1;
    const size_t prefixes = s->prefix == STI_PREFIX_NEVER ? 0
                            : t->special_count > 0        ? n_bytes
                                                          : 1;
    return (int64_t)(each * n_bytes + prefixes);
}

stint_status stint_tokenizer_encode(const stint_tokenizer *t, const char *text,
                                    size_t n_bytes, int32_t *tokens_out,
                                    int64_t *count_out)
{
    *count_out = 0;
    if (t->info.kind == STINT_TOKENIZER_BYTE) {
        for (size_t i = 0; i < n_bytes; i++)
            tokens_out[i] = (uint8_t)text[i];
        *count_out = (int64_t)n_bytes;
        return STINT_OK;
    }
    stint_status status = sti_utf8_check(text, n_bytes);
    if (status != STINT_OK)
        return status;
    if (!sti_text_scheme_is_plain(&t->scheme))
        return sti_text_scheme_encode(t, text, n_bytes, tokens_out, count_out);
    return t->info.kind == STINT_TOKENIZER_CHAR
               ? encode_characters(t, text, n_bytes, tokens_out, count_out)
               : sti_bpe_encode(t, text, n_bytes, tokens_out, count_out);
}
