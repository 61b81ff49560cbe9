#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "embed/row_store_priv.h"

static char *stage_of(const sti_row_store *s, int64_t i)
{
    return s->stage + i * (int64_t)s->desc.layout.page_bytes;
}

/* The pages in store->page [count], to or from the stage. */
static stint_status move(sti_row_store *s, int64_t count, bool write)
{
    const size_t bytes = s->desc.layout.page_bytes;
    for (int64_t i = 0; i < count; i++)
        s->op[i] = (sti_async_op){.write = write,
                                  .offset = s->page[i] * (int64_t)bytes,
                                  .bytes = bytes,
                                  .buffer = stage_of(s, i)};
    if (write)
        s->counts.pages_written += count;
    else
        s->counts.pages_read += count;
    return sti_async_run(s->io, &s->file, s->op, count);
}

static stint_status damaged(const sti_row_store *s, int64_t page)
{
    return sti_fail(STINT_E_INPUT,
                    "%s: page %" PRId64 " (bytes %" PRId64
                    " and on) is damaged: its checksum is wrong",
                    s->file.path, page, page * (int64_t)s->desc.layout.page_bytes);
}

/* Read the pages in store->page; fresh[i]: it was never written. */
static stint_status read_pages(sti_row_store *s, int64_t count, bool *fresh)
{
    stint_status st = move(s, count, false);
    for (int64_t i = 0; i < count && st == STINT_OK; i++) {
        const sti_page_state state =
            sti_page_check(s->desc.layout.page_bytes, s->page[i], stage_of(s, i));
        fresh[i] = state == STI_PAGE_FRESH;
        if (state == STI_PAGE_BROKEN)
            st = damaged(s, s->page[i]);
    }
    return st;
}

/* Pages of the places from `first` on into store->page, as many as the stage holds;
 * *end_out: the first place of a page that has no room. Returns the pages. */
static int64_t choose_pages(sti_row_store *s, const sti_cache_place *places,
                            int64_t first, int64_t count, int64_t *end_out)
{
    int64_t n = 0, i = first;
    for (; i < count; i++) {
        const int64_t page = sti_row_page(&s->desc.layout, places[i].rank);
        if (n > 0 && s->page[n - 1] == page)
            continue;
        if (n == STI_ROW_STAGE)
            break;
        s->page[n++] = page;
    }
    *end_out = i;
    return n;
}

/* Old bytes of the pages on the stage, as they were at the checkpoint, if they are not
 * in the journal. Before the first checkpoint there is nothing to go back to. */
static stint_status keep_old(sti_row_store *s, int64_t pages)
{
    stint_status st = STINT_OK;
    if (s->journal.generation == 0)
        return STINT_OK;
    for (int64_t k = 0; k < pages && st == STINT_OK; k++)
        if (!sti_row_journal_holds(&s->journal, s->page[k]))
            st = sti_row_journal_add(&s->journal, s->page[k], stage_of(s, k));
    return st;
}

/* The pages on the stage are about to be overwritten. */
static stint_status sync_old(sti_row_store *s, int64_t pages)
{
    for (int64_t k = 0; k < pages && s->journal.generation > 0; k++)
        if (sti_row_journal_is_fresh(&s->journal, s->page[k]))
            return sti_row_journal_sync(&s->journal);
    return STINT_OK;
}

static void take_records(sti_row_store *s, const sti_cache_place *places, int64_t first,
                         int64_t end, const bool *fresh)
{
    const sti_row_layout *l = &s->desc.layout;
    for (int64_t i = first, k = 0; i < end; i++) {
        char *to = sti_row_record(s, places[i].slot);
        while (s->page[k] != sti_row_page(l, places[i].rank))
            k++;
        if (fresh[k])
            sti_row_make(l, places[i].rank, to);
        else
            memcpy(to, stage_of(s, k) + sti_row_offset(l, places[i].rank),
                   (size_t)l->record_bytes);
    }
}

stint_status sti_row_pages_read(sti_row_store *s, const sti_cache_place *places,
                                int64_t count)
{
    bool fresh[STI_ROW_STAGE];
    stint_status st = STINT_OK;
    for (int64_t first = 0, end; first < count && st == STINT_OK; first = end) {
        const int64_t pages = choose_pages(s, places, first, count, &end);
        st = read_pages(s, pages, fresh);
        if (st == STINT_OK && s->course.trained) /* it will be overwritten one day */
            st = keep_old(s, pages);
        if (st == STINT_OK)
            take_records(s, places, first, end, fresh);
    }
    return st;
}

