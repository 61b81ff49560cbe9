#include "infer/text_batch.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/finite.h"
#include "base/memory.h"

enum { PAGE = 64 }; /* tokens */

typedef struct text {
    bool in;
    void *user;
    sti_sampler_desc sampler;
    int32_t *window;  /* [context]: tokens that the model sees, in order */
    int32_t *page;    /* [context_pages]; the first `pages` are its own */
    int64_t capacity; /* of the window: where it slides */
    int64_t length;   /* of the window */
    int64_t read;     /* of these, by the decoder */
    int64_t pages;    /* held */
    int64_t drawn;    /* tokens since the prompt */
    int64_t draws;    /* that it may */
    int64_t rows;     /* of the step that is made */
} text;

struct sti_text_batch {
    sti_text_batch_desc desc;
    sti_text_batch_sizes sizes;
    sti_decoder *decoder;
    sti_sampler *sampler;             /* [threads] */
    text *text;                       /* [texts] */
    int32_t *tokens;                  /* windows and page tables of all */
    int order[STI_TEXTS_MOST], count; /* texts in the batch, the oldest first */
    int32_t *free_page;               /* [pages]; the first `free` are free */
    int64_t free;
    int64_t set_back;
};

/* ---- sizes and life ---- */

static int64_t pages_for(int64_t tokens)
{
    return (tokens + PAGE - 1) / PAGE;
}

static sti_decoder_desc decoder_desc(const sti_text_batch_desc *d)
{
    sti_decoder_desc out = d->decoder;
    out.capacity = d->decoder.context;
    out.pages = d->pages;
    out.wanted = d->texts;
    return out;
}

static size_t table_floats(const sti_text_batch_desc *d)
{
    const int64_t context = d->decoder.context;
    return (size_t)(d->texts * (context + pages_for(context)) + d->pages);
}

stint_status sti_text_batch_measure(const sti_text_batch_desc *d,
                                    sti_text_batch_sizes *out)
{
    sti_decoder_sizes sizes;
    size_t sampler;
    const sti_decoder_desc decoder = decoder_desc(d);
    stint_status st;
    if (d->texts < 1 || d->texts > STI_TEXTS_MOST)
        return sti_fail(STINT_E_USAGE, "%d texts at a time: 1 to %d were wanted",
                        d->texts, STI_TEXTS_MOST);
    if (d->pages < pages_for(d->decoder.context))
        return sti_fail(STINT_E_USAGE,
                        "%" PRId64 " pages of %d tokens: one context takes %" PRId64,
                        d->pages, PAGE, pages_for(d->decoder.context));
    STI_TRY(sti_decoder_measure(&decoder, &sizes));
    STI_TRY(sti_sampler_bytes_any(d->decoder.model.vocabulary, &sampler));
    *out = (sti_text_batch_sizes){
        .weights_bytes = sizes.weights_bytes,
        .cache_bytes = sizes.cache_bytes,
        .work_bytes = sizes.work_bytes +
                      (size_t)d->decoder.threads * (sampler + sizeof(sti_sampler)) +
                      table_floats(d) * sizeof(int32_t) +
                      (size_t)d->texts * sizeof(text) + sizeof(sti_text_batch),
        .page_bytes = sizes.cache_bytes / (size_t)d->pages,
        .context_pages = pages_for(d->decoder.context)};
    out->total_bytes = out->weights_bytes + out->cache_bytes + out->work_bytes;
out:
    return st;
}

static void lay_tables(sti_text_batch *b)
{
    const int64_t context = b->desc.decoder.context;
    int32_t *at = b->tokens;
    for (int i = 0; i < b->desc.texts; i++) {
        b->text[i].window = at;
        b->text[i].page = at + context;
        at += context + b->sizes.context_pages;
    }
    b->free_page = at;
    b->free = b->desc.pages;
    for (int64_t p = 0; p < b->free; p++) /* the lowest is taken first */
        b->free_page[p] = (int32_t)(b->free - 1 - p);
}

