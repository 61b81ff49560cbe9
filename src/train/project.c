#include "train/project.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "train/project_priv.h"
#include "train/shapes.h"

typedef struct project_row {
    sti_project_fn *run;
    sti_project_check_fn *check; /* NULL: nothing to check */
} project_row;

static const project_row rows[STI_SCHEME_KINDS] = {
    [STI_SCHEME_PRUNE] = {sti_project_prune, NULL},
    [STI_SCHEME_BLOCK] = {sti_project_block, sti_project_check_block},
    [STI_SCHEME_ROW] = {sti_project_outputs, sti_project_check_outputs},
    [STI_SCHEME_FILTER] = {sti_project_outputs, sti_project_check_outputs},
    [STI_SCHEME_STRUCTURE] = {sti_project_outputs, sti_project_check_outputs},
    [STI_SCHEME_KERNEL] = {sti_project_kernel, sti_project_check_kernel},
    [STI_SCHEME_PATTERN] = {sti_project_pattern, sti_project_check_kernel},
    [STI_SCHEME_LOWRANK] = {sti_project_lowrank, NULL},
    [STI_SCHEME_QUANTISE] = {sti_project_quantise, NULL},
};

bool sti_project_concerns(sti_scheme_kind kind, const sti_target *t)
{
    switch (kind) {
    case STI_SCHEME_ROW:
        return !t->filters;
    case STI_SCHEME_FILTER:
    case STI_SCHEME_KERNEL:
        return t->filters;
    case STI_SCHEME_PATTERN:
        return t->filters && t->form.taps == STI_SHAPE_TAPS;
    case STI_SCHEME_PRUNE:
    case STI_SCHEME_BLOCK:
    case STI_SCHEME_STRUCTURE:
    case STI_SCHEME_LOWRANK:
    case STI_SCHEME_QUANTISE:
    case STI_SCHEME_KINDS:
    default:
        return true;
    }
}

/* ---- the targets of a network ---- */

typedef struct builder {
    sti_projection *p;
    const sti_network *network;
    const char *keep;
} builder;

static bool is_param(const builder *b, stint_value v, int rank)
{
    const sti_value_row *row = v >= 0 ? sti_graph_value(b->network->graph, v) : NULL;
    return row && row->role == STI_ROLE_PARAM && row->shape.rank == rank;
}

/* A vector of one number for each output channel that node n has of its own. */
static void add_companions(const builder *b, const sti_node *n, sti_target *t)
{
    for (int32_t i = 0; i < n->n_in; i++) {
        if (!is_param(b, n->in[i], 1) || t->companions == STI_COMPANIONS ||
            stint_value_shape(b->network->graph, n->in[i]).dim[0] != t->form.columns)
            continue;
        t->companion[t->companions++] = b->network->plan->allocation[n->in[i]].offset;
    }
}

/* The forward node that reads the weight, and the additions of biases and
 * normalisations that read what it makes and nothing before them. */
static void follow(const builder *b, sti_target *t)
{
    const stint_graph *g = b->network->graph;
    stint_value at = -1;
    for (int32_t i = 0; i < sti_graph_node_count(g); i++) {
        const sti_node *n = sti_graph_node(g, i);
        bool reads = false;
        for (int32_t k = 0; k < n->n_in && !n->backward; k++)
            reads = reads || n->in[k] == (at < 0 ? t->value : at);
        if (!reads || n->backward)
            continue;
        const bool follows = strcmp(n->op->name, "bias") == 0 ||
                             strncmp(n->op->name, "batch_norm", 10) == 0;
        if (at >= 0 && !follows)
            continue;
        if (at < 0)
            t->depthwise = t->filters && t->form.channels == 1 &&
                           stint_value_shape(g, n->in[0]).dim[3] > 1;
        add_companions(b, n, t);
        at = n->out[0];
    }
}

static void describe(const builder *b, stint_value v, sti_target *t)
{
    const sti_value_row *row = sti_graph_value(b->network->graph, v);
    const stint_shape *s = &row->shape;
    const int64_t count = stint_shape_count(s), columns = s->dim[s->rank - 1];
    *t = (sti_target){.value = v,
                      .name = row->name,
                      .offset = b->network->plan->allocation[v].offset,
                      .count = count,
                      .filters = s->rank == 4,
                      .form = {.rows = count / columns, .columns = columns}};
    if (t->filters) {
        t->form.taps = s->dim[0] * s->dim[1];
        t->form.channels = s->dim[2];
    }
    follow(b, t);
}

