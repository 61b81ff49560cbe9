/* stint svm grid: the search of LIBSVM's grid.py for C and gamma. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/units.h"
#include "cli/cli_svm.h"
#include "svm/svm_platt.h"
#include "svm/svm_score.h"

typedef struct grid_args {
    sti_svm_args svm; /* first: the shared rows count from it */
    const char *log2c, *log2g;
} grid_args;

static const sti_option grid_rows[] = {
    {.name = "log2c",
     .type = STI_OPTION_TEXT,
     .default_text = "-5,15,2",
     .offset = offsetof(grid_args, log2c),
     .flag = true,
     .unit = "A,B,STEP",
     .help = "exponents of 2 of C: from A by STEP to B; null: -c alone"},
    {.name = "log2g",
     .type = STI_OPTION_TEXT,
     .default_text = "3,-15,-2",
     .offset = offsetof(grid_args, log2g),
     .flag = true,
     .unit = "A,B,STEP",
     .help = "exponents of gamma; null: -g alone"},
#include "cli/cli_svm_rows.h"
};

enum { STEPS_MOST = 1000 };

/* Exponents to try; one NaN: what the flag says. */
typedef struct steps {
    int count;
    double at[STEPS_MOST];
} steps;

typedef struct trial {
    double log2c, log2g, c, gamma;
    double rate; /* percent, or mean squared error; NaN: a machine was not solved */
} trial;

typedef struct grid {
    sti_svm_task task;
    steps c, g;
    trial *trials; /* [c, g] in the order of their trial */
    int64_t done;
    const trial *best;
    double *answer;         /* [rows] */
    sti_svm_shared *shared; /* of the gamma at work */
    sti_svm_start *starts;  /* likewise: solutions of the last C; or NULL */
    int64_t folds;
} grid;

/* ---- what was asked ---- */

static stint_status read_steps(const char *flag, const char *words, steps *out)
{
    double number[3];
    const char *at = words ? words : "", *end = at + strlen(at);
    out->count = 0;
    if (strcmp(at, "null") == 0) {
        out->at[out->count++] = (double)NAN;
        return STINT_OK;
    }
    for (int i = 0; i < 3; i++) {
        if (!sti_number_read(at, end, &at, &number[i]) || at != (i < 2 ? at : end) ||
            (i < 2 && *at++ != ','))
            return sti_fail(STINT_E_USAGE,
                            "%s '%s'; A,B,STEP, three numbers, or null was wanted",
                            flag, words ? words : "");
    }
    if (number[2] == 0 || (number[1] - number[0]) * number[2] < 0)
        return sti_fail(STINT_E_USAGE, "%s %s; STEP must lead from A to B", flag,
                        words);
    for (double x = number[0]; number[2] > 0 ? x <= number[1] : x >= number[1];
         x += number[2]) {
        if (out->count == STEPS_MOST || fabs(x) > 1000)
            return sti_fail(
                STINT_E_USAGE,
                "%s %s; at most %d exponents from -1000 to 1000 were wanted", flag,
                words, STEPS_MOST);
        out->at[out->count++] = x;
    }
    return STINT_OK;
}

static stint_status choose(grid *g)
{
    const grid_args *args = g->task.call->args;
    stint_status st = sti_svm_choose(&g->task);
    if (st == STINT_OK)
        st = read_steps("--log2c", args->log2c, &g->c);
    if (st == STINT_OK)
        st = read_steps("--log2g", args->log2g, &g->g);
    if (st == STINT_OK && g->task.args->report)
        st = sti_fail(STINT_E_USAGE, "--report shows a model, and a grid makes none");
    if (g->task.folds == 0)
        g->task.folds = 5;
    return st;
}

/* ---- trials ---- */

static void on_fold(void *user, int64_t fold, int64_t folds)
{
    grid *g = user;
    char note[96];
    (void)snprintf(note, sizeof note, "%" PRId64 " of %d, fold %" PRId64 " of %" PRId64,
                   g->done + 1, g->c.count * g->g.count, fold + 1, folds);
    sti_progress_update(&g->task.bar, g->done, note);
}

