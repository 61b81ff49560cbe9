#include "exchange/exchange_text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"

/* ---- writing ---- */

static void add_quoted(sti_text *out, const char *word)
{
    sti_text_add(out, " \"");
    for (; *word; word++) {
        const unsigned char c = (unsigned char)*word;
        if (c == '"' || c == '\\')
            sti_text_printf(out, "\\%c", c);
        else if (c < 32 || c == 127)
            sti_text_printf(out, "\\x%02x", c);
        else
            sti_text_add_bytes(out, word, 1);
    }
    sti_text_add(out, "\"");
}

static void add_ints(sti_text *out, const int64_t *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sti_text_printf(out, " %" PRId64, values[i]);
}

static void add_float(sti_text *out, float value)
{
    if (isfinite(value))
        sti_text_printf(out, " %a", (double)value);
    else
        sti_text_add(out, value != value ? " nan" : value > 0 ? " inf" : " -inf");
}

static void write_port(sti_text *out, const char *word, const sti_exchange_port *p)
{
    sti_text_add(out, word);
    add_quoted(out, p->name);
    sti_text_printf(out, " %s", sti_exchange_type_name(p->type));
    add_ints(out, p->dim, p->rank);
    sti_text_add(out, "\n");
}

static void write_tensor(sti_text *out, const sti_exchange_tensor *t)
{
    bool plain = true;
    sti_text_add(out, "tensor");
    add_quoted(out, t->name);
    sti_text_printf(out, " %s", sti_exchange_type_name(t->type));
    add_ints(out, t->dim, t->rank);
    for (int i = 0; i < t->rank; i++)
        plain = plain && t->order[i] == i;
    if (!plain) {
        sti_text_add(out, " order");
        for (int i = 0; i < t->rank; i++)
            sti_text_printf(out, " %d", t->order[i]);
    }
    sti_text_add(out, t->trained ? " trained\n" : "\n");
}

static bool write_attr(sti_text *out, const sti_exchange_attr *a)
{
    static const char *const words[] = {" int", " float", " text", " ints", " floats"};
    if (a->kind > STI_EXCHANGE_FLOATS)
        return false;
    sti_text_add(out, words[a->kind]);
    add_quoted(out, a->name);
    if (a->kind == STI_EXCHANGE_INT)
        add_ints(out, &a->i, 1);
    else if (a->kind == STI_EXCHANGE_FLOAT)
        add_float(out, a->f);
    else if (a->kind == STI_EXCHANGE_TEXT)
        add_quoted(out, a->text);
    else if (a->kind == STI_EXCHANGE_INTS)
        add_ints(out, a->ints, a->count);
    for (int64_t i = 0; a->kind == STI_EXCHANGE_FLOATS && i < a->count; i++)
        add_float(out, a->floats[i]);
    return true;
}

static stint_status write_node(sti_text *out, const sti_exchange_node *n)
{
    sti_text_add(out, "node");
    add_quoted(out, n->op);
    add_quoted(out, n->name);
    sti_text_add(out, " in");
    for (int i = 0; i < n->n_in; i++)
        add_quoted(out, n->in[i]);
    sti_text_add(out, " out");
    for (int i = 0; i < n->n_out; i++)
        add_quoted(out, n->out[i]);
    for (int i = 0; i < n->n_attr; i++)
        if (!write_attr(out, &n->attr[i]))
            return sti_fail(STINT_E_UNSUPPORTED,
                            "node '%.80s' (%s): its attribute '%.40s' is a tensor or a "
                            "graph, which a model file does not hold",
                            sti_shown(sti_exchange_node_name(n)), sti_shown(n->op),
                            sti_shown(n->attr[i].name));
    sti_text_add(out, "\n");
    return STINT_OK;
}

stint_status sti_network_text_write(const sti_exchange_graph *g, sti_text *out)
{
    sti_text_printf(out, "stint network %d\nopset %" PRId64 "\nproducer",
                    STI_NETWORK_TEXT_VERSION, g->opset);
    add_quoted(out, g->producer ? g->producer : "");
    sti_text_add(out, "\n");
    for (int64_t i = 0; i < g->inputs; i++)
        write_port(out, "input", &g->input[i]);
    for (int64_t i = 0; i < g->outputs; i++)
        write_port(out, "output", &g->output[i]);
    for (int64_t i = 0; i < g->tensors; i++)
        write_tensor(out, &g->tensor[i]);
    for (int64_t i = 0; i < g->nodes; i++) {
        const stint_status st = write_node(out, &g->node[i]);
        if (st != STINT_OK)
            return st;
    }
    return out->failed ? STINT_E_MEMORY : STINT_OK;
}

