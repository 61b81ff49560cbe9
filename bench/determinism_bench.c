/* The price of determinism: a training step of ResNet-20 as it always is, beside the
 * same step with every order of sums that the design fixes set free.
 *
 *     determinism_bench [-j THREADS] [-r ROUNDS] [-b BATCH] [-s SHARDS]
 *
 * The free step is the same sources in a module of its own (determinism_free, which the
 * target bench builds, too), where
 *   - shards are taken by whichever lane is free (an atomic counter), added up by each
 *     lane as they come, and lanes joined in the order of being done (a mutex), in
 * place of consecutive shards and the fixed tree;
 *   - sums over k of matrix products and of convolution's weight gradient are one chain
 *     a thread in place of chunks of 4096 joined by a tree; sums over elements and rows
 *     (batch-norm, biases, loss) have chunks of 2^27 and more in place of 256, 4096 or
 * 8192;
 *   - kernels are compiled with -fassociative-math -freciprocal-math
 * -ffp-contract=fast, so that the compiler may reorder whatever sums are written in C.
 * What stays as it is, because no order is given up for it: register tiles of matrix
 * products, which are chains of fused multiply-adds (outputs are what is spread over
 * lanes and threads), int8 products, top-k, and random numbers by counter.
 *
 * Steps alternate in one process; the ratio is the median over rounds of one's time by
 * the other's, with the quartiles beside it. Sums of squares show that the orders
 * differ. */
#define _GNU_SOURCE /* readlink */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "determinism_step.h"

const determinism_api *determinism_api_get(void);

enum { ROUNDS_MAX = 10000 };

typedef const determinism_api *get_fn(void);

static const determinism_api *load_free(void)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    void *symbol;
    get_fn *get;
    if (length < 0)
        return NULL;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    strcpy(slash ? slash + 1 : path, "determinism_free.so");
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module || !(symbol = dlsym(module, "determinism_api_get"))) {
        fprintf(stderr, "determinism_bench: %s\n", dlerror());
        return NULL;
    }
    memcpy(&get, &symbol, sizeof get);
    return get();
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *value, int count, double share)
{
    qsort(value, (size_t)count, sizeof *value, by_value);
    return value[(int)(share * (count - 1) + 0.5)];
}

/* Who goes first changes from round to round. */
static int measure(const determinism_api *const api[2], void *const bench[2],
                   int rounds)
{
    static double seconds[2][ROUNDS_MAX], ratio[ROUNDS_MAX];
    for (int r = -2; r < rounds; r++)
        for (int k = 0; k < 2; k++) {
            const int which = (k + r) & 1;
            const double s = api[which]->step(bench[which]);
            if (s < 0)
                return 1;
            if (r >= 0)
                seconds[which][r] = s;
        }
    for (int r = 0; r < rounds; r++)
        ratio[r] = seconds[0][r] / seconds[1][r];
    printf("%-24s %10s %10s %22s\n", "order of sums", "median ms", "best ms",
           "gradient squares");
    static const char *const name[2] = {"fixed (Stint)", "free"};
    for (int which = 0; which < 2; which++) {
        const double middle = quantile(seconds[which], rounds, 0.5); /* sorts */
        printf("%-24s %10.2f %10.2f %22.15g\n", name[which], 1e3 * middle,
               1e3 * seconds[which][0], api[which]->squares(bench[which]));
    }
    const double low = quantile(ratio, rounds, 0.25), middle = ratio[rounds / 2];
    printf("fixed / free: %.4f (quartiles %.4f to %.4f), %d rounds: determinism costs "
           "%+.1f %%\n",
           middle, low, quantile(ratio, rounds, 0.75), rounds, 100 * (middle - 1));
    return 0;
}

int main(int argc, char **argv)
{
    int threads = 2, rounds = 40, batch = 128, shards = 4, option;
    while ((option = getopt(argc, argv, "j:r:b:s:")) != -1) {
        int *const to = option == 'j'   ? &threads
                        : option == 'r' ? &rounds
                        : option == 'b' ? &batch
                                        : &shards;
        if (option == '?' || (*to = atoi(optarg)) < 1 || rounds > ROUNDS_MAX)
            return 2;
    }
    const determinism_api *const api[2] = {determinism_api_get(), load_free()};
    void *bench[2] = {NULL, NULL};
    const char *why = "cannot be loaded";
    for (int i = 0; i < 2; i++)
        if (!api[i] || !(bench[i] = api[i]->create(threads, batch, shards, &why))) {
            fprintf(stderr, "determinism_bench: %s\n", why);
            return 1;
        }
    printf("ResNet-20, batch %d in %d shards, %d threads\n", batch, shards, threads);
    const int rc = measure(api, bench, rounds);
    for (int i = 0; i < 2; i++)
        api[i]->destroy(bench[i]);
    return rc;
}
