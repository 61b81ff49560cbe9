/* How large a test is to be. */
#ifndef STI_TEST_SIZE_H
#define STI_TEST_SIZE_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* True where this is the full test, with all of its cases; false in `quick` tests, of
 * which tests/CMakeLists.txt (STINT_SIZED_TESTS) lists those that differ. */
static inline bool test_is_full(void)
{
    const char *size = getenv("TEST_SIZE");
    return size && strcmp(size, "full") == 0;
}

#endif
