/* Memory over one step, as a picture: a stack of areas over the nodes in the order in
 * which they run. One vertical step a node; all text is real text. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "plan/plan_priv.h"

/* Layout in SVG units. */
enum {
    WIDTH = 960,
    HEIGHT = 420,
    LEFT = 84,
    RIGHT = 20,
    TOP = 56,
    BOTTOM = 72,
    PLOT_WIDTH = WIDTH - LEFT - RIGHT,
    PLOT_HEIGHT = HEIGHT - TOP - BOTTOM
};

enum { LAYERS = 5 };
static const struct {
    const char *name, *colour;
} layers[LAYERS] = {{"base", "#8d99ae"},
                    {"inputs", "#4c956c"},
                    {"saved for backward", "#2f6690"},
                    {"transient", "#e09f3e"},
                    {"scratch", "#9e2a2b"}};

typedef struct picture {
    const sti_plan *plan;
    size_t *layer[LAYERS]; /* [nodes]: bytes */
    int32_t nodes;
    size_t lanes, extra_bytes, top_bytes; /* top of the axis */
    sti_text *out;
} picture;

static double x_at(const picture *p, int32_t node)
{
    return LEFT + (double)node * PLOT_WIDTH / (p->nodes ? p->nodes : 1);
}

static double y_at(const picture *p, size_t bytes)
{
    return TOP + PLOT_HEIGHT * (1.0 - (double)bytes / (double)p->top_bytes);
}

/* Locale-independent, one decimal. */
static void add_number(sti_text *out, double value)
{
    int64_t tenths = (int64_t)(value * 10.0 + 0.5);
    sti_text_printf(out, "%" PRId64 ".%" PRId64, tenths / 10, tenths % 10);
}

static void add_point(const picture *p, double x, double y)
{
    add_number(p->out, x);
    sti_text_add(p->out, ",");
    add_number(p->out, y);
    sti_text_add(p->out, " ");
}

static void fill_layers(picture *p)
{
    for (int32_t v = 0; v < sti_graph_value_count(p->plan->graph); v++) {
        const sti_allocation *allocation = &p->plan->allocation[v];
        if (!sti_plan_is_root(p->plan, v, STI_REGION_ARENA))
            continue;
        size_t *layer = p->layer[1 + sti_plan_share(p->plan, v)];
        for (int32_t n = allocation->first < 0 ? 0 : allocation->first;
             n <= allocation->last; n++)
            layer[n] += p->lanes * allocation->bytes;
    }
    for (int32_t n = 0; n < p->nodes; n++) {
        p->layer[0][n] = p->extra_bytes;
        p->layer[4][n] = p->lanes * sti_plan_scratch_bytes(
                                        p->plan, sti_graph_node(p->plan->graph, n));
    }
}

/* Sums up to and with layer k. */
static size_t stacked(const picture *p, int k, int32_t node)
{
    size_t sum = 0;
    for (int i = 0; i <= k; i++)
        sum += p->layer[i][node];
    return sum;
}

static void draw_layer(const picture *p, int k)
{
    sti_text_printf(p->out, "<polygon fill=\"%s\" points=\"", layers[k].colour);
    for (int32_t n = 0; n < p->nodes; n++) {
        double y = y_at(p, stacked(p, k, n));
        add_point(p, x_at(p, n), y);
        add_point(p, x_at(p, n + 1), y);
    }
    for (int32_t n = p->nodes - 1; n >= 0; n--) {
        double y = y_at(p, k ? stacked(p, k - 1, n) : 0);
        add_point(p, x_at(p, n + 1), y);
        add_point(p, x_at(p, n), y);
    }
    sti_text_printf(p->out, "\"><title>%s</title></polygon>\n", layers[k].name);
}