/* ---- reading ---- */

enum { WORD_BYTES = 4096, LIST_MOST = 65536 };

typedef struct text_reader {
    const char *name, *at; /* within the line; '\n' or NUL ends it */
    int64_t line;
    sti_exchange_graph *g;
    /* The word read last. */
    char word[WORD_BYTES];
    bool quoted;
} text_reader;

static stint_status wrong(const text_reader *r, const char *wanted)
{
    return sti_fail(STINT_E_INPUT, "%s: its network, line %" PRId64 ": wanted %s",
                    sti_shown(r->name), r->line, wanted);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The character behind a backslash; -1: none that there is. */
static int escaped(const char **at)
{
    const char c = **at;
    if (c == '"' || c == '\\') {
        ++*at;
        return c;
    }
    if (c != 'x' || hex_digit((*at)[1]) < 0 || hex_digit((*at)[2]) < 0)
        return -1;
    const int value = hex_digit((*at)[1]) * 16 + hex_digit((*at)[2]);
    *at += 3;
    return value ? value : -1;
}

/* The next word of the line; false at its end and for a word that is none. */
static bool next_word(text_reader *r)
{
    size_t n = 0;
    while (*r->at == ' ')
        r->at++;
    r->quoted = *r->at == '"';
    if (*r->at == '\0' || *r->at == '\n')
        return false;
    r->at += r->quoted;
    while (*r->at && *r->at != '\n' && n + 1 < WORD_BYTES) {
        int c = (unsigned char)*r->at;
        if (r->quoted ? c == '"' : c == ' ')
            break;
        r->at++;
        if (r->quoted && c == '\\' && (c = escaped(&r->at)) < 0)
            return false;
        r->word[n++] = (char)c;
    }
    r->word[n] = '\0';
    if (!r->quoted)
        return n + 1 < WORD_BYTES;
    if (*r->at != '"')
        return false;
    r->at++;
    return true;
}

static bool at_end(text_reader *r)
{
    while (*r->at == ' ')
        r->at++;
    return *r->at == '\0' || *r->at == '\n';
}

static stint_status read_string(text_reader *r, const char **out)
{
    if (!next_word(r) || !r->quoted)
        return wrong(r, "a text in quotes");
    *out = sti_arena_strdup(r->g->arena, r->word);
    return *out ? STINT_OK : STINT_E_MEMORY;
}

/* Does the line go on with a number? */
static bool at_number(text_reader *r)
{
    while (*r->at == ' ')
        r->at++;
    return (*r->at >= '0' && *r->at <= '9') || *r->at == '-' ||
           strncmp(r->at, "nan", 3) == 0 || strncmp(r->at, "inf ", 4) == 0 ||
           strncmp(r->at, "inf\n", 4) == 0;
}

static stint_status read_int(text_reader *r, int64_t *out)
{
    char *end = NULL;
    if (!next_word(r) || r->quoted)
        return wrong(r, "a whole number");
    errno = 0;
    const long long value = strtoll(r->word, &end, 10);
    if (end == r->word || *end || errno)
        return wrong(r, "a whole number");
    *out = value;
    return STINT_OK;
}

static stint_status read_float(text_reader *r, float *out)
{
    char *end = NULL;
    if (!next_word(r) || r->quoted)
        return wrong(r, "a number");
    *out = strtof(r->word, &end);
    return end != r->word && !*end ? STINT_OK : wrong(r, "a number");
}

static stint_status read_type(text_reader *r, int *type)
{
    if (!next_word(r) || r->quoted ||
        (*type = sti_exchange_type_find(r->word)) == STI_EXCHANGE_NONE)
        return wrong(r, "a type of elements, as f32");
    return STINT_OK;
}

static stint_status read_dims(text_reader *r, int *rank, int64_t *dim)
{
    stint_status st = STINT_OK;
    *rank = 0;
    while (st == STINT_OK && at_number(r)) {
        if (*rank == STI_EXCHANGE_RANK)
            return wrong(r, "at most 8 axes");
        st = read_int(r, &dim[(*rank)++]);
        if (st == STINT_OK && dim[*rank - 1] < 0)
            return wrong(r, "a length that is not negative");
    }
    return st;
}

static stint_status read_port(text_reader *r, sti_exchange_port *port)
{
    if (!port)
        return STINT_E_MEMORY;
    port->name = "";
    stint_status st = read_string(r, &port->name);
    if (st == STINT_OK)
        st = read_type(r, &port->type);
    return st == STINT_OK ? read_dims(r, &port->rank, port->dim) : st;
}

static stint_status read_order(text_reader *r, sti_exchange_tensor *t)
{
    unsigned seen = 0;
    for (int i = 0; i < t->rank; i++) {
        int64_t axis = -1;
        const stint_status st = read_int(r, &axis);
        if (st != STINT_OK || axis < 0 || axis >= t->rank || (seen >> axis & 1))
            return wrong(r, "an order of the axes");
        seen |= 1u << axis;
        t->order[i] = (int8_t)axis;
    }
    return STINT_OK;
}

static stint_status read_tensor(text_reader *r, sti_exchange_tensor *t)
{
    if (!t)
        return STINT_E_MEMORY;
    t->name = "";
    stint_status st = read_string(r, &t->name);
    if (st == STINT_OK)
        st = read_type(r, &t->type);
    if (st == STINT_OK)
        st = read_dims(r, &t->rank, t->dim);
    if (st == STINT_OK && !sti_exchange_count(t->rank, t->dim, &t->count))
        return wrong(r, "a tensor that is not so large");
    for (int i = 0; i < STI_EXCHANGE_RANK; i++)
        t->order[i] = (int8_t)i;
    while (st == STINT_OK && !at_end(r)) {
        if (!next_word(r) || r->quoted)
            return wrong(r, "order or trained");
        if (strcmp(r->word, "order") == 0)
            st = read_order(r, t);
        else if (strcmp(r->word, "trained") == 0 && sti_exchange_is_float(t->type))
            t->trained = true;
        else
            return wrong(r, "order or trained");
    }
    return st;
}

/* ---- nodes ---- */

/* Strings until another word comes: counted first, then read. */
static stint_status read_names(text_reader *r, int *count, const char ***names)
{
    const char *begin = r->at;
    int n = 0;
    while (n <= LIST_MOST && *(r->at += strspn(r->at, " ")) == '"' && next_word(r))
        n++;
    if (n > LIST_MOST)
        return wrong(r, "fewer operands");
    r->at = begin;
    *names = sti_arena_alloc(r->g->arena, (size_t)n * sizeof **names + 1);
    if (!*names)
        return STINT_E_MEMORY;
    for (*count = 0; *count < n; ++*count) {
        const stint_status st = read_string(r, &(*names)[*count]);
        if (st != STINT_OK)
            return st;
    }
    return STINT_OK;
}

static stint_status read_numbers(text_reader *r, sti_exchange_attr *a)
{
    const char *begin = r->at;
    int64_t n = 0;
    stint_status st = STINT_OK;
    while (at_number(r) && n <= LIST_MOST && next_word(r))
        n++;
    if (n > LIST_MOST)
        return wrong(r, "a shorter list");
    r->at = begin;
    a->count = n;
    int64_t *ints = sti_arena_alloc(r->g->arena, (size_t)n * sizeof *ints + 1);
    float *floats = (float *)ints;
    if (!ints)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < n && st == STINT_OK; i++)
        st = a->kind == STI_EXCHANGE_INTS ? read_int(r, &ints[i])
                                          : read_float(r, &floats[i]);
    a->ints = a->kind == STI_EXCHANGE_INTS ? ints : NULL;
    a->floats = a->kind == STI_EXCHANGE_FLOATS ? floats : NULL;
    return st;
}

