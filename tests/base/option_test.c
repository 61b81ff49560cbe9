#include "base/option.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fail.h"
#include "base/file.h"

typedef struct settings {
    bool verbose, shuffle;
    int64_t batch, threads, warmup;
    double rate, timeout;
    size_t memory;
    const char *data, *note, *tags;
    int optimiser;
} settings;

#define AT(field) .offset = offsetof(settings, field)

static const sti_option rows[] = {
    {"data", "path", 'd', STI_OPTION_PATH, "", STI_OPTION_NO_BOUND, AT(data),
     .flag = true, .help = "folder or tar with the images"},
    {"data", "shuffle", 0, STI_OPTION_BOOL, "true", STI_OPTION_NO_BOUND, AT(shuffle),
     .flag = true, .help = "new order in every epoch"},
    {"train", "batch", 'b', STI_OPTION_INT, "128", .min = 1, .max = 65536, AT(batch),
     .flag = true, .unit = "N", .help = "images a step"},
    {"train", "optimiser", 0, STI_OPTION_CHOICE, "sgd", STI_OPTION_NO_BOUND,
     .choices = "sgd|adam|adamw", AT(optimiser), .flag = true, .help = "update rule"},
    {"train", "learning_rate", 0, STI_OPTION_FLOAT, "0.1", .min = 0, .max = 100,
     AT(rate), .flag = true, .help = "peak learning rate"},
    {"train", "warmup", 0, STI_OPTION_INT, "", .min = 1, .max = (double)INFINITY,
     AT(warmup), .help = "steps of warm-up"},
    {"train", "tags", 0, STI_OPTION_LIST, "", STI_OPTION_NO_BOUND,
     .choices = "fast|small|exact", AT(tags), .help = "what matters"},
    {"run", "memory", 'm', STI_OPTION_BYTES, "auto", STI_OPTION_NO_BOUND, AT(memory),
     .flag = true, .help = "most resident memory of the process"},
    {"run", "timeout", 0, STI_OPTION_TIME, "1h", STI_OPTION_NO_BOUND, AT(timeout),
     .help = "longest time"},
    {"run", "note", 0, STI_OPTION_TEXT, "", STI_OPTION_NO_BOUND, AT(note),
     .help = "free words | kept"},
    {NULL, "threads", 'j', STI_OPTION_INT, "0", .min = 0, .max = 1024, AT(threads),
     .flag = true, .unit = "N", .help = "threads"},
    {NULL, "verbose", 'v', STI_OPTION_BOOL, "", STI_OPTION_NO_BOUND, AT(verbose),
     .flag = true, .help = "say more"},
};
enum { ROWS = sizeof rows / sizeof *rows };

typedef struct fixture {
    settings s;
    sti_origin origin[ROWS];
    sti_option_set set;
    char **operands;
    int operand_count;
    bool help;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->set = (sti_option_set){.rows = rows,
                              .count = ROWS,
                              .target = &f->s,
                              .arena = sti_arena_create("options"),
                              .origin = f->origin};
    *state = f;
    return sti_options_default(&f->set) == STINT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    sti_arena_destroy(f->set.arena);
    free(f);
    return 0;
}

static stint_status parse(fixture *f, const char *text)
{
    return sti_options_parse_ini(&f->set, text, "r.ini", "recipes");
}

static stint_status command(fixture *f, const char *const *words)
{
    int argc = 0;
    char *argv[32];
    while (words[argc]) {
        argv[argc] = strdup(words[argc]);
        argc++;
    }
    stint_status st = sti_options_read_command(&f->set, argc, argv, &f->operands,
                                               &f->operand_count, &f->help);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    return st;
}

#define COMMAND(f, ...) command(f, (const char *const[]){__VA_ARGS__, NULL})

/* One wrong word on the command line, and words of the message. */
#define CHECK_WRONG(f, words, ...)                                      \
    do {                                                                \
        assert_int_equal(COMMAND(f, __VA_ARGS__), STINT_E_USAGE);       \
        if (!strstr(stint_last_error(), words))                         \
            fail_msg("'%s' is not in '%s'", words, stint_last_error()); \
    } while (0)

static void check_recipe_error(fixture *f, const char *text, const char *message)
{
    assert_int_equal(parse(f, text), STINT_E_USAGE);
    assert_string_equal(stint_last_error(), message);
}

