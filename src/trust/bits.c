/* The determinism matrix: one recipe run in every way that must not matter, and the
 * hashes of its state held against each other. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/stop.h"
#include "base/units.h"
#include "model/model_section.h"
#include "play/agent_section.h"
#include "play/env_section.h"
#include "stint/model.h"
#include "stint/trust.h"
#include "store/checkpoint_file.h"
#include "train/train_section.h"
#include "trust/matrix.h"
#include "trust/state_log.h"

enum { ROWS_MAX = 64, RANKS_MAX = 3 };

typedef enum bits_memory { MEMORY_FREE, MEMORY_PLENTY, MEMORY_LEAST } bits_memory;

/* A way to run. */
typedef struct bits_row {
    const char *name, *folder;
    int threads;
    int64_t lanes; /* 0: chosen */
    int ranks;     /* processes; 0: one, and no network */
    const char *isa;
    bits_memory memory;
    int quarter;       /* with MEMORY_LEAST: so many quarters of the way to the peak */
    size_t more_bytes; /* likewise: beside the least */
    bool sleeps, restart;
    const char *setting;
} bits_row;

typedef struct bits_work {
    const stint_bits_desc *desc;
    sti_matrix matrix;
    bits_row row[ROWS_MAX];
    int rows;
    size_t least, peak;   /* memory that a run can do with, and would take */
    int64_t restart_step; /* 1 .. steps - 1 */
} bits_work;

/* ---- the rows ---- */

static void add_row(bits_work *w, bits_row row)
{
    if (w->rows < ROWS_MAX)
        w->row[w->rows++] = row;
}

static void add_isas(bits_work *w)
{
    for (int isa = 0; isa < STI_ISA_COUNT; isa++)
        if (sti_isa_has((sti_isa)isa) && (isa != STI_ISA_REF || w->desc->reference_isa))
            add_row(w, (bits_row){.name = sti_arena_printf(w->matrix.arena,
                                                           "instruction set %s",
                                                           sti_isa_name((sti_isa)isa)),
                                  .folder = sti_isa_name((sti_isa)isa),
                                  .threads = 2,
                                  .isa = sti_isa_name((sti_isa)isa)});
}

/* A table in few rows of memory, whichever these are and however the others come. */
static void add_table_rows(bits_work *w)
{
    static const char *const policies[] = {
        "embedding.policy=future", "embedding.policy=static", "embedding.policy=lfu",
        "embedding.policy=lru"};
    static const char *const ways[] = {"embedding.io=uring", "embedding.io=threads",
                                       "embedding.io=mmap"};
    static const char *const quarters[] = {"a quarter more memory than the least",
                                           "half way to all rows in memory",
                                           "three quarters of the way"};
    static const char *const folders[] = {"quarter-1", "quarter-2", "quarter-3"};
    for (int i = 0; i < 3; i++)
        add_row(w, (bits_row){.name = quarters[i],
                              .folder = folders[i],
                              .threads = 2,
                              .memory = MEMORY_LEAST,
                              .quarter = i + 1});
    for (int i = 0; i < 4; i++)
        add_row(w, (bits_row){.name = policies[i],
                              .folder = policies[i],
                              .threads = 2,
                              .memory = MEMORY_LEAST,
                              .setting = policies[i]});
    /* Threads that wait for the disk have stacks of their own. */
    for (int i = 0; i < 3; i++)
        add_row(w, (bits_row){.name = ways[i],
                              .folder = ways[i],
                              .threads = 2,
                              .memory = MEMORY_LEAST,
                              .more_bytes = (size_t)3 << 20,
                              .setting = ways[i]});
}

