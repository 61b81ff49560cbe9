/* Reverse Cuthill-McKee (Cuthill and McKee 1969, George 1971): rows renumbered so that
 * entries stand near the diagonal. The pattern of A + A^T is taken; each part of the
 * graph begins at a vertex far from all others of it (George and Liu 1979), neighbours
 * are taken by rising degree, and ties by number. */
#ifndef STI_SOLVE_RCM_H
#define STI_SOLVE_RCM_H

#include "base/csr.h"
#include "stint/status.h"

/* order_out [rows]: the old number of each new row. STINT_E_MEMORY. */
stint_status sti_rcm_order(const sti_csr *a, int32_t *order_out);
/* P A P^T, rows and columns in the order. */
stint_status sti_csr_permute(const sti_csr *a, const int32_t *order,
                             sti_csr *permuted_out);

#endif
