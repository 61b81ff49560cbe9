#include "serve/served.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/pages.h"

/* ---- models ---- */

static sti_network *network_of(const sti_served *s, int size, int step)
{
    return &s->network[size * s->steps + step];
}

/* Those that keep what the network of one image does share its block. Of larger batches
 * filters and panels are a small part, so the others keep nothing. */
static stint_status plan(const sti_served *s, sti_network *n, int threads)
{
    const sti_network *first = network_of(s, 0, 0);
    sti_network_keep(n, s->keeps);
    const stint_status st = sti_network_plan(n, threads);
    if (st != STINT_OK || !s->keeps || n == first ||
        sti_plan_keeps_alike(first->plan, n->plan))
        return st;
    sti_network_keep(n, false);
    return sti_network_plan(n, threads);
}

static stint_status build(sti_served *s, const sti_partition_kind *kind)
{
    const sti_network_desc desc = sti_model_network_in_use(s->file);
    stint_status st = STINT_OK;
    for (int k = 0; k < s->sizes && st == STINT_OK; k++)
        for (int i = 0; i < s->steps && st == STINT_OK; i++) {
            sti_network *n = network_of(s, k, i);
            st = sti_network_build(&desc, STINT_EVAL, s->step[i], n);
            if (st == STINT_OK)
                st = plan(s, n, kind[k].threads);
            /* All share one block of weights. */
            if (st == STINT_OK)
                st = sti_network_agree(network_of(s, 0, 0), n);
        }
    return st;
}

/* Powers of two; of images, where what is empty of a batch is computed like the rest,
 * what lies in the middle of them as well. */
static void lay_ladder(sti_served *s, int most, bool fine)
{
    for (int b = 1; b < most; b *= 2) {
        s->step[s->steps++] = b;
        if (fine && b > 1 && b + b / 2 < most)
            s->step[s->steps++] = b + b / 2;
    }
    s->step[s->steps++] = most;
}

static stint_status open_text(sti_served *s, int batch_most, int threads)
{
    const stint_status st = sti_served_text_open(
        s->path, s->name, batch_most < STI_TEXTS_MOST ? batch_most : STI_TEXTS_MOST,
        threads, &s->text);
    lay_ladder(s, STI_DECODER_ROWS, false);
    return st;
}

stint_status sti_served_open(const char *path, const char *name, int batch_most,
                             const sti_partition_kind *kind, int sizes, bool keeps,
                             sti_served *served_out)
{
    sti_served *s = served_out;
    stint_status st;
    *s = (sti_served){.path = path, .sizes = sizes, .keeps = keeps};
    snprintf(s->name, sizeof s->name, "%s", name);
    if (sti_path_is_dir(path) && sti_hf_folder_is(path))
        return open_text(s, batch_most, kind[sizes - 1].threads);
    STI_TRY(sti_model_open_for("model", path, &s->file));
    const sti_network_desc *net = &s->file->network;
    if (net->context) {
        stint_model_close(s->file);
        s->file = NULL;
        return open_text(s, batch_most, kind[sizes - 1].threads);
    }
    if (net->field.coordinates > 0) {
        st = sti_fail(STINT_E_UNSUPPORTED,
                      "%s: a field; those are not served, `stint field eval` asks it "
                      "for values",
                      path);
        goto out;
    }
    s->height = net->height;
    s->width = net->width;
    s->channels = net->channels;
    s->classes = net->model.classes;
    lay_ladder(s, batch_most, true);
    s->network =
        sti_alloc_array((int64_t)sizes * s->steps, sizeof *s->network, "models");
    st = s->network ? build(s, kind) : STINT_E_MEMORY;
out:
    return st;
}

void sti_served_fini(sti_served *served)
{
    for (int i = 0; served->network && i < served->sizes * served->steps; i++)
        sti_network_fini(&served->network[i]);
    sti_free(served->network);
    sti_free(served->params);
    sti_free(served->states);
    sti_free(served->kept);
    stint_model_close(served->file);
    sti_served_text_destroy(served->text);
    *served = (sti_served){.steps = 0};
}

