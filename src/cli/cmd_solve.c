/* stint solve: sparse systems from Matrix Market files. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/stop.h"
#include "base/units.h"
#include "cli/cli_solve.h"

#define SOLVE_ROW(field, kind, standard, words) \
    .type = (kind), .default_text = (standard), \
    .offset = offsetof(sti_solve_args, field), .flag = true, .help = (words)

static const sti_option solve_rows[] = {
    {.name = "rhs",
     .unit = "FILE",
     SOLVE_ROW(rhs, STI_OPTION_PATH, "",
               "right-hand sides, [n] or [n, k], .npy or .mtx; none: A times ones, and "
               "the error is told")},
    {.name = "out",
     .letter = 'o',
     .unit = "FILE",
     SOLVE_ROW(out, STI_OPTION_PATH, "", "the answer, .npy or .mtx")},
    {.name = "triangle",
     .choices = "auto|lower|upper",
     .unit = "PART",
     SOLVE_ROW(triangle, STI_OPTION_CHOICE, "auto",
               "solve with that part of any square matrix")},
    {.name = "transpose",
     SOLVE_ROW(transpose, STI_OPTION_BOOL, "false", "with the triangle's transpose")},
    {.name = "unit-diagonal",
     SOLVE_ROW(unit, STI_OPTION_BOOL, "false", "take the diagonal for ones")},
    {.name = "method",
     .choices = "auto|trsv|cg|gmres|bicgstab",
     .unit = "NAME",
     SOLVE_ROW(method, STI_OPTION_CHOICE, "auto",
               "auto: a triangle by trsv; symmetric with a positive diagonal by cg; "
               "others by gmres")},
    {.name = "precond",
     .choices = "auto|none|jacobi|gs|ic0|ilu0",
     .unit = "NAME",
     SOLVE_ROW(precond, STI_OPTION_CHOICE, "auto",
               "auto: ic0 with cg, ilu0 with the others")},
    {.name = "tol",
     .unit = "X",
     .min = 1e-300,
     .max = 1,
     SOLVE_ROW(tolerance, STI_OPTION_FLOAT, "1e-8",
               "until ||b - A x|| is so much of ||b||")},
    {.name = "max-iter",
     .unit = "N",
     .min = 1,
     .max = 1e9,
     SOLVE_ROW(iterations, STI_OPTION_INT, "10000", "iterations at most")},
    {.name = "restart",
     .unit = "N",
     .min = 1,
     .max = 1000,
     SOLVE_ROW(restart, STI_OPTION_INT, "30", "vectors that gmres keeps")},
    {.name = "order",
     .choices = "natural|rcm",
     .unit = "NAME",
     SOLVE_ROW(order, STI_OPTION_CHOICE, "natural",
               "of rows; rcm: reverse Cuthill-McKee")},
    {.name = "strategy",
     .choices = "auto|natural|level|pool|superstep|supernode",
     .unit = "NAME",
     SOLVE_ROW(strategy, STI_OPTION_CHOICE, "auto",
               "of triangular solves; none changes a bit of the answer")},
    {.name = "tasks",
     .unit = "K",
     .min = 0,
     .max = 1e9,
     SOLVE_ROW(tasks, STI_OPTION_INT, "0", "of the pool, a thread; 0: by simulation")},
    {.name = "solves",
     .unit = "N",
     .min = 1,
     .max = 1e6,
     SOLVE_ROW(solves, STI_OPTION_INT, "1", "plan for so many solves, and do them")},
    {.name = "precision",
     .choices = "double|float",
     .unit = "NAME",
     SOLVE_ROW(precision, STI_OPTION_CHOICE, "double", "of triangular solves")},
    {.name = "duplicates",
     .choices = "error|sum",
     .unit = "WHAT",
     SOLVE_ROW(duplicates, STI_OPTION_CHOICE, "error", "entries at one place")},
    {.name = "memory",
     .unit = "SIZE",
     SOLVE_ROW(memory_bytes, STI_OPTION_BYTES, "auto",
               "bound on the peak of the whole process; changes time, never the "
               "answer")},
    {.name = "plan",
     SOLVE_ROW(plan, STI_OPTION_BOOL, "false", "say what it takes, and solve nothing")},
    STI_CLI_THREADS_ROW(sti_solve_args),
    STI_CLI_COMMON_ROWS(sti_solve_args),
};

/* ---- solving ---- */

