/* Comparisons in which a network of another program takes part (exchange/classify.h).
 */
#ifndef STI_TRUST_COMPARE_IMPORTED_H
#define STI_TRUST_COMPARE_IMPORTED_H

#include "data/data.h"
#include "stint/trust.h"

/* Is one of the two such a network? */
bool sti_compare_is_imported(const stint_compare_desc *desc);
/* STINT_E_UNSUPPORTED: floors or saliency are asked for. */
stint_status sti_compare_imported_check(const stint_compare_desc *desc);
/* The inputs, as the first of the two that is imported takes them; the caller closes
 * them. */
stint_status sti_compare_imported_data(const stint_compare_desc *desc,
                                       stint_data **data_out);
/* Scores [samples of data, classes] of the model at `path`, imported or ours.
 * STINT_E_INPUT: it has scores for other classes. */
stint_status sti_compare_imported_scores(const stint_compare_desc *desc,
                                         const char *path, stint_data *data,
                                         float *scores_out);

#endif
