/* Cases: row normalisation, embedding, rotary positions, attention (included by
 * op_cases.h). */
#ifndef TESTS_OP_OP_CASES_TEXT_H
#define TESTS_OP_OP_CASES_TEXT_H

/* ---- row normalisation: x0 [..., n], x1 scale, x2 shift (layer) */

static stint_value build_row_norm(stint_graph *g, const stint_value *x,
                                  const op_case *c)
{
    const sti_row_norm_attr attr = {1e-5f};
    return sti_graph_add(g, c->n_in == 3 ? &sti_op_layer_norm : &sti_op_rms_norm, &attr,
                         c->n_in, x);
}

static void reference_row_norm(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t n = in[1].count;
    for (int64_t at = 0; at < out->count; at += n) {
        const double *x = in[0].data + at;
        double mean = 0, square = 0;
        for (int64_t i = 0; i < n && c->n_in == 3; i++)
            mean += x[i] / (double)n;
        for (int64_t i = 0; i < n; i++)
            square += (x[i] - mean) * (x[i] - mean) / (double)n;
        for (int64_t i = 0; i < n; i++)
            out->data[at + i] =
                (x[i] - mean) / sqrt(square + (double)1e-5f) * in[1].data[i] +
                (c->n_in == 3 ? in[2].data[i] : 0);
    }
}

/* ---- embedding: x0 table [vocabulary, n], x1 tokens of that vocabulary */

static stint_value build_embedding(stint_graph *g, const stint_value *x,
                                   const op_case *c)
{
    (void)c;
    return stint_lookup(g, x[1], x[0]);
}

static void reference_embedding(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t n = in[0].shape.dim[1];
    (void)c;
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = in[0].data[(int64_t)in[1].data[i / n] * n + i % n];
}

/* ---- rotary: i: heads, size, kind; f: base, factor, low, high, attention; the waves
 *      are stretched as for a training of 64 positions */

static stint_value build_rotary(stint_graph *g, const stint_value *x, const op_case *c)
{
    const stint_rotary_desc desc = {.heads = c->i[0],
                                    .size = c->i[1],
                                    .base = (float)c->f[0],
                                    .scaling = {.kind = (stint_rotary_kind)c->i[2],
                                                .factor = (float)c->f[1],
                                                .low = (float)c->f[2],
                                                .high = (float)c->f[3],
                                                .attention = (float)c->f[4],
                                                .original = 64}};
    return stint_rotary(g, x[0], &desc);
}

static double yarn_index(const op_case *c, double turns)
{
    return (double)c->i[1] * log(64 / (turns * 2 * acos(-1))) / (2 * log(c->f[0]));
}

/* Angle of one position, column i of the half, as the papers have it. */
static double rotary_angle(const op_case *c, int64_t i)
{
    const double f = pow(c->f[0], -2.0 * (double)i / (double)c->i[1]);
    const double wave = 2 * acos(-1) / f, low = 64 / c->f[2], high = 64 / c->f[3];
    double ramp;
    switch (c->i[2]) {
    case STINT_ROTARY_LINEAR:
        return f / c->f[1];
    case STINT_ROTARY_LLAMA3:
        if (wave < high)
            return f;
        ramp = (64 / wave - c->f[2]) / (c->f[3] - c->f[2]);
        return wave > low ? f / c->f[1] : (1 - ramp) * f / c->f[1] + ramp * f;
    case STINT_ROTARY_YARN:
        ramp = ((double)i - fmax(0, floor(yarn_index(c, c->f[3])))) /
               (ceil(yarn_index(c, c->f[2])) - fmax(0, floor(yarn_index(c, c->f[3]))));
        ramp = fmin(1, fmax(0, ramp));
        return f * (1 - ramp) + f / c->f[1] * ramp;
    default:
        return f;
    }
}

static void reference_rotary(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t width = in[0].shape.dim[2], size = c->i[1], half = size / 2;
    for (int64_t i = 0; i < out->count; i++) {
        const int64_t column = i % width, t = i / width % in[0].shape.dim[1];
        const double x = in[0].data[i];
        if (column >= c->i[0] * size) {
            out->data[i] = x;
            continue;
        }
        const int64_t k = column % size;
        const double angle = (double)t * rotary_angle(c, k % half);
        const double gain = c->i[2] == STINT_ROTARY_YARN ? c->f[4] : 1;
        const double other = k < half ? -in[0].data[i + half] : in[0].data[i - half];
        out->data[i] = gain * (x * cos(angle) + other * sin(angle));
    }
}

/* ---- attention: x0 packed; i: heads, kv_heads, all, window */

