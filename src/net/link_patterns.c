#include "net/link_patterns.h"

#include <assert.h>
#include <math.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/rng.h"
#include "base/units.h"
#include "net/tree_sum.h"

enum {
    SIZES = STI_PATTERN_SIZES,
    LEAST_ROUNDS = 3,
    MAX_ROUNDS = 400,
    EMPTY_ROUNDS = 51,
    SUM_PERIOD = 1000 /* values of a vector are whole and small: sums are exact */
};

const char *sti_pattern_name(sti_pattern pattern)
{
    static const char *const names[] = {"pairs",  "at-once", "neighbours", "all-to-all",
                                        "incast", "fan-out", "allreduce"};
    return names[pattern];
}

/* One rank's part in a pattern. */
typedef struct player {
    sti_comm *comm;
    sti_pattern pattern;
    int rank, size, in_count, out_count, busiest; /* messages of a round */
    int *from;                                    /* [in_count] */
    int *to;                                      /* [out_count] */
    int64_t max_bytes;                            /* bytes of a message */
    uint8_t *out;                                 /* [most + size]; the vector */
    uint8_t *in;                                  /* [in_count, most] */
    sti_comm_request *requests;
    uint64_t number; /* of rounds so far */
    double empty_s;  /* of a round without messages */
} player;

static bool is_sent(sti_pattern pattern, int size, int from, int to)
{
    if (from == to)
        return false;
    switch (pattern) {
    case STI_PATTERN_AT_ONCE:
        return from / 2 == to / 2;
    case STI_PATTERN_NEIGHBOURS:
        return to == (from + 1) % size || from == (to + 1) % size;
    case STI_PATTERN_ALL_TO_ALL:
        return true;
    case STI_PATTERN_INCAST:
        return to == 0;
    case STI_PATTERN_FAN_OUT:
        return from == 0;
    case STI_PATTERN_PAIRS:
    case STI_PATTERN_ALLREDUCE:
        break;
    }
    return false;
}

static void find_partners(player *p)
{
    for (int r = 0; r < p->size; r++) {
        int in = 0, out = 0;
        for (int other = 0; other < p->size; other++) {
            in += is_sent(p->pattern, p->size, other, r);
            out += is_sent(p->pattern, p->size, r, other);
        }
        p->busiest = in > p->busiest ? in : p->busiest;
        p->busiest = out > p->busiest ? out : p->busiest;
        if (is_sent(p->pattern, p->size, r, p->rank))
            p->from[p->in_count++] = r;
        if (is_sent(p->pattern, p->size, p->rank, r))
            p->to[p->out_count++] = r;
    }
}

static stint_status begin(player *p, int64_t max_bytes)
{
    p->max_bytes = max_bytes;
    p->from = sti_alloc_array(p->size, sizeof *p->from, "net.pattern");
    p->to = sti_alloc_array(p->size, sizeof *p->to, "net.pattern");
    if (!p->from || !p->to)
        return STINT_E_MEMORY;
    find_partners(p);
    const double need = (double)max_bytes * (p->in_count + 1);
    const double host = (double)sti_host_memory_bytes();
    if (host > 0 && need > host)
        return sti_fail(
            STINT_E_MEMORY,
            "messages of %s: rank %d needs %s of memory for them, this host "
            "has %s; measure smaller ones",
            sti_bytes_text((size_t)max_bytes), p->rank, sti_bytes_text((size_t)need),
            sti_bytes_text((size_t)host));
    p->requests = sti_alloc_array(p->in_count + p->out_count + 1, sizeof *p->requests,
                                  "net.pattern");
    p->out = sti_alloc((size_t)(max_bytes + p->size), "net.pattern");
    p->in = sti_alloc_array(p->in_count + 1, (size_t)max_bytes, "net.pattern");
    return p->requests && p->out && p->in ? STINT_OK : STINT_E_MEMORY;
}

