/* Does a changed model of text still expect the same next tokens?
 *
 *   stint_text_fidelity f;
 *   const stint_compare_desc desc = {.reference = "runs/one/model.safetensors",
 *                                    .changed = "runs/small/model.safetensors",
 *                                    .data = {.path = "book.txt",
 *                                             .split = STINT_DATA_TEST}};
 *   if (stint_compare_text(&desc, &f) == STINT_OK)
 *       printf("%.2f %% other next tokens\n", 100 * f.mismatch.rate);
 *   stint_text_fidelity_fini(&f);
 *
 * Both models read the same windows, side by side, of as many tokens as the one with
 * the shorter context takes, and say of each token what follows it. A model's answer is
 * the token that it gives the highest score (the lowest of equal ones). Scores are
 * taken in float32 from a model's last activations, a block of tokens at a time.
 *
 * docs/trust.md explains each figure; `stint compare` prints them. */
#ifndef STINT_COMPARE_TEXT_H
#define STINT_COMPARE_TEXT_H

#include "stint/trust.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Tokens of one kind: those at some places of a window, or as frequent as each other.
 */
typedef struct stint_text_part {
    /* "positions 0 to 31", "seen 10 to 99 times". */
    char name[64];
    /* Next tokens of this kind, and how many of them were answered in another way. */
    stint_share mismatch;
    /* Mean losses of both models on them, nats; NaN without any. */
    double reference_loss, changed_loss;
} stint_text_part;

/** A place where probabilities moved far. */
typedef struct stint_text_change {
    /* Index in the compared part of the text of the token that is to be predicted. */
    int64_t at;
    /* Kullback-Leibler divergence there, nats. */
    double kl;
    /* What follows, and what each model answers. */
    int32_t label, reference_answer, changed_answer;
    /* The probability that each model gives its answer. */
    double reference_p, changed_p;
    /* The text before it in the window, at most 120 bytes of it, and these tokens as
     * text; UTF-8 with what is none replaced by U+FFFD. */
    const char *before, *label_text, *reference_text, *changed_text;
} stint_text_change;

/** Kinds by place: eighths of a window. */
#define STINT_TEXT_POSITIONS 8
/** Kinds by how often the next token stands in the compared text: once, 2 to 9, 10 to
 * 99, 100 to 999, more. */
#define STINT_TEXT_FREQUENCIES 5
/** Places that are told, at most. */
#define STINT_TEXT_CHANGES 10

/** The changed model c beside the reference r on the next tokens of a text. */
typedef struct stint_text_fidelity {
    /* Next tokens, and windows that they are in. */
    int64_t tokens, windows;
    /* Shares of them that a model's answer is. */
    double reference_accuracy, changed_accuracy;
    /* Other answers; other answers where the reference was right; negative flips (right
     * before and wrong now), positive ones: shares of all tokens, whose intervals take
     * them for independent. */
    stint_share mismatch, mismatch_right, nfr, pfr;
    /* Mean of KL(p_r || p_c), nats. */
    double kl;
    /* Mean losses, nats a token, and changed less reference with the 95 % interval of
     * 1000 bootstrap draws of windows, which both models are asked about; NaN for one
     * window. */
    double reference_loss, changed_loss;
    double loss_difference, loss_low, loss_high;
    /* Rows of tokens by kind; those of none have mismatch.n 0. */
    stint_text_part position[STINT_TEXT_POSITIONS];
    stint_text_part frequency[STINT_TEXT_FREQUENCIES];
    /* [changes]: where probabilities moved farthest, farthest first. */
    int64_t changes;
    stint_text_change change[STINT_TEXT_CHANGES];
    /* Its texts; freed by stint_text_fidelity_fini. */
    stint_result_memory *arena;
} stint_text_fidelity;

/** Run both models over the same text and count what changed.
 *
 * Of desc are read: reference, changed, data.path, data.split (train, test or all),
 * threads, batch (tokens at a time; 0: choose), progress and user, which counts
 * windows.
 *
 * STINT_E_INPUT: a model of other things than text, of another tokeniser or vocabulary,
 * without a tokeniser, or with scores that are not finite; a text that is too short;
 * STINT_E_USAGE: floor, group or saliency are set, which are of images;
 * STINT_E_INTERRUPTED or _TERMINATED after stint_stop(); STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_compare_text(const stint_compare_desc *desc,
                                          stint_text_fidelity *fidelity_out);

/** Free what a comparison points to. A result that is all zero is fine; so is a second
 * call. */
STINT_API void stint_text_fidelity_fini(stint_text_fidelity *fidelity);

#ifdef __cplusplus
}
#endif

#endif
