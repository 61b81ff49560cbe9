/* Hostile C: whatever compiles must map, and compute the same as gates and as cells. */
#include <stdlib.h>

#include "base/memory.h"
#include "seal/cc.h"
#include "seal/circuit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void map(const sti_imported *made)
{
    const sti_circuit_source source = {&made->netlist,
                                       made->input,
                                       made->output,
                                       made->inputs,
                                       made->outputs,
                                       made->result,
                                       1};
    sti_circuit circuit;
    if (sti_circuit_map(&source, &circuit) != STINT_OK)
        abort();
    uint64_t *in = sti_alloc_array(circuit.input_bits, sizeof *in, "fuzz");
    uint64_t *out = sti_alloc_array(circuit.output_bits, sizeof *out, "fuzz");
    for (int64_t i = 0; i < circuit.input_bits; i++)
        in[i] = (uint64_t)i * 0x9E3779B97F4A7C15u;
    if (sti_circuit_simulate(&circuit, in, out) != STINT_OK)
        abort();
    sti_free(in);
    sti_free(out);
    sti_circuit_fini(&circuit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_imported made;
    const sti_cc_options options = {
        .entry = "f", .max_steps = 20000, .max_gates = 50000};
    if (sti_cc_compile("fuzz.c", (const char *)data, size, &options, &made) != STINT_OK)
        return 0;
    if (made.netlist.nodes < 20000)
        map(&made);
    sti_imported_fini(&made);
    return 0;
}
