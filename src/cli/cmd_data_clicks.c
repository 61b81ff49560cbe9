/* stint data clicks, stint data rank: made-up click data, and click data by rank. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "base/units.h"
#include "cli/cli.h"
#include "recommend/clicks_make.h"
#include "recommend/recipe_clicks.h"

/* ---- data clicks ---- */

typedef struct clicks_args {
    const char *out, *fields;
    int64_t rows, bags, seed;
    double zipf, drift;
    sti_cli_common common;
} clicks_args;

#define CLICKS_ROW(field, kind, standard, words) \
    .type = (kind), .default_text = (standard),  \
    .offset = offsetof(clicks_args, field), .flag = true, .help = (words)

static const sti_option clicks_rows[] = {
    {.name = "out",
     .letter = 'o',
     .unit = "FILE",
     CLICKS_ROW(out, STI_OPTION_PATH, "", "file to write")},
    {.name = "rows",
     .min = 1,
     .max = 1e12,
     .unit = "N",
     CLICKS_ROW(rows, STI_OPTION_INT, "100000", "samples")},
    {.name = "fields",
     .unit = "N[,N...]",
     CLICKS_ROW(fields, STI_OPTION_LIST, "",
                "ids of each field; else the 26 fields of Criteo's Kaggle set")},
    {.name = "zipf",
     .min = 0,
     .max = 10,
     .unit = "S",
     CLICKS_ROW(
         zipf, STI_OPTION_FLOAT, "1.05",
         "exponent: the id of rank k is drawn k^-S times as often as the first")},
    {.name = "drift",
     .min = 0,
     .max = 1,
     .unit = "SHARE",
     CLICKS_ROW(drift, STI_OPTION_FLOAT, "0",
                "of a field's ids, by which the popular ones move on over the file")},
    {.name = "bags",
     .min = 0,
     .max = 32,
     .unit = "N",
     CLICKS_ROW(bags, STI_OPTION_INT, "0", "up to N ids a field; 0: one")},
    {.name = "seed",
     .min = 0,
     .max = STI_OPTION_COUNT_MAX,
     .unit = "N",
     CLICKS_ROW(seed, STI_OPTION_INT, "0", "of all of it")},
    STI_CLI_COMMON_ROWS(clicks_args),
};

static stint_status read_fields(const char *list, sti_made_desc *d)
{
    for (const char *at = list; at && *at;) {
        const char *end = at + strcspn(at, ",");
        if (d->fields == STI_MADE_FIELDS ||
            !sti_digits_read(at, end, (int64_t)1 << 40, &d->ids[d->fields]) ||
            d->ids[d->fields] < 1)
            return sti_fail(
                STINT_E_USAGE,
                "--fields: '%s'; at most %d numbers of ids, 1000,20,5, were "
                "wanted",
                list, STI_MADE_FIELDS);
        d->fields++;
        at = end + (*end == ',');
    }
    return STINT_OK;
}

static stint_status clicks_answer(sti_cli_call *call, const sti_made *made)
{
    const clicks_args *args = call->args;
    sti_text text = {0};
    sti_json j;
    if (!call->common->json) {
        sti_text_printf(&text, "%s (%s): %s samples, ", args->out,
                        made->criteo ? "criteo" : "csv", sti_count_text(made->rows));
        sti_text_printf(&text, "%.2f %% clicks; the hidden model's own AUC is ",
                        100.0 * (double)made->positives / (double)made->rows);
        if (isfinite(made->auc))
            sti_text_printf(&text, "%.5f\n", made->auc);
        else
            sti_text_add(&text, "unknown: there is one class only\n");
        return sti_cli_print(&text);
    }
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "out", args->out);
    sti_json_text(&j, "format", made->criteo ? "criteo" : "csv");
    sti_json_int(&j, "rows", made->rows);
    sti_json_int(&j, "fields", made->fields);
    sti_json_int(&j, "positives", made->positives);
    sti_json_float(&j, "auc", made->auc);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status clicks_run(sti_cli_call *call)
{
    const clicks_args *args = call->args;
    sti_made made;
    sti_made_desc desc = {.path = args->out,
                          .rows = args->rows,
                          .zipf = args->zipf,
                          .drift = args->drift,
                          .bags = args->bags,
                          .seed = (uint64_t)args->seed};
    stint_status st;
    if (!args->out)
        return sti_fail(STINT_E_USAGE, "say where the clicks go: --out FILE");
    STI_TRY(read_fields(args->fields, &desc));
    sti_cli_catch_signals(); /* making looks, and leaves no half of a file */
    STI_TRY(sti_clicks_make(&desc, &made));
    st = clicks_answer(call, &made);
out:
    return st;
}

