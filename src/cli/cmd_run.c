/* stint run: classify image files. A file that cannot be read is named and passed over;
 * the exit code then tells. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "cli/cli.h"

typedef struct run_args {
    int64_t top;
    sti_cli_common common;
} run_args;

static const sti_option run_rows[] = {
    {.name = "top",
     .letter = 'k',
     .type = STI_OPTION_INT,
     .default_text = "3",
     .min = 1,
     .max = 1000,
     .offset = offsetof(run_args, top),
     .flag = true,
     .unit = "N",
     .help = "classes to name, most probable first"},
    STI_CLI_COMMON_ROWS(run_args),
};

typedef struct predictor {
    sti_cli_call *call;
    stint_model_file *model;
    stint_model_facts facts;
    float *probability; /* [classes] */
    int32_t *best;      /* [top] */
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
            sti_json_end_object(j);
        }
        sti_json_end_array(j);
    }
    sti_json_end_object(j);
}

static stint_status print_words(predictor *p, const char *path)
{
    sti_text_printf(&p->text, "%s", path);
    for (int32_t i = 0; i < p->top; i++)
        sti_text_printf(&p->text, "\t%s %.1f %%", p->facts.class_names[p->best[i]],
                        100 * (double)p->probability[p->best[i]]);
    sti_text_add(&p->text, "\n");
    return sti_cli_print(&p->text);
}

static stint_status predict(predictor *p, const char *path)
{
    stint_status status = stint_predict(p->model, path, p->probability);
    if (status == STINT_OK)
        rank(p);
    if (p->call->common->json)
        add_json(p, path, status);
    else if (status == STINT_OK)
        return print_words(p, path);
    if (status != STINT_OK) {
        fprintf(stderr, "stint run: %s\n", stint_last_error());
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
    const run_args *args = call->args;
    predictor p = {.call = call};
    const char *path = sti_cli_model_path(call, call->operands[0]);
    stint_status status = path ? stint_model_open(path, &p.model) : STINT_E_MEMORY;
    if (status != STINT_OK)
        return status;
    stint_model_describe(p.model, &p.facts);
    p.top = p.facts.classes < args->top ? p.facts.classes : (int32_t)args->top;
    p.probability = sti_alloc_array(p.facts.classes, sizeof(float), "run.probability");
    p.best = sti_alloc_array(p.top, sizeof(int32_t), "run.best");
    status = p.probability && p.best ? predict_all(&p) : STINT_E_MEMORY;
    sti_text_fini(&p.text);
    sti_free(p.probability);
    sti_free(p.best);
    stint_model_close(p.model);
    return status;
}

const sti_cli_command sti_cmd_run = {
    .name = "run",
    .summary = "classify image files",
    .operands = "MODEL FILE...",
    .example =
        "stint run runs/a/model.safetensors cat.png dog.jpg\n"
        "find photos -name '*.jpg' | stint run runs/a/model.safetensors - --json",
    .about = "MODEL is a model.safetensors or a run's folder; FILE - reads names from "
             "stdin, one a line.",
    .min_operands = 2,
    .max_operands = -1,
    STI_CLI_ARGS(run_rows, run_args),
    .run = run_run,
};