static stint_status read_attr(text_reader *r, sti_exchange_attr *a)
{
    static const char *const kinds[] = {"int", "float", "text", "ints", "floats"};
    int kind = 0;
    if (!next_word(r) || r->quoted)
        return wrong(r, "an attribute");
    while (kind < 5 && strcmp(r->word, kinds[kind]) != 0)
        kind++;
    if (kind == 5)
        return wrong(r, "an attribute: int, float, text, ints or floats");
    *a = (sti_exchange_attr){.kind = (sti_exchange_attr_kind)kind, .text = ""};
    const stint_status st = read_string(r, &a->name);
    if (st != STINT_OK)
        return st;
    switch (a->kind) {
    case STI_EXCHANGE_INT:
        return read_int(r, &a->i);
    case STI_EXCHANGE_FLOAT:
        return read_float(r, &a->f);
    case STI_EXCHANGE_TEXT:
        return read_string(r, &a->text);
    case STI_EXCHANGE_INTS:
    case STI_EXCHANGE_FLOATS:
    case STI_EXCHANGE_TENSOR:
    case STI_EXCHANGE_GRAPH:
    default:
        return read_numbers(r, a);
    }
}

enum { ATTRS_MOST = 32 };

static stint_status read_node(text_reader *r, sti_exchange_node *n)
{
    sti_exchange_attr attr[ATTRS_MOST];
    if (!n)
        return STINT_E_MEMORY;
    n->domain = n->op = n->name = "";
    stint_status st = read_string(r, &n->op);
    if (st == STINT_OK)
        st = read_string(r, &n->name);
    if (st == STINT_OK && (!next_word(r) || strcmp(r->word, "in") != 0))
        return wrong(r, "in");
    if (st == STINT_OK)
        st = read_names(r, &n->n_in, &n->in);
    if (st == STINT_OK && (!next_word(r) || strcmp(r->word, "out") != 0))
        return wrong(r, "out");
    if (st == STINT_OK)
        st = read_names(r, &n->n_out, &n->out);
    int count = 0;
    while (st == STINT_OK && !at_end(r)) {
        if (count == ATTRS_MOST)
            return wrong(r, "fewer attributes");
        st = read_attr(r, &attr[count++]);
    }
    if (st != STINT_OK)
        return st;
    n->attr = sti_arena_alloc(r->g->arena, (size_t)count * sizeof *attr + 1);
    if (!n->attr)
        return STINT_E_MEMORY;
    n->n_attr = count;
    if (count > 0)
        memcpy(n->attr, attr, (size_t)count * sizeof *attr);
    return STINT_OK;
}