static stint_status add_rows(bits_work *w)
{
    const int64_t shards = sti_train_section_of(w->matrix.recipe)->shards;
    add_row(w, (bits_row){.name = "1 thread", .folder = "threads-1", .threads = 1});
    add_row(w, (bits_row){.name = "2 threads", .folder = "threads-2", .threads = 2});
    add_row(w, (bits_row){.name = "3 threads", .folder = "threads-3", .threads = 3});
    for (int64_t lanes = 1; lanes <= 3 && lanes <= shards; lanes++)
        add_row(w, (bits_row){.name = sti_arena_printf(w->matrix.arena,
                                                       "3 threads, %" PRId64 " lane%s",
                                                       lanes, sti_s(lanes)),
                              .folder = sti_arena_printf(w->matrix.arena,
                                                         "lanes-%" PRId64, lanes),
                              .threads = 3,
                              .lanes = lanes});
    add_isas(w);
    add_row(w, (bits_row){.name = "generous memory budget",
                          .folder = "memory-plenty",
                          .threads = 3,
                          .memory = MEMORY_PLENTY});
    add_row(w, (bits_row){.name = "smallest memory budget",
                          .folder = "memory-least",
                          .threads = 3,
                          .memory = MEMORY_LEAST});
    add_row(w, (bits_row){.name = "sleeping workers",
                          .folder = "sleeps",
                          .threads = 3,
                          .sleeps = true});
    add_row(w, (bits_row){.name = "sleeping workers, 1 lane",
                          .folder = "sleeps-lane",
                          .threads = 3,
                          .lanes = 1,
                          .sleeps = true});
    add_row(w, (bits_row){.name = sti_arena_printf(
                              w->matrix.arena, "killed after step %" PRId64 ", resumed",
                              w->restart_step),
                          .folder = "restart",
                          .threads = 2,
                          .restart = true});
    for (int ranks = 2; ranks <= RANKS_MAX && ranks <= shards; ranks++)
        add_row(w, (bits_row){
                       .name = sti_arena_printf(w->matrix.arena, "%d processes", ranks),
                       .folder = sti_arena_printf(w->matrix.arena, "ranks-%d", ranks),
                       .threads = 1,
                       .ranks = ranks});
    if (stint_model_is_clicks(sti_recipe_network(w->matrix.recipe)))
        add_table_rows(w);
    for (int64_t i = 0; i < w->desc->withs; i++)
        add_row(w, (bits_row){.name = w->desc->with[i],
                              .folder = sti_arena_printf(w->matrix.arena,
                                                         "with-%" PRId64, i + 1),
                              .threads = 2,
                              .setting = w->desc->with[i]});
    for (int i = 0; i < w->rows; i++)
        if (!w->row[i].name || !w->row[i].folder)
            return STINT_E_MEMORY;
    return STINT_OK;
}

/* ---- a run ---- */

static sti_command *command_of(bits_work *w, const bits_row *row)
{
    const stint_bits_desc *d = w->desc;
    sti_command *c = sti_matrix_command(&w->matrix, row->folder, row->threads);
    if (!c)
        return NULL;
    sti_command_add(c, "--steps=%" PRId64, d->steps);
    sti_command_add(c, "--set=run.hash_every=%" PRId64, d->hash_every);
    sti_command_add(c, "--set=train.eval_every=0");
    sti_command_add(c, "--set=run.lanes=%" PRId64, row->lanes);
    if (row->memory == MEMORY_PLENTY)
        sti_command_add(c, "--memory=%zu", 8 * w->least + ((size_t)1 << 30));
    if (row->memory == MEMORY_LEAST)
        sti_command_add(c, "--memory=%zu",
                        w->least + STI_MATRIX_SLACK_BYTES + row->more_bytes +
                            (w->peak > w->least ? w->peak - w->least : 0) / 4 *
                                (size_t)row->quarter);
    if (row->restart) {
        sti_command_add(c, "--set=run.checkpoint_every=%" PRId64, w->restart_step);
        sti_command_add(c, "--set=run.keep=1000000");
    }
    if (row->setting)
        sti_command_add(c, "--set=%s", row->setting);
    if (row->isa)
        sti_command_set_variable(c, "STINT_ISA", row->isa);
    if (row->sleeps) {
        char seed[24];
        snprintf(seed, sizeof seed, "%" PRIu64, d->seed ? d->seed : 1);
        sti_command_set_variable(c, "STINT_SLEEPS", seed);
    }
    return c->failed ? NULL : c;
}

static char *checkpoint_path(bits_work *w, const char *folder, const char *name)
{
    return sti_arena_printf(w->matrix.arena, "%s/%s/checkpoints/%s", w->matrix.out,
                            folder, name);
}

/* Whatever the killed run did after the step that is to be resumed from goes. */
static stint_status forget_later(bits_work *w, const char *folder, const char *keep)
{
    char **names;
    int64_t count;
    const char *checkpoints = checkpoint_path(w, folder, "");
    stint_status st =
        checkpoints ? sti_checkpoint_list(w->matrix.arena, checkpoints, &names, &count)
                    : STINT_E_MEMORY;
    for (int64_t i = 0; st == STINT_OK && i < count; i++) {
        char *path = checkpoint_path(w, folder, names[i]);
        if (!path)
            return STINT_E_MEMORY;
        if (strcmp(names[i], keep) > 0 && unlink(path) != 0)
            return sti_fail_errno("%s: cannot be removed", path);
    }
    return st;
}

