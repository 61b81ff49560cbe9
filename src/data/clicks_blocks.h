/* Inside the data room: the body of a file of ranks in blocks, each followed by a
 * CRC-32C of its number and bytes. A block is looked at when something of it is read
 * for the first time; from then on what is wanted of it is read alone. */
#ifndef STI_DATA_CLICKS_BLOCKS_H
#define STI_DATA_CLICKS_BLOCKS_H

#include "data/clicks.h"

enum { STI_CLICKS_BLOCK = 16384 };

/* Bytes in the file of so many bytes of body. */
int64_t sti_clicks_blocks_bytes(int64_t body_bytes);
/* Memory for what was looked at. */
size_t sti_clicks_blocks_memory(int64_t body_bytes);

/* Writing: bytes of the body from its front on go through here, to `put`. */
typedef stint_status sti_clicks_put_fn(void *user, const void *bytes, size_t n_bytes);
typedef struct sti_clicks_blocks {
    sti_clicks_put_fn *put;
    void *user;
    int64_t block; /* its number, bytes of it so far, and the sum of these */
    size_t filled;
    uint32_t crc;
} sti_clicks_blocks;
stint_status sti_clicks_blocks_add(sti_clicks_blocks *blocks, const void *bytes,
                                   size_t n_bytes);
/* The last block, which may be short. */
stint_status sti_clicks_blocks_end(sti_clicks_blocks *blocks);

/* Bytes of the body from offset `at` of the file on, as if it had no sums. Threads may
 * call it at once. STINT_E_INPUT: a block is damaged (it is named); STINT_E_IO. */
stint_status sti_clicks_blocks_read(const sti_clicks *clicks, int64_t at, void *out,
                                    size_t n_bytes);

#endif
