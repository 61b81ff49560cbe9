/* A function as a circuit: its parameters are inputs and outputs. */
#include <stdio.h>
#include <string.h>

#include "seal/cc_run_priv.h"
#include "seal/values.h"

#define MAX_STEPS INT64_C(100000000)

/* A loop without end stops here, while the memory of mapping is still some gigabytes.
 */
#define MAX_GATES (INT64_C(1) << 24)

typedef struct entry {
    cc_run *c;
    cc_function *f;
    sti_imported *out;
    sti_values known; /* what --public says; all inputs have a port there */
    sti_port *port;   /* [parameters]: of all, by number */
    bool *is_input;   /* [parameters] */
    int64_t *at;      /* [parameters]: in the store */
} entry;

/* The integer that an array is made of, and how many there are. */
static const cc_type *leaf_of(const cc_type *type, int64_t *count)
{
    *count = 1;
    while (type->kind == CC_ARRAY && type->count > 0) {
        *count *= type->count;
        type = type->element;
    }
    return type;
}

static stint_status make_port(const entry *e, const char *name, int length,
                              const cc_type *type, int32_t line, sti_port *out)
{
    int64_t count;
    const cc_type *leaf = leaf_of(type, &count);
    if (leaf->kind == CC_ARRAY)
        return CC_FAIL(e->c->program, line,
                       "how many elements has '%.*s'? Write T %.*s[N]", length, name,
                       length, name);
    if (!sti_cc_is_scalar(leaf))
        return CC_FAIL(e->c->program, line,
                       "'%.*s': inputs and outputs are integers and arrays of them; "
                       "copy them into structs inside",
                       length, name);
    if (length >= STI_PORT_NAME_BYTES)
        return CC_FAIL(e->c->program, line, "'%.*s': a name of more than %d characters",
                       length, name, STI_PORT_NAME_BYTES - 1);
    if (count * leaf->bits > STI_CIRCUIT_MAX_BITS)
        return CC_FAIL(e->c->program, line, "'%.*s' has more than %" PRId64 " bits",
                       length, name, STI_CIRCUIT_MAX_BITS);
    *out = (sti_port){.bits = (int32_t)leaf->bits,
                      .is_signed = leaf->is_signed,
                      .is_array = type->kind == CC_ARRAY,
                      .count = count};
    memcpy(out->name, name, (size_t)length);
    return STINT_OK;
}

static stint_status name_ports(entry *e)
{
    cc_function *f = e->f;
    stint_status st = STINT_OK;
    int64_t inputs = 0;
    sti_port *input;
    e->port = sti_alloc_array(f->parameters + 1, sizeof *e->port, "seal.ports");
    e->is_input = sti_alloc_array(f->parameters, sizeof *e->is_input, "seal.ports");
    e->at = sti_alloc_array(f->parameters, sizeof *e->at, "seal.ports");
    e->out->input = sti_alloc_array(f->parameters, sizeof *e->out->input, "seal.ports");
    e->out->output =
        sti_alloc_array(f->parameters + 1, sizeof *e->out->output, "seal.ports");
    input = sti_arena_alloc(e->c->program->arena,
                            (size_t)(f->parameters + 1) * sizeof *input);
    if (!e->port || !e->is_input || !e->at || !e->out->input || !e->out->output ||
        !input)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < f->parameters; i++) {
        const cc_variable *v = f->parameter[i];
        STI_TRY(make_port(e, v->name, v->length, v->type, v->line, &e->port[i]));
        e->is_input[i] = !v->by_reference || v->is_const;
        if (e->is_input[i])
            input[inputs++] = e->port[i];
    }
    if (f->parameters > STI_CIRCUIT_MAX_PORTS - 1)
        return CC_FAIL(e->c->program, f->line, "more than %d parameters",
                       STI_CIRCUIT_MAX_PORTS - 1);
    st = sti_values_init(&e->known, input, inputs);
out:
    return st;
}

static stint_status put_public(entry *e, const char *words)
{
    char *copy = words ? sti_strdup(words) : NULL;
    stint_status st = !words || copy ? STINT_OK : STINT_E_MEMORY;
    for (char *word = copy; st == STINT_OK && word && *word;) {
        char *end = word + strcspn(word, " ");
        const bool last = *end == '\0';
        *end = '\0';
        if (*word)
            st = sti_values_put(&e->known, "--public", word);
        word = last ? end : end + 1;
    }
    sti_free(copy);
    return st;
}

/* Inputs first, so that they are the first nodes: arrays lie in the store before the
 * function's variables, and are handed by reference. */
static stint_status bind_parameters(entry *e, cc_activation *call)
{
    cc_run *c = e->c;
    int64_t known_bit = 0, k = 0;
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < e->f->parameters; i++) {
        const cc_variable *v = e->f->parameter[i];
        const int64_t bits = v->type->bits;
        const bool is_known = e->is_input[i] && e->known.given[k];
        for (int64_t b = 0; e->is_input[i] && b < bits; b++)
            c->store[e->at[i] + b] =
                is_known ? e->known.bit[known_bit + b] : sti_netlist_input(c->netlist);
        if (e->is_input[i]) {
            known_bit += bits;
            k++;
        }
        if (e->is_input[i] && !is_known)
            e->out->input[e->out->inputs++] = e->port[i];
        call->reference[v->slot] = e->at[i];
        call->referred[v->slot] = v->type;
        call->read_only[v->slot] = e->is_input[i];
        if (!v->by_reference)
            memcpy(c->store + call->base + v->at, c->store + e->at[i],
                   (size_t)bits * sizeof *c->store);
    }
    if (sti_ports_bits(e->out->input, e->out->inputs) > STI_CIRCUIT_MAX_BITS)
        st = CC_FAIL(c->program, e->f->line, "more than %" PRId64 " bits of inputs",
                     STI_CIRCUIT_MAX_BITS);
    return st;
}

