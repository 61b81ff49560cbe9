#include "net/rate_probe.h"

#include <math.h>

#include "base/clock.h"
#include "base/memory.h"

enum { CHUNK = 1 << 16, DEPTH = 4, MAX_CHUNKS = 1 << 16 };

/* Chunks to the next and from the last rank, DEPTH of them on their way. */
static stint_status pass_round(sti_comm *comm, int64_t chunks, uint8_t *out,
                               uint8_t *in)
{
    const int size = sti_comm_size(comm), rank = sti_comm_rank(comm);
    sti_comm_request sends[DEPTH] = {{0}}, receives[DEPTH] = {{0}};
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < chunks + DEPTH && st == STINT_OK; i++) {
        const int k = (int)(i % DEPTH);
        st = sti_comm_wait_all(comm, &receives[k], 1);
        if (st == STINT_OK)
            st = sti_comm_wait_all(comm, &sends[k], 1);
        if (st != STINT_OK || i >= chunks)
            continue;
        sti_comm_receive(comm, (rank + size - 1) % size, STI_TAG_PROBE, in + k * CHUNK,
                         CHUNK, &receives[k]);
        sti_comm_send(comm, (rank + 1) % size, STI_TAG_PROBE, out + k * CHUNK, CHUNK,
                      &sends[k]);
    }
    return st;
}

static double three_figures(double x)
{
    const double unit = pow(10, floor(log10(x)) - 2);
    return fmax(floor(x / unit), 1) * unit;
}

stint_status sti_rate_probe(sti_comm *comm, double seconds, double *bits_per_s_out)
{
    uint8_t *out = sti_alloc(DEPTH * CHUNK, "net.probe");
    uint8_t *in = sti_alloc(DEPTH * CHUNK, "net.probe");
    stint_status st = sti_comm_agree(comm, out && in ? STINT_OK : STINT_E_MEMORY);
    int64_t chunks = 1, ns = 0;
    sti_comm_set_context(comm, "the probe of the links", 0);
    for (; st == STINT_OK && chunks <= MAX_CHUNKS; chunks *= 2) {
        st = sti_comm_barrier(comm);
        const int64_t start = sti_clock_ns();
        if (st == STINT_OK)
            st = pass_round(comm, chunks, out, in);
        ns = sti_clock_ns() - start;
        if (st == STINT_OK)
            st = sti_comm_max(comm, &ns, 1);
        if (st == STINT_OK && (double)ns * 1e-9 >= seconds)
            break;
    }
    if (chunks > MAX_CHUNKS)
        chunks = MAX_CHUNKS;
    if (st == STINT_OK)
        *bits_per_s_out =
            three_figures((double)chunks * CHUNK * 8 / (fmax((double)ns, 1) * 1e-9));
    sti_free(out);
    sti_free(in);
    return st;
}
