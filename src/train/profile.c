#include "train/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "op/op.h"

stint_status sti_profile_begin(sti_profile *profile, const stint_graph *graph,
                               int64_t shards, int lanes, int lane_threads)
{
    sti_profile_fini(profile);
    *profile = (sti_profile){.graph = graph,
                             .shards = shards,
                             .lanes = lanes,
                             .lane_threads = lane_threads,
                             .nodes = sti_graph_node_count(graph)};
    profile->node_ns = sti_alloc_array((int64_t)lanes * profile->nodes,
                                       sizeof *profile->node_ns, "profile");
    profile->lane_ns = sti_alloc_array((int64_t)lanes * STI_PROFILE_PARTS,
                                       sizeof *profile->lane_ns, "profile");
    if (profile->node_ns && profile->lane_ns)
        return STINT_OK;
    sti_profile_fini(profile);
    return STINT_E_MEMORY;
}

void sti_profile_fini(sti_profile *profile)
{
    sti_free(profile->node_ns);
    sti_free(profile->lane_ns);
    sti_free(profile->rows);
    memset(profile, 0, sizeof *profile);
}

/* ---- rows ---- */

static double bytes_of(const stint_graph *g, const stint_value *values, int32_t count)
{
    double bytes = 0;
    for (int32_t i = 0; i < count; i++)
        if (values[i] >= 0)
            bytes += (double)stint_shape_bytes(&sti_graph_value(g, values[i])->shape);
    return bytes;
}

