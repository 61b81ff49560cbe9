/* Hostile compressed weights. The first bytes make a form of moderate size, the rest is
 * its stream: whatever is read must be of the form. Also as a compact model file. */
#define _GNU_SOURCE /* memfd_create */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "codec/weights.h"
#include "store/compact_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 16 };

static sti_weight_form form_of(const uint8_t *b)
{
    sti_weight_form f = {.rows = b[0], .columns = b[1], .taps = b[2], .channels = b[3]};
    f.elements = b[4] & 1;
    f.whole_columns = b[4] & 2;
    f.kernels = b[4] & 4;
    f.block_rows = b[5];
    f.block_columns = b[6];
    f.patterns = b[7] % 16;
    for (int i = 0; i < STI_WEIGHT_PATTERNS_MAX; i++)
        f.pattern[i] = (uint16_t)(b[8] + 37 * i);
    f.number = (sti_weight_number)(b[9] % 4);
    f.bits = b[10];
    f.rank = b[11];
    return f;
}

static void read_stream(const sti_weight_form *form, const uint8_t *bytes, size_t size)
{
    sti_weights_reader *reader;
    const int64_t count = form->rows * form->columns;
    float *x = sti_alloc_array(count, sizeof *x, "fuzz");
    if (!x || sti_weights_reader_create(bytes, size, &reader) != STINT_OK)
        abort();
    if (sti_weights_reader_next(reader, form, x) == STINT_OK) {
        float sum = 0; /* every number is there to be read */
        for (int64_t i = 0; i < count; i++)
            sum += x[i];
        (void)sum;
        (void)sti_weights_reader_end(reader);
    }
    sti_weights_reader_destroy(reader);
    sti_free(x);
}

static void open_file(const uint8_t *data, size_t size)
{
    char path[64];
    sti_tensor_file *file;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (sti_model_tensors_open(path, &file) == STINT_OK) {
        for (int64_t i = 0; i < sti_tensor_file_count(file); i++) {
            const sti_tensor_row *row = sti_tensor_file_row(file, i);
            void *bytes = sti_alloc(row->bytes, "fuzz");
            if (bytes && sti_tensor_file_read(file, row, bytes) != STINT_OK)
                abort();
            sti_free(bytes);
        }
        sti_tensor_file_close(file);
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_file(data, size);
    if (size < HEAD)
        return 0;
    const sti_weight_form form = form_of(data);
    if (sti_weight_form_is_sound(&form))
        read_stream(&form, data + HEAD, size - HEAD);
    return 0;
}
