/* LIBSVM text by several threads: stretches of whole lines, each into its part of the
 * table's arrays, which then close up. Labels follow by one thread, since words get
 * their numbers in the order in which they come up. Short texts go the one way. */
#include <string.h>

#include "base/team.h"
#include "data/table_priv.h"

/* Text that is worth it, and of a stretch. */
enum { LEAST_BYTES = 1 << 20, STRETCH_BYTES = 1 << 18, STRETCHES_MOST = 1024 };

typedef struct stretch {
    sti_table_text text;
    sti_table_counts counts;
    sti_table part; /* its rows, in arrays of the whole table */
    bool done;
} stretch;

typedef struct work {
    stretch *stretches;
    int64_t count;
    sti_libsvm_labels labels;
    unsigned mode; /* of floats, in which denormals are numbers */
} work;

/* Stretches that end with a line each. */
static void cut(const sti_table_text *text, work *w)
{
    const char *at = text->at;
    const int64_t bytes = text->end - at;
    for (int64_t i = 0; i < w->count; i++) {
        const char *end = text->at + bytes / w->count * (i + 1);
        end = end < at ? at : end;
        const char *newline = memchr(end, '\n', (size_t)(text->end - end));
        end = i + 1 == w->count || !newline ? text->end : newline + 1;
        w->stretches[i].text = (sti_table_text){text->name, at, end, 0};
        at = end;
    }
}

static void count_piece(void *arg, int64_t piece, int worker)
{
    stretch *s = &((const work *)arg)->stretches[piece];
    (void)worker;
    s->counts = sti_table_count_libsvm(s->text.at, s->text.end);
}

/* Where every stretch's part begins; it has two more starts than rows at most. */
static void place(work *w, sti_table *table)
{
    int64_t rows = 0, entries = 0;
    for (int64_t i = 0; i < w->count; i++) {
        stretch *s = &w->stretches[i];
        s->part = (sti_table){.x = {.start = table->x.start + rows,
                                    .column = table->x.column + entries,
                                    .value = table->x.value + entries},
                              .first = 1};
        rows += s->counts.rows + 2;
        entries += s->counts.entries;
    }
}

static void parse_piece(void *arg, int64_t piece, int worker)
{
    const work *w = arg;
    stretch *s = &w->stretches[piece];
    (void)worker;
    sti_float_mode_leave(w->mode);
    s->done = sti_libsvm_rows(&s->text, w->labels, &s->part) == STINT_OK;
    (void)sti_float_mode_enter(); /* as pieces of a team are left */
}

/* The parts behind one another. A part only ever moves down. */
static bool close_up(const work *w, sti_table *table)
{
    sti_csr *x = &table->x;
    int64_t entries = 0;
    for (int64_t i = 0; i < w->count; i++) {
        const stretch *s = &w->stretches[i];
        const sti_csr *part = &s->part.x;
        if (!s->done)
            return false;
        const int64_t count = part->start[part->rows];
        memmove(x->column + entries, part->column, sizeof *x->column * (size_t)count);
        memmove(x->value + entries, part->value, sizeof *x->value * (size_t)count);
        for (int64_t r = 0; r < part->rows; r++)
            x->start[x->rows + r + 1] = entries + part->start[r + 1];
        x->rows += part->rows;
        entries += count;
        x->columns = part->columns > x->columns ? part->columns : x->columns;
        table->first = s->part.first < table->first ? s->part.first : table->first;
    }
    x->start[0] = 0;
    x->start[x->rows + 1] = entries;
    return true;
}

static sti_table_counts sum_of(const work *w)
{
    sti_table_counts all = {0};
    for (int64_t i = 0; i < w->count; i++) {
        all.rows += w->stretches[i].counts.rows;
        all.entries += w->stretches[i].counts.entries;
    }
    return all;
}

static bool parse_all(const sti_table_text *text, const sti_team *team, work *w,
                      sti_libsvm_labels labels, sti_table *table)
{
    const bool labelled = labels != STI_LIBSVM_NO_LABELS;
    cut(text, w);
    sti_team_take(team, w->count, count_piece, w);
    const sti_table_counts all = sum_of(w);
    const sti_table_counts room = {all.rows + 2 * w->count, all.entries};
    if (sti_table_reserve(table, &room, labelled) != STINT_OK)
        return false;
    table->bytes = sti_table_counts_bytes(&all); /* as one thread has it */
    place(w, table);
    w->labels = labelled ? STI_LIBSVM_PASSED_OVER : labels;
    const unsigned flushed = sti_float_mode_enter();
    sti_float_mode_leave(flushed);
    w->mode = flushed;
    sti_team_take(team, w->count, parse_piece, w);
    if (!close_up(w, table))
        return false;
    sti_table_text again = *text;
    return !labelled || sti_libsvm_labels_read(&again, labels == STI_LIBSVM_WORDS,
                                               table) == STINT_OK;
}

/* From an empty table; false, and the table is empty again: the text is short, memory
 * is, or something is wrong with the text, which the one way names best. */
static bool parse_side_by_side(const sti_table_text *text, int threads,
                               sti_libsvm_labels labels, sti_table *table)
{
    const int64_t bytes = text->end - text->at, pieces = bytes / STRETCH_BYTES;
    if (threads < 2 || bytes < LEAST_BYTES)
        return false;
    work w = {.count = pieces < STRETCHES_MOST ? pieces : STRETCHES_MOST};
    const sti_table empty = *table;
    const sti_team team = {threads};
    w.stretches = sti_alloc_array(w.count, sizeof *w.stretches, "table.stretches");
    const bool done = w.stretches && parse_all(text, &team, &w, labels, table);
    sti_free(w.stretches);
    if (!done) {
        sti_table_fini(table);
        *table = empty;
    }
    return done;
}

stint_status sti_table_parse_libsvm(sti_table_text *text, int threads, sti_table *table)
{
    sti_libsvm_labels labels;
    stint_status st = sti_libsvm_look_at_labels(text, &labels);
    if (st != STINT_OK)
        return st;
    if (!parse_side_by_side(text, threads, labels, table)) {
        const sti_table_counts counts = sti_table_count_libsvm(text->at, text->end);
        st = sti_table_reserve(table, &counts, labels != STI_LIBSVM_NO_LABELS);
        if (st == STINT_OK)
            st = sti_libsvm_rows(text, labels, table);
    }
    if (table->x.columns < table->first) /* no feature at all */
        table->x.columns = table->first;
    if (st == STINT_OK && table->first == 0)
        sti_log(STINT_LOG_WARNING,
                "%s: indices count from 0; LIBSVM's own files begin with 1",
                text->name);
    return st;
}
