/* The rehearsal against closed forms, and the schedules it shares with real sums: every
 * send meets its receive, every rank gets every slice, sums meet every rank once. */
#include "net/rehearse.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/comm_priv.h"
#include "net/tree_sum.h"

enum { MOST = 24 };

static sti_topology star(int ranks, int group)
{
    return (sti_topology){.kind = STI_TOPOLOGY_ETHERNET,
                          .ranks = ranks,
                          .group = group,
                          .inside = {1e-6, 1e-10},
                          .host = {25e-6, 1e-8}, /* 50 us a message, 100 MB/s */
                          .leaf = 4,
                          .taper = 1};
}

static double seconds_of(const sti_topology *t, sti_scheme scheme, int64_t values,
                         double bytes)
{
    const sti_rehearsal r = {
        .scheme = scheme, .values = values, .bytes_per_value = bytes};
    sti_rehearsed out;
    assert_int_equal(sti_rehearse(t, &r, &out), STINT_OK);
    return out.seconds;
}

static void near(double a, double b, double tolerance)
{
    if (!(fabs(a / b - 1) <= tolerance))
        fail_msg("%.9g, wanted %.9g", a, b);
}

/* Ring: 2 (n - 1) hops of s / n. Scatter: twice n - 1 slices in a row and a latency. */
static void closed_forms(void **state)
{
    (void)state;
    for (int n = 2; n <= 200; n = n * 3 / 2 + 1) {
        const sti_topology t = star(n, 1);
        const double s = 4e6, alpha = 50e-6, beta = 1e-8;
        near(seconds_of(&t, STI_SCHEME_RING, 1000000, 4),
             2 * (n - 1) * (alpha + s / n * beta), 1e-9);
        near(seconds_of(&t, STI_SCHEME_SCATTER, 1000000, 4),
             2 * (alpha + (n - 1) * s / n * beta), 1e-9);
    }
}

/* Two hosts of 4: inside, across, inside; the uplink carries each part once each way.
 */
static void two_levels(void **state)
{
    (void)state;
    const sti_topology t = star(8, 4);
    const double s = 4e6, in = 1e-10, alpha = 50e-6;
    const double inner = 1e-6 + 3 * s / 4 * in;
    const double across = 2 * (alpha + 4 * (s / 8) * 1e-8);
    near(seconds_of(&t, STI_SCHEME_TWO_LEVEL, 1000000, 4), inner + across + inner,
         0.01);
    assert_true(seconds_of(&t, STI_SCHEME_TWO_LEVEL, 1000000, 4) * 2 <
                seconds_of(&t, STI_SCHEME_SCATTER, 1000000, 4));
}

/* Everything that crosses the trunk shares it: half of all pairs, each way. */
static void a_shared_trunk(void **state)
{
    (void)state;
    sti_topology t = star(8, 1);
    t.kind = STI_TOPOLOGY_DUMBBELL;
    t.trunk = t.host;
    /* 16 slices of s / 8 cross each way in each of the two rounds. */
    const double least = 2 * 16 * (4e6 / 8) * 1e-8;
    const double seconds = seconds_of(&t, STI_SCHEME_SCATTER, 1000000, 4);
    assert_true(seconds >= least && seconds < least * 1.15);
    /* The ring crosses it in one place only. */
    assert_true(seconds_of(&t, STI_SCHEME_RING, 1000000, 4) < seconds / 2);
    t.kind = STI_TOPOLOGY_FAT_TREE;
    const double full = seconds_of(&t, STI_SCHEME_SCATTER, 1000000, 4);
    t.taper = 4;
    const double tapered = seconds_of(&t, STI_SCHEME_SCATTER, 1000000, 4);
    near(full,
         seconds_of(&(sti_topology){.kind = STI_TOPOLOGY_ETHERNET,
                                    .ranks = 8,
                                    .group = 1,
                                    .inside = t.inside,
                                    .host = t.host},
                    STI_SCHEME_SCATTER, 1000000, 4),
         0.6);
    assert_true(tapered > 2 * full);
}

static void work_counts(void **state)
{
    (void)state;
    const sti_topology t = star(2, 1);
    const sti_rehearsal r = {.scheme = STI_SCHEME_SCATTER,
                             .values = 1000,
                             .bytes_per_value = 0.5,
                             .encode_s = 1e-6,
                             .decode_s = 2e-6};
    sti_rehearsed out;
    assert_int_equal(sti_rehearse(&t, &r, &out), STINT_OK);
    /* 500 values are encoded twice, decoded three times. */
    near(out.seconds, 2 * (50e-6 + 250e-8) + 2 * 500e-6 + 3 * 1000e-6, 1e-9);
    assert_int_equal(out.messages, 4);
    near(out.bytes, 4 * 250, 1e-9);
    near(out.rank_bytes, 2 * 250, 1e-9);
}

