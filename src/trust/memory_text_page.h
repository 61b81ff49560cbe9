/* The page of a memorisation study of a text. */
#ifndef STI_TRUST_MEMORY_TEXT_PAGE_H
#define STI_TRUST_MEMORY_TEXT_PAGE_H

#include "stint/memory_text.h"

/* One self-contained HTML file, written atomically: figures, and the passages that are
 * remembered most. */
stint_status sti_memory_text_page(const stint_memory_text *memory, const char *path);

#endif
