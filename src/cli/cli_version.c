/* What --version says: enough for a bug report in one paste. */
#include "base/cpu.h"
#include "base/numerics.h"
#include "base/team.h"
#include "cli/cli.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static const struct {
    const char *name, *gives;
    bool present;
} optional_parts[] = {
#ifdef STINT_HAVE_FREETYPE
    {"freetype", "stint data glyphs", true},
#else
    {"freetype", "stint data glyphs", false},
#endif
#ifdef STINT_HAVE_CURL
    {"curl", "stint data get", true},
#else
    {"curl", "stint data get", false},
#endif
#ifdef STINT_HAVE_WEBP
    {"webp", "images of that kind", true},
#else
    {"webp", "images of that kind", false},
#endif
};
enum { PART_COUNT = sizeof optional_parts / sizeof optional_parts[0] };

static void version_json(int threads, const char *why, sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "version", stint_version());
    sti_json_text(&j, "numerics", STI_NUMERICS_VERSION);
    sti_json_text(&j, "compiler", COMPILER);
    sti_json_text(&j, "cpu", sti_cpu_name());
    sti_json_text(&j, "isa", sti_isa_name(sti_isa_now()));
    sti_json_int(&j, "threads", threads);
    sti_json_text(&j, "threads_why", why);
    sti_json_begin_object(&j, "parts");
    for (int i = 0; i < PART_COUNT; i++)
        sti_json_bool(&j, optional_parts[i].name, optional_parts[i].present);
    sti_json_end_object(&j);
    sti_json_end_object(&j);
    sti_text_add(out, "\n");
}

void sti_cli_version(bool json, sti_text *out)
{
    int threads = 1;
    const char *why = "one";
    if (sti_threads_choose(0, &threads, &why) != STINT_OK)
        why = stint_last_error();
    if (json) {
        version_json(threads, why, out);
        return;
    }
    sti_text_printf(
        out, "stint %s\nnumerics: %s\ncompiler: %s\nCPU: %s\ninstruction set: %s\n",
        stint_version(), STI_NUMERICS_VERSION, COMPILER, sti_cpu_name(),
        sti_isa_name(sti_isa_now()));
    sti_text_printf(out, "threads: %d (%s)\n", threads, why);
    for (int i = 0; i < PART_COUNT; i++)
        sti_text_printf(out, "%s: %s (%s)\n", optional_parts[i].name,
                        optional_parts[i].present ? "yes" : "not built in",
                        optional_parts[i].gives);
}
