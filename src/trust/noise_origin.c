#include "trust/noise_origin.h"

#include <jansson.h>

#include "base/fail.h"

stint_status sti_noise_origin_parse(const char *text, size_t bytes, const char *where,
                                    sti_arena *arena, sti_noise_origin *out)
{
    static const char *const keys[] = {"numerics", "impl", "data", "recipe"};
    const char *found[4] = {NULL};
    json_t *root = json_loadb(text, bytes, 0, NULL);
    stint_status st = STINT_OK;
    for (int i = 0; i < 4 && st == STINT_OK; i++) {
        const char *value = json_string_value(json_object_get(root, keys[i]));
        if (!value)
            st = sti_fail(STINT_E_INPUT,
                          "%s: does not say what the runs beside it are of", where);
        else if (!(found[i] = sti_arena_strdup(arena, value)))
            st = STINT_E_MEMORY;
    }
    json_decref(root);
    if (st == STINT_OK)
        *out = (sti_noise_origin){found[0], found[1], found[2], found[3]};
    return st;
}
