/* What the control groups of this process allow it: CPU time and memory.
 *
 * Both versions are read: of version 2 cpu.max and memory.max, of version 1
 * cpu.cfs_quota_us with cpu.cfs_period_us, and memory.limit_in_bytes. A group is
 * limited by those above it, too, so the least of all that can be seen counts; in a
 * container these are often the outermost alone. A file that is missing, says "max", or
 * holds no number is no limit. */
#ifndef STI_BASE_CONTROL_GROUP_H
#define STI_BASE_CONTROL_GROUP_H

#include <stddef.h>

#include "stint/status.h"

typedef struct sti_control_groups {
    int threads;         /* that the CPU quota keeps busy, rounded up; 0: no quota */
    int cpu_version;     /* of the group that has it, 1 or 2 */
    size_t memory_bytes; /* 0: no limit */
    int memory_version;  /* likewise */
} sti_control_groups;

/* root: what stands before /proc and /sys, "" but for tests. Never fails, allocates
 * nothing, and may be called by any thread. */
void sti_control_groups_read(const char *root, sti_control_groups *out);

/* The most memory that this process can have. */
typedef struct sti_memory_limit {
    size_t bytes;       /* 0: not known */
    const char *source; /* what says so, a literal: "memory of this machine" */
} sti_memory_limit;

/* What the host has, or what the process's control groups allow where that is less.
 * root as above. */
void sti_memory_limit_read(const char *root, sti_memory_limit *out);

/* STINT_E_BUDGET where `what` takes more bytes than this process can have: an
 * allocation of untouched pages would succeed, and the process be killed later.
 * way: what takes less, "a smaller --batch". */
stint_status sti_memory_limit_check(size_t bytes, const char *what, const char *way);

/* The largest single block that the system would give now, to within 1 MiB, found by
 * asking: limits on addresses and on what is promised beyond the machine's memory count
 * in, control groups do not. */
size_t sti_memory_obtainable(void);

#endif
