/* Sparse systems of equations: triangular solves that are planned once and run often,
 * and whole systems by preconditioned Krylov methods.
 *
 * Matrices are square, in compressed rows: row i has the entries start[i] to
 * start[i + 1] - 1, columns counted from 0 and strictly ascending within a row.
 *
 *   const stint_matrix a = {.n = n, .start = start, .column = column, .value = value};
 *   stint_trsv *plan = NULL;
 *   if (stint_trsv_analyse(&(stint_trsv_desc){.a = a, .solves = 1000}, &plan) ==
 *       STINT_OK)
 *       stint_trsv_solve(plan, 1, b, x);
 *   stint_trsv_destroy(plan);
 *
 * Every unknown of a triangular solve is one chain of fused multiply-adds that begins
 * with its right-hand side and takes the columns in the order of substitution, then one
 * division. So an answer has the same bits whatever the strategy, the threads, the room
 * and the instruction set; iterations have, too. Denormal numbers are flushed to zero.
 *
 * A plan serves one thread at a time, and starts threads of its own; different plans
 * may be used at once. */
#ifndef STINT_SOLVE_H
#define STINT_SOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A square sparse matrix, whose arrays are the caller's. */
typedef struct stint_matrix {
    /* Rows and columns, below 2^31 - 1. */
    int64_t n;
    /* [n + 1]; start[0] is 0, start[n] the number of entries, below 2^31. */
    const int64_t *start;
    /* [start[n]] from 0 to n - 1. */
    const int32_t *column;
    /* [start[n]] finite. */
    const double *value;
} stint_matrix;

/* ---- triangular solves ---- */

/** What is solved with, and how often. Zero means "choose for me".
 *
 * With few solves a plan takes rows as they lie; with many it copies the triangle in an
 * order that is faster, shares it among threads where that pays, or both. */
typedef struct stint_trsv_desc {
    /* Its arrays must outlive the plan. */
    stint_matrix a;
    /* The upper triangle, not the lower one. */
    bool upper;
    /* With the transpose of that triangle. */
    bool transpose;
    /* The diagonal is taken for ones, whether it is stored or not. */
    bool unit;
    /* Entries in the other triangle are passed over, not refused. */
    bool part;
    /* At most; 0: every CPU this process may run on. */
    int threads;
    /* Solves that are planned; 0: very many. */
    int64_t solves;
    /* Right-hand sides at once, at most; 0: 1. */
    int64_t columns;
    /* Bytes that the plan may take, beside the matrix; 0: as many as pay. */
    size_t room_bytes;
} stint_trsv_desc;

/** What was planned. */
typedef struct stint_trsv_info {
    /* "natural", "level", "pool", "superstep", "supernode" or "push", see
     * docs/solve.md; a constant that is not freed. */
    const char *strategy;
    /* That a solve keeps busy. */
    int threads;
    /* 0: the plan did not look at levels. */
    int64_t levels;
    /* That threads share. */
    int64_t tasks;
    /* Seconds that the analysis took, and that one solve is expected to take. */
    double analysis_s, predicted_s;
    /* Bytes of the plan, beside the matrix. */
    size_t bytes;
} stint_trsv_info;

/** A triangle made ready to be solved with. It keeps pointers to the arrays of the
 * matrix, whose values must stay as they are. */
typedef struct stint_trsv stint_trsv;

/** Look at a triangle and plan its solves; the caller destroys the plan.
 *
 * STINT_E_INPUT: starts or columns that are in no order or out of range, a value that
 * is not finite, an entry in the wrong triangle, a diagonal entry that is missing, zero
 * or denormal; the text names the row, counted from 1. STINT_E_UNSUPPORTED: 2^31
 * entries or more; STINT_E_MEMORY. */
STINT_API stint_status stint_trsv_analyse(const stint_trsv_desc *desc,
                                          stint_trsv **plan_out);

/** Describe a plan. Cannot fail; what info_out points to lasts as long as the program.
 * Threads may call it at once. */
