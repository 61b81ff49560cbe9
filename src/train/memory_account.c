/* The memory of the whole process, part by part.
 *
 * What we allocate is known to the byte: blocks and arenas from the plans of both
 * networks, decoders and index from the data room. Of program and libraries the pages
 * that may be used are made resident and counted (base/program.h). The rest (stacks,
 * what malloc keeps between live blocks) cannot be asked for beforehand; those few
 * lines were measured and are named here. Every run of a recipe, planned or trained,
 * gets the same figure. */
#include "train/memory_account.h"

#include <string.h>

#include "base/memory.h"
#include "data/balanced_order.h"
#include "data/data_section.h"
#include "infer/evaluate.h"
#include "train/lora_merge.h"
#include "train/moments.h"
#include "train/run_section.h"
#include "train/shrink_recipe.h"

#define KIB ((size_t)1 << 10)

/* Libraries of which a run makes use; all of their code is made resident when the run
 * is planned (base/program.h), so that which parts a run happens to touch does not
 * matter. What other libraries have in memory by then is given back. */
static const char *const libraries[] = {"ld-",        "libc.", "libm.",
                                        "libnettle.", "libz.", NULL};
static const char *const image_libraries[] = {
    "ld-", "libc.", "libm.", "libnettle.", "libz.", "libturbojpeg.", "libpng", NULL};

/* With packed activations: tables of the error control. */
#define PACK_BYTES (128 * KIB)
/* What the search for rewrites leaves behind in the heap, and the copies of nodes. */
#define REWRITE_BYTES (128 * KIB)
/* Small blocks of the run itself: names, texts, lines of the log. */
#define HEAP_BYTES (40 * KIB)
/* Writing one file: its buffer. What the run keeps and writes about a value of the
 * graph: names, lines of headers and of the report. */
#define WRITER_BYTES (80 * KIB)
#define VALUE_BYTES  ((size_t)256)
/* Copying a graph: a value's row, its name, its place in a table; a node's handles,
 * attributes and scope. */
#define COPIED_VALUE_BYTES ((size_t)240)
#define COPIED_NODE_BYTES  ((size_t)320)

/* The list of a projection's targets, and its words. */
#define PROJECTION_BYTES (128 * KIB)

/* Drawing the report: the state of a compressor, a page, mistakes being read. Measured:
 * up to 290 KiB. What it keeps of a class: its name, several times. */
#define REPORT_BYTES       (384 * KIB)
#define REPORT_CLASS_BYTES ((size_t)256)

/* Three pictures of a field and what it is drawn with. Measured: up to 400 KiB. */
#define REPORT_FIELD_BYTES (640 * KIB)

/* The thread of the communicator and its library; what it keeps of a peer. */
#define NET_BYTES      (320 * KIB)
#define NET_RANK_BYTES (8 * KIB)

static size_t data_bytes(const sti_setup *setup, int lanes)
{
    int workers = sti_lane_threads(setup->threads, lanes);
    const size_t order = (size_t)setup->inputs->train_count * sizeof(int32_t);
    if (setup->inputs->text || setup->inputs->field)
        return order + setup->inputs->index_bytes +
               (setup->inputs->test_count > 0
                    ? sti_evaluation_bytes(setup->inputs->test_count, 0,
                                           setup->train.images, lanes)
                    : 0) +
               (setup->inputs->validation_count > 0
                    ? sti_evaluation_bytes(setup->inputs->validation_count, 0,
                                           setup->train.images, lanes)
                    : 0);
    size_t bytes = sti_data_memory_bytes(setup->inputs->train_data, lanes, workers);
    if (setup->inputs->test_data)
        bytes += sti_data_memory_bytes(setup->inputs->test_data, lanes, workers) +
                 sti_evaluation_bytes(setup->inputs->test_count,
                                      (int32_t)setup->inputs->network.model.classes,
                                      setup->train.images, lanes);
    if (setup->inputs->validation_data)
        bytes += sti_data_memory_bytes(setup->inputs->validation_data, 0, 0) +
                 sti_evaluation_bytes(setup->inputs->validation_count,
                                      (int32_t)setup->inputs->network.model.classes,
                                      setup->train.images, lanes) +
                 (size_t)setup->inputs->validation_count *
                     sizeof(int32_t); /* of a reference */
    if (sti_data_section_of(setup->inputs->recipe)->sampling == STI_SAMPLING_BALANCED)
        bytes += sti_balanced_order_bytes(
            setup->inputs->train_count, (int32_t)setup->inputs->network.model.classes);
    return bytes + order; /* of an epoch */
}

