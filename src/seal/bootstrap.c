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

/* `parts` of each, in polynomials of eight lanes; a spectrum has two of their size. */
typedef struct parts {
    int sum, digit, spectrum, product;
} parts;

static size_t lay_out(const sti_seal_set *set, parts count, uint8_t *at, work *w)
{
    const size_t poly = (size_t)set->size * LANES * 4;
    size_t used = 0;
    w->sum = (uint32_t *)(void *)(at + used);
    used += (size_t)count.sum * poly;
    w->digit = (int32_t *)(void *)(at + used);
    used += (size_t)count.digit * poly;
    w->spectrum = (double *)(void *)(at + used);
    used += (size_t)count.spectrum * 2 * poly;
    w->product = (double *)(void *)(at + used);
    used += (size_t)count.product * 2 * poly;
    w->mask = (uint32_t *)(void *)(at + used);
    return used + (size_t)set->k * poly;
}

static parts parts_of_eight(const sti_seal_set *set)
{
    const int cols = set->k + 1;
    return (parts){cols, set->levels, cols * set->levels, cols};
}

/* Of few, one by one: columns lie in lanes, and so do levels as far as there is room.
 */
static int groups_of(const sti_seal_set *set)
{
    return sti_negacyclic_group(set->k + 1, set->levels - 1) + 1;
}

static parts parts_of_few(const sti_seal_set *set)
{
    return (parts){STI_BOOTSTRAP_FEW, groups_of(set), groups_of(set), 1};
}

