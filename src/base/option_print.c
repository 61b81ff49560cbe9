/* What the option table says about itself: help, completion, man page, reference. */
#include <stdio.h>
#include <string.h>

#include "base/option_priv.h"

static bool is_flag(const sti_option *row)
{
    return row->flag || !row->section;
}

/* A name with '-' for '_', as on the command line. */
static void add_flag_name(const char *name, sti_text *out)
{
    for (; *name; name++)
        sti_text_add_bytes(out, *name == '_' ? "-" : name, 1);
}

static const char *unit_of(const sti_option *row)
{
    if (row->unit && *row->unit)
        return row->unit;
    switch (row->type) {
    case STI_OPTION_BOOL:
        return "";
    case STI_OPTION_INT:
        return "N";
    case STI_OPTION_FLOAT:
        return "X";
    case STI_OPTION_BYTES:
        return "SIZE";
    case STI_OPTION_TIME:
        return "TIME";
    case STI_OPTION_TEXT:
        return "TEXT";
    case STI_OPTION_PATH:
        return "PATH";
    case STI_OPTION_CHOICE:
        return "NAME";
    case STI_OPTION_LIST:
        return "LIST";
    }
    return "";
}

/* "  -j, --threads N" */
static void add_usage(const sti_option *row, sti_text *out)
{
    if (row->letter)
        sti_text_printf(out, "  -%c, --", row->letter);
    else
        sti_text_add(out, "      --");
    if (row->type == STI_OPTION_BOOL && strcmp(row->default_text, "true") == 0)
        sti_text_add(out, "[no-]");
    add_flag_name(sti_option_flag(row), out);
    if (row->type != STI_OPTION_BOOL)
        sti_text_printf(out, " %s", unit_of(row));
}

/* "what it is: a, b or c, from 1 to 9 (default 3)" */
static void add_meaning(const sti_option *row, sti_text *out)
{
    sti_text_add(out, row->help);
    if (row->choices) {
        sti_text_add(out, ": ");
        sti_option_add_choices(row, out);
    }
    if (*row->default_text && row->type != STI_OPTION_BOOL)
        sti_text_printf(out, " (default %s)", row->default_text);
}

/* Columns that a row's usage takes. */
static int usage_width(const sti_option *row)
{
    sti_text usage = {0};
    add_usage(row, &usage);
    int width = (int)usage.length;
    sti_text_fini(&usage);
    return width;
}

static void add_help_row(const sti_option *row, int indent, int width, sti_text *out)
{
    sti_text meaning = {0};
    add_meaning(row, &meaning);
    add_usage(row, out);
    int column = usage_width(row);
    if (column + 2 > indent) {
        sti_text_add(out, "\n");
        column = 0;
    }
    if (meaning.failed)
        out->failed = true;
    else
        sti_text_add_filled(out, meaning.data ? meaning.data : "", column, indent,
                            width);
    sti_text_fini(&meaning);
}

void sti_options_write_help(const sti_option *rows, int count, int width, sti_text *out)
{
    static const sti_option set_row = {.name = "set",
                                       .type = STI_OPTION_TEXT,
                                       .unit = "SECTION.KEY=VALUE",
                                       .default_text = "",
                                       .help = "set any key of the recipe"};
    sti_option help_row = {.name = "help",
                           .letter = 'h',
                           .type = STI_OPTION_BOOL,
                           .default_text = "",
                           .help = "show this help"};
    int indent = 0;
    bool sections = false;
    if (width < 40)
        width = 40;
    for (int i = 0; i < count; i++) {
        int columns = is_flag(&rows[i]) ? usage_width(&rows[i]) + 2 : 0;
        if (columns > indent && columns <= width * 2 / 5)
            indent = columns;
        sections = sections || rows[i].section;
        if (is_flag(&rows[i]) && rows[i].letter == 'h') {
            help_row.letter = 0;
            help_row.help = "show this help, as -h alone does";
        }
    }
    for (int i = 0; i < count; i++)
        if (is_flag(&rows[i]))
            add_help_row(&rows[i], indent, width, out);
    if (sections)
        add_help_row(&set_row, indent, width, out);
    add_help_row(&help_row, indent, width, out);
}

