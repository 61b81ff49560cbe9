#define _GNU_SOURCE /* explicit_bzero, getrandom */
#include "base/secure_random.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <nettle/chacha.h>
#include <string.h>
#include <sys/random.h>

#include "base/fail.h"

static_assert(sizeof(struct chacha_ctx) <= sizeof(sti_secure_random),
              "sti_secure_random holds nettle's state");

static struct chacha_ctx *state_of(sti_secure_random *random)
{
    return (struct chacha_ctx *)(void *)random->opaque;
}

void sti_secure_wipe(void *memory, size_t n_bytes)
{
    explicit_bzero(memory, n_bytes);
}

stint_status sti_secure_bytes(void *out, size_t n_bytes)
{
    uint8_t *at = out;
    while (n_bytes > 0) {
        const ssize_t got = getrandom(at, n_bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return sti_fail_errno("the system gives no random bytes");
        at += got;
        n_bytes -= (size_t)got;
    }
    return STINT_OK;
}

void sti_secure_random_seed(sti_secure_random *random,
                            const uint8_t seed[STI_SEED_BYTES], uint64_t stream)
{
    uint8_t nonce[CHACHA_NONCE_SIZE];
    static_assert(STI_SEED_BYTES == CHACHA_KEY_SIZE, "a seed is a key of ChaCha20");
    for (int i = 0; i < CHACHA_NONCE_SIZE; i++)
        nonce[i] = (uint8_t)(stream >> (8 * i));
    memset(random, 0, sizeof *random);
    chacha_set_key(state_of(random), seed);
    chacha_set_nonce(state_of(random), nonce);
}

stint_status sti_secure_random_init(sti_secure_random *random)
{
    uint8_t seed[STI_SEED_BYTES];
    const stint_status st = sti_secure_bytes(seed, sizeof seed);
    if (st == STINT_OK)
        sti_secure_random_seed(random, seed, 0);
    sti_secure_wipe(seed, sizeof seed);
    return st;
}

/* Whole blocks of the cipher: what is left of the last one is thrown away. */
void sti_secure_random_fill(sti_secure_random *random, void *out, size_t n_bytes)
{
    memset(out, 0, n_bytes);
    chacha_crypt(state_of(random), n_bytes, out, out);
}

void sti_secure_random_fini(sti_secure_random *random)
{
    sti_secure_wipe(random, sizeof *random);
}

#define LN2       0x1.62e42fefa39efp-1
#define SQRT2     0x1.6a09e667f3bcdp+0
#define HALF_TURN 0x1.921fb54442d18p+1

/* Logarithm of 0 < u < 1 by no branch: u = m 2^e with m in [1, 2), and log(m / sqrt 2)
 * = 2 artanh s with |s| < 0.172. */
static double log_of(double u)
{
    uint64_t bits;
    double m;
    memcpy(&bits, &u, sizeof bits);
    const double e = (double)((int64_t)(bits >> 52 & 0x7ff) - 1023) + 0.5;
    bits = (bits & UINT64_C(0xfffffffffffff)) | UINT64_C(1023) << 52;
    memcpy(&m, &bits, sizeof m);
    const double s = (m - SQRT2) / (m + SQRT2), s2 = s * s;
    double sum = 0;
    for (int k = 21; k >= 1; k -= 2)
        sum = sum * s2 + 1.0 / k;
    return 2 * s * sum + e * LN2;
}

/* Sine and cosine of half a turn times x, |x| <= 1, by no branch: Taylor's series of a
 * quarter of the angle, doubled twice. */
static void turn_of(double x, double *sine, double *cosine)
{
    const double y = x * (HALF_TURN / 4), y2 = y * y;
    double s = 0, c = 0;
    for (int k = 18; k >= 2; k -= 2) {
        s = -(s + 1) * y2 / (k * (k + 1));
        c = -(c + 1) * y2 / (k * (k - 1));
    }
    s = (s + 1) * y;
    c = c + 1;
    for (int i = 0; i < 2; i++) {
        const double twice = 2 * s * c;
        c = 1 - 2 * s * s;
        s = twice;
    }
    *sine = s;
    *cosine = c;
}

void sti_secure_normal2(sti_secure_random *random, double out[2])
{
    uint64_t word[2];
    double sine, cosine;
    sti_secure_random_fill(random, word, sizeof word);
    const double u = ((double)(word[0] >> 11) + 0.5) * 0x1p-53;
    const double v = ((double)(word[1] >> 11) + 0.5) * 0x1p-53;
    const double radius = sqrt(-2 * log_of(u));
    turn_of(2 * v - 1, &sine, &cosine);
    out[0] = radius * cosine;
    out[1] = radius * sine;
    sti_secure_wipe(word, sizeof word);
}
