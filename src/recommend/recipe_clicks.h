/* The clicks that a recipe names. */
#ifndef STI_RECOMMEND_RECIPE_CLICKS_H
#define STI_RECOMMEND_RECIPE_CLICKS_H

#include "base/recipe.h"
#include "data/clicks.h"

/* How [data] reads text, with its format found where it says auto (by the file's name,
 * else by its first line). path NULL: the recipe's own. Texts are the recipe's. */
stint_status sti_recipe_clicks(const stint_recipe *recipe, const char *path,
                               sti_clicks_desc *desc_out);
/* By the name of the file, else by its first line. STINT_E_IO. */
stint_status sti_clicks_find_format(const char *path, sti_clicks_format *format_out);
/* The file of ranks: data.path itself where it is one, else counted or found. */
stint_status sti_recipe_ranks(const stint_recipe *recipe, char path_out[1024]);

#endif
