/* Hostile circuit files: whatever opens must run, be measured and be put in order. */
#define _GNU_SOURCE /* memfd_create */
#include "seal_file.h"

#include "base/memory.h"
#include "seal/waves.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const char *path)
{
    sti_circuit c;
    sti_circuit_shape shape;
    sti_waves waves;
    int64_t cells = 0;
    if (sti_circuit_read(path, &c) != STINT_OK)
        return;
    uint64_t *in = sti_alloc_array(c.input_bits, sizeof *in, "fuzz");
    uint64_t *out = sti_alloc_array(c.output_bits, sizeof *out, "fuzz");
    if (sti_circuit_simulate(&c, in, out) != STINT_OK ||
        sti_circuit_measure(&c, NULL, &shape) != STINT_OK ||
        sti_waves_begin(&c, 8, false, &waves) != STINT_OK)
        abort();
    for (; sti_waves_next(&waves); sti_waves_done(&waves))
        cells += waves.cells;
    if (cells != c.cells)
        abort();
    sti_waves_fini(&waves);
    sti_free(in);
    sti_free(out);
    sti_circuit_fini(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = fuzz_seal_file('C', data, size, path);
    use(path);
    close(fd);
    fd = fuzz_memory_file(path);
    fuzz_write(fd, data, size);
    use(path);
    close(fd);
    return 0;
}
