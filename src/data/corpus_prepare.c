/* From text files to tokens: reading, learning a tokeniser, encoding in pieces. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "data/corpus.h"
#include "data/text_watch.h"
#include "data/tokenizer.h"

#define READ_BYTES  ((size_t)1 << 18)
#define PIECE_BYTES ((size_t)1 << 20) /* of text, encoded at a time */
/* A word's end is known when so many bytes after it are: what follows a run of spaces
 * decides to which word the last of them belongs. */
#define WORD_AHEAD 8

/* ---- files ---- */

static bool is_candidate(const char *name, bool txt)
{
    return txt ? strcmp(sti_path_extension(name), ".txt") == 0 : name[0] != '.';
}

/* Files of a folder with this ending (or any name); NULL: count only. */
static stint_status pick_files(sti_corpus *c, char **names, int64_t count, bool txt,
                               const char **files, int64_t *picked)
{
    *picked = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!is_candidate(names[i], txt))
            continue;
        const char *path = sti_path_join(c->arena, c->path, names[i]);
        if (!path)
            return STINT_E_MEMORY;
        if (!sti_path_is_file(path))
            continue;
        if (files)
            files[*picked] = path;
        ++*picked;
    }
    return STINT_OK;
}

static stint_status list_files(sti_corpus *c, const char ***files_out)
{
    char **names;
    int64_t count = 1;
    bool folder = sti_path_is_dir(c->path);
    stint_status st =
        folder ? sti_dir_list(c->arena, c->path, &names, &count) : STINT_OK;
    if (st != STINT_OK)
        return st;
    const char **files =
        sti_arena_alloc(c->arena, (size_t)(count ? count : 1) * sizeof *files);
    if (!files)
        return STINT_E_MEMORY;
    files[0] = c->path;
    c->files = 1;
    if (folder)
        st = pick_files(c, names, count, true, files, &c->files);
    if (folder && st == STINT_OK && c->files == 0)
        st = pick_files(c, names, count, false, files, &c->files);
    *files_out = files;
    if (st == STINT_OK && c->files == 0)
        st = sti_fail(STINT_E_INPUT, "%s: holds no text files", c->path);
    return st;
}

static stint_status hash_file(const char *path, void *buffer, sti_sha256 *hash,
                              int64_t *bytes)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;
    if (fd < 0)
        return sti_fail_errno("%s: cannot be read", path);
    while ((n = read(fd, buffer, READ_BYTES)) > 0) {
        sti_sha256_add(hash, buffer, (size_t)n);
        *bytes += n;
    }
    const stint_status st =
        n < 0 ? sti_fail_errno("%s: cannot be read", path) : STINT_OK;
    close(fd);
    return st;
}

stint_status sti_corpus_files(sti_corpus *c, const char ***files_out)
{
    sti_sha256 hash;
    void *buffer = sti_alloc(READ_BYTES, "text");
    stint_status st = buffer ? list_files(c, files_out) : STINT_E_MEMORY;
    sti_sha256_init(&hash);
    c->bytes = 0;
    for (int64_t i = 0; st == STINT_OK && i < c->files; i++)
        st = hash_file((*files_out)[i], buffer, &hash, &c->bytes);
    if (st == STINT_OK && c->bytes == 0)
        st = sti_fail(STINT_E_INPUT, "%s: empty; there is nothing to learn from",
                      c->path);
    sti_sha256_hex(&hash, c->text_sha256);
    sti_free(buffer);
    return st;
}

/* One file to where the text has room for it. */
static stint_status read_part(const char *path, char *to, size_t room, size_t *n_bytes)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    stint_status st = STINT_OK;
    if (fd < 0 || fstat(fd, &info) != 0)
        st = sti_fail_errno("%s: cannot be read", path);
    else if ((*n_bytes = (size_t)info.st_size) > room)
        st = sti_fail(STINT_E_IO, "%s: grew while it was read", path);
    else
        st = sti_read_at(fd, path, 0, to, *n_bytes);
    if (fd >= 0)
        close(fd);
    return st;
}

/* All files one after the other. A complaint names the file and the offset in it. */
static stint_status read_text(const sti_corpus *c, const char *const *files, bool utf8,
                              char **text_out)
{
    char *text = sti_alloc((size_t)c->bytes, "text");
    size_t at = 0, n_bytes = 0;
    stint_status st = text ? STINT_OK : STINT_E_MEMORY;
    for (int64_t i = 0; i < c->files && st == STINT_OK; i++, at += n_bytes) {
        st = read_part(files[i], text + at, (size_t)c->bytes - at, &n_bytes);
        if (st == STINT_OK && utf8 &&
            (st = sti_utf8_check(text + at, n_bytes)) == STINT_E_INPUT)
            st = sti_fail_context(st, "%s", files[i]);
    }
    if (st == STINT_OK && at != (size_t)c->bytes)
        st = sti_fail(STINT_E_IO, "%s: shrank while it was read", c->path);
    if (st != STINT_OK) {
        sti_free(text);
        return st;
    }
    *text_out = text;
    return STINT_OK;
}

