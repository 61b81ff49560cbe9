/* [field] of a recipe: what the points and the numbers of a field are called, and what
 * it is to satisfy (field_terms.h). */
#ifndef STI_MODEL_FIELD_SECTION_H
#define STI_MODEL_FIELD_SECTION_H

#include "base/recipe.h"

/* How the derivatives of a loss are found. */
enum { STI_FIELD_BY_AUTO, STI_FIELD_BY_REVERSE, STI_FIELD_BY_JETS };

enum { STI_TERMS_INSIDE, STI_TERMS_BORDER, STI_TERMS_START, STI_TERMS_DATA, STI_TERMS };

typedef struct sti_field_values {
    const char *coordinates; /* "x,y" */
    const char *outputs;     /* NULL: by their number */
    const char *domain;      /* "-1:1,0:2"; NULL: -1 to 1 each */
    /* Sets of points: what is to be zero there (NULL: nothing), what it counts, and
     * points a step (0: as many as the batch). */
    const char *term[4];
    double weight[4];
    int64_t points[4];
    const char *exact; /* of each output; NULL: not known */
    int by;            /* STI_FIELD_BY_AUTO, ... */
} sti_field_values;

extern const sti_recipe_section sti_field_section;
const sti_field_values *sti_field_section_of(const stint_recipe *recipe);

/* How the derivatives of a set of points are found, and why: multiply-adds of matrix
 * products a point, of a step's both halves, where both were counted; else NaN. */
typedef struct sti_field_way {
    bool asked; /* there are derivatives in the set */
    bool jets;
    bool laplacian; /* second derivatives stand in it as whole Laplacians alone */
    double reverse_multiply_adds, jets_multiply_adds; /* infinite: beyond all bounds */
} sti_field_way;

/* Names of coordinates and outputs. */
enum { STI_FIELD_NAME = 16, STI_FIELD_COORDINATES = 4, STI_FIELD_OUTPUTS = 16 };
typedef struct sti_field_names {
    int coordinates, outputs; /* outputs 0: not known yet */
    char coordinate[STI_FIELD_COORDINATES][STI_FIELD_NAME];
    char output[STI_FIELD_OUTPUTS][STI_FIELD_NAME];
} sti_field_names;

/* The names in two lists, outputs NULL or "": not known. A name is a letter and letters
 * or digits; in derivatives as u_xy each coordinate is one letter. STINT_E_INPUT. */
stint_status sti_field_names_parse(const char *coordinates, const char *outputs,
                                   sti_field_names *names_out);
/* The two lists, "x,y r,g,b": what a model file holds; and back. STINT_E_INPUT. */
void sti_field_names_print(const sti_field_names *names, sti_text *out);
stint_status sti_field_names_read(const char *text, sti_field_names *names_out);
/* Names for so many outputs where the recipe has none: u; u, v; r, g, b; or u0, u1. */
void sti_field_names_usual(sti_field_names *names, int outputs);

#endif
