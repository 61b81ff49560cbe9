#include "train/error_control.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "op/op_bf16.h"
#include "train/error_section.h"
#include "train/moments.h"
#include "train/optimizer_section.h"
#include "train/step_plan.h"

#define FINEST        0x1p-20 /* bounds, as shares of the largest magnitude */
#define COARSEST      0.25
#define MAX_COARSER   4.0
#define CAPACITY_UNIT 64 /* so that a capacity is exact in f32 */

struct sti_error_control {
    const sti_network *network;
    sti_error_row *rows;
    float *table; /* [count, STI_BOUND_FIELDS] */
    int count;
    bool dither,
        adam;   /* adam: by the second moment, which of rmsprop is the only one */
    int second; /* which block of moments that is */
    double tau, momentum, beta2;
    int64_t every, shards;
};

/* ---- the graph's packs ---- */

/* "pack.<row>.<what>": the row, or -1. */
static int row_of_metric(const sti_output *output, const char *what)
{
    char end[16];
    int row;
    if (output->kind != STI_OUTPUT_METRIC ||
        sscanf(output->name, "pack.%d.%15s", &row, end) != 2 || strcmp(end, what) != 0)
        return -1;
    return row;
}

static stint_status add_reader(sti_error_row *row, const sti_output *output)
{
    if (row->reader_count == STI_ERROR_READERS)
        return sti_fail(STINT_E_BUG, "%s: more than %d gradients read it", output->name,
                        STI_ERROR_READERS);
    row->readers[row->reader_count++] =
        (sti_error_reader){.param = output->target, .gain = output->value, .error = -1};
    return STINT_OK;
}

static void add_check(sti_error_row *row, const sti_output *output)
{
    for (int i = 0; i < row->reader_count; i++)
        if (row->readers[i].param == output->target)
            row->readers[i].error = output->value;
}

/* Blocks whose errors a gradient has: several, where what it reads is a sum. */
static int count_blocks(const sti_error_control *c, stint_value param)
{
    int count = 0;
    for (int i = 0; i < c->count; i++)
        for (int k = 0; k < c->rows[i].reader_count; k++)
            count += c->rows[i].readers[k].param == param;
    return count;
}

static stint_status find_metrics(sti_error_control *c)
{
    const stint_graph *graph = c->network->graph;
    stint_status st = STINT_OK;
    for (int32_t i = 0; i < sti_graph_output_count(graph) && st == STINT_OK; i++) {
        const sti_output *output = &sti_graph_outputs(graph)[i];
        int stats = row_of_metric(output, "stats"),
            gain = row_of_metric(output, "gain");
        if (stats >= 0)
            c->rows[stats].stats = output->value;
        if (gain >= 0)
            st = add_reader(&c->rows[gain], output);
    }
    for (int32_t i = 0; i < sti_graph_output_count(graph); i++) {
        const sti_output *output = &sti_graph_outputs(graph)[i];
        int error = row_of_metric(output, "error");
        if (error >= 0)
            add_check(&c->rows[error], output);
    }
    for (int i = 0; i < c->count; i++)
        for (int k = 0; k < c->rows[i].reader_count; k++) {
            sti_error_reader *reader = &c->rows[i].readers[k];
            reader->blocks = count_blocks(c, reader->param);
        }
    return st;
}

static int count_packs(const stint_graph *graph)
{
    int count = 0;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++)
        count += sti_graph_node(graph, n)->op == &sti_op_pack;
    return count;
}

static size_t bytes_of(const stint_graph *graph, stint_value value)
{
    return stint_shape_bytes(&sti_graph_value(graph, value)->shape);
}

/* Signs that a block needs; those of a batch-norm count for its input's block alone. */
static size_t bits_beside(const stint_graph *graph, const sti_node *pack)
{
    enum { PACK_BITS = 4 };
    const sti_pack_attr *attr = pack->attr;
    const sti_node *maker = sti_graph_value(graph, pack->in[0])->producer;
    if (pack->in[PACK_BITS] < 0 ||
        (!attr->norm && maker && sti_op_is_batch_norm(maker->op)))
        return 0;
    return bytes_of(graph, pack->in[PACK_BITS]);
}

