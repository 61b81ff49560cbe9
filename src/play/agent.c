#include "play/agent.h"

#include "base/fail.h"

const char *const sti_agent_acting_inputs[2] = {"frames", "index"};
const char *const sti_agent_learning_inputs[STI_LEARN_INPUTS] = {
    "frames", "index", "action", "reward", "discount", "weight", "mu", "value"};

int sti_agent_learning_input_count(int method)
{
    return method == STI_AGENT_A2C      ? STI_LEARN_MU
           : method == STI_AGENT_VTRACE ? STI_LEARN_VALUE
                                        : STI_LEARN_INPUTS;
}

sti_agent_shape sti_agent_shape_of(const stint_env_facts *facts, int network, int stack)
{
    if (network == STI_NETWORK_AUTO)
        network = facts->height > 1 ? STI_NETWORK_SMALL : STI_NETWORK_MLP;
    return (sti_agent_shape){.network = network,
                             .height = facts->height,
                             .width = facts->width,
                             .stack = stack,
                             .actions = facts->actions};
}

const char *sti_agent_network_name(int network)
{
    static const char *const names[] = {"auto", "small", "large", "mlp"};
    return names[network];
}

/* ---- networks ---- */

static stint_value conv(stint_graph *g, stint_value x, const char *scope,
                        int64_t filters, int64_t size, int64_t stride)
{
    stint_scope_begin(g, "%s", scope);
    x = stint_conv2d(
        g, x,
        &(stint_conv2d_desc){
            .filters = filters, .size = size, .stride = stride, .bias = true});
    stint_scope_end(g);
    return stint_relu(g, x);
}

static stint_value dense(stint_graph *g, stint_value x, const char *scope,
                         int64_t units)
{
    stint_scope_begin(g, "%s", scope);
    x = stint_dense(g, x,
                    &(stint_dense_desc){.units = units, .init = STINT_INIT_HE_NORMAL});
    stint_scope_end(g);
    return stint_relu(g, x);
}

/* The networks of Mnih et al. (2013) and (2015), and two dense layers. */
static stint_value trunk(stint_graph *g, const sti_agent_shape *shape, stint_value x)
{
    switch (shape->network) {
    case STI_NETWORK_SMALL:
        x = conv(g, x, "conv1", 16, 8, 4);
        x = conv(g, x, "conv2", 32, 4, 2);
        return dense(g, stint_flatten(g, x), "hidden", 256);
    case STI_NETWORK_LARGE:
        x = conv(g, x, "conv1", 32, 8, 4);
        x = conv(g, x, "conv2", 64, 4, 2);
        x = conv(g, x, "conv3", 64, 3, 1);
        return dense(g, stint_flatten(g, x), "hidden", 512);
    default:
        x = dense(g, stint_flatten(g, x), "hidden1", 256);
        return dense(g, x, "hidden2", 256);
    }
}

/* Observations by index through the trunk; rows [n, units]. */
static stint_value observe(stint_graph *g, const sti_agent_shape *shape, int64_t frames,
                           int64_t rows)
{
    const stint_shape bytes =
        stint_shape_make(STINT_U8, 3, (int64_t[]){frames, shape->height, shape->width});
    const stint_shape index =
        stint_shape_make(STINT_I32, 2, (int64_t[]){rows, shape->stack});
    const stint_value x = stint_frames(g, stint_input(g, "frames", &bytes),
                                       stint_input(g, "index", &index), 1.0f / 255.0f);
    return trunk(g, shape, x);
}

/* The heads begin small, so that the first policy is close to uniform. */
static stint_value head(stint_graph *g, stint_value x, const char *scope, int64_t units,
                        float deviation)
{
    const stint_shape shape = STINT_SHAPE(stint_value_shape(g, x).dim[1], units);
    const stint_shape bias = STINT_SHAPE(units);
    stint_scope_begin(g, "%s", scope);
    const stint_value weight =
        stint_param(g, "weight", &shape,
                    &(stint_param_desc){.init = STINT_INIT_NORMAL, .scale = deviation});
    const stint_value b =
        stint_param(g, "bias", &bias, &(stint_param_desc){.no_decay = true});
    x = stint_bias(g, stint_matmul(g, x, weight, false, false), b);
    stint_scope_end(g);
    return x;
}

