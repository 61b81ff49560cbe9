/* The sum of gradients over ranks where the recipe's [net] allows a loss: a compressed
 * sum (net/compressed_allreduce.h) of each rank's own sum of shards, in place of the
 * exact tree.
 *
 * The result's bits depend on the number of ranks then. Bits of layers are chosen from
 * what the recipe says and from the gradients alone, so the same recipe on as many
 * ranks gives the same run - unless its net.link is auto: then two numbers come from a
 * clock, the rate of the links and how long the backward pass hides a sum. They are
 * measured once, agreed by all ranks and told, so that a run with these numbers repeats
 * it. */
#ifndef STI_TRAIN_EXCHANGE_H
#define STI_TRAIN_EXCHANGE_H

#include "base/file.h"
#include "base/recipe.h"
#include "model/network.h"
#include "net/compressed_allreduce.h"

typedef struct sti_exchange_desc {
    bool overlap; /* beside the backward pass: no bit depends on it */
    bool lossy;   /* else nothing below counts, and there is no exchange */
    sti_compressed_allreduce_desc allreduce;
    int64_t choose_every; /* steps; 0: bits stay */
    bool probe;           /* the link is to be measured, for policy.wire_bytes */
    double time_s;        /* that it may take, where no backward pass hides anything */
    sti_bits_policy policy;
} sti_exchange_desc;

/* How the recipe's [net], which stint_recipe_check has seen, has gradients exchanged.
 */
sti_exchange_desc sti_exchange_of_recipe(const stint_recipe *recipe);

/* Every result of a planned network that leaves the graph, in the order of the block:
 * gradients may lose. In the arena. */
stint_status sti_exchange_list_layers(const sti_network *network, sti_arena *arena,
                                      sti_compressed_layer **layers_out,
                                      int *count_out);

typedef struct sti_exchange sti_exchange;

/* Bytes that a rank will allocate, at most, for the results of a planned network. */
size_t sti_exchange_bytes(const sti_exchange_desc *desc, int rank, int ranks,
                          const sti_network *network);

/* Warns where the recipe's net.group takes ranks of several hosts for neighbours. */
void sti_exchange_check_hosts(const sti_exchange_desc *desc, const sti_comm *comm);

/* Collective. Borrows comm and network. */
stint_status sti_exchange_create(const sti_exchange_desc *desc, sti_comm *comm,
                                 const sti_network *network, sti_exchange **out);
void sti_exchange_destroy(sti_exchange *exchange); /* NULL is fine */

/* Go on with another network of the same gradients, whose results may lie in other
 * places: bits and what is owed follow their layers. Collective. After a failure only
 * destroying is left. */
stint_status sti_exchange_move(sti_exchange *exchange, const sti_network *network);

/* Is of the next sums no use made, so that nothing is owed for them? */
void sti_exchange_hold(sti_exchange *exchange, bool held);
/* This rank's RESULT block becomes the sum; step counts from 0; watermark: see
 * net/ready_watermark.h.
 */
stint_status sti_exchange_run(sti_exchange *exchange, const sti_team *team,
                              sti_ready_watermark *watermark, int64_t step,
                              float *block);

/* Will the next run measure the backward pass? It should not be the first of all, which
 * meets cold memory. */
bool sti_exchange_measures(const sti_exchange *exchange);
/* How bits were chosen and why, if they were since it was asked last; NULL. Of rank 0.
 */
const char *sti_exchange_news(sti_exchange *exchange);

/* ---- exchange_state.c: what a checkpoint holds ----
 *
 * A state: the residuals of all ranks [ranks, total], where they are fed back, then the
 * bits of the layers [layers], all as float32. No rank ever holds it: its pieces pass
 * rank 0 while the file is written or read. */
int64_t sti_exchange_state_count(const sti_exchange *exchange); /* floats */

/* Rank 0 saves: a state goes into a hash, then out. The other ranks follow meanwhile.
 * If they cannot be asked any more when it goes into the hash, it has the bits, and
 * nothing owed, which is lost with them. After any failure but that of the communicator
 * the others still wait: sti_comm_give_up. */
typedef stint_status sti_exchange_write_fn(void *user, const void *bytes,
                                           size_t n_bytes);
stint_status sti_exchange_add_sha256(sti_exchange *exchange, sti_sha256 *sha);
stint_status sti_exchange_write(sti_exchange *exchange, sti_exchange_write_fn *write,
                                void *user);
stint_status sti_exchange_follow_save(sti_exchange *exchange);

/* A state of a file; floats first .. first + count of it. */
typedef stint_status sti_exchange_read_fn(void *user, int64_t first, int64_t count,
                                          float *out);
typedef struct sti_exchange_source {
    int64_t count; /* floats; 0: there is none, and nothing is owed */
    sti_exchange_read_fn *read;
    void *user;
} sti_exchange_source;

/* May so many floats be one of these layers, by however many ranks? */
bool sti_exchange_can_load(const sti_exchange *exchange, int64_t count);
/* Collective; source: of rank 0, elsewhere not looked at. Residuals of another number
 * of ranks are shared out evenly. */
stint_status sti_exchange_load(sti_exchange *exchange,
                               const sti_exchange_source *source);

#endif
