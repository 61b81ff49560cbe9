/* quantise: every number as one of half precision, or as an integer of few bits times
 * its output channel's scale, rounded as operator quantise does. Of a product it is the
 * factors that are rounded; each row of the left one belongs to an input, so its scale
 * is a column's, one a rank. */
#include <math.h>

#include "train/project_priv.h"

static float largest(const float *x, int64_t n, int64_t stride)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fabsf(x[i * stride]) > most ? fabsf(x[i * stride]) : most;
    return most;
}

static float round_to(float x, float step)
{
    const float magic = 0x1.8p23f; /* no bits below one, ties to even */
    return step > 0 ? (x / step + magic - magic) * step : 0.0f;
}

static bool fits(const float *x, int64_t n, int64_t stride, float step)
{
    for (int64_t i = 0; i < n; i++)
        if (round_to(x[i * stride], step) != x[i * stride])
            return false;
    return true;
}

/* The scale of a column. One that is rounded already keeps the scale that it was
 * rounded by, which its largest number over the number of steps may miss by a last bit.
 */
static float scale_of(const float *x, int64_t n, int64_t stride, float levels)
{
    const float step = largest(x, n, stride) / levels;
    const float near[] = {step, nextafterf(step, 0), nextafterf(step, INFINITY)};
    for (int i = 0; i < 3; i++)
        if (fits(x, n, stride, near[i]))
            return near[i];
    return step;
}

static void round_columns(const sti_scheme_word *word, int64_t rows, int64_t columns,
                          float *x, float *scale)
{
    const float levels = (float)((1 << (word->bits - 1)) - 1);
    for (int64_t c = 0; c < columns; c++) {
        scale[c] = scale_of(x + c, rows, columns, levels);
        for (int64_t r = 0; r < rows; r++)
            x[r * columns + c] = round_to(x[r * columns + c], scale[c]);
    }
}

static void round_matrix(const sti_scheme_word *word, int64_t rows, int64_t columns,
                         float *x, float *scale)
{
    if (word->number == STI_WEIGHT_INT)
        round_columns(word, rows, columns, x, scale);
    else
        for (int64_t i = 0; i < rows * columns; i++)
            x[i] = sti_weight_to_half(x[i]);
}

void sti_project_quantise(sti_projection *p, int index, void *params)
{
    const sti_scheme_word *word = &p->scheme.word[index];
    for (int i = 0; i < p->count; i++) {
        sti_target *t = &p->target[i];
        sti_weight_form *f = &t->form;
        float *x = sti_target_numbers(t, params);
        if (!(t->takes >> index & 1))
            continue;
        f->number = word->number;
        f->bits = word->bits;
        if (f->rank == 0) {
            round_matrix(word, f->rows, f->columns, x, t->scale);
            continue;
        }
        round_matrix(word, f->rows, f->rank, t->left, t->left_scale);
        round_matrix(word, f->rank, f->columns, t->right, t->scale);
        sti_weight_multiply(f->rows, f->rank, f->columns, t->left, t->right, x);
    }
}
