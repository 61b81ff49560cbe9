/* Networks f(x) of points: SIREN (Sitzmann et al. 2020), and dense layers with other
 * activations, Fourier features (Tancik et al. 2020) and a skip to the middle layer.
 *
 * The graph is made of products, biases and element-wise operators alone, each row by
 * itself, so that it is differentiated by its points to any order. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"
#include "model/model_priv.h"

enum { FIELD_COORDINATES = 4, FIELD_OUTPUTS = 16, FIELD_DEPTH = 64 };
#define FIELD_WIDTH 65536

static const stint_model_info field_infos[] = {
#define STI_FIELD(name, siren, help) {name, help},
#include "model/field_list.h"
#undef STI_FIELD
    {NULL, NULL},
};

static const bool field_sirens[] = {
#define STI_FIELD(name, siren, help) siren,
#include "model/field_list.h"
#undef STI_FIELD
};

enum { FIELD_COUNT = sizeof field_sirens / sizeof field_sirens[0] };

const stint_model_info *stint_field_list(void)
{
    return field_infos;
}

static int find_field(const char *name)
{
    for (int i = 0; i < FIELD_COUNT; i++)
        if (strcmp(field_infos[i].name, name) == 0)
            return i;
    return -1;
}

bool stint_model_is_field(const char *name)
{
    return find_field(name) >= 0;
}

static stint_status unknown_field(const char *name)
{
    const char *names[FIELD_COUNT];
    for (int i = 0; i < FIELD_COUNT; i++)
        names[i] = field_infos[i].name;
    const char *near = sti_text_nearest(name, names, FIELD_COUNT);
    return sti_fail(STINT_E_INPUT, "field '%s' is unknown; did you mean '%s'?", name,
                    near ? near : names[0]);
}

static stint_status check_field(const char *name, const stint_field_desc *d)
{
    if (d->coordinates < 1 || d->coordinates > FIELD_COORDINATES || d->outputs < 1 ||
        d->outputs > FIELD_OUTPUTS)
        return sti_fail(STINT_E_INPUT,
                        "%s: %" PRId64 " coordinates and %" PRId64
                        " outputs; wanted 1 to %d and 1 to %d",
                        name, d->coordinates, d->outputs, FIELD_COORDINATES,
                        FIELD_OUTPUTS);
    if (d->width < 1 || d->width > FIELD_WIDTH || d->depth < 1 ||
        d->depth > FIELD_DEPTH || d->features < 0 || d->features > FIELD_WIDTH)
        return sti_fail(STINT_E_INPUT,
                        "%s: width %" PRId64 ", depth %" PRId64 ", features %" PRId64
                        "; wanted width and features of at most %d and depth 1 to %d",
                        name, d->width, d->depth, d->features, FIELD_WIDTH,
                        FIELD_DEPTH);
    if (!(isfinite(d->omega) && isfinite(d->omega_hidden) &&
          isfinite(d->feature_scale)) ||
        d->omega <= 0 || d->omega_hidden <= 0 || d->feature_scale <= 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: omega %g, omega_hidden %g, feature_scale %g; wanted "
                        "numbers above 0",
                        name, (double)d->omega, (double)d->omega_hidden,
                        (double)d->feature_scale);
    if (d->activation == STINT_ACTIVATION_SIGN)
        return sti_fail(STINT_E_INPUT,
                        "%s: signs have no derivatives that a field could use; choose "
                        "another model.activation",
                        name);
    return STINT_OK;
}

stint_status stint_field_resolve(const char *name, stint_field_desc *desc)
{
    const int row = find_field(name);
    if (row < 0)
        return unknown_field(name);
    if (field_sirens[row])
        desc->activation = STINT_ACTIVATION_SIN;
    const float usual = desc->activation == STINT_ACTIVATION_SIN ? 30.0f : 1.0f;
    if (desc->width == 0)
        desc->width = 256;
    if (desc->depth == 0)
        desc->depth = 4;
    if (desc->omega == 0)
        desc->omega = usual;
    if (desc->omega_hidden == 0)
        desc->omega_hidden = usual;
    if (desc->feature_scale == 0)
        desc->feature_scale = 10;
    return check_field(name, desc);
}

typedef struct field_model {
    stint_graph *g;
    stint_field_desc d;
    bool siren;
} field_model;

static stint_value activate(const field_model *m, stint_value x)
{
    switch (m->d.activation) {
    case STINT_ACTIVATION_SIN:
        return stint_sin(m->g, x);
    case STINT_ACTIVATION_TANH:
        return stint_tanh(m->g, x);
    case STINT_ACTIVATION_GELU:
        return stint_gelu(m->g, x);
    case STINT_ACTIVATION_SILU:
        return stint_silu(m->g, x);
    case STINT_ACTIVATION_SIGMOID:
        return stint_sigmoid(m->g, x);
    case STINT_ACTIVATION_SOFTPLUS:
        return stint_softplus(m->g, x);
    case STINT_ACTIVATION_RELU:
    case STINT_ACTIVATION_SIGN: /* refused before */
    default:
        return stint_relu(m->g, x);
    }
}

