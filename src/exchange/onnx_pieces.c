#include "exchange/onnx_pieces.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/shown.h"
#include "stint/version.h"

const char *sti_onnx_fresh_name(sti_onnx_writer *w, const char *what)
{
    const char *name = sti_arena_printf(
        w->arena, "%s%s.%" PRId64, w->prefix ? w->prefix : "", what, w->temporaries++);
    w->no_memory = w->no_memory || !name;
    return name ? name : "";
}

/* ---- pieces of the file ---- */

void sti_onnx_add_tensor(sti_onnx_writer *w, const char *name, int type, int rank,
                         const int64_t *dim, const void *data, size_t n_bytes)
{
    sti_text t = {0};
    for (int i = 0; i < rank; i++)
        sti_proto_add_int(&t, 1, dim[i]);
    sti_proto_add_int(&t, 2, type);
    sti_proto_add_text(&t, 8, name);
    sti_proto_add_bytes(&t, 9, data, n_bytes);
    sti_proto_add_message(&w->body, STI_ONNX_INITIALIZER, &t);
}

const char *sti_onnx_add_floats(sti_onnx_writer *w, int rank, const int64_t *dim,
                                const float *x)
{
    int64_t count = 1;
    const char *name = sti_onnx_fresh_name(w, "constant");
    for (int i = 0; i < rank; i++)
        count *= dim[i];
    sti_onnx_add_tensor(w, name, 1, rank, dim, x, (size_t)count * sizeof *x);
    return name;
}

const char *sti_onnx_add_number(sti_onnx_writer *w, float x)
{
    return sti_onnx_add_floats(w, 0, NULL, &x);
}

const char *sti_onnx_add_integers(sti_onnx_writer *w, int64_t count, const int64_t *x)
{
    const char *name = sti_onnx_fresh_name(w, "constant");
    sti_onnx_add_tensor(w, name, 7, 1, &count, x, (size_t)count * sizeof *x);
    return name;
}

sti_onnx_attr sti_onnx_attr_whole(const char *name, int64_t i)
{
    return (sti_onnx_attr){.name = name, .i = i, .kind = IS_INT};
}

sti_onnx_attr sti_onnx_attr_real(const char *name, float f)
{
    return (sti_onnx_attr){.name = name, .f = f, .kind = IS_FLOAT};
}

sti_onnx_attr sti_onnx_attr_list(const char *name, int count, const int64_t *values)
{
    sti_onnx_attr a = {.name = name, .count = count, .kind = IS_INTS};
    memcpy(a.ints, values, (size_t)count * sizeof *values);
    return a;
}

static void add_attr(sti_text *node, const sti_onnx_attr *a)
{
    static const int types[] = {2, 7, 1};
    sti_text m = {0};
    sti_proto_add_text(&m, 1, a->name);
    if (a->kind == IS_INT)
        sti_proto_add_int(&m, 3, a->i);
    else if (a->kind == IS_FLOAT)
        sti_proto_add_float(&m, 2, a->f);
    for (int i = 0; a->kind == IS_INTS && i < a->count; i++)
        sti_proto_add_int(&m, 8, a->ints[i]);
    sti_proto_add_int(&m, 20, types[a->kind]);
    sti_proto_add_message(node, 5, &m);
}

const char *sti_onnx_add_node(sti_onnx_writer *w, const char *op, int n_in,
                              const char *const *in, int n_attr,
                              const sti_onnx_attr *attrs)
{
    sti_text m = {0};
    const char *out = sti_onnx_fresh_name(w, op);
    for (int i = 0; i < n_in; i++)
        sti_proto_add_text(&m, 1, in[i]);
    sti_proto_add_text(&m, 2, out);
    sti_proto_add_text(&m, 3, out);
    sti_proto_add_text(&m, 4, op);
    for (int i = 0; i < n_attr; i++)
        add_attr(&m, &attrs[i]);
    sti_proto_add_message(&w->body, STI_ONNX_NODE, &m);
    return out;
}

const char *sti_onnx_add_node1(sti_onnx_writer *w, const char *op, const char *a)
{
    return sti_onnx_add_node(w, op, 1, &a, 0, NULL);
}

const char *sti_onnx_add_node2(sti_onnx_writer *w, const char *op, const char *a,
                               const char *b)
{
    const char *const in[2] = {a, b};
    return sti_onnx_add_node(w, op, 2, in, 0, NULL);
}

const char *sti_onnx_add_transposed(sti_onnx_writer *w, const char *x, int rank,
                                    const int64_t *perm)
{
    const sti_onnx_attr a = sti_onnx_attr_list("perm", rank, perm);
    return sti_onnx_add_node(w, "Transpose", 1, &x, 1, &a);
}

/* The first length is left open: it has the batch in it. */
const char *sti_onnx_add_reshaped(sti_onnx_writer *w, const char *x, int rank,
                                  const int64_t *dim)
{
    int64_t to[STINT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        to[i] = i == 0 ? -1 : dim[i];
    return sti_onnx_add_node2(w, "Reshape", x, sti_onnx_add_integers(w, rank, to));
}

void sti_onnx_add_port(sti_onnx_writer *w, uint32_t field, const char *name, int type,
                       int rank, const int64_t *dim)
{
    sti_text shape = {0}, tensor = {0}, kind = {0}, port = {0};
    for (int i = 0; i < rank; i++) {
        sti_text d = {0};
        if (i == 0 && w->options->batch == 0)
            sti_proto_add_text(&d, 2, "n");
        else if (dim[i] == 0)
            sti_proto_add_text(&d, 2, "chosen");
        else
            sti_proto_add_int(&d, 1, dim[i]);
        sti_proto_add_message(&shape, 1, &d);
    }
    sti_proto_add_int(&tensor, 1, type);
    sti_proto_add_message(&tensor, 2, &shape);
    sti_proto_add_message(&kind, 1, &tensor);
    sti_proto_add_text(&port, 1, name);
    sti_proto_add_message(&port, 2, &kind);
    sti_proto_add_message(&w->body, field, &port);
}

const char *sti_onnx_add_normalised(sti_onnx_writer *w, const char *x,
                                    const sti_data_norm *norm, int64_t channels)
{
    const int64_t dim[4] = {1, channels, 1, 1};
    x = sti_onnx_add_node2(w, "Sub", x, sti_onnx_add_floats(w, 4, dim, norm->mean));
    return sti_onnx_add_node2(w, "Div", x,
                              sti_onnx_add_floats(w, 4, dim, norm->deviation));
}

stint_status sti_onnx_write_file(sti_onnx_writer *w, const char *name, int64_t opset,
                                 const char *path)
{
    sti_text model = {0}, set = {0};
    sti_proto_add_text(&w->body, 2, name);
    sti_proto_add_int(&model, 1, 8);
    sti_proto_add_text(&model, 2, "stint");
    sti_proto_add_text(&model, 3, STINT_VERSION);
    sti_proto_add_message(&model, 7, &w->body);
    sti_proto_add_text(&set, 1, "");
    sti_proto_add_int(&set, 2, opset);
    sti_proto_add_message(&model, 8, &set);
    stint_status st = STINT_E_MEMORY;
    if (model.length > (size_t)INT32_MAX)
        st = sti_fail(STINT_E_UNSUPPORTED,
                      "%s: an ONNX file of 2 GiB and more is not written here",
                      sti_shown(path));
    else if (!model.failed)
        st = sti_file_write(path, model.data, model.length);
    sti_text_fini(&model);
    return st;
}
