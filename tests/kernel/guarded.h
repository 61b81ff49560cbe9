/* Memory beside pages that nobody may touch: an access outside is a fault, by whatever
 * instruction, also one written in assembly, which no sanitizer sees. Where sanitizers
 * watch anyway, exact blocks at odd addresses, of which they see both ends. */
#ifndef STI_TESTS_GUARDED_H
#define STI_TESTS_GUARDED_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>

enum { GUARDED_PAGE = 4096, GUARDED_ODD = 4 };

#if defined(__SANITIZE_ADDRESS__)
static inline void *guarded_alloc(size_t bytes)
{
    char *block = malloc(bytes + GUARDED_ODD);
    assert_non_null(block);
    return block + GUARDED_ODD;
}

static inline void guarded_free(void *block)
{
    if (block)
        free((char *)block - GUARDED_ODD);
}
#else
/* A page that holds the size of it all, a forbidden one, the block's, a forbidden one.
 * A coin says whether a block ends at the pages' end or begins at their beginning. */
static inline void *guarded_alloc(size_t bytes)
{
    static uint32_t coin;
    const size_t page = GUARDED_PAGE;
    const size_t room = bytes > 0 ? (bytes + page - 1) / page * page : page;
    const size_t all = room + 3 * page;
    char *from =
        mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(from != MAP_FAILED);
    assert_int_equal(mprotect(from + page, page, PROT_NONE), 0);
    assert_int_equal(mprotect(from + 2 * page + room, page, PROT_NONE), 0);
    memcpy(from, &all, sizeof all);
    coin = coin * 1664525U + 1013904223U;
    return from + 2 * page + (coin >> 31 || bytes == 0 ? 0 : room - bytes);
}

static inline void guarded_free(void *block)
{
    size_t all;
    if (!block)
        return;
    char *pages = (char *)block - (uintptr_t)block % GUARDED_PAGE;
    memcpy(&all, pages - 2 * GUARDED_PAGE, sizeof all);
    munmap(pages - 2 * GUARDED_PAGE, all);
}
#endif

/* Full of NaN, that nothing is taken for a result that has not been written. */
static inline void *guarded_nan_alloc(size_t bytes)
{
    return memset(guarded_alloc(bytes), 0xFF, bytes);
}

/* The same at an address for doubles; free it by guarded_free_doubles. */
static inline double *guarded_nan_doubles(size_t bytes)
{
#if defined(__SANITIZE_ADDRESS__)
    double *block = malloc(bytes);
    assert_non_null(block);
    return memset(block, 0xFF, bytes);
#else
    return guarded_nan_alloc(bytes);
#endif
}

static inline void guarded_free_doubles(double *block)
{
#if defined(__SANITIZE_ADDRESS__)
    free(block);
#else
    guarded_free(block);
#endif
}

/* Zeros are all that such a block holds in the end. */
static inline void guarded_free_zeros(void *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(((const char *)block)[i], 0);
    guarded_free(block);
}

#endif
