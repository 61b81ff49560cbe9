#include "seal/share.h"

#include "base/fail.h"

enum { CELLS_A_THREAD = 8 };

typedef struct sharer {
    const sti_circuit *circuit;
    const int *threads;
    int all_threads;
    int64_t load[STI_SHARE_RANKS];
    sti_share *out;
} sharer;

/* Inputs of the cell that this rank makes. */
static int made_here(const sharer *s, const sti_cell *cell, int rank)
{
    const int64_t base = 1 + s->circuit->input_bits;
    const int inputs = sti_cell_row_of((sti_cell_kind)cell->kind)->inputs;
    int count = 0;
    for (int i = 0; i < inputs; i++) {
        const int64_t from = (int64_t)(cell->in[i] >> 1) - base;
        count += from >= 0 && s->out->owner[from] == rank;
    }
    return count;
}

/* The rank with room that makes most of the inputs; of those the one with most room. */
static int choose(const sharer *s, const sti_cell *cell, int64_t cells)
{
    int best = -1, best_made = 0;
    double best_load = 0;
    for (int r = 0; r < s->out->ranks; r++) {
        const int64_t room =
            (cells * s->threads[r] + s->all_threads - 1) / s->all_threads;
        const int made = made_here(s, cell, r);
        const double load = (double)s->load[r] / s->threads[r];
        if (s->load[r] >= room)
            continue;
        if (best < 0 || made > best_made || (made == best_made && load < best_load)) {
            best = r;
            best_made = made;
            best_load = load;
        }
    }
    return best;
}

static void want(sharer *s, int64_t wire, int rank)
{
    const int64_t from = wire - 1 - s->circuit->input_bits;
    if (from < 0 || s->out->owner[from] == rank)
        return;
    const uint64_t bit = UINT64_C(1) << rank;
    s->out->sent += !(s->out->wanted[from] & bit);
    s->out->wanted[from] |= bit;
}

static void share_wave(sharer *s, const sti_waves *waves)
{
    for (int r = 0; r < s->out->ranks; r++)
        s->load[r] = 0;
    for (int64_t i = 0; i < waves->cells; i++) {
        const sti_cell *cell = &s->circuit->cell[waves->cell[i]];
        const int inputs = sti_cell_row_of((sti_cell_kind)cell->kind)->inputs;
        const int rank = choose(s, cell, waves->cells);
        s->out->owner[waves->cell[i]] = (uint8_t)rank;
        if (++s->load[rank] > s->out->most)
            s->out->most = s->load[rank];
        for (int k = 0; k < inputs; k++)
            want(s, cell->in[k] >> 1, rank);
    }
}

stint_status sti_share_make(const sti_circuit *circuit, const int *threads, int ranks,
                            bool by_levels, sti_share *out)
{
    sharer s = {.circuit = circuit, .threads = threads, .out = out};
    sti_waves waves;
    stint_status st = STINT_E_MEMORY;
    *out = (sti_share){.ranks = ranks};
    if (ranks > STI_SHARE_RANKS)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%d ranks: a circuit is shared by at most %d", ranks,
                        STI_SHARE_RANKS);
    for (int r = 0; r < ranks; r++)
        s.all_threads += threads[r];
    out->width = (int64_t)CELLS_A_THREAD * s.all_threads;
    out->owner = sti_alloc_array(circuit->cells, 1, "seal.share");
    out->wanted = sti_alloc_array(circuit->cells, sizeof *out->wanted, "seal.share");
    if (!out->owner || !out->wanted)
        goto out;
    STI_TRY(sti_waves_begin(circuit, out->width, by_levels, &waves));
    while (sti_waves_next(&waves)) {
        share_wave(&s, &waves);
        sti_waves_done(&waves);
    }
    sti_waves_fini(&waves);
    for (int64_t o = 0; o < circuit->output_bits; o++)
        want(&s, circuit->result[o] >> 1, 0);
out:
    if (st != STINT_OK)
        sti_share_fini(out);
    return st;
}

void sti_share_fini(sti_share *share)
{
    sti_free(share->owner);
    sti_free(share->wanted);
    *share = (sti_share){0};
}
