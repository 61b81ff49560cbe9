/* Adapters given to opened models. */
#include "base/fail.h"
#include "store/text_model_file.h"

stint_status stint_model_adapt(stint_model_file *m, const char *folder)
{
    const sti_decoder_desc desc = {.name = m->network.name,
                                   .model = m->network.text,
                                   .context = m->network.context,
                                   .capacity = 1,
                                   .threads = 1};
    if (!m->network.context)
        return sti_fail(STINT_E_INPUT,
                        "--adapter: %s is a network for images; adapters are of text "
                        "models",
                        sti_tensor_file_path(m->file));
    return sti_adapter_open(folder, &desc, &m->adapter);
}

stint_status stint_text_model_adapt(stint_text_model *model, const char *folder)
{
    const sti_decoder_desc desc = sti_text_model_decoder(model);
    return sti_adapter_open(folder, &desc, &model->adapter);
}
