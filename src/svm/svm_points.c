#include "svm/svm_points.h"

#include <string.h>

#include "base/memory.h"
#include "base/number.h"

/* Bytes of lines that a thread makes at a time, and how many such pieces of each thread
 * there are before they are taken. */
#define PIECE_BYTES ((size_t)1 << 16)
enum { PIECES_EACH = 4 };

/* The most characters of a column with its blank and colon. */
enum { COLUMN_BYTES = 12 };

/* Numbers written before, by a few bits of them: values come again and again in data
 * (pixels, zeros and ones), and their shortest text takes long to find. */
enum { MEMO_BITS = 12 };
typedef struct memo {
    uint64_t bits;
    uint64_t length; /* 0: nothing yet */
    char text[STI_NUMBER_BYTES];
} memo;

/* Lines on their way. */
typedef struct piece {
    char *text;
    size_t length;
} piece;

typedef struct points {
    const sti_svm_model *model;
    memo *memos;   /* [threads, 1 << MEMO_BITS] */
    piece *pieces; /* [pieces_most] */
    int64_t pieces_most, rows_each, begin;
    unsigned mode; /* of floats, in which denormals are numbers */
} points;

/* Row of x of point i. */
static int64_t row_of(const sti_svm_model *m, int64_t i)
{
    return m->order ? m->order[i] : i;
}

/* A point of a precomputed kernel is asked for its number alone. */
static int64_t entries_of(const sti_svm_model *m, int64_t row)
{
    return m->function.kind == STI_GRAM_PRECOMPUTED
               ? 1
               : m->x.start[row + 1] - m->x.start[row];
}

static size_t line_bytes(const sti_svm_model *m, int64_t i)
{
    return (size_t)m->coefs * (STI_NUMBER_BYTES + 1) + 2 +
           (size_t)entries_of(m, row_of(m, i)) * (COLUMN_BYTES + STI_NUMBER_BYTES);
}

static char *put_number(memo *memos, double value, char *at)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    memo *m = &memos[bits * UINT64_C(0x9e3779b97f4a7c15) >> (64 - MEMO_BITS)];
    if (m->bits != bits || m->length == 0) {
        (void)sti_number_text(value, m->text);
        m->length = strlen(m->text);
        m->bits = bits;
    }
    memcpy(at, m->text, STI_NUMBER_BYTES);
    return at + m->length;
}

static char *put_column(int32_t column, char *at)
{
    char digits[COLUMN_BYTES];
    int count = 0;
    *at++ = ' ';
    do {
        digits[count++] = (char)('0' + column % 10);
        column /= 10;
    } while (column > 0);
    while (count > 0)
        *at++ = digits[--count];
    *at++ = ':';
    return at;
}

static char *put_line(const sti_svm_model *m, memo *memos, int64_t i, char *at)
{
    const sti_csr *x = &m->x;
    const int64_t row = row_of(m, i), begin = x->start[row];
    for (int64_t c = 0; c < m->coefs; c++) {
        if (c > 0)
            *at++ = ' ';
        at = put_number(memos, m->coef[c * x->rows + i], at);
    }
    for (int64_t e = begin; e < begin + entries_of(m, row); e++)
        at = put_number(memos, x->value[e], put_column(x->column[e], at));
    *at++ = ' '; /* as LIBSVM's readers and writers have it */
    *at++ = '\n';
    return at;
}

static void write_piece(void *arg, int64_t index, int worker)
{
    const points *p = arg;
    const int64_t begin = p->begin + index * p->rows_each;
    memo *memos = p->memos + ((int64_t)worker << MEMO_BITS);
    piece *out = &p->pieces[index];
    char *at = out->text;
    sti_float_mode_leave(p->mode);
    for (int64_t i = begin; i < begin + p->rows_each && i < p->model->x.rows; i++)
        at = put_line(p->model, memos, i, at);
    out->length = (size_t)(at - out->text);
    (void)sti_float_mode_enter(); /* as pieces of a team are left */
}

/* How many lines a piece has, and the most bytes of them. */
static size_t cut(points *p)
{
    const int64_t rows = p->model->x.rows;
    size_t all = 0, most = 0;
    for (int64_t i = 0; i < rows; i++)
        all += line_bytes(p->model, i);
    p->rows_each = 1 + (int64_t)(PIECE_BYTES * (uint64_t)rows / (all + 1));
    for (int64_t i = 0; i < rows; i += p->rows_each) {
        size_t bytes = 0;
        for (int64_t j = i; j < i + p->rows_each && j < rows; j++)
            bytes += line_bytes(p->model, j);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static stint_status take_room(points *p, int threads, size_t bytes)
{
    p->pieces_most = (int64_t)threads * PIECES_EACH;
    p->memos =
        sti_alloc_array((int64_t)threads << MEMO_BITS, sizeof *p->memos, "svm.memo");
    p->pieces = sti_alloc_array(p->pieces_most, sizeof *p->pieces, "svm.pieces");
    if (!p->memos || !p->pieces)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < p->pieces_most; i++)
        if (!(p->pieces[i].text = sti_alloc(bytes, "svm.lines")))
            return STINT_E_MEMORY;
    return STINT_OK;
}

static void give_room(points *p)
{
    for (int64_t i = 0; p->pieces && i < p->pieces_most; i++)
        sti_free(p->pieces[i].text);
    sti_free(p->pieces);
    sti_free(p->memos);
}

stint_status sti_svm_points_write(const sti_svm_model *model, const sti_team *team,
                                  sti_svm_points_fn *take, void *user)
{
    points p = {.model = model, .mode = sti_float_mode_enter()};
    sti_float_mode_leave(p.mode);
    const int64_t rows = model->x.rows;
    const size_t bytes = cut(&p) + STI_NUMBER_BYTES; /* a number is copied whole */
    stint_status st = take_room(&p, team->threads, bytes);
    while (st == STINT_OK && p.begin < rows) {
        const int64_t left = (rows - p.begin + p.rows_each - 1) / p.rows_each;
        const int64_t count = left < p.pieces_most ? left : p.pieces_most;
        sti_team_take(team, count, write_piece, &p);
        for (int64_t i = 0; i < count && st == STINT_OK; i++)
            st = take(user, p.pieces[i].text, p.pieces[i].length);
        p.begin += count * p.rows_each;
    }
    give_room(&p);
    return st;
}
