/* Hostile token caches: what is opened has tokens of its tokeniser only, at every
 * place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "data/corpus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const sti_corpus *c)
{
    const int32_t vocabulary = stint_tokenizer_describe(c->own_tokenizer)->vocabulary;
    const sti_corpus_cut cut = {.part = {.begin = 0, .end = c->tokens}, .context = 7};
    for (int32_t w = 0; w < sti_corpus_test_windows(&cut.part, 7); w++) {
        int32_t tokens[7], labels[7];
        if (sti_corpus_batch(c, &cut, &w, 1, tokens, labels) != STINT_OK)
            abort();
        for (int i = 0; i < 7; i++)
            if (tokens[i] < 0 || tokens[i] >= vocabulary || labels[i] < -1 ||
                labels[i] >= vocabulary)
                abort();
    }
}

/* With and without a last line that is right, as nothing gets past a wrong one. */
static void try_bytes(const uint8_t *data, size_t size, bool sign)
{
    char path[64], key[65] = {0}, hex[65];
    sti_arena *arena = sti_arena_create("fuzz");
    sti_corpus c = {.arena = arena, .fd = -1};
    uint8_t *copy = malloc(size + 64);
    if (!arena || !copy)
        abort();
    memcpy(copy, data, size);
    if (sign) {
        sti_sha256 hash;
        sti_sha256_init(&hash);
        sti_sha256_add(&hash, copy, size);
        sti_sha256_hex(&hash, hex);
        memcpy(copy + size, hex, 64);
    }
    if (size >= 80)
        memcpy(key, data + 16, 64);
    snprintf(path, sizeof path, "/tmp/stint-fuzz-%ld.tokens", (long)getpid());
    FILE *f = fopen(path, "wb"); /* sti_file_write would wait for the disk */
    if (!f || fwrite(copy, 1, size + (sign ? 64 : 0), f) != size + (sign ? 64 : 0))
        abort();
    fclose(f);
    if (sti_token_cache_open(path, key, &c) == STINT_OK) {
        read_all(&c);
        close(c.fd);
        stint_tokenizer_close(c.own_tokenizer);
    }
    unlink(path);
    sti_arena_destroy(arena);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_bytes(data, size, false);
    try_bytes(data, size, true);
    if (size > 64) /* a whole file, signed anew after a change */
        try_bytes(data, size - 64, true);
    return 0;
}
