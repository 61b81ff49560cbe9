#include "codec/weight_find.h"

#include <math.h>
#include <string.h>

#include "codec/weights.h"

typedef struct finder {
    sti_weight_form *form;
    const float *x;
} finder;

static bool is_plus_zero(float x)
{
    return x == 0 && !signbit(x);
}

/* The number at (row, column). */
static float at(const finder *f, int64_t row, int64_t column)
{
    return f->x[row * f->form->columns + column];
}

static bool empty_column(const finder *f, int64_t column)
{
    for (int64_t r = 0; r < f->form->rows; r++)
        if (!is_plus_zero(at(f, r, column)))
            return false;
    return true;
}

static unsigned taps_of(const finder *f, int64_t channel, int64_t column)
{
    unsigned taps = 0;
    for (int64_t t = 0; t < f->form->taps; t++)
        if (!is_plus_zero(at(f, t * f->form->channels + channel, column)))
            taps |= 1u << (t < 31 ? t : 31);
    return taps;
}

/* Adds a kernel's taps to the list; false when there are too many different ones. */
static bool add_pattern(sti_weight_form *form, unsigned taps)
{
    for (int i = 0; i < form->patterns; i++)
        if (form->pattern[i] == taps)
            return true;
    if (form->patterns == STI_WEIGHT_PATTERNS_MAX)
        return false;
    form->pattern[form->patterns++] = (uint16_t)taps;
    return true;
}

static void find_kernels(const finder *f)
{
    sti_weight_form *form = f->form;
    bool few = form->taps == 9;
    for (int64_t c = 0; c < form->channels; c++)
        for (int64_t o = 0; o < form->columns; o++) {
            const unsigned taps = taps_of(f, c, o);
            if (taps == 0)
                form->kernels = true;
            else if (few)
                few = add_pattern(form, taps);
        }
    if (!few || (form->patterns == 1 && form->pattern[0] == (1 << 9) - 1))
        form->patterns = 0;
}

/* Are all numbers of a column whole multiples of this scale, at most `levels` of it? */
static bool is_scale(const finder *f, int64_t column, float scale, float levels)
{
    for (int64_t r = 0; r < f->form->rows; r++) {
        const float x = at(f, r, column), q = rintf(x / scale);
        if (!(fabsf(q) <= levels) || q * scale != x || (q == 0 && signbit(x)))
            return false;
    }
    return true;
}

/* The largest magnitude is `levels` scales; dividing may be off by a rounding. */
static bool find_scale(const finder *f, int64_t column, float levels, float *scale_out)
{
    float most = 0;
    for (int64_t r = 0; r < f->form->rows; r++)
        most = fmaxf(most, fabsf(at(f, r, column)));
    const float near = most / levels;
    const float tries[] = {near, nextafterf(near, 0), nextafterf(near, INFINITY)};
    *scale_out = 0;
    if (empty_column(f, column))
        return true;
    for (int i = 0; i < 3; i++)
        if (tries[i] > 0 && isfinite(tries[i]) &&
            is_scale(f, column, tries[i], levels)) {
            *scale_out = tries[i];
            return true;
        }
    return false;
}

static bool find_integers(const finder *f, int bits, float *scale_out)
{
    const float levels = (float)((1 << (bits - 1)) - 1);
    for (int64_t c = 0; c < f->form->columns; c++)
        if (!find_scale(f, c, levels, &scale_out[c]))
            return false;
    return true;
}

static bool are_halves(const finder *f)
{
    const int64_t count = f->form->rows * f->form->columns;
    for (int64_t i = 0; i < count; i++)
        if (sti_weight_to_half(f->x[i]) != f->x[i])
            return false;
    return true;
}

static void find_number(const finder *f, float *scale_out)
{
    for (int bits = 2; bits <= 8 && f->form->rows > 1; bits++)
        if (find_integers(f, bits, scale_out)) {
            f->form->number = STI_WEIGHT_INT;
            f->form->bits = bits;
            return;
        }
    if (are_halves(f))
        f->form->number = STI_WEIGHT_F16;
}

sti_weight_form sti_weight_form_find(int rank, const int64_t *dim, const float *x,
                                     float *scale_out)
{
    sti_weight_form form = sti_weight_form_plain(rank, dim);
    const finder f = {&form, x};
    if (form.taps > 0)
        find_kernels(&f);
    for (int64_t c = 0; c < form.columns && form.rows > 1 && !form.whole_columns; c++)
        form.whole_columns = empty_column(&f, c);
    for (int64_t i = 0;
         i < form.rows * form.columns && form.patterns == 0 && !form.elements; i++)
        form.elements = is_plus_zero(x[i]);
    find_number(&f, scale_out);
    return form;
}

sti_weight_form sti_weight_form_find_product(int dims, const int64_t *dim, int64_t rank,
                                             const float *left, const float *right,
                                             float *left_scale, float *right_scale)
{
    sti_weight_form form = sti_weight_form_plain(dims, dim);
    const int64_t left_dim[] = {form.rows, rank}, right_dim[] = {rank, form.columns};
    const sti_weight_form l = sti_weight_form_find(2, left_dim, left, left_scale);
    const sti_weight_form r = sti_weight_form_find(2, right_dim, right, right_scale);
    form.rank = rank;
    form.elements = l.elements || r.elements;
    if (l.number != r.number)
        return form;
    form.number = l.number;
    form.bits = l.bits > r.bits ? l.bits : r.bits; /* more bits hold fewer, too */
    return form;
}
