/* batch = auto in a process that grows meanwhile: what it chose for itself always fits.
 */
#include "base/memory.h"
#include "train/optimizer_section.h"
#include "train/run_section.h"
#include "train/train_section.h"
#include "train_support.h"

#include <math.h>

enum { GROWTH = 1 << 20, BLOCK = 1000 };

static int growths; /* how many are still to come */
static bool stop_when_trying;
static double last_rate; /* that goes with the batch chosen last */

/* The host takes memory of its own when the batch has been chosen, before the run is
 * planned. */
static void host_log(void *user, stint_log_level level, const char *text)
{
    (void)user, (void)level;
    const char *rate = strstr(text, "learning rate ");
    if (rate)
        last_rate = strtod(rate + 14, NULL);
    if (strncmp(text, "batch auto:", 11) == 0 && growths > 0) {
        growths--;
        for (int i = 0; i < GROWTH / BLOCK; i++)
            memset(malloc(BLOCK), 1, BLOCK); /* for good */
    }
    if (strncmp(text, "batch ", 6) == 0 && stop_when_trying)
        stint_stop(STINT_E_INTERRUPTED);
}

static int set_up(void **state)
{
    stint_set_log(host_log, NULL);
    return set_up_images(state);
}

/* A budget that just holds 18 images, the most there may be (150 / 8). */
static size_t tight_budget(void)
{
    stint_plan_result plan;
    stint_recipe *r =
        make_recipe("plan", "model.name", "resnet8", "train.batch", "18",
                    "train.shards", "1", "run.threads", "1", "error.tau", "0", NULL);
    assert_int_equal(stint_plan(r, NULL, &plan), STINT_OK);
    const size_t bytes = plan.smallest_bytes;
    stint_plan_fini(&plan);
    stint_recipe_destroy(r);
    return bytes + (512 << 10);
}

static stint_recipe *auto_recipe(const char *name, size_t budget)
{
    char memory[32];
    snprintf(memory, sizeof memory, "%zu", budget);
    return make_recipe(name, "model.name", "resnet8", "train.batch", "auto",
                       "train.shards", "1", "run.threads", "1", "run.memory", memory,
                       "error.tau", "0", "optimizer.lr", "0.128", "train.steps", "1",
                       NULL);
}

static void test_falls_to_what_fits(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
    stint_plan_result before, after;
    const size_t budget = tight_budget();
    stint_recipe *r = auto_recipe("a", budget);
    growths = 0;
    assert_int_equal(stint_plan(r, NULL, &before), STINT_OK);
    assert_true(before.fits);
    growths = 1;
    assert_int_equal(stint_plan(r, NULL, &after), STINT_OK);
    printf("%d images, %d when the process has grown; %zu of %zu bytes\n",
           (int)before.batch, (int)after.batch, after.peak_bytes, budget);
    assert_int_equal(growths, 0);
    assert_true(after.fits && after.peak_bytes <= budget);
    assert_in_range(after.batch, 1, before.batch - 1);
    /* 0.128 is for 128 images; applied once, however often a batch was chosen */
    assert_true(fabs(last_rate - 0.001 * (double)after.batch) < 1e-9);
    stint_plan_fini(&before);
    stint_plan_fini(&after);
    stint_recipe_destroy(r);
}

static void test_run_of_grown_process_begins(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
    stint_train_result result;
    const size_t budget = tight_budget();
    stint_recipe *r = auto_recipe("b", budget), *then = NULL;
    growths = 2;
    assert_int_equal(stint_train(r, &(stint_train_desc){.force = true}, &result),
                     STINT_OK);
    assert_true(result.planned_peak_bytes <= budget);
    stint_recipe_destroy(r);
    char path[1200];
    snprintf(path, sizeof path, "%s/recipe.ini", result.out);
    assert_int_equal(stint_recipe_load(path, &then), STINT_OK);
    assert_int_equal(sti_train_section_of(then)->batch, result.batch);
    assert_true(
        fabs(sti_optimizer_section_of(then)->lr - 0.001 * (double)result.batch) < 1e-9);
    assert_true(sti_run_section_of(then)->memory_bytes < budget);
    stint_recipe_destroy(then);
    growths = 0;
}

static void test_stops_while_trying(void **state)
{
    (void)state;
    stint_train_result result;
    stint_recipe *r = auto_recipe("c", 256 << 20);
    stop_when_trying = true;
    assert_int_equal(stint_train(r, &(stint_train_desc){.force = true}, &result),
                     STINT_E_INTERRUPTED);
    stop_when_trying = false;
    assert_non_null(strstr(stint_last_error(), "trying batches"));
    assert_int_equal(access(in_folder("c/recipe.ini"), F_OK), -1);
    stint_recipe_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_falls_to_what_fits),
        cmocka_unit_test(test_run_of_grown_process_begins),
        cmocka_unit_test(test_stops_while_trying),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
