#define _GNU_SOURCE /* gettid */
#include "base/cpu_share.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base_priv.h"
#include "base/fail.h"
#include "base/memory.h"

/* A period of 5 ms: short beside what requests take, long beside what switching threads
 * costs. The system wants a quota of 1 ms at least, which makes it longer for small
 * shares. */
#define PERIOD_US      5000.0
#define QUOTA_LEAST_US 1000.0
#define CPUS_LEAST     0.01

enum { PATH_BYTES = 4096 };

struct sti_cpu_share {
    char path[PATH_BYTES + 64]; /* its folder */
    int version;
};

/* ---- where groups of this process lie ---- */

static bool has_kind(const char *kinds, const char *kind)
{
    const size_t length = strlen(kind);
    while (*kinds) {
        const size_t own = strcspn(kinds, ", \n");
        if (own == length && strncmp(kinds, kind, length) == 0)
            return true;
        kinds += own;
        kinds += strspn(kinds, ", \n");
    }
    return false;
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The folder of the process in a hierarchy; seen from within a container it may be the
 * hierarchy's own. */
static bool find_folder(const char *mount, const char *folder, char *out)
{
    if (snprintf(out, PATH_BYTES, "%s%s", mount, folder) >= PATH_BYTES)
        return false;
    if (is_folder(out))
        return true;
    return snprintf(out, PATH_BYTES, "%s", mount) < PATH_BYTES && is_folder(out);
}

/* "4:cpu,cpuacct:/path" of version 1, whose folder is named by one kind or by all;
 * "0::/path" of version 2, if its groups know of CPU time. */
static int find_line(const char *root, const char *kinds, const char *folder, char *out)
{
    char mount[512], path[PATH_BYTES + 32], text[512];
    if (has_kind(kinds, "cpu")) {
        (void)snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/cpu", root);
        if (!is_folder(mount))
            (void)snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%s", root, kinds);
        return find_folder(mount, folder, out) ? 1 : 0;
    }
    if (*kinds)
        return 0;
    (void)snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root);
    if (!find_folder(mount, folder, out))
        return 0;
    (void)snprintf(path, sizeof path, "%s/cgroup.controllers", out);
    return sti_file_peek(path, text, sizeof text) > 0 && has_kind(text, "cpu") ? 2 : 0;
}

/* The version of the group of this process, and its folder; 0: there is none. */
static int find_parent(const char *root, char *out)
{
    char path[512], text[4096];
    int version = 0;
    (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (sti_file_peek(path, text, sizeof text) == 0)
        return 0;
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line && version == 0;
         line = strtok_r(NULL, "\n", &rest)) {
        char *kinds = strchr(line, ':');
        char *folder = kinds ? strchr(kinds + 1, ':') : NULL;
        if (!folder)
            continue;
        *folder++ = '\0';
        version =
            find_line(root, kinds + 1, strcmp(folder, "/") == 0 ? "" : folder, out);
    }
    return version;
}

/* ---- its files ---- */

static bool write_file(const char *folder, const char *file, const char *text)
{
    char path[PATH_BYTES + 128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return false;
    const ssize_t count = write(fd, text, strlen(text));
    const int error = errno;
    (void)close(fd);
    errno = error;
    return count == (ssize_t)strlen(text);
}

static bool set_quota_1(const sti_cpu_share *s, double quota_us, double period_us,
                        double cpus)
{
    char quota[32], period[32], weight[32];
    (void)snprintf(quota, sizeof quota, "%.0f", quota_us);
    (void)snprintf(period, sizeof period, "%.0f", period_us);
    (void)snprintf(weight, sizeof weight, "%.0f", fmax(1024 * cpus, 2));
    return write_file(s->path, "cpu.cfs_period_us", period) &&
           write_file(s->path, "cpu.cfs_quota_us", quota) &&
           write_file(s->path, "cpu.shares", weight);
}

/* Threads of one process in several groups: these are threaded, which makes the
 * process's own group the root of their domain. */
static bool set_quota_2(const sti_cpu_share *s, const char *parent, double quota_us,
                        double period_us, double cpus)
{
    char most[64], weight[32];
    (void)snprintf(most, sizeof most, "%.0f %.0f", quota_us, period_us);
    (void)snprintf(weight, sizeof weight, "%.0f", fmin(fmax(100 * cpus, 1), 10000));
    return write_file(s->path, "cgroup.type", "threaded") &&
           write_file(parent, "cgroup.subtree_control", "+cpu") &&
           write_file(s->path, "cpu.max", most) &&
           write_file(s->path, "cpu.weight", weight);
}

/* Groups of processes that were killed go. One that has threads stays. */
static void remove_left(const char *parent)
{
    DIR *folder = opendir(parent);
    char path[PATH_BYTES + 300];
    for (const struct dirent *d; folder && (d = readdir(folder));) {
        const long pid =
            strncmp(d->d_name, "stint-", 6) == 0 ? strtol(d->d_name + 6, NULL, 10) : 0;
        if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", parent, d->d_name);
        (void)rmdir(path);
    }
    if (folder)
        (void)closedir(folder);
}

/* ---- life ---- */

static stint_status refuse(const char *what, const char *path)
{
    return sti_fail(STINT_E_UNSUPPORTED,
                    "a share of a CPU needs a control group of its own: cannot %s %s: "
                    "%s; begin as root or in a group that was handed over, or cut by "
                    "whole CPUs",
                    what, path, strerror(errno));
}

stint_status sti_cpu_share_create(const char *root, double cpus,
                                  sti_cpu_share **share_out)
{
    static atomic_int number;
    char parent[PATH_BYTES];
    const double share = fmax(cpus, CPUS_LEAST);
    const double period_us = fmax(PERIOD_US, ceil(QUOTA_LEAST_US / share));
    const int version = find_parent(root, parent);
    if (version == 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "a share of a CPU needs control groups of CPU time, and this "
                        "process is in none; cut by whole CPUs");
    sti_cpu_share *s = sti_alloc(sizeof *s, "share of a CPU");
    if (!s)
        return STINT_E_MEMORY;
    remove_left(parent);
    s->version = version;
    (void)snprintf(s->path, sizeof s->path, "%s/stint-%ld-%d", parent, (long)getpid(),
                   atomic_fetch_add(&number, 1));
    if (mkdir(s->path, 0755) != 0) {
        const stint_status st = refuse("make", s->path);
        sti_free(s);
        return st;
    }
    const double quota_us = floor(share * period_us);
    if (version == 1 ? !set_quota_1(s, quota_us, period_us, share)
                     : !set_quota_2(s, parent, quota_us, period_us, share)) {
        const stint_status st = refuse("set the quota of", s->path);
        sti_cpu_share_destroy(s);
        return st;
    }
    *share_out = s;
    return STINT_OK;
}

stint_status sti_cpu_share_enter(const sti_cpu_share *share)
{
    char thread[32];
    (void)snprintf(thread, sizeof thread, "%ld", (long)gettid());
    if (write_file(share->path, share->version == 2 ? "cgroup.threads" : "tasks",
                   thread))
        return STINT_OK;
    return refuse("enter", share->path);
}

/* A thread that was joined may be counted a moment longer. */
void sti_cpu_share_destroy(sti_cpu_share *share)
{
    const struct timespec moment = {0, 1000000};
    if (!share)
        return;
    for (int i = 0; i < 200 && rmdir(share->path) != 0 && errno == EBUSY; i++)
        (void)nanosleep(&moment, NULL);
    sti_free(share);
}
