/* Images held out of a split: both parts together are the split, each class gives its
 * share, and names and pixels stay those of the files. */
#include "data/data_fixture.h"

static stint_data *open_part(const char *folder, double share, bool held_out)
{
    const stint_data_desc desc = {
        .path = folder, .hold_out = share, .held_out = held_out};
    stint_data *data = NULL;
    if (stint_data_open(&desc, &data) != STINT_OK)
        fail_msg("%s", stint_last_error());
    return data;
}

static void parts_are_the_whole(void **state)
{
    static const double shares[] = {0.1, 0.2, 0.34, 0.5, 0.9};
    const char *folder = fixture_folder("parts", 20);
    (void)state;
    stint_data *all = open_part(folder, 0, false);
    const stint_data_info *info = stint_data_describe(all);
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        stint_data *part[2] = {open_part(folder, shares[s], false),
                               open_part(folder, shares[s], true)};
        int64_t at[2] = {0, 0}, of_class[8] = {0};
        for (int64_t i = 0; i < info->count; i++) {
            char name[300], other[300];
            int found = 0;
            sti_data_sample_name(all, i, name, sizeof name);
            for (int p = 0; p < 2; p++) {
                if (at[p] >= stint_data_describe(part[p])->count)
                    continue;
                sti_data_sample_name(part[p], at[p], other, sizeof other);
                if (strcmp(name, other) != 0)
                    continue;
                assert_int_equal(sti_data_label(part[p], at[p]),
                                 sti_data_label(all, i));
                of_class[sti_data_label(all, i)] += p;
                at[p]++;
                found++;
            }
            assert_int_equal(found, 1);
        }
        for (int p = 0; p < 2; p++) {
            assert_int_equal(at[p], stint_data_describe(part[p])->count);
            assert_int_equal(stint_data_describe(part[p])->classes, info->classes);
            stint_data_close(part[p]);
        }
        for (int32_t c = 0; c < info->classes; c++)
            assert_int_equal(of_class[c], (int64_t)(20 * shares[s]));
    }
    stint_data_close(all);
}

static void bad_shares_are_refused(void **state)
{
    const char *folder = fixture_folder("bad", 4);
    stint_data *data = NULL;
    (void)state;
    assert_int_equal(
        stint_data_open(&(stint_data_desc){.path = folder, .hold_out = 1}, &data),
        STINT_E_USAGE);
    assert_int_equal(
        stint_data_open(&(stint_data_desc){.path = folder, .hold_out = -0.1}, &data),
        STINT_E_USAGE);
    assert_int_equal(
        stint_data_open(
            &(stint_data_desc){.path = folder, .hold_out = 0.1, .held_out = true},
            &data),
        STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "no image is left of 12"));
    assert_null(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_the_whole),
        cmocka_unit_test(bad_shares_are_refused),
    };
    return cmocka_run_group_tests_name("data hold out", tests, fixture_begin,
                                       fixture_end);
}
