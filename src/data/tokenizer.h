/* Inside the tokenisers. The data room's readers and model files use the two functions
 * on text; the rest is shared by tokenizer*.c. */
#ifndef STI_DATA_TOKENIZER_H
#define STI_DATA_TOKENIZER_H

#include <stdbool.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/tokenizer_scheme.h"
#include "stint/text.h"

/* The JSON of a tokeniser, and back; `where` names it in messages. */
stint_status sti_tokenizer_print(const stint_tokenizer *tokenizer, sti_text *out);
stint_status sti_tokenizer_parse(const char *json, size_t n_bytes, const char *where,
                                 stint_tokenizer **tokenizer_out);

/* As stint_tokenizer_learn; STINT_E_BUDGET when the resident memory of the process
 * would exceed budget_bytes (0: no limit). */
stint_status sti_tokenizer_learn(stint_tokenizer_kind kind, int32_t vocabulary,
                                 const char *text, size_t n_bytes, size_t budget_bytes,
                                 stint_tokenizer **tokenizer_out);

/* Words end here at the latest, at the last character that fits: what is longer is cut,
 * for learning as for encoding, so that memory for a word has a bound. */
#define STI_WORD_BYTES ((size_t)1 << 24)
/* Working space for each byte of the longest word while it is encoded. */
#define STI_WORD_WORK_BYTES 18
/* End of the word that begins at `at`: GPT-2's pattern
 * 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
size_t sti_word_end(const char *text, size_t n_bytes, size_t at);

/* End of what begins at `at` in text that byte pairs encode: a special token, which is
 * told, or a word (-1). *plain_end is kept from call to call, 0 to begin with: where
 * the next special token begins, which a word ends before. */
size_t sti_bpe_piece_end(const stint_tokenizer *t, const char *text, size_t n_bytes,
                         size_t at, size_t *plain_end, int32_t *special_out);

/* tokenizer.json of one that has a scheme of its own. */
stint_status sti_tokenizer_write_hf(const stint_tokenizer *t, const char *path);
/* tokenizer.json of a character tokeniser. */
stint_status sti_tokenizer_write_char_hf(const stint_tokenizer *t, const char *path);
/* tokenizer_config.json beside GPT-2's two files or that one: special tokens, and the
 * one that ends a text (-1: none; without the file `transformers` adds one of its own).
 */
stint_status sti_tokenizer_write_config(const stint_tokenizer *t, int64_t end_token,
                                        const char *path);

/* ---- private to tokenizer*.c and learn_*.c ---- */

/* Open addressing from 64-bit keys to int32, grown by doubling; -1: not there. */
typedef struct sti_pair_map {
    uint64_t *key; /* key + 1; 0: free */
    int32_t *value;
    int64_t slots, used;
} sti_pair_map;
int32_t sti_pair_map_find(const sti_pair_map *map, uint64_t key);
stint_status sti_pair_map_put(sti_pair_map *map, uint64_t key, int32_t value);
void sti_pair_map_fini(sti_pair_map *map);

