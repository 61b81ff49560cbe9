/* Shares of layers, for kernel(auto): what each of 20 shares would leave of a layer (or
 * take in the file, or in time) and the importance that it costs go into
 * base/knapsack. Bytes and times are those of whole networks, written as compact files
 * with every layer at one share and then with the chosen ones; what the latter come to
 * corrects the budget. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/knapsack.h"
#include "base/units.h"
#include "infer/latency.h"
#include "infer/model_use.h"
#include "store/compact_network.h"
#include "train/click.h"
#include "train/click_priv.h"
#include "train/recipe_view.h"
#include "train/run.h"
#include "train/shrink_recipe.h"

enum {
    SHARES = 20, /* 0, 5 %, ... 95 % of a layer's kernels */
    CORRECTIONS = 8,
    ROUNDS = 15 /* of a measurement */
};

/* Parts of a limit that are aimed at: numbers that go on learning take more or fewer
 * bytes, and no clock shows the same twice. */
#define AIM_BYTES 0.98
#define AIM_TIME  0.975
#define USED      0.95

/* For every layer and share, [layers, SHARES]. */
typedef struct share_table {
    double *weight; /* what is limited: numbers, bytes or ms */
    double *lost;   /* importance */
    int layers;
} share_table;

static stint_status table_init(share_table *t)
{
    *t = (share_table){.weight = sti_alloc_array(2 * STI_SCHEME_TARGETS,
                                                 SHARES * sizeof(double), "shares")};
    if (t->weight)
        t->lost = t->weight + STI_SCHEME_TARGETS * SHARES;
    return t->weight ? STINT_OK : STINT_E_MEMORY;
}

/* The targets that kernel takes. */
static int list_layers(const sti_projection *p, const sti_target **layer)
{
    int layers = 0;
    for (int i = 0; i < p->count; i++)
        if (sti_click_word(p, &p->target[i], STI_SCHEME_KERNEL))
            layer[layers++] = &p->target[i];
    return layers;
}

/* ---- numbers ---- */

static int64_t kernels_left(const sti_target *t, int s)
{
    const int64_t n = sti_click_kernels(t), gone = (n * s + SHARES - 1) / SHARES;
    return n - (gone < n ? gone : n - 1);
}

static double numbers_left(const sti_projection *p, const sti_target *t, int s)
{
    const bool shaped = sti_click_word(p, t, STI_SCHEME_PATTERN) != NULL;
    return (shaped ? 4 : (double)t->form.taps) * (double)kernels_left(t, s);
}

/* Weights of convolutions, of those that kernel takes or of the others. */
static double count_weights(const sti_projection *p, bool taken)
{
    double sum = 0;
    for (int i = 0; i < p->count; i++) {
        const sti_target *t = &p->target[i];
        if (t->filters && (sti_click_word(p, t, STI_SCHEME_KERNEL) != NULL) == taken)
            sum += (double)t->count;
    }
    return sum;
}

stint_status sti_click_check_ratio(const stint_recipe *recipe, const sti_projection *p)
{
    const double ratio = sti_shrink_section_of(recipe)->ratio;
    const double others = count_weights(p, false);
    const double all = count_weights(p, true) + others;
    const sti_target *layer[STI_SCHEME_TARGETS];
    double least = others;
    const int layers = list_layers(p, layer);
    for (int l = 0; l < layers; l++)
        least += numbers_left(p, layer[l], SHARES - 1);
    if (!sti_scheme_is_automatic(&p->scheme) || ratio <= 0 || all >= ratio * least)
        return STINT_OK;
    return sti_fail(STINT_E_BUDGET,
                    "shrink.ratio: %g times fewer weights of convolutions are out of "
                    "reach of this scheme: the most is about %.2f; set a lower ratio, "
                    "or let kernel take more layers by shrink.keep",
                    ratio, all / least);
}

/* ---- importance ---- */

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void weigh_losses(sti_projection *p, const sti_target *t,
                         const float *importance, double *lost)
{
    const int64_t n = sti_click_kernels(t);
    double sum = 0;
    int64_t gone = 0;
    sti_click_sum_taps(t, importance, p->score);
    qsort(p->score, (size_t)n, sizeof *p->score, by_size);
    for (int s = 0; s < SHARES; s++) {
        for (; gone < n - kernels_left(t, s); gone++)
            sum += (double)p->score[gone];
        lost[s] = sum;
    }
}

/* ---- whole networks, written and timed ---- */

