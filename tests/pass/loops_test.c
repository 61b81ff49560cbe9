/* Strings come to matrix products from the store and from STINT_LOOPS, are shown, and a
 * bad one is refused with its sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/file.h"
#include "kernel/loop/loop_tune.h"
#include "op/op.h"
#include "pass/pass.h"

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/stint_loops_XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
    assert_int_equal(setenv("STINT_NUM_THREADS", "2", 1), 0);
    return unsetenv("STINT_LOOPS");
}

static const char *store_path(void)
{
    static char path[128];
    assert_true(sti_cache_path("loops.txt", path, sizeof path));
    return path;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* x [40, 30] through two products, of which the second is [40, 50] x [50, 20]. */
static stint_graph *make_graph(void)
{
    stint_graph *g;
    assert_int_equal(stint_graph_create(STINT_EVAL, &g), STINT_OK);
    const stint_shape x = STINT_SHAPE(40, 30), w = STINT_SHAPE(30, 50),
                      v = STINT_SHAPE(50, 20);
    const stint_param_desc init = {.init = STINT_INIT_FAN_IN_UNIFORM, .fan_in = 30};
    stint_value y = stint_matmul(g, stint_input(g, "x", &x),
                                 stint_param(g, "w", &w, &init), false, false);
    y = stint_matmul(g, stint_relu(g, y), stint_param(g, "v", &v, &init), false, false);
    sti_graph_output(g,
                     &(sti_output){.kind = STI_OUTPUT_FETCH, .value = y, .name = "y"});
    return g;
}

/* Text of product i, in graph order. */
static const char *text_of(stint_graph *g, int i, int shared)
{
    for (int32_t n = 0; n < sti_graph_node_count(g); n++) {
        const sti_node *node = sti_graph_node(g, n);
        if (node->op == &sti_op_matmul && i-- == 0)
            return ((const sti_matmul_attr *)node->attr)->loops[shared];
    }
    fail_msg("no product");
    return NULL;
}

static sti_gemm_shape second_shape(void)
{
    return (sti_gemm_shape){.m = 40, .n = 20, .k = 50, .lda = 50, .ldb = 20, .ldc = 20};
}

static void kept_strings_reach_their_products(void **state)
{
    const sti_gemm_shape shape = second_shape();
    char text[STI_LOOP_GEMM_TEXT];
    (void)state;
    assert_false(sti_loop_store_find(&shape, 1, text));
    assert_int_equal(sti_loop_store_keep(&shape, 1, "cba 14x32x64"), STINT_OK);
    assert_int_equal(sti_loop_store_keep(&shape, 2, "BCa"), STINT_OK);
    assert_int_equal(sti_loop_store_keep(&shape, 2, "aBC 28x32x16"), STINT_OK);
    stint_graph *g = make_graph();
    sti_pass_note note;
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    assert_int_equal(sti_pass_loops(g, &note), STINT_OK);
    assert_string_equal(note.text, "1 of 2 products have a loop string");
    assert_string_equal(text_of(g, 0, 0), "");
    assert_string_equal(text_of(g, 1, 0), "cba 14x32x64");
    assert_string_equal(text_of(g, 1, 1), "aBC 28x32x16");
    sti_text out = {0};
    assert_int_equal(sti_graph_print(g, &out), STINT_OK);
    assert_non_null(strstr(out.data, "loops 'cba 14x32x64'"));
    assert_non_null(strstr(out.data, "loops shared 'aBC 28x32x16'"));
    sti_text_fini(&out);
    stint_graph_destroy(g);
}

static void the_store_keeps_what_was_tuned(void **state)
{
    sti_gemm_shape shape = second_shape();
    char text[STI_LOOP_GEMM_TEXT] = "?";
    (void)state;
    assert_int_equal(sti_loop_store_keep(&shape, 1, ""), STINT_OK);
    assert_true(sti_loop_store_find(&shape, 1, text)); /* tuned: none is faster */
    assert_string_equal(text, "");
    assert_true(sti_loop_store_find(&shape, 2, text)); /* the others stay */
    assert_string_equal(text, "aBC 28x32x16");
    shape.trans_b = true;
    assert_false(sti_loop_store_find(&shape, 2, text));
}

static void keep_line(void *user, stint_log_level level, const char *text)
{
    (void)level;
    snprintf(user, 512, "%s", text);
}

/* Whatever is in the file, nothing that does not bind comes out, and the file and the
 * shape are named. */
