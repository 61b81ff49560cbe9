/* Networks in use with what depends on their weights alone made once, and with batch
 * normalisation behind the convolutions, beside the same networks without.
 *
 *     constants_bench [-j THREADS] [-r ROUNDS] [TEXT]
 *
 * Networks whose name contains TEXT, for some numbers of images. Prints milliseconds of
 * a run without either (medians of runs in turns), what a run takes of that with
 * normalisations behind their convolutions, and with filters and panels made once as
 * well, and what is kept. Results are compared, bit for bit. About two minutes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "infer/lanes.h"
#include "model/network.h"
#include "pass/pass.h"
#include "stint/model.h"
#include "stint/op.h"

enum { FORMS = 3, ROUNDS_MOST = 201, IMAGES = 3 };

typedef struct subject {
    const char *name;
    int64_t side, images[IMAGES];
} subject;

static const subject subjects[] = {
    {"resnet18", 224, {1, 4, 16}},    {"resnet50", 224, {1, 4, 16}},
    {"mobilenetv2", 224, {1, 4, 16}}, {"vgg16", 32, {1, 16, 128}},
    {"resnet20", 32, {1, 16, 128}},
};

/* One form of a network, in use. */
typedef struct form {
    sti_network net;
    sti_infer *infer;
    double ms[ROUNDS_MOST];
} form;

static void check(stint_status st)
{
    if (st == STINT_OK)
        return;
    fprintf(stderr, "constants_bench: %s\n", stint_last_error());
    exit(1);
}

/* The standard passes, with the one that puts norms behind convolutions or without. */
static void run_passes(stint_graph *g, bool behind)
{
    check(sti_pass_prepare(g));
    check(sti_pass_winograd(g, NULL));
    for (const sti_pass *p = sti_passes; p->name; p++)
        if (behind || strcmp(p->name, "norm-behind") != 0)
            check(p->run(g, NULL));
}

static void open_form(form *f, const subject *s, int64_t images, bool behind, bool keep,
                      int threads)
{
    const stint_model_desc desc = {.classes = s->side > 32 ? 1000 : 10, .dropout = -1};
    const stint_shape shape = STINT_SHAPE(images, s->side, s->side, 3);
    stint_graph *g = NULL;
    check(stint_graph_create(STINT_EVAL, &g));
    f->net = (sti_network){.graph = g, .images = images};
    f->net.input = stint_input(g, "images", &shape);
    f->net.logits = stint_model_build(g, s->name, &desc, f->net.input);
    sti_graph_output(g, &(sti_output){.kind = STI_OUTPUT_FETCH,
                                      .value = f->net.logits,
                                      .target = -1,
                                      .name = "logits"});
    check(stint_graph_check(g));
    run_passes(g, behind);
    sti_network_keep(&f->net, keep);
    check(sti_network_plan(&f->net, threads));
    check(sti_infer_create(&f->net, threads, 1, &f->infer));
    check(sti_network_init_weights(&f->net, &f->infer->lanes.team, 1, f->infer->params,
                                   f->infer->states));
    sti_infer_ready(f->infer);
}

static void close_form(form *f)
{
    sti_infer_destroy(f->infer);
    sti_network_fini(&f->net);
}

/* (The planner lays activations over the input.) */
static double run_once(const form *f)
{
    sti_exec *exec = f->infer->lanes.lane[0].exec;
    const stint_shape shape = stint_value_shape(f->net.graph, f->net.input);
    float *x = sti_exec_address(exec, f->net.input);
    for (int64_t i = 0; i < stint_shape_count(&shape); i++)
        x[i] = (float)(i % 251) / 125.0f - 1;
    const int64_t start = sti_clock_ns();
    sti_exec_run(exec, &f->infer->lanes.lane_team, &(sti_step){0});
    return (double)(sti_clock_ns() - start) * 1e-6;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, int count)
{
    double sorted[ROUNDS_MOST];
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    return sorted[count / 2];
}

/* The median over the rounds of what a run takes of the first form's. */
static double ratio(const form *forms, int i, int rounds)
{
    double of[ROUNDS_MOST];
    for (int r = 0; r < rounds; r++)
        of[r] = forms[i].ms[r] / forms[0].ms[r];
    return median(of, rounds);
}

static bool same_logits(const form *a, const form *b)
{
    const stint_value x = sti_graph_outputs(a->net.graph)[0].value;
    const stint_value y = sti_graph_outputs(b->net.graph)[0].value;
    const stint_shape shape = stint_value_shape(a->net.graph, x);
    return memcmp(sti_exec_address(a->infer->lanes.lane[0].exec, x),
                  sti_exec_address(b->infer->lanes.lane[0].exec, y),
                  stint_shape_bytes(&shape)) == 0;
}

static void measure(const subject *s, int64_t images, int threads, int rounds)
{
    static form forms[FORMS];
    for (int i = 0; i < FORMS; i++) {
        open_form(&forms[i], s, images, i > 0, i > 1, threads);
        run_once(&forms[i]);
        if (!same_logits(&forms[0], &forms[i])) {
            fprintf(stderr, "%s: other bits\n", s->name);
            exit(1);
        }
    }
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < FORMS; i++)
            forms[i].ms[r] = run_once(&forms[i]);
    const sti_plan *kept = forms[2].net.plan;
    printf("%-12s %4" PRId64 " %6" PRId64 " %10.2f %8.3f %8.3f %6d %8.1f\n", s->name,
           s->side, images, median(forms[0].ms, rounds), ratio(forms, 1, rounds),
           ratio(forms, 2, rounds), (int)kept->once_nodes,
           (double)kept->region_bytes[STI_REGION_KEPT] / 1048576.0);
    (void)fflush(stdout);
    for (int i = 0; i < FORMS; i++)
        close_form(&forms[i]);
}

int main(int argc, char **argv)
{
    int threads = 0, rounds = 15;
    const char *text = "";
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-j") == 0 && i + 1 < argc)
            threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "-r") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else
            text = argv[i];
    check(sti_threads_choose(threads, &threads, NULL));
    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MOST ? ROUNDS_MOST : rounds;
    printf("%d threads, %d rounds\n%-12s %4s %6s %10s %8s %8s %6s %8s\n", threads,
           rounds, "network", "side", "images", "ms", "behind", "kept", "nodes", "MiB");
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        for (int k = 0; strstr(subjects[i].name, text) && k < IMAGES; k++)
            measure(&subjects[i], subjects[i].images[k], threads, rounds);
    return 0;
}
