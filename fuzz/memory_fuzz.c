/* A run of a memorisation study. The first two bytes choose how many images there are;
 * what is accepted must be as large as that and give zeros and ones. Then the same of a
 * text's passages, whose losses are any numbers. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trust/memory_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *answers, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (answers[i] > 1)
            abort();
}

static void read_losses(const uint8_t *data, size_t size,
                        const sti_memory_folder *folder)
{
    sti_memory_folder f = *folder;
    uint8_t member[256];
    float loss[256];
    f.losses = true;
    memset(member, 7, sizeof member);
    const sti_memory_answers a = {.member = member, .loss = loss};
    if (sti_memory_run_parse(data, size, "fuzz", &f, 5, &a) == STINT_OK)
        check(member, f.train);
    else if (member[0] != 7)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_memory_folder f = {.lock_fd = -1};
    if (size < 2)
        return 0;
    f.train = data[0];
    f.test = data[1];
    memset(f.key, '0', 64);
    uint8_t member[256], train[256], test[256];
    memset(member, 7, sizeof member);
    memset(train, 7, sizeof train);
    memset(test, 7, sizeof test);
    const sti_memory_answers a = {
        .member = member, .train_right = train, .test_right = test};
    if (sti_memory_run_parse(data + 2, size - 2, "fuzz", &f, 5, &a) == STINT_OK) {
        check(member, f.train);
        check(train, f.train);
        check(test, f.test);
    } else if (member[0] != 7 || train[0] != 7 || test[0] != 7) {
        abort(); /* refused, and yet written to */
    }
    read_losses(data + 2, size - 2, &f);
    return 0;
}
