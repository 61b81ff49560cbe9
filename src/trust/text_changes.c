#include "trust/text_changes.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"

enum { BEFORE_BYTES = 120, BEFORE_TOKENS = 120 };

void sti_text_changes_take(stint_text_fidelity *f, const stint_text_change *change)
{
    int64_t at = f->changes;
    while (at > 0 && f->change[at - 1].kl < change->kl)
        at--;
    if (at == STINT_TEXT_CHANGES)
        return;
    if (f->changes < STINT_TEXT_CHANGES)
        f->changes++;
    memmove(f->change + at + 1, f->change + at,
            (size_t)(f->changes - 1 - at) * sizeof *f->change);
    f->change[at] = *change;
}

/* As UTF-8, without NUL; what is none becomes U+FFFD. */
static const char *keep_text(sti_arena *arena, const char *bytes, size_t n)
{
    sti_utf8_stream stream = {.count = 0};
    sti_text text = {0};
    for (size_t i = 0; i < n; i++)
        sti_utf8_stream_add(&stream, bytes[i] ? &bytes[i] : " ", 1, &text);
    sti_utf8_stream_end(&stream, &text);
    const char *kept =
        text.failed ? NULL : sti_arena_strdup(arena, text.data ? text.data : "");
    sti_text_fini(&text);
    return kept;
}

const char *sti_text_token_words(const sti_corpus *c, sti_arena *arena, int32_t token)
{
    size_t n = 0;
    const char *bytes = stint_tokenizer_token(c->tokenizer, token, &n);
    return keep_text(arena, bytes, n);
}

const char *sti_text_tokens_words(const sti_corpus *c, sti_arena *arena,
                                  const int32_t *token, int64_t count, size_t most)
{
    sti_text text = {0};
    for (int64_t i = 0; i < count && text.length < most; i++) {
        size_t n = 0;
        const char *bytes = stint_tokenizer_token(c->tokenizer, token[i], &n);
        sti_text_add_bytes(&text, bytes, n);
    }
    const size_t length = text.length < most ? text.length : most;
    const char *kept =
        text.failed ? NULL : keep_text(arena, text.data ? text.data : "", length);
    sti_text_fini(&text);
    return kept;
}

/* The last bytes of what stands before token `at` of the part in its window. */
static stint_status text_before(const sti_corpus *c, const sti_corpus_part *part,
                                int64_t context, int64_t at, sti_arena *arena,
                                const char **text_out)
{
    /* The windows' first label is their second token: at - 1 is the last that is read.
     */
    const int64_t begin = (at - 1) / context * context;
    const int64_t first = at - begin < BEFORE_TOKENS ? begin : at - BEFORE_TOKENS;
    int32_t token[BEFORE_TOKENS];
    sti_text text = {0};
    stint_status st = sti_corpus_tokens(c, part->begin + first, at - first, token);
    for (int64_t i = 0; i < at - first && st == STINT_OK; i++) {
        size_t n = 0;
        const char *bytes = stint_tokenizer_token(c->tokenizer, token[i], &n);
        sti_text_add_bytes(&text, bytes, n);
    }
    if (text.failed)
        st = STINT_E_MEMORY;
    if (st == STINT_OK) {
        size_t skip = text.length > BEFORE_BYTES ? text.length - BEFORE_BYTES : 0;
        while (skip < text.length && (text.data[skip] & 0xc0) == 0x80)
            skip++; /* a character that is cut is left out */
        *text_out = keep_text(arena, text.data + skip, text.length - skip);
        st = *text_out ? STINT_OK : STINT_E_MEMORY;
    }
    sti_text_fini(&text);
    return st;
}

stint_status sti_text_changes_write(const sti_corpus *c, const sti_corpus_part *part,
                                    int64_t context, stint_text_fidelity *f)
{
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < f->changes && st == STINT_OK; i++) {
        stint_text_change *t = &f->change[i];
        st = text_before(c, part, context, t->at, f->arena, &t->before);
        t->label_text = sti_text_token_words(c, f->arena, t->label);
        t->reference_text = sti_text_token_words(c, f->arena, t->reference_answer);
        t->changed_text = sti_text_token_words(c, f->arena, t->changed_answer);
        if (st == STINT_OK &&
            (!t->label_text || !t->reference_text || !t->changed_text))
            st = STINT_E_MEMORY;
    }
    return st;
}
