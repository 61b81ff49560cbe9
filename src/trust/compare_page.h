/* The page of a comparison: figures, classes and groups, and the images whose answer
 * changed. */
#ifndef STI_TRUST_COMPARE_PAGE_H
#define STI_TRUST_COMPARE_PAGE_H

#include "stint/trust.h"

/* One self-contained HTML file, written atomically. */
stint_status sti_compare_page(const stint_compare_desc *desc,
                              const stint_fidelity *fidelity, const char *path);

#endif
