#include "model/posterior.h"

#include <math.h>
#include <string.h>

#include "kernel/bayes/bayes.h"
#include "kernel/maths/maths.h"

/* Bits that a pass of the selection tells apart: three passes tell all 32. */
enum { DIGIT = 11, CELLS = 1 << DIGIT, PASSES = 3 };

static const double shares[STI_POSTERIOR_SHARES] = {0.05, 0.5, 0.95};

typedef struct spreads {
    const sti_network *network;
    const char *params;
} spreads;

typedef void spread_fn(void *user, const float *mu, const float *rho, int64_t n);

/* Call fn for the mean and the spread of each weight, in their order. */
static void each_spread(const spreads *s, spread_fn *fn, void *user)
{
    const stint_graph *g = s->network->graph;
    const sti_allocation *at = s->network->plan->allocation;
    for (int32_t v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->role == STI_ROLE_PARAM && row->spread > 0)
            fn(user, (const float *)(const void *)(s->params + at[v].offset),
               (const float *)(const void *)(s->params + at[row->spread].offset),
               stint_shape_count(&row->shape));
    }
}

/* Numbers in the order of floats: rising keys for rising rho. */
static uint32_t key_of(float rho)
{
    const uint32_t bits = sti_f32_bits(rho);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

static float of_key(uint32_t key)
{
    return sti_f32_of_bits(key >> 31 ? key & 0x7fffffffu : ~key);
}

typedef struct digits {
    uint32_t prefix;
    int shift, next; /* bits below those that are known, and below this digit's */
    int64_t count[CELLS];
} digits;

static void count_digits(void *user, const float *mu, const float *rho, int64_t n)
{
    digits *d = user;
    (void)mu;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = key_of(rho[i]);
        if (key >> d->shift == (uint64_t)d->prefix >> d->shift)
            d->count[(key >> d->next) & (CELLS - 1)]++;
    }
}

/* The rho of this rank, from 0, by its digits from the highest. */
static float rho_of_rank(const spreads *s, int64_t rank)
{
    digits d = {.shift = 32};
    for (int pass = 0; pass < PASSES; pass++) {
        int64_t cell = 0;
        d.next = d.shift > DIGIT ? d.shift - DIGIT : 0;
        memset(d.count, 0, sizeof d.count);
        each_spread(s, count_digits, &d);
        while (cell < CELLS - 1 && rank >= d.count[cell])
            rank -= d.count[cell++];
        d.prefix |= (uint32_t)cell << d.next;
        d.shift = d.next;
    }
    return of_key(d.prefix);
}

typedef struct divergence {
    sti_prior prior;
    sti_normal_key key;
    double *partial, kl;
    int64_t weights, largest;
} divergence;

static void count_weights(void *user, const float *mu, const float *rho, int64_t n)
{
    divergence *d = user;
    (void)mu, (void)rho;
    d->weights += n;
    d->largest = n > d->largest ? n : d->largest;
}

static void add_kl(void *user, const float *mu, const float *rho, int64_t n)
{
    divergence *d = user;
    d->kl += sti_kl_f32(&sti_team_serial, &d->key, &d->prior, n, mu, rho, d->partial);
    d->key.layer++;
}

stint_status sti_posterior_of(const sti_network *network, const void *params,
                              const sti_bayes_desc *desc, sti_posterior *out)
{
    const spreads s = {network, params};
    divergence d = {.prior = {.kind = (sti_prior_kind)desc->prior,
                              .deviation = desc->deviation,
                              .narrow = desc->narrow,
                              .wide_share = desc->wide_share},
                    .key.generator = STI_NORMAL_PHILOX};
    each_spread(&s, count_weights, &d);
    d.partial = sti_alloc_array(sti_kl_pieces(d.largest), sizeof *d.partial, "KL");
    if (!d.partial)
        return STINT_E_MEMORY;
    each_spread(&s, add_kl, &d);
    sti_free(d.partial);
    out->kl = d.kl;
    for (int i = 0; i < STI_POSTERIOR_SHARES; i++) {
        const int64_t rank = (int64_t)(shares[i] * (double)(d.weights - 1));
        const float rho = rho_of_rank(&s, rank);
        out->sigma[i] = (double)sti_softplus_f32(rho);
    }
    return STINT_OK;
}
