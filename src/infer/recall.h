/* Shares of the images of each class that are answered right, in three numbers. */
#ifndef STI_INFER_RECALL_H
#define STI_INFER_RECALL_H

#include "infer/evaluate.h"

/* Over the classes that have images; without any NaN and -1. */
typedef struct sti_recall {
    double mean; /* balanced accuracy */
    double lowest;
    int32_t lowest_class; /* the first of equal ones */
} sti_recall;

/* correct of count images a class. */
sti_recall sti_recall_of(int32_t classes, const int64_t *count, const int64_t *correct);
/* Images of each class and of them those answered right, both [classes]. */
void sti_recall_count(const sti_evaluation *evaluation, const stint_data *data,
                      int64_t *count_out, int64_t *correct_out);
/* Both at once. */
stint_status sti_recall_find(const sti_evaluation *evaluation, const stint_data *data,
                             sti_recall *recall_out);

#endif
