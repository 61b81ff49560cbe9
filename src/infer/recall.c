#include "infer/recall.h"

#include <math.h>

#include "base/memory.h"

sti_recall sti_recall_of(int32_t classes, const int64_t *count, const int64_t *correct)
{
    sti_recall r = {(double)NAN, (double)NAN, -1};
    double sum = 0;
    int32_t seen = 0;
    for (int32_t c = 0; c < classes; c++) {
        if (count[c] == 0)
            continue;
        const double recall = (double)correct[c] / (double)count[c];
        if (seen == 0 || recall < r.lowest) {
            r.lowest = recall;
            r.lowest_class = c;
        }
        sum += recall;
        seen++;
    }
    if (seen > 0)
        r.mean = sum / (double)seen;
    return r;
}

void sti_recall_count(const sti_evaluation *e, const stint_data *data,
                      int64_t *count_out, int64_t *correct_out)
{
    for (int32_t c = 0; c < e->classes; c++)
        count_out[c] = correct_out[c] = 0;
    for (int64_t i = 0; i < e->count; i++) {
        const int32_t label = sti_data_label(data, i);
        count_out[label]++;
        correct_out[label] += e->predicted[i] == label;
    }
}

stint_status sti_recall_find(const sti_evaluation *e, const stint_data *data,
                             sti_recall *recall_out)
{
    int64_t *count = sti_alloc_array(e->classes, sizeof *count, "class counts");
    int64_t *correct = sti_alloc_array(e->classes, sizeof *correct, "class counts");
    const stint_status st = count && correct ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        sti_recall_count(e, data, count, correct);
        *recall_out = sti_recall_of(e->classes, count, correct);
    }
    sti_free(count);
    sti_free(correct);
    return st;
}
