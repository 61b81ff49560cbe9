/* stint run: classify image files, or go on with a text (run_text.c). A file that
 * cannot be read is named and passed over; the exit code then tells. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"
#include "cli/cli_embed.h"
#include "cli/cli_run.h"
#include "exchange/imported.h"

static const sti_option run_rows[] = {
    {.name = "top",
     .letter = 'k',
     .type = STI_OPTION_INT,
     .default_text = "3",
     .min = 1,
     .max = 1000,
     .offset = offsetof(sti_run_args, top),
     .flag = true,
     .unit = "N",
     .help = "of images: classes to name"},
    {.name = "prompt",
     .letter = 'p',
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     .offset = offsetof(sti_run_args, prompt),
     .verbatim = true,
     .flag = true,
     .unit = "TEXT",
     .help = "text that a text model goes on from"},
    {.name = "prompt-file",
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     .offset = offsetof(sti_run_args, prompt_file),
     .flag = true,
     .unit = "PATH",
     .help = "the same from a file, to its last byte; -: stdin"},
    {.name = "prompt-ids",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     .offset = offsetof(sti_run_args, prompt_ids),
     .flag = true,
     .unit = "LIST",
     .help = "the same as token identities, 464,3290: for a model whose tokeniser is "
             "not known here"},
    {.name = "adapter",
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     .offset = offsetof(sti_run_args, adapter),
     .flag = true,
     .unit = "DIR",
     .help = "of text: a LoRA adapter in PEFT's files"},
    {.name = "tokens",
     .letter = 'n',
     .type = STI_OPTION_INT,
     .default_text = "256",
     .min = 1,
     .max = 10000000,
     .offset = offsetof(sti_run_args, tokens),
     .flag = true,
     .unit = "N",
     .help = "tokens of text to draw, at most; when the model's context is full it "
             "goes on from the newest half of it"},
    {.name = "temperature",
     .letter = 't',
     .type = STI_OPTION_FLOAT,
     .default_text = "0.8",
     .min = 0,
     .max = 1e6,
     .offset = offsetof(sti_run_args, temperature),
     .flag = true,
     .unit = "VALUE",
     .help = "how daring the drawing is: 0 always takes the likeliest token, 1 draws "
             "as the model says"},
    {.name = "top-k",
     .type = STI_OPTION_INT,
     .default_text = "auto",
     .min = 1,
     .max = 1e9,
     .automatic = true,
     .offset = offsetof(sti_run_args, top_k),
     .flag = true,
     .unit = "N",
     .help = "draw from the N likeliest tokens; auto: from all"},
    {.name = "top-p",
     .type = STI_OPTION_FLOAT,
     .default_text = "1",
     .min = 1e-6,
     .max = 1,
     .offset = offsetof(sti_run_args, top_p),
     .flag = true,
     .unit = "SHARE",
     .help = "draw from the likeliest tokens that together have this probability"},
    {.name = "seed",
     .type = STI_OPTION_INT,
     .default_text = "0",
     .min = 0,
     .max = 9e15,
     .offset = offsetof(sti_run_args, seed),
     .flag = true,
     .unit = "N",
     .help = "of the drawing: the same seed draws the same text, or networks"},
    {.name = "samples",
     .type = STI_OPTION_INT,
     .default_text = "0",
     .min = 0,
     .max = 100000,
     .offset = offsetof(sti_run_args, samples),
     .flag = true,
     .unit = "N",
     .help = "of images: average N networks, whose weights are drawn (of a Bayesian "
             "model) or which dropout thins, and say how uncertain that is; 0: the "
             "model as it is"},
    {.name = "memory",
     .letter = 'm',
     .type = STI_OPTION_BYTES,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     .offset = offsetof(sti_run_args, memory_bytes),
     .flag = true,
     .unit = "SIZE",
     .help = "of text and imported networks: most resident memory of the process"},
    {.name = "input",
     .type = STI_OPTION_LIST,
     .default_text = "",
     .repeated = true,
     .offset = offsetof(sti_run_args, input),
     .flag = true,
     .unit = "NAME=FILE",
     .help = "of an imported network: a .npy file; once an input"},
    {.name = "out",
     .letter = 'o',
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     .offset = offsetof(sti_run_args, out),
     .flag = true,
     .unit = "PATH",
     .help = "of an imported network: the .npz for its outputs"},
    {.name = "weights",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .choices = "auto|f32|bf16|q8|q4",
     .default_text = "auto",
     .offset = offsetof(sti_run_args, weights),
     .flag = true,
     .unit = "TYPE",
     .help = "of text: in 4, 2, 1.1 or 0.6 bytes each"},
    STI_CLI_THREADS_ROW(sti_run_args),
    STI_CLI_COMMON_ROWS(sti_run_args),
};

typedef struct predictor {
    sti_cli_call *call;
    stint_model_file *model;
    stint_model_facts facts;
    float *probability;    /* [classes] */
    stint_opinion opinion; /* with --samples; its probability is the one above */
    bool several;
    int32_t *best; /* [top] */
    int32_t top;
    sti_text text; /* the JSON object; with words, a line at a time */
    sti_json json;
    stint_status first_failure;
} predictor;

