/* Bit columns, and which images a run is trained on. */
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "trust/memory_estimate.h"

static int64_t words_of(int64_t runs)
{
    return (runs + 63) / 64;
}

size_t sti_memory_bits_bytes(int64_t runs, int64_t train, int64_t test)
{
    return (size_t)(words_of(runs) * (2 * train + test)) * sizeof(uint64_t) +
           (size_t)(train + test) * sizeof(int32_t);
}

stint_status sti_memory_bits_init(sti_memory_bits *b, int64_t runs, int64_t train,
                                  int64_t test)
{
    const size_t column = (size_t)words_of(runs) * sizeof(uint64_t);
    *b = (sti_memory_bits){
        .runs = runs, .words = words_of(runs), .train = train, .test = test};
    b->member = sti_alloc_array(train, column, "membership");
    b->train_right = sti_alloc_array(train, column, "right answers");
    b->test_right = sti_alloc_array(test, column, "right answers");
    b->train_label = sti_alloc_array(train, sizeof *b->train_label, "labels");
    b->test_label = sti_alloc_array(test, sizeof *b->test_label, "labels");
    if (b->member && b->train_right && b->test_right && b->train_label && b->test_label)
        return STINT_OK;
    sti_memory_bits_fini(b);
    return STINT_E_MEMORY;
}

void sti_memory_bits_fini(sti_memory_bits *b)
{
    sti_free(b->member);
    sti_free(b->train_right);
    sti_free(b->test_right);
    sti_free(b->train_label);
    sti_free(b->test_label);
    *b = (sti_memory_bits){0};
}

void sti_memory_set(uint64_t *columns, int64_t words, int64_t column, int64_t run)
{
    columns[column * words + run / 64] |= UINT64_C(1) << (run % 64);
}

void sti_memory_members(uint64_t seed, int64_t run, int64_t train, int64_t members,
                        int32_t *order, uint8_t *member_out)
{
    sti_shuffle(seed, STI_STREAM_SUBSET, (uint64_t)run, train, order);
    memset(member_out, 0, (size_t)train);
    for (int64_t i = 0; i < members; i++)
        member_out[order[i]] = 1;
}
