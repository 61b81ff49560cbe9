#include "infer/eval_use.h"

#include <inttypes.h>
#include <string.h>

#include "base/account.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"
#include "infer/evaluate.h"
#include "infer/model_use.h"

/* Libraries of which an evaluation makes use, with and without pictures in files. */
static const char *const libraries[] = {"ld-",        "libc.", "libm.",
                                        "libnettle.", "libz.", NULL};
static const char *const picture_libraries[] = {
    "ld-", "libc.", "libm.", "libnettle.", "libz.", "libturbojpeg.", "libpng", NULL};

/* Small blocks of its own: names, lines of progress, the answer. */
#define HEAP_BYTES ((size_t)96 << 10)
/* By which the highest so far is rounded up, so that two runs agree. */
#define HIGHEST_GRAIN_BYTES ((size_t)256 << 10)

/* ---- ways ---- */

typedef struct way {
    int lanes;
    int64_t images; /* of one run of a lane */
    bool keeps;
} way;

/* A batch of images may run in parts, whose rows of loss are at hand. (Of text there is
 * the loss of a whole run alone.) */
static bool in_parts(const sti_eval_ask *ask)
{
    return ask->data != NULL;
}

/* Way k, from the quickest on; false: there are no more. */
static bool way_at(const sti_eval_ask *ask, int k, way *out)
{
    int64_t images = ask->images;
    int more = k / 2;
    for (; more > 0 && images > 1 && in_parts(ask); more--)
        images = (images + 1) / 2;
    *out = (way){
        .lanes = more > 0 ? 1 : ask->threads, .images = images, .keeps = k % 2 == 0};
    return more == 0 || (more == 1 && ask->threads > 1);
}

/* ---- what one takes ---- */

typedef struct planner {
    const sti_eval_ask *ask;
    size_t process_bytes, own_bytes; /* own: blocks before there was a network */
    size_t highest_bytes;            /* of the process, so far */
} planner;

static planner planner_of(const sti_eval_ask *ask)
{
    const char *format = ask->data ? stint_data_describe(ask->data)->format : "";
    const bool pictures = strcmp(format, "folder") == 0 || strcmp(format, "tar") == 0;
    planner p = {.ask = ask,
                 .own_bytes = sti_alloc_now_bytes(),
                 .highest_bytes =
                     STI_ALIGN_UP(sti_process_peak_bytes(), HIGHEST_GRAIN_BYTES)};
    p.process_bytes = sti_account_process_bytes(
        &(sti_account_process){.libraries = pictures ? picture_libraries : libraries,
                               .apart_bytes = p.own_bytes});
    return p;
}

static size_t region_bytes(const sti_network *network, sti_region region)
{
    return STI_ALIGN_UP(network->plan->region_bytes[region], 64);
}

static size_t answer_bytes(const planner *p, int lanes, bool parts)
{
    const sti_eval_ask *ask = p->ask;
    const int32_t classes = (int32_t)ask->model->network.model.classes;
    const size_t tables = (size_t)classes * (size_t)classes * sizeof(int32_t) +
                          2 * (size_t)classes * sizeof(int64_t);
    return sti_evaluation_bytes(ask->count, classes, ask->images, lanes) +
           (parts ? sti_evaluation_parts_bytes(ask->images, lanes) : 0) + tables;
}

static size_t decoder_bytes(const planner *p, int lanes)
{
    const stint_data *data = p->ask->data;
    const int workers = sti_lane_threads(p->ask->threads, lanes);
    return data ? sti_data_memory_bytes(data, lanes, workers) -
                      sti_data_memory_bytes(data, 0, 0)
                : 0;
}

