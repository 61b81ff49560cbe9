/* The loops of bayes_priv.h, included once by the file of each instruction set, which
 * defines TABLE. Plain loops that the compiler vectorises: every operation is exact by
 * IEEE-754, so the width does not show. */
#include <math.h>

#include "kernel/bayes/bayes_priv.h"
#include "kernel/maths/maths.h"

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Below this spread, sigma is e^rho to the last bit. */
#define FAR_BELOW (-30.0f)

static void draw(int64_t n, const float *mu, const float *rho, const float *eps,
                 float *w)
{
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        w[i] = fmaf(sti_softplus_f32(rho[i]), eps[i], mu[i]);
}

static void gauss_grad(int64_t n, const sti_prior_terms *prior, float dkl,
                       const float *mu, const float *rho, float *dmu, float *dsigma)
{
    const float pull = dkl * prior->precision;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        dmu[i] = fmaf(pull, mu[i], dmu[i]);
        dsigma[i] = fmaf(pull, sti_softplus_f32(rho[i]), dsigma[i]);
    }
}

/* The total derivative by w, which mu moves by 1 and sigma by eps; what sigma does to
 * log q beside that is to_rho's. */
static void mixture_grad(int64_t n, const sti_prior_terms *prior, float dkl,
                         const float *w, const float *eps, float *dmu, float *dsigma)
{
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const float wide =
            sti_sigmoid_f32(fmaf(-(w[i] * w[i]), prior->slope, prior->odds));
        const float precision = fmaf(wide, prior->precision - prior->narrow_precision,
                                     prior->narrow_precision);
        const float pull = dkl * (w[i] * precision);
        dmu[i] = dmu[i] + pull;
        dsigma[i] = fmaf(pull, eps[i], dsigma[i]);
    }
}

static void to_rho(int64_t n, float dkl, const float *rho, const float *dsigma,
                   float *drho)
{
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const float slope = sti_sigmoid_f32(rho[i]);
        const float sigma = sti_softplus_f32(rho[i]);
        const float share = rho[i] < FAR_BELOW ? 1.0f : slope / sigma;
        drho[i] = fmaf(slope, dsigma[i], -(dkl * share));
    }
}

static float log_sigma(float rho)
{
    const float near = sti_log_f32(sti_softplus_f32(rho));
    return rho < FAR_BELOW ? rho : near;
}

static void gauss_kl(int64_t n, const sti_prior_terms *prior, const float *mu,
                     const float *rho, float *kl)
{
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const float sigma = sti_softplus_f32(rho[i]);
        const float squares = fmaf(sigma, sigma, mu[i] * mu[i]);
        kl[i] = fmaf(0.5f * prior->precision, squares,
                     prior->log_deviation - log_sigma(rho[i])) -
                0.5f;
    }
}

static void mixture_kl(int64_t n, const sti_prior_terms *prior, const float *w,
                       const float *rho, const float *eps, float *kl)
{
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const float square = w[i] * w[i];
        const float odds = fmaf(-square, prior->slope, prior->odds);
        const float density = fmaf(-0.5f * prior->narrow_precision, square,
                                   prior->narrow_log + sti_softplus_f32(odds));
        kl[i] = fmaf(-0.5f * eps[i], eps[i], -log_sigma(rho[i])) - density;
    }
}

/* Rounding may leave a variance of 0 a little below it. */
static void draw_output(int64_t n, const float *m, const float *v, const float *eps,
                        float *y)
{
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const float root = sqrtf(v[i]);
        y[i] = fmaf(v[i] > 0.0f ? root : 0.0f, eps[i], m[i]);
    }
}

static void draw_output_grad(int64_t n, const float *v, const float *dy,
                             const float *eps, float *dv)
{
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const float slope = dy[i] * eps[i] * 0.5f / sqrtf(v[i]);
        dv[i] = v[i] > 0.0f ? slope : 0.0f;
    }
}

const sti_bayes_table TABLE = {.draw = draw,
                               .gauss_grad = gauss_grad,
                               .mixture_grad = mixture_grad,
                               .to_rho = to_rho,
                               .gauss_kl = gauss_kl,
                               .mixture_kl = mixture_kl,
                               .draw_output = draw_output,
                               .draw_output_grad = draw_output_grad};
