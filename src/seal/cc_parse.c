/* Declarations, functions and statements. */
#include <string.h>

#include "seal/cc_parse_priv.h"

static stint_status statement(cc_parser *p, cc_node **out);

/* A list of nodes in the arena; frees `list`. */
static stint_status set_list(cc_parser *p, cc_node *n, cc_node **list, int64_t count)
{
    n->count = count;
    n->list = sti_cc_new(p, (size_t)(count + 1) * sizeof *list);
    if (n->list && count > 0)
        memcpy(n->list, list, (size_t)count * sizeof *list);
    sti_free(list);
    return n->list ? STINT_OK : STINT_E_MEMORY;
}

/* ---- variables ---- */

stint_status sti_cc_initialiser(cc_parser *p, cc_node **out)
{
    cc_node **list = NULL;
    int64_t count = 0, capacity = 0;
    stint_status st;
    if (!sti_cc_take(p, "{"))
        return sti_cc_assignment(p, out);
    STI_TRY(sti_cc_deeper(p));
    *out = sti_cc_node(p, CC_BRACES);
    STI_TRY(*out ? STINT_OK : STINT_E_MEMORY);
    while (!sti_cc_take(p, "}")) {
        cc_node *item = NULL;
        if (sti_cc_is(p->at, ".") || sti_cc_is(p->at, "[")) {
            st = CC_FAIL(p->program, p->at->line,
                         "initialisers have no designators here; give all in order");
            goto out;
        }
        STI_TRY(sti_cc_initialiser(p, &item));
        STI_TRY(sti_cc_append(p, &list, &count, &capacity, item));
        if (!sti_cc_is(p->at, "}"))
            STI_TRY(sti_cc_expect(p, ","));
    }
    p->depth--;
    st = set_list(p, *out, list, count);
    list = NULL;
out:
    sti_free(list);
    return st;
}

/* An array without a count has as many elements as its initialiser. */
static stint_status complete_type(cc_parser *p, const cc_token *name,
                                  const cc_node *initial, const cc_type **type)
{
    if ((*type)->kind == CC_VOID)
        return CC_FAIL(p->program, name->line, "a variable cannot be void");
    if ((*type)->kind != CC_ARRAY || (*type)->count >= 0)
        return STINT_OK;
    if (!initial || initial->kind != CC_BRACES || initial->count == 0)
        return CC_FAIL(p->program, name->line, "how many elements has '%.*s'?",
                       name->length, name->text);
    cc_type *whole = sti_cc_new(p, sizeof *whole);
    if (!whole)
        return STINT_E_MEMORY;
    *whole = **type;
    whole->count = initial->count;
    if (whole->count > CC_MAX_BITS / whole->element->bits)
        return CC_FAIL(p->program, name->line, "an array that is too large");
    whole->bits = whole->count * whole->element->bits;
    whole->bytes = whole->count * whole->element->bytes;
    *type = whole;
    return STINT_OK;
}

static stint_status add_variable(cc_parser *p, const cc_token *name,
                                 const cc_type *type, bool is_global, bool by_reference,
                                 cc_variable **out)
{
    cc_variable *v = sti_cc_new(p, sizeof *v);
    if (!v)
        return STINT_E_MEMORY;
    int64_t *bits = is_global ? &p->program->global_bits : &p->function->bits;
    *v = (cc_variable){.name = name->text,
                       .length = name->length,
                       .type = type,
                       .is_global = is_global,
                       .by_reference = by_reference,
                       .at = *bits,
                       .line = name->line};
    if (!is_global)
        v->slot = p->function->slots++;
    if (!by_reference)
        *bits += type->bits;
    if (*bits > CC_MAX_BITS)
        return CC_FAIL(p->program, name->line,
                       "variables of more than %" PRId64 " bits", CC_MAX_BITS);
    *out = v;
    return STINT_OK;
}

