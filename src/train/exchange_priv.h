/* Inside the exchange of gradients. */
#ifndef STI_TRAIN_EXCHANGE_PRIV_H
#define STI_TRAIN_EXCHANGE_PRIV_H

#include "train/exchange.h"

/* Floats of a state that go at a time: 1 MiB. */
#define STI_EXCHANGE_PIECE ((int64_t)1 << 18)

struct sti_exchange {
    sti_exchange_desc desc;
    sti_comm *comm;
    sti_compressed_allreduce *allreduce;
    sti_arena *arena;
    sti_compressed_layer *layer; /* [layers], in the arena */
    int layers;
    int64_t total;
    float *piece; /* [STI_EXCHANGE_PIECE], of other ranks' states; rank 0, or NULL */
    bool alone;   /* what is saved is saved without the others */
    int *bits;    /* [layers] */
    char probed[256]; /* how the link was measured, or "" */
    char news[1024];  /* of the last choice */
    bool has_news;
};

#endif
