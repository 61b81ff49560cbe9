/* Types: words like `unsigned long`, structs, enums, arrays. */
#include <string.h>

#include "seal/cc_parse_priv.h"

#define INTEGER(n, s)                                                        \
    {                                                                        \
        .kind = CC_INTEGER, .is_signed = (s), .bits = (n), .bytes = (n) / 8, \
        .align = (n) / 8                                                     \
    }

static const cc_type integers[2][4] = {
    {INTEGER(8, false), INTEGER(16, false), INTEGER(32, false), INTEGER(64, false)},
    {INTEGER(8, true), INTEGER(16, true), INTEGER(32, true), INTEGER(64, true)}};
const cc_type sti_cc_bool = {.kind = CC_BOOL, .bits = 1, .bytes = 1, .align = 1};
const cc_type sti_cc_void = {.kind = CC_VOID};

const cc_type *sti_cc_integer(int bits, bool is_signed)
{
    return &integers[is_signed][bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3];
}

/* What the words of a declaration have said so far. */
typedef struct words {
    int chars, shorts, ints, longs, is_signed, is_unsigned;
    const cc_type *type;
} words;

static const struct {
    const char *name;
    int bits;
    bool is_signed;
} standard[] = {{"int8_t", 8, true},     {"int16_t", 16, true},
                {"int32_t", 32, true},   {"int64_t", 64, true},
                {"uint8_t", 8, false},   {"uint16_t", 16, false},
                {"uint32_t", 32, false}, {"uint64_t", 64, false},
                {"size_t", 64, false},   {"ptrdiff_t", 64, true}};

static const cc_type *standard_type(const cc_token *t)
{
    for (size_t i = 0; i < sizeof standard / sizeof standard[0]; i++)
        if (sti_cc_is(t, standard[i].name))
            return sti_cc_integer(standard[i].bits, standard[i].is_signed);
    return NULL;
}

bool sti_cc_begins_type(cc_parser *p)
{
    static const char *const first[] = {
        "void",   "char",   "short", "int",    "long",     "signed",   "unsigned",
        "_Bool",  "struct", "enum",  "const",  "static",   "typedef",  "inline",
        "extern", "union",  "float", "double", "volatile", "register", NULL};
    for (int i = 0; first[i]; i++)
        if (sti_cc_is(p->at, first[i]))
            return true;
    if (p->at->kind != CC_NAME)
        return false;
    const cc_known *k = sti_cc_find(p, p->at, false);
    return k ? k->kind == CC_IS_TYPE : standard_type(p->at) != NULL;
}

static stint_status add_field(cc_parser *p, cc_type *type, const cc_type *member,
                              const cc_token *name, int64_t *capacity)
{
    if (type->count == *capacity) {
        const int64_t more = *capacity ? 2 * *capacity : 8;
        cc_field *grown = sti_cc_new(p, (size_t)more * sizeof *grown);
        if (!grown)
            return STINT_E_MEMORY;
        if (type->count > 0)
            memcpy(grown, type->field, (size_t)type->count * sizeof *grown);
        type->field = grown;
        *capacity = more;
    }
    for (int64_t i = 0; i < type->count; i++)
        if (type->field[i].length == name->length &&
            memcmp(type->field[i].name, name->text, (size_t)name->length) == 0)
            return CC_FAIL(p->program, name->line, "'%.*s' is twice in this struct",
                           name->length, name->text);
    type->field[type->count++] = (cc_field){
        .name = name->text, .length = name->length, .type = member, .at = type->bits};
    type->bits += member->bits;
    if (type->bits > CC_MAX_BITS)
        return CC_FAIL(p->program, name->line, "this struct is too large");
    type->bytes = (type->bytes + member->align - 1) / member->align * member->align +
                  member->bytes;
    type->align = member->align > type->align ? member->align : type->align;
    return STINT_OK;
}

