/* stint solve: sparse systems from Matrix Market files. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/stop.h"
#include "base/units.h"
#include "cli/cli_links.h"
#include "cli/cli_solve.h"
#include "net/net.h"
#include "solve/solve_report.h"

#define SOLVE_ROW(field, kind, standard, words) \
    .type = (kind), .default_text = (standard), \
    .offset = offsetof(sti_solve_args, field), .flag = true, .help = (words)

static const sti_option solve_rows[] = {
    {.name = "rhs",
     .unit = "FILE",
     SOLVE_ROW(rhs, STI_OPTION_PATH, "",
               "[n] or [n, k], .npy or .mtx; none: A times ones")},
    {.name = "out",
     .letter = 'o',
     .unit = "FILE",
     SOLVE_ROW(out, STI_OPTION_PATH, "", "the answer, .npy or .mtx")},
    {.name = "triangle",
     .choices = "auto|lower|upper",
     .unit = "PART",
     SOLVE_ROW(triangle, STI_OPTION_CHOICE, "auto", "of a square matrix")},
    {.name = "transpose",
     SOLVE_ROW(transpose, STI_OPTION_BOOL, "false", "with the triangle's transpose")},
    {.name = "unit-diagonal",
     SOLVE_ROW(unit, STI_OPTION_BOOL, "false", "take the diagonal for ones")},
    {.name = "method",
     .choices = "auto|trsv|cg|gmres|bicgstab",
     .unit = "NAME",
     SOLVE_ROW(method, STI_OPTION_CHOICE, "auto",
               "auto: triangles by trsv, symmetric ones by cg")},
    {.name = "precond",
     .choices = "auto|none|jacobi|gs|ic0|ilu0",
     .unit = "NAME",
     SOLVE_ROW(precond, STI_OPTION_CHOICE, "auto", "auto: ic0 with cg, else ilu0")},
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
     SOLVE_ROW(order, STI_OPTION_CHOICE, "natural", "of rows")},
    {.name = "strategy",
     .choices = "auto|natural|level|pool|superstep|supernode",
     .unit = "NAME",
     SOLVE_ROW(strategy, STI_OPTION_CHOICE, "auto", "of triangular solves")},
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
    {.name = "device",
     .choices = "cpu|cuda",
     .unit = "NAME",
     SOLVE_ROW(device, STI_OPTION_CHOICE, "cpu",
               "of triangular solves; the same bits")},
    {.name = "duplicates",
     .choices = "error|sum",
     .unit = "WHAT",
     SOLVE_ROW(duplicates, STI_OPTION_CHOICE, "error", "entries at one place")},
    {.name = "memory",
     .unit = "SIZE",
     SOLVE_ROW(memory_bytes, STI_OPTION_BYTES, "auto",
               "bound on the peak of the process")},
    {.name = "report",
     .unit = "FILE",
     SOLVE_ROW(report, STI_OPTION_PATH, "",
               "a page: pattern, levels, tasks, residuals")},
    {.name = "plan",
     SOLVE_ROW(plan, STI_OPTION_BOOL, "false", "say what it takes, and solve nothing")},
    STI_CLI_NET_ROW(sti_solve_args, net_root, "net-root", STI_OPTION_TEXT, "", 0, -1,
                    "ADDRESS",
                    "where ranks meet, HOST:PORT or @NAME; not under mpirun"),
    STI_CLI_NET_ROW(sti_solve_args, net_ranks, "net-ranks", STI_OPTION_INT, "0", 0,
                    WIRE_RANKS, "N", "how many meet; 0: as mpirun says"),
    STI_CLI_NET_ROW(sti_solve_args, net_rank, "net-rank", STI_OPTION_INT, "0", 0,
                    WIRE_RANKS - 1, "R", "which of them this is, from 0"),
    STI_CLI_NET_ROW(sti_solve_args, net_timeout_s, "net-timeout", STI_OPTION_TIME,
                    "30s", 0, -1, "TIME", "so long silent, a process is lost"),
    {.name = "net-sockets",
     SOLVE_ROW(net_sockets, STI_OPTION_BOOL, "false",
               "share no memory between processes of a host")},
    STI_CLI_THREADS_ROW(sti_solve_args),
    STI_CLI_COMMON_ROWS(sti_solve_args),
};

/* ---- solving ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
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
        t->solved = sti_system_solve(t->system, t->columns, sti_solve_side(t),
                                     sti_solve_answer(t), &t->iterations);
        t->seconds[done++] = sti_seconds_since(start);
    }
    qsort(t->seconds, (size_t)done, sizeof *t->seconds, compare);
    t->solve_s = t->seconds[done / 2];
}

/* What the recursion says is not enough: the residual is computed anew. */
static stint_status solve(sti_solve_task *t)
{
    stint_status st;
    t->desc.stops = true;
    STI_TRY(sti_solve_alloc(t));
    STI_TRY(sti_solve_watch(t));
    STI_TRY(sti_system_create(&t->desc, &t->system));
    sti_cli_catch_signals(); /* before that there is nothing to clear away */
    sti_solve_begin_bar(t);
    run_solves(t);
    sti_progress_clear(&t->bar);
    if (t->solved != STINT_OK && t->solved != STINT_E_FAILED)
        return t->solved;
    STI_TRY(sti_system_judge(t->system, t->columns, sti_solve_side(t),
                             sti_solve_answer(t), &t->residual));
    t->info = *sti_system_info_of(t->system);
    sti_solve_find_error(t);
out:
    return st;
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
    if (a->report) {
        STI_TRY(sti_cli_check_out(t->call->operands[0], a->report));
        if (a->rhs)
            STI_TRY(sti_cli_check_out(a->rhs, a->report));
        if (a->out)
            STI_TRY(sti_cli_check_out(a->out, a->report));
        STI_TRY(sti_path_check_file(a->report));
    }
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

static stint_status write_report(sti_solve_task *t)
{
    const sti_operator op = sti_system_operator(&t->desc, &t->choice);
    if (!t->args->report)
        return STINT_OK;
    return sti_solve_report_write(
        &(sti_solve_report){.name = t->call->operands[0],
                            .a = &t->market.a,
                            .upper = op.part == STI_PART_UPPER,
                            .system = t->system,
                            .residual = &t->residual,
                            .history = &t->history,
                            .iterations = t->iterations,
                            .solve_s = t->solve_s},
        t->args->report);
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
    STI_TRY(write_report(t));
    STI_TRY(sti_solve_tell(t));
    if (t->solved != STINT_OK)
        st = sti_fail(t->solved, "%s", why);
out:
    return st;
}

static stint_status solve_alone(sti_solve_task *task)
{
    sti_solve_task t = *task;
    stint_status st;
    if (t.args->device == 1) /* before memory is measured */
        STI_TRY(sti_trsv_device_open(&t.desc.device));
    STI_TRY(sti_solve_read(&t));
    STI_TRY(sti_solve_read_sides(&t));
    st = sti_solve_make_plan(&t);
    if (t.args->plan)
        st = sti_solve_tell_plan(&t, st);
    else if (st == STINT_OK)
        st = solve_and_tell(&t);
out:
    sti_solve_finish(&t);
    return st;
}

/* One process, or a rank of several. */
static stint_status solve_run(sti_cli_call *call)
{
    const sti_solve_args *a = call->args;
    sti_solve_task t = {.call = call, .args = a};
    stint_net *net = NULL;
    stint_status st = check_files(&t);
    if (st == STINT_OK)
        st = stint_net_join(&(stint_net_desc){.root = a->net_root,
                                              .rank = (int)a->net_rank,
                                              .ranks = (int)a->net_ranks,
                                              .timeout_s = a->net_timeout_s,
                                              .sockets_only = a->net_sockets,
                                              .purpose = call->command->name},
                            &net);
    if (st != STINT_OK)
        return st;
    if (!net)
        return solve_alone(&t);
    sti_cli_catch_signals();
    st = sti_solve_on_ranks(&t, sti_net_comm(net));
    sti_solve_finish(&t);
    return sti_cli_leave(call, net, st);
}

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
    STI_CLI_ARGS(solve_rows, sti_solve_args),
    .run = solve_run,
};
