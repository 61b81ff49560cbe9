/* Progress: a bar on a terminal (stderr), else a plain line at a slow rate. Never
 * prompts, never colours when NO_COLOR, TERM=dumb or a pipe says so. */
#ifndef STI_BASE_PROGRESS_H
#define STI_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sti_progress {
    const char *title, *unit;
    int64_t total, done;
    int64_t from; /* of done, there at start_ns already: rates and times leave it out */
    int64_t start_ns, last_ns;
    bool terminal, quiet;
    int width;
} sti_progress;

/* `unit` of the rate, such as "images"; "B": bytes, shown as sizes; NULL: neither rate
 * nor times, the notes have them. */
void sti_progress_begin(sti_progress *p, const char *title, const char *unit,
                        int64_t total, bool quiet);
/* `note` is a short text such as "loss 1.234  61.2 %  812 img/s  104 MiB";
 * rate-limited. */
void sti_progress_update(sti_progress *p, int64_t done, const char *note);
/* Clears the bar so that a normal line can be printed;
 * the next update draws it again. */
void sti_progress_clear(sti_progress *p);

#endif