/* As grid.py: of equal rates with the same gamma the one with the smaller C. */
static bool is_better(const grid *g, const trial *t)
{
    const trial *b = g->best;
    if (isnan(t->rate))
        return false;
    if (!b)
        return true;
    if (sti_svm_judges_numbers(&g->task) ? t->rate < b->rate : t->rate > b->rate)
        return true;
    return t->rate == b->rate && t->gamma == b->gamma && t->c < b->c;
}

static void set_parameters(sti_svm_fit *fit, const trial *t)
{
    fit->least_squares.c = fit->smo.c = t->c;
    fit->least_squares.function.gamma = fit->smo.function.gamma = t->gamma;
}

/* The plan is that of the largest C, whose preconditioner is the largest. */
static stint_status plan(grid *g)
{
    trial most = {.gamma = g->task.desc.function.gamma};
    for (int i = 0; i < g->c.count; i++)
        most.c = fmax(most.c, isnan(g->c.at[i]) ? g->task.desc.c : exp2(g->c.at[i]));
    set_parameters(&g->task.fit, &most);
    if (g->c.count > 1)
        g->task.start_bytes =
            sti_svm_starts_bytes(&g->task.fit, &g->task.table, g->folds);
    return sti_svm_make_plan(&g->task);
}

/* Folds are the same every time, as every svm-train of grid.py draws the same ones. */
static stint_status try_one(grid *g, trial *t)
{
    sti_svm_task *task = &g->task;
    const int64_t rows = task->table.x.rows;
    sti_libc_random random;
    set_parameters(&task->fit, t);
    const sti_svm_folds_desc desc = {
        .fit = &task->fit,
        .table = &task->table,
        .folds = g->folds,
        .probable = task->args->probability == 1 ? sti_svm_fit_probable : NULL,
        .threads = task->desc.threads,
        .told = on_fold,
        .user = g,
        .shared = &g->shared,
        .starts = g->starts};
    sti_libc_random_begin(&random, 1);
    const stint_status st = sti_svm_cross_validate(&desc, &random, g->answer);
    if (st == STINT_E_FAILED) {
        if (sti_svm_tells(task))
            sti_log(STINT_LOG_WARNING, "%s", stint_last_error());
        t->rate = (double)NAN;
        return STINT_OK;
    }
    if (st != STINT_OK)
        return st;
    const sti_svm_score s = sti_svm_score_of(rows, g->answer, task->table.y);
    t->rate = sti_svm_judges_numbers(task)
                  ? s.mse
                  : 100 * ((double)s.correct / (double)s.total);
    return STINT_OK;
}

static void add_number(const char *before, double value, sti_text *out)
{
    char text[STI_NUMBER_BYTES];
    sti_text_printf(out, "%s%s", before, sti_number_text(value, text));
}

/* A line as grid.py writes it into its .out file, as soon as it is known. */
static stint_status tell(const grid *g, const trial *t)
{
    sti_text text = {0};
    if (g->task.call->common->json || !sti_svm_tells(&g->task))
        return STINT_OK;
    if (!isnan(t->log2c))
        add_number("log2c=", t->log2c, &text);
    if (!isnan(t->log2g))
        add_number(isnan(t->log2c) ? "log2g=" : " log2g=", t->log2g, &text);
    if (isnan(t->rate))
        sti_text_add(&text, " rate=none\n");
    else
        sti_text_printf(&text, " rate=%g\n", t->rate);
    return sti_cli_print(&text);
}

static stint_status try_all(grid *g)
{
    sti_svm_task *task = &g->task;
    const double c = task->desc.c, gamma = task->desc.function.gamma;
    stint_status st = STINT_OK;
    for (int j = 0; j < g->g.count && st == STINT_OK; j++) {
        sti_svm_shared_destroy(g->shared);
        g->shared = NULL;
        sti_svm_starts_forget(g->starts, g->folds);
        for (int i = 0; i < g->c.count && st == STINT_OK; i++) {
            trial *t = &g->trials[g->done];
            *t = (trial){.log2c = g->c.at[i], .log2g = g->g.at[j]};
            t->c = isnan(t->log2c) ? c : exp2(t->log2c);
            t->gamma = isnan(t->log2g) ? gamma : exp2(t->log2g);
            st = try_one(g, t);
            if (st != STINT_OK)
                break;
            g->best = is_better(g, t) ? t : g->best;
            g->done++;
            sti_progress_clear(&task->bar);
            st = tell(g, t);
        }
    }
    return st;
}