static stint_value build_attention(stint_graph *g, const stint_value *x,
                                   const op_case *c)
{
    return stint_attention(g, x[0],
                           &(stint_attention_desc){.heads = c->i[0],
                                                   .kv_heads = c->i[1],
                                                   .all = c->i[2] != 0,
                                                   .window = c->i[3]});
}

/* One query of one head; row and y are those of its sequence. */
static void text_attend(const op_case *c, const op_tensor *in, int64_t b, int64_t h,
                        int64_t t, double *y)
{
    const int64_t length = in->shape.dim[1], width = in->shape.dim[2];
    const int64_t size = width / (c->i[0] + 2 * c->i[1]);
    const int64_t group = h / (c->i[0] / c->i[1]);
    const double *row = in->data + b * length * width;
    const double *q = row + t * width + h * size;
    const double *k = row + (c->i[0] + group) * size, *v = k + c->i[1] * size;
    const int64_t end = c->i[2] ? length : t + 1;
    const int64_t begin = c->i[3] && t + 1 > c->i[3] ? t + 1 - c->i[3] : 0;
    double total = 0, score[64], largest = -INFINITY;
    double *weight = length <= 64 ? score : calloc((size_t)length, sizeof *weight);
    for (int64_t j = begin; j < end; j++) {
        weight[j] = 0;
        for (int64_t e = 0; e < size; e++)
            weight[j] += q[e] * k[j * width + e] / sqrt((double)size);
        largest = fmax(largest, weight[j]);
    }
    for (int64_t j = begin; j < end; j++)
        total += weight[j] = exp(weight[j] - largest);
    for (int64_t e = 0; e < size; e++)
        for (int64_t j = begin; j < end; j++)
            y[e] += weight[j] / total * v[j * width + e];
    if (weight != score)
        free(weight);
}

static void reference_attention(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t length = in->shape.dim[1], width = out->shape.dim[2];
    const int64_t size = width / c->i[0];
    for (int64_t b = 0; b < in->shape.dim[0]; b++)
        for (int64_t t = 0; t < length; t++)
            for (int64_t h = 0; h < c->i[0]; h++)
                text_attend(c, in, b, h, t,
                            out->data + (b * length + t) * width + h * size);
}

/* ---- linear_cross_entropy: x0 [rows, n], x1 table [n, n] (a label is below the last
 *      dimension of input 0), x2 labels; f: smoothing */

static stint_value build_linear_loss(stint_graph *g, const stint_value *x,
                                     const op_case *c)
{
    return stint_linear_cross_entropy(g, x[0], x[1], x[2], (float)c->f[0]);
}

static void reference_linear_loss(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t rows = in[0].shape.dim[0], n = in[0].shape.dim[1];
    const int64_t classes = in[1].shape.dim[0];
    double *x = calloc((size_t)classes, sizeof *x);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t label = (int64_t)in[2].data[r];
        double total = 0, sum = 0;
        for (int64_t k = 0; k < classes; k++) {
            x[k] = 0;
            for (int64_t i = 0; i < n; i++)
                x[k] += in[0].data[r * n + i] * in[1].data[k * n + i];
            total += exp(x[k]);
            sum += x[k];
        }
        if (label >= 0)
            out->data[0] += (log(total) - (1 - c->f[0]) * x[label] -
                             c->f[0] * sum / (double)classes) /
                            (double)rows;
    }
    free(x);
}

#define TEXT_ATTENTION(label, xs, heads, kv, every, py)                  \
    {                                                                    \
        .name = "attention " label, .n_in = 1, .shape = {xs}, .grad = 1, \
        .build = build_attention, .reference = reference_attention,      \
        .i = {heads, kv, every}, .torch = py                             \
    }
#define TEXT_WINDOW(label, xs, heads, kv, seen)                          \
    {                                                                    \
        .name = "attention " label, .n_in = 1, .shape = {xs}, .grad = 1, \
        .build = build_attention, .reference = reference_attention,      \
        .i = {heads, kv, 0, seen},                                       \
        .torch = "attention(x0, " #heads ", " #kv ", True, " #seen ")"   \
    }
#define TEXT_ROTARY(label, xs, heads, size, kind, ...)                \
    {                                                                 \
        .name = "rotary " label, .n_in = 1, .shape = {xs}, .grad = 1, \
        .build = build_rotary, .reference = reference_rotary,         \
        .i = {heads, size, kind}, .f = {                              \
            __VA_ARGS__                                               \
        }                                                             \
    }
#define TEXT_NORM(label, inputs, xs, row, py)                   \
    {                                                           \
        .name = label, .n_in = inputs, .shape = {xs, row, row}, \
        .grad = (1u << inputs) - 1, .build = build_row_norm,    \
        .reference = reference_row_norm, .torch = py            \
    }