static void on_iteration(void *user, int64_t iteration, double relative)
{
    sti_solve_task *t = user;
    char note[96];
    (void)snprintf(note, sizeof note, "iteration %lld, residual %.2e",
                   (long long)iteration, relative);
    sti_progress_update(&t->bar, iteration, note);
}

static stint_status alloc_answer(sti_solve_task *t)
{
    const int64_t count = t->n * t->columns;
    t->x = sti_alloc_array(count, sizeof *t->x, "solve.x");
    t->seconds = sti_alloc_array(t->args->solves, sizeof *t->seconds, "solve.seconds");
    if (!t->x || !t->seconds)
        return STINT_E_MEMORY;
    if (!t->desc.single)
        return STINT_OK;
    t->b32 = sti_alloc_array(count, sizeof *t->b32, "solve.b");
    t->x32 = sti_alloc_array(count, sizeof *t->x32, "solve.x");
    if (!t->b32 || !t->x32)
        return STINT_E_MEMORY;
    for (int64_t k = 0; k < count; k++)
        t->b32[k] = (float)t->b[k];
    return STINT_OK;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static const void *side(const sti_solve_task *t)
{
    return t->desc.single ? (const void *)t->b32 : t->b;
}

static void *answer_of(const sti_solve_task *t)
{
    return t->desc.single ? (void *)t->x32 : t->x;
}

/* As often as was asked; the first failure is enough. */
static void run_solves(sti_solve_task *t)
{
    int64_t done = 0;
    while (done < t->args->solves && t->solved == STINT_OK) {
        const stint_status stop = sti_stop_asked();
        if (stop != STINT_OK) {
            t->solved = sti_fail(stop, "stopped after %" PRId64 " solves", done);
            return;
        }
        const int64_t start = sti_clock_ns();
        t->solved = sti_system_solve(t->system, t->columns, side(t), answer_of(t),
                                     &t->iterations);
        t->seconds[done++] = sti_seconds_since(start);
    }
    qsort(t->seconds, (size_t)done, sizeof *t->seconds, compare);
    t->solve_s = t->seconds[done / 2];
}

static void find_error(sti_solve_task *t)
{
    for (int64_t k = 0; t->desc.single && k < t->n * t->columns; k++)
        t->x[k] = (double)t->x32[k];
    for (int64_t i = 0; t->ones && i < t->n; i++)
        if (!(fabs(t->x[i] - 1) <= t->error))
            t->error = fabs(t->x[i] - 1);
}

/* What the recursion says is not enough: the residual is computed anew. */
static stint_status solve(sti_solve_task *t)
{
    stint_status st;
    t->desc.progress = on_iteration;
    t->desc.progress_user = t;
    t->desc.stops = true;
    STI_TRY(alloc_answer(t));
    STI_TRY(sti_system_create(&t->desc, &t->system));
    sti_cli_catch_signals(); /* before that there is nothing to clear away */
    sti_progress_begin(&t->bar, "solve", NULL,
                       t->choice.method == STI_METHOD_TRSV ? 1 : t->args->iterations,
                       t->call->common->quiet);
    run_solves(t);
    sti_progress_clear(&t->bar);
    if (t->solved != STINT_OK && t->solved != STINT_E_FAILED)
        return t->solved;
    STI_TRY(
        sti_system_judge(t->system, t->columns, side(t), answer_of(t), &t->residual));
    find_error(t);
    for (int64_t k = 0; t->solved == STINT_OK && k < t->n * t->columns; k++)
        if (!isfinite(t->x[k]))
            t->solved =
                sti_fail(STINT_E_FAILED,
                         "row %" PRId64 " of the answer is beyond the largest %s",
                         k / t->columns + 1, t->desc.single ? "float" : "double");
out:
    return st;
}

/* ---- what is told ---- */

static void hash_answer(const sti_solve_task *t, char hex[65])
{
    const size_t count = (size_t)(t->n * t->columns);
    sti_sha256 hash;
    sti_sha256_init(&hash);
    sti_sha256_add(&hash, answer_of(t),
                   count * (t->desc.single ? sizeof(float) : sizeof(double)));
    sti_sha256_hex(&hash, hex);
}

static void add_json(const sti_solve_task *t, sti_text *out)
{
    const sti_system_info *i = sti_system_info_of(t->system);
    const bool planned = i->trsv.threads > 0;
    char hex[65];
    sti_json j;
    hash_answer(t, hex);
    sti_cli_json_begin(&j, out);
    sti_json_int(&j, "n", t->n);
    sti_json_int(&j, "nonzeros", t->market.a.start[t->n]);
    sti_json_text(&j, "kind", sti_matrix_kind_names[i->kind]);
    sti_json_text(&j, "method", sti_method_names[i->method]);
    sti_json_text(&j, "precond", sti_precond_names[i->precond]);
    sti_json_text(&j, "strategy",
                  planned ? sti_trsv_strategy_names[i->trsv.strategy] : NULL);
    sti_json_known(&j, "tasks", i->trsv.tasks);
    sti_json_known(&j, "levels", i->trsv.levels);
    sti_json_int(&j, "threads", t->desc.threads);
    sti_json_int(&j, "ranks", 1);
    sti_json_bool(&j, "converged", t->solved == STINT_OK);
    sti_json_int(&j, "iterations", t->iterations);
    sti_json_float(&j, "residual", t->residual.relative);
    sti_json_float(&j, "backward_error", t->residual.backward);
    if (t->ones)
        sti_json_float(&j, "error", t->error);
    sti_json_float(&j, "analysis_s", i->analysis_s);
    sti_json_float(&j, "factor_s", i->factor_s);
    sti_json_float(&j, "solve_s", t->solve_s);
    sti_json_float(&j, "predicted_s", i->predicted_s);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)t->account.total_bytes);
    sti_json_known(&j, "peak_rss_bytes", (int64_t)sti_process_peak_bytes());
    sti_json_int(&j, "messages", 0);
    sti_json_int(&j, "bytes_sent", 0);
    sti_json_text(&j, "x_sha256", hex);
    sti_json_end_object(&j);
}

