/* Hostile schemes: what can be read is within its bounds, and settling `auto` gives a
 * scheme that can be read again, without any. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "train/scheme.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const sti_shrink_scheme *scheme)
{
    if (scheme->count < 1 || scheme->count > STI_SCHEME_WORDS)
        abort();
    for (int w = 0; w < scheme->count; w++) {
        const sti_scheme_word *word = &scheme->word[w];
        if ((unsigned)word->kind >= STI_SCHEME_KINDS || word->align < 1 ||
            word->shares < 0 || word->shares > STI_SCHEME_SHARES ||
            (word->automatic && word->shares != 0) || word->patterns < 0 ||
            word->patterns > STI_WEIGHT_PATTERNS_MAX)
            abort();
        for (int i = 0; i < word->shares; i++)
            if (!(word->share[i] >= 0 && word->share[i] < 1))
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const double share = 0.5;
    sti_shrink_scheme scheme;
    sti_text settled = {0};
    char *text = sti_alloc(size + 1, "fuzz");
    if (!text)
        return 0;
    memcpy(text, data, size);
    if (sti_scheme_parse(text, &scheme) == STINT_OK) {
        check(&scheme);
        sti_scheme_settle(text, &share, 1, &settled);
        if (sti_scheme_parse(settled.data, &scheme) != STINT_OK ||
            sti_scheme_is_automatic(&scheme))
            abort();
    }
    sti_text_fini(&settled);
    sti_free(text);
    return 0;
}
