/* Circuits run on encrypted bits: the evaluator's side, without files. */
#ifndef STI_SEAL_SEAL_EVALUATE_H
#define STI_SEAL_SEAL_EVALUATE_H

#include "base/account.h"
#include "seal/bootstrap.h"
#include "seal/waves.h"
#include "stint/seal.h"

typedef struct sti_evaluation {
    const sti_circuit *circuit;
    const sti_eval_key *key;
    const sti_team *team;
    bool by_levels;
    stint_seal_progress_fn *progress; /* may be NULL */
    void *user;
} sti_evaluation;

typedef struct sti_evaluation_times {
    double seconds, busy;
} sti_evaluation_times;

/* in [input_bits] with their masks made from the seed, out [output_bits][n + 1].
 * STINT_E_INTERRUPTED or _TERMINATED after stint_stop(). */
stint_status sti_seal_evaluate(const sti_evaluation *e, const sti_ciphertexts *in,
                               uint32_t *out, sti_evaluation_times *times_out);

/* What a walk through the waves tells. */
typedef struct sti_wave_facts {
    int64_t slots, calls, narrow; /* calls; those of fewer than eight cells */
    /* One after another on `threads` threads: calls that take eight lanes, and cells
     * that are done one by one. */
    int64_t rounds, ones;
} sti_wave_facts;
stint_status sti_seal_walk(const sti_circuit *circuit, int threads, bool by_levels,
                           sti_wave_facts *facts_out);

/* Peak memory of a run of the whole process. */
void sti_seal_account(const sti_circuit *circuit, const sti_seal_set *set, int threads,
                      int64_t slots, sti_account *account_out);

#endif
