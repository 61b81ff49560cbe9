/* Where bfloat16 makes a network keep more than float32 does it is said, and only
 * there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "model/network.h"
#include "pass/pass.h"

static char warning[400];

static void keep_warning(void *user, stint_log_level level, const char *text)
{
    (void)user;
    if (level == STINT_LOG_WARNING)
        strncpy(warning, text, sizeof warning - 1);
}

static sti_network_desc desc_of(const char *name, bool bf16)
{
    return (sti_network_desc){.name = name,
                              .model = {.classes = 10},
                              .height = 32,
                              .width = 32,
                              .channels = 1,
                              .bf16 = bf16};
}

static size_t saved_bytes(const char *name, bool bf16)
{
    sti_network network;
    size_t bytes = 0;
    const sti_network_desc desc = desc_of(name, bf16);
    assert_int_equal(sti_network_build(&desc, STINT_TRAIN, 8, &network), STINT_OK);
    assert_int_equal(sti_pass_saved_bytes(network.graph, &bytes), STINT_OK);
    sti_network_fini(&network);
    return bytes;
}

static const char *said_of(const char *name, bool bf16)
{
    const sti_network_desc desc = desc_of(name, bf16);
    memset(warning, 0, sizeof warning);
    assert_int_equal(sti_network_check_bf16(&desc, 8), STINT_OK);
    return warning;
}

/* Convolutions, batch-norm, ReLU and sums: about half. */
static void a_residual_network_halves(void **state)
{
    (void)state;
    const size_t f32 = saved_bytes("resnet8", false),
                 bf16 = saved_bytes("resnet8", true);
    assert_true(bf16 > f32 / 3 && bf16 < f32 * 2 / 3);
    assert_string_equal(said_of("resnet8", true), "");
}

/* Hyperbolic tangents and mean pooling have no bfloat16 form: casts come on top. */
static void lenet_is_warned_of(void **state)
{
    (void)state;
    assert_true(saved_bytes("lenet5", true) > saved_bytes("lenet5", false));
    assert_non_null(
        strstr(said_of("lenet5", true), "bfloat16 costs this network memory"));
    assert_non_null(strstr(warning, "docs/memory.md"));
    assert_string_equal(said_of("lenet5", false), "");
}

static void memory_may_run_out(void **state)
{
    (void)state;
    const sti_network_desc desc = desc_of("lenet5", true);
    const size_t before = sti_alloc_now_bytes();
    stint_status st = STINT_E_MEMORY;
    for (int64_t n = 1; st == STINT_E_MEMORY; n += 7) {
        sti_alloc_fail_nth(n);
        st = sti_network_check_bf16(&desc, 8);
        sti_alloc_fail_nth(0);
        assert_int_equal(sti_alloc_now_bytes(), before);
    }
    assert_int_equal(st, STINT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_residual_network_halves),
        cmocka_unit_test(lenet_is_warned_of),
        cmocka_unit_test(memory_may_run_out),
    };
    stint_set_log(keep_warning, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
