/* A model of images on buffers of the caller's: one lane of infer/lanes.h, whose input
 * is filled and whose outputs are read batch by batch. */
#include <inttypes.h>
#include <string.h>

#include "base/account.h"
#include "base/fail.h"
#include "base/finite.h"
#include "base/memory.h"
#include "base/stop.h"
#include "infer/model_use.h"
#include "stint/run.h"

/* By which two runs may differ before the runner: figures are rounded up to it. */
#define VARIES_BYTES ((size_t)256 << 10)
#define THREAD_BYTES ((size_t)192 << 10)
#define BATCH_MAX    (INT64_C(1) << 20)

struct stint_runner {
    const stint_model_file *model; /* borrowed */
    stint_runner_facts facts;
    sti_network network;
    sti_infer *infer;
};

static stint_status check_desc(const stint_model_file *model,
                               const stint_runner_desc *desc)
{
    if (model->network.context)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: a text model; it goes on with text, a token at a time, "
                        "and takes no images",
                        sti_tensor_file_path(model->file));
    if (desc->batch < 0 || desc->batch > BATCH_MAX || desc->threads < 0)
        return sti_fail(STINT_E_USAGE,
                        "batch %" PRId64 " and threads %d: wanted 0 to %" PRId64
                        ", and 0 or more",
                        desc->batch, desc->threads, BATCH_MAX);
    return STINT_OK;
}

static size_t bytes_of(const sti_network *network, sti_region region)
{
    return STI_ALIGN_UP(network->plan->region_bytes[region], 64);
}

static void account_for(const stint_runner_facts *facts, sti_account *account)
{
    sti_account_add(account, "process", "resident now",
                    STI_ALIGN_UP(sti_process_now_bytes(), VARIES_BYTES));
    sti_account_add(account, "weights", "", facts->weights_bytes);
    sti_account_add(account, "arena", "a batch and its activations", facts->work_bytes);
    sti_account_add(account, "threads", "stacks, heap",
                    VARIES_BYTES + (size_t)(facts->threads - 1) * THREAD_BYTES);
}

static stint_status plan_memory(sti_network *network, bool keep,
                                stint_runner_facts *facts, sti_account *account)
{
    sti_network_keep(network, keep);
    const stint_status st = sti_network_plan(network, facts->threads);
    if (st != STINT_OK)
        return st;
    *account = (sti_account){0};
    facts->weights_bytes = bytes_of(network, STI_REGION_PARAM) +
                           bytes_of(network, STI_REGION_STATE) +
                           bytes_of(network, STI_REGION_KEPT);
    facts->work_bytes = bytes_of(network, STI_REGION_RESULT) +
                        bytes_of(network, STI_REGION_FETCH) +
                        bytes_of(network, STI_REGION_ARENA);
    account_for(facts, account);
    facts->planned_peak_bytes = account->total_bytes;
    return STINT_OK;
}

/* The network of a batch, planned, and what it is; the caller frees the network. What
 * depends on weights alone is made once where the budget has room for it. */
static stint_status plan(const stint_model_file *model, const stint_runner_desc *desc,
                         sti_network *network, stint_runner_facts *facts,
                         sti_account *account)
{
    const sti_network_desc in_use = sti_model_network_in_use(model);
    stint_status st = check_desc(model, desc);
    if (st != STINT_OK)
        return st;
    facts->batch = desc->batch ? desc->batch : 1;
    if ((st = sti_threads_choose(desc->threads, &facts->threads, NULL)) != STINT_OK ||
        (st = sti_network_build(&in_use, STINT_EVAL, facts->batch, network)) !=
            STINT_OK)
        return st;
    facts->input = stint_value_shape(network->graph, network->input);
    facts->output = stint_value_shape(network->graph, network->logits);
    st = plan_memory(network, true, facts, account);
    if (st == STINT_OK && desc->memory_bytes > 0 &&
        account->total_bytes > desc->memory_bytes)
        st = plan_memory(network, false, facts, account);
    return st;
}

stint_status stint_runner_plan(const stint_model_file *model,
                               const stint_runner_desc *desc,
                               stint_runner_facts *facts_out)
{
    sti_network network = {0};
    stint_runner_facts facts = {0};
    sti_account account = {0};
    const stint_status st = plan(model, desc, &network, &facts, &account);
    if (st == STINT_OK)
        *facts_out = facts;
    sti_network_fini(&network);
    return st;
}

stint_status stint_runner_create(const stint_model_file *model,
                                 const stint_runner_desc *desc,
                                 stint_runner **runner_out)
{
    stint_status st = STINT_E_MEMORY;
    sti_account account = {0};
    stint_runner *r = sti_alloc(sizeof *r, "runner");
    if (!r)
        return STINT_E_MEMORY;
    r->model = model;
    STI_TRY(plan(model, desc, &r->network, &r->facts, &account));
    STI_TRY(sti_account_check(&account, desc->memory_bytes, NULL));
    STI_TRY(sti_infer_create(&r->network, r->facts.threads, 1, &r->infer));
    STI_TRY(sti_model_fill(model, r->infer));
    *runner_out = r;
    r = NULL;
out:
    stint_runner_destroy(r);
    return st;
}