/* ---- encoding ---- */

/* Where to cut text that begins at a word so that the tokens are those of the whole: at
 * the end of a word (byte pairs) or of a character. n_bytes when all is taken. The
 * longest word is told. */
static size_t cut_at(const stint_tokenizer *t, const char *text, size_t n_bytes,
                     bool last, size_t *longest)
{
    size_t cut = 0, plain_end = 0;
    const size_t ahead = last ? 0 : WORD_AHEAD + t->longest_special;
    int32_t special;
    *longest = 0;
    if (t->info.kind == STINT_TOKENIZER_BYTE)
        return n_bytes;
    while (!last && n_bytes > 0 && ((uint8_t)text[n_bytes] & 0xc0) == 0x80)
        n_bytes--;
    if (t->info.kind == STINT_TOKENIZER_CHAR)
        return n_bytes;
    if (!sti_text_scheme_is_by_words(&t->scheme)) { /* only the whole is what it is */
        *longest = n_bytes;
        return last ? n_bytes : 0;
    }
    for (size_t end = 0; end + ahead < n_bytes;) {
        if (end - cut > *longest)
            *longest = end - cut;
        cut = end;
        end = sti_bpe_piece_end(t, text, n_bytes, end, &plain_end, &special);
    }
    if (last && n_bytes - cut > *longest)
        *longest = n_bytes - cut;
    return last ? n_bytes : cut;
}

typedef struct encoder {
    const stint_tokenizer *tokenizer;
    const char *text;
    size_t n_bytes;
    sti_token_sink *sink; /* NULL: into memory */
    uint8_t *kept;
    int token_bytes;
    int64_t count; /* tokens so far */
    sti_text_watch watch;
} encoder;

static void take_tokens(encoder *e, const int32_t *tokens, int64_t count)
{
    if (e->sink)
        sti_token_sink_add(e->sink, tokens, count);
    else
        sti_token_store(tokens, count, e->token_bytes,
                        e->kept + e->count * e->token_bytes);
    e->count += count;
}

static stint_status encode_piece(encoder *e, size_t at, size_t n_bytes, int32_t *tokens)
{
    int64_t count = 0;
    stint_status st =
        stint_tokenizer_encode(e->tokenizer, e->text + at, n_bytes, tokens, &count);
    if (st == STINT_OK)
        take_tokens(e, tokens, count);
    else if (st == STINT_E_INPUT && at > 0)
        st = sti_fail_context(st, "from byte %zu on", at);
    return st;
}

static stint_status encode_all(encoder *e)
{
    size_t room = PIECE_BYTES;
    int32_t *tokens = sti_alloc_array(stint_tokenizer_most(e->tokenizer, room),
                                      sizeof *tokens, "tokens");
    stint_status st = tokens ? STINT_OK : STINT_E_MEMORY;
    for (size_t at = 0, ask = PIECE_BYTES, longest;
         at < e->n_bytes && st == STINT_OK;) {
        const bool last = ask >= e->n_bytes - at;
        const size_t have = last ? e->n_bytes - at : ask;
        const size_t cut = cut_at(e->tokenizer, e->text + at, have, last, &longest);
        if (cut == 0) { /* one word longer than the piece */
            ask *= 2;
            continue;
        }
        st = sti_text_watch_look(&e->watch,
                                 (size_t)stint_tokenizer_most(e->tokenizer, cut) *
                                         sizeof *tokens +
                                     longest * STI_WORD_WORK_BYTES,
                                 "bytes", (int64_t)at, (int64_t)e->n_bytes);
        if (st != STINT_OK)
            break;
        if (cut > room) {
            sti_free(tokens);
            tokens = sti_alloc_array(stint_tokenizer_most(e->tokenizer, cut),
                                     sizeof *tokens, "tokens");
            room = cut;
        }
        st = tokens ? encode_piece(e, at, cut, tokens) : STINT_E_MEMORY;
        at += cut;
        ask = PIECE_BYTES;
    }
    sti_free(tokens);
    return st;
}

/* ---- all of it ---- */

static stint_status get_tokenizer(const sti_corpus_desc *desc, const char *text,
                                  sti_corpus *c)
{
    if (desc->tokenizer || c->own_tokenizer) {
        c->tokenizer = desc->tokenizer ? desc->tokenizer : c->own_tokenizer;
        return STINT_OK;
    }
    stint_status st = sti_tokenizer_learn(
        desc->kind, desc->vocabulary ? desc->vocabulary : 4096, text, (size_t)c->bytes,
        desc->budget_bytes, &c->own_tokenizer);
    c->tokenizer = c->own_tokenizer;
    return st;
}