/* Would it have been kept? Not what is made for a sum alone. */
static bool is_saved(const sti_error_control *c, stint_value unpacked)
{
    const stint_graph *graph = c->network->graph;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        for (int32_t i = 0; i < node->n_in && node->op != &sti_op_unpack; i++)
            if (node->in[i] == unpacked)
                return true;
    }
    return false;
}

/* Rows come from the graph's nodes: pack tells what is packed, unpack what the block
 * stands for. */
static void find_rows(sti_error_control *c)
{
    const stint_graph *graph = c->network->graph;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        if (node->op == &sti_op_pack) {
            const sti_pack_attr *attr = node->attr;
            sti_error_row *row = &c->rows[attr->row];
            row->name = node->scope;
            row->bits_bytes = bits_beside(graph, node);
            row->choice = sti_held_choice(node);
        }
        if (node->op != &sti_op_unpack)
            continue;
        const sti_pack_attr *attr = node->attr; /* begins with it */
        for (int k = 0; k < 2; k++)
            if (is_saved(c, node->out[k]))
                c->rows[attr->row].plain_bytes += bytes_of(graph, node->out[k]);
    }
}

stint_status sti_error_control_create(const sti_network *network,
                                      const sti_error_values *error,
                                      const sti_optimizer_values *optimizer,
                                      int64_t shards, sti_error_control **control_out)
{
    const int count = count_packs(network->graph);
    *control_out = NULL;
    if (count == 0)
        return STINT_OK;
    sti_error_control *c = sti_alloc(sizeof *c, "error control");
    if (!c)
        return STINT_E_MEMORY;
    *c = (sti_error_control){.network = network,
                             .count = count,
                             .dither = error->dither,
                             .adam = optimizer->name != STI_OPTIMIZER_SGD,
                             .tau = error->tau,
                             .second = optimizer->name != STI_OPTIMIZER_RMSPROP,
                             .momentum = optimizer->momentum,
                             .beta2 = optimizer->name == STI_OPTIMIZER_RMSPROP
                                          ? optimizer->alpha
                                          : optimizer->beta2,
                             .every = error->every,
                             .shards = shards};
    c->rows = sti_alloc_array(count, sizeof *c->rows, "error control");
    c->table =
        sti_alloc_array((int64_t)count * STI_BOUND_FIELDS, sizeof(float), "bounds");
    stint_status st = c->rows && c->table ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        find_rows(c);
        st = find_metrics(c);
    }
    if (st != STINT_OK) {
        sti_error_control_destroy(c);
        return st;
    }
    *control_out = c;
    return STINT_OK;
}

void sti_error_control_destroy(sti_error_control *control)
{
    if (!control)
        return;
    sti_free(control->rows);
    sti_free(control->table);
    sti_free(control);
}

int sti_error_control_count(const sti_error_control *control)
{
    return control ? control->count : 0;
}

const sti_error_row *sti_error_control_row(const sti_error_control *control, int row)
{
    return &control->rows[row];
}

const char *sti_error_control_param(const sti_error_control *control, stint_value param)
{
    return stint_value_name(control->network->graph, param);
}

/* ---- before a run ---- */

bool sti_error_control_lacks(const sti_error_control *control)
{
    for (int i = 0; i < control->count; i++)
        if (!(control->rows[i].limit > 0))
            return true;
    return false;
}

bool sti_error_control_collects(const sti_error_control *control, int64_t step)
{
    const int64_t done = step + 1;
    return done == 1 || done == 3 || done == 10 || done == 30 || done == 100 ||
           done % control->every == 0;
}

const float *sti_error_control_bounds(sti_error_control *control, bool collect)
{
    for (int i = 0; i < control->count; i++) {
        float *row = control->table + (int64_t)i * STI_BOUND_FIELDS;
        const sti_error_row *r = &control->rows[i];
        row[STI_BOUND_DITHER] = control->dither;
        row[STI_BOUND_COLLECT] = collect;
        /* Zeros in the trial run: moderate ones, by the range. */
        row[STI_BOUND_WANTED] = row[STI_BOUND_LIMIT] = (float)r->limit;
    }
    return control->table;
}

