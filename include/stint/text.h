/* Text as tokens: byte, character and byte-pair tokenisers.
 *
 * A tokeniser is read-only after it was made: any number of threads may use it. Token
 * identities are 0 .. vocabulary - 1. Encoding then decoding gives the same bytes. */
#ifndef STINT_TEXT_H
#define STINT_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stint_tokenizer_kind {
    STINT_TOKENIZER_BYTE, /* one token a byte, 256 tokens, any data */
    STINT_TOKENIZER_CHAR, /* one token a Unicode character of the text learned from */
    STINT_TOKENIZER_BPE   /* byte-pair encoding of words, as GPT-2's: any UTF-8 text */
} stint_tokenizer_kind;

typedef struct stint_tokenizer stint_tokenizer;

typedef struct stint_tokenizer_info {
    stint_tokenizer_kind kind;
    int32_t vocabulary; /* tokens */
    const char *hash;   /* SHA-256 of kind, tokens and merges, 64 hex digits */
} stint_tokenizer_info;

/** Learn a vocabulary from text. BYTE needs none. BPE: `vocabulary` tokens, at least
 *  256; fewer when no pair is left that occurs twice. Merges are those of the most
 *  frequent pair, ties to the lower token identities: one text, one vocabulary
 * (Sennrich et al. 2016; word pattern and byte alphabet of GPT-2, Radford et al. 2019).
 *  STINT_E_INPUT: CHAR or BPE of bytes that are no UTF-8 (the offset is told), or an
 *  empty text. */
STINT_API stint_status stint_tokenizer_learn(stint_tokenizer_kind kind,
                                             int32_t vocabulary, const char *text,
                                             size_t n_bytes,
                                             stint_tokenizer **tokenizer_out);
/** From a file that stint_tokenizer_write wrote, or from a folder with GPT-2's
 *  vocab.json and merges.txt, or without these a tokenizer.json of that kind.
 *  STINT_E_INPUT says what is wrong with it and where; STINT_E_UNSUPPORTED: a
 *  tokenizer.json of another kind. */
STINT_API stint_status stint_tokenizer_read(const char *path,
                                            stint_tokenizer **tokenizer_out);
/** One JSON file, replaced atomically. */
STINT_API stint_status stint_tokenizer_write(const stint_tokenizer *tokenizer,
                                             const char *path);
/** vocab.json and merges.txt as GPT-2 has them, into a folder. STINT_E_UNSUPPORTED
 * unless BPE. */
STINT_API stint_status stint_tokenizer_write_gpt2(const stint_tokenizer *tokenizer,
                                                  const char *folder);
STINT_API void stint_tokenizer_close(stint_tokenizer *tokenizer); /* NULL is fine */

STINT_API const stint_tokenizer_info *
stint_tokenizer_describe(const stint_tokenizer *tokenizer);

/** tokens_out [n_bytes] is always enough. STINT_E_INPUT: bytes that are no UTF-8, or a
 *  character that the vocabulary does not have (character and offset are told). Text
 * that looks like a special token ("<|endoftext|>") is ordinary text. */
STINT_API stint_status stint_tokenizer_encode(const stint_tokenizer *tokenizer,
                                              const char *text, size_t n_bytes,
                                              int32_t *tokens_out, int64_t *count_out);
/** The bytes of a token, not NUL-terminated; they live as long as the tokeniser. NULL
 * and 0 bytes for an identity outside the vocabulary. */
STINT_API const char *stint_tokenizer_token(const stint_tokenizer *tokenizer,
                                            int32_t token, size_t *n_bytes_out);

#ifdef __cplusplus
}
#endif

#endif
