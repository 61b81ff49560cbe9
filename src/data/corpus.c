/* Opening a text, from its cache where there is one; windows of tokens. */
#include "data/corpus.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/rng.h"

/* ---- what is text ---- */

/* Whoever names a picture or an archive wants images, in another layout than ours. */
static bool is_of_images(const char *name)
{
    static const char *const endings[] = {".png", ".jpg", ".jpeg", ".tar"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(sti_path_extension(name), endings[i]) == 0)
            return true;
    return false;
}

bool sti_corpus_is_text(const char *path)
{
    char **names;
    int64_t count = 0;
    bool text = false, other = false;
    if (sti_path_is_file(path))
        return !is_of_images(path);
    sti_arena *arena = sti_arena_create("text files");
    if (arena && sti_path_is_dir(path) &&
        sti_dir_list(arena, path, &names, &count) == STINT_OK)
        for (int64_t i = 0; i < count && !text; i++) {
            const char *full = sti_path_join(arena, path, names[i]);
            if (names[i][0] == '.' || !full || !sti_path_is_file(full))
                continue;
            text = strcmp(sti_path_extension(names[i]), ".txt") == 0;
            other |= !is_of_images(names[i]);
        }
    sti_arena_destroy(arena);
    return text || other;
}

/* ---- the cache ---- */

/* One key for one text and one way to make tokens of it. */
static void make_key(const sti_corpus_desc *desc, const sti_corpus *c, char key[65])
{
    char how[128];
    const stint_tokenizer *given = desc->tokenizer ? desc->tokenizer : c->own_tokenizer;
    sti_sha256 hash;
    if (given)
        snprintf(how, sizeof how, "given %s", stint_tokenizer_describe(given)->hash);
    else
        snprintf(how, sizeof how, "learnt %d %d", (int)desc->kind,
                 desc->kind == STINT_TOKENIZER_BPE ? desc->vocabulary : 0);
    sti_sha256_init(&hash);
    sti_sha256_add(&hash, how, strlen(how) + 1);
    sti_sha256_add(&hash, c->text_sha256, 64);
    sti_sha256_hex(&hash, key);
}

static bool cache_path(const char *key, char *path, size_t size)
{
    char name[96];
    snprintf(name, sizeof name, "tokens/%.32s.tokens", key);
    return sti_cache_path(name, path, size);
}

/* Tokens in a cache that this call has written, or, where it cannot, in memory. */
static stint_status prepare(const sti_corpus_desc *desc, const char *path,
                            const char *key, sti_corpus *c)
{
    const char *folder = path ? sti_path_folder(c->arena, path) : NULL;
    stint_status st = folder ? sti_dir_create(folder) : STINT_E_IO;
    if (st == STINT_OK)
        st = sti_corpus_prepare(desc, path, key, c);
    if (st == STINT_E_IO) {
        sti_log(STINT_LOG_WARNING,
                "the tokens are kept in memory, for want of a cache: %s",
                folder ? stint_last_error()
                       : "set HOME or XDG_CACHE_HOME to an absolute path");
        return sti_corpus_prepare(desc, NULL, key, c);
    }
    if (st != STINT_OK)
        return st;
    stint_tokenizer_close(c->own_tokenizer); /* as the cache has it, from here on */
    c->own_tokenizer = NULL;
    c->tokenizer = NULL;
    return sti_token_cache_open(path, key, c);
}

static stint_status open_tokens(const sti_corpus_desc *desc, sti_corpus *c)
{
    char key[65], path[2048];
    make_key(desc, c, key);
    const bool cached = cache_path(key, path, sizeof path);
    stint_status st = STINT_E_INPUT;
    if (cached && sti_path_is_file(path)) {
        stint_tokenizer *own = c->own_tokenizer;
        st = sti_token_cache_open(path, key, c);
        if (st == STINT_OK)
            stint_tokenizer_close(own);
        else if (st == STINT_E_MEMORY)
            return st;
        else
            sti_log(STINT_LOG_WARNING, "%s; made anew", stint_last_error());
    }
    if (st != STINT_OK) {
        st = prepare(desc, cached ? path : NULL, key, c);
        c->prepared_bytes = sti_process_peak_bytes();
    }
    if (st == STINT_OK)
        c->tokenizer = desc->tokenizer ? desc->tokenizer : c->own_tokenizer;
    return st;
}

