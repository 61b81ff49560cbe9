#include "kernel/drawn/drawn_lfsr.h"

#include "kernel/drawn/drawn_priv.h"

double sti_draw_lfsr_f32(const sti_lfsr_taps *taps, void *state, int64_t n,
                         const float *mu, const float *rho, float *w,
                         const sti_prior *prior)
{
    const sti_bayes_table *table = sti_bayes_now();
    const sti_prior_terms terms =
        prior ? sti_prior_terms_of(prior) : (sti_prior_terms){0};
    double kl = 0;
    for (int64_t i = 0; i < n; i += STI_BAYES_CHUNK) {
        const int64_t count = n - i < STI_BAYES_CHUNK ? n - i : STI_BAYES_CHUNK;
        float eps[STI_BAYES_CHUNK];
        sti_lfsr_next(taps, state, eps);
        sti_draw_chunk(table, count, mu + i, rho + i, eps, w + i);
        if (prior)
            kl += sti_kl_chunk(table, prior, &terms, count, mu + i, rho + i, eps);
    }
    return kl;
}

void sti_draw_grad_lfsr_f32(const sti_lfsr_taps *taps, void *state,
                            const sti_prior *prior, int64_t n,
                            const sti_draw_grad *grad)
{
    const sti_bayes_table *table = sti_bayes_now();
    const sti_prior_terms terms = sti_prior_terms_of(prior);
    for (int64_t i = (n - 1) / STI_BAYES_CHUNK * STI_BAYES_CHUNK; i >= 0;
         i -= STI_BAYES_CHUNK) {
        const int64_t count = n - i < STI_BAYES_CHUNK ? n - i : STI_BAYES_CHUNK;
        float eps[STI_BAYES_CHUNK];
        sti_lfsr_back(taps, state, eps);
        sti_draw_grad_chunk(table, prior, &terms, grad, i, count, eps);
    }
}
