#include "seal/seal_evaluate.h"

#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"

enum { LANES = STI_BOOTSTRAP_LANES };

/* What a communicator takes beside the buffers of its messages. */
#define NETWORK_BYTES      ((size_t)320 << 10)
#define NETWORK_RANK_BYTES ((size_t)8 << 10)

typedef struct evaluator {
    const sti_evaluation *e;
    sti_waves waves;
    int64_t width; /* words of a ciphertext */
    int32_t *mine; /* [mines]: cells of the wave that this rank computes */
    int64_t mines, call_cells;
    sti_cut_wires *wires; /* NULL: alone */
    uint32_t *slot;       /* [slots][width] */
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
    const int64_t first = v->call_cells * piece, left = v->mines - first;
    const int64_t cells = left < v->call_cells ? left : v->call_cells;
    const int64_t lanes = cells > STI_BOOTSTRAP_FEW ? LANES : cells;
    uint32_t *sum = v->sum + worker * LANES * v->width;
    for (int64_t g = 0; g < lanes; g++) {
        const sti_cell *cell = &c->cell[v->mine[first + (g < cells ? g : 0)]];
        const uint32_t *in[STI_CELL_INPUTS] = {NULL};
        for (int i = 0; i < sti_cell_row_of((sti_cell_kind)cell->kind)->inputs; i++)
            in[i] = slot_of(v, cell->in[i] >> 1);
        sti_cell_sum(v->e->key->set, cell, in, sum + g * v->width);
    }
    sti_bootstrap(v->e->key, lanes, sum, sum,
                  v->scratch + (size_t)worker * v->scratch_bytes);
    for (int64_t g = 0; g < cells; g++)
        memcpy(slot_of(v, base + v->mine[first + g]), sum + g * v->width,
               (size_t)v->width * 4);
    v->busy_ns[worker] += sti_clock_ns() - begin;
}

/* What this rank computes of the wave. */
static void pick_mine(evaluator *v)
{
    const sti_evaluation *e = v->e;
    v->mines = 0;
    for (int64_t i = 0; i < v->waves.cells; i++) {
        const int32_t cell = v->waves.cell[i];
        if (!e->comm || e->share->owner[cell] == sti_comm_rank(e->comm))
            v->mine[v->mines++] = cell;
    }
}

/* Wait for what others have made of the wave's inputs. */
static stint_status need_inputs(evaluator *v)
{
    const sti_circuit *c = v->e->circuit;
    stint_status st = STINT_OK;
    for (int64_t i = 0; v->wires && i < v->mines && st == STINT_OK; i++) {
        const sti_cell *cell = &c->cell[v->mine[i]];
        const int inputs = sti_cell_row_of((sti_cell_kind)cell->kind)->inputs;
        for (int k = 0; k < inputs && st == STINT_OK; k++) {
            const int64_t from = (int64_t)(cell->in[k] >> 1) - 1 - c->input_bits;
            if (from >= 0)
                st = sti_cut_wires_need(v->wires, from);
        }
    }
    return st;
}

static double busy_seconds(const evaluator *v)
{
    double busy = 0;
    for (int i = 0; i < v->e->team->threads; i++)
        busy += (double)v->busy_ns[i] * 1e-9;
    return busy;
}

static void run_mine(evaluator *v)
{
    const sti_evaluation *e = v->e;
    const int64_t begin = sti_clock_ns();
    const double busy = e->times ? busy_seconds(v) : 0;
    v->call_cells = cells_a_call(v->mines, e->team->threads);
    sti_team_run(e->team, (v->mines + v->call_cells - 1) / v->call_cells, run_call, v);
    if (e->times)
        sti_level_times_add(e->times, v->mine, v->mines, sti_seconds_since(begin),
                            busy_seconds(v) - busy, e->team->threads);
}

static stint_status run_wave(evaluator *v)
{
    stint_status st = STINT_OK;
    pick_mine(v);
    STI_TRY(sti_cut_wires_expect(v->wires));
    STI_TRY(need_inputs(v));
    if (v->mines > 0)
        run_mine(v);
    st = sti_cut_wires_send(v->wires);
out:
    return st;
}

