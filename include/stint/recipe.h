/* Recipes: all that the result of a training depends on, as an INI file or set key by
 * key.
 *
 *   stint_recipe *recipe = NULL;
 *   stint_status st = stint_recipe_create(&recipe);
 *   if (st == STINT_OK)
 *       st = stint_recipe_set(recipe, "data.path", "photos");
 *   ...
 *   stint_recipe_destroy(recipe);
 *
 * A recipe serves one thread at a time; several may be used at once. Nothing in it
 * depends on the machine: the same keys and data give the same weights anywhere.
 *
 * docs/recipe-reference.md lists the keys. stint/train.h has the check of a whole
 * recipe and what is done with one. Every room of the
 * library owns the sections that it reads; a recipe holds all of them. */
#ifndef STINT_RECIPE_H
#define STINT_RECIPE_H

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Values of all recipe keys; opaque. It serves one thread at a time. Calls that take a
 * const recipe leave it as it is and keep nothing of it. */
typedef struct stint_recipe stint_recipe;

/** Make a recipe of defaults; the caller destroys it. STINT_E_MEMORY. */
STINT_API stint_status stint_recipe_create(stint_recipe **recipe_out);

/** Read an INI file; the caller destroys the recipe.
 *
 * Paths in the file are relative to it. All complaints come at once, one a line.
 * STINT_E_USAGE: unknown keys, bad values; STINT_E_IO: not a readable file;
 * STINT_E_MEMORY. */
STINT_API stint_status stint_recipe_load(const char *path, stint_recipe **recipe_out);

/** Set one key, "train.batch", to a value in the words of the file. Both are copied.
 *
 * STINT_E_USAGE: an unknown key (the nearest is offered) or a bad value; the old value
 * then stays. */
STINT_API stint_status stint_recipe_set(stint_recipe *recipe, const char *key,
                                        const char *value);

/** Free a recipe. NULL is fine. */
STINT_API void stint_recipe_destroy(stint_recipe *recipe);

#ifdef __cplusplus
}
#endif

#endif