/* ---- writing ---- */

/* Dirty rows of the cache that lie in this page and that no batch uses. */
static void add_neighbours(sti_row_store *s, int64_t k)
{
    const sti_row_layout *l = &s->desc.layout;
    sti_cache_index *c = &s->flow.index;
    const int64_t first = (s->page[k] - 1) * l->per_page;
    for (int64_t r = first; r < first + l->per_page && r < l->rows; r++) {
        const uint32_t slot = r < s->hot || s->slots == 0
                                  ? STI_CACHE_NONE
                                  : sti_cache_index_find(c, (uint32_t)r);
        if (slot == STI_CACHE_NONE || !c->dirty[slot - s->hot] ||
            c->pins[slot - s->hot])
            continue;
        memcpy(stage_of(s, k) + sti_row_offset(l, (uint32_t)r), sti_row_record(s, slot),
               (size_t)l->record_bytes);
        c->dirty[slot - s->hot] = 0;
    }
}

static void put_records(sti_row_store *s, const sti_cache_place *places, int64_t first,
                        int64_t end)
{
    const sti_row_layout *l = &s->desc.layout;
    for (int64_t i = first, k = 0; i < end; i++) {
        while (s->page[k] != sti_row_page(l, places[i].rank))
            k++;
        memcpy(stage_of(s, k) + sti_row_offset(l, places[i].rank),
               sti_row_record(s, places[i].slot), (size_t)l->record_bytes);
    }
}

static stint_status write_pages(sti_row_store *s, const sti_cache_place *places,
                                int64_t first, int64_t end, int64_t pages)
{
    const sti_row_layout *l = &s->desc.layout;
    bool fresh[STI_ROW_STAGE];
    stint_status st;
    STI_TRY(read_pages(s, pages, fresh));
    STI_TRY(keep_old(s, pages));
    STI_TRY(sync_old(s, pages));
    for (int64_t k = 0; k < pages; k++) {
        if (fresh[k])
            sti_row_make_page(l, s->page[k], stage_of(s, k));
        add_neighbours(s, k);
    }
    put_records(s, places, first, end);
    for (int64_t k = 0; k < pages; k++)
        sti_page_seal(l->page_bytes, s->page[k], stage_of(s, k));
    STI_TRY(move(s, pages, true));
out:
    return st;
}

stint_status sti_row_pages_write(sti_row_store *s, const sti_cache_place *places,
                                 int64_t count)
{
    stint_status st = STINT_OK;
    for (int64_t first = 0, end; first < count && st == STINT_OK; first = end) {
        const int64_t pages = choose_pages(s, places, first, count, &end);
        st = write_pages(s, places, first, end, pages);
    }
    return st;
}

/* ---- whole pages ---- */

stint_status sti_row_pages_look(sti_row_store *s, int64_t first, int64_t count)
{
    bool fresh[STI_ROW_STAGE];
    for (int64_t i = 0; i < count; i++)
        s->page[i] = first + i;
    const stint_status st = read_pages(s, count, fresh);
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        if (fresh[i])
            sti_row_make_page(&s->desc.layout, first + i, stage_of(s, i));
    return st;
}

stint_status sti_row_store_take(sti_row_store *s, int64_t first, int64_t count,
                                void *records_out)
{
    const sti_row_layout *l = &s->desc.layout;
    char *out = records_out;
    stint_status st = STINT_OK;
    for (int64_t r = first, end = first + count; r < end && st == STINT_OK;) {
        const int64_t page = sti_row_page(l, (uint32_t)r);
        int64_t pages = sti_row_page(l, (uint32_t)(end - 1)) + 1 - page;
        pages = pages < STI_ROW_STAGE ? pages : STI_ROW_STAGE;
        st = sti_row_pages_look(s, page, pages);
        for (; r < end && sti_row_page(l, (uint32_t)r) < page + pages; r++) {
            const char *from = stage_of(s, sti_row_page(l, (uint32_t)r) - page);
            memcpy(out, from + sti_row_offset(l, (uint32_t)r), (size_t)l->record_bytes);
            out += l->record_bytes;
        }
    }
    return st;
}

