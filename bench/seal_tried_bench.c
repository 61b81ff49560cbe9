/* Ways to fewer operations that docs/seal.md gives figures of, and that the program
 * does not have: a choice of two bits with one key switch, two key bits a step, two
 * outputs from one rotation.
 *
 *   build/release/bench/seal_tried_bench [CIRCUIT.seal...]
 *
 * Of each circuit: how many pairs of cells are choices of which nothing else needs a
 * part. Of each set: CPU time of the parts of eight bootstraps (the least of some
 * rounds), and from these what each way would take. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "kernel/fft/negacyclic.h"
#include "kernel/torus/torus.h"
#include "seal/circuit.h"
#include "seal/sets.h"

enum { LANES = 8, STEPS = 16, ROUNDS = 12 };

static void check(stint_status status)
{
    if (status == STINT_OK)
        return;
    fprintf(stderr, "seal_tried_bench: %s\n", stint_last_error());
    exit(1);
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- choices ---- */

/* The wire that `cell`, an (a and b) xor c, needs of the other half of a choice: a ^ c
 * in s & (a ^ c) ^ c, or s & a in !s & b ^ (s & a). -1: it is none. */
static int64_t other_half(const sti_circuit *c, const sti_cell *cell)
{
    const int64_t base = 1 + c->input_bits, third = cell->in[2] >> 1;
    for (int k = 0; k < 2; k++) {
        const int64_t wire = cell->in[k] >> 1;
        const sti_cell *from = wire >= base ? &c->cell[wire - base] : NULL;
        if (from && from->kind == STI_CELL_XOR &&
            (from->in[0] >> 1 == third || from->in[1] >> 1 == third))
            return wire;
    }
    const sti_cell *from = third >= base ? &c->cell[third - base] : NULL;
    for (int k = 0; from && from->kind == STI_CELL_AND && k < 4; k++)
        if (from->in[k & 1] == (cell->in[k >> 1] ^ 1))
            return third;
    return -1;
}

static void count_choices(const char *path)
{
    sti_circuit c;
    int64_t choices = 0;
    check(sti_circuit_read(path, &c));
    const int64_t wires = 1 + c.input_bits + c.cells;
    int32_t *uses = sti_alloc_array(wires, sizeof *uses, "bench");
    for (int64_t i = 0; i < c.cells; i++)
        for (int k = 0; k < sti_cell_row_of(c.cell[i].kind)->inputs; k++)
            uses[c.cell[i].in[k] >> 1]++;
    for (int64_t o = 0; o < c.output_bits; o++)
        uses[c.result[o] >> 1]++;
    for (int64_t i = 0; i < c.cells; i++) {
        const int64_t half =
            c.cell[i].kind == STI_CELL_AND_XOR ? other_half(&c, &c.cell[i]) : -1;
        choices += half >= 0 && uses[half] == 1;
    }
    printf("%s: %lld cells, %.1f %% of them halves of choices\n", path,
           (long long)c.cells,
           c.cells > 0 ? 200.0 * (double)choices / (double)c.cells : 0.0);
    sti_free(uses);
    sti_circuit_fini(&c);
}

/* ---- parts of a bootstrap ---- */

typedef struct parts {
    double digits, forward, product, inverse, turn; /* seconds of a step of eight */
    double swap8, swap4; /* of the key switch of eight and of four */
} parts;

typedef struct trial {
    const sti_seal_set *set;
    double *factors, *key, *spectrum, *product, *table;
    uint32_t *sum, *swap, *out;
    int32_t *digit;
} trial;

static void trial_init(trial *t, const sti_seal_set *set)
{
    const int64_t size = set->size, cols = set->k + 1, rows = cols * set->levels;
    const int64_t swap = (int64_t)set->k * size * set->ks_levels * (set->n + 1);
    t->set = set;
    t->factors = sti_alloc(sti_negacyclic_factors(size) * 8, "bench");
    t->key = sti_alloc_array(3 * STEPS * size * rows * cols, 8, "bench");
    t->spectrum = sti_alloc_array(rows * size * LANES, 8, "bench");
    t->product = sti_alloc_array(2 * cols * size * LANES, 8, "bench");
    t->table = sti_alloc_array(4 * size, 8, "bench");
    t->sum = sti_alloc_array(cols * size * LANES, 4, "bench");
    t->digit = sti_alloc_array(set->levels * size * LANES, 4, "bench");
    t->swap = sti_alloc_array(swap, 4, "bench");
    t->out = sti_alloc_array((int64_t)LANES * (set->n + 1), 4, "bench");
    sti_negacyclic_fill(size, t->factors);
    for (int64_t i = 0; i < 3 * STEPS * size * rows * cols; i++)
        t->key[i] = (double)(i % 1021);
    for (int64_t i = 0; i < cols * size * LANES; i++)
        t->sum[i] = (uint32_t)i * 2654435761u;
    for (int64_t i = 0; i < swap; i++)
        t->swap[i] = (uint32_t)i * 2246822519u;
    for (int64_t i = 0; i < 2 * size; i++) {
        t->table[2 * i] = cos(3.14159265358979 * (double)i / (double)size) - 1;
        t->table[2 * i + 1] = sin(3.14159265358979 * (double)i / (double)size);
    }
}

static void trial_fini(trial *t)
{
    sti_free(t->factors);
    sti_free(t->key);
    sti_free(t->spectrum);
    sti_free(t->product);
    sti_free(t->table);
    sti_free(t->sum);
    sti_free(t->digit);
    sti_free(t->swap);
    sti_free(t->out);
}

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define FAST \
    __attribute__((target_clones("avx512f", "avx2,fma", "default"), optimize("O3")))