/* Until its checkpoint of the step is there; then it is killed, if it still runs. */
static stint_status run_and_kill(const sti_command *c, const char *checkpoint)
{
    sti_child child;
    stint_status st = sti_child_start(c, &child);
    bool there = false;
    while (st == STINT_OK && !sti_child_poll(&child, &st)) {
        there = there || sti_path_is_file(checkpoint);
        if (there && child.pid > 0) {
            kill(child.pid, SIGKILL);
            sti_child_wait(&child); /* ends by that signal */
            return sti_stop_asked() == STINT_OK ? STINT_OK
                                                : sti_fail(sti_stop_asked(), "stopped");
        }
        sti_child_pause();
    }
    return st;
}

static stint_status run_restarted(bits_work *w, const bits_row *row, sti_command *c)
{
    char name[64];
    snprintf(name, sizeof name, "step-%08" PRId64 ".safetensors", w->restart_step);
    const char *checkpoint = checkpoint_path(w, row->folder, name);
    sti_command *again = checkpoint ? command_of(w, row) : NULL;
    if (!again)
        return STINT_E_MEMORY;
    sti_command_add(again, "--resume");
    stint_status st = run_and_kill(c, checkpoint);
    if (st == STINT_OK)
        st = forget_later(w, row->folder, name);
    return st == STINT_OK ? sti_child_run(again) : st;
}

/* The failure of the lowest rank is what is told. */
static stint_status run_ranks(bits_work *w, const bits_row *row)
{
    sti_child child[RANKS_MAX] = {{.pid = 0}};
    stint_status st = STINT_OK, ended = STINT_OK;
    /* No port: whichever were free now could be another's when rank 0 listens. */
    const int64_t now = sti_clock_ns();
    for (int rank = 0; rank < row->ranks && st == STINT_OK; rank++) {
        sti_command *c = command_of(w, row);
        if (!c)
            st = sti_fail(STINT_E_MEMORY, "out of memory for a command line");
        if (st != STINT_OK)
            break;
        sti_command_add(c, "--force");
        sti_command_add(c, "--net-root=@trust-%ld-%" PRId64, (long)getpid(), now);
        sti_command_add(c, "--net-ranks=%d", row->ranks);
        sti_command_add(c, "--net-rank=%d", rank);
        c->stderr_path = sti_arena_printf(w->matrix.arena, "%s/%s-%d.txt",
                                          w->matrix.out, row->folder, rank);
        st = sti_child_start(c, &child[rank]);
    }
    for (int rank = row->ranks - 1; rank >= 0; rank--)
        if (child[rank].pid) {
            if (st != STINT_OK)
                kill(child[rank].pid, SIGTERM);
            stint_status one = sti_child_wait(&child[rank]);
            ended = one != STINT_OK ? one : ended;
        }
    return st != STINT_OK ? st : ended;
}

static stint_status run_row(bits_work *w, const bits_row *row)
{
    sti_command *c = command_of(w, row);
    if (!c)
        return sti_fail(STINT_E_MEMORY, "out of memory for a command line");
    sti_command_add(c, "--force");
    stint_status st = row->restart ? run_restarted(w, row, c)
                      : row->ranks ? run_ranks(w, row)
                                   : sti_child_run(c);
    return st == STINT_OK ? st : sti_fail_context(st, "%s", row->name);
}

/* ---- what came out ---- */

static stint_status read_log(bits_work *w, const bits_row *row, sti_arena *arena,
                             sti_state_log *log)
{
    char *path = sti_arena_printf(arena, "%s/%s/log.jsonl", w->matrix.out, row->folder);
    stint_status st = path ? sti_state_log_read(path, arena, log) : STINT_E_MEMORY;
    if (st == STINT_OK && (log->lines == 0 || !log->ended))
        st = sti_fail(STINT_E_BUG, "%s: the run left no hashes", path);
    return st;
}

static stint_status judge_row(bits_work *w, int i, const sti_state_log *first,
                              stint_bits_run *run)
{
    const bits_row *row = &w->row[i];
    sti_arena *arena = sti_arena_create("hashes");
    sti_state_log log;
    const char *tensor = NULL;
    stint_status st = arena ? read_log(w, row, arena, &log) : STINT_E_MEMORY;
    if (st == STINT_OK) {
        *run = (stint_bits_run){.first_step = -1};
        snprintf(run->name, sizeof run->name, "%s", row->name);
        snprintf(run->folder, sizeof run->folder, "%s", row->folder);
        snprintf(run->sha256, sizeof run->sha256, "%s", log.line[log.lines - 1].sha256);
        run->same = !sti_state_log_part(first, &log, &run->first_step, &tensor) &&
                    log.lines == first->lines;
        snprintf(run->first_tensor, sizeof run->first_tensor, "%s",
                 tensor ? tensor : "");
    }
    sti_arena_destroy(arena);
    return st;
}

static void count_distinct(stint_bits_result *r)
{
    r->same = true;
    for (int64_t i = 0; i < r->runs; i++) {
        int64_t k = 0;
        while (strcmp(r->run[k].sha256, r->run[i].sha256) != 0)
            k++;
        r->distinct += k == i;
        r->same = r->same && r->run[i].same;
    }
}

