/* A text model in use: its weights, and the texts that are drawn from them together. */
#ifndef STI_SERVE_SERVED_TEXT_H
#define STI_SERVE_SERVED_TEXT_H

#include "infer/text_batch.h"
#include "store/text_model_file.h"

typedef struct sti_served_text {
    stint_text_model *file;
    stint_text_model_facts facts;
    char version[65]; /* SHA-256 of the weights; "" of a folder until it is loaded */
    size_t longest;   /* bytes of a token, at most */
    sti_text_batch_desc desc;
    sti_text_batch_sizes sizes;
    sti_text_batch *batch; /* NULL until it is loaded */
} sti_served_text;

/* Open a model for so many texts at a time and threads a step at most, with the pages
 * that one context takes. STINT_E_INPUT: it has no tokeniser. Whatever there is of it
 * is freed by sti_served_text_destroy. */
stint_status sti_served_text_open(const char *path, const char *name, int texts,
                                  int threads, sti_served_text **served_out);
void sti_served_text_destroy(sti_served_text *served); /* NULL is fine */

/* Another number of pages, before it is loaded. */
stint_status sti_served_text_set_pages(sti_served_text *served, int64_t pages);
/* Read the weights. */
stint_status sti_served_text_load(sti_served_text *served);
/* Give their memory back, and that of the texts; there are none. */
void sti_served_text_unload(sti_served_text *served);
/* Draw one token, to see that the logits are numbers. No text may be in the batch. */
stint_status sti_served_text_try(sti_served_text *served);
/* May the one take the place of the other? STINT_E_INPUT: what differs. */
stint_status sti_served_text_agree(const sti_served_text *old,
                                   const sti_served_text *fresh);

#endif
