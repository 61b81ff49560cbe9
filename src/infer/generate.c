/* Text generation: a decoder, a sampler, and the window of tokens that the model sees.
 */
#include "stint/generate.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/account.h"
#include "base/fail.h"
#include "base/finite.h"
#include "base/memory.h"
#include "base/program.h"
#include "base/stop.h"
#include "base/units.h"
#include "infer/sampler.h"
#include "store/text_model_file.h"

/* Libraries that generation runs in (base/program.h). */
static const char *const libraries[] = {"ld-", "libc.", "libm.", NULL};

/* What the process touches beyond our own blocks: stacks of threads and their malloc
 * arenas, pages of 2 MiB at both ends of the block. */
#define THREAD_BYTES ((size_t)192 << 10)
#define OTHER_BYTES  ((size_t)2 << 20)
/* By which two runs may differ before the first block. */
#define VARIES_BYTES ((size_t)256 << 10)

struct stint_generator {
    sti_decoder *decoder;
    sti_sampler sampler;
    sti_decoder_desc desc;
    int32_t *window;     /* [capacity]: tokens that the model sees, in order */
    int64_t length;      /* of the window */
    int64_t read;        /* of these, by the decoder */
    int64_t drawn;       /* tokens since the prompt */
    const float *logits; /* NULL: the newest token has not been read */
};

/* ---- sizes ---- */

/* Everything a generator is made from, checked. */
typedef struct generator_plan {
    sti_decoder_desc decoder;
    sti_sampler_desc sampler;
    sti_account account; /* of the whole process */
} generator_plan;

/* Resident before generation: code that will run counts as if it had run already. */
static size_t resident_bytes(void)
{
    sti_program_pages pages;
    sti_program_settle(libraries, &pages);
    return STI_ALIGN_UP(sti_process_now_bytes(), VARIES_BYTES);
}

static void add_parts(generator_plan *plan, size_t decoder_bytes, size_t sampler_bytes)
{
    sti_account *a = &plan->account;
    const size_t before = sti_process_peak_bytes();
    sti_account_add(a, "program", "resident now, and code that will run",
                    resident_bytes());
    sti_account_add(a, "decoder", "weights, keys and values, scratch", decoder_bytes);
    sti_account_add(a, "sampler", "scores, sorted", sampler_bytes);
    sti_account_add(a, "tokens", "those that are seen at once",
                    sizeof(stint_generator) +
                        (size_t)plan->decoder.capacity * sizeof(int32_t));
    sti_account_add(a, "threads", "stacks, heap, ends of large pages",
                    OTHER_BYTES + (size_t)(plan->decoder.threads - 1) * THREAD_BYTES);
    sti_account_raise(a, "opening the model", "once: it was given back", before);
}

static stint_status make_plan(const stint_text_model *model,
                              const stint_generator_desc *desc, generator_plan *plan)
{
    sti_decoder_sizes sizes;
    size_t sampler_bytes;
    const int64_t context = model->facts.context;
    *plan = (generator_plan){.decoder = sti_text_model_decoder(model),
                             .sampler = {.temperature = desc->temperature,
                                         .top_k = desc->top_k,
                                         .top_p = desc->top_p != 0 ? desc->top_p : 1,
                                         .seed = desc->seed}};
    if (desc->tokens < 0 || desc->threads < 0)
        return sti_fail(STINT_E_USAGE,
                        "tokens %" PRId64 " and threads %d must not be negative",
                        desc->tokens, desc->threads);
    plan->decoder.capacity =
        desc->tokens > 0 && desc->tokens < context ? desc->tokens : context;
    plan->decoder.threads = desc->threads > 0 ? desc->threads : 1;
    const int bits = desc->weight_bits;
    if (bits != 0)
        plan->decoder.weight_bits = bits == 32 ? 0 : bits;
    if (bits != 0 && bits != 32 && bits != 16 && bits != 8 && bits != 4)
        return sti_fail(STINT_E_USAGE,
                        "weights of %d bits; wanted 0 (as the model says), 32 "
                        "(float32), 16, 8 or 4",
                        bits);
    stint_status st = sti_sampler_check(&plan->sampler);
    if (st == STINT_OK)
        st = sti_decoder_measure(&plan->decoder, &sizes);
    if (st == STINT_OK)
        st = sti_sampler_bytes(&plan->sampler, model->facts.sizes.vocabulary,
                               &sampler_bytes);
    if (st != STINT_OK)
        return st;
    add_parts(plan, sizes.total_bytes, sampler_bytes);
    return STINT_OK;
}

stint_status stint_generator_peak_bytes(const stint_text_model *model,
                                        const stint_generator_desc *desc,
                                        size_t *bytes_out)
{
    generator_plan plan;
    const stint_status st = make_plan(model, desc, &plan);
    if (st == STINT_OK)
        *bytes_out = plan.account.total_bytes;
    return st;
}

/* A whole number of MiB, which a user can give back and which holds in the next run. */
static const char *mib_above(size_t bytes)
{
    return sti_bytes_text(STI_ALIGN_UP(bytes + VARIES_BYTES, (size_t)1 << 20));
}