static void test_defaults(void **state)
{
    fixture *f = *state;
    assert_null(f->s.data);
    assert_true(f->s.shuffle);
    assert_int_equal(f->s.batch, 128);
    assert_true(f->s.rate == 0.1);
    assert_true(f->s.timeout == 3600);
    assert_int_equal(f->s.memory, 0);
    assert_int_equal(f->s.warmup, 0);
    assert_int_equal(f->s.optimiser, 0);
}

static void test_recipe(void **state)
{
    fixture *f = *state;
    assert_int_equal(parse(f, "\xEF\xBB\xBF; a comment\r\n"
                              "# another\r\n"
                              "[data]\r\n"
                              "path = glyphs/train ; where\r\n"
                              "  shuffle=no\r\n"
                              "\r\n"
                              "[train]   # the loop\r\n"
                              "batch: 64\r\n"
                              "optimiser = AdamW\r\n"
                              "learning-rate = 5e-4\r\n"
                              "tags = fast,  exact\r\n"
                              "[run]\r\n"
                              "memory = 150M\r\n"
                              "timeout = 25ms\r\n"
                              "note = a#b;c"),
                     STINT_OK);
    assert_string_equal(f->s.data, "recipes/glyphs/train");
    assert_false(f->s.shuffle);
    assert_int_equal(f->s.batch, 64);
    assert_int_equal(f->s.optimiser, 2);
    assert_true(f->s.rate == 5e-4);
    assert_string_equal(f->s.tags, "fast,exact");
    assert_int_equal(f->s.memory, (size_t)150 << 20);
    assert_true(f->s.timeout == 0.025);
    assert_string_equal(f->s.note, "a#b;c");
    assert_int_equal(f->origin[2], STI_FROM_RECIPE);
}

static void test_recipe_values(void **state)
{
    fixture *f = *state;
    assert_int_equal(parse(f, "[run]\nnote = \"  a ; b # c \\\" \\\\ \"  ; comment\n"),
                     STINT_OK);
    assert_string_equal(f->s.note, "  a ; b # c \" \\ ");
    assert_int_equal(parse(f, "[run]\nnote = ; nothing\n"), STINT_OK);
    assert_null(f->s.note);
    assert_int_equal(parse(f, "[run]\nnote = a = b : c\n"), STINT_OK);
    assert_string_equal(f->s.note, "a = b : c");
    assert_int_equal(parse(f, "[data]\npath = /abs\n"), STINT_OK);
    assert_string_equal(f->s.data, "/abs");
    assert_int_equal(parse(f, ""), STINT_OK);
    assert_int_equal(parse(f, "[run]\nmemory = auto"), STINT_OK);
}

/* inih's own lines end at 200 bytes; ours do not. */
static void test_recipe_long_line(void **state)
{
    fixture *f = *state;
    char text[3100], value[3000];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    snprintf(text, sizeof text, "[run]\nnote = %s\n[train]\nbatch = 7\n", value);
    assert_int_equal(parse(f, text), STINT_OK);
    assert_string_equal(f->s.note, value);
    assert_int_equal(f->s.batch, 7);
    snprintf(text, sizeof text, "[run]\n%s\n", value);
    assert_int_equal(parse(f, text), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "r.ini:2"));
}

static void test_recipe_complaints(void **state)
{
    fixture *f = *state;
    check_recipe_error(
        f, "[train]\nbacth = 3\n",
        "r.ini:2: unknown key 'bacth' in [train]; did you mean 'batch'?");
    check_recipe_error(f, "[data]\nbatch = 3\n",
                       "r.ini:2: unknown key 'batch' in [data]; it belongs in [train]");
    check_recipe_error(
        f, "[data]\nbacth = 3\n",
        "r.ini:2: unknown key 'bacth' in [data]; did you mean 'batch' in "
        "[train]?");
    check_recipe_error(f, "[data]\nzzzzzzz = 3\n",
                       "r.ini:2: unknown key 'zzzzzzz' in [data]; known keys are path, "
                       "shuffle");
    check_recipe_error(
        f, "[trian]\nbatch = 3\nbacth = 3\n",
        "r.ini:1: unknown section [trian]; did you mean [train]?\n"
        "r.ini:3: unknown key 'bacth' in [train]; did you mean 'batch'?");
    check_recipe_error(
        f, "[wholly_else]\nbatch = 3\n",
        "r.ini:1: unknown section [wholly_else]; known sections are data, "
        "train, run");
    check_recipe_error(f, "[train]\nbatch = 3\n\nbatch = 4\n",
                       "r.ini:4: 'batch' was set before, in line 2; keep one");
    check_recipe_error(f, "batch = 3\n",
                       "r.ini:1: key 'batch' stands before any section; put it under "
                       "[train]");
    check_recipe_error(f, "x = 3\n",
                       "r.ini:1: key 'x' stands before any section; begin with a line "
                       "[section]");
    check_recipe_error(f, "[train]\nbatch 3\n",
                       "r.ini:2: 'batch 3' has no '='; write key = value");
    check_recipe_error(f, "[train]\nbatch",
                       "r.ini:2: 'batch' has no '='; write key = value");
    check_recipe_error(f, "[train]\n = 3\n",
                       "r.ini:2: no key before the '='; write key = value");
    check_recipe_error(f, "[train\n", "r.ini:1: '[train' has no ']'; write [section]");
    check_recipe_error(
        f, "[train] batch = 3\n",
        "r.ini:1: text after the ']'; begin a new line or a comment with "
        "';'");
}

