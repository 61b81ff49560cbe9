/* Any bytes as a packed block: refused, or unpacked into arrays of exactly the size
 * that the head says, with every instruction set alike, and into bfloat16 as the same
 * numbers rounded. Checksums would keep all but
 * whole blocks out, so they are made to fit first, unless the last byte is odd. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/file.h"
#include "codec/codec_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { COUNT_MAX = 1 << 20 };

/* Entries that lie inside and whose chunks do: their sums, then that of the head. */
static void mend(uint8_t *block, size_t size)
{
    sti_codec_head head;
    const size_t skip = offsetof(sti_codec_head, bytes);
    memcpy(&head, block, sizeof head);
    if (head.rank < 1 || head.rank > STINT_CODEC_RANK || head.front_bytes > size ||
        head.front_bytes < sizeof head)
        return;
    for (int i = 0; i < head.rank; i++)
        if (head.dim[i] < 0 || head.dim[i] > COUNT_MAX)
            return;
    const sti_codec_layout l = sti_codec_layout_of(head.rank, head.dim);
    size_t at = head.front_bytes;
    for (int64_t i = 0; i < l.chunks; i++) {
        const size_t back = (size_t)(l.chunks - i) * sizeof(sti_codec_entry);
        sti_codec_entry e;
        if (back > head.front_bytes - sizeof head)
            return;
        memcpy(&e, block + head.front_bytes - back, sizeof e);
        if (e.bytes > size - at)
            break;
        e.checksum = sti_crc32c(0, block + at, e.bytes);
        memcpy(block + head.front_bytes - back, &e, sizeof e);
        at += e.bytes;
    }
    head.checksum = sti_crc32c(0, block + skip, head.front_bytes - skip);
    memcpy(block, &head, sizeof head);
}

static stint_status unpack_as(sti_isa isa, const stint_codec_desc *desc,
                              const uint8_t *block, size_t size, const uint8_t *mask,
                              const sti_codec_sink *sink)
{
    const sti_team team = {1};
    size_t bytes;
    sti_isa_force(isa);
    if ((sink->x ? sti_codec_workspace_bytes : sti_codec_parts_workspace_bytes)(
            desc, team.threads, &bytes) != STINT_OK)
        abort();
    void *workspace = malloc(bytes);
    if (!workspace)
        exit(1);
    const stint_status status =
        sti_codec_unpack(&team, desc, block, size, mask, sink, workspace, bytes);
    free(workspace);
    return status;
}

static void unpack_block(const uint8_t *block, size_t size)
{
    stint_codec_info info;
    if (stint_codec_info_read(block, size, &info) != STINT_OK || info.count > COUNT_MAX)
        return;
    stint_codec_desc desc = {.rank = info.rank, .threads = 1};
    memcpy(desc.dim, info.dim, sizeof desc.dim);
    const size_t bytes = (size_t)info.count * sizeof(float);
    float *x = malloc(bytes ? bytes : 1), *y = malloc(bytes ? bytes : 1);
    sti_bf16 *half = malloc(bytes ? bytes / 2 : 1);
    uint8_t *bits = malloc((size_t)info.count / 8 + 1);
    if (!x || !y || !half || !bits)
        exit(1);
    memset(bits, 0x6d, (size_t)info.count / 8 + 1);
    sti_codec_head head;
    memcpy(&head, block, sizeof head);
    const uint8_t *mask = info.masked ? bits : NULL;
    const uint8_t *kind = head.flags & STI_CODEC_KINDS ? bits : NULL;
    const sti_codec_sink to_x = {.x = x, .kind = kind}, to_y = {.x = y, .kind = kind};
    const stint_status a = unpack_as(STI_ISA_REF, &desc, block, size, mask, &to_x);
    const stint_status b = unpack_as(STI_ISA_AVX512, &desc, block, size, mask, &to_y);
    if (a != b || (a == STINT_OK && bytes && memcmp(x, y, bytes) != 0))
        abort();
    const sti_codec_sink to_half = {.x16 = half, .kind = kind};
    if (unpack_as(STI_ISA_AVX2, &desc, block, size, mask, &to_half) != a)
        abort();
    for (int64_t i = 0; i < info.count && a == STINT_OK; i++)
        if (half[i] != sti_bf16_from_f32(x[i]))
            abort();
    free(half);
    free(x);
    free(y);
    free(bits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < sizeof(sti_codec_head)) {
        unpack_block(data, size);
        return 0;
    }
    uint8_t *copy = malloc(size);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    if (data[size - 1] % 2 == 0)
        mend(copy, size);
    unpack_block(copy, size);
    free(copy);
    return 0;
}
