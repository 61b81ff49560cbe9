#include "train/job_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "train/recipe_view.h"

bool sti_recipe_is_text(const stint_recipe *recipe)
{
    return stint_model_is_text(sti_recipe_network(recipe));
}

/* Zero stands for "as the tokeniser has it", but a published model has its own size. */
static int64_t vocabulary_of(const stint_recipe *recipe)
{
    stint_text_model_desc sizes = {.vocabulary =
                                       sti_model_section_of(recipe)->vocabulary};
    int64_t context = 0;
    const char *name = sti_recipe_network(recipe);
    if (strcmp(name, "gpt2-124m") == 0)
        (void)stint_text_model_resolve(name, &sizes, &context);
    return sizes.vocabulary;
}

stint_status sti_recipe_open_text(const stint_recipe *recipe,
                                  const stint_tokenizer *tokenizer,
                                  sti_corpus **corpus_out)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    const sti_corpus_desc desc = {.path = v.data->path,
                                  .tokenizer = tokenizer,
                                  .tokenizer_path = v.data->tokenizer_path,
                                  .kind = (stint_tokenizer_kind)v.data->tokenizer,
                                  .vocabulary = (int32_t)vocabulary_of(recipe),
                                  .validation = v.data->validation,
                                  .budget_bytes = v.run->memory_bytes};
    return sti_corpus_open(&desc, corpus_out);
}

stint_status sti_recipe_text_network(const stint_recipe *recipe, int64_t tokens,
                                     sti_network_desc *network_out)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    const double dropout = v.model->dropout;
    sti_network_desc net = {.name = sti_recipe_network(recipe),
                            .text = {.vocabulary = vocabulary_of(recipe),
                                     .depth = v.model->depth,
                                     .width = v.model->width,
                                     .heads = v.model->heads,
                                     .kv_heads = v.model->kv_heads,
                                     .dropout = dropout > 0 ? (float)dropout : 0},
                            .context = v.model->context,
                            .bf16 = v.train->precision == STI_PRECISION_BF16};
    if (net.text.vocabulary == 0)
        net.text.vocabulary = tokens;
    const bool unknown = net.text.vocabulary == 0;
    const stint_status st = stint_text_model_resolve(net.name, &net.text, &net.context);
    if (st != STINT_OK)
        return st;
    if (unknown)
        sti_log(STINT_LOG_INFO,
                "no text is given: a vocabulary of %s tokens is taken, as published; "
                "--data PATH takes that of a text",
                sti_count_text(net.text.vocabulary));
    if (tokens > net.text.vocabulary)
        return sti_fail(STINT_E_INPUT,
                        "model.vocabulary: %" PRId64 ", but the tokeniser has %" PRId64
                        " tokens; set it to %" PRId64 " or more, or to 0 for as many",
                        net.text.vocabulary, tokens, tokens);
    *network_out = net;
    return STINT_OK;
}