void sti_options_write_man(const sti_option *rows, int count, sti_text *out)
{
    for (int i = 0; i < count; i++) {
        const sti_option *row = &rows[i];
        sti_text name = {0}, meaning = {0};
        if (!is_flag(row))
            continue;
        add_flag_name(sti_option_flag(row), &name);
        add_meaning(row, &meaning);
        sti_text_add(out, ".TP\n");
        if (row->letter)
            sti_text_printf(out, "\\fB\\-%c\\fR, ", row->letter);
        sti_text_add(out, "\\fB\\-\\-");
        if (row->type == STI_OPTION_BOOL && strcmp(row->default_text, "true") == 0)
            sti_text_add(out, "[no\\-]");
        sti_text_add_roff(out, name.data ? name.data : "");
        sti_text_add(out, "\\fR");
        if (row->type != STI_OPTION_BOOL)
            sti_text_printf(out, " \\fI%s\\fR", unit_of(row));
        sti_text_add(out, "\n");
        sti_text_add_roff(out, meaning.data ? meaning.data : "");
        sti_text_add(out, ".\n");
        out->failed = out->failed || name.failed || meaning.failed;
        sti_text_fini(&name);
        sti_text_fini(&meaning);
    }
}

static void add_markdown(const char *words, sti_text *out)
{
    for (; *words; words++) {
        if (*words == '|' || *words == '<' || *words == '\\')
            sti_text_add(out, "\\");
        sti_text_add_bytes(out, words, 1);
    }
}

static const char *type_words(sti_option_type type)
{
    switch (type) {
    case STI_OPTION_BOOL:
        return "true or false";
    case STI_OPTION_INT:
        return "whole number";
    case STI_OPTION_FLOAT:
        return "number";
    case STI_OPTION_BYTES:
        return "size (`150M`, `1.5G`) or `auto`";
    case STI_OPTION_TIME:
        return "time (`25ms`, `2min`)";
    case STI_OPTION_TEXT:
        return "text";
    case STI_OPTION_PATH:
        return "path, relative to the recipe";
    case STI_OPTION_CHOICE:
        return "one of";
    case STI_OPTION_LIST:
        return "words with commas";
    }
    return "";
}

static void add_markdown_row(const sti_option *row, sti_text *out)
{
    sti_text range = {0};
    sti_option_add_range(row, &range);
    sti_text_printf(out, "| `%s` | %s%s%s | %s", row->name,
                    *row->default_text ? "`" : "", row->default_text,
                    *row->default_text ? "`" : "", type_words(row->type));
    if (row->choices) {
        sti_text_add(out, row->type == STI_OPTION_LIST ? ", each " : " ");
        sti_option_add_choices(row, out);
    }
    if (range.data)
        sti_text_printf(out, ", %s", range.data);
    sti_text_add(out, row->automatic ? " or `auto` | " : " | ");
    add_markdown(row->help, out);
    if (row->flag) {
        sti_text_add(out, " (`--");
        add_flag_name(sti_option_flag(row), out);
        sti_text_add(out, "`)");
    }
    sti_text_add(out, " |\n");
    out->failed = out->failed || range.failed;
    sti_text_fini(&range);
}

static bool section_seen(const sti_option *rows, int row)
{
    for (int i = 0; i < row; i++)
        if (rows[i].section && strcmp(rows[i].section, rows[row].section) == 0)
            return true;
    return false;
}

void sti_options_write_markdown(const sti_option *rows, int count, sti_text *out)
{
    for (int first = 0; first < count; first++) {
        const char *section = rows[first].section;
        if (!section || section_seen(rows, first))
            continue;
        sti_text_printf(out,
                        "%s## `[%s]`\n\n| key | default | value | meaning |\n"
                        "|---|---|---|---|\n",
                        out->length ? "\n" : "", section);
        for (int row = first; row < count; row++)
            if (rows[row].section && strcmp(rows[row].section, section) == 0)
                add_markdown_row(&rows[row], out);
    }
}