static sti_cost cost_of(const stint_graph *g, const sti_node *node)
{
    if (node->op->cost)
        return node->op->cost(g, node);
    if (node->op->flags & STI_OP_VIEW)
        return (sti_cost){0};
    return (sti_cost){.read_bytes = bytes_of(g, node->in, node->n_in),
                      .write_bytes = bytes_of(g, node->out, node->n_out)};
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* Bytes a second of one lane for what a node touches: from the nearest level that holds
 * it, of as much as each of several lanes has of it. */
static double lane_bandwidth(const sti_profile *p, const sti_machine *m, double bytes)
{
    const double threads = (double)p->lane_threads, lanes = (double)p->lanes;
    if (bytes <= (double)m->l2_bytes * threads)
        return m->l2_bytes_per_s * threads;
    if (bytes <= (double)m->llc_bytes / lanes)
        return m->llc_bytes_per_s * threads;
    return least(m->dram_bytes_per_s * threads, m->dram_all_bytes_per_s / lanes);
}

/* The roofline (Williams, Waterman and Patterson 2009): the longer of the time that the
 * arithmetic and the memory take at their peaks. */
static double least_seconds(const sti_profile *p, const sti_machine *m,
                            const sti_node *node, const sti_cost *cost)
{
    const double bytes = cost->read_bytes + cost->write_bytes;
    const double touched = bytes_of(p->graph, node->in, node->n_in) +
                           bytes_of(p->graph, node->out, node->n_out);
    const bool bf16 = (node->op->flags & STI_OP_BF16) && m->bf16_flop_per_s > 0;
    const double rate = bf16 ? m->bf16_flop_per_s : m->f32_flop_per_s;
    const double compute = cost->flop / (rate * (double)p->lane_threads);
    const double move = bytes / lane_bandwidth(p, m, touched);
    return compute > move ? compute : move;
}

static sti_profile_row *row_of(sti_profile *p, const sti_node *node)
{
    for (int i = 0; i < p->row_count; i++)
        if (p->rows[i].backward == node->backward &&
            strcmp(p->rows[i].name, node->op->name) == 0)
            return &p->rows[i];
    sti_profile_row *row = &p->rows[p->row_count++];
    *row = (sti_profile_row){.name = node->op->name, .backward = node->backward};
    return row;
}

/* (What runs once has no part in a step.) */
static void add_node(sti_profile *p, const sti_machine *machine, const sti_node *node)
{
    if (node->once)
        return;
    sti_profile_row *row = row_of(p, node);
    const sti_cost cost = cost_of(p->graph, node);
    const double runs = (double)p->runs;
    row->nodes++;
    row->flop += cost.flop * runs;
    row->bytes += (cost.read_bytes + cost.write_bytes) * runs;
    if (machine)
        row->least_s += least_seconds(p, machine, node, &cost) * runs;
    for (int lane = 0; lane < p->lanes; lane++)
        row->s += (double)p->node_ns[(int64_t)lane * p->nodes + node->id] * 1e-9;
}

static int compare_rows(const void *a, const void *b)
{
    const sti_profile_row *x = a, *y = b;
    return (x->s < y->s) - (x->s > y->s);
}

static bool saves_memory(const sti_node *node)
{
    return node->again || node->op == &sti_op_pack || node->op == &sti_op_unpack ||
           node->op == &sti_op_error_gain;
}

double sti_profile_slowdown(const sti_profile *p)
{
    int64_t all = 0, extra = 0;
    for (int lane = 0; lane < p->lanes; lane++)
        for (int32_t n = 0; n < p->nodes; n++) {
            int64_t ns = p->node_ns[(int64_t)lane * p->nodes + n];
            all += ns;
            extra += saves_memory(sti_graph_node(p->graph, n)) ? ns : 0;
        }
    return all > extra ? (double)all / (double)(all - extra) : 1.0;
}

stint_status sti_profile_end(sti_profile *profile, const sti_machine *machine)
{
    sti_profile *p = profile;
    p->rows = sti_alloc_array(p->nodes, sizeof *p->rows, "profile");
    if (!p->rows)
        return STINT_E_MEMORY;
    for (int32_t n = 0; n < p->nodes; n++)
        add_node(p, machine, sti_graph_node(p->graph, n));
    qsort(p->rows, (size_t)p->row_count, sizeof *p->rows, compare_rows);
    for (int lane = 0; lane < p->lanes; lane++)
        for (int part = 0; part < STI_PROFILE_PARTS; part++)
            p->part_ns[part] += p->lane_ns[lane * STI_PROFILE_PARTS + part];
    p->part_ns[STI_PROFILE_LOAD] /= p->lanes;
    p->part_ns[STI_PROFILE_TREE] /= p->lanes;
    p->part_ns[STI_PROFILE_WAIT] /= p->lanes;
    p->with_roofline = machine != NULL;
    if (machine)
        p->machine = *machine;
    p->graph = NULL;
    return STINT_OK;
}

/* ---- printing ---- */

static const char *const part_names[] = {"load and augment",     "add shards",
                                         "wait for other lanes", "add lanes",
                                         "gradient norm",        "update"};

/* Milliseconds of a step's wall time. */
static double row_ms(const sti_profile *p, const sti_profile_row *row)
{
    return row->s * 1e3 / (double)(p->steps * p->lanes);
}

static double part_ms(const sti_profile *p, int part)
{
    return (double)p->part_ns[part] * 1e-6 / (double)p->steps;
}

static double step_ms(const sti_profile *p)
{
    return (double)p->step_ns * 1e-6 / (double)p->steps;
}

/* What is in none of the parts. */
static double rest_ms(const sti_profile *p)
{
    double rest = step_ms(p);
    for (int i = 0; i < p->row_count; i++)
        rest -= row_ms(p, &p->rows[i]);
    for (int part = 0; part < STI_PROFILE_PARTS; part++)
        rest -= part_ms(p, part);
    return rest;
}

static double rate(double amount, double seconds)
{
    return seconds > 0 ? amount / seconds * 1e-9 : 0;
}

static double share(const sti_profile_row *row)
{
    return row->s > 0 ? row->least_s / row->s : 0;
}

static void add_line(const sti_profile *p, const char *name, double ms, sti_text *out)
{
    sti_text_printf(out, "%-38s %5s %9.2f %5.1f %%\n", name, "", ms,
                    100 * ms / step_ms(p));
}

static void add_row(const sti_profile *p, const sti_profile_row *row, sti_text *out)
{
    char name[64];
    const double ms = row_ms(p, row);
    snprintf(name, sizeof name, "%s%s", row->name, row->backward ? " (backward)" : "");
    sti_text_printf(out, "%-38s %5" PRId64 " %9.2f %5.1f %% %9.1f %8.1f", name,
                    row->nodes, ms, 100 * ms / step_ms(p), rate(row->flop, row->s),
                    rate(row->bytes, row->s));
    if (p->with_roofline)
        sti_text_printf(out, " %7.0f %%", 100 * share(row));
    sti_text_add(out, "\n");
}

void sti_profile_words(const sti_profile *profile, sti_text *out)
{
    const sti_profile *p = profile;
    if (p->steps == 0) {
        sti_text_add(out, "no step was run, so there is nothing to show of one\n");
        return;
    }
    sti_text_printf(out, "%-38s %5s %9s %7s %9s %8s%s\n", "part of a step", "nodes",
                    "ms", "share", "GFLOP/s", "GB/s",
                    p->with_roofline ? "  roofline" : "");
    for (int i = 0; i < p->row_count; i++)
        add_row(p, &p->rows[i], out);
    for (int part = 0; part < STI_PROFILE_PARTS; part++)
        if (p->part_ns[part] > 0)
            add_line(p, part_names[part], part_ms(p, part), out);
    add_line(p, "the rest", rest_ms(p), out);
    add_line(p, "whole step", step_ms(p), out);
    sti_text_printf(out,
                    "%" PRId64 " step%s of %" PRId64
                    " shard%s on %d lane%s of %d thread%s; "
                    "rates are of one lane\n",
                    p->steps, sti_s(p->steps), p->shards, sti_s(p->shards), p->lanes,
                    sti_s(p->lanes), p->lane_threads, sti_s(p->lane_threads));
    if (!p->with_roofline)
        sti_text_add(out, "the share of the roofline is shown once `stint bench step` "
                          "has measured this machine\n");
    if (p->evaluations > 0)
        sti_text_printf(out, "evaluation: %" PRId64 " x %.2f s, in no step\n",
                        p->evaluations,
                        (double)p->evaluate_ns * 1e-9 / (double)p->evaluations);
}

static void add_part_json(const char *name, double ms, sti_json *j)
{
    sti_json_begin_object(j, NULL);
    sti_json_text(j, "part", name);
    sti_json_float(j, "s_a_step", ms * 1e-3);
    sti_json_end_object(j);
}

void sti_profile_json(const sti_profile *profile, sti_json *j)
{
    const sti_profile *p = profile;
    const double steps = p->steps > 0 ? (double)p->steps : 1;
    sti_json_begin_array(j, "operators");
    for (int i = 0; i < p->row_count && p->steps > 0; i++) {
        const sti_profile_row *row = &p->rows[i];
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "operator", row->name);
        sti_json_bool(j, "backward", row->backward);
        sti_json_int(j, "nodes", row->nodes);
        sti_json_float(j, "s_a_step", row_ms(p, row) * 1e-3);
        sti_json_float(j, "cpu_s_a_step", row->s * (double)p->lane_threads / steps);
        sti_json_float(j, "gflop_per_s", rate(row->flop, row->s));
        sti_json_float(j, "gbyte_per_s", rate(row->bytes, row->s));
        if (p->with_roofline)
            sti_json_float(j, "roofline", share(row));
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
    if (p->with_roofline) {
        const sti_machine *m = &p->machine;
        sti_json_begin_object(j, "machine");
        sti_json_float(j, "f32_gflop_per_s", m->f32_flop_per_s * 1e-9);
        sti_json_float(j, "bf16_gflop_per_s", m->bf16_flop_per_s * 1e-9);
        sti_json_float(j, "l2_gbyte_per_s", m->l2_bytes_per_s * 1e-9);
        sti_json_float(j, "llc_gbyte_per_s", m->llc_bytes_per_s * 1e-9);
        sti_json_float(j, "dram_gbyte_per_s", m->dram_bytes_per_s * 1e-9);
        sti_json_end_object(j);
    }
    sti_json_begin_array(j, "parts");
    for (int part = 0; part < STI_PROFILE_PARTS && p->steps > 0; part++)
        add_part_json(part_names[part], part_ms(p, part), j);
    if (p->steps > 0)
        add_part_json("the rest", rest_ms(p), j);
    sti_json_end_array(j);
    sti_json_float(j, "step_s", p->steps > 0 ? step_ms(p) * 1e-3 : 0);
    sti_json_int(j, "profiled_steps", p->steps);
    sti_json_float(j, "evaluation_s",
                   p->evaluations > 0
                       ? (double)p->evaluate_ns * 1e-9 / (double)p->evaluations
                       : 0);
}
