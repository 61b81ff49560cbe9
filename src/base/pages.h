/* Memory that keeps its address while what is in it comes and goes. */
#ifndef STI_BASE_PAGES_H
#define STI_BASE_PAGES_H

#include <stddef.h>

/* A block whose pages are its own, so that they can be forgotten; sti_free frees it.
 * Untouched it takes no resident memory. NULL: recorded, as of sti_alloc. */
void *sti_pages_alloc(size_t bytes, const char *name);
/* What is in the block is not needed any more: its pages go back to the system, but for
 * one at each end, and hold zeros when they are touched again. */
void sti_pages_forget(void *memory, size_t bytes);
/* Bytes that a forgotten block may still take. */
enum { STI_PAGES_REST = 2 * 4096 };

#endif
