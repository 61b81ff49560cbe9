/* Shared by the files of the option table: storing values, finding rows. */
#ifndef STI_BASE_OPTION_PRIV_H
#define STI_BASE_OPTION_PRIV_H

#include "base/complaints.h"
#include "base/option.h"

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
/* The section of exactly that name, as the rows have it, or NULL. */
const char *sti_option_is_section(const sti_option_set *set, const char *section);
/* The known section nearest to `section`, which may be itself, or NULL. */
const char *sti_option_nearest_section(const sti_option_set *set, const char *section);
void sti_complain_section(sti_complaints *c, const sti_option_set *set,
                          const char *where, const char *section);

/* "sgd, adam or adamw" */
void sti_option_add_choices(const sti_option *row, sti_text *out);
/* "at least 1", "from 0 to 1"; nothing without bounds. */
void sti_option_add_range(const sti_option *row, sti_text *out);

#endif
