/* Shares of CPU time: what is written of both versions of control groups, into folders
 * that look like /proc and /sys; and on this machine, if it lets us, what comes of it.
 */
#include "base/cpu_share.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"

static char root[] = "/tmp/stint_cpu_share_XXXXXX";

static void make_folder(const char *path)
{
    char whole[512];
    (void)snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(whole, 0755);
        *slash = '/';
    }
    (void)mkdir(whole, 0755);
}

static void put(const char *path, const char *text)
{
    char whole[512];
    (void)snprintf(whole, sizeof whole, "%s%s", root, path);
    assert_int_equal(sti_file_write(whole, text, strlen(text)), STINT_OK);
}

/* The text of a file of the only group below a folder, or of the folder if group is
 * false. */
static void assert_file(const char *folder, bool group, const char *file,
                        const char *wanted)
{
    char whole[1024], text[64] = "";
    (void)snprintf(whole, sizeof whole, "%s%s", root, folder);
    DIR *d = opendir(whole);
    assert_non_null(d);
    for (const struct dirent *e; group && (e = readdir(d));)
        if (strncmp(e->d_name, "stint-", 6) == 0)
            (void)snprintf(whole, sizeof whole, "%s%s/%s", root, folder, e->d_name);
    (void)closedir(d);
    (void)strncat(whole, "/", 2);
    (void)strncat(whole, file, 100);
    FILE *f = fopen(whole, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    (void)fclose(f);
    assert_string_equal(text, wanted);
}

static void clear(void)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s/*", root);
    assert_int_equal(system(command), 0);
}

static void test_version_1(void **state)
{
    (void)state;
    sti_cpu_share *share = NULL;
    clear();
    make_folder("/proc/self");
    make_folder("/sys/fs/cgroup/cpu,cpuacct/a");
    put("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/m\n2:cpu,cpuacct:/a\n0::/\n");
    assert_int_equal(sti_cpu_share_create(root, 0.5, &share), STINT_OK);
    const char *at = "/sys/fs/cgroup/cpu,cpuacct/a";
    assert_file(at, true, "cpu.cfs_period_us", "5000");
    assert_file(at, true, "cpu.cfs_quota_us", "2500");
    assert_file(at, true, "cpu.shares", "512");
    assert_int_equal(sti_cpu_share_enter(share), STINT_OK);
    sti_cpu_share_destroy(share);
}

/* The system wants a quota of 1 ms at least, so a small share has a longer period. */
static void test_version_2(void **state)
{
    (void)state;
    sti_cpu_share *share = NULL;
    clear();
    make_folder("/proc/self");
    make_folder("/sys/fs/cgroup/user.slice");
    put("/proc/self/cgroup", "0::/user.slice\n");
    put("/sys/fs/cgroup/user.slice/cgroup.controllers", "cpuset cpu io\n");
    assert_int_equal(sti_cpu_share_create(root, 0.125, &share), STINT_OK);
    const char *at = "/sys/fs/cgroup/user.slice";
    assert_file(at, true, "cgroup.type", "threaded");
    assert_file(at, false, "cgroup.subtree_control", "+cpu");
    assert_file(at, true, "cpu.max", "1000 8000");
    assert_file(at, true, "cpu.weight", "12");
    sti_cpu_share_destroy(share);
}

static void test_refused(void **state)
{
    (void)state;
    sti_cpu_share *share = NULL;
    clear();
    assert_int_equal(sti_cpu_share_create(root, 0.5, &share), STINT_E_UNSUPPORTED);
    make_folder("/proc/self");
    make_folder("/sys/fs/cgroup");
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/cgroup.controllers", "memory cpuset\n");
    assert_int_equal(sti_cpu_share_create(root, 0.5, &share), STINT_E_UNSUPPORTED);
    put("/sys/fs/cgroup/cgroup.controllers", "cpu\n");
    sti_alloc_fail_nth(1);
    assert_int_equal(sti_cpu_share_create(root, 0.5, &share), STINT_E_MEMORY);
    assert_null(share);
    clear();
    sti_cpu_share_destroy(NULL);
}

/* ---- this machine ---- */

static double now_of(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct spinner {
    const sti_cpu_share *share;
    bool entered;
    double cpu_s, wall_s;
} spinner;

static void *spin(void *arg)
{
    spinner *s = arg;
    s->entered = sti_cpu_share_enter(s->share) == STINT_OK;
    const double begin = now_of(CLOCK_MONOTONIC);
    const double cpu = now_of(CLOCK_THREAD_CPUTIME_ID);
    while (now_of(CLOCK_MONOTONIC) < begin + 0.4)
        ;
    s->cpu_s = now_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
    s->wall_s = now_of(CLOCK_MONOTONIC) - begin;
    return NULL;
}

static void test_quota_is_kept(void **state)
{
    (void)state;
    sti_cpu_share *share = NULL;
    spinner s = {.share = NULL};
    pthread_t thread;
    if (sti_cpu_share_create("", 0.25, &share) == STINT_E_UNSUPPORTED)
        skip();
    s.share = share;
    assert_int_equal(pthread_create(&thread, NULL, spin, &s), 0);
    (void)pthread_join(thread, NULL);
    assert_true(s.entered);
    /* One period's quota may be spent at the start, and a tick too much now and then.
     */
    if (s.cpu_s > 0.25 * s.wall_s + 0.03)
        fail_msg("%.3f s of CPU in %.3f s, of a share of a quarter", s.cpu_s, s.wall_s);
    sti_cpu_share_destroy(share);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_1),
        cmocka_unit_test(test_version_2),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_quota_is_kept),
    };
    if (!mkdtemp(root))
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clear();
    (void)rmdir(root);
    return failed;
}