STINT_API void stint_trsv_get_info(const stint_trsv *plan, stint_trsv_info *info_out);

/** Solve for x [n, columns], given b likewise, both row by row; they may be one array.
 *
 * columns: 1 up to those of the description, else STINT_E_USAGE. Nothing is allocated,
 * but for threads that the first call may start. */
STINT_API stint_status stint_trsv_solve(stint_trsv *plan, int64_t columns,
                                        const double *b, double *x);

/** Free a plan; NULL is fine. */
STINT_API void stint_trsv_destroy(stint_trsv *plan);

/* ---- whole systems ---- */

/** How a system is solved. AUTO: a triangle directly, a symmetric matrix with a
 * positive diagonal by CG, others by GMRES. */
typedef enum stint_solve_method {
    STINT_SOLVE_AUTO,
    /* Substitution; the matrix must be a triangle. */
    STINT_SOLVE_TRSV,
    /* Conjugate gradients, all right-hand sides at once; symmetric, positive definite.
     */
    STINT_SOLVE_CG,
    /* Restarted GMRES, preconditioned from the right. */
    STINT_SOLVE_GMRES,
    /* BiCGStab, likewise; memory for seven vectors whatever happens. */
    STINT_SOLVE_BICGSTAB
} stint_solve_method;

/** What makes iterations fewer. AUTO: IC0 with CG, ILU0 with the others; GS is
 * symmetric Gauss-Seidel. IC0 wants a symmetric matrix, CG any of these but ILU0. */
typedef enum stint_solve_precond {
    STINT_PRECOND_AUTO,
    STINT_PRECOND_NONE,
    /* The diagonal. */
    STINT_PRECOND_JACOBI,
    /* (D + L) D^-1 (D + U) of the matrix itself: no factor is made. */
    STINT_PRECOND_GS,
    /* L L^T without fill; where a pivot is not above 0, of A and a part of its
     * diagonal, which the log says. */
    STINT_PRECOND_IC0,
    /* L U without fill. */
    STINT_PRECOND_ILU0
} stint_solve_precond;

/** A system and the end that is wanted. Zero means "choose for me". */
typedef struct stint_solve_desc {
    stint_matrix a;
    /* How, and with what beside it. */
    stint_solve_method method;
    stint_solve_precond precond;
    /* Until ||b - A x|| <= tolerance ||b||; 0: 1e-8. */
    double tolerance;
    /* Iterations of a right-hand side at most; 0: 10,000. */
    int64_t iterations;
    /* Vectors that GMRES keeps; 0: 30. */
    int64_t restart;
    /* Renumber by reverse Cuthill-McKee first. */
    bool rcm;
    /* At most; 0: every CPU this process may run on. */
    int threads;
    /* Right-hand sides; 0: 1. */
    int64_t columns;
} stint_solve_desc;

/** How it ended, computed anew from x. */
typedef struct stint_solve_result {
    /* The most of a right-hand side; 1 of a triangular solve. */
    int64_t iterations;
    /* ||b - A x|| / ||b||, the worst of the right-hand sides. */
    double residual;
    /* |b - A x| / (|A| |x| + |b|), the worst of all rows. */
    double backward_error;
} stint_solve_result;

/** Solve A x = b, b and x [n, columns] row by row, in arrays of their own.
 *
 * Factors are made for this call alone: a matrix that is solved with again and again
 * and is a triangle wants a plan. An end is judged by a residual computed anew from x,
 * never by what the iteration carries along. Keeps no pointer; calls may run at once.
 *
 * STINT_E_FAILED: no convergence, or a breakdown; x is then the best there was, and
 * result_out is set. STINT_E_INPUT as stint_trsv_analyse, and a matrix or right-hand
 * side that the method cannot take; STINT_E_USAGE: an impossible choice;
 * STINT_E_MEMORY. result_out may be NULL. */
STINT_API stint_status stint_solve(const stint_solve_desc *desc, const double *b,
                                   double *x, stint_solve_result *result_out);

#ifdef __cplusplus
}
#endif

#endif