static void end(player *p)
{
    sti_free(p->requests);
    sti_free(p->from);
    sti_free(p->to);
    sti_free(p->out);
    sti_free(p->in);
}

/* ---- from one barrier to the next ---- */

static stint_status set_off(player *p, int64_t *start_out)
{
    const stint_status st = sti_comm_barrier(p->comm);
    *start_out = sti_clock_ns();
    return st;
}

/* Seconds that the slowest rank took since start, without those of two barriers. */
static stint_status arrive(player *p, int64_t start, double *seconds_out)
{
    stint_status st = sti_comm_barrier(p->comm);
    int64_t ns = sti_clock_ns() - start;
    if (st == STINT_OK)
        st = sti_comm_max(p->comm, &ns, 1);
    *seconds_out = fmax((double)ns * 1e-9 - p->empty_s, 0);
    return st;
}

/* The same without messages: the median. */
static stint_status find_empty(player *p)
{
    double s[EMPTY_ROUNDS];
    int64_t start = 0;
    stint_status st = STINT_OK;
    for (int i = 0; i < EMPTY_ROUNDS && st == STINT_OK; i++) {
        st = set_off(p, &start);
        if (st == STINT_OK)
            st = arrive(p, start, &s[i]);
    }
    if (st == STINT_OK) {
        sti_link_sort(s, EMPTY_ROUNDS);
        p->empty_s = s[EMPTY_ROUNDS / 2];
    }
    return st;
}

/* ---- messages ---- */

/* A message to rank r begins at place r of the sender's bytes, so that one that goes
 * astray is seen. */
static stint_status exchange(player *p, int64_t bytes, double *seconds_out)
{
    const uint64_t number = p->number * (uint64_t)p->size;
    sti_link_fill(number + (uint64_t)p->rank, bytes + p->size, p->out);
    for (int i = 0; i < p->in_count; i++)
        sti_comm_receive(p->comm, p->from[i], STI_TAG_LINK, p->in + i * p->max_bytes,
                         (size_t)bytes, &p->requests[i]);
    int64_t start = 0;
    stint_status st = set_off(p, &start);
    for (int i = 0; i < p->out_count && st == STINT_OK; i++)
        sti_comm_send(p->comm, p->to[i], STI_TAG_LINK, p->out + p->to[i], (size_t)bytes,
                      &p->requests[p->in_count + i]);
    if (st == STINT_OK)
        st = sti_comm_wait_all(p->comm, p->requests, p->in_count + p->out_count);
    if (st == STINT_OK)
        st = arrive(p, start, seconds_out);
    for (int i = 0; i < p->in_count && st == STINT_OK; i++)
        st = sti_link_check(p->comm, p->from[i], number + (uint64_t)p->from[i], p->rank,
                            bytes, p->in + i * p->max_bytes);
    return st;
}

/* ---- the sum ---- */

static stint_status sum(player *p, int64_t bytes, double *seconds_out)
{
    float *x = (float *)(void *)p->out;
    const int64_t count = bytes < 4 ? 1 : bytes / 4;
    sti_tree_sum *tree = NULL;
    int64_t start = 0;
    stint_status st = sti_tree_sum_create(p->comm, p->size, count, &tree);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(i % SUM_PERIOD + p->rank);
    st = sti_comm_agree(p->comm, st);
    if (st == STINT_OK)
        st = set_off(p, &start);
    if (st == STINT_OK)
        st = sti_tree_sum_run(tree, &sti_team_serial, NULL, &x, 1);
    if (st == STINT_OK)
        st = arrive(p, start, seconds_out);
    sti_tree_sum_destroy(tree);
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        if (x[i] !=
            (float)(i % SUM_PERIOD * p->size + (int64_t)p->size * (p->size - 1) / 2))
            st = sti_comm_give_up(p->comm,
                                  sti_fail(STINT_E_PEER, "a sum over ranks is wrong: "
                                                         "the link or its driver "
                                                         "corrupts data"));
    return st;
}