void stint_runner_destroy(stint_runner *r)
{
    if (!r)
        return;
    sti_infer_destroy(r->infer);
    sti_network_fini(&r->network);
    sti_free(r);
}

void stint_runner_describe(const stint_runner *r, stint_runner_facts *facts_out)
{
    *facts_out = r->facts;
}

/* ---- running ---- */

typedef struct images {
    const stint_runner *runner;
    stint_run_form form;
    const void *from; /* of this batch */
    int64_t count, channels, each;
    float *to; /* the network's input */
} images;

/* Bytes are divided by 255 first, as where a data set is read, so that the bits are
 * those of an evaluation. */
static void fill_image(void *arg, int64_t i, int worker)
{
    const images *im = arg;
    const sti_data_norm *norm = &im->runner->model->norm;
    const uint8_t *bytes = (const uint8_t *)im->from + i * im->each;
    const float *floats = (const float *)im->from + i * im->each;
    float *to = im->to + i * im->each;
    (void)worker;
    if (i >= im->count) {
        memset(to, 0, (size_t)im->each * sizeof *to);
        return;
    }
    if (im->form == STINT_RUN_NORMALISED) {
        memcpy(to, floats, (size_t)im->each * sizeof *to);
        return;
    }
    for (int64_t p = 0; p < im->each; p += im->channels)
        for (int64_t c = 0; c < im->channels; c++) {
            const float x = im->form == STINT_RUN_PIXELS ? (float)bytes[p + c] / 255.0f
                                                         : floats[p + c];
            to[p + c] = (x - norm->mean[c]) / norm->deviation[c];
        }
}

static void fill(const stint_runner *r, images *im)
{
    const sti_infer_lanes *lanes = &r->infer->lanes;
    int32_t *labels = sti_exec_address(lanes->lane[0].exec, r->network.labels);
    im->to = sti_exec_address(lanes->lane[0].exec, r->network.input);
    sti_team_run(&lanes->lane_team, r->facts.batch, fill_image, im);
    for (int64_t i = 0; i < r->facts.batch; i++)
        labels[i] = -1; /* unknown */
}

static stint_status read_output(const stint_runner *r, stint_value value, int64_t count,
                                float *out)
{
    const float *from = sti_exec_address(r->infer->lanes.lane[0].exec, value);
    const int64_t floats = count * r->facts.output.dim[1];
    if (sti_first_not_finite(from, floats) >= 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: answers are no finite numbers: the images hold NaN or "
                        "numbers out of all range, or the weights are too large",
                        sti_tensor_file_path(r->model->file));
    if (out)
        memcpy(out, from, (size_t)floats * sizeof *out);
    return STINT_OK;
}

static stint_status run_batch(const stint_runner *r, images *im, float *logits_out,
                              float *probabilities_out)
{
    const sti_infer_lanes *lanes = &r->infer->lanes;
    stint_status st = sti_stop_asked();
    if (st != STINT_OK)
        return st;
    fill(r, im);
    sti_exec_run(lanes->lane[0].exec, &lanes->lane_team, &(sti_step){0});
    st = read_output(r, r->network.logits, im->count, logits_out);
    return st == STINT_OK
               ? read_output(r, r->network.probabilities, im->count, probabilities_out)
               : st;
}

static stint_status check_images(stint_run_form form, const void *from, int64_t count)
{
    if (count < 0 || (count > 0 && !from))
        return sti_fail(STINT_E_USAGE, "%" PRId64 " images%s: wanted 0 or more", count,
                        from ? "" : " without an address");
    if (form != STINT_RUN_PIXELS && form != STINT_RUN_UNIT &&
        form != STINT_RUN_NORMALISED)
        return sti_fail(STINT_E_USAGE,
                        "images of the form %d: wanted pixels, unit or normalised",
                        (int)form);
    return STINT_OK;
}

stint_status stint_runner_run(stint_runner *r, stint_run_form form, const void *from,
                              int64_t count, float *logits_out,
                              float *probabilities_out)
{
    const stint_shape *in = &r->facts.input;
    const int64_t classes = r->facts.output.dim[1], batch = r->facts.batch;
    images im = {.runner = r,
                 .form = form,
                 .channels = in->dim[3],
                 .each = in->dim[1] * in->dim[2] * in->dim[3]};
    const size_t number = form == STINT_RUN_PIXELS ? 1 : sizeof(float);
    stint_status st = check_images(form, from, count);
    for (int64_t i = 0; i < count && st == STINT_OK; i += batch) {
        im.from = (const char *)from + (size_t)(i * im.each) * number;
        im.count = count - i < batch ? count - i : batch;
        st = run_batch(r, &im, logits_out ? logits_out + i * classes : NULL,
                       probabilities_out ? probabilities_out + i * classes : NULL);
    }
    return st;
}
