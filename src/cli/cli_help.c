/* Help screens and man pages, from the tables. */
#include <string.h>

#include "base/recipe.h"
#include "cli/cli.h"

static void add_indented(sti_text *out, const char *prefix, const char *lines)
{
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        sti_text_add(out, prefix);
        sti_text_add_bytes(out, lines, length);
        sti_text_add(out, "\n");
        lines += length + (lines[length] == '\n');
    }
}

static void add_usage(sti_text *out, const sti_cli_command *command)
{
    sti_text_printf(out, "stint %s", command->name);
    if (command->operands[0])
        sti_text_printf(out, " %s", command->operands);
    sti_text_add(out, " [OPTION...]");
}

void sti_cli_help_command(const sti_cli_command *command, int width, sti_text *out)
{
    sti_text_printf(out, "stint %s - %s\n\nExample:\n", command->name,
                    command->summary);
    add_indented(out, "  ", command->example);
    sti_text_add(out, "\nUsage: ");
    add_usage(out, command);
    sti_text_add(out, "\n");
    sti_text_add_filled(out, command->about, 0, 0, width < 80 ? width : 80);
    sti_text_add(out, "\nOptions:\n");
    sti_arena *arena = sti_arena_create("help");
    int count = 0;
    const sti_option *rows = arena ? sti_cli_rows(command, arena, &count) : NULL;
    if (rows)
        sti_options_write_help(rows, count, width, out);
    else
        out->failed = true;
    sti_arena_destroy(arena);
}

void sti_cli_help_overview(const sti_cli_command *const *all, int width, sti_text *out)
{
    sti_text_add(out, "stint - machine learning to a budget\n\n"
                      "Example:\n"
                      "  stint data glyphs --out out/glyphs\n"
                      "  stint plan recipes/glyphs-resnet8.ini --data out/glyphs\n"
                      "  stint train recipes/glyphs-resnet8.ini --data out/glyphs "
                      "--out runs/a\n\n"
                      "Subcommands:\n");
    for (int i = 0; all[i]; i++)
        sti_text_printf(out, "  %-13s %.*s\n", all[i]->name,
                        width > 20 ? width - 16 : 64, all[i]->summary);
    sti_text_add(out, "\n"
                      "  stint SUBCOMMAND -h      options of one subcommand\n"
                      "  stint help TOPIC         recipe, models, environment, exit\n"
                      "  stint --version [--json] version, machine, optional parts\n");
}

static void add_page_name(sti_text *out, const char *name)
{
    sti_text_add(out, "stint");
    if (*name)
        sti_text_add(out, "\\-");
    for (; *name; name++)
        sti_text_add(out, *name == ' ' ? "\\-" : (char[2]){*name, 0});
}

static void add_exit_status(sti_text *out)
{
    static const stint_status all[] = {
        STINT_OK,       STINT_E_FAILED,      STINT_E_USAGE,
        STINT_E_BUDGET, STINT_E_INPUT,       STINT_E_IO,
        STINT_E_PEER,   STINT_E_MEMORY,      STINT_E_UNSUPPORTED,
        STINT_E_BUG,    STINT_E_INTERRUPTED, STINT_E_TERMINATED};
    sti_text_add(out, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        sti_text_printf(out, ".TP\n%d\n", (int)all[i]);
        sti_text_add_roff(out, stint_status_name(all[i]));
        sti_text_add(out, "\n");
    }
}

static void add_heading(sti_text *out, const char *name)
{
    sti_text_add(out, ".TH \"");
    add_page_name(out, name);
    sti_text_printf(out, "\" 1 \"\" \"stint %s\" \"Stint\"\n.SH NAME\n",
                    stint_version());
    add_page_name(out, name);
}

void sti_cli_man(const sti_cli_command *command, sti_text *out)
{
    add_heading(out, command->name);
    sti_text_add(out, " \\- ");
    sti_text_add_roff(out, command->summary);
    sti_text_printf(out, "\n.SH SYNOPSIS\n.B stint %s\n", command->name);
    sti_text_add_roff(out, command->operands);
    sti_text_add(out, " [OPTION...]\n.SH DESCRIPTION\n");
    sti_text_add_roff(out, command->about);
    sti_text_add(out, "\n.SH EXAMPLE\n.nf\n");
    sti_text_add_roff(out, command->example);
    sti_text_add(out, "\n.fi\n.SH OPTIONS\n");
    sti_options_write_man(command->rows, command->row_count, out);
    if (command->recipe) {
        sti_text_add(out,
                     ".SH RECIPE OPTIONS\nThese override the recipe; any other key "
                     "by \\-\\-set SECTION.KEY=VALUE.\n");
        const sti_recipe_table *recipe = sti_recipe_table_get();
        sti_options_write_man(recipe->row, recipe->count, out);
    }
    sti_cli_man_environment(out);
    add_exit_status(out);
    sti_text_add(out, ".SH SEE ALSO\n.BR stint (1)\n");
}

void sti_cli_man_overview(const sti_cli_command *const *all, sti_text *out)
{
    add_heading(out, "");
    sti_text_add(out,
                 " \\- machine learning to a budget\n.SH SYNOPSIS\n.B stint\n"
                 "SUBCOMMAND [OPTION...]\n.SH DESCRIPTION\n"
                 "Trains, plans and evaluates image networks within a memory budget "
                 "that is announced beforehand and kept. Answers go to stdout, talk "
                 "to stderr; with \\-\\-json stdout holds one JSON object.\n"
                 ".SH SUBCOMMANDS\n");
    for (int i = 0; all[i]; i++) {
        sti_text_printf(out, ".TP\n.B stint %s\n", all[i]->name);
        sti_text_add_roff(out, all[i]->summary);
        sti_text_add(out, "\n");
    }
    sti_cli_man_environment(out);
    add_exit_status(out);
    sti_text_add(out, ".SH SEE ALSO\n");
    for (int i = 0; all[i]; i++) {
        sti_text_add(out, ".BR ");
        add_page_name(out, all[i]->name);
        sti_text_add(out, all[i + 1] ? " (1),\n" : " (1)\n");
    }
}