/* ---- lines ---- */

static stint_status read_line(text_reader *r)
{
    if (!next_word(r) || r->quoted)
        return wrong(r, "a word");
    if (strcmp(r->word, "node") == 0)
        return read_node(r, sti_exchange_add_node(r->g));
    if (strcmp(r->word, "tensor") == 0)
        return read_tensor(r, sti_exchange_add_tensor(r->g));
    if (strcmp(r->word, "input") == 0)
        return read_port(r, sti_exchange_add_input(r->g));
    if (strcmp(r->word, "output") == 0)
        return read_port(r, sti_exchange_add_output(r->g));
    if (strcmp(r->word, "opset") == 0)
        return read_int(r, &r->g->opset);
    if (strcmp(r->word, "producer") == 0)
        return read_string(r, &r->g->producer);
    return wrong(r, "opset, producer, input, output, tensor or node");
}

static stint_status read_lines(text_reader *r)
{
    while (*r->at) {
        const stint_status st = read_line(r);
        if (st != STINT_OK)
            return st;
        if (!at_end(r))
            return wrong(r, "the end of the line");
        r->at += *r->at == '\n';
        r->line++;
    }
    return r->g->outputs > 0 ? STINT_OK : wrong(r, "an output");
}

stint_status sti_network_text_read(const char *text, const char *name,
                                   sti_exchange_graph **graph_out)
{
    static const char head[] = "stint network ";
    text_reader *r = sti_alloc(sizeof *r, "network text");
    if (!r)
        return STINT_E_MEMORY;
    stint_status st = sti_exchange_graph_create(&r->g);
    int64_t version = 0;
    r->name = name;
    r->line = 1;
    r->at = text;
    if (st == STINT_OK && strncmp(text, head, sizeof head - 1) != 0)
        st = wrong(r, "stint network 1");
    if (st == STINT_OK) {
        r->at += sizeof head - 1;
        st = read_int(r, &version);
    }
    if (st == STINT_OK && version != STI_NETWORK_TEXT_VERSION)
        st = sti_fail(STINT_E_UNSUPPORTED,
                      "%s: its network is written in version %" PRId64
                      "; this build reads version %d",
                      sti_shown(name), version, STI_NETWORK_TEXT_VERSION);
    if (st == STINT_OK) {
        r->at += *r->at == '\n';
        r->line++;
        r->g->producer = "";
        st = read_lines(r);
    }
    if (st == STINT_OK)
        *graph_out = r->g;
    else
        sti_exchange_graph_destroy(r->g);
    sti_free(r);
    return st;
}