static stint_status make_samplers(sti_text_batch *b)
{
    const sti_decoder_desc *d = &b->desc.decoder;
    stint_status st = STINT_OK;
    b->sampler = sti_alloc_array(d->threads, sizeof *b->sampler, "samplers");
    if (!b->sampler)
        return STINT_E_MEMORY;
    for (int i = 0; i < d->threads && st == STINT_OK; i++)
        st = sti_sampler_init_any(d->model.vocabulary, &b->sampler[i]);
    return st;
}

stint_status sti_text_batch_create(const sti_text_batch_desc *desc,
                                   const sti_weight_source *source,
                                   sti_text_batch **batch_out)
{
    stint_status st = STINT_E_MEMORY;
    sti_text_batch *b = sti_alloc(sizeof *b, "texts");
    if (!b)
        return STINT_E_MEMORY;
    b->desc = *desc;
    b->desc.decoder = decoder_desc(desc);
    STI_TRY(sti_text_batch_measure(desc, &b->sizes));
    b->text = sti_alloc_array(desc->texts, sizeof *b->text, "texts");
    b->tokens =
        sti_alloc_array((int64_t)table_floats(desc), sizeof *b->tokens, "texts");
    if (!b->text || !b->tokens) {
        st = STINT_E_MEMORY;
        goto out;
    }
    lay_tables(b);
    STI_TRY(make_samplers(b));
    STI_TRY(sti_decoder_create(&b->desc.decoder, source, &b->decoder));
    *batch_out = b;
    b = NULL;
out:
    sti_text_batch_destroy(b);
    return st;
}

void sti_text_batch_destroy(sti_text_batch *b)
{
    if (!b)
        return;
    sti_decoder_destroy(b->decoder);
    for (int i = 0; b->sampler && i < b->desc.decoder.threads; i++)
        sti_sampler_fini(&b->sampler[i]);
    sti_free(b->sampler);
    sti_free(b->text);
    sti_free(b->tokens);
    sti_free(b);
}

/* ---- texts come and go ---- */

static stint_status check(const sti_text_batch *b, const sti_text_desc *d)
{
    const sti_decoder_desc *m = &b->desc.decoder;
    if (d->count < 1 || d->count > m->context)
        return sti_fail(STINT_E_INPUT,
                        "a prompt of %" PRId64 " tokens: 1 to %" PRId64
                        " were wanted, what the model sees at once",
                        d->count, m->context);
    if (d->draws < 1)
        return sti_fail(STINT_E_USAGE, "%" PRId64 " tokens to draw: at least 1 is",
                        d->draws);
    for (int64_t i = 0; i < d->count; i++)
        if (d->tokens[i] < 0 || d->tokens[i] >= m->model.vocabulary)
            return sti_fail(STINT_E_INPUT,
                            "token %" PRId64 " of the prompt is %d, but the model's "
                            "are 0 to %" PRId64,
                            i, d->tokens[i], m->model.vocabulary - 1);
    return sti_sampler_check(&d->sampler);
}

stint_status sti_text_batch_join(sti_text_batch *b, const sti_text_desc *d,
                                 int *text_out)
{
    int i = 0;
    stint_status st;
    STI_TRY(check(b, d));
    if (b->count == b->desc.texts)
        return sti_fail(STINT_E_BUDGET, "%d texts are drawn at a time, and as many are",
                        b->desc.texts);
    for (int k = 0; k < b->desc.decoder.threads; k++)
        STI_TRY(sti_sampler_reserve(&b->sampler[k], &d->sampler));
    while (b->text[i].in)
        i++;
    text *t = &b->text[i];
    /* A generator that was made for prompt and draws slides where the context ends. */
    const int64_t context = b->desc.decoder.context;
    const bool all_seen = d->draws <= context - d->count;
    *t = (text){.in = true,
                .user = d->user,
                .sampler = d->sampler,
                .window = t->window,
                .page = t->page,
                .capacity = all_seen ? d->count + d->draws : context,
                .length = d->count,
                .draws = d->draws};
    memcpy(t->window, d->tokens, (size_t)d->count * sizeof *t->window);
    b->order[b->count++] = i;
    *text_out = i;
out:
    return st;
}

static void give_pages(sti_text_batch *b, text *t)
{
    while (t->pages > 0)
        b->free_page[b->free++] = t->page[--t->pages];
}