static stint_value policy(stint_graph *g, const sti_agent_shape *shape, stint_value x)
{
    return stint_log_softmax(g, head(g, x, "policy", shape->actions, 0.001f));
}

static stint_value values(stint_graph *g, stint_value x)
{
    return head(g, x, "value", 1, 0.03f);
}

stint_status sti_agent_build_acting(const sti_agent_shape *shape, int64_t rows,
                                    sti_agent_acting *out)
{
    stint_graph *g = NULL;
    const stint_status st = stint_graph_create(STINT_EVAL, &g);
    const stint_shape flat = STINT_SHAPE(rows);
    if (st != STINT_OK)
        return st;
    const stint_value x = observe(g, shape, rows * shape->stack, rows);
    out->graph = g;
    out->output[0] = (stint_named_value){"policy", policy(g, shape, x)};
    out->output[1] =
        (stint_named_value){"values", stint_reshape(g, values(g, x), &flat)};
    return STINT_OK;
}

/* ---- losses ---- */

typedef struct learning {
    stint_graph *g;
    const sti_agent_values *agent;
    int64_t steps, n; /* of each environment; environments */
    stint_value in[STI_LEARN_INPUTS];
    stint_value logs;   /* log-probabilities of all actions [steps n, actions] */
    stint_value log_of; /* of those that were taken [steps n] */
    stint_value value, value_of;   /* [steps + 1, n]; [steps, n] */
    stint_value target, advantage; /* [steps, n], constants */
} learning;

/* Mean over all steps of a shard, those that are none counting 0. */
static stint_value weighed_mean(const learning *l, stint_value x)
{
    const stint_shape flat = STINT_SHAPE(l->steps * l->n);
    const stint_value weight = stint_reshape(l->g, l->in[STI_LEARN_WEIGHT], &flat);
    return stint_mean(l->g, stint_mul(l->g, x, weight), 1u, false);
}

static stint_value flat(const learning *l, stint_value x)
{
    const stint_shape shape = STINT_SHAPE(l->steps * l->n);
    return stint_reshape(l->g, x, &shape);
}

static void returns_of_vtrace(learning *l)
{
    const stint_shape shape = STINT_SHAPE(l->steps, l->n);
    const stint_returns_in in = {l->in[STI_LEARN_REWARD], l->in[STI_LEARN_DISCOUNT],
                                 l->in[STI_LEARN_WEIGHT], l->value};
    const stint_vtrace_desc desc = {(float)l->agent->rho, (float)l->agent->c,
                                    (float)l->agent->lambda};
    const stint_value ratio =
        stint_sub(l->g, stint_reshape(l->g, l->log_of, &shape), l->in[STI_LEARN_MU]);
    l->target = stint_vtrace(l->g, &in, ratio, &desc, &l->advantage);
}

/* Of ppo the values are those that there were; the state behind the last step has none
 * yet and is valued as it is now. */
static void returns_of_steps(learning *l)
{
    stint_value value = l->value;
    if (l->agent->method == STI_AGENT_PPO) {
        const stint_value parts[] = {
            l->in[STI_LEARN_VALUE],
            stint_slice(l->g, l->value, 0, l->steps, l->steps + 1, 1)};
        value = stint_concat(l->g, parts, 2, 0);
    }
    const stint_returns_in in = {l->in[STI_LEARN_REWARD], l->in[STI_LEARN_DISCOUNT],
                                 l->in[STI_LEARN_WEIGHT], value};
    l->target = stint_gae(l->g, &in, (float)l->agent->lambda, &l->advantage);
}

/* min(max(x, low), high), of the operators there are. */
static stint_value clamp(stint_graph *g, stint_value x, float low, float high)
{
    const stint_value above = stint_relu(g, stint_add_scalar(g, x, -low));
    const stint_value beyond = stint_relu(g, stint_add_scalar(g, x, -high));
    return stint_add_scalar(g, stint_sub(g, above, beyond), low);
}

/* (advantage - mean) / deviation over the shard. */
static stint_value normalised(stint_graph *g, stint_value x)
{
    const stint_value centred = stint_sub(g, x, stint_mean(g, x, 1u, true));
    const stint_value variance = stint_mean(g, stint_square(g, centred), 1u, true);
    return stint_div(g, centred, stint_sqrt(g, stint_add_scalar(g, variance, 1e-8f)));
}

