#include "model/network.h"

#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "kernel/normal/normal.h"
#include "model/field_terms.h"
#include "model/network_parts.h"
#include "pass/pass.h"
#include "stint/op.h"

/* Nodes that the order of a part's training looks ahead for memory. (Other orders stay
 * as recorded plans know them.) */
enum { LOOK_AHEAD = 3 };

/* Value of an output; a pass may have put another one in its place. -1: none. */
static stint_value find_output(const stint_graph *graph, const char *name)
{
    const sti_output *outputs = sti_graph_outputs(graph);
    for (int32_t i = 0; i < sti_graph_output_count(graph); i++)
        if (outputs[i].kind >= STI_OUTPUT_METRIC && strcmp(outputs[i].name, name) == 0)
            return outputs[i].value;
    return -1;
}

/* In use points and targets are those that are asked for. In training there is a loss
 * of the terms, whose data stand in the same inputs. */
static stint_status append_field(const sti_network_desc *desc, stint_mode mode,
                                 sti_network *net)
{
    stint_graph *g = net->graph;
    const bool train = mode == STINT_TRAIN;
    const int64_t columns =
        train && desc->field_targets ? desc->field_targets : desc->field.outputs;
    const stint_shape points = STINT_SHAPE(net->images, desc->field.coordinates);
    const stint_shape targets = STINT_SHAPE(net->images, columns);
    stint_value loss = -1;
    net->input = stint_input(g, "points", &points);
    net->labels = stint_input(g, "targets", &targets);
    if (train && desc->terms) {
        const sti_field_loss what = {.name = desc->name,
                                     .field = &desc->field,
                                     .values = desc->terms,
                                     .names = &desc->names,
                                     .points = desc->field_drawn ? -1 : net->input,
                                     .targets = net->labels,
                                     .images = net->images,
                                     .batch = desc->field_batch ? desc->field_batch
                                                                : net->images};
        const stint_status st = sti_field_loss_build(g, &what, net->way, &loss);
        if (st != STINT_OK)
            return st;
    } else {
        const stint_value y =
            stint_field_build(g, desc->name, &desc->field, net->input);
        loss = stint_mean_squared_error(g, y, net->labels);
        if (!train)
            sti_network_add_output(g, STI_OUTPUT_FETCH, y, "logits");
    }
    sti_network_add_output(g, STI_OUTPUT_METRIC, loss, "loss");
    return stint_graph_check(g);
}

static stint_value build_images(const sti_network_desc *desc, const sti_network *net)
{
    const sti_network_source *s = desc->source;
    return s ? s->build(s->user, net->graph, desc->model.classes, net->input)
             : stint_model_build(net->graph, desc->name, &desc->model, net->input);
}

/* Logits of the reference on the same images. It runs before the network, so that
 * nothing but its logits lives on when the first activation is saved. */
static stint_value append_reference(const sti_network_desc *desc, sti_network *net)
{
    const sti_network_desc *r = desc->loss.reference;
    stint_scope_begin(net->graph, STI_REFERENCE_SCOPE);
    sti_graph_set_fixed(net->graph, true);
    stint_value logits = build_images(r, net);
    sti_graph_set_fixed(net->graph, false);
    stint_scope_end(net->graph);
    return logits;
}

/* factor * weight * part; what is 1 is left out, so that plain training keeps its bits.
 */
static stint_value weigh(const sti_network_desc *desc, sti_network *net, int part,
                         stint_value value)
{
    stint_graph *g = net->graph;
    const stint_shape scalar = stint_shape_make(STINT_F32, 0, NULL);
    sti_network_add_output(g, STI_OUTPUT_METRIC, value, sti_loss_part_names[part]);
    if (desc->loss.factor[part] != 1.0f)
        value = stint_scale(g, value, desc->loss.factor[part]);
    if (!desc->loss.weighted)
        return value;
    stint_value weight = stint_slice(g, net->weights, 0, part, part + 1, 1);
    return stint_mul(g, value, stint_reshape(g, weight, &scalar));
}

static stint_value append_part(const sti_loss_desc *loss, const sti_network *net,
                               int part, stint_value logits, stint_value reference)
{
    const stint_pairing_desc focus = {loss->focal_base, loss->focal_right};
    if (part == STI_LOSS_PAIRING)
        return stint_logit_pairing(net->graph, logits, reference, net->labels, &focus);
    return stint_soft_cross_entropy(net->graph, logits, reference, net->labels,
                                    loss->temperature);
}