typedef struct trial {
    sti_run *run;
    const sti_target *layer[STI_SCHEME_TARGETS];
    int layers;
    bool timed;
    double seconds, of_base;         /* limits of time: one is 0 */
    char dense_path[512], path[512]; /* temporary files */
    stint_model_file *dense;         /* the weights as they are */
    char *work;                      /* a block of parameters */
    float *stays;                    /* of the largest target */
    double *bits;                    /* of each value of the graph */
    /* What the last measurement gave: bytes, ms, or a share of the dense network's ms
     * in the same rounds, of the whole and of each layer. */
    double whole, part[STI_SCHEME_TARGETS];
    double ms, base_ms;
} trial;

static void trial_fini(trial *t)
{
    stint_model_close(t->dense);
    if (t->dense_path[0])
        unlink(t->dense_path);
    if (t->path[0])
        unlink(t->path);
    sti_free(t->work);
    sti_free(t->stays);
    sti_free(t->bits);
}

/* Shapes for all kernels will do for what a share takes. */
static void guess_shapes(sti_run *run)
{
    const sti_projection *p = run->projection;
    for (int i = 0; i < p->count; i++) {
        float *stays = sti_target_numbers(&p->target[i], run->engine->shadow[1]);
        for (int64_t n = 0; n < p->target[i].count; n++)
            stays[n] = 1;
    }
    sti_click_choose_shapes(run);
}

static stint_status trial_init(sti_run *run, trial *t)
{
    const char *latency = sti_shrink_section_of(run->recipe)->latency;
    const sti_network *net = &run->job.setup.train;
    int64_t largest = 1;
    stint_status st;
    *t = (trial){.run = run};
    t->layers = list_layers(run->projection, t->layer);
    t->timed = latency != NULL;
    if (t->timed) /* (the recipe was checked) */
        (void)sti_parse_latency(latency, &t->seconds, &t->of_base);
    for (int i = 0; i < t->layers; i++)
        largest = t->layer[i]->count > largest ? t->layer[i]->count : largest;
    t->work = sti_alloc(run->engine->sizes.params, "shares");
    t->stays = sti_alloc_array(largest, sizeof *t->stays, "shares");
    t->bits =
        sti_alloc_array(sti_graph_value_count(net->graph), sizeof *t->bits, "shares");
    if (!t->work || !t->stays || !t->bits)
        return STINT_E_MEMORY;
    STI_TRY(sti_file_temporary("shares", t->dense_path, sizeof t->dense_path));
    STI_TRY(sti_file_temporary("shares", t->path, sizeof t->path));
    STI_TRY(sti_saver_write_model(run->saver, &run->position, t->dense_path));
    STI_TRY(stint_model_open(t->dense_path, &t->dense));
    guess_shapes(run);
out:
    return st;
}

/* Layer l at the share of its number, as the run would make it at last. */
static void cut(trial *t, const double *share)
{
    sti_run *run = t->run;
    memcpy(t->work, run->engine->params, run->engine->sizes.params);
    for (int l = 0; l < t->layers; l++) {
        const sti_target *target = t->layer[l];
        float *x = sti_target_numbers(target, t->work);
        sti_click_rank_kernels(run->projection, target, share[l],
                               sti_target_numbers(target, run->engine->shadow[0]),
                               t->stays);
        for (int64_t n = 0; n < target->count; n++)
            x[n] = t->stays[n] != 0 ? x[n] : 0.0f;
    }
    sti_project(run->projection, t->work);
}

static double scope_ms(const sti_latency *latency, const char *weight)
{
    const char *dot = strrchr(weight, '.');
    const size_t length = dot ? (size_t)(dot - weight) : strlen(weight);
    double sum = 0;
    for (int i = 0; i < latency->layer_count; i++)
        if (strncmp(latency->layers[i].name, weight, length) == 0 &&
            latency->layers[i].name[length] == '\0')
            sum += latency->layers[i].ms;
    return sum;
}

/* In turns with the dense model: of both, one image at a time. */
static stint_status time_file(trial *t)
{
    enum { BASE, CHANGED };
    const stint_model_file *model[2] = {t->dense, NULL};
    stint_model_file *changed = NULL;
    sti_network network[2] = {{.graph = NULL}, {.graph = NULL}};
    sti_infer *infer[2] = {NULL, NULL};
    sti_latency latency[2] = {{.ms = 0}, {.ms = 0}};
    double ratio;
    stint_status st;
    STI_TRY(stint_model_open(t->path, &changed));
    model[CHANGED] = changed;
    for (int i = 0; i < 2; i++)
        STI_TRY(sti_model_use(model[i], 1, t->run->job.setup.threads, 1, &network[i],
                              &infer[i]));
    STI_TRY(sti_latency_measure(infer, 2, ROUNDS, latency, &ratio));
    t->ms = latency[CHANGED].ms;
    t->base_ms = t->ms / ratio; /* both of a round are slow together */
    const double unit = t->of_base > 0 ? t->base_ms : 1;
    t->whole = t->ms / unit;
    for (int l = 0; l < t->layers; l++)
        t->part[l] = scope_ms(&latency[CHANGED], t->layer[l]->name) / unit;
out:
    for (int i = 0; i < 2; i++) {
        sti_latency_fini(&latency[i]);
        sti_infer_destroy(infer[i]);
        sti_network_fini(&network[i]);
    }
    stint_model_close(changed);
    return st;
}