/* The network is planned, and nothing of what it works in is taken. */
static void account_for(const planner *p, const sti_network *n, const way *w,
                        sti_account *a)
{
    const size_t now = sti_alloc_now_bytes(), highest = sti_alloc_peak_bytes();
    const size_t lanes = (size_t)w->lanes;
    const size_t nodes = (size_t)sti_graph_node_count(n->plan->graph);
    *a = (sti_account){.count = 0};
    sti_account_add(a, "weights", "parameters and running statistics",
                    region_bytes(n, STI_REGION_PARAM) +
                        region_bytes(n, STI_REGION_STATE));
    sti_account_add(a, "kept constants", "made once of the weights",
                    region_bytes(n, STI_REGION_KEPT));
    sti_account_add(a, "working memory", "batches and their activations",
                    lanes * (region_bytes(n, STI_REGION_RESULT) +
                             region_bytes(n, STI_REGION_FETCH) +
                             region_bytes(n, STI_REGION_ARENA)));
    sti_account_add(a, "model and data", "what is open: index, names, tokeniser",
                    p->own_bytes);
    sti_account_add(a, "decoders", "of pictures", decoder_bytes(p, w->lanes));
    sti_account_add(a, "answers", "predictions, losses, tables of classes",
                    answer_bytes(p, w->lanes, w->images < p->ask->images) + HEAP_BYTES);
    sti_account_add(a, "graph", "network and plan, calls of the lanes",
                    now - p->own_bytes + lanes * nodes * STI_EXEC_NODE_BYTES);
    /* Its blocks are many, and each ends in a page that is begun. */
    sti_account_raise(a, "building", "once: it was given back", highest + highest / 64);
    sti_account_add_measured(a, p->process_bytes, p->ask->threads);
    sti_account_raise(a, "opening", "once: it was given back", p->highest_bytes);
}

static stint_status plan_way(const planner *p, const way *w, sti_network *network,
                             sti_account *account)
{
    const sti_network_desc desc = sti_model_network_in_use(p->ask->model);
    stint_status st = STINT_OK;
    if (network->graph && network->images != w->images)
        sti_network_fini(network);
    if (!network->graph)
        st = sti_network_build(&desc, STINT_EVAL, w->images, network);
    if (st != STINT_OK)
        return st;
    sti_network_keep(network, w->keeps);
    st = sti_network_plan(network, sti_lane_threads(p->ask->threads, w->lanes));
    if (st == STINT_OK)
        account_for(p, network, w, account);
    return st;
}

/* ---- the choice ---- */

static void state(const planner *p, const way *w, const sti_account *account)
{
    if (p->ask->memory_bytes > 0)
        sti_log(STINT_LOG_INFO,
                "memory: %s planned of %s, with %d lane%s of %" PRId64
                " at a time, constants %s",
                sti_bytes_text(account->total_bytes),
                sti_bytes_text(p->ask->memory_bytes), w->lanes, sti_s(w->lanes),
                w->images, w->keeps ? "kept" : "left out");
}

/* Would a batch of one sample fit? It is another way to sum the loss, which the user
 * may take and we do not. */
static bool one_fits(const planner *p, sti_network *network)
{
    const way least = {.lanes = 1, .images = 1};
    sti_account account;
    return !in_parts(p->ask) && p->ask->images > 1 &&
           plan_way(p, &least, network, &account) == STINT_OK &&
           account.total_bytes <= p->ask->memory_bytes;
}

/* The least way was planned last. */
static stint_status refuse(const planner *p, sti_network *network,
                           const sti_account *least)
{
    return sti_account_check(
        least, p->ask->memory_bytes,
        &(sti_account_advice){.fits = one_fits(p, network) ? "--batch 1 or " : NULL});
}

/* Take the first way that fits the budget and the machine. Without a budget constants
 * alone are left out. */
static stint_status take_way(const planner *p, sti_network *network,
                             sti_infer **infer_out, sti_eval_use *use_out)
{
    const size_t budget = p->ask->memory_bytes;
    sti_account account = {0};
    stint_status st = STINT_E_BUDGET;
    way w;
    for (int k = 0; way_at(p->ask, k, &w) && (budget > 0 || k < 2); k++) {
        st = plan_way(p, &w, network, &account);
        if (st != STINT_OK)
            return st;
        st = STINT_E_BUDGET;
        if (budget > 0 && account.total_bytes > budget)
            continue;
        state(p, &w, &account);
        sti_memory_trim(); /* graphs of other ways left holes */
        *use_out = (sti_eval_use){w.lanes, account.total_bytes};
        st = sti_infer_create(network, p->ask->threads, w.lanes, infer_out);
        if (st != STINT_E_BUDGET)
            return st;
    }
    return budget > 0 && account.total_bytes > budget
               ? refuse(p, network, &account)
               : st; /* the machine's own, recorded */
}

stint_status sti_eval_use_model(const sti_eval_ask *ask, sti_network *network_out,
                                sti_infer **infer_out, sti_eval_use *use_out)
{
    const planner p = planner_of(ask);
    const stint_status st = take_way(&p, network_out, infer_out, use_out);
    return st == STINT_OK ? sti_model_fill(ask->model, *infer_out) : st;
}
