#include "seal/keys.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "kernel/fft/negacyclic.h"

/* ---- noise and masks ---- */

/* A rounded number of the normal distribution, as a point of the torus. */
static uint32_t noise_of(sti_secure_random *random, double sd)
{
    double normal[2];
    sti_secure_normal2(random, normal);
    const int64_t rounded = (int64_t)(normal[0] * sd * 0x1p32 + 0x1p40 + 0.5);
    sti_secure_wipe(normal, sizeof normal);
    return (uint32_t)(rounded - (INT64_C(1) << 40));
}

/* Words of the stream of a seed, the same on every machine. */
static void mask_of(const uint8_t seed[STI_SEED_BYTES], uint64_t stream, int64_t count,
                    uint32_t *out)
{
    sti_secure_random random;
    sti_secure_random_seed(&random, seed, stream);
    sti_secure_random_fill(&random, out, (size_t)count * 4);
    for (int64_t i = 0; i < count; i++) {
        uint8_t little[4];
        memcpy(little, &out[i], 4);
        out[i] = little[0] | (uint32_t)little[1] << 8 | (uint32_t)little[2] << 16 |
                 (uint32_t)little[3] << 24;
    }
}

/* ---- the secret key ---- */

stint_status sti_secret_key_make(const sti_seal_set *set, sti_secret_key *key_out)
{
    sti_secure_random random;
    const int64_t long_n = (int64_t)set->k * set->size;
    stint_status st = sti_secure_random_init(&random);
    *key_out = (sti_secret_key){.set = set};
    STI_TRY(st);
    STI_TRY(sti_secure_bytes(key_out->id, sizeof key_out->id));
    key_out->bit = sti_alloc_array(set->n, 4, "seal.secret");
    key_out->poly = sti_alloc_array(long_n, 4, "seal.secret");
    if (!key_out->bit || !key_out->poly) {
        st = STINT_E_MEMORY;
        goto out;
    }
    sti_secure_random_fill(&random, key_out->bit, (size_t)set->n * 4);
    sti_secure_random_fill(&random, key_out->poly, (size_t)long_n * 4);
    for (int i = 0; i < set->n; i++)
        key_out->bit[i] = 0 - (key_out->bit[i] & 1);
    for (int64_t i = 0; i < long_n; i++)
        key_out->poly[i] = 0 - (key_out->poly[i] & 1);
out:
    sti_secure_random_fini(&random);
    if (st != STINT_OK)
        sti_secret_key_fini(key_out);
    return st;
}

void sti_secret_key_fini(sti_secret_key *key)
{
    if (key->bit)
        sti_secure_wipe(key->bit, (size_t)key->set->n * 4);
    if (key->poly)
        sti_secure_wipe(key->poly, (size_t)key->set->k * (size_t)key->set->size * 4);
    sti_free(key->bit);
    sti_free(key->poly);
    *key = (sti_secret_key){0};
}

/* ---- ciphertexts of bits ---- */

static uint32_t product_of(int n, const uint32_t *mask, const uint32_t *bit)
{
    uint32_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += mask[i] & bit[i];
    return sum;
}

uint32_t sti_seal_encrypt_bit(const sti_secret_key *key, const uint32_t *mask,
                              uint32_t bit, sti_secure_random *random)
{
    /* 1/8 for 1, -1/8 for 0. */
    const uint32_t message = UINT32_C(0xE0000000) + (bit << 30);
    return product_of(key->set->n, mask, key->bit) + message +
           noise_of(random, key->set->sd);
}

uint32_t sti_seal_phase(const sti_secret_key *key, const uint32_t *ciphertext)
{
    return ciphertext[key->set->n] - product_of(key->set->n, ciphertext, key->bit);
}

/* ---- bodies of the evaluation key ---- */

static int rows_of(const sti_seal_set *set)
{
    return set->levels * (set->k + 1);
}

typedef struct maker {
    const sti_secret_key *key;
    sti_eval_bodies *out;
    uint32_t *scratch; /* [threads][stride] */
    int64_t stride;    /* (k + 2) size words, and n at least */
    uint8_t noise_seed[STI_SEED_BYTES];
} maker;

/* Row (u, level) of the encryption of key bit i: zero, encrypted, plus the bit times
 * the digit's weight at component u. For a polynomial of the mask that is the same as
 * less the key's polynomial times it in the body, so that masks stay what the seed
 * says. */
