/* Figures measured once a host and kept as text under $XDG_CACHE_HOME/stint or
 * ~/.cache/stint: a title, this CPU's name and instruction set, and a figure a line. A
 * file of another machine, or one that cannot be read, is ignored with a line in the
 * log, and its figures are measured again. Nothing that is kept so ever changes a
 * result. */
#ifndef STI_KERNEL_FIGURES_H
#define STI_KERNEL_FIGURES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* A member of the struct that holds them: a double, or an int64_t where `whole`. All
 * are above 0, unless `may_be_zero`. */
typedef struct sti_figure {
    const char *name;
    size_t offset;
    bool whole, may_be_zero;
} sti_figure;

typedef struct sti_figures {
    const char *title; /* the first line, with the version of what is measured */
    const char *file;  /* "machine.txt" */
    const char *again; /* who measures anew, for the line in the log */
    const sti_figure *figure;
    int count;
} sti_figures;

/* The text of the struct at `values`, and back; false: not this format or not this CPU,
 * and *why_out says so; what is at values_out is then of no use. `text` is cut in
 * pieces. */
void sti_figures_write(const sti_figures *figures, const void *values, sti_text *out);
bool sti_figures_parse(const sti_figures *figures, char *text, void *values_out,
                       const char **why_out);

/* What is kept for this host; false: nothing that can be used. */
bool sti_figures_load(const sti_figures *figures, void *values_out);
/* Keep it. A folder that cannot be written is no error, but a line in the log. */
void sti_figures_keep(const sti_figures *figures, const void *values);

#endif