static size_t region(const sti_network *n, sti_region r)
{
    return STI_ALIGN_UP(n->plan->region_bytes[r], 64);
}

const char *sti_served_version(const sti_served *served)
{
    return served->text ? served->text->version : served->file->weights_sha256;
}

int sti_served_batch_most(const sti_served *served)
{
    return served->step[served->steps - 1];
}

size_t sti_served_weight_bytes(const sti_served *served)
{
    if (served->text)
        return served->text->sizes.total_bytes;
    const sti_network *n = network_of(served, 0, 0);
    return region(n, STI_REGION_PARAM) + region(n, STI_REGION_STATE) +
           region(n, STI_REGION_KEPT);
}

size_t sti_served_kept_bytes(const sti_served *served)
{
    return region(network_of(served, 0, 0), STI_REGION_KEPT);
}

static size_t work_bytes(const sti_network *n)
{
    return region(n, STI_REGION_RESULT) + region(n, STI_REGION_FETCH) +
           region(n, STI_REGION_ARENA);
}

/* Where a run of one of its networks finds all, working in `work` [work_bytes]. */
static void lend(const sti_served *s, const sti_network *n, char *work,
                 sti_exec_memory *memory)
{
    const size_t results = region(n, STI_REGION_RESULT);
    memory->region[STI_REGION_PARAM] = s->params;
    memory->region[STI_REGION_STATE] = s->states;
    memory->region[STI_REGION_KEPT] = s->kept;
    memory->region[STI_REGION_RESULT] = work;
    memory->region[STI_REGION_FETCH] = work + results;
    memory->region[STI_REGION_ARENA] = work + results + region(n, STI_REGION_FETCH);
}

