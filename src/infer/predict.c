/* stint_predict: the class of a single image. */
#include <string.h>

#include "base/fail.h"
#include "base/finite.h"
#include "base/memory.h"
#include "data/data_section.h"
#include "infer/model_use.h"
#include "stint/infer.h"

/* What predictions of one model work in, kept with it from the first one on. */
typedef struct predictor {
    sti_network network; /* of one image */
    sti_infer *infer;
    uint8_t *pixels;
} predictor;

static void destroy_predictor(void *attached)
{
    predictor *p = attached;
    sti_infer_destroy(p->infer);
    sti_network_fini(&p->network);
    sti_free(p->pixels);
    sti_free(p);
}

static stint_status create_predictor(stint_model_file *m)
{
    const sti_network_desc *net = &m->network;
    const int64_t bytes = net->height * net->width * net->channels;
    stint_status st = STINT_E_MEMORY;
    predictor *p = sti_alloc(sizeof *p, "predictor");
    if (!p)
        return STINT_E_MEMORY;
    p->pixels = sti_alloc_array(bytes, 1, "pixels");
    if (!p->pixels)
        goto out;
    STI_TRY(sti_model_use(m, 1, 1, 1, &p->network, &p->infer));
    m->attached = p;
    m->destroy_attached = destroy_predictor;
    p = NULL;
out:
    if (p)
        destroy_predictor(p);
    return st;
}

static void fill_input(const stint_model_file *m, const uint8_t *pixels, float *x)
{
    const sti_network_desc *net = &m->network;
    const int64_t count = net->height * net->width * net->channels;
    for (int64_t i = 0; i < count; i++) {
        const int64_t c = i % net->channels;
        x[i] = ((float)pixels[i] / 255.0f - m->norm.mean[c]) / m->norm.deviation[c];
    }
}

stint_status stint_predict(stint_model_file *m, const char *image_path,
                           float *probabilities_out)
{
    const sti_network_desc *net = &m->network;
    if (net->context)
        return sti_fail(STINT_E_INPUT,
                        "%s: a text model; it goes on with text and classifies no "
                        "images",
                        sti_tensor_file_path(m->file));
    stint_status st = m->attached ? STINT_OK : create_predictor(m);
    if (st != STINT_OK)
        return st;
    const predictor *p = m->attached;
    st = sti_data_read_image(image_path, sti_recipe_fit(m->recipe), net->height,
                             net->width, net->channels, p->pixels);
    if (st != STINT_OK)
        return st;
    const sti_infer_lanes *lanes = &p->infer->lanes;
    sti_exec *exec = lanes->lane[0].exec;
    fill_input(m, p->pixels, sti_exec_address(exec, p->network.input));
    *(int32_t *)sti_exec_address(exec, p->network.labels) = -1;
    sti_exec_run(exec, &lanes->lane_team, &(sti_step){0});
    memcpy(probabilities_out, sti_exec_address(exec, p->network.probabilities),
           (size_t)net->model.classes * sizeof *probabilities_out);
    return sti_first_not_finite(probabilities_out, net->model.classes) < 0
               ? STINT_OK
               : sti_model_not_finite(m);
}