static void bad_stores_are_ignored(void **state)
{
    const sti_gemm_shape shape = second_shape();
    char text[STI_LOOP_GEMM_TEXT], file[512];
    const char *const lines[] = {"gemm f32 40 20 50 nn 1 = Abc\n",
                                 "gemm f32 40 20 50 nn 1 = bca",
                                 "gemm f32 40 20 50 nn 1 = bca 1x2\n", "\n\n=", ""};
    char logged[512], *said;
    (void)state;
    stint_set_log(keep_line, logged);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        snprintf(file, sizeof file, "stint loops 1\n%s, %s\n%s", sti_cpu_name(),
                 sti_isa_name(sti_isa_now()), lines[i]);
        assert_int_equal(sti_file_write(store_path(), file, strlen(file)), STINT_OK);
        logged[0] = '\0';
        assert_false(sti_loop_store_find(&shape, 1, text));
        said = strstr(logged, "loops.txt: the string of 40 x 20 x 50 is ignored");
        assert_int_equal(said != NULL, i < 3);
    }
    stint_set_log(NULL, NULL);
    const char *const foreign = "stint loops 1\nAnother CPU, avx2\n"
                                "gemm f32 40 20 50 nn 1 = bca\n";
    assert_int_equal(sti_file_write(store_path(), foreign, strlen(foreign)), STINT_OK);
    assert_false(sti_loop_store_find(&shape, 1, text));
    assert_int_equal(sti_loop_store_keep(&shape, 1, "bca"),
                     STINT_OK); /* and replaced */
    assert_true(sti_loop_store_find(&shape, 1, text));
}

static sti_gemm_shape shape_of_process(int process, int i)
{
    sti_gemm_shape shape = second_shape();
    shape.m = 100 + process;
    shape.n = 100 + i;
    shape.ldc = shape.ldb = shape.n;
    return shape;
}

/* None takes away a line that another has added since it read the file. */
static void processes_keep_strings_at_once(void **state)
{
    enum { PROCESSES = 4, STRINGS = 10 };
    char text[STI_LOOP_GEMM_TEXT];
    (void)state;
    for (int p = 0; p < PROCESSES; p++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        for (int i = 0; child == 0 && i < STRINGS; i++) {
            const sti_gemm_shape shape = shape_of_process(p, i);
            if (sti_loop_store_keep(&shape, 1, "bca") != STINT_OK)
                _exit(1);
        }
        if (child == 0)
            _exit(0);
    }
    for (int p = 0, status = 0; p < PROCESSES; p++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    for (int p = 0; p < PROCESSES; p++)
        for (int i = 0; i < STRINGS; i++) {
            const sti_gemm_shape shape = shape_of_process(p, i);
            assert_true(sti_loop_store_find(&shape, 1, text));
        }
}

/* To open a pipe would wait for its other end. */
static void a_pipe_is_no_store(void **state)
{
    const sti_gemm_shape shape = second_shape();
    char text[STI_LOOP_GEMM_TEXT];
    (void)state;
    assert_int_equal(sti_loop_store_check(), STINT_OK);
    (void)remove(store_path());
    assert_int_equal(sti_loop_store_check(), STINT_OK);
    assert_int_equal(mkfifo(store_path(), 0666), 0);
    alarm(200);
    assert_int_equal(sti_loop_store_check(), STINT_E_IO);
    assert_int_equal(sti_loop_store_keep(&shape, 1, "bca"), STINT_E_IO);
    assert_non_null(strstr(stint_last_error(), "loops.txt: is a pipe"));
    assert_false(sti_loop_store_find(&shape, 1, text));
    alarm(0);
    assert_int_equal(remove(store_path()), 0);
}

static void the_variable_forces_and_forbids(void **state)
{
    stint_graph *g = make_graph();
    (void)state;
    assert_int_equal(setenv("STINT_LOOPS", "B{R:4}aC{C:2}", 1), 0);
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    for (int i = 0; i < 4; i++)
        assert_string_equal(text_of(g, i / 2, i % 2), "B{R:4}aC{C:2}");
    stint_graph_destroy(g);

    g = make_graph();
    assert_int_equal(setenv("STINT_LOOPS", "off", 1), 0);
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    assert_string_equal(text_of(g, 1, 0), "");
    stint_graph_destroy(g);

    g = make_graph();
    assert_int_equal(setenv("STINT_LOOPS", "BaC", 1), 0);
    assert_int_equal(sti_pass_standard(g), STINT_E_USAGE);
    assert_non_null(
        strstr(stint_last_error(), "STINT_LOOPS: loops 'BaC': two separate"));
    stint_graph_destroy(g);
    assert_int_equal(unsetenv("STINT_LOOPS"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_strings_reach_their_products),
        cmocka_unit_test(the_store_keeps_what_was_tuned),
        cmocka_unit_test(bad_stores_are_ignored),
        cmocka_unit_test(processes_keep_strings_at_once),
        cmocka_unit_test(a_pipe_is_no_store),
        cmocka_unit_test(the_variable_forces_and_forbids),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