/* ---- after a run ---- */

static const float *result_at(const sti_error_control *c, const char *block,
                              stint_value value)
{
    return (const float *)(const void *)(block +
                                         c->network->plan->allocation[value].offset);
}

void sti_error_control_set_shards(sti_error_control *control, int64_t shards)
{
    control->shards = shards;
}

void sti_error_control_look(sti_error_control *control, const char *block,
                            bool *fits_out)
{
    const double n = (double)control->shards;
    *fits_out = true;
    for (int i = 0; i < control->count; i++) {
        sti_error_row *row = &control->rows[i];
        const float *s = result_at(control, block, row->stats);
        row->overflow = s[STI_PACK_OVERFLOW] > 0.0f;
        row->bytes = (double)s[STI_PACK_BYTES] / n;
        row->bound = (double)s[STI_PACK_BOUND] / n;
        row->error_share = (double)s[STI_PACK_ERROR] / n;
        row->nonzero = (double)s[STI_PACK_NONZERO] / n;
        row->exact = (double)s[STI_PACK_EXACT] / n;
        if (s[STI_PACK_RANGE] > 0.0f)
            row->range = (double)s[STI_PACK_RANGE] / n;
        *fits_out = *fits_out && !row->overflow;
    }
}

/* ---- the choice of bounds ---- */

/* base^exponent by squaring: a fixed sequence of multiplications. */
static double power(double base, int64_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

static double mean_size(const float *x, int64_t count, bool root)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += root ? sqrt((double)x[i]) : fabs((double)x[i]);
    return count > 0 ? sum / (double)count : 0;
}

/* The gradient of a param; -1: it is not trained. */
static stint_value gradient_of(const sti_error_control *c, stint_value param)
{
    const stint_graph *graph = c->network->graph;
    for (int32_t i = 0; i < sti_graph_output_count(graph); i++) {
        const sti_output *output = &sti_graph_outputs(graph)[i];
        if (output->kind == STI_OUTPUT_GRADIENT && output->target == param)
            return output->value;
    }
    return -1;
}

/* What an error is held against: the mean size of the momentum, as if it had not begun
 * at zero. */
static double reference(const sti_error_control *c, const char *block,
                        const void *const *moments, int64_t steps, stint_value param)
{
    const stint_value gradient = gradient_of(c, param);
    const stint_shape shape = stint_value_shape(c->network->graph, gradient);
    const int64_t count = stint_shape_count(&shape);
    const size_t offset = sti_moment_offset(c->network, param);
    const void *moment = steps > 0 ? moments[c->adam ? c->second : 0] : NULL;
    if (!moment) {
        double size =
            mean_size(result_at(c, block, gradient), count, false) / (double)c->shards;
        /* The momentum of gradients of this size that are independent. */
        return c->adam ? size : size / sqrt(1 - c->momentum * c->momentum);
    }
    const float *m = (const float *)(const void *)((const char *)moment + offset);
    if (c->adam)
        return mean_size(m, count, true) / sqrt(1 - power(c->beta2, steps));
    return mean_size(m, count, false) / sqrt(1 - power(c->momentum, 2 * steps));
}

/* bound such that bound sqrt(square) is what is allowed; infinite for no square. */
static double bound_for(double allowed, double square)
{
    return square > 0 ? allowed / sqrt(square) : (double)INFINITY;
}

/* The bound that this gradient allows; infinite when no error reaches it. Errors of
 * shards are independent, and the step takes the mean of their gradients. */
static double allowed_bound(const sti_error_control *c, const char *block, double bound,
                            sti_error_reader *reader)
{
    const float *gain = result_at(c, block, reader->gain);
    const double n = (double)c->shards, reach = (double)gain[STI_GAIN_REACH] / n;
    reader->predicted = sqrt((double)gain[STI_GAIN_SQUARE]) / n;
    reader->reach = bound * sqrt(reach);
    reader->measured = reader->error < 0
                           ? (double)NAN
                           : sqrt((double)*result_at(c, block, reader->error)) / n;
    const double direct =
        bound_for(reader->allowed, (double)gain[STI_GAIN_GAIN] / (n * n));
    const double through = bound_for(c->tau, reach);
    return direct < through ? direct : through;
}