const sti_cli_command sti_cmd_data_clicks = {
    .name = "data clicks",
    .summary = "make up click data whose best possible AUC is known",
    .operands = "",
    .example = "stint data clicks --out clicks.csv --rows 200000 --fields 5000,800,20 "
               "--seed 1",
    .about =
        "13 numbers and fields of ids by Zipf's law; labels are drawn from a hidden "
        "model. 26 fields of one id: in Criteo's format, unless FILE ends in .csv; "
        "else "
        "csv with a header.",
    .min_operands = 0,
    .max_operands = 0,
    STI_CLI_ARGS(clicks_rows, clicks_args),
    .run = clicks_run,
};

/* ---- data rank ---- */

typedef struct rank_args {
    const char *out, *separator, *label, *dense, *categorical, *bags;
    int format;
    int64_t min_count, hash;
    double validation;
    size_t memory_bytes;
    sti_cli_common common;
} rank_args;

#define RANK_ROW(field, kind, standard, words)                                        \
    .type = (kind), .default_text = (standard), .offset = offsetof(rank_args, field), \
    .flag = true, .help = (words)

static const sti_option rank_rows[] = {
    {.name = "out",
     .letter = 'o',
     .unit = "FILE.ranks",
     RANK_ROW(out, STI_OPTION_PATH, "",
              "file to write, for --data of train; else in the cache folder, where "
              "training finds it")},
    {.name = "format",
     .choices = "auto|criteo|csv|libsvm|libffm",
     .unit = "KIND",
     RANK_ROW(format, STI_OPTION_CHOICE, "auto", "as data.format of a recipe")},
    {.name = "separator",
     .unit = "CHARACTER",
     RANK_ROW(separator, STI_OPTION_TEXT, "", "as data.separator")},
    {.name = "label",
     .unit = "COLUMN",
     RANK_ROW(label, STI_OPTION_TEXT, "", "as data.label")},
    {.name = "dense",
     .unit = "COLUMN[,COLUMN...]",
     RANK_ROW(dense, STI_OPTION_LIST, "", "as data.dense")},
    {.name = "categorical",
     .unit = "COLUMN[,COLUMN...]",
     RANK_ROW(categorical, STI_OPTION_LIST, "", "as data.categorical")},
    {.name = "bags",
     .unit = "COLUMN[,COLUMN...]",
     RANK_ROW(bags, STI_OPTION_LIST, "", "as data.bags")},
    {.name = "min-count",
     .min = 1,
     .max = 1e9,
     .unit = "N",
     RANK_ROW(min_count, STI_OPTION_INT, "1", "as data.min_count")},
    {.name = "hash",
     .min = 0,
     .max = 1e15,
     .unit = "N",
     RANK_ROW(hash, STI_OPTION_INT, "0", "as data.hash")},
    {.name = "validation",
     .min = 0,
     .max = 0.9,
     .unit = "SHARE",
     RANK_ROW(validation, STI_OPTION_FLOAT, "0.1", "as data.validation")},
    {.name = "memory",
     .letter = 'm',
     .unit = "SIZE",
     RANK_ROW(memory_bytes, STI_OPTION_BYTES, "auto",
              "for counting; more goes to temporary files (TMPDIR); auto: 256M")},
    STI_CLI_COMMON_ROWS(rank_args),
};

/* Shares of all ids that the most frequent rows have: what a cache can catch. */
typedef struct frequency {
    double of[4];
} frequency;

static const double frequency_shares[4] = {0.001, 0.01, 0.1, 0.5};

static stint_status find_frequency(const sti_clicks *c, frequency *out)
{
    enum { PIECE = 4096 };
    uint32_t count[PIECE];
    double sum = 0, at[4] = {0};
    for (int64_t first = 0; first < c->rows; first += PIECE) {
        const int64_t n = c->rows - first < PIECE ? c->rows - first : PIECE;
        const stint_status st = sti_clicks_counts(c, first, n, count);
        if (st != STINT_OK)
            return st;
        for (int64_t i = 0; i < n; i++) {
            sum += count[i];
            for (int k = 0; k < 4; k++)
                if ((double)(first + i) < frequency_shares[k] * (double)c->rows)
                    at[k] = sum;
        }
    }
    for (int k = 0; k < 4; k++)
        out->of[k] = sum > 0 ? at[k] / sum : (double)NAN;
    return STINT_OK;
}