/* A global, and a static variable of a function, keeps its value between calls. */
static stint_status add_global(cc_parser *p, const cc_token *name,
                               const cc_specifiers *s, const cc_type *type,
                               cc_node *initial)
{
    cc_variable *v = NULL;
    stint_status st = add_variable(p, name, type, true, false, &v);
    STI_TRY(st);
    v->initial = initial;
    v->is_const = s->is_const;
    STI_TRY(sti_cc_append(p, &p->program->global, &p->program->globals,
                          &p->program->global_capacity, v));
    st = sti_cc_know(p, name, (cc_known){.kind = CC_IS_VARIABLE, .variable = v});
out:
    return st;
}

static stint_status refuse_pointer(cc_parser *p)
{
    return CC_FAIL(
        p->program, p->at->line,
        "there are no pointer variables; use an index, or an array parameter "
        "T p[N]");
}

/* One name of a declaration behind its specifiers. out: a node, NULL for globals. */
static stint_status declarator(cc_parser *p, const cc_specifiers *s,
                               const cc_token *name, cc_node **out)
{
    const cc_type *type;
    cc_node *initial = NULL;
    cc_variable *v = NULL;
    stint_status st = sti_cc_suffixes(p, s->type, true, &type);
    *out = NULL;
    STI_TRY(st);
    if (s->is_typedef)
        return sti_cc_know(
            p, name,
            (cc_known){.kind = CC_IS_TYPE, .type = (cc_type *)(uintptr_t)type});
    if (sti_cc_take(p, "="))
        STI_TRY(sti_cc_initialiser(p, &initial));
    STI_TRY(complete_type(p, name, initial, &type));
    if (!p->function || s->is_static)
        return add_global(p, name, s, type, initial);
    STI_TRY(add_variable(p, name, type, false, false, &v));
    v->is_const = s->is_const;
    STI_TRY(sti_cc_know(p, name, (cc_known){.kind = CC_IS_VARIABLE, .variable = v}));
    *out = sti_cc_node(p, CC_DECLARE);
    if (!*out)
        return STINT_E_MEMORY;
    (*out)->line = name->line;
    (*out)->variable = v;
    (*out)->a = initial;
out:
    return st;
}

/* The names of a declaration as a block, up to its ';'. */
static stint_status declaration(cc_parser *p, cc_node **out)
{
    cc_specifiers s;
    cc_node **list = NULL;
    int64_t count = 0, capacity = 0;
    stint_status st = sti_cc_specifiers(p, &s);
    STI_TRY(st);
    *out = sti_cc_node(p, CC_BLOCK);
    STI_TRY(*out ? STINT_OK : STINT_E_MEMORY);
    while (!sti_cc_is(p->at, ";")) {
        cc_token name;
        cc_node *one = NULL;
        if (sti_cc_is(p->at, "*")) {
            st = refuse_pointer(p);
            goto out;
        }
        STI_TRY(sti_cc_expect_name(p, &name));
        STI_TRY(declarator(p, &s, &name, &one));
        if (one)
            STI_TRY(sti_cc_append(p, &list, &count, &capacity, one));
        if (!sti_cc_is(p->at, ";"))
            STI_TRY(sti_cc_expect(p, ","));
    }
    p->at++;
    st = set_list(p, *out, list, count);
    list = NULL;
out:
    sti_free(list);
    return st;
}

/* ---- statements ---- */

static stint_status block(cc_parser *p, cc_node **out)
{
    cc_node **list = NULL;
    int64_t count = 0, capacity = 0;
    const int64_t outer = p->scope, names = p->knowns;
    stint_status st;
    p->scope = p->knowns;
    *out = sti_cc_node(p, CC_BLOCK);
    STI_TRY(*out ? STINT_OK : STINT_E_MEMORY);
    while (!sti_cc_take(p, "}")) {
        cc_node *one = NULL;
        if (p->at->kind == CC_END) {
            st = sti_cc_wrong(p, "'}'");
            goto out;
        }
        STI_TRY(statement(p, &one));
        STI_TRY(sti_cc_append(p, &list, &count, &capacity, one));
    }
    st = set_list(p, *out, list, count);
    list = NULL;
out:
    sti_free(list);
    p->scope = outer;
    p->knowns = names;
    return st;
}

