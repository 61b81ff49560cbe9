#include "data/clicks_blocks.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"

enum { SUM = 4, WHOLE = STI_CLICKS_BLOCK + SUM };

static int64_t blocks_of(int64_t body_bytes)
{
    return (body_bytes + STI_CLICKS_BLOCK - 1) / STI_CLICKS_BLOCK;
}

int64_t sti_clicks_blocks_bytes(int64_t body_bytes)
{
    return body_bytes + SUM * blocks_of(body_bytes);
}

size_t sti_clicks_blocks_memory(int64_t body_bytes)
{
    return (size_t)blocks_of(body_bytes) / 8 + 1;
}

static uint32_t crc_begin(int64_t block)
{
    uint8_t number[8];
    for (int i = 0; i < 8; i++)
        number[i] = (uint8_t)(block >> 8 * i);
    return sti_crc32c(0, number, sizeof number);
}

static void put_sum(uint32_t crc, uint8_t out[SUM])
{
    for (int i = 0; i < SUM; i++)
        out[i] = (uint8_t)(crc >> 8 * i);
}

/* ---- writing ---- */

stint_status sti_clicks_blocks_end(sti_clicks_blocks *b)
{
    uint8_t sum[SUM];
    if (b->filled == 0)
        return STINT_OK;
    put_sum(b->crc, sum);
    b->block++;
    b->filled = 0;
    return b->put(b->user, sum, SUM);
}

stint_status sti_clicks_blocks_add(sti_clicks_blocks *b, const void *bytes,
                                   size_t n_bytes)
{
    const char *at = bytes;
    stint_status st = STINT_OK;
    while (n_bytes > 0 && st == STINT_OK) {
        const size_t room = STI_CLICKS_BLOCK - b->filled;
        const size_t n = n_bytes < room ? n_bytes : room;
        if (b->filled == 0)
            b->crc = crc_begin(b->block);
        b->crc = sti_crc32c(b->crc, at, n);
        b->filled += n;
        st = b->put(b->user, at, n);
        if (st == STINT_OK && b->filled == STI_CLICKS_BLOCK)
            st = sti_clicks_blocks_end(b);
        at += n;
        n_bytes -= n;
    }
    return st;
}

/* ---- reading ---- */

static stint_status read_block(const sti_clicks *c, int64_t block, size_t bytes,
                               uint8_t room[WHOLE])
{
    const int64_t offset = c->samples_at + block * WHOLE;
    uint8_t sum[SUM];
    const stint_status st = sti_read_at(c->fd, c->path, offset, room, bytes + SUM);
    if (st != STINT_OK)
        return st;
    put_sum(sti_crc32c(crc_begin(block), room, bytes), sum);
    if (memcmp(sum, room + bytes, SUM) != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: the file of ranks is damaged (block %" PRId64
                        ", bytes %" PRId64 " and on: its checksum is wrong); remove it "
                        "and count again",
                        c->path, block, offset);
    atomic_fetch_or(&c->looked_at[block / 8], (uint8_t)(1u << block % 8));
    return STINT_OK;
}

static bool is_known(const sti_clicks *c, int64_t block)
{
    return atomic_load(&c->looked_at[block / 8]) >> block % 8 & 1;
}

stint_status sti_clicks_blocks_read(const sti_clicks *c, int64_t at, void *out,
                                    size_t n_bytes)
{
    uint8_t room[WHOLE];
    char *to = out;
    const int64_t body = c->ids_at + (int64_t)c->ids_bytes - c->samples_at;
    stint_status st = STINT_OK;
    if (!c->looked_at) /* of a version without sums */
        return sti_read_at(c->fd, c->path, at, out, n_bytes);
    for (int64_t k = at - c->samples_at; n_bytes > 0 && st == STINT_OK;) {
        const int64_t block = k / STI_CLICKS_BLOCK, skip = k % STI_CLICKS_BLOCK;
        const int64_t left = body - block * STI_CLICKS_BLOCK;
        const size_t bytes = left < STI_CLICKS_BLOCK ? (size_t)left : STI_CLICKS_BLOCK;
        const size_t rest = bytes - (size_t)skip, n = n_bytes < rest ? n_bytes : rest;
        if (is_known(c, block)) {
            st = sti_read_at(c->fd, c->path, c->samples_at + block * WHOLE + skip, to,
                             n);
        } else {
            st = read_block(c, block, bytes, room);
            if (st == STINT_OK)
                memcpy(to, room + skip, n);
        }
        to += n;
        n_bytes -= n;
        k += (int64_t)n;
    }
    return st;
}
