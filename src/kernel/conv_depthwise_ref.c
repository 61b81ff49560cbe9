/* Depthwise kernels in plain C: the definition that the fast ones must equal bit for
 * bit. */
#include <math.h>
#include <stddef.h>

#include "kernel/conv_depthwise.h"

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
    for (int64_t t = 0; t < g->taps; t++)
        for (int64_t j = 0; j < g->channels; j++) {
            float *c = g->c + t * g->channels + j;
            float acc = g->load ? *c : 0.0F;
            for (int64_t i = 0; i < g->runs; i++)
                for (int64_t k = 0; k < g->run_k; k++)
                    acc = fmaf(g->a[g->a_run[i] + k * g->a_step + t * g->channels + j],
                               g->dy[(i * g->run_k + k) * g->channels + j], acc);
            *c = acc;
        }
}

const sti_depthwise_kernels sti_depthwise_kernels_ref = {depthwise_line,
                                                         depthwise_grad};