/* "( expression )" */
static stint_status in_brackets(cc_parser *p, cc_node **out)
{
    stint_status st = sti_cc_expect(p, "(");
    STI_TRY(st);
    STI_TRY(sti_cc_expression(p, out));
    st = sti_cc_expect(p, ")");
out:
    return st;
}

static stint_status take_if(cc_parser *p, cc_node *n)
{
    stint_status st = in_brackets(p, &n->a);
    STI_TRY(st);
    STI_TRY(statement(p, &n->b));
    if (sti_cc_take(p, "else"))
        st = statement(p, &n->c);
out:
    return st;
}

static stint_status take_for(cc_parser *p, cc_node *n)
{
    const int64_t outer = p->scope, names = p->knowns;
    stint_status st = sti_cc_expect(p, "(");
    p->scope = p->knowns;
    STI_TRY(st);
    if (sti_cc_begins_type(p)) {
        STI_TRY(declaration(p, &n->a));
    } else {
        if (!sti_cc_is(p->at, ";"))
            STI_TRY(sti_cc_expression(p, &n->a));
        STI_TRY(sti_cc_expect(p, ";"));
    }
    if (!sti_cc_is(p->at, ";"))
        STI_TRY(sti_cc_expression(p, &n->b));
    STI_TRY(sti_cc_expect(p, ";"));
    if (!sti_cc_is(p->at, ")"))
        STI_TRY(sti_cc_expression(p, &n->c));
    STI_TRY(sti_cc_expect(p, ")"));
    st = statement(p, &n->d);
out:
    p->scope = outer;
    p->knowns = names;
    return st;
}

static stint_status take_do(cc_parser *p, cc_node *n)
{
    stint_status st = statement(p, &n->b);
    STI_TRY(st);
    STI_TRY(sti_cc_expect(p, "while"));
    STI_TRY(in_brackets(p, &n->a));
    st = sti_cc_expect(p, ";");
out:
    return st;
}

static stint_status take_case(cc_parser *p, cc_node *n)
{
    int64_t number = 0;
    stint_status st = STINT_OK;
    if (n->op != 'd')
        st = sti_cc_number(p, &number);
    n->number = (uint64_t)number;
    return st == STINT_OK ? sti_cc_expect(p, ":") : st;
}

static stint_status take_return(cc_parser *p, cc_node *n)
{
    stint_status st = STINT_OK;
    if (!sti_cc_is(p->at, ";"))
        st = sti_cc_expression(p, &n->a);
    return st == STINT_OK ? sti_cc_expect(p, ";") : st;
}

static stint_status refuse_statement(cc_parser *p)
{
    if (sti_cc_is(p->at, "goto"))
        return CC_FAIL(p->program, p->at->line,
                       "there is no goto; use a loop, break or return");
    return CC_FAIL(p->program, p->at->line, "no assembly here");
}

/* The statement of a word that begins one. kind CC_NOTHING: no such word. */
static cc_node_kind kind_of(const cc_token *t)
{
    static const struct {
        const char *word;
        cc_node_kind kind;
    } words[] = {
        {"if", CC_IF},         {"while", CC_WHILE},   {"do", CC_DO},
        {"for", CC_FOR},       {"switch", CC_SWITCH}, {"case", CC_CASE},
        {"default", CC_CASE},  {"break", CC_BREAK},   {"continue", CC_CONTINUE},
        {"return", CC_RETURN}, {NULL, CC_NOTHING}};
    int i = 0;
    while (words[i].word && !sti_cc_is(t, words[i].word))
        i++;
    return words[i].kind;
}

static stint_status by_word(cc_parser *p, cc_node *n)
{
    stint_status st;
    switch ((int)n->kind) {
    case CC_IF:
        return take_if(p, n);
    case CC_WHILE:
    case CC_SWITCH:
        st = in_brackets(p, &n->a);
        return st == STINT_OK ? statement(p, &n->b) : st;
    case CC_DO:
        return take_do(p, n);
    case CC_FOR:
        return take_for(p, n);
    case CC_CASE:
        return take_case(p, n);
    case CC_RETURN:
        return take_return(p, n);
    default: /* break, continue */
        return sti_cc_expect(p, ";");
    }
}

