/* The memory of the whole process, part by part.
 *
 * What we allocate is known to the byte: blocks and arenas from the plans of both
 * networks, decoders and index from the data room. What is there already (graphs,
 * recipe, index, whatever the host program holds) is measured when the run is planned.
 * The rest is what the process will touch later and cannot be asked for beforehand;
 * those few lines were measured and are named here. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "base/memory.h"
#include "train/evaluate.h"
#include "train/job.h"

#define KIB ((size_t)1 << 10)

/* Measured (Debian 12, gcc 12, x86-64). Pages of the program and its libraries that a
 * run has touched by its end; those of the image decoders. They are mapped files, of
 * which a process at planning time has seen a part that varies by chance. */
#define CODE_BYTES       (6784 * KIB)
#define IMAGE_CODE_BYTES (900 * KIB)
/* Own pages at planning time beyond our own blocks: data of libraries, stacks, what
 * malloc keeps. 630 to 1040 KiB in `stint plan` and `stint train`, by chance and by
 * what was planned before (what is above it is in the reserve); taken as one number, so
 * that both announce the same peak. */
#define OWN_BYTES (920 * KIB)
/* Reserve against what differs from run to run, as a share of all the rest. */
#define RESERVE_SHARE 512
/* A worker thread: the touched part of its stack, its malloc arena. */
#define THREAD_BYTES (40 * KIB)
/* With packed activations: pages of the codec's program, tables of the error control. */
#define PACK_BYTES (640 * KIB)
/* What the search for rewrites leaves behind in the heap, and the copies of nodes. */
#define REWRITE_BYTES (256 * KIB)
/* Small blocks of the run itself: names, texts, lines of the log. */
#define HEAP_BYTES (140 * KIB)
/* Writing one file: its buffer. What the run keeps and writes about a value of the
 * graph: names, lines of headers and of the report. */
#define WRITER_BYTES (80 * KIB)
#define VALUE_BYTES  ((size_t)1024)

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
    size_t bytes = sti_data_memory_bytes(job->train_data, lanes, workers);
    if (job->test_data)
        bytes += sti_data_memory_bytes(job->test_data, lanes, workers) +
                 sti_evaluation_bytes(job->test_count, job->train.images, lanes);
    return bytes + (size_t)job->train_count * sizeof(int32_t); /* the epoch's order */
}

void sti_memory_trim(void)
{
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

/* Resident memory now, split: ours alone, and mapped files. 0 if the system does not
 * tell. */
static void resident_now(size_t *own_bytes, size_t *file_bytes)
{
    long total = 0, resident = 0, shared = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (f && fscanf(f, "%ld %ld %ld", &total, &resident, &shared) != 3)
        resident = shared = 0;
    if (f)
        fclose(f);
    *own_bytes = (size_t)(resident - shared) * page;
    *file_bytes = (size_t)shared * page;
}

size_t sti_memory_base(const sti_job *job)
{
    const char *format = stint_data_describe(job->train_data)->format;
    bool images = strcmp(format, "folder") == 0 || strcmp(format, "tar") == 0;
    size_t code = CODE_BYTES + (images ? IMAGE_CODE_BYTES : 0), own, file;
    sti_memory_trim();
    resident_now(&own, &file);
    size_t blocks = sti_alloc_now_bytes();
    own = own > blocks ? own - blocks : 0;
    /* More only inside of a larger program, where no two runs need to agree. */
    own = own > OWN_BYTES ? STI_ALIGN_UP(own, 256 * KIB) : OWN_BYTES;
    blocks -= job->index_bytes < blocks ? job->index_bytes : blocks;
    return own + STI_ALIGN_UP(blocks, 16 * KIB) + (file > code ? file : code);
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
    return job->base_bytes + HEAP_BYTES + packs + (size_t)(job->threads - 1) * THREAD_BYTES +
           WRITER_BYTES + values + plan_bytes(&job->train) + plan_bytes(&job->eval) +
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
    add_part(plan, "inputs", "images and labels of the shards at work", n * input);
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
    add_part(plan, "gradients", "blocks of the shard tree",
             sizes.results * (size_t)sizes.slots);
    add_arenas(job, &sizes, lanes, plan);
    add_part(plan, "data pipeline", "index, decoders, order of samples, predictions",
             data_bytes(job, lanes));
    add_part(plan, "process", "program, libraries, threads, graphs, files",
             process_bytes(job, lanes) + plan->peak_bytes / RESERVE_SHARE);
}
