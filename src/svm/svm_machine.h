/* One system (K + D) X = B of a least-squares machine after another: the product, the
 * preconditioner and all vectors that solving them takes. */
#ifndef STI_SVM_SVM_MACHINE_H
#define STI_SVM_SVM_MACHINE_H

#include "solve/krylov.h"
#include "svm/kernel_product.h"

/* The most that machines will be of. */
typedef struct sti_svm_machine_size {
    int64_t n, columns; /* rows, right-hand sides */
    int64_t rank;       /* of the preconditioner; 0: there is none */
    int64_t crossing;   /* values of tiles between two ranges that are kept */
    int threads;
    sti_comm *comm; /* ranks that share the products of one range; NULL: alone */
    const sti_kernel_tile_plugin *device; /* that makes all tiles, or NULL */
} sti_svm_machine_size;

typedef struct sti_svm_machine {
    sti_svm_machine_size size;
    sti_team team;
    bool single;   /* tiles in float: solutions are refined */
    double *ridge; /* [n] D, filled before solving */
    double *b, *x; /* [columns, n] right-hand sides, likewise; starts and solutions */
    struct sti_kernel_product *product;
    struct sti_linear_product *linear; /* in place of the product */
    struct sti_kernel_columns *columns;
    struct sti_low_rank *low_rank; /* or NULL */
    double *diagonal;              /* [n] of K */
} sti_svm_machine;

/* Bytes of one, in parts. rows as sti_kernel_columns_bytes wants them. */
typedef struct sti_svm_machine_parts {
    size_t product, vectors, preconditioner;
} sti_svm_machine_parts;
sti_svm_machine_parts sti_svm_machine_bytes(const sti_kernel_source *source,
                                            sti_svm_machine_size size);

/* A machine of zeros is fine to fini. store: of the source's tiles; unused by the
 * linear kernel. STINT_E_MEMORY. */
stint_status sti_svm_machine_init(sti_svm_machine *machine,
                                  const sti_kernel_source *source,
                                  const sti_kernel_store *store,
                                  sti_svm_machine_size size);
void sti_svm_machine_fini(sti_svm_machine *machine);

/* Where a solution is to end, and who is told on the way. */
typedef struct sti_svm_machine_goal {
    double tolerance;
    int64_t iterations;
    int64_t rank; /* of the preconditioner for these rows, at most that of the size */
    bool warm;    /* x holds where the solution starts */
    sti_krylov_progress_fn *progress; /* or NULL */
    void *progress_user;
} sti_svm_machine_goal;

/* Solve for the first `columns` of b, each [n] behind the other with n the rows of the
 * ranges. *result_out as sti_krylov_solve sets it. */
stint_status sti_svm_machine_solve(sti_svm_machine *machine,
                                   const sti_kernel_ranges *ranges, int64_t columns,
                                   const sti_svm_machine_goal *goal,
                                   sti_krylov_result *result_out);

#endif
