/* The file that keeps a text's tokens.
 *
 *     "stint tokens 1\n\n"            16 bytes
 *     key                             64 hex digits: of text and tokeniser asked for
 *     bytes of the text, bytes of the tokeniser's JSON     u64 each
 *     tokeniser as JSON
 *     tokens                          u16 (vocabulary up to 65,536) or u32
 *     SHA-256 of all before           64 hex digits
 *
 * Integers are stored lowest byte first. A file is believed only when the key, every
 * token and the last line are right; it is read through once, when it is opened. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "data/corpus.h"
#include "data/tokenizer.h"

#define MAGIC         "stint tokens 1\n\n"
#define MAGIC_BYTES   16
#define KEY_BYTES     64
#define HEAD_BYTES    (MAGIC_BYTES + KEY_BYTES + 16)
#define HASH_BYTES    64
#define MAX_TOKENIZER ((uint64_t)1 << 28)
#define PIECE         ((int64_t)1 << 14) /* tokens a read or write */

int sti_token_bytes(int32_t vocabulary)
{
    return vocabulary <= 65536 ? 2 : 4;
}

void sti_token_store(const int32_t *tokens, int64_t count, int token_bytes,
                     uint8_t *out)
{
    for (int64_t i = 0; i < count; i++)
        for (int b = 0; b < token_bytes; b++)
            *out++ = (uint8_t)((uint32_t)tokens[i] >> 8 * b);
}

static void put_u64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_u64(const uint8_t *at)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

/* ---- writing ---- */

struct sti_token_sink {
    sti_writer *writer;
    sti_sha256 hash;
    int token_bytes;
};

static void add(sti_token_sink *sink, const void *bytes, size_t n_bytes)
{
    sti_sha256_add(&sink->hash, bytes, n_bytes);
    sti_writer_add(sink->writer, bytes, n_bytes); /* a failure stays in the writer */
}

stint_status sti_token_sink_open(const char *path, const char *key,
                                 const stint_tokenizer *tokenizer, int64_t text_bytes,
                                 sti_token_sink **sink_out)
{
    uint8_t head[HEAD_BYTES];
    sti_text json = {0};
    sti_token_sink *sink = sti_alloc(sizeof *sink, "token cache");
    stint_status st = sink ? sti_tokenizer_print(tokenizer, &json) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_writer_open(path, &sink->writer);
    if (st == STINT_OK) {
        sink->token_bytes =
            sti_token_bytes(stint_tokenizer_describe(tokenizer)->vocabulary);
        memcpy(head, MAGIC, MAGIC_BYTES);
        memcpy(head + MAGIC_BYTES, key, KEY_BYTES);
        put_u64(head + MAGIC_BYTES + KEY_BYTES, (uint64_t)text_bytes);
        put_u64(head + MAGIC_BYTES + KEY_BYTES + 8, json.length);
        sti_sha256_init(&sink->hash);
        add(sink, head, sizeof head);
        add(sink, json.data, json.length);
        *sink_out = sink;
    } else {
        sti_free(sink);
    }
    sti_text_fini(&json);
    return st;
}

void sti_token_sink_add(sti_token_sink *sink, const int32_t *tokens, int64_t count)
{
    uint8_t bytes[4096];
    const int64_t most = (int64_t)sizeof bytes / sink->token_bytes;
    for (int64_t i = 0; i < count; i += most) {
        const int64_t n = count - i < most ? count - i : most;
        sti_token_store(tokens + i, n, sink->token_bytes, bytes);
        add(sink, bytes, (size_t)(n * sink->token_bytes));
    }
}

stint_status sti_token_sink_commit(sti_token_sink *sink)
{
    char hex[65];
    sti_sha256_hex(&sink->hash, hex);
    sti_writer_add(sink->writer, hex, HASH_BYTES);
    const stint_status st = sti_writer_commit(sink->writer);
    sti_free(sink);
    return st;
}

void sti_token_sink_abort(sti_token_sink *sink)
{
    if (!sink)
        return;
    sti_writer_abort(sink->writer);
    sti_free(sink);
}

/* ---- reading ---- */

typedef struct cache_reader {
    const char *path;
    int fd;
    int64_t bytes; /* of the file */
    sti_sha256 hash;
} cache_reader;

static stint_status bad(const cache_reader *r, const char *what)
{
    return sti_fail(STINT_E_INPUT, "%s: %s", r->path, what);
}

static stint_status open_file(cache_reader *r, const char *path)
{
    struct stat info;
    r->path = path;
    stint_status st = sti_file_open(path, &r->fd);
    if (st == STINT_OK && fstat(r->fd, &info) != 0)
        st = sti_fail_errno("%s: cannot be read", path);
    if (st != STINT_OK)
        return st;
    r->bytes = info.st_size;
    sti_sha256_init(&r->hash);
    return r->bytes >= HEAD_BYTES + HASH_BYTES ? STINT_OK
                                               : bad(r, "too short for a token cache");
}

