/* The program `stint`: parse, call the library, print.
 *
 * A subcommand is one file cmd_NAME.c with one constant sti_cli_command, and one line
 * in cli_table.c. Its options are rows (base/option.h); help, man page and completion
 * come from the same rows. What a script reads goes to stdout, all talk to stderr; with
 * --json stdout holds exactly one object, also after a failure. The exit code is the
 * status. */
#ifndef STI_CLI_CLI_H
#define STI_CLI_CLI_H

#include <stddef.h>

#include "base/account.h"
#include "base/json.h"
#include "base/option.h"
#include "base/recipe.h"
#include "base/text.h"
#include "stint/net.h"
#include "stint/stint.h"

/* Options that every subcommand has. */
typedef struct sti_cli_common {
    bool json, quiet, verbose;
} sti_cli_common;

/* clang-format off */
#define STI_CLI_COMMON_ROW(args_type, field, key, help_text)                     \
    .name = #field, .letter = (key), .type = STI_OPTION_BOOL,                    \
    .default_text = "false", .offset = offsetof(args_type, common.field),        \
    .flag = true, .help = (help_text)
#define STI_CLI_COMMON_ROWS(args_type) STI_CLI_COMMON_ROWS_BUT(args_type, 'v')
/* For a command with a row of its own that takes over the letter v: verbose 0. */
#define STI_CLI_COMMON_ROWS_BUT(args_type, verbose_letter)                       \
    {STI_CLI_COMMON_ROW(args_type, json, 0,                                      \
                        "print one JSON object on stdout and nothing else")},    \
    {STI_CLI_COMMON_ROW(args_type, quiet, 'q', "say only what went wrong")},     \
    {STI_CLI_COMMON_ROW(args_type, verbose, (verbose_letter),                    \
                        "say more about what is done and why")}
/* For a struct with a member `threads`; see sti_threads_choose. */
#define STI_CLI_THREADS_ROW(args_type)                                           \
    {.name = "threads", .letter = 'j', .type = STI_OPTION_INT,                   \
     .default_text = "0", .min = 0, .max = 1024,                                 \
     .offset = offsetof(args_type, threads), .flag = true, .unit = "N",          \
     .help = "threads; 0: every CPU this process may run on"}
/* Members of a command: its rows and the struct they write to. */
#define STI_CLI_ARGS(table, args_type)                                           \
    .rows = (table), .row_count = sizeof(table) / sizeof(table)[0],              \
    .args_bytes = sizeof(args_type),                                             \
    .common_offset = offsetof(args_type, common)
/* clang-format on */

typedef struct sti_cli_call sti_cli_call;

/* A flag or subcommand that a reader may expect, from another program's manual or from
 * what is to come: refused with a sentence that says so, not as a mistyped one. */
typedef struct sti_cli_absent {
    const char *word; /* "--rank", "-b" (then "-b1", too), "svm grid"; NULL: the end */
    bool with_number; /* only with a number behind it: alone it is a flag of ours */
    stint_status status;  /* STINT_E_UNSUPPORTED, or STINT_E_USAGE: written otherwise */
    const char *sentence; /* follows "WORD: " */
} sti_cli_absent;

/* A row of the recipe that is a flag of a command which begins with a model. */
typedef struct sti_cli_model_flag {
    const char *key;                 /* "section.name"; NULL: the end */
    const char *default_text, *help; /* where they are others than the recipe's */
} sti_cli_model_flag;

typedef struct sti_cli_command {
    const char *name;               /* "train", or two words: "data check" */
    const char *summary;            /* one line, for the list of subcommands */
    const char *operands;           /* "RECIPE", "MODEL FILE...", or "" */
    const char *example;            /* one or two command lines, a line each */
    const char *about;              /* a few sentences for help and man page */
    int min_operands, max_operands; /* max -1: any number */
    bool recipe;                    /* takes the recipe's rows before its own, and a
                                       recipe as its first operand; with min_operands 0
                                       a built-in one is chosen where none is given */
    /* That recipe is made from a model by this call (NULL: it is a file), and the first
     * operand is MODEL; few of its rows are flags then. */
    stint_status (*of_model)(const char *path, stint_recipe **recipe_out);
    const sti_cli_model_flag *model_flags;
    /* Is the first operand a model that no recipe describes, which the command takes in
     * the place of one? call->recipe is NULL then. NULL: it takes none. */
    bool (*without_recipe)(const char *operand);
    const sti_cli_absent *absent; /* flags it does not have; NULL: none expected */
    const sti_option *rows;
    int row_count;
    size_t args_bytes, common_offset; /* of the struct that the rows write to; where
                                         its sti_cli_common lies */
    stint_status (*run)(sti_cli_call *call);
} sti_cli_command;

