#include "seal/waves.h"

#include "base/fail.h"

static int inputs_of(const sti_cell *cell)
{
    return sti_cell_row_of((sti_cell_kind)cell->kind)->inputs;
}

/* Cells after each cell, and how often each wire is needed. */
static stint_status link_cells(sti_waves *w)
{
    const sti_circuit *c = w->circuit;
    const int64_t base = 1 + c->input_bits;
    for (int64_t i = 0; i < c->cells; i++)
        for (int k = 0; k < inputs_of(&c->cell[i]); k++) {
            const int64_t wire = c->cell[i].in[k] >> 1;
            w->uses[wire]++;
            if (wire >= base)
                w->first[wire - base + 1]++;
        }
    for (int64_t i = 0; i < c->cells; i++)
        w->first[i + 1] += w->first[i];
    w->next = sti_alloc_array(w->first[c->cells], sizeof *w->next, "seal.waves");
    int64_t *at = sti_alloc_array(c->cells, sizeof *at, "seal.waves");
    if (!w->next || !at) {
        sti_free(at);
        return STINT_E_MEMORY;
    }
    for (int64_t i = 0; i < c->cells; i++)
        for (int k = 0; k < inputs_of(&c->cell[i]); k++) {
            const int64_t from = (int64_t)(c->cell[i].in[k] >> 1) - base;
            if (from >= 0)
                w->next[w->first[from] + at[from]++] = (int32_t)i;
        }
    sti_free(at);
    for (int64_t o = 0; o < c->output_bits; o++)
        w->uses[c->result[o] >> 1]++;
    return STINT_OK;
}

stint_status sti_waves_begin(const sti_circuit *circuit, int64_t width, bool by_levels,
                             sti_waves *out)
{
    const int64_t base = 1 + circuit->input_bits, wires = base + circuit->cells;
    stint_status st = STINT_E_MEMORY;
    *out = (sti_waves){.circuit = circuit, .width = width, .slots = base};
    out->first = sti_alloc_array(circuit->cells + 1, sizeof *out->first, "seal.waves");
    out->uses = sti_alloc_array(wires, sizeof *out->uses, "seal.waves");
    out->slot = sti_alloc_array(wires, sizeof *out->slot, "seal.waves");
    out->free_slot = sti_alloc_array(wires, sizeof *out->free_slot, "seal.waves");
    out->cell = sti_alloc_array(width, sizeof *out->cell, "seal.waves");
    if (!out->first || !out->uses || !out->slot || !out->free_slot || !out->cell)
        goto out;
    for (int64_t i = 0; i < wires; i++)
        out->slot[i] = i < base ? (int32_t)i : -1;
    STI_TRY(link_cells(out));
    out->uses[0]++; /* the constant stays */
    const sti_ready_graph graph = {circuit->cells, out->first, out->next};
    st = sti_ready_create(&graph, by_levels, &out->ready);
out:
    if (st != STINT_OK)
        sti_waves_fini(out);
    return st;
}

bool sti_waves_next(sti_waves *waves)
{
    const int64_t base = 1 + waves->circuit->input_bits;
    waves->cells = sti_ready_take(waves->ready, waves->width, waves->cell);
    for (int64_t i = 0; i < waves->cells; i++)
        waves->slot[base + waves->cell[i]] = waves->free_slots > 0
                                                 ? waves->free_slot[--waves->free_slots]
                                                 : (int32_t)waves->slots++;
    return waves->cells > 0;
}

void sti_waves_done(sti_waves *waves)
{
    const sti_circuit *c = waves->circuit;
    for (int64_t i = 0; i < waves->cells; i++) {
        const sti_cell *cell = &c->cell[waves->cell[i]];
        for (int k = 0; k < inputs_of(cell); k++) {
            const int64_t wire = cell->in[k] >> 1;
            if (--waves->uses[wire] == 0)
                waves->free_slot[waves->free_slots++] = waves->slot[wire];
        }
        sti_ready_done(waves->ready, waves->cell[i]);
    }
}

void sti_waves_fini(sti_waves *waves)
{
    sti_ready_destroy(waves->ready);
    sti_free(waves->first);
    sti_free(waves->next);
    sti_free(waves->uses);
    sti_free(waves->slot);
    sti_free(waves->free_slot);
    sti_free(waves->cell);
    *waves = (sti_waves){0};
}
