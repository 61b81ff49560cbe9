/* What the weights of a Bayesian network have become: how far they are from the prior,
 * and how sure of them training is. */
#ifndef STI_MODEL_POSTERIOR_H
#define STI_MODEL_POSTERIOR_H

#include "model/network.h"

enum { STI_POSTERIOR_SHARES = 3 };

typedef struct sti_posterior {
    double kl; /* in nats, summed over the weights; of a mixture by one draw */
    double sigma[STI_POSTERIOR_SHARES]; /* below which 5, 50 and 95 % of them are */
} sti_posterior;

/* network: built with desc->samples > 0 and planned; params: its PARAM block. No memory
 * to speak of is taken. STINT_E_MEMORY. */
stint_status sti_posterior_of(const sti_network *network, const void *params,
                              const sti_bayes_desc *desc, sti_posterior *out);

#endif
