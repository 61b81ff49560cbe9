#include "store/model_load.h"

#include <string.h>

#include "base/fail.h"
#include "store/byte_weight.h"
#include "store/start_blocks.h"

stint_status sti_model_load_tensor(void *user, const sti_value_row *value,
                                   const sti_allocation *allocation)
{
    const sti_model_loader *l = user;
    sti_tensor_name space;
    const sti_tensor_file *f = l->model->file;
    const char *own = l->scope ? value->name + strlen(l->scope) + 1 : value->name;
    const char *name = l->begins ? sti_model_start_name(l->model, own, &space) : own;
    const sti_tensor_row *row = sti_tensor_file_find(f, name);
    if (l->skips && sti_classifier_has(l->skips, value))
        return STINT_OK;
    if (l->begins && !row && (sti_graph_is_spread(value) || value->adapter))
        return STINT_OK;
    if (!row || row->type != STI_TENSOR_F32 || row->rank != value->shape.rank ||
        memcmp(row->dim, value->shape.dim, (size_t)row->rank * sizeof row->dim[0]) != 0)
        return sti_fail(STINT_E_INPUT, "%s: %s '%s' of %s, as the network %s wants it",
                        sti_tensor_file_path(f), row ? "has another" : "has no", name,
                        sti_shape_text(&value->shape), l->wants);
    if (!l->block)
        return sti_tensor_file_add_finite_sha256(f, row, l->hash);
    if (value->in_bytes)
        return sti_byte_weight_read(f, row, l->block + allocation->offset);
    float *out = (float *)(void *)(l->block + allocation->offset);
    const stint_status st = sti_tensor_file_read(f, row, out);
    if (st == STINT_OK && l->model->adapter && row->rank == 2)
        sti_adapter_add(l->model->adapter, name, false, row->dim[1], 0, row->dim[0],
                        out);
    return st;
}

stint_status sti_model_load_all(sti_model_loader l, const sti_network *network,
                                void *params, void *states)
{
    l.block = params;
    stint_status st =
        sti_network_each(network, STI_ROLE_PARAM, sti_model_load_tensor, &l);
    l.block = states;
    return st != STINT_OK
               ? st
               : sti_network_each(network, STI_ROLE_STATE, sti_model_load_tensor, &l);
}
