/* Shared by the files of the option table: collecting complaints, finding rows. */
#ifndef STI_BASE_OPTION_PRIV_H
#define STI_BASE_OPTION_PRIV_H

#include "base/fail.h"
#include "base/option.h"

#define STI_OPTION_ROWS_MAX 256

/* Complaints of one source, one a line, so that a user sees them all at once. */
typedef struct sti_complaints {
    sti_text text;
    int count;
    bool no_memory;
} sti_complaints;

void sti_complain(sti_complaints *c, const char *format, ...) STI_PRINTF(2, 3);
/* Takes the recorded error of a call that gave `status`; STINT_OK adds nothing. */
void sti_complain_status(sti_complaints *c, stint_status status);
/* STINT_OK if there were none; else records them all and gives STINT_E_USAGE (or
 * STINT_E_MEMORY). Frees the text. */
stint_status sti_complaints_end(sti_complaints *c);

/* sti_options_put with the folder that relative paths begin at (NULL: left alone). */
stint_status sti_option_store(sti_option_set *set, int row, const char *value,
                              sti_origin origin, const char *where, const char *folder);

/* Names are one with '-' and '_' alike. */
bool sti_option_same_name(const char *a, const char *b);
/* The row's name on the command line. */
static inline const char *sti_option_flag(const sti_option *row)
{
    return row->flag_name ? row->flag_name : row->name;
}
/* Row of a recipe key, or -1. */
int sti_option_find(const sti_option_set *set, const char *section, const char *name);
/* Complain about an unknown key: the right section, or the nearest spelling. */
void sti_complain_key(sti_complaints *c, const sti_option_set *set, const char *where,
                      const char *section, const char *name);
/* The known section nearest to `section`, which may be itself, or NULL. */
const char *sti_option_nearest_section(const sti_option_set *set, const char *section);
void sti_complain_section(sti_complaints *c, const sti_option_set *set,
                          const char *where, const char *section);

/* "sgd, adam or adamw" */
void sti_option_add_choices(const sti_option *row, sti_text *out);
/* "at least 1", "from 0 to 1"; nothing without bounds. */
void sti_option_add_range(const sti_option *row, sti_text *out);

#endif
