#include "store/tensor_packed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

enum {
    SIDE = 32,    /* numbers of a block */
    BYTES = 34,   /* of a block, at most */
    BLOCKS = 256, /* read or made at a time */
    WORD = 8
};
#define SIZE_MOST ((int64_t)1 << 31)

static int64_t blocks_of(int64_t numbers)
{
    return (numbers + SIDE - 1) / SIDE;
}

static bool is_plain(const sti_gguf_type *type)
{
    return type->block == 1;
}

/* ---- lines ---- */

/* Types that a model file may hold its matrices in. */
static bool is_known(const char *word)
{
    return strcmp(word, "Q8_0") == 0 || strcmp(word, "Q4_0") == 0 ||
           strcmp(word, "BF16") == 0;
}

bool sti_packed_line_read(const char **text, sti_packed_line *line)
{
    char type[WORD], way[WORD];
    int used = 0;
    if (sscanf(*text, "%7s %7s %10" SCNd64 " %10" SCNd64 " %n", type, way, &line->rows,
               &line->columns, &used) != 4 ||
        used == 0 || !is_known(type))
        return false;
    line->type = sti_gguf_type_named(type);
    line->down = strcmp(way, "down") == 0;
    line->name = *text + used;
    line->name_bytes = strcspn(line->name, "\n");
    *text = line->name + line->name_bytes;
    *text += **text == '\n';
    return (line->down ? !is_plain(line->type) : strcmp(way, "along") == 0) &&
           line->name_bytes > 0 && line->rows >= 1 && line->rows < SIZE_MOST &&
           line->columns >= 1 && line->columns < SIZE_MOST;
}

void sti_packed_line_print(const sti_packed_line *line, sti_text *out)
{
    sti_text_printf(out, "%s %s %" PRId64 " %" PRId64 " ", line->type->name,
                    line->down ? "down" : "along", line->rows, line->columns);
    sti_text_add_bytes(out, line->name, line->name_bytes);
    sti_text_add(out, "\n");
}

sti_tensor_row sti_packed_row(const sti_packed_line *line)
{
    const bool plain = is_plain(line->type);
    sti_tensor_row row = {.type = plain ? STI_TENSOR_BF16 : STI_TENSOR_U8,
                          .rank = plain ? 2 : 3,
                          .dim = {line->rows, line->columns}};
    if (!plain) {
        row.dim[line->down ? 0 : 1] =
            blocks_of(line->down ? line->rows : line->columns);
        row.dim[2] = (int64_t)line->type->block_bytes;
    }
    row.bytes = line->type->block_bytes * (size_t)(row.dim[0] * row.dim[1]);
    return row;
}

bool sti_packed_take(const sti_packed_line *line, sti_tensor_row *row)
{
    const sti_tensor_row wanted = sti_packed_row(line);
    if (row->packed || row->type != wanted.type || row->rank != wanted.rank ||
        memcmp(row->dim, wanted.dim, (size_t)row->rank * sizeof row->dim[0]) != 0)
        return false;
    row->type = STI_TENSOR_F32;
    row->rank = 2;
    row->dim[0] = line->rows;
    row->dim[1] = line->columns;
    row->bytes = (size_t)(line->rows * line->columns) * sizeof(float);
    row->packed = line->type;
    row->packed_down = line->down;
    return true;
}

/* ---- reading ---- */

typedef struct packed_source {
    int fd;
    const char *path;
    const sti_tensor_row *row;
    uint8_t bytes[BLOCKS * BYTES];
} packed_source;

/* Blocks first .. first + count of the tensor into `bytes`. */
static stint_status read_blocks(packed_source *s, int64_t first, int64_t count)
{
    const int64_t each = (int64_t)s->row->packed->block_bytes;
    return sti_read_at(s->fd, s->path, s->row->offset + first * each, s->bytes,
                       (size_t)(count * each));
}

static stint_status read_plain(packed_source *s, int64_t first, int64_t count,
                               float *out)
{
    const sti_gguf_type *type = s->row->packed;
    stint_status st = STINT_OK;
    for (int64_t i = 0, n; i < count && st == STINT_OK; i += n) {
        n = count - i < BLOCKS * BYTES / 4 ? count - i : BLOCKS * BYTES / 4;
        st = read_blocks(s, first + i, n);
        for (int64_t j = 0; j < n && st == STINT_OK; j++)
            type->read(s->bytes + (size_t)j * type->block_bytes, out + i + j);
    }
    return st;
}

