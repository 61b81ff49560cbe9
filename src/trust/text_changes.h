/* The places of a text where two models' probabilities are farthest apart. */
#ifndef STI_TRUST_TEXT_CHANGES_H
#define STI_TRUST_TEXT_CHANGES_H

#include "data/corpus.h"
#include "stint/compare_text.h"

/* A token as UTF-8 without NUL, in the arena: what is none becomes U+FFFD. NULL: no
 * memory. */
const char *sti_text_token_words(const sti_corpus *text, sti_arena *arena,
                                 int32_t token);

/* Likewise of several, cut at `most` bytes. */
const char *sti_text_tokens_words(const sti_corpus *text, sti_arena *arena,
                                  const int32_t *token, int64_t count, size_t most);

/* Keep it if it is among the farthest so far; the earlier of equal ones. */
void sti_text_changes_take(stint_text_fidelity *fidelity,
                           const stint_text_change *change);
/* The texts of those that were kept, into the fidelity's arena. */
stint_status sti_text_changes_write(const sti_corpus *text, const sti_corpus_part *part,
                                    int64_t context, stint_text_fidelity *fidelity);

#endif
