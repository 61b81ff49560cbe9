/* Random numbers for secrets: ChaCha20's published stream, streams apart, and normal
 * numbers that are normal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/secure_random.h"

/* Zero key and nonce: the first bytes of RFC 8439's (and Bernstein's) stream. */
static void stream_is_chacha20(void **state)
{
    static const uint8_t want[16] = {0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90,
                                     0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd, 0x28};
    const uint8_t seed[STI_SEED_BYTES] = {0};
    uint8_t got[16], other[16];
    sti_secure_random random;
    (void)state;
    sti_secure_random_seed(&random, seed, 0);
    sti_secure_random_fill(&random, got, sizeof got);
    assert_memory_equal(got, want, sizeof want);
    sti_secure_random_seed(&random, seed, 1);
    sti_secure_random_fill(&random, other, sizeof other);
    assert_memory_not_equal(got, other, sizeof got);
    sti_secure_random_fini(&random);
    for (size_t i = 0; i < sizeof random.opaque / sizeof random.opaque[0]; i++)
        assert_true(random.opaque[i] == 0);
}

static void two_states_of_the_system_differ(void **state)
{
    sti_secure_random a, b;
    uint8_t x[32], y[32];
    (void)state;
    assert_int_equal(sti_secure_random_init(&a), STINT_OK);
    assert_int_equal(sti_secure_random_init(&b), STINT_OK);
    sti_secure_random_fill(&a, x, sizeof x);
    sti_secure_random_fill(&b, y, sizeof y);
    assert_memory_not_equal(x, y, sizeof x);
}

/* Share of numbers below cuts against the distribution's, and moments. */
static void normal_numbers_are_normal(void **state)
{
    enum { PAIRS = 200000 };
    const uint8_t seed[STI_SEED_BYTES] = {7};
    static const double cut[] = {-3, -2, -1, -0.5, 0, 0.25, 1.5, 2.5};
    int below[8] = {0};
    double sum = 0, squares = 0, fourth = 0, product = 0;
    sti_secure_random random;
    (void)state;
    sti_secure_random_seed(&random, seed, 3);
    for (int i = 0; i < PAIRS; i++) {
        double x[2];
        sti_secure_normal2(&random, x);
        product += x[0] * x[1];
        for (int k = 0; k < 2; k++) {
            sum += x[k];
            squares += x[k] * x[k];
            fourth += pow(x[k], 4);
            for (int c = 0; c < 8; c++)
                below[c] += x[k] < cut[c];
        }
    }
    const double n = 2 * PAIRS;
    assert_true(fabs(sum / n) < 5 / sqrt(n));
    assert_true(fabs(squares / n - 1) < 5 * sqrt(2 / n));
    assert_true(fabs(fourth / n - 3) < 5 * sqrt(96 / n));
    assert_true(fabs(product / PAIRS) < 5 / sqrt(PAIRS));
    for (int c = 0; c < 8; c++) {
        const double p = erfc(-cut[c] / sqrt(2)) / 2;
        assert_true(fabs(below[c] / n - p) < 5 * sqrt(p * (1 - p) / n));
    }
}

static void private_files_are_the_owners(void **state)
{
    char path[] = "/tmp/stint-private-XXXXXX";
    struct stat info;
    (void)state;
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && fchmod(fd, 0644) == 0);
    close(fd);
    assert_int_equal(sti_file_write_private(path, "abc", 3), STINT_OK);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(info.st_size, 3);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stream_is_chacha20),
        cmocka_unit_test(two_states_of_the_system_differ),
        cmocka_unit_test(normal_numbers_are_normal),
        cmocka_unit_test(private_files_are_the_owners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
