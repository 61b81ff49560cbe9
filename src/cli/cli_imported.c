#include "cli/cli_imported.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"
#include "base/team.h"
#include "base/units.h"

/* ---- ports ---- */

void sti_cli_imported_ports_json(sti_json *j, const char *key,
                                 const sti_lowered_port *port, int64_t count)
{
    sti_json_begin_array(j, key);
    for (int64_t i = 0; i < count; i++) {
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "name", port[i].name);
        sti_json_begin_array(j, "shape");
        for (int k = 0; k < port[i].shape.rank; k++)
            sti_json_int(j, NULL, port[i].shape.dim[k]);
        sti_json_end_array(j);
        sti_json_text(j, "type", sti_exchange_type_name(port[i].type));
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}

void sti_cli_imported_ports_words(sti_text *out, const char *word,
                                  const sti_lowered_port *port, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sti_text_printf(out, "  %-8s %-32s %s [", word, sti_shown(port[i].name),
                        sti_exchange_type_name(port[i].type));
        for (int k = 0; k < port[i].shape.rank; k++)
            sti_text_printf(out, "%s%" PRId64, k ? ", " : "", port[i].shape.dim[k]);
        sti_text_add(out, "]\n");
    }
}

/* ---- memory ---- */

/* Code of these may run; that of others is not resident. */
static const char *const libraries[] = {"libm.", "libjansson", NULL};

/* Buffers of reading and writing, and what the heap holds between blocks. */
#define FILES_BYTES ((size_t)1152 << 10)

/* Inputs are read before working memory is used beyond them: the file of one at a time
 * beside all that were read. Where that is not known, a member of an archive with
 * numbers of 64 bits may lie there twice, packed and not. Outputs of whole numbers and
 * truth values are copied afterwards. */
static size_t files_bytes(const sti_imported *m, size_t work, size_t reading_bytes)
{
    size_t inputs = 0, largest = 0, outputs = 0;
    for (int64_t i = 0; i < m->lowered.inputs; i++) {
        const size_t bytes = stint_shape_bytes(&m->lowered.input[i].shape);
        inputs += bytes;
        largest = bytes > largest ? bytes : largest;
    }
    for (int64_t i = 0; i < m->lowered.outputs; i++) {
        const sti_lowered_port *p = &m->lowered.output[i];
        const size_t count = (size_t)stint_shape_count(&p->shape);
        outputs += p->type == STI_EXCHANGE_BOOL  ? count
                   : p->shape.dtype == STINT_I32 ? count * sizeof(int64_t)
                                                 : 0;
    }
    const size_t reading = inputs + (reading_bytes ? reading_bytes : 4 * largest);
    const size_t above = reading > work ? reading - work : 0;
    return FILES_BYTES + (above > outputs ? above : outputs);
}

stint_status sti_cli_imported_account(sti_imported *m, int64_t *threads,
                                      size_t reading_bytes, sti_account *account)
{
    int count;
    stint_status st = sti_threads_choose((int)*threads, &count, NULL);
    if (st == STINT_OK)
        st = sti_imported_plan(m, count);
    if (st != STINT_OK)
        return st;
    *threads = count;
    const size_t own = sti_alloc_now_bytes(),
                 most = sti_alloc_peak_bytes() + m->read_bytes;
    const size_t work = sti_imported_work_bytes(m);
    sti_account_add(account, "weights", "those that are read in the file, mapped",
                    m->mapped_bytes);
    /* Blocks of 256 KiB, most of it, each with a page that is begun. */
    sti_account_add(account, "network", "other weights, graph and plan",
                    own + own / 64);
    sti_account_add(account, "working memory", "inputs, activations, outputs", work);
    sti_account_add(account, "files", "inputs as they are read, outputs",
                    files_bytes(m, work, reading_bytes));
    sti_account_raise(account, "opening", "once: it was given back", most);
    sti_account_add_process(
        account, &(sti_account_process){.libraries = libraries, .apart_bytes = own},
        count);
    return STINT_OK;
}

/* ---- stint plan ---- */

/* A value of the recipe's rows, which are flags of the command although no recipe is
 * there. */
static const void *flag_of(const sti_cli_call *call, const char *section,
                           const char *name)
{
    for (int i = 0; i < call->set.count; i++) {
        const sti_option *row = &call->set.rows[i];
        if (row->section && strcmp(row->section, section) == 0 &&
            strcmp(row->name, name) == 0)
            return (const char *)call->set.target + row->offset;
    }
    return NULL;
}

static void plan_words(const sti_imported *m, const sti_account *a, int64_t threads,
                       size_t budget, sti_text *out)
{
    sti_text_printf(out, "%s: %" PRId64 " thread%s\n\n", sti_shown(m->path), threads,
                    sti_s(threads));
    for (int i = 0; i < a->count; i++)
        sti_text_printf(out, "  %-16s %12s  %s\n", a->parts[i].name,
                        sti_bytes_text(a->parts[i].bytes), a->parts[i].detail);
    sti_text_printf(out, "  %-16s %12s\n", "peak", sti_bytes_text(a->total_bytes));
    if (budget)
        sti_text_printf(out, "Budget %s: %s\n", sti_bytes_text(budget),
                        a->total_bytes <= budget ? "fits" : "does not fit");
}

