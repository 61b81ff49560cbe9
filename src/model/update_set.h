/* Which parameters of a network are trained, written as a list:
 *
 *   h.8-11.attn.*,h.11.mlp.c_fc.weight,*.bias
 *
 * Words are separated by commas. A word is a parameter's name, in which * stands for
 * any characters, dots too, and a number A-B that is a part of its own, between dots,
 * for every number from A to B. */
#ifndef STI_MODEL_UPDATE_SET_H
#define STI_MODEL_UPDATE_SET_H

#include "graph/graph.h"

typedef struct sti_update_set {
    const char **names; /* of parameters, in the network's order; own memory */
    int count;
} sti_update_set;

/* Parameters of `graph` that the list names. STINT_E_USAGE, which begins with `key`: a
 * word without meaning, or one that no parameter has (with the nearest name); or the
 * list is empty. */
stint_status sti_update_set_parse(const char *key, const char *list,
                                  const stint_graph *graph, sti_update_set *set_out);
/* Those that `takes` says yes to. */
stint_status sti_update_set_choose(const stint_graph *graph,
                                   bool (*takes)(void *user, const sti_value_row *row),
                                   void *user, sti_update_set *set_out);
void sti_update_set_fini(sti_update_set *set); /* a zeroed one is fine */

bool sti_update_set_has(const sti_update_set *set, const char *name);

/* Does a word of a list, without commas, stand for this name? */
bool sti_update_word_matches(const char *word, size_t length, const char *name);

#endif
