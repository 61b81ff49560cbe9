/* stint help: subcommands and topics, and the generated references (man pages, the
 * recipe reference of docs/). */
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/recipe.h"
#include "cli/cli.h"
#include "cli/help_combinations.h"

typedef struct help_args {
    bool man, recipe_markdown, combinations_markdown;
    const char *man_pages;
    sti_cli_common common;
} help_args;

static const sti_option help_rows[] = {
    {.name = "man",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(help_args, man),
     .flag = true,
     .help = "print the man page in roff instead"},
    {.name = "man-pages",
     .type = STI_OPTION_PATH,
     .default_text = "",
     .offset = offsetof(help_args, man_pages),
     .flag = true,
     .unit = "DIR",
     .help = "write the man pages of all subcommands into a folder"},
    {.name = "recipe-markdown",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(help_args, recipe_markdown),
     .flag = true,
     .help = "print the reference of all recipe keys (docs/recipe-reference.md)"},
    {.name = "combinations-markdown",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(help_args, combinations_markdown),
     .flag = true,
     .help = "print what goes with what (docs/combinations.md)"},
    STI_CLI_COMMON_ROWS(help_args),
};

static void recipe_topic(sti_text *out)
{
    sti_text_add(out, "Keys of a recipe, SECTION.KEY = DEFAULT:\n");
    const sti_recipe_table *recipe = sti_recipe_table_get();
    for (int i = 0; i < recipe->count; i++) {
        const sti_option *row = &recipe->row[i];
        if (i == 0 || strcmp(row->section, row[-1].section) != 0)
            sti_text_printf(out, "\n[%s]\n", row->section);
        sti_text_printf(out, "  %-18s %-10s %s\n", row->name,
                        row->default_text[0] ? row->default_text : "-", row->help);
        if (row->choices)
            sti_text_printf(out, "  %-18s %-10s one of %s\n", "", "", row->choices);
    }
}

static void add_models(const stint_model_info *info, sti_text *out)
{
    for (; info->name; info++)
        sti_text_printf(out, "  %-12s %s\n", info->name, info->help);
}

static void models_topic(sti_text *out)
{
    sti_text_add(out, "Networks, as in model.name:\n");
    add_models(stint_model_list(), out);
    sti_text_add(out, "Of text:\n");
    add_models(stint_text_model_list(), out);
    sti_text_add(out, "Of fields:\n");
    add_models(stint_field_list(), out);
}

static void environment_topic(sti_text *out)
{
    sti_cli_help_environment(sti_cli_width(), out);
}

static void exit_topic(sti_text *out)
{
    static const stint_status all[] = {
        STINT_OK,       STINT_E_FAILED,      STINT_E_USAGE,
        STINT_E_BUDGET, STINT_E_INPUT,       STINT_E_IO,
        STINT_E_PEER,   STINT_E_MEMORY,      STINT_E_UNSUPPORTED,
        STINT_E_BUG,    STINT_E_INTERRUPTED, STINT_E_TERMINATED};
    sti_text_add(out, "Exit codes:\n");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        sti_text_printf(out, "  %3d  %s\n", (int)all[i], stint_status_name(all[i]));
}

static const struct {
    const char *name;
    void (*print)(sti_text *out);
} topics[] = {{"recipe", recipe_topic},
              {"models", models_topic},
              {"environment", environment_topic},
              {"combinations", sti_cli_combinations_text},
              {"exit", exit_topic}};
enum { TOPIC_COUNT = sizeof topics / sizeof topics[0] };

