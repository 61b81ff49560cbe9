/* Key generation, encryption and decryption of bits under Valgrind, with all that the
 * system's random numbers give marked as undefined: a branch or an address that depends
 * on a key, a message or noise is then an error. Valgrind runs this very program again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seal/keys.h"

#if defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif
#endif
#if !defined(VALGRIND_MAKE_MEM_UNDEFINED)
#define VALGRIND_MAKE_MEM_UNDEFINED(at, n_bytes) ((void)(at), (void)(n_bytes))
#define VALGRIND_MAKE_MEM_DEFINED(at, n_bytes)   ((void)(at), (void)(n_bytes))
#define NO_MEMCHECK                              1
#else
#define NO_MEMCHECK 0
#endif

enum { ERRORS_FOUND = 9, BITS = 16 };

static const sti_seal_set tiny = {"tiny", 24, 1, 64, 2, 9, 6, 3, 0x1p-17, 0x1p-28, 0};

long syscall(long number, ...);

/* In the place of the C library's: the program asks nobody else for randomness. */
ssize_t getrandom(void *out, size_t n_bytes, unsigned flags)
{
    const ssize_t got = syscall(SYS_getrandom, out, n_bytes, flags);
    if (got > 0)
        VALGRIND_MAKE_MEM_UNDEFINED(out, (size_t)got);
    return got;
}

/* Returns 0 if bits come back as they went in. */
static int work_on_secrets(int leak)
{
    static const sti_team one = {1};
    sti_secret_key key;
    sti_eval_bodies bodies;
    sti_secure_random noise;
    uint32_t word[BITS][25], bit[BITS], back[BITS];
    if (sti_secret_key_make(&tiny, &key) != STINT_OK ||
        sti_eval_bodies_make(&key, &one, &bodies) != STINT_OK ||
        sti_secure_random_init(&noise) != STINT_OK)
        return 1;
    for (int i = 0; i < BITS; i++)
        bit[i] = (uint32_t)i >> 1 & 1;
    VALGRIND_MAKE_MEM_UNDEFINED(bit, sizeof bit);
    for (int i = 0; i < BITS; i++) {
        sti_secure_random_fill(&noise, word[i], 24 * 4);
        word[i][24] = sti_seal_encrypt_bit(&key, word[i], bit[i], &noise);
        back[i] = 1 - (sti_seal_phase(&key, word[i]) >> 31);
    }
    if (leak && key.bit[3])
        puts("the fourth bit of the key is set");
    VALGRIND_MAKE_MEM_DEFINED(bit, sizeof bit);
    VALGRIND_MAKE_MEM_DEFINED(back, sizeof back);
    const int differ = memcmp(bit, back, sizeof bit) != 0;
    sti_secure_random_fini(&noise);
    sti_eval_bodies_fini(&bodies);
    sti_secret_key_fini(&key);
    return differ;
}

/* Exit status of this program under Valgrind; 127: there is none. */
static int under_valgrind(const char *word)
{
    char self[4096];
    int status = 0;
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = '\0';
    const pid_t child = fork();
    if (child == 0) {
        setenv("STINT_ISA", "avx2", 1); /* Valgrind knows no AVX-512 */
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(126);
        execlp("valgrind", "valgrind", "-q", "--error-exitcode=9", self, word,
               (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void bits_come_back(void **state)
{
    (void)state;
    assert_int_equal(work_on_secrets(0), 0);
}

static void nothing_depends_on_secrets(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
    const int leaking = under_valgrind("leak");
    if (NO_MEMCHECK || leaking == 127) {
        puts("no valgrind, or no valgrind/memcheck.h: not looked at");
        skip();
    }
    assert_int_equal(leaking, ERRORS_FOUND); /* it does see a branch */
    assert_int_equal(under_valgrind("quiet"), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_come_back),
        cmocka_unit_test(nothing_depends_on_secrets),
    };
    if (argc > 1)
        return work_on_secrets(strcmp(argv[1], "leak") == 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
