/* A decoder at work: pieces of several texts in one pass over the weights. */
#include <assert.h>
#include <string.h>

#include "kernel/elementwise/elementwise.h"
#include "kernel/norm/row_norm.h"
#include "model/decoder_priv.h"
#include "op/op_attention.h"

sti_rotary sti_decoder_rotary(const sti_decoder *d, int64_t rows, int64_t position)
{
    const stint_text_model_desc *m = &d->desc.model;
    return (sti_rotary){.batch = 1,
                        .length = rows,
                        .width = d->packed,
                        .heads = m->heads + m->kv_heads,
                        .size = d->size,
                        .position = position,
                        .base = (double)m->rotary_base,
                        .stretch = sti_rotary_stretch_of(&m->rotary_scaling)};
}

static void run_norm(const sti_decoder *d, const norm_weights *norm, int64_t rows,
                     const float *x, float *y)
{
    const sti_row_norm args = {.rows = rows,
                               .n = d->desc.model.width,
                               .epsilon = d->desc.model.epsilon,
                               .scale = norm->scale,
                               .shift = norm->shift};
    sti_row_norm_f32(&d->team, &args, x, y, d->llama ? NULL : d->work.mean,
                     d->work.inv);
}

static void run_linear(const sti_decoder *d, const linear_weights *linear, int64_t rows,
                       const float *x, float *y)
{
    sti_decoder_matrix_multiply(&d->team, &linear->w, rows, x, linear->bias, y);
}

/* What is read in one pass: pieces of texts, their rows one after another. */
typedef struct tile {
    const sti_decoder_piece *piece;
    int pieces;
    int64_t rows;
    sti_attention_rows sequence[TILE]; /* [pieces] */
} tile;

static void begin_tile(const sti_decoder *d, const sti_decoder_piece *pieces, int count,
                       tile *t)
{
    t->piece = pieces;
    t->pieces = count;
    t->rows = 0;
    for (const sti_decoder_piece *p = pieces; p < pieces + count; p++) {
        assert(p->count >= 1 && p->position >= 0 &&
               p->position + p->count <= d->desc.context);
        t->sequence[p - pieces] = (sti_attention_rows){
            .position = p->position, .rows = p->count, .page = p->page};
        t->rows += p->count;
    }
    assert(t->rows >= 1 && t->rows <= TILE);
    (void)d;
}

static void embed(const sti_decoder *d, const tile *t)
{
    const int64_t width = d->desc.model.width;
    float *x = d->work.x;
    for (const sti_decoder_piece *p = t->piece; p < t->piece + t->pieces; p++)
        for (int64_t r = 0; r < p->count; r++, x += width) {
            sti_decoder_matrix_column(&d->words, p->tokens[r], x);
            for (int64_t i = 0; i < width && d->positions; i++)
                x[i] += d->positions[(p->position + r) * width + i];
        }
}

static void run_rotary(const sti_decoder *d, const tile *t)
{
    float *qkv = d->work.qkv;
    for (int i = 0; i < t->pieces; i++) {
        const sti_rotary rotary =
            sti_decoder_rotary(d, t->piece[i].count, t->piece[i].position);
        sti_rotary_f32(&d->team, &rotary, qkv, qkv, d->work.scratch);
        qkv += t->piece[i].count * d->packed;
    }
}

/* Heads of queries, or of keys, in columns first .. of qkv: through a block of their
 * own, where they lie one after the other. */
static void run_head_norm(const sti_decoder *d, const norm_weights *norm, int64_t rows,
                          int64_t first, int64_t heads)
{
    const decoder_work *w = &d->work;
    const int64_t count = heads * d->size;
    const size_t bytes = (size_t)count * sizeof(float);
    const sti_row_norm args = {.rows = rows * heads,
                               .n = d->size,
                               .epsilon = d->desc.model.epsilon,
                               .scale = norm->scale};
    for (int64_t r = 0; r < rows; r++)
        memcpy(w->heads + r * count, w->qkv + r * d->packed + first, bytes);
    sti_row_norm_f32(&d->team, &args, w->heads, w->heads, NULL, w->inv);
    for (int64_t r = 0; r < rows; r++)
        memcpy(w->qkv + r * d->packed + first, w->heads + r * count, bytes);
}

