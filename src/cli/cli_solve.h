/* stint solve: what its halves share. */
#ifndef STI_CLI_CLI_SOLVE_H
#define STI_CLI_CLI_SOLVE_H

#include "base/progress.h"
#include "cli/cli.h"
#include "data/matrix_market.h"
#include "net/comm.h"
#include "page/series.h"
#include "solve/system.h"

typedef struct sti_solve_args {
    const char *rhs, *out, *report;
    int triangle, method, precond, order, strategy, precision, device, duplicates;
    bool transpose, unit, plan;
    double tolerance;
    int64_t iterations, restart, tasks, solves, threads;
    size_t memory_bytes;
    const char *net_root;
    int64_t net_ranks, net_rank;
    double net_timeout_s;
    bool net_sockets;
    sti_cli_common common;
} sti_solve_args;

/* A system on its way from file to answer. */
typedef struct sti_solve_task {
    sti_cli_call *call;
    const sti_solve_args *args;
    sti_market market;
    sti_system_desc desc;
    sti_system_info choice;
    sti_system_info info; /* once it is solved */
    int ranks;
    int64_t nonzeros;
    int64_t messages,
        bytes_sent; /* of one solve, by all ranks; and counted beforehand */
    int64_t planned_messages, planned_bytes;
    size_t matrix_bytes; /* of this rank's rows */
    sti_system *system;
    sti_account account;
    size_t read_peak_bytes, least_bytes;
    int64_t n, columns;
    double *b, *x;    /* [n, columns] */
    float *b32, *x32; /* the same with --precision float */
    bool ones;        /* b is A 1 */
    double *seconds;  /* [solves] */
    int64_t iterations;
    stint_status solved;
    sti_residual residual;
    double solve_s, error; /* median; the most that x is from 1 */
    sti_progress bar;
    sti_series history; /* with --report: log10 of the residual by iteration */
} sti_solve_task;

/* The matrix, and the right-hand sides, which the caller frees by sti_solve_finish. */
stint_status sti_solve_read(sti_solve_task *t);
/* The account; STINT_E_BUDGET where it does not fit. */
stint_status sti_solve_make_plan(sti_solve_task *t);
stint_status sti_solve_read_sides(sti_solve_task *t);
stint_status sti_solve_write(const sti_solve_task *t);
void sti_solve_finish(sti_solve_task *t);
/* t->desc by the arguments, and threads. */
stint_status sti_solve_describe(sti_solve_task *t);
size_t sti_solve_process_bytes(void);
void sti_solve_add_process(sti_account *account, int threads);

/* x, and where its figures go; floats of b. */
stint_status sti_solve_alloc(sti_solve_task *t);
const void *sti_solve_side(const sti_solve_task *t);
void *sti_solve_answer(const sti_solve_task *t);
/* Before the system is made: iterations are told by a bar, and kept for a report. */
stint_status sti_solve_watch(sti_solve_task *t);
void sti_solve_begin_bar(sti_solve_task *t); /* once the choice is known */
/* t->x from floats, the error, and t->solved where x is not finite. */
void sti_solve_find_error(sti_solve_task *t);
/* Words or JSON; a plan that does not fit is told, too, and then refused. */
stint_status sti_solve_tell(sti_solve_task *t);
stint_status sti_solve_tell_plan(const sti_solve_task *t, stint_status fits);

/* The whole of it on several ranks. */
stint_status sti_solve_on_ranks(sti_solve_task *t, sti_comm *comm);

#endif
