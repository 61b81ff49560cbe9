#include "train/lora_merge.h"

#include <string.h>

#include "kernel/gemm/byte_matrix.h"

static const float *at(const sti_network *net, const void *params, stint_value v)
{
    return (const float *)(const void *)((const char *)params +
                                         net->plan->allocation[v].offset);
}

void sti_lora_merge(const sti_network *net, const sti_lora_desc *desc,
                    stint_value weight, const void *params, float *out)
{
    const sti_value_row *row = sti_graph_value(net->graph, weight);
    stint_value a, b;
    if (row->in_bytes) {
        const sti_byte_matrix m = sti_byte_matrix_at(
            at(net, params, weight), row->shape.dim[0], row->shape.dim[1]);
        sti_byte_matrix_widen_all(&m, out);
    } else {
        memcpy(out, at(net, params, weight), stint_shape_bytes(&row->shape));
    }
    if (desc->rank == 0 || !sti_lora_find(net->graph, row->name, &a, &b))
        return;
    const int64_t k = row->shape.dim[0], n = row->shape.dim[1];
    const float *x = at(net, params, a), *y = at(net, params, b);
    for (int64_t i = 0; i < k; i++)
        for (int64_t r = 0; r < desc->rank; r++) {
            const float factor = desc->scale * x[i * desc->rank + r];
            for (int64_t j = 0; j < n; j++)
                out[i * n + j] += factor * y[r * n + j];
        }
}

int64_t sti_lora_largest(const sti_network *net)
{
    int64_t largest = 0;
    stint_value a, b;
    for (stint_value v = 0; v < sti_graph_value_count(net->graph); v++) {
        const sti_value_row *row = sti_graph_value(net->graph, v);
        const int64_t count = stint_shape_count(&row->shape);
        if (row->role == STI_ROLE_PARAM && count > largest &&
            sti_lora_find(net->graph, row->name, &a, &b))
            largest = count;
    }
    return largest;
}
