/* A network with its loss as a planned graph: for one shard of a training step, or for
 * one batch of an evaluation. */
#ifndef STI_MODEL_NETWORK_H
#define STI_MODEL_NETWORK_H

#include "base/team.h"
#include "model/field_section.h"
#include "model/update_set.h"
#include "pass/pass.h"
#include "plan/plan.h"
#include "stint/model.h"

/* Parts of a loss against a reference model, after the multi-part loss of "Going Beyond
 * Classification Accuracy Metrics in Model Compression" (arXiv 2012.01604):
 *   hard     cross-entropy against the labels
 *   pairing  mean square of the difference of the logits
 *   soft     cross-entropy against the reference's probabilities at a temperature */
enum { STI_LOSS_HARD, STI_LOSS_PAIRING, STI_LOSS_SOFT, STI_LOSS_PARTS };

typedef struct sti_loss_desc {
    const struct sti_network_desc *reference; /* NULL: labels alone */
    float factor[STI_LOSS_PARTS];             /* 0: that part is not there */
    float temperature;
    int32_t top;                   /* of soft, of text: see stint_distillation_desc */
    float focal_base, focal_right; /* of pairing, see stint_pairing_desc */
    bool weighted; /* factors are also multiplied by the input "loss_weights" */
} sti_loss_desc;

/* A network whose graph is not one of the table's (stint_model_build), but comes from a
 * file that another program made. */
typedef struct sti_network_source {
    /* images [n, h, w, c] to logits [n, classes], for any n. Parameters have the names
     * and shapes of the file's tensors, but for those of the classifier, whose shapes
     * follow the number of classes. On failure -1, and the graph has failed. */
    stint_value (*build)(const void *user, stint_graph *graph, int64_t classes,
                         stint_value images);
    /* Is it a parameter that is added: a bias or shift? Their names may say nothing. */
    bool (*is_bias)(const void *user, const char *parameter);
    const void *user; /* lives as long as what refers to it */
} sti_network_source;

/* Weights that are known when the network is built, for use: parameters and states are
 * constants of its graph then, PARAM and STATE are empty, and what depends on weights
 * alone is computed once. */
typedef struct sti_network_weights {
    /* A tensor's bytes, 64-byte aligned, which live as long as the network; NULL: it
     * has no such tensor of this shape. */
    const void *(*data)(const void *user, const char *name, const stint_shape *shape);
    sti_compact_choice fast;
    const void *user;
} sti_network_weights;

typedef struct sti_network_desc {
    const char *name;                 /* "resnet20" */
    const sti_network_source *source; /* of images: in place of name's; NULL: none */
    stint_model_desc model;
    int64_t height, width, channels; /* of the images */
    stint_text_model_desc text; /* instead of all that, of a text model: resolved */
    int64_t context;            /* tokens a sequence; 0: a network for images */
    stint_field_desc field;     /* instead of both, of a field: resolved; coordinates 0:
                                   none */
    sti_field_names names;      /* of its coordinates and outputs */
    const sti_field_values *terms; /* what it is to satisfy; lives as the recipe */
    int64_t field_batch;  /* points a step, which those that are drawn are shared by */
    bool field_drawn;     /* there are no data: all points are drawn */
    int field_targets;    /* columns of its targets; 0: as the outputs */
    float smoothing;      /* of labels, in training */
    bool bf16;            /* activations, see sti_pass_precision */
    bool winograd;        /* where it fits, see sti_pass_winograd; not bf16 */
    int weight_bits;      /* of weights; 0: f32 */
    sti_bayes_desc bayes; /* of images: weights are drawn, see sti_pass_bayes */
    bool sampled;         /* in use: weights are drawn and dropout drops, for many
                             runs of a batch; false: means, and no dropout */
    sti_update_rule at_once; /* in training: see sti_graph_update_at_once; op NULL: at
                                the end of a step */
    bool freeze_norm;        /* see sti_graph_freeze_norm */
    float gradient_penalty;  /* in training, of images and text: what the mean square
                                norm of the loss's gradient by an image, or by the
                                embeddings of a sequence, counts */
    bool squares;            /* in training: |gradient|^2 is a metric */
    bool mixed;         /* in training: images have two labels, see train/mixup.h */
    bool class_weights; /* in training: images count by the input of that name */
    sti_loss_desc loss; /* in training, of images and text */
    sti_lora_desc lora; /* of text: adapters beside its products */
    const sti_update_set *update; /* in training: what is trained; NULL: all of it */
    bool frozen_bytes; /* with update: the other weights in bytes, see sti_pass_bytes */
    bool fold_norm;    /* likewise: frozen norms in frozen convolutions, see
                          sti_pass_fold_norm */
    bool keeps;        /* in training: what is frozen is made ready once, see
                                 sti_graph_keep_constants */
    const sti_network_weights *constant; /* EVAL, not bf16; NULL: weights come later */
} sti_network_desc;

