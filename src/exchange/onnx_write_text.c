/* Operators of text models as nodes of ONNX: normalisations of rows, attention and
 * rotary positions made of products. */
#include <math.h>

#include "exchange/onnx_pieces.h"

/* x sigmoid(x (c + k x^2)), the tanh form as its kernel computes it. */
const char *sti_onnx_write_gelu(sti_onnx_writer *w, const char *x)
{
    const char *q = sti_onnx_add_node2(w, "Mul", sti_onnx_add_node2(w, "Mul", x, x),
                                       sti_onnx_add_number(w, 0x1.2444f2p-4f));
    const char *v = sti_onnx_add_node2(
        w, "Mul", x,
        sti_onnx_add_node2(w, "Add", q, sti_onnx_add_number(w, 0x1.988454p+0f)));
    return sti_onnx_add_node2(w, "Mul", x, sti_onnx_add_node1(w, "Sigmoid", v));
}

const char *sti_onnx_write_rms(sti_onnx_writer *w, const sti_node *n)
{
    static const int64_t last[1] = {-1};
    const sti_row_norm_attr *a = n->attr;
    const char *x = w->name[n->in[0]], *q = sti_onnx_add_node2(w, "Mul", x, x);
    const sti_onnx_attr axes = sti_onnx_attr_list("axes", 1, last);
    const char *const in[2] = {
        q, w->options->opset > 17 ? sti_onnx_add_integers(w, 1, last) : ""};
    const bool new_form = w->options->opset > 17;
    const char *m = sti_onnx_add_node(w, "ReduceMean", new_form ? 2 : 1, in,
                                      new_form ? 0 : 1, &axes);
    m = sti_onnx_add_node1(
        w, "Sqrt", sti_onnx_add_node2(w, "Add", m, sti_onnx_add_number(w, a->epsilon)));
    return sti_onnx_add_node2(w, "Mul", sti_onnx_add_node2(w, "Div", x, m),
                              w->name[n->in[1]]);
}

const char *sti_onnx_write_layer_norm(sti_onnx_writer *w, const sti_node *n)
{
    const sti_row_norm_attr *a = n->attr;
    const sti_onnx_attr attrs[2] = {sti_onnx_attr_whole("axis", -1),
                                    sti_onnx_attr_real("epsilon", a->epsilon)};
    const char *const in[3] = {w->name[n->in[0]], w->name[n->in[1]], w->name[n->in[2]]};
    return sti_onnx_add_node(w, "LayerNormalization", 3, in, 2, attrs);
}

/* ---- attention, made of products ---- */

static const char *sliced(sti_onnx_writer *w, const char *x, int64_t axis,
                          int64_t begin, int64_t end)
{
    const char *const in[4] = {x, sti_onnx_add_integers(w, 1, &begin),
                               sti_onnx_add_integers(w, 1, &end),
                               sti_onnx_add_integers(w, 1, &axis)};
    return sti_onnx_add_node(w, "Slice", 4, in, 0, NULL);
}

/* Columns i and i + size / 2 of a head turn by position x base^(-2 i / size). */
static void fill_angles(int64_t length, int64_t half, double base, float *cosine,
                        float *sine)
{
    for (int64_t t = 0; t < length; t++)
        for (int64_t i = 0; i < half; i++) {
            const double angle = (double)t * pow(base, -(double)i / (double)half);
            cosine[t * half + i] = (float)cos(angle);
            sine[t * half + i] = (float)sin(angle);
        }
}

const char *sti_onnx_write_rotary(sti_onnx_writer *w, const sti_node *n)
{
    const sti_rotary_heads a = sti_op_rotary_heads(n);
    const stint_shape x = stint_value_shape(w->graph, n->in[0]);
    const int64_t length = x.dim[1], half = a.size / 2, turned = a.heads * a.size,
                  angles[3] = {length, 1, half},
                  split[4] = {0, length, a.heads, a.size},
                  rows[3] = {0, length, turned};
    float *cosine = sti_arena_alloc(w->arena, (size_t)(length * half) * sizeof *cosine);
    float *sine = sti_arena_alloc(w->arena, (size_t)(length * half) * sizeof *sine);
    if (!cosine || !sine) {
        w->no_memory = true;
        return "";
    }
    fill_angles(length, half, a.base, cosine, sine);
    const char *c = sti_onnx_add_floats(w, 3, angles, cosine),
               *s = sti_onnx_add_floats(w, 3, angles, sine), *name = w->name[n->in[0]];
    const char *h = sti_onnx_add_reshaped(w, sliced(w, name, 2, 0, turned), 4, split);
    const char *low = sliced(w, h, 3, 0, half), *high = sliced(w, h, 3, half, a.size);
    const char *const both[2] = {
        sti_onnx_add_node2(w, "Sub", sti_onnx_add_node2(w, "Mul", low, c),
                           sti_onnx_add_node2(w, "Mul", high, s)),
        sti_onnx_add_node2(w, "Add", sti_onnx_add_node2(w, "Mul", high, c),
                           sti_onnx_add_node2(w, "Mul", low, s))};
    const sti_onnx_attr last = sti_onnx_attr_whole("axis", -1);
    const char *y = sti_onnx_add_node(w, "Concat", 2, both, 1, &last);
    y = sti_onnx_add_reshaped(w, y, 3, rows);
    if (turned == x.dim[2])
        return y;
    const char *const all[2] = {y, sliced(w, name, 2, turned, x.dim[2])};
    return sti_onnx_add_node(w, "Concat", 2, all, 1, &last);
}

