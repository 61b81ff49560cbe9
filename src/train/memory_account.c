/* The memory of the whole process, part by part.
 *
 * What we allocate is known to the byte: blocks and arenas from the plans of both
 * networks, decoders and index from the data room. Of program and libraries the pages
 * that may be used are made resident and counted (base/program.h). The rest (stacks,
 * what malloc keeps between live blocks) cannot be asked for beforehand; those few
 * lines were measured and are named here. Every run of a recipe, planned or trained,
 * gets the same figure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "base/memory.h"
#include "base/program.h"
#include "train/evaluate.h"
#include "train/job.h"
#include "train/run_section.h"

#define KIB ((size_t)1 << 10)

/* Libraries of which a run makes use; all of their code is made resident when the run
 * is planned (base/program.h), so that which parts a run happens to touch does not
 * matter. What other libraries have in memory by then is given back. */
static const char *const libraries[] = {"ld-",        "libc.", "libm.",
                                        "libnettle.", "libz.", NULL};
static const char *const image_libraries[] = {
    "ld-", "libc.", "libm.", "libnettle.", "libz.", "libturbojpeg.", "libpng", NULL};

/* Own pages beyond our blocks and the data of programs and libraries: the main stack,
 * what malloc keeps, a few pages of libraries of which next to nothing is used: 430 to
 * 550 KiB from run to run. Above that, so that every run of a recipe gets one figure.
 */
#define OWN_BYTES (640 * KIB)
/* Reserve against what differs from run to run, as a share of all the rest. */
#define RESERVE_SHARE 512
/* A worker thread: the touched part of its stack, its malloc arena. */
#define THREAD_BYTES (40 * KIB)
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

/* The thread of the communicator and its library; what it keeps of a peer. */
#define NET_BYTES      (320 * KIB)
#define NET_RANK_BYTES (8 * KIB)

static void add_part(stint_plan_result *plan, const char *name, const char *detail,
                     size_t bytes)
{
    stint_plan_part *part = &plan->parts[plan->part_count++];
    *part = (stint_plan_part){.name = name, .detail = detail, .bytes = bytes};
    plan->peak_bytes += bytes;
}

static size_t data_bytes(const sti_job *job, int lanes)
{
    int workers = sti_crew_lane_threads(job->threads, lanes);
    const size_t order = (size_t)job->train_count * sizeof(int32_t);
    if (job->text)
        return order + job->index_bytes +
               (job->test_count > 0
                    ? sti_evaluation_bytes(job->test_count, 0, job->train.images, lanes)
                    : 0);
    size_t bytes = sti_data_memory_bytes(job->train_data, lanes, workers);
    if (job->test_data)
        bytes +=
            sti_data_memory_bytes(job->test_data, lanes, workers) +
            sti_evaluation_bytes(job->test_count, (int32_t)job->network.model.classes,
                                 job->train.images, lanes);
    if (job->validation_data)
        bytes += sti_data_memory_bytes(job->validation_data, 0, 0) +
                 sti_evaluation_bytes(job->validation_count,
                                      (int32_t)job->network.model.classes,
                                      job->train.images, lanes) +
                 (size_t)job->validation_count * sizeof(int32_t); /* of a reference */
    return bytes + order;                                         /* of an epoch */
}

