/* Public call that measures bootstraps on this machine, with keys that are thrown away.
 */
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "seal/bootstrap.h"
#include "stint/seal.h"

enum { LANES = STI_BOOTSTRAP_LANES };

typedef struct bench {
    sti_secret_key secret;
    sti_eval_bodies bodies;
    sti_eval_key eval;
    sti_team team;
    uint32_t *in, *out; /* [threads][8][n + 1] */
    uint8_t *scratch;
    size_t scratch_bytes;
    int64_t count; /* of a call: 8 or 1 */
} bench;

static void run_call(void *arg, int64_t piece, int worker)
{
    const bench *b = arg;
    const int64_t at = worker * LANES * (b->eval.set->n + 1);
    (void)piece;
    sti_bootstrap(&b->eval, b->count, b->in + at, b->out + at,
                  b->scratch + (size_t)worker * b->scratch_bytes);
}

static stint_status prepare(const char *set_name, int threads, bench *b)
{
    const sti_seal_set *set;
    sti_secure_random random = {{0}};
    stint_status st = sti_seal_set_find(set_name, &set);
    STI_TRY(st);
    STI_TRY(sti_threads_choose(threads, &b->team.threads, NULL));
    STI_TRY(sti_secret_key_make(set, &b->secret));
    STI_TRY(sti_eval_bodies_make(&b->secret, &b->team, &b->bodies));
    STI_TRY(sti_eval_key_unpack(&b->bodies, &b->team, &b->eval));
    const int64_t words = b->team.threads * LANES * (int64_t)(set->n + 1);
    b->scratch_bytes = sti_bootstrap_scratch_bytes(set);
    b->in = sti_alloc_array(words, 4, "seal.bench");
    b->out = sti_alloc_array(words, 4, "seal.bench");
    b->scratch = sti_alloc_array(b->team.threads, b->scratch_bytes, "seal.bench");
    STI_TRY(b->in && b->out && b->scratch ? STINT_OK : STINT_E_MEMORY);
    STI_TRY(sti_secure_random_init(&random));
    /* Work does not depend on what is encrypted: any words will do. */
    sti_secure_random_fill(&random, b->in, (size_t)words * 4);
out:
    sti_secure_random_fini(&random);
    return st;
}

/* Calls until `seconds` are over, `pieces` of them side by side; seconds of one round.
 */
static double time_calls(bench *b, int64_t count, int64_t pieces, double seconds)
{
    int64_t rounds = 0;
    b->count = count;
    sti_team_run(&b->team, pieces, run_call, b);
    const int64_t begin = sti_clock_ns();
    do {
        sti_team_run(&b->team, pieces, run_call, b);
        rounds++;
    } while (sti_seconds_since(begin) < seconds);
    return sti_seconds_since(begin) / (double)rounds;
}

stint_status stint_seal_bench(const char *set, double seconds, int threads,
                              stint_seal_bench_result *result_out)
{
    bench b = {.count = LANES};
    stint_status st = prepare(set, threads, &b);
    if (st == STINT_OK) {
        const int64_t calls = b.team.threads;
        const double batch = time_calls(&b, LANES, calls, seconds);
        *result_out = (stint_seal_bench_result){
            .threads = b.team.threads,
            .bootstraps_per_s = (double)(LANES * calls) / batch,
            .single_s = time_calls(&b, 1, 1, seconds / 4)};
    }
    sti_secret_key_fini(&b.secret);
    sti_eval_bodies_fini(&b.bodies);
    sti_eval_key_fini(&b.eval);
    sti_free(b.in);
    sti_free(b.out);
    sti_free(b.scratch);
    return st;
}
