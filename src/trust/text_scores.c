#include "trust/text_scores.h"

#include <string.h>

#include "base/memory.h"
#include "kernel/gemm/gemm.h"
#include "model/text_model.h"
#include "pass/pass.h"

static sti_gemm_shape shape_of(const sti_text_scores *s, int64_t rows)
{
    return (sti_gemm_shape){.m = rows,
                            .n = s->vocabulary,
                            .k = s->width,
                            .lda = s->width,
                            .ldb = s->width,
                            .ldc = s->vocabulary,
                            .trans_b = true};
}

/* The network up to its last activations, which leave the graph. */
static stint_status build(const sti_network_desc *desc, int64_t windows,
                          int64_t context, sti_network *net, const char **table_out)
{
    stint_text_model_desc text = desc->text;
    const stint_shape shape =
        stint_shape_make(STINT_I32, 2, (int64_t[]){windows, context});
    stint_status st = stint_graph_create(STINT_EVAL, &net->graph);
    if (st != STINT_OK)
        return st;
    if (text.positions < desc->context)
        text.positions = desc->context;
    net->images = windows;
    net->context = context;
    net->input = stint_input(net->graph, "tokens", &shape);
    const sti_text_trunk trunk =
        sti_text_model_trunk(net->graph, desc->name, &text, net->input);
    if ((st = stint_graph_check(net->graph)) != STINT_OK)
        return st;
    *table_out = stint_value_name(net->graph, trunk.table);
    sti_graph_output(net->graph, &(sti_output){.kind = STI_OUTPUT_FETCH,
                                               .value = trunk.x,
                                               .target = -1,
                                               .name = "trunk"});
    STI_TRY(sti_pass_quantise(net->graph, STI_ROLE_PARAM, desc->weight_bits));
    STI_TRY(sti_pass_prepare(net->graph));
    if (desc->bf16)
        STI_TRY(sti_pass_precision(net->graph, NULL));
    STI_TRY(sti_pass_standard(net->graph));
    net->logits = sti_graph_outputs(net->graph)[0].value;
out:
    return st;
}

static const float *find_table(const sti_text_scores *s, const char *name)
{
    for (stint_value v = 0; v < sti_graph_value_count(s->net.graph); v++) {
        const sti_value_row *row = sti_graph_value(s->net.graph, v);
        if (row->role == STI_ROLE_PARAM && strcmp(row->name, name) == 0)
            return (const float *)(const void *)((const char *)s->infer->params +
                                                 s->net.plan->allocation[v].offset);
    }
    return NULL;
}

stint_status sti_text_scores_open(const stint_model_file *model, int64_t windows,
                                  int64_t context, int threads, sti_text_scores *s)
{
    const sti_network_desc desc = sti_model_network_in_use(model);
    const char *table = NULL;
    stint_status st;
    *s =
        (sti_text_scores){.width = desc.text.width, .vocabulary = desc.text.vocabulary};
    STI_TRY(build(&desc, windows, context, &s->net, &table));
    STI_TRY(sti_network_plan(&s->net, threads));
    STI_TRY(sti_infer_create(&s->net, threads, 1, &s->infer));
    STI_TRY(sti_model_load(model, &s->net, s->infer->params, s->infer->states));
    s->table = find_table(s, table);
    const sti_gemm_shape shape = shape_of(s, STI_TEXT_SCORES_ROWS);
    s->scratch = sti_alloc(sti_gemm_scratch_bytes(&shape, threads) + 64, "scores");
    st = s->scratch ? STINT_OK : STINT_E_MEMORY;
out:
    return st;
}

void sti_text_scores_close(sti_text_scores *s)
{
    sti_free(s->scratch);
    sti_infer_destroy(s->infer);
    sti_network_fini(&s->net);
    *s = (sti_text_scores){.table = NULL};
}

void sti_text_scores_run(sti_text_scores *s, const int32_t *tokens)
{
    sti_exec *exec = s->infer->lanes.lane[0].exec;
    memcpy(sti_exec_address(exec, s->net.input), tokens,
           (size_t)(s->net.images * s->net.context) * sizeof *tokens);
    sti_exec_run(exec, &s->infer->lanes.lane_team, &(sti_step){.step = 0});
    s->x = sti_exec_address(exec, s->net.logits);
}

void sti_text_scores_take(const sti_text_scores *s, int64_t first, int64_t rows,
                          float *logits)
{
    const sti_gemm_shape shape = shape_of(s, rows);
    sti_gemm_f32(&s->infer->lanes.lane_team, &shape, s->x + first * s->width, s->table,
                 NULL, logits, s->scratch);
}
