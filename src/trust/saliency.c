#include "trust/saliency.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "infer/lanes.h"
#include "pass/pass.h"
#include "stint/op.h"

enum { WINDOW = 7 };

/* ---- maps ---- */

typedef struct prober {
    sti_network network; /* one image; labels: which class, f32 [1, classes] */
    stint_value gradient;
    sti_infer *infer;
    sti_data_decoders *decoders;
} prober;

/* z . which, differentiated by the images. */
static stint_status build_graph(const sti_network_desc *desc, sti_network *net)
{
    stint_graph *g = net->graph;
    const stint_shape images =
        STINT_SHAPE(1, desc->height, desc->width, desc->channels);
    const stint_shape which = STINT_SHAPE(1, desc->model.classes);
    stint_value gradient = -1;
    net->images = 1;
    net->input = stint_input(g, "images", &images);
    net->labels = stint_input(g, "which", &which);
    const stint_value logits =
        stint_model_build(g, desc->name, &desc->model, net->input);
    const stint_value score =
        stint_sum(g, stint_mul(g, logits, net->labels), 3u, false);
    stint_status st = stint_graph_check(g);
    if (st == STINT_OK)
        st = sti_pass_quantise(g, STI_ROLE_PARAM, desc->weight_bits);
    if (st == STINT_OK)
        st = sti_pass_gradient(g, score, &net->input, 1, &gradient);
    if (st != STINT_OK)
        return st;
    sti_graph_output(g, &(sti_output){.kind = STI_OUTPUT_FETCH,
                                      .value = gradient,
                                      .target = -1,
                                      .name = "saliency"});
    return sti_pass_standard(g);
}

static stint_status prober_init(const stint_model_file *model, const stint_data *data,
                                prober *p)
{
    stint_status st = stint_graph_create(STINT_EVAL, &p->network.graph);
    p->network.bounds = p->network.weights = p->network.class_weights = -1;
    if (st == STINT_OK)
        st = build_graph(&model->network, &p->network);
    if (st == STINT_OK)
        st = sti_network_plan(&p->network, 1);
    if (st != STINT_OK)
        return st;
    p->gradient = sti_graph_outputs(p->network.graph)[0].value;
    st = sti_infer_create(&p->network, 1, 1, &p->infer);
    if (st == STINT_OK)
        st = sti_model_load(model, &p->network, p->infer->params, p->infer->states);
    return st == STINT_OK ? sti_data_decoders_create(data, 1, &p->decoders) : st;
}

static void prober_fini(prober *p)
{
    sti_data_decoders_destroy(p->decoders);
    sti_infer_destroy(p->infer);
    sti_network_fini(&p->network);
}

/* Per unit of a pixel, not of the normalised input: models may normalise otherwise. */
static void take_map(const stint_model_file *model, const float *gradient, float *map)
{
    const sti_network_desc *d = &model->network;
    for (int64_t i = 0; i < d->height * d->width; i++) {
        map[i] = 0;
        for (int64_t c = 0; c < d->channels; c++) {
            const float slope =
                fabsf(gradient[i * d->channels + c]) / model->norm.deviation[c];
            map[i] = slope > map[i] ? slope : map[i];
        }
    }
}

stint_status sti_saliency_maps(const stint_model_file *model, const stint_data *data,
                               const int32_t *samples, int64_t count,
                               const int32_t *answer, float *maps)
{
    const sti_network_desc *d = &model->network;
    prober p = {.gradient = -1};
    int32_t label;
    stint_status st = prober_init(model, data, &p);
    for (int64_t i = 0; i < count && st == STINT_OK; i++) {
        sti_exec *exec = p.infer->lanes.lane[0].exec;
        float *which = sti_exec_address(exec, p.network.labels);
        st = sti_data_batch(data, &sti_team_serial, p.decoders, &samples[i], 1, NULL,
                            &model->norm, sti_exec_address(exec, p.network.input),
                            &label);
        if (st != STINT_OK)
            break;
        memset(which, 0, (size_t)d->model.classes * sizeof *which);
        which[answer[samples[i]]] = 1;
        sti_exec_run(exec, &sti_team_serial, &(sti_step){0});
        take_map(model, sti_exec_address(exec, p.gradient),
                 maps + i * d->height * d->width);
    }
    prober_fini(&p);
    return st;
}