/* A parsed command line. */
struct sti_cli_call {
    const sti_cli_command *command;
    const sti_cli_command *const *commands; /* all there are, NULL-ended */
    sti_arena *arena;
    sti_option_set set; /* recipe rows (if any) and own ones */
    void *args;         /* the command's struct, zeroed, then filled by the rows */
    const sti_cli_common *common;
    char **operands;
    int operand_count;
    stint_recipe *recipe; /* with environment and flags applied, for .recipe commands */
    const char *recipe_name; /* its path as given, or the name of a built-in one */
    const char *recipe_for; /* the data that a built-in one was chosen for; else NULL */
    bool answered;          /* the JSON object is out */
    bool told;              /* why it failed is another process's to say */
    stint_net *net;         /* left when the call is over; NULL: one process */
};

/* The table of all, NULL-ended (cli_table.c): main hands it down. */
extern const sti_cli_command *const sti_cli_commands[];
/* Subcommands that are not there (cli_table.c), and the refusal of one of them. */
extern const sti_cli_absent sti_cli_absent_commands[];
stint_status sti_cli_refuse_command(const sti_cli_absent *absent, const char *name);
/* The refusal of the first word that is an absent flag of the command, or STINT_OK. */
stint_status sti_cli_refuse_flags(const sti_cli_absent *absent, int argc, char **argv);
/* The subcommand of a name, two words with one blank; or NULL. */
const sti_cli_command *sti_cli_find(const sti_cli_command *const *all,
                                    const char *name);

/* All rows of a command, recipe rows first, in the arena. */
const sti_option *sti_cli_rows(const sti_cli_command *command, sti_arena *arena,
                               int *count_out);

/* Parse argv (after the subcommand's words); loads the recipe for .recipe commands.
 * *help_out: help was asked for, nothing else was looked at. */
stint_status sti_cli_parse(sti_cli_call *call, int argc, char **argv, bool *help_out);
void sti_cli_call_fini(sti_cli_call *call);

/* Write to stdout what a person reads, control characters but newline and tab escaped
 * (base/shown.h); frees it. A name from a file passes sti_shown() before, or its
 * newlines forge lines. Ends the program quietly when the reader is gone. */
stint_status sti_cli_print(sti_text *text);
/* The same with the bytes as they are: JSON, and text for a file. */
stint_status sti_cli_write(sti_text *text);
/* A line on stderr: `head`, and `text` escaped but for the characters of `keep`. */
void sti_cli_tell(const char *head, const char *text, const char *keep);
/* What a command answers: words as they are or, with --json, a finished object. */
stint_status sti_cli_answer(sti_cli_call *call, sti_text *text);
/* An answer of one text: a line or more on stdout, or {key: text}. Frees it. */
stint_status sti_cli_answer_text(sti_cli_call *call, const char *key, sti_text *text);
void sti_cli_json_begin(sti_json *j, sti_text *text);
/* The array "parts" of a plan of memory: name and bytes of each. */
void sti_cli_parts_json(const sti_account *account, sti_json *j);
void sti_cli_say(const sti_cli_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* a line on stderr unless --quiet */

/* "12.5 MiB" of a peak that the system was asked for; "not known here" where it does
 * not say (0), as without /proc. */
const char *sti_cli_peak_text(size_t bytes);

/* Width of the terminal (of stderr), 80 when there is none, at most 100. */
int sti_cli_width(void);

/* SIGINT, SIGTERM and SIGUSR1 go to stint_stop() from here on; a second SIGINT or
 * SIGTERM ends the program at once. */
void sti_cli_catch_signals(void);
/* SIGHUP, too, as SIGUSR1: for servers. */
void sti_cli_catch_hangup(void);

/* The other processes are left when the call is over and its failure told (net NULL:
 * there are none). One that this process did not find itself is told by another.
 * Returns status. */
stint_status sti_cli_leave(sti_cli_call *call, stint_net *net, stint_status status);

/* Progress of images or bytes on stderr, as the data calls want it. */
stint_data_progress_fn sti_cli_data_progress; /* user: a begun sti_progress */

/* "folder/model.safetensors" for a run's folder, else the path itself. In the arena. */
const char *sti_cli_model_path(sti_cli_call *call, const char *path);

/* STINT_E_USAGE if `out` (NULL: nowhere) is the file `in`, by whatever name: no answer
 * takes the place of what it was made from. */
stint_status sti_cli_check_out(const char *in, const char *out);

/* Help and man pages from the tables. */
void sti_cli_help_command(const sti_cli_command *command, int width, sti_text *out);
void sti_cli_help_overview(const sti_cli_command *const *all, int width, sti_text *out);
void sti_cli_man(const sti_cli_command *command, sti_text *out);
void sti_cli_man_overview(const sti_cli_command *const *all, sti_text *out);
/* The environment in both. */
void sti_cli_help_environment(int width, sti_text *out);
void sti_cli_man_environment(sti_text *out);
/* Variables that some subcommand or the library reads, so that one meant for `train` is
 * no mistake when `eval` runs. NULL-ended, in the arena; NULL: no memory. */
const char **sti_cli_known_variables(const sti_cli_command *const *all,
                                     sti_arena *arena);
/* What --version says: a line each, or as JSON. */
void sti_cli_version(bool json, sti_text *out);

#endif
