/* Lines of a Matrix Market file as triplets, many lines at once. */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/team.h"
#include "data/market_priv.h"

/* Some lines of a window. */
typedef struct piece {
    const char *at, *end;
    int64_t line, lines;  /* the number of the first one; how many */
    int64_t entry, count; /* likewise of those that hold an entry */
    stint_status status;  /* of the lowest line that failed */
} piece;

typedef struct window {
    const sti_market_head *head;
    sti_market_triplets *to;
    piece *pieces;
} window;

/* The end of a line that begins at `at`, and whether an entry stands on it. */
static const char *look_at_line(const char *at, const char *end, bool *entry_out)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    const char *stop = newline ? newline : end;
    const char *first = sti_market_skip(at, stop);
    *entry_out = first < stop && *first != '%';
    return stop;
}

static void count_piece(void *arg, int64_t number, int worker)
{
    piece *p = &((window *)arg)->pieces[number];
    bool entry;
    (void)worker;
    for (const char *at = p->at; at < p->end; p->lines++) {
        const char *stop = look_at_line(at, p->end, &entry);
        p->count += entry;
        at = stop + 1;
    }
}

/* ---- one line ---- */

static stint_status read_index(const sti_market_head *head, int64_t line,
                               const char **at, const char *end, const char *what,
                               int64_t most, int32_t *index_out)
{
    const char *from = sti_market_skip(*at, end);
    const char *stop = sti_market_word_end(from, end);
    int64_t index;
    if (!sti_digits_read(from, stop, INT64_MAX / 2, &index))
        return sti_market_fault(head->name, line,
                                "'%s' is no %s; a whole number from 1 to %" PRId64
                                " was wanted",
                                sti_market_quote(from, stop), what, most);
    if (index < 1 || index > most)
        return sti_market_fault(head->name, line,
                                "%s %" PRId64 "; 1 to %" PRId64 " was wanted", what,
                                index, most);
    *index_out = (int32_t)(index - 1);
    *at = stop;
    return STINT_OK;
}

static stint_status read_value(const sti_market_head *head, int64_t line,
                               const char **at, const char *end, double *value_out)
{
    const char *from = sti_market_skip(*at, end);
    const char *stop = sti_market_word_end(from, end), *after;
    if (!sti_number_read(from, stop, &after, value_out) || after != stop)
        return sti_market_fault(head->name, line,
                                "value '%s'; a finite number was wanted",
                                sti_market_quote(from, stop));
    *at = stop;
    return STINT_OK;
}

static stint_status check_end(const sti_market_head *head, int64_t line, const char *at,
                              const char *end)
{
    at = sti_market_skip(at, end);
    return at == end ? STINT_OK
                     : sti_market_fault(head->name, line,
                                        "'%s' follows the entry; the end of the line "
                                        "was wanted",
                                        sti_market_quote(at, end));
}

static stint_status read_place(const sti_market_head *head, int64_t line,
                               const char **at, const char *end, int32_t *row,
                               int32_t *column)
{
    stint_status st;
    STI_TRY(read_index(head, line, at, end, "row", head->rows, row));
    STI_TRY(read_index(head, line, at, end, "column", head->columns, column));
    if (head->symmetry != STI_MARKET_GENERAL &&
        *row < *column + (head->symmetry == STI_MARKET_SKEW))
        st = sti_market_fault(head->name, line,
                              "row %d, column %d of a %s matrix; the lower triangle "
                              "alone was wanted",
                              *row + 1, *column + 1,
                              sti_market_symmetry_names[head->symmetry]);
out:
    return st;
}

/* ---- a piece ---- */

/* Where entry `e` of an array stands: columns follow each other, each from its first
 * stored row on. */
typedef struct cursor {
    int64_t row, column;
} cursor;

static int64_t first_row(const sti_market_head *head, int64_t column)
{
    return head->symmetry == STI_MARKET_GENERAL
               ? 0
               : column + (head->symmetry == STI_MARKET_SKEW);
}

