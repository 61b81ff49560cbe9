/* What is held to be exact is, and noise is what the formulas say:
 *
 *   build/release/bench/seal_noise_bench [COEFFICIENTS [GATES [CHAIN [SET]]]]
 *
 * COEFFICIENTS (10^6) of sums of products by FFT against an exact transform, of random
 * and of the worst operands; GATES (400) of each kind of cell, deviation and failures
 * by the secret key; a CHAIN (1000) of gates, eight side by side, of which each takes
 * the last one's result. SET: p128. The figures of docs/seal.md are of
 * 10000000 100000 10000. Status 1 if anything is wrong or off by more than 5 %. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/kernel/ntt_product.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernel/fft/negacyclic.h"
#include "seal/bootstrap.h"
#include "seal/seal_priv.h"

static void check(stint_status status)
{
    if (status == STINT_OK)
        return;
    fprintf(stderr, "seal_noise_bench: %s\n", stint_last_error());
    exit(1);
}

static uint32_t word_of(uint64_t seed, uint64_t i)
{
    uint32_t word[4];
    sti_random4(seed, STI_STREAM_TEST, i, 0, word);
    return word[0];
}

/* ---- products ---- */

typedef struct product {
    const sti_seal_set *set;
    int32_t *digit;   /* [rows][n][8] */
    uint32_t *factor; /* [rows][n] */
    double *factors, *d, *g, *out, *z;
    uint32_t *eight, *got, *want;
} product;

static void product_init(product *p)
{
    const int64_t n = p->set->size, rows = p->set->levels * (p->set->k + 1);
    p->digit = sti_alloc((size_t)(rows * n * 8) * 4, "bench");
    p->factor = sti_alloc((size_t)((rows + 8) * n) * 4, "bench");
    p->factors = sti_alloc(sti_negacyclic_factors(n) * 8, "bench");
    p->d = sti_alloc((size_t)(rows * n * 8) * 8, "bench");
    p->g = sti_alloc((size_t)((rows + 8) * n) * 8, "bench");
    p->out = sti_alloc((size_t)(n * 8) * 8, "bench");
    p->z = sti_alloc((size_t)(12 * n) * 8, "bench");
    p->got = sti_alloc((size_t)(n * 8) * 4, "bench");
    p->want = sti_alloc((size_t)n * 4, "bench");
    sti_negacyclic_fill(n, p->factors);
}

/* Kind 0: random; 1: largest digits, random words; 2: the other way round; 3: both the
 * largest, in rows so few that sums stay below 2^50. */
static void product_fill(product *p, int64_t round, int kind, int64_t rows)
{
    const int64_t n = p->set->size;
    const int32_t half = 1 << (p->set->bits - 1);
    for (int64_t i = 0; i < rows * n * 8; i++) {
        const uint32_t word = word_of((uint64_t)round, (uint64_t)i);
        p->digit[i] = kind == 1 || kind == 3
                          ? -half
                          : (int32_t)(word >> (32 - p->set->bits)) - half;
    }
    for (int64_t i = 0; i < rows * n; i++)
        p->factor[i] = kind >= 2 ? 0x80000000u
                                 : word_of((uint64_t)round + (1u << 20), (uint64_t)i);
}

/* Coefficients of eight lanes of one column; returns those that are wrong. */
static int64_t product_round(product *p, int64_t round, int kind)
{
    const int64_t n = p->set->size, m = n / 2;
    const int64_t all = p->set->levels * (p->set->k + 1), rows = kind == 3 ? 2 : all;
    int64_t wrong = 0;
    product_fill(p, round, kind, rows);
    for (int64_t r = 0; r < rows; r++)
        sti_negacyclic_forward(n, p->factors, p->digit + r * n * 8, p->d + r * n * 8);
    /* g [m][rows][1][2]; eight rows of factors at a time. */
    for (int64_t r = 0; r < rows; r += 8) {
        double spectrum[8 * 1024];
        sti_negacyclic_spectrum(n, p->factors, p->factor + r * n, p->z, 2 * m, 2,
                                spectrum);
        for (int64_t e = 0; e < 8 && r + e < rows; e++)
            for (int64_t f = 0; f < m; f++)
                memcpy(p->g + 2 * (f * rows + r + e), spectrum + e * 2 * m + 2 * f, 16);
    }
    sti_negacyclic_product(m, (int)rows, 1, p->d, p->g, p->out);
    memset(p->got, 0, (size_t)(n * 8) * 4);
    sti_negacyclic_inverse_add(n, p->factors, p->out, p->got);
    for (int64_t lane = 0; lane < 8; lane++) {
        ntt_product(n, (int)rows, p->digit + lane, 8, p->factor, n, p->want);
        for (int64_t i = 0; i < n; i++)
            wrong += p->got[8 * i + lane] != p->want[i];
    }
    return wrong;
}

