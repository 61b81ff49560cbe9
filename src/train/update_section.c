/* [update] of a recipe: which parameters a training changes. */
#include "train/update_section.h"

#include "train/train_section.h"

/* As the rows have it. */
enum { DEFAULT_RANK = 8, DEFAULT_ALPHA = 16 };

#define AT(field) .offset = offsetof(sti_update_values, field)

static const sti_option rows[] = {
    {.name = "what",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "full",
     .choices = "full|last|bias|tensors|lora",
     AT(what),
     .unit = "WORD",
     .help =
         "parameters of train.start that are trained: all, the classifier (of text "
         "the head or, where it shares the table of tokens, the last "
         "normalisation), that and every bias, those of update.tensors, or low-rank "
         "adapters of a text model; of the rest no gradient is made and nothing is "
         "kept"},
    {.name = "rank",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 4096),
     .default_text = "8",
     AT(rank),
     .unit = "N",
     .help = "of what = lora: columns of an adapter"},
    {.name = "alpha",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(1e-6, 1e6),
     .default_text = "16",
     AT(alpha),
     .unit = "NUMBER",
     .help = "of what = lora: scaled by alpha / rank"},
    {.name = "attention",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "true",
     AT(attention),
     .help = "of what = lora: adapters beside the products of attention alone"},
    {.name = "tensors",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(tensors),
     .unit = "LIST",
     .help = "of what = tensors: names, comma-separated; * is any characters, A-B a "
             "number, @1/4 a share of a weight's channels: h.8-11.attn.*@1/2,*.bias"},
    {.name = "frozen",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "f32",
     .choices = "f32|int8",
     AT(frozen),
     .unit = "WORD",
     .help = "what is not trained: int8 holds dense and convolution weights in a byte"},
    {.name = "at_once",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(at_once),
     .same_weights = true,
     .help = "parameters are updated within the step, each when its gradient is there "
             "and nobody reads its old value any more, so that gradients do not wait "
             "in memory; of steps of one micro-batch, without optimizer.clip"},
    {.name = "keep",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "no",
     .choices = "no|auto|yes",
     AT(keep),
     .same_weights = true,
     .unit = "WORD",
     .help = "yes: what depends on frozen tensors alone is computed once and kept, "
             "filters of minimal filtering, panels, factors of normalisations; steps "
             "take less time and more memory; auto: where run.memory is auto"},
    {.name = "fold_norm",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(fold_norm),
     .help = "in training frozen normalisations become part of the frozen convolutions "
             "before them, but not of int8 ones; roundings differ"},
    {.name = "gains",
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(gains),
     .same_weights = true, /* channels are compared themselves */
     .local = true,
     .unit = "FILE",
     .help =
         "gains.json of stint finetune, by which the channels of shares are chosen, "
         "in the place of norms"},
};

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_update_values *update = sti_update_section_of(recipe);
    if (update->tensors && update->what != STI_UPDATE_TENSORS)
        sti_complain(list, "update.tensors: is read with update.what = tensors alone; "
                           "set that, or leave the list out");
    if ((update->rank != DEFAULT_RANK || update->alpha != DEFAULT_ALPHA) &&
        update->what != STI_UPDATE_LORA)
        sti_complain(list, "update.rank, update.alpha: are read with update.what = "
                           "lora alone; set that, or leave them out");
    if (update->what == STI_UPDATE_FULL)
        return;
    if (update->what == STI_UPDATE_TENSORS && !update->tensors)
        sti_complain(list, "update.what: tensors wants a list of them; set "
                           "update.tensors, as h.11.attn.*,*.bias");
    if (!sti_train_section_of(recipe)->start)
        sti_complain(list, "update.what: only a part of the parameters is trained, but "
                           "there is no model that the others come from; give one by "
                           "--start MODEL");
}

const sti_recipe_section sti_update_section = {
    STI_RECIPE_SECTION("update", rows, sti_update_values),
    .check = check,
};

const sti_update_values *sti_update_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_update_section);
}
