/* The hashes of a run's state that its log.jsonl holds (run.hash_every): where two runs
 * part. */
#ifndef STI_TRUST_STATE_LOG_H
#define STI_TRUST_STATE_LOG_H

#include "base/memory.h"
#include "stint/status.h"

typedef struct sti_state_line {
    int64_t step;
    const char *sha256; /* of everything */
    uint64_t *hash;     /* [tensors], first 64 bits of each one's SHA-256 */
} sti_state_line;

typedef struct sti_state_log {
    sti_state_line *line; /* [lines], by ascending step */
    int64_t lines, tensors;
    const char **name; /* [tensors] */
    bool ended;        /* the log says that the run ended well */
} sti_state_log;

/* Everything is in the arena. A torn last line, as a crash leaves it, is passed over.
 * STINT_E_IO: no such file; STINT_E_INPUT: hashes that are none, or of other tensors
 * than the line before. */
stint_status sti_state_log_read(const char *path, sti_arena *arena,
                                sti_state_log *log_out);

/* The first step at which both have a line and the lines differ, and the first tensor
 * that does (NULL: they have other tensors). False: none. */
bool sti_state_log_part(const sti_state_log *a, const sti_state_log *b,
                        int64_t *step_out, const char **tensor_out);

#endif
