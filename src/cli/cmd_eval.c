/* stint eval: a model against labelled images. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/shown.h"
#include "base/units.h"
#include "cli/cli_embed.h"
#include "cli/cli_eval.h"
#include "cli/cli_play.h"
#include "cli/cli_recall.h"
#include "cli/eval_imported.h"
#include "data/data_section.h"
#include "exchange/imported.h"

#define FORMATS "auto|folder|tar|idx|cifar|text|csv"
static const char *const format_names[] = {"auto",  "folder", "tar", "idx",
                                           "cifar", "text",   "csv"};

static const sti_option eval_rows[] = {
    {.name = "data",
     .type = STI_OPTION_PATH,
     .default_text = "",
     .offset = offsetof(sti_eval_args, data),
     .flag = true,
     .unit = "PATH",
     .help = "images (or text), as for training; without it what the model was trained "
             "on"},
    {.name = "adapter",
     .type = STI_OPTION_PATH,
     .default_text = "",
     .offset = offsetof(sti_eval_args, adapter),
     .flag = true,
     .unit = "DIR",
     .help = "of text: a LoRA adapter in PEFT's files, added to the weights"},
    {.name = "split",
     .type = STI_OPTION_CHOICE,
     .default_text = "test",
     .choices = "train|test|all",
     .offset = offsetof(sti_eval_args, split),
     .flag = true,
     .unit = "NAME",
     .help = "which images; of a text the last part (test), what is before it, or all"},
    {.name = "format",
     .type = STI_OPTION_CHOICE,
     .default_text = "auto",
     .choices = FORMATS,
     .offset = offsetof(sti_eval_args, format),
     .flag = true,
     .unit = "KIND",
     .help = "how the images are stored"},
    {.name = "batch",
     .type = STI_OPTION_INT,
     .default_text = "0",
     .min = 0,
     .max = 1 << 20,
     .offset = offsetof(sti_eval_args, batch),
     .flag = true,
     .unit = "N",
     .help = "images (or sequences) that a thread takes at a time, 0: choose; changes "
             "memory and speed, and the order in which losses are summed"},
    {.name = "memory",
     .letter = 'm',
     .type = STI_OPTION_BYTES,
     .default_text = "auto",
     .offset = offsetof(sti_eval_args, memory_bytes),
     .flag = true,
     .unit = "SIZE",
     .help = "most resident memory of the process; changes memory and speed only"},
    STI_CLI_THREADS_ROW(sti_eval_args),
    {.name = "confusion",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(sti_eval_args, confusion),
     .flag = true,
     .help = "also which class was taken for which"},
    {.name = "samples",
     .type = STI_OPTION_INT,
     .default_text = "0",
     .min = 0,
     .max = 100000,
     .offset = offsetof(sti_eval_args, samples),
     .flag = true,
     .unit = "N",
     .help =
         "average the answers of N networks, whose weights are drawn (of a Bayesian "
         "model) or which dropout thins, the same N for every image; also says how "
         "uncertain answers are. 0: the model as it is"},
    {.name = "seed",
     .type = STI_OPTION_INT,
     .default_text = "0",
     .min = 0,
     .max = 9e15,
     .offset = offsetof(sti_eval_args, seed),
     .flag = true,
     .unit = "N",
     .help = "of --samples: the same seed draws the same networks; of an agent: of its "
             "chance and the games'"},
    {.name = "ensemble",
     .type = STI_OPTION_LIST,
     .default_text = "",
     .offset = offsetof(sti_eval_args, ensemble),
     .flag = true,
     .unit = "MODEL[,MODEL...]",
     .help = "average the answers of these models, too; with --samples N of N networks "
             "of each"},
    {.name = "ood",
     .type = STI_OPTION_PATH,
     .default_text = "",
     .offset = offsetof(sti_eval_args, ood),
     .flag = true,
     .unit = "PATH",
     .help = "with --samples or --ensemble: images of anything else, to see whether "
             "their answers are less certain"},
    {.name = "page",
     .type = STI_OPTION_PATH,
     .default_text = "",
     .offset = offsetof(sti_eval_args, page),
     .flag = true,
     .unit = "FILE.html",
     .help = "with --samples or --ensemble: write a page with charts and the images "
             "that are least certain"},
    {.name = "episodes",
     .type = STI_OPTION_INT,
     .default_text = "0",
     .min = 0,
     .max = 1000000,
     .offset = offsetof(sti_eval_args, episodes),
     .flag = true,
     .unit = "N",
     .help = "of an agent: games to play, 0: 100"},
    {.name = "scores",
     .type = STI_OPTION_PATH,
     .default_text = "",
     .offset = offsetof(sti_eval_args, scores),
     .flag = true,
     .unit = "FILE.npy",
     .help = "of clicks: write the probabilities, in the order of the file"},
    {.name = "rom",
     .type = STI_OPTION_PATH,
     .default_text = "",
     .offset = offsetof(sti_eval_args, rom),
     .flag = true,
     .unit = "FILE",
     .help = "of an agent: the image, where it is no longer where training found it"},
    STI_CLI_COMMON_ROWS(sti_eval_args),
};

static void add_json(const sti_eval_args *args, const stint_model_facts *facts,
                     const stint_eval_result *r, sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_cli_eval_json(args, facts, r, &j);
    sti_json_end_object(&j);
}

/* Where the images of the run lie that left this model: its recipe.ini is beside it
 * (the recipe in the model itself names no paths). NULL: not known. */
