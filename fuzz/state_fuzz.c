/* Any bytes as a run's log: refused, or hashes that can be held against themselves. */
#include "fuzz_folder.h"

#include "trust/state_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_state_log log;
    int64_t step;
    const char *tensor;
    char path[640];
    sti_arena *arena = sti_arena_create("fuzz");
    fuzz_begin();
    fuzz_put("log.jsonl", data, size);
    snprintf(path, sizeof path, "%s/log.jsonl", fuzz_folder);
    if (arena && sti_state_log_read(path, arena, &log) == STINT_OK &&
        sti_state_log_part(&log, &log, &step, &tensor))
        abort(); /* it differs from itself */
    sti_arena_destroy(arena);
    return 0;
}
