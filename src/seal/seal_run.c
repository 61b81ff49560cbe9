/* Public calls of whoever has the evaluation key: plan and run. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "net/net.h"
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
    sti_comm *comm; /* NULL: alone */
    sti_team team;
    sti_circuit circuit;
    sti_eval_bodies bodies;
    sti_eval_key key;
    sti_ciphertexts in, out;
    sti_share share;       /* of several ranks */
    sti_level_times times; /* where a report is wanted */
} job;

static stint_status read_files(job *j)
{
    stint_status st = sti_threads_choose(j->desc->threads, &j->team.threads, NULL);
    STI_TRY(st);
    STI_TRY(sti_circuit_read(j->desc->circuit, &j->circuit));
    STI_TRY(sti_eval_bodies_read(j->desc->eval_key, &j->bodies));
    st = sti_ciphertexts_read(j->desc->in, true, j->bodies.set, j->bodies.id,
                              &j->circuit, &j->in);
out:
    return st;
}

/* What all ranks must have alike, and how many threads each has. */
typedef struct identity {
    char hash[65];
    int32_t threads;
} identity;

static identity identity_of(const job *j)
{
    identity mine = {.threads = j->team.threads};
    sti_sha256 state;
    const uint8_t by_levels = j->desc->by_levels != 0;
    sti_sha256_init(&state);
    sti_sha256_add(&state, j->circuit.id, sizeof j->circuit.id);
    sti_sha256_add(&state, j->bodies.id, sizeof j->bodies.id);
    sti_sha256_add(&state, j->bodies.seed, sizeof j->bodies.seed);
    sti_sha256_add(&state, j->in.seed, sizeof j->in.seed);
    sti_sha256_add(&state, j->in.word, (size_t)j->in.bits * 4);
    sti_sha256_add(&state, &by_levels, 1);
    sti_sha256_hex(&state, mine.hash);
    return mine;
}

static stint_status compare(const identity *all, int ranks, int *threads_out)
{
    for (int r = 0; r < ranks; r++) {
        threads_out[r] = all[r].threads;
        if (memcmp(all[r].hash, all[0].hash, sizeof all[r].hash) != 0)
            return sti_fail(STINT_E_INPUT,
                            "rank %d has another circuit, key, input or --order than "
                            "rank 0; give all ranks the same",
                            r);
    }
    return STINT_OK;
}

/* Who computes what. */
static stint_status meet(job *j)
{
    const int ranks = sti_comm_size(j->comm);
    const identity mine = identity_of(j);
    identity *all = sti_alloc_array(ranks, sizeof *all, "seal.ranks");
    int *threads = sti_alloc_array(ranks, sizeof *threads, "seal.ranks");
    stint_status st =
        sti_comm_agree(j->comm, all && threads ? STINT_OK : STINT_E_MEMORY);
    STI_TRY(st);
    STI_TRY(sti_comm_gather_all(j->comm, &mine, sizeof mine, all));
    STI_TRY(compare(all, ranks, threads));
    st = sti_share_make(&j->circuit, threads, ranks, j->desc->by_levels, &j->share);
out:
    sti_free(all);
    sti_free(threads);
    return st;
}

static stint_status check_memory(job *j, stint_seal_run_result *result)
{
    const int all_threads =
        j->comm ? (int)(j->share.width / STI_BOOTSTRAP_LANES) : j->team.threads;
    sti_wave_facts facts;
    sti_account account;
    stint_status st = sti_seal_walk(&j->circuit, j->team.threads, all_threads,
                                    j->desc->by_levels, &facts);
    if (st != STINT_OK)
        return st;
    sti_seal_account(&j->circuit, j->bodies.set, j->team.threads, facts.slots,
                     j->comm ? &j->share : NULL, j->comm, &account);
    result->planned_peak_bytes = account.total_bytes;
    return sti_account_check(&account, j->desc->memory_bytes, NULL);
}

/* A place that cannot be written is better known before the run than after it. */
static stint_status try_place(const job *j)
{
    sti_writer *writer = NULL;
    stint_status st = STINT_OK;
    if (!j->comm || sti_comm_rank(j->comm) == 0)
        st = sti_writer_open(j->desc->out, &writer);
    sti_writer_abort(writer);
    return st;
}

/* All ranks go on, or none. */
static stint_status agree(const job *j, stint_status mine)
{
    return j->comm ? sti_comm_agree(j->comm, mine) : mine;
}

static stint_status load(job *j, stint_seal_run_result *result)
{
    stint_status st = agree(j, read_files(j));
    STI_TRY(st);
    if (j->comm)
        STI_TRY(agree(j, meet(j)));
    STI_TRY(agree(j, check_memory(j, result)));
    STI_TRY(agree(j, try_place(j)));
    if (j->desc->report)
        STI_TRY(sti_level_times_init(&j->circuit, &j->times));
    STI_TRY(agree(j, sti_eval_key_unpack(&j->bodies, &j->team, &j->key)));
    sti_eval_bodies_fini(&j->bodies);
    sti_memory_trim();
out:
    return st;
}

