/* Environment variables: one table, of which come `stint help environment`, the man
 * pages and the names that are no mistake. Options and recipe keys come beside it, from
 * their own tables. */
#include <ctype.h>
#include <string.h>

#include "base/recipe.h"
#include "cli/cli.h"

typedef struct variable {
    const char *name; /* one that begins with STINT_ is known without a warning */
    const char *help;
} variable;

static const variable variables[] = {
    {"STINT_NAME", "any option, for example STINT_MEMORY=150M"},
    {"STINT_SECTION_NAME", "any recipe key, for example STINT_TRAIN_BATCH=64"},
    {"STINT_NUM_THREADS", "threads, where no -j is given; else OMP_NUM_THREADS; else "
                          "what affinity mask and cgroup allow"},
    {"STINT_ISA", "ref, avx2 or avx512: force an instruction set; results do not "
                  "depend on it"},
    {"STINT_SLEEPS", "a seed: threads sleep at random moments, to look for races; "
                     "results do not depend on it"},
    {"STINT_LOOPS", "one loop string for all float32 matrix products (see stint tune "
                    "gemm), or off"},
    {"STINT_MPI_PLUGIN", "path of libstint_mpi.so, which a process that mpirun "
                         "started loads"},
    {"STINT_CUDA_PLUGIN", "path of libstint_cuda.so, which --device cuda loads"},
    {"STINT_LIBRARY", "path of libstint.so, for Python; the program takes no notice"},
    {"XDG_CACHE_HOME", "tokens of texts, orders of loops and measurements of this "
                       "machine are kept in its stint/; else in ~/.cache/stint. "
                       "May be deleted"},
    {"TMPDIR",
     "where gzipped IDX files are unpacked and guessed models are timed; else "
     "/var/tmp"},
    {"NO_COLOR, TERM=dumb", "no bar that moves"},
};
enum { VARIABLE_COUNT = sizeof variables / sizeof variables[0] };

/* The first two stand for whole tables. */
enum { VARIABLE_FIRST = 2 };

static const char order[] =
    "A flag beats a variable, a variable beats the recipe, the recipe beats the "
    "default.";

void sti_cli_help_environment(int width, sti_text *out)
{
    enum { INDENT = 24 };
    width = width < 80 ? width : 80;
    sti_text_add_filled(out, order, 0, 0, width);
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        sti_text_printf(out, "  %-*s", INDENT - 2, variables[i].name);
        sti_text_add_filled(out, variables[i].help, INDENT, INDENT, width);
    }
    sti_text_add(out, "Any other that begins with STINT_ is ignored with a warning.\n");
}

void sti_cli_man_environment(sti_text *out)
{
    sti_text_printf(out, ".SH ENVIRONMENT\n%s\n", order);
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        sti_text_add(out, ".TP\n");
        sti_text_add_roff(out, variables[i].name);
        sti_text_add(out, "\n");
        sti_text_add_roff(out, variables[i].help);
        sti_text_add(out, "\n");
    }
}

/* "STINT_DATA_PATH" from "data" and "path"; section may be NULL. */
static const char *variable_name(sti_arena *arena, const char *section,
                                 const char *name)
{
    char *text = section ? sti_arena_printf(arena, "STINT_%s_%s", section, name)
                         : sti_arena_printf(arena, "STINT_%s", name);
    for (char *c = text; c && *c; c++)
        *c = (char)(*c == '-' ? '_' : toupper((unsigned char)*c));
    return text;
}

const char **sti_cli_known_variables(const sti_cli_command *const *all,
                                     sti_arena *arena)
{
    const sti_recipe_table *recipe = sti_recipe_table_get();
    int capacity = VARIABLE_COUNT + 1 + 3 * recipe->count, count = 0;
    for (int i = 0; all[i]; i++)
        capacity += all[i]->row_count;
    const char **names = sti_arena_alloc(arena, (size_t)capacity * sizeof *names);
    if (!names)
        return NULL;
    for (int i = VARIABLE_FIRST; i < VARIABLE_COUNT; i++)
        names[count++] = variables[i].name;
    for (int i = 0; i < recipe->count; i++) {
        const sti_option *row = &recipe->row[i];
        names[count++] = variable_name(arena, NULL, row->name);
        names[count++] = variable_name(arena, row->section, row->name);
        if (row->flag_name)
            names[count++] = variable_name(arena, NULL, row->flag_name);
    }
    for (int i = 0; all[i]; i++)
        for (int r = 0; r < all[i]->row_count; r++)
            names[count++] = variable_name(arena, NULL, all[i]->rows[r].name);
    return names;
}
