/* Bootstraps on one core, in batches of 64 of which eight share a call:
 *
 *   build/release/bench/seal_speed_bench [SET [SECONDS]]
 *
 * SET is p128, p64, or tfhers: TFHE-rs's default set, which is in this program alone,
 * to compare with programs that have it. Prints CPU time, so that other work on the
 * machine shows less: milliseconds a bootstrap, of a batch and of a single gate. A NAND
 * of each is decrypted and checked. bench/seal_bench.sh runs it in turns with TFHEpp.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "seal/bootstrap.h"

/* n, k, N, digits, KS digits and noise of DEFAULT_PARAMETERS, tfhe-rs 1.7 (boolean). */
static const sti_seal_set tfhers = {
    "tfhers", 805, 3, 512, 2, 10, 5, 3, 5.8615896642671336e-06, 9.315272083503367e-10,
    132};

enum { BATCH = 64, LANES = STI_BOOTSTRAP_LANES };

typedef struct bench {
    const sti_seal_set *set;
    sti_secret_key secret;
    sti_eval_key eval;
    uint32_t *in[2], *sum, *out; /* [BATCH][n + 1] */
    int bit[2][BATCH];
    void *scratch;
} bench;

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(stint_status status)
{
    if (status == STINT_OK)
        return;
    fprintf(stderr, "seal_speed_bench: %s\n", stint_last_error());
    exit(1);
}

static void fill(bench *b)
{
    const int64_t width = b->set->n + 1;
    sti_secure_random random;
    check(sti_secure_random_init(&random));
    for (int side = 0; side < 2; side++) {
        b->in[side] = sti_alloc_array(BATCH * width, 4, "bench");
        for (int i = 0; i < BATCH; i++) {
            uint32_t *to = b->in[side] + i * width;
            b->bit[side][i] = i >> side & 1;
            sti_secure_random_fill(&random, to, (size_t)b->set->n * 4);
            to[b->set->n] = sti_seal_encrypt_bit(&b->secret, to,
                                                 (uint32_t)b->bit[side][i], &random);
        }
    }
    b->sum = sti_alloc_array(BATCH * width, 4, "bench");
    b->out = sti_alloc_array(BATCH * width, 4, "bench");
    b->scratch = sti_alloc(sti_bootstrap_scratch_bytes(b->set), "bench");
}

static void run_nands(bench *b, int from, int count)
{
    const int64_t width = b->set->n + 1;
    const sti_cell cell = {.kind = STI_CELL_AND};
    for (int i = from; i < from + count; i++) {
        const uint32_t *in[STI_CELL_INPUTS] = {b->in[0] + i * width,
                                               b->in[1] + i * width};
        sti_cell_sum(b->set, &cell, in, b->sum + i * width);
    }
    sti_bootstrap(&b->eval, count, b->sum + from * width, b->out + from * width,
                  b->scratch);
}

static int wrong(const bench *b)
{
    int count = 0;
    for (int i = 0; i < BATCH; i++)
        count += (int)(1 - (sti_seal_phase(&b->secret, b->out + i * (b->set->n + 1)) >>
                            31)) != (b->bit[0][i] & b->bit[1][i]);
    return count;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "p128";
    const double seconds = argc > 2 ? atof(argv[2]) : 3;
    static const sti_team one = {1};
    bench b = {.set = &tfhers};
    sti_eval_bodies bodies;
    if (strcmp(name, tfhers.name) != 0)
        check(sti_seal_set_find(name, &b.set));
    check(sti_secret_key_make(b.set, &b.secret));
    check(sti_eval_bodies_make(&b.secret, &one, &bodies));
    check(sti_eval_key_unpack(&bodies, &one, &b.eval));
    fill(&b);
    run_nands(&b, 0, LANES);
    const double begin = cpu_seconds();
    double spent = 0, best = 1e9;
    int64_t batches = 0;
    for (; spent < seconds || batches < 2; batches++) {
        const double at = cpu_seconds();
        for (int i = 0; i < BATCH; i += LANES)
            run_nands(&b, i, LANES);
        const double now = cpu_seconds();
        best = now - at < best ? now - at : best;
        spent = now - begin;
    }
    double few[2] = {1e9, 1e9}; /* a call of one, and of STI_BOOTSTRAP_FEW */
    for (int round = 0; round < 60; round++)
        for (int k = 0; k < 2; k++) {
            const double at = cpu_seconds();
            run_nands(&b, 0, k == 0 ? 1 : STI_BOOTSTRAP_FEW);
            const double now = cpu_seconds() - at;
            few[k] = now < few[k] ? now : few[k];
        }
    printf("%s: %.3f ms a bootstrap in a batch (best %.3f), %.3f alone, %.3f of %d, "
           "%d of %d wrong\n",
           name, spent * 1e3 / (double)(batches * BATCH), best * 1e3 / BATCH,
           few[0] * 1e3, few[1] * 1e3 / STI_BOOTSTRAP_FEW, STI_BOOTSTRAP_FEW, wrong(&b),
           BATCH);
    return wrong(&b) != 0;
}
