/* stint_predict: the class of a single image. */
#include <string.h>

#include "base/fail.h"
#include "base/finite.h"
#include "base/memory.h"
#include "data/data_section.h"
#include "infer/model_use.h"
#include "infer/opinions.h"
#include "stint/infer.h"

/* What predictions of one model work in, kept with it from the first one on. */
typedef struct predictor {
    sti_network network; /* of one image */
    sti_infer *infer;
    uint8_t *pixels;
    bool sampled;
    sti_opinions opinions; /* of one image, where sampled */
} predictor;

static void destroy_predictor(void *attached)
{
    predictor *p = attached;
    sti_infer_destroy(p->infer);
    sti_network_fini(&p->network);
    sti_free(p->pixels);
    sti_opinions_fini(&p->opinions);
    sti_free(p);
}

static stint_status create_predictor(stint_model_file *m, bool sampled)
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
    p->sampled = sampled;
    STI_TRY((sampled ? sti_model_sample : sti_model_use)(m, 1, 1, 1, &p->network,
                                                         &p->infer));
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

/* One for these networks, in the place of one for others. */
static stint_status want_predictor(stint_model_file *m, bool sampled)
{
    const predictor *p = m->attached;
    if (p && p->sampled == sampled)
        return STINT_OK;
    if (p)
        m->destroy_attached(m->attached);
    m->attached = NULL;
    return create_predictor(m, sampled);
}

/* The image in the network's input, its label unknown. */
static stint_status load_image(stint_model_file *m, const char *path, bool sampled)
{
    const sti_network_desc *net = &m->network;
    if (net->context)
        return sti_fail(STINT_E_INPUT,
                        "%s: a text model; it goes on with text and classifies no "
                        "images",
                        sti_tensor_file_path(m->file));
    if (net->field.coordinates > 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: a field; it classifies no images, `stint field eval` asks "
                        "it for values",
                        sti_tensor_file_path(m->file));
    stint_status st = want_predictor(m, sampled);
    if (st != STINT_OK)
        return st;
    const predictor *p = m->attached;
    st = sti_data_read_image(path, sti_recipe_fit(m->recipe), net->height, net->width,
                             net->channels, p->pixels);
    if (st != STINT_OK)
        return st;
    sti_exec *exec = p->infer->lanes.lane[0].exec;
    fill_input(m, p->pixels, sti_exec_address(exec, p->network.input));
    *(int32_t *)sti_exec_address(exec, p->network.labels) = -1;
    return STINT_OK;
}

/* One run: probabilities [classes], which hold until the next one. */
static const float *run_network(const predictor *p, const sti_step *step)
{
    const sti_infer_lanes *lanes = &p->infer->lanes;
    sti_exec_run(lanes->lane[0].exec, &lanes->lane_team, step);
    return sti_exec_address(lanes->lane[0].exec, p->network.probabilities);
}

stint_status stint_predict(stint_model_file *m, const char *image_path,
                           float *probabilities_out)
{
    const int64_t classes = m->network.model.classes;
    const stint_status st = load_image(m, image_path, false);
    if (st != STINT_OK)
        return st;
    memcpy(probabilities_out, run_network(m->attached, &(sti_step){0}),
           (size_t)classes * sizeof *probabilities_out);
    return sti_first_not_finite(probabilities_out, classes) < 0
               ? STINT_OK
               : sti_model_not_finite(m);
}

stint_status stint_predict_samples(stint_model_file *m, const char *image_path,
                                   int64_t samples, uint64_t seed,
                                   stint_opinion *opinion)
{
    const int32_t classes = (int32_t)m->network.model.classes;
    stint_status st = load_image(m, image_path, true);
    if (st != STINT_OK)
        return st;
    predictor *p = m->attached;
    sti_opinions *o = &p->opinions;
    sti_opinions_fini(o);
    if ((st = sti_opinions_init(o, 1, classes)) != STINT_OK)
        return st;
    for (; o->networks < samples; o->networks++)
        sti_opinions_add(
            o, 0, run_network(p, &(sti_step){.seed = seed, .step = o->networks}));
    for (int32_t c = 0; c < classes; c++) {
        opinion->probability[c] = (float)sti_opinions_mean(o, 0, c);
        opinion->deviation[c] = (float)sti_opinions_deviation(o, 0, c);
    }
    opinion->entropy = sti_opinions_entropy(o, 0);
    opinion->mutual_information = sti_opinions_information(o, 0);
    return sti_first_not_finite(opinion->probability, classes) < 0
               ? STINT_OK
               : sti_model_not_finite(m);
}
