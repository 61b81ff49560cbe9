/* stint: finds the subcommand, runs it, turns its status into the exit code. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/shown.h"
#include "cli/cli.h"

static stint_log_level log_level = STINT_LOG_INFO;

/* Was this among the last lines of the log? A command may open its data more than once,
 * and what it finds there is said once. The library logs from one thread at a time. */
static bool was_said(const char *text)
{
    enum { LINES = 256 };
    static uint64_t said[LINES]; /* hashes; 0: none */
    static int next;
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *c = text; *c; c++)
        hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
    for (int i = 0; i < LINES; i++)
        if (said[i] == hash)
            return true;
    said[next] = hash;
    next = (next + 1) % LINES;
    return false;
}

static void print_log(void *user, stint_log_level level, const char *text)
{
    (void)user;
    if (level > log_level || was_said(text))
        return;
    const char *prefix = level == STINT_LOG_ERROR     ? "stint: error: "
                         : level == STINT_LOG_WARNING ? "stint: warning: "
                                                      : "";
    sti_cli_tell(prefix, text, "");
}

/* Levels matter before the options are parsed, for what the parser itself logs. */
static bool has_word(int argc, char **argv, const char *word, const char *letter)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], word) == 0 || (letter && strcmp(argv[i], letter) == 0))
            return true;
    return false;
}

static void answer_failure(stint_status status)
{
    sti_text text = {0};
    sti_json j;
    sti_cli_json_begin(&j, &text);
    sti_json_begin_object(&j, "error");
    sti_json_int(&j, "code", status);
    sti_json_text(&j, "name", stint_status_name(status));
    sti_json_text(&j, "text", stint_last_error());
    sti_json_end_object(&j);
    sti_json_end_object(&j);
    sti_text_add(&text, "\n");
    sti_cli_write(&text);
}

static void complain(const char *who, stint_status status)
{
    char head[96];
    snprintf(head, sizeof head, "stint%s%s: ", *who ? " " : "", who);
    /* Only what is said of the command line has lines of its own. */
    sti_cli_tell(head, stint_last_error(),
                 status == STINT_E_USAGE ? STI_SHOWN_LINES : "");
    if (status == STINT_E_USAGE)
        fprintf(stderr, "Help: stint %s%s-h\n", who, *who ? " " : "");
}

static stint_status run_command(const sti_cli_command *command, int argc, char **argv)
{
    sti_cli_call call = {.command = command, .commands = sti_cli_commands};
    bool help = false, json = has_word(argc, argv, "--json", NULL);
    stint_status status = sti_cli_parse(&call, argc, argv, &help);
    if (help) {
        sti_text text = {0};
        sti_cli_help_command(command, sti_cli_width(), &text);
        status = sti_cli_print(&text);
    } else if (status == STINT_OK) {
        status = sti_isa_check(); /* or it would run, and be timed, on another */
        if (status == STINT_OK)
            status = command->run(&call);
    }
    if (status != STINT_OK && !call.told) {
        complain(command->name, status);
        if (json && !call.answered)
            answer_failure(status);
    }
    sti_cli_call_fini(&call);
    return status;
}

static stint_status unknown_command(const char *word)
{
    const char *names[64];
    int count = 0;
    for (int i = 0; sti_cli_commands[i] && count < 64; i++)
        names[count++] = sti_cli_commands[i]->name;
    const char *near = sti_text_nearest(word, names, count);
    if (near)
        return sti_fail(STINT_E_USAGE, "'%s' is no subcommand; did you mean '%s'?",
                        word, near);
    return sti_fail(STINT_E_USAGE, "'%s' is no subcommand; `stint help` lists them",
                    word);
}

/* "data" alone, or with a second word that is none of its subcommands. */
static bool is_group(const char *word)
{
    size_t length = strlen(word);
    for (int i = 0; sti_cli_commands[i]; i++)
        if (strncmp(sti_cli_commands[i]->name, word, length) == 0 &&
            sti_cli_commands[i]->name[length] == ' ')
            return true;
    return false;
}

static stint_status run_group(const char *word, const char *second)
{
    sti_text text = {0};
    for (int i = 0; sti_cli_commands[i]; i++)
        if (strncmp(sti_cli_commands[i]->name, word, strlen(word)) == 0 &&
            sti_cli_commands[i]->name[strlen(word)] == ' ')
            sti_text_printf(&text, "  stint %-14s %s\n", sti_cli_commands[i]->name,
                            sti_cli_commands[i]->summary);
    if (second && (strcmp(second, "-h") == 0 || strcmp(second, "--help") == 0))
        return sti_cli_print(&text);
    stint_status status =
        second
            ? sti_fail(STINT_E_USAGE, "'%s %s' is no subcommand; there are:\n%s", word,
                       second, text.data)
            : sti_fail(STINT_E_USAGE, "'%s' wants one more word:\n%s", word, text.data);
    sti_text_fini(&text);
    return status;
}

