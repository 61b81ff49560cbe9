/* A Gaussian process in one dimension: what is known of a function from a few noisy
 * looks at it. Kernel Matern 5/2 (Rasmussen and Williams 2006, chapter 4):
 *     k(r) = variance (1 + a + a^2 / 3) exp(-a), a = sqrt(5) r / length. */
#ifndef STI_BASE_GAUSSIAN_PROCESS_H
#define STI_BASE_GAUSSIAN_PROCESS_H

#include "stint/status.h"

enum { STI_GP_POINTS = 128 };

typedef struct sti_gp {
    double length, variance;
    int count;
    double x[STI_GP_POINTS], y[STI_GP_POINTS];
    double noise[STI_GP_POINTS]; /* variances of the looks */
    /* Filled by sti_gp_fit: the lower triangle of the root of the covariance, and what
     * a mean is a product with. */
    double root[STI_GP_POINTS * (STI_GP_POINTS + 1) / 2];
    double weight[STI_GP_POINTS];
    double log_likelihood;
} sti_gp;

/* Root and weights for the points, length and variance there are. STINT_E_FAILED: the
 * covariance is not positive definite, which distinct points or any noise rule out. */
stint_status sti_gp_fit(sti_gp *gp);
/* Mean and variance of the function (not of a look) at x. */
void sti_gp_at(const sti_gp *gp, double x, double *mean_out, double *variance_out);
/* Length between 0.05 and 1 and variance, by the largest likelihood on a grid of 20 by
 * 20, the variance around that of the values; then fitted. */
stint_status sti_gp_learn(sti_gp *gp);

#endif
