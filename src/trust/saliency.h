/* Do two models look at the same pixels? Saliency of an input is |d z_k / d pixel|, the
 * largest over channels, k being the reference's answer (Simonyan et al. 2013). */
#ifndef STI_TRUST_SALIENCY_H
#define STI_TRUST_SALIENCY_H

#include "data/data.h"
#include "stint/trust.h"
#include "store/model_file.h"

/* Maps [count, height, width] of a model for these samples, whose class answer[sample]
 * is asked about. Weights count as the model's recipe rounds them; always f32. */
stint_status sti_saliency_maps(const stint_model_file *model, const stint_data *data,
                               const int32_t *samples, int64_t count,
                               const int32_t *answer, float *maps_out);

/* Spearman's rank correlation of a [n] and b [n], equal values sharing their mean rank;
 * NaN when either is constant. scratch [6 n]. */
double sti_rank_correlation(const float *a, const float *b, int64_t n, double *scratch);

/* Structural similarity (Wang et al. 2004) of maps [height, width], each scaled to
 * 0..1: mean over all 7x7 windows inside, sample covariance, C1 = 1e-4, C2 = 9e-4. NaN
 * below 7 pixels a side. */
double sti_ssim(const float *a, const float *b, int64_t height, int64_t width);

/* Mean and quantiles of what is not NaN among value [n], which is sorted. */
stint_agreement sti_agreement(double *value, int64_t n);

#endif