/* The command that the first words name; NULL: none. words_out: how many. */
static const sti_cli_command *find_command(int argc, char **argv, int *words_out)
{
    char two[64];
    const char *word = argc > 1 ? argv[1] : "";
    snprintf(two, sizeof two, "%.30s %.30s", word, argc > 2 ? argv[2] : "");
    const sti_cli_command *command =
        argc > 2 ? sti_cli_find(sti_cli_commands, two) : NULL;
    *words_out = command ? 2 : 1;
    return command ? command : sti_cli_find(sti_cli_commands, word);
}

/* How talkative the log is: by words that any command has, and by their letters where
 * the command has no other use for them. */
static void choose_log_level(int argc, char **argv)
{
    int words;
    const sti_cli_command *command = find_command(argc, argv, &words);
    const char *letter = "-v";
    for (int i = 0; command && i < command->row_count; i++)
        if (command->rows[i].letter == 'v' &&
            strcmp(command->rows[i].name, "verbose") != 0)
            letter = NULL;
    if (has_word(argc, argv, "--quiet", "-q"))
        log_level = STINT_LOG_WARNING;
    else if (has_word(argc, argv, "--verbose", letter))
        log_level = STINT_LOG_DEBUG;
}

static stint_status dispatch(int argc, char **argv)
{
    char two[64];
    int words;
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        sti_text text = {0};
        sti_cli_version(has_word(argc, argv, "--json", NULL), &text);
        return sti_cli_print(&text);
    }
    if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
        sti_text text = {0};
        sti_cli_help_overview(sti_cli_commands, sti_cli_width(), &text);
        return sti_cli_print(&text);
    }
    const sti_cli_command *command = find_command(argc, argv, &words);
    if (command)
        return run_command(command, argc - 1 - words, argv + 1 + words);
    snprintf(two, sizeof two, "%.30s %.30s", word, argc > 2 ? argv[2] : "");
    stint_status status = sti_cli_refuse_command(sti_cli_absent_commands, two);
    if (status == STINT_OK)
        status = is_group(word) ? run_group(word, argc > 2 ? argv[2] : NULL)
                                : unknown_command(word);
    if (status != STINT_OK)
        complain("", status);
    return status;
}

/* A program started without one of the three streams would get its number for the next
 * file it opens, and write its messages into a checkpoint. */
static void hold_streams(void)
{
    int fd;
    do /* read only: who prints to a closed stream still hears that it failed */
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* Without the destructors of libraries: those of ones that nothing was done with read
 * more than a MiB of their pages, after the peak of a budget has been told. A sanitizer
 * looks for leaks in its own. */
static int leave(stint_status status)
{
#ifdef __SANITIZE_ADDRESS__
    return (int)status;
#else
    fflush(NULL);
    _exit((int)status);
#endif
}

/* Links to this program by the names of LIBSVM's: their words as those of `stint svm`,
 * with svm-train's standard type. NULL: no memory. */
static char **unfold_link(int *argc, char **argv)
{
    static char stint[] = "stint", svm[] = "svm", train[] = "train", type[] = "-s",
                c_svc[] = "c_svc", predict[] = "predict", scale[] = "scale";
    const struct {
        const char *name;
        char *words[5];
    } links[] = {{"svm-train", {stint, svm, train, type, c_svc}},
                 {"svm-predict", {stint, svm, predict}},
                 {"svm-scale", {stint, svm, scale}}};
    const char *slash = argv[0] ? strrchr(argv[0], '/') : NULL;
    const char *name = slash ? slash + 1 : argv[0] ? argv[0] : "";
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        if (strcmp(name, links[i].name) != 0)
            continue;
        char **words = calloc((size_t)*argc + 5, sizeof *words);
        int count = 0;
        while (words && count < 5 && links[i].words[count]) {
            words[count] = links[i].words[count];
            count++;
        }
        for (int a = 1; words && a < *argc; a++)
            words[count++] = argv[a];
        *argc = count;
        return words;
    }
    return argv;
}

int main(int argc, char **argv)
{
    hold_streams();
    argv = unfold_link(&argc, argv);
    if (!argv)
        return STINT_E_MEMORY;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* the write fails with EFBIG, and its part is removed */
    choose_log_level(argc, argv);
    stint_set_log(print_log, NULL);
    stint_set_log_level(log_level);
    if (!sti_recipe_table_get()) { /* all that follows looks into it */
        complain("", STINT_E_BUG);
        return STINT_E_BUG;
    }
    if (argc < 2) {
        sti_text text = {0};
        sti_cli_help_overview(sti_cli_commands, sti_cli_width(), &text);
        fputs(text.data ? text.data : "", stderr);
        sti_text_fini(&text);
        return STINT_E_USAGE;
    }
    return leave(dispatch(argc, argv));
}