static void make_row(const maker *m, int64_t i, int row, sti_secure_random *noise,
                     uint32_t *mask, uint32_t *twice, uint32_t *body)
{
    const sti_seal_set *set = m->key->set;
    const int64_t size = set->size;
    const int u = row / set->levels, level = row % set->levels;
    const uint32_t weight =
        (UINT32_C(1) << (32 - (level + 1) * set->bits)) & m->key->bit[i];
    mask_of(m->out->seed[0], (uint64_t)(i * rows_of(set) + row), set->k * size, mask);
    for (int64_t j = 0; j < size; j++)
        body[j] = noise_of(noise, set->poly_sd);
    for (int c = 0; c < set->k; c++)
        sti_negacyclic_binary_add(size, mask + c * size, m->key->poly + c * size, twice,
                                  body);
    if (u == set->k)
        body[0] += weight;
    else
        for (int64_t j = 0; j < size; j++)
            body[j] -= weight & m->key->poly[u * size + j];
}

static void make_boot(void *arg, int64_t i, int worker)
{
    const maker *m = arg;
    const sti_seal_set *set = m->key->set;
    const int64_t size = set->size;
    uint32_t *mask = m->scratch + worker * m->stride;
    sti_secure_random noise;
    sti_secure_random_seed(&noise, m->noise_seed, (uint64_t)i);
    for (int row = 0; row < rows_of(set); row++)
        make_row(m, i, row, &noise, mask, mask + set->k * size,
                 m->out->boot + (i * rows_of(set) + row) * size);
    sti_secure_random_fini(&noise);
}

static void make_swap(void *arg, int64_t i, int worker)
{
    const maker *m = arg;
    const sti_seal_set *set = m->key->set;
    uint32_t *mask = m->scratch + worker * m->stride;
    sti_secure_random noise;
    sti_secure_random_seed(&noise, m->noise_seed, (UINT64_C(1) << 40) + (uint64_t)i);
    for (int j = 0; j < set->ks_levels; j++) {
        const uint32_t weight = UINT32_C(1) << (32 - (j + 1) * set->ks_bits);
        mask_of(m->out->seed[1], (uint64_t)(i * set->ks_levels + j), set->n, mask);
        m->out->swap[i * set->ks_levels + j] = product_of(set->n, mask, m->key->bit) +
                                               (weight & m->key->poly[i]) +
                                               noise_of(&noise, set->sd);
    }
    sti_secure_random_fini(&noise);
}

static stint_status alloc_bodies(const sti_seal_set *set, sti_eval_bodies *out)
{
    *out = (sti_eval_bodies){.set = set};
    out->boot =
        sti_alloc_array((int64_t)set->n * rows_of(set) * set->size, 4, "seal.bodies");
    out->swap =
        sti_alloc_array((int64_t)set->k * set->size * set->ks_levels, 4, "seal.bodies");
    return out->boot && out->swap ? STINT_OK : STINT_E_MEMORY;
}

stint_status sti_eval_bodies_make(const sti_secret_key *key, const sti_team *team,
                                  sti_eval_bodies *out)
{
    const sti_seal_set *set = key->set;
    const int64_t words = (int64_t)(set->k + 2) * set->size;
    maker m = {.key = key, .out = out, .stride = words > set->n ? words : set->n};
    stint_status st = alloc_bodies(set, out);
    STI_TRY(st);
    memcpy(out->id, key->id, sizeof out->id);
    STI_TRY(sti_secure_bytes(out->seed, sizeof out->seed));
    STI_TRY(sti_secure_bytes(m.noise_seed, sizeof m.noise_seed));
    m.scratch = sti_alloc_array(team->threads * m.stride, 4, "seal.scratch");
    STI_TRY(m.scratch ? STINT_OK : STINT_E_MEMORY);
    sti_team_run(team, set->n, make_boot, &m);
    sti_team_run(team, (int64_t)set->k * set->size, make_swap, &m);
out:
    sti_secure_wipe(m.noise_seed, sizeof m.noise_seed);
    sti_free(m.scratch);
    if (st != STINT_OK)
        sti_eval_bodies_fini(out);
    return st;
}