static const op_case op_cases_text[] = {
    TEXT_NORM("layer_norm", 3, "A,B,5", "5", "F.layer_norm(x0, (5,), x1, x2, 1e-5)"),
    TEXT_NORM("layer_norm wide", 3, "71,67", "67",
              "F.layer_norm(x0, (67,), x1, x2, 1e-5)"),
    TEXT_NORM("layer_norm long row", 3, "2,333", "333",
              "F.layer_norm(x0, (333,), x1, x2, 1e-5)"),
    TEXT_NORM("rms_norm", 2, "A,7", "7",
              "x0 * torch.rsqrt((x0 * x0).mean(-1, keepdim=True) + 1e-5) * x1"),
    TEXT_NORM("rms_norm wide", 2, "66,129", "129",
              "x0 * torch.rsqrt((x0 * x0).mean(-1, keepdim=True) + 1e-5) * x1"),
    {.name = "embedding",
     .n_in = 2,
     .shape = {"7,7", "A,B"},
     .draw = {OP_NORMAL, OP_LABELS},
     .grad = 1,
     .build = build_embedding,
     .reference = reference_embedding,
     .torch = "F.embedding(x1, x0)"},
    {.name = "embedding wide",
     .n_in = 2,
     .shape = {"70,70", "90"},
     .draw = {OP_NORMAL, OP_LABELS},
     .grad = 1,
     .build = build_embedding,
     .reference = reference_embedding,
     .torch = "F.embedding(x1, x0)"},
    {.name = "rotary",
     .n_in = 1,
     .shape = {"A,9,13"},
     .grad = 1,
     .build = build_rotary,
     .reference = reference_rotary,
     .i = {2, 4},
     .f = {10000.0}},
    {.name = "rotary odd half, far positions",
     .n_in = 1,
     .shape = {"1,40,10"},
     .grad = 1,
     .build = build_rotary,
     .reference = reference_rotary,
     .i = {1, 10},
     .f = {500000.0}},
    {.name = "linear_cross_entropy",
     .n_in = 3,
     .shape = {"A,5", "5,5", "A"},
     .draw = {OP_NORMAL, OP_NORMAL, OP_LABELS},
     .grad = 3,
     .build = build_linear_loss,
     .reference = reference_linear_loss,
     .torch = "F.cross_entropy(x0 @ x1.T, x2)"},
    {.name = "linear_cross_entropy smoothed, padded, more classes",
     .n_in = 3,
     .shape = {"9,7", "31,7", "9"},
     .draw = {OP_NORMAL, OP_NORMAL, OP_SOME_LABELS},
     .grad = 3,
     .build = build_linear_loss,
     .reference = reference_linear_loss,
     .f = {0.1},
     .torch = "F.cross_entropy(x0 @ x1.T, x2, ignore_index=-1, reduction='sum', "
              "label_smoothing=0.1) / len(x2)"},
    TEXT_ATTENTION("causal", "B,H,24", 2, 2, 0, "attention(x0, 2, 2, True)"),
    TEXT_ATTENTION("of all", "B,H,9", 1, 1, 1, "attention(x0, 1, 1, False)"),
    TEXT_ATTENTION("shared keys", "2,11,40", 6, 2, 0, "attention(x0, 6, 2, True)"),
    TEXT_ATTENTION("several tiles", "1,150,21", 1, 1, 0, "attention(x0, 1, 1, True)"),
    TEXT_ATTENTION("several tiles of all", "1,131,20", 2, 1, 1,
                   "attention(x0, 2, 1, False)"),
    TEXT_WINDOW("window", "B,H,24", 2, 2, 3),
    TEXT_WINDOW("window of one, shared keys", "2,11,40", 6, 2, 1),
    TEXT_WINDOW("window within a tile", "1,150,21", 1, 1, 9),
    TEXT_WINDOW("window over tiles", "1,201,12", 2, 1, 70),
    TEXT_WINDOW("window beyond", "1,70,12", 1, 1, 100),
    TEXT_ROTARY("linear", "2,20,18", 2, 8, STINT_ROTARY_LINEAR, 10000.0, 4.0),
    TEXT_ROTARY("llama3", "1,90,34", 2, 16, STINT_ROTARY_LLAMA3, 500.0, 8.0, 1.0, 4.0),
    TEXT_ROTARY("yarn", "1,90,34", 2, 16, STINT_ROTARY_YARN, 500.0, 4.0, 1.0, 16.0,
                1.125),
};

#endif