size_t sti_served_work_bytes(const sti_served *served, int size)
{
    size_t most = 0;
    for (int i = 0; i < served->steps && !served->text; i++) {
        const size_t bytes = work_bytes(network_of(served, size, i));
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* By an executor of the smallest network, on memory of which it touches its scratch
 * alone. */
static stint_status make_kept(const sti_served *s)
{
    const sti_network *n = network_of(s, 0, 0);
    sti_exec_memory memory = {{NULL}};
    sti_exec *exec = NULL;
    char *work = sti_pages_alloc(work_bytes(n), "partition");
    if (!work)
        return STINT_E_MEMORY;
    lend(s, n, work, &memory);
    const stint_status st = sti_exec_create(n->plan, &memory, &exec);
    if (st == STINT_OK)
        sti_exec_run_kept(exec, &(sti_team){n->plan->threads});
    sti_exec_destroy(exec);
    sti_free(work);
    return st;
}

stint_status sti_served_load(sti_served *served)
{
    if (served->text)
        return sti_served_text_load(served->text);
    const sti_network *n = network_of(served, 0, 0);
    if (!served->params)
        served->params = sti_pages_alloc(region(n, STI_REGION_PARAM), "parameters");
    if (!served->states)
        served->states = sti_pages_alloc(region(n, STI_REGION_STATE), "states");
    if (!served->kept)
        served->kept = sti_pages_alloc(region(n, STI_REGION_KEPT), "kept constants");
    if (!served->params || !served->states || !served->kept)
        return STINT_E_MEMORY;
    const stint_status st =
        sti_model_load(served->file, n, served->params, served->states);
    return st == STINT_OK && n->plan->once_nodes > 0 ? make_kept(served) : st;
}

void sti_served_unload(sti_served *served)
{
    if (served->text) {
        sti_served_text_unload(served->text);
        return;
    }
    const sti_network *n = network_of(served, 0, 0);
    if (served->params)
        sti_pages_forget(served->params, region(n, STI_REGION_PARAM));
    if (served->states)
        sti_pages_forget(served->states, region(n, STI_REGION_STATE));
    if (served->kept)
        sti_pages_forget(served->kept, region(n, STI_REGION_KEPT));
}

void sti_served_take_file(sti_served *served, sti_served *fresh)
{
    stint_model_file *old = served->file;
    served->file = fresh->file;
    fresh->file = old;
}

void sti_served_take_weights(sti_served *served, sti_served *fresh)
{
    const sti_network *n = network_of(served, 0, 0);
    memcpy(served->params, fresh->params, region(n, STI_REGION_PARAM));
    memcpy(served->states, fresh->states, region(n, STI_REGION_STATE));
    memcpy(served->kept, fresh->kept, region(n, STI_REGION_KEPT));
    sti_served_take_file(served, fresh);
}

int sti_served_step(const sti_served *served, int images)
{
    int i = 0;
    while (served->step[i] < images)
        i++;
    return i;
}

/* ---- partitions ---- */

struct sti_runner {
    sti_served *models;
    int count, size;
    sti_team team;
    sti_exec *exec[STI_SERVE_MODELS][STI_SERVE_LADDER];
    void *work;
};

/* Runs of one partition follow each other, so they work in one block. */
static stint_status make_exec(sti_runner *r, int model, int step)
{
    const sti_served *s = &r->models[model];
    const sti_network *n = network_of(s, r->size, step);
    sti_exec_memory memory = {{NULL}};
    lend(s, n, r->work, &memory);
    return sti_exec_create(n->plan, &memory, &r->exec[model][step]);
}

stint_status sti_runner_create(sti_served *models, int count, int size, int threads,
                               sti_runner **runner_out)
{
    size_t bytes = 0;
    stint_status st = STINT_E_MEMORY;
    sti_runner *r = sti_alloc(sizeof *r, "partition");
    if (!r)
        return STINT_E_MEMORY;
    *r =
        (sti_runner){.models = models, .count = count, .size = size, .team = {threads}};
    for (int m = 0; m < count; m++) {
        const size_t own = sti_served_work_bytes(&models[m], size);
        bytes = own > bytes ? own : bytes;
    }
    r->work = sti_alloc(bytes, "partition");
    if (r->work)
        st = STINT_OK;
    for (int m = 0; m < count; m++)
        for (int i = 0; i < models[m].steps && !models[m].text && st == STINT_OK; i++)
            st = make_exec(r, m, i);
    if (st == STINT_OK)
        *runner_out = r;
    else
        sti_runner_destroy(r);
    return st;
}

void sti_runner_destroy(sti_runner *runner)
{
    if (!runner)
        return;
    for (int m = 0; m < runner->count; m++)
        for (int i = 0; i < STI_SERVE_LADDER; i++)
            sti_exec_destroy(runner->exec[m][i]);
    sti_free(runner->work);
    sti_free(runner);
}

typedef struct run_of {
    const sti_served *model;
    const sti_network *network;
    sti_exec *exec;
    int step; /* images of the network */
} run_of;

static run_of run_for(const sti_runner *r, int model, int images)
{
    const sti_served *s = &r->models[model];
    const int i = sti_served_step(s, images);
    return (run_of){s, network_of(s, r->size, i), r->exec[model][i], s->step[i]};
}

float *sti_runner_input(sti_runner *runner, int model, int images)
{
    const run_of run = run_for(runner, model, images);
    const int64_t each = run.model->height * run.model->width * run.model->channels;
    float *x = sti_exec_address(run.exec, run.network->input);
    int32_t *labels = sti_exec_address(run.exec, run.network->labels);
    memset(x + each * images, 0, (size_t)(each * (run.step - images)) * sizeof *x);
    for (int i = 0; i < run.step; i++)
        labels[i] = -1;
    return x;
}

void sti_runner_run(sti_runner *runner, int model, int images)
{
    const run_of run = run_for(runner, model, images);
    sti_exec_run(run.exec, &runner->team, &(sti_step){.seed = 0});
}

const float *sti_runner_probabilities(const sti_runner *runner, int model, int images)
{
    const run_of run = run_for(runner, model, images);
    return sti_exec_address(run.exec, run.network->probabilities);
}

const float *sti_runner_logits(const sti_runner *runner, int model, int images)
{
    const run_of run = run_for(runner, model, images);
    return sti_exec_address(run.exec, run.network->logits);
}
