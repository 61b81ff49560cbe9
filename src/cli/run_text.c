/* stint run MODEL --prompt TEXT: text that appears as it is drawn. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/team.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/cli_run.h"
#include "data/tokenizer.h"

#define PROMPT_MAX_BYTES ((size_t)64 << 20)

typedef struct writer_run {
    sti_cli_call *call;
    const sti_run_args *args;
    stint_text_model *model;
    stint_text_model_facts facts;
    stint_generator *generator;
    int32_t *tokens; /* the prompt's, [prompt_count]; then those drawn, [count] */
    int64_t prompt_count, count;
    size_t planned_bytes;
    double prompt_s, draw_s;
    const char *stopped; /* why it ended */
    sti_utf8_stream torn;
    sti_text answer; /* all that was drawn */
    bool begun;      /* the first of the prompt's is a token that it begins with */
    bool open_line;  /* what was printed last is no newline */
} writer_run;

bool sti_run_has_prompt(const sti_run_args *args)
{
    return args->prompt || args->prompt_file || args->prompt_ids;
}

/* ---- prompt ---- */

static stint_status read_stdin(char **text_out, size_t *n_bytes_out)
{
    size_t used = 0, capacity = 65536;
    char *text = sti_alloc(capacity, "prompt");
    while (text) {
        used += fread(text + used, 1, capacity - used, stdin);
        if (used < capacity)
            break;
        char *more = capacity < PROMPT_MAX_BYTES
                         ? sti_realloc(text, 2 * capacity, "prompt")
                         : NULL;
        if (!more) {
            sti_free(text);
            return capacity < PROMPT_MAX_BYTES
                       ? STINT_E_MEMORY
                       : sti_fail(STINT_E_INPUT, "stdin: a prompt of more than %s",
                                  sti_bytes_text(PROMPT_MAX_BYTES));
        }
        text = more;
        capacity *= 2;
    }
    if (text && ferror(stdin)) {
        sti_free(text);
        return sti_fail_errno("stdin: cannot be read");
    }
    *text_out = text;
    *n_bytes_out = used;
    return text ? STINT_OK : STINT_E_MEMORY;
}

static stint_status read_text(const sti_run_args *args, char **text_out,
                              size_t *n_bytes_out)
{
    void *data = NULL;
    if (!args->prompt) {
        if (strcmp(args->prompt_file, "-") == 0)
            return read_stdin(text_out, n_bytes_out);
        const stint_status st =
            sti_file_read(args->prompt_file, PROMPT_MAX_BYTES, &data, n_bytes_out);
        *text_out = data;
        return st;
    }
    *n_bytes_out = strlen(args->prompt);
    *text_out = sti_strdup(args->prompt);
    return *text_out ? STINT_OK : STINT_E_MEMORY;
}

/* Room for the prompt and for what will be drawn. */
static stint_status make_room(writer_run *w, size_t prompt)
{
    w->tokens = sti_alloc_array((int64_t)prompt + w->args->tokens, sizeof *w->tokens,
                                "tokens of the run");
    return w->tokens ? STINT_OK : STINT_E_MEMORY;
}

/* The token that prompts begin with, before those that follow its place; unless the
 * text names it itself. */
static void put_begin(writer_run *w, int32_t begin)
{
    if (w->prompt_count > 0 && w->tokens[1] == begin) {
        memmove(w->tokens, w->tokens + 1, (size_t)w->prompt_count * sizeof *w->tokens);
        return;
    }
    w->tokens[0] = begin;
    w->prompt_count++;
    w->begun = true;
}

static stint_status encode_text(writer_run *w)
{
    char *text = NULL;
    size_t n_bytes = 0;
    if (!w->facts.tokenizer)
        return sti_fail(STINT_E_INPUT,
                        "%s: give token identities with --prompt-ids 1,2,3",
                        w->facts.no_tokenizer);
    stint_status st = read_text(w->args, &text, &n_bytes);
    if (st == STINT_OK)
        st =
            make_room(w, 1 + (size_t)stint_tokenizer_most(w->facts.tokenizer, n_bytes));
    const int32_t begin = stint_tokenizer_describe(w->facts.tokenizer)->begin_token;
    if (st == STINT_OK)
        st = stint_tokenizer_encode(w->facts.tokenizer, text, n_bytes,
                                    w->tokens + (begin >= 0), &w->prompt_count);
    if (st == STINT_OK && begin >= 0)
        put_begin(w, begin);
    if (st == STINT_E_INPUT)
        st = sti_fail_context(st, "prompt");
    sti_free(text);
    return st;
}