#else
#define FAST
#endif

/* Columns of a product times X^by - 1, another amount in each lane: what two key bits a
 * step need three times. `to` gets them added. */
FAST static void turn(int64_t m, int64_t cols, const double *table, const int32_t *by,
                      const double *from, double *to)
{
    for (int64_t f = 0; f < m; f++) {
        double re[LANES], im[LANES];
        for (int g = 0; g < LANES; g++) {
            const int64_t at = (int64_t)by[g] * (2 * f + 1) & (4 * m - 1);
            re[g] = table[2 * at];
            im[g] = table[2 * at + 1];
        }
        for (int64_t c = 0; c < cols; c++) {
            const double *x = from + (c * m + f) * 2 * LANES;
            double *y = to + (c * m + f) * 2 * LANES;
            for (int g = 0; g < LANES; g++) {
                y[g] += x[g] * re[g] - x[LANES + g] * im[g];
                y[LANES + g] += x[g] * im[g] + x[LANES + g] * re[g];
            }
        }
    }
}

static void lower(double *least, double begin, int round, double times)
{
    const double seconds = (cpu_seconds() - begin) / times;
    if (round == 0 || seconds < *least)
        *least = seconds;
}

static void time_step(trial *t, int round, parts *p)
{
    const sti_seal_set *set = t->set;
    const int64_t size = set->size, cols = set->k + 1, rows = cols * set->levels;
    static const int32_t by[LANES] = {1, 33, 65, 77, 99, 111, 173, 205};
    double at = cpu_seconds();
    for (int i = 0; i < STEPS * cols; i++)
        sti_torus_rotate_digits(size, set->levels, set->bits,
                                t->sum + i % cols * size * LANES, by, t->digit);
    lower(&p->digits, at, round, STEPS);
    at = cpu_seconds();
    for (int i = 0; i < STEPS * rows; i++)
        sti_negacyclic_forward(size, t->factors,
                               t->digit + i % set->levels * size * LANES,
                               t->spectrum + i % rows * size * LANES);
    lower(&p->forward, at, round, STEPS);
    at = cpu_seconds();
    for (int i = 0; i < 3 * STEPS; i++) /* three keys' parts, as two bits a step have */
        sti_negacyclic_product(size / 2, (int)rows, (int)cols, t->spectrum,
                               t->key + i * size * rows * cols, t->product);
    lower(&p->product, at, round, 3 * STEPS);
    at = cpu_seconds();
    for (int i = 0; i < STEPS; i++)
        turn(size / 2, cols, t->table, by, t->product,
             t->product + cols * size * LANES);
    lower(&p->turn, at, round, STEPS);
    at = cpu_seconds();
    for (int i = 0; i < STEPS * cols; i++)
        sti_negacyclic_inverse_add(size, t->factors,
                                   t->product + i % cols * size * LANES,
                                   t->sum + i % cols * size * LANES);
    lower(&p->inverse, at, round, STEPS);
}

static void time_set(const sti_seal_set *set, parts *p)
{
    const int64_t count = (int64_t)set->k * set->size;
    trial t;
    trial_init(&t, set);
    for (int round = 0; round < ROUNDS; round++) {
        time_step(&t, round, p);
        for (int lanes = 8; lanes >= 4; lanes -= 4) {
            const double at = cpu_seconds();
            sti_torus_key_switch(count, set->ks_levels, set->ks_bits, set->n + 1, lanes,
                                 t.sum, t.swap, t.out);
            lower(lanes == 8 ? &p->swap8 : &p->swap4, at, round, 1);
        }
    }
    trial_fini(&t);
}

static double rotation(const sti_seal_set *set, const parts *p)
{
    return set->n * (p->digits + p->forward + p->product + p->inverse);
}

int main(int argc, char **argv)
{
    /* Bits of 1/16 and sum and carry of one rotation: the cheapest set for 2^-64, see
     * seal_params.py --tried. */
    static const sti_seal_set adders = {"adders", 790, 3, 512, 2, 10, 5, 3, 0, 0, 0};
    double p64_ms = 0, swap64_ms = 0;
    const sti_seal_set *set;
    parts p;
    for (int i = 1; i < argc; i++)
        count_choices(argv[i]);
    for (int s = 0; (set = sti_seal_set_at(s)) != NULL; s++) {
        time_set(set, &p);
        const double whole = rotation(set, &p) + p.swap8;
        printf("%s, eight at once: %.2f ms; digits %.2f, forward %.2f, products %.2f, "
               "inverse %.2f, key switch %.2f (of four %.2f)\n",
               set->name, 1e3 * whole, 1e3 * set->n * p.digits,
               1e3 * set->n * p.forward, 1e3 * set->n * p.product,
               1e3 * set->n * p.inverse, 1e3 * p.swap8, 1e3 * p.swap4);
        printf("  a choice with one key switch: %.3f of the time\n",
               (rotation(set, &p) + p.swap4) / whole);
        const double pair =
            p.digits + p.forward + 3 * p.product + 3 * p.turn + p.inverse;
        printf("  two key bits a step: %.3f of the time\n",
               (set->n / 2 * pair + p.swap8) / whole);
        p64_ms = 1e3 * whole;
        swap64_ms = 1e3 * p.swap8;
    }
    time_set(&adders, &p);
    const double one = 1e3 * (rotation(&adders, &p) + p.swap8);
    printf("a set for two outputs at 2^-64: %.2f ms, %.2f of p64's; sum and carry "
           "%.2f of two bootstraps of p64\n",
           one, one / p64_ms, (one + swap64_ms) / (2 * p64_ms));
    return 0;
}