static sti_rehearsed exact_sum(const sti_topology *t, int64_t values, int64_t shards,
                               double add_s)
{
    const sti_rehearsal r = sti_rehearsal_exact(t, values, shards, add_s);
    sti_rehearsed out;
    assert_int_equal(sti_rehearse(t, &r, &out), STINT_OK);
    return out;
}

/* The exact sum sends what the real one sends: messages, bytes, and of each rank. */
static void is_the_real_one(int n, int group, int64_t shards)
{
    const sti_topology t = star(n, group);
    sti_comm *comms[36];
    int64_t messages = 0, bytes = 0, most = 0;
    assert_int_equal(sti_comm_create_local(n, comms), STINT_OK);
    for (int r = 0; r < n; r++) {
        sti_tree_sum *sum;
        int64_t own_messages, own_bytes;
        for (int i = 0; i < n; i++)
            snprintf(comms[r]->hosts[i], COMM_HOST_BYTES, "%d", i / group);
        assert_int_equal(
            sti_tree_sum_create(comms[r], shards > 0 ? shards : n, 1000003, &sum),
            STINT_OK);
        sti_tree_sum_traffic(sum, &own_messages, &own_bytes);
        sti_tree_sum_destroy(sum);
        messages += own_messages;
        bytes += own_bytes;
        most = own_bytes > most ? own_bytes : most;
    }
    for (int r = 0; r < n; r++)
        sti_comm_destroy(comms[r]);
    const sti_rehearsed out = exact_sum(&t, 1000003, shards, 0);
    assert_int_equal(out.messages, messages);
    /* Slices are whole grains; the rank of the most blocks may own the smallest. */
    near(out.bytes, (double)bytes, 1e-3);
    near(out.rank_bytes, (double)most, shards > n ? 4e-2 : 3e-3);
}

static void exact_is_the_real_one(void **state)
{
    (void)state;
    for (int n = 2; n <= 36; n += n < 12 ? 1 : 12)
        for (int group = 1; group <= n; group++)
            for (int64_t shards = 0; n % group == 0 && shards <= 3 * n;
                 shards += shards ? n + 1 : n)
                is_the_real_one(n, group, shards);
}

/* Both directions of every link are full but for the first part's way up and the last
 * one's way down; adding costs. Hosts join before they send. */
static void exact_takes(void **state)
{
    (void)state;
    for (int n = 2; n <= 64; n *= 2) {
        sti_topology t = star(n, 1);
        const double link = 2 * (n - 1.0) / n * 4 * (1 << 22) * 1e-8;
        const sti_rehearsed out = exact_sum(&t, 1 << 22, 0, 0);
        assert_true(out.seconds > link && out.seconds < 1.1 * link);
        const sti_rehearsed slow = exact_sum(&t, 1 << 22, 0, 1e-6);
        assert_true(slow.seconds > (n - 1.0) / n * (1 << 22) * 1e-6);
        t = star(8 * n, 8);
        const sti_rehearsed hosts = exact_sum(&t, 1 << 22, 0, 0);
        assert_true(hosts.seconds > link && hosts.seconds < 1.2 * link);
    }
    sti_topology t = star(1, 1);
    assert_true(exact_sum(&t, 1000, 0, 1e-9).seconds == 0);
    t = star(8, 3);
    const sti_rehearsal r = sti_rehearsal_exact(&t, 1000, 0, 1e-9);
    sti_rehearsed out;
    assert_int_equal(sti_rehearse(&t, &r, &out), STINT_E_USAGE);
}

/* One lot of ranks stands for all: the same as all of them, which a topology that has
 * no such lots rehearses (leaves of unequal numbers of hosts, and all of full rate). */
static void lots_stand_for_all(void **state)
{
    (void)state;
    for (int scheme = 0; scheme < STI_SCHEMES; scheme++)
        for (int n = 8; n <= 48; n *= 2) {
            sti_topology t = star(n, 2);
            sti_rehearsal r = {.scheme = (sti_scheme)scheme,
                               .values = 3000000,
                               .bytes_per_value = 0.5,
                               .encode_s = 1e-9,
                               .decode_s = 1e-9};
            sti_rehearsed lot, all;
            sti_rehearsal_cut(&t, &r);
            assert_int_equal(sti_rehearse(&t, &r, &lot), STINT_OK);
            t.kind = STI_TOPOLOGY_FAT_TREE;
            t.leaf = n; /* has all hosts: there is no other lot */
            assert_int_equal(sti_rehearse(&t, &r, &all), STINT_OK);
            assert_int_equal(lot.messages, all.messages);
            near(lot.bytes, all.bytes, 1e-12);
            near(lot.seconds, all.seconds, 1e-2);
        }
}