void sti_text_batch_leave(sti_text_batch *b, int number)
{
    int at = 0;
    while (b->order[at] != number)
        at++;
    memmove(b->order + at, b->order + at + 1,
            (size_t)(b->count - at - 1) * sizeof *b->order);
    b->count--;
    give_pages(b, &b->text[number]);
    b->text[number].in = false;
}

/* ---- which rows a step has ----
 *
 * Pages are given in the order of age, and taken from the youngest that has any, so
 * that those that hold pages are older than those that wait for some: the oldest goes
 * on always, for all pages together hold one context. */

static bool draws(const text *t)
{
    return t->length - t->read == 1;
}

/* The youngest text behind place `at` that holds pages loses them. */
static bool set_back(sti_text_batch *b, int at)
{
    for (int i = b->count - 1; i > at; i--) {
        text *t = &b->text[b->order[i]];
        if (t->pages == 0)
            continue;
        give_pages(b, t);
        t->read = 0;
        t->rows = 0;
        b->set_back++;
        return true;
    }
    return false;
}

/* Pages for the first `tokens` of the text at place `at`; how many tokens there are
 * pages for. */
static int64_t take_pages(sti_text_batch *b, int at, int64_t tokens)
{
    text *t = &b->text[b->order[at]];
    while (t->pages < pages_for(tokens)) {
        if (b->free == 0 && !set_back(b, at))
            break;
        t->page[t->pages++] = b->free_page[--b->free];
    }
    return t->pages * PAGE < tokens ? t->pages * PAGE : tokens;
}

/* One row of every text that draws, as far as there are pages. */
static void plan_draws(sti_text_batch *b)
{
    for (int i = 0; i < b->count; i++) {
        text *t = &b->text[b->order[i]];
        if (draws(t)) /* (one that an older one has set back does not any more) */
            t->rows = take_pages(b, i, t->length) - t->read;
    }
}

static int64_t planned_rows(const sti_text_batch *b)
{
    int64_t rows = 0;
    for (int i = 0; i < b->count; i++)
        rows += b->text[b->order[i]].rows;
    return rows;
}

/* Slices of prompts in what is left of the step, the oldest first. One that holds no
 * pages begins only where there are enough for all of it: half-read it would be set
 * back again. */
static void plan_prompts(sti_text_batch *b)
{
    for (int i = 0; i < b->count; i++) {
        text *t = &b->text[b->order[i]];
        if (t->rows > 0 || draws(t))
            continue;
        const int64_t left = STI_DECODER_ROWS - planned_rows(b);
        const int64_t unread = t->length - t->read;
        const int64_t end = t->read + (unread < left ? unread : left);
        if (left == 0 || (i > 0 && t->pages == 0 && b->free < pages_for(t->length)))
            return;
        t->rows = take_pages(b, i, end) - t->read;
    }
}

static void plan_rows(sti_text_batch *b)
{
    for (int i = 0; i < b->count; i++)
        b->text[b->order[i]].rows = 0;
    plan_draws(b);
    plan_prompts(b);
}

int sti_text_batch_rows(const sti_text_batch *b)
{
    int64_t rows = 0;
    for (int i = 0; i < b->count; i++)
        rows += b->text[b->order[i]].length - b->text[b->order[i]].read;
    return rows < STI_DECODER_ROWS ? (int)rows : STI_DECODER_ROWS;
}

/* ---- a step ---- */

/* Room for one more token: when the window is full its newest half stays, and is read
 * anew, for its tokens now stand at other positions. */
static void slide(sti_text_batch *b, text *t)
{
    const int64_t keep = t->capacity / 2;
    if (t->length < t->capacity)
        return;
    memmove(t->window, t->window + t->length - keep, (size_t)keep * sizeof *t->window);
    t->length = keep;
    t->read = 0;
    give_pages(b, t);
}

/* The texts that draw in a step: their logits, and what comes of them. */
typedef struct draw_job {
    sti_text_batch *batch;
    const float *logits; /* [count, vocabulary] */
    sti_text_drawn *drawn;
} draw_job;

