#include "svm/svm_probability.h"

#include <math.h>

double sti_svm_sigmoid(double u)
{
    return u >= 0 ? exp(-u) / (1 + exp(-u)) : 1 / (1 + exp(u));
}

double sti_svm_density(const sti_svm_model *m, double value)
{
    if (value < m->marks[0])
        return 0.001;
    if (value > m->marks[STI_SVM_MARKS - 1])
        return 0.999;
    for (int i = 1; i < STI_SVM_MARKS; i++)
        if (value < m->marks[i])
            return (double)i / STI_SVM_MARKS;
    return 0;
}

/* p minimises the sum over pairs of (r_ji p_i - r_ij p_j)^2: rounds of one p after the
 * other, Q p carried along. q [classes, classes]. */
static void couple(int64_t classes, const double *q, double *qp, double *p)
{
    for (int64_t round = 0; round < (classes > 100 ? classes : 100); round++) {
        double pqp = 0, error = 0;
        for (int64_t t = 0; t < classes; t++) {
            qp[t] = 0;
            for (int64_t j = 0; j < classes; j++)
                qp[t] += q[t * classes + j] * p[j];
            pqp += p[t] * qp[t];
        }
        for (int64_t t = 0; t < classes; t++)
            error = fmax(error, fabs(qp[t] - pqp));
        if (error < 0.005 / (double)classes)
            return;
        for (int64_t t = 0; t < classes; t++) {
            const double own = q[t * classes + t], more = (pqp - qp[t]) / own;
            pqp = (pqp + more * (more * own + 2 * qp[t])) / (1 + more) / (1 + more);
            p[t] += more;
            for (int64_t j = 0; j < classes; j++) {
                qp[j] = (qp[j] + more * q[t * classes + j]) / (1 + more);
                p[j] /= 1 + more;
            }
        }
    }
}

int64_t sti_svm_probabilities_scratch(const sti_svm_model *m)
{
    return m->classes * (2 * m->classes + 1);
}

int64_t sti_svm_probabilities(const sti_svm_model *m, const double *value, double *p,
                              double *scratch)
{
    const int64_t classes = m->classes;
    double *r = scratch, *q = r + classes * classes, *qp = q + classes * classes;
    for (int64_t a = 0, at = 0; a < classes; a++)
        for (int64_t b = a + 1; b < classes; b++, at++) {
            const double one =
                sti_svm_sigmoid(value[at] * m->prob_a[at] + m->prob_b[at]);
            r[a * classes + b] = fmin(fmax(one, 1e-7), 1 - 1e-7);
            r[b * classes + a] = 1 - r[a * classes + b];
        }
    for (int64_t t = 0; t < classes; t++) {
        p[t] = 1 / (double)classes;
        q[t * classes + t] = 0;
        for (int64_t j = 0; j < classes; j++)
            if (j != t) {
                const double back = r[j * classes + t];
                q[t * classes + t] += back * back;
                q[t * classes + j] = -back * r[t * classes + j];
            }
    }
    if (classes == 2) {
        p[0] = r[1];
        p[1] = r[2];
    } else {
        couple(classes, q, qp, p);
    }
    int64_t best = 0;
    for (int64_t c = 1; c < classes; c++)
        best = p[c] > p[best] ? c : best;
    return best;
}
