/* [run] of a recipe: what this machine gives to a run, and what the run leaves. */
#include "train/run_section.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "model/model_section.h"
#include "train/train_section.h"

#define AT(field) .offset = offsetof(sti_run_values, field)

static const sti_option rows[] = {
    {.name = "out",
     .letter = 'o',
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(out),
     .flag = true,
     .unit = "DIR",
     .help = "folder for the run's files; default: runs/<recipe>"},
    {.name = "threads",
     .letter = 'j',
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1024),
     .default_text = "0",
     AT(threads),
     .flag = true,
     .unit = "N",
     .help = "threads; 0: every CPU. Changes no result"},
    {.name = "memory",
     .letter = 'm',
     .type = STI_OPTION_BYTES,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     AT(memory_bytes),
     .flag = true,
     .unit = "SIZE",
     .help = "most resident memory, as 150M"},
    {.name = "lanes",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1024),
     .default_text = "0",
     AT(lanes),
     .unit = "N",
     .help = "shards worked on side by side; 0: what threads and memory allow. Never "
             "changes a result"},
    {.name = "checkpoint_every",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, STI_OPTION_COUNT_MAX),
     .default_text = "0",
     AT(checkpoint_every),
     .unit = "STEPS",
     .help = "steps between checkpoints; 0: after each epoch"},
    {.name = "keep",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 1000000),
     .default_text = "2",
     AT(keep),
     .unit = "N",
     .help = "newest checkpoints to keep"},
    {.name = "log_every",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 1000000),
     .default_text = "10",
     AT(log_every),
     .unit = "STEPS",
     .help = "steps between lines of log.jsonl"},
    {.name = "hash_every",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1000000),
     .default_text = "0",
     AT(hash_every),
     .unit = "STEPS",
     .help = "steps between lines of log.jsonl with hashes of all weights and "
             "optimiser state; 0: none"},
    {.name = "answers",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(answers),
     .help = "at the end, also write the class found for each test image to "
             "answers.npy"},
    {.name = "tensorboard",
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(tensorboard),
     .flag = true,
     .unit = "DIR",
     .help = "also write TensorBoard event files to this folder"},
};

char *sti_recipe_out(const stint_recipe *recipe, sti_arena *arena)
{
    const char *out = sti_run_section_of(recipe)->out;
    if (out && *out)
        return sti_path_absolute(arena, out);
    const char *name =
        recipe->path ? sti_path_name(recipe->path) : sti_recipe_network(recipe);
    size_t length = strlen(name) - strlen(sti_path_extension(name));
    char *folder = sti_arena_printf(arena, "runs/%.*s", (int)length, name);
    return folder ? sti_path_absolute(arena, folder) : NULL;
}

/* The folder as it is found today: the text may be read elsewhere. */
static stint_status resolve(const stint_recipe *recipe, sti_arena *arena, void *values)
{
    sti_run_values *run = values;
    run->out = sti_recipe_out(recipe, arena);
    return run->out ? STINT_OK : STINT_E_MEMORY;
}

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_run_values *run = sti_run_section_of(recipe);
    const sti_train_values *train = sti_train_section_of(recipe);
    if (train->batch == 0 && run->memory_bytes == 0)
        sti_complain(list,
                     "train.batch: auto fills a memory budget; give one by --memory "
                     "SIZE, or a number of images");
    if (run->lanes > train->shards)
        sti_complain(list,
                     "run.lanes: %" PRId64 " lanes for %" PRId64
                     " shards; there are at most as many lanes as shards",
                     run->lanes, train->shards);
}

const sti_recipe_section sti_run_section = {
    STI_RECIPE_SECTION("run", rows, sti_run_values),
    .same_weights = true,
    .local = true,
    .check = check,
    .resolve = resolve,
};

const sti_run_values *sti_run_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_run_section);
}
