#include "embed/row_batch.h"

#include <string.h>

#include "base/memory.h"

enum { DIGIT = 11, BUCKETS = 1 << DIGIT };

int64_t sti_row_batch_bytes(int64_t most)
{
    return 4 * (8 * most + 2);
}

stint_status sti_row_batch_init(sti_row_batch *batch, int64_t most)
{
    *batch = (sti_row_batch){.most = most};
    batch->rank = sti_alloc_array(most + 1, sizeof *batch->rank, "embed.batch");
    batch->start = sti_alloc_array(most + 1, sizeof *batch->start, "embed.batch");
    batch->vector = sti_alloc_array(most + 1, sizeof *batch->vector, "embed.batch");
    batch->place = sti_alloc_array(most + 1, sizeof *batch->place, "embed.batch");
    batch->scratch =
        sti_alloc_array(4 * most + 1, sizeof *batch->scratch, "embed.batch");
    return batch->rank && batch->start && batch->vector && batch->place &&
                   batch->scratch
               ? STINT_OK
               : STINT_E_MEMORY;
}

void sti_row_batch_fini(sti_row_batch *batch)
{
    sti_free(batch->rank);
    sti_free(batch->start);
    sti_free(batch->vector);
    sti_free(batch->place);
    sti_free(batch->scratch);
    *batch = (sti_row_batch){.most = 0};
}

/* One pass of a radix sort, which keeps the order of equal digits. item may be NULL. */
static void pass(const uint32_t *key, const uint32_t *item, int64_t n, int shift,
                 uint32_t *key_out, uint32_t *item_out)
{
    uint32_t at[BUCKETS] = {0}, sum = 0;
    for (int64_t i = 0; i < n; i++)
        at[key[i] >> shift & (BUCKETS - 1)]++;
    for (int b = 0; b < BUCKETS; b++) {
        const uint32_t here = at[b];
        at[b] = sum;
        sum += here;
    }
    for (int64_t i = 0; i < n; i++) {
        const uint32_t to = at[key[i] >> shift & (BUCKETS - 1)]++;
        key_out[to] = key[i];
        if (item)
            item_out[to] = item[i];
    }
}

static int passes_of(const uint32_t *key, int64_t n)
{
    uint32_t all = 0;
    int passes = 1;
    for (int64_t i = 0; i < n; i++)
        all |= key[i];
    while (passes * DIGIT < 32 && all >> passes * DIGIT)
        passes++;
    return passes;
}

void sti_row_batch_build(sti_row_batch *batch, const uint32_t *rank,
                         const uint32_t *vector, int64_t ids)
{
    const int64_t most = batch->most;
    uint32_t *key[2] = {batch->scratch, batch->scratch + most};
    uint32_t *item[2] = {batch->scratch + 2 * most, batch->scratch + 3 * most};
    const int passes = passes_of(rank, ids);
    int now = 0;
    memcpy(key[0], rank, (size_t)ids * sizeof *rank);
    for (int64_t i = 0; i < ids; i++)
        item[0][i] = (uint32_t)i;
    for (int p = 0; p < passes; p++, now = !now)
        pass(key[now], item[now], ids, p * DIGIT, key[!now], item[!now]);
    batch->ids = ids;
    batch->count = 0;
    for (int64_t i = 0; i < ids; i++) {
        if (i == 0 || key[now][i] != key[now][i - 1]) {
            batch->rank[batch->count] = key[now][i];
            batch->start[batch->count++] = (uint32_t)i;
        }
        batch->vector[i] = vector[item[now][i]];
        batch->place[item[now][i]] = (uint32_t)(batch->count - 1);
    }
    batch->start[batch->count] = (uint32_t)ids;
}

int64_t sti_row_batch_unique(uint32_t *rank, int64_t ids, uint32_t *scratch)
{
    uint32_t *key[2] = {rank, scratch};
    const int passes = passes_of(rank, ids);
    int64_t count = 0;
    int now = 0;
    for (int p = 0; p < passes; p++, now = !now)
        pass(key[now], NULL, ids, p * DIGIT, key[!now], NULL);
    uint32_t last = 0;
    for (int64_t i = 0; i < ids; i++) {
        const uint32_t one = key[now][i]; /* read before `rank` comes to its place */
        if (i == 0 || one != last)
            rank[count++] = one;
        last = one;
    }
    return count;
}
