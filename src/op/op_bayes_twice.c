/* Gradients of drawn weights and outputs in primitive operators, for the gradients of
 * these. */
#include <math.h>

#include "op/op_bayes.h"
#include "op/op_bayes_priv.h"

typedef struct noise_parts {
    stint_value mu, sigma, eps, w;
} noise_parts;

/* What KL moves mu and sigma by, without sigma's own -1 / sigma. Of a Gaussian that is
 * mu / s^2 and sigma / s^2; of a mixture h and h eps, where h is minus the derivative
 * of the logarithm of its density at w. */
static void prior_slopes(stint_graph *g, const sti_noise_attr *attr,
                         const noise_parts *p, stint_value *by_mu,
                         stint_value *by_sigma)
{
    const double s = (double)attr->deviation, wide = 1 / (s * s);
    if (attr->prior == STI_PRIOR_GAUSS) {
        *by_mu = stint_scale(g, p->mu, (float)wide);
        *by_sigma = stint_scale(g, p->sigma, (float)wide);
        return;
    }
    const double t = (double)attr->narrow, share = (double)attr->wide_share;
    const double narrow = 1 / (t * t);
    /* The wide part's share of the density at w is a sigmoid of w^2. */
    const stint_value square =
        stint_scale(g, stint_square(g, p->w), (float)((narrow - wide) / 2));
    const stint_value in_wide = stint_sigmoid(
        g, stint_add_scalar(g, square, (float)log(share * t / ((1 - share) * s))));
    const stint_value slope = stint_add_scalar(
        g, stint_scale(g, in_wide, (float)(wide - narrow)), (float)narrow);
    *by_mu = stint_mul(g, p->w, slope);
    *by_sigma = stint_mul(g, *by_mu, p->eps);
}

void sti_op_noise_expand(stint_graph *g, const sti_noise_attr *attr, stint_value mu,
                         stint_value rho, stint_value eps, stint_value dw,
                         stint_value dkl, stint_value out[3])
{
    const stint_value sigma = stint_softplus(g, rho);
    const noise_parts p = {mu, sigma, eps, stint_add(g, mu, stint_mul(g, sigma, eps))};
    stint_value dmu = dw, dsigma = dw < 0 ? -1 : stint_mul(g, dw, eps);
    if (dkl >= 0) {
        stint_value by_mu, by_sigma;
        prior_slopes(g, attr, &p, &by_mu, &by_sigma);
        by_sigma = stint_sub(g, by_sigma, stint_reciprocal(g, sigma));
        by_mu = stint_mul(g, by_mu, dkl);
        by_sigma = stint_mul(g, by_sigma, dkl);
        dmu = dmu < 0 ? by_mu : stint_add(g, dmu, by_mu);
        dsigma = dsigma < 0 ? by_sigma : stint_add(g, dsigma, by_sigma);
    }
    out[0] = dmu;
    out[1] = dsigma < 0 ? -1 : stint_mul(g, dsigma, stint_sigmoid(g, rho));
    out[2] = p.w;
}
