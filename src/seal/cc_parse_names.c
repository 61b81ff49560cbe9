/* Names in scope, and words taken one by one. */
#include <string.h>

#include "seal/cc_parse_priv.h"

void *sti_cc_new(cc_parser *p, size_t bytes)
{
    return sti_arena_alloc(p->program->arena, bytes);
}

/* `list` is the address of an array of pointers from sti_alloc. */
stint_status sti_cc_append(cc_parser *p, void *list, int64_t *count, int64_t *capacity,
                           void *item)
{
    void ***array = list;
    (void)p;
    if (*count == *capacity) {
        const int64_t more = *capacity ? 2 * *capacity : 8;
        void **grown = sti_realloc(*array, (size_t)more * sizeof *grown, "seal.tree");
        if (!grown)
            return STINT_E_MEMORY;
        *array = grown;
        *capacity = more;
    }
    (*array)[(*count)++] = item;
    return STINT_OK;
}

stint_status sti_cc_wrong(const cc_parser *p, const char *wanted)
{
    const cc_token *t = p->at;
    if (t->kind == CC_END)
        return CC_FAIL(p->program, t->line, "the file ends where %s is wanted", wanted);
    if (t->kind == CC_BOUND)
        return CC_FAIL(
            p->program, t->line,
            "#pragma stint bound stands above a loop, not where %s is wanted", wanted);
    return CC_FAIL(p->program, t->line, "'%.*s' where %s is wanted",
                   t->length < 40 ? t->length : 40, t->text, wanted);
}

bool sti_cc_take(cc_parser *p, const char *text)
{
    if (!sti_cc_is(p->at, text))
        return false;
    p->at++;
    return true;
}

stint_status sti_cc_expect(cc_parser *p, const char *text)
{
    char wanted[16] = "'";
    if (sti_cc_take(p, text))
        return STINT_OK;
    strncat(wanted, text, 8);
    strncat(wanted, "'", 2);
    return sti_cc_wrong(p, wanted);
}

stint_status sti_cc_expect_name(cc_parser *p, cc_token *out)
{
    if (p->at->kind != CC_NAME)
        return sti_cc_wrong(p, "a name");
    *out = *p->at++;
    return STINT_OK;
}

stint_status sti_cc_deeper(cc_parser *p)
{
    if (++p->depth <= CC_MAX_DEPTH)
        return STINT_OK;
    return CC_FAIL(p->program, p->at->line, "nested more than %d deep", CC_MAX_DEPTH);
}

cc_known *sti_cc_find(cc_parser *p, const cc_token *name, bool tags)
{
    for (int64_t i = p->knowns - 1; i >= 0; i--) {
        cc_known *k = &p->known[i];
        if ((k->kind == CC_IS_TAG) == tags && k->length == name->length &&
            memcmp(k->name, name->text, (size_t)name->length) == 0)
            return k;
    }
    return NULL;
}

stint_status sti_cc_know(cc_parser *p, const cc_token *name, cc_known known)
{
    const cc_known *before = sti_cc_find(p, name, known.kind == CC_IS_TAG);
    if (before && before - p->known >= p->scope)
        return CC_FAIL(p->program, name->line, "'%.*s' is declared twice", name->length,
                       name->text);
    if (p->knowns == p->known_capacity) {
        const int64_t capacity = p->known_capacity ? 2 * p->known_capacity : 64;
        cc_known *grown =
            sti_realloc(p->known, (size_t)capacity * sizeof *grown, "seal.names");
        if (!grown)
            return STINT_E_MEMORY;
        p->known = grown;
        p->known_capacity = capacity;
    }
    known.name = name->text;
    known.length = name->length;
    p->known[p->knowns++] = known;
    return STINT_OK;
}

cc_node *sti_cc_node(cc_parser *p, cc_node_kind kind)
{
    cc_node *n = sti_cc_new(p, sizeof *n);
    if (n) {
        n->kind = kind;
        n->line = p->at->line;
    }
    return n;
}
