/* Projections: the nearest weights that a scheme can hold.
 *
 * A projection is made for one network. It acts on a block laid out as the network's
 * parameters, in place, and leaves in each target what form its numbers have now. The
 * words of the scheme are applied from left to right; what a word holds apart from the
 * numbers (factors, scales) is restored from right to left, so that the block holds
 * what the compressed network computes with, to the bit. Applied to its own result it
 * changes nothing, except through `lowrank`, whose factors are found again with other
 * last bits. Serves one thread at a time; all memory is taken when it is created. */
#ifndef STI_TRAIN_PROJECT_H
#define STI_TRAIN_PROJECT_H

#include "codec/weight_form.h"
#include "model/network.h"
#include "train/scheme.h"

enum { STI_COMPANIONS = 3, STI_SCHEME_TARGETS = 256 };

/* A weight that a word takes, and vectors of its output channels (its bias, scale and
 * shift of the batch-norm behind it) that become zero with a row or filter, so that its
 * outputs are zero. */
typedef struct sti_target {
    stint_value value;
    const char *name;
    size_t offset;  /* in the block of parameters, bytes */
    int64_t count;  /* numbers */
    bool filters;   /* of a convolution */
    bool depthwise; /* each filter sees one of several channels */
    unsigned takes; /* bit w: word w takes it */
    int companions;
    size_t companion[STI_COMPANIONS];
    sti_weight_form form;             /* of the last projection */
    float *scale;                     /* [columns] with quantise, else NULL */
    int64_t rank;                     /* of its factors, which are */
    float *left, *right, *left_scale; /* [rows, rank] and so on; no lowrank: NULL */
} sti_target;

/* Shapes of `pattern`, chosen by the first projection. Of an array's form, for it is a
 * tensor of checkpoints: 1 when they are known, then the shapes. */
typedef struct sti_shapes_state {
    uint16_t known, shape[STI_WEIGHT_PATTERNS_MAX];
} sti_shapes_state;

/* Consecutive numbers of the block of parameters. */
typedef struct sti_span {
    size_t offset; /* bytes */
    int64_t count;
} sti_span;

typedef struct sti_projection {
    sti_arena *arena;
    sti_shrink_scheme scheme;
    sti_target *target;
    int count;
    bool fixed_shapes, measure; /* as described */
    sti_shapes_state shapes;
    sti_span *span; /* [spans]: numbers that a word may change, each once */
    int spans;
    unsigned warned; /* bit w: word w would have emptied a layer */
    float *score;    /* of units, for one word */
    double *svd;     /* scratch of lowrank */
    int64_t score_count;
    size_t bytes; /* of all that it takes for numbers */
} sti_projection;

typedef struct sti_projection_desc {
    const sti_shrink_scheme *scheme;
    const char *keep;
    bool fixed_shapes; /* the published list in the place of chosen ones */
    bool measure;      /* for `bytes` and errors alone: it cannot be applied */
    bool quiet;        /* no warning of a layer that would be emptied */
} sti_projection_desc;

/* keep: names that no word takes, comma-separated globs; NULL: of kernel and
 * pattern the first convolution, the classifier and shortcuts, of row and structure the
 * classifier, whose outputs are the classes. The
 * network is planned, and borrowed while this call lasts. A scheme with `auto` is made
 * with nothing removed there.
 * STINT_E_USAGE: a glob that picks nothing (with the nearest name), a list of another
 * length than the layers, tiles that do not divide, `align` above a layer, no 3 x 3
 * kernels to shape, kernels of depthwise convolutions. */
stint_status sti_projection_create(const sti_projection_desc *desc,
                                   const sti_network *network,
                                   sti_projection **projection_out);
void sti_projection_destroy(sti_projection *projection); /* NULL is fine */
void sti_project(sti_projection *projection, void *params);

/* Numbers of a target in such a block. */
static inline float *sti_target_numbers(const sti_target *target, void *params)
{
    return (float *)(void *)((char *)params + target->offset);
}

/* Numbers other than zero, and all numbers, of the targets. */
void sti_projection_count(const sti_projection *projection, const void *params,
                          int64_t *nonzeros_out, int64_t *weights_out);

#endif