/* The `top` largest by insertion; the lower class first on ties. */
static void rank(predictor *p)
{
    int32_t filled = 0;
    for (int32_t c = 0; c < p->facts.classes; c++) {
        int32_t at = filled;
        while (at > 0 && p->probability[p->best[at - 1]] < p->probability[c])
            at--;
        if (at >= p->top)
            continue;
        if (filled < p->top)
            filled++;
        memmove(p->best + at + 1, p->best + at,
                (size_t)(filled - at - 1) * sizeof *p->best);
        p->best[at] = c;
    }
}

static void add_json(predictor *p, const char *path, stint_status status)
{
    sti_json *j = &p->json;
    sti_json_begin_object(j, NULL);
    sti_json_text(j, "file", path);
    if (status != STINT_OK) {
        sti_json_text(j, "error", stint_last_error());
    } else {
        sti_json_begin_array(j, "classes");
        for (int32_t i = 0; i < p->top; i++) {
            sti_json_begin_object(j, NULL);
            sti_json_text(j, "class", p->facts.class_names[p->best[i]]);
            sti_json_float(j, "probability", (double)p->probability[p->best[i]]);
            if (p->several)
                sti_json_float(j, "deviation",
                               (double)p->opinion.deviation[p->best[i]]);
            sti_json_end_object(j);
        }
        sti_json_end_array(j);
        if (p->several) {
            sti_json_float(j, "entropy", p->opinion.entropy);
            sti_json_float(j, "mutual_information", p->opinion.mutual_information);
        }
    }
    sti_json_end_object(j);
}

static stint_status print_words(predictor *p, const char *path)
{
    sti_text_add_shown(&p->text, path, "");
    for (int32_t i = 0; i < p->top; i++) {
        sti_text_printf(&p->text, "\t%s %.1f %%",
                        sti_shown(p->facts.class_names[p->best[i]]),
                        100 * (double)p->probability[p->best[i]]);
        if (p->several)
            sti_text_printf(&p->text, " +- %.1f",
                            100 * (double)p->opinion.deviation[p->best[i]]);
    }
    if (p->several)
        sti_text_printf(&p->text, "\tentropy %.2f nats, %.2f of it from the weights",
                        p->opinion.entropy, p->opinion.mutual_information);
    sti_text_add(&p->text, "\n");
    return sti_cli_print(&p->text);
}

static stint_status predict(predictor *p, const char *path)
{
    const sti_run_args *args = p->call->args;
    stint_status status = p->several
                              ? stint_predict_samples(p->model, path, args->samples,
                                                      (uint64_t)args->seed, &p->opinion)
                              : stint_predict(p->model, path, p->probability);
    if (status == STINT_E_USAGE) /* of all files alike */
        return status;
    if (status == STINT_OK)
        rank(p);
    if (p->call->common->json)
        add_json(p, path, status);
    else if (status == STINT_OK)
        return print_words(p, path);
    if (status != STINT_OK) {
        sti_cli_tell("stint run: ", stint_last_error(), "");
        if (p->first_failure == STINT_OK)
            p->first_failure = status;
    }
    return status == STINT_E_MEMORY ? status : STINT_OK;
}

