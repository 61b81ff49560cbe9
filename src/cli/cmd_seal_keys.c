/* stint seal keygen, encrypt, decrypt, check, sets: what the owner of the data does. */
#include <inttypes.h>
#include <math.h>

#include "base/fail.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cli_seal.h"

typedef struct keys_args {
    const char *set_name, *out, *key, *values, *value, *in;
    int64_t threads, gates;
    sti_cli_common common;
} keys_args;

/* clang-format off */
#define KEYS_ROW(field, kind, standard, words)                                         \
    .type = (kind), .default_text = (standard),                                        \
    .offset = offsetof(keys_args, field), .flag = true, .help = (words)
#define KEYS_OUT_ROW(what, words)                                                      \
    {.name = "out", .letter = 'o', .unit = (what),                                     \
     KEYS_ROW(out, STI_OPTION_PATH, "", words)}
#define KEYS_SECRET_ROW                                                                \
    {.name = "key", .letter = 'k', .unit = "SECRET",                                   \
     KEYS_ROW(key, STI_OPTION_PATH, "", "the file secret.key")}
/* clang-format on */

static const sti_option keygen_rows[] = {
    {.name = "set-name",
     .unit = "NAME",
     KEYS_ROW(set_name, STI_OPTION_TEXT, "p128",
              "parameter set; stint seal sets lists them")},
    KEYS_OUT_ROW("DIR", "folder that gets secret.key and eval.key"),
    STI_CLI_THREADS_ROW(keys_args),
    STI_CLI_COMMON_ROWS(keys_args),
};
static const sti_option encrypt_rows[] = {
    KEYS_SECRET_ROW,
    {.name = "values",
     .unit = "FILE.json",
     KEYS_ROW(values, STI_OPTION_PATH, "", "the inputs, {\"a\": 5, \"key\": [1, 2]}")},
    {.name = "value",
     .unit = "NAME=N",
     KEYS_ROW(value, STI_OPTION_TEXT, "",
              "more inputs, \"a=5 key=1,2\" with blanks between them")},
    KEYS_OUT_ROW("IN.ct", "the encrypted inputs"),
    STI_CLI_COMMON_ROWS(keys_args),
};
static const sti_option decrypt_rows[] = {
    KEYS_SECRET_ROW,
    {.name = "in",
     .unit = "OUT.ct",
     KEYS_ROW(in, STI_OPTION_PATH, "", "the encrypted outputs")},
    STI_CLI_COMMON_ROWS(keys_args),
};
static const sti_option check_rows[] = {
    KEYS_SECRET_ROW,
    {.name = "gates",
     .min = 8,
     .max = 1e9,
     .unit = "N",
     KEYS_ROW(gates, STI_OPTION_INT, "64", "gates of each kind")},
    STI_CLI_THREADS_ROW(keys_args),
    STI_CLI_COMMON_ROWS(keys_args),
};
static const sti_option sets_rows[] = {STI_CLI_COMMON_ROWS(keys_args)};

static stint_status want_key(const keys_args *args)
{
    return args->key ? STINT_OK
                     : sti_fail(STINT_E_USAGE, "--key names the secret key; it is "
                                               "missing");
}

static stint_status answer_path(sti_cli_call *call, const char *path)
{
    sti_text text = {0};
    sti_text_printf(&text, call->common->json ? "%s" : "%s\n", path);
    return sti_cli_answer_text(call, "out", &text);
}

static stint_status keygen_run(sti_cli_call *call)
{
    const keys_args *args = call->args;
    if (!args->out)
        return sti_fail(STINT_E_USAGE,
                        "--out names the folder of the keys; it is missing");
    const stint_status st =
        stint_seal_keygen(args->set_name, args->out, (int)args->threads);
    return st == STINT_OK ? answer_path(call, args->out) : st;
}

static stint_status encrypt_run(sti_cli_call *call)
{
    const keys_args *args = call->args;
    const stint_seal_values values = {.path = args->values, .words = args->value};
    stint_status st = want_key(args);
    STI_TRY(st);
    STI_TRY(sti_cli_seal_check_out(call->operands[0], args->out));
    STI_TRY(sti_cli_check_out(args->key, args->out));
    if (args->values)
        STI_TRY(sti_cli_check_out(args->values, args->out));
    STI_TRY(stint_seal_encrypt(call->operands[0], args->key, &values, args->out));
    st = answer_path(call, args->out);
out:
    return st;
}

static stint_status decrypt_run(sti_cli_call *call)
{
    const keys_args *args = call->args;
    char *json = NULL;
    stint_status st = want_key(args);
    if (st == STINT_OK && !args->in)
        st = sti_fail(STINT_E_USAGE, "--in names the encrypted outputs; it is missing");
    if (st == STINT_OK)
        st = stint_seal_decrypt(call->operands[0], args->key, args->in, &json);
    return st == STINT_OK ? sti_cli_seal_values(call, json) : st;
}

/* ---- check ---- */

static void add_noise_json(const stint_seal_noise *noise, int64_t failures,
                           sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_int(&j, "failures", failures);
    sti_json_begin_object(&j, "cells");
    for (int k = 0; k < STINT_SEAL_CELLS; k++) {
        sti_json_begin_object(&j, stint_seal_cell_name(k));
        sti_json_int(&j, "gates", noise[k].gates);
        sti_json_int(&j, "failures", noise[k].failures);
        sti_json_float(&j, "sd", noise[k].sd);
        sti_json_float(&j, "sd_predicted", noise[k].sd_predicted);
        sti_json_end_object(&j);
    }
    sti_json_end_object(&j);
    sti_json_end_object(&j);
}

