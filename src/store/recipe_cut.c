#include "store/recipe_cut.h"

#include <string.h>

#include "base/fail.h"
#include "base/recipe.h"

/* A part of a text. */
typedef struct span {
    const char *at;
    size_t length;
} span;

/* The next line, without its end, or one of length 0 behind the last. */
static span take_line(const char **text)
{
    const span line = {*text, strcspn(*text, "\n")};
    *text += line.length + ((*text)[line.length] == '\n');
    return line;
}

static bool same(span a, span b)
{
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

/* Does `text` have this line in this section? */
static bool has_line(const char *text, span section, span line)
{
    span now = {"", 0};
    while (*text) {
        const span next = take_line(&text);
        if (next.length > 0 && next.at[0] == '[')
            now = next;
        else if (same(next, line) && same(now, section))
            return true;
    }
    return false;
}

static void add_line(span line, sti_text *out)
{
    sti_text_add_bytes(out, line.at, line.length);
    sti_text_add(out, "\n");
}

static void cut(const char *text, const char *defaults, sti_text *out)
{
    span section = {"", 0};
    bool named = false;
    while (*text) {
        const span line = take_line(&text);
        if (line.length > 0 && line.at[0] == '[') {
            section = line;
            named = false;
        } else if (line.length > 0 && !has_line(defaults, section, line)) {
            if (!named && section.length > 0)
                add_line(section, out);
            named = true;
            add_line(line, out);
        }
    }
}

stint_status sti_recipe_join(const char *cut_text, const char *where, sti_text *out)
{
    stint_recipe *recipe = NULL;
    stint_status st = sti_recipe_parse(cut_text, where, &recipe);
    if (st == STINT_OK)
        st = sti_recipe_write(recipe, true, out);
    stint_recipe_destroy(recipe);
    return st;
}

stint_status sti_recipe_cut(const char *text, sti_text *out, bool *cut_out)
{
    sti_text defaults = {0}, small = {0}, again = {0};
    stint_status st;
    STI_TRY(sti_recipe_join("", "a recipe of defaults", &defaults));
    cut(text, defaults.data ? defaults.data : "", &small);
    STI_TRY(sti_recipe_join(small.data ? small.data : "", "the recipe, cut", &again));
    *cut_out = again.data && strcmp(again.data, text) == 0;
    sti_text_add(out, *cut_out ? (small.data ? small.data : "") : text);
    st = small.failed || again.failed || out->failed ? STINT_E_MEMORY : STINT_OK;
out:
    sti_text_fini(&defaults);
    sti_text_fini(&small);
    sti_text_fini(&again);
    return st;
}