static stint_status measure(trial *t, const double *share)
{
    const sti_run *run = t->run;
    const sti_compact_source source = {.file = t->dense->file,
                                       .network = &run->job.setup.train,
                                       .params = t->work,
                                       .states = run->engine->states};
    int64_t bytes;
    cut(t, share);
    stint_status st =
        sti_compact_network(&source, t->timed ? t->path : NULL, &bytes, t->bits);
    if (st != STINT_OK || t->timed)
        return st == STINT_OK ? time_file(t) : st;
    t->whole = (double)bytes;
    for (int l = 0; l < t->layers; l++)
        t->part[l] = t->bits[t->layer[l]->value] / 8;
    return STINT_OK;
}

static stint_status measure_even(trial *t, int s)
{
    double share[STI_SCHEME_TARGETS];
    for (int l = 0; l < t->layers; l++)
        share[l] = (double)s / SHARES;
    return measure(t, share);
}

/* What is allowed of it. */
static double limit_of(const trial *t)
{
    if (!t->timed)
        return (double)sti_shrink_section_of(t->run->recipe)->size_bytes;
    return t->of_base > 0 ? t->of_base : 1000 * t->seconds;
}

/* After a measurement of the least. */
static stint_status refuse(const trial *t, double least)
{
    const double unit = t->of_base > 0 ? t->base_ms : 1;
    if (t->timed)
        return sti_fail(STINT_E_BUDGET,
                        "shrink.latency: %s is out of reach of this scheme: the least "
                        "is about %.3g ms, where the network takes %.3g ms; set a "
                        "longer one, or let kernel take more layers by shrink.keep",
                        sti_shrink_section_of(t->run->recipe)->latency, least * unit,
                        t->base_ms);
    return sti_fail(STINT_E_BUDGET,
                    "shrink.size: a file of %s is out of reach of this scheme: the "
                    "least is about %s; set a larger one, add quantise, or let kernel "
                    "take more layers by shrink.keep",
                    sti_bytes_text((size_t)limit_of(t)), sti_bytes_text((size_t)least));
}

/* ---- shares for a size or a latency ---- */

static stint_status fill(trial *t, share_table *table, double *others)
{
    stint_status st = STINT_OK;
    table->layers = t->layers;
    *others = 0;
    for (int s = 0; s < SHARES && st == STINT_OK; s++) {
        st = measure_even(t, s);
        double rest = t->whole;
        for (int l = 0; l < t->layers; l++) {
            table->weight[l * SHARES + s] = t->part[l];
            rest -= t->part[l];
        }
        *others += rest / SHARES;
    }
    for (int l = 0; l < t->layers && st == STINT_OK; l++)
        weigh_losses(t->run->projection, t->layer[l],
                     sti_target_numbers(t->layer[l], t->run->engine->shadow[0]),
                     table->lost + l * SHARES);
    return st;
}

static stint_status choose(const share_table *table, double budget, double *share)
{
    int choice[STI_SCHEME_TARGETS];
    const stint_status st = sti_knapsack_choose(table->layers, SHARES, table->weight,
                                                table->lost, budget, choice);
    for (int l = 0; l < table->layers && st == STINT_OK; l++)
        share[l] = (double)choice[l] / SHARES;
    return st;
}

/* The whole is not quite the sum of layers that were measured among others: what the
 * choice comes to says how much. The one that uses most of the limit is taken. */
static stint_status fit(trial *t, const share_table *table, double others,
                        double *share)
{
    const double limit = limit_of(t), aim = (t->timed ? AIM_TIME : AIM_BYTES) * limit;
    double budget = aim, best = 0, least = INFINITY, tried[STI_SCHEME_TARGETS];
    for (int i = 0; i < CORRECTIONS; i++) {
        stint_status st = choose(table, budget - others, tried);
        for (int l = 0; l < t->layers && st == STINT_E_BUDGET; l++)
            tried[l] = (double)(SHARES - 1) / SHARES;
        if (st != STINT_OK && st != STINT_E_BUDGET)
            return st;
        st = measure(t, tried);
        if (st != STINT_OK)
            return st;
        least = fmin(least, t->whole);
        if (t->whole <= aim && t->whole > best) {
            best = t->whole;
            memcpy(share, tried, (size_t)t->layers * sizeof *share);
        }
        if (t->whole <= aim && t->whole >= USED * limit)
            break;
        budget *= aim / t->whole;
    }
    return best > 0 ? STINT_OK : refuse(t, least);
}

