#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "base/control_group.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base_priv.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"

enum { PATH_BYTES = 4096 + 256 };

/* Version 1 writes "no limit" as a number close to 2^63. */
#define UNLIMITED (UINT64_C(1) << 62)

/* The group of one hierarchy, as /proc/self/cgroup names it. */
typedef struct group {
    char mount[512]; /* where its hierarchy lies */
    char *folder;    /* below that; is cut while walking upwards */
    int version;
} group;

/* Up to `max` numbers at the start of a file of the group. How many there are. */
static int read_numbers(const group *g, const char *file, uint64_t *out, int max)
{
    char path[PATH_BYTES + 512], text[128];
    const int n = snprintf(path, sizeof path, "%s%s/%s", g->mount, g->folder, file);
    if (n >= (int)sizeof path || sti_file_peek(path, text, sizeof text) == 0)
        return 0;
    const char *at = text;
    for (int i = 0; i < max; i++) {
        char *end;
        at += strspn(at, " ");
        if (*at < '0' || *at > '9') /* "max", -1 */
            return i;
        errno = 0;
        out[i] = strtoull(at, &end, 10);
        if (errno != 0)
            return i;
        at = end;
    }
    return max;
}

/* CPUs that this group alone may keep busy, rounded up; 0: no limit. */
static uint64_t read_threads(const group *g)
{
    uint64_t quota_us[2] = {0, 0};
    if (g->version == 2) {
        if (read_numbers(g, "cpu.max", quota_us, 2) < 2)
            return 0;
    } else if (read_numbers(g, "cpu.cfs_quota_us", quota_us, 1) < 1 ||
               read_numbers(g, "cpu.cfs_period_us", quota_us + 1, 1) < 1) {
        return 0;
    }
    const uint64_t period_us = quota_us[1];
    if (quota_us[0] == 0 || period_us == 0)
        return 0;
    return quota_us[0] / period_us + (quota_us[0] % period_us != 0);
}

static uint64_t read_memory(const group *g)
{
    uint64_t bytes = 0;
    const char *file = g->version == 2 ? "memory.max" : "memory.limit_in_bytes";
    return read_numbers(g, file, &bytes, 1) == 1 && bytes < UNLIMITED ? bytes : 0;
}

/* The least of a group and of all groups above it; 0: none. */
static uint64_t least_upwards(group g, uint64_t (*read)(const group *))
{
    char folder[PATH_BYTES];
    uint64_t least = 0;
    (void)snprintf(folder, sizeof folder, "%s", g.folder);
    for (g.folder = folder;;) {
        const uint64_t limit = read(&g);
        if (limit > 0 && (least == 0 || limit < least))
            least = limit;
        char *slash = strrchr(folder, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

/* Is `kind` in "cpu,cpuacct"? */
static bool has_kind(const char *kinds, const char *kind)
{
    const size_t length = strlen(kind);
    for (;; kinds++) {
        if (strncmp(kinds, kind, length) == 0 &&
            (kinds[length] == ',' || kinds[length] == '\0'))
            return true;
        kinds = strchr(kinds, ',');
        if (!kinds)
            return false;
    }
}

/* The limit that a line of /proc/self/cgroup leads to: "0::/path" is of version 2,
 * "4:cpu,cpuacct:/path" of version 1, whose folder is named by all kinds or by one. */
static uint64_t limit_of_line(const char *root, const char *kinds, char *folder,
                              const char *kind, int *version_out,
                              uint64_t (*read)(const group *))
{
    group g = {.folder = folder, .version = *kinds ? 1 : 2};
    *version_out = g.version;
    if (g.version == 1 && !has_kind(kinds, kind))
        return 0;
    (void)snprintf(g.mount, sizeof g.mount, "%s/sys/fs/cgroup%s%s", root,
                   *kinds ? "/" : "", *kinds ? kind : "");
    uint64_t limit = least_upwards(g, read);
    if (limit == 0 && g.version == 1 && strcmp(kinds, kind) != 0) {
        (void)snprintf(g.mount, sizeof g.mount, "%s/sys/fs/cgroup/%s", root, kinds);
        limit = least_upwards(g, read);
    }
    return limit;
}

static void take_line(const char *root, const char *kinds, char *folder,
                      sti_control_groups *out)
{
    int version;
    const uint64_t threads =
        limit_of_line(root, kinds, folder, "cpu", &version, read_threads);
    if (threads > 0 && threads < INT32_MAX &&
        (out->threads == 0 || threads < (uint64_t)out->threads)) {
        out->threads = (int)threads;
        out->cpu_version = version;
    }
    const uint64_t bytes =
        limit_of_line(root, kinds, folder, "memory", &version, read_memory);
    if (bytes > 0 && (out->memory_bytes == 0 || bytes < out->memory_bytes)) {
        out->memory_bytes = (size_t)bytes;
        out->memory_version = version;
    }
}

void sti_control_groups_read(const char *root, sti_control_groups *out)
{
    char path[PATH_BYTES], text[4096];
    *out = (sti_control_groups){0};
    (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (sti_file_peek(path, text, sizeof text) == 0)
        return;
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        char *kinds = strchr(line, ':');
        char *folder = kinds ? strchr(kinds + 1, ':') : NULL;
        if (!folder)
            continue;
        *folder++ = '\0';
        take_line(root, kinds + 1, folder, out);
    }
}

void sti_memory_limit_read(const char *root, sti_memory_limit *out)
{
    sti_control_groups groups;
    sti_control_groups_read(root, &groups);
    *out = (sti_memory_limit){sti_host_memory_bytes(), "memory of this machine"};
    if (groups.memory_bytes == 0 ||
        (out->bytes > 0 && groups.memory_bytes >= out->bytes))
        return;
    out->bytes = groups.memory_bytes;
    out->source = groups.memory_version == 2
                      ? "memory.max of its control group"
                      : "memory.limit_in_bytes of its control group";
}

stint_status sti_memory_limit_check(size_t bytes, const char *what, const char *way)
{
    sti_memory_limit limit;
    sti_memory_limit_read("", &limit);
    if (limit.bytes == 0 || bytes <= limit.bytes)
        return STINT_OK;
    return sti_fail(STINT_E_BUDGET,
                    "%s would take %s, and this process can have %s (%s); %s takes "
                    "less",
                    what, sti_bytes_text(bytes), sti_bytes_text(limit.bytes),
                    limit.source, way);
}

static bool can_map(size_t bytes)
{
    void *map =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return false;
    (void)munmap(map, bytes);
    return true;
}

size_t sti_memory_obtainable(void)
{
    const size_t step = (size_t)1 << 20;
    size_t low = 0, high = (size_t)1 << 26; /* steps; low can be had */
    while (low + 1 < high) {
        const size_t mid = low + (high - low) / 2;
        if (can_map(mid * step))
            low = mid;
        else
            high = mid;
    }
    return low * step;
}
