/* Hostile keys, secret and for evaluation. */
#define _GNU_SOURCE /* memfd_create */
#include "seal_file.h"

#include "base/memory.h"
#include "seal/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const char *path)
{
    sti_secret_key secret;
    sti_eval_bodies eval;
    if (sti_secret_key_read(path, &secret) == STINT_OK) {
        uint32_t *word = sti_alloc_array(secret.set->n + 1, 4, "fuzz");
        (void)sti_seal_phase(&secret, word);
        sti_free(word);
        sti_secret_key_fini(&secret);
    }
    if (sti_eval_bodies_read(path, &eval) == STINT_OK)
        sti_eval_bodies_fini(&eval);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    for (int kind = 0; kind < 3; kind++) {
        const int fd = kind < 2 ? fuzz_seal_file("SE"[kind], data, size, path)
                                : fuzz_memory_file(path);
        if (kind == 2)
            fuzz_write(fd, data, size);
        use(path);
        close(fd);
    }
    return 0;
}