/* By which blocks of the host are rounded up: commands differ by some KiB in what they
 * hold when they plan, and are to plan the same. */
#define HOST_GRAIN_BYTES ((size_t)192 << 10)

/* Blocks of the set-up so far without opened data, and of the host as a round number
 * without those of the communicator, which NET_RANK_BYTES are for. */
static size_t setup_blocks(const sti_setup *setup, size_t now)
{
    const size_t host = setup->host_bytes, own = host + setup->inputs->index_bytes;
    const size_t net = setup->comm ? sti_comm_block_bytes(setup->comm) : 0;
    return (host - net + HOST_GRAIN_BYTES - 1) / HOST_GRAIN_BYTES * HOST_GRAIN_BYTES +
           (now > own ? now - own : 0);
}

static size_t start_peak_bytes(const sti_setup *setup)
{
    return setup->comm ? sti_comm_start_peak_bytes(setup->comm) : 0;
}

size_t sti_memory_base(const sti_setup *setup)
{
    const char *format = setup->inputs->text ? "text"
                         : setup->inputs->field
                             ? "field"
                             : stint_data_describe(setup->inputs->train_data)->format;
    bool images = strcmp(format, "folder") == 0 || strcmp(format, "tar") == 0 ||
                  strcmp(format, "field") == 0;
    const size_t blocks = sti_alloc_now_bytes();
    const size_t shared = setup->comm ? sti_comm_shared_bytes(setup->comm) : 0;
    const size_t left =
        sti_run_section_of(setup->inputs->recipe)->searched ? STI_SEARCH_BYTES : 0;
    const sti_account_process process = {
        .libraries = images ? image_libraries : libraries,
        .apart_bytes = blocks + shared + left, /* which have lines of their own */
        .keeps_others = start_peak_bytes(setup) > 0};
    return setup_blocks(setup, blocks) + sti_account_process_bytes(&process);
}

/* What is run: the network's graph, or the copy with further nodes that its plan has.
 */
static const stint_graph *graph_of(const sti_network *network)
{
    return network->plan ? network->plan->graph : network->graph;
}

static size_t plan_bytes(const sti_network *network)
{
    const stint_graph *g = graph_of(network);
    if (!g)
        return 0;
    const size_t values = (size_t)sti_graph_value_count(g);
    const size_t nodes = (size_t)sti_graph_node_count(g);
    const bool own = network->plan && network->plan->own;
    return values * sizeof(sti_allocation) + nodes * 2 * sizeof(size_t) +
           (own ? values * COPIED_VALUE_BYTES + nodes * COPIED_NODE_BYTES : 0);
}

static size_t exec_bytes(const sti_network *network)
{
    const stint_graph *g = graph_of(network);
    return g ? (size_t)sti_graph_node_count(g) * STI_EXEC_NODE_BYTES : 0;
}

static size_t process_bytes(const sti_setup *setup, const sti_network *train,
                            bool rewritten, int lanes)
{
    size_t values = (size_t)sti_graph_value_count(train->graph) * VALUE_BYTES;
    size_t packs =
        (train->bounds >= 0 ? PACK_BYTES : 0) + (rewritten ? REWRITE_BYTES : 0);
    return setup->base_bytes + HEAP_BYTES + packs +
           (size_t)(setup->threads - 1) * STI_ACCOUNT_THREAD_BYTES + WRITER_BYTES +
           values + plan_bytes(train) + plan_bytes(&setup->eval) +
           (size_t)lanes * (exec_bytes(train) + exec_bytes(&setup->eval));
}

