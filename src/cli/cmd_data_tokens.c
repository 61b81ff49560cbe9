/* stint data tokens: what a text is in tokens; learns, converts and keeps tokenisers.
 */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/units.h"
#include "cli/cli.h"
#include "data/tokenizer.h"
#include "store/model_tokenizer.h"

#define MAX_TEXT_BYTES ((size_t)1 << 36)

typedef struct tokens_args {
    int tokenizer;
    const char *from, *out, *gpt2, *ids;
    int64_t vocabulary;
    sti_cli_common common;
} tokens_args;

static const char *const kind_names[] = {"byte", "char", "bpe", "unigram"};

#define TOKENS_ROW(field, kind, standard, words) \
    .type = (kind), .default_text = (standard),  \
    .offset = offsetof(tokens_args, field), .flag = true, .help = (words)

static const sti_option tokens_rows[] = {
    {.name = "tokenizer",
     .choices = "byte|char|bpe",
     .unit = "KIND",
     TOKENS_ROW(tokenizer, STI_OPTION_CHOICE, "bpe", "what to learn from the text")},
    {.name = "vocabulary",
     .min = 256,
     .max = 1 << 24,
     .unit = "N",
     TOKENS_ROW(vocabulary, STI_OPTION_INT, "4096",
                "tokens of a byte-pair vocabulary")},
    {.name = "from",
     .unit = "PATH",
     TOKENS_ROW(
         from, STI_OPTION_PATH, "",
         "learn nothing; use this tokeniser: a file from --out, a folder with "
         "GPT-2's vocab.json and merges.txt or a tokenizer.json, or a run or model "
         "of text")},
    {.name = "out",
     .letter = 'o',
     .unit = "FILE.json",
     TOKENS_ROW(out, STI_OPTION_PATH, "", "write the tokeniser")},
    {.name = "gpt2",
     .unit = "FOLDER",
     TOKENS_ROW(gpt2, STI_OPTION_PATH, "", "write it as vocab.json and merges.txt")},
    {.name = "ids",
     .unit = "FILE.npy",
     TOKENS_ROW(ids, STI_OPTION_PATH, "", "write the text's tokens as int32")},
    STI_CLI_COMMON_ROWS(tokens_args),
};

typedef struct tokens_found {
    int64_t bytes, count, used; /* tokens that occur */
    double seconds;
} tokens_found;

/* Room for the text's tokens. */
static stint_status make_room(const stint_tokenizer *t, size_t n_bytes,
                              int32_t **tokens)
{
    *tokens =
        sti_alloc_array(stint_tokenizer_most(t, n_bytes), sizeof **tokens, "tokens");
    return *tokens ? STINT_OK : STINT_E_MEMORY;
}

/* The tokeniser and the text's tokens. A complaint about the text names its file. */
static stint_status encode(const sti_cli_call *call, const char *text, size_t n_bytes,
                           stint_tokenizer **out, int32_t **tokens, tokens_found *found)
{
    const tokens_args *args = call->args;
    stint_status status =
        args->from
            ? sti_model_tokenizer_read(args->from, out)
            : stint_tokenizer_learn((stint_tokenizer_kind)args->tokenizer,
                                    (int32_t)args->vocabulary, text, n_bytes, out);
    if (status != STINT_OK && args->from)
        return status;
    const int64_t begin = sti_clock_ns();
    if (status == STINT_OK)
        status = make_room(*out, n_bytes, tokens);
    if (status == STINT_OK)
        status = stint_tokenizer_encode(*out, text, n_bytes, *tokens, &found->count);
    found->seconds = sti_seconds_since(begin);
    return status == STINT_E_INPUT ? sti_fail_context(status, "%s", call->operands[0])
                                   : status;
}

/* Decoding must give the text back, unless it was normalised first; a tokeniser for
 * which it does not is broken. */
static stint_status count_back(const stint_tokenizer *t, const char *text,
                               size_t n_bytes, const int32_t *tokens,
                               tokens_found *found)
{
    const int32_t vocabulary = stint_tokenizer_describe(t)->vocabulary;
    uint8_t *seen = sti_alloc((size_t)vocabulary, "tokens seen");
    const bool exact = sti_text_scheme_is_by_words(&t->scheme);
    size_t at = 0;
    if (!seen)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < found->count; i++) {
        size_t length;
        const char *bytes = stint_tokenizer_token(t, tokens[i], &length);
        if (!bytes ||
            (exact && (length > n_bytes - at || memcmp(text + at, bytes, length) != 0)))
            break;
        at += length;
        found->used += !seen[tokens[i]];
        seen[tokens[i]] = 1;
    }
    sti_free(seen);
    return at == n_bytes || !exact
               ? STINT_OK
               : sti_fail(STINT_E_BUG, "decoding differs at byte %zu", at);
}

