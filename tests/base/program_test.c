/* Which pages of program and libraries are resident is settled: the same in every run,
 * and as many as told. */
#include "base/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Resident and all kilobytes of what is mapped read-only from a file whose name begins
 * so (after its last slash). */
static void mapped(const char *name, size_t *resident_out, size_t *all_out)
{
    char line[4096];
    bool here = false;
    FILE *f = fopen("/proc/self/smaps", "re");
    *resident_out = *all_out = 0;
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        char mode[8] = "", path[3072] = "";
        size_t kib;
        if (sscanf(line, "%*x-%*x %7s %*s %*s %*s %3071[^\n]", mode, path) >= 1 &&
            strlen(mode) == 4 && strchr("rwxps-", mode[3])) {
            const char *slash = strrchr(path, '/');
            here = slash && strncmp(slash + 1, name, strlen(name)) == 0 &&
                   strchr(mode, 'w') == NULL;
        }
        if (here && sscanf(line, "Rss: %zu", &kib) == 1)
            *resident_out += kib;
        if (here && sscanf(line, "Size: %zu", &kib) == 1)
            *all_out += kib;
    }
    fclose(f);
}

static void code_in_use_is_resident(void **state)
{
    (void)state;
    static const char *const used[] = {"libm.", NULL};
    sti_program_pages pages = {0}, again = {0};
    size_t resident, all, own, own_all;
    sti_program_settle(used, &pages);
    sti_program_settle(used, &again);
    if (pages.code_bytes == 0)
        skip(); /* nothing of the kind is known on this system */
    assert_int_equal(again.code_bytes, pages.code_bytes);
    assert_int_equal(again.data_bytes, pages.data_bytes);
    assert_true(pages.data_bytes > 0);
    mapped("libm.", &resident, &all);
    assert_int_equal(resident, all);
    mapped("program_test", &own, &own_all);
    assert_true(own > 0);
    assert_true(pages.code_bytes >> 10 <= all + own_all);
}

static void code_not_in_use_is_given_back(void **state)
{
    (void)state;
    static const char *const all_used[] = {"lib", NULL}, *const none[] = {NULL};
    sti_program_pages pages = {0};
    size_t before, after, all;
    sti_program_settle(all_used, &pages);
    if (pages.code_bytes == 0)
        skip();
    mapped("libcmocka", &before, &all);
    assert_int_equal(before, all);
    sti_program_settle(none, &pages);
    mapped("libcmocka", &after, &all);
    assert_true(after < before); /* and what is wanted comes again, as we see here */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_in_use_is_resident),
        cmocka_unit_test(code_not_in_use_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
