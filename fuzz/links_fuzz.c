/* Any text as a file of links: refused, or a model whose times are numbers. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "net/link_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_arena *arena = sti_arena_create("fuzz");
    sti_links links;
    if (!arena)
        exit(1);
    if (sti_links_parse((const char *)data, size, "links.json", arena, &links) ==
        STINT_OK)
        for (int i = 0; i < links.count; i++)
            for (double bytes = 0; bytes < 1e12; bytes = bytes * 100 + 1)
                if (!isfinite(sti_link_seconds_at(&links.models[i], bytes, 6)))
                    abort();
    sti_arena_destroy(arena);
    return 0;
}