static cursor find_cursor(const sti_market_head *head, int64_t e)
{
    cursor c = {0};
    if (head->symmetry == STI_MARKET_GENERAL && head->rows > 0)
        return (cursor){e % head->rows, e / head->rows};
    while (c.column < head->columns && e >= head->rows - first_row(head, c.column)) {
        e -= head->rows - first_row(head, c.column);
        c.column++;
    }
    c.row = first_row(head, c.column) + e;
    return c;
}

static void step(const sti_market_head *head, cursor *c)
{
    if (++c->row < head->rows)
        return;
    c->column++;
    c->row = first_row(head, c->column);
    if (c->row >= head->rows && c->column < head->columns)
        step(head, c);
}

static stint_status read_entry(const window *w, int64_t line, const char *at,
                               const char *end, int64_t e, cursor *c)
{
    const sti_market_head *head = w->head;
    sti_market_triplets *to = w->to;
    const int64_t at_e = e - to->before;
    stint_status st;
    if (e >= head->entries)
        return sti_market_fault(head->name, line,
                                "entry %" PRId64 "; the header said %" PRId64, e + 1,
                                head->entries);
    if (head->array) {
        to->row[at_e] = (int32_t)c->row;
        to->column[at_e] = (int32_t)c->column;
        step(head, c);
    } else {
        STI_TRY(read_place(head, line, &at, end, &to->row[at_e], &to->column[at_e]));
    }
    to->value[at_e] = 1;
    if (head->field != STI_MARKET_PATTERN)
        STI_TRY(read_value(head, line, &at, end, &to->value[at_e]));
    st = check_end(head, line, at, end);
out:
    return st;
}

static stint_status read_piece(const window *w, piece *p)
{
    int64_t line = p->line, e = p->entry;
    cursor c = w->head->array ? find_cursor(w->head, e) : (cursor){0};
    bool entry;
    for (const char *at = p->at; at < p->end; line++) {
        const char *stop = look_at_line(at, p->end, &entry);
        const stint_status st = entry ? read_entry(w, line, at, stop, e, &c) : STINT_OK;
        if (st != STINT_OK)
            return st;
        e += entry;
        at = stop + 1;
    }
    return STINT_OK;
}

static void run_piece(void *arg, int64_t number, int worker)
{
    const window *w = arg;
    piece *p = &w->pieces[number];
    (void)worker;
    p->status = read_piece(w, p);
}

/* ---- a window ---- */

enum { PIECE_BYTES = 1 << 17 };

static int64_t cut_pieces(const char *text, const char *end, piece *pieces)
{
    int64_t count = 0;
    while (text < end) {
        const char *stop = end - text > PIECE_BYTES ? text + PIECE_BYTES : end;
        const char *newline = memchr(stop - 1, '\n', (size_t)(end - stop + 1));
        stop = newline ? newline + 1 : end;
        pieces[count++] = (piece){.at = text, .end = stop};
        text = stop;
    }
    return count;
}

stint_status sti_market_read_lines(const sti_market_head *head, int threads,
                                   const char *text, const char *end, int64_t done,
                                   int64_t line, sti_market_triplets *to,
                                   int64_t *done_out, int64_t *lines_out)
{
    const sti_team team = {threads};
    window w = {.head = head, .to = to};
    const int64_t most = (end - text) / PIECE_BYTES + 2;
    w.pieces = sti_alloc_array(most, sizeof *w.pieces, "market.pieces");
    if (!w.pieces)
        return STINT_E_MEMORY;
    const int64_t count = cut_pieces(text, end, w.pieces);
    sti_team_run(&team, count, count_piece, &w);
    *done_out = done;
    *lines_out = 0;
    for (int64_t i = 0; i < count; i++) {
        w.pieces[i].entry = *done_out;
        w.pieces[i].line = line + *lines_out;
        *done_out += w.pieces[i].count;
        *lines_out += w.pieces[i].lines;
    }
    sti_team_run(&team, count, run_piece, &w);
    stint_status st = STINT_OK;
    for (int64_t i = 0; st == STINT_OK && i < count; i++)
        if (w.pieces[i].status != STINT_OK) /* told on another thread: once more here */
            st = read_piece(&w, &w.pieces[i]);
    sti_free(w.pieces);
    return st;
}