static void add_words(const sti_solve_task *t, sti_text *out)
{
    const sti_system_info *i = sti_system_info_of(t->system);
    sti_text_printf(out, "%s: %s rows, %s entries, %s; %s", t->call->operands[0],
                    sti_count_text(t->n), sti_count_text(t->market.a.start[t->n]),
                    sti_matrix_kind_names[i->kind], sti_method_names[i->method]);
    if (i->precond != STI_PRECOND_NONE)
        sti_text_printf(out, " with %s", sti_precond_names[i->precond]);
    if (i->trsv.threads > 0)
        sti_text_printf(out, ", %s on %d thread%s",
                        sti_trsv_strategy_names[i->trsv.strategy], i->trsv.threads,
                        sti_s(i->trsv.threads));
    if (i->method != STI_METHOD_TRSV)
        sti_text_printf(out, "; %" PRId64 " iteration%s", t->iterations,
                        sti_s(t->iterations));
    sti_text_printf(out, "\nresidual %.2e, backward error %.2e", t->residual.relative,
                    t->residual.backward);
    if (t->ones)
        sti_text_printf(out, ", error %.2e", t->error);
    sti_text_printf(out, "; analysis %s, ", sti_time_text(i->analysis_s));
    sti_text_printf(out, "factors %s, ", sti_time_text(i->factor_s));
    sti_text_printf(out, "a solve %s\n", sti_time_text(t->solve_s));
}

static stint_status tell(sti_solve_task *t)
{
    sti_text text = {0};
    if (t->call->common->json)
        add_json(t, &text);
    else
        add_words(t, &text);
    return sti_cli_answer(t->call, &text);
}

