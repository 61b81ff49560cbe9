/* From words to a parsed call. Force rises from default over recipe and environment to
 * the command line, so the command line is read twice: once to find the recipe and to
 * refuse a mistyped flag before anything is opened, once to override what the recipe
 * and the environment said. */
#include <string.h>

#include "base/fail.h"
#include "base/recipe.h"
#include "cli/cli_stock.h"
#include "net/net.h"
#include "train/finetune.h"

const sti_cli_command *sti_cli_find(const sti_cli_command *const *all, const char *name)
{
    for (; *all; all++)
        if (strcmp((*all)->name, name) == 0)
            return *all;
    return NULL;
}

static stint_status read_environment(sti_cli_call *call)
{
    const char **known = sti_cli_known_variables(call->commands, call->arena);
    return known ? sti_options_read_environment(&call->set, known) : STINT_E_MEMORY;
}

/* Values of the recipe, which lie before the command's own. */
static size_t recipe_bytes(const sti_cli_command *command)
{
    return command->recipe ? sti_recipe_table_get()->bytes : 0;
}

/* The flag that this row of a recipe has in a command that begins with a model; NULL:
 * none. Of the rest --set sets what is wanted. */
static const sti_cli_model_flag *flag_of_model(const sti_cli_command *command,
                                               const sti_option *row)
{
    const size_t section = strlen(row->section);
    for (const sti_cli_model_flag *f = command->model_flags; f->key; f++)
        if (strncmp(f->key, row->section, section) == 0 && f->key[section] == '.' &&
            strcmp(f->key + section + 1, row->name) == 0)
            return f;
    return NULL;
}

static void adapt_to_model(const sti_cli_command *command, sti_option *row)
{
    const sti_cli_model_flag *flag = flag_of_model(command, row);
    row->flag = flag != NULL;
    if (flag && flag->default_text)
        row->default_text = flag->default_text;
    if (flag && flag->help)
        row->help = flag->help;
}

const sti_option *sti_cli_rows(const sti_cli_command *command, sti_arena *arena,
                               int *count_out)
{
    const sti_recipe_table *recipe = sti_recipe_table_get();
    int recipe_rows = command->recipe ? recipe->count : 0;
    int count = recipe_rows + command->row_count;
    sti_option *rows = sti_arena_alloc(arena, (size_t)(count + 1) * sizeof *rows);
    if (!rows)
        return NULL;
    for (int i = 0; i < recipe_rows; i++) {
        rows[i] = recipe->row[i];
        if (command->of_model)
            adapt_to_model(command, &rows[i]);
    }
    for (int i = 0; i < command->row_count; i++) {
        rows[recipe_rows + i] = command->rows[i];
        rows[recipe_rows + i].offset += recipe_bytes(command);
    }
    *count_out = count;
    return rows;
}

static stint_status check_operands(const sti_cli_call *call)
{
    const sti_cli_command *c = call->command;
    if (call->operand_count < c->min_operands)
        return sti_fail(STINT_E_USAGE, "wants %s, for example:\n    %.*s", c->operands,
                        (int)strcspn(c->example, "\n"), c->example);
    if (c->max_operands >= 0 && call->operand_count > c->max_operands)
        return sti_fail(STINT_E_USAGE,
                        "does not know what to do with '%s'; it takes %s",
                        call->operands[c->max_operands],
                        c->operands[0] ? c->operands : "no further words");
    return STINT_OK;
}

static stint_status parse_into(sti_cli_call *call, int argc, char **argv,
                               bool *help_out)
{
    return sti_options_read_command(&call->set, argc, argv, &call->operands,
                                    &call->operand_count, help_out);
}

/* The recipe's values take the place of the defaults before args; what environment and
 * flags change goes back into the recipe. */