static stint_status finish(job *j, int64_t words, stint_seal_run_result *result)
{
    stint_status st = STINT_OK;
    const bool first = !j->comm || sti_comm_rank(j->comm) == 0;
    if (first)
        st = sti_ciphertexts_write(&j->out, j->desc->out);
    STI_TRY(agree(j, st));
    if (first)
        hash_words(j->out.word, words, result->output_sha256);
    if (j->comm)
        st = sti_comm_broadcast(j->comm, 0, result->output_sha256,
                                sizeof result->output_sha256);
out:
    return st;
}

static stint_status evaluate(job *j, stint_seal_run_result *result)
{
    const sti_evaluation e = {.circuit = &j->circuit,
                              .key = &j->key,
                              .team = &j->team,
                              .by_levels = j->desc->by_levels,
                              .comm = j->comm,
                              .share = &j->share,
                              .times = j->times.level ? &j->times : NULL,
                              .progress = j->desc->progress,
                              .user = j->desc->user};
    sti_evaluation_times times;
    const int64_t words =
        j->circuit.output_bits * sti_seal_ciphertext_words(j->key.set);
    stint_status st = STINT_OK;
    j->out = (sti_ciphertexts){.set = j->key.set, .bits = j->circuit.output_bits};
    memcpy(j->out.key_id, j->key.id, sizeof j->out.key_id);
    memcpy(j->out.circuit_id, j->circuit.id, sizeof j->out.circuit_id);
    j->out.word = sti_alloc_array(words, 4, "seal.words");
    STI_TRY(agree(j, j->out.word ? STINT_OK : STINT_E_MEMORY));
    STI_TRY(sti_seal_evaluate(&e, &j->in, j->out.word, &times));
    STI_TRY(finish(j, words, result));
    result->bootstraps = j->circuit.cells;
    result->seconds = times.seconds;
    result->busy = times.busy;
    result->ranks = j->comm ? sti_comm_size(j->comm) : 1;
out:
    return st;
}

stint_status stint_seal_run(const stint_seal_run_desc *desc,
                            stint_seal_run_result *result_out)
{
    job j = {.desc = desc, .comm = sti_net_comm(desc->net)};
    stint_seal_run_result result = {0};
    if (j.comm)
        sti_comm_set_context(j.comm, "encrypted run", 0);
    stint_status st = load(&j, &result);
    if (st == STINT_OK)
        st = evaluate(&j, &result);
    result.peak_rss_bytes = sti_process_peak_bytes();
    if (st == STINT_OK && desc->report) {
        const sti_seal_report report = {.circuit = &j.circuit,
                                        .name = sti_path_name(desc->circuit),
                                        .run = &result,
                                        .times = &j.times};
        st = sti_seal_report_write(&report, desc->report);
    }
    sti_ciphertexts_fini(&j.in);
    sti_ciphertexts_fini(&j.out);
    sti_eval_bodies_fini(&j.bodies);
    sti_eval_key_fini(&j.key);
    sti_circuit_fini(&j.circuit);
    sti_share_fini(&j.share);
    sti_level_times_fini(&j.times);
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

/* What travels between ranks of as many threads each; nothing of one. */
static stint_status share_of(const stint_seal_plan_desc *desc,
                             const sti_circuit *circuit, int threads, sti_share *out)
{
    int each[STI_SHARE_RANKS];
    if (desc->ranks <= 1)
        return STINT_OK;
    for (int r = 0; r < STI_SHARE_RANKS; r++)
        each[r] = threads;
    return sti_share_make(circuit, each, desc->ranks, desc->by_levels, out);
}

static stint_status plan_circuit(const stint_seal_plan_desc *desc,
                                 const sti_circuit *circuit, stint_seal_plan_result *r)
{
    const sti_seal_set *set;
    sti_circuit_shape shape;
    sti_wave_facts facts;
    sti_account account;
    sti_share share = {0};
    const int ranks = desc->ranks > 1 ? desc->ranks : 1;
    double eight_s = 0, one_s = 0;
    int threads;
    stint_status st = sti_seal_set_find(desc->set ? desc->set : "p128", &set);
    STI_TRY(st);
    STI_TRY(sti_threads_choose(desc->threads, &threads, NULL));
    STI_TRY(sti_circuit_measure(circuit, NULL, &shape));
    STI_TRY(share_of(desc, circuit, threads, &share));
    STI_TRY(sti_seal_walk(circuit, threads, threads * ranks, desc->by_levels, &facts));
    STI_TRY(sti_bootstrap_measure(set, &eight_s, &one_s));
    sti_seal_account(circuit, set, threads, facts.slots, ranks > 1 ? &share : NULL,
                     NULL, &account);
    *r = (stint_seal_plan_result){
        .bootstraps = circuit->cells,
        .depth = shape.depth,
        .key_bytes = sti_seal_eval_file_bytes(set),
        .input_bytes = 4 * circuit->input_bits,
        .peak_bytes = account.total_bytes,
        .seconds = (double)facts.rounds * eight_s + (double)facts.ones * one_s,
        .fail_log2 = program_fail_log2(&shape, set),
        .narrow_share =
            facts.calls > 0 ? (double)facts.narrow / (double)facts.calls : 0,
        .sent_bytes = share.sent * 4 * sti_seal_ciphertext_words(set)};
    r->fits = judge(desc, &account, r);
out:
    sti_share_fini(&share);
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
