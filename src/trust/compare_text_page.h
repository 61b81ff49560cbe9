/* The page of a comparison of models of text. */
#ifndef STI_TRUST_COMPARE_TEXT_PAGE_H
#define STI_TRUST_COMPARE_TEXT_PAGE_H

#include "stint/compare_text.h"

/* One self-contained HTML file, written atomically: figures, tables by place and by
 * frequency, and the contexts whose probabilities moved farthest. */
stint_status sti_compare_text_page(const stint_compare_desc *desc,
                                   const stint_text_fidelity *fidelity,
                                   const char *path);

#endif
