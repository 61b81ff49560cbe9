/* report.html: its head, the sections of report_list.h, its foot. The page is one file
 * without scripts or outside parts; everything that comes from data is escaped. */
#include "train/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/units.h"
#include "train/report_priv.h"

/* ---- head and foot ---- */

static bool finished(const sti_report_run *run)
{
    return run->status && strcmp(run->status, "ok") == 0;
}

/* "resnet8 on cifar10". */
static void add_name(const sti_report_run *run, sti_text *out)
{
    sti_text_add(out, run->network ? run->network : "a run");
    if (run->data && *sti_path_name(run->data)) {
        sti_text_add(out, " on ");
        sti_text_add(out, sti_path_name(run->data));
    }
}

static void add_state(const sti_report_run *run, sti_text *out)
{
    if (finished(run)) {
        sti_text_add(out, "<span class=\"state ok\">finished</span>");
        return;
    }
    sti_text_add(out, "<span class=\"state not\">");
    sti_text_add_html(out, run->status ? run->status : "not finished");
    sti_text_add(out, "</span>");
}

static void add_date(const sti_report_run *run, sti_text *out)
{
    char date[64];
    struct tm parts;
    const time_t when = (time_t)run->time;
    if (run->time > 0 && gmtime_r(&when, &parts) &&
        strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &parts))
        sti_text_printf(out, "%s, ", date);
}

static void add_head(const sti_report_run *run, sti_text *out)
{
    sti_text name = {0}, lead = {0};
    add_name(run, &name);
    sti_page_begin(out, NULL, name.data ? name.data : "");
    add_state(run, &lead);
    add_date(run, &lead);
    sti_text_printf(&lead, "%s of %s step%s, seed %" PRId64,
                    sti_count_text(run->steps_done), sti_count_text(run->steps),
                    sti_s(run->steps), run->seed);
    if (run->resumes > 0)
        sti_text_printf(&lead, ", resumed %" PRId64 " time%s", run->resumes,
                        sti_s(run->resumes));
    sti_page_lead(out, lead.data ? lead.data : "");
    out->failed |= name.failed || lead.failed;
    sti_text_fini(&name);
    sti_text_fini(&lead);
}

static void add_foot(sti_text *out)
{
    char footer[256];
    (void)snprintf(footer, sizeof footer,
                   "Made by stint %s. The same recipe, data and seed give the same "
                   "weights on any number of threads.",
                   stint_version());
    sti_page_end(out, footer);
}

/* ---- the page ---- */

static sti_report_writer *const sections[] = {
#define STI_REPORT(name) sti_report_add_##name,
#include "train/report_list.h"
#undef STI_REPORT
};

static stint_status write_page(const sti_report_run *run, sti_page_file *page)
{
    stint_status status = STINT_OK;
    add_head(run, &page->text);
    for (size_t i = 0; i < sizeof sections / sizeof *sections && status == STINT_OK;
         i++) {
        status = sections[i](run, page);
        if (status == STINT_OK)
            status = sti_page_file_flush(page);
    }
    add_foot(&page->text);
    return status;
}

stint_status sti_report_write(const char *folder)
{
    return sti_report_write_of(folder, NULL);
}

stint_status sti_report_write_of(const char *folder, const stint_data *test)
{
    sti_report_run run;
    sti_page_file page;
    stint_status status = sti_report_read(folder, &run);
    run.test = test;
    if (status == STINT_OK) {
        const char *path = sti_path_join(run.arena, folder, "report.html");
        status = path ? sti_page_file_open(&page, path) : STINT_E_MEMORY;
        if (status == STINT_OK)
            status = sti_page_file_close(&page, write_page(&run, &page));
    }
    sti_report_run_fini(&run);
    return status;
}
