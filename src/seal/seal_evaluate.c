#include "seal/seal_evaluate.h"

#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"

enum { LANES = STI_BOOTSTRAP_LANES };

/* Calls of eight lanes that a wave has for each thread. */
enum { CALLS_A_THREAD = 1 };

typedef struct evaluator {
    const sti_evaluation *e;
    sti_waves waves;
    int64_t width; /* words of a ciphertext */
    int64_t call_cells;
    uint32_t *slot; /* [slots][width] */
    uint8_t *scratch;
    size_t scratch_bytes; /* of a thread */
    uint32_t *sum;        /* [threads][8][width] */
    int64_t *busy_ns;     /* [threads] */
} evaluator;

static uint32_t *slot_of(const evaluator *v, int64_t wire)
{
    return v->slot + v->waves.slot[wire] * v->width;
}

/* Cells of a call: eight, or as many as leave no thread without work. */
static int64_t cells_a_call(int64_t cells, int threads)
{
    const int64_t share = (cells + threads - 1) / threads;
    return share < LANES ? share : LANES;
}

/* A piece is a call. Where it takes lanes of which some have no cell, these repeat the
 * first. */
static void run_call(void *arg, int64_t piece, int worker)
{
    const evaluator *v = arg;
    const sti_circuit *c = v->e->circuit;
    const int64_t base = 1 + c->input_bits, begin = sti_clock_ns();
    const int64_t first = v->call_cells * piece, left = v->waves.cells - first;
    const int64_t cells = left < v->call_cells ? left : v->call_cells;
    const int64_t lanes = cells > STI_BOOTSTRAP_FEW ? LANES : cells;
    uint32_t *sum = v->sum + worker * LANES * v->width;
    for (int64_t g = 0; g < lanes; g++) {
        const sti_cell *cell = &c->cell[v->waves.cell[first + (g < cells ? g : 0)]];
        const uint32_t *in[STI_CELL_INPUTS] = {NULL};
        for (int i = 0; i < sti_cell_row_of((sti_cell_kind)cell->kind)->inputs; i++)
            in[i] = slot_of(v, cell->in[i] >> 1);
        sti_cell_sum(v->e->key->set, cell, in, sum + g * v->width);
    }
    sti_bootstrap(v->e->key, lanes, sum, sum,
                  v->scratch + (size_t)worker * v->scratch_bytes);
    for (int64_t g = 0; g < cells; g++)
        memcpy(slot_of(v, base + v->waves.cell[first + g]), sum + g * v->width,
               (size_t)v->width * 4);
    v->busy_ns[worker] += sti_clock_ns() - begin;
}

static stint_status run_waves(evaluator *v)
{
    const sti_evaluation *e = v->e;
    int64_t done = 0;
    while (sti_waves_next(&v->waves)) {
        const stint_status st = sti_stop_asked();
        if (st != STINT_OK)
            return sti_fail(st,
                            "stopped after %lld of %lld bootstraps; nothing was "
                            "written",
                            (long long)done, (long long)e->circuit->cells);
        v->call_cells = cells_a_call(v->waves.cells, e->team->threads);
        sti_team_run(e->team, (v->waves.cells + v->call_cells - 1) / v->call_cells,
                     run_call, v);
        done += v->waves.cells;
        sti_waves_done(&v->waves);
        if (e->progress)
            e->progress(e->user, done, e->circuit->cells);
    }
    return STINT_OK;
}

static void put_inputs(const evaluator *v, const sti_ciphertexts *in)
{
    v->slot[v->width - 1] = UINT32_C(0xE0000000); /* false, without noise */
    for (int64_t i = 0; i < in->bits; i++) {
        uint32_t *to = v->slot + (1 + i) * v->width;
        sti_seal_input_mask(in, i, to);
        to[v->width - 1] = in->word[i];
    }
}

static void take_outputs(const evaluator *v, uint32_t *out)
{
    const sti_circuit *c = v->e->circuit;
    for (int64_t o = 0; o < c->output_bits; o++) {
        const uint32_t *from = slot_of(v, c->result[o] >> 1);
        for (int64_t j = 0; j < v->width; j++)
            out[o * v->width + j] = c->result[o] & 1 ? 0 - from[j] : from[j];
    }
}

