/* What a model's file would take if its weights were projected and not trained: exact
 * for method direct, and near for others, since training changes which weights are
 * small by little. */
#ifndef STI_SHRINK_GUESS_H
#define STI_SHRINK_GUESS_H

#include "store/model_file.h"

typedef struct sti_guess {
    const stint_model_file *model; /* borrowed, as the recipe */
    const stint_recipe *recipe;
    const char *scheme;           /* text, with `auto` */
    void *params, *states, *work; /* blocks of model->single; work: of its parameters */
    size_t param_bytes;
} sti_guess;

stint_status sti_guess_create(const stint_model_file *model, const stint_recipe *recipe,
                              const char *scheme, sti_guess *guess);
void sti_guess_fini(sti_guess *guess); /* a zeroed one is fine */
/* The projection at a share. path: where the compact file is written; NULL: nowhere.
 * nonzeros_out may be NULL. */
stint_status sti_guess_bytes(sti_guess *guess, double share, const char *path,
                             int64_t *bytes_out, int64_t *nonzeros_out);
/* The smallest share whose file is no larger than `bytes`, to 1e-4, at most `high`.
 * STINT_E_BUDGET, with the least: none is. */
stint_status sti_guess_share(sti_guess *guess, double high, double bytes,
                             double *share_out);

#endif
