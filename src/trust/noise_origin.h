/* noise.json: what the runs of a laboratory's folder are of. */
#ifndef STI_TRUST_NOISE_ORIGIN_H
#define STI_TRUST_NOISE_ORIGIN_H

#include <stddef.h>

#include "base/memory.h"
#include "stint/status.h"

typedef struct sti_noise_origin {
    const char *numerics; /* version */
    const char *impl;     /* "order" or "ulp" */
    const char *data;     /* digest of the images */
    const char *recipe;   /* text, without paths */
} sti_noise_origin;

/* The texts are copied into the arena. STINT_E_INPUT: not such an object, or one of the
 * four is missing; where names the file. */
stint_status sti_noise_origin_parse(const char *text, size_t bytes, const char *where,
                                    sti_arena *arena, sti_noise_origin *out);

#endif
