/* A search under way: what its files share.
 *
 * The room shrink/ makes trained models small or fast: judge.h, by which images;
 * guess.h, what a file would take; this header, samples and limits. Nothing above but
 * the program uses it, by stint/shrink.h. */
#ifndef STI_SHRINK_SHRINKER_H
#define STI_SHRINK_SHRINKER_H

#include "shrink/guess.h"
#include "shrink/judge.h"
#include "stint/shrink.h"
#include "train/scheme.h"

enum { STI_SAMPLES_MAX = 100 };
/* The largest share that is looked for: beyond it hardly a weight is left. */
#define STI_SHARE_MAX 0.999

typedef struct sti_sample {
    stint_shrink_sample facts;
    const char *path;                    /* of its compact file */
    double test_accuracy, deviation, ms; /* ms of the model, in turns with it */
} sti_sample;

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
    int most; /* samples */
    sti_sample sample[STI_SAMPLES_MAX];
    int count;
    double low, high; /* the bracket of a search by accuracy */
} sti_shrinker;

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

/* ---- shrink_result.c ---- */

/* The chosen sample's file to its place, and all that is to be said of it. */
stint_status sti_shrink_finish(const sti_shrinker *s, const sti_sample *best,
                               stint_shrink_result *result);

/* ---- shrink_latency.c ---- */

/* Median time of a batch of two models in turns, in ms. layers of both, if asked for
 * (else NULL), are sums by the scope of their operators. */
stint_status sti_shrink_measure(const sti_shrinker *s, stint_model_file *changed,
                                double *ms_out, double *base_ms_out,
                                stint_shrink_layer *layers, int layer_count);

/* ---- shrink_page.c ---- */

stint_status sti_shrink_write_page(const sti_shrinker *s,
                                   const stint_shrink_result *result);

#endif
