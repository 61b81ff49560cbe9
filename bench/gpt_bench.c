/* Training steps of a text model (GPT-2 124M unless told otherwise) on random tokens:
 * tokens a second, where the time goes, peak resident memory.
 * usage: gpt_bench [threads batch context steps depth width vocabulary model] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "base/rng.h"
#include "exec/exec.h"
#include "kernel/optimizer/optimizer.h"
#include "model/network.h"
#include "pass/pass.h"
#include "stint/op.h"

typedef struct bench {
    sti_network net;
    sti_exec *exec;
    void *region[STI_REGIONS];
    float *moment[2];
    stint_value tokens, labels;
    int64_t batch, context, vocabulary;
    sti_team team;
} bench;

static void need(stint_status status)
{
    if (status == STINT_OK)
        return;
    fprintf(stderr, "%s\n", stint_last_error());
    exit(1);
}

static void build(bench *b, const char *name, const stint_text_model_desc *desc)
{
    stint_graph *g;
    need(stint_graph_create(STINT_TRAIN, &g));
    const stint_shape shape =
        stint_shape_make(STINT_I32, 2, (int64_t[]){b->batch, b->context});
    b->tokens = stint_input(g, "tokens", &shape);
    b->labels = stint_input(g, "labels", &shape);
    const stint_value loss =
        stint_text_model_build(g, name, desc, b->tokens, b->labels);
    need(stint_graph_check(g));
    sti_graph_output(
        g, &(sti_output){
               .kind = STI_OUTPUT_METRIC, .value = loss, .target = -1, .name = "loss"});
    need(sti_pass_prepare(g));
    const stint_value kept = sti_graph_outputs(g)[0].value;
    need(sti_pass_train(g, kept, NULL));
    need(sti_pass_standard(g));
    b->net.graph = g;
    b->net.loss = -1;
    for (int32_t i = 0; i < sti_graph_output_count(g); i++)
        if (sti_graph_outputs(g)[i].kind == STI_OUTPUT_METRIC)
            b->net.loss = sti_graph_outputs(g)[i].value;
    need(sti_network_plan(&b->net, b->team.threads));
}

static void allocate(bench *b)
{
    sti_exec_memory memory = {{0}};
    for (int r = STI_REGION_PARAM; r < STI_REGIONS; r++) {
        b->region[r] = sti_alloc(b->net.plan->region_bytes[r] + 64, "bench");
        memory.region[r] = b->region[r];
    }
    const size_t params = b->net.plan->region_bytes[STI_REGION_PARAM];
    for (int i = 0; i < 2; i++)
        b->moment[i] = sti_alloc(params + 64, "bench");
    need(sti_network_init_weights(&b->net, &b->team, 1, b->region[STI_REGION_PARAM],
                                  b->region[STI_REGION_STATE]));
    need(sti_exec_create(b->net.plan, &memory, &b->exec));
}

static void fill_tokens(bench *b, int64_t step)
{
    int32_t *tokens = sti_exec_address(b->exec, b->tokens);
    int32_t *labels = sti_exec_address(b->exec, b->labels);
    for (int64_t i = 0; i < b->batch * b->context; i++) {
        uint32_t word[4];
        sti_random4(7, STI_STREAM_TEST, (uint64_t)step, (uint64_t)i, word);
        tokens[i] = (int32_t)sti_below(word[0], (uint32_t)b->vocabulary);
        labels[i] = (int32_t)sti_below(word[1], (uint32_t)b->vocabulary);
    }
}

static void update(bench *b, int64_t step)
{
    double first = 1, second = 1;
    for (int64_t i = 0; i <= step; i++) {
        first *= 0.9;
        second *= 0.999;
    }
    const sti_adam adam = {.lr = 3e-4f,
                           .decay = 0.1f,
                           .gradient_scale = 1.0f,
                           .epsilon = 1e-8f,
                           .beta1 = 0.9,
                           .beta2 = 0.999,
                           .correction1 = 1 - first,
                           .correction2 = 1 - second,
                           .decoupled = true};
    const size_t bytes = b->net.plan->region_bytes[STI_REGION_PARAM];
    sti_adam_f32(&b->team, &adam, (int64_t)(bytes / sizeof(float)),
                 b->region[STI_REGION_PARAM], b->region[STI_REGION_RESULT],
                 b->moment[0], b->moment[1]);
}

/* Sums by operator, largest first. */
static void print_profile(const bench *b, const int64_t *ns, int64_t steps)
{
    const stint_graph *g = b->net.graph;
    for (;;) {
        const sti_op *best = NULL;
        int64_t most = 0;
        for (int32_t i = 0; i < sti_graph_node_count(g); i++) {
            const sti_op *op = sti_graph_node(g, i)->op;
            int64_t sum = 0;
            for (int32_t k = 0; k < sti_graph_node_count(g); k++)
                if (sti_graph_node(g, k)->op == op && ns[k] > 0)
                    sum += ns[k];
            if (ns[i] > 0 && sum > most) {
                most = sum;
                best = op;
            }
        }
        if (!best)
            return;
        double flop = 0;
        for (int32_t k = 0; k < sti_graph_node_count(g); k++)
            if (sti_graph_node(g, k)->op == best) {
                if (best->cost)
                    flop += best->cost(g, sti_graph_node(g, k)).flop;
                ((int64_t *)(uintptr_t)ns)[k] = 0;
            }
        printf("  %-26s %9.2f ms %8.1f GFLOP/s\n", best->name,
               (double)most / (double)steps * 1e-6,
               flop * (double)steps / (double)most);
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    int64_t arg[7] = {2, 4, 256, 3, 12, 768, 50257};
    for (int i = 1; i < argc && i <= 7; i++)
        arg[i - 1] = atoll(argv[i]);
    bench b = {.batch = arg[1], .context = arg[2], .vocabulary = arg[6]};
    b.team.threads = (int)arg[0];
    const stint_text_model_desc desc = {
        .depth = arg[4], .width = arg[5], .vocabulary = arg[6]};
    build(&b, argc > 8 ? argv[8] : "gpt", &desc);
    allocate(&b);
    const int64_t steps = arg[3];
    int64_t *ns = sti_alloc_array(sti_graph_node_count(b.net.graph), sizeof *ns, "ns");
    double *seconds = sti_alloc_array(steps, sizeof *seconds, "times");
    const sti_step none = {0};
    double loss = 0;
    for (int64_t s = -1; s < steps; s++) {
        fill_tokens(&b, s + 1);
        const int64_t begin = sti_clock_ns();
        if (s < 0)
            sti_exec_run(b.exec, &b.team, &none);
        else
            sti_exec_run_timed(b.exec, &b.team, &none, ns);
        loss = (double)*(float *)sti_exec_address(b.exec, b.net.loss);
        const int64_t middle = sti_clock_ns();
        update(&b, s + 1);
        if (s >= 0) {
            seconds[s] = sti_seconds_since(begin);
            if (s == steps - 1)
                printf("update %.1f ms\n", sti_seconds_since(middle) * 1e3);
        }
    }
    qsort(seconds, (size_t)steps, sizeof *seconds, compare);
    print_profile(&b, ns, steps);
    const double each = seconds[steps / 2];
    printf("%" PRId64 " parameters, %d threads, batch %" PRId64 ", context %" PRId64
           ": %.0f tokens/s (median of %" PRId64
           " steps of %.3f s), loss %.4f, arena %.0f MiB, peak resident %.0f MiB\n",
           sti_network_parameters(&b.net), b.team.threads, b.batch, b.context,
           (double)(b.batch * b.context) / each, steps, each, loss,
           (double)b.net.plan->region_bytes[STI_REGION_ARENA] / 1048576.0,
           (double)sti_process_peak_bytes() / 1048576.0);
    return 0;
}
