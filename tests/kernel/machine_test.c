/* The stored measurement of a machine: kept exactly, and only believed when it is this
 * machine's. Rates are checked for sense, never for size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/memory.h"
#include "kernel/machine/machine.h"

static sti_machine some_machine(void)
{
    return (sti_machine){.f32_flop_per_s = 2.25e11,
                         .bf16_flop_per_s = 0,
                         .int8_op_per_s = 1.0 / 3.0,
                         .l1_bytes_per_s = 3e11,
                         .l2_bytes_per_s = 1.7e11,
                         .llc_bytes_per_s = 2.7e10,
                         .dram_bytes_per_s = 1.4e10,
                         .dram_all_bytes_per_s = 2.9e10,
                         .fork_s = 9e-7,
                         .tile_flop_per_s = 2.2e11,
                         .tile_s = 2e-8,
                         .pack_bytes_per_s = 3e10,
                         .l1_bytes = 49152,
                         .l2_bytes = 2097152,
                         .llc_bytes = 67108864,
                         .threads = 2};
}

static void text_reads_back(void **state)
{
    (void)state;
    const sti_machine m = some_machine();
    sti_machine back;
    sti_text text = {0};
    const char *why;
    sti_machine_write(&m, &text);
    assert_true(sti_machine_parse(text.data, &back, &why));
    assert_memory_equal(&m, &back, sizeof m);
    sti_text_fini(&text);
}

static void expect_refused(const char *from, const char *to, const char *word)
{
    const sti_machine m = some_machine();
    sti_machine back = {0};
    sti_text text = {0}, cut = {0};
    const char *why;
    sti_machine_write(&m, &text);
    char *at = strstr(text.data, from);
    assert_non_null(at);
    sti_text_add_bytes(&cut, text.data, (size_t)(at - text.data));
    sti_text_add(&cut, to);
    if (*to)
        sti_text_add(&cut, at + strlen(from));
    assert_false(sti_machine_parse(cut.data, &back, &why));
    assert_non_null(strstr(why, word));
    assert_true(back.threads == 0);
    sti_text_fini(&text);
    sti_text_fini(&cut);
}

static void foreign_text_is_refused(void **state)
{
    (void)state;
    expect_refused("machine 3", "machine 2", "version");
    expect_refused(sti_cpu_name(), "Another CPU", "another machine");
    expect_refused("l2_bytes 2097152", "l2_bytes -1", "impossible");
    expect_refused("l2_bytes 2097152", "l2_bytes nan", "impossible");
    expect_refused("fork_s", "fork_t", "missing");
    expect_refused("threads", "", "missing"); /* cut off */
}

static void cache_is_kept_and_distrusted(void **state)
{
    (void)state;
    char folder[] = "/tmp/stint-machine-XXXXXX", path[64];
    sti_machine m, again;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
    assert_false(sti_machine_stored(&m));
    assert_int_equal(sti_machine_now(&m), STINT_OK);
    assert_true(sti_machine_stored(&again));
    assert_memory_equal(&m, &again, sizeof m);
    assert_true(sti_cache_path("machine.txt", path, sizeof path));
    assert_int_equal(sti_file_write(path, "nonsense", 8), STINT_OK);
    assert_false(sti_machine_stored(&again));
    assert_int_equal(remove(path), 0);
    path[strlen(path) - strlen("/machine.txt")] = '\0';
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* A pipe has no reader here, and to write to it would wait for one for ever. */
static void what_is_no_file_is_left_alone(void **state)
{
    (void)state;
    char folder[] = "/tmp/stint-machine-XXXXXX", path[64], command[64];
    sti_machine m;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
    assert_true(sti_cache_path("machine.txt", path, sizeof path));
    *strrchr(path, '/') = '\0';
    assert_int_equal(sti_dir_create(path), STINT_OK);
    path[strlen(path)] = '/';
    assert_int_equal(mkfifo(path, 0666), 0);
    alarm(200); /* a busy machine takes its time to measure; below the limit of CTest */
    assert_int_equal(sti_machine_now(&m), STINT_OK);
    assert_false(sti_machine_stored(&m));
    alarm(0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void measurement_fails_cleanly(void **state)
{
    (void)state;
    sti_machine m = {0};
    sti_alloc_fail_nth(1);
    assert_int_equal(sti_machine_measure(&m), STINT_E_MEMORY);
    sti_alloc_fail_nth(0);
    assert_true(m.threads == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_reads_back),
        cmocka_unit_test(foreign_text_is_refused),
        cmocka_unit_test(cache_is_kept_and_distrusted),
        cmocka_unit_test(what_is_no_file_is_left_alone),
        cmocka_unit_test(measurement_fails_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