static void rank_json(const sti_clicks *c, const sti_clicks_counted *counted,
                      const frequency *f, sti_text *text)
{
    sti_json j;
    sti_cli_json_begin(&j, text);
    sti_json_text(&j, "out", counted->path);
    sti_json_bool(&j, "found", counted->found);
    sti_json_int(&j, "samples", c->samples);
    sti_json_int(&j, "train_samples", c->train);
    sti_json_int(&j, "numbers", c->dense);
    sti_json_int(&j, "rows", c->rows);
    sti_json_text(&j, "sha256", c->sha256);
    sti_json_begin_array(&j, "fields");
    for (int i = 0; i < c->fields; i++) {
        sti_json_begin_object(&j, NULL);
        sti_json_text(&j, "name", c->field[i].name);
        sti_json_int(&j, "ids", (int64_t)c->field[i].ids);
        sti_json_int(&j, "most", c->field[i].slots);
        sti_json_int(&j, "other_rank", c->field[i].other);
        sti_json_end_object(&j);
    }
    sti_json_end_array(&j);
    sti_json_begin_array(&j, "frequency");
    for (int k = 0; k < 4; k++) {
        sti_json_begin_object(&j, NULL);
        sti_json_float(&j, "rows_share", frequency_shares[k]);
        sti_json_float(&j, "ids_share", f->of[k]);
        sti_json_end_object(&j);
    }
    sti_json_end_array(&j);
    sti_json_end_object(&j);
}

static void rank_words(const sti_clicks *c, const sti_clicks_counted *counted,
                       const frequency *f, sti_text *text)
{
    sti_text_printf(text, "%s%s\n", counted->path,
                    counted->found ? " (was there already)" : "");
    sti_text_printf(text, "%s samples, ", sti_count_text(c->samples));
    sti_text_printf(text, "%s to train on; ", sti_count_text(c->train));
    sti_text_printf(text, "%d numbers, %d field%s, %s rows\n", c->dense, c->fields,
                    sti_s(c->fields), sti_count_text(c->rows));
    for (int k = 0; k < 4; k++)
        if (isfinite(f->of[k]))
            sti_text_printf(text,
                            "the most frequent %4g %% of rows have %.1f %% of ids\n",
                            100 * frequency_shares[k], 100 * f->of[k]);
}

static stint_status rank_answer(sti_cli_call *call, const sti_clicks_counted *counted)
{
    sti_clicks c = {.fd = -1};
    sti_text text = {0};
    frequency f;
    stint_status st = sti_clicks_open(counted->path, &c);
    if (st != STINT_OK)
        return st;
    st = find_frequency(&c, &f);
    if (st == STINT_OK) {
        if (call->common->json)
            rank_json(&c, counted, &f, &text);
        else
            rank_words(&c, counted, &f, &text);
        st = sti_cli_answer(call, &text);
    }
    sti_clicks_close(&c);
    return st;
}

static stint_status rank_run(sti_cli_call *call)
{
    const rank_args *args = call->args;
    sti_clicks_counted counted;
    sti_clicks_desc desc = {.path = call->operands[0],
                            .separator = args->separator,
                            .label = args->label,
                            .dense = args->dense,
                            .categorical = args->categorical,
                            .bags = args->bags,
                            .min_count = args->min_count,
                            .hash = args->hash,
                            .validation = args->validation,
                            .memory_bytes = args->memory_bytes};
    stint_status st;
    STI_TRY(sti_cli_check_out(call->operands[0], args->out));
    if (args->format > 0)
        desc.format = (sti_clicks_format)(args->format - 1);
    else
        STI_TRY(sti_clicks_find_format(desc.path, &desc.format));
    sti_cli_catch_signals(); /* counting looks, too */
    STI_TRY(sti_clicks_rank(&desc, args->out, &counted));
    st = rank_answer(call, &counted);
out:
    return st;
}

const sti_cli_command sti_cmd_data_rank = {
    .name = "data rank",
    .summary = "count the ids of click data, and write it by rank",
    .operands = "FILE",
    .example = "stint data rank clicks.csv",
    .about =
        "Ids become ranks by falling frequency in the training part. Training does "
        "the same by itself, and finds what is there already.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(rank_rows, rank_args),
    .run = rank_run,
};
