/* stint completion: shell code made from the tables, for bash, zsh and fish. */
#include <string.h>

#include "base/fail.h"
#include "base/recipe.h"
#include "cli/cli.h"

typedef struct completion_args {
    sti_cli_common common;
} completion_args;

static const sti_option completion_rows[] = {STI_CLI_COMMON_ROWS(completion_args)};

typedef void row_fn(sti_text *out, const sti_cli_command *command,
                    const sti_option *row);

/* As on the command line: '-' for '_'. */
static void add_flag_name(sti_text *out, const sti_option *row)
{
    for (const char *c = row->flag_name ? row->flag_name : row->name; *c; c++)
        sti_text_add_bytes(out, *c == '_' ? "-" : c, 1);
}

static void each_flag(sti_text *out, const sti_cli_command *command, row_fn *fn)
{
    const sti_recipe_table *recipe = sti_recipe_table_get();
    for (int i = 0; command->recipe && i < recipe->count; i++)
        if (recipe->row[i].flag)
            fn(out, command, &recipe->row[i]);
    for (int i = 0; i < command->row_count; i++)
        if (command->rows[i].flag)
            fn(out, command, &command->rows[i]);
}

static void add_flag(sti_text *out, const sti_cli_command *command,
                     const sti_option *row)
{
    (void)command;
    sti_text_add(out, " --");
    add_flag_name(out, row);
}

/* "a|b" as "a b". */
static void add_choices(sti_text *out, const char *choices)
{
    for (; *choices; choices++)
        sti_text_add(out, *choices == '|' ? " " : (char[2]){*choices, 0});
}

static void add_bash_choices(sti_text *out, const sti_cli_command *command,
                             const sti_option *row)
{
    (void)command;
    if (!row->choices)
        return;
    sti_text_add(out, "        --");
    add_flag_name(out, row);
    sti_text_add(out, ") words=\"");
    add_choices(out, row->choices);
    sti_text_add(out, "\" ;;\n");
}

/* First words once each ("data" stands for all its subcommands). */
static void add_first_words(const sti_cli_command *const *all, sti_text *out)
{
    const char *last = "";
    for (int i = 0; all[i]; i++) {
        const char *name = all[i]->name;
        size_t length = strcspn(name, " ");
        if (strncmp(last, name, length) == 0 && strcspn(last, " ") == length)
            continue;
        sti_text_add(out, " ");
        sti_text_add_bytes(out, name, length);
        last = name;
    }
}

static void add_second_words(const sti_cli_command *const *all, const char *group,
                             size_t length, sti_text *out)
{
    for (int i = 0; all[i]; i++) {
        const char *name = all[i]->name;
        if (strncmp(name, group, length) == 0 && name[length] == ' ')
            sti_text_printf(out, " %s", name + length + 1);
    }
}

/* "data | bench": first words that want a second. */
static void add_groups(const sti_cli_command *const *all, sti_text *out)
{
    const char *last = "";
    for (int i = 0; all[i]; i++) {
        const char *name = all[i]->name;
        size_t length = strcspn(name, " ");
        if (!name[length] || strncmp(last, name, length + 1) == 0)
            continue;
        sti_text_printf(out, "%s%.*s", *last ? " | " : "", (int)length, name);
        last = name;
    }
}

static void add_bash_groups(const sti_cli_command *const *all, sti_text *out)
{
    const char *last = "";
    for (int i = 0; all[i]; i++) {
        const char *name = all[i]->name;
        size_t length = strcspn(name, " ");
        if (!name[length] || strncmp(last, name, length + 1) == 0)
            continue;
        sti_text_printf(out, "    %.*s) words=\"", (int)length, name);
        add_second_words(all, name, length, out);
        sti_text_add(out, "\" ;;\n");
        last = name;
    }
}

