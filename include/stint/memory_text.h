/* Which passages of a text does a network memorise?
 *
 * A passage is a window of as many tokens as the model takes, side by side from the
 * beginning of the training part. Many networks are trained, each on a random part of
 * the passages. What a passage is remembered by is the loss that those which have seen
 * it save on it:
 *
 *   memorisation(i) = mean loss on i of networks without i - mean loss of those with i
 *
 * in nats a token, after Feldman and Zhang (arXiv 2008.03703), whose 0 or 1 of an image
 * is a loss here. Text that can be guessed from the rest of the text is near 0; what
 * only who has read it can know, is above.
 *
 *   stint_memory_text m;
 *   if (stint_memory_text_run(recipe, &(stint_memory_desc){.runs = 64,
 *                                                          .fraction = 0.7}, &m) ==
 *       STINT_OK)
 *       printf("%s\n", m.passage[0].text);
 *   stint_memory_text_fini(&m);
 *
 * The call blocks; progress comes on the calling thread. */
#ifndef STINT_MEMORY_TEXT_H
#define STINT_MEMORY_TEXT_H

#include "stint/trust.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Passages that are told, at most. */
#define STINT_MEMORY_PASSAGES 60

/** A passage among those that are remembered most. */
typedef struct stint_memory_passage {
    /* Its number, and its first token in the text. */
    int64_t index, token;
    /* Estimate and its standard error, nats a token. */
    double memorisation, error;
    /* Mean losses of networks that have seen it, and of those that have not. */
    double seen, unseen;
    /* Its beginning, at most 400 bytes; UTF-8 with what is none replaced by U+FFFD. */
    const char *text;
} stint_memory_passage;

/** What was memorised of a text. */
typedef struct stint_memory_text {
    /* Networks; passages; tokens of each; passages that a network is trained on. */
    int64_t runs, passages, context, members;
    /* The share of passages asked for. */
    double fraction;
    /* [passages]: estimate and standard error; NaN: fewer than two networks with the
     * passage, or without it. */
    double *memorisation, *error;
    /* Passages that are NaN. */
    int64_t undefined;
    /* Means over passages of the losses of networks with and without them. */
    double seen_loss, unseen_loss;
    /* The value from which a passage counts as memorised; such passages; and how many
     * are expected by chance, from permuting which network saw what. */
    double memorised_from;
    int64_t memorised;
    double memorised_chance;
    /* [told]: most memorised first. */
    int64_t told;
    stint_memory_passage passage[STINT_MEMORY_PASSAGES];
    /* Runs of this call, and how many were made side by side. */
    int64_t runs_done, jobs;
    /* Wall time; the peak announced beforehand, and measured. */
    double seconds;
    size_t planned_peak_bytes, peak_rss_bytes;
    /* The folder, absolute. */
    char out[1024];
    /* Its arrays and texts; freed by stint_memory_text_fini. */
    stint_result_memory *arena;
} stint_memory_text;

/** Train the runs that are not in the out folder yet (run.out, or runs/NAME-memory),
 * then estimate.
 *
 * Of desc are read runs, fraction, jobs, memorised (nats a token; 0: 0.25), progress
 * and user. A run is a function of recipe, data, seed, fraction and its number: any
 * jobs, stops and kills lead to the same files. Leaves in the folder members.npy [runs,
 * passages] u1, losses.npy [runs, passages] f4, memorisation.npy, memorised.tsv and
 * memory.html. Errors are those of stint_memory_run(); STINT_E_UNSUPPORTED: a recipe of
 * something else than text. */
STINT_API stint_status stint_memory_text_run(const stint_recipe *recipe,
                                             const stint_memory_desc *desc,
                                             stint_memory_text *memory_out);

/** Free what a result points to. One that is all zero is fine; so is a second call. */
STINT_API void stint_memory_text_fini(stint_memory_text *memory);

#ifdef __cplusplus
}
#endif

#endif