static int check_products(const sti_seal_set *set, int64_t coefficients)
{
    product p = {.set = set};
    int64_t done = 0, wrong = 0;
    product_init(&p);
    for (int64_t round = 0; done < coefficients; round++, done += 8 * set->size)
        wrong += product_round(&p, round, (int)(round % 4));
    printf("products: %lld of %lld coefficients are wrong\n", (long long)wrong,
           (long long)done);
    return wrong != 0;
}

/* ---- gates ---- */

typedef struct keys {
    sti_secret_key secret;
    sti_eval_bodies bodies;
    sti_eval_key eval;
} keys;

static int check_gates(const keys *k, int64_t gates)
{
    stint_seal_noise noise[STINT_SEAL_CELLS];
    int bad = 0;
    check(sti_seal_check_keys(&k->secret, &k->eval, gates, noise));
    for (int i = 0; i < STINT_SEAL_CELLS; i++) {
        const double ratio = noise[i].sd / noise[i].sd_predicted;
        /* Three deviations of a deviation that is estimated from so many. */
        const double luck = 3 / sqrt(2 * (double)noise[i].gates);
        bad |= noise[i].failures > 0 || fabs(ratio - 1) > 0.05 + luck;
        printf("%-13s %lld gates, sd 2^%.3f, by the formula 2^%.3f (%+.1f %%), "
               "%lld failures\n",
               stint_seal_cell_name(i), (long long)noise[i].gates, log2(noise[i].sd),
               log2(noise[i].sd_predicted), 100 * (ratio - 1),
               (long long)noise[i].failures);
    }
    return bad;
}

/* Eight chains of XORs with a neighbour, negated, and of majorities in turns. */
static int check_chain(const keys *k, int64_t length)
{
    const sti_seal_set *set = k->secret.set;
    const int64_t width = set->n + 1;
    uint32_t *word = sti_alloc((size_t)(8 * width) * 4, "bench");
    uint32_t *sum = sti_alloc((size_t)(8 * width) * 4, "bench");
    void *scratch = sti_alloc(sti_bootstrap_scratch_bytes(set), "bench");
    unsigned bit[8], next[8];
    int64_t wrong = 0;
    sti_secure_random random;
    check(sti_secure_random_init(&random));
    for (int g = 0; g < 8; g++) {
        bit[g] = g & 1;
        sti_secure_random_fill(&random, word + g * width, (size_t)set->n * 4);
        word[g * width + set->n] =
            sti_seal_encrypt_bit(&k->secret, word + g * width, bit[g], &random);
    }
    for (int64_t step = 0; step < length; step++) {
        for (int g = 0; g < 8; g++) {
            const sti_cell cell = {.kind = step & 1 ? STI_CELL_MAJORITY : STI_CELL_XOR,
                                   .in = {1, 0, 0}};
            const int b = (g + 1) & 7, c = (g + 3) & 7;
            const uint32_t *in[STI_CELL_INPUTS] = {word + g * width, word + b * width,
                                                   word + c * width};
            const unsigned a = bit[g] ^ 1;
            sti_cell_sum(set, &cell, in, sum + g * width);
            next[g] =
                step & 1 ? (a & bit[b]) | (a & bit[c]) | (bit[b] & bit[c]) : a ^ bit[b];
        }
        sti_bootstrap(&k->eval, 8, sum, word, scratch);
        memcpy(bit, next, sizeof bit);
        for (int g = 0; g < 8; g++)
            wrong += 1 - (sti_seal_phase(&k->secret, word + g * width) >> 31) != bit[g];
    }
    printf("chain of %lld gates, eight side by side: %lld are wrong\n",
           (long long)length, (long long)wrong);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    const double coefficients = argc > 1 ? atof(argv[1]) : 1e6;
    const double gates = argc > 2 ? atof(argv[2]) : 400;
    const double chain = argc > 3 ? atof(argv[3]) : 1000;
    static const sti_team one = {1};
    const sti_seal_set *set;
    keys k;
    check(sti_seal_set_find(argc > 4 ? argv[4] : "p128", &set));
    int bad = check_products(set, (int64_t)coefficients);
    check(sti_secret_key_make(set, &k.secret));
    check(sti_eval_bodies_make(&k.secret, &one, &k.bodies));
    check(sti_eval_key_unpack(&k.bodies, &one, &k.eval));
    bad |= check_gates(&k, (int64_t)gates);
    bad |= check_chain(&k, (int64_t)chain);
    return bad;
}
