/* An imported network for other batches. Its shapes are static, and the length of the
 * batch stands in the lists of its Reshapes: it is followed from the input through
 * every node, an axis of each value, and those lists are written anew.
 *
 * The batch may share its axis with others: [batch * windows, ...], or, behind a
 * Transpose, [tokens * batch, ...]. A Reshape of a batch of 1 often leaves more than
 * one axis for it, of which one is taken that the nodes behind go on with. Whichever
 * that is, each sample has what the network makes of it alone. What brings samples
 * together (a mean over the batch, a softmax along it), takes some of them, or has a
 * constant for each is refused with the node's name: such a network can be run as it
 * was imported, and trained not at all.
 *
 * The classifier is the last Gemm, Conv or MatMul by a weight before the first output,
 * with what is added to or multiplied by its result: for other classes these tensors
 * have other shapes, and begin anew. */
#ifndef STI_EXCHANGE_REBATCH_H
#define STI_EXCHANGE_REBATCH_H

#include "exchange/lower.h"

typedef struct sti_rebatch sti_rebatch;

/* Follow the batch through a network as a model file has it. Tensors of it that no
 * training changes (numbers of formulas, statistics of normalisations) lose `trained`.
 * g and name must outlive what is made. STINT_E_UNSUPPORTED: not one input, a first
 * output that has no score for each class, or a node as above. */
stint_status sti_rebatch_create(sti_exchange_graph *g, const char *name,
                                sti_rebatch **rebatch_out);
void sti_rebatch_destroy(sti_rebatch *rebatch); /* NULL is fine */

int64_t sti_rebatch_classes(const sti_rebatch *rebatch); /* of the file */

/* The network for so many samples and classes, whose one output are the scores before
 * a softmax. Tensors are those of g but for the classifier's, which have no numbers if
 * the classes are others. The caller destroys it. STINT_E_UNSUPPORTED: other classes,
 * and no classifier was found. */
stint_status sti_rebatch_build(const sti_rebatch *rebatch, int64_t batch,
                               int64_t classes, sti_exchange_graph **graph_out);
/* For so many classes and the batch and outputs of g: what a model file keeps. */
stint_status sti_rebatch_whole(const sti_rebatch *rebatch, int64_t classes,
                               sti_exchange_graph **graph_out);

/* Is this tensor added, rather than multiplied by: a bias or shift? */
bool sti_rebatch_is_bias(const sti_rebatch *rebatch, const char *tensor);

#endif
