/* Any bytes as a packed block of doubles: refused, or unpacked into an array of exactly
 * the size that the head says. The checksum of head and exceptions is made to fit
 * first, unless the last byte is odd. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "stint/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 56, COUNT_MAX = 1 << 20 };

static void mend(uint8_t *block, size_t size)
{
    uint64_t bytes = size, inner;
    memcpy(block, "StintW\r\n\1\0\0\0", 12);
    memcpy(block + 16, &bytes, sizeof bytes);
    memcpy(&inner, block + 24, sizeof inner);
    if (inner > size - HEAD)
        return;
    const size_t rest = HEAD + (size_t)inner;
    const uint32_t sum =
        sti_crc32c(sti_crc32c(0, block + 16, HEAD - 16), block + rest, size - rest);
    memcpy(block + 12, &sum, sizeof sum);
}

static void unpack(const uint8_t *block, size_t size)
{
    stint_codec_info info;
    size_t bytes;
    if (stint_codec_f64_info_read(block, size, &info) != STINT_OK ||
        info.count > COUNT_MAX)
        return;
    stint_codec_desc desc = {.rank = info.rank};
    memcpy(desc.dim, info.dim, sizeof desc.dim);
    if (stint_codec_f64_workspace_bytes(&desc, &bytes) != STINT_OK)
        abort();
    double *x = malloc((size_t)info.count * sizeof *x + 1);
    void *workspace = malloc(bytes);
    if (x && workspace)
        (void)!stint_codec_f64_unpack(&desc, block, size, x, workspace, bytes);
    free(x);
    free(workspace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *block = malloc(size + 1);
    if (!block)
        return 0;
    if (size > 0)
        memcpy(block, data, size);
    if (size > HEAD && data[size - 1] % 2 == 0)
        mend(block, size);
    unpack(block, size);
    free(block);
    return 0;
}