static stint_status check_budget(const stint_text_model *model,
                                 const stint_generator_desc *desc,
                                 const generator_plan *plan)
{
    generator_plan least;
    stint_generator_desc short_one = *desc;
    if (desc->memory_bytes == 0 || plan->account.total_bytes <= desc->memory_bytes)
        return STINT_OK;
    short_one.tokens = 2;
    const stint_status st = make_plan(model, &short_one, &least);
    if (st != STINT_OK)
        return st;
    const char *enough = mib_above(plan->account.total_bytes),
               *for_two = mib_above(least.account.total_bytes);
    char fewer[80] = "";
    if (strcmp(enough, for_two) != 0)
        snprintf(fewer, sizeof fewer, ", or ask for fewer tokens (two would take %s)",
                 for_two);
    return sti_fail(STINT_E_BUDGET,
                    "memory: %s are needed for %" PRId64
                    " tokens, the budget is %s; give it %s%s",
                    sti_bytes_text(plan->account.total_bytes), plan->decoder.capacity,
                    sti_bytes_text(desc->memory_bytes), enough, fewer);
}

/* ---- life ---- */

stint_status stint_generator_create(const stint_text_model *model,
                                    const stint_generator_desc *desc,
                                    stint_generator **generator_out)
{
    generator_plan plan;
    const sti_weight_source source = sti_text_model_source(model);
    stint_status st = make_plan(model, desc, &plan);
    if (st == STINT_OK)
        st = check_budget(model, desc, &plan);
    if (st != STINT_OK)
        return st;
    stint_generator *g = sti_alloc(sizeof *g, "generator");
    if (!g)
        return STINT_E_MEMORY;
    g->desc = plan.decoder;
    g->window =
        sti_alloc_array(plan.decoder.capacity, sizeof *g->window, "tokens read");
    st = g->window ? sti_sampler_init(&plan.sampler, model->facts.sizes.vocabulary,
                                      &g->sampler)
                   : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_decoder_create(&plan.decoder, &source, &g->decoder);
    if (st != STINT_OK) {
        stint_generator_destroy(g);
        return st;
    }
    *generator_out = g;
    return STINT_OK;
}

void stint_generator_destroy(stint_generator *g)
{
    if (!g)
        return;
    sti_decoder_destroy(g->decoder);
    sti_sampler_fini(&g->sampler);
    sti_free(g->window);
    sti_free(g);
}

size_t stint_generator_token_bytes(const stint_generator *g)
{
    return sti_decoder_token_bytes(&g->desc);
}

/* ---- running ---- */

static void read_window(stint_generator *g)
{
    sti_decoder_run(g->decoder, g->window + g->read, g->length - g->read, g->read,
                    &g->logits);
    g->read = g->length;
}

stint_status stint_generator_prompt(stint_generator *g, const int32_t *tokens,
                                    int64_t count)
{
    if (count < 1)
        return sti_fail(
            STINT_E_INPUT,
            "the prompt is empty: it takes at least one token to go on from");
    if (count > g->desc.capacity)
        return sti_fail(STINT_E_INPUT,
                        "the prompt has %" PRId64 " tokens, but the %s %" PRId64
                        "; leave out %" PRId64,
                        count,
                        g->desc.capacity < g->desc.context ? "generator was made for"
                                                           : "model sees at most",
                        g->desc.capacity, count - g->desc.capacity);
    for (int64_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= g->desc.model.vocabulary)
            return sti_fail(STINT_E_INPUT,
                            "token %" PRId64
                            " of the prompt is %d, but the model's are "
                            "0 to %" PRId64,
                            i, tokens[i], g->desc.model.vocabulary - 1);
    memcpy(g->window, tokens, (size_t)count * sizeof *tokens);
    g->length = count;
    g->read = 0;
    g->drawn = 0;
    read_window(g);
    return sti_stop_asked();
}

/* Room for one more token: when the window is full its newest half stays, and is read
 * anew, for its tokens now stand at other positions. */
static void slide(stint_generator *g)
{
    const int64_t keep = g->desc.capacity / 2;
    if (g->length < g->desc.capacity)
        return;
    memmove(g->window, g->window + g->length - keep, (size_t)keep * sizeof *g->window);
    g->length = keep;
    g->read = 0;
}

const float *stint_generator_logits(stint_generator *g)
{
    assert(g->length > 0);
    if (!g->logits)
        read_window(g);
    return g->logits;
}

stint_status stint_generator_next(stint_generator *g, int32_t *token_out)
{
    stint_status st = sti_stop_asked();
    if (st != STINT_OK)
        return st;
    if (g->length < 1)
        return sti_fail(STINT_E_USAGE, "give the generator a prompt first");
    const float *logits = stint_generator_logits(g);
    if (sti_first_not_finite(logits, g->desc.model.vocabulary) >= 0)
        return sti_fail(STINT_E_INPUT,
                        "the scores of the tokens are no finite numbers: weights of "
                        "the model are too large; take another copy");
    st = sti_sampler_draw(&g->sampler, logits, g->drawn, token_out);
    if (st != STINT_OK)
        return st;
    g->drawn++;
    slide(g);
    g->window[g->length++] = *token_out;
    g->logits = NULL;
    return STINT_OK;
}
