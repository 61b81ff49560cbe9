/* Hostile ciphertexts, for a circuit of one bit and a key with an id of zeros. */
#define _GNU_SOURCE /* memfd_create */
#include "seal_file.h"

#include "base/memory.h"
#include "seal/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const char *path, bool inputs)
{
    static const uint8_t id[STI_SEAL_ID_BYTES];
    const sti_circuit circuit = {.input_bits = 1, .output_bits = 1};
    sti_ciphertexts c;
    const sti_seal_set *set;
    if (sti_seal_set_find("p64", &set) != STINT_OK)
        abort();
    if (sti_ciphertexts_read(path, inputs, set, id, &circuit, &c) != STINT_OK)
        return;
    uint32_t *mask = sti_alloc_array(set->n, 4, "fuzz");
    if (inputs)
        sti_seal_input_mask(&c, 0, mask);
    else
        mask[0] = c.word[set->n];
    sti_free(mask);
    sti_ciphertexts_fini(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    for (int kind = 0; kind < 3; kind++) {
        const int fd = kind < 2 ? fuzz_seal_file("IO"[kind], data, size, path)
                                : fuzz_memory_file(path);
        if (kind == 2)
            fuzz_write(fd, data, size);
        use(path, kind != 1);
        close(fd);
    }
    return 0;
}
