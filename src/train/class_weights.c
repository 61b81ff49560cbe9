#include "train/class_weights.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "train/loss_section.h"

/* Images of all over classes times images of one: a class counts as much as another.
 * Data for training have images of every class. */
static void balance(const stint_data_info *info, const int64_t *count, double *weight)
{
    for (int32_t c = 0; c < info->classes; c++) {
        assert(count[c] > 0);
        weight[c] = (double)info->count / ((double)info->classes * (double)count[c]);
    }
}

static stint_status from_list(const char *text, const stint_data_info *info,
                              double *weight)
{
    const int64_t given = sti_class_weights_read(text, weight, info->classes);
    if (given == info->classes)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "loss.class_weights: %" PRId64 " weights, but %s has %d classes, "
                    "from '%s' to '%s'; give one a class, in their order",
                    given, info->path, (int)info->classes, info->class_names[0],
                    info->class_names[info->classes - 1]);
}

/* The mean over an epoch's images becomes 1. */
static stint_status scale(const stint_data_info *info, const int64_t *count,
                          bool evenly, const double *weight, float *out)
{
    double sum = 0, images = 0;
    for (int32_t c = 0; c < info->classes; c++) {
        const double share = evenly ? 1.0 : (double)count[c];
        sum += share * weight[c];
        images += share;
    }
    if (!(sum > 0))
        return sti_fail(STINT_E_INPUT,
                        "loss.class_weights: the weight of every class that has images "
                        "is 0, so nothing would be learnt");
    for (int32_t c = 0; c < info->classes; c++)
        out[c] = (float)(weight[c] * (images / sum));
    return STINT_OK;
}

stint_status sti_class_weights_make(const char *text, const stint_data *data,
                                    bool evenly, float *weights_out)
{
    const stint_data_info *info = stint_data_describe(data);
    int64_t *count = sti_alloc_array(info->classes, sizeof *count, "class weights");
    double *weight = sti_alloc_array(info->classes, sizeof *weight, "class weights");
    stint_status st = count && weight ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        sti_data_count_classes(data, count);
        if (strcmp(text, "balanced") == 0)
            balance(info, count, weight);
        else
            st = from_list(text, info, weight);
    }
    if (st == STINT_OK)
        st = scale(info, count, evenly, weight, weights_out);
    sti_free(count);
    sti_free(weight);
    return st;
}
