/* Stands in for libstint_cuda.so where there is no device: what the program hands over
 * solved by a plain loop, so that all but CUDA itself is tried. DEVICE_FAILS in the
 * environment: each call of that function goes wrong. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/sparse/cuda/trsv_cuda.h"

struct sti_trsv_cuda {
    sti_sparse_natural t;
    bool single;
};

static bool fails(const char *call)
{
    const char *which = getenv("DEVICE_FAILS");
    return which && strcmp(which, call) == 0;
}

static int devices(void)
{
    return fails("devices") ? 0 : 1;
}

static const char *begin(void)
{
    return fails("begin") ? "it does not begin" : NULL;
}

static void *copy_of(const void *from, size_t bytes)
{
    void *to = malloc(bytes + 1);
    memcpy(to, from, bytes);
    return to;
}

/* All is copied: nothing of the caller's is looked at again. */
static const char *create(const sti_sparse_natural *t, bool single,
                          sti_trsv_cuda **plan_out)
{
    const size_t n = (size_t)t->n, entries = (size_t)t->start[n];
    if (fails("create"))
        return "it has no memory";
    sti_trsv_cuda *plan = malloc(sizeof *plan);
    *plan = (sti_trsv_cuda){*t, single};
    plan->t.start = copy_of(t->start, (n + 1) * sizeof *t->start);
    plan->t.column = copy_of(t->column, entries * sizeof *t->column);
    plan->t.count = copy_of(t->count, n * sizeof *t->count);
    plan->t.value = copy_of(t->value, entries * (single ? 4 : 8));
    *plan_out = plan;
    return NULL;
}

static void destroy(sti_trsv_cuda *plan)
{
    if (plan) {
        free((void *)plan->t.start);
        free((void *)plan->t.column);
        free((void *)plan->t.count);
        free((void *)plan->t.value);
    }
    free(plan);
}

static void solve_row(const sti_trsv_cuda *plan, int64_t i, const void *b, void *x)
{
    const sti_sparse_natural *t = &plan->t;
    const int64_t step = t->upper ? -1 : 1;
    int64_t e = t->upper ? t->start[i + 1] - 1 : t->start[i];
    if (plan->single) {
        const float *value = t->value;
        float sum = ((const float *)b)[i];
        for (int32_t k = 0; k < t->count[i]; k++, e += step)
            sum = fmaf(-value[e], ((float *)x)[t->column[e]], sum);
        ((float *)x)[i] = t->unit ? sum : sum / value[e];
    } else {
        const double *value = t->value;
        double sum = ((const double *)b)[i];
        for (int32_t k = 0; k < t->count[i]; k++, e += step)
            sum = fma(-value[e], ((double *)x)[t->column[e]], sum);
        ((double *)x)[i] = t->unit ? sum : sum / value[e];
    }
}

static const char *solve(sti_trsv_cuda *plan, const void *b, void *x,
                         double *seconds_out)
{
    const int64_t n = plan->t.n;
    if (fails("solve"))
        return "it is lost";
    for (int64_t p = 0; p < n; p++)
        solve_row(plan, plan->t.upper ? n - 1 - p : p, b, x);
    if (seconds_out)
        *seconds_out = 0;
    return NULL;
}

extern const sti_trsv_cuda_plugin stint_trsv_device;
const sti_trsv_cuda_plugin stint_trsv_device = {DEVICE_VERSION, devices, begin,
                                                create,         destroy, solve};