static double clamped(double bound, double range)
{
    if (!(range > 0))
        return 1; /* all zeros: any bound is right */
    if (bound < FINEST * range)
        return FINEST * range;
    return bound < COARSEST * range ? bound : COARSEST * range;
}

static void choose_bounds(const sti_error_control *c, const char *block,
                          const void *const *moments, int64_t steps, sti_error_row *row)
{
    double bound = (double)INFINITY;
    for (int i = 0; i < row->reader_count; i++) {
        sti_error_reader *reader = &row->readers[i];
        /* Errors of blocks are independent of each other. */
        reader->allowed = c->tau * reference(c, block, moments, steps, reader->param) /
                          sqrt((double)reader->blocks);
        double allows = allowed_bound(c, block, row->bound, reader);
        bound = allows < bound ? allows : bound;
    }
    if (row->limit > 0 && bound > MAX_COARSER * row->limit)
        bound = MAX_COARSER * row->limit;
    row->limit = (double)(float)clamped(bound, row->range);
}

void sti_error_control_collect(sti_error_control *control, const char *block,
                               const void *const *moments, int64_t steps)
{
    for (int i = 0; i < control->count; i++)
        choose_bounds(control, block, moments, steps, &control->rows[i]);
}

void sti_error_control_enlarge(const sti_error_control *control,
                               sti_pack_choice *choices_out)
{
    for (int i = 0; i < control->count; i++) {
        const sti_error_row *row = &control->rows[i];
        sti_pack_choice choice = row->choice;
        if (row->overflow) {
            const int64_t more = choice.capacity + choice.capacity / 16;
            const int64_t wanted = sti_pack_capacity((size_t)row->bytes);
            choice.capacity = wanted > more ? wanted : more / 64 * 64;
        }
        if (choice.capacity >= (int64_t)row->plain_bytes)
            choice.capacity = 0;
        choices_out[i] = choice;
    }
}

/* ---- checkpoints ---- */

void sti_error_control_save(const sti_error_control *control, float *state_out)
{
    for (int i = 0; i < control->count; i++, state_out += STI_ERROR_STATE) {
        const sti_error_row *row = &control->rows[i];
        state_out[STI_STATE_VALUE] = (float)row->choice.value;
        state_out[STI_STATE_FORM] = (float)row->choice.form;
        state_out[STI_STATE_CAPACITY] = (float)(row->choice.capacity / CAPACITY_UNIT);
        state_out[STI_STATE_LIMIT] = (float)row->limit;
    }
}

static sti_error_row *row_of_value(sti_error_control *control, stint_value value)
{
    for (int i = 0; i < control->count; i++)
        if (control->rows[i].choice.value == value)
            return &control->rows[i];
    return NULL;
}

void sti_error_control_load(sti_error_control *control, const float *state, int count)
{
    for (int i = 0; i < count; i++, state += STI_ERROR_STATE) {
        sti_error_row *row = row_of_value(control, (stint_value)state[STI_STATE_VALUE]);
        if (!row || !(state[STI_STATE_CAPACITY] > 0))
            continue;
        row->limit = (double)state[STI_STATE_LIMIT];
    }
}

int sti_error_state_choices(const float *state, int count, sti_pack_choice *choices_out)
{
    int packs = 0;
    for (int i = 0; i < count; i++, state += STI_ERROR_STATE)
        if (state[STI_STATE_CAPACITY] > 0)
            choices_out[packs++] = (sti_pack_choice){
                .value = (stint_value)state[STI_STATE_VALUE],
                .form = (sti_pack_form)state[STI_STATE_FORM],
                .capacity = (int64_t)state[STI_STATE_CAPACITY] * CAPACITY_UNIT,
            };
    return packs;
}