static stint_status find_data(sti_cli_call *call, const char *model_path,
                              const char **path_out)
{
    stint_recipe *recipe = NULL;
    const char *folder = sti_path_folder(call->arena, model_path);
    const char *path = folder ? sti_path_join(call->arena, folder, "recipe.ini") : NULL;
    *path_out = NULL;
    if (!path)
        return STINT_E_MEMORY;
    if (!sti_path_is_file(path))
        return STINT_OK;
    stint_status status = stint_recipe_load(path, &recipe);
    if (status == STINT_OK && sti_data_section_of(recipe)->path) {
        *path_out = sti_arena_strdup(call->arena, sti_data_section_of(recipe)->path);
        status = *path_out ? STINT_OK : STINT_E_MEMORY;
    }
    stint_recipe_destroy(recipe);
    return status;
}

/* Images as the model's own recipe has them, unless the command line says otherwise. */
static stint_status describe_data(sti_cli_call *call, const char *model_path,
                                  const char *recipe_text, stint_data_desc *desc)
{
    const sti_eval_args *args = call->args;
    stint_recipe *recipe = NULL;
    stint_status status = sti_recipe_parse(recipe_text, "the model's recipe", &recipe);
    if (status != STINT_OK)
        return status;
    desc->path = args->data;
    desc->split = (stint_data_split)args->split;
    desc->format = format_names[args->format];
    desc->size = sti_data_section_of(recipe)->size;
    desc->channels = (int)sti_data_section_of(recipe)->channels;
    stint_recipe_destroy(recipe);
    if (!desc->path)
        status = find_data(call, model_path, &desc->path);
    if (status == STINT_OK && !desc->path)
        status = sti_fail(STINT_E_USAGE, "no data given; say where it is: --data PATH");
    return status;
}

/* What only several networks tell, and what is not of them. */
static stint_status check_several(const sti_eval_args *args)
{
    const char *many = args->samples > 0 ? "--samples"
                       : args->ensemble  ? "--ensemble"
                                         : NULL;
    const char *flag = args->ood ? "--ood" : args->page ? "--page" : NULL;
    if (many && args->memory_bytes > 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "--memory: several networks are not planned for; leave it out, "
                        "or %s",
                        many);
    return flag && !many
               ? sti_fail(STINT_E_USAGE,
                          "%s: is of several networks; give --samples N, or --ensemble",
                          flag)
               : STINT_OK;
}

static stint_status eval_model(sti_cli_call *call, const char *path,
                               stint_model_file *model)
{
    const sti_eval_args *args = call->args;
    stint_model_facts facts = {0};
    stint_model_describe(model, &facts);
    stint_data_desc desc = {0};
    stint_status status = describe_data(call, path, facts.recipe, &desc);
    if (status == STINT_OK && facts.classes == 0 && args->confusion)
        status = sti_fail(STINT_E_USAGE, "--confusion: is of images; %s is a %s",
                          facts.network, facts.context ? "text model" : "field");
    if (status == STINT_OK)
        status = check_several(args);
    if (status != STINT_OK)
        return status;
    if (args->samples > 0 || args->ensemble)
        return sti_cli_eval_several(call, path, &facts, &desc);

    sti_eval_view view = {.unit = facts.context                 ? "windows"
                                  : facts.field.coordinates > 0 ? "points"
                                                                : "images",
                          .start_ns = sti_clock_ns(),
                          .quiet = call->common->quiet};
    stint_eval_result result = {0};
    sti_cli_catch_signals();
    status = stint_eval_within(model,
                               &(stint_eval_desc){.data = desc,
                                                  .threads = (int)args->threads,
                                                  .batch = args->batch,
                                                  .memory_bytes = args->memory_bytes,
                                                  .progress = sti_cli_eval_progress,
                                                  .user = &view},
                               &result);
    if (view.begun)
        sti_progress_clear(&view.bar);
    if (status == STINT_OK) {
        sti_text text = {0};
        if (call->common->json)
            add_json(args, &facts, &result, &text);
        else
            sti_cli_eval_words(args, &facts, &result, &text);
        sti_cli_eval_say_peak(call, &result);
        status = sti_cli_answer(call, &text);
    }
    stint_eval_fini(&result);
    return status;
}

