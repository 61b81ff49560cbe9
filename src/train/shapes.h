/* Shapes of four taps in a kernel of 3 x 3, as bits: bit t is tap t, row by row. After
 * PatDNN and ClickTrain (arXiv 2011.10170). */
#ifndef STI_TRAIN_SHAPES_H
#define STI_TRAIN_SHAPES_H

#include <stdint.h>

enum { STI_SHAPE_TAPS = 9, STI_SHAPES = 126 /* 9 choose 4 */ };

/* All shapes, by rising number. */
void sti_shapes_list(uint16_t shape_out[STI_SHAPES]);
/* The first `count` (at most 12) of ClickTrain's published list: four squares with the
 * centre, then forms of lines and corners. */
void sti_shapes_published(int count, uint16_t *shape_out);

/* Kernels by the importance of each of their taps. */
typedef struct sti_shape_kernels {
    const float *importance; /* tap t of kernel k: [t * kernels + k], 0 or more */
    int64_t kernels;
} sti_shape_kernels;

/* The shape that keeps most of a kernel's importance; the first one of equals. */
int sti_shapes_best(const uint16_t *shape, int count, const float *importance,
                    int64_t stride);
/* `count` shapes, chosen one after another, each the one that adds most to what the
 * kernels of all layers [layers] keep together with those before (of equal ones that
 * of lower number): at least 1 - 1/e of what the best set keeps (Nemhauser et al.
 * 1978). */
void sti_shapes_choose(const sti_shape_kernels *layer, int layers, int count,
                       uint16_t *shape_out);
/* What a set of shapes keeps of the importance of all kernels. */
double sti_shapes_keep(const sti_shape_kernels *layer, int layers,
                       const uint16_t *shape, int count);

#endif