/* Heads of one part of packed rows as [n, heads, length, size]; keys and values that
 * several queries share are repeated. */
static const char *heads_of(sti_onnx_writer *w, const char *x, int64_t length,
                            int64_t heads, int64_t size, int64_t shared)
{
    static const int64_t swap[4] = {0, 2, 1, 3};
    const int64_t split[4] = {0, length, heads, size};
    x = sti_onnx_add_transposed(w, sti_onnx_add_reshaped(w, x, 4, split), 4, swap);
    if (shared == 1)
        return x;
    const int64_t one[5] = {0, heads, 1, length, size}, many[5] = {1, 1, shared, 1, 1},
                  all[4] = {0, heads * shared, length, size};
    x = sti_onnx_add_node2(w, "Tile", sti_onnx_add_reshaped(w, x, 5, one),
                           sti_onnx_add_integers(w, 5, many));
    return sti_onnx_add_reshaped(w, x, 4, all);
}

static const char *causal_mask(sti_onnx_writer *w, int64_t length)
{
    const int64_t dim[2] = {length, length};
    float *mask = sti_arena_alloc(w->arena, (size_t)(length * length) * sizeof *mask);
    if (!mask) {
        w->no_memory = true;
        return "";
    }
    for (int64_t i = 0; i < length * length; i++)
        mask[i] = i % length <= i / length ? 0.0f : -INFINITY;
    return sti_onnx_add_floats(w, 2, dim, mask);
}

const char *sti_onnx_write_attention(sti_onnx_writer *w, const sti_node *n)
{
    static const int64_t keys[4] = {0, 1, 3, 2}, back[4] = {0, 2, 1, 3};
    const sti_attention_heads a = sti_op_attention_heads(n);
    const stint_shape x = stint_value_shape(w->graph, n->in[0]);
    const int64_t length = x.dim[1], size = x.dim[2] / (a.heads + 2 * a.kv_heads),
                  q_end = a.heads * size, k_end = q_end + a.kv_heads * size,
                  rows[3] = {0, length, q_end}, shared = a.heads / a.kv_heads;
    const char *qkv = w->name[n->in[0]];
    const char *q = heads_of(w, sliced(w, qkv, 2, 0, q_end), length, a.heads, size, 1);
    const char *k =
        heads_of(w, sliced(w, qkv, 2, q_end, k_end), length, a.kv_heads, size, shared);
    const char *v = heads_of(w, sliced(w, qkv, 2, k_end, x.dim[2]), length, a.kv_heads,
                             size, shared);
    const sti_onnx_attr last = sti_onnx_attr_whole("axis", -1);
    const char *s =
        sti_onnx_add_node2(w, "MatMul", q, sti_onnx_add_transposed(w, k, 4, keys));
    s = sti_onnx_add_node2(w, "Mul", s,
                           sti_onnx_add_number(w, (float)(1.0 / sqrt((double)size))));
    if (a.causal)
        s = sti_onnx_add_node2(w, "Add", s, causal_mask(w, length));
    s = sti_onnx_add_node(w, "Softmax", 1, &s, 1, &last);
    return sti_onnx_add_reshaped(
        w, sti_onnx_add_transposed(w, sti_onnx_add_node2(w, "MatMul", s, v), 4, back),
        3, rows);
}

/* The logits, which the loss never makes whole: x table^T as [n, length, words]. */
const char *sti_onnx_write_logits(sti_onnx_writer *w, const sti_node *n)
{
    static const int64_t swap[2] = {1, 0};
    const stint_shape table = stint_value_shape(w->graph, n->in[1]);
    const int64_t dim[3] = {0, w->model->network.context, table.dim[0]};
    const char *y =
        sti_onnx_add_node2(w, "MatMul", w->name[n->in[0]],
                           sti_onnx_add_transposed(w, w->name[n->in[1]], 2, swap));
    return sti_onnx_add_reshaped(w, y, 3, dim);
}
