/* The numbers of base/libc_random.h beside rand()'s, where the C library is GNU's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/libc_random.h"

/* The first numbers of a program that never calls srand. */
static void known_numbers(void **state)
{
    static const uint32_t want[] = {1804289383, 846930886, 1681692777, 1714636915,
                                    1957747793};
    sti_libc_random random;
    (void)state;
    sti_libc_random_begin(&random, 1);
    for (int i = 0; i < 5; i++)
        assert_int_equal(sti_libc_random_next(&random), want[i]);
}

static void as_the_library(void **state)
{
    (void)state;
#ifndef __GLIBC__
    skip();
#endif
    for (unsigned seed = 0; seed < 200; seed++) {
        sti_libc_random random;
        const uint32_t begin = seed < 100 ? seed : seed * 40503221u;
        sti_libc_random_begin(&random, begin);
        srand(begin);
        for (int i = 0; i < 400; i++)
            assert_int_equal(sti_libc_random_next(&random), rand());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_numbers),
                                       cmocka_unit_test(as_the_library)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
