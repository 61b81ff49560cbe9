#!/bin/bash
# What docs/architecture.md promises of adding things: an operator, a pass, a network, a
# section of recipes, a chart of the report and a subcommand are one file and one line each.
# In a copy of the tree a toy of each is added so, stint and the toys' tests are built, every
# toy runs, and when file and line are gone again the copy is the tree that it was.
#
# A kind of thing is a word in `kinds` and two functions: add_KIND, which calls `file` once
# and `line` once, and run_KIND, which fails with words where the toy does not work.
set -u
source=${STINT_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree="$work/tree" build="$work/tree/build/toys"
kinds="operator pass model section chart subcommand"
targets="stint"
files=() lists=()

fail() {
    echo "$*"
    exit 1
}

# file PATH: the toy's file, from stdin
file() {
    [ ! -e "$tree/$1" ] || fail "$1 is there already"
    cat >"$tree/$1"
    files+=("$1")
}

# line PATH AFTER TEXT: TEXT in a line of its own behind the only line that begins with AFTER
line() {
    [ "$(grep -c "^$2" "$tree/$1")" -eq 1 ] || fail "$1 has not one line that begins with $2"
    cp "$tree/$1" "$work/before"
    awk -v after="$2" -v text="$3" '{ print } index($0, after) == 1 { print text }' \
        "$work/before" >"$tree/$1"
    lists+=("$1:$3")
}

# toy_test ROOM NAME: a test of the copy whose one function, toy, is on stdin; it is built
toy_test() {
    {
        printf '#include <setjmp.h>\n#include <stdarg.h>\n#include <stddef.h>\n'
        printf '#include <cmocka.h>\n'
        cat
        printf 'int main(void)\n{\n'
        printf '    const struct CMUnitTest tests[] = {cmocka_unit_test(toy)};\n'
        printf '    return cmocka_run_group_tests(tests, NULL, NULL);\n}\n'
    } >"$tree/tests/$1/$2.c"
    files+=("tests/$1/$2.c")
    targets="$targets $2"
}

# ---- an operator: y = 3 x

add_operator() {
    file src/op/op_toy.c <<'END'
/* y = 3 x. */
#include "op/op_priv.h"

static stint_status grad_toy(stint_graph *g, const sti_node *node, const stint_value *dy,
                             const bool *need, stint_value *dx)
{
    (void)node;
    if (need[0])
        dx[0] = stint_scale(g, dy[0], 3.0f);
    return STINT_OK;
}

static void run_toy(const sti_call *call)
{
    const float *x = call->in[0];
    float *y = call->out[0];
    for (int64_t i = 0; i < sti_op_out_count(call, 0); i++)
        y[i] = 3.0f * x[i];
}

const sti_op sti_op_toy = {
    .name = "toy",
    .n_out = 1,
    .infer = sti_op_infer_same,
    .grad = grad_toy,
    .run = {[STI_CPU] = run_toy},
};
END
    line src/op/op_list.h 'STI_OP(neg)' 'STI_OP(toy)'
    toy_test pass toy_operator_test <<'END'
#include "op/op_harness.h"
#include "pass/pass.h"

/* The value and the gradient of the operator that the table knows by name. */
static void toy(void **state)
{
    (void)state;
    stint_graph *g = NULL;
    op_values v;
    const stint_shape shape = STINT_SHAPE(5);
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    const stint_value x = stint_input(g, "x", &shape);
    const stint_value y = sti_graph_add(g, sti_op_find("toy"), NULL, 1, &x);
    stint_value dx = -1;
    assert_int_equal(sti_pass_gradient(g, stint_sum(g, y, 1, false), &x, 1, &dx), STINT_OK);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    op_values_init(&v, g);
    for (int i = 0; i < 5; i++)
        ((float *)v.data[x])[i] = (float)i;
    op_run(&v, &sti_team_serial, OP_KEEP_ALL);
    for (int i = 0; i < 5; i++) {
        assert_true(((float *)v.data[y])[i] == 3.0f * (float)i);
        assert_true(((float *)v.data[dx])[i] == 3.0f);
    }
    op_values_fini(&v);
    stint_graph_destroy(g);
}
END
}

run_operator() {
    "$build/tests/toy_operator_test"
}

# ---- a pass of the standard pipeline: counts nodes

add_pass() {
    file src/pass/toy.c <<'END'
/* Counts the nodes. */
#include "pass/pass_priv.h"

stint_status sti_pass_toy(stint_graph *graph, sti_pass_note *note)
{
    sti_pass_note_set(note, "%d nodes", (int)sti_graph_node_count(graph));
    return STINT_OK;
}
END
    line src/pass/pass_list.h 'STI_PASS(dead_code' 'STI_PASS(toy, "toy", "count the nodes")'
    toy_test pass toy_pass_test <<'END'
#include <string.h>

#include "pass/pass.h"
#include "stint/op.h"

static char said[200];

static void keep(void *user, stint_log_level level, const char *text)
{
    (void)user, (void)level;
    if (strncmp(text, "pass toy: ", 10) == 0)
        strcpy(said, text);
}

static void toy(void **state)
{
    (void)state;
    stint_graph *g = NULL;
    const stint_shape shape = STINT_SHAPE(5);
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    const stint_value x = stint_input(g, "x", &shape);
    sti_graph_output(g, &(sti_output){.kind = STI_OUTPUT_FETCH,
                                      .value = stint_exp(g, stint_relu(g, x)),
                                      .target = -1,
                                      .name = "y"});
    stint_set_log(keep, NULL);
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    assert_string_equal(said, "pass toy: 2 nodes");
    stint_graph_destroy(g);
}
END
}

run_pass() {
    "$build/tests/toy_pass_test"
}

# ---- a network: one dense layer

add_model() {
    file src/model/model_toy.c <<'END'
/* One dense layer on the pixels. */
#include "model/model_priv.h"

stint_value sti_model_toy(stint_graph *g, int variant, const stint_model_desc *desc,
                          stint_value x)
{
    (void)variant;
    return sti_model_dense(g, stint_flatten(g, x), "fc", desc->classes);
}
END
    line src/model/model_list.h 'STI_MODEL("mlp"' 'STI_MODEL("toynet", toy, 0, 0, "one dense layer")'
    toy_test model toy_model_test <<'END'
#include "graph/graph.h"
#include "stint/model.h"

static void toy(void **state)
{
    (void)state;
    stint_graph *g = NULL;
    const stint_shape shape = STINT_SHAPE(2, 8, 8, 3), want = STINT_SHAPE(2, 10);
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    const stint_value y = stint_model_build(g, "toynet", &(stint_model_desc){.classes = 10},
                                            stint_input(g, "images", &shape));
    assert_int_equal(stint_graph_check(g), STINT_OK);
    const stint_shape got = stint_value_shape(g, y);
    assert_true(sti_shape_equal(&want, &got));
    stint_graph_destroy(g);
}
END
}

# The help of a recipe and its reference know it without being told.
run_model() {
    "$build/tests/toy_model_test" || return 1
    "$build/stint" help models | grep -q '^  toynet  *one dense layer$' || return 1
    "$build/stint" help --recipe-markdown | grep -qE '^\| `name` .*\btoynet\b'
}

# ---- a section of recipes, of a room above train/

add_section() {
    file src/trust/toy_section.c <<'END'
/* [toy] of a recipe. */
#include "base/recipe.h"

typedef struct toy_values {
    int64_t bears;
} toy_values;

static const sti_option rows[] = {
    {.name = "bears",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 9),
     .default_text = "3",
     .offset = offsetof(toy_values, bears),
     .help = "how many there are"},
};

static void check(const stint_recipe *recipe, sti_complaints *complaints);

const sti_recipe_section sti_toy_section = {
    STI_RECIPE_SECTION("toy", rows, toy_values),
    .check = check,
};

static void check(const stint_recipe *recipe, sti_complaints *complaints)
{
    const toy_values *toys = sti_recipe_values(recipe, &sti_toy_section);
    if (toys->bears == 1)
        sti_complain(complaints, "toy.bears: one alone is sad");
}
END
    line src/recipe_sections.h 'STI_SECTION(net)' 'STI_SECTION(toy)'
}

