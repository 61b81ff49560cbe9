/* [embedding] of a recipe: the table of a recommendation model, what of it is in
 * memory, and how its rows learn. */
#ifndef STI_RECOMMEND_EMBEDDING_SECTION_H
#define STI_RECOMMEND_EMBEDDING_SECTION_H

#include "base/recipe.h"

typedef struct sti_embedding_values {
    const char *path; /* NULL: OUT/embeddings */
    int policy;       /* sti_cache_policy */
    int64_t lookahead;
    double hot;
    int64_t prefetch;
    int io;             /* sti_async_way */
    size_t cache_bytes; /* 0: what run.memory leaves */
    int optimizer;      /* sti_row_rule */
    double lr, epsilon; /* lr 0: optimizer.lr */
    double scale;
} sti_embedding_values;

extern const sti_recipe_section sti_embedding_section;
const sti_embedding_values *sti_embedding_section_of(const stint_recipe *recipe);

#endif