static void add_bash(const sti_cli_command *const *all, sti_text *out)
{
    sti_text_add(out, "# bash completion of stint\n"
                      "_stint_words() {\n"
                      "    local current=${COMP_WORDS[COMP_CWORD]} previous= command= "
                      "words= i\n"
                      "    [ \"$COMP_CWORD\" -gt 0 ] && "
                      "previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
                      "    command=${COMP_WORDS[1]}\n"
                      "    case $command in\n"
                      "    ");
    add_groups(all, out);
    sti_text_add(out, ") command=\"$command ${COMP_WORDS[2]}\" ;;\n"
                      "    esac\n"
                      "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                      "        words=\"");
    add_first_words(all, out);
    sti_text_add(out, " --version --help\"\n"
                      "        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                      "        return\n"
                      "    fi\n"
                      "    if [ \"$COMP_CWORD\" -eq 2 ]; then\n"
                      "    case ${COMP_WORDS[1]} in\n");
    add_bash_groups(all, out);
    sti_text_add(out, "    esac\n"
                      "    fi\n"
                      "    if [ -n \"$words\" ]; then\n"
                      "        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                      "        return\n"
                      "    fi\n"
                      "    case $command in\n");
    for (int i = 0; all[i]; i++) {
        sti_text_printf(out, "    '%s')\n        case $previous in\n", all[i]->name);
        each_flag(out, all[i], add_bash_choices);
        sti_text_add(out, "        *) [[ $current == -* ]] && words=\"");
        each_flag(out, all[i], add_flag);
        if (all[i]->recipe)
            sti_text_add(out, " --set");
        sti_text_add(out, " --help\" ;;\n        esac ;;\n");
    }
    sti_text_add(out, "    esac\n"
                      "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                      "    [ -n \"$words\" ] || COMPREPLY=($(compgen -f -- "
                      "\"$current\"))\n"
                      "}\n"
                      "complete -o filenames -F _stint_words stint\n");
}

/* zsh runs bash completions through bashcompinit: one source, one behaviour. The file
 * is the body of an autoloaded function, so it ends with completing the first request.
 */
static void add_zsh(const sti_cli_command *const *all, sti_text *out)
{
    sti_text_add(out, "#compdef stint\n"
                      "autoload -U +X bashcompinit && bashcompinit\n");
    add_bash(all, out);
    sti_text_add(out, "_bash_complete -o filenames -F _stint_words\n");
}

static void add_fish_text(sti_text *out, const char *words)
{
    sti_text_add(out, "'");
    for (; *words; words++)
        sti_text_add(out, *words == '\'' || *words == '\\' ? (char[3]){'\\', *words, 0}
                                                           : (char[2]){*words, 0});
    sti_text_add(out, "'");
}

/* True when the command line so far begins with the command's words. */
static void add_fish_condition(sti_text *out, const char *name)
{
    size_t length = strcspn(name, " ");
    sti_text_printf(out, "complete -c stint -n '__fish_seen_subcommand_from %.*s",
                    (int)length, name);
    if (name[length])
        sti_text_printf(out, "; and __fish_seen_subcommand_from %s", name + length + 1);
    sti_text_add(out, "'");
}

static void add_fish_row(sti_text *out, const sti_cli_command *command,
                         const sti_option *row)
{
    add_fish_condition(out, command->name);
    sti_text_add(out, " -l ");
    add_flag_name(out, row);
    if (row->letter)
        sti_text_printf(out, " -s %c", row->letter);
    if (row->choices) {
        sti_text_add(out, " -x -a '");
        add_choices(out, row->choices);
        sti_text_add(out, "'");
    } else if (row->type != STI_OPTION_BOOL) {
        sti_text_add(out, " -r");
    }
    sti_text_add(out, " -d ");
    add_fish_text(out, row->help);
    sti_text_add(out, "\n");
}

static void add_fish(const sti_cli_command *const *all, sti_text *out)
{
    sti_text_add(out, "# fish completion of stint\ncomplete -c stint -n "
                      "__fish_use_subcommand -a '");
    add_first_words(all, out);
    sti_text_add(out, "'\n");
    for (int i = 0; all[i]; i++) {
        const sti_cli_command *command = all[i];
        size_t length = strcspn(command->name, " ");
        if (command->name[length]) {
            sti_text_printf(
                out,
                "complete -c stint -n '__fish_seen_subcommand_from %.*s' -a "
                "%s -d ",
                (int)length, command->name, command->name + length + 1);
            add_fish_text(out, command->summary);
            sti_text_add(out, "\n");
        }
        each_flag(out, command, add_fish_row);
    }
}

static stint_status add_completion(const sti_cli_command *const *all, const char *shell,
                                   sti_text *out)
{
    if (strcmp(shell, "bash") == 0)
        add_bash(all, out);
    else if (strcmp(shell, "zsh") == 0)
        add_zsh(all, out);
    else if (strcmp(shell, "fish") == 0)
        add_fish(all, out);
    else
        return sti_fail(STINT_E_USAGE, "'%s' is no shell known here: bash, zsh or fish",
                        shell);
    return STINT_OK;
}

static stint_status completion_run(sti_cli_call *call)
{
    sti_text text = {0};
    stint_status status = add_completion(call->commands, call->operands[0], &text);
    if (status != STINT_OK) {
        sti_text_fini(&text);
        return status;
    }
    return sti_cli_answer_text(call, "script", &text);
}

const sti_cli_command sti_cmd_completion = {
    .name = "completion",
    .summary = "print completion code for a shell",
    .operands = "bash|zsh|fish",
    .example = "source <(stint completion bash)",
    .about = "Put the output where your shell looks for completions; `cmake --install` "
             "does so for all three.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(completion_rows, completion_args),
    .run = completion_run,
};
