/* Batch normalisation of ResNet-20's shapes on one thread: the fused forms beside
 * memcpy, in GB/s of the bytes that each must move. Rows of CSV: shape, what, GB/s
 * (best and median of the rounds), microseconds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "kernel/norm/norm.h"

enum { ROUNDS = 15 };

typedef struct arrays {
    int64_t rows, c, count;
    float *x, *dy, *residual, *y, *dx, *dresidual, *mean, *inv, *unbiased, *scale,
        *shift, *dscale, *dshift;
    uint8_t *bits;
    void *scratch;
} arrays;

static void run_memcpy(const arrays *a)
{
    memcpy(a->y, a->x, (size_t)a->count * sizeof *a->y);
}

static void run_statistics(const arrays *a)
{
    sti_norm_statistics_f32(&sti_team_serial, a->rows, a->c, 1e-5f, a->x, a->mean,
                            a->inv, a->unbiased, a->scratch);
}

static void run_forward(const arrays *a, bool residual)
{
    run_statistics(a);
    const sti_norm_forward f = {.rows = a->rows,
                                .c = a->c,
                                .relu = true,
                                .x = a->x,
                                .mean = a->mean,
                                .inv = a->inv,
                                .scale = a->scale,
                                .shift = a->shift,
                                .residual = residual ? a->residual : NULL,
                                .y = a->y,
                                .bits = a->bits};
    sti_norm_forward_f32(&sti_team_serial, &f);
}

static void run_forward_relu(const arrays *a)
{
    run_forward(a, false);
}

static void run_forward_residual(const arrays *a)
{
    run_forward(a, true);
}

static void run_backward(const arrays *a, bool residual)
{
    const sti_norm_backward b = {.rows = a->rows,
                                 .c = a->c,
                                 .dy = a->dy,
                                 .x = a->x,
                                 .scale = a->scale,
                                 .mean = a->mean,
                                 .inv = a->inv,
                                 .bits = a->bits,
                                 .dx = a->dx,
                                 .dscale = a->dscale,
                                 .dshift = a->dshift,
                                 .dresidual = residual ? a->dresidual : NULL};
    sti_norm_backward_f32(&sti_team_serial, &b, a->scratch);
}

static void run_backward_relu(const arrays *a)
{
    run_backward(a, false);
}

static void run_backward_residual(const arrays *a)
{
    run_backward(a, true);
}

/* Arrays' worth of memory that each must read or write: x twice, and so on. */
static const struct {
    const char *name;
    double passes;
    void (*run)(const arrays *a);
} cases[] = {
    {"memcpy", 2.0, run_memcpy},
    {"statistics", 1.0, run_statistics},
    {"forward + relu", 3.0, run_forward_relu},
    {"forward + add + relu", 4.0, run_forward_residual},
    {"backward + relu", 5.0, run_backward_relu},
    {"backward + add + relu", 6.0, run_backward_residual},
};

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* ns a call, ROUNDS times, ascending. */
static void measure(void (*run)(const arrays *a), const arrays *a, int64_t ns[ROUNDS])
{
    int64_t start = sti_clock_ns(), repeats = 0;
    while (sti_clock_ns() - start < 5000000) {
        run(a);
        repeats++;
    }
    for (int i = 0; i < ROUNDS; i++) {
        start = sti_clock_ns();
        for (int64_t r = 0; r < repeats; r++)
            run(a);
        ns[i] = (sti_clock_ns() - start) / repeats;
    }
    qsort(ns, ROUNDS, sizeof *ns, by_value);
}

static arrays make_arrays(int64_t rows, int64_t c)
{
    arrays a = {.rows = rows, .c = c, .count = rows * c};
    float **big[] = {&a.x, &a.dy, &a.residual, &a.y, &a.dx, &a.dresidual};
    float **small[] = {&a.mean,  &a.inv,    &a.unbiased, &a.scale,
                       &a.shift, &a.dscale, &a.dshift};
    for (size_t i = 0; i < sizeof big / sizeof *big; i++)
        *big[i] = sti_alloc_array(a.count, sizeof(float), "bench");
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        *small[i] = sti_alloc_array(c, sizeof(float), "bench");
    a.bits = sti_alloc_array(a.count, 1, "bench");
    a.scratch = sti_alloc(sti_norm_scratch_bytes(rows, c), "bench");
    for (int64_t i = 0; i < a.count; i++) {
        a.x[i] = (float)(i * 7919 % 1021) * 0.01f - 5.0f;
        a.dy[i] = (float)(i * 104729 % 997) * 0.01f - 4.0f;
        a.residual[i] = (float)(i * 1299709 % 991) * 0.01f - 6.0f;
    }
    for (int64_t j = 0; j < c; j++)
        a.scale[j] = 1.0f;
    return a;
}

static void free_arrays(arrays *a)
{
    float *all[] = {a->x,         a->dy,     a->residual, a->y,        a->dx,
                    a->dresidual, a->mean,   a->inv,      a->unbiased, a->scale,
                    a->shift,     a->dscale, a->dshift};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sti_free(all[i]);
    sti_free(a->bits);
    sti_free(a->scratch);
}

int main(void)
{
    static const int64_t shape[][2] = {
        {32 * 1024, 16}, {32 * 256, 32}, {32 * 64, 64}, {32 * 64, 100}, {32 * 256, 10}};
    printf("# %s, %s, 1 thread, %d rounds\n", sti_cpu_name(),
           sti_isa_name(sti_isa_now()), ROUNDS);
    printf("shape,what,best_GB_s,median_GB_s,best_us\n");
    for (size_t s = 0; s < sizeof shape / sizeof *shape; s++) {
        arrays a = make_arrays(shape[s][0], shape[s][1]);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            int64_t ns[ROUNDS];
            const double bytes = cases[i].passes * (double)a.count * sizeof(float);
            measure(cases[i].run, &a, ns);
            printf("%" PRId64 "x%" PRId64 ",%s,%.1f,%.1f,%.1f\n", a.rows, a.c,
                   cases[i].name, bytes / (double)ns[0], bytes / (double)ns[ROUNDS / 2],
                   (double)ns[0] * 1e-3);
        }
        free_arrays(&a);
    }
    return 0;
}
