/* Texts that are drawn together: each may join and leave between two steps, and a step
 * reads one row of every text that draws and slices of the prompts of others in one
 * pass over the weights (continuous batching, Yu et al. 2022). Keys and values lie in
 * pages of 64 tokens that a text takes as it grows (Kwon et al. 2023), so that memory
 * follows tokens and not contexts; where pages run out, the youngest text is set back:
 * its pages are taken, and it reads its tokens anew later.
 *
 * Token i of a text is the one that a generator of its own (stint/generate.h) draws
 * with the same settings and seed, whatever is drawn beside it.
 *
 * One thread at a time. A step allocates nothing. */
#ifndef STI_INFER_TEXT_BATCH_H
#define STI_INFER_TEXT_BATCH_H

#include "infer/sampler.h"
#include "model/decoder.h"

enum { STI_TEXTS_MOST = 64 }; /* of a batch */

typedef struct sti_text_batch_desc {
    /* What the decoder is made from; capacity, pages and wanted are the batch's. */
    sti_decoder_desc decoder; /* threads: the most of a step */
    int texts;                /* at a time, 1 .. STI_TEXTS_MOST */
    int64_t pages;            /* at least those of one context */
} sti_text_batch_desc;

typedef struct sti_text_batch_sizes {
    size_t weights_bytes, cache_bytes, work_bytes, total_bytes;
    size_t page_bytes;     /* keys and values of 64 tokens */
    int64_t context_pages; /* that one text may take */
} sti_text_batch_sizes;

typedef struct sti_text_batch sti_text_batch;

/* STINT_E_INPUT, _USAGE: sizes that do not go together. */
stint_status sti_text_batch_measure(const sti_text_batch_desc *desc,
                                    sti_text_batch_sizes *sizes_out);
stint_status sti_text_batch_create(const sti_text_batch_desc *desc,
                                   const sti_weight_source *source,
                                   sti_text_batch **batch_out);
void sti_text_batch_destroy(sti_text_batch *batch); /* NULL is fine */

/* A text that begins. */
typedef struct sti_text_desc {
    const int32_t *tokens; /* [count]: the prompt, 1 .. context tokens; copied */
    int64_t count;
    int64_t draws; /* tokens that may be drawn, at least 1; it leaves after the last */
    sti_sampler_desc sampler;
    void *user;
} sti_text_desc;

/* *text_out: its number until it leaves. STINT_E_USAGE: a setting out of range;
 * STINT_E_INPUT: a prompt that is empty or too long, or a token outside the vocabulary;
 * STINT_E_BUDGET: as many texts as the batch was made for are in it; STINT_E_MEMORY. */
stint_status sti_text_batch_join(sti_text_batch *batch, const sti_text_desc *desc,
                                 int *text_out);
void sti_text_batch_leave(sti_text_batch *batch, int text);

/* What a step gave. */
typedef struct sti_text_drawn {
    void *user;
    int text;
    int32_t token;
    bool last; /* the text has drawn all that it may and has left */
    /* STINT_E_FAILED: the logits are no numbers; the text has left. No words are
     * recorded. */
    stint_status status;
} sti_text_drawn;

/* Rows of the next step, 0 .. STI_DECODER_ROWS, as the texts are now. */
int sti_text_batch_rows(const sti_text_batch *batch);
/* One step; drawn_out [texts] gets the texts that drew a token, the oldest first, and
 * their number is returned. Threads never change a token. */
int sti_text_batch_step(sti_text_batch *batch, int threads, sti_text_drawn *drawn_out);

/* Only to be timed: a step of so many rows, each of a text that has read half a
 * context. No text may be in the batch. */
void sti_text_batch_rehearse(sti_text_batch *batch, int threads, int rows);

typedef struct sti_text_batch_state {
    int texts, drawing; /* in the batch; those of them that have read their prompt */
    int64_t unread;     /* tokens of prompts, and of texts that were set back */
    int64_t pages, free_pages;
    int64_t set_back; /* how often a text was */
} sti_text_batch_state;

void sti_text_batch_describe(const sti_text_batch *batch, sti_text_batch_state *out);
/* Draws that are left to the text of the fewest, the second fewest, ..; 0: so many
 * there are not. */
int64_t sti_text_batch_left(const sti_text_batch *batch, int number);

#endif
