/* Groups of inputs, for figures of each. */
#include "trust/groups.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

stint_status sti_groups_init(sti_groups *groups, const char *const *name, int64_t names,
                             int64_t inputs)
{
    *groups = (sti_groups){0};
    if (!name)
        return STINT_OK;
    if (names != inputs)
        return sti_fail(STINT_E_INPUT,
                        "%" PRId64 " group names for %" PRId64
                        " inputs; give one a line, in the order of the data",
                        names, inputs);
    groups->of = sti_alloc_array(inputs, sizeof *groups->of, "groups");
    groups->name = sti_alloc_array(inputs, sizeof *groups->name, "groups");
    if (!groups->of || !groups->name)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < inputs; i++) {
        int64_t g = 0;
        if (!*name[i])
            return sti_fail(STINT_E_INPUT,
                            "groups: line %" PRId64 " is empty; every input needs a "
                            "group",
                            i + 1);
        while (g < groups->count && strcmp(groups->name[g], name[i]) != 0)
            g++;
        if (g == groups->count)
            groups->name[groups->count++] = name[i];
        groups->of[i] = (int32_t)g;
    }
    return STINT_OK;
}

void sti_groups_fini(sti_groups *groups)
{
    sti_free(groups->of);
    sti_free(groups->name);
    *groups = (sti_groups){0};
}