/* Parts overlap: never longer than one, never shorter than the busiest of encoding and
 * decoding, and the link. With 4 parts of a scatter between two ranks on a link that is
 * slower than both, everything but the first part's encoding, the last one's decoding
 * and two latencies hides behind the link. */
static void parts_overlap(void **state)
{
    (void)state;
    const sti_topology t = star(2, 1);
    sti_rehearsal r = {.scheme = STI_SCHEME_SCATTER,
                       .values = 4000000,
                       .bytes_per_value = 0.5,
                       .encode_s = 1e-9,
                       .decode_s = 0.5e-9};
    sti_rehearsed one, parts;
    assert_int_equal(sti_rehearse(&t, &r, &one), STINT_OK);
    assert_int_equal(one.parts, 1);
    const double link = 4e6 * 0.5 * 1e-8, half = 2e6; /* both rounds; values */
    near(one.seconds, link + 100e-6 + 2 * half * 1e-9 + 3 * half * 0.5e-9, 1e-9);
    r.fusion = 1 << 20;
    assert_int_equal(sti_rehearse(&t, &r, &parts), STINT_OK);
    assert_true(parts.parts > 4);
    assert_int_equal(parts.messages, parts.parts * one.messages);
    near(parts.bytes, one.bytes, 1e-9);
    assert_true(parts.seconds < one.seconds && parts.seconds > link);
    const double first = (1 << 20) / 2.0 * 1e-9, last = (1 << 17) * 0.5e-9;
    near(parts.seconds, link + 100e-6 + first + last, 0.02);
    /* Sums that training cuts into so many parts that rehearsing takes hours go in
     * fewer. */
    sti_rehearsal large = r;
    sti_rehearsal_cut(&t, &large);
    assert_int_equal(large.fusion, 1 << 20);
    sti_topology many = star(4096, 1);
    many.kind = STI_TOPOLOGY_FAT_TREE;
    many.leaf = 32;
    large.values = 25000000;
    sti_rehearsal_cut(&many, &large);
    assert_true(large.fusion > 1 << 20 && large.fusion < 25000000);
    many.leaf = 2048;
    sti_rehearsal_cut(&many, &large);
    assert_int_equal(large.fusion, 0);
    /* A link that costs nothing leaves the work, which does not overlap. */
    sti_topology fast = t;
    fast.host = (sti_link){0, 0};
    assert_int_equal(sti_rehearse(&fast, &r, &parts), STINT_OK);
    near(parts.seconds, 2 * half * 1e-9 + 3 * half * 0.5e-9, 1e-9);
}

static void parts_of_every_scheme(void **state)
{
    (void)state;
    for (int scheme = 0; scheme < STI_SCHEMES; scheme++)
        for (int n = 4; n <= 32; n *= 2) {
            const sti_topology t = star(n, 4);
            sti_rehearsal r = {.scheme = (sti_scheme)scheme,
                               .values = 3000000,
                               .bytes_per_value = 4,
                               .encode_s = 1e-9,
                               .decode_s = 1e-9};
            sti_rehearsed one, parts;
            assert_int_equal(sti_rehearse(&t, &r, &one), STINT_OK);
            r.fusion = 1 << 20;
            assert_int_equal(sti_rehearse(&t, &r, &parts), STINT_OK);
            assert_int_equal(parts.messages, parts.parts * one.messages);
            near(parts.bytes, one.bytes, 1e-9);
            near(parts.rank_bytes, one.rank_bytes, 1e-9);
        }
}

static void many_ranks(void **state)
{
    (void)state;
    sti_topology t = star(4096, 64);
    const sti_rehearsal r = {
        .scheme = STI_SCHEME_TWO_LEVEL, .values = 25000000, .bytes_per_value = 0.51};
    sti_rehearsed out;
    t.kind = STI_TOPOLOGY_FAT_TREE;
    assert_int_equal(sti_rehearse(&t, &r, &out), STINT_OK);
    assert_int_equal(out.messages, 4096 * (63 + 63 + 63 + 63));
}

/* ---- schedules ---- */

typedef struct message {
    int from, to, slice, count;
    uint32_t sets[MOST];
    bool raw;
} message;

/* The move's message, of those under way, into the sums of its rank; false: it is not
 * there yet. */