static void test_recipe_value_complaints(void **state)
{
    fixture *f = *state;
    check_recipe_error(f, "[train]\nbatch = 0\n",
                       "r.ini:2: batch: 0 is out of range, must be from 1 to 65536");
    check_recipe_error(f, "[train]\nwarmup = -1\n",
                       "r.ini:2: warmup: -1 is out of range, must be at least 1");
    check_recipe_error(f, "[train]\nbatch =\n", "r.ini:2: batch: has no value");
    check_recipe_error(
        f, "[train]\nbatch = many\n",
        "r.ini:2: batch: 'many' is no whole number; write for example 128");
    check_recipe_error(
        f, "[train]\noptimiser = sdg\n",
        "r.ini:2: optimiser: 'sdg' is not known, but must be sgd, adam or "
        "adamw; did you mean 'sgd'?");
    check_recipe_error(f, "[train]\ntags = fast,smal\n",
                       "r.ini:2: tags: 'smal' is not known, but must be fast, small or "
                       "exact; did you mean 'small'?");
    check_recipe_error(
        f, "[train]\ntags = fast,,small\n",
        "r.ini:2: tags: 'fast,,small' has an empty word between its commas");
    check_recipe_error(f, "[run]\nnote = \"open\n",
                       "r.ini:2: the quotes around the value do not match");
    check_recipe_error(f, "[run]\nnote = \"a\" b\n",
                       "r.ini:2: the quotes around the value do not match");
    check_recipe_error(f, "[run]\nnote = a\x01\n",
                       "r.ini:2: note: the text has a line break or another control "
                       "character; leave it out");
}

static void test_all_complaints_at_once(void **state)
{
    fixture *f = *state;
    check_recipe_error(
        f,
        "[train]\nbatch = x\nbatch = 0\nwarm = 3\n[run\nnote\n"
        "[run]\ntimeout = soon\n",
        "r.ini:2: batch: 'x' is no whole number; write for example 128\n"
        "r.ini:3: 'batch' was set before, in line 2; keep one\n"
        "r.ini:3: batch: 0 is out of range, must be from 1 to 65536\n"
        "r.ini:4: unknown key 'warm' in [train]; did you mean 'warmup'?\n"
        "r.ini:5: '[run' has no ']'; write [section]\n"
        "r.ini:6: 'note' has no '='; write key = value\n"
        "r.ini:8: timeout: 'soon' is no time; write for example 25ms, 1.5s, "
        "2min or 1h");
}

/* More complaints than the record holds are counted. */
static void test_endless_complaints(void **state)
{
    fixture *f = *state;
    sti_text text = {0};
    sti_text_add(&text, "[train]\n");
    for (int i = 0; i < 500; i++)
        sti_text_printf(&text, "zzzzzzzzz%d = 3\n", i);
    assert_int_equal(parse(f, text.data), STINT_E_USAGE);
    const char *message = stint_last_error(), *last = strrchr(message, '\n');
    int lines = 0, more = 0;
    for (const char *c = message; c < last; c++)
        lines += *c == '\n';
    assert_int_equal(sscanf(last, "\n(and %d more)", &more), 1);
    assert_int_equal(lines + 1 + more, 500);
    sti_text_fini(&text);
}

