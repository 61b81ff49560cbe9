#include "seal/bootstrap.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "kernel/fft/negacyclic.h"
#include "kernel/torus/torus.h"

enum { LANES = STI_BOOTSTRAP_LANES };

/* Parts of the scratch; all are multiples of 64 bytes, as sizes are 8 and more. */
typedef struct work {
    uint32_t *sum;    /* [k + 1][size][8]: the rotated polynomial, encrypted */
    int32_t *digit;   /* [levels][size][8] */
    double *spectrum; /* [rows][size / 2][2][8] */
    double *product;  /* [k + 1][size / 2][2][8] */
    uint32_t *mask;   /* [k size][8] */
} work;

static size_t lay_out(const sti_seal_set *set, uint8_t *at, work *w)
{
    const size_t poly = (size_t)set->size * LANES * 4, spectrum = 2 * poly;
    const size_t cols = (size_t)set->k + 1, rows = cols * (size_t)set->levels;
    size_t used = 0;
    w->sum = (uint32_t *)(void *)(at + used);
    used += cols * poly;
    w->digit = (int32_t *)(void *)(at + used);
    used += (size_t)set->levels * poly;
    w->spectrum = (double *)(void *)(at + used);
    used += rows * spectrum;
    w->product = (double *)(void *)(at + used);
    used += cols * spectrum;
    w->mask = (uint32_t *)(void *)(at + used);
    return used + (size_t)set->k * poly;
}

size_t sti_bootstrap_scratch_bytes(const sti_seal_set *set)
{
    work none;
    static uint8_t base[64];
    return lay_out(set, base, &none);
}

/* A word of the torus as one of 2 size parts of it, rounded. */
static int32_t part_of(const sti_seal_set *set, uint32_t word)
{
    const int drop = 31 - __builtin_ctz((unsigned)set->size);
    return (int32_t)((word + (UINT32_C(1) << (drop - 1))) >> drop) &
           (2 * set->size - 1);
}

/* X^-b times the polynomial of all 1/8, not encrypted. */
static void begin_rotation(const sti_seal_set *set, const uint32_t *in, work *w)
{
    const int64_t size = set->size;
    memset(w->sum, 0, (size_t)((set->k + 1) * size * LANES) * 4);
    uint32_t *body = w->sum + set->k * size * LANES;
    for (int g = 0; g < LANES; g++) {
        const int32_t by = part_of(set, in[g * (set->n + 1) + set->n]);
        for (int64_t j = 0; j < size; j++) {
            const int turned = ((j + by) & size) != 0;
            body[LANES * j + g] = turned ? UINT32_C(0xE0000000) : UINT32_C(0x20000000);
        }
    }
}

/* sum += (X^by - 1) sum times the encrypted key bit. */
static void rotate_step(const sti_seal_set *set, const double *factors,
                        const double *boot, const int32_t *by, work *w)
{
    const int64_t size = set->size;
    const int cols = set->k + 1, rows = cols * set->levels;
    for (int c = 0; c < cols; c++) {
        sti_torus_rotate_digits(size, set->levels, set->bits, w->sum + c * size * LANES,
                                by, w->digit);
        for (int l = 0; l < set->levels; l++)
            sti_negacyclic_forward(size, factors, w->digit + l * size * LANES,
                                   w->spectrum + (c * set->levels + l) * size * LANES);
    }
    sti_negacyclic_product(size / 2, rows, cols, w->spectrum, boot, w->product);
    for (int c = 0; c < cols; c++)
        sti_negacyclic_inverse_add(size, factors, w->product + c * size * LANES,
                                   w->sum + c * size * LANES);
}

/* The first coefficient as a ciphertext under the polynomials' coefficients. */
static void extract(const sti_seal_set *set, work *w)
{
    const int64_t size = set->size;
    for (int c = 0; c < set->k; c++) {
        const uint32_t *a = w->sum + c * size * LANES;
        uint32_t *to = w->mask + c * size * LANES;
        memcpy(to, a, LANES * 4);
        for (int64_t j = 1; j < size; j++)
            for (int g = 0; g < LANES; g++)
                to[LANES * j + g] = 0 - a[LANES * (size - j) + g];
    }
}

void sti_bootstrap(const sti_eval_key *key, const uint32_t *in, uint32_t *out,
                   void *scratch)
{
    const sti_seal_set *set = key->set;
    const int64_t width = set->n + 1, size = set->size;
    const int64_t step = size * set->levels * (set->k + 1) * (set->k + 1);
    work w;
    lay_out(set, scratch, &w);
    begin_rotation(set, in, &w);
    for (int64_t i = 0; i < set->n; i++) {
        int32_t by[LANES];
        for (int g = 0; g < LANES; g++)
            by[g] = part_of(set, in[g * width + i]);
        rotate_step(set, key->factors, key->boot + i * step, by, &w);
    }
    extract(set, &w);
    memset(out, 0, (size_t)(LANES * width) * 4);
    for (int g = 0; g < LANES; g++)
        out[g * width + set->n] = w.sum[LANES * set->k * size + g];
    sti_torus_key_switch(set->k * size, set->ks_levels, set->ks_bits, width, w.mask,
                         key->swap, out);
}

void sti_cell_sum(const sti_seal_set *set, const sti_cell *cell,
                  const uint32_t *const input[STI_CELL_INPUTS], uint32_t *sum_out)
{
    const sti_cell_row *row = sti_cell_row_of((sti_cell_kind)cell->kind);
    memset(sum_out, 0, (size_t)(set->n + 1) * 4);
    for (int i = 0; i < row->inputs; i++) {
        const int weight = cell->in[i] & 1 ? -row->weight[i] : row->weight[i];
        for (int j = 0; j <= set->n; j++)
            sum_out[j] += (uint32_t)weight * input[i][j];
    }
    sum_out[set->n] += (uint32_t)row->offset << 28;
}

stint_status sti_bootstrap_measure(const sti_seal_set *set, double *seconds_out)
{
    enum { KEYS = 16, ROUNDS = 3 };
    const int64_t step = (int64_t)set->size * set->levels * (set->k + 1) * (set->k + 1);
    double *factors = sti_alloc(sti_negacyclic_factors(set->size) * 8, "seal.measure");
    double *boot = sti_alloc_array(KEYS * step, 8, "seal.measure");
    void *scratch = sti_alloc(sti_bootstrap_scratch_bytes(set), "seal.measure");
    const bool ready = factors && boot && scratch;
    double best = 0;
    for (int round = 0; ready && round <= ROUNDS; round++) {
        work w;
        lay_out(set, scratch, &w);
        if (round == 0)
            sti_negacyclic_fill(set->size, factors);
        for (int64_t i = 0; i < KEYS * step; i++)
            boot[i] = (double)(i % 1021);
        const int64_t begin = sti_clock_ns();
        for (int i = 0; i < KEYS; i++) {
            const int32_t by[LANES] = {1, 3, 5, 7, 9, 11, 13, 15};
            rotate_step(set, factors, boot + i * step, by, &w);
        }
        const double seconds = sti_seconds_since(begin);
        if (round == 1 || (round > 1 && seconds < best))
            best = seconds;
    }
    sti_free(factors);
    sti_free(boot);
    sti_free(scratch);
    /* The key switch is about a fifteenth of the whole. */
    *seconds_out = best * set->n / KEYS * 1.07;
    return ready ? STINT_OK : STINT_E_MEMORY;
}
