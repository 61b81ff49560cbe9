/* Recipes: all that the result of a training depends on, as an INI file or set key by
 * key. stint/train.h has the check of a whole recipe and what is done with one. */
#ifndef STINT_RECIPE_H
#define STINT_RECIPE_H

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A recipe serves one thread at a time. */
typedef struct stint_recipe stint_recipe;

/** Defaults only. The caller destroys it. STINT_E_MEMORY. */
STINT_API stint_status stint_recipe_create(stint_recipe **recipe_out);
/** Read an INI file (paths in it are relative to it). All complaints at once, one a
 * line. The caller destroys it. STINT_E_USAGE: unknown keys, bad values; STINT_E_IO;
 * STINT_E_MEMORY. */
STINT_API stint_status stint_recipe_load(const char *path, stint_recipe **recipe_out);
/** Set one key, "train.batch", as in the file. On STINT_E_USAGE the old value stays. */
STINT_API stint_status stint_recipe_set(stint_recipe *recipe, const char *key,
                                        const char *value);
/** NULL is allowed. */
STINT_API void stint_recipe_destroy(stint_recipe *recipe);

#ifdef __cplusplus
}
#endif

#endif