/* The parts and their sum; hard is there already. */
static stint_value append_loss(const sti_network_desc *desc, sti_network *net,
                               stint_value hard, stint_value logits,
                               stint_value reference)
{
    stint_graph *g = net->graph;
    stint_value loss = -1;
    sti_network_add_loss_weights(desc, net);
    for (int part = 0; part < STI_LOSS_PARTS; part++) {
        if (desc->loss.factor[part] == 0)
            continue;
        stint_value value = part == STI_LOSS_HARD ? hard
                                                  : append_part(&desc->loss, net, part,
                                                                logits, reference);
        value = weigh(desc, net, part, value);
        loss = loss < 0 ? value : stint_add(g, loss, value);
    }
    return loss;
}

/* Cross-entropy against one of a mixed image's labels, by what the label counts. */
static stint_value append_share(sti_network *net, stint_value logits,
                                stint_value labels, stint_value share, float smoothing)
{
    stint_graph *g = net->graph;
    if (net->class_weights >= 0)
        share = stint_mul(g, share, stint_class_weight(g, labels, net->class_weights));
    return stint_row_weighted_cross_entropy(g, logits, labels, share, smoothing);
}

static stint_value append_mixed_loss(sti_network *net, stint_value logits,
                                     float smoothing)
{
    stint_graph *g = net->graph;
    const stint_shape labels = stint_shape_make(STINT_I32, 1, &net->images);
    const stint_shape rows = STINT_SHAPE(net->images, 1);
    net->others = stint_input(g, "others", &labels);
    net->share = stint_input(g, "share", &rows);
    net->rest = stint_input(g, "rest", &rows);
    return stint_add(g, append_share(net, logits, net->labels, net->share, smoothing),
                     append_share(net, logits, net->others, net->rest, smoothing));
}

/* The loss against the labels; an evaluation's counts every image alike. */
static stint_value append_labels_loss(const sti_network_desc *desc, stint_mode mode,
                                      sti_network *net, stint_value logits,
                                      float smoothing)
{
    stint_graph *g = net->graph;
    const stint_shape shape = STINT_SHAPE(desc->model.classes);
    if (mode == STINT_TRAIN && desc->class_weights)
        net->class_weights = stint_input(g, "class_weights", &shape);
    if (mode == STINT_TRAIN && desc->mixed)
        return append_mixed_loss(net, logits, smoothing);
    if (net->class_weights < 0)
        return stint_softmax_cross_entropy(g, logits, net->labels, smoothing);
    return stint_weighted_cross_entropy(g, logits, net->labels, net->class_weights,
                                        smoothing);
}

static stint_status append_images(const sti_network_desc *desc, stint_mode mode,
                                  sti_network *net)
{
    stint_graph *g = net->graph;
    const bool taught = mode == STINT_TRAIN && desc->loss.reference;
    stint_value reference = -1;
    stint_shape images =
        STINT_SHAPE(net->images, desc->height, desc->width, desc->channels);
    stint_shape labels = stint_shape_make(STINT_I32, 1, &net->images);
    if (desc->freeze_norm)
        sti_graph_freeze_norm(g);
    net->input = stint_input(g, "images", &images);
    net->labels = stint_input(g, "labels", &labels);
    if (taught)
        reference = append_reference(desc, net);
    stint_value logits = build_images(desc, net);
    float smoothing = mode == STINT_TRAIN ? desc->smoothing : 0;
    stint_value loss = append_labels_loss(desc, mode, net, logits, smoothing);
    if (taught)
        loss = append_loss(desc, net, loss, logits, reference);
    sti_network_add_output(g, STI_OUTPUT_METRIC, loss, "loss");
    sti_network_add_output(g, STI_OUTPUT_METRIC,
                           stint_count_correct(g, logits, net->labels), "correct");
    if (mode == STINT_EVAL) {
        sti_network_add_output(g, STI_OUTPUT_FETCH, logits, "logits");
        sti_network_add_output(g, STI_OUTPUT_FETCH, stint_softmax(g, logits),
                               "probabilities");
    }
    return stint_graph_check(g);
}

