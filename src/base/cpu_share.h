/* A share of the machine's CPU time, kept to by the system: a control group with a
 * quota of CPU bandwidth, which threads enter one by one.
 *
 * Both versions are written: of version 2 a threaded group with cpu.max and cpu.weight,
 * of version 1 cpu.cfs_quota_us, cpu.cfs_period_us and cpu.shares. The group is made
 * below that of this process, so whoever began the process must allow it (root, or a
 * group that was handed over). A thread of the group runs as long as its quota lasts
 * and then waits for the next period, of some milliseconds. */
#ifndef STI_BASE_CPU_SHARE_H
#define STI_BASE_CPU_SHARE_H

#include "stint/status.h"

typedef struct sti_cpu_share sti_cpu_share;

/* A group of `cpus` CPUs' time, 0.01 at least, of which each period has its part. root:
 * what stands before /proc and /sys, "" but for tests. Groups that a process which is
 * gone has left are taken away. STINT_E_UNSUPPORTED: no control groups, or none that
 * this process may make. */
stint_status sti_cpu_share_create(const char *root, double cpus,
                                  sti_cpu_share **share_out);
/* The calling thread, and what it begins from now on, runs on the share. */
stint_status sti_cpu_share_enter(const sti_cpu_share *share);
/* Once its threads have ended. NULL is fine. */
void sti_cpu_share_destroy(sti_cpu_share *share);

#endif