/* ---- measuring ---- */

static stint_status draw(player *p, int64_t bytes, double *seconds_out)
{
    p->number++;
    return p->pattern == STI_PATTERN_ALLREDUCE ? sum(p, bytes, seconds_out)
                                               : exchange(p, bytes, seconds_out);
}

static void describe(const player *p, int64_t bytes, int64_t n, double *s,
                     sti_pattern_row *row)
{
    const double whole = (double)bytes;
    double algorithm = whole * p->busiest, bus = algorithm;
    sti_link_sort(s, n);
    if (p->pattern == STI_PATTERN_ALLREDUCE) {
        algorithm = whole;
        bus = 2 * whole * (p->size - 1) / p->size;
    } else if (p->pattern >= STI_PATTERN_ALL_TO_ALL) {
        algorithm = whole * p->size;
    }
    *row = (sti_pattern_row){.bytes = bytes,
                             .samples = n,
                             .median_s = sti_link_quantile(s, n, 50),
                             .low_s = sti_link_quantile(s, n, 5),
                             .high_s = sti_link_quantile(s, n, 95)};
    const double each_s = row->median_s > 0 ? row->median_s : (double)NAN;
    row->algorithm_bytes_per_s = algorithm / each_s;
    row->bus_bytes_per_s = bus / each_s;
}

/* Rank 0's clock decides for all. */
static stint_status agree_on_end(player *p, bool mine, bool *over_out)
{
    int64_t over = p->rank == 0 && mine;
    const stint_status st = sti_comm_max(p->comm, &over, 1);
    *over_out = over != 0;
    return st;
}

static stint_status measure(player *p, const sti_measure_desc *d, double *samples,
                            sti_pattern_row *rows)
{
    const int64_t start = sti_clock_ns();
    int64_t bytes = p->max_bytes, sizes[SIZES];
    int rounds = 0;
    bool over = false;
    double warm_up;
    for (int i = SIZES - 1; i >= 0; i--, bytes /= 4)
        sizes[i] = bytes;
    stint_status st = draw(p, sizes[0], &warm_up);
    if (st == STINT_OK)
        st = find_empty(p);
    for (; st == STINT_OK && !over; rounds++) {
        int32_t turn[SIZES];
        sti_shuffle(d->seed, STI_STREAM_SHUFFLE, (uint64_t)rounds, SIZES, turn);
        for (int i = 0; i < SIZES && st == STINT_OK; i++)
            st = draw(p, sizes[turn[i]], &samples[turn[i] * MAX_ROUNDS + rounds]);
        if (st == STINT_OK)
            st = agree_on_end(p,
                              rounds + 1 == MAX_ROUNDS ||
                                  (rounds + 1 >= LEAST_ROUNDS &&
                                   sti_seconds_since(start) > d->seconds),
                              &over);
    }
    for (int i = 0; i < SIZES && st == STINT_OK; i++)
        describe(p, sizes[i], rounds, samples + i * MAX_ROUNDS, &rows[i]);
    return st;
}

stint_status sti_links_pattern(sti_comm *comm, sti_pattern pattern,
                               const sti_measure_desc *desc,
                               sti_pattern_row rows_out[STI_PATTERN_SIZES])
{
    player p = {.comm = comm,
                .pattern = pattern,
                .rank = sti_comm_rank(comm),
                .size = sti_comm_size(comm)};
    assert(pattern != STI_PATTERN_PAIRS && p.size > 1);
    double *samples =
        sti_alloc_array(SIZES * MAX_ROUNDS, sizeof *samples, "net.pattern");
    stint_status st = samples ? begin(&p, desc->max_bytes) : STINT_E_MEMORY;
    sti_comm_set_context(comm, "the measurement of links", 0);
    st = sti_comm_agree(comm, st);
    if (st == STINT_OK)
        st = measure(&p, desc, samples, rows_out);
    end(&p);
    sti_free(samples);
    return st;
}