# refuses VALUE WORDS: a recipe with so many bears
refuses() {
    "$build/stint" train "$tree/recipes/mnist-lenet5.ini" --set "toy.bears=$1" 2>"$work/err"
    [ $? -eq 2 ] && grep -qF "$2" "$work/err"
}

run_section() {
    "$build/stint" help --recipe-markdown | grep -A 4 '^## `\[toy\]`' |
        grep -qF '| `bears` | `3` | whole number, from 0 to 9 | how many there are |' || return 1
    refuses 10 bears || return 1
    refuses 1 'toy.bears: one alone is sad'
}

# ---- a chart of the training report: resident memory by epoch

add_chart() {
    file src/train/report_toy.c <<'END'
/* Resident memory at the end of every epoch. */
#include "page/chart.h"
#include "train/report_priv.h"

stint_status sti_report_add_toy(const sti_report_run *run, sti_page_file *page)
{
    const sti_chart_line resident = {
        &run->epoch, STI_EPOCH_RSS, 1, 1, STI_PAGE_PLAIN, "bytes", STI_CHART_DOTTED_CURVE};
    sti_page_section(&page->text, "Toys");
    sti_chart_add(&page->text, &(sti_chart){.title = "Resident bears",
                                            .x_label = "epoch",
                                            .unit = "",
                                            .line = &resident,
                                            .lines = 1,
                                            .from_zero = true,
                                            .y_max = STI_REPORT_NONE});
    sti_page_section_end(&page->text);
    return STINT_OK;
}
END
    line src/train/report_list.h 'STI_REPORT(curves)' 'STI_REPORT(toy)'
}