static void draw_text(const picture *p, double x, double y, const char *anchor,
                      const char *words)
{
    sti_text_add(p->out, "<text x=\"");
    add_number(p->out, x);
    sti_text_add(p->out, "\" y=\"");
    add_number(p->out, y);
    sti_text_printf(p->out,
                    "\" text-anchor=\"%s\" paint-order=\"stroke\" "
                    "stroke=\"#fff\" stroke-width=\"3\">",
                    anchor);
    sti_text_add_html(p->out, words);
    sti_text_add(p->out, "</text>\n");
}

static void draw_line(const picture *p, double x1, double y1, double x2, double y2,
                      const char *style)
{
    sti_text_add(p->out, "<path d=\"M");
    add_point(p, x1, y1);
    sti_text_add(p->out, "L");
    add_point(p, x2, y2);
    sti_text_printf(p->out, "\" %s/>\n", style);
}

/* A power of two of bytes that gives 4 to 8 lines. */
static size_t grid_step(size_t top)
{
    size_t step = 1;
    while (top / step > 8 && step <= SIZE_MAX / 4)
        step *= 2;
    return step;
}

static void draw_grid(const picture *p)
{
    size_t step = grid_step(p->top_bytes);
    for (size_t at = 0; at <= p->top_bytes; at += step) {
        draw_line(p, LEFT, y_at(p, at), WIDTH - RIGHT, y_at(p, at),
                  "stroke=\"#d8d8d8\"");
        draw_text(p, LEFT - 8, y_at(p, at) + 4, "end", sti_bytes_text(at));
    }
}

/* Bytes of the first component of a scope: "layer1" of "layer1.0.conv1". */
static size_t first_part(const char *scope)
{
    return strcspn(scope, ".");
}

static bool same_part(const char *a, const char *b)
{
    return first_part(a) == first_part(b) && memcmp(a, b, first_part(a)) == 0;
}

/* Labels of runs of nodes of one outermost scope, where there is room for one. */
static void draw_scopes(const picture *p)
{
    const stint_graph *graph = p->plan->graph;
    double free_from = LEFT;
    for (int32_t n = 0, end; n < p->nodes; n = end) {
        const char *scope = sti_graph_node(graph, n)->scope;
        for (end = n + 1; end < p->nodes; end++)
            if (!same_part(scope, sti_graph_node(graph, end)->scope))
                break;
        double x = x_at(p, n);
        if (x < free_from || !*scope || x_at(p, end) - x < 12)
            continue;
        char name[24];
        size_t length = first_part(scope);
        length = length < sizeof name - 1 ? length : sizeof name - 1;
        memcpy(name, scope, length);
        name[length] = '\0';
        draw_line(p, x, TOP + PLOT_HEIGHT, x, TOP + PLOT_HEIGHT + 5, "stroke=\"#444\"");
        draw_text(p, x + 2, TOP + PLOT_HEIGHT + 18, "start", name);
        free_from = x + 12 + 7.0 * (double)length;
    }
}

static void draw_backward_start(const picture *p)
{
    for (int32_t n = 0; n < p->nodes; n++) {
        if (!sti_graph_node(p->plan->graph, n)->backward)
            continue;
        draw_line(p, x_at(p, n), TOP, x_at(p, n), TOP + PLOT_HEIGHT + 38,
                  "stroke=\"#444\" stroke-dasharray=\"2 3\"");
        draw_text(p, x_at(p, n) + 2, TOP + PLOT_HEIGHT + 36, "start", "backward");
        return;
    }
}

