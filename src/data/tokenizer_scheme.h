/* How a tokeniser prepares text: what is normalised, where it is cut into words, and
 * what tokens are made of. A zeroed scheme is GPT-2's: nothing is normalised, words by
 * its pattern, tokens of bytes. Others come from a tokenizer.json or a GGUF file. */
#ifndef STI_DATA_TOKENIZER_SCHEME_H
#define STI_DATA_TOKENIZER_SCHEME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/text.h"
#include "stint/status.h"

struct json_t;

/* Where text is cut into words. */
typedef enum sti_words {
    STI_WORDS_GPT2,
    /* Llama 3's pattern, which Qwen2 has with single digits:
     * (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
     *  ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
    STI_WORDS_LLAMA3,
    STI_WORDS_WHOLE,  /* nowhere */
    STI_WORDS_SPACES, /* before every space */
    STI_WORDS_KINDS
} sti_words;

/* A space that is put before text, so that its first word is like any other. */
typedef enum sti_prefix {
    STI_PREFIX_NEVER,
    STI_PREFIX_FIRST,  /* at the beginning of the text, unless a space is there */
    STI_PREFIX_ALWAYS, /* behind special tokens, too */
    STI_PREFIX_DOUBLE, /* likewise, even where a space is there */
    STI_PREFIX_KINDS
} sti_prefix;

/* Steps by which text is normalised. */
typedef enum sti_normal_step {
    STI_NORMAL_NFC,
    STI_NORMAL_NFKC,
    STI_NORMAL_NMT, /* control characters go, odd spaces become plain ones */
    STI_NORMAL_SPACES /* of several spaces one stays */,
    STI_NORMAL_KINDS
} sti_normal_step;

enum { STI_NORMAL_STEPS = 8, STI_NUMBER_MOST = 3 };

typedef struct sti_token_scheme {
    sti_words words;
    int number; /* digits of a word at most; 0: as many as there are */
    sti_prefix prefix;
    bool pieces; /* tokens of characters, as SentencePiece's; a space in them is its
                    U+2581 */
    bool whole_words;  /* a word that is a token is taken as it is */
    bool fuse_unknown; /* characters without a token, side by side, are one unknown */
    sti_normal_step step[STI_NORMAL_STEPS];
    int steps;
    int32_t unknown; /* pieces: token of what has none; -1: none */
} sti_token_scheme;

bool sti_text_scheme_is_plain(const sti_token_scheme *scheme); /* GPT-2's */
/* Text can be cut at words, and every word encoded by itself: nothing is normalised. */
bool sti_text_scheme_is_by_words(const sti_token_scheme *scheme);

/* Its JSON object under `key`, and back. STINT_E_INPUT: not one of ours. */
void sti_text_scheme_print(const sti_token_scheme *scheme, const char *key,
                           sti_json *json);
stint_status sti_text_scheme_parse(const struct json_t *object, const char *where,
                                   sti_token_scheme *scheme_out);

/* The scheme that a tokenizer.json asks for. STINT_E_UNSUPPORTED names what is not
 * known here. `unknown` is left at -1. */
stint_status sti_text_scheme_of_hf(const struct json_t *root, const char *where,
                                   sti_token_scheme *scheme_out);

/* A stretch of text between special tokens, normalised, in place of what `out` held.
 * first: the text begins with it. Not for schemes by words. STINT_E_MEMORY. */
stint_status sti_text_scheme_normalise(const sti_token_scheme *scheme, const char *text,
                                       size_t n_bytes, bool first, sti_text *out);

/* End of the word that begins at `at`. */
size_t sti_text_scheme_word_end(const sti_token_scheme *scheme, const char *text,
                                size_t n_bytes, size_t at);

#endif
