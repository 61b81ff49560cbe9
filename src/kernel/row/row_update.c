#include "kernel/row/row_update.h"

#include <math.h>

#include "kernel/lane/dispatch.h"

/* As torch.optim.SparseAdam's defaults. */
#define BETA1 0.9
#define BETA2 0.999

/* beta^t by squaring, in an order of its own: pow() differs between libraries. */
static double power(double beta, int64_t t)
{
    double result = 1;
    for (; t > 0; t /= 2, beta *= beta)
        if (t % 2)
            result *= beta;
    return result;
}

sti_row_update sti_row_update_of(sti_row_rule rule, int64_t width, double lr,
                                 double epsilon, double scale, int64_t t)
{
    const double correction1 = 1 - power(BETA1, t), correction2 = 1 - power(BETA2, t);
    return (sti_row_update){.rule = rule,
                            .width = width,
                            .lr = (float)lr,
                            .epsilon = (float)epsilon,
                            .scale = (float)scale,
                            .rest1 = (float)(1 - BETA1),
                            .rest2 = (float)(1 - BETA2),
                            .step = (float)(lr * sqrt(correction2) / correction1)};
}

int64_t sti_row_state_floats(sti_row_rule rule, int64_t width)
{
    static const int per_row[] = {0, 0, 1, 0}, per_float[] = {0, 1, 0, 2};
    return per_row[rule] + per_float[rule] * width;
}

void sti_row_update_f32(const sti_row_update *update, const float *gradient,
                        int64_t count, const uint32_t *index, float *g, float *record)
{
    const sti_row_kernels *kernels = STI_KERNELS_NOW(sti_row_kernels);
    kernels->sum(update->width, gradient, count, index, update->scale, g);
    kernels->step(update, g, record);
}