static stint_status run_waves(evaluator *v)
{
    const sti_evaluation *e = v->e;
    int64_t done = 0;
    stint_status st = STINT_OK;
    while (sti_waves_next(&v->waves)) {
        if ((st = sti_stop_asked()) != STINT_OK)
            return sti_fail(st,
                            "stopped after %lld of %lld bootstraps; nothing was "
                            "written",
                            (long long)done, (long long)e->circuit->cells);
        STI_TRY(run_wave(v));
        done += v->waves.cells;
        sti_waves_done(&v->waves);
        if (e->progress)
            e->progress(e->user, done, e->circuit->cells);
    }
    st = sti_cut_wires_flush(v->wires);
out:
    return st;
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
    const int64_t width = e->comm ? e->share->width : (int64_t)LANES * threads;
    sti_wave_facts facts;
    stint_status st =
        sti_seal_walk(e->circuit, threads, (int)(width / LANES), e->by_levels, &facts);
    if (st != STINT_OK)
        return st;
    v->width = sti_seal_ciphertext_words(e->key->set);
    v->scratch_bytes = sti_bootstrap_scratch_bytes(e->key->set);
    v->slot = sti_alloc_array(facts.slots * v->width, 4, "seal.slots");
    v->scratch = sti_alloc_array(threads, v->scratch_bytes, "seal.scratch");
    v->sum = sti_alloc_array(threads * LANES * v->width, 4, "seal.sums");
    v->busy_ns = sti_alloc_array(threads, sizeof *v->busy_ns, "seal.busy");
    v->mine = sti_alloc_array(width, sizeof *v->mine, "seal.waves");
    if (!v->slot || !v->scratch || !v->sum || !v->busy_ns || !v->mine)
        return STINT_E_MEMORY;
    st = sti_waves_begin(e->circuit, width, e->by_levels, &v->waves);
    return st == STINT_OK ? sti_cut_wires_create(e->comm, e->share, &v->waves, v->width,
                                                 v->slot, &v->wires)
                          : st;
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
    const double busy = busy_seconds(&v);
    *times_out = (sti_evaluation_times){
        .seconds = seconds,
        .busy = seconds > 0 ? busy / (seconds * e->team->threads) : 0};
    if (!e->comm || sti_comm_rank(e->comm) == 0)
        take_outputs(&v, out);
out:
    if (st != STINT_OK && e->comm)
        sti_comm_give_up(e->comm, st);
    sti_cut_wires_destroy(v.wires);
    sti_waves_fini(&v.waves);
    sti_free(v.mine);
    sti_free(v.slot);
    sti_free(v.scratch);
    sti_free(v.sum);
    sti_free(v.busy_ns);
    return st;
}

stint_status sti_seal_walk(const sti_circuit *circuit, int threads, int all_threads,
                           bool by_levels, sti_wave_facts *facts_out)
{
    sti_waves waves;
    stint_status st =
        sti_waves_begin(circuit, (int64_t)LANES * all_threads, by_levels, &waves);
    *facts_out = (sti_wave_facts){0};
    if (st != STINT_OK)
        return st;
    while (sti_waves_next(&waves)) {
        const int64_t cells = (waves.cells * threads + all_threads - 1) / all_threads;
        const int64_t size = cells_a_call(cells, threads);
        facts_out->calls += (cells + size - 1) / size;
        facts_out->narrow +=
            size < LANES ? (cells + size - 1) / size : cells % LANES != 0;
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

/* A communicator, and the table of who computes what. */
static size_t network_bytes(const sti_circuit *circuit, const sti_share *share,
                            const sti_comm *comm)
{
    return NETWORK_BYTES + (size_t)share->ranks * NETWORK_RANK_BYTES +
           (size_t)circuit->cells * 10 + (comm ? sti_comm_shared_bytes(comm) : 0);
}

void sti_seal_account(const sti_circuit *circuit, const sti_seal_set *set, int threads,
                      int64_t slots, const sti_share *share, const sti_comm *comm,
                      sti_account *account_out)
{
    static const char *const libraries[] = {"ld-", "libc.", "libm.", "libnettle.",
                                            NULL};
    /* The file of the key is there already when a run asks, and has its part. */
    const sti_account_process process = {
        .libraries = libraries,
        .apart_bytes = sti_alloc_now_bytes() + (comm ? sti_comm_shared_bytes(comm) : 0),
        .keeps_others = comm && sti_comm_start_peak_bytes(comm) > 0};
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
    const size_t network = share ? network_bytes(circuit, share, comm) : 0;
    if (share)
        sti_account_add(account_out, "network",
                        "wires on their way, buffers of sockets",
                        network + sti_cut_wires_bytes(share->ranks, share->most,
                                                      sti_seal_ciphertext_words(set)));
    sti_account_add(account_out, "threads' scratch", "",
                    (size_t)threads * (sti_bootstrap_scratch_bytes(set) + 8 * width));
    /* The results, and the file made of them: growing and whole. */
    sti_account_add(account_out, "results", "and their file", 4 * output);
    const size_t key_then =
        sti_eval_key_bytes(set) + file + (size_t)threads * unpacking + network;
    sti_account_raise(account_out, "unpacking of the key", "at the begin", key_then);
    sti_account_add_process(account_out, &process, threads);
    const size_t start = comm ? sti_comm_start_peak_bytes(comm) : 0;
    sti_account_raise(account_out, "starting MPI", "once: what its libraries gave back",
                      start + start / STI_ACCOUNT_RESERVE_SHARE);
}
