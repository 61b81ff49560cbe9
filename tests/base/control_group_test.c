/* Limits of control groups, read from folders that look like /proc and /sys. */
#include "base/control_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"

#define MIB ((size_t)1 << 20)

typedef struct tree_file {
    const char *path, *text;
} tree_file;

/* What a machine's files say, and what is to be read out of them. */
typedef struct tree {
    const char *what;
    tree_file files[8];
    sti_control_groups wanted;
} tree;

#define GROUPS "/proc/self/cgroup"
#define SYS    "/sys/fs/cgroup"

static const tree trees[] = {
    {"no file at all", {{NULL, NULL}}, {0}},
    {"version 2",
     {{GROUPS, "0::/user.slice/a\n"},
      {SYS "/user.slice/a/memory.max", "536870912\n"},
      {SYS "/user.slice/a/cpu.max", "150000 100000\n"}},
     {2, 2, 512 * MIB, 2}},
    {"version 2, max",
     {{GROUPS, "0::/a\n"},
      {SYS "/a/memory.max", "max\n"},
      {SYS "/a/cpu.max", "max 100000\n"}},
     {0}},
    {"the least of a group and those above",
     {{GROUPS, "0::/a/b\n"},
      {SYS "/a/b/memory.max", "max\n"},
      {SYS "/a/memory.max", "104857600\n"},
      {SYS "/memory.max", "209715200\n"},
      {SYS "/a/b/cpu.max", "800000 100000\n"},
      {SYS "/cpu.max", "300000 100000\n"}},
     {3, 2, 100 * MIB, 2}},
    {"a container that sees its own group as the root",
     {{GROUPS, "0::/docker/abc\n"}, {SYS "/memory.max", "1048576\n"}},
     {0, 0, MIB, 2}},
    {"version 1",
     {{GROUPS, "9:name=systemd:/\n4:memory:/m\n2:cpu,cpuacct:/c\n"},
      {SYS "/memory/m/memory.limit_in_bytes", "1073741824\n"},
      {SYS "/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {SYS "/cpu/c/cpu.cfs_quota_us", "50000\n"},
      {SYS "/cpu/c/cpu.cfs_period_us", "100000\n"}},
     {1, 1, 1024 * MIB, 1}},
    {"version 1 without limits",
     {{GROUPS, "4:memory:/\n1:cpu:/\n"},
      {SYS "/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {SYS "/cpu/cpu.cfs_quota_us", "-1\n"},
      {SYS "/cpu/cpu.cfs_period_us", "100000\n"}},
     {0}},
    {"version 1, folders named by all of their kinds",
     {{GROUPS, "2:cpuacct,cpu:/c\n"},
      {SYS "/cpuacct,cpu/c/cpu.cfs_quota_us", "200000\n"},
      {SYS "/cpuacct,cpu/c/cpu.cfs_period_us", "100000\n"}},
     {2, 1, 0, 0}},
    {"a kind whose name begins so is another",
     {{GROUPS, "3:cpuset:/\n2:cpuacct:/\n"},
      {SYS "/cpu/cpu.cfs_quota_us", "200000\n"},
      {SYS "/cpu/cpu.cfs_period_us", "100000\n"}},
     {0}},
    {"both versions, the lesser counts",
     {{GROUPS, "4:memory:/\n0::/\n"},
      {SYS "/memory/memory.limit_in_bytes", "2097152\n"},
      {SYS "/memory.max", "1048576\n"}},
     {0, 0, MIB, 2}},
    {"nonsense",
     {{GROUPS, "no colons\n:\n::\n0::/a\n4:memory:\n"},
      {SYS "/a/memory.max", "lots\n"},
      {SYS "/memory.max", "99999999999999999999999\n"},
      {SYS "/memory/memory.limit_in_bytes", "-5\n"},
      {SYS "/a/cpu.max", "100000\n"},
      {SYS "/cpu.max", "0 0\n"}},
     {0}},
    {"empty files",
     {{GROUPS, "0::/a\n"}, {SYS "/a/memory.max", ""}, {SYS "/a/cpu.max", ""}},
     {0}},
};

static void write_file(const char *root, const tree_file *file)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s%s", root, file->path);
    for (char *at = path + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        (void)mkdir(path, 0700);
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(file->text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void remove_tree(const char *root)
{
    char command[600];
    (void)snprintf(command, sizeof command, "rm -r '%s'", root);
    assert_int_equal(system(command), 0);
}

static void test_trees(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        const tree *t = &trees[i];
        char root[] = "/tmp/stint-groups-XXXXXX";
        assert_non_null(mkdtemp(root));
        for (int f = 0; f < 8 && t->files[f].path; f++)
            write_file(root, &t->files[f]);
        sti_control_groups seen;
        sti_control_groups_read(root, &seen);
        if (memcmp(&seen, &t->wanted, sizeof seen) != 0)
            fail_msg("%s: %d threads of version %d, %zu bytes of version %d", t->what,
                     seen.threads, seen.cpu_version, seen.memory_bytes,
                     seen.memory_version);
        sti_memory_limit limit;
        const size_t host = sti_host_memory_bytes();
        sti_memory_limit_read(root, &limit);
        const bool grouped = seen.memory_bytes > 0 && seen.memory_bytes < host;
        assert_int_equal(limit.bytes, grouped ? seen.memory_bytes : host);
        assert_string_equal(limit.source, !grouped ? "memory of this machine"
                                          : seen.memory_version == 2
                                              ? "memory.max of its control group"
                                              : "memory.limit_in_bytes of its "
                                                "control group");
        remove_tree(root);
    }
}

/* A group that allows more than the machine has is no limit. */
static void test_more_than_the_machine(void **state)
{
    (void)state;
    char root[] = "/tmp/stint-groups-XXXXXX";
    assert_non_null(mkdtemp(root));
    write_file(root, &(tree_file){GROUPS, "0::/\n"});
    write_file(root, &(tree_file){SYS "/memory.max", "4000000000000000000\n"});
    sti_memory_limit limit;
    sti_memory_limit_read(root, &limit);
    assert_int_equal(limit.bytes, sti_host_memory_bytes());
    assert_string_equal(limit.source, "memory of this machine");
    remove_tree(root);
}

static void test_check(void **state)
{
    (void)state;
    assert_int_equal(sti_memory_limit_check(1, "this", "that"), STINT_OK);
    assert_int_equal(sti_memory_limit_check(SIZE_MAX / 2, "this", "that"),
                     STINT_E_BUDGET);
    assert_non_null(strstr(stint_last_error(), "this would take "));
    assert_non_null(strstr(stint_last_error(), "; that takes less"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trees),
        cmocka_unit_test(test_more_than_the_machine),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
