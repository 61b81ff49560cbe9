#include "data/matrix_market.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/control_group.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/team.h"
#include "base/text.h"
#include "base/units.h"
#include "data/market_priv.h"

enum { WINDOW_BYTES = 8 << 20 };

size_t sti_market_csr_bytes(int64_t rows, int64_t entries)
{
    return sizeof(int64_t) * ((size_t)rows + 1) +
           (sizeof(int32_t) + sizeof(double)) * (size_t)entries;
}

void sti_market_fini(sti_market *market)
{
    sti_csr_fini(&market->a);
}

/* ---- reading ---- */

static size_t triplet_bytes(const sti_market_head *head)
{
    return (2 * sizeof(int32_t) + sizeof(double)) * (size_t)head->entries;
}

/* The matrix, its entries as they came, and the window; rows are sorted after the
 * window is gone. */
static size_t peak_bytes(const sti_market_source *s, const sti_market_head *head)
{
    const size_t window = s->text ? 0 : WINDOW_BYTES + STI_MARKET_HEAD_BYTES;
    const size_t rows = (size_t)head->rows * sizeof(int64_t);
    return sti_market_csr_bytes(head->rows, sti_market_whole_entries(head)) +
           triplet_bytes(head) + (rows > window ? rows : window);
}

static stint_status check_limit(const sti_market_source *s, size_t bytes)
{
    const sti_market_desc *d = s->desc;
    if (d->limit_bytes == 0)
        return sti_memory_limit_check(bytes + d->beside_bytes, d->path,
                                      "a matrix of fewer rows and entries");
    if (bytes <= d->limit_bytes)
        return STINT_OK;
    return sti_fail(STINT_E_BUDGET,
                    "%s takes %s while it is read; with what the process takes beside "
                    "it, --memory %zu is the least that would do",
                    d->path, sti_bytes_text(bytes), bytes + d->beside_bytes);
}

typedef struct filling {
    const sti_market_head *head;
    int threads;
    sti_market_triplets *t;
} filling;

static stint_status fill_lines(void *user, const char *at, size_t n_bytes, int64_t line,
                               int64_t *lines_out)
{
    const filling *f = user;
    return sti_market_read_lines(f->head, f->threads, at, at + n_bytes, f->t->count,
                                 line, f->t, &f->t->count, lines_out);
}

static stint_status read_entries(sti_market_source *s, const sti_market_head *head,
                                 int threads, sti_market_triplets *t)
{
    filling f = {head, threads, t};
    const stint_status st = sti_market_each_window(
        s, head, s->text ? s->total_bytes : WINDOW_BYTES, fill_lines, &f);
    return st == STINT_OK ? sti_market_check_end(s, head, t->count) : st;
}

static stint_status read_triplets(sti_market_source *s, const sti_market_head *head,
                                  int threads, sti_market_triplets *t)
{
    t->row = sti_alloc_array(head->entries, sizeof *t->row, "market.entries");
    t->column = sti_alloc_array(head->entries, sizeof *t->column, "market.entries");
    t->value = sti_alloc_array(head->entries, sizeof *t->value, "market.entries");
    if (!t->row || !t->column || !t->value)
        return STINT_E_MEMORY;
    return read_entries(s, head, threads, t);
}

static stint_status read_source(sti_market_source *s, sti_market *market_out)
{
    const int threads = s->desc->threads > 0 ? s->desc->threads : 1;
    const size_t window =
        s->total_bytes < STI_MARKET_HEAD_BYTES ? s->total_bytes : STI_MARKET_HEAD_BYTES;
    sti_market_head head;
    sti_market_triplets t = {0};
    const char *at;
    stint_status st;
    *market_out = (sti_market){0};
    if (!s->text) {
        s->window = sti_alloc(WINDOW_BYTES, "market.window");
        STI_TRY(s->window ? STINT_OK : STINT_E_MEMORY);
    }
    STI_TRY(sti_market_get_window(s, 0, window, &at));
    STI_TRY(sti_market_read_head(at, window, s->total_bytes, s->desc->path, &head));
    market_out->peak_bytes = peak_bytes(s, &head);
    STI_TRY(check_limit(s, market_out->peak_bytes));
    STI_TRY(read_triplets(s, &head, threads, &t));
    sti_free(s->window);
    s->window = NULL;
    STI_TRY(sti_market_build(&head, s->desc->sum, threads, &t, &market_out->a));
    market_out->symmetry = head.symmetry;
    market_out->field = head.field;
    market_out->array = head.array;
    market_out->bytes = sti_market_csr_bytes(head.rows, market_out->a.start[head.rows]);
out:
    sti_free(s->window);
    sti_free(t.row);
    sti_free(t.column);
    sti_free(t.value);
    return st;
}