/* Numbers of one row, as many as go at a time; *done counts them. */
static stint_status read_stretch(packed_source *s, int64_t first, int64_t count,
                                 float *out, int64_t *done)
{
    const sti_gguf_type *type = s->row->packed;
    const int64_t columns = s->row->dim[1], at = first % columns, block = at / SIDE;
    int64_t end = columns - at < count ? columns : at + count;
    if (end > (block + BLOCKS) * SIDE)
        end = (block + BLOCKS) * SIDE;
    const int64_t blocks = blocks_of(end) - block;
    float x[SIDE];
    const stint_status st =
        read_blocks(s, first / columns * blocks_of(columns) + block, blocks);
    for (int64_t b = 0; b < blocks && st == STINT_OK; b++) {
        const int64_t begin = (block + b) * SIDE;
        const int64_t from = begin > at ? begin : at;
        const int64_t to = begin + SIDE < end ? begin + SIDE : end;
        type->read(s->bytes + (size_t)b * type->block_bytes, x);
        memcpy(out + from - at, x + from - begin, (size_t)(to - from) * sizeof *x);
    }
    *done = end - at;
    return st;
}

static stint_status read_along(packed_source *s, int64_t first, int64_t count,
                               float *out)
{
    stint_status st = STINT_OK;
    for (int64_t i = 0, done = 0; i < count && st == STINT_OK; i += done)
        st = read_stretch(s, first + i, count - i, out + i, &done);
    return st;
}

/* The numbers that are wanted among 32 rows from `top` on and some columns from `left`
 * on. */
static stint_status read_tile(packed_source *s, int64_t top, int64_t left, int64_t some,
                              int64_t first, int64_t count, float *out)
{
    const sti_gguf_type *type = s->row->packed;
    const int64_t rows = s->row->dim[0], columns = s->row->dim[1];
    const int64_t here = rows - top < SIDE ? rows - top : SIDE;
    float x[SIDE];
    const stint_status st = read_blocks(s, top / SIDE * columns + left, some);
    for (int64_t j = 0; j < some && st == STINT_OK; j++) {
        type->read(s->bytes + (size_t)j * type->block_bytes, x);
        for (int64_t i = 0; i < here; i++) {
            const int64_t at = (top + i) * columns + left + j - first;
            if (at >= 0 && at < count)
                out[at] = x[i];
        }
    }
    return st;
}

static stint_status read_down(packed_source *s, int64_t first, int64_t count,
                              float *out)
{
    const int64_t columns = s->row->dim[1];
    stint_status st = STINT_OK;
    for (int64_t top = first / columns / SIDE * SIDE;
         top * columns < first + count && st == STINT_OK; top += SIDE)
        for (int64_t left = 0; left < columns && st == STINT_OK; left += BLOCKS) {
            const int64_t rest = columns - left;
            st = read_tile(s, top, left, rest < BLOCKS ? rest : BLOCKS, first, count,
                           out);
        }
    return st;
}

stint_status sti_packed_read(int fd, const char *path, const sti_tensor_row *row,
                             int64_t first, int64_t count, float *out)
{
    packed_source s;
    s.fd = fd;
    s.path = path;
    s.row = row;
    return (is_plain(row->packed) ? read_plain
            : row->packed_down    ? read_down
                                  : read_along)(&s, first, count, out);
}

/* ---- writing ---- */

/* Block number `block` of a strip of rows, with zeros beyond its end. */
static void take_block(const sti_packed_line *line, int64_t rows, const float *x,
                       int64_t block, float *out)
{
    const int64_t columns = line->columns;
    const int64_t across = line->down ? columns : blocks_of(columns);
    const int64_t row = block / across * (line->down ? SIDE : 1);
    const int64_t column = block % across * (line->down ? 1 : SIDE);
    const int64_t step = line->down ? columns : 1;
    const int64_t left = line->down ? rows - row : columns - column;
    for (int64_t i = 0; i < line->type->block; i++)
        out[i] = i < left ? x[row * columns + column + i * step] : 0;
}

stint_status sti_packed_add(const sti_packed_line *line, int64_t rows, const float *x,
                            sti_writer *writer)
{
    const sti_gguf_type *type = line->type;
    const bool plain = is_plain(type);
    uint8_t bytes[BLOCKS * BYTES];
    float block[SIDE];
    stint_status st = STINT_OK;
    const int64_t blocks = plain        ? rows * line->columns
                           : line->down ? blocks_of(rows) * line->columns
                                        : rows * blocks_of(line->columns);
    for (int64_t i = 0, n; i < blocks && st == STINT_OK; i += n) {
        n = blocks - i < BLOCKS ? blocks - i : BLOCKS;
        for (int64_t b = 0; b < n; b++) {
            if (!plain)
                take_block(line, rows, x, i + b, block);
            type->write(plain ? x + i + b : block,
                        bytes + (size_t)b * type->block_bytes);
        }
        st = sti_writer_add(writer, bytes, (size_t)n * type->block_bytes);
    }
    return st;
}
