#include "svm/svm_score.h"

sti_svm_score sti_svm_score_of(int64_t count, const double *answer, const double *y)
{
    double sp = 0, st = 0, spp = 0, stt = 0, spt = 0, error = 0;
    const double n = (double)count;
    sti_svm_score s = {.total = count};
    for (int64_t i = 0; i < count; i++) {
        const double a = answer[i], b = y[i];
        s.correct += a == b;
        error += (a - b) * (a - b);
        sp += a;
        st += b;
        spp += a * a;
        stt += b * b;
        spt += a * b;
    }
    const double cross = n * spt - sp * st;
    s.mse = error / n;
    s.scc = cross * cross / ((n * spp - sp * sp) * (n * stt - st * st));
    return s;
}
