/* [net] of a recipe: how gradients travel between processes. */
#ifndef STI_NET_NET_SECTION_H
#define STI_NET_NET_SECTION_H

#include "base/recipe.h"

typedef struct sti_net_values {
    int64_t bits;     /* a value of a gradient; 32: exact, 0: chosen a layer */
    const char *link; /* a rate to choose bits for; NULL: none */
    double time;      /* seconds that the link may take a step */
    int64_t every;    /* steps between choices of bits */
    int method, rounding, scheme; /* sti_gradient_method, _rounding, sti_scheme */
    int64_t bucket, group;
    bool clip, feedback, overlap;
    double keep;  /* share of the values that is sent */
    double error; /* squared, in that of 4 bits for all */
} sti_net_values;

extern const sti_recipe_section sti_net_section;
const sti_net_values *sti_net_section_of(const stint_recipe *recipe);

#endif