/* ---- parts ---- */

stint_status sti_corpus_tokens(const sti_corpus *c, int64_t first, int64_t count,
                               int32_t *out)
{
    uint8_t bytes[4096];
    const int64_t most = (int64_t)sizeof bytes / c->token_bytes;
    for (int64_t done = 0; done < count;) {
        const int64_t n = count - done < most ? count - done : most;
        const int64_t at = (first + done) * c->token_bytes;
        const uint8_t *from = c->kept ? c->kept + at : bytes;
        if (!c->kept) {
            const stint_status st = sti_read_at(c->fd, c->cache, c->first_byte + at,
                                                bytes, (size_t)(n * c->token_bytes));
            if (st != STINT_OK)
                return st;
        }
        for (int64_t i = 0; i < n; i++)
            out[done + i] = sti_token_load(from + i * c->token_bytes, c->token_bytes);
        done += n;
    }
    return STINT_OK;
}

static stint_status count_bytes(const sti_corpus *c, sti_corpus_part *part)
{
    int32_t tokens[512];
    stint_status st = STINT_OK;
    for (int64_t at = part->begin + 1; at < part->end && st == STINT_OK; at += 512) {
        const int64_t n = part->end - at < 512 ? part->end - at : 512;
        st = sti_corpus_tokens(c, at, n, tokens);
        for (int64_t i = 0; i < n && st == STINT_OK; i++) {
            size_t n_bytes;
            if (tokens[i] < 0 ||
                tokens[i] >= stint_tokenizer_describe(c->tokenizer)->vocabulary)
                return sti_fail(STINT_E_IO, "%s: changed while it was read", c->cache);
            (void)stint_tokenizer_token(c->tokenizer, tokens[i], &n_bytes);
            part->bytes += (int64_t)n_bytes;
        }
    }
    return st;
}

static stint_status split(const sti_corpus_desc *desc, sti_corpus *c)
{
    const int64_t test = (int64_t)((double)c->tokens * desc->validation);
    const int64_t held = (int64_t)((double)(c->tokens - test) * desc->hold_out);
    c->train = (sti_corpus_part){.begin = 0, .end = c->tokens - test - held};
    c->held = (sti_corpus_part){.begin = c->train.end, .end = c->tokens - test};
    c->test = (sti_corpus_part){.begin = c->tokens - test, .end = c->tokens};
    stint_status st = count_bytes(c, &c->train);
    if (st == STINT_OK)
        st = count_bytes(c, &c->held);
    return st == STINT_OK ? count_bytes(c, &c->test) : st;
}

/* ---- life ---- */

static stint_status open_all(const sti_corpus_desc *desc, sti_corpus *c)
{
    const char **files;
    c->path = sti_path_absolute(c->arena, desc->path);
    if (!c->path)
        return STINT_E_MEMORY;
    if (access(c->path, F_OK) != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s does not exist; give --data a text file, or a folder of "
                        "them",
                        c->path);
    /* A device may never end, and the text is read more than once. */
    if (!sti_path_is_file(c->path) && !sti_path_is_dir(c->path))
        return sti_fail(STINT_E_INPUT,
                        "%s is no file and no folder; give --data a text file, or a "
                        "folder of them",
                        c->path);
    stint_status st = STINT_OK;
    if (!desc->tokenizer && desc->tokenizer_path)
        st = (desc->read_tokenizer ? desc->read_tokenizer : stint_tokenizer_read)(
            desc->tokenizer_path, &c->own_tokenizer);
    if (st == STINT_OK)
        st = sti_corpus_files(c, &files);
    if (st == STINT_OK)
        st = open_tokens(desc, c);
    return st == STINT_OK ? split(desc, c) : st;
}

