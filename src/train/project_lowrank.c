/* lowrank: the matrix of a weight as a product of two thin ones, by a truncated
 * singular value decomposition: of all products of that rank the nearest (Eckart and
 * Young 1936). */
#include "kernel/svd/svd.h"
#include "train/project_priv.h"

/* The largest rank whose factors have no more numbers than stay; at least 1. A rank
 * that would save nothing leaves the tensor as it is: 0. */
int64_t sti_project_rank(const sti_scheme_word *word, const sti_target *t, int layer)
{
    const int64_t rows = t->form.rows, columns = t->form.columns;
    const int64_t full = rows < columns ? rows : columns;
    const double share =
        word->automatic ? 0 : word->share[word->shares > 1 ? layer : 0];
    const double stay = (1 - share) * (double)t->count;
    const int64_t rank = (int64_t)(stay / (double)(rows + columns) + 1e-9);
    if (word->automatic || rank >= full || rank * (rows + columns) >= t->count)
        return 0;
    return rank > 0 ? rank : 1;
}

static void factor(sti_projection *p, sti_target *t, int64_t rank, float *x)
{
    const int64_t rows = t->form.rows, columns = t->form.columns;
    const int64_t full = rows < columns ? rows : columns;
    double *value = p->svd, *left = value + full, *right = left + rows * full;
    sti_svd(rows, columns, x, value, left, right, right + full * columns);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < rank; k++)
            t->left[r * rank + k] = (float)(left[r * full + k] * value[k]);
    for (int64_t k = 0; k < rank; k++)
        for (int64_t c = 0; c < columns; c++)
            t->right[k * columns + c] = (float)right[k * columns + c];
    sti_weight_multiply(rows, rank, columns, t->left, t->right, x);
}

int64_t sti_project_svd_doubles(const sti_target *t)
{
    const int64_t rows = t->form.rows, columns = t->form.columns;
    const int64_t full = rows < columns ? rows : columns;
    return full + rows * full + full * columns + sti_svd_scratch(rows, columns);
}

void sti_project_lowrank(sti_projection *p, int index, void *params)
{
    const sti_scheme_word *word = &p->scheme.word[index];
    int layer = 0;
    for (int i = 0; i < p->count; i++) {
        sti_target *t = &p->target[i];
        if (!(t->takes >> index & 1))
            continue;
        const int64_t rank = sti_project_rank(word, t, layer++);
        if (rank > 0)
            factor(p, t, rank, sti_target_numbers(t, params));
        t->form.rank = rank;
    }
}
