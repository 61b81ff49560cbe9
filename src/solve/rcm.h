/* Reverse Cuthill-McKee (Cuthill and McKee 1969, George 1971): rows renumbered so that
 * entries stand near the diagonal. The pattern of A + A^T is taken; each part of the
 * graph begins at a vertex far from all others of it (George and Liu 1979), neighbours
 * are taken by rising degree, and ties by number. */
#ifndef STI_SOLVE_RCM_H
#define STI_SOLVE_RCM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/csr.h"
#include "stint/status.h"

/* order_out [rows]: the old number of each new row. STINT_E_MEMORY. */
stint_status sti_rcm_order(const sti_csr *a, int32_t *order_out);

/* The same where rows come by: all of them are counted in ascending order, then
 * sti_rcm_counted, then all are added in that order. columns ascend within a row, each
 * once. A symmetric pattern takes half the memory and gives the order of the general
 * case. STINT_E_MEMORY. */
typedef struct sti_rcm sti_rcm;
stint_status sti_rcm_begin(int64_t n, bool symmetric, sti_rcm **graph_out);
void sti_rcm_count(sti_rcm *graph, int64_t row, const int32_t *columns, int64_t count);
stint_status sti_rcm_counted(sti_rcm *graph);
void sti_rcm_add(sti_rcm *graph, int64_t row, const int32_t *columns, int64_t count);
stint_status sti_rcm_find(sti_rcm *graph, int32_t *order_out); /* once */
void sti_rcm_end(sti_rcm *graph);                              /* NULL is fine */
/* Bytes that all of that takes at most; entries: of all rows. */
size_t sti_rcm_bytes(int64_t n, int64_t entries, bool symmetric);

/* P A P^T, rows and columns in the order. */
stint_status sti_csr_permute(const sti_csr *a, const int32_t *order,
                             sti_csr *permuted_out);

#endif
