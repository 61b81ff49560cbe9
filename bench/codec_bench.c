/* The codec on real activations: size against the entropy of its own contexts, and GB/s
 * of f32 both ways.
 *
 *   codec_bench FOLDER [--dither] [--mask] [--bf16] [--threads N] [--runs N]
 *               [--only KIND]
 *
 * FOLDER/list.txt has a line an array: "file.npy bound relu|linear" (as written by
 * codec_activations.py). Every value is checked against the bound. Tab-separated lines:
 * file, kind, values, bytes, bits a value, predictor, contexts, largest error as a part
 * of the bound, outliers, GB/s packing and unpacking (the best of the runs).
 *
 * --bf16: of the values rounded to bfloat16, which come back rounded, so that half a
 * unit may come to the bound. Two more columns: GB/s through arrays in float32, to
 * which values are widened before and from which they are rounded after, in turns. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/npy.h"
#include "codec/codec.h"
#include "kernel/elementwise/elementwise_bf16.h"

/* What a value is packed from and unpacked to. */
typedef enum way { FLOATS, HALVES, COPIES, WAYS } way;

typedef struct options {
    const char *folder, *only;
    bool dither, mask, half;
    int threads, runs;
} options;

typedef struct array {
    stint_codec_desc desc;
    int64_t count;
    float *x, *y;
    sti_bf16 *x16, *y16;
    uint8_t *packed, *mask;
    void *workspace;
    size_t packed_bytes, workspace_bytes;
    stint_codec_result result;
    double pack_s[WAYS], unpack_s[WAYS]; /* best */
} array;

static bool make_buffers(array *a)
{
    const size_t n = (size_t)a->count;
    if (stint_codec_max_bytes(&a->desc, &a->packed_bytes) != STINT_OK ||
        sti_codec_parts_workspace_bytes(&a->desc, a->desc.threads,
                                        &a->workspace_bytes) != STINT_OK)
        return false;
    a->x = malloc(n * 4 + 1);
    a->y = malloc(n * 4 + 1);
    a->x16 = malloc(n * 2 + 1);
    a->y16 = malloc(n * 2 + 1);
    a->packed = malloc(a->packed_bytes);
    a->mask = calloc(n / 8 + 1, 1);
    a->workspace = malloc(a->workspace_bytes);
    return a->x && a->y && a->x16 && a->y16 && a->packed && a->mask && a->workspace;
}

static void free_buffers(array *a)
{
    free(a->x);
    free(a->y);
    free(a->x16);
    free(a->y16);
    free(a->packed);
    free(a->mask);
    free(a->workspace);
}

static void fill(const options *o, const void *data, array *a)
{
    memcpy(a->x, data, (size_t)a->count * 4);
    for (int64_t i = 0; i < a->count; i++) {
        a->x16[i] = sti_bf16_from_f32(a->x[i]);
        if (o->half)
            a->x[i] = sti_bf16_to_f32(a->x16[i]);
        a->mask[i / 8] |= (uint8_t)((a->x[i] != 0.0f) << i % 8);
    }
}

static bool run_once(array *a, const uint8_t *mask, way w)
{
    const sti_team team = {a->desc.threads};
    const sti_codec_source source =
        w == HALVES ? (sti_codec_source){.x16 = a->x16} : (sti_codec_source){.x = a->x};
    const sti_codec_sink sink =
        w == HALVES ? (sti_codec_sink){.x16 = a->y16} : (sti_codec_sink){.x = a->y};
    int64_t t = sti_clock_ns();
    if (w == COPIES)
        sti_bf16_widen(&team, a->count, a->x16, a->x);
    if (sti_codec_pack(&team, &a->desc, &source, mask, a->packed, a->packed_bytes,
                       a->workspace, a->workspace_bytes, &a->result) != STINT_OK)
        return false;
    a->pack_s[w] = fmin(a->pack_s[w], sti_seconds_since(t));
    t = sti_clock_ns();
    if (sti_codec_unpack(&team, &a->desc, a->packed, a->result.bytes, mask, &sink,
                         a->workspace, a->workspace_bytes) != STINT_OK)
        return false;
    if (w == COPIES)
        sti_bf16_round(&team, a->count, a->y, a->y16);
    a->unpack_s[w] = fmin(a->unpack_s[w], sti_seconds_since(t));
    return true;
}

/* As a part of the bound; of halves what is beyond half a unit of the result. */
static double worst_error(const array *a, bool half)
{
    double most = 0;
    for (int64_t i = 0; i < a->count; i++) {
        const float y = half ? sti_bf16_to_f32(a->y16[i]) : a->y[i];
        const double unit = half ? 0x1p-8 * fabs((double)y) : 0;
        const double e = fabs((double)a->x[i] - (double)y) - unit;
        if (!(e <= most))
            most = e;
        if (a->x[i] == 0.0f && y != 0.0f)
            most = INFINITY;
    }
    return most / a->desc.bound;
}

static void print(const options *o, const array *a, const char *file, const char *kind)
{
    const stint_codec_result *r = &a->result;
    const double gb = (double)a->count * 4e-9;
    const way w = o->half ? HALVES : FLOATS;
    (void)printf(
        "%s\t%s\t%" PRId64 "\t%zu\t%.3f\t%s\t%d\t%.6f\t%" PRId64 "\t%.2f\t%.2f", file,
        kind, a->count, r->bytes, 8.0 * (double)r->bytes / (double)a->count,
        stint_codec_predictor_name(r->predictor), r->contexts, worst_error(a, o->half),
        r->outliers, gb / a->pack_s[w], gb / a->unpack_s[w]);
    if (o->half)
        (void)printf("\t%.2f\t%.2f", gb / a->pack_s[COPIES], gb / a->unpack_s[COPIES]);
    (void)printf("\n");
}

static int run_array(const options *o, const char *file, double bound, const char *kind)
{
    char path[4096];
    sti_npy npy;
    (void)snprintf(path, sizeof path, "%s/%s", o->folder, file);
    if (sti_npy_open(path, &npy) != STINT_OK) {
        (void)fprintf(stderr, "%s\n", stint_last_error());
        return 1;
    }
    array a = {.desc = {.rank = npy.rank,
                        .bound = bound,
                        .dither = o->dither,
                        .seed = 1,
                        .threads = o->threads},
               .count = npy.count};
    memcpy(a.desc.dim, npy.dim, sizeof a.desc.dim);
    for (int w = 0; w < WAYS; w++)
        a.pack_s[w] = a.unpack_s[w] = INFINITY;
    bool good = make_buffers(&a);
    if (good)
        fill(o, npy.data, &a);
    const uint8_t *mask = o->mask ? a.mask : NULL;
    for (int run = 0; good && run < o->runs; run++)
        good = o->half ? run_once(&a, mask, COPIES) && run_once(&a, mask, HALVES)
                       : run_once(&a, mask, FLOATS);
    if (good)
        print(o, &a, file, kind);
    else
        (void)fprintf(stderr, "%s: %s\n", file, stint_last_error());
    free_buffers(&a);
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
        else if (strcmp(argv[i], "--bf16") == 0)
            o.half = true;
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
        (void)fprintf(stderr, "usage: codec_bench FOLDER [--dither] [--mask] [--bf16] "
                              "[--threads N] [--runs N] [--only relu|linear]\n");
        return 2;
    }
    return run_list(&o);
}
