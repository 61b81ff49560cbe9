#include "seal/ternary.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

/* What stint_batch_norm adds to a variance. */
#define EPSILON 1e-5

/* A unit's sum over values low + step q of its inputs: scale (step (count - M minus) +
 * low (plus - minus)), where plus and minus count its weights. */
typedef struct unit_sum {
    double slope, start; /* by count, and where it is 0 */
} unit_sum;

static stint_status read_row(const sti_ternary *net, const char *name, int64_t count,
                             float **out)
{
    const sti_tensor_file *file = net->model->file;
    const sti_tensor_row *row = sti_tensor_file_find(file, name);
    int64_t elements = 1;
    for (int i = 0; row && i < row->rank; i++)
        elements *= row->dim[i];
    if (!row || elements != count)
        return sti_fail(STINT_E_INPUT, "%s: no tensor '%s' of %" PRId64 " numbers",
                        sti_tensor_file_path(file), name, count);
    *out = sti_alloc_array(count, sizeof **out, "seal.ternary");
    return *out ? sti_tensor_file_read_finite(file, row, 0, count, *out)
                : STINT_E_MEMORY;
}

/* The numbers between layers: the input's grid, or -1 and 1. */
static void grid_of(const sti_ternary *net, int64_t layer, double *low, double *step,
                    int64_t *most)
{
    *most = layer == 0 ? (INT64_C(1) << net->input_bits) - 1 : 1;
    *low = layer == 0 ? -2 : -1;
    *step = layer == 0 ? 4.0 / (double)*most : 2;
}

int64_t sti_ternary_largest_count(const sti_ternary *net, int64_t layer)
{
    double low, step;
    int64_t most;
    grid_of(net, layer, &low, &step, &most);
    return most * net->layer[layer].inputs;
}

/* Column u of w [inputs][units] rounded as the operator quantise does with two bits;
 * returns its scale. */
static float round_weights(const sti_ternary_layer *l, const float *w, int64_t u)
{
    const float magic = 0x1.8p23f;
    float scale = 0;
    for (int64_t i = 0; i < l->inputs; i++)
        scale = fmaxf(scale, fabsf(w[i * l->units + u]));
    for (int64_t i = 0; i < l->inputs; i++)
        l->weight[u * l->inputs + i] =
            scale > 0 ? (int8_t)(w[i * l->units + u] / scale + magic - magic) : 0;
    return scale;
}

static unit_sum sum_of(const sti_ternary *net, int64_t layer, int64_t u, double scale)
{
    const sti_ternary_layer *l = &net->layer[layer];
    double low, step;
    int64_t most, plus = 0, minus = 0;
    grid_of(net, layer, &low, &step, &most);
    for (int64_t i = 0; i < l->inputs; i++) {
        plus += l->weight[u * l->inputs + i] > 0;
        minus += l->weight[u * l->inputs + i] < 0;
    }
    return (unit_sum){.slope = scale * step,
                      .start = scale * (low * (double)(plus - minus) -
                                        step * (double)(most * minus))};
}

/* slope count + start >= 0, as a comparison with a whole number. */
static void fold_sign(sti_ternary_layer *l, int64_t u, unit_sum s, int64_t largest)
{
    const double at = s.slope != 0 ? -s.start / s.slope : 0;
    const double least = s.slope < 0 ? floor(at) + 1 : s.slope > 0 ? ceil(at) : 0;
    l->flip[u] = s.slope < 0 || (s.slope == 0 && s.start < 0);
    l->least[u] = (int64_t)fmin(fmax(least, 0), (double)largest + 1);
}

static stint_status read_hidden(sti_ternary *net, int64_t layer)
{
    static const char *const names[] = {"weight", "norm.scale", "norm.shift",
                                        "norm.mean", "norm.variance"};
    enum { WEIGHT, SCALE, SHIFT, MEAN, VARIANCE, TENSORS };
    sti_ternary_layer *l = &net->layer[layer];
    float *x[TENSORS] = {NULL};
    char name[64];
    stint_status st = STINT_OK;
    for (int t = 0; t < TENSORS; t++) {
        snprintf(name, sizeof name, "hidden%d.%s", (int)layer, names[t]);
        STI_TRY(
            read_row(net, name, t == WEIGHT ? l->inputs * l->units : l->units, &x[t]));
    }
    for (int64_t u = 0; u < l->units; u++) {
        unit_sum s = sum_of(net, layer, u, (double)round_weights(l, x[WEIGHT], u));
        const double gain =
            (double)x[SCALE][u] / sqrt(fmax((double)x[VARIANCE][u], 0) + EPSILON);
        s.start = gain * (s.start - (double)x[MEAN][u]) + (double)x[SHIFT][u];
        s.slope *= gain;
        fold_sign(l, u, s, sti_ternary_largest_count(net, layer));
    }
out:
    for (int t = 0; t < TENSORS; t++)
        sti_free(x[t]);
    return st;
}