/* What a run's model is of; options are of one or more of these. */
enum { OF_DATA = 1, OF_GAMES = 2, OF_CLICKS = 4 };

/* An option that is of other models than this one would be ignored. */
static stint_status check_options(const sti_eval_args *args, int kind)
{
    const struct {
        const char *flag;
        bool given;
        int kinds;
        const char *of;
    } options[] = {
        {"--data", args->data, OF_DATA | OF_CLICKS, "models of images, text or clicks"},
        {"--adapter", args->adapter, OF_DATA, "text models"},
        {"--split", args->split != STINT_DATA_TEST, OF_DATA | OF_CLICKS,
         "models of images, text or clicks"},
        {"--format", args->format > 0, OF_DATA, "models of images"},
        {"--batch", args->batch > 0, OF_DATA, "models of images or text"},
        {"--confusion", args->confusion, OF_DATA, "models of images"},
        {"--samples", args->samples > 0, OF_DATA, "models of images"},
        {"--ensemble", args->ensemble, OF_DATA, "models of images"},
        {"--ood", args->ood, OF_DATA, "models of images"},
        {"--page", args->page, OF_DATA, "models of images"},
        {"--seed", args->seed > 0, OF_DATA | OF_GAMES, "drawn networks, and of agents"},
        {"--episodes", args->episodes > 0, OF_GAMES, "agents"},
        {"--rom", args->rom, OF_GAMES, "agents"},
        {"--scores", args->scores, OF_CLICKS, "models of clicks"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && !(options[i].kinds & kind))
            return sti_fail(STINT_E_USAGE, "%s: is of %s, and this is %s; leave it out",
                            options[i].flag, options[i].of,
                            kind == OF_GAMES    ? "an agent"
                            : kind == OF_CLICKS ? "a model of clicks"
                                                : "a network");
    return STINT_OK;
}

static stint_status eval_agent(sti_cli_call *call)
{
    const sti_eval_args *args = call->args;
    const stint_status st = check_options(args, OF_GAMES);
    if (st != STINT_OK)
        return st;
    if (args->memory_bytes > 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "--memory: the games of an agent are not planned for; leave it "
                        "out");
    return sti_cli_play_eval(call,
                             &(stint_play_eval_desc){.episodes = args->episodes,
                                                     .seed = (uint64_t)args->seed,
                                                     .threads = (int)args->threads,
                                                     .rom = args->rom});
}

static stint_status eval_clicks(sti_cli_call *call)
{
    static const stint_embed_split splits[] = {STINT_EMBED_TRAIN, STINT_EMBED_TEST,
                                               STINT_EMBED_ALL};
    const sti_eval_args *args = call->args;
    stint_status st = check_options(args, OF_CLICKS);
    if (st != STINT_OK)
        return st;
    if (args->memory_bytes > 0)
        return sti_fail(
            STINT_E_UNSUPPORTED,
            "--memory: an evaluation of clicks is not planned for; it reads "
            "its table through a small cache; leave it out");
    if (args->scores) {
        STI_TRY(sti_path_check_file(args->scores));
        STI_TRY(sti_cli_check_out(args->data ? args->data : "", args->scores));
        STI_TRY(sti_cli_embed_check_out(call, call->operands[0], args->scores));
    }
    st = sti_cli_embed_eval(call,
                            &(stint_embed_eval_desc){.data = args->data,
                                                     .split = splits[args->split],
                                                     .threads = (int)args->threads},
                            args->scores);
out:
    return st;
}

static stint_status eval_run(sti_cli_call *call)
{
    stint_model_file *model = NULL;
    if (stint_play_is_run(call->operands[0]))
        return eval_agent(call);
    if (stint_embed_is_run(call->operands[0]))
        return eval_clicks(call);
    stint_status status = check_options(call->args, OF_DATA);
    if (status != STINT_OK)
        return status;
    const char *path = sti_cli_model_path(call, call->operands[0]);
    if (path && sti_imported_is(path))
        return sti_cli_imported_eval(call, path);
    status = path ? stint_model_open(path, &model) : STINT_E_MEMORY;
    const char *adapter = ((const sti_eval_args *)call->args)->adapter;
    if (status == STINT_OK && adapter)
        status = stint_model_adapt(model, adapter);
    if (status == STINT_OK)
        status = eval_model(call, path, model);
    stint_model_close(model);
    return status;
}

const sti_cli_command sti_cmd_eval = {
    .name = "eval",
    .summary = "measure a model: accuracy on images, loss on a text",
    .operands = "MODEL",
    .example = "stint eval runs/a/model.safetensors --data out/glyphs",
    .about = "MODEL is a model.safetensors or a run's folder.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(eval_rows, sti_eval_args),
    .run = eval_run,
};
