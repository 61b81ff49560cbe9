#include "net/link_measure.h"

#include <inttypes.h>
#include <math.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/rng.h"
#include "codec/gradient_codec.h"

enum {
    SIZES = STI_LINK_SIZES_DRAWN,
    LEAST_DRAWS = STI_LINK_LEAST_DRAWS,
    MAX_DRAWS = 400,
    CODEC_VALUES = 1 << 23, /* more than caches hold, as a gradient is */
    CODEC_RUNS = 5,
    WHOLE_BYTES = 4 << 20
};

#define WITHIN 0.02

/* What the sender tells before a message; bytes 0: no more. */
typedef struct order {
    int64_t bytes;
    uint64_t number;
} order;

typedef struct pair {
    sti_comm *comm;
    int from, to;
    uint8_t *buffer;
    int64_t room;
    uint64_t number;
    double trip_s; /* of one byte and its answer */
} pair;

/* Depends on the place and the message. */
static uint8_t pattern(uint64_t number, int64_t i)
{
    return (uint8_t)((uint64_t)i * 131 + (uint64_t)(i >> 8) * 29 + number * 17);
}

void sti_link_fill(uint64_t number, int64_t n_bytes, uint8_t *out)
{
    for (int64_t i = 0; i < n_bytes; i++)
        out[i] = pattern(number, i);
}

stint_status sti_link_check(sti_comm *comm, int from, uint64_t number, int64_t place,
                            int64_t n_bytes, const uint8_t *bytes)
{
    for (int64_t i = 0; i < n_bytes; i++)
        if (bytes[i] != pattern(number, place + i))
            return sti_comm_give_up(
                comm,
                sti_fail(STINT_E_PEER,
                         "byte %" PRId64 " of %" PRId64 " from rank %d (%s) came as "
                         "%d, sent as %d: the link or its driver corrupts data",
                         i, n_bytes, from, sti_comm_host(comm, from), bytes[i],
                         pattern(number, place + i)));
    return STINT_OK;
}

static stint_status send_now(pair *p, int to, const void *bytes, size_t n_bytes)
{
    sti_comm_request request = {0};
    sti_comm_send(p->comm, to, STI_TAG_LINK, bytes, n_bytes, &request);
    return sti_comm_wait_all(p->comm, &request, 1);
}

static stint_status receive_now(pair *p, int from, void *bytes, size_t n_bytes)
{
    sti_comm_request request = {0};
    sti_comm_receive(p->comm, from, STI_TAG_LINK, bytes, n_bytes, &request);
    return sti_comm_wait_all(p->comm, &request, 1);
}

/* ---- the answering side ---- */

static stint_status answer(pair *p)
{
    for (;;) {
        order o;
        uint8_t byte = 1;
        sti_comm_request request = {0};
        stint_status st = receive_now(p, p->from, &o, sizeof o);
        if (st != STINT_OK || o.bytes == 0)
            return st;
        if (o.bytes < 0 || o.bytes > p->room)
            return sti_comm_give_up(
                p->comm, sti_fail(STINT_E_PEER,
                                  "rank %d (%s) announces %" PRId64
                                  " bytes; start all ranks with one build",
                                  p->from, sti_comm_host(p->comm, p->from), o.bytes));
        sti_comm_receive(p->comm, p->from, STI_TAG_LINK, p->buffer, (size_t)o.bytes,
                         &request);
        st = send_now(p, p->from, &byte, 1); /* ready */
        if (st == STINT_OK)
            st = sti_comm_wait_all(p->comm, &request, 1);
        if (st == STINT_OK)
            st = send_now(p, p->from, &byte, 1);
        if (st == STINT_OK)
            st = sti_link_check(p->comm, p->from, o.number, 0, o.bytes, p->buffer);
        if (st != STINT_OK)
            return st;
    }
}

/* ---- the asking side ---- */

static stint_status trip(pair *p, int64_t bytes, double *seconds_out)
{
    const order o = {bytes, p->number++};
    uint8_t byte;
    sti_comm_request request = {0};
    stint_status st = send_now(p, p->to, &o, sizeof o);
    sti_link_fill(o.number, bytes, p->buffer);
    if (st == STINT_OK)
        st = receive_now(p, p->to, &byte, 1);
    if (st != STINT_OK)
        return st;
    sti_comm_receive(p->comm, p->to, STI_TAG_LINK, &byte, 1, &request);
    const int64_t start = sti_clock_ns();
    st = send_now(p, p->to, p->buffer, (size_t)bytes);
    if (st == STINT_OK)
        st = sti_comm_wait_all(p->comm, &request, 1);
    *seconds_out = sti_seconds_since(start);
    return st;
}