static void draw_peak(const picture *p)
{
    sti_text words = {0};
    const sti_node *node = sti_graph_node(p->plan->graph, p->plan->peak_node);
    if (!node)
        return;
    size_t bytes = p->extra_bytes + p->lanes * p->plan->live_bytes[node->id];
    double x = (x_at(p, node->id) + x_at(p, node->id + 1)) / 2, y = y_at(p, bytes);
    double third = (x - LEFT) * 3 / PLOT_WIDTH; /* keep the label inside the picture */
    sti_text_printf(&words, "peak %s at %s%s%s%s", sti_bytes_text(bytes),
                    node->op->name, node->backward ? " (backward)" : "",
                    *node->scope ? " in " : "", node->scope);
    draw_line(p, x, y, x, y - 6, "stroke=\"#000\" stroke-width=\"2\"");
    draw_text(p, x, y - 10,
              third < 1   ? "start"
              : third > 2 ? "end"
                          : "middle",
              words.data ? words.data : "peak");
    p->out->failed |= words.failed;
    sti_text_fini(&words);
}

static void draw_legend(const picture *p)
{
    double x = LEFT;
    for (int k = 0; k < LAYERS; k++) {
        if (k == 0 && p->extra_bytes == 0)
            continue;
        sti_text_add(p->out, "<rect width=\"12\" height=\"12\" y=\"30\" x=\"");
        add_number(p->out, x);
        sti_text_printf(p->out, "\" fill=\"%s\"/>\n", layers[k].colour);
        draw_text(p, x + 18, 40, "start", layers[k].name);
        x += 40 + 7.0 * (double)strlen(layers[k].name);
    }
}

static void draw_budget(const picture *p, size_t budget_bytes)
{
    if (budget_bytes == 0)
        return;
    double y = y_at(p, budget_bytes);
    draw_line(p, LEFT, y, WIDTH - RIGHT, y,
              "stroke=\"#c1121f\" stroke-width=\"2\" stroke-dasharray=\"6 4\"");
    sti_text label = {0};
    sti_text_printf(&label, "budget %s", sti_bytes_text(budget_bytes));
    draw_text(p, WIDTH - RIGHT - 4, y - 6, "end", label.data ? label.data : "budget");
    p->out->failed |= label.failed;
    sti_text_fini(&label);
}

static void draw_all(const picture *p, size_t budget_bytes)
{
    sti_text_printf(p->out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                    "role=\"img\" font-family=\"sans-serif\" font-size=\"12\" "
                    "fill=\"#222\">\n<title>Memory over one step</title>\n"
                    "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
                    WIDTH, HEIGHT, WIDTH, HEIGHT);
    draw_text(p, LEFT, 20, "start", "Memory over one step");
    draw_legend(p);
    draw_grid(p);
    for (int k = 0; k < LAYERS; k++)
        draw_layer(p, k);
    draw_backward_start(p);
    draw_budget(p, budget_bytes);
    draw_peak(p);
    draw_scopes(p);
    draw_text(p, LEFT + PLOT_WIDTH / 2.0, HEIGHT - 16, "middle",
              "operators in the order in which they run");
    sti_text_add(p->out, "</svg>\n");
}

stint_status sti_plan_timeline_svg(const sti_plan *plan, int lanes, size_t extra_bytes,
                                   size_t budget_bytes, sti_text *out)
{
    picture p = {.plan = plan,
                 .nodes = sti_graph_node_count(plan->graph),
                 .lanes = (size_t)lanes,
                 .extra_bytes = extra_bytes,
                 .out = out};
    stint_status status = STINT_E_MEMORY;

    for (int k = 0; k < LAYERS; k++) {
        p.layer[k] = sti_alloc_array(p.nodes, sizeof *p.layer[k], "plan.timeline");
        if (!p.layer[k])
            goto done;
    }
    fill_layers(&p);
    p.top_bytes =
        extra_bytes + (p.nodes ? p.lanes * plan->live_bytes[plan->peak_node] : 0);
    p.top_bytes = budget_bytes > p.top_bytes ? budget_bytes : p.top_bytes;
    p.top_bytes += p.top_bytes / 8 + 1; /* room for the label of the peak */
    draw_all(&p, budget_bytes);
    status = out->failed ? STINT_E_MEMORY : STINT_OK;
done:
    for (int k = 0; k < LAYERS; k++)
        sti_free(p.layer[k]);
    return status;
}
