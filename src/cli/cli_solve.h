/* stint solve: what its halves share. */
#ifndef STI_CLI_CLI_SOLVE_H
#define STI_CLI_CLI_SOLVE_H

#include "base/progress.h"
#include "cli/cli.h"
#include "data/matrix_market.h"
#include "solve/system.h"

typedef struct sti_solve_args {
    const char *rhs, *out;
    int triangle, method, precond, order, strategy, precision, duplicates;
    bool transpose, unit, plan;
    double tolerance;
    int64_t iterations, restart, tasks, solves, threads;
    size_t memory_bytes;
    sti_cli_common common;
} sti_solve_args;

/* A system on its way from file to answer. */
typedef struct sti_solve_task {
    sti_cli_call *call;
    const sti_solve_args *args;
    sti_market market;
    sti_system_desc desc;
    sti_system_info choice;
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
} sti_solve_task;

/* The matrix, and the right-hand sides, which the caller frees by sti_solve_finish. */
stint_status sti_solve_read(sti_solve_task *t);
/* The account; STINT_E_BUDGET where it does not fit. */
stint_status sti_solve_make_plan(sti_solve_task *t);
stint_status sti_solve_read_sides(sti_solve_task *t);
stint_status sti_solve_write(const sti_solve_task *t);
void sti_solve_finish(sti_solve_task *t);

#endif