/* The lanes' arenas, cut by what lies in them at the peak of a training step. */
static void add_arenas(const sti_setup *setup, const sti_network *train,
                       const sti_step_engine_sizes *sizes, int lanes,
                       sti_account *account)
{
    const sti_plan *p = train->plan;
    size_t n = (size_t)lanes, saved = p->saved_bytes, input = p->input_bytes;
    if (saved + input > sizes->arena)
        input = 0;
    sti_account_add(account, "saved activations", "kept for the backward pass",
                    n * saved);
    sti_account_add(account, "workspace", "passing results and scratch",
                    n * (sizes->arena - saved - input + sizes->fetch));
    sti_account_add(account, "inputs",
                    setup->inputs->text    ? "tokens and labels of the shards at work"
                    : setup->inputs->field ? "points and values of the shards at work"
                                           : "images and labels of the shards at work",
                    n * input);
}

/* With batch = auto, in the process that looks for it; or where what is trained was. */
static void add_search(const sti_run_values *run, sti_account *account)
{
    if (!run->searched) {
        sti_account_raise(account, "gains", "once: steps that they were collected in",
                          run->tried_bytes);
        return;
    }
    sti_account_add(account, "search for the batch",
                    "what it leaves behind in the heap", STI_SEARCH_BYTES);
    sti_account_raise(account, "trying batches",
                      "once: larger ones than the one chosen", run->tried_bytes);
}

/* When the run's memory is free the report is drawn, which may take more than a small
 * network did: its images are decoded again, one after another. A field is drawn anew
 * from its model beside its picture. */
static void add_report(const sti_setup *setup, const sti_step_engine_sizes *sizes,
                       sti_account *account)
{
    const sti_inputs *in = setup->inputs;
    const size_t classes = !in->train_data ? 0 : (size_t)in->network.model.classes;
    const size_t images =
        in->test_data ? sti_data_memory_bytes(in->test_data, 1, 1) : 0;
    const size_t field =
        in->field ? sizes->params + in->index_bytes + REPORT_FIELD_BYTES : 0;
    sti_account_raise(account, "report", "once: drawn when all else is free",
                      setup->base_bytes + HEAP_BYTES + images + field + REPORT_BYTES +
                          classes * REPORT_CLASS_BYTES);
}

/* A small network takes less than MPI's libraries did before it. */
static void add_start(const sti_setup *setup, sti_account *account)
{
    const size_t start = start_peak_bytes(setup);
    sti_account_raise(account, "starting MPI", "once: what its libraries gave back",
                      start + start / STI_ACCOUNT_RESERVE_SHARE);
}

/* Shares of kernel(auto) for a size or a latency are found by compact files of the
 * whole network: its weights once more, the file, and opened models with what they run
 * on. */
static size_t trial_bytes(const stint_recipe *recipe, const sti_projection *p,
                          const sti_step_engine_sizes *sizes)
{
    enum { WEIGHTS = 8, OTHERS = 8 << 20 };
    const sti_shrink_values *shrink = sti_shrink_section_of(recipe);
    return sti_scheme_is_automatic(&p->scheme) &&
                   (shrink->size_bytes || shrink->latency)
               ? WEIGHTS * (sizes->params + sizes->states) + OTHERS
               : 0;
}