/* ---- the answer ---- */

static void add_trial_json(sti_json *j, const char *name, const trial *t)
{
    sti_json_begin_object(j, name);
    sti_json_float(j, "c", t->c);
    sti_json_float(j, "gamma", t->gamma);
    sti_json_float(j, "rate", t->rate);
    sti_json_end_object(j);
}

static stint_status answer(grid *g)
{
    sti_text text = {0};
    sti_json j;
    if (!g->best)
        return sti_fail(STINT_E_FAILED,
                        "no machine of the grid was solved; a larger -i "
                        "or -e, or scaled data, was wanted");
    if (g->task.call->common->json) {
        sti_cli_json_begin(&j, &text);
        add_trial_json(&j, "best", g->best);
        sti_json_begin_array(&j, "table");
        for (int64_t i = 0; i < g->done; i++)
            add_trial_json(&j, NULL, &g->trials[i]);
        sti_json_end_array(&j);
        sti_json_end_object(&j);
    } else {
        add_number("", g->best->c, &text);
        add_number(" ", g->best->gamma, &text);
        sti_text_printf(&text, " %g\n", g->best->rate);
    }
    return sti_cli_answer(g->task.call, &text);
}

/* Read and plan on every rank; one that cannot stops all of them. */
static stint_status prepare(grid *g)
{
    stint_status st;
    STI_TRY(sti_svm_read(&g->task));
    STI_TRY(sti_svm_count_folds(&g->task, &g->folds));
    STI_TRY(plan(g));
    g->trials = sti_alloc_array((int64_t)g->c.count * g->g.count, sizeof *g->trials,
                                "svm.trials");
    g->answer = sti_alloc_array(g->task.table.x.rows, sizeof *g->answer, "svm.answers");
    STI_TRY(g->trials && g->answer ? STINT_OK : STINT_E_MEMORY);
    if (g->c.count > 1)
        st = sti_svm_starts_create(&g->task.fit, &g->task.table, g->folds, &g->starts);
out:
    return sti_svm_agree(&g->task, st);
}

static stint_status run_grid(grid *g, stint_net *net)
{
    sti_svm_task *task = &g->task;
    sti_cli_catch_signals();
    task->comm = sti_net_comm(net);
    stint_status st = prepare(g);
    if (st != STINT_OK)
        return st;
    sti_progress_begin(&task->bar, "grid", NULL, (int64_t)g->c.count * g->g.count,
                       task->call->common->quiet || !sti_svm_tells(task));
    st = try_all(g);
    sti_progress_clear(&task->bar);
    return st == STINT_OK && sti_svm_tells(task) ? answer(g) : st;
}

static stint_status grid_run(sti_cli_call *call)
{
    grid *g = sti_alloc(sizeof *g, "svm.grid");
    if (!g)
        return STINT_E_MEMORY;
    const grid_args *args = call->args;
    *g = (grid){.task = {.call = call, .args = &args->svm}};
    stint_net *net = NULL;
    stint_status st = choose(g);
    if (st == STINT_OK)
        st = sti_svm_join(&g->task, &net);
    if (st == STINT_OK)
        st = sti_cli_leave(call, net, run_grid(g, net));
    sti_svm_shared_destroy(g->shared);
    sti_free(g->starts);
    sti_free(g->trials);
    sti_free(g->answer);
    sti_svm_finish(&g->task);
    sti_free(g);
    return st;
}

const sti_cli_command sti_cmd_svm_grid = {
    .name = "svm grid",
    .summary = "search C and gamma by cross-validation",
    .operands = "DATA",
    .example = "stint svm grid --log2c -1,9,2 --log2g 1,-7,-2 train.libsvm\n"
               "stint svm grid -s c_svc -v 10 --log2g null -t linear train.libsvm",
    .about =
        "Prints a line for every pair and, last, the best C and gamma with their "
        "rate: percent of right answers or, of numbers, the mean squared error. The "
        "other options are those of `stint svm train`; -v is 5 where it is not "
        "given.",
    .min_operands = 1,
    .max_operands = 1,
    .rows = grid_rows,
    .row_count = sizeof grid_rows / sizeof *grid_rows,
    .args_bytes = sizeof(grid_args),
    .common_offset = offsetof(grid_args, svm.common),
    .run = grid_run,
};
