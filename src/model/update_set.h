/* Which parameters of a network are trained, written as a list:
 *
 *   h.8-11.attn.*,h.11.mlp.c_fc.weight@1/4,*.bias
 *
 * Words are separated by commas. A word is a parameter's name, in which * stands for
 * any characters, dots too, and a number A-B that is a part of its own, between dots,
 * for every number from A to B. Behind @ stands the share of a weight's input channels
 * (of a depthwise convolution output channels) that is trained: 1/8, 1/4, 1/2 or 1,
 * rounded down, at least one channel. Of several words that name a parameter the last
 * one counts. */
#ifndef STI_MODEL_UPDATE_SET_H
#define STI_MODEL_UPDATE_SET_H

#include "graph/graph.h"

enum { STI_SHARE_WHOLE = 8 }; /* shares are counted in eighths */

typedef struct sti_update_tensor {
    const char *name;
    int share; /* 1, 2, 4 or 8 eighths */
    int axis;  /* that channels are counted on, with a share below 8 */
    int64_t channels;
    /* Those that are trained: which, is filled in by who knows the weights. */
    int64_t count;
    int32_t *channel; /* [count], 64-byte aligned; NULL: all, with share 8 */
    double gain;      /* NaN: not known */
} sti_update_tensor;

typedef struct sti_update_set {
    sti_update_tensor *tensor; /* in the network's order; own memory */
    int count;
} sti_update_set;

/* Parameters of `graph` that the list names. STINT_E_USAGE, which begins with `key`: a
 * word without meaning, or one that no parameter has (with the nearest name), a share
 * of what has no channels, or the list is empty. */
stint_status sti_update_set_parse(const char *key, const char *list,
                                  const stint_graph *graph, sti_update_set *set_out);
/* The share of each parameter that `takes` says, 0: none. */
stint_status sti_update_set_choose(const stint_graph *graph,
                                   int (*takes)(void *user, const sti_value_row *row),
                                   void *user, sti_update_set *set_out);
/* The shortest list that says so: names, and their shares. */
void sti_update_set_print(const sti_update_set *set, sti_text *out);
void sti_update_set_fini(sti_update_set *set); /* a zeroed one is fine */

/* The tensor of that name, or NULL. */
sti_update_tensor *sti_update_set_find(const sti_update_set *set, const char *name);

/* Does a word of a list, without commas, stand for this name? */
bool sti_update_word_matches(const char *word, size_t length, const char *name);

#endif