static stint_status write_ids(const char *path, const int32_t *tokens, int64_t count)
{
    if (!path)
        return STINT_OK;
    return sti_npy_write(path, "<i4", 1, &count, tokens,
                         (size_t)count * sizeof *tokens);
}

static void answer_words(const tokens_args *args, const stint_tokenizer_info *info,
                         const tokens_found *found, sti_text *out)
{
    const char *written[] = {args->out, args->gpt2, args->ids};
    sti_text_printf(out, "tokeniser    %s, %s tokens, %.12s...\n",
                    kind_names[info->kind], sti_count_text(info->vocabulary),
                    info->hash);
    sti_text_printf(out, "text         %s byte%s\n", sti_count_text(found->bytes),
                    sti_s(found->bytes));
    sti_text_printf(out,
                    "tokens       %s, %.2f bytes each; %s of the vocabulary occur\n",
                    sti_count_text(found->count),
                    found->count ? (double)found->bytes / (double)found->count : 0.0,
                    sti_count_text(found->used));
    sti_text_printf(out, "encoded at   %.1f MB/s\n",
                    (double)found->bytes / 1e6 / found->seconds);
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        if (written[i])
            sti_text_printf(out, "written      %s\n", written[i]);
}

static void answer_json(const stint_tokenizer_info *info, const tokens_found *found,
                        sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "tokenizer", kind_names[info->kind]);
    sti_json_int(&j, "vocabulary", info->vocabulary);
    sti_json_text(&j, "hash", info->hash);
    sti_json_int(&j, "bytes", found->bytes);
    sti_json_int(&j, "tokens", found->count);
    sti_json_int(&j, "vocabulary_used", found->used);
    sti_json_float(&j, "seconds", found->seconds);
    sti_json_end_object(&j);
}

static stint_status write_all(const tokens_args *args, const stint_tokenizer *t,
                              const int32_t *tokens, int64_t count)
{
    stint_status status = STINT_OK;
    if (args->out)
        status = stint_tokenizer_write(t, args->out);
    if (status == STINT_OK && args->gpt2)
        status = stint_tokenizer_write_gpt2(t, args->gpt2);
    return status ? status : write_ids(args->ids, tokens, count);
}

static stint_status run_on(sti_cli_call *call, const char *text, size_t n_bytes)
{
    const tokens_args *args = call->args;
    stint_tokenizer *t = NULL;
    tokens_found found = {.bytes = (int64_t)n_bytes};
    int32_t *tokens = NULL;
    stint_status status = encode(call, text, n_bytes, &t, &tokens, &found);
    if (status == STINT_OK)
        status = count_back(t, text, n_bytes, tokens, &found);
    if (status == STINT_OK)
        status = write_all(args, t, tokens, found.count);
    if (status == STINT_OK) {
        sti_text out = {0};
        const stint_tokenizer_info *info = stint_tokenizer_describe(t);
        if (!args->from && info->kind == STINT_TOKENIZER_BPE &&
            info->vocabulary < args->vocabulary)
            sti_cli_say(call,
                        "the text gives %d tokens only: no other pair occurs twice",
                        info->vocabulary);
        if (call->common->json)
            answer_json(info, &found, &out);
        else
            answer_words(args, info, &found, &out);
        status = sti_cli_answer(call, &out);
    }
    stint_tokenizer_close(t);
    sti_free(tokens);
    return status;
}

static stint_status tokens_run(sti_cli_call *call)
{
    const tokens_args *args = call->args;
    const char *path = call->operands[0];
    void *text;
    size_t n_bytes;
    stint_status status = sti_cli_check_out(path, args->out);
    if (status == STINT_OK)
        status = sti_cli_check_out(path, args->ids);
    if (status == STINT_OK && args->out && args->ids &&
        sti_path_is_same(args->out, args->ids))
        status = sti_fail(STINT_E_USAGE, "--out and --ids are both %s", args->out);
    if (status == STINT_OK)
        status = sti_file_read(path, MAX_TEXT_BYTES, &text, &n_bytes);
    if (status != STINT_OK)
        return status;
    sti_cli_catch_signals(); /* learning and encoding look */
    status = run_on(call, text, n_bytes);
    sti_free(text);
    return status;
}

const sti_cli_command sti_cmd_data_tokens = {
    .name = "data tokens",
    .summary = "turn a text into tokens, and learn how",
    .operands = "FILE.txt",
    .example = "stint data tokens shakespeare.txt --vocabulary 2048 -o tokens.json",
    .about =
        "Learns a tokeniser from the text (or takes one that is there), encodes the "
        "text, checks that decoding gives it back, and says how many tokens it is. "
        "One text and one vocabulary size always give the same tokeniser.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(tokens_rows, tokens_args),
    .run = tokens_run,
};