static stint_status run_all(bits_work *w, stint_bits_result *out)
{
    sti_state_log first = {.lines = 0};
    stint_status st = STINT_OK;
    out->run = sti_alloc_array(w->rows, sizeof *out->run, "matrix");
    if (!out->run)
        return STINT_E_MEMORY;
    for (int i = 0; i < w->rows && st == STINT_OK; i++) {
        if (w->desc->progress)
            w->desc->progress(w->desc->user, w->row[i].name, i, w->rows);
        st = run_row(w, &w->row[i]);
        if (st == STINT_OK && i == 0)
            st = read_log(w, &w->row[0], w->matrix.arena, &first);
        if (st == STINT_OK)
            st = judge_row(w, i, &first, &out->run[i]);
        out->runs += st == STINT_OK;
    }
    out->steps = w->desc->steps;
    if (st == STINT_OK)
        count_distinct(out);
    return st;
}

/* A setting that no run would take is better known before the first. */
static stint_status check_settings(const stint_recipe *recipe, const stint_bits_desc *d)
{
    stint_recipe *copy = NULL;
    sti_text text = {0};
    stint_status st = sti_recipe_write(recipe, false, &text);
    if (st == STINT_OK)
        st = sti_recipe_parse(text.data, "recipe", &copy);
    for (int64_t i = 0; i < d->withs && st == STINT_OK; i++) {
        char key[128];
        const char *equals = strchr(d->with[i], '=');
        if (!equals || (size_t)(equals - d->with[i]) >= sizeof key)
            st = sti_fail(STINT_E_USAGE, "'%s' is not of the form section.key=value",
                          d->with[i]);
        if (st != STINT_OK)
            break;
        snprintf(key, sizeof key, "%.*s", (int)(equals - d->with[i]), d->with[i]);
        st = stint_recipe_set(copy, key, equals + 1);
    }
    stint_recipe_destroy(copy);
    sti_text_fini(&text);
    return st;
}

/* Numbers of an agent's recipe that a run would look for. */
static bool is_calibrated(const stint_recipe *recipe)
{
    const sti_agent_values *agent = sti_agent_section_of(recipe);
    return sti_env_section_of(recipe)->envs == 0 || agent->horizon == 0 ||
           agent->every == 0 || agent->groups == 0;
}

static stint_status check(const stint_recipe *recipe, const stint_bits_desc *d)
{
    stint_status st = stint_recipe_check(recipe);
    if (st == STINT_OK && sti_train_section_of(recipe)->batch == 0)
        st = sti_fail(STINT_E_USAGE,
                      "train.batch: auto makes a result depend on memory; give a "
                      "number of images");
    if (st == STINT_OK && sti_env_wanted(recipe) && is_calibrated(recipe))
        st = sti_fail(
            STINT_E_USAGE,
            "auto makes a result depend on the machine's speed; give env.envs, "
            "agent.horizon, agent.every and agent.groups");
    if (st == STINT_OK && (d->steps < 2 || d->hash_every < 1))
        st = sti_fail(STINT_E_USAGE,
                      "steps: %" PRId64 " leave no step to be killed after; give 2 or "
                      "more",
                      d->steps);
    return st == STINT_OK ? check_settings(recipe, d) : st;
}

stint_status stint_trust_bits(const stint_recipe *recipe, const stint_bits_desc *desc,
                              stint_bits_result *result_out)
{
    bits_work w = {.desc = desc, .matrix = {.lock_fd = -1}};
    uint32_t word[4];
    *result_out = (stint_bits_result){.runs = 0};
    stint_status st = check(recipe, desc);
    if (st == STINT_OK)
        st = sti_matrix_open(&w.matrix, recipe, desc->program, desc->out);
    if (st == STINT_OK)
        st = sti_matrix_write_recipe(&w.matrix);
    if (st == STINT_OK)
        st = sti_matrix_plan(&w.matrix, 3, &w.peak, &w.least);
    if (st == STINT_OK) {
        sti_random4(desc->seed, STI_STREAM_NOISE, 0, 2, word);
        w.restart_step = 1 + (int64_t)(word[0] % (uint64_t)(desc->steps - 1));
        st = add_rows(&w);
    }
    if (st == STINT_OK)
        st = run_all(&w, result_out);
    sti_matrix_close(&w.matrix);
    sti_stop_clear();
    if (st != STINT_OK)
        stint_bits_fini(result_out);
    return st;
}

void stint_bits_fini(stint_bits_result *result)
{
    sti_free(result->run);
    *result = (stint_bits_result){0};
}
