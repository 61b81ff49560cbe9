/* Public calls of whoever has the evaluation key: plan and run. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "seal/seal_evaluate.h"
#include "seal/seal_priv.h"

static void hash_words(const uint32_t *word, int64_t count, char hex[65])
{
    sti_sha256 state;
    sti_sha256_init(&state);
    for (int64_t i = 0; i < count; i++) {
        const uint8_t little[4] = {(uint8_t)word[i], (uint8_t)(word[i] >> 8),
                                   (uint8_t)(word[i] >> 16), (uint8_t)(word[i] >> 24)};
        sti_sha256_add(&state, little, sizeof little);
    }
    sti_sha256_hex(&state, hex);
}

/* ---- run ---- */

typedef struct job {
    const stint_seal_run_desc *desc;
    sti_team team;
    sti_circuit circuit;
    sti_eval_bodies bodies;
    sti_eval_key key;
    sti_ciphertexts in, out;
} job;

static stint_status check_memory(job *j, stint_seal_run_result *result)
{
    sti_wave_facts facts;
    sti_account account;
    stint_status st =
        sti_seal_walk(&j->circuit, j->team.threads, j->desc->by_levels, &facts);
    if (st != STINT_OK)
        return st;
    sti_seal_account(&j->circuit, j->bodies.set, j->team.threads, facts.slots,
                     &account);
    result->planned_peak_bytes = account.total_bytes;
    return sti_account_check(&account, j->desc->memory_bytes, NULL);
}

static stint_status load(job *j, stint_seal_run_result *result)
{
    stint_status st = sti_threads_choose(j->desc->threads, &j->team.threads, NULL);
    STI_TRY(st);
    STI_TRY(sti_circuit_read(j->desc->circuit, &j->circuit));
    STI_TRY(sti_eval_bodies_read(j->desc->eval_key, &j->bodies));
    STI_TRY(sti_ciphertexts_read(j->desc->in, true, j->bodies.set, j->bodies.id,
                                 &j->circuit, &j->in));
    STI_TRY(check_memory(j, result));
    STI_TRY(sti_eval_key_unpack(&j->bodies, &j->team, &j->key));
    sti_eval_bodies_fini(&j->bodies);
    sti_memory_trim();
out:
    return st;
}

static stint_status evaluate(job *j, stint_seal_run_result *result)
{
    const sti_evaluation e = {.circuit = &j->circuit,
                              .key = &j->key,
                              .team = &j->team,
                              .by_levels = j->desc->by_levels,
                              .progress = j->desc->progress,
                              .user = j->desc->user};
    sti_evaluation_times times;
    const int64_t words =
        j->circuit.output_bits * sti_seal_ciphertext_words(j->key.set);
    stint_status st;
    j->out = (sti_ciphertexts){.set = j->key.set, .bits = j->circuit.output_bits};
    memcpy(j->out.key_id, j->key.id, sizeof j->out.key_id);
    memcpy(j->out.circuit_id, j->circuit.id, sizeof j->out.circuit_id);
    j->out.word = sti_alloc_array(words, 4, "seal.words");
    if (!j->out.word)
        return STINT_E_MEMORY;
    STI_TRY(sti_seal_evaluate(&e, &j->in, j->out.word, &times));
    STI_TRY(sti_ciphertexts_write(&j->out, j->desc->out));
    result->bootstraps = j->circuit.cells;
    result->seconds = times.seconds;
    result->busy = times.busy;
    hash_words(j->out.word, words, result->output_sha256);
out:
    return st;
}

stint_status stint_seal_run(const stint_seal_run_desc *desc,
                            stint_seal_run_result *result_out)
{
    job j = {.desc = desc};
    stint_seal_run_result result = {0};
    stint_status st = load(&j, &result);
    if (st == STINT_OK)
        st = evaluate(&j, &result);
    sti_ciphertexts_fini(&j.in);
    sti_ciphertexts_fini(&j.out);
    sti_eval_bodies_fini(&j.bodies);
    sti_eval_key_fini(&j.key);
    sti_circuit_fini(&j.circuit);
    result.peak_rss_bytes = sti_process_peak_bytes();
    if (st == STINT_OK)
        *result_out = result;
    return st;
}