static stint_status unknown_topic(const sti_cli_command *const *all, const char *word)
{
    const char *names[64];
    int count = 0;
    for (int i = 0; i < TOPIC_COUNT; i++)
        names[count++] = topics[i].name;
    for (int i = 0; all[i] && count < 64; i++)
        names[count++] = all[i]->name;
    const char *near = sti_text_nearest(word, names, count);
    return sti_fail(STINT_E_USAGE, "there is no help on '%s'%s%s%s", word,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static bool add_group(const sti_cli_command *const *all, const char *word,
                      sti_text *out)
{
    bool found = false;
    size_t length = strlen(word);
    for (int i = 0; all[i]; i++) {
        const sti_cli_command *c = all[i];
        if (strncmp(c->name, word, length) == 0 && c->name[length] == ' ') {
            sti_text_printf(out, "  stint %-14s %s\n", c->name, c->summary);
            found = true;
        }
    }
    return found;
}

static stint_status add_topic(const sti_cli_call *call, const char *word, sti_text *out)
{
    const help_args *args = call->args;
    const sti_cli_command *command = sti_cli_find(call->commands, word);
    if (command && args->man)
        sti_cli_man(command, out);
    else if (command)
        sti_cli_help_command(command, sti_cli_width(), out);
    if (command)
        return STINT_OK;
    for (int i = 0; i < TOPIC_COUNT; i++)
        if (strcmp(topics[i].name, word) == 0) {
            topics[i].print(out);
            return STINT_OK;
        }
    return add_group(call->commands, word, out) ? STINT_OK
                                                : unknown_topic(call->commands, word);
}

static stint_status write_page(sti_cli_call *call, const char *folder,
                               const sti_cli_command *command)
{
    sti_text text = {0};
    char *path =
        command ? sti_arena_printf(call->arena, "%s/stint-%s.1", folder, command->name)
                : sti_arena_printf(call->arena, "%s/stint.1", folder);
    for (char *c = path ? path + strlen(folder) : NULL; c && *c; c++)
        *c = (char)(*c == ' ' ? '-' : *c);
    if (command)
        sti_cli_man(command, &text);
    else
        sti_cli_man_overview(call->commands, &text);
    stint_status status = STINT_E_MEMORY;
    if (path && !text.failed)
        status = sti_file_write(path, text.data, text.length);
    sti_text_fini(&text);
    return status;
}

static stint_status write_pages(sti_cli_call *call, const char *folder)
{
    stint_status status = sti_dir_create(folder);
    if (status == STINT_OK)
        status = write_page(call, folder, NULL);
    for (int i = 0; call->commands[i] && status == STINT_OK; i++)
        status = write_page(call, folder, call->commands[i]);
    return status;
}

static stint_status answer_combinations(sti_cli_call *call)
{
    sti_text text = {0};
    sti_json j = {0};
    sti_cli_json_begin(&j, &text);
    sti_cli_combinations_json(&j);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status help_run(sti_cli_call *call)
{
    const help_args *args = call->args;
    if (args->man_pages)
        return write_pages(call, args->man_pages);
    sti_text text = {0};
    stint_status status = STINT_OK;
    if (args->recipe_markdown) {
        sti_text_add(&text,
                     "# Recipe reference\n\nAfter this page you can write a recipe: it "
                     "lists every key with its default, its range and its meaning. A "
                     "recipe is an INI file, and every key may be left out.\n\nMade by "
                     "`stint help --recipe-markdown`; do not edit.\n\n");
        const sti_recipe_table *recipe = sti_recipe_table_get();
        sti_options_write_markdown(recipe->row, recipe->count, &text);
    } else if (args->combinations_markdown) {
        sti_cli_combinations_markdown(&text);
    } else if (call->operand_count == 1 && args->common.json &&
               strcmp(call->operands[0], "combinations") == 0) {
        return answer_combinations(call);
    } else if (call->operand_count == 0 && args->man) {
        sti_cli_man_overview(call->commands, &text);
    } else if (call->operand_count == 0) {
        sti_cli_help_overview(call->commands, sti_cli_width(), &text);
    } else {
        const char *word = call->operands[0];
        if (call->operand_count > 1)
            word = sti_arena_printf(call->arena, "%s %s", word, call->operands[1]);
        status = word ? add_topic(call, word, &text) : STINT_E_MEMORY;
    }
    if (status != STINT_OK) {
        sti_text_fini(&text);
        return status;
    }
    return sti_cli_answer_text(call, "text", &text);
}

const sti_cli_command sti_cmd_help = {
    .name = "help",
    .summary = "explain a subcommand or a topic",
    .operands = "[SUBCOMMAND | recipe | models | combinations | environment | exit]",
    .example = "stint help train\nstint help recipe",
    .about = "Without a word: the list of subcommands.",
    .min_operands = 0,
    .max_operands = 2,
    STI_CLI_ARGS(help_rows, help_args),
    .run = help_run,
};
