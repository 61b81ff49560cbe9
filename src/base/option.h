/* Options: one table row each. From it come command line, environment (STINT_*), recipe
 * keys, --help, man page, completion, and the recipe reference in docs/.
 *
 * A value comes, in rising order of force, from: the row's default, the recipe, the
 * environment, the command line. Values are written into the caller's struct at
 * `offset`. All complaints of one source are collected before anything fails. */
#ifndef STI_BASE_OPTION_H
#define STI_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/text.h"
#include "stint/status.h"

typedef enum sti_option_type {
    STI_OPTION_BOOL,   /* bool */
    STI_OPTION_INT,    /* int64_t, within min..max */
    STI_OPTION_FLOAT,  /* double, within min..max */
    STI_OPTION_BYTES,  /* size_t, with "auto" = 0 */
    STI_OPTION_TIME,   /* double, seconds */
    STI_OPTION_TEXT,   /* const char *, in the arena; NULL when empty */
    STI_OPTION_PATH,   /* const char *; in a recipe relative to the recipe's folder */
    STI_OPTION_CHOICE, /* int, index into `choices` */
    STI_OPTION_LIST    /* const char *, comma-separated words, of `choices` if given */
} sti_option_type;

typedef struct sti_option {
    const char *section; /* recipe section; NULL: command line only */
    const char *name;    /* recipe key; "--name" on the command line */
    char letter;         /* short form or 0 */
    sti_option_type type;
    const char *default_text; /* as a user would write it; "" for none */
    double min, max;     /* INT and FLOAT, inclusive; min > max: no bound (0, -1) */
    const char *choices; /* "sgd|adam|adamw" */
    size_t offset;       /* of the field in the target struct */
    bool automatic;      /* INT: "auto" is 0, whatever the bounds */
    bool verbatim;       /* TEXT: of any bytes, line breaks, too; not for recipes */
    bool flag;           /* on the command line as --name, beside --set section.name */
    const char *flag_name; /* of that flag where `name` alone is unclear (data.path is
                              --data); NULL: name */
    bool suffixed; /* LIST or TEXT: on the command line "-xNAME VALUE", too, adds
                      NAME=VALUE */
    int words; /* LIST: on the command line so many words follow the letter or flag */
    bool repeated;     /* LIST: on the command line given again it adds to the list */
    bool same_weights; /* recipe: no value of it changes the trained weights */
    bool local; /* recipe: of this machine, left out of what is handed on to others */
    const char *unit; /* shown in help: "N", "SIZE", "PATH" */
    const char *help; /* one sentence, no full stop */
} sti_option;

#define STI_OPTION_NO_BOUND         .min = 0, .max = -1
#define STI_OPTION_RANGE(low, high) .min = (low), .max = (high)
#define STI_OPTION_COUNT_MAX        1e15 /* of steps and seeds: whole as a double */

/* The most rows that a set may have. */
#define STI_OPTION_ROWS_MAX 512

/* Where each value came from, one byte a row, for "resolved" listings. */
typedef enum sti_origin {
    STI_FROM_DEFAULT,
    STI_FROM_RECIPE,
    STI_FROM_ENVIRONMENT,
    STI_FROM_COMMAND
} sti_origin;

typedef struct sti_option_set {
    const sti_option *rows;
    int count;
    void *target;       /* the struct that the offsets refer to */
    sti_arena *arena;   /* text values live here */
    sti_origin *origin; /* [count], or NULL */
    bool unknown_told;  /* variables that no one knows have been warned of */
} sti_option_set;

/* Every row, or one, to its default. */
stint_status sti_options_default(sti_option_set *set);
stint_status sti_option_default(sti_option_set *set, int row);

/* Set one value. `where` (may be NULL) is "file:line" or a flag and begins the message.
 * STINT_E_USAGE: not a value of this row; the old one stays. */
stint_status sti_options_put(sti_option_set *set, int row, const char *value,
                             sti_origin origin, const char *where);

/* Read an INI recipe. Every unknown section or key (with the nearest spelling),
 * duplicate and bad value is listed as "path:line: ..."; the error text holds them all,
 * one a line. */
stint_status sti_options_read_ini(sti_option_set *set, const char *path);
/* The same from memory; `path` names it in messages and `folder` resolves relative
 * paths. */
stint_status sti_options_parse_ini(sti_option_set *set, const char *text,
                                   const char *path, const char *folder);

/* Environment: STINT_<NAME> or STINT_<SECTION>_<NAME>. Unknown STINT_ variables get one
 * warning each (`known` lists further good ones, NULL-ended). */
stint_status sti_options_read_environment(sti_option_set *set,
                                          const char *const *known);

/* Command line, argv without the program's name and subcommand: argv[0] is the first
 * word that is looked at. --name VALUE, --name=VALUE, -x VALUE, -xVALUE, --flag,
 * --no-flag, --set section.key=value, "--" ends options. Words that are no options go
 * to operands_out (arena). -h/--help sets *help_out; where a row has the letter h, -h
 * alone does, without a number behind it. All complaints at once. */
stint_status sti_options_read_command(sti_option_set *set, int argc, char **argv,
                                      char ***operands_out, int *operand_count_out,
                                      bool *help_out);

/* Resolved INI text that reads back to the same values (only rows with a section). */
void sti_options_write_ini(const sti_option_set *set, sti_text *out);
/* The words between the commas of a value, in the arena; of NULL none. */
stint_status sti_option_split(sti_arena *arena, const char *list,
                              const char ***words_out, int64_t *count_out);
/* A value as text, as a user would write it. */
void sti_options_value(const sti_option_set *set, int row, sti_text *out);
/* Is that text `value`? Of texts and paths this allocates nothing; of others, false
 * where memory is out. */
bool sti_options_is(const sti_option_set *set, int row, const char *value);

/* Help: rows with .flag, aligned, defaults and units shown, at most `width` columns. */
void sti_options_write_help(const sti_option *rows, int count, int width,
                            sti_text *out);
/* roff lines of the OPTIONS section. */
void sti_options_write_man(const sti_option *rows, int count, sti_text *out);
/* A Markdown table of all recipe keys by section. */
void sti_options_write_markdown(const sti_option *rows, int count, sti_text *out);

#endif