/* ---- plan ---- */

/* log2 of the sum of the probabilities that single cells fail: no less than that of any
 * failing. */
static double program_fail_log2(const sti_circuit_shape *shape, const sti_seal_set *set)
{
    double most = -(double)INFINITY, sum = 0;
    for (int k = 0; k < STI_CELL_KINDS; k++)
        if (shape->of_kind[k] > 0)
            most = fmax(most, sti_seal_fail_log2(set, (sti_cell_kind)k));
    for (int k = 0; k < STI_CELL_KINDS; k++)
        if (shape->of_kind[k] > 0)
            sum += (double)shape->of_kind[k] *
                   exp2(sti_seal_fail_log2(set, (sti_cell_kind)k) - most);
    return sum > 0 ? most + log2(sum) : -(double)INFINITY;
}

/* Records the first budget that is not kept. */
static bool judge(const stint_seal_plan_desc *desc, const sti_account *account,
                  const stint_seal_plan_result *r)
{
    if (sti_account_check(account, desc->memory_bytes, NULL) != STINT_OK)
        return false;
    if (desc->seconds > 0 && r->seconds > desc->seconds) {
        sti_fail(
            STINT_E_BUDGET,
            "time: needs %s, budget %s; fits with --time %.0fs, or with more threads "
            "where the circuit is wide",
            sti_time_text(r->seconds), sti_time_text(desc->seconds), ceil(r->seconds));
        return false;
    }
    if (desc->fail_log2 < 0 && r->fail_log2 > desc->fail_log2) {
        sti_fail(STINT_E_BUDGET,
                 "probability of a wrong result: 2^%.1f, budget 2^%.1f; %s",
                 r->fail_log2, desc->fail_log2,
                 desc->set && strcmp(desc->set, "p64") == 0
                     ? "--set-name p128 has less"
                     : "there is no set with less: a smaller circuit has");
        return false;
    }
    return true;
}

static stint_status plan_circuit(const stint_seal_plan_desc *desc,
                                 const sti_circuit *circuit, stint_seal_plan_result *r)
{
    const sti_seal_set *set;
    sti_circuit_shape shape;
    sti_wave_facts facts;
    sti_account account;
    double eight_s = 0, one_s = 0;
    int threads;
    stint_status st = sti_seal_set_find(desc->set ? desc->set : "p128", &set);
    STI_TRY(st);
    STI_TRY(sti_threads_choose(desc->threads, &threads, NULL));
    STI_TRY(sti_circuit_measure(circuit, NULL, &shape));
    STI_TRY(sti_seal_walk(circuit, threads, desc->by_levels, &facts));
    STI_TRY(sti_bootstrap_measure(set, &eight_s, &one_s));
    sti_seal_account(circuit, set, threads, facts.slots, &account);
    *r = (stint_seal_plan_result){
        .bootstraps = circuit->cells,
        .depth = shape.depth,
        .key_bytes = sti_seal_eval_file_bytes(set),
        .input_bytes = 4 * circuit->input_bits,
        .peak_bytes = account.total_bytes,
        .seconds = (double)facts.rounds * eight_s + (double)facts.ones * one_s,
        .fail_log2 = program_fail_log2(&shape, set),
        .narrow_share =
            facts.calls > 0 ? (double)facts.narrow / (double)facts.calls : 0};
    r->fits = judge(desc, &account, r);
out:
    return st;
}

stint_status stint_seal_plan(const stint_seal_plan_desc *desc,
                             stint_seal_plan_result *result_out)
{
    sti_circuit circuit = {0};
    stint_status st = sti_circuit_read(desc->circuit, &circuit);
    if (st == STINT_OK)
        st = plan_circuit(desc, &circuit, result_out);
    sti_circuit_fini(&circuit);
    return st;
}