/* Schulman et al. 2017, arXiv 1707.06347: the lesser of ratio x advantage and the same
 * with the ratio kept near 1. */
static stint_value ppo_gain(const learning *l)
{
    stint_graph *g = l->g;
    const float clip = (float)l->agent->ppo_clip;
    const stint_value advantage = normalised(g, flat(l, l->advantage));
    const stint_value ratio =
        stint_exp(g, stint_sub(g, l->log_of, flat(l, l->in[STI_LEARN_MU])));
    const stint_value free = stint_mul(g, ratio, advantage);
    const stint_value kept =
        stint_mul(g, clamp(g, ratio, 1.0f - clip, 1.0f + clip), advantage);
    return stint_sub(g, free, stint_relu(g, stint_sub(g, free, kept)));
}

static stint_value policy_loss(const learning *l)
{
    const stint_value gain = l->agent->method == STI_AGENT_PPO
                                 ? ppo_gain(l)
                                 : stint_mul(l->g, l->log_of, flat(l, l->advantage));
    return stint_scale(l->g, weighed_mean(l, gain), -1.0f);
}

static stint_value value_loss(const learning *l)
{
    const stint_value error = stint_sub(l->g, l->value_of, l->target);
    return stint_scale(l->g, weighed_mean(l, flat(l, stint_square(l->g, error))), 0.5f);
}

static stint_value entropy(const learning *l)
{
    const stint_value terms = stint_mul(l->g, stint_exp(l->g, l->logs), l->logs);
    return stint_scale(l->g, weighed_mean(l, stint_sum(l->g, terms, 2u, false)), -1.0f);
}

/* The heads over the rows of the trunk, and what was done there. */
static void add_heads(learning *l, const sti_agent_shape *shape, stint_value x)
{
    stint_graph *g = l->g;
    const int64_t count = l->steps * l->n;
    const stint_shape all = STINT_SHAPE(l->steps + 1, l->n);
    l->logs = policy(g, shape, stint_slice(g, x, 0, 0, count, 1));
    l->log_of = stint_pick(g, l->logs, l->in[STI_LEARN_ACTION]);
    l->value = stint_reshape(g, values(g, x), &all);
    l->value_of = stint_slice(g, l->value, 0, 0, l->steps, 1);
}

static void add_inputs(learning *l)
{
    const int64_t count = l->steps * l->n;
    const stint_shape actions = stint_shape_make(STINT_I32, 1, &count);
    const stint_shape floats = STINT_SHAPE(l->steps, l->n);
    const int inputs = sti_agent_learning_input_count(l->agent->method);
    for (int i = STI_LEARN_ACTION; i < inputs; i++)
        l->in[i] = stint_input(l->g, sti_agent_learning_inputs[i],
                               i == STI_LEARN_ACTION ? &actions : &floats);
}

static void add_loss(const learning *l, sti_agent_learning *out)
{
    stint_graph *g = l->g;
    const stint_value of_policy = policy_loss(l), of_value = value_loss(l);
    const stint_value of_entropy = entropy(l);
    stint_value loss =
        stint_add(g, of_policy, stint_scale(g, of_value, (float)l->agent->value));
    loss = stint_sub(g, loss, stint_scale(g, of_entropy, (float)l->agent->entropy));
    *out = (sti_agent_learning){
        .graph = g,
        .loss = loss,
        .metric = {[STI_LEARN_POLICY_LOSS] = {"policy_loss", of_policy},
                   [STI_LEARN_VALUE_LOSS] = {"value_loss", of_value},
                   [STI_LEARN_ENTROPY] = {"entropy", of_entropy}}};
}

stint_status sti_agent_build_learning(const sti_agent_shape *shape,
                                      const sti_agent_values *agent, int64_t steps,
                                      int64_t n, sti_agent_learning *out)
{
    learning l = {.agent = agent, .steps = steps, .n = n};
    const stint_status st = stint_graph_create(STINT_TRAIN, &l.g);
    if (st != STINT_OK)
        return st;
    const stint_value x =
        observe(l.g, shape, (steps + shape->stack) * n, (steps + 1) * n);
    add_inputs(&l);
    add_heads(&l, shape, x);
    if (agent->method == STI_AGENT_VTRACE)
        returns_of_vtrace(&l);
    else
        returns_of_steps(&l);
    add_loss(&l, out);
    return STINT_OK;
}