/* A plan that does not fit is told, too, and then refused. */
static stint_status tell_plan(const sti_solve_task *t, stint_status fits)
{
    const sti_account *a = &t->account;
    sti_text text = {0};
    sti_json j;
    if (t->call->common->json) {
        sti_cli_json_begin(&j, &text);
        sti_json_text(&j, "method", sti_method_names[t->choice.method]);
        sti_json_text(&j, "precond", sti_precond_names[t->choice.precond]);
        sti_json_int(&j, "peak_bytes", (int64_t)a->total_bytes);
        sti_json_int(&j, "smallest_bytes", (int64_t)t->least_bytes);
        sti_json_bool(&j, "fits", fits == STINT_OK);
        sti_json_begin_array(&j, "parts");
        for (int i = 0; i < a->count; i++) {
            sti_json_begin_object(&j, NULL);
            sti_json_text(&j, "name", a->parts[i].name);
            sti_json_int(&j, "bytes", (int64_t)a->parts[i].bytes);
            sti_json_end_object(&j);
        }
        sti_json_end_array(&j);
        sti_json_end_object(&j);
    } else {
        for (int i = 0; i < a->count; i++)
            sti_text_printf(&text, "%-9s %10s  %s\n", a->parts[i].name,
                            sti_bytes_text(a->parts[i].bytes), a->parts[i].detail);
        sti_text_printf(&text, "peak      %10s  at most",
                        sti_bytes_text(a->total_bytes));
        sti_text_printf(&text, "; smallest %s\n", sti_bytes_text(t->least_bytes));
    }
    const stint_status st = sti_cli_answer(t->call, &text);
    return fits != STINT_OK ? fits : st;
}

/* ---- the command ---- */

static bool ends_in(const char *path, const char *ending)
{
    return strcasecmp(sti_path_extension(path), ending) == 0;
}

static stint_status check_files(const sti_solve_task *t)
{
    const sti_solve_args *a = t->args;
    stint_status st = STINT_OK;
    if (!a->out)
        return STINT_OK;
    if (!ends_in(a->out, ".npy") && !ends_in(a->out, ".mtx"))
        return sti_fail(STINT_E_USAGE, "--out %s; a name in .npy or .mtx was wanted",
                        a->out);
    STI_TRY(sti_cli_check_out(t->call->operands[0], a->out));
    if (a->rhs)
        STI_TRY(sti_cli_check_out(a->rhs, a->out));
    st = sti_path_check_file(a->out);
out:
    return st;
}

/* No answer is left of what did not converge. */
static stint_status solve_and_tell(sti_solve_task *t)
{
    stint_status st;
    char why[512] = "";
    STI_TRY(solve(t));
    (void)snprintf(why, sizeof why, "%s", stint_last_error());
    if (t->solved == STINT_OK)
        STI_TRY(sti_solve_write(t));
    STI_TRY(tell(t));
    if (t->solved != STINT_OK)
        st = sti_fail(t->solved, "%s", why);
out:
    return st;
}

static stint_status solve_run(sti_cli_call *call)
{
    sti_solve_task t = {.call = call, .args = call->args};
    stint_status st;
    STI_TRY(check_files(&t));
    STI_TRY(sti_solve_read(&t));
    STI_TRY(sti_solve_read_sides(&t));
    st = sti_solve_make_plan(&t);
    if (t.args->plan)
        st = tell_plan(&t, st);
    else if (st == STINT_OK)
        st = solve_and_tell(&t);
out:
    sti_solve_finish(&t);
    return st;
}

static const sti_cli_absent solve_absent[] = {
    {.word = "--report",
     .status = STINT_E_UNSUPPORTED,
     .sentence = "there is no page of a solve yet; --json has its figures"},
#define SOLVE_ABSENT_NET(flag)                                           \
    {                                                                    \
        .word = (flag), .status = STINT_E_UNSUPPORTED,                   \
        .sentence = "a solve is of one process yet; -j shares it among " \
                    "threads"                                            \
    }
    SOLVE_ABSENT_NET("--net-root"),
    SOLVE_ABSENT_NET("--net-ranks"),
    SOLVE_ABSENT_NET("--net-rank"),
    {.word = NULL},
};

const sti_cli_command sti_cmd_solve = {
    .name = "solve",
    .summary = "solve a sparse system of equations",
    .operands = "FILE.mtx",
    .example = "stint solve L.mtx --rhs b.npy --out x.npy --solves 1000\n"
               "stint solve A.mtx --method cg --precond ic0 --tol 1e-10",
    .about = "The same bits for any strategy, --tasks, -j, --memory and instruction "
             "set. An end that does not come within --max-iter is exit code 1 with the "
             "best residual, and no --out.",
    .min_operands = 1,
    .max_operands = 1,
    .absent = solve_absent,
    STI_CLI_ARGS(solve_rows, sti_solve_args),
    .run = solve_run,
};