static inline uint64_t sti_pair_key(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* A token that is taken whole wherever the text has its bytes. */
typedef struct sti_special {
    int32_t token;
    uint8_t first; /* byte of it */
    size_t n_bytes;
} sti_special;

/* Tokens by their bytes: hash to the first of a chain. Byte tokens of pieces and
 * special tokens have bytes that others may have, too, and are not in it. */
typedef struct sti_token_index {
    sti_pair_map head;
    int32_t *chain; /* [vocabulary] */
} sti_token_index;

struct stint_tokenizer {
    stint_tokenizer_info info;
    sti_token_scheme scheme;
    char hash[65];
    char *bytes; /* of all tokens, one after the other */
    size_t bytes_used, bytes_capacity;
    int64_t *start;          /* [vocabulary + 1] into bytes */
    int32_t capacity;        /* of start, less one */
    int32_t *code_point;     /* CHAR: [vocabulary], ascending */
    int32_t byte_token[256]; /* BPE: token of a single byte; of pieces: -1 where there
                                is none */
    sti_pair_map point;      /* pieces: code point to token */
    double *score;           /* UNIGRAM: [vocabulary] */
    double least_score;
    sti_token_index index; /* where words are looked up whole */
    size_t longest;        /* bytes of a token in the index */
    int32_t (*merge)[3];   /* BPE: [merge_count] left, right, result */
    int32_t merge_count, merge_capacity;
    sti_pair_map rank;    /* BPE: pair to merge */
    sti_special *special; /* BPE: [special_count], by first byte */
    int32_t special_count, special_capacity;
    int32_t special_from[257]; /* those of a first byte */
    size_t longest_special;    /* bytes */
};

stint_status sti_tokenizer_create(stint_tokenizer_kind kind, stint_tokenizer **out);
stint_status sti_tokenizer_add_token(stint_tokenizer *t, const char *bytes,
                                     size_t n_bytes);
/* The bytes of two tokens, one after the other. */
stint_status sti_tokenizer_add_joined(stint_tokenizer *t, int32_t left, int32_t right);
stint_status sti_tokenizer_add_merge(stint_tokenizer *t, int32_t left, int32_t right,
                                     int32_t result);
/* STINT_E_INPUT: no such token. */
stint_status sti_tokenizer_add_special(stint_tokenizer *t, int32_t token);
void sti_tokenizer_sort_specials(stint_tokenizer *t);
/* All tokens and merges are there: hash, code points and single bytes are looked up.
 * STINT_E_INPUT: a byte without a token, a token twice. */
stint_status sti_tokenizer_finish(stint_tokenizer *t);

/* GPT-2's vocabulary (token to identity) and merges (a pair a line). */
struct json_t;
stint_status sti_tokenizer_add_vocab(stint_tokenizer *t, struct json_t *vocabulary,
                                     const char *where);
stint_status sti_tokenizer_add_merges(stint_tokenizer *t, const char *lines,
                                      size_t n_bytes, const char *where);
/* "tokens" and "merges", the lists of our own JSON object. */
stint_status sti_tokenizer_add_lists(stint_tokenizer *t, struct json_t *root,
                                     const char *where);
/* Both, and the added tokens, of a tokenizer.json. STINT_E_UNSUPPORTED: it is not of
 * GPT-2's kind. */
stint_status sti_tokenizer_add_hf(stint_tokenizer *t, struct json_t *root,
                                  const char *where);
/* Is it one of sti_tokenizer_write_char_hf, and reading that. */
bool sti_tokenizer_is_char_hf(const struct json_t *root);
stint_status sti_tokenizer_add_char_hf(stint_tokenizer *t, struct json_t *root,
                                       const char *where);
/* Added tokens, a list of {"content", "id"}: those that are no part of a vocabulary
 * (token to identity) join it; then, when that is read, all become special. */
stint_status sti_tokenizer_join_added(struct json_t *vocabulary,
                                      const struct json_t *added, const char *where);
stint_status sti_tokenizer_add_specials(stint_tokenizer *t, const struct json_t *added,
                                        const char *where);

/* STINT_E_INPUT with the offset unless all of it is UTF-8. */
stint_status sti_utf8_check(const char *text, size_t n_bytes);

/* GPT-2's printable stand-ins for bytes: "Ġ" for a space. */
void sti_byte_alphabet(int32_t code_point_of[256]);
void sti_byte_alphabet_add(const char *bytes, size_t n_bytes, sti_text *out);
/* Bytes of words written so, in the place of what `out` holds; false for a character
 * that stands for no byte. */
bool sti_byte_alphabet_read(const char *words, size_t n_bytes, sti_text *out);

stint_status sti_token_index_build(const stint_tokenizer *t, const char *where,
                                   sti_token_index *index);
int32_t sti_token_index_find(const stint_tokenizer *t, const sti_token_index *index,
                             const char *bytes, size_t n_bytes);
void sti_token_index_fini(sti_token_index *index);
/* The hash of bytes one after the other, which begins with STI_TOKEN_HASH; and a
 * look-up by it. */
#define STI_TOKEN_HASH UINT64_C(0xcbf29ce484222325)
static inline uint64_t sti_token_hash_add(uint64_t hash, char byte)
{
    return (hash ^ (uint8_t)byte) * UINT64_C(0x100000001b3);
}
int32_t sti_token_index_find_hashed(const stint_tokenizer *t,
                                    const sti_token_index *index, uint64_t hash,
                                    const char *bytes, size_t n_bytes);

/* ---- tokenisers with a scheme of their own ---- */

/* The token that a prompt begins with: a number, of the vocabulary; or none. */
void sti_tokenizer_set_begin(stint_tokenizer *t, const struct json_t *id);
/* Vocabulary and merges or scores of a tokenizer.json whose tokens are pieces. */
stint_status sti_tokenizer_add_pieces(stint_tokenizer *t, struct json_t *root,
                                      const char *where);
/* A piece as files have it ("\u2581a", and with `bytes` "<0x0A>") as token number
 * `vocabulary`: bytes that it stands for. */
stint_status sti_tokenizer_add_piece(stint_tokenizer *t, const char *piece, bool bytes);
/* A merge of two pieces, whose tokens and result must be there. `index` is of all
 * tokens.
 */
stint_status sti_tokenizer_add_piece_merge(stint_tokenizer *t,
                                           const sti_token_index *index,
                                           const char *left, const char *right,
                                           const char *where);
/* Merges of pieces that no file lists, as SentencePiece has them: two tokens that make
 * a third merge, those with the highest score first. STINT_E_MEMORY. */
stint_status sti_tokenizer_merges_of_scores(stint_tokenizer *t);
/* What finishing a tokeniser of pieces, or of whole words, looks up. */
stint_status sti_tokenizer_find_pieces(stint_tokenizer *t);
/* Tokens of text, which is UTF-8, by the scheme. tokens_out has room for
 * stint_tokenizer_most. */
stint_status sti_text_scheme_encode(const stint_tokenizer *t, const char *text,
                                    size_t n_bytes, int32_t *tokens_out,
                                    int64_t *count_out);
/* Tokens of one normalised word, added to them. */
stint_status sti_unigram_encode(const stint_tokenizer *t, const char *word,
                                size_t n_bytes, int32_t *tokens_out, int64_t *count);
/* Merge the tokens of one word. */
stint_status sti_bpe_merge(const stint_tokenizer *t, int32_t *token, int64_t *count);
/* The special token at `at`: its end, and the token; else where the next begins, or
 * n_bytes, and -1. */
size_t sti_special_or_plain(const stint_tokenizer *t, const char *text, size_t n_bytes,
                            size_t at, int32_t *special_out);
/* Characters [n_bytes] that the vocabulary does not have: their bytes' tokens, or the
 * unknown one. STINT_E_INPUT: it has neither. */
stint_status sti_piece_unknown(const stint_tokenizer *t, const char *bytes,
                               size_t n_bytes, int32_t *tokens_out, int64_t *count);

stint_status sti_bpe_learn(stint_tokenizer *t, int32_t vocabulary, const char *text,
                           size_t n_bytes, size_t budget_bytes);
stint_status sti_bpe_encode(const stint_tokenizer *t, const char *text, size_t n_bytes,
                            int32_t *tokens_out, int64_t *count_out);

/* Merge the tokens of a long word in O(n log n); *count of them, then as many as are
 * left. STINT_E_MEMORY, or who was asked to stop. */
stint_status sti_bpe_merge_long(const stint_tokenizer *t, int32_t *token,
                                int64_t *count);
/* Whether encoding is asked to stop. */
stint_status sti_bpe_look(void);

#endif