void sti_eval_bodies_fini(sti_eval_bodies *bodies)
{
    sti_free(bodies->boot);
    sti_free(bodies->swap);
    *bodies = (sti_eval_bodies){0};
}

/* ---- unpacked ---- */

static int64_t boot_doubles(const sti_seal_set *set)
{
    return (int64_t)set->n * set->size * rows_of(set) * (set->k + 1);
}

static int64_t swap_words(const sti_seal_set *set)
{
    return (int64_t)set->k * set->size * set->ks_levels * (set->n + 1);
}

size_t sti_eval_key_bytes(const sti_seal_set *set)
{
    return (size_t)boot_doubles(set) * 8 + (size_t)swap_words(set) * 4 +
           sti_negacyclic_factors(set->size) * 8;
}

typedef struct unpacker {
    const sti_eval_bodies *from;
    sti_eval_key *to;
    uint32_t *poly; /* [threads][rows (k + 1)][size] */
    double *z;      /* [threads][12 size] */
} unpacker;

static void unpack_boot(void *arg, int64_t i, int worker)
{
    const unpacker *u = arg;
    const sti_seal_set *set = u->to->set;
    const int64_t size = set->size;
    const int rows = rows_of(set), cols = set->k + 1, all = rows * cols;
    uint32_t *poly = u->poly + worker * all * size;
    double *z = u->z + worker * 12 * size;
    for (int r = 0; r < rows; r++) {
        mask_of(u->from->seed[0], (uint64_t)(i * rows + r), set->k * size,
                poly + r * cols * size);
        memcpy(poly + (r * cols + set->k) * size, u->from->boot + (i * rows + r) * size,
               (size_t)size * 4);
    }
    for (int rc = 0; rc < all; rc += STI_FFT_LANES)
        sti_negacyclic_spectrum(size, u->to->factors, poly + rc * size, z, 2, 2 * all,
                                u->to->boot + i * size * all + 2 * rc);
}

static void unpack_swap(void *arg, int64_t i, int worker)
{
    const unpacker *u = arg;
    const sti_seal_set *set = u->to->set;
    (void)worker;
    for (int j = 0; j < set->ks_levels; j++) {
        const int64_t row = i * set->ks_levels + j;
        uint32_t *to = u->to->swap + row * (set->n + 1);
        mask_of(u->from->seed[1], (uint64_t)row, set->n, to);
        to[set->n] = u->from->swap[row];
    }
}

stint_status sti_eval_key_unpack(const sti_eval_bodies *bodies, const sti_team *team,
                                 sti_eval_key *out)
{
    const sti_seal_set *set = bodies->set;
    const int64_t polys = (int64_t)rows_of(set) * (set->k + 1) * set->size;
    unpacker u = {.from = bodies, .to = out};
    stint_status st = STINT_E_MEMORY;
    *out = (sti_eval_key){.set = set};
    memcpy(out->id, bodies->id, sizeof out->id);
    out->factors =
        sti_alloc(sti_negacyclic_factors(set->size) * sizeof(double), "seal.key");
    out->boot = sti_alloc_array(boot_doubles(set), sizeof(double), "seal.key");
    out->swap = sti_alloc_array(swap_words(set), 4, "seal.key");
    u.poly = sti_alloc_array(team->threads * polys, 4, "seal.scratch");
    u.z = sti_alloc_array(team->threads * 12 * (int64_t)set->size, 8, "seal.scratch");
    if (!out->factors || !out->boot || !out->swap || !u.poly || !u.z)
        goto out;
    sti_alloc_huge_pages(out->boot);
    sti_alloc_huge_pages(out->swap);
    sti_negacyclic_fill(set->size, out->factors);
    sti_team_run(team, set->n, unpack_boot, &u);
    sti_team_run(team, (int64_t)set->k * set->size, unpack_swap, &u);
    st = STINT_OK;
out:
    sti_free(u.poly);
    sti_free(u.z);
    if (st != STINT_OK)
        sti_eval_key_fini(out);
    return st;
}

void sti_eval_key_fini(sti_eval_key *key)
{
    sti_free(key->factors);
    sti_free(key->boot);
    sti_free(key->swap);
    *key = (sti_eval_key){0};
}

void sti_seal_input_mask(const sti_ciphertexts *c, int64_t i, uint32_t *mask_out)
{
    mask_of(c->seed, (uint64_t)i, c->set->n, mask_out);
}