static stint_status share_measured(sti_run *run, double *share)
{
    trial t;
    share_table table = {.weight = NULL};
    double others;
    stint_status st;
    STI_TRY(trial_init(run, &t));
    STI_TRY(table_init(&table));
    STI_TRY(fill(&t, &table, &others));
    STI_TRY(fit(&t, &table, others, share));
out:
    sti_free(table.weight);
    trial_fini(&t);
    return st;
}

stint_status sti_click_check_limits(sti_run *run)
{
    const sti_shrink_values *shrink = sti_shrink_section_of(run->recipe);
    sti_projection *p = run->projection;
    trial t;
    stint_status st;
    if (!sti_scheme_is_automatic(&p->scheme) || !sti_run_is_first(run) ||
        (shrink->size_bytes == 0 && !shrink->latency))
        return STINT_OK;
    for (int i = 0; i < p->count; i++) { /* anything that ranks kernels will do */
        const sti_target *target = &p->target[i];
        memcpy(sti_target_numbers(target, run->engine->shadow[0]),
               sti_target_numbers(target, run->engine->params),
               (size_t)target->count * sizeof(float));
    }
    STI_TRY(trial_init(run, &t));
    STI_TRY(measure_even(&t, SHARES - 1));
    if (t.whole > limit_of(&t))
        st = refuse(&t, t.whole);
out:
    trial_fini(&t);
    memset(run->engine->shadow[0], 0, run->engine->sizes.params);
    memset(run->engine->shadow[1], 0, run->engine->sizes.params);
    p->shapes.known = 0;
    return st;
}

stint_status sti_click_check_size(sti_run *run)
{
    const sti_shrink_values *shrink = sti_shrink_section_of(run->recipe);
    trial t = {.run = run};
    int64_t bytes = 0;
    stint_status st;
    if (shrink->size_bytes == 0 || !sti_run_is_first(run))
        return STINT_OK;
    STI_TRY(sti_file_temporary("shares", t.dense_path, sizeof t.dense_path));
    STI_TRY(sti_saver_write_model(run->saver, &run->position, t.dense_path));
    STI_TRY(stint_model_open(t.dense_path, &t.dense));
    const sti_compact_source source = {.file = t.dense->file,
                                       .network = &run->job.setup.train,
                                       .params = run->engine->params,
                                       .states = run->engine->states};
    STI_TRY(sti_compact_network(&source, NULL, &bytes, NULL));
    sti_log((size_t)bytes <= shrink->size_bytes ? STINT_LOG_INFO : STINT_LOG_WARNING,
            "stint export compact makes a file of %s of it, where %s are allowed",
            sti_bytes_text((size_t)bytes), sti_bytes_text(shrink->size_bytes));
out:
    trial_fini(&t);
    return st;
}

/* ---- shares for a ratio ---- */

static stint_status share_counted(sti_run *run, double *share)
{
    sti_projection *p = run->projection;
    const double others = count_weights(p, false);
    const double all = count_weights(p, true) + others;
    const sti_target *layer[STI_SCHEME_TARGETS];
    share_table table = {.weight = NULL};
    stint_status st = table_init(&table);
    if (st != STINT_OK)
        return st;
    table.layers = list_layers(p, layer);
    for (int l = 0; l < table.layers; l++) {
        weigh_losses(p, layer[l], sti_target_numbers(layer[l], run->engine->shadow[0]),
                     table.lost + l * SHARES);
        for (int s = 0; s < SHARES; s++)
            table.weight[l * SHARES + s] = numbers_left(p, layer[l], s);
    }
    st =
        choose(&table, all / sti_shrink_section_of(run->recipe)->ratio - others, share);
    sti_free(table.weight);
    return st;
}

/* ---- all ---- */

static stint_status choose_first(sti_run *run, double *share)
{
    if (!sti_run_is_first(run) || sti_click_settled(run, share))
        return STINT_OK;
    return sti_shrink_section_of(run->recipe)->ratio > 0 ? share_counted(run, share)
                                                         : share_measured(run, share);
}

stint_status sti_click_share_out(sti_run *run, double *share)
{
    const sti_target *layer[STI_SCHEME_TARGETS];
    const int layers = list_layers(run->projection, layer);
    stint_status st = sti_run_agree(run, choose_first(run, share));
    if (st == STINT_OK && run->comm)
        st = sti_comm_broadcast(run->comm, 0, share, (size_t)layers * sizeof *share);
    if (st == STINT_OK && sti_run_is_first(run))
        st = sti_click_settle(run, share, layers);
    return sti_run_agree(run, st);
}