static stint_status take_results(entry *e, const cc_activation *call)
{
    sti_imported *out = e->out;
    int64_t bits = 0, outputs = 0;
    stint_status st = STINT_OK;
    if (e->f->result->kind != CC_VOID)
        STI_TRY(make_port(e, "return", 6, e->f->result, e->f->line,
                          &out->output[outputs++]));
    for (int64_t i = 0; i < e->f->parameters; i++)
        if (!e->is_input[i])
            out->output[outputs++] = e->port[i];
    out->outputs = outputs;
    if (outputs == 0)
        return CC_FAIL(e->c->program, e->f->line,
                       "'%.*s' returns nothing and has no array T p[N] to write to",
                       e->f->length, e->f->name);
    bits = sti_ports_bits(out->output, outputs);
    out->result = sti_alloc_array(bits, sizeof *out->result, "seal.results");
    if (!out->result)
        return STINT_E_MEMORY;
    bits = e->f->result->bits;
    memcpy(out->result, e->c->store + call->result, (size_t)bits * sizeof *out->result);
    for (int64_t i = 0; i < e->f->parameters; i++) {
        const int64_t n = e->f->parameter[i]->type->bits;
        if (e->is_input[i])
            continue;
        memcpy(out->result + bits, e->c->store + e->at[i],
               (size_t)n * sizeof *out->result);
        bits += n;
    }
out:
    return st;
}

static stint_status init_globals(cc_run *c)
{
    cc_activation none = {0};
    int64_t at;
    stint_status st = sti_cc_push_store(c, c->program->global_bits, &at);
    c->call = &none;
    for (int64_t i = 0; st == STINT_OK && i < c->program->globals; i++) {
        const cc_variable *v = c->program->global[i];
        if (v->initial)
            st = sti_cc_initialise(c, v->initial, v->type, v->at);
    }
    c->call = NULL;
    return st;
}

/* Gates may only follow all inputs, so globals, which can hold none, come first. */
static stint_status run_entry(entry *e)
{
    cc_run *c = e->c;
    cc_activation call = {0};
    stint_status st = init_globals(c);
    STI_TRY(st);
    for (int64_t i = 0; i < e->f->parameters; i++)
        STI_TRY(sti_cc_push_store(c, e->f->parameter[i]->type->bits, &e->at[i]));
    STI_TRY(sti_cc_activate(c, e->f, e->f->line, &call));
    STI_TRY(bind_parameters(e, &call));
    STI_TRY(sti_cc_enter(c, &call));
    if (c->dead)
        st = CC_FAIL(c->program, e->f->line, "'%.*s' never returns", e->f->length,
                     e->f->name);
    STI_TRY(st);
    STI_TRY(c->netlist->status);
    st = take_results(e, &call);
out:
    sti_cc_leave(c, &call);
    return st;
}

static stint_status find_entry(const cc_program *program, const char *name,
                               cc_function **out)
{
    *out = sti_cc_find_function(program, name, (int)strlen(name));
    if (*out && (*out)->body)
        return STINT_OK;
    char list[256] = "";
    size_t used = 0;
    for (int64_t i = 0; i < program->functions && used < sizeof list - 1; i++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%.*s", i ? ", " : "",
                             program->function[i]->length, program->function[i]->name);
    return sti_fail(STINT_E_INPUT, "%s: defines no function '%s'; it has%s%s",
                    program->path, name, *list ? ": " : " none", list);
}

stint_status sti_cc_compile(const char *path, const char *text, size_t n_bytes,
                            const sti_cc_options *options, sti_imported *out)
{
    cc_tokens tokens = {0};
    cc_program program = {.path = path, .arena = sti_arena_create("seal.program")};
    cc_run c = {.eval = sti_cc_eval,
                .invoke = sti_cc_call,
                .program = &program,
                .netlist = &out->netlist,
                .max_steps = options->max_steps ? options->max_steps : MAX_STEPS};
    entry e = {.c = &c, .out = out};
    *out = (sti_imported){0};
    stint_status st = program.arena ? sti_netlist_init(&out->netlist) : STINT_E_MEMORY;
    STI_TRY(st);
    out->netlist.max_nodes = options->max_gates ? options->max_gates : MAX_GATES;
    STI_TRY(sti_cc_tokens(path, text, n_bytes, &tokens));
    STI_TRY(sti_cc_parse(&tokens, &program));
    STI_TRY(find_entry(&program, options->entry, &e.f));
    STI_TRY(name_ports(&e));
    STI_TRY(put_public(&e, options->public_words));
    st = run_entry(&e);
out:
    sti_values_fini(&e.known);
    sti_free(e.port);
    sti_free(e.is_input);
    sti_free(e.at);
    sti_cc_run_fini(&c);
    sti_cc_program_fini(&program);
    sti_free(tokens.token);
    if (st != STINT_OK)
        sti_imported_fini(out);
    return st;
}