stint_status sti_market_read(const sti_market_desc *desc, sti_market *market_out)
{
    sti_market_source s = {.desc = desc, .fd = -1};
    *market_out = (sti_market){0};
    stint_status st = sti_market_open(&s);
    if (st == STINT_OK)
        st = read_source(&s, market_out);
    if (s.fd >= 0)
        close(s.fd);
    return st;
}

stint_status sti_market_parse(const char *text, size_t n_bytes,
                              const sti_market_desc *desc, sti_market *market_out)
{
    sti_market_source s = {
        .desc = desc, .text = text, .fd = -1, .total_bytes = n_bytes};
    return read_source(&s, market_out);
}

/* ---- writing ---- */

enum { PIECE_ROWS = 2048, BATCH = 64 };

typedef struct writing {
    const sti_csr *a;
    bool half; /* the lower triangle alone */
    bool strict;
    int64_t first; /* piece of the batch */
    sti_text text[BATCH];
} writing;

static bool is_written(const writing *w, int64_t row, int32_t column)
{
    return !w->half || column < row || (column == row && !w->strict);
}

static void write_piece(void *arg, int64_t piece, int worker)
{
    writing *w = arg;
    const sti_csr *a = w->a;
    const int64_t first = (w->first + piece) * PIECE_ROWS;
    const int64_t end = first + PIECE_ROWS < a->rows ? first + PIECE_ROWS : a->rows;
    char number[STI_NUMBER_BYTES];
    (void)worker;
    for (int64_t i = first; i < end; i++)
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++)
            if (is_written(w, i, a->column[e]))
                sti_text_printf(&w->text[piece], "%" PRId64 " %d %s\n", i + 1,
                                a->column[e] + 1, sti_number_text(a->value[e], number));
}

static int64_t count_written(const writing *w)
{
    int64_t count = 0;
    for (int64_t i = 0; i < w->a->rows; i++)
        for (int64_t e = w->a->start[i]; e < w->a->start[i + 1]; e++)
            count += is_written(w, i, w->a->column[e]);
    return count;
}

static stint_status add_text(sti_writer *writer, sti_text *text)
{
    stint_status st = text->failed ? STINT_E_MEMORY : STINT_OK;
    if (st == STINT_OK && text->length > 0)
        st = sti_writer_add(writer, text->data, text->length);
    sti_text_fini(text);
    return st;
}

static stint_status write_rows(writing *w, int threads, sti_writer *writer)
{
    const int64_t pieces = (w->a->rows + PIECE_ROWS - 1) / PIECE_ROWS;
    const sti_team team = {threads > 0 ? threads : 1};
    stint_status st = STINT_OK;
    for (; w->first < pieces; w->first += BATCH) {
        const int64_t left = pieces - w->first, count = left < BATCH ? left : BATCH;
        sti_team_take(&team, count, write_piece, w);
        for (int64_t p = 0; p < count; p++) {
            const stint_status added = add_text(writer, &w->text[p]);
            st = st == STINT_OK ? added : st;
        }
        if (st != STINT_OK)
            break;
    }
    return st;
}

stint_status sti_market_write(const sti_csr *a, sti_market_symmetry symmetry,
                              const char *comment, int threads, const char *path)
{
    writing w = {.a = a,
                 .half = symmetry != STI_MARKET_GENERAL,
                 .strict = symmetry == STI_MARKET_SKEW};
    sti_writer *writer = NULL;
    sti_text head = {0};
    stint_status st;
    sti_text_printf(&head, "%%%%MatrixMarket matrix coordinate real %s\n",
                    sti_market_symmetry_names[symmetry]);
    if (comment)
        sti_text_printf(&head, "%% %s\n", comment);
    sti_text_printf(&head, "%" PRId64 " %" PRId64 " %" PRId64 "\n", a->rows, a->columns,
                    count_written(&w));
    STI_TRY(sti_writer_open(path, &writer));
    STI_TRY(add_text(writer, &head));
    STI_TRY(write_rows(&w, threads, writer));
    st = sti_writer_commit(writer);
    writer = NULL;
out:
    sti_text_fini(&head);
    sti_writer_abort(writer);
    return st;
}

stint_status sti_market_write_array(const double *x, int64_t rows, int64_t columns,
                                    const char *path)
{
    sti_writer *writer = NULL;
    sti_text text = {0};
    char number[STI_NUMBER_BYTES];
    stint_status st;
    sti_text_printf(
        &text, "%%%%MatrixMarket matrix array real general\n%" PRId64 " %" PRId64 "\n",
        rows, columns);
    STI_TRY(sti_writer_open(path, &writer));
    for (int64_t c = 0; c < columns; c++)
        for (int64_t i = 0; i < rows; i++) {
            sti_text_printf(&text, "%s\n", sti_number_text(x[i * columns + c], number));
            if (text.length > 65536)
                STI_TRY(add_text(writer, &text));
        }
    STI_TRY(add_text(writer, &text));
    st = sti_writer_commit(writer);
    writer = NULL;
out:
    sti_text_fini(&text);
    sti_writer_abort(writer);
    return st;
}