static bool take(const sti_move *m, int rank, message *sent, int64_t total,
                 uint32_t *sum, uint32_t *coded)
{
    int64_t k = 0;
    while (k < total && !(sent[k].to == rank && sent[k].from == m->peer))
        k++;
    if (k == total)
        return false;
    assert_true(sent[k].slice == m->slice && sent[k].count == m->count);
    assert_true(sent[k].raw == (m->kind == STI_MOVE_ADD_RAW));
    for (int i = 0; i < m->count; i++) {
        const int at = m->slice + i;
        if (m->kind == STI_MOVE_SET) {
            sum[at] = coded[at] = sent[k].sets[i];
            continue;
        }
        assert_int_equal(sum[at] & sent[k].sets[i], 0);
        sum[at] |= sent[k].sets[i];
    }
    sent[k].to = -1;
    return true;
}

/* Which ranks are in the sum of a slice, as a rank has it; messages as they travel. */
static void follow(sti_scheme scheme, int n, int group)
{
    static uint32_t sum[MOST][MOST], coded[MOST][MOST];
    sti_move *moves[MOST];
    int64_t count[MOST], at[MOST] = {0};
    message *sent = calloc((size_t)n * 8 * MOST, sizeof *sent);
    int64_t total = 0, done = 0;
    bool moved = true;
    for (int r = 0; r < n; r++) {
        count[r] = sti_schedule_make(scheme, n, group, r, NULL);
        moves[r] = malloc((size_t)count[r] * sizeof **moves);
        assert_int_equal(sti_schedule_make(scheme, n, group, r, moves[r]), count[r]);
        for (int s = 0; s < n; s++)
            sum[r][s] = 1u << r;
    }
    while (moved) {
        moved = false;
        for (int r = 0; r < n; r++) {
            if (at[r] == count[r])
                continue;
            const sti_move *m = &moves[r][at[r]];
            if (at[r] > 0)
                assert_true(m->round >= m[-1].round);
            if (sti_move_receives(m->kind)) {
                if (!take(m, r, sent, total, sum[r], coded[r]))
                    continue;
                done++;
            } else if (m->kind == STI_MOVE_KEEP) {
                coded[r][m->slice] = sum[r][m->slice];
                assert_true(sum[r][m->slice] == (1u << n) - 1);
            } else {
                sent[total].from = r;
                sent[total].to = m->peer;
                sent[total].slice = m->slice;
                sent[total].count = m->count;
                sent[total].raw = m->kind == STI_MOVE_SEND_RAW;
                for (int i = 0; i < m->count; i++)
                    sent[total].sets[i] = m->kind == STI_MOVE_FORWARD
                                              ? coded[r][m->slice + i]
                                              : sum[r][m->slice + i];
                total++;
            }
            at[r]++;
            moved = true;
        }
    }
    assert_int_equal(done, total);
    for (int r = 0; r < n; r++) {
        assert_int_equal(at[r], count[r]);
        for (int s = 0; s < n; s++)
            assert_true(sum[r][s] == (1u << n) - 1);
        free(moves[r]);
    }
    free(sent);
}

static void schedules_sum_everything(void **state)
{
    (void)state;
    for (int n = 2; n <= 12; n++) {
        follow(STI_SCHEME_SCATTER, n, 1);
        follow(STI_SCHEME_RING, n, 1);
        for (int group = 1; group <= n; group++)
            if (n % group == 0)
                follow(STI_SCHEME_TWO_LEVEL, n, group);
    }
}

static void refused(void **state)
{
    (void)state;
    const sti_rehearsal r = {.values = 10, .bytes_per_value = 4};
    sti_rehearsed out;
    sti_topology t = star(8, 3);
    assert_int_equal(sti_rehearse(&t, &r, &out), STINT_E_USAGE);
    t = star(0, 1);
    assert_int_equal(sti_rehearse(&t, &r, &out), STINT_E_USAGE);
    t = star(4, 1);
    t.kind = STI_TOPOLOGY_FAT_TREE;
    t.taper = 0;
    assert_int_equal(sti_rehearse(&t, &r, &out), STINT_E_USAGE);
    t = star(1, 1);
    assert_int_equal(sti_rehearse(&t, &r, &out), STINT_OK);
    assert_true(out.seconds == 0 && out.messages == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_forms),
        cmocka_unit_test(two_levels),
        cmocka_unit_test(a_shared_trunk),
        cmocka_unit_test(work_counts),
        cmocka_unit_test(parts_overlap),
        cmocka_unit_test(exact_is_the_real_one),
        cmocka_unit_test(exact_takes),
        cmocka_unit_test(lots_stand_for_all),
        cmocka_unit_test(parts_of_every_scheme),
        cmocka_unit_test(many_ranks),
        cmocka_unit_test(schedules_sum_everything),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