static void test_read_file(void **state)
{
    fixture *f = *state;
    char folder[] = "/tmp/stint_option_test_XXXXXX", path[64], wanted[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x.ini", folder);
    snprintf(wanted, sizeof wanted, "%s/images", folder);
    assert_int_equal(sti_options_read_ini(&f->set, path), STINT_E_IO);
    assert_non_null(strstr(stint_last_error(), path));
    assert_int_equal(sti_file_write(path, "[data]\npath = images\n", 21), STINT_OK);
    assert_int_equal(sti_options_read_ini(&f->set, path), STINT_OK);
    assert_string_equal(f->s.data, wanted);
    assert_int_equal(sti_file_write(path, "[data]\npath\0= images\n", 21), STINT_OK);
    assert_int_equal(sti_options_read_ini(&f->set, path), STINT_E_INPUT);
    unlink(path);
    rmdir(folder);
}

static void test_command(void **state)
{
    fixture *f = *state;
    assert_int_equal(COMMAND(f, "one", "--batch", "32", "-j4", "-v",
                             "--learning-rate=0.2", "--no-shuffle", "two", "--set",
                             "run.note=a=b", "--set=run.timeout=2min", "-m", "1G", "-",
                             "--", "--batch"),
                     STINT_OK);
    assert_int_equal(f->s.batch, 32);
    assert_int_equal(f->s.threads, 4);
    assert_true(f->s.verbose);
    assert_true(f->s.rate == 0.2);
    assert_false(f->s.shuffle);
    assert_string_equal(f->s.note, "a=b");
    assert_true(f->s.timeout == 120);
    assert_int_equal(f->s.memory, (size_t)1 << 30);
    assert_int_equal(f->operand_count, 4);
    assert_string_equal(f->operands[0], "one");
    assert_string_equal(f->operands[3], "--batch");
    assert_false(f->help);
    assert_int_equal(COMMAND(f, "-vh", "--shuffle=true", "-d", "-"), STINT_OK);
    assert_true(f->help);
    assert_true(f->s.shuffle);
    assert_string_equal(f->s.data, "-");
    assert_int_equal(COMMAND(f, "--help"), STINT_OK);
    assert_true(f->help);
}

static void test_command_complaints(void **state)
{
    fixture *f = *state;
    CHECK_WRONG(f, "unknown flag --bacth; did you mean --batch?", "--bacth", "3");
    CHECK_WRONG(f, "did you mean --learning-rate?", "--learnig_rate=3");
    CHECK_WRONG(f, "write --set run.note=VALUE", "--note", "x");
    CHECK_WRONG(f, "--help lists all flags", "--zzzzzzzz");
    CHECK_WRONG(f, "unknown flag -z", "-z");
    CHECK_WRONG(f, "--batch: needs a value", "--batch");
    CHECK_WRONG(f, "--batch: needs a value", "--batch", "--verbose");
    CHECK_WRONG(f, "-j: needs a value", "-j");
    CHECK_WRONG(f, "-j: 'x' is no whole number", "-jx");
    CHECK_WRONG(f, "is no switch", "--no-batch");
    CHECK_WRONG(f, "takes no value", "--no-verbose=1");
    CHECK_WRONG(f, "section.key=value", "--set", "batch=3");
    CHECK_WRONG(f, "section.key=value", "--set", "train.batch");
    CHECK_WRONG(f, "--set: needs a value", "--set");
    CHECK_WRONG(f, "unknown section [trian]; did you mean [train]?", "--set",
                "trian.batch=3");
    CHECK_WRONG(f, "did you mean 'batch'?", "--set", "train.bach=3");
    CHECK_WRONG(f, "--set train.batch: 0 is out of range", "--set", "train.batch=0");
    assert_int_equal(COMMAND(f, "--bacth", "--batch=0", "--set", "x"), STINT_E_USAGE);
    assert_string_equal(stint_last_error(),
                        "unknown flag --bacth; did you mean --batch?\n"
                        "--batch: 0 is out of range, must be from 1 to 65536\n"
                        "--set: 'x' is not of the form section.key=value");
}

static void keep_log(void *user, stint_log_level level, const char *text)
{
    (void)level;
    sti_text_printf(user, "%s\n", text);
}

static void test_environment(void **state)
{
    fixture *f = *state;
    sti_text log = {0};
    stint_set_log(keep_log, &log);
    setenv("STINT_BATCH", "16", 1);
    setenv("STINT_TRAIN_WARMUP", "5", 1);
    setenv("STINT_RUN_NOTE", "hello", 1);
    setenv("STINT_MEMORY", "", 1);
    setenv("STINT_THREAD", "2", 1);
    setenv("STINT_NUM_THREADS", "2", 1);
    setenv("STINT_HOME", "/", 1);
    setenv("STINT_SLEPS", "1", 1);
    setenv("STINT_NOTHING", "1", 1);
    static const char *const known[] = {"STINT_HOME", "STINT_NUM_THREADS",
                                        "STINT_SLEEPS", NULL};
    assert_int_equal(sti_options_read_environment(&f->set, known), STINT_OK);
    stint_set_log(NULL, NULL);
    assert_int_equal(f->s.batch, 16);
    assert_int_equal(f->s.warmup, 5);
    assert_string_equal(f->s.note, "hello");
    assert_non_null(strstr(log.data, "unknown environment variable STINT_THREAD is "
                                     "ignored; did you mean STINT_THREADS?"));
    assert_non_null(strstr(log.data, "unknown environment variable STINT_SLEPS is "
                                     "ignored; did you mean STINT_SLEEPS?"));
    assert_non_null(
        strstr(log.data, "unknown environment variable STINT_NOTHING is ignored\n"));
    assert_null(strstr(log.data, "STINT_HOME"));
    assert_null(strstr(log.data, "NUM_THREADS"));
    setenv("STINT_BATCH", "none", 1);
    assert_int_equal(sti_options_read_environment(&f->set, NULL), STINT_E_USAGE);
    assert_string_equal(
        stint_last_error(),
        "STINT_BATCH: 'none' is no whole number; write for example 128");
    static const char *const names[] = {
        "STINT_BATCH",  "STINT_TRAIN_WARMUP", "STINT_RUN_NOTE",
        "STINT_MEMORY", "STINT_THREAD",       "STINT_NUM_THREADS",
        "STINT_HOME",   "STINT_SLEPS",        "STINT_NOTHING"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    sti_text_fini(&log);
}

/* The order of reading does not matter: the stronger source wins. */
static void test_precedence(void **state)
{
    fixture *f = *state;
    assert_int_equal(COMMAND(f, "--batch=1"), STINT_OK);
    setenv("STINT_BATCH", "2", 1);
    setenv("STINT_LEARNING_RATE", "2", 1);
    assert_int_equal(sti_options_read_environment(&f->set, NULL), STINT_OK);
    unsetenv("STINT_BATCH");
    unsetenv("STINT_LEARNING_RATE");
    assert_int_equal(parse(f, "[train]\nbatch = 3\nlearning_rate = 3\nwarmup = 3\n"),
                     STINT_OK);
    assert_int_equal(f->s.batch, 1);
    assert_true(f->s.rate == 2);
    assert_int_equal(f->s.warmup, 3);
    assert_int_equal(f->origin[2], STI_FROM_COMMAND);
    assert_int_equal(f->origin[0], STI_FROM_DEFAULT);
    /* A wrong value is told even where a stronger one hides it. */
    assert_int_equal(parse(f, "[train]\nbatch = 0\n"), STINT_E_USAGE);
}

static void test_write_ini_reads_back(void **state)
{
    fixture *f = *state, *g = NULL;
    assert_int_equal(COMMAND(f, "--path=/images # 1", "--optimiser=adam",
                             "--memory=1536K", "--learning-rate=0.3333333333333333",
                             "--set", "run.note= \"a\" ; b\\", "--set",
                             "train.tags=small,fast"),
                     STINT_OK);
    sti_text text = {0}, again = {0};
    sti_options_write_ini(&f->set, &text);
    assert_false(text.failed);
    assert_int_equal(set_up((void **)&g), 0);
    assert_int_equal(parse(g, text.data), STINT_OK);
    assert_string_equal(g->s.data, f->s.data);
    assert_string_equal(g->s.note, f->s.note);
    assert_string_equal(g->s.tags, "small,fast");
    assert_true(g->s.rate == f->s.rate);
    assert_int_equal(g->s.memory, 1536 << 10);
    assert_int_equal(g->s.optimiser, 1);
    assert_int_equal(g->s.warmup, 0); /* has no default, was not written */
    sti_options_write_ini(&g->set, &again);
    assert_string_equal(again.data, text.data);
    assert_null(strstr(text.data, "threads"));
    sti_text_fini(&text);
    sti_text_fini(&again);
    tear_down((void **)&g);
}

static void test_write_ini_text(void **state)
{
    fixture *f = *state;
    sti_text text = {0};
    sti_options_write_ini(&f->set, &text);
    assert_string_equal(text.data, "[data]\nshuffle = true\n\n"
                                   "[train]\nbatch = 128\noptimiser = sgd\n"
                                   "learning_rate = 0.1\n\n"
                                   "[run]\nmemory = auto\ntimeout = 3600s\n");
    sti_text_fini(&text);
}

static void test_help(void **state)
{
    (void)state;
    sti_text text = {0};
    sti_options_write_help(rows, ROWS, 72, &text);
    assert_non_null(strstr(text.data, "  -b, --batch N"));
    assert_non_null(strstr(text.data, "--[no-]shuffle"));
    assert_non_null(strstr(text.data, "--learning-rate X"));
    assert_non_null(strstr(text.data, "update rule: sgd, adam or adamw (default sgd)"));
    assert_null(strstr(text.data, "--note"));
    assert_non_null(strstr(text.data, "--set SECTION.KEY=VALUE"));
    assert_non_null(strstr(text.data, "-h, --help"));
    sti_text narrow = {0};
    sti_options_write_help(rows, ROWS, 40, &narrow);
    for (char *line = strtok(narrow.data, "\n"); line; line = strtok(NULL, "\n"))
        assert_true(strlen(line) <= 40);
    sti_text_fini(&text);
    sti_text_fini(&narrow);
}

static void test_other_writers(void **state)
{
    (void)state;
    sti_text text = {0};
    sti_options_write_man(rows, ROWS, &text);
    assert_non_null(strstr(text.data,
                           ".TP\n\\fB\\-b\\fR, \\fB\\-\\-batch\\fR \\fIN\\fR\n"
                           "images a step (default 128).\n"));
    assert_non_null(strstr(text.data, "\\-\\-learning\\-rate"));
    sti_text_fini(&text);
    sti_options_write_markdown(rows, ROWS, &text);
    assert_non_null(strstr(text.data, "## `[train]`"));
    assert_non_null(strstr(text.data,
                           "| `batch` | `128` | whole number, from 1 to 65536 | "
                           "images a step (`--batch`) |\n"));
    assert_non_null(strstr(text.data, "free words \\| kept"));
    assert_null(strstr(text.data, "threads"));
    sti_text_fini(&text);
}

static stint_status use_everything(fixture *f)
{
    stint_status st = sti_options_default(&f->set);
    if (st == STINT_OK)
        st = COMMAND(f, "word", "--path=a", "--set", "train.tags=fast,small");
    if (st == STINT_OK)
        st = parse(f, "[data]\npath = b\n[train]\ntags = exact\n[run]\nnote = \"x\"\n");
    return st;
}

/* Wrong input without memory is told as one or the other, never lost. */
static stint_status complain_everything(fixture *f)
{
    stint_status st = parse(f, "[trian]\nbacth = 3\noptimiser = x\nbatch = 0\n");
    return st == STINT_E_USAGE ? STINT_OK : st;
}

static void check_every_failure(fixture *f, stint_status (*use)(fixture *))
{
    for (int nth = 1;; nth++) {
        sti_alloc_fail_nth(nth);
        stint_status st = use(f);
        sti_alloc_fail_nth(0);
        if (st == STINT_OK && nth > 12)
            break;
        if (st != STINT_OK)
            assert_int_equal(st, STINT_E_MEMORY);
        assert_true(nth < 500);
    }
}

static void test_without_memory(void **state)
{
    fixture *f = *state;
    check_every_failure(f, use_everything);
    check_every_failure(f, complain_everything);
    sti_text text = {0};
    sti_alloc_fail_nth(1);
    sti_options_write_ini(&f->set, &text);
    assert_true(text.failed);
    sti_text_fini(&text);
    sti_alloc_fail_nth(3);
    sti_options_write_markdown(rows, ROWS, &text);
    assert_true(text.failed);
    sti_text_fini(&text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_defaults),
        TEST(test_recipe),
        TEST(test_recipe_values),
        TEST(test_recipe_long_line),
        TEST(test_recipe_complaints),
        TEST(test_recipe_value_complaints),
        TEST(test_all_complaints_at_once),
        TEST(test_endless_complaints),
        TEST(test_read_file),
        TEST(test_command),
        TEST(test_command_complaints),
        TEST(test_environment),
        TEST(test_precedence),
        TEST(test_write_ini_reads_back),
        TEST(test_write_ini_text),
        TEST(test_help),
        TEST(test_other_writers),
        TEST(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