static stint_status struct_body(cc_parser *p, cc_type *type)
{
    int64_t capacity = 0;
    stint_status st = STINT_OK;
    while (!sti_cc_take(p, "}")) {
        cc_specifiers s;
        STI_TRY(sti_cc_specifiers(p, &s));
        do {
            cc_token name;
            const cc_type *member;
            if (sti_cc_is(p->at, "*"))
                return CC_FAIL(p->program, p->at->line,
                               "there are no pointers in structs; use an index");
            STI_TRY(sti_cc_expect_name(p, &name));
            if (sti_cc_is(p->at, ":"))
                return CC_FAIL(p->program, p->at->line,
                               "there are no bit-fields; use masks");
            STI_TRY(sti_cc_suffixes(p, s.type, false, &member));
            if (member->kind == CC_VOID)
                return CC_FAIL(p->program, name.line, "a member cannot be void");
            STI_TRY(add_field(p, type, member, &name, &capacity));
        } while (sti_cc_take(p, ","));
        STI_TRY(sti_cc_expect(p, ";"));
    }
    if (type->count == 0)
        return CC_FAIL(p->program, p->at->line, "a struct without members");
    type->bytes = (type->bytes + type->align - 1) / type->align * type->align;
out:
    return st;
}

/* struct TAG, struct TAG { ... }, struct { ... } */
static stint_status take_struct(cc_parser *p, const cc_type **out)
{
    cc_token name = {.kind = CC_END};
    cc_known *known = NULL;
    cc_type *type;
    if (p->at->kind == CC_NAME) {
        name = *p->at++;
        known = sti_cc_find(p, &name, true);
    }
    if (!sti_cc_take(p, "{")) {
        if (!known || known->type->count == 0)
            return CC_FAIL(p->program, p->at->line,
                           "a struct that is not defined yet; define it above");
        *out = known->type;
        return STINT_OK;
    }
    type = sti_cc_new(p, sizeof *type);
    if (!type)
        return STINT_E_MEMORY;
    *type = (cc_type){.kind = CC_STRUCT, .align = 1};
    stint_status st = struct_body(p, type);
    if (st == STINT_OK && name.kind == CC_NAME)
        st = sti_cc_know(p, &name, (cc_known){.kind = CC_IS_TAG, .type = type});
    *out = type;
    return st;
}

static stint_status take_enum(cc_parser *p, const cc_type **out)
{
    int64_t number = 0;
    stint_status st = STINT_OK;
    bool all_positive = true;
    if (p->at->kind == CC_NAME)
        p->at++;
    *out = sti_cc_integer(32, false);
    if (!sti_cc_take(p, "{"))
        return STINT_OK;
    do {
        cc_token name;
        if (sti_cc_is(p->at, "}"))
            break;
        STI_TRY(sti_cc_expect_name(p, &name));
        if (sti_cc_take(p, "="))
            STI_TRY(p->number(p, &number));
        if (number > INT32_MAX || number < INT32_MIN)
            return CC_FAIL(p->program, name.line, "a constant of an enum is an int");
        all_positive = all_positive && number >= 0;
        STI_TRY(sti_cc_know(p, &name,
                            (cc_known){.kind = CC_IS_NUMBER, .number = number++}));
    } while (sti_cc_take(p, ","));
    *out = sti_cc_integer(32, !all_positive);
    st = sti_cc_expect(p, "}");
out:
    return st;
}

/* A word of a declaration; *taken false: it is none. */
static stint_status take_word(cc_parser *p, words *w, cc_specifiers *s, bool *taken)
{
    static const char *const refused[] = {"float", "double", "union", "_Complex", NULL};
    *taken = true;
    for (int i = 0; refused[i]; i++)
        if (sti_cc_is(p->at, refused[i]))
            return CC_FAIL(p->program, p->at->line,
                           i < 2 ? "there is no floating point; scale to integers, as "
                                   "in fixed-point arithmetic"
                                 : "'%s' cannot be part of a circuit; use a struct",
                           refused[i]);
    if (sti_cc_take(p, "const"))
        s->is_const = true;
    else if (sti_cc_take(p, "static"))
        s->is_static = true;
    else if (sti_cc_take(p, "typedef"))
        s->is_typedef = true;
    else if (sti_cc_take(p, "inline") || sti_cc_take(p, "register") ||
             sti_cc_take(p, "extern") || sti_cc_take(p, "volatile"))
        return STINT_OK;
    else if (sti_cc_take(p, "char"))
        w->chars++;
    else if (sti_cc_take(p, "short"))
        w->shorts++;
    else if (sti_cc_take(p, "int"))
        w->ints++;
    else if (sti_cc_take(p, "long"))
        w->longs++;
    else if (sti_cc_take(p, "signed"))
        w->is_signed++;
    else if (sti_cc_take(p, "unsigned"))
        w->is_unsigned++;
    else if (sti_cc_take(p, "_Bool"))
        w->type = &sti_cc_bool;
    else if (sti_cc_take(p, "void"))
        w->type = &sti_cc_void;
    else if (sti_cc_take(p, "struct"))
        return take_struct(p, &w->type);
    else if (sti_cc_take(p, "enum"))
        return take_enum(p, &w->type);
    else
        *taken = false;
    return STINT_OK;
}

