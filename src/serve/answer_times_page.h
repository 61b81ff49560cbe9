/* A page of how long answers took. */
#ifndef STI_SERVE_ANSWER_TIMES_PAGE_H
#define STI_SERVE_ANSWER_TIMES_PAGE_H

#include "serve/simulate.h"

/* What the page says beside the result. */
typedef struct sti_answer_times_about {
    const char *kind, *subject; /* "real", "sim"; a server's address, or a file */
} sti_answer_times_about;

/* Sorts the times. STINT_E_IO, STINT_E_MEMORY. */
stint_status sti_answer_times_page(const char *path, sti_answer_times *times,
                                   const sti_serve_result *result,
                                   const sti_answer_times_about *about);

#endif
