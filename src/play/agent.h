/* The agent as graphs: one that acts, one that learns from a shard of what was lived
 * through. Both have the same parameters. */
#ifndef STI_PLAY_AGENT_H
#define STI_PLAY_AGENT_H

#include "play/agent_section.h"
#include "stint/env.h"
#include "stint/op.h"
#include "stint/session.h"

/* What the graphs are built for. */
typedef struct sti_agent_shape {
    int network;       /* STI_NETWORK_SMALL, _LARGE or _MLP */
    int height, width; /* of an observation */
    int stack, actions;
} sti_agent_shape;

/* The network that `auto` stands for. */
sti_agent_shape sti_agent_shape_of(const stint_env_facts *facts, int network,
                                   int stack);
const char *sti_agent_network_name(int network);

/* Acting: inputs "frames" [frames, h, w] u8 and "index" [rows, stack] i32; outputs
 * log-probabilities [rows, actions] and values [rows]. */
typedef struct sti_agent_acting {
    stint_graph *graph;
    stint_named_value output[2];
} sti_agent_acting;
stint_status sti_agent_build_acting(const sti_agent_shape *shape, int64_t rows,
                                    sti_agent_acting *out);
extern const char *const sti_agent_acting_inputs[2];

/* Inputs of learning, in their order: [steps, n] each unless said otherwise. */
enum {
    STI_LEARN_FRAMES,   /* [steps + stack, n] frames, time-major, u8 */
    STI_LEARN_INDEX,    /* [(steps + 1) n, stack] i32 */
    STI_LEARN_ACTION,   /* [steps n] i32 */
    STI_LEARN_REWARD,   /* f32 */
    STI_LEARN_DISCOUNT, /* f32 */
    STI_LEARN_WEIGHT,   /* f32: 1, or 0 for a step that began an episode */
    STI_LEARN_MU,       /* f32: log-probability of the action when it was taken; vtrace
                           and ppo */
    STI_LEARN_VALUE,    /* f32: of the state, then; ppo */
    STI_LEARN_INPUTS
};
extern const char *const sti_agent_learning_inputs[STI_LEARN_INPUTS];
int sti_agent_learning_input_count(int method);

enum { STI_LEARN_POLICY_LOSS, STI_LEARN_VALUE_LOSS, STI_LEARN_ENTROPY, STI_METRICS };

typedef struct sti_agent_learning {
    stint_graph *graph;
    stint_value loss;
    stint_named_value metric[STI_METRICS];
} sti_agent_learning;
/* A shard: `steps` steps of n environments. */
stint_status sti_agent_build_learning(const sti_agent_shape *shape,
                                      const sti_agent_values *agent, int64_t steps,
                                      int64_t n, sti_agent_learning *out);

#endif
