#include "base/gaussian_process.h"

#include <math.h>

#include "base/fail.h"

#define JITTER 1e-10

static double covariance(const sti_gp *gp, double a, double b)
{
    const double r = sqrt(5.0) * fabs(a - b) / gp->length;
    return gp->variance * (1 + r + r * r / 3) * exp(-r);
}

static double *row_of(sti_gp *gp, int i)
{
    return gp->root + i * (i + 1) / 2;
}

static stint_status take_root(sti_gp *gp)
{
    for (int i = 0; i < gp->count; i++) {
        double *row = row_of(gp, i);
        for (int k = 0; k <= i; k++) {
            const double *other = row_of(gp, k);
            double sum = covariance(gp, gp->x[i], gp->x[k]);
            sum += i == k ? gp->noise[i] + JITTER : 0;
            for (int j = 0; j < k; j++)
                sum -= row[j] * other[j];
            if (i == k && !(sum > 0))
                return sti_fail(STINT_E_FAILED,
                                "Gaussian process: points too near one another");
            row[k] = i == k ? sqrt(sum) : sum / other[k];
        }
    }
    return STINT_OK;
}

/* root z = y */
static void solve_lower(const sti_gp *gp, const double *y, double *z)
{
    for (int i = 0; i < gp->count; i++) {
        const double *row = gp->root + i * (i + 1) / 2;
        z[i] = y[i];
        for (int k = 0; k < i; k++)
            z[i] -= row[k] * z[k];
        z[i] /= row[i];
    }
}

stint_status sti_gp_fit(sti_gp *gp)
{
    const double log_2_pi = 1.83787706640934548356;
    double z[STI_GP_POINTS];
    stint_status st = take_root(gp);
    if (st != STINT_OK)
        return st;
    solve_lower(gp, gp->y, z);
    gp->log_likelihood = -0.5 * gp->count * log_2_pi;
    for (int i = 0; i < gp->count; i++)
        gp->log_likelihood -= 0.5 * z[i] * z[i] + log(row_of(gp, i)[i]);
    for (int i = gp->count - 1; i >= 0; i--) { /* transposed root weight = z */
        gp->weight[i] = z[i];
        for (int k = i + 1; k < gp->count; k++)
            gp->weight[i] -= row_of(gp, k)[i] * gp->weight[k];
        gp->weight[i] /= row_of(gp, i)[i];
    }
    return STINT_OK;
}

void sti_gp_at(const sti_gp *gp, double x, double *mean, double *variance)
{
    double k[STI_GP_POINTS], z[STI_GP_POINTS];
    *mean = 0;
    *variance = gp->variance;
    for (int i = 0; i < gp->count; i++) {
        k[i] = covariance(gp, x, gp->x[i]);
        *mean += k[i] * gp->weight[i];
    }
    solve_lower(gp, k, z);
    for (int i = 0; i < gp->count; i++)
        *variance -= z[i] * z[i];
    *variance = *variance > 0 ? *variance : 0;
}

stint_status sti_gp_learn(sti_gp *gp)
{
    enum { STEPS = 20 };
    double squares = 0, best_length = 1, best_variance = 1, best = -INFINITY;
    for (int i = 0; i < gp->count; i++)
        squares += gp->y[i] * gp->y[i];
    const double scale = squares > 0 ? squares / gp->count : 1;
    for (int l = 0; l < STEPS; l++)
        for (int v = 0; v < STEPS; v++) {
            gp->length = 0.05 * pow(20, (double)l / (STEPS - 1));
            gp->variance = scale * pow(10, 3.0 * v / (STEPS - 1) - 1.5);
            if (sti_gp_fit(gp) == STINT_OK && gp->log_likelihood > best) {
                best = gp->log_likelihood;
                best_length = gp->length;
                best_variance = gp->variance;
            }
        }
    gp->length = best_length;
    gp->variance = best_variance;
    return sti_gp_fit(gp);
}