/* Scores as whole numbers: the largest slope becomes 2^10, the least score 0. */
static void round_scores(sti_ternary *net, const unit_sum *s)
{
    sti_ternary_layer *l = &net->layer[net->layers - 1];
    const double count = (double)sti_ternary_largest_count(net, net->layers - 1);
    double slope = 0, low = s[0].start;
    for (int64_t u = 0; u < l->units; u++) {
        slope = fmax(slope, s[u].slope);
        low = fmin(low, s[u].start);
    }
    const double unit = slope > 0 ? (1 << STI_TERNARY_FACTOR_BITS) / slope : 1;
    for (int64_t u = 0; u < l->units; u++) {
        l->factor[u] = llrint(s[u].slope * unit);
        l->offset[u] = llrint(fmin((s[u].start - low) * unit, 0x1p40));
        const double most = (double)l->factor[u] * count + (double)l->offset[u];
        if (most > (double)net->largest_score)
            net->largest_score = (int64_t)most;
    }
}

static stint_status read_last(sti_ternary *net)
{
    sti_ternary_layer *l = &net->layer[net->layers - 1];
    float *weight = NULL, *bias = NULL;
    unit_sum *s = sti_alloc_array(l->units, sizeof *s, "seal.ternary");
    stint_status st = s ? STINT_OK : STINT_E_MEMORY;
    STI_TRY(st);
    STI_TRY(read_row(net, "fc.weight", l->inputs * l->units, &weight));
    STI_TRY(read_row(net, "fc.bias", l->units, &bias));
    for (int64_t u = 0; u < l->units; u++) {
        s[u] = sum_of(net, net->layers - 1, u, (double)round_weights(l, weight, u));
        s[u].start += (double)bias[u];
    }
    round_scores(net, s);
    if (net->largest_score > INT32_MAX)
        st = sti_fail(STINT_E_UNSUPPORTED,
                      "%s: its biases are more than 2^20 times its weights, so that "
                      "classes cannot be compared in 32 bits",
                      sti_tensor_file_path(net->model->file));
out:
    sti_free(s);
    sti_free(weight);
    sti_free(bias);
    return st;
}

/* ---- the whole ---- */

static stint_status check_kind(const stint_model_file *model)
{
    const sti_network_desc *n = &model->network;
    const char *path = sti_tensor_file_path(model->file);
    if (n->context || strcmp(n->name, "mlp") != 0)
        return sti_fail(STINT_E_INPUT, "%s: a network %s; wanted an mlp", path,
                        n->name);
    if (n->model.activation == STINT_ACTIVATION_SIGN && n->model.input_bits > 0 &&
        n->weight_bits == 2)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s: values between its layers are not of few bits; train it with "
                    "model.activation = sign, model.input_bits = 1 to 8 and "
                    "quantise.bits = 2",
                    path);
}

static stint_status alloc_layer(sti_ternary_layer *l, int64_t inputs, int64_t units)
{
    *l = (sti_ternary_layer){.inputs = inputs, .units = units};
    l->weight = sti_alloc_array(inputs * units, 1, "seal.ternary");
    l->least = sti_alloc_array(units, sizeof *l->least, "seal.ternary");
    l->flip = sti_alloc_array(units, 1, "seal.ternary");
    l->factor = sti_alloc_array(units, sizeof *l->factor, "seal.ternary");
    l->offset = sti_alloc_array(units, sizeof *l->offset, "seal.ternary");
    return l->weight && l->least && l->flip && l->factor && l->offset ? STINT_OK
                                                                      : STINT_E_MEMORY;
}

stint_status sti_ternary_read(const stint_model_file *model, sti_ternary *out)
{
    const sti_network_desc *n = &model->network;
    const int64_t hidden = n->model.depth ? n->model.depth : 2;
    const int64_t width = n->model.width ? n->model.width : 256;
    int64_t inputs = n->height * n->width * n->channels;
    *out = (sti_ternary){.model = model, .input_bits = n->model.input_bits};
    stint_status st = check_kind(model);
    STI_TRY(st);
    out->layer = sti_alloc_array(hidden + 1, sizeof *out->layer, "seal.ternary");
    STI_TRY(out->layer ? STINT_OK : STINT_E_MEMORY);
    out->layers = hidden + 1;
    for (int64_t i = 0; i < hidden; i++, inputs = width) {
        STI_TRY(alloc_layer(&out->layer[i], inputs, width));
        STI_TRY(read_hidden(out, i));
    }
    STI_TRY(alloc_layer(&out->layer[hidden], width, n->model.classes));
    STI_TRY(read_last(out));
out:
    if (st != STINT_OK)
        sti_ternary_fini(out);
    return st;
}

void sti_ternary_fini(sti_ternary *net)
{
    for (int64_t i = 0; i < net->layers; i++) {
        sti_free(net->layer[i].weight);
        sti_free(net->layer[i].least);
        sti_free(net->layer[i].flip);
        sti_free(net->layer[i].factor);
        sti_free(net->layer[i].offset);
    }
    sti_free(net->layer);
    *net = (sti_ternary){0};
}

void sti_ternary_inputs(const sti_ternary *net, const uint8_t *pixels,
                        uint8_t *inputs_out)
{
    const sti_network_desc *n = &net->model->network;
    const sti_data_norm *norm = &net->model->norm;
    const float last = (float)((1 << net->input_bits) - 1);
    for (int64_t i = 0; i < net->layer[0].inputs; i++) {
        const int64_t c = i % n->channels;
        const float x =
            ((float)pixels[i] / 255.0f - norm->mean[c]) / norm->deviation[c];
        /* As the network rounds its input (model_mlp.c). */
        const float scaled = fminf(fmaxf(x * (last / 4) + last / 2, 0), last);
        inputs_out[i] = (uint8_t)rintf(scaled);
    }
}