static stint_status find_targets(builder *b)
{
    const stint_graph *g = b->network->graph;
    sti_projection *p = b->p;
    p->target = sti_arena_alloc(p->arena, STI_SCHEME_TARGETS * sizeof *p->target);
    if (!p->target)
        return STINT_E_MEMORY;
    for (int32_t v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->role != STI_ROLE_PARAM || !sti_graph_is_weight(row))
            continue;
        if (p->count == STI_SCHEME_TARGETS)
            return sti_fail(STINT_E_UNSUPPORTED,
                            "scheme: the network has more than %d weights",
                            STI_SCHEME_TARGETS);
        describe(b, v, &p->target[p->count++]);
    }
    return STINT_OK;
}

/* ---- which words take which ---- */

/* A glob with or without the ".weight" that every name ends in. */
static bool matches(const char *glob, size_t length, const char *name)
{
    char pattern[STI_SCHEME_GLOB_BYTES], stem[256];
    if (length == 0 || length >= sizeof pattern)
        return false;
    memcpy(pattern, glob, length);
    pattern[length] = '\0';
    snprintf(stem, sizeof stem, "%s", name);
    const size_t end = strlen(stem);
    if (end > 7 && strcmp(stem + end - 7, ".weight") == 0)
        stem[end - 7] = '\0';
    return fnmatch(pattern, name, 0) == 0 || fnmatch(pattern, stem, 0) == 0;
}

/* Without the classifier's outputs there are no classes; and what makes few numbers of
 * an image or joins branches is small and matters much. */
static bool is_kept_by_default(const builder *b, const sti_scheme_word *word,
                               const sti_target *t)
{
    const sti_projection *p = b->p;
    const bool classifier = t == &p->target[p->count - 1];
    const sti_target *first = NULL;
    if (word->kind == STI_SCHEME_ROW || word->kind == STI_SCHEME_STRUCTURE)
        return classifier;
    if (word->kind != STI_SCHEME_KERNEL && word->kind != STI_SCHEME_PATTERN)
        return false;
    for (int i = 0; i < p->count && !first; i++)
        first = p->target[i].filters ? &p->target[i] : NULL;
    return t == first || classifier || strstr(t->name, "shortcut") ||
           strstr(t->name, "downsample");
}

static bool is_kept(const builder *b, const sti_scheme_word *word, const sti_target *t)
{
    if (!b->keep)
        return is_kept_by_default(b, word, t);
    for (const char *at = b->keep; *at;) {
        at += strspn(at, ", ");
        const size_t length = strcspn(at, ", ");
        if (matches(at, length, t->name))
            return true;
        at += length;
    }
    return false;
}

/* Names without the ".weight" that all of them end in, which is how people call them.
 */
static stint_status picks_nothing(const sti_projection *p, const char *key,
                                  const char *glob, size_t length)
{
    const char *names[STI_SCHEME_TARGETS];
    char word[STI_SCHEME_GLOB_BYTES];
    snprintf(word, sizeof word, "%.*s", (int)length, glob);
    for (int i = 0; i < p->count; i++) {
        const char *dot = strrchr(p->target[i].name, '.');
        const int stem = dot ? (int)(dot - p->target[i].name) : 255;
        names[i] = sti_arena_printf(p->arena, "%.*s", stem, p->target[i].name);
        if (!names[i])
            return STINT_E_MEMORY;
    }
    const char *near = sti_text_nearest(word, names, p->count);
    return sti_fail(STINT_E_USAGE,
                    "%s: '%s' is no weight of this network; %s%s (stint info lists "
                    "all)",
                    key, word, near ? "did you mean " : "there is, for one, ",
                    near ? near : names[p->count - 1]);
}

/* Every glob of shrink.keep means something. */
static stint_status check_keep(const builder *b)
{
    for (const char *at = b->keep; at && *at;) {
        at += strspn(at, ", ");
        const size_t length = strcspn(at, ", ");
        bool found = length == 0;
        for (int i = 0; i < b->p->count && !found; i++)
            found = matches(at, length, b->p->target[i].name);
        if (!found)
            return picks_nothing(b->p, "shrink.keep", at, length);
        at += length;
    }
    return STINT_OK;
}

