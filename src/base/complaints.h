/* Complaints of one source, one a line, so that a user sees them all at once. */
#ifndef STI_BASE_COMPLAINTS_H
#define STI_BASE_COMPLAINTS_H

#include "base/fail.h"
#include "base/text.h"

typedef struct sti_complaints {
    sti_text text;
    int count;
    bool no_memory;
} sti_complaints;

/* Beyond what a message holds, complaints are counted only. */
void sti_complain(sti_complaints *c, const char *format, ...) STI_PRINTF(2, 3);
/* True, and counts one, when there is no room for words: finding the best of them may
 * take long, and a file may give a million reasons. */
bool sti_complain_unheard(sti_complaints *c);
/* Takes the recorded error of a call that gave `status`; STINT_OK adds nothing. */
void sti_complain_status(sti_complaints *c, stint_status status);
/* STINT_OK if there were none; else records them all and gives STINT_E_USAGE (or
 * STINT_E_MEMORY). Frees the text. */
stint_status sti_complaints_end(sti_complaints *c);

#endif
