#include "trust/calibration.h"

#include <math.h>

void sti_calibrate(stint_calibration *k, double confidence, bool right)
{
    int bin = (int)(confidence * STINT_CALIBRATION_BINS);
    bin = bin < STINT_CALIBRATION_BINS ? bin : STINT_CALIBRATION_BINS - 1;
    k->confidence[bin] += confidence;
    k->right[bin] += right;
    k->count[bin]++;
}

double sti_calibration_error(const stint_calibration *k, int64_t count)
{
    double sum = 0;
    for (int i = 0; i < STINT_CALIBRATION_BINS; i++)
        sum += fabs(k->confidence[i] - k->right[i]);
    return sum / (double)count;
}