/* The pages of the stage, of which `last` is the last that there is so far. */
static stint_status put_pages(sti_row_store *s, int64_t last)
{
    const int64_t count = (last - 1) % STI_ROW_STAGE + 1;
    for (int64_t k = 0; k < count; k++) {
        s->page[k] = last - count + 1 + k;
        sti_page_seal(s->desc.layout.page_bytes, s->page[k], stage_of(s, k));
    }
    return move(s, count, true);
}

stint_status sti_row_store_put(sti_row_store *s, int64_t first, int64_t count,
                               const void *records)
{
    const sti_row_layout *l = &s->desc.layout;
    const char *from = records;
    stint_status st = STINT_OK;
    for (int64_t r = first; r < first + count && st == STINT_OK; r++) {
        const int64_t page = sti_row_page(l, (uint32_t)r);
        char *to = stage_of(s, (page - 1) % STI_ROW_STAGE);
        if (r % l->per_page == 0)
            memset(to, 0, l->page_bytes);
        memcpy(to + sti_row_offset(l, (uint32_t)r), from, (size_t)l->record_bytes);
        from += l->record_bytes;
        const bool whole = (r + 1) % l->per_page == 0 || r + 1 == l->rows;
        if (whole && (page % STI_ROW_STAGE == 0 || r + 1 == l->rows))
            st = put_pages(s, page);
        if (r + 1 == l->rows && st == STINT_OK)
            st = sti_paged_file_sync(&s->file);
    }
    return st;
}

stint_status sti_row_pages_undo(void *user, int64_t page, const void *bytes)
{
    sti_row_store *s = user;
    memcpy(stage_of(s, 0), bytes, s->desc.layout.page_bytes);
    s->page[0] = page;
    return move(s, 1, true);
}

/* A line for each thing that must agree. */
static stint_status add_head(const sti_row_store *s, sti_text *text)
{
    const sti_row_layout *l = &s->desc.layout;
    sti_text_add(text, "stint rows 1\n");
    if (l->stride > 1)
        sti_text_printf(text, "part %" PRId64 " of %" PRId64 "\n", l->first, l->stride);
    sti_text_printf(text,
                    "rows %" PRId64 "\nwidth %" PRId64 "\noptimiser state %" PRId64
                    "\nseed %" PRIu64 "\nscale %.9g\n%s\n",
                    l->rows, l->width, l->state, l->seed, (double)l->scale,
                    s->identity);
    if (text->failed || text->length > sti_page_payload(l->page_bytes))
        return sti_fail(STINT_E_MEMORY, "%s: the head of the table is too long",
                        s->file.path);
    return STINT_OK;
}

/* The first line that differs. */
static stint_status differs(const sti_row_store *s, const char *have, const char *want)
{
    while (*have && *want) {
        const size_t a = strcspn(have, "\n"), b = strcspn(want, "\n");
        if (a != b || strncmp(have, want, a) != 0)
            return sti_fail(STINT_E_INPUT,
                            "%s: is another table: '%.*s' there, '%.*s' wanted",
                            s->file.path, (int)a, have, (int)b, want);
        have += a + (have[a] != '\0');
        want += b + (want[b] != '\0');
    }
    return STINT_OK;
}

stint_status sti_row_pages_head(sti_row_store *s, bool write)
{
    const size_t payload = sti_page_payload(s->desc.layout.page_bytes);
    bool fresh[1] = {false};
    sti_text text = {0};
    stint_status st;
    s->page[0] = 0;
    STI_TRY(add_head(s, &text));
    if (write) {
        memset(stage_of(s, 0), 0, s->desc.layout.page_bytes);
        memcpy(stage_of(s, 0), text.data, text.length);
        sti_page_seal(s->desc.layout.page_bytes, 0, stage_of(s, 0));
        STI_TRY(move(s, 1, true));
    } else {
        STI_TRY(read_pages(s, 1, fresh));
        stage_of(s, 0)[payload] = '\0'; /* into the tail, which was looked at */
        st = fresh[0] ? sti_fail(STINT_E_INPUT, "%s: has no head; it is no table",
                                 s->file.path)
                      : differs(s, stage_of(s, 0), text.data);
    }
out:
    sti_text_fini(&text);
    return st;
}