static stint_status plain_statement(cc_parser *p, cc_node **out)
{
    cc_node *value = NULL;
    stint_status st;
    if (sti_cc_take(p, ";")) {
        *out = sti_cc_node(p, CC_NOTHING);
        return *out ? STINT_OK : STINT_E_MEMORY;
    }
    if (sti_cc_take(p, "{"))
        return block(p, out);
    if (sti_cc_begins_type(p))
        return declaration(p, out);
    if (sti_cc_is(p->at, "goto") || sti_cc_is(p->at, "asm") ||
        sti_cc_is(p->at, "__asm__"))
        return refuse_statement(p);
    if (p->at->kind == CC_NAME && sti_cc_is(p->at + 1, ":"))
        return CC_FAIL(p->program, p->at->line, "there are no labels and no goto");
    STI_TRY(sti_cc_expression(p, &value));
    STI_TRY(sti_cc_expect(p, ";"));
    *out = sti_cc_node(p, CC_EXPRESSION);
    st = *out ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        (*out)->a = value;
        (*out)->line = value->line;
    }
out:
    return st;
}

static stint_status statement(cc_parser *p, cc_node **out)
{
    int64_t bound = 0;
    stint_status st = sti_cc_deeper(p);
    STI_TRY(st);
    if (p->at->kind == CC_BOUND)
        bound = (int64_t)p->at++->number;
    const cc_node_kind kind = kind_of(p->at);
    if (bound && kind != CC_FOR && kind != CC_WHILE && kind != CC_DO) {
        st = sti_cc_wrong(p, "the loop of the pragma");
        goto out;
    }
    if (kind == CC_NOTHING) {
        st = plain_statement(p, out);
    } else {
        *out = sti_cc_node(p, kind);
        STI_TRY(*out ? STINT_OK : STINT_E_MEMORY);
        (*out)->bound = bound;
        (*out)->op = sti_cc_is(p->at, "default") ? 'd' : 0;
        p->at++;
        st = by_word(p, *out);
    }
out:
    p->depth--;
    return st;
}

/* ---- functions ---- */

/* T name, T name[N], T *name: an array, or what is pointed to, is handed by reference.
 */
static stint_status parameter(cc_parser *p, cc_variable **out)
{
    cc_specifiers s;
    cc_token name;
    const cc_type *type;
    bool pointer = false;
    stint_status st = sti_cc_specifiers(p, &s);
    STI_TRY(st);
    if (sti_cc_take(p, "*")) {
        pointer = true;
        sti_cc_take(p, "const");
        sti_cc_take(p, "restrict");
    }
    STI_TRY(sti_cc_expect_name(p, &name));
    STI_TRY(sti_cc_suffixes(p, s.type, true, &type));
    if (pointer) {
        cc_type *array = sti_cc_new(p, sizeof *array);
        if (!array)
            return STINT_E_MEMORY;
        if (type->kind == CC_ARRAY || type->kind == CC_VOID || sti_cc_is(p->at, "*"))
            return CC_FAIL(p->program, name.line,
                           "a pointer parameter points to integers or structs");
        *array = (cc_type){.kind = CC_ARRAY,
                           .bits = type->bits,
                           .align = type->align,
                           .element = type,
                           .count = -1};
        type = array;
    }
    if (type->kind == CC_VOID)
        return CC_FAIL(p->program, name.line, "a parameter cannot be void");
    STI_TRY(add_variable(p, &name, type, false, type->kind == CC_ARRAY, out));
    (*out)->is_const = s.is_const;
    st = sti_cc_know(p, &name, (cc_known){.kind = CC_IS_VARIABLE, .variable = *out});
out:
    return st;
}

