#include "svm/smo_program.h"

#include <math.h>

int64_t sti_smo_variables(sti_svm_type type, int64_t points)
{
    return type == STI_SVM_EPSILON_SVR || type == STI_SVM_NU_SVR ? 2 * points : points;
}

/* ---- beginnings ---- */

static double least_of(double a, double b)
{
    return a < b ? a : b;
}

static double weight_of(const sti_smo_points *points, int64_t i)
{
    return points->weight ? points->weight[i] : 1;
}

static void begin_classes(sti_smo_program *g, const sti_smo_points *points)
{
    for (int64_t k = 0; k < g->problem.variables; k++) {
        const bool positive = k < g->problem.positives;
        g->bound[k] = points->cost[!positive] * weight_of(points, k);
        g->linear[k] = positive ? 1 : -1;
        g->alpha[k] = 0;
    }
}

/* The sums of both signs' alphas, nu l / 2 each, go to the first points. */
static bool begin_nu_classes(sti_smo_program *g, double nu)
{
    const int64_t n = g->problem.points, positives = g->problem.positives;
    double left[2] = {nu * (double)n / 2, nu * (double)n / 2};
    if (left[0] > (double)(positives < n - positives ? positives : n - positives))
        return false;
    for (int64_t k = 0; k < n; k++) {
        double *sum = &left[k >= positives];
        g->bound[k] = 1;
        g->linear[k] = 0;
        g->alpha[k] = least_of(1, *sum);
        *sum -= g->alpha[k];
    }
    return true;
}

static void begin_one_class(sti_smo_program *g, double nu)
{
    const double sum = nu * (double)g->problem.points;
    const int64_t full = (int64_t)sum;
    for (int64_t k = 0; k < g->problem.points; k++) {
        g->bound[k] = 1;
        g->linear[k] = 0;
        g->alpha[k] = k < full ? 1 : k == full ? sum - (double)full : 0;
    }
}

static void begin_epsilon(sti_smo_program *g, const sti_smo_desc *d,
                          const sti_smo_points *points)
{
    const int64_t n = g->problem.points;
    for (int64_t i = 0; i < n; i++) {
        g->bound[i] = g->bound[i + n] = d->c * weight_of(points, i);
        g->linear[i] = points->y[i] - d->epsilon;
        g->linear[i + n] = points->y[i] + d->epsilon;
        g->alpha[i] = g->alpha[i + n] = 0;
    }
}

static void begin_nu_numbers(sti_smo_program *g, const sti_smo_desc *d, const double *y)
{
    const int64_t n = g->problem.points;
    double left = d->c * d->nu * (double)n / 2;
    for (int64_t i = 0; i < n; i++) {
        g->bound[i] = g->bound[i + n] = d->c;
        g->linear[i] = g->linear[i + n] = y[i];
        g->alpha[i] = g->alpha[i + n] = least_of(left, d->c);
        left -= g->alpha[i];
    }
}

bool sti_smo_program_begin(sti_smo_program *g, const sti_smo_desc *d,
                           const sti_smo_points *points)
{
    const int64_t variables = sti_smo_variables(d->type, points->count);
    const int64_t rule = variables > 100000 ? 100 * variables : 10000000;
    g->problem =
        (sti_smo_problem){.points = points->count,
                          .variables = variables,
                          .positives = points->positives,
                          .bound = g->bound,
                          .linear = g->linear,
                          .nu = d->type == STI_SVM_NU_SVC || d->type == STI_SVM_NU_SVR,
                          .shrink = d->shrink,
                          .tolerance = d->tolerance,
                          .iterations = d->iterations > 0 ? d->iterations : rule};
    switch (d->type) {
    case STI_SVM_NU_SVC:
        return begin_nu_classes(g, d->nu);
    case STI_SVM_ONE_CLASS:
        begin_one_class(g, d->nu);
        break;
    case STI_SVM_EPSILON_SVR:
        begin_epsilon(g, d, points);
        break;
    case STI_SVM_NU_SVR:
        begin_nu_numbers(g, d, points->y);
        break;
    case STI_SVM_C_SVC:
    case STI_SVM_TYPES:
        begin_classes(g, points);
        break;
    }
    return true;
}

/* ---- ends ---- */

static double sum_of(int64_t count, const double *beta)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += fabs(beta[i]);
    return sum;
}

/* nu_svc: the machine of a C, whose alphas are these over r. */
static void scale_nu(const sti_smo_problem *p, const sti_smo_result *result,
                     double *beta, sti_smo_machine *m)
{
    const double r = result->r;
    for (int64_t i = 0; i < p->points; i++)
        beta[i] /= r;
    m->rho /= r;
    m->objective /= r * r;
    m->more = 1 / r;
}

void sti_smo_program_end(const sti_smo_program *g, const sti_smo_desc *d,
                         const sti_smo_points *points, const sti_smo_result *result,
                         double *beta, sti_smo_machine *m)
{
    const sti_smo_problem *p = &g->problem;
    *m = (sti_smo_machine){.iterations = result->iterations,
                           .gap = result->gap,
                           .objective = result->objective,
                           .rho = result->rho,
                           .more = (double)NAN};
    for (int64_t i = 0; i < p->points; i++) {
        const double first = i < p->positives ? g->alpha[i] : -g->alpha[i];
        beta[i] =
            p->variables > p->points ? g->alpha[i] - g->alpha[i + p->points] : first;
        const double bound = p->bound[i];
        m->support_vectors += beta[i] != 0;
        m->bounded += beta[i] != 0 && fabs(beta[i]) >= bound;
    }
    if (d->type == STI_SVM_NU_SVC)
        scale_nu(p, result, beta, m);
    else if (d->type == STI_SVM_NU_SVR)
        m->more = -result->r;
    else if (d->type == STI_SVM_EPSILON_SVR ||
             (d->type == STI_SVM_C_SVC && points->cost[0] == points->cost[1]))
        m->more = sum_of(p->points, beta) / (points->cost[0] * (double)p->points);
}
