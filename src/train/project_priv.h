/* What the operators share. An operator is a file project_NAME.c and a row of the table
 * in project.c. */
#ifndef STI_TRAIN_PROJECT_PRIV_H
#define STI_TRAIN_PROJECT_PRIV_H

#include "train/project.h"

/* Apply a word to all targets that it takes. */
typedef void sti_project_fn(sti_projection *p, int word, void *params);
sti_project_fn sti_project_prune, sti_project_block, sti_project_outputs,
    sti_project_kernel, sti_project_pattern, sti_project_lowrank, sti_project_quantise;

/* Can it be applied to this target? For creation: STINT_E_USAGE, or STINT_OK. */
typedef stint_status sti_project_check_fn(const sti_scheme_word *word,
                                          const sti_target *target);
sti_project_check_fn sti_project_check_block, sti_project_check_outputs,
    sti_project_check_kernel;

/* Is a weight of this kind what the word is about at all? */
bool sti_project_concerns(sti_scheme_kind kind, const sti_target *target);

/* lowrank: the rank of a target, the layer-th that the word takes (0: none, it would
 * save nothing), and doubles of scratch for it. */
int64_t sti_project_rank(const sti_scheme_word *word, const sti_target *target,
                         int layer);
int64_t sti_project_svd_doubles(const sti_target *target);

/* ---- cutting units by their scores ---- */

/* Units of a target. */
typedef int64_t sti_units_fn(const sti_scheme_word *word, const sti_target *target);
/* Scores of all units of one target: larger ones stay. */
typedef void sti_score_fn(const sti_scheme_word *word, const sti_target *target,
                          const float *x, float *score);
typedef void sti_cut_fn(const sti_scheme_word *word, const sti_target *target,
                        void *params, int64_t unit);

typedef struct sti_cutter {
    sti_units_fn *units;
    sti_score_fn *score; /* NULL: a unit is a number, its magnitude the score */
    sti_cut_fn *cut;
    bool round_up; /* the number of units removed */
} sti_cutter;

/* Remove the word's share of units, by one threshold over all targets or by one each;
 * exactly so many, of equal scores those of lower index stay. Then each target keeps a
 * multiple of `align` units, and at least one of them, its best. */
void sti_project_cut(sti_projection *p, int word, const sti_cutter *cutter,
                     void *params);

/* One number for `n` numbers at a distance of `stride` each, by the word's criterion.
 * Add the rest of a unit's numbers by further calls; then finish. */
typedef struct sti_scorer {
    sti_criterion criterion;
    double sum, largest, smallest;
    int64_t count;
} sti_scorer;
void sti_scorer_begin(sti_scorer *scorer, sti_criterion criterion);
void sti_scorer_add(sti_scorer *scorer, const float *x, int64_t n, int64_t stride);
float sti_scorer_end(const sti_scorer *scorer);

#endif
