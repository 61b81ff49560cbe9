/* Inside the noise laboratory: its arms, its folder, and the runs in it. */
#ifndef STI_TRUST_NOISE_RUNS_H
#define STI_TRUST_NOISE_RUNS_H

#include "base/recipe.h"
#include "data/data.h"
#include "stint/trust.h"
#include "train/inputs.h"
#include "trust/matrix.h"

enum { STI_NOISE_SEEDS = 4, STI_NOISE_ARMS = 4 };

/* What an arm lets vary. */
typedef struct sti_noise_vary {
    const char *name;           /* as shown */
    const char *folder;         /* its runs are folder-01, ... */
    bool seed[STI_NOISE_SEEDS]; /* of init, order, augment, dropout */
    bool impl;
} sti_noise_vary;

typedef struct sti_noise_lab {
    const stint_recipe *recipe;
    const stint_noise_desc *desc;
    sti_arena *arena; /* of the result */
    sti_matrix matrix;
    sti_noise_vary vary[STI_NOISE_ARMS];
    int arms;
    stint_data *test;
    sti_inputs text; /* in place of test, of a text; zeroed: images */
    int64_t steps, hash_every;
    int64_t made, kept;
} sti_noise_lab;

/* OUT/folder-01/file of a run counted from 0, in the arena. */
char *sti_noise_run_path(sti_noise_lab *lab, int arm, int64_t run, const char *file);

/* The arms that the description asks for. STINT_E_USAGE: a word that is none. */
stint_status sti_noise_arms(sti_noise_lab *lab);
/* Hold OUT/noise.json, which says what the folder's runs are of, against this call, or
 * write it. */
stint_status sti_noise_manifest(sti_noise_lab *lab);
/* Make all runs that are not finished. */
stint_status sti_noise_run_all(sti_noise_lab *lab);

#endif