void sti_memory_trim(void)
{
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

/* Blocks of the job so far without opened data, and of the host as a round number
 * without those of the communicator, which NET_RANK_BYTES are for. */
static size_t job_blocks(const sti_job *job, size_t now)
{
    const size_t host = job->host_bytes, own = host + job->index_bytes;
    const size_t net = job->comm ? sti_comm_block_bytes(job->comm) : 0;
    return STI_ALIGN_UP(host - net, 64 * KIB) + (now > own ? now - own : 0);
}

static size_t start_peak_bytes(const sti_job *job)
{
    return job->comm ? sti_comm_start_peak_bytes(job->comm) : 0;
}

size_t sti_memory_base(const sti_job *job)
{
    const char *format =
        job->text ? "text" : stint_data_describe(job->train_data)->format;
    bool images = strcmp(format, "folder") == 0 || strcmp(format, "tar") == 0;
    const size_t blocks = sti_alloc_now_bytes();
    const size_t shared = job->comm ? sti_comm_shared_bytes(job->comm) : 0;
    sti_program_pages program;
    sti_memory_trim();
    sti_program_settle(images ? image_libraries : libraries, &program);
    const size_t pages = program.code_bytes + program.data_bytes;
    const size_t known = pages + OWN_BYTES;
    const size_t resident = sti_process_now_bytes();
    const size_t left =
        sti_run_section_of(job->recipe)->searched ? STI_SEARCH_BYTES : 0;
    const size_t apart = blocks + shared + left; /* which have lines of their own */
    const size_t rest = resident > apart ? resident - apart : 0;
    if (start_peak_bytes(job) > 0 && rest > pages) /* by what MPI's libraries keep */
        return job_blocks(job, blocks) + STI_ALIGN_UP(rest, 64 * KIB) + OWN_BYTES;
    return job_blocks(job, blocks) +
           /* More only inside of a larger program, where no two runs need to agree. */
           (rest > known ? STI_ALIGN_UP(rest, 64 * KIB) : known);
}

static size_t plan_bytes(const sti_network *network)
{
    if (!network->graph)
        return 0;
    return (size_t)sti_graph_value_count(network->graph) * sizeof(sti_place) +
           (size_t)sti_graph_node_count(network->graph) * 2 * sizeof(size_t);
}

/* Calls and address slots of a lane's flat run. */
static size_t exec_bytes(const sti_network *network)
{
    return network->graph ? (size_t)sti_graph_node_count(network->graph) * 400 : 0;
}

static size_t process_bytes(const sti_job *job, int lanes)
{
    size_t values = (size_t)sti_graph_value_count(job->train.graph) * VALUE_BYTES;
    size_t packs = (job->train.bounds >= 0 ? PACK_BYTES : 0) +
                   (job->rewritten ? REWRITE_BYTES : 0);
    return job->base_bytes + HEAP_BYTES + packs +
           (size_t)(job->threads - 1) * THREAD_BYTES + WRITER_BYTES + values +
           plan_bytes(&job->train) + plan_bytes(&job->eval) +
           (size_t)lanes * (exec_bytes(&job->train) + exec_bytes(&job->eval));
}

/* The lanes' arenas, cut by what lies in them at the peak of a training step. */
static void add_arenas(const sti_job *job, const sti_crew_sizes *sizes, int lanes,
                       stint_plan_result *plan)
{
    const sti_plan *p = job->train.plan;
    size_t n = (size_t)lanes, saved = p->saved_bytes, input = p->input_bytes;
    if (saved + input > sizes->arena)
        input = 0;
    add_part(plan, "saved activations", "kept for the backward pass", n * saved);
    add_part(plan, "workspace", "passing results and scratch",
             n * (sizes->arena - saved - input + sizes->fetch));
    add_part(plan, "inputs",
             job->text ? "tokens and labels of the shards at work"
                       : "images and labels of the shards at work",
             n * input);
}

/* With batch = auto, in the process that looks for it. */
static void add_search(const sti_run_values *run, stint_plan_result *plan)
{
    if (!run->searched)
        return;
    add_part(plan, "search for the batch", "what it leaves behind in the heap",
             STI_SEARCH_BYTES);
    if (run->tried_bytes > plan->peak_bytes)
        add_part(plan, "trying batches", "once: larger ones than the one chosen",
                 run->tried_bytes - plan->peak_bytes);
}

/* A small network takes less than MPI's libraries did before it. */
static void add_start(const sti_job *job, stint_plan_result *plan)
{
    const size_t start = start_peak_bytes(job);
    const size_t bytes = start + start / RESERVE_SHARE;
    if (bytes > plan->peak_bytes)
        add_part(plan, "starting MPI", "once: what its libraries gave back",
                 bytes - plan->peak_bytes);
}

void sti_memory_account(const sti_job *job, int lanes, stint_plan_result *plan)
{
    sti_crew_desc desc = sti_job_crew(job);
    sti_crew_sizes sizes;
    desc.lanes = lanes;
    sti_crew_measure(&desc, &sizes);
    plan->part_count = 0;
    plan->peak_bytes = 0;
    plan->lanes = lanes;
    add_part(plan, "parameters", "weights and running statistics",
             sizes.params + sizes.states);
    add_part(plan, "optimiser",
             job->moments == 2   ? "two moments a weight"
             : job->moments == 1 ? "one moment a weight"
                                 : "none needed",
             sizes.params * (size_t)job->moments);
    if (sizes.fixed > 0)
        add_part(plan, STI_PART_REFERENCE, "its weights and running statistics",
                 sizes.fixed);
    if (sizes.mask > 0)
        add_part(plan, "mask", "a bit a weight: pruned or not", sizes.mask);
    add_part(plan, "gradients", "blocks of the shard tree",
             sizes.results * (size_t)sizes.slots);
    if (job->comm)
        add_part(plan, "network", "segments on their way, buffers of sockets",
                 sizes.net + NET_BYTES + sti_comm_shared_bytes(job->comm) +
                     (size_t)sti_comm_size(job->comm) * NET_RANK_BYTES);
    add_arenas(job, &sizes, lanes, plan);
    add_part(plan, "data pipeline",
             job->text
                 ? "tokeniser, order of windows, losses; tokens stay in their file"
                 : "index, decoders, order of samples, predictions",
             data_bytes(job, lanes));
    add_part(plan, "process", "program, libraries, threads, graphs, files",
             process_bytes(job, lanes) + plan->peak_bytes / RESERVE_SHARE);
    add_search(sti_run_section_of(job->recipe), plan);
    add_start(job, plan);
    /* Tokens were made in this very process, which took more than training will. */
    if (job->text && job->text->prepared_bytes > plan->peak_bytes)
        add_part(plan, "preparing the text", "once: its tokens are kept",
                 job->text->prepared_bytes - plan->peak_bytes);
}
