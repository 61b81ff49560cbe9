/* How many threads to use: what the user says, else what the system lets this process
 * have. A container's CPU quota is no affinity mask; threads beyond it only wait. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/control_group.h"
#include "base/fail.h"
#include "base/team.h"
#include "base/units.h"

#define THREADS_MAX 1024

static int affinity_threads(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more CPUs than a cpu_set_t holds */
    return online > 0 && online <= THREADS_MAX ? (int)online : 1;
}

int sti_cpus_online(void)
{
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

_Static_assert(STI_CPUS_MOST <= CPU_SETSIZE, "more CPUs than a set holds");

void sti_cpus_allowed(uint8_t bits_out[STI_CPUS_MOST / 8])
{
    cpu_set_t set;
    CPU_ZERO(&set);
    memset(bits_out, 0, STI_CPUS_MOST / 8);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        for (int c = 0; c < STI_CPUS_MOST; c++)
            bits_out[c / 8] |= (uint8_t)(CPU_ISSET(c, &set) ? 1 << c % 8 : 0);
}

static stint_status parse_threads(const char *name, const char *text, int *threads_out)
{
    int64_t value;
    if (sti_parse_int(text, &value) != STINT_OK || value < 1 || value > THREADS_MAX)
        return sti_fail(STINT_E_USAGE,
                        "%s is '%s', but must be a whole number from 1 to %d; unset it "
                        "to use every CPU this process may run on",
                        name, text, THREADS_MAX);
    *threads_out = (int)value;
    return STINT_OK;
}

/* OMP_NUM_THREADS may be a list, one number a nesting level; the first is ours. */
static stint_status parse_omp_threads(const char *text, int *threads_out)
{
    char first[32];
    size_t length = strcspn(text, ",");
    if (length >= sizeof first)
        length = sizeof first - 1;
    memcpy(first, text, length);
    first[length] = '\0';
    return parse_threads("OMP_NUM_THREADS", first, threads_out);
}

stint_status sti_threads_choose(int request, int *threads_out, const char **why_out)
{
    const char *unused;
    const char **why = why_out ? why_out : &unused;
    if (request < 0 || request > THREADS_MAX)
        return sti_fail(STINT_E_USAGE,
                        "threads: %d asked for, but must be from 1 to %d", request,
                        THREADS_MAX);
    if (request > 0) {
        *threads_out = request;
        *why = "as asked for";
        return STINT_OK;
    }
    const char *text = getenv("STINT_NUM_THREADS");
    if (text && *text) {
        *why = "STINT_NUM_THREADS";
        return parse_threads("STINT_NUM_THREADS", text, threads_out);
    }
    text = getenv("OMP_NUM_THREADS");
    if (text && *text) {
        *why = "OMP_NUM_THREADS";
        return parse_omp_threads(text, threads_out);
    }
    sti_control_groups groups;
    sti_control_groups_read("", &groups);
    *threads_out = affinity_threads();
    *why = "CPUs this process may run on";
    if (groups.threads > 0 && groups.threads < *threads_out) {
        *threads_out = groups.threads;
        *why = groups.cpu_version == 2 ? "CPU quota of its control group: cpu.max"
                                       : "CPU quota of its control group: "
                                         "cpu.cfs_quota_us";
    }
    if (*threads_out > THREADS_MAX)
        *threads_out = THREADS_MAX;
    return STINT_OK;
}