/* What a scheme needs beside the weights: targets and multipliers, scores, factors. */
static void add_compression(const sti_setup *setup, const sti_network *train,
                            const sti_step_engine_sizes *sizes, sti_account *account)
{
    const stint_recipe *recipe = setup->inputs->recipe;
    sti_projection *p = NULL;
    if (!sti_shrink_wanted(recipe) ||
        sti_shrink_create_projection(recipe, train, true, &p) != STINT_OK)
        return; /* (what is wrong with it is said when the job is made) */
    sti_account_add(account, "compression", "targets and multipliers, scores, factors",
                    sizes->shadows + p->bytes + PROJECTION_BYTES +
                        trial_bytes(recipe, p, sizes));
    sti_projection_destroy(p);
}

void sti_memory_account(const sti_setup *setup, const sti_network *train,
                        bool rewritten, int lanes, sti_account *account)
{
    sti_step_engine_desc desc = sti_setup_engine(setup, lanes);
    sti_step_engine_sizes sizes;
    desc.train = train;
    *account = (sti_account){.count = 0};
    sti_step_engine_measure(&desc, &sizes);
    sti_account_add(account, "parameters", "weights and running statistics",
                    sizes.params + sizes.states);
    sti_account_add(account, "optimiser",
                    setup->moments == 2   ? "two moments a weight"
                    : setup->moments == 1 ? "one moment a weight"
                                          : "none needed",
                    sizes.moments * (size_t)setup->moments);
    if (sizes.fixed > 0)
        sti_account_add(account, STI_PART_REFERENCE,
                        "its weights and running statistics", sizes.fixed);
    if (sizes.kept > 0)
        sti_account_add(account, "kept constants", "made once of what is not trained",
                        sizes.kept);
    add_compression(setup, train, &sizes, account);
    if (sizes.average > 0)
        sti_account_add(account, "average", "of weights and running statistics",
                        sizes.average);
    if (sizes.mask > 0)
        sti_account_add(account, "mask", "a bit a weight: pruned or not", sizes.mask);
    if (setup->inputs->network.lora.rank > 0)
        sti_account_add(account, "adapters", "a weight merged, and PEFT's files",
                        (size_t)sti_lora_largest(train) * sizeof(float) +
                            sti_moment_bytes(train));
    sti_account_add(account, "gradients",
                    sti_graph_update_rule(train->graph)
                        ? "none: parameters are updated within the step"
                        : "blocks of the shard tree",
                    sizes.results * (size_t)sizes.slots);
    if (setup->comm)
        sti_account_add(account, "network", "segments on their way, buffers of sockets",
                        sizes.net + NET_BYTES + sti_comm_shared_bytes(setup->comm) +
                            (size_t)sti_comm_size(setup->comm) * NET_RANK_BYTES);
    add_arenas(setup, train, &sizes, lanes, account);
    sti_account_add(
        account, STI_PART_DATA,
        setup->inputs->text
            ? "tokeniser, order of windows, losses; tokens stay in their file"
        : setup->inputs->field ? "points and values, order of points, losses"
                               : "index, decoders, order of samples, predictions",
        data_bytes(setup, lanes));
    sti_account_add(account, STI_PART_PROCESS,
                    "program, libraries, threads, graphs, files",
                    process_bytes(setup, train, rewritten, lanes) +
                        account->total_bytes / STI_ACCOUNT_RESERVE_SHARE);
    add_search(sti_run_section_of(setup->inputs->recipe), account);
    add_start(setup, account);
    add_report(setup, &sizes, account);
    /* Tokens were made in this very process, which took more than training will. */
    if (setup->inputs->text)
        sti_account_raise(account, "preparing the text", "once: its tokens are kept",
                          setup->inputs->text->prepared_bytes);
}

void sti_memory_take_account(const sti_account *account, int lanes,
                             stint_plan_result *result)
{
    result->lanes = lanes;
    result->part_count = account->count;
    result->peak_bytes = account->total_bytes;
    for (int i = 0; i < account->count; i++)
        result->parts[i] = (stint_plan_part){.name = account->parts[i].name,
                                             .detail = account->parts[i].detail,
                                             .bytes = account->parts[i].bytes};
}