stint_status sti_corpus_open(const sti_corpus_desc *desc, sti_corpus **corpus_out)
{
    sti_arena *arena = sti_arena_create("text");
    sti_corpus *c = arena ? sti_arena_alloc(arena, sizeof *c) : NULL;
    if (!c) {
        sti_arena_destroy(arena);
        return STINT_E_MEMORY;
    }
    *c = (sti_corpus){.arena = arena, .fd = -1};
    const stint_status st = open_all(desc, c);
    if (st == STINT_OK)
        *corpus_out = c;
    else
        sti_corpus_close(c);
    return st;
}

void sti_corpus_close(sti_corpus *c)
{
    if (!c)
        return;
    if (c->fd >= 0)
        close(c->fd);
    stint_tokenizer_close(c->own_tokenizer);
    sti_free((void *)(uintptr_t)c->kept);
    sti_arena_destroy(c->arena);
}

/* ---- windows ---- */

int64_t sti_corpus_train_windows(const sti_corpus_part *part, int64_t context)
{
    const int64_t tokens = part->end - part->begin;
    if (tokens <= context)
        return 0;
    /* One less than there are at most: what is left over is where a shift may go. */
    return tokens < 2 * context ? 1 : tokens / context - 1;
}

int64_t sti_corpus_test_windows(const sti_corpus_part *part, int64_t context)
{
    const int64_t labels = part->end - part->begin - 1;
    return labels < 1 ? 0 : (labels + context - 1) / context;
}

/* Bytes of a part's first token, which the part does not count. */
static int64_t first_bytes(const sti_corpus *c, const sti_corpus_part *part)
{
    size_t first = 0;
    int32_t token;
    if (part->end > part->begin &&
        sti_corpus_tokens(c, part->begin, 1, &token) == STINT_OK)
        (void)stint_tokenizer_token(c->tokenizer, token, &first);
    return (int64_t)first;
}

int64_t sti_corpus_bytes(const sti_corpus *c)
{
    return c->train.bytes + first_bytes(c, &c->held) + c->held.bytes +
           first_bytes(c, &c->test) + c->test.bytes;
}

double sti_corpus_bits_per_byte(const sti_corpus_part *part, double nats)
{
    const double ln2 = 0.693147180559945309417;
    return nats * (double)(part->end - part->begin - 1) / ((double)part->bytes * ln2);
}

static int64_t draw_shift(const sti_corpus_cut *cut)
{
    const int64_t tokens = cut->part.end - cut->part.begin, context = cut->context;
    const int64_t windows = sti_corpus_train_windows(&cut->part, context);
    const int64_t spare = tokens - 1 - windows * context;
    uint32_t word[4];
    if (!cut->augment || spare < 1)
        return 0;
    sti_random4(cut->augment->seed, STI_STREAM_AUGMENT, cut->augment->epoch, 0, word);
    return sti_below(word[0], (uint32_t)(spare + 1 < context ? spare + 1 : context));
}

stint_status sti_corpus_batch(const sti_corpus *c, const sti_corpus_cut *cut,
                              const int32_t *windows, int64_t count,
                              int32_t *tokens_out, int32_t *labels_out)
{
    const int64_t context = cut->context, shift = draw_shift(cut);
    stint_status st = STINT_OK;
    for (int64_t w = 0; w < count && st == STINT_OK; w++) {
        int32_t *tokens = tokens_out + w * context, *labels = labels_out + w * context;
        const int64_t first = cut->part.begin + shift + windows[w] * context;
        int64_t n = windows[w] < 0 ? 0 : cut->part.end - 1 - first;
        n = n < 0 ? 0 : n > context ? context : n;
        if (n > 0)
            st = sti_corpus_tokens(c, first, n, tokens);
        if (n > 0 && st == STINT_OK) {
            memcpy(labels, tokens + 1, (size_t)(n - 1) * sizeof *labels);
            st = sti_corpus_tokens(c, first + n, 1, &labels[n - 1]);
        }
        for (int64_t i = n; i < context; i++) {
            tokens[i] = 0;
            labels[i] = -1;
        }
    }
    return st;
}
