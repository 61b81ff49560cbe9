/* Sparse systems A X = B: prepared once (analysis, order, factors), solved as often as
 * wanted, directly where A is a triangle and by Krylov's methods else. */
#ifndef STI_SOLVE_SYSTEM_H
#define STI_SOLVE_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/account.h"
#include "solve/sparse_operator.h"
#include "solve/trsv_device.h"

typedef enum sti_method {
    STI_METHOD_AUTO, /* a triangle: trsv; symmetric, positive diagonal: cg; else gmres
                      */
    STI_METHOD_TRSV,
    STI_METHOD_CG,
    STI_METHOD_GMRES,
    STI_METHOD_BICGSTAB,
    STI_METHODS
} sti_method;

typedef enum sti_precond {
    STI_PRECOND_AUTO, /* cg: ic0; gmres and bicgstab: ilu0 */
    STI_PRECOND_NONE,
    STI_PRECOND_JACOBI,
    STI_PRECOND_GS, /* symmetric Gauss-Seidel */
    STI_PRECOND_IC0,
    STI_PRECOND_ILU0,
    STI_PRECONDS
} sti_precond;

extern const char *const sti_method_names[STI_METHODS];
extern const char *const sti_precond_names[STI_PRECONDS];

/* Once an iteration; relative: ||r|| / ||b|| as the method has it. */
typedef void sti_system_progress_fn(void *user, int64_t iteration, double relative);

/* Zero means "choose for me"; `a` is required. */
typedef struct sti_system_desc {
    const sti_csr *a;  /* square; borrowed until the system is destroyed */
    sti_part triangle; /* the part to be solved with; WHOLE: what the matrix is */
    bool transpose, unit;
    bool single; /* floats; triangular solves alone */
    bool rcm;    /* reverse Cuthill-McKee before factors and iterations */
    sti_method method;
    sti_precond precond;
    double tolerance;           /* 0: 1e-8 */
    int64_t iterations;         /* at most, a right-hand side; 0: 10,000 */
    int64_t restart;            /* of gmres; 0: 30 */
    sti_trsv_strategy strategy; /* of all triangular solves */
    int64_t tasks, solves, columns;
    int threads;
    const sti_trsv_cuda_plugin *device; /* to solve triangles on; NULL: the CPU */
    size_t room_bytes; /* for all that a system takes; 0: as much as it wants */
    const char *name;  /* of the matrix, for messages */
    sti_system_progress_fn *progress;
    void *progress_user;
    bool stops; /* between iterations, once that was asked (base/stop.h) */
} sti_system_desc;

typedef struct sti_system_info {
    sti_matrix_kind kind;
    sti_method method;
    sti_precond precond;
    sti_trsv_info trsv; /* of the forward solve; zeros where there is none */
    double analysis_s, factor_s;
    double predicted_s; /* of one solve; of Krylov's methods of one iteration's */
                        /* preconditioner; 0: there is none */
    double shift;       /* that ic0 added to the diagonal, relative; 0: none */
    size_t bytes;       /* taken beside the matrix, b and x */
} sti_system_info;

typedef struct sti_system sti_system;

/* What a choice needs to know of a matrix. */
typedef struct sti_matrix_traits {
    int64_t rows, columns;
    sti_matrix_kind kind;
    bool positive; /* every diagonal entry, of a symmetric one */
    bool diagonal; /* there is nothing beside the diagonal */
} sti_matrix_traits;
/* The same choice for a matrix that no process holds; desc->a is not looked at. */
stint_status sti_system_choose_by(const sti_system_desc *desc,
                                  const sti_matrix_traits *traits,
                                  sti_system_info *info_out);

/* What would be chosen, without taking memory. STINT_E_INPUT: not square;
 * STINT_E_UNSUPPORTED: floats, a triangle or a device for Krylov's methods;
 * STINT_E_USAGE. */
stint_status sti_system_choose(const sti_system_desc *desc, sti_system_info *info_out);
/* Parts of the account that a system takes at most, after its choice. With room_bytes
 * less than that it is made smaller, down to what `least` says. */
void sti_system_account(const sti_system_desc *desc, const sti_system_info *info,
                        bool least, sti_account *account);

/* STINT_E_INPUT and STINT_E_BUDGET as sti_trsv_analyse, STINT_E_FAILED: a factor that
 * breaks down, STINT_E_MEMORY. */
stint_status sti_system_create(const sti_system_desc *desc, sti_system **system_out);
void sti_system_destroy(sti_system *system); /* NULL is fine */
const sti_system_info *sti_system_info_of(const sti_system *system);

/* b and x [n, columns], doubles, or floats with `single`; columns: up to those of the
 * description. iterations_out: the most of a right-hand side; 1 of a triangular solve,
 * which allocates nothing. STINT_E_FAILED: no convergence, or a breakdown; x is then
 * the best there is. STINT_E_IO: the device failed. */
stint_status sti_system_solve(sti_system *system, int64_t columns, const void *b,
                              void *x, int64_t *iterations_out);
/* How good x is, computed anew. STINT_E_MEMORY. */
stint_status sti_system_judge(const sti_system *system, int64_t columns, const void *b,
                              const void *x, sti_residual *residual_out);
/* One triangular solve of those that a solution is made of, watched (solve/trsv.h);
 * spans [tasks of the info]. false: there is none, or no memory. */
bool sti_system_watch(sti_system *system, sti_trsv_span *spans);
/* The order of rows that iterations have, [n] old numbers; NULL: as they are. */
const int32_t *sti_system_order(const sti_system *system);
/* The name of a matrix in that order, for messages that tell a row. */
void sti_system_name_order(const char *name, char *text_out, size_t text_bytes);
/* The matrix that is solved with. */
sti_operator sti_system_operator(const sti_system_desc *desc,
                                 const sti_system_info *info);

#endif