static void draw_piece(void *arg, int64_t piece, int worker)
{
    const draw_job *job = arg;
    sti_text_batch *b = job->batch;
    sti_text_drawn *out = &job->drawn[piece];
    const text *t = &b->text[out->text];
    const int64_t vocabulary = b->desc.decoder.model.vocabulary;
    const float *logits = job->logits + piece * vocabulary;
    sti_sampler *sampler = &b->sampler[worker];
    if (sti_first_not_finite(logits, vocabulary) >= 0) {
        out->status = STINT_E_FAILED;
        return;
    }
    sti_sampler_set(sampler, &t->sampler);
    out->status = sti_sampler_draw(sampler, logits, t->drawn, &out->token);
}

static void add_drawn(sti_text_batch *b, sti_text_drawn *d)
{
    text *t = &b->text[d->text];
    d->last = ++t->drawn == t->draws || d->status != STINT_OK;
    if (d->last) {
        sti_text_batch_leave(b, d->text);
        return;
    }
    slide(b, t);
    t->window[t->length++] = d->token;
}

static int collect_pieces(const sti_text_batch *b, sti_decoder_piece *piece,
                          int *number)
{
    int pieces = 0;
    for (int i = 0; i < b->count; i++) {
        const text *t = &b->text[b->order[i]];
        if (t->rows <= 0)
            continue;
        number[pieces] = b->order[i];
        piece[pieces++] =
            (sti_decoder_piece){.tokens = t->window + t->read,
                                .count = t->rows,
                                .position = t->read,
                                .page = t->page,
                                .wants_logits = t->read + t->rows == t->length};
    }
    return pieces;
}

int sti_text_batch_step(sti_text_batch *b, int threads, sti_text_drawn *drawn_out)
{
    sti_decoder_piece piece[STI_TEXTS_MOST];
    int number[STI_TEXTS_MOST], drawn = 0;
    draw_job job = {.batch = b, .drawn = drawn_out};
    plan_rows(b);
    const int pieces = collect_pieces(b, piece, number);
    if (pieces == 0)
        return 0;
    sti_decoder_step(b->decoder, piece, pieces, threads, &job.logits);
    for (int i = 0; i < pieces; i++) {
        text *t = &b->text[number[i]];
        t->read += piece[i].count;
        if (piece[i].wants_logits)
            drawn_out[drawn++] = (sti_text_drawn){.user = t->user, .text = number[i]};
    }
    sti_team_take(&(sti_team){.threads = threads}, drawn, draw_piece, &job);
    for (int i = 0; i < drawn; i++)
        add_drawn(b, &drawn_out[i]);
    return drawn;
}

void sti_text_batch_rehearse(sti_text_batch *b, int threads, int rows)
{
    sti_decoder_piece piece[STI_DECODER_ROWS];
    int32_t *page = b->text[0].page;
    const int32_t token = 0;
    const int64_t half = b->desc.decoder.context / 2;
    for (int64_t i = 0; i < b->sizes.context_pages; i++)
        page[i] = (int32_t)i;
    for (int i = 0; i < rows; i++)
        piece[i] = (sti_decoder_piece){.tokens = &token,
                                       .count = 1,
                                       .position = half,
                                       .page = page,
                                       .wants_logits = i < b->desc.texts};
    sti_decoder_step(b->decoder, piece, rows, threads, NULL);
}

/* ---- what others see ---- */

void sti_text_batch_describe(const sti_text_batch *b, sti_text_batch_state *out)
{
    *out = (sti_text_batch_state){.texts = b->count,
                                  .pages = b->desc.pages,
                                  .free_pages = b->free,
                                  .set_back = b->set_back};
    for (int i = 0; i < b->count; i++) {
        const text *t = &b->text[b->order[i]];
        out->drawing += draws(t);
        out->unread += draws(t) ? 0 : t->length - t->read;
    }
}

int64_t sti_text_batch_left(const sti_text_batch *b, int number)
{
    for (int i = 0; i < b->count; i++) {
        const text *t = &b->text[b->order[i]];
        int before = 0;
        for (int k = 0; k < b->count; k++) {
            const text *other = &b->text[b->order[k]];
            const int64_t gap = (other->draws - other->drawn) - (t->draws - t->drawn);
            before += gap < 0 || (gap == 0 && k < i);
        }
        if (before == number)
            return t->draws - t->drawn;
    }
    return 0;
}