/* Weights into the graph, and what follows from them. */
static stint_status hold_weights(stint_graph *g, const sti_network_weights *weights,
                                 bool winograd)
{
    stint_status st = STINT_OK;
    for (int32_t v = 0; v < sti_graph_value_count(g) && st == STINT_OK; v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->role != STI_ROLE_PARAM && row->role != STI_ROLE_STATE)
            continue;
        const void *data = weights->data(weights->user, row->name, &row->shape);
        st = data ? sti_graph_make_constant(g, v, data)
                  : sti_fail(STINT_E_INPUT, "the model has no '%s' of %s", row->name,
                             sti_shape_text(&row->shape));
    }
    if (st == STINT_OK)
        st = sti_pass_constant(g, NULL);
    if (st == STINT_OK)
        st = sti_pass_thin(g, NULL);
    if (st == STINT_OK && winograd)
        st = sti_pass_winograd(g, NULL);
    if (st == STINT_OK)
        st = sti_pass_compact(g, &weights->fast, NULL);
    return st == STINT_OK ? sti_pass_constant(g, NULL) : st;
}

static stint_value find_input(const stint_graph *graph, const char *name)
{
    for (stint_value v = 0; v < sti_graph_value_count(graph); v++)
        if (sti_graph_value(graph, v)->role == STI_ROLE_INPUT &&
            strcmp(stint_value_name(graph, v), name) == 0)
            return v;
    return -1;
}

static void find_outputs(sti_network *net)
{
    net->loss = find_output(net->graph, "loss");
    net->correct = find_output(net->graph, "correct");
    net->logits = find_output(net->graph, "logits");
    net->probabilities = find_output(net->graph, "probabilities");
    net->squares = find_output(net->graph, "gradient_squares");
    net->moved = find_output(net->graph, "lfsr_moved");
    net->kl_weight = find_input(net->graph, "kl_weight");
    for (int part = 0; part < STI_LOSS_PARTS; part++)
        net->part[part] = find_output(net->graph, sti_loss_part_names[part]);
}

/* The sum of squares of all gradients, in their order, as a metric. */
static stint_status append_squares(stint_graph *g)
{
    const int32_t count = sti_graph_output_count(g);
    stint_value sum = -1;
    for (int32_t i = 0; i < count; i++) {
        const sti_output output = sti_graph_outputs(g)[i];
        if (output.kind != STI_OUTPUT_GRADIENT)
            continue;
        const stint_value squares = stint_squares(g, output.value);
        sum = sum < 0 ? squares : stint_add(g, sum, squares);
    }
    sti_network_add_output(g, STI_OUTPUT_METRIC, sum, "gradient_squares");
    return stint_graph_check(g);
}

/* In use whole networks are drawn, the same for all images, at any place at once. */
static stint_status add_bayes(const sti_network_desc *desc, stint_mode mode,
                              stint_graph *g)
{
    sti_bayes_desc bayes = desc->bayes;
    if (mode == STINT_EVAL) {
        bayes.estimator = STI_ESTIMATOR_WEIGHT;
        if (bayes.generator != STI_NORMAL_PHILOX)
            bayes.generator = STI_NORMAL_ARS;
    }
    return sti_pass_bayes(g, &bayes, mode == STINT_TRAIN || desc->sampled);
}

static bool is_in_set(const void *user, const sti_value_row *param,
                      sti_train_share *share)
{
    const sti_update_tensor *t = sti_update_set_find(user, param->name);
    if (param->adapter)
        return true;
    if (t)
        *share = (sti_train_share){t->channel, t->count};
    return t != NULL;
}

/* The loss against the labels, as it stands in the graph; -1: there is none. */
static stint_value labels_loss(const sti_network_desc *desc, const stint_graph *g)
{
    return find_output(g, desc->loss.reference ? sti_loss_part_names[STI_LOSS_HARD]
                                               : "loss");
}

/* Gradients of the loss, or of loss and divergence, whose runs are added up. */
static stint_status append_gradients(const sti_network_desc *desc, sti_network *net)
{
    stint_graph *g = net->graph;
    stint_value objective = find_output(g, "loss");
    stint_status st = STINT_OK;
    if (desc->gradient_penalty > 0)
        st = sti_network_add_penalty(desc, net, labels_loss(desc, g), &objective);
    if (st == STINT_OK && desc->bayes.samples > 0) {
        sti_graph_keep_inputs(g);
        net->adds = true;
        st = sti_pass_bayes_loss(g, &desc->bayes, objective, &objective);
    }
    if (st == STINT_OK)
        st = sti_pass_train(g, objective,
                            desc->update ? &(sti_train_set){is_in_set, desc->update}
                                         : NULL);
    return st == STINT_OK && net->adds ? sti_pass_noise_again(g, NULL) : st;
}

