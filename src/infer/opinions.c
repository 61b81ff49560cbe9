#include "infer/opinions.h"

#include <math.h>

#include "base/memory.h"
#include "kernel/maths/smooth.h"

stint_status sti_opinions_init(sti_opinions *o, int64_t count, int32_t classes)
{
    const int64_t all = count * classes;
    *o = (sti_opinions){.count = count, .classes = classes};
    o->sum = sti_alloc_array(all, sizeof *o->sum, "probabilities");
    o->squares = sti_alloc_array(all, sizeof *o->squares, "probabilities");
    o->entropy = sti_alloc_array(count, sizeof *o->entropy, "entropies");
    if (!o->sum || !o->squares || !o->entropy) {
        sti_opinions_fini(o);
        return STINT_E_MEMORY;
    }
    return STINT_OK;
}

void sti_opinions_fini(sti_opinions *o)
{
    sti_free(o->sum);
    sti_free(o->squares);
    sti_free(o->entropy);
    *o = (sti_opinions){0};
}

/* - p ln p, 0 at 0. (A probability is no denormal: kernels flush those.) */
static double surprise(double p)
{
    return p > 0 ? -p * sti_smooth_log(p) : p == 0 ? 0 : (double)NAN;
}

void sti_opinions_add(sti_opinions *o, int64_t image, const float *probability)
{
    double *sum = o->sum + image * o->classes,
           *squares = o->squares + image * o->classes;
    double entropy = 0;
    for (int32_t c = 0; c < o->classes; c++) {
        const double p = (double)probability[c];
        sum[c] += p;
        squares[c] += p * p;
        entropy += surprise(p);
    }
    o->entropy[image] += entropy;
}

double sti_opinions_mean(const sti_opinions *o, int64_t image, int32_t c)
{
    return o->sum[image * o->classes + c] / (double)o->networks;
}

double sti_opinions_deviation(const sti_opinions *o, int64_t image, int32_t c)
{
    const double mean = sti_opinions_mean(o, image, c);
    const double square = o->squares[image * o->classes + c] / (double)o->networks;
    const double variance = square - mean * mean;
    return variance > 0 ? sqrt(variance) : 0;
}

int32_t sti_opinions_answer(const sti_opinions *o, int64_t image)
{
    const double *sum = o->sum + image * o->classes;
    int32_t best = 0;
    for (int32_t c = 1; c < o->classes; c++)
        if (sum[c] > sum[best])
            best = c;
    return best;
}

double sti_opinions_loss(const sti_opinions *o, int64_t image, int32_t c)
{
    const double p = sti_opinions_mean(o, image, c);
    return p != p ? p : -sti_smooth_log(p > 0x1p-126 ? p : 0x1p-126);
}

double sti_opinions_entropy(const sti_opinions *o, int64_t image)
{
    double entropy = 0;
    for (int32_t c = 0; c < o->classes; c++)
        entropy += surprise(sti_opinions_mean(o, image, c));
    return entropy < 0 ? 0 : entropy; /* below 0 only by rounding */
}

double sti_opinions_information(const sti_opinions *o, int64_t image)
{
    const double information =
        sti_opinions_entropy(o, image) - o->entropy[image] / (double)o->networks;
    return information < 0 ? 0 : information;
}