static stint_status begin(evaluator *v)
{
    const sti_evaluation *e = v->e;
    const int threads = e->team->threads;
    sti_wave_facts facts;
    stint_status st = sti_seal_walk(e->circuit, threads, e->by_levels, &facts);
    if (st != STINT_OK)
        return st;
    v->width = sti_seal_ciphertext_words(e->key->set);
    v->scratch_bytes = sti_bootstrap_scratch_bytes(e->key->set);
    v->slot = sti_alloc_array(facts.slots * v->width, 4, "seal.slots");
    v->scratch = sti_alloc_array(threads, v->scratch_bytes, "seal.scratch");
    v->sum = sti_alloc_array(threads * LANES * v->width, 4, "seal.sums");
    v->busy_ns = sti_alloc_array(threads, sizeof *v->busy_ns, "seal.busy");
    if (!v->slot || !v->scratch || !v->sum || !v->busy_ns)
        return STINT_E_MEMORY;
    return sti_waves_begin(e->circuit, (int64_t)LANES * CALLS_A_THREAD * threads,
                           e->by_levels, &v->waves);
}

stint_status sti_seal_evaluate(const sti_evaluation *e, const sti_ciphertexts *in,
                               uint32_t *out, sti_evaluation_times *times_out)
{
    evaluator v = {.e = e};
    stint_status st = begin(&v);
    STI_TRY(st);
    put_inputs(&v, in);
    const int64_t start = sti_clock_ns();
    STI_TRY(run_waves(&v));
    const double seconds = sti_seconds_since(start);
    double busy = 0;
    for (int i = 0; i < e->team->threads; i++)
        busy += (double)v.busy_ns[i] * 1e-9;
    *times_out = (sti_evaluation_times){
        .seconds = seconds,
        .busy = seconds > 0 ? busy / (seconds * e->team->threads) : 0};
    take_outputs(&v, out);
out:
    sti_waves_fini(&v.waves);
    sti_free(v.slot);
    sti_free(v.scratch);
    sti_free(v.sum);
    sti_free(v.busy_ns);
    return st;
}

stint_status sti_seal_walk(const sti_circuit *circuit, int threads, bool by_levels,
                           sti_wave_facts *facts_out)
{
    sti_waves waves;
    stint_status st = sti_waves_begin(
        circuit, (int64_t)LANES * CALLS_A_THREAD * threads, by_levels, &waves);
    *facts_out = (sti_wave_facts){0};
    if (st != STINT_OK)
        return st;
    while (sti_waves_next(&waves)) {
        const int64_t size = cells_a_call(waves.cells, threads);
        facts_out->calls += (waves.cells + size - 1) / size;
        facts_out->narrow +=
            size < LANES ? (waves.cells + size - 1) / size : waves.cells % LANES != 0;
        /* A wave has at most a full call for each thread. */
        if (size > STI_BOOTSTRAP_FEW)
            facts_out->rounds++;
        else
            facts_out->ones += size;
        sti_waves_done(&waves);
    }
    facts_out->slots = waves.slots;
    sti_waves_fini(&waves);
    return STINT_OK;
}

void sti_seal_account(const sti_circuit *circuit, const sti_seal_set *set, int threads,
                      int64_t slots, sti_account *account_out)
{
    static const char *const libraries[] = {"ld-", "libc.", "libm.", "libnettle.",
                                            NULL};
    /* The file of the key is there already when a run asks, and has its part. */
    const sti_account_process process = {.libraries = libraries,
                                         .apart_bytes = sti_alloc_now_bytes()};
    const size_t width = (size_t)sti_seal_ciphertext_words(set) * 4;
    const size_t wires = (size_t)(1 + circuit->input_bits + circuit->cells);
    const size_t file = (size_t)sti_seal_eval_file_bytes(set);
    const size_t output = (size_t)circuit->output_bits * width;
    const size_t rows = (size_t)set->levels * (size_t)(set->k + 1);
    const size_t unpacking = (rows * (size_t)(set->k + 1) * 4 + 96) * (size_t)set->size;
    *account_out = (sti_account){0};
    sti_account_add(account_out, "evaluation key", "unpacked", sti_eval_key_bytes(set));
    sti_account_add(account_out, "circuit", "cells, their order, their slots",
                    (size_t)circuit->cells * sizeof(sti_cell) + wires * 52 +
                        (size_t)circuit->output_bits * 4);
    sti_account_add(account_out, "ciphertexts", "inputs, and results still needed",
                    (size_t)slots * width + (size_t)circuit->input_bits * 4);
    sti_account_add(account_out, "threads' scratch", "",
                    (size_t)threads * (sti_bootstrap_scratch_bytes(set) + 8 * width));
    /* The results, and the file made of them: growing and whole. */
    sti_account_add(account_out, "results", "and their file", 4 * output);
    const size_t key_then =
        sti_eval_key_bytes(set) + file + (size_t)threads * unpacking;
    sti_account_raise(account_out, "unpacking of the key", "at the begin", key_then);
    sti_account_add_process(account_out, &process, threads);
}