static stint_status nothing_taken(const builder *b, const sti_scheme_word *word)
{
    for (int i = 0; i < b->p->count; i++)
        if (*word->glob &&
            matches(word->glob, strlen(word->glob), b->p->target[i].name))
            return sti_fail(STINT_E_USAGE,
                            "scheme: %s@%s: takes none of the weights so named; %s",
                            sti_scheme_kind_name(word->kind), word->glob,
                            "they are of another kind, or left alone by shrink.keep");
    if (*word->glob)
        return picks_nothing(b->p, "scheme", word->glob, strlen(word->glob));
    return sti_fail(STINT_E_USAGE,
                    "scheme: %s: this network has no such weights%s; take another word",
                    sti_scheme_kind_name(word->kind),
                    word->kind == STI_SCHEME_PATTERN
                        ? " (kernels of 3 x 3 behind the first convolution)"
                        : "");
}

static stint_status choose_targets(builder *b, int index)
{
    const sti_scheme_word *word = &b->p->scheme.word[index];
    int layers = 0;
    for (int i = 0; i < b->p->count; i++) {
        sti_target *t = &b->p->target[i];
        const bool picked =
            !*word->glob || matches(word->glob, strlen(word->glob), t->name);
        if (!picked || !sti_project_concerns(word->kind, t) || is_kept(b, word, t))
            continue;
        stint_status st =
            rows[word->kind].check ? rows[word->kind].check(word, t) : STINT_OK;
        if (st != STINT_OK)
            return st;
        t->takes |= 1u << index;
        layers++;
    }
    if (layers == 0)
        return nothing_taken(b, word);
    if (word->shares > 1 && word->shares != layers)
        return sti_fail(STINT_E_USAGE,
                        "scheme: %s: %d shares for %d layers; give one for each, or "
                        "one for all",
                        sti_scheme_kind_name(word->kind), word->shares, layers);
    return STINT_OK;
}

/* ---- memory ---- */

static void *numbers(sti_projection *p, int64_t count, size_t each)
{
    size_t bytes;
    if (!sti_mul_bytes(count, each, &bytes))
        return NULL;
    p->bytes += bytes;
    return sti_arena_alloc(p->arena, p->measure ? 1 : bytes);
}

static stint_status allocate_factors(sti_projection *p, int index, sti_target *t,
                                     int layer)
{
    const int64_t rank = sti_project_rank(&p->scheme.word[index], t, layer);
    if (rank == 0)
        return STINT_OK;
    t->rank = rank;
    t->left = numbers(p, t->form.rows * rank, sizeof(float));
    t->right = numbers(p, rank * t->form.columns, sizeof(float));
    t->left_scale = numbers(p, rank, sizeof(float));
    return t->left && t->right && t->left_scale ? STINT_OK : STINT_E_MEMORY;
}

static stint_status allocate_word(sti_projection *p, int index, int64_t *svd)
{
    const sti_scheme_word *word = &p->scheme.word[index];
    const bool scored = word->kind != STI_SCHEME_PRUNE &&
                        word->kind != STI_SCHEME_LOWRANK &&
                        word->kind != STI_SCHEME_QUANTISE;
    int64_t scores = 0;
    int layer = 0;
    for (int i = 0; i < p->count; i++) {
        sti_target *t = &p->target[i];
        stint_status st = STINT_OK;
        if (!(t->takes >> index & 1))
            continue;
        scores += scored ? t->count : 0;
        if (8 * t->form.channels * t->form.columns > p->score_count)
            p->score_count = 8 * t->form.channels * t->form.columns;
        if (word->kind == STI_SCHEME_QUANTISE && !t->scale &&
            !(t->scale = numbers(p, t->form.columns, sizeof(float))))
            return STINT_E_MEMORY;
        if (word->kind == STI_SCHEME_LOWRANK) {
            const int64_t need = sti_project_svd_doubles(t);
            *svd = need > *svd ? need : *svd;
            st = t->left ? STINT_OK : allocate_factors(p, index, t, layer++);
        }
        if (st != STINT_OK)
            return st;
    }
    p->score_count = scores > p->score_count ? scores : p->score_count;
    return STINT_OK;
}

static stint_status allocate(sti_projection *p)
{
    int64_t svd = 0;
    stint_status st = STINT_OK;
    for (int w = 0; w < p->scheme.count && st == STINT_OK; w++)
        st = allocate_word(p, w, &svd);
    if (st != STINT_OK)
        return st;
    p->score = numbers(p, p->score_count, sizeof(float));
    p->svd = numbers(p, svd, sizeof(double));
    return p->score && p->svd ? STINT_OK : STINT_E_MEMORY;
}

