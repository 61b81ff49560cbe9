#include "store/checkpoint_file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"

/* ---- tensors ---- */

stint_status sti_tensor_list_init(sti_tensor_list *list, sti_arena *arena,
                                  int64_t capacity)
{
    *list = (sti_tensor_list){.arena = arena, .capacity = capacity};
    list->rows = sti_arena_alloc(arena, (size_t)capacity * sizeof *list->rows);
    return list->rows ? STINT_OK : STINT_E_MEMORY;
}

void sti_tensor_list_add(sti_tensor_list *list, const sti_tensor_row *row)
{
    assert(list->count < list->capacity);
    list->rows[list->count++] = *row;
}

void sti_tensor_list_add_vector(sti_tensor_list *list, const char *name,
                                sti_tensor_type type, int64_t count, size_t bytes,
                                const void *data)
{
    sti_tensor_list_add(list, &(sti_tensor_row){.name = name,
                                                .type = type,
                                                .rank = 1,
                                                .dim = {count},
                                                .bytes = bytes,
                                                .data = data});
}

typedef struct collector {
    sti_tensor_list *list;
    const char *prefix;
    const char *block;
} collector;

static stint_status collect(void *user, const sti_value_row *value,
                            const sti_allocation *allocation)
{
    const collector *c = user;
    sti_tensor_row row = {.type = STI_TENSOR_F32,
                          .rank = value->shape.rank,
                          .bytes = stint_shape_bytes(&value->shape),
                          .data = c->block + allocation->offset};
    row.name = sti_arena_printf(c->list->arena, "%s%s", c->prefix, value->name);
    if (!row.name)
        return STINT_E_MEMORY;
    memcpy(row.dim, value->shape.dim, sizeof value->shape.dim);
    if (value->in_bytes) {
        row.type = STI_TENSOR_U8;
        row.rank = 1;
        row.bytes = sti_graph_value_bytes(value);
        row.dim[0] = (int64_t)row.bytes;
    }
    sti_tensor_list_add(c->list, &row);
    return STINT_OK;
}

stint_status sti_tensor_list_add_network(sti_tensor_list *list,
                                         const sti_network *network, sti_role role,
                                         const char *prefix, const void *block)
{
    collector c = {list, prefix, block};
    return sti_network_each(network, role, collect, &c);
}

void sti_tensor_list_add_sha256(const sti_tensor_list *list, int64_t first, int64_t end,
                                sti_sha256 *state)
{
    for (int64_t i = first; i < end; i++)
        sti_sha256_add(state, list->rows[i].data, list->rows[i].bytes);
}

stint_status sti_tensor_list_find(const sti_tensor_list *list, int64_t i,
                                  const sti_tensor_file *file,
                                  const sti_tensor_row **have_out)
{
    const sti_tensor_row *row = &list->rows[i];
    const sti_tensor_row *have = sti_tensor_file_find(file, row->name);
    *have_out = have;
    if (!have || have->type != row->type || have->rank != row->rank ||
        memcmp(have->dim, row->dim, (size_t)row->rank * sizeof row->dim[0]) != 0)
        return sti_fail(STINT_E_INPUT, "%s: has no tensor '%s' of the right shape",
                        sti_tensor_file_path(file), row->name);
    return STINT_OK;
}

stint_status sti_tensor_list_read(const sti_tensor_list *list, int64_t i,
                                  const sti_tensor_file *file)
{
    const sti_tensor_row *have;
    const stint_status st = sti_tensor_list_find(list, i, file, &have);
    /* Rows point into blocks that are the list's owner's to write. */
    return st == STINT_OK
               ? sti_tensor_file_read(file, have, (void *)(uintptr_t)list->rows[i].data)
               : st;
}

/* ---- files ---- */

void sti_checkpoint_name(int64_t step, char name_out[STI_CHECKPOINT_NAME_BYTES])
{
    snprintf(name_out, STI_CHECKPOINT_NAME_BYTES, "step-%08" PRId64 ".safetensors",
             step);
}

static bool is_checkpoint_name(const char *name)
{
    int64_t step;
    int used = 0;
    return sscanf(name, "step-%" SCNd64 ".safetensors%n", &step, &used) == 1 &&
           used > 0 && name[used] == '\0' && step >= 0;
}

/* Names are sorted as text; steps of more than eight digits would break that. */
static void sort_by_step(char **names, int64_t count)
{
    for (int64_t i = 1; i < count; i++)
        for (int64_t k = i; k > 0 && (strlen(names[k - 1]) > strlen(names[k]) ||
                                      (strlen(names[k - 1]) == strlen(names[k]) &&
                                       strcmp(names[k - 1], names[k]) > 0));
             k--) {
            char *swap = names[k];
            names[k] = names[k - 1];
            names[k - 1] = swap;
        }
}

stint_status sti_checkpoint_list(sti_arena *arena, const char *folder,
                                 char ***names_out, int64_t *count_out)
{
    int64_t count = 0, kept = 0;
    char **names = NULL;
    *count_out = 0;
    if (!sti_path_is_dir(folder))
        return STINT_OK;
    stint_status st = sti_dir_list(arena, folder, &names, &count);
    if (st != STINT_OK)
        return st;
    for (int64_t i = 0; i < count; i++)
        if (is_checkpoint_name(names[i]))
            names[kept++] = names[i];
    sort_by_step(names, kept);
    *names_out = names;
    *count_out = kept;
    return STINT_OK;
}

static stint_status remove_one(sti_arena *arena, const char *folder, const char *name)
{
    const char *path = sti_path_join(arena, folder, name);
    if (!path)
        return STINT_E_MEMORY;
    if (unlink(path) != 0)
        sti_log(STINT_LOG_WARNING, "%s: an old checkpoint cannot be removed", path);
    return STINT_OK;
}

stint_status sti_checkpoint_remove_old(const char *folder, const char *newest,
                                       int64_t keep)
{
    sti_arena *arena = sti_arena_create("checkpoint names");
    char **names = NULL;
    int64_t count = 0, last = 0;
    stint_status st = arena ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_checkpoint_list(arena, folder, &names, &count);
    while (last < count && strcmp(names[last], newest) != 0)
        last++;
    for (int64_t i = 0; i + keep <= last && i < count && st == STINT_OK; i++)
        st = remove_one(arena, folder, names[i]);
    sti_arena_destroy(arena);
    return st;
}
