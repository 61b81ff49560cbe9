#include "serve/served_text.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"

/* ---- weights of a folder, whose hash nobody has kept ---- */

typedef struct hashed {
    sti_weight_source source;
    sti_sha256 hash;
} hashed;

static bool hashed_by_columns(void *user, const char *name)
{
    const hashed *h = user;
    return h->source.by_columns(h->source.user, name);
}

static stint_status hashed_read(void *user, const char *name, int64_t runs,
                                int64_t each, int64_t first, int64_t count, float *out)
{
    hashed *h = user;
    const stint_status st =
        h->source.read(h->source.user, name, runs, each, first, count, out);
    if (st == STINT_OK && out)
        sti_sha256_add(&h->hash, out, (size_t)(count * each) * sizeof *out);
    return st;
}

/* ---- life ---- */

static size_t longest_token(const stint_tokenizer *t)
{
    size_t longest = 1, bytes;
    const int32_t vocabulary = stint_tokenizer_describe(t)->vocabulary;
    for (int32_t i = 0; i < vocabulary; i++)
        if (stint_tokenizer_token(t, i, &bytes) && bytes > longest)
            longest = bytes;
    return longest;
}

static stint_status open(sti_served_text *s, const char *path, const char *name,
                         int texts, int threads)
{
    stint_status st;
    STI_TRY(stint_text_model_open(path, &s->file));
    stint_text_model_describe(s->file, &s->facts);
    if (!s->facts.tokenizer)
        return sti_fail(STINT_E_INPUT, "%s: texts are served, and %s", name,
                        s->facts.no_tokenizer);
    if (s->file->file && s->file->file->weights_sha256)
        snprintf(s->version, sizeof s->version, "%s", s->file->file->weights_sha256);
    s->longest = longest_token(s->facts.tokenizer);
    s->desc = (sti_text_batch_desc){.decoder = sti_text_model_decoder(s->file),
                                    .texts = texts};
    s->desc.decoder.threads = threads;
    st = sti_served_text_set_pages(s, (s->facts.context + 63) / 64);
out:
    return st;
}

stint_status sti_served_text_open(const char *path, const char *name, int texts,
                                  int threads, sti_served_text **served_out)
{
    sti_served_text *s = sti_alloc(sizeof *s, "text model");
    *served_out = s;
    return s ? open(s, path, name, texts, threads) : STINT_E_MEMORY;
}

void sti_served_text_destroy(sti_served_text *s)
{
    if (!s)
        return;
    sti_text_batch_destroy(s->batch);
    stint_text_model_close(s->file);
    sti_free(s);
}

stint_status sti_served_text_set_pages(sti_served_text *s, int64_t pages)
{
    s->desc.pages = pages;
    return sti_text_batch_measure(&s->desc, &s->sizes);
}

stint_status sti_served_text_load(sti_served_text *s)
{
    hashed h = {.source = sti_text_model_source(s->file)};
    const sti_weight_source through = {
        .user = &h, .by_columns = hashed_by_columns, .read = hashed_read};
    if (*s->version)
        return sti_text_batch_create(&s->desc, &h.source, &s->batch);
    sti_sha256_init(&h.hash);
    const stint_status st = sti_text_batch_create(&s->desc, &through, &s->batch);
    if (st == STINT_OK)
        sti_sha256_hex(&h.hash, s->version);
    return st;
}

void sti_served_text_unload(sti_served_text *s)
{
    sti_text_batch_destroy(s->batch);
    s->batch = NULL;
}

stint_status sti_served_text_try(sti_served_text *s)
{
    const int32_t token = 0;
    sti_text_drawn drawn[STI_TEXTS_MOST];
    int number;
    const sti_text_desc text = {
        .tokens = &token, .count = 1, .draws = 1, .sampler = {.top_p = 1}};
    stint_status st = sti_text_batch_join(s->batch, &text, &number);
    if (st == STINT_OK &&
        (sti_text_batch_step(s->batch, 1, drawn) != 1 || drawn[0].status != STINT_OK))
        st = sti_fail(STINT_E_INPUT,
                      "the scores of the tokens are no finite numbers: weights of the "
                      "model are too large; take another copy");
    return st;
}

stint_status sti_served_text_agree(const sti_served_text *old,
                                   const sti_served_text *fresh)
{
    const stint_text_model_facts *a = &old->facts, *b = &fresh->facts;
    if (a->context != b->context || a->sizes.vocabulary != b->sizes.vocabulary ||
        old->sizes.total_bytes != fresh->sizes.total_bytes)
        return sti_fail(STINT_E_INPUT, "the new file is of another network");
    if (a->end_token != b->end_token ||
        strcmp(stint_tokenizer_describe(a->tokenizer)->hash,
               stint_tokenizer_describe(b->tokenizer)->hash) != 0)
        return sti_fail(STINT_E_INPUT, "the new file has another tokeniser");
    return STINT_OK;
}
