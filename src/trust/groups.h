/* Groups of inputs, for figures of each. */
#ifndef STI_TRUST_GROUPS_H
#define STI_TRUST_GROUPS_H

#include <stdint.h>

#include "stint/status.h"

typedef struct sti_groups {
    int32_t *of;       /* [inputs] number of the group; NULL: no groups were given */
    const char **name; /* [count], borrowed from what was given */
    int64_t count;
} sti_groups;

/* Numbers names in the order of their first use. name: [names], one an input, or NULL
 * for no groups. STINT_E_INPUT: not `inputs` of them, or an empty one. To be given to
 * fini also after a failure. */
stint_status sti_groups_init(sti_groups *groups, const char *const *name, int64_t names,
                             int64_t inputs);
void sti_groups_fini(sti_groups *groups);

#endif
