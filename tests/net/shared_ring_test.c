#define _GNU_SOURCE /* memfd_create */
#include "net/shared_ring.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct pair {
    sti_shared a, b;
} pair;

static void open_pair(pair *p, int ranks)
{
    int fd;
    assert_int_equal(sti_shared_create(ranks, &p->a, &fd), STINT_OK);
    assert_int_equal(sti_shared_open(fd, &p->b), STINT_OK);
    close(fd);
    assert_int_equal(p->a.bytes, p->b.bytes);
}

static void close_pair(pair *p)
{
    sti_shared_close(&p->a);
    sti_shared_close(&p->b);
    sti_shared_close(&p->b); /* twice is fine */
}

/* What is put comes out, for all ways of cutting it, round the end of the ring. */
static void test_order(void **state)
{
    (void)state;
    pair p;
    unsigned char out[5000], in[5000];
    uint32_t next_out = 0, next_in = 0;
    open_pair(&p, 2);
    for (uint32_t round = 0; round < 2000; round++) {
        bool ring = false;
        const size_t n_out = round * 7919 % sizeof out, n_in = round * 104729 % 5000;
        for (size_t i = 0; i < n_out; i++)
            out[i] = (unsigned char)((next_out + i) * 31 >> 3);
        next_out += (uint32_t)sti_shared_put(&p.a, out, n_out, &ring);
        const size_t got = sti_shared_get(&p.b, in, n_in, &ring);
        assert_true(got == n_in || next_in + got == next_out);
        for (size_t i = 0; i < got; i++)
            assert_int_equal(in[i], (unsigned char)((next_in + i) * 31 >> 3));
        next_in += (uint32_t)got;
    }
    assert_true(next_in > 3 * p.a.ring_bytes);
    close_pair(&p);
}

/* The two directions do not touch, and each tells its waiter, once. */
static void test_bells(void **state)
{
    (void)state;
    pair p;
    open_pair(&p, 2);
    unsigned char *bytes = calloc(2, p.a.ring_bytes);
    const size_t all = p.a.ring_bytes;
    bool ring = false;
    assert_int_equal(sti_shared_put(&p.a, bytes, 10, &ring), 10);
    assert_false(ring); /* nobody waits */
    assert_int_equal(sti_shared_get(&p.a, bytes, 10, &ring), 0);
    assert_int_equal(sti_shared_get(&p.b, bytes, 11, &ring), 10);
    assert_int_equal(sti_shared_put(&p.a, bytes, 0, &ring), 0);
    assert_false(ring);
    assert_int_equal(sti_shared_put(&p.a, bytes, 1, &ring), 1);
    assert_true(ring); /* b had asked for an eleventh */
    ring = false;
    assert_int_equal(sti_shared_put(&p.a, bytes, 2 * all, &ring), all - 1);
    assert_false(ring);
    assert_int_equal(sti_shared_get(&p.b, bytes, all / 2 - 1, &ring), all / 2 - 1);
    assert_false(ring); /* not for less than half of it */
    assert_int_equal(sti_shared_get(&p.b, bytes, 1, &ring), 1);
    assert_true(ring);
    ring = false;
    assert_int_equal(sti_shared_get(&p.b, bytes, 1, &ring), 1);
    assert_false(ring);
    close_pair(&p);
    free(bytes);
}

/* Counters that a peer has spoilt: never more bytes than the ring has. */
static void test_broken(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        pair p;
        char bytes[100];
        bool ring = false;
        open_pair(&p, 2);
        /* written, read: the first words of two lines of 64 bytes */
        uint64_t *counter = (uint64_t *)p.a.memory + (which ? 8 : 0);
        *counter = which ? UINT64_C(1) : p.a.ring_bytes + 1;
        assert_int_equal(sti_shared_get(&p.b, bytes, sizeof bytes, &ring),
                         STI_SHARED_BROKEN);
        assert_int_equal(sti_shared_put(&p.a, bytes, sizeof bytes, &ring),
                         STI_SHARED_BROKEN);
        close_pair(&p);
    }
}

/* More ranks of a host share less each, and what is no memory of ours is refused. */
static void test_sizes(void **state)
{
    (void)state;
    pair two, many;
    open_pair(&two, 2);
    open_pair(&many, 1000);
    assert_true(many.a.ring_bytes < two.a.ring_bytes);
    close_pair(&two);
    close_pair(&many);

    sti_shared s;
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(fd, (off_t)two.a.bytes), 0);
    assert_int_equal(sti_shared_open(fd, &s), STINT_E_PEER); /* could be cut */
    assert_int_equal(ftruncate(fd, 12345), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
                     0);
    assert_int_equal(sti_shared_open(fd, &s), STINT_E_PEER);
    assert_non_null(strstr(stint_last_error(), "12345 bytes"));
    assert_null(s.memory);
    close(fd);
    assert_int_equal(sti_shared_open(-1, &s), STINT_E_PEER);
}

/* ---- two threads, with bells as they are meant ---- */

enum { STREAM = 8 << 20 };

typedef struct side {
    sti_shared *shared;
    int bell_in, bell_out; /* pipes */
    uint32_t sum;
} side;

static void ring_out(const side *s, bool ring)
{
    if (ring)
        assert_int_equal(write(s->bell_out, "", 1), 1);
}

static void sleep_in(const side *s)
{
    char bells[64];
    assert_true(read(s->bell_in, bells, sizeof bells) > 0);
}

static void *write_stream(void *arg)
{
    side *s = arg;
    unsigned char bytes[4096];
    uint32_t x = 1;
    for (size_t done = 0; done < STREAM;) {
        size_t n = 1 + (x >> 8) % sizeof bytes;
        n = n < STREAM - done ? n : STREAM - done;
        for (size_t i = 0; i < n; i++) {
            x = x * 1664525 + 1013904223;
            bytes[i] = (unsigned char)(x >> 24);
            s->sum = s->sum * 31 + bytes[i];
        }
        for (size_t out = 0; out < n;) {
            bool ring = false;
            out += sti_shared_put(s->shared, bytes + out, n - out, &ring);
            ring_out(s, ring);
            if (out < n)
                sleep_in(s);
        }
        done += n;
    }
    return NULL;
}

static void *read_stream(void *arg)
{
    side *s = arg;
    unsigned char bytes[5000];
    for (size_t done = 0; done < STREAM;) {
        size_t wanted = 1 + done % sizeof bytes;
        wanted = wanted < STREAM - done ? wanted : STREAM - done;
        bool ring = false;
        size_t n = sti_shared_get(s->shared, bytes, wanted, &ring);
        ring_out(s, ring);
        for (size_t i = 0; i < n; i++)
            s->sum = s->sum * 31 + bytes[i];
        done += n;
        if (n < wanted)
            sleep_in(s);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pair p;
    int to_a[2], to_b[2];
    pthread_t threads[2];
    open_pair(&p, 1000); /* small rings: many bells */
    assert_int_equal(pipe(to_a) | pipe(to_b), 0);
    side a = {&p.a, to_a[0], to_b[1], 0}, b = {&p.b, to_b[0], to_a[1], 0};
    assert_int_equal(pthread_create(&threads[0], NULL, write_stream, &a), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, read_stream, &b), 0);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert_int_equal(a.sum, b.sum);
    for (int i = 0; i < 2; i++) {
        close(to_a[i]);
        close(to_b[i]);
    }
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),   cmocka_unit_test(test_bells),
        cmocka_unit_test(test_broken),  cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