static stint_status read_ids(writer_run *w)
{
    const char *at = w->args->prompt_ids;
    stint_status st = make_room(w, strlen(at));
    while (st == STINT_OK && *at) {
        char *end;
        errno = 0;
        const long long id = strtoll(at, &end, 10);
        if (end == at || errno != 0 || id < 0 || id >= w->facts.sizes.vocabulary ||
            (*end && *end != ','))
            return sti_fail(STINT_E_USAGE,
                            "--prompt-ids: '%.20s' is no token identity; wanted whole "
                            "numbers from 0 to %" PRId64 " and commas between",
                            at, w->facts.sizes.vocabulary - 1);
        w->tokens[w->prompt_count++] = (int32_t)id;
        at = *end ? end + 1 : end;
    }
    return st;
}

static stint_status read_prompt(writer_run *w)
{
    const sti_run_args *a = w->args;
    if (!!a->prompt + !!a->prompt_file + !!a->prompt_ids > 1)
        return sti_fail(STINT_E_USAGE, "give one of --prompt, --prompt-file and "
                                       "--prompt-ids");
    stint_status st = a->prompt_ids ? read_ids(w) : encode_text(w);
    if (st == STINT_OK && w->prompt_count == 0)
        st = sti_fail(STINT_E_INPUT,
                      "the prompt is empty: give at least one character to go on from");
    return st;
}

/* ---- answer ---- */

static stint_status print_piece(writer_run *w, sti_text *piece)
{
    if (piece->length == 0 && !piece->failed)
        return STINT_OK;
    if (!piece->failed)
        w->open_line = piece->data[piece->length - 1] != '\n';
    if (!w->call->common
             ->json) /* a file gets the very bytes, a terminal must not obey */
        return isatty(STDOUT_FILENO) ? sti_cli_print(piece) : sti_cli_write(piece);
    for (size_t i = 0; i < piece->length; i++) { /* no NUL in the text of an object */
        if (piece->data[i])
            sti_text_add_bytes(&w->answer, piece->data + i, 1);
        else
            sti_text_add(&w->answer, "\xef\xbf\xbd");
    }
    const bool failed = piece->failed || w->answer.failed;
    sti_text_fini(piece);
    return failed ? sti_fail(STINT_E_MEMORY, "out of memory for the text") : STINT_OK;
}

/* What a token adds: its text as far as characters are whole, or its number. */
static stint_status print_token(writer_run *w, int32_t token)
{
    size_t n_bytes;
    sti_text piece = {0};
    if (w->facts.tokenizer) {
        const char *bytes = stint_tokenizer_token(w->facts.tokenizer, token, &n_bytes);
        sti_utf8_stream_add(&w->torn, bytes ? bytes : "\xff", bytes ? n_bytes : 1,
                            &piece);
    } else if (!w->call->common->json) {
        sti_text_printf(&piece, "%s%d", w->count > 1 ? " " : "", token);
    }
    return print_piece(w, &piece);
}

static stint_status print_prompt(writer_run *w)
{
    stint_status st = STINT_OK;
    sti_utf8_stream torn = {0};
    sti_text piece = {0};
    if (w->call->common->json || !w->facts.tokenizer)
        return STINT_OK;
    for (int64_t i = w->begun; i < w->prompt_count; i++) {
        size_t n_bytes;
        const char *bytes =
            stint_tokenizer_token(w->facts.tokenizer, w->tokens[i], &n_bytes);
        const bool put = i == w->begun && n_bytes > 0 && *bytes == ' ' &&
                         w->facts.tokenizer->scheme.prefix != STI_PREFIX_NEVER;
        sti_utf8_stream_add(&torn, bytes ? bytes + put : "", n_bytes - put, &piece);
    }
    sti_utf8_stream_end(&torn, &piece);
    st = print_piece(w, &piece);
    return st;
}

static stint_status finish_text(writer_run *w)
{
    sti_text piece = {0};
    sti_utf8_stream_end(&w->torn, &piece);
    stint_status st = print_piece(w, &piece);
    if (st != STINT_OK || w->call->common->json || !w->open_line)
        return st;
    sti_text_add(&piece, "\n");
    return sti_cli_print(&piece);
}

static stint_status draw_all(writer_run *w)
{
    stint_status st = STINT_OK;
    int32_t *drawn = w->tokens + w->prompt_count;
    w->stopped = "tokens";
    while (st == STINT_OK && w->count < w->args->tokens) {
        const int64_t start = sti_clock_ns();
        st = stint_generator_next(w->generator, &drawn[w->count]);
        w->draw_s += sti_seconds_since(start);
        if (st != STINT_OK)
            break;
        if (drawn[w->count++] == w->facts.end_token) {
            w->stopped = "end";
            break;
        }
        st = print_token(w, drawn[w->count - 1]);
    }
    if (st == STINT_E_INTERRUPTED || st == STINT_E_TERMINATED)
        w->stopped = "interrupted";
    else if (st != STINT_OK)
        return st;
    const stint_status finished = finish_text(w);
    return finished != STINT_OK ? finished : st;
}