static void plan_json(const sti_account *a, int64_t threads, size_t budget,
                      sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)a->total_bytes);
    sti_json_int(&j, "threads", threads);
    sti_json_known(&j, "budget_bytes", (int64_t)budget);
    sti_json_bool(&j, "fits", budget == 0 || a->total_bytes <= budget);
    sti_cli_parts_json(a, &j);
    sti_json_end_object(&j);
}

int64_t sti_cli_imported_threads(const sti_cli_call *call)
{
    const int64_t *asked = flag_of(call, "run", "threads");
    return asked ? *asked : 0;
}

stint_status sti_cli_imported_plan(sti_cli_call *call)
{
    const size_t *memory = flag_of(call, "run", "memory");
    const size_t budget = memory ? *memory : 0;
    int64_t threads = sti_cli_imported_threads(call);
    sti_imported *m = NULL;
    sti_account account = {0};
    sti_text text = {0};
    stint_status st = sti_imported_open(call->operands[0], &m);
    if (st == STINT_OK)
        st = sti_cli_imported_account(m, &threads, 0, &account);
    if (st == STINT_OK) {
        if (call->common->json)
            plan_json(&account, threads, budget, &text);
        else
            plan_words(m, &account, threads, budget, &text);
        st = sti_cli_answer(call, &text);
    }
    if (st == STINT_OK)
        st = sti_account_check(&account, budget, NULL);
    sti_imported_close(m);
    return st;
}

/* ---- stint info ---- */

typedef struct op_count {
    const char *op;
    int64_t count;
} op_count;

static int by_name(const void *a, const void *b)
{
    const op_count *x = a, *y = b;
    return strcmp(x->op, y->op);
}

/* Operators of the graph as it runs, by name; NULL: no memory. */
static op_count *count_ops(const stint_graph *g, int64_t *kinds)
{
    const int32_t nodes = sti_graph_node_count(g);
    op_count *all = sti_alloc_array(nodes + 1, sizeof *all, "operators");
    *kinds = 0;
    for (int32_t i = 0; all && i < nodes; i++) {
        const char *op = sti_graph_node(g, i)->op->name;
        int64_t k = 0;
        while (k < *kinds && strcmp(all[k].op, op) != 0)
            k++;
        all[k].op = op;
        all[k].count++;
        *kinds += k == *kinds;
    }
    if (all)
        qsort(all, (size_t)*kinds, sizeof *all, by_name);
    return all;
}

static void info_words(const sti_imported *m, const op_count *ops, int64_t kinds,
                       sti_text *out)
{
    sti_text_printf(out, "imported network, opset %" PRId64 ", of %s; %s parameters\n",
                    m->source->opset,
                    m->source->producer[0] ? sti_shown(m->source->producer)
                                           : "an unnamed program",
                    sti_count_text(m->lowered.parameters));
    sti_text_printf(out, "weights sha256 %s\n\n", sti_shown(m->weights_sha256));
    sti_cli_imported_ports_words(out, "input", m->lowered.input, m->lowered.inputs);
    sti_cli_imported_ports_words(out, "output", m->lowered.output, m->lowered.outputs);
    sti_text_printf(out, "\n%" PRId64 " nodes in the file, %d as it runs:\n",
                    m->source->nodes, (int)sti_graph_node_count(m->graph));
    for (int64_t i = 0; i < kinds; i++)
        sti_text_printf(out, "  %-24s %6" PRId64 "\n", ops[i].op, ops[i].count);
}

static void info_json(const sti_imported *m, const op_count *ops, int64_t kinds,
                      sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "kind", STI_IMPORTED_KIND);
    sti_json_int(&j, "opset", m->source->opset);
    sti_json_text(&j, "producer", m->source->producer);
    sti_json_int(&j, "parameters", m->lowered.parameters);
    sti_json_text(&j, "weights_sha256", m->weights_sha256);
    sti_cli_imported_ports_json(&j, "inputs", m->lowered.input, m->lowered.inputs);
    sti_cli_imported_ports_json(&j, "outputs", m->lowered.output, m->lowered.outputs);
    sti_json_int(&j, "nodes", m->source->nodes);
    sti_json_int(&j, "transposes", m->transposes);
    sti_json_begin_object(&j, "operators");
    for (int64_t i = 0; i < kinds; i++)
        sti_json_int(&j, ops[i].op, ops[i].count);
    sti_json_end_object(&j);
    sti_json_end_object(&j);
}

static stint_status info_answer(sti_cli_call *call, const sti_imported *m)
{
    int64_t kinds;
    sti_text text = {0};
    op_count *ops = count_ops(m->graph, &kinds);
    if (!ops)
        return STINT_E_MEMORY;
    if (call->common->json)
        info_json(m, ops, kinds, &text);
    else
        info_words(m, ops, kinds, &text);
    sti_free(ops);
    return sti_cli_answer(call, &text);
}

stint_status sti_cli_imported_info(sti_cli_call *call, const char *path, int graph)
{
    sti_imported *m = NULL;
    sti_text text = {0};
    stint_status st = sti_imported_open(path, &m);
    if (st == STINT_OK && graph != 0) {
        st = graph == 2 ? sti_graph_print_dot(m->graph, &text)
                        : sti_graph_print(m->graph, &text);
        if (st == STINT_OK)
            st = sti_cli_answer_text(call, "graph", &text);
        else
            sti_text_fini(&text);
    } else if (st == STINT_OK) {
        st = info_answer(call, m);
    }
    sti_imported_close(m);
    return st;
}
