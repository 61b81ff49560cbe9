/* Which images say whether a compressed model is good enough, and which only report.
 *
 * A model that held images out of its training (train.validation) is judged by those,
 * and the test images report. Another one has been trained on all training images, on
 * which it is too good to judge by: then every second test image judges, in the order
 * of the data, which goes class by class, and the others report. Labels of images that
 * report are looked at by nothing that chooses. */
#ifndef STI_SHRINK_JUDGE_H
#define STI_SHRINK_JUDGE_H

#include "store/model_file.h"

typedef struct sti_judge_set {
    stint_data_desc desc;
    int64_t count;           /* images of the split; 0: there is none */
    int32_t *label, *answer; /* [count]: true classes, and the model's own answers */
} sti_judge_set;

typedef struct sti_judge {
    sti_judge_set judging, reporting; /* of one split where they are halves of it */
    bool halves;
    int threads;
    int64_t batch; /* images that a thread takes at once; 0: as stint eval */
    int64_t classes, judged;
    double base_accuracy, base_test_accuracy; /* the latter NaN: nothing reports */
    const char *by;                           /* "validation", ... */
} sti_judge;

/* A model's answers. deviation: of the difference of two accuracies on the same images,
 * from those that changed (a paired test's standard error). */
typedef struct sti_verdict {
    double accuracy, mismatch, deviation, test_accuracy;
} sti_verdict;

/* Ask the model itself. STINT_E_INPUT: no images to judge by, or none that are the
 * model's. On failure sti_judge_fini is still to be called. */
stint_status sti_judge_open(stint_model_file *model, const stint_recipe *recipe,
                            int threads, sti_judge *judge);
stint_status sti_judge_ask(const sti_judge *judge, stint_model_file *model,
                           sti_verdict *verdict_out);
/* The model's answers to the images of the judging set; [judging.count]. Of halves
 * every second one judges, the first among them. */
stint_status sti_judge_answers(const sti_judge *judge, stint_model_file *model,
                               int32_t *answer_out);
void sti_judge_fini(sti_judge *judge); /* a zeroed one is fine */

#endif