/* A field that is built again shares the parameters of the first. */
static stint_value shared_param(const field_model *m, const char *name,
                                const stint_shape *shape, const stint_param_desc *desc)
{
    for (stint_value v = 0; v < sti_graph_value_count(m->g); v++) {
        const sti_value_row *row = sti_graph_value(m->g, v);
        if (row->role == STI_ROLE_PARAM && strcmp(row->name, name) == 0)
            return v;
    }
    return stint_param(m->g, strrchr(name, '.') + 1, shape, desc);
}

/* Initial weights of layer k with `in` inputs: of a SIREN as its authors have them, so
 * that every sine gets the same spread of arguments; else as PyTorch's layers. */
static stint_param_desc weight_start(const field_model *m, int64_t k, int64_t in)
{
    if (!m->siren)
        return (stint_param_desc){.init = STINT_INIT_FAN_IN_UNIFORM};
    const double bound =
        k == 0 ? 1.0 / (double)in : sqrt(6.0 / (double)in) / (double)m->d.omega_hidden;
    return (stint_param_desc){.init = STINT_INIT_UNIFORM, .scale = (float)bound};
}

/* x [n, in] -> x W + b [n, units], net.k. */
static stint_value field_layer(const field_model *m, stint_value x, int64_t k,
                               int64_t units)
{
    if (x < 0)
        return -1;
    const int64_t in = stint_value_shape(m->g, x).dim[1];
    const stint_shape weight = STINT_SHAPE(in, units), bias = STINT_SHAPE(units);
    const stint_param_desc start = weight_start(m, k, in);
    const stint_param_desc bias_start = {
        .init = STINT_INIT_FAN_IN_UNIFORM, .fan_in = in, .no_decay = true};
    char name[2][48];
    snprintf(name[0], sizeof name[0], "net.%" PRId64 ".weight", k);
    snprintf(name[1], sizeof name[1], "net.%" PRId64 ".bias", k);
    stint_scope_begin(m->g, "net.%" PRId64, k);
    const stint_value w = shared_param(m, name[0], &weight, &start);
    const stint_value b = shared_param(m, name[1], &bias, &bias_start);
    x = stint_bias(m->g, stint_matmul(m->g, x, w, false, false), b);
    stint_scope_end(m->g);
    return x;
}

/* points [n, d] -> [n, 2 features]: sines and cosines of products. */
static stint_value field_features(const field_model *m, stint_value points)
{
    const stint_shape shape = STINT_SHAPE(m->d.coordinates, m->d.features);
    stint_scope_begin(m->g, "features");
    const stint_param_desc start = {
        .init = STINT_INIT_NORMAL, .scale = m->d.feature_scale, .no_decay = true};
    const stint_value w = shared_param(m, "features.weight", &shape, &start);
    const stint_value v = stint_matmul(m->g, points, w, false, false);
    const stint_value waves[2] = {stint_sin(m->g, v), stint_cos(m->g, v)};
    stint_scope_end(m->g);
    return stint_concat(m->g, waves, 2, 1);
}

static stint_value field_layers(const field_model *m, stint_value points)
{
    const stint_value first = m->d.features > 0 ? field_features(m, points) : points;
    stint_value x = first;
    for (int64_t k = 0; k < m->d.depth; k++) {
        const float omega = k == 0 ? m->d.omega : m->d.omega_hidden;
        if (m->d.skip && k > 0 && k == m->d.depth / 2)
            x = stint_concat(m->g, (stint_value[]){x, first}, 2, 1);
        x = field_layer(m, x, k, m->d.width);
        if (omega != 1.0f)
            x = stint_scale(m->g, x, omega);
        x = activate(m, x);
    }
    return field_layer(m, x, m->d.depth, m->d.outputs);
}

stint_value stint_field_build(stint_graph *graph, const char *name,
                              const stint_field_desc *desc, stint_value points)
{
    field_model m = {.g = graph, .d = *desc};
    if (points < 0)
        return -1;
    const stint_status st = stint_field_resolve(name, &m.d);
    if (st != STINT_OK)
        return sti_graph_fail(graph, st);
    const stint_shape shape = stint_value_shape(graph, points);
    if (shape.rank != 2 || shape.dtype != STINT_F32 || shape.dim[1] != m.d.coordinates)
        return sti_graph_fail(graph,
                              sti_fail(STINT_E_INPUT,
                                       "%s: wants points [n, %" PRId64 "] f32, got %s",
                                       name, m.d.coordinates, sti_shape_text(&shape)));
    m.siren = field_sirens[find_field(name)];
    return field_layers(&m, points);
}
