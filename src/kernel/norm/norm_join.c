#include "kernel/norm/norm_join.h"

#include <math.h>

#include "base/memory.h"

size_t sti_norm_sums_bytes(int64_t chunks, int64_t c)
{
    return STI_ALIGN_UP((size_t)(chunks * 2 * c) * sizeof(double), 64);
}

/* Chan, Golub and LeVeque: (na, a) and (nb, b) become (na + nb, a). */
static void join_moments(int64_t na, int64_t nb, int64_t n, int64_t c, double *a,
                         const double *b)
{
    const double fraction = (double)nb / (double)(na + nb);
    const double weight = (double)na * fraction;
    for (int64_t j = 0; j < n; j++) {
        const double delta = b[j] - a[j];
        a[j] += delta * fraction;
        a[c + j] += b[c + j] + delta * delta * weight;
    }
}

void sti_norm_join_moments(const sti_norm_sums *s, int64_t first, int64_t last,
                           float epsilon, float *mean_out, float *inv_out,
                           float *unbiased_out)
{
    const int64_t c = s->c;
    const double rows = (double)s->rows, *square = s->at + c;
    for (int64_t d = 1; d < s->chunks; d *= 2)
        for (int64_t i = 0; i + d < s->chunks; i += 2 * d)
            join_moments(sti_norm_span_rows(s, i, d), sti_norm_span_rows(s, i + d, d),
                         last - first, c, s->at + i * 2 * c + first,
                         s->at + (i + d) * 2 * c + first);
    for (int64_t j = first; j < last; j++) {
        mean_out[j] = (float)s->at[j];
        inv_out[j] = (float)(1.0 / sqrt(square[j] / rows + (double)epsilon));
        if (unbiased_out)
            unbiased_out[j] = s->rows > 1 ? (float)(square[j] / (rows - 1.0)) : 0.0f;
    }
}

void sti_norm_join_slopes(const sti_norm_sums *s, int64_t first, int64_t last,
                          const sti_norm_slopes *out)
{
    const int64_t c = s->c;
    const double rows = (double)s->rows;
    double *p = s->at;
    for (int64_t d = 1; d < s->chunks; d *= 2)
        for (int64_t i = 0; i + d < s->chunks; i += 2 * d)
            for (int half = 0; half < 2; half++)
                for (int64_t j = first; j < last; j++)
                    p[(2 * i + half) * c + j] += p[(2 * (i + d) + half) * c + j];
    for (int64_t j = first; j < last; j++) {
        const double inv = (double)out->inv[j], scaled = inv * p[c + j];
        out->gain[j] = out->scale[j] * out->inv[j];
        out->mean_z[j] = (float)(p[j] / rows);
        out->slope[j] = (float)(inv * scaled / rows);
        if (out->dshift)
            out->dshift[j] = (float)p[j];
        if (out->dscale)
            out->dscale[j] = (float)scaled;
    }
}