static void add_noise_words(const stint_seal_noise *noise, sti_text *out)
{
    sti_text_printf(out, "%-14s %8s %8s %12s %12s\n", "cell", "gates", "failures", "sd",
                    "predicted");
    for (int k = 0; k < STINT_SEAL_CELLS; k++)
        sti_text_printf(out, "%-14s %8" PRId64 " %8" PRId64 " %12.6f %12.6f\n",
                        stint_seal_cell_name(k), noise[k].gates, noise[k].failures,
                        noise[k].sd, noise[k].sd_predicted);
}

static stint_status check_run(sti_cli_call *call)
{
    const keys_args *args = call->args;
    stint_seal_noise noise[STINT_SEAL_CELLS];
    sti_text text = {0};
    int64_t failures = 0;
    stint_status st = want_key(args);
    if (st == STINT_OK)
        st = stint_seal_check(args->key, args->gates, (int)args->threads, noise);
    if (st != STINT_OK)
        return st;
    for (int k = 0; k < STINT_SEAL_CELLS; k++)
        failures += noise[k].failures;
    if (call->common->json)
        add_noise_json(noise, failures, &text);
    else
        add_noise_words(noise, &text);
    st = sti_cli_answer(call, &text);
    return st == STINT_OK && failures > 0
               ? sti_fail(STINT_E_FAILED, "%" PRId64 " gates went wrong", failures)
               : st;
}

/* ---- sets ---- */

static void add_set_json(sti_json *j, const stint_seal_set *s)
{
    sti_json_begin_object(j, NULL);
    sti_json_text(j, "name", s->name);
    sti_json_int(j, "n", s->n);
    sti_json_int(j, "k", s->k);
    sti_json_int(j, "size", s->size);
    sti_json_int(j, "levels", s->levels);
    sti_json_int(j, "bits", s->bits);
    sti_json_int(j, "ks_levels", s->ks_levels);
    sti_json_int(j, "ks_bits", s->ks_bits);
    sti_json_float(j, "security_bits", s->security_bits);
    sti_json_float(j, "fail_log2", s->fail_log2);
    sti_json_float(j, "sd_log2", s->sd_log2);
    sti_json_int(j, "eval_key_bytes", s->eval_key_bytes);
    sti_json_int(j, "ciphertext_bytes", s->ciphertext_bytes);
    sti_json_end_object(j);
}

static stint_status sets_run(sti_cli_call *call)
{
    stint_seal_set s;
    sti_text text = {0};
    sti_json j;
    const bool json = call->common->json;
    if (json) {
        sti_cli_json_begin(&j, &text);
        sti_json_begin_array(&j, "sets");
    }
    for (int i = 0; stint_seal_set_at(i, &s); i++) {
        if (json)
            add_set_json(&j, &s);
        else
            sti_text_printf(&text,
                            "%-6s %.1f bits, 2^%.1f a bootstrap; n %d, k %d, size %d; "
                            "eval.key %s\n",
                            s.name, s.security_bits, s.fail_log2, s.n, s.k, s.size,
                            sti_bytes_text((size_t)s.eval_key_bytes));
    }
    if (json) {
        sti_json_end_array(&j);
        sti_json_end_object(&j);
    }
    return sti_cli_answer(call, &text);
}

const sti_cli_command sti_cmd_seal_keygen = {
    .name = "seal keygen",
    .summary = "make a pair of keys for encrypted runs",
    .operands = "",
    .example = "stint seal keygen --out keys",
    .about =
        "DIR/secret.key stays with the owner of the data; DIR/eval.key is handed to "
        "whoever runs circuits on it, and opens nothing.",
    .min_operands = 0,
    .max_operands = 0,
    STI_CLI_ARGS(keygen_rows, keys_args),
    .run = keygen_run,
};

const sti_cli_command sti_cmd_seal_encrypt = {
    .name = "seal encrypt",
    .summary = "encrypt the inputs of a circuit",
    .operands = "FILE.seal",
    .example =
        "stint seal encrypt auction.seal --key keys/secret.key --value \"a=5 b=7\" "
        "--out in.ct",
    .about = "Two calls with the same values never write the same bytes.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(encrypt_rows, keys_args),
    .run = encrypt_run,
};

const sti_cli_command sti_cmd_seal_decrypt = {
    .name = "seal decrypt",
    .summary = "decrypt what a run on encrypted inputs gave",
    .operands = "FILE.seal",
    .example =
        "stint seal decrypt auction.seal --key keys/secret.key --in out.ct --json",
    .about = "Prints the values of the outputs, as stint seal sim does.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(decrypt_rows, keys_args),
    .run = decrypt_run,
};

const sti_cli_command sti_cmd_seal_check = {
    .name = "seal check",
    .summary = "hold the noise of encrypted gates against the formulas",
    .operands = "",
    .example = "stint seal check --key keys/secret.key --gates 1000",
    .about =
        "Runs gates of every kind on random bits and looks with the secret key how "
        "far their results are off. eval.key lies beside the secret key. The exit "
        "status is 1 if a gate goes wrong.",
    .min_operands = 0,
    .max_operands = 0,
    STI_CLI_ARGS(check_rows, keys_args),
    .run = check_run,
};

const sti_cli_command sti_cmd_seal_sets = {
    .name = "seal sets",
    .summary = "list the parameter sets",
    .operands = "",
    .example = "stint seal sets --json",
    .about = "With their security by the lattice estimator and the probability that a "
             "bootstrap goes wrong, of the worst kind of cell.",
    .min_operands = 0,
    .max_operands = 0,
    STI_CLI_ARGS(sets_rows, keys_args),
    .run = sets_run,
};
