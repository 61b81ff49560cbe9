/* Memory by pages: whose address stays while what is in it comes and goes, and that
 * comes at once. */
#ifndef STI_BASE_PAGES_H
#define STI_BASE_PAGES_H

#include <stddef.h>
#include <stdint.h>

/* A block whose pages are its own, so that they can be forgotten; sti_free frees it.
 * Untouched it takes no resident memory. NULL: recorded, as of sti_alloc. */
void *sti_pages_alloc(size_t bytes, const char *name);
/* What is in the block is not needed any more: its pages go back to the system, but for
 * one at each end, and hold zeros when they are touched again. */
void sti_pages_forget(void *memory, size_t bytes);
/* Bytes that a forgotten block may still take. */
enum { STI_PAGES_REST = 2 * 4096 };

/* An array as of sti_alloc_array, all of which is about to be written: its pages are
 * brought in together, which takes a fraction of what it takes to meet them one after
 * the other. */
void *sti_pages_array(int64_t count, size_t each_bytes, const char *name);

#endif