/* The forward half, with what weights stand for in it: quantised, drawn, adapted. */
static stint_status build_forward(const sti_network_desc *desc, stint_mode mode,
                                  sti_network *net)
{
    stint_graph *g = net->graph;
    stint_status st;
    if (mode == STINT_EVAL && desc->sampled) {
        sti_graph_sample(g);
        sti_graph_keep_inputs(g); /* several networks see one batch */
    }
    STI_TRY(desc->field.coordinates > 0 ? append_field(desc, mode, net)
            : desc->context             ? sti_network_append_text(desc, mode, net)
                                        : append_images(desc, mode, net));
    STI_TRY(sti_pass_quantise(g, STI_ROLE_PARAM, desc->weight_bits));
    if (desc->loss.reference)
        STI_TRY(
            sti_pass_quantise(g, STI_ROLE_FIXED, desc->loss.reference->weight_bits));
    STI_TRY(add_bayes(desc, mode, g));
    st = sti_pass_lora(g, &desc->lora);
out:
    return st;
}

/* Nodes as they are differentiated: joined, by other means, from bytes. */
static stint_status prepare(const sti_network_desc *desc, stint_mode mode,
                            stint_graph *g)
{
    const sti_train_set set = {is_in_set, desc->update};
    stint_status st;
    if (mode == STINT_TRAIN && desc->update && desc->fold_norm)
        STI_TRY(sti_pass_fold_norm(g, &set, desc->frozen_bytes));
    STI_TRY(sti_pass_prepare(g));
    if (desc->field.coordinates > 0)
        STI_TRY(sti_pass_fuse_jets(g, NULL));
    if (desc->winograd && !desc->bf16)
        STI_TRY(sti_pass_winograd(g, NULL));
    st = desc->update && desc->frozen_bytes ? sti_pass_bytes(g, &set) : STINT_OK;
out:
    return st;
}

/* The backward half, or weights held; in the order that takes least memory. */
static stint_status finish(const sti_network_desc *desc, stint_mode mode,
                           sti_network *net)
{
    stint_graph *g = net->graph;
    const bool train = mode == STINT_TRAIN;
    stint_status st;
    if (train)
        STI_TRY(append_gradients(desc, net));
    if (train && desc->squares)
        STI_TRY(append_squares(g));
    if (desc->bf16)
        STI_TRY(sti_pass_precision(g, NULL));
    if (desc->constant && !train && !desc->bf16)
        STI_TRY(hold_weights(g, desc->constant, desc->winograd));
    if (net->adds)
        STI_TRY(sti_pass_adds(g, NULL));
    if (train && (desc->update || desc->at_once.op))
        sti_graph_set_look_ahead(g, LOOK_AHEAD);
    STI_TRY(sti_pass_standard(g));
    if (train) {
        sti_graph_update_at_once(g, &desc->at_once);
        sti_graph_keep_constants(g, desc->keeps);
    }
    find_outputs(net);
out:
    return st;
}

stint_status sti_network_build(const sti_network_desc *desc, stint_mode mode,
                               int64_t images, sti_network *network)
{
    sti_network net = {.images = images,
                       .context = desc->context,
                       .bounds = -1,
                       .weights = -1,
                       .class_weights = -1,
                       .others = -1,
                       .share = -1,
                       .rest = -1,
                       .kl_weight = -1,
                       .moved = -1};
    stint_status st;
    STI_TRY(stint_graph_create(mode, &net.graph));
    STI_TRY(build_forward(desc, mode, &net));
    STI_TRY(prepare(desc, mode, net.graph));
    st = finish(desc, mode, &net);
out:
    if (st == STINT_OK)
        *network = net;
    else
        sti_network_fini(&net);
    return st;
}

static stint_status saved_bytes(sti_network_desc desc, bool bf16, int64_t images,
                                size_t *bytes_out)
{
    sti_network network;
    desc.bf16 = bf16;
    stint_status st = sti_network_build(&desc, STINT_TRAIN, images, &network);
    if (st != STINT_OK)
        return st;
    st = sti_pass_saved_bytes(network.graph, bytes_out);
    sti_network_fini(&network);
    return st;
}

stint_status sti_network_check_bf16(const sti_network_desc *desc, int64_t images)
{
    size_t f32, bf16;
    if (!desc->bf16)
        return STINT_OK;
    stint_status st = saved_bytes(*desc, false, images, &f32);
    if (st == STINT_OK)
        st = saved_bytes(*desc, true, images, &bf16);
    if (st == STINT_OK && bf16 > f32)
        sti_log(STINT_LOG_WARNING,
                "bfloat16 costs this network memory: a shard keeps %s for the backward "
                "half, in float32 %s; operators without a bfloat16 form are the cause "
                "(docs/memory.md), and precision f32 needs less",
                sti_bytes_text(bf16), sti_bytes_text(f32));
    return st;
}

