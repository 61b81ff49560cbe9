/* Ranks that end with other weights than rank 0: all leave with a failure that names
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "net/comm_world.h"
#include "train/run.h"

enum { RANKS = 3 };

/* `user`: the rank whose weights have gone another way; -1: none. */
static void end(world_rank *rank)
{
    const int *other = rank->user;
    sti_run run = {.comm = rank->comm};
    stint_train_result result = {0};
    memset(result.weights_sha256, 'a', 64);
    if (sti_comm_rank(rank->comm) == *other)
        result.weights_sha256[63] = 'b';
    rank->status = sti_run_share_end(&run, &result);
    RANK_CHECK(rank, result.ranks == (*other < 0 ? RANKS : 1));
    RANK_CHECK(rank, run.common == (*other >= 0));
}

static void alike(void **state)
{
    (void)state;
    world_rank ranks[RANKS];
    int other = -1;
    for (int w = 0; w < WORLDS; w++) {
        worlds[w](ranks, RANKS, end, &other);
        for (int r = 0; r < RANKS; r++)
            assert_int_equal(ranks[r].status, STINT_OK);
    }
}

static void one_differs(void **state)
{
    (void)state;
    world_rank ranks[RANKS];
    for (int other = 1; other < RANKS; other++) {
        char name[32];
        snprintf(name, sizeof name, "rank %d (", other);
        world_run_local(ranks, RANKS, end, &other);
        for (int r = 0; r < RANKS; r++) {
            assert_int_equal(ranks[r].status, STINT_E_BUG);
            assert_non_null(strstr(ranks[r].text, name));
            assert_non_null(strstr(ranks[r].text, "other weights than rank 0"));
        }
    }
}

/* When it is rank 0 that went wrong, nobody can tell: the others are named. */
static void first_differs(void **state)
{
    (void)state;
    world_rank ranks[RANKS];
    int other = 0;
    world_run_local(ranks, RANKS, end, &other);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(ranks[r].status, STINT_E_BUG);
        assert_non_null(strstr(ranks[r].text, "rank 1 ("));
    }
}

static void count_warning(void *user, stint_log_level level, const char *text)
{
    if (level == STINT_LOG_WARNING && strstr(text, "ranks 2 and 3") &&
        strstr(text, "host 0 and host 1"))
        ++*(int *)user;
}

/* Ten ranks on hosts of three. */
static void neighbours(void **state)
{
    (void)state;
    sti_comm *comm;
    sti_exchange_desc desc = {.lossy = true,
                              .allreduce = {.scheme = STI_SCHEME_TWO_LEVEL}};
    assert_int_equal(sti_comm_create_planned(10, 3, &comm), STINT_OK);
    for (int group = 1; group <= 3; group++) {
        int warnings = 0;
        stint_set_log(count_warning, &warnings);
        desc.allreduce.group = group;
        sti_exchange_check_hosts(&desc, comm);
        assert_int_equal(warnings, group == 2);
    }
    stint_set_log(NULL, NULL);
    sti_comm_destroy(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alike), cmocka_unit_test(one_differs),
        cmocka_unit_test(first_differs), cmocka_unit_test(neighbours)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
