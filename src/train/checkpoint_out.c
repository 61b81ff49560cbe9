/* The rows of a model file, and what is written for them. */
#include <string.h>

#include "base/fail.h"
#include "exchange/start.h"
#include "store/byte_weight.h"
#include "train/checkpoint_priv.h"
#include "train/lora_merge.h"

/* The imported network that training began with; NULL: it is of ours. */
const stint_model_file *sti_saver_imported(const sti_saver *s)
{
    return s->job->inputs.network.source ? s->job->inputs.start : NULL;
}

/* Rows of a model file: adapters are in the weights that they are beside, and what is
 * held in bytes is written in float32. */
static sti_tensor_row out_row(const sti_tensor_row *row, const sti_value_row *value)
{
    sti_tensor_row out = *row;
    out.type = STI_TENSOR_F32;
    out.rank = value->shape.rank;
    out.bytes = stint_shape_bytes(&value->shape);
    memcpy(out.dim, value->shape.dim, sizeof value->shape.dim);
    return out;
}

/* Numbers of a row of the widest weight that is held in bytes; 0: none is. */
static int64_t widest_in_bytes(const stint_graph *g)
{
    int64_t most = 0;
    for (stint_value v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->in_bytes && row->shape.dim[row->shape.rank - 1] > most)
            most = row->shape.dim[row->shape.rank - 1];
    }
    return most;
}

/* What an imported network has besides what is trained. */
static stint_status add_constants(sti_saver *s)
{
    const int64_t first = s->out_count;
    const stint_status st =
        sti_saver_imported(s)
            ? sti_imported_add_constants(sti_saver_imported(s),
                                         s->job->inputs.network.model.classes, s->arena,
                                         s->out, &s->out_count)
            : STINT_OK;
    for (int64_t i = first; i < s->out_count; i++)
        s->value[i] = -1;
    return st;
}

stint_status sti_saver_choose_out(sti_saver *s)
{
    const sti_network *net = &s->job->setup.train;
    const stint_graph *g = net->graph;
    const int64_t largest = sti_lora_largest(net);
    const int64_t most =
        s->model +
        (sti_saver_imported(s) ? sti_imported_constants(sti_saver_imported(s)) : 0);
    int64_t row = 0;
    s->out = sti_arena_alloc(s->arena, (size_t)most * sizeof *s->out + 1);
    s->value = sti_arena_alloc(s->arena, (size_t)most * sizeof *s->value + 1);
    if (largest > 0 && !s->merged)
        s->merged = sti_arena_alloc(s->arena, (size_t)largest * sizeof *s->merged);
    const int64_t widest = widest_in_bytes(g);
    if (widest > 0 && !s->wide)
        s->wide = sti_arena_alloc(s->arena, (size_t)widest * sizeof *s->wide);
    if (!s->out || !s->value || (largest > 0 && !s->merged) || (widest > 0 && !s->wide))
        return STINT_E_MEMORY;
    s->out_count = s->out_weights = 0;
    for (stint_value v = 0; v < sti_graph_value_count(g); v++) {
        if (sti_graph_value(g, v)->role != STI_ROLE_PARAM)
            continue;
        s->value[s->out_count] = v;
        if (!sti_graph_value(g, v)->adapter)
            s->out[s->out_count++] = out_row(&s->list.rows[row], sti_graph_value(g, v));
        row++;
    }
    s->out_weights = s->out_count + s->weights - row; /* with the states */
    for (; row < s->model; row++) {
        s->value[s->out_count] = -1;
        s->out[s->out_count++] = s->list.rows[row];
    }
    return add_constants(s);
}

static bool is_merged(const sti_saver *s, int64_t i)
{
    stint_value a, b;
    return s->merged && s->value[i] >= 0 &&
           sti_lora_find(s->job->setup.train.graph, s->out[i].name, &a, &b);
}

static bool is_in_bytes(const sti_saver *s, int64_t i)
{
    return s->value[i] >= 0 &&
           sti_graph_value(s->job->setup.train.graph, s->value[i])->in_bytes;
}

/* Where the bytes of a row of the model file are, of one that is float32. */
static const void *out_data(const sti_saver *s, int64_t i)
{
    if (!is_merged(s, i))
        return s->out[i].data;
    sti_lora_merge(&s->job->setup.train, &s->job->inputs.network.lora, s->value[i],
                   s->engine->params, s->merged);
    return s->merged;
}

stint_status sti_saver_fill_out(void *user, const sti_tensor_row *row,
                                sti_writer *writer)
{
    const sti_saver *s = user;
    const int64_t i = row - s->out;
    return is_in_bytes(s, i) && !is_merged(s, i)
               ? sti_byte_weight_write(row, s->wide, writer)
               : sti_writer_add(writer, out_data(s, i), row->bytes);
}

void sti_saver_weights_sha256(const sti_saver *saver, char hex_out[65])
{
    sti_sha256 state;
    sti_sha256_init(&state);
    for (int64_t i = 0; i < saver->out_weights; i++)
        if (is_in_bytes(saver, i) && !is_merged(saver, i))
            sti_byte_weight_add_sha256(&saver->out[i], saver->wide, &state);
        else
            sti_sha256_add(&state, out_data(saver, i), saver->out[i].bytes);
    sti_sha256_hex(&state, hex_out);
}
