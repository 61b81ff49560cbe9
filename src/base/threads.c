/* How many threads to use: what the user says, else what the system lets this process
 * have. A container's CPU quota is no affinity mask; threads beyond it only wait. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_priv.h"
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

/* ceil(quota / period), or 0 for no limit. */
static int quota_threads(long long quota_us, long long period_us)
{
    if (quota_us <= 0 || period_us <= 0)
        return 0;
    long long threads = (quota_us + period_us - 1) / period_us;
    return threads < THREADS_MAX ? (int)threads : 0;
}

static int read_quota_v2(const char *folder)
{
    char path[4096 + 64], text[64];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", folder);
    if (sti_file_peek(path, text, sizeof text) == 0)
        return 0;
    char *end;
    long long quota = strtoll(text, &end, 10); /* "max 100000": no digits, so 0 */
    return quota_threads(quota, strtoll(end, NULL, 10));
}

static int read_quota_v1(const char *folder)
{
    char path[4096 + 64], quota[32], period[32];
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", folder);
    if (sti_file_peek(path, quota, sizeof quota) == 0)
        return 0;
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", folder);
    if (sti_file_peek(path, period, sizeof period) == 0)
        return 0;
    return quota_threads(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

/* The least quota of a group and of all groups above it; 0: none. Cuts `folder`. */
static int walk_quota(char *folder, int (*read_quota)(const char *))
{
    int least = 0;
    for (;;) {
        int threads = read_quota(folder);
        if (threads > 0 && (least == 0 || threads < least))
            least = threads;
        char *slash = strrchr(folder, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

/* /proc/self/cgroup has lines "0::/path" (version 2) and "4:cpu,cpuacct:/path" (1). */
static int cgroup_threads(void)
{
    char text[4096];
    if (sti_file_peek("/proc/self/cgroup", text, sizeof text) == 0)
        return 0;
    int least = 0;
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        char *kinds = strchr(line, ':');
        char *folder = kinds ? strchr(kinds + 1, ':') : NULL;
        if (!folder)
            continue;
        *folder++ = '\0';
        int threads = 0;
        if (kinds[1] == '\0')
            threads = walk_quota(folder, read_quota_v2);
        else if (strncmp(kinds + 1, "cpu,", 4) == 0 || strcmp(kinds + 1, "cpu") == 0)
            threads = walk_quota(folder, read_quota_v1);
        if (threads > 0 && (least == 0 || threads < least))
            least = threads;
    }
    return least;
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
    int threads = affinity_threads(), quota = cgroup_threads();
    *why = quota > 0 && quota < threads ? "CPU quota of the container"
                                        : "CPUs this process may run on";
    *threads_out = quota > 0 && quota < threads ? quota : threads;
    if (*threads_out > THREADS_MAX)
        *threads_out = THREADS_MAX;
    return STINT_OK;
}
