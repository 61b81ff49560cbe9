/* The codec on real activations: size against the entropy of its own contexts, and GB/s
 * of f32 both ways.
 *
 *   codec_bench FOLDER [--dither] [--mask] [--threads N] [--runs N] [--only KIND]
 *
 * FOLDER/list.txt has a line an array: "file.npy bound relu|linear" (as written by
 * codec_activations.py). Every value is checked against the bound. Tab-separated lines:
 * file, kind, values, bytes, bits a value, predictor, contexts, largest error as a part
 * of the bound, outliers, GB/s packing and unpacking (the best of the runs). */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/npy.h"
#include "stint/codec.h"

typedef struct options {
    const char *folder, *only;
    bool dither, mask;
    int threads, runs;
} options;

typedef struct buffers {
    float *y;
    uint8_t *packed, *mask;
    void *workspace;
    size_t packed_bytes, workspace_bytes;
} buffers;

static bool make_buffers(const stint_codec_desc *d, int64_t count, buffers *b)
{
    if (stint_codec_max_bytes(d, &b->packed_bytes) != STINT_OK ||
        stint_codec_workspace_bytes(d, &b->workspace_bytes) != STINT_OK)
        return false;
    b->y = malloc((size_t)count * 4 + 1);
    b->packed = malloc(b->packed_bytes);
    b->mask = calloc((size_t)count / 8 + 1, 1);
    b->workspace = malloc(b->workspace_bytes);
    return b->y && b->packed && b->mask && b->workspace;
}

static void free_buffers(buffers *b)
{
    free(b->y);
    free(b->packed);
    free(b->mask);
    free(b->workspace);
}

static double worst_error(const float *x, const float *y, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double e = fabs((double)x[i] - (double)y[i]);
        if (!(e <= most))
            most = e;
        if (x[i] == 0.0f && y[i] != 0.0f)
            most = INFINITY;
    }
    return most;
}

static int run_array(const options *o, const char *file, double bound, const char *kind)
{
    char path[4096];
    sti_npy npy;
    buffers b = {NULL};
    double best_pack = INFINITY, best_unpack = INFINITY;
    stint_codec_result r = {0};
    (void)snprintf(path, sizeof path, "%s/%s", o->folder, file);
    if (sti_npy_open(path, &npy) != STINT_OK) {
        (void)fprintf(stderr, "%s\n", stint_last_error());
        return 1;
    }
    stint_codec_desc d = {.rank = npy.rank,
                          .bound = bound,
                          .dither = o->dither,
                          .seed = 1,
                          .threads = o->threads};
    memcpy(d.dim, npy.dim, sizeof d.dim);
    float *x = malloc((size_t)npy.count * 4 + 1);
    bool good = x && make_buffers(&d, npy.count, &b);
    if (good)
        memcpy(x, npy.data, (size_t)npy.count * 4);
    for (int64_t i = 0; good && i < npy.count; i++)
        b.mask[i / 8] |= (uint8_t)((x[i] != 0.0f) << i % 8);
    const uint8_t *mask = o->mask ? b.mask : NULL;
    for (int run = 0; good && run < o->runs; run++) {
        int64_t t = sti_clock_ns();
        good = stint_codec_pack(&d, x, mask, b.packed, b.packed_bytes, b.workspace,
                                b.workspace_bytes, &r) == STINT_OK;
        best_pack = fmin(best_pack, sti_seconds_since(t));
        t = sti_clock_ns();
        good = good && stint_codec_unpack(&d, b.packed, r.bytes, mask, b.y, b.workspace,
                                          b.workspace_bytes) == STINT_OK;
        best_unpack = fmin(best_unpack, sti_seconds_since(t));
    }
    if (good) {
        const double gb = (double)npy.count * 4e-9;
        (void)printf(
            "%s\t%s\t%" PRId64 "\t%zu\t%.3f\t%s\t%d\t%.6f\t%" PRId64 "\t%.2f\t%.2f\n",
            file, kind, npy.count, r.bytes, 8.0 * (double)r.bytes / (double)npy.count,
            stint_codec_predictor_name(r.predictor), r.contexts,
            worst_error(x, b.y, npy.count) / bound, r.outliers, gb / best_pack,
            gb / best_unpack);
    } else {
        (void)fprintf(stderr, "%s: %s\n", file, stint_last_error());
    }
    free(x);
    free_buffers(&b);
    sti_npy_close(&npy);
    return !good;
}

static int run_list(const options *o)
{
    char path[4096], line[4096], file[2048], kind[64];
    double bound;
    int failed = 0;
    (void)snprintf(path, sizeof path, "%s/list.txt", o->folder);
    FILE *list = fopen(path, "r");
    if (!list) {
        (void)fprintf(stderr, "%s: cannot be read\n", path);
        return 5;
    }
    while (fgets(line, sizeof line, list))
        if (sscanf(line, "%2047s %lf %63s", file, &bound, kind) == 3 &&
            (!o->only || strcmp(o->only, kind) == 0))
            failed |= run_array(o, file, bound, kind);
    (void)fclose(list);
    return failed;
}

int main(int argc, char **argv)
{
    options o = {.threads = 1, .runs = 3};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--dither") == 0)
            o.dither = true;
        else if (strcmp(argv[i], "--mask") == 0)
            o.mask = true;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            o.threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc)
            o.runs = atoi(argv[++i]);
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            o.only = argv[++i];
        else
            o.folder = argv[i];
    }
    if (!o.folder || o.runs < 1) {
        (void)fprintf(stderr,
                      "usage: codec_bench FOLDER [--dither] [--mask] [--threads "
                      "N] [--runs N] [--only relu|linear]\n");
        return 2;
    }
    return run_list(&o);
}