/* ---- agreement ---- */

typedef struct ranked {
    double value, index;
} ranked;

static int by_value(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Ranks 0.. with the mean rank for equal values. scratch [2 n]. */
static void find_ranks(const float *x, int64_t n, double *rank, double *scratch)
{
    ranked *row = (ranked *)(void *)scratch;
    for (int64_t i = 0; i < n; i++)
        row[i] = (ranked){(double)x[i], (double)i};
    qsort(row, (size_t)n, sizeof *row, by_value);
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && row[end].value == row[i].value; end++)
            ;
        for (int64_t k = i; k < end; k++)
            rank[(int64_t)row[k].index] = 0.5 * (double)(i + end - 1);
    }
}

double sti_rank_correlation(const float *a, const float *b, int64_t n, double *scratch)
{
    double *rank_a = scratch, *rank_b = scratch + n, aa = 0, bb = 0, ab = 0;
    const double middle = 0.5 * (double)(n - 1);
    find_ranks(a, n, rank_a, scratch + 2 * n);
    find_ranks(b, n, rank_b, scratch + 2 * n);
    for (int64_t i = 0; i < n; i++) {
        aa += (rank_a[i] - middle) * (rank_a[i] - middle);
        bb += (rank_b[i] - middle) * (rank_b[i] - middle);
        ab += (rank_a[i] - middle) * (rank_b[i] - middle);
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : (double)NAN;
}

typedef struct scale {
    double low, factor;
} scale;

static scale scale_of(const float *x, int64_t n)
{
    float low = x[0], high = x[0];
    for (int64_t i = 1; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    return (scale){(double)low, high > low ? 1.0 / ((double)high - (double)low) : 0.0};
}

static double window_ssim(const float *a, const float *b, scale sa, scale sb,
                          int64_t width)
{
    const double n = WINDOW * WINDOW;
    double sum_a = 0, sum_b = 0, aa = 0, bb = 0, ab = 0;
    for (int64_t y = 0; y < WINDOW; y++)
        for (int64_t x = 0; x < WINDOW; x++) {
            const double u = ((double)a[y * width + x] - sa.low) * sa.factor;
            const double v = ((double)b[y * width + x] - sb.low) * sb.factor;
            sum_a += u;
            sum_b += v;
            aa += u * u;
            bb += v * v;
            ab += u * v;
        }
    const double mean_a = sum_a / n, mean_b = sum_b / n;
    const double var_a = (aa - n * mean_a * mean_a) / (n - 1);
    const double var_b = (bb - n * mean_b * mean_b) / (n - 1);
    const double both = (ab - n * mean_a * mean_b) / (n - 1);
    return (2 * mean_a * mean_b + 1e-4) * (2 * both + 9e-4) /
           ((mean_a * mean_a + mean_b * mean_b + 1e-4) * (var_a + var_b + 9e-4));
}

double sti_ssim(const float *a, const float *b, int64_t height, int64_t width)
{
    if (height < WINDOW || width < WINDOW)
        return (double)NAN;
    const scale sa = scale_of(a, height * width), sb = scale_of(b, height * width);
    double sum = 0;
    for (int64_t y = 0; y + WINDOW <= height; y++)
        for (int64_t x = 0; x + WINDOW <= width; x++)
            sum += window_ssim(a + y * width + x, b + y * width + x, sa, sb, width);
    return sum / (double)((height - WINDOW + 1) * (width - WINDOW + 1));
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Between neighbours, as numpy's default. */
static double quantile(const double *sorted, int64_t n, double share)
{
    const double at = share * (double)(n - 1);
    const int64_t i = (int64_t)at;
    const double next = i + 1 < n ? sorted[i + 1] : sorted[i];
    return sorted[i] + (at - (double)i) * (next - sorted[i]);
}

stint_agreement sti_agreement(double *value, int64_t n)
{
    int64_t count = 0;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(value[i])) {
            value[count++] = value[i];
            sum += value[i];
        }
    if (count == 0)
        return (stint_agreement){0, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    qsort(value, (size_t)count, sizeof *value, ascending);
    return (stint_agreement){count, sum / (double)count, quantile(value, count, 0.1),
                             quantile(value, count, 0.5), quantile(value, count, 0.9)};
}
