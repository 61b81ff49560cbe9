/* What the commands that train a recipe many times share: the recipe's file, command
 * lines of its runs, and what one of them takes. */
#ifndef STI_TRUST_MATRIX_H
#define STI_TRUST_MATRIX_H

#include "base/recipe.h"
#include "trust/child.h"

/* A run whose plan differs by a few pages from the one that was asked for it. */
#define STI_MATRIX_SLACK_BYTES ((size_t)512 << 10)

typedef struct sti_matrix {
    const stint_recipe *recipe;
    const char *program, *out; /* out: absolute */
    const char *recipe_path;   /* out/recipe.ini */
    sti_arena *arena;
    int lock_fd; /* of out, -1: none */
} sti_matrix;

/* Makes the folder and takes it for this process. STINT_E_USAGE: another has it. */
stint_status sti_matrix_open(sti_matrix *matrix, const stint_recipe *recipe,
                             const char *program, const char *out);
/* Before any run. */
stint_status sti_matrix_write_recipe(const sti_matrix *matrix);
void sti_matrix_close(sti_matrix *matrix); /* a zeroed one with lock_fd -1 is fine */

/* `stint train RECIPE --out OUT/name` without budget and loss; its words go to
 * OUT/name.txt. In the matrix's arena. */
sti_command *sti_matrix_command(sti_matrix *matrix, const char *name, int threads);

/* Planned peak of such a run, and the least that it can do with, by the plan of a
 * process of its own. */
stint_status sti_matrix_plan(sti_matrix *matrix, int threads, size_t *peak_out,
                             size_t *smallest_out);

#endif