/* The text itself and its tokens, which may have to stay in memory. What learning takes
 * is known as it goes, and watched. */
static stint_status check_budget(const sti_corpus_desc *desc, const sti_corpus *c)
{
    const size_t need =
        sti_process_now_bytes() + (size_t)c->bytes * 2 + PIECE_BYTES * sizeof(int32_t);
    if (desc->budget_bytes == 0 || need <= desc->budget_bytes)
        return STINT_OK;
    return sti_fail(STINT_E_BUDGET,
                    "memory: turning %s into tokens needs about %s, budget %s; do it "
                    "once with `stint plan` and no --memory: the tokens are kept",
                    c->path, sti_bytes_text(need), sti_bytes_text(desc->budget_bytes));
}

static stint_status encode_text(sti_corpus *c, const char *path, const char *key,
                                const char *text, size_t budget_bytes)
{
    encoder e = {.tokenizer = c->tokenizer,
                 .text = text,
                 .n_bytes = (size_t)c->bytes,
                 .token_bytes = sti_token_bytes(
                     stint_tokenizer_describe(c->tokenizer)->vocabulary)};
    stint_status st = STINT_OK;
    sti_text_watch_begin(&e.watch, "turning text into tokens", budget_bytes);
    if (path)
        st = sti_token_sink_open(path, key, c->tokenizer, c->bytes, &e.sink);
    else if (!(e.kept =
                   sti_alloc_array(stint_tokenizer_most(e.tokenizer, (size_t)c->bytes),
                                   (size_t)e.token_bytes, "tokens")))
        st = STINT_E_MEMORY;
    if (st == STINT_OK)
        st = encode_all(&e);
    if (st == STINT_OK && path) {
        st = sti_token_sink_commit(e.sink);
        e.sink = NULL;
    }
    sti_token_sink_abort(e.sink);
    if (st != STINT_OK) {
        sti_free(e.kept);
        return st;
    }
    if (!path) { /* as many bytes as there are tokens */
        uint8_t *fit = sti_realloc(e.kept, (size_t)(e.count * e.token_bytes), "tokens");
        c->kept = fit ? fit : e.kept;
    }
    c->tokens = e.count;
    c->token_bytes = e.token_bytes;
    return STINT_OK;
}

/* Characters, and how many different ones; `why` when it is no UTF-8. */
static stint_status look_at_text(const char *text, size_t n_bytes, sti_corpus_look *out)
{
    stint_tokenizer *characters = NULL;
    stint_status st =
        stint_tokenizer_learn(STINT_TOKENIZER_CHAR, 0, text, n_bytes, &characters);
    if (st == STINT_E_INPUT) {
        snprintf(out->why, sizeof out->why, "%s", stint_last_error());
        return STINT_OK;
    }
    if (st != STINT_OK)
        return st;
    out->utf8 = true;
    out->different = stint_tokenizer_describe(characters)->vocabulary;
    for (size_t i = 0; i < n_bytes; i++)
        out->characters += ((uint8_t)text[i] & 0xc0) != 0x80;
    stint_tokenizer_close(characters);
    return STINT_OK;
}

stint_status sti_corpus_look_at(const char *path, sti_arena *arena,
                                sti_corpus_look *out)
{
    const char **files;
    char *text = NULL;
    sti_corpus c = {.arena = arena, .fd = -1};
    c.path = sti_path_absolute(arena, path);
    stint_status st = c.path ? sti_corpus_files(&c, &files) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = read_text(&c, files, false, &text);
    if (st == STINT_OK) {
        *out = (sti_corpus_look){.path = c.path, .files = c.files, .bytes = c.bytes};
        memcpy(out->sha256, c.text_sha256, sizeof out->sha256);
        st = look_at_text(text, (size_t)c.bytes, out);
    }
    sti_free(text);
    return st;
}

stint_status sti_corpus_prepare(const sti_corpus_desc *desc, const char *path,
                                const char *key, sti_corpus *c)
{
    const char **files;
    char *text = NULL;
    const stint_tokenizer *given = desc->tokenizer ? desc->tokenizer : c->own_tokenizer;
    const bool bytes = given ? given->info.kind == STINT_TOKENIZER_BYTE
                             : desc->kind == STINT_TOKENIZER_BYTE;
    stint_status st = check_budget(desc, c);
    if (st == STINT_OK)
        st = list_files(c, &files);
    if (st == STINT_OK)
        st = read_text(c, files, !bytes, &text);
    if (st == STINT_OK)
        st = get_tokenizer(desc, text, c);
    if (st == STINT_OK &&
        (st = encode_text(c, path, key, text, desc->budget_bytes)) == STINT_E_INPUT)
        st = sti_fail_context(st, "%s", c->path);
    sti_free(text);
    return st;
}
