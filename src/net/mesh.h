/* From ranks that can only exchange a card each to connections between all of them. */
#ifndef STI_NET_MESH_H
#define STI_NET_MESH_H

#include "net/comm_tcp.h"
#include "net/shared_ring.h"
#include "net/wire.h"

typedef struct sti_mesh {
    int size;
    wire_card *cards;              /* [size] */
    int (*sockets)[WIRE_CHANNELS]; /* [size]; -1: none */
    sti_shared *shared;            /* [size]; with those of this host */
} sti_mesh;

stint_status sti_mesh_connect(const sti_comm_tcp_desc *desc, sti_mesh *mesh);
void sti_mesh_fini(sti_mesh *mesh); /* closes what nobody took */

#endif
