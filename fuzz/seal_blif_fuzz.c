/* Hostile BLIF, with and without clock cycles. */
#include <stdlib.h>

#include "seal/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int cycles = 0; cycles <= 3; cycles += 3) {
        sti_imported made;
        sti_circuit circuit;
        sti_text text = {0};
        if (sti_blif_read("fuzz.blif", (const char *)data, size, cycles, &made) !=
            STINT_OK)
            continue;
        const sti_circuit_source source = {
            &made.netlist, made.input, made.output, made.inputs, made.outputs,
            made.result,   1};
        if (sti_circuit_map(&source, &circuit) != STINT_OK ||
            sti_blif_write(&circuit, &text) != STINT_OK)
            abort();
        sti_text_fini(&text);
        sti_circuit_fini(&circuit);
        sti_imported_fini(&made);
    }
    return 0;
}