/* Sizes from 1 to what 30 draws of all can take in the time; the round trip of a byte.
 */
static stint_status choose_sizes(pair *p, double seconds, int64_t max_bytes,
                                 int64_t sizes[SIZES])
{
    double trips[LEAST_DRAWS], far = 0, s;
    stint_status st = trip(p, 1, &s); /* wakes the link */
    for (int i = 0; i < LEAST_DRAWS && st == STINT_OK; i++)
        st = trip(p, 1, &trips[i]);
    for (int i = 0; i < 2 && st == STINT_OK; i++)
        st = trip(p, STI_LINK_LARGEST_LEAST, &far);
    if (st != STINT_OK)
        return st;
    sti_link_sort(trips, LEAST_DRAWS);
    p->trip_s = trips[LEAST_DRAWS / 2];
    const double byte_s = fmax((far - p->trip_s) / STI_LINK_LARGEST_LEAST, 1e-12);
    double max_size =
        seconds / (2.5 * LEAST_DRAWS * byte_s); /* the sizes' sum is 2 most */
    max_size = fmin(fmax(max_size, 16384), (double)max_bytes);
    for (int i = 0; i < SIZES; i++) {
        sizes[i] = (int64_t)llround(exp(log(max_size) * i / (SIZES - 1)));
        if (i > 0 && sizes[i] <= sizes[i - 1])
            sizes[i] = sizes[i - 1] + 1;
    }
    return STINT_OK;
}

static stint_status ask(pair *p, double seconds, int64_t max_bytes, uint64_t seed,
                        sti_link_sample *samples, sti_link_model *model)
{
    int64_t sizes[SIZES], n = 0;
    const int64_t start = sti_clock_ns();
    const order end = {0, 0};
    stint_status st = choose_sizes(p, seconds, max_bytes, sizes);
    for (int draw = 0; draw < MAX_DRAWS && st == STINT_OK; draw++) {
        int32_t turn[SIZES];
        sti_shuffle(seed, STI_STREAM_SHUFFLE, (uint64_t)draw, SIZES, turn);
        for (int i = 0; i < SIZES && st == STINT_OK; i++) {
            const int64_t bytes = sizes[turn[i]];
            double s = 0;
            st = trip(p, bytes, &s);
            s -= p->trip_s / 2;
            /* A clock may stand still. */
            samples[n++] =
                (sti_link_sample){(double)bytes, fmax(s, fmax(p->trip_s * 0.01, 1e-9))};
        }
        if (st == STINT_OK && draw >= 2 && sti_seconds_since(start) > seconds)
            break;
        if (st == STINT_OK && draw + 1 >= LEAST_DRAWS && draw % 10 == 9) {
            st = sti_link_fit(n, samples, model);
            if (st == STINT_OK && model->confident < WITHIN)
                break;
        }
    }
    if (st == STINT_OK)
        st = sti_link_fit(n, samples, model);
    /* The other side waits for orders, whatever became of the fit. */
    const stint_status sent = send_now(p, p->to, &end, sizeof end);
    return st == STINT_OK ? sent : st;
}

/* ---- all pairs ---- */

/* Place i of the list of ordered pairs; false: no more. */
static bool pair_at(int ranks, int i, int *from_out, int *to_out)
{
    if (ranks <= 4) {
        if (i >= ranks * (ranks - 1))
            return false;
        *from_out = i / (ranks - 1);
        *to_out = i % (ranks - 1);
        *to_out += *to_out >= *from_out;
        return true;
    }
    if (i >= 2 * ranks)
        return false;
    *from_out = i % 2 ? (i / 2 + 1) % ranks : i / 2;
    *to_out = i % 2 ? i / 2 : (i / 2 + 1) % ranks;
    return true;
}

/* Seconds a value of encoding to 4 bits and of decoding, on one thread, while the other
 * ranks do the same: medians. */
