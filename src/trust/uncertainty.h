/* The page of an uncertainty, beside stint/trust.h. */
#ifndef STI_TRUST_UNCERTAINTY_H
#define STI_TRUST_UNCERTAINTY_H

#include "stint/uncertainty.h"

/* Figures, confidence against accuracy, entropies of images and strangers, and the
 * images that the networks are least sure of. The data of desc are read again.
 * STINT_E_INPUT, STINT_E_IO, STINT_E_MEMORY. */
stint_status sti_uncertainty_page(const stint_uncertainty_desc *desc,
                                  const stint_uncertainty *uncertainty,
                                  const char *path);

#endif
