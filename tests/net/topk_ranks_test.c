/* Top-k over ranks is that of one process, bit for bit, and sends what the tree says.
 */
#include "net/topk_ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/comm_world.h"

enum { N = 5000, MOST = 900 };

typedef struct question {
    stint_topk_desc desc; /* of the whole row */
    const char *x;
    size_t item;
    int64_t index[MOST];
    char values[MOST * 4];
    stint_status status;
} question;

/* Uneven parts, some empty. */
static int64_t part_begin(int rank, int size)
{
    return rank == 0 ? 0 : rank >= size ? N : (int64_t)N * rank * rank / (size * size);
}

static int64_t winners_of(int64_t elements, int64_t k)
{
    return elements < k ? elements : k;
}

/* Lists that go up below a rank, by the definition. */
static int64_t bytes_up(const question *q, int rank, int size)
{
    int64_t low = part_begin(rank, size), reach = 1;
    if (rank == 0)
        return 0;
    while (rank % (2 * reach) == 0)
        reach *= 2;
    const int end = rank + (int)reach < size ? rank + (int)reach : size;
    return winners_of(part_begin(end, size) - low, q->desc.k) * (int64_t)(8 + q->item);
}

static void ask(world_rank *rank)
{
    question *q = rank->user;
    const int me = sti_comm_rank(rank->comm), size = sti_comm_size(rank->comm);
    const int64_t begin = part_begin(me, size);
    int64_t index[MOST], count = -1;
    char values[MOST * 4];
    stint_topk_desc desc = q->desc;
    desc.n = part_begin(me + 1, size) - begin;
    desc.index_base = begin;
    desc.threads = 1 + me % 2;
    /* What the agreements, the counts and the broadcast send is their own affair: the
     * same without any winner. */
    stint_topk_desc none = desc;
    none.k = 0;
    sti_comm_counts before = sti_comm_count(rank->comm);
    RANK_CHECK(rank,
               q->status != STINT_OK || sti_topk_ranks(rank->comm, &none, q->x, index,
                                                       values, &count) == STINT_OK);
    RANK_CHECK(rank, q->status != STINT_OK || count == 0);
    sti_comm_counts between = sti_comm_count(rank->comm);
    const stint_status status = sti_topk_ranks(
        rank->comm, &desc, q->x + (size_t)begin * q->item, index, values, &count);
    sti_comm_counts after = sti_comm_count(rank->comm);
    RANK_CHECK(rank, status == q->status);
    if (status != STINT_OK)
        return;
    const int64_t want = winners_of(N, q->desc.k);
    RANK_CHECK(rank, count == want);
    RANK_CHECK(rank, memcmp(index, q->index, (size_t)want * 8) == 0);
    RANK_CHECK(rank, memcmp(values, q->values, (size_t)want * q->item) == 0);
    const int64_t told = want * (int64_t)(8 + q->item); /* down, a child */
    int64_t more = (after.bytes_sent - between.bytes_sent) -
                   (between.bytes_sent - before.bytes_sent) - bytes_up(q, me, size);
    RANK_CHECK(rank, more >= 0 && (told == 0 || more % told == 0));
    RANK_CHECK(rank, size > 1 || more == 0);
}

static void ask_all(question *q)
{
    static const int sizes[] = {1, 2, 3, 5, 8};
    static world_rank ranks[WORLD_MAX];
    for (int i = 0; i < 5; i++)
        world_run_local(ranks, sizes[i], ask, q);
    world_run_tcp(ranks, 3, ask, q);
}

static void answer_alone(question *q)
{
    size_t bytes = 0;
    stint_topk_desc desc = q->desc;
    desc.n = N;
    assert_int_equal(stint_topk_workspace_bytes(&desc, &bytes), STINT_OK);
    void *workspace = malloc(bytes + 1);
    assert_non_null(workspace);
    q->status = stint_topk(&desc, q->x, NULL, q->index, q->values, workspace, bytes);
    free(workspace);
}

static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void equals_one_process(void **state)
{
    static float x[N];
    static int8_t bytes[N];
    static const int64_t counts[] = {0, 1, 37, MOST};
    uint32_t seed = 9;
    (void)state;
    for (int i = 0; i < N; i++) { /* many ties */
        x[i] = (float)(draw(&seed) % 500) - 250.0F;
        bytes[i] = (int8_t)(draw(&seed) % 256 - 128);
    }
    for (int k = 0; k < 4; k++)
        for (int way = 0; way < 4; way++) {
            static question q;
            memset(&q, 0, sizeof q);
            q.desc =
                (stint_topk_desc){.k = counts[k],
                                  .key = way == 3 ? STINT_TOPK_ABS : STINT_TOPK_MAX,
                                  .type = way == 1 ? STINT_TOPK_I8 : STINT_TOPK_F32,
                                  .sorted = way != 2};
            q.x = way == 1 ? (const char *)bytes : (const char *)x;
            q.item = way == 1 ? 1 : sizeof(float);
            answer_alone(&q);
            assert_int_equal(q.status, STINT_OK);
            ask_all(&q);
        }
}

static void a_nan_fails_everywhere(void **state)
{
    static float x[N];
    static question q;
    (void)state;
    x[N - 3] = 0.0F / x[0];
    q.desc = (stint_topk_desc){.k = 5};
    q.x = (const char *)x;
    q.item = sizeof(float);
    q.status = STINT_E_INPUT;
    ask_all(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_one_process),
        cmocka_unit_test(a_nan_fails_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
