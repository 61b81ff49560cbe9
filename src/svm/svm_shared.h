/* The kernel matrix of a table, kept for all trainings on parts of it: folds, pairs of
 * classes within folds, the values of C that a grid tries with one gamma.
 *
 * Its tiles are made once. Rows of a part then know their numbers in it, and whoever
 * makes tiles of them (kernel/gram/gram.h) reads values out instead. As many tiles are
 * kept as there is room for; a value that is not is made anew from rows centred alike,
 * with the same bits, so room changes time alone. */
#ifndef STI_SVM_SVM_SHARED_H
#define STI_SVM_SVM_SHARED_H

#include <stdbool.h>

#include "base/team.h"
#include "data/data_table.h"
#include "kernel/gram/gram.h"
#include "stint/status.h"

typedef struct sti_svm_shared sti_svm_shared;

/* Where the rows of a table stand in a shared matrix. */
typedef struct sti_svm_places {
    const sti_svm_shared *shared; /* NULL: nowhere */
    const int64_t *number;        /* [rows] */
} sti_svm_places;

typedef struct sti_svm_shared_desc {
    const sti_table *table;
    const sti_gram_function *function;
    bool classes; /* rows of a class stand together, as trainings have them */
    bool single;  /* values in float */
    /* [rows] in which order rows follow each other, but for that; NULL: as they are */
    const int64_t *order;
    size_t bytes; /* of tiles, at most; 0: rows are made alike, and that is all */
} sti_svm_shared_desc;

/* Has a matrix of that kind values that do not depend on which of two rows is first? */
bool sti_svm_shared_can(const sti_gram_function *function, const sti_table *table);
/* Bytes of all of it. */
size_t sti_svm_shared_bytes(int64_t rows, bool single);

/* STINT_E_MEMORY, or a stop was asked for. */
stint_status sti_svm_shared_create(const sti_svm_shared_desc *desc,
                                   const sti_team *team, sti_svm_shared **shared_out);
void sti_svm_shared_destroy(sti_svm_shared *shared); /* NULL is fine */

/* Bytes that its tiles take. */
size_t sti_svm_shared_kept_bytes(const sti_svm_shared *shared);
/* The rows of the table itself. */
sti_svm_places sti_svm_shared_places(const sti_svm_shared *shared);
/* What rows need to read it, how their like are to be made (svm_rows.h): dense or not,
 * and on which centre, [features] or NULL. */
const sti_gram_kept *sti_svm_shared_kept(const sti_svm_shared *shared);
bool sti_svm_shared_dense(const sti_svm_shared *shared);
const double *sti_svm_shared_mean(const sti_svm_shared *shared);

#endif