/* A typedef's or a standard name, where no type was named yet. */
static bool take_named(cc_parser *p, words *w)
{
    if (w->type || w->chars || w->shorts || w->ints || w->longs || w->is_signed ||
        w->is_unsigned || p->at->kind != CC_NAME)
        return false;
    const cc_known *k = sti_cc_find(p, p->at, false);
    w->type = k ? (k->kind == CC_IS_TYPE ? k->type : NULL) : standard_type(p->at);
    if (w->type)
        p->at++;
    return w->type != NULL;
}

stint_status sti_cc_specifiers(cc_parser *p, cc_specifiers *out)
{
    words w = {0};
    bool taken = true;
    stint_status st = STINT_OK;
    *out = (cc_specifiers){0};
    STI_TRY(sti_cc_deeper(p));
    while (taken) {
        STI_TRY(take_word(p, &w, out, &taken));
        if (!taken)
            taken = take_named(p, &w);
    }
    p->depth--;
    const bool number =
        w.chars || w.shorts || w.ints || w.longs || w.is_signed || w.is_unsigned;
    if ((!number && !w.type) || (number && w.type))
        return sti_cc_wrong(p, "a type");
    out->type = w.type;
    if (number)
        out->type = sti_cc_integer(w.chars    ? 8
                                   : w.shorts ? 16
                                   : w.longs  ? 64
                                              : 32,
                                   !w.is_unsigned);
out:
    return st;
}

static stint_status array_of(cc_parser *p, const cc_type *element, int64_t count,
                             const cc_type **out)
{
    cc_type *type = sti_cc_new(p, sizeof *type);
    if (!type)
        return STINT_E_MEMORY;
    if (element->kind == CC_VOID || element->bits <= 0)
        return CC_FAIL(p->program, p->at->line, "no elements of this type");
    const int64_t n = count > 0 ? count : 1;
    if (n > CC_MAX_BITS / element->bits)
        return CC_FAIL(p->program, p->at->line,
                       "an array of more than %" PRId64 " bits", CC_MAX_BITS);
    *type = (cc_type){.kind = CC_ARRAY,
                      .bits = n * element->bits,
                      .bytes = n * element->bytes,
                      .align = element->align,
                      .element = element,
                      .count = count};
    *out = type;
    return STINT_OK;
}

stint_status sti_cc_suffixes(cc_parser *p, const cc_type *element, bool first_open,
                             const cc_type **out)
{
    int64_t count = -1;
    stint_status st = STINT_OK;
    if (!sti_cc_take(p, "[")) {
        *out = element;
        return STINT_OK;
    }
    STI_TRY(sti_cc_deeper(p));
    sti_cc_take(p, "static");
    if (!(first_open && sti_cc_is(p->at, "]"))) {
        STI_TRY(p->number(p, &count));
        if (count < 1)
            return CC_FAIL(p->program, p->at->line,
                           "an array of %" PRId64 " elements; 1 and more can be",
                           count);
    }
    STI_TRY(sti_cc_expect(p, "]"));
    STI_TRY(sti_cc_suffixes(p, element, false, &element));
    p->depth--;
    st = array_of(p, element, count, out);
out:
    return st;
}

stint_status sti_cc_type_name(cc_parser *p, const cc_type **out)
{
    cc_specifiers s;
    stint_status st = sti_cc_specifiers(p, &s);
    if (st == STINT_OK && sti_cc_is(p->at, "*"))
        return CC_FAIL(p->program, p->at->line,
                       "there are no casts to pointers; use the array itself");
    return st == STINT_OK ? sti_cc_suffixes(p, s.type, false, out) : st;
}