/* ---- what may change ---- */

static bool cuts_columns(const sti_projection *p, const sti_target *t)
{
    for (int w = 0; w < p->scheme.count; w++) {
        const sti_scheme_kind kind = p->scheme.word[w].kind;
        if (t->takes >> w & 1 && (kind == STI_SCHEME_ROW || kind == STI_SCHEME_FILTER ||
                                  kind == STI_SCHEME_STRUCTURE))
            return true;
    }
    return false;
}

static stint_status list_spans(sti_projection *p)
{
    p->span = sti_arena_alloc(p->arena, (size_t)p->count * (1 + STI_COMPANIONS) *
                                            sizeof *p->span);
    if (!p->span)
        return STINT_E_MEMORY;
    for (int i = 0; i < p->count; i++) {
        const sti_target *t = &p->target[i];
        if (t->takes)
            p->span[p->spans++] = (sti_span){t->offset, t->count};
        for (int c = 0; c < t->companions && cuts_columns(p, t); c++)
            p->span[p->spans++] = (sti_span){t->companion[c], t->form.columns};
    }
    return STINT_OK;
}

/* ---- life ---- */

/* A product is one of whole tensors: what cuts numbers has to come before it, and one
 * tensor is made a product once. */
static stint_status check_order(const sti_projection *p)
{
    for (int i = 0; i < p->count; i++) {
        int product = -1;
        for (int w = 0; w < p->scheme.count; w++) {
            const sti_scheme_kind kind = p->scheme.word[w].kind;
            if (!(p->target[i].takes >> w & 1))
                continue;
            if (product >= 0 && kind != STI_SCHEME_QUANTISE)
                return sti_fail(STINT_E_USAGE,
                                "scheme: %s after lowrank on %s: the product would "
                                "hold no such weights; give lowrank after it, or other "
                                "tensors by @GLOB",
                                sti_scheme_kind_name(kind), p->target[i].name);
            product = kind == STI_SCHEME_LOWRANK ? w : product;
        }
    }
    return STINT_OK;
}

stint_status sti_projection_create(const sti_projection_desc *desc,
                                   const sti_network *network,
                                   sti_projection **projection_out)
{
    sti_arena *arena = sti_arena_create("projection");
    sti_projection *p = arena ? sti_arena_alloc(arena, sizeof *p) : NULL;
    stint_status st = STINT_E_MEMORY;
    if (!p)
        goto out;
    *p = (sti_projection){.arena = arena,
                          .scheme = *desc->scheme,
                          .fixed_shapes = desc->fixed_shapes,
                          .measure = desc->measure,
                          .warned = desc->quiet ? ~0u : 0};
    builder b = {p, network, desc->keep && *desc->keep ? desc->keep : NULL};
    STI_TRY(find_targets(&b));
    if (p->count == 0)
        STI_TRY(sti_fail(STINT_E_USAGE, "scheme: the network has no weights"));
    STI_TRY(check_keep(&b));
    for (int w = 0; w < p->scheme.count; w++)
        STI_TRY(choose_targets(&b, w));
    STI_TRY(check_order(p));
    STI_TRY(list_spans(p));
    STI_TRY(allocate(p));
    *projection_out = p;
    return STINT_OK;
out:
    sti_arena_destroy(arena);
    return st;
}

void sti_projection_destroy(sti_projection *projection)
{
    if (projection)
        sti_arena_destroy(projection->arena);
}

/* ---- use ---- */

static void forget_forms(sti_projection *p)
{
    for (int i = 0; i < p->count; i++) {
        const sti_weight_form *f = &p->target[i].form;
        p->target[i].form = (sti_weight_form){.rows = f->rows,
                                              .columns = f->columns,
                                              .taps = f->taps,
                                              .channels = f->channels};
    }
}

void sti_project(sti_projection *p, void *params)
{
    forget_forms(p);
    for (int w = 0; w < p->scheme.count; w++)
        rows[p->scheme.word[w].kind].run(p, w, params);
}

void sti_projection_count(const sti_projection *p, const void *params,
                          int64_t *nonzeros, int64_t *weights)
{
    *nonzeros = *weights = 0;
    for (int i = 0; i < p->count; i++) {
        const sti_target *t = &p->target[i];
        const float *x =
            (const float *)(const void *)((const char *)params + t->offset);
        *weights += t->count;
        for (int64_t n = 0; n < t->count; n++)
            *nonzeros += x[n] != 0;
    }
}
