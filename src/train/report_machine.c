/* The recipe of a run, and the machine that ran it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/units.h"
#include "train/report_priv.h"

/* A fact printed by a format. */
static void add_fact(sti_text *out, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add_fact(sti_text *out, const char *name, const char *format, ...)
{
    char value[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(value, sizeof value, format, args);
    va_end(args);
    sti_page_fact(out, name, value);
}

static void add_machine(const sti_report_run *run, sti_text *out)
{
    const char *why = run->threads_why;
    const char *train = sti_count_text(run->train_count);
    const char *test = sti_count_text(run->test_count);
    sti_page_facts_begin(out);
    sti_page_fact(out, "CPU", run->cpu);
    sti_page_fact(out, "instructions", run->isa);
    add_fact(out, "threads", "%" PRId64 "%s%s%s", run->threads, why ? " (" : "",
             why ? why : "", why ? ")" : "");
    add_fact(out, "batch", "%" PRId64 " in %" PRId64 " shard%s, %" PRId64 " at a time",
             run->batch, run->shards, sti_s(run->shards), run->lanes);
    sti_page_fact(out, "gradients between processes", run->net_why);
    if (run->context)
        add_fact(out, "sequences", "%s training, %s test, %" PRId64 " tokens each",
                 train, test, run->context);
    else if (run->coordinates)
        add_fact(out, "points", "%s of %" PRId64 " coordinate%s", train,
                 run->coordinates, sti_s(run->coordinates));
    else
        add_fact(out, "images",
                 "%s training, %s test, %" PRId64 " x %" PRId64 " x %" PRId64, train,
                 test, run->width, run->height, run->channels);
    sti_page_fact(out, "data", run->data);
    sti_page_fact(out, "weights SHA-256", run->sha256);
    sti_page_fact(out, "stint", run->version);
    sti_page_facts_end(out);
}

stint_status sti_report_add_machine(const sti_report_run *run, sti_page_file *page)
{
    sti_text *out = &page->text;
    sti_page_section(out, "Recipe and machine");
    sti_page_columns_begin(out);
    if (run->recipe)
        sti_page_preformatted(out, run->recipe);
    add_machine(run, out);
    sti_page_columns_end(out);
    sti_page_section_end(out);
    return STINT_OK;
}