static void run_attention(const sti_decoder *d, const decoder_layer *layer,
                          const tile *t)
{
    const decoder_work *w = &d->work;
    run_linear(d, &layer->qkv, t->rows, w->a, w->qkv);
    if (d->desc.model.qk_norm) {
        const int64_t heads = d->desc.model.heads;
        run_head_norm(d, &layer->query_norm, t->rows, 0, heads);
        run_head_norm(d, &layer->key_norm, t->rows, heads * d->size,
                      d->desc.model.kv_heads);
    }
    if (d->llama)
        run_rotary(d, t);
    sti_attention_cache_put(&layer->cache, t->sequence, t->pieces, w->qkv);
    sti_attention_cache_f32(&d->team, &layer->cache, t->sequence, t->pieces, w->qkv,
                            w->a, w->scratch);
    run_linear(d, &layer->proj, t->rows, w->a, w->branch);
}

static void run_feed_forward(const sti_decoder *d, const decoder_layer *layer,
                             int64_t rows)
{
    const decoder_work *w = &d->work;
    const int64_t count = rows * d->desc.model.hidden;
    const sti_unary curve = d->llama ? STI_UNARY_SILU : STI_UNARY_GELU;
    run_linear(d, &layer->gate, rows, w->a, w->hidden);
    sti_unary_f32(&d->team, curve, count, 0.0f, w->hidden, w->hidden);
    if (d->llama) {
        run_linear(d, &layer->up, rows, w->a, w->other);
        sti_binary_f32(&d->team, STI_BINARY_MUL, count, w->hidden, w->other, w->hidden);
    }
    run_linear(d, &layer->down, rows, w->hidden, w->branch);
}

static void run_tile(const sti_decoder *d, const tile *t)
{
    const decoder_work *w = &d->work;
    const int64_t rows = t->rows, count = rows * d->desc.model.width;
    embed(d, t);
    for (int64_t i = 0; i < d->desc.model.depth; i++) {
        const decoder_layer *layer = &d->layer[i];
        run_norm(d, &layer->norm[0], rows, w->x, w->a);
        run_attention(d, layer, t);
        sti_add_f32(&d->team, count, w->branch, w->x);
        run_norm(d, &layer->norm[1], rows, w->x, w->a);
        run_feed_forward(d, layer, rows);
        sti_add_f32(&d->team, count, w->branch, w->x);
    }
}

/* Logits after the last rows of those pieces that want them. */
static void run_head(const sti_decoder *d, const tile *t)
{
    const decoder_work *w = &d->work;
    const int64_t width = d->desc.model.width;
    const float *end = w->x;
    int64_t wanted = 0;
    for (int i = 0; i < t->pieces; i++) {
        end += t->piece[i].count * width;
        if (t->piece[i].wants_logits)
            memcpy(w->branch + wanted++ * width, end - width,
                   (size_t)width * sizeof *end);
    }
    assert(wanted <= (d->desc.wanted ? d->desc.wanted : 1));
    if (wanted == 0)
        return;
    run_norm(d, &d->last, wanted, w->branch, w->a);
    sti_decoder_matrix_multiply(&d->team, &d->head, wanted, w->a, NULL, w->logits);
}

void sti_decoder_step(sti_decoder *d, const sti_decoder_piece *pieces, int count,
                      int threads, const float **logits_out)
{
    tile t;
    assert(threads >= 1 && threads <= d->desc.threads);
    const unsigned mode = sti_float_mode_enter();
    d->team.threads = threads;
    begin_tile(d, pieces, count, &t);
    run_tile(d, &t);
    run_head(d, &t);
    if (logits_out)
        *logits_out = d->work.logits;
    sti_float_mode_leave(mode);
}

void sti_decoder_run(sti_decoder *d, const int32_t *tokens, int64_t count,
                     int64_t position, const float **logits_out)
{
    assert(count >= 1 && position >= 0 && position + count <= d->desc.capacity);
    for (int64_t i = 0, rows; i < count; i += rows) {
        rows = count - i < TILE ? count - i : TILE;
        const sti_decoder_piece piece = {.tokens = tokens + i,
                                         .count = rows,
                                         .position = position + i,
                                         .wants_logits =
                                             logits_out && i + rows == count};
        sti_decoder_step(d, &piece, 1, d->desc.threads, logits_out);
    }
}