static stint_status parameters(cc_parser *p, cc_function *f)
{
    cc_variable **list = NULL;
    int64_t count = 0, capacity = 0;
    stint_status st = STINT_OK;
    if (sti_cc_is(p->at, "void") && sti_cc_is(p->at + 1, ")"))
        p->at++;
    while (!sti_cc_take(p, ")")) {
        cc_variable *one = NULL;
        if (count > 0)
            STI_TRY(sti_cc_expect(p, ","));
        STI_TRY(parameter(p, &one));
        STI_TRY(sti_cc_append(p, &list, &count, &capacity, one));
    }
    f->parameters = count;
    f->parameter = sti_cc_new(p, (size_t)(count + 1) * sizeof *list);
    st = f->parameter ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK && count > 0)
        memcpy(f->parameter, list, (size_t)count * sizeof *list);
out:
    sti_free(list);
    return st;
}

cc_function *sti_cc_find_function(const cc_program *program, const char *name,
                                  int length)
{
    for (int64_t i = 0; i < program->functions; i++)
        if (program->function[i]->length == length &&
            memcmp(program->function[i]->name, name, (size_t)length) == 0)
            return program->function[i];
    return NULL;
}

static stint_status function(cc_parser *p, const cc_type *result, const cc_token *name)
{
    const int64_t names = p->knowns;
    cc_function *f = sti_cc_find_function(p->program, name->text, name->length);
    stint_status st = STINT_OK;
    if (f && f->body)
        return CC_FAIL(p->program, name->line, "'%.*s' is defined twice", name->length,
                       name->text);
    if (!f) {
        f = sti_cc_new(p, sizeof *f);
        STI_TRY(f ? STINT_OK : STINT_E_MEMORY);
        STI_TRY(sti_cc_append(p, &p->program->function, &p->program->functions,
                              &p->program->function_capacity, f));
    }
    *f = (cc_function){.name = name->text,
                       .length = name->length,
                       .result = result,
                       .line = name->line};
    p->function = f;
    p->scope = p->knowns;
    STI_TRY(parameters(p, f));
    if (!sti_cc_take(p, ";")) {
        STI_TRY(sti_cc_expect(p, "{"));
        st = block(p, &f->body);
    }
out:
    p->function = NULL;
    p->knowns = names;
    p->scope = 0;
    return st;
}

/* A function, or globals, types and enums. */
static stint_status outer(cc_parser *p)
{
    cc_specifiers s;
    cc_node *none;
    stint_status st = STINT_OK;
    if (sti_cc_take(p, ";"))
        return STINT_OK;
    if (!sti_cc_begins_type(p))
        return sti_cc_wrong(p, "a declaration or a function");
    STI_TRY(sti_cc_specifiers(p, &s));
    if (p->at->kind == CC_NAME && sti_cc_is(p->at + 1, "(")) {
        const cc_token name = *p->at;
        if (s.type->kind == CC_ARRAY)
            return CC_FAIL(p->program, name.line, "a function returns no array");
        p->at += 2;
        return function(p, s.type, &name);
    }
    if (sti_cc_is(p->at, "*"))
        return refuse_pointer(p);
    while (!sti_cc_is(p->at, ";")) {
        cc_token name;
        STI_TRY(sti_cc_expect_name(p, &name));
        STI_TRY(declarator(p, &s, &name, &none));
        if (!sti_cc_is(p->at, ";"))
            STI_TRY(sti_cc_expect(p, ","));
    }
    p->at++;
out:
    return st;
}

stint_status sti_cc_parse(const cc_tokens *tokens, cc_program *program)
{
    cc_parser p = {.program = program, .number = sti_cc_number, .at = tokens->token};
    stint_status st = STINT_OK;
    while (st == STINT_OK && p.at->kind != CC_END)
        st = outer(&p);
    sti_free(p.known);
    return st;
}

void sti_cc_program_fini(cc_program *program)
{
    sti_free(program->function);
    sti_free(program->global);
    sti_arena_destroy(program->arena);
    *program = (cc_program){0};
}