static stint_status load_recipe(sti_cli_call *call, int argc, char **argv)
{
    bool help = false;
    stint_status status =
        call->operand_count == 0 ? read_environment(call) : STINT_OK; /* for --data */
    if (status == STINT_OK)
        status = sti_cli_open_recipe(call);
    if (status == STINT_OK)
        status = sti_options_default(&call->set);
    if (status != STINT_OK)
        return status;
    struct stint_recipe *recipe = call->recipe;
    const size_t bytes = recipe->table->bytes;
    const size_t origin_bytes = (size_t)recipe->set.count * sizeof *call->set.origin;
    memcpy(call->set.target, recipe->set.target, bytes);
    memcpy(call->set.origin, recipe->set.origin, origin_bytes);
    sti_arena *own = call->set.arena;
    call->set.arena = recipe->arena; /* texts must live as long as the recipe */
    status = read_environment(call);
    if (status == STINT_OK)
        status = parse_into(call, argc, argv, &help);
    call->set.arena = own;
    if (status != STINT_OK)
        return status;
    memcpy(recipe->set.target, call->set.target, bytes);
    memcpy(recipe->set.origin, call->set.origin, origin_bytes);
    return sti_recipe_take_imported(call->recipe_for != NULL, recipe);
}

static stint_status prepare(sti_cli_call *call)
{
    const sti_cli_command *command = call->command;
    call->arena = sti_arena_create("command line");
    if (!call->arena)
        return STINT_E_MEMORY;
    int count = 0;
    const sti_option *rows = sti_cli_rows(command, call->arena, &count);
    char *block =
        sti_arena_alloc(call->arena, recipe_bytes(command) + command->args_bytes);
    sti_origin *origin =
        sti_arena_alloc(call->arena, (size_t)(count + 1) * sizeof *origin);
    if (!rows || !block || !origin)
        return STINT_E_MEMORY;
    call->args = block + recipe_bytes(command);
    call->common =
        (const sti_cli_common *)((const char *)call->args + command->common_offset);
    call->set = (sti_option_set){.rows = rows,
                                 .count = count,
                                 .target = block,
                                 .arena = call->arena,
                                 .origin = origin};
    return sti_options_default(&call->set);
}

stint_status sti_cli_parse(sti_cli_call *call, int argc, char **argv, bool *help_out)
{
    stint_status status = prepare(call);
    if (status != STINT_OK)
        return status;
    status = parse_into(call, argc, argv, help_out);
    if (*help_out)
        return STINT_OK;
    const stint_status refused =
        sti_cli_refuse_flags(call->command->absent, argc, argv);
    if (refused != STINT_OK)
        return refused;
    if (status == STINT_OK)
        status = check_operands(call);
    if (status != STINT_OK)
        return status;
    const bool without = call->command->without_recipe && call->operand_count > 0 &&
                         call->command->without_recipe(call->operands[0]);
    if (call->command->recipe && !without)
        return load_recipe(call, argc, argv);
    status = sti_options_default(&call->set);
    if (status == STINT_OK)
        status = read_environment(call);
    if (status == STINT_OK)
        status = parse_into(call, argc, argv, help_out);
    return status;
}

/* A process that is not to tell stays until rank 0 has: mpirun ends all of them when
 * one has gone with an error. */
static void leave_ranks(sti_cli_call *call)
{
    if (call->told)
        sti_comm_outstay(sti_net_comm(call->net), 0);
    stint_net_leave(call->net);
    call->net = NULL;
}

void sti_cli_call_fini(sti_cli_call *call)
{
    leave_ranks(call);
    stint_recipe_destroy(call->recipe);
    sti_arena_destroy(call->arena);
    call->recipe = NULL;
    call->arena = NULL;
}

stint_status sti_cli_leave(sti_cli_call *call, stint_net *net, stint_status status)
{
    int rank = stint_net_rank(net);
    bool own = false;
    if (rank > 0) {
        stint_set_log(NULL, NULL);
        sti_comm_failure(sti_net_comm(net), NULL, 0, &own);
        own = own || status == STINT_E_PEER; /* every survivor names the lost one */
        call->told = status != STINT_OK && !own;
        if (status != STINT_OK && own)
            sti_fail_context(status, "rank %d", rank);
    }
    call->net = net;
    return status;
}
