/* Named, counted allocations.
 *
 * All of Stint's own memory comes from here, so that the peak is known by name, a
 * budget can be enforced, and tests can make the n-th allocation fail. Blocks are
 * 64-byte aligned and zeroed. Thread-safe. */
#ifndef STI_BASE_MEMORY_H
#define STI_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed, 64-byte aligned; NULL after recording STINT_E_MEMORY with the name and size.
 * 0 bytes gives a valid unique pointer. Large blocks (>= 128 KiB) come from mmap, so
 * that untouched pages cost no resident memory and freed ones go back to the system at
 * once. `name` must outlive the block (a literal). */
void *sti_alloc(size_t bytes, const char *name);
void *sti_alloc_array(int64_t count, size_t each_bytes, const char *name); /* checked */
/* Grows or shrinks, keeping the contents; new bytes are zero. On failure the old block
 * stays valid and NULL is returned. memory may be NULL. */
void *sti_realloc(void *memory, size_t bytes, const char *name);
void sti_free(void *memory); /* NULL is fine */
/* A block that is soon full and then read again and again: pages of 2 MiB where the
 * system has them to give, which a stream of reads gets through faster. Changes
 * nothing else, and nothing for blocks that are no mapping of their own. */
void sti_alloc_huge_pages(void *memory);
char *sti_strdup(const char *text);

size_t sti_alloc_now_bytes(void);
size_t sti_alloc_peak_bytes(void);
int64_t sti_alloc_count(void); /* calls so far: a step's difference must be zero */

/* Tests: the n-th allocation from now on fails once (1 = the next);
 * 0 switches it off. */
void sti_alloc_fail_nth(int64_t n);

/* a * b and a + b in bytes; false when the result does not fit in a size_t. */
bool sti_mul_bytes(int64_t count, size_t each_bytes, size_t *bytes_out);
bool sti_add_bytes(size_t a, size_t b, size_t *bytes_out);

/* Resident memory of the process as the kernel counts it (VmHWM, VmRSS);
 * 0 if unknown. */
size_t sti_process_peak_bytes(void);
size_t sti_process_now_bytes(void);
/* Physical memory of the host. */
size_t sti_host_memory_bytes(void);

/* Give freed memory back to the system: what earlier work left in the heap would else
 * count as resident. */
void sti_memory_trim(void);

/* Arena: many small blocks that live and die together (a graph, a recipe, an index).
 * Blocks are zeroed and 16-byte aligned. Serves one thread at a time. */
typedef struct sti_arena sti_arena;
sti_arena *sti_arena_create(const char *name);
void *sti_arena_alloc(sti_arena *arena, size_t bytes); /* NULL: recorded */
char *sti_arena_strdup(sti_arena *arena, const char *text);
char *sti_arena_printf(sti_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sti_arena_destroy(sti_arena *arena);

#define STI_ALIGN_UP(bytes, to) (((bytes) + (size_t)(to)-1) & ~((size_t)(to)-1))

#endif