size_t sti_bootstrap_scratch_bytes(const sti_seal_set *set)
{
    work none;
    static uint8_t base[64];
    const size_t eight = lay_out(set, parts_of_eight(set), base, &none);
    const size_t few = lay_out(set, parts_of_few(set), base, &none);
    return eight > few ? eight : few;
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

static void bootstrap_eight(const sti_eval_key *key, const uint32_t *in, uint32_t *out,
                            work *w)
{
    const sti_seal_set *set = key->set;
    const int64_t width = set->n + 1, size = set->size;
    const int64_t step = size * set->levels * (set->k + 1) * (set->k + 1);
    begin_rotation(set, in, w);
    for (int64_t i = 0; i < set->n; i++) {
        int32_t by[LANES];
        for (int g = 0; g < LANES; g++)
            by[g] = part_of(set, in[g * width + i]);
        rotate_step(set, key->factors, key->boot + i * step, by, w);
    }
    extract(set, w);
    for (int g = 0; g < LANES; g++)
        out[g * width + set->n] = w->sum[LANES * set->k * size + g];
}

/* ---- one by one ---- */

static void begin_one(const sti_seal_set *set, const uint32_t *in, uint32_t *sum)
{
    const int64_t size = set->size;
    const int32_t by = part_of(set, in[set->n]);
    memset(sum, 0, (size_t)(size * LANES) * 4);
    for (int64_t j = 0; j < size; j++)
        sum[LANES * j + set->k] =
            ((j + by) & size) != 0 ? UINT32_C(0xE0000000) : UINT32_C(0x20000000);
}

static void rotate_one(const sti_seal_set *set, const double *factors,
                       const double *boot, int32_t by, uint32_t *sum, work *w)
{
    const int64_t poly = (int64_t)set->size * LANES;
    sti_torus_rotate_digits_one(set->size, set->levels, set->bits, set->k + 1, sum, by,
                                w->digit);
    for (int i = 0; i < groups_of(set); i++)
        sti_negacyclic_forward(set->size, factors, w->digit + i * poly,
                               w->spectrum + i * poly);
    sti_negacyclic_product_one(set->size / 2, set->levels, set->k + 1, w->spectrum,
                               boot, w->product);
    sti_negacyclic_inverse_add(set->size, factors, w->product, sum);
}

/* Into lane `lane` of the mask. */
static void extract_one(const sti_seal_set *set, const uint32_t *sum, int64_t lane,
                        uint32_t *mask)
{
    const int64_t size = set->size;
    for (int64_t c = 0; c < set->k; c++) {
        uint32_t *to = mask + c * size * LANES + lane;
        to[0] = sum[c];
        for (int64_t j = 1; j < size; j++)
            to[LANES * j] = 0 - sum[LANES * (size - j) + c];
    }
}

/* A part of the key serves all of them before the next is read. */
static void bootstrap_few(const sti_eval_key *key, int64_t count, const uint32_t *in,
                          uint32_t *out, work *w)
{
    const sti_seal_set *set = key->set;
    const int64_t width = set->n + 1, poly = (int64_t)set->size * LANES;
    const int64_t step = (int64_t)set->size * set->levels * (set->k + 1) * (set->k + 1);
    memset(w->digit, 0, (size_t)(groups_of(set) * poly) * 4);
    for (int64_t g = 0; g < count; g++)
        begin_one(set, in + g * width, w->sum + g * poly);
    for (int64_t i = 0; i < set->n; i++)
        for (int64_t g = 0; g < count; g++)
            rotate_one(set, key->factors, key->boot + i * step,
                       part_of(set, in[g * width + i]), w->sum + g * poly, w);
    for (int64_t g = 0; g < count; g++) {
        extract_one(set, w->sum + g * poly, g, w->mask);
        out[g * width + set->n] = w->sum[g * poly + set->k];
    }
}

void sti_bootstrap(const sti_eval_key *key, int64_t count, const uint32_t *in,
                   uint32_t *out, void *scratch)
{
    const sti_seal_set *set = key->set;
    const int64_t width = set->n + 1;
    work w;
    if (count > STI_BOOTSTRAP_FEW) {
        lay_out(set, parts_of_eight(set), scratch, &w);
        bootstrap_eight(key, in, out, &w);
    } else {
        lay_out(set, parts_of_few(set), scratch, &w);
        bootstrap_few(key, count, in, out, &w);
    }
    for (int64_t g = 0; g < count; g++)
        memset(out + g * width, 0, (size_t)set->n * 4);
    sti_torus_key_switch(set->k * set->size, set->ks_levels, set->ks_bits, width,
                         (int)count, w.mask, key->swap, out);
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

/* ---- how long it takes ---- */

enum { MEASURED_KEYS = 16, MEASURED_ROUNDS = 3 };

typedef struct trial {
    const sti_seal_set *set;
    double *factors, *boot;
    work w;
    bool one;
} trial;

/* Seconds of some steps of a rotation, the least of some rounds, times as many as a
 * whole one has. */
static double time_rotation(trial *t)
{
    const sti_seal_set *set = t->set;
    const int64_t step = (int64_t)set->size * set->levels * (set->k + 1) * (set->k + 1);
    const int32_t by[LANES] = {1, 3, 5, 7, 9, 11, 13, 15};
    double best = 0;
    for (int round = 0; round <= MEASURED_ROUNDS; round++) {
        const int64_t begin = sti_clock_ns();
        for (int i = 0; i < MEASURED_KEYS; i++)
            if (t->one)
                rotate_one(set, t->factors, t->boot + i * step, by[i & 7], t->w.sum,
                           &t->w);
            else
                rotate_step(set, t->factors, t->boot + i * step, by, &t->w);
        const double seconds = sti_seconds_since(begin);
        if (round == 1 || (round > 1 && seconds < best))
            best = seconds;
    }
    return best * set->n / MEASURED_KEYS;
}

stint_status sti_bootstrap_measure(const sti_seal_set *set, double *eight_out,
                                   double *one_out)
{
    const int64_t step = (int64_t)set->size * set->levels * (set->k + 1) * (set->k + 1);
    trial t = {.set = set};
    void *scratch = sti_alloc(sti_bootstrap_scratch_bytes(set), "seal.measure");
    t.factors = sti_alloc(sti_negacyclic_factors(set->size) * 8, "seal.measure");
    t.boot = sti_alloc_array(MEASURED_KEYS * step, 8, "seal.measure");
    const stint_status st = t.factors && t.boot && scratch ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        sti_negacyclic_fill(set->size, t.factors);
        for (int64_t i = 0; i < MEASURED_KEYS * step; i++)
            t.boot[i] = (double)(i % 1021);
        lay_out(set, parts_of_eight(set), scratch, &t.w);
        /* The key switch is about a fifteenth of the whole. */
        *eight_out = 1.07 * time_rotation(&t);
        lay_out(set, parts_of_few(set), scratch, &t.w);
        t.one = true;
        *one_out = 1.07 * time_rotation(&t);
    }
    sti_free(t.factors);
    sti_free(t.boot);
    sti_free(scratch);
    return st;
}
