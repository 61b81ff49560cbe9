/* Gradients of an imported network: of the mean of its first output with respect to its
 * weights, for bench/onnx_gradient.py.
 *
 * usage: onnx_gradient_bench FILE.onnx INPUT OUT
 *
 * INPUT is the one input's numbers, raw float32. OUT gets a line "NAME RANK" with a
 * length and an axis of ONNX for each axis in memory, then the numbers, for each
 * weight.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "exchange/lower.h"
#include "exchange/onnx_read.h"
#include "exec/exec.h"
#include "op/op.h"
#include "pass/pass.h"

enum { THREADS = 2 };

typedef struct gradient_run {
    sti_exchange_graph *source;
    stint_graph *graph;
    sti_lowered lowered;
    sti_plan *plan;
    sti_exec *exec;
    sti_exec_memory memory;
} gradient_run;

static stint_status build(gradient_run *r, const char *path)
{
    const sti_lower_options options = {.name = path, .trained = true};
    stint_status st;
    STI_TRY(sti_onnx_read(path, &r->source));
    STI_TRY(stint_graph_create(STINT_TRAIN, &r->graph));
    STI_TRY(sti_lower(r->source, &options, r->graph, &r->lowered));
    const stint_value y = r->lowered.output[0].value;
    const int rank = stint_value_shape(r->graph, y).rank;
    const stint_value loss = stint_mean(r->graph, y, (1u << rank) - 1, false);
    STI_TRY(sti_pass_prepare(r->graph));
    STI_TRY(sti_pass_train(r->graph, loss, NULL));
    STI_TRY(sti_pass_standard(r->graph));
    STI_TRY(sti_plan_create(r->graph, THREADS, &r->plan));
    for (int i = 0; i < STI_REGIONS; i++) {
        r->memory.region[i] = sti_alloc(r->plan->region_bytes[i], "gradient");
        if (!r->memory.region[i])
            return STINT_E_MEMORY;
    }
    STI_TRY(sti_exec_create(r->plan, &r->memory, &r->exec));
out:
    return st;
}

static const sti_exchange_tensor *tensor_of(const gradient_run *r, const char *name)
{
    for (int64_t i = 0; i < r->lowered.kept->tensors; i++)
        if (strcmp(r->lowered.kept->tensor[i].name, name) == 0)
            return &r->lowered.kept->tensor[i];
    return NULL;
}

static void fill_weights(const gradient_run *r)
{
    for (stint_value v = 0; v < sti_graph_value_count(r->graph); v++) {
        const sti_value_row *row = sti_graph_value(r->graph, v);
        const bool weight = row->role == STI_ROLE_PARAM || row->role == STI_ROLE_STATE;
        const sti_exchange_tensor *t = weight ? tensor_of(r, row->name) : NULL;
        float *to = weight ? sti_exec_address(r->exec, v) : NULL;
        if (t && to)
            memcpy(to, t->floats, stint_shape_bytes(&row->shape));
    }
}

static bool fill_input(const gradient_run *r, const char *path)
{
    const sti_lowered_port *port = &r->lowered.input[0];
    FILE *file = fopen(path, "rb");
    const size_t count = (size_t)stint_shape_count(&port->shape);
    float *to = sti_exec_address(r->exec, port->value);
    const bool whole = file && fread(to, sizeof *to, count, file) == count;
    if (file)
        fclose(file);
    return whole;
}

static bool write_gradients(const gradient_run *r, const char *path)
{
    FILE *file = fopen(path, "wb");
    for (int32_t i = 0; file && i < sti_graph_output_count(r->graph); i++) {
        const sti_output *o = &sti_graph_outputs(r->graph)[i];
        if (o->kind != STI_OUTPUT_GRADIENT)
            continue;
        const sti_value_row *row = sti_graph_value(r->graph, o->target);
        const sti_exchange_tensor *t = tensor_of(r, row->name);
        fprintf(file, "%s %d", row->name, row->shape.rank);
        for (int k = 0; k < row->shape.rank; k++)
            fprintf(file, " %lld %d", (long long)row->shape.dim[k],
                    t ? t->order[k] : k);
        fputc('\n', file);
        fwrite(sti_exec_address(r->exec, o->value), sizeof(float),
               (size_t)stint_shape_count(&row->shape), file);
    }
    return file && fclose(file) == 0;
}

int main(int argc, char **argv)
{
    gradient_run r = {NULL};
    const sti_step step = {0};
    if (argc != 4) {
        fprintf(stderr, "usage: onnx_gradient_bench FILE.onnx INPUT OUT\n");
        return 2;
    }
    if (build(&r, argv[1]) != STINT_OK) {
        fprintf(stderr, "%s\n", stint_last_error());
        return 1;
    }
    fill_weights(&r);
    if (!fill_input(&r, argv[2]))
        return 5;
    sti_exec_run(r.exec, &(sti_team){THREADS}, &step);
    const bool written = write_gradients(&r, argv[3]);
    sti_exec_destroy(r.exec);
    sti_plan_destroy(r.plan);
    for (int i = 0; i < STI_REGIONS; i++)
        sti_free(r.memory.region[i]);
    sti_lowered_fini(&r.lowered);
    stint_graph_destroy(r.graph);
    sti_exchange_graph_destroy(r.source);
    return written ? 0 : 5;
}
