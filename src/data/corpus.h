/* Text as tokens: what a transformer is trained and measured on.
 *
 * A corpus is one text file, or the files of a folder in the order of their names, put
 * one after the other and encoded once. Its tokens lie in a cache file and are read
 * from there by pread: they take no resident memory, whatever the length of the text.
 * Where no cache can be written they are kept in memory.
 *
 * The tokens are cut in contiguous parts: training, what is held out of it, test. An
 * epoch of training visits windows of `context` tokens side by side, from a first
 * position that is drawn for each epoch; labels are the tokens that follow. A window is
 * a pure function of (seed, epoch, index). */
#ifndef STI_DATA_CORPUS_H
#define STI_DATA_CORPUS_H

#include "base/memory.h"
#include "base/team.h"
#include "data/data.h"
#include "stint/text.h"

typedef struct sti_corpus_desc {
    const char *path;
    /* How to make tokens: with this one (borrowed), else as tokenizer_path has it, else
     * learned from the text. */
    const stint_tokenizer *tokenizer;
    const char *tokenizer_path; /* NULL: none */
    /* What reads that path; NULL: stint_tokenizer_read. */
    stint_status (*read_tokenizer)(const char *path, stint_tokenizer **tokenizer_out);
    stint_tokenizer_kind kind;
    int32_t vocabulary;  /* of byte pairs to learn; 0: 4096 */
    double validation;   /* share of the tokens that is the test part: the last ones */
    double hold_out;     /* share of the others that is not trained on, their last */
    size_t budget_bytes; /* preparing that needs more is refused; 0: no limit */
} sti_corpus_desc;

/* Tokens begin .. end - 1. */
typedef struct sti_corpus_part {
    int64_t begin, end;
    int64_t bytes; /* of text, of all but the first token: what is predicted */
} sti_corpus_part;

typedef struct sti_corpus {
    const char *path; /* absolute */
    const stint_tokenizer *tokenizer;
    int64_t files, bytes, tokens;
    sti_corpus_part train, held, test; /* one after the other; held may be empty */
    char text_sha256[65];
    /* Private. */
    sti_arena *arena;
    stint_tokenizer *own_tokenizer;
    int fd;                /* of the cache, or -1 */
    const char *cache;     /* its path */
    int64_t first_byte;    /* of the tokens in it */
    const uint8_t *kept;   /* the tokens, without a cache */
    int token_bytes;       /* 2 or 4 */
    size_t prepared_bytes; /* resident memory that preparing took; 0: it was there */
} sti_corpus;

/* A file, or a folder with *.txt (or, when there are none, with files of other names
 * that do not begin with a dot), but for those that by their names are pictures or
 * archives of them? */
bool sti_corpus_is_text(const char *path);

/* What is at a path, read through once; nothing is kept of it. */
typedef struct sti_corpus_look {
    const char *path; /* absolute, in the arena */
    int64_t files, bytes, characters;
    int32_t different; /* characters */
    bool utf8;
    char why[256]; /* it is not, with the offset */
    char sha256[65];
} sti_corpus_look;
stint_status sti_corpus_look_at(const char *path, sti_arena *arena,
                                sti_corpus_look *out);

/* STINT_E_INPUT: nothing there, empty, no UTF-8 (the file and the offset are told), a
 * character that the tokeniser does not have; STINT_E_BUDGET; STINT_E_IO. Read-only
 * afterwards: any number of threads may use it. */
stint_status sti_corpus_open(const sti_corpus_desc *desc, sti_corpus **corpus_out);
void sti_corpus_close(sti_corpus *corpus); /* NULL is fine */

/* Tokens first .. first + count - 1 of the whole text, which has them. Allocates
 * nothing. STINT_E_IO. */
stint_status sti_corpus_tokens(const sti_corpus *corpus, int64_t first, int64_t count,
                               int32_t *tokens_out);

/* Windows of an epoch over a part; 0: the part is shorter than a window and the token
 * after it. */
int64_t sti_corpus_train_windows(const sti_corpus_part *part, int64_t context);
/* Windows that hold every token of a part but the first as a label once. The last may
 * be shorter. */
int64_t sti_corpus_test_windows(const sti_corpus_part *part, int64_t context);

/* Bytes of the whole text but its first token. */
int64_t sti_corpus_bytes(const sti_corpus *corpus);
/* A mean loss over the tokens of a part, in nats a token, as bits a byte of its text.
 */
double sti_corpus_bits_per_byte(const sti_corpus_part *part, double nats);

/* How windows are cut. */
typedef struct sti_corpus_cut {
    sti_corpus_part part;
    int64_t context;
    const sti_data_augment *augment; /* seed and epoch of the shift; NULL: none */
} sti_corpus_cut;

/* Windows by index, -1 for padding, into tokens_out and labels_out [count, context].
 * What is beyond the part is token 0 with label -1. Allocates nothing. */
stint_status sti_corpus_batch(const sti_corpus *corpus, const sti_corpus_cut *cut,
                              const int32_t *windows, int64_t count,
                              int32_t *tokens_out, int32_t *labels_out);

/* ---- private to corpus*.c and token_cache.c ---- */

/* The cache file of a key, opened into `corpus`: tokeniser, tokens, counts.
 * STINT_E_INPUT with the words when it is not that, cut short or damaged. */
stint_status sti_token_cache_open(const char *path, const char *key,
                                  sti_corpus *corpus);

/* Writing one: tokens go in a piece at a time. */
typedef struct sti_token_sink sti_token_sink;
stint_status sti_token_sink_open(const char *path, const char *key,
                                 const stint_tokenizer *tokenizer, int64_t text_bytes,
                                 sti_token_sink **sink_out);
void sti_token_sink_add(sti_token_sink *sink, const int32_t *tokens, int64_t count);
stint_status sti_token_sink_commit(sti_token_sink *sink); /* frees */
void sti_token_sink_abort(sti_token_sink *sink);          /* NULL is fine */

/* 2 or 4 bytes a token, lowest first. */
int sti_token_bytes(int32_t vocabulary);
void sti_token_store(const int32_t *tokens, int64_t count, int token_bytes,
                     uint8_t *out);
static inline int32_t sti_token_load(const uint8_t *at, int token_bytes)
{
    uint32_t token = at[0] | (uint32_t)at[1] << 8;
    if (token_bytes == 4)
        token |= (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    return (int32_t)token;
}

/* Read and encode everything: into the cache at `path`, or into memory (NULL). */
stint_status sti_corpus_prepare(const sti_corpus_desc *desc, const char *path,
                                const char *key, sti_corpus *corpus);
/* The files of a corpus, sorted, absolute, in the arena; bytes and SHA-256 of all of
 * them, read through once. */
stint_status sti_corpus_files(sti_corpus *corpus, const char ***files_out);

#endif
