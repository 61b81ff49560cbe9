/* The text of a recipe without the lines that say what is so anyway. */
#ifndef STI_STORE_RECIPE_CUT_H
#define STI_STORE_RECIPE_CUT_H

#include "base/text.h"
#include "stint/status.h"

/* Append to `out` the lines of a recipe's text, as sti_recipe_write leaves it to be
 * shared, that a recipe of defaults does not have. *cut_out is false, and out the text
 * itself, where sti_recipe_join would not give the same text again, as of a recipe of
 * an older build. STINT_E_MEMORY; failures of reading a recipe. */
stint_status sti_recipe_cut(const char *text, sti_text *out, bool *cut_out);
/* The whole text of one that was cut; `where` names it in messages. */
stint_status sti_recipe_join(const char *cut, const char *where, sti_text *out);

#endif
