/* What the commands that train support vector machines share: their options, the data,
 * the plan. */
#ifndef STI_CLI_SVM_H
#define STI_CLI_SVM_H

#include "base/progress.h"
#include "cli/cli.h"
#include "net/net.h"
#include "svm/svm_fit.h"

/* Begins the struct of every such command; cli_svm_rows.h has its rows. */
typedef struct sti_svm_args {
    const char *type, *kernel, *gamma, *weights, *tolerance, *rank, *report;
    int64_t degree, iterations, threads, folds;
    double coef0, c, nu, epsilon, cache_mb;
    int classes, store, shrinking, probability, precision, device;
    size_t memory_bytes;
    const char *net_root;
    int64_t net_ranks, net_rank;
    sti_cli_common common;
} sti_svm_args;

/* A training asked for on the command line. */
typedef struct sti_svm_task {
    sti_cli_call *call;
    const sti_svm_args *args;
    sti_table table;
    sti_svm_train_desc desc; /* of ls_svc and ls_svr */
    sti_smo_desc smo;        /* of LIBSVM's types */
    sti_svm_fit fit;         /* either of them */
    const char *type;        /* its word */
    int64_t folds;           /* of -v; 0: none */
    size_t start_bytes;      /* of what a grid keeps of the last C's solutions */
    sti_comm *comm;          /* ranks that share the work, or NULL */
    sti_svm_plan plan;
    sti_svm_weight *weight;
    double *point_weight;
    sti_progress bar;
    double read_s;
} sti_svm_task;

/* The file of --weights; NULL: it names classes, or nothing. */
const char *sti_svm_weights_file(const sti_svm_args *args);

/* What was asked, as far as it can be told without the data. All complaints at once. */
stint_status sti_svm_choose(sti_svm_task *task);
/* Meet the ranks that share the work; *net_out is NULL where this one is alone. */
stint_status sti_svm_join(const sti_svm_task *task, stint_net **net_out);
/* Is this the rank that tells what all of them have? */
bool sti_svm_tells(const sti_svm_task *task);
/* Every rank brings what became of its part: of all of them the first failure. */
stint_status sti_svm_agree(const sti_svm_task *task, stint_status mine);
/* Read operand 0 and make the fit out for it; the plan is the caller's. */
stint_status sti_svm_read(sti_svm_task *task);
/* The plan of a training, with folds where they are asked for. */
stint_status sti_svm_make_plan(sti_svm_task *task);
void sti_svm_finish(sti_svm_task *task);

/* Share of the kernel matrix that is kept. */
double sti_svm_stored_share(const sti_svm_plan *plan);
/* A bar on stderr for what the task does; user of the fit's progress. */
void sti_svm_show_progress(sti_svm_task *task);

/* Is the measure of an answer that of numbers? One class has answers of +1 and -1. */
bool sti_svm_judges_numbers(const sti_svm_task *task);
/* How many folds there will be: as svm-train, no more than rows. STINT_E_INPUT: rows
 * without labels, or a single one. */
stint_status sti_svm_count_folds(const sti_svm_task *task, int64_t *folds_out);
/* Folds of -v: trained, judged, told. */
stint_status sti_svm_validate(sti_svm_task *task);

#endif