stint_status sti_network_pack(sti_network *network, const sti_pack_choice *choices,
                              int count, bool check)
{
    stint_status st = sti_pass_pack(network->graph, choices, count, check, NULL);
    if (st == STINT_OK && network->adds)
        st = sti_pass_adds(network->graph, NULL);
    if (st == STINT_OK)
        st = sti_pass_standard(network->graph);
    if (st != STINT_OK)
        return st;
    find_outputs(network);
    network->bounds = find_input(network->graph, "bounds");
    return STINT_OK;
}

stint_status sti_network_plan(sti_network *network, int threads)
{
    sti_plan *plan;
    stint_status st = sti_plan_create(network->graph, threads, &plan);
    if (st != STINT_OK)
        return st;
    sti_plan_destroy(network->plan);
    network->plan = plan;
    return STINT_OK;
}

void sti_network_fini(sti_network *network)
{
    sti_plan_destroy(network->plan);
    stint_graph_destroy(network->graph);
    memset(network, 0, sizeof *network);
}

int64_t sti_network_parameters(const sti_network *network)
{
    int64_t count = 0;
    for (int32_t v = 0; v < sti_graph_value_count(network->graph); v++) {
        const sti_value_row *row = sti_graph_value(network->graph, v);
        if (row->role == STI_ROLE_PARAM && !row->adapter)
            count += stint_shape_count(&row->shape);
    }
    return count;
}

int64_t sti_network_trained(const sti_network *network)
{
    int64_t count = 0;
    for (int32_t i = 0; i < sti_graph_output_count(network->graph); i++) {
        const sti_output *output = &sti_graph_outputs(network->graph)[i];
        const stint_shape shape = stint_value_shape(network->graph, output->value);
        if (output->kind == STI_OUTPUT_GRADIENT)
            count += stint_shape_count(&shape);
    }
    return count;
}

static double count_flop(const stint_graph *g, bool forward)
{
    double flop = 0;
    for (int32_t n = 0; n < sti_graph_node_count(g); n++) {
        const sti_node *node = sti_graph_node(g, n);
        if ((forward && node->backward) || (node->op->flags & STI_OP_VIEW) ||
            node->n_out == 0)
            continue;
        if (node->op->cost)
            flop += node->op->cost(g, node).flop;
        else
            flop += (double)stint_shape_count(&sti_graph_value(g, node->out[0])->shape);
    }
    return flop;
}

double sti_network_forward_flop(const sti_network *network)
{
    return count_flop(network->graph, true) / (double)network->images;
}

double sti_network_step_flop(const sti_network *network)
{
    return count_flop(network->graph, false);
}

stint_status sti_network_each(const sti_network *network, sti_role role,
                              sti_network_tensor_fn *fn, void *user)
{
    stint_status st = STINT_OK;
    for (int32_t v = 0; v < sti_graph_value_count(network->graph) && st == STINT_OK;
         v++) {
        const sti_value_row *row = sti_graph_value(network->graph, v);
        if (row->role == role)
            st = fn(user, row, &network->plan->allocation[v]);
    }
    return st;
}

typedef struct finder {
    const sti_value_row *row;
    const sti_allocation *allocation;
    bool found;
} finder;

static stint_status find_same(void *user, const sti_value_row *row,
                              const sti_allocation *allocation)
{
    finder *f = user;
    f->found |= strcmp(row->name, f->row->name) == 0 &&
                sti_shape_equal(&row->shape, &f->row->shape) &&
                allocation->offset == f->allocation->offset;
    return STINT_OK;
}

typedef struct comparison {
    const sti_network *other;
    sti_role role;
} comparison;

static stint_status check_same(void *user, const sti_value_row *row,
                               const sti_allocation *allocation)
{
    comparison *c = user;
    finder f = {.row = row, .allocation = allocation};
    sti_network_each(c->other, c->role, find_same, &f);
    if (f.found)
        return STINT_OK;
    return sti_fail(STINT_E_BUG, "%s lies elsewhere in training than in evaluation",
                    row->name);
}

stint_status sti_network_agree(const sti_network *a, const sti_network *b)
{
    comparison params = {b, STI_ROLE_PARAM}, states = {b, STI_ROLE_STATE};
    stint_status st = sti_network_each(a, STI_ROLE_PARAM, check_same, &params);
    return st != STINT_OK ? st
                          : sti_network_each(a, STI_ROLE_STATE, check_same, &states);
}