static stint_status read_head(cache_reader *r, const char *key, int64_t *text_bytes,
                              uint64_t *json_bytes)
{
    uint8_t head[HEAD_BYTES];
    stint_status st = sti_read_at(r->fd, r->path, 0, head, sizeof head);
    if (st != STINT_OK)
        return st;
    sti_sha256_add(&r->hash, head, sizeof head);
    if (memcmp(head, MAGIC, MAGIC_BYTES) != 0)
        return bad(r, "no token cache of this version");
    if (memcmp(head + MAGIC_BYTES, key, KEY_BYTES) != 0)
        return bad(r, "tokens of another text or another tokeniser");
    *text_bytes = (int64_t)get_u64(head + MAGIC_BYTES + KEY_BYTES);
    *json_bytes = get_u64(head + MAGIC_BYTES + KEY_BYTES + 8);
    if (*json_bytes > MAX_TOKENIZER ||
        *json_bytes > (uint64_t)(r->bytes - HEAD_BYTES - HASH_BYTES) || *text_bytes < 0)
        return bad(r, "cut short, or its sizes are impossible");
    return STINT_OK;
}

static stint_status read_tokenizer(cache_reader *r, uint64_t json_bytes,
                                   stint_tokenizer **out)
{
    char *json = sti_alloc((size_t)json_bytes + 1, "token cache");
    stint_status st =
        json ? sti_read_at(r->fd, r->path, HEAD_BYTES, json, (size_t)json_bytes)
             : STINT_E_MEMORY;
    if (st == STINT_OK) {
        sti_sha256_add(&r->hash, json, (size_t)json_bytes);
        st = sti_tokenizer_parse(json, (size_t)json_bytes, r->path, out);
    }
    sti_free(json);
    return st;
}

/* Every token is one, and the file ends with its own hash. */
static stint_status read_tokens(cache_reader *r, sti_corpus *c, int32_t vocabulary)
{
    char hex[65], want[HASH_BYTES];
    const int64_t piece_bytes = PIECE * c->token_bytes;
    const int64_t end = c->first_byte + c->tokens * c->token_bytes;
    uint8_t *piece = sti_alloc((size_t)piece_bytes, "token cache");
    stint_status st = piece ? STINT_OK : STINT_E_MEMORY;
    for (int64_t at = c->first_byte; at < end && st == STINT_OK; at += piece_bytes) {
        const int64_t n = end - at < piece_bytes ? end - at : piece_bytes;
        st = sti_read_at(r->fd, r->path, at, piece, (size_t)n);
        if (st != STINT_OK)
            break;
        sti_sha256_add(&r->hash, piece, (size_t)n);
        for (int64_t i = 0; i < n && st == STINT_OK; i += c->token_bytes) {
            const int32_t token = sti_token_load(piece + i, c->token_bytes);
            if (token < 0 || token >= vocabulary)
                st = bad(r, "damaged: a token that its tokeniser does not have");
        }
    }
    sti_free(piece);
    if (st == STINT_OK)
        st = sti_read_at(r->fd, r->path, end, want, sizeof want);
    if (st != STINT_OK)
        return st;
    sti_sha256_hex(&r->hash, hex);
    return memcmp(hex, want, HASH_BYTES) == 0
               ? STINT_OK
               : bad(r, "damaged: its bytes are not those that were written");
}

static stint_status read_all(cache_reader *r, const char *key, sti_corpus *c,
                             stint_tokenizer **tokenizer)
{
    uint64_t json_bytes = 0;
    stint_status st = read_head(r, key, &c->bytes, &json_bytes);
    if (st == STINT_OK)
        st = read_tokenizer(r, json_bytes, tokenizer);
    if (st != STINT_OK)
        return st;
    const int32_t vocabulary = stint_tokenizer_describe(*tokenizer)->vocabulary;
    c->token_bytes = sti_token_bytes(vocabulary);
    c->first_byte = HEAD_BYTES + (int64_t)json_bytes;
    const int64_t left = r->bytes - HASH_BYTES - c->first_byte;
    if (left % c->token_bytes != 0)
        return bad(r, "cut short");
    c->tokens = left / c->token_bytes;
    return read_tokens(r, c, vocabulary);
}

stint_status sti_token_cache_open(const char *path, const char *key, sti_corpus *corpus)
{
    cache_reader r = {.fd = -1};
    sti_corpus read = *corpus;
    stint_tokenizer *tokenizer = NULL;
    stint_status st = open_file(&r, path);
    if (st == STINT_OK)
        st = read_all(&r, key, &read, &tokenizer);
    if (st == STINT_OK) {
        read.cache = sti_arena_strdup(corpus->arena, path);
        st = read.cache ? STINT_OK : STINT_E_MEMORY;
    }
    if (st != STINT_OK) {
        stint_tokenizer_close(tokenizer);
        if (r.fd >= 0)
            close(r.fd);
        return st;
    }
    *corpus = read;
    corpus->fd = r.fd;
    corpus->own_tokenizer = tokenizer;
    return STINT_OK;
}
