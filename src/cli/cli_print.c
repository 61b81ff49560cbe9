/* Answers on stdout, talk on stderr, and the manners of a terminal program. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/progress.h"
#include "base/shown.h"
#include "base/units.h"
#include "cli/cli.h"

static stint_status write_all(const char *bytes, size_t n_bytes)
{
    while (n_bytes > 0) {
        ssize_t wrote = write(STDOUT_FILENO, bytes, n_bytes);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0 && errno == EPIPE)
            _exit(0); /* the reader has seen enough: `stint help | head -3` */
        if (wrote < 0)
            return sti_fail_errno("cannot write to stdout");
        bytes += wrote;
        n_bytes -= (size_t)wrote;
    }
    return STINT_OK;
}

stint_status sti_cli_write(sti_text *text)
{
    stint_status status = text->failed ? STINT_E_MEMORY : STINT_OK;
    if (status == STINT_OK && text->length > 0)
        status = write_all(text->data, text->length);
    sti_text_fini(text);
    return status;
}

stint_status sti_cli_print(sti_text *text)
{
    sti_text shown = {.failed = text->failed};
    if (text->data)
        sti_text_add_shown(&shown, text->data, STI_SHOWN_LINES);
    sti_text_fini(text);
    return sti_cli_write(&shown);
}

void sti_cli_tell(const char *head, const char *text, const char *keep)
{
    char shown[4 * 8192];
    fputs(head, stderr);
    sti_shown_into(shown, sizeof shown, text, keep);
    fprintf(stderr, "%s\n", shown);
}

void sti_cli_json_begin(sti_json *j, sti_text *text)
{
    *j = (sti_json){.out = text};
    sti_json_begin_object(j, NULL);
}

void sti_cli_parts_json(const sti_account *a, sti_json *j)
{
    sti_json_begin_array(j, "parts");
    for (int i = 0; i < a->count; i++) {
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "name", a->parts[i].name);
        sti_json_int(j, "bytes", (int64_t)a->parts[i].bytes);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}

stint_status sti_cli_answer(sti_cli_call *call, sti_text *text)
{
    if (call->common->json) {
        sti_text_add(text, "\n");
        call->answered = true;
        return sti_cli_write(text);
    }
    return sti_cli_print(text);
}

stint_status sti_cli_answer_text(sti_cli_call *call, const char *key, sti_text *text)
{
    if (text->failed || !call->common->json)
        return sti_cli_print(text);
    sti_text answer = {0};
    sti_json j;
    sti_cli_json_begin(&j, &answer);
    sti_json_text(&j, key, text->data);
    sti_json_end_object(&j);
    sti_text_fini(text);
    return sti_cli_answer(call, &answer);
}

void sti_cli_say(const sti_cli_call *call, const char *format, ...)
{
    if (call->common && call->common->quiet)
        return;
    char line[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    sti_cli_tell("", line, STI_SHOWN_LINES);
}

const char *sti_cli_peak_text(size_t bytes)
{
    return bytes > 0 ? sti_bytes_text(bytes) : "not known here";
}

int sti_cli_width(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    long set = columns ? strtol(columns, NULL, 10) : 0;
    long width = 80;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        width = size.ws_col;
    else if (set > 0)
        width = set;
    return width < 40 ? 40 : width > 100 ? 100 : (int)width;
}

static volatile sig_atomic_t stop_count;

static void on_stop(int signal_number)
{
    if (stop_count++ > 0)
        _exit(128 + signal_number);
    stint_stop(signal_number == SIGINT ? STINT_E_INTERRUPTED : STINT_E_TERMINATED);
}

static void on_checkpoint(int signal_number)
{
    (void)signal_number;
    stint_stop(STINT_OK);
}

void sti_cli_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = on_checkpoint;
    sigaction(SIGUSR1, &action, NULL);
}

void sti_cli_catch_hangup(void)
{
    struct sigaction action = {.sa_handler = on_checkpoint, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGHUP, &action, NULL);
}

void sti_cli_data_progress(void *user, int64_t done, int64_t total)
{
    sti_progress *progress = user;
    progress->total = total;
    sti_progress_update(progress, done, "");
}

const char *sti_cli_model_path(sti_cli_call *call, const char *path)
{
    if (sti_path_is_dir(path))
        return sti_path_join(call->arena, path, "model.safetensors");
    return path;
}

stint_status sti_cli_check_out(const char *in, const char *out)
{
    const size_t length = sti_npy_file_length(in); /* of FILE.npz:NAME */
    sti_text file = {0};
    sti_text_add_bytes(&file, in, length);
    const bool failed = file.failed;
    const bool same = !failed && out && sti_path_is_same(file.data, out);
    sti_text_fini(&file);
    if (failed)
        return STINT_E_MEMORY;
    if (!same)
        return STINT_OK;
    return sti_fail(STINT_E_USAGE,
                    "%s would be written over by its own answer; name another file",
                    in);
}