static stint_status measure_codec(double *encode_out, double *decode_out)
{
    const sti_gradient_form form = {.bits = 4, .bucket = 1024};
    const sti_gradient_key key = {.parts = 1};
    float *x = sti_alloc_array(CODEC_VALUES, sizeof *x, "net.measure");
    uint8_t *out = sti_alloc(sti_gradient_bytes(&form, CODEC_VALUES), "net.measure");
    const stint_status st = x && out ? STINT_OK : STINT_E_MEMORY;
    double encode[CODEC_RUNS], decode[CODEC_RUNS];
    for (int64_t i = 0; i < CODEC_VALUES && st == STINT_OK; i++)
        x[i] = (float)(i * 37 % 1001) - 500.0f;
    for (int run = 0; run < CODEC_RUNS && st == STINT_OK; run++) {
        int64_t start = sti_clock_ns();
        sti_gradient_encode(&sti_team_serial, &form, &key, CODEC_VALUES, x, out);
        encode[run] = sti_seconds_since(start) / CODEC_VALUES;
        start = sti_clock_ns();
        sti_gradient_decode(&sti_team_serial, &form, CODEC_VALUES, out,
                            STI_GRADIENT_ADD, x);
        decode[run] = sti_seconds_since(start) / CODEC_VALUES;
    }
    if (st == STINT_OK) {
        sti_link_sort(encode, CODEC_RUNS);
        sti_link_sort(decode, CODEC_RUNS);
        *encode_out = encode[CODEC_RUNS / 2];
        *decode_out = decode[CODEC_RUNS / 2];
    }
    sti_free(x);
    sti_free(out);
    return st;
}

static stint_status measure_pairs(sti_comm *comm, const sti_measure_desc *d,
                                  uint8_t *buffer, int64_t max_bytes,
                                  sti_link_sample *samples, sti_links *links)
{
    const int ranks = sti_comm_size(comm), rank = sti_comm_rank(comm);
    stint_status st = STINT_OK;
    for (int i = 0; i < links->count && st == STINT_OK; i++) {
        sti_link_model *m = &links->models[i];
        pair p = {.comm = comm, .buffer = buffer, .room = max_bytes};
        pair_at(ranks, i, &p.from, &p.to);
        *m = (sti_link_model){.from = p.from, .to = p.to};
        st = sti_comm_barrier(comm);
        if (st == STINT_OK && rank == p.from)
            st = ask(&p, d->seconds / links->count, max_bytes, d->seed, samples, m);
        if (st == STINT_OK && rank == p.to)
            st = answer(&p);
        st = sti_comm_agree(comm, st);
        if (st == STINT_OK)
            st = sti_comm_broadcast(comm, p.from, m, sizeof *m);
    }
    return st;
}

stint_status sti_links_measure(sti_comm *comm, const sti_measure_desc *desc,
                               sti_arena *arena, sti_links *links_out)
{
    sti_measure_desc d = *desc;
    const int ranks = sti_comm_size(comm);
    const int64_t start = sti_clock_ns(),
                  max_bytes = d.max_bytes > 0 ? d.max_bytes : WHOLE_BYTES;
    sti_links links = {.ranks = ranks, .kind = sti_comm_kind(comm)};
    int from, to;
    d.seconds = d.seconds > 0 ? d.seconds : 10;
    if (ranks < 2)
        return sti_fail(STINT_E_USAGE, "net measure: there is one rank; start two or "
                                       "more, as with mpirun -n 2 stint net measure");
    while (pair_at(ranks, links.count, &from, &to))
        links.count++;
    links.models = sti_arena_alloc(arena, (size_t)links.count * sizeof *links.models);
    uint8_t *buffer = sti_alloc((size_t)max_bytes, "net.measure");
    sti_link_sample *samples =
        sti_alloc_array(MAX_DRAWS * SIZES, sizeof *samples, "net.measure");
    stint_status st = links.models && buffer && samples ? STINT_OK : STINT_E_MEMORY;
    sti_comm_set_context(comm, "the measurement of links", 0);
    if (st == STINT_OK)
        st = desc->links_alone ? STINT_OK
                               : measure_codec(&links.encode_s, &links.decode_s);
    st = sti_comm_agree(comm, st);
    if (st == STINT_OK)
        st = measure_pairs(comm, &d, buffer, max_bytes, samples, &links);
    links.seconds = sti_seconds_since(start);
    sti_free(buffer);
    sti_free(samples);
    if (st == STINT_OK)
        *links_out = links;
    return st;
}