static double rate(int64_t count, double seconds)
{
    return seconds > 0 ? (double)count / seconds : 0;
}

static stint_status answer(writer_run *w)
{
    sti_text text = {0};
    sti_json j;
    sti_cli_say(w->call,
                "%" PRId64 " token%s, %.1f tokens/s; prompt of %" PRId64
                ", %.1f tokens/s; seed %" PRId64 "; peak memory %s, planned %s",
                w->count, sti_s(w->count), rate(w->count, w->draw_s), w->prompt_count,
                rate(w->prompt_count, w->prompt_s), w->args->seed,
                sti_cli_peak_text(sti_process_peak_bytes()),
                sti_bytes_text(w->planned_bytes));
    if (!w->call->common->json)
        return STINT_OK;
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "text",
                  !w->facts.tokenizer ? NULL
                  : w->answer.data    ? w->answer.data
                                      : "");
    sti_json_int(&j, "tokens", w->count);
    sti_json_float(&j, "tokens_per_s", rate(w->count, w->draw_s));
    sti_json_int(&j, "prompt_tokens", w->prompt_count);
    sti_json_float(&j, "prompt_tokens_per_s", rate(w->prompt_count, w->prompt_s));
    sti_json_int(&j, "seed", w->args->seed);
    sti_json_text(&j, "stopped", w->stopped);
    sti_json_begin_array(&j, "ids");
    for (int64_t i = 0; i < w->count; i++)
        sti_json_int(&j, NULL, w->tokens[w->prompt_count + i]);
    sti_json_end_array(&j);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)w->planned_bytes);
    sti_json_known(&j, "peak_rss_bytes", (int64_t)sti_process_peak_bytes());
    sti_json_end_object(&j);
    return sti_cli_answer(w->call, &text);
}

/* ---- the run ---- */

static stint_status create_generator(writer_run *w)
{
    static const int weight_bits[] = {0, 32, 16, 8, 4}; /* as the option's choices */
    const sti_run_args *a = w->args;
    int threads;
    stint_status st = sti_threads_choose((int)a->threads, &threads, NULL);
    const stint_generator_desc desc = {.threads = threads,
                                       .weight_bits = weight_bits[a->weights],
                                       .tokens = w->prompt_count + a->tokens,
                                       .temperature = a->temperature,
                                       .top_k = a->top_k,
                                       .top_p = a->top_p,
                                       .seed = (uint64_t)a->seed,
                                       .memory_bytes = a->memory_bytes};
    if (w->prompt_count > w->facts.context)
        return sti_fail(STINT_E_INPUT,
                        "the prompt has %" PRId64 " tokens, but the model sees at most "
                        "%" PRId64 "; leave out %" PRId64,
                        w->prompt_count, w->facts.context,
                        w->prompt_count - w->facts.context);
    if (st == STINT_OK)
        st = stint_generator_peak_bytes(w->model, &desc, &w->planned_bytes);
    if (st == STINT_OK)
        st = stint_generator_create(w->model, &desc, &w->generator);
    return st;
}

static stint_status run(writer_run *w)
{
    stint_status st = read_prompt(w);
    if (st == STINT_OK)
        st = create_generator(w);
    if (st != STINT_OK)
        return st;
    sti_cli_catch_signals();
    const int64_t start = sti_clock_ns();
    st = stint_generator_prompt(w->generator, w->tokens, w->prompt_count);
    w->prompt_s = sti_seconds_since(start);
    if (st == STINT_OK)
        st = print_prompt(w);
    if (st == STINT_OK)
        st = draw_all(w);
    if (st != STINT_OK && st != STINT_E_INTERRUPTED && st != STINT_E_TERMINATED)
        return st;
    const stint_status answered = answer(w);
    if (answered != STINT_OK)
        return answered;
    return st == STINT_OK
               ? st
               : sti_fail(st, "stopped by a signal after %" PRId64 " token%s", w->count,
                          sti_s(w->count));
}

stint_status sti_run_text(sti_cli_call *call)
{
    writer_run w = {.call = call, .args = call->args};
    if (w.args->samples > 0)
        return sti_fail(STINT_E_USAGE, "--samples: is of images, and a prompt of text; "
                                       "leave out one of them");
    stint_status st = call->operand_count > 1
                          ? sti_fail(STINT_E_USAGE,
                                     "'%s': with a prompt there is one model and "
                                     "nothing else",
                                     call->operands[1])
                          : stint_text_model_open(call->operands[0], &w.model);
    if (st == STINT_OK && w.args->adapter)
        st = stint_text_model_adapt(w.model, w.args->adapter);
    if (st == STINT_OK) {
        stint_text_model_describe(w.model, &w.facts);
        st = run(&w);
    }
    sti_text_fini(&w.answer);
    sti_free(w.tokens);
    stint_generator_destroy(w.generator);
    stint_text_model_close(w.model);
    return st;
}