static stint_status predict_listed(predictor *p)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    stint_status status = STINT_OK;
    while (status == STINT_OK && (length = getline(&line, &capacity, stdin)) > 0) {
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            line[--length] = '\0';
        if (length > 0)
            status = predict(p, line);
    }
    free(line);
    return status;
}

static stint_status predict_all(predictor *p)
{
    sti_cli_call *call = p->call;
    stint_status status = STINT_OK;
    if (call->common->json) {
        sti_cli_json_begin(&p->json, &p->text);
        sti_json_begin_array(&p->json, "predictions");
    }
    for (int i = 1; i < call->operand_count && status == STINT_OK; i++)
        status = strcmp(call->operands[i], "-") == 0 ? predict_listed(p)
                                                     : predict(p, call->operands[i]);
    if (status == STINT_OK && call->common->json) {
        sti_json_end_array(&p->json);
        sti_json_end_object(&p->json);
        status = sti_cli_answer(call, &p->text);
    }
    if (status == STINT_OK && p->first_failure != STINT_OK)
        status =
            sti_fail(p->first_failure, "some files were not classified, see above");
    return status;
}

static stint_status run_run(sti_cli_call *call)
{
    const sti_run_args *args = call->args;
    predictor p = {.call = call};
    if (stint_embed_is_run(call->operands[0]))
        return sti_cli_embed_run(call, (int)args->threads, args->memory_bytes);
    const char *imported = sti_cli_model_path(call, call->operands[0]);
    if (imported && (args->input || args->out || sti_imported_is(imported)))
        return sti_run_imported(call, imported);
    if (args->adapter && !sti_run_has_prompt(args))
        return sti_fail(STINT_E_USAGE, "--adapter: is of text models, and wants a "
                                       "prompt; give one by --prompt");
    if (sti_run_has_prompt(args))
        return sti_run_text(call);
    if (call->operand_count < 2)
        return sti_fail(STINT_E_USAGE, "give an image FILE after the model, or a text "
                                       "model a --prompt to go on from");
    const char *path = sti_cli_model_path(call, call->operands[0]);
    stint_status status = path ? stint_model_open(path, &p.model) : STINT_E_MEMORY;
    if (status != STINT_OK)
        return status;
    stint_model_describe(p.model, &p.facts);
    if (p.facts.context) {
        stint_model_close(p.model);
        return sti_fail(STINT_E_USAGE,
                        "%s: a text model; give it a --prompt to go on from", path);
    }
    p.top = p.facts.classes < args->top ? p.facts.classes : (int32_t)args->top;
    p.probability = sti_alloc_array(p.facts.classes, sizeof(float), "run.probability");
    p.several = args->samples > 0;
    p.opinion.probability = p.probability;
    p.opinion.deviation =
        sti_alloc_array(p.facts.classes, sizeof(float), "run.deviation");
    p.best = sti_alloc_array(p.top, sizeof(int32_t), "run.best");
    status = p.probability && p.opinion.deviation && p.best ? predict_all(&p)
                                                            : STINT_E_MEMORY;
    sti_text_fini(&p.text);
    sti_free(p.probability);
    sti_free(p.opinion.deviation);
    sti_free(p.best);
    stint_model_close(p.model);
    return status;
}

const sti_cli_command sti_cmd_run = {
    .name = "run",
    .summary = "classify image files, or go on with a text",
    .operands = "MODEL [FILE...]",
    .example =
        "stint run runs/a/model.safetensors cat.png dog.jpg\n"
        "find photos -name '*.jpg' | stint run runs/a/model.safetensors - --json\n"
        "stint run runs/drawn photo.jpg --samples 50\n"
        "stint run runs/shakespeare --prompt 'ROMEO:' --tokens 500 --seed 7",
    .about =
        "MODEL is a model.safetensors or a run's folder; for text also a folder in "
        "Hugging Face's layout or a GGUF file. FILE - reads names from stdin, one a "
        "line. Text appears on stdout as it is drawn; threads never change it.",
    .min_operands = 1,
    .max_operands = -1,
    STI_CLI_ARGS(run_rows, sti_run_args),
    .run = run_run,
};
