/* Text as tokens: byte, character and byte-pair tokenisers.
 *
 * A tokeniser is read-only once it is made: any number of threads may use it at once.
 * It lives in memory alone; the file that it came from may change or go.
 *
 * Token identities are 0 to vocabulary - 1. Encoding and then decoding gives the same
 * bytes back, but for a tokeniser that was read and normalises text, knows an unknown
 * token, or puts a space before text.
 *
 *   stint_tokenizer *t = NULL;
 *   stint_status st =
 *       stint_tokenizer_learn(STINT_TOKENIZER_BPE, 4096, text, n_bytes, &t);
 *   if (st == STINT_OK)
 *       st = stint_tokenizer_encode(t, text, n_bytes, tokens, &count);
 *   stint_tokenizer_close(t); */
#ifndef STINT_TEXT_H
#define STINT_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a token is, and with it which data can be encoded. */
typedef enum stint_tokenizer_kind {
    /* A byte: 256 tokens, any data. */
    STINT_TOKENIZER_BYTE,
    /* A Unicode character of the text that was learned from. */
    STINT_TOKENIZER_CHAR,
    /* A byte-pair encoding of words, as GPT-2's: any UTF-8 text. One that was read may
     * be another, as Llama 3's, or of characters, as SentencePiece's. */
    STINT_TOKENIZER_BPE,
    /* The likeliest pieces of SentencePiece's unigram model (Kudo 2018); only read. */
    STINT_TOKENIZER_UNIGRAM
} stint_tokenizer_kind;

/** A tokeniser; opaque. Made by stint_tokenizer_learn or stint_tokenizer_read, or owned
 * by a model (stint_model_tokenizer). */
typedef struct stint_tokenizer stint_tokenizer;

/** What a tokeniser is. Two with the same hash encode every text
 * alike. */
typedef struct stint_tokenizer_info {
    stint_tokenizer_kind kind;
    /* Number of tokens. */
    int32_t vocabulary;
    /* SHA-256 of kind, tokens and merges, 64 hex digits; lives as long as the
     * tokeniser. */
    const char *hash;
    /* The token that a prompt begins with, where the model was trained so; -1: none.
     * Encoding does not add it. */
    int32_t begin_token;
} stint_tokenizer_info;

/* ---- making ---- */

/** Learn a vocabulary from text [n_bytes]; the caller closes the tokeniser.
 *
 * BYTE needs no text. CHAR takes every character that occurs. BPE takes `vocabulary`
 * tokens, at least 256; fewer when no pair is left that occurs twice. Merges are those
 * of the most frequent pair, ties to the lower token identities, so that one text gives
 * one vocabulary (Sennrich et al. 2016; word pattern and byte alphabet of GPT-2,
 * Radford et al. 2019). STINT_E_INPUT: for CHAR or BPE an empty text, or bytes that are
 * no UTF-8 (the offset is told); STINT_E_USAGE: a BPE of less than 256 tokens;
 * STINT_E_UNSUPPORTED: different words of more than 1 GiB together; STINT_E_MEMORY;
 * STINT_E_INTERRUPTED or _TERMINATED after stint_stop(), while byte pairs are learnt.
 * *tokenizer_out is NULL after an error.
 *
 * Byte pairs are learnt in O(n log n), with at most about 20 bytes for a byte of the
 * different words. A word of more than 16 MiB is cut at the last character that fits,
 * for encoding, too. */
STINT_API stint_status stint_tokenizer_learn(stint_tokenizer_kind kind,
                                             int32_t vocabulary, const char *text,
                                             size_t n_bytes,
                                             stint_tokenizer **tokenizer_out);

/** Read a tokeniser; the caller closes it.
 *
 * path: a file that stint_tokenizer_write wrote, or a folder with GPT-2's vocab.json
 * and merges.txt, or with a tokenizer.json: byte pairs with GPT-2's, Llama 3's or
 * Qwen2's words, SentencePiece's byte pairs or unigrams (docs/text.md). STINT_E_INPUT
 * says what is wrong with it and where; STINT_E_UNSUPPORTED: a tokenizer.json of
 * another kind; STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_tokenizer_read(const char *path,
                                            stint_tokenizer **tokenizer_out);

/** Free a tokeniser and all that points into it: its description, and the bytes of its
 * tokens. NULL is fine. */
STINT_API void stint_tokenizer_close(stint_tokenizer *tokenizer);

/* ---- writing ---- */

/** Write one JSON file, replacing what is there in one step; stint_tokenizer_read takes
 * it, and the result has the same hash. STINT_E_IO;
 * STINT_E_MEMORY. */
STINT_API stint_status stint_tokenizer_write(const stint_tokenizer *tokenizer,
                                             const char *path);

/** Write vocab.json and merges.txt as GPT-2 has them into a folder, which is made
 * where it is missing.
 * STINT_E_UNSUPPORTED for a tokeniser that is not BPE; STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_tokenizer_write_gpt2(const stint_tokenizer *tokenizer,
                                                  const char *folder);

/* ---- using ---- */

/** Kind, number of tokens and hash. Never NULL; lives as long as the tokeniser. */
STINT_API const stint_tokenizer_info *
stint_tokenizer_describe(const stint_tokenizer *tokenizer);

/** Most tokens that so many bytes of text can become: n_bytes, and more with a
 * tokeniser that was read and normalises text or puts a space before it. Never fails.
 */
STINT_API int64_t stint_tokenizer_most(const stint_tokenizer *tokenizer,
                                       size_t n_bytes);

/** Encode text [n_bytes] into tokens_out, which has room for stint_tokenizer_most;
 * *count_out is their number. The text needs no NUL at its end. The result is a
 * pure function of tokeniser and text.
 *
 * Special tokens of a tokeniser that was read ("<|endoftext|>") are taken whole where
 * the text has them, the longest first; to others such text is ordinary.
 * STINT_E_INPUT: bytes that are no UTF-8, or a character that the vocabulary does not
 * have (character and offset are told); STINT_E_MEMORY; STINT_E_INTERRUPTED or
 * _TERMINATED after stint_stop(); tokens_out may then be partly written. */
STINT_API stint_status stint_tokenizer_encode(const stint_tokenizer *tokenizer,
                                              const char *text, size_t n_bytes,
                                              int32_t *tokens_out, int64_t *count_out);

/** Decode: the bytes of a token, not NUL-terminated; they live as long as the
 * tokeniser. NULL and 0 bytes for an identity outside the vocabulary. */
STINT_API const char *stint_tokenizer_token(const stint_tokenizer *tokenizer,
                                            int32_t token, size_t *n_bytes_out);

#ifdef __cplusplus
}
#endif

#endif
