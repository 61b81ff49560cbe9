/* Hostile Bristol Fashion: whatever is read must be written and read again. */
#include <stdlib.h>

#include "seal/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_imported made, again;
    sti_circuit circuit;
    sti_text text = {0};
    if (sti_bristol_read("fuzz.txt", (const char *)data, size, &made) != STINT_OK)
        return 0;
    const sti_circuit_source source = {
        &made.netlist, made.input, made.output, made.inputs, made.outputs,
        made.result,   1};
    if (sti_circuit_map(&source, &circuit) != STINT_OK)
        abort();
    if (sti_bristol_write(&circuit, &text) != STINT_OK ||
        sti_bristol_read("back.txt", text.data, text.length, &again) != STINT_OK)
        abort();
    sti_imported_fini(&again);
    sti_text_fini(&text);
    sti_circuit_fini(&circuit);
    sti_imported_fini(&made);
    return 0;
}
