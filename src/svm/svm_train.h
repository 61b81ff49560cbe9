/* Training of least-squares machines within a memory budget (svm.h). */
#ifndef STI_SVM_SVM_TRAIN_H
#define STI_SVM_SVM_TRAIN_H

#include "base/account.h"
#include "net/comm.h"
#include "svm/svm.h"
#include "svm/svm_shared.h"
#include "svm/svm_start.h"

typedef enum sti_svm_store {
    STI_STORE_AUTO,
    STI_STORE_ALL,
    STI_STORE_NONE
} sti_svm_store;

/* What plans ask the system for, looked at once for many of them. */
typedef struct sti_svm_process {
    size_t bytes;        /* of program, libraries, stack and heap; 0: not looked at */
    size_t budget_bytes; /* where nobody said one */
} sti_svm_process;

typedef struct sti_svm_train_desc {
    const sti_table *table;
    bool regression;
    sti_svm_classes classes_by;
    sti_gram_function function;
    double c;             /* above 0 */
    const double *weight; /* [classes] in the order of sti_svm_classes_of, or NULL */
    const double *point_weight; /* [rows] above 0, or NULL */
    int64_t rank; /* of the preconditioner; 0: none, -1: as the problem has it */
    double tolerance;
    int64_t iterations; /* at most; 0: 10 a point and 1000 */
    sti_svm_store store;
    bool single; /* tiles in float, residuals in double; linear, without tiles, is
                    double */
    size_t budget_bytes; /* of the whole process; 0: none */
    size_t cache_bytes; /* of tiles that are kept, at most; 0: what the budget leaves */
    sti_svm_process process; /* zeroed: looked at anew by every plan */
    size_t beside_bytes;     /* what who called holds beside the table: that of folds */
    size_t shared_bytes;     /* of a matrix that folds share, which is yet to be made */
    sti_svm_places places;   /* of the rows in one that is there */
    sti_svm_start *start;    /* where to start, and where solutions are left; or NULL */
    int threads;
    sti_comm *comm; /* ranks that share the work; all call with the same; NULL: alone */
    /* That makes all tiles, of kernels that it has (svm_device.h); NULL: this CPU. */
    const sti_kernel_tile_plugin *device;
    bool report; /* a page will be made after it (svm_report.h): memory for that, too */
    void (*progress)(void *user, int64_t machine, int64_t machines, int64_t iteration,
                     double residual); /* or NULL */
    void *progress_user;
} sti_svm_train_desc;

/* What a training will do and take. */
typedef struct sti_svm_plan {
    sti_account account;
    sti_svm_process process;
    size_t smallest_bytes; /* the least budget that does */
    size_t taken_bytes;    /* of it by the training, after the data was read */
    int64_t points, features, nonzeros, classes, machines;
    int64_t values, kept; /* entries of tiles of a training at work, and those kept */
    bool dense;
    int64_t spread;           /* columns of rows as tiles have them */
    int64_t ranges;           /* of rows: one, or a class each */
    int64_t largest, columns; /* rows and right-hand sides of a machine, at most */
    int64_t workers;          /* machines at work at a time, of `threads` each */
    int threads;
    int64_t first_band;       /* of this rank's share of one range */
    int64_t stored, crossing; /* values kept within ranges, and between two a worker */
    double ratio;             /* mean of K's diagonal over that of 1 / C */
    int64_t rank;             /* of the largest machine's preconditioner */
} sti_svm_plan;

/* The rank of the preconditioner for a machine of n rows. */
int64_t sti_svm_plan_rank(const sti_svm_train_desc *desc, const sti_svm_plan *plan,
                          int64_t n);

enum { STI_SVM_HISTORY = 1024 };

typedef struct sti_svm_train_result {
    int64_t iterations;    /* the most of a machine */
    double residual;       /* the largest of all, computed anew */
    double objective;      /* sum of alpha y / 2 over the machines */
    double seconds;        /* all of it */
    double kernel_seconds; /* until the tiles that stay were made */
    /* The largest residual of a machine after each of its first iterations, as carried
     * along; 0: no machine took so many. */
    double history[STI_SVM_HISTORY];
} sti_svm_train_result;

/* What a training runs beside our own code, as base/account.h wants it. */
extern const char *const sti_svm_libraries[];

/* Classes in LIBSVM's order: as they come up, but +1 before -1 where these are the two.
 * class_of [rows]; label_out [STI_SVM_CLASSES_MOST]. STINT_E_INPUT: no labels, one
 * class, or too many. */
stint_status sti_svm_classes_of(const sti_table *table, int32_t *class_of,
                                double *label_out, int64_t *classes_out);
/* How many rows each class has, and how many classes there are. Fails likewise. */
stint_status sti_svm_count_classes(const sti_table *table, int64_t *classes_out,
                                   int64_t count_out[STI_SVM_CLASSES_MOST]);
/* STINT_E_INPUT: not every row has a number as its label. */
stint_status sti_svm_check_numbers(const sti_table *table);

/* The model's rows are those of a table with such places, or picked from it: x's row i
 * is its row[i]. Without a matrix nothing is done. STINT_E_MEMORY. */
stint_status sti_svm_model_keep(sti_svm_model *model, const sti_svm_places *places,
                                const int64_t *row);

/* What an account counts but for the text of the file, which is gone by then. */
size_t sti_svm_account_taken(const sti_account *account);

/* What this process takes already and what, where nobody said, a training may: half of
 * what the process can have. */
sti_svm_process sti_svm_process_look(void);
/* `known`, or where that is zeroed what there is now. */
sti_svm_process sti_svm_process_of(const sti_svm_process *known);

/* STINT_E_BUDGET where the smallest way does not fit; the plan is then filled, too.
 * STINT_E_UNSUPPORTED: rows that stay sparse, for a device. */
stint_status sti_svm_plan_training(const sti_svm_train_desc *desc,
                                   sti_svm_plan *plan_out);
/* The model borrows from the table. STINT_E_FAILED: not solved to the tolerance; then
 * there is no model. */
stint_status sti_svm_train(const sti_svm_train_desc *desc, const sti_svm_plan *plan,
                           sti_svm_model *model_out, sti_svm_train_result *result_out);

#endif
