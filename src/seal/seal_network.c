/* Public call that turns a trained network into a C program. */
#include <inttypes.h>

#include "base/fail.h"
#include "base/file.h"
#include "data/data_section.h"
#include "seal/network_text.h"
#include "stint/seal.h"

static stint_status write_program(const sti_ternary *net, const char *path)
{
    sti_text text = {0};
    sti_network_text(net, &text);
    const stint_status st =
        text.failed ? STINT_E_MEMORY : sti_file_write(path, text.data, text.length);
    sti_text_fini(&text);
    return st;
}

/* An image's inputs, as `stint seal encrypt --values` takes them. */
static stint_status write_values(const sti_ternary *net, const char *image,
                                 const char *path)
{
    const sti_network_desc *n = &net->model->network;
    const int64_t count = net->layer[0].inputs;
    sti_text text = {0};
    uint8_t *pixels = sti_alloc_array(2 * count, 1, "seal.image");
    stint_status st = pixels ? STINT_OK : STINT_E_MEMORY;
    STI_TRY(st);
    STI_TRY(sti_data_read_image(image, sti_recipe_fit(net->model->recipe), n->height,
                                n->width, n->channels, pixels));
    sti_ternary_inputs(net, pixels, pixels + count);
    sti_text_add(&text, "{\"input\":[");
    for (int64_t i = 0; i < count; i++)
        sti_text_printf(&text, "%s%d", i ? "," : "", pixels[count + i]);
    sti_text_add(&text, "]}\n");
    st = text.failed ? STINT_E_MEMORY : sti_file_write(path, text.data, text.length);
out:
    sti_free(pixels);
    sti_text_fini(&text);
    return st;
}

static void describe(const sti_ternary *net, stint_seal_network_facts *out)
{
    *out = (stint_seal_network_facts){.layers = net->layers,
                                      .inputs = net->layer[0].inputs,
                                      .classes = net->layer[net->layers - 1].units,
                                      .input_bits = net->input_bits};
    for (int64_t i = 0; i < net->layers; i++) {
        const sti_ternary_layer *l = &net->layer[i];
        out->weights += l->inputs * l->units;
        for (int64_t k = 0; k < l->inputs * l->units; k++)
            out->nonzero += l->weight[k] != 0;
    }
}

stint_status stint_seal_network(const stint_seal_network_desc *desc,
                                stint_seal_network_facts *facts_out)
{
    stint_model_file *model = NULL;
    sti_ternary net = {0};
    stint_status st = sti_model_open_for("MODEL", desc->model, &model);
    STI_TRY(st);
    STI_TRY(sti_ternary_read(model, &net));
    if (desc->out)
        STI_TRY(write_program(&net, desc->out));
    if (desc->image)
        STI_TRY(write_values(&net, desc->image, desc->values));
    describe(&net, facts_out);
out:
    sti_ternary_fini(&net);
    stint_model_close(model);
    return st;
}