typedef struct sti_network {
    stint_graph *graph;
    sti_plan *plan;
    int64_t context; /* tokens a sequence; 0: images */
    int64_t images;  /* (or sequences) of one run */
    /* The input of a field is points [images, coordinates] and the labels are targets
     * [images, outputs], both f32. bounds: -1, nothing is packed. */
    stint_value input, labels, bounds;
    stint_value weights;       /* of the parts of the loss, to be filled; -1: none */
    stint_value class_weights; /* [classes], likewise */
    /* Inputs of mixed images, to be filled: the other label [images] i32, and what an
       image's own label counts and what the other does, both [images, 1]; -1: none. */
    stint_value others, share, rest;
    stint_value kl_weight; /* what KL counts in the loss, likewise */
    stint_value moved;     /* runs after which shift registers are not back; -1: none */
    bool adds;             /* its runs are added up, see sti_pass_adds */
    stint_value part[STI_LOSS_PARTS]; /* of the loss, without factors; -1: not there */
    /* Values that leave the graph. EVAL only: logits, probabilities. -1: none. Of text
     * there is the loss alone: the logits of a large vocabulary are never made whole.
     * The logits of a field are its outputs. */
    stint_value loss, correct, logits, probabilities;
    sti_field_way way[STI_TERMS]; /* of a field's losses, TRAIN only */
    stint_value squares; /* of all gradients together, if asked for; -1: none */
} sti_network;

/* Forward pass and loss of `images` images; TRAIN: also the backward pass. Runs the
 * standard passes. */
stint_status sti_network_build(const sti_network_desc *desc, stint_mode mode,
                               int64_t images, sti_network *network);
/* A warning in the log where training of `images` images a run keeps more for its
 * backward half in bfloat16 than it would in float32. Nothing without desc->bf16. */
stint_status sti_network_check_bf16(const sti_network_desc *desc, int64_t images);
/* Hold saved tensors packed, see pass/pack.c; then plan it (again). */
stint_status sti_network_pack(sti_network *network, const sti_pack_choice *choices,
                              int count, bool check);
/* Before a network for use is planned: what depends on its parameters and states alone
 * is made once (pass/once) by whoever fills them in, and again whenever they change;
 * plans have it as KEPT. Bits stay. */
void sti_network_keep(sti_network *network, bool keep);
/* Plan it for a team (again: for another one). */
stint_status sti_network_plan(sti_network *network, int threads);
void sti_network_fini(sti_network *network); /* a zeroed one is fine */

/* Scope of the reference's tensors, which are the FIXED ones of the graph. */
#define STI_REFERENCE_SCOPE "reference"

int64_t sti_network_parameters(const sti_network *network);
/* How many of these training changes. */
int64_t sti_network_trained(const sti_network *network);
/* Arithmetic of the forward pass of one image. */
double sti_network_forward_flop(const sti_network *network);
/* Arithmetic of a whole run of a training network. */
double sti_network_step_flop(const sti_network *network);
/* Do two networks keep parameters and states at the same places? STINT_E_BUG if not. */
stint_status sti_network_agree(const sti_network *a, const sti_network *b);

/* Call fn for every parameter, then every state, in the order of their bytes. */
typedef stint_status sti_network_tensor_fn(void *user, const sti_value_row *row,
                                           const sti_allocation *allocation);
stint_status sti_network_each(const sti_network *network, sti_role role,
                              sti_network_tensor_fn *fn, void *user);

/* Initial values: params and states are blocks of the plan's PARAM and STATE regions. A
 * weight is a function of (seed, parameter, element). */
stint_status sti_network_init_weights(const sti_network *network, const sti_team *team,
                                      uint64_t seed, void *params, void *states);
/* Flip the last bit of one weight among those that were drawn at random, chosen by the
 * seed: the least difference that two runs can begin with. */
stint_status sti_network_flip_ulp(const sti_network *network, uint64_t seed,
                                  void *params);

#endif
