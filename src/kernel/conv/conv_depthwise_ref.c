/* Depthwise kernels in plain C: the definition that the fast ones must equal bit for
 * bit. */
#include <math.h>
#include <stddef.h>

#include "kernel/conv/conv_depthwise.h"

static void depthwise_line(const sti_depthwise_line *l)
{
    for (int64_t p = 0; p < l->pixels; p++)
        for (int64_t j = 0; j < l->channels; j++) {
            float acc = 0.0F;
            for (int64_t i = 0; i < l->runs; i++)
                acc = fmaf(l->a[l->a_run[i] + p * l->a_row + j], l->b[l->b_run[i] + j],
                           acc);
            if (l->bias)
                acc += l->bias[j];
            if (l->relu)
                acc = 0.0F > acc ? 0.0F : acc;
            l->c[p * l->c_row + j] = acc;
        }
}

static void depthwise_grad(const sti_depthwise_grad *g)
{
    for (int64_t t = 0; t < g->taps; t++) {
        const int64_t from = g->left && t == 0;
        const int64_t to = g->pixels - (g->right && t == g->taps - 1);
        for (int64_t j = 0; j < g->channels; j++) {
            float *c = g->c + t * g->c_tap + j, acc = *c;
            for (int64_t p = from; p < to; p++)
                acc = fmaf(g->a[p * g->a_step + t * g->a_tap + j],
                           g->dy[p * g->a_tap + j], acc);
            *c = acc;
        }
    }
}

const sti_depthwise_kernels sti_depthwise_kernels_ref = {depthwise_line, depthwise_grad,
                                                         NULL, NULL};
