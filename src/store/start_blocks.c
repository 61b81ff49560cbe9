#include "store/start_blocks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"

/* The number of the block that a name is of ("h.12.mlp.c_fc.weight"), and what follows
 * it in *rest_out; -1: of none. */
static int64_t block_of(const char *name, const char **rest_out)
{
    int used = 0;
    int64_t block = -1;
    if (sscanf(name, "h.%" SCNd64 ".%n", &block, &used) != 1 || used == 0)
        return -1;
    *rest_out = name + used;
    return block;
}

const char *sti_model_start_name(const stint_model_file *model, const char *name,
                                 sti_tensor_name *space)
{
    const char *rest;
    const int64_t block = model->blocks ? block_of(name, &rest) : -1;
    if (block < 0 || block >= model->block_count)
        return name;
    snprintf(space->text, sizeof space->text, "h.%" PRId64 ".%s", model->blocks[block],
             rest);
    return space->text;
}

const char *sti_model_name_here(const stint_model_file *model, const char *name,
                                sti_tensor_name *space)
{
    const char *rest;
    const int64_t block = model->blocks ? block_of(name, &rest) : -1;
    if (block < 0)
        return name;
    for (int64_t i = 0; i < model->block_count; i++)
        if (model->blocks[i] == block) {
            snprintf(space->text, sizeof space->text, "h.%" PRId64 ".%s", i, rest);
            return space->text;
        }
    return NULL;
}

/* From first to last with steps as equal as can be; of two as near, the lower. */
static void take_evenly(int64_t there, int64_t count, int64_t *blocks)
{
    for (int64_t i = 0; i < count; i++)
        blocks[i] =
            count == 1 ? 0 : (2 * i * (there - 1) + count - 2) / (2 * (count - 1));
}

/* A number, and the comma behind it where another follows. */
static stint_status read_block(const stint_model_file *model, const char *list,
                               const char **at, int64_t *block_out)
{
    const int64_t there = model->network.text.depth;
    char *end;
    *block_out = strtoll(*at, &end, 10);
    if (end == *at)
        return sti_fail(STINT_E_USAGE,
                        "train.start_blocks: '%s' at '%s': write numbers of blocks "
                        "with commas between, as 0,2,5, or even",
                        list, *at);
    if (*block_out < 0 || *block_out >= there)
        return sti_fail(STINT_E_USAGE,
                        "train.start_blocks: there is no block %" PRId64
                        " in %s, which has %" PRId64 ", 0 to %" PRId64,
                        *block_out, sti_tensor_file_path(model->file), there,
                        there - 1);
    *at = end + strspn(end, " ");
    if (**at && (**at != ',' || (*at)[1] == '\0'))
        return sti_fail(STINT_E_USAGE,
                        "train.start_blocks: '%s' at '%s': a comma belongs between two "
                        "blocks, and nothing else",
                        list, *at);
    *at += **at == ',';
    return STINT_OK;
}

static stint_status read_blocks(const stint_model_file *model, const char *list,
                                int64_t count, int64_t *blocks)
{
    const char *at = list;
    int64_t i = 0, block;
    for (; *at; i++) {
        const stint_status st = read_block(model, list, &at, &block);
        if (st != STINT_OK)
            return st;
        if (i < count)
            blocks[i] = block;
    }
    return i == count
               ? STINT_OK
               : sti_fail(STINT_E_USAGE,
                          "train.start_blocks: %" PRId64 " block%s for the %" PRId64
                          " of model.depth; name one for each",
                          i, sti_s(i), count);
}

static void tell_blocks(const stint_model_file *model)
{
    sti_text text = {0};
    for (int64_t i = 0; i < model->block_count; i++)
        sti_text_printf(&text, "%s%" PRId64, i ? ", " : "", model->blocks[i]);
    sti_log(STINT_LOG_INFO,
            "train.start: blocks %s of the %" PRId64
            " of %s are taken, and what is outside of blocks",
            text.data ? text.data : "", model->network.text.depth,
            sti_tensor_file_path(model->file));
    sti_text_fini(&text);
}

stint_status sti_model_take_blocks(stint_model_file *model, const char *list,
                                   int64_t count)
{
    int64_t *blocks = sti_arena_alloc(model->arena, (size_t)count * sizeof *blocks);
    stint_status st = blocks ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK && strcmp(list, "even") == 0)
        take_evenly(model->network.text.depth, count, blocks);
    else if (st == STINT_OK)
        st = read_blocks(model, list, count, blocks);
    if (st != STINT_OK)
        return st;
    model->blocks = blocks;
    model->block_count = count;
    tell_blocks(model);
    return STINT_OK;
}
