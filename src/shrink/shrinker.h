/* A search under way: what its files share.
 *
 * The room shrink/ makes trained models small or fast: judge.h, by which images;
 * guess.h, what a file would take; this header, samples and limits. Nothing above but
 * the program uses it, by stint/shrink.h. */
#ifndef STI_SHRINK_SHRINKER_H
#define STI_SHRINK_SHRINKER_H

#include "page/page.h"
#include "shrink/guess.h"
#include "shrink/judge.h"
#include "stint/shrink.h"
#include "train/scheme.h"

enum { STI_SAMPLES_MAX = 100, STI_SHRINK_TIMES_MAX = 512 };
/* The largest share that is looked for: beyond it hardly a weight is left. */
#define STI_SHARE_MAX 0.999

/* A time of a batch that was measured, of a sample or of an untrained guess, beside the
 * model's in the same rounds. */
typedef struct sti_shrink_time {
    bool guessed;
    double share;
    uint64_t seed; /* of a sample */
    double ms, base_ms;
} sti_shrink_time;

typedef struct sti_sample {
    stint_shrink_sample facts;
    double share;                        /* that it was made with, for `auto` */
    const char *path, *dense_path;       /* of its compact file, of its training's */
    double test_accuracy, deviation, ms; /* ms of the model, in turns with it */
} sti_sample;

/* Shapes of kernels of 3 x 3 that the chosen model has, and how many kernels of each.
 */
typedef struct sti_shrink_shapes {
    int count;
    uint16_t shape[STI_WEIGHT_PATTERNS_MAX];
    int64_t kernels[STI_WEIGHT_PATTERNS_MAX];
} sti_shrink_shapes;

typedef struct sti_shrinker {
    const stint_recipe *recipe; /* own, once it is made of the caller's */
    stint_recipe *own;
    const stint_shrink_desc *desc;
    sti_arena *arena;
    stint_model_file *model;
    sti_judge judge;
    sti_guess guess;
    sti_shrink_scheme scheme;
    const char *scheme_text; /* with its `auto` */
    const char *out, *samples_folder, *model_path;
    int threads;
    int most; /* samples */
    sti_sample sample[STI_SAMPLES_MAX];
    int count;
    sti_shrink_time time[STI_SHRINK_TIMES_MAX];
    int times;
    double low, high; /* the bracket of a search by accuracy */
    sti_shrink_shapes shapes;
} sti_shrinker;

/* ---- shrink.c ---- */

/* What a recipe and a description ask for, checked. On failure sti_shrink_close is
 * still to be called. */
stint_status sti_shrink_open(const stint_recipe *recipe, const stint_shrink_desc *desc,
                             sti_shrinker *s);
void sti_shrink_close(sti_shrinker *s);

/* ---- sample.c ---- */

/* The sample of a share and a seed, made if it is not there; its number. Progress and
 * news go to the host. */
stint_status sti_sample_take(sti_shrinker *s, double share, uint64_t seed,
                             int *number_out);
/* The model's scheme with this share. */
stint_status sti_sample_scheme(const sti_shrinker *s, double share, sti_text *out);
/* Does a sample keep the limits: of size and latency, and of answers? */
bool sti_sample_fits(const sti_shrinker *s, const sti_sample *sample);
bool sti_sample_answers(const sti_shrinker *s, const sti_sample *sample);
/* Is a latency asked for, as a limit or to be made least? */
bool sti_shrink_times(const stint_shrink_desc *desc);
/* How much of what may be lost is left: the least of the limits on answers. */
double sti_sample_slack(const sti_shrinker *s, const sti_sample *sample);
/* Bytes and a time of a batch over the limits of size and latency, the larger of the
 * ratios: above 1, they are not kept; 0: there are no such limits. bytes or ms 0: not
 * looked at. */
double sti_shrink_excess(const stint_shrink_desc *desc, double bytes, double ms,
                         double base_ms);

/* ---- shrink_search.c ---- */

/* All samples that the limits ask for. STINT_E_BUDGET, with the least and before
 * anything is trained: a size or a latency is out of reach. */
stint_status sti_shrink_search(sti_shrinker *s);
/* The sample that keeps the limits best. */
const sti_sample *sti_shrink_choose(const sti_shrinker *s);

/* ---- shrink_result.c ---- */

/* The chosen sample's file to its place, and all that is to be said of it. */
stint_status sti_shrink_finish(sti_shrinker *s, const sti_sample *best,
                               stint_shrink_result *result);

/* ---- shrink_latency.c ---- */

/* Median time of a batch in ms, in turns with the model, whose time is such that the
 * ratio of both is the median over the rounds. layers of both, if asked for (else
 * NULL), are sums by the scope of their operators. */
stint_status sti_shrink_measure(const sti_shrinker *s, stint_model_file *changed,
                                double *ms_out, double *base_ms_out,
                                stint_shrink_layer *layers, int layer_count);
/* The same of a sample, and of the untrained projection at a share; each is measured
 * once and then known. */
stint_status sti_shrink_time_sample(sti_shrinker *s, stint_model_file *model,
                                    sti_sample *sample);
stint_status sti_shrink_time_guess(sti_shrinker *s, double share, double *ms_out,
                                   double *base_ms_out);

/* ---- shrink_times.c: times in a file beside the samples, which a search that goes on
 * takes for measured: a clock never shows the same twice. ---- */

/* What an earlier search of this model and scheme measured for this batch, number of
 * threads and instruction set; none: fine. */
stint_status sti_shrink_read_times(sti_shrinker *s);
void sti_shrink_keep_time(sti_shrinker *s, const sti_shrink_time *time);
/* All that are known, into the file; without any there is none. */
stint_status sti_shrink_write_times(const sti_shrinker *s);
const sti_shrink_time *sti_shrink_find_time(const sti_shrinker *s, bool guessed,
                                            double share, uint64_t seed);

/* ---- shrink_page.c ---- */

stint_status sti_shrink_write_page(const sti_shrinker *s,
                                   const stint_shrink_result *result);

/* ---- shrink_pictures.c: parts of the page that are pictures ---- */

/* Shapes of kernels; nothing without any. */
void sti_shrink_add_shapes(const sti_shrink_shapes *shapes, sti_text *out);
/* Images that judge whose answer is another one now, those that were right first. */
stint_status sti_shrink_add_changed(const sti_shrinker *s, sti_page_file *page);

#endif
