/* Hostile safetensors files: whatever opens must be consistent, and every tensor must
 * be readable to its last byte. The same bytes as a model file must be refused or
 * described. */
#define _GNU_SOURCE /* memfd_create */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "stint/train.h"
#include "store/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const sti_tensor_file *file)
{
    for (int64_t i = 0; i < sti_tensor_file_count(file); i++) {
        const sti_tensor_row *row = sti_tensor_file_row(file, i);
        const sti_tensor_row *found = sti_tensor_file_find(file, row->name);
        if (!found || found->bytes != row->bytes)
            abort();
        void *bytes = sti_alloc(row->bytes, "fuzz");
        if (bytes && sti_tensor_file_read(file, row, bytes) != STINT_OK)
            abort();
        sti_free(bytes);
    }
    (void)sti_tensor_file_text(file, "recipe");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    sti_tensor_file *file;
    stint_model_file *model;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (sti_tensor_file_open(path, &file) == STINT_OK) {
        read_all(file);
        sti_tensor_file_close(file);
    }
    if (stint_model_open(path, &model) == STINT_OK) {
        stint_model_facts facts;
        stint_model_describe(model, &facts);
        stint_model_close(model);
    }
    close(fd);
    return 0;
}