# The page of a run has the chart, with a dot an epoch, behind the curves.
run_chart() {
    mkdir -p "$work/run"
    {
        echo '{"event":"start","network":"toynet","steps":30,"epochs":3}'
        for epoch in 1 2 3; do
            echo "{\"event\":\"epoch\",\"epoch\":$epoch,\"step\":${epoch}0,\"train_loss\":1,\"rss_bytes\":${epoch}000}"
        done
        echo '{"event":"end","status":"ok"}'
    } >"$work/run/log.jsonl"
    "$build/stint" report "$work/run" || return 1
    tr -d '\n' <"$work/run/report.html" |
        sed 's/.*How it learnt//; s/Recipe and machine.*//' >"$work/page"
    grep -q '<h2>Toys.*Resident bears' "$work/page" || return 1
    [ "$(sed 's/.*Resident bears//' "$work/page" | grep -o '<circle' | wc -l)" -eq 3 ]
}

# ---- a subcommand

add_subcommand() {
    file src/cli/cmd_toy.c <<'END'
/* stint toy: says so. */
#include "cli/cli.h"

typedef struct toy_args {
    sti_cli_common common;
} toy_args;

static const sti_option toy_rows[] = {STI_CLI_COMMON_ROWS(toy_args)};

static stint_status toy_run(sti_cli_call *call)
{
    sti_text text = {0};
    sti_text_printf(&text, "a toy named %s\n", call->operands[0]);
    return sti_cli_print(&text);
}

const sti_cli_command sti_cmd_toy = {
    .name = "toy",
    .summary = "play",
    .operands = "NAME",
    .example = "stint toy bear",
    .about = "Says the name of a toy.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(toy_rows, toy_args),
    .run = toy_run,
};
END
    line src/cli/cli_table.c '    X(train)' '    X(toy) \'
}

run_subcommand() {
    [ "$("$build/stint" toy bear)" = "a toy named bear" ] || return 1
    "$build/stint" help | grep -qE '^ +toy +play$' || return 1
    "$build/stint" toy --help | grep -q 'Says the name of a toy.' || return 1
    "$build/stint" toy 2>"$work/err"
    [ $? -eq 2 ]
}

# ---- all of them

mkdir -p "$tree"
(cd "$source" && { git ls-files -z 2>/dev/null || find . -path ./build -prune -o -type f -print0; } |
    tar --null --files-from=- --ignore-failed-read -cf - 2>/dev/null) | tar -xf - -C "$tree"
[ -f "$tree/CMakeLists.txt" ] || fail "the tree could not be copied"
cp -r "$tree" "$work/untouched"

for kind in $kinds; do
    "add_$kind"
done
cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release >"$work/log" 2>&1 ||
    fail "configuring failed: $(tail -n 20 "$work/log")"
cmake --build "$build" --target $targets >"$work/log" 2>&1 ||
    fail "the build failed: $(grep -E 'error|FAILED' "$work/log" | head -n 20)"
bad=0
for kind in $kinds; do
    if "run_$kind" >"$work/log" 2>&1; then
        echo "$kind: added by one file and one line"
    else
        echo "$kind: the toy does not work: $(tail -n 20 "$work/log")"
        bad=1
    fi
done
python3 "$tree/scripts/check_layers.py" "$tree" || bad=1

for path in "${files[@]}"; do
    rm "$tree/$path"
done
for entry in "${lists[@]}"; do
    path=${entry%%:*}
    cp "$tree/$path" "$work/before"
    grep -vxF -- "${entry#*:}" "$work/before" >"$tree/$path"
done
rm -rf "$build"
rmdir "$tree/build"
diff -r "$work/untouched" "$tree" || {
    echo "without its file and its line a toy leaves something behind"
    bad=1
}
exit $bad
