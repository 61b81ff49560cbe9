#include "base/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"

static void test_isa(void **state)
{
    (void)state;
    sti_isa first = sti_isa_now();
    assert_in_range(first, 0, STI_ISA_COUNT - 1);
    assert_true(sti_isa_force(STI_ISA_REF));
    assert_int_equal(sti_isa_now(), STI_ISA_REF);
    assert_false(sti_isa_force(STI_ISA_COUNT));
    assert_int_equal(sti_isa_now(), STI_ISA_REF);
    assert_true(sti_isa_force(first));
    assert_string_equal(sti_isa_name(STI_ISA_REF), "ref");
    assert_string_equal(sti_isa_name(STI_ISA_AVX512), "avx512");
    assert_string_equal(sti_isa_name((sti_isa)9), "unknown");
}

static void test_isa_check(void **state)
{
    (void)state;
    unsetenv("STINT_ISA");
    assert_int_equal(sti_isa_check(), STINT_OK);
    setenv("STINT_ISA", "ref", 1);
    assert_int_equal(sti_isa_check(), STINT_OK);
    setenv("STINT_ISA", "sse9", 1);
    assert_int_equal(sti_isa_check(), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "sse9"));
    assert_non_null(strstr(stint_last_error(), "avx2"));
    unsetenv("STINT_ISA");
}

static void test_name(void **state)
{
    (void)state;
    const char *name = sti_cpu_name();
    assert_true(strlen(name) > 3);
    assert_ptr_equal(name, sti_cpu_name());
    assert_null(strstr(name, "  "));
}

static void test_clock(void **state)
{
    (void)state;
    int64_t start = sti_clock_ns();
    assert_true(start > 0);
    assert_true(sti_clock_ns() >= start);
    assert_true(sti_seconds_since(start) >= 0 && sti_seconds_since(start) < 60);
    assert_true(sti_clock_unix_s() > 1.6e9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_isa),
        cmocka_unit_test(test_isa_check),
        cmocka_unit_test(test_name),
        cmocka_unit_test(test_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
