#include "svm/svm_scale.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"

#define FILE_MOST ((size_t)1 << 32)

void sti_svm_scale_fini(sti_svm_scale *scale)
{
    sti_free(scale->least);
    sti_free(scale->most);
    *scale = (sti_svm_scale){0};
}

static stint_status reserve(sti_svm_scale *scale)
{
    scale->least = sti_alloc_array(scale->columns, sizeof(double), "svm.least");
    scale->most = sti_alloc_array(scale->columns, sizeof(double), "svm.most");
    return scale->least && scale->most ? STINT_OK : STINT_E_MEMORY;
}

stint_status sti_svm_scale_of(const sti_table *table, double lower, double upper,
                              sti_svm_scale *scale)
{
    const sti_csr *x = &table->x;
    *scale = (sti_svm_scale){
        .lower = lower, .upper = upper, .first = table->first, .columns = x->columns};
    int64_t *seen = sti_alloc_array(x->columns, sizeof *seen, "svm.seen");
    stint_status st = seen ? reserve(scale) : STINT_E_MEMORY;
    for (int64_t e = 0; st == STINT_OK && e < x->start[x->rows]; e++) {
        const int32_t c = x->column[e];
        const double value = x->value[e];
        if (seen[c]++ == 0)
            scale->least[c] = scale->most[c] = value;
        scale->least[c] = value < scale->least[c] ? value : scale->least[c];
        scale->most[c] = value > scale->most[c] ? value : scale->most[c];
    }
    /* Where a row leaves a feature out, its value is 0. */
    for (int64_t c = 0; st == STINT_OK && c < x->columns; c++)
        if (seen[c] < x->rows) {
            scale->least[c] = scale->least[c] > 0 ? 0 : scale->least[c];
            scale->most[c] = scale->most[c] < 0 ? 0 : scale->most[c];
        }
    sti_free(seen);
    if (st != STINT_OK)
        sti_svm_scale_fini(scale);
    return st;
}

stint_status sti_svm_scale_targets(const sti_table *table, double lower, double upper,
                                   sti_svm_scale *scale)
{
    if (!table->y || table->names)
        return sti_fail(STINT_E_INPUT, "-y wants a number as the label of every row");
    scale->targets = true;
    scale->y_bound[0] = lower;
    scale->y_bound[1] = upper;
    for (int64_t i = 0; i < table->x.rows; i++) {
        const double y = table->y[i];
        scale->y_range[0] = i == 0 || y < scale->y_range[0] ? y : scale->y_range[0];
        scale->y_range[1] = i == 0 || y > scale->y_range[1] ? y : scale->y_range[1];
    }
    return STINT_OK;
}

/* ---- files ---- */

stint_status sti_svm_scale_write(const sti_svm_scale *scale, const char *path)
{
    sti_text text = {0};
    if (scale->targets)
        sti_text_printf(&text, "y\n%.17g %.17g\n%.17g %.17g\n", scale->y_bound[0],
                        scale->y_bound[1], scale->y_range[0], scale->y_range[1]);
    sti_text_printf(&text, "x\n%.17g %.17g\n", scale->lower, scale->upper);
    for (int64_t c = scale->first; c < scale->columns; c++)
        if (scale->least[c] != scale->most[c])
            sti_text_printf(&text, "%" PRId64 " %.17g %.17g\n", c, scale->least[c],
                            scale->most[c]);
    const stint_status st =
        text.failed ? STINT_E_MEMORY : sti_file_write(path, text.data, text.length);
    sti_text_fini(&text);
    return st;
}

/* A file of ranges and the line that is read. */
typedef struct reader {
    const char *name, *at, *end;
    int64_t line;
} reader;

static stint_status fault(const reader *r, const char *wanted)
{
    return sti_fail(STINT_E_INPUT, "%s:%" PRId64 ": %s was wanted", r->name, r->line,
                    wanted);
}

/* Exactly `count` finite numbers on the next line. */
static bool read_numbers(reader *r, int count, double *out)
{
    const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
    const char *stop = newline ? newline : r->end, *at = r->at;
    r->at = newline ? newline + 1 : r->end;
    r->line++;
    for (int i = 0; i < count; i++) {
        while (at < stop && *at == ' ')
            at++;
        if (!sti_number_read(at, stop, &at, &out[i]) ||
            (at < stop && *at != ' ' && *at != '\r'))
            return false;
    }
    while (at < stop && (*at == ' ' || *at == '\r'))
        at++;
    return at == stop;
}

/* "index least most"; indices ascend. last_out: the index. */
static stint_status read_range(reader *r, int64_t last, double range[3])
{
    if (!read_numbers(r, 3, range) || !(range[0] > (double)last) ||
        !(range[0] < (double)INT32_MAX) || range[0] != (double)(int64_t)range[0] ||
        !(range[1] <= range[2]))
        return fault(r, "'index least most', indices ascending");
    return STINT_OK;
}

static stint_status read_ranges(reader *r, sti_svm_scale *scale)
{
    const reader begin = *r;
    double range[3];
    int64_t last = -1;
    stint_status st;
    while (r->at < r->end) {
        STI_TRY(read_range(r, last, range));
        last = (int64_t)range[0];
    }
    *r = begin;
    scale->columns = last + 1;
    STI_TRY(reserve(scale));
    for (last = -1; r->at < r->end; last = (int64_t)range[0]) {
        STI_TRY(read_range(r, last, range));
        scale->least[(int64_t)range[0]] = range[1];
        scale->most[(int64_t)range[0]] = range[2];
    }
    st = STINT_OK;
out:
    return st;
}

/* The key of one letter that begins a part of the file. */
static bool take_key(reader *r, char key)
{
    if (r->end - r->at < 2 || r->at[0] != key || r->at[1] != '\n')
        return false;
    r->at += 2;
    r->line++;
    return true;
}

static stint_status read_targets(reader *r, sti_svm_scale *scale)
{
    scale->targets = true;
    if (!read_numbers(r, 2, scale->y_bound) || !(scale->y_bound[0] < scale->y_bound[1]))
        return fault(r, "'lower upper' of targets, the lower less");
    if (!read_numbers(r, 2, scale->y_range) ||
        !(scale->y_range[0] <= scale->y_range[1]))
        return fault(r, "'least most' of targets");
    return STINT_OK;
}

stint_status sti_svm_scale_parse(const char *text, size_t n_bytes, const char *name,
                                 sti_svm_scale *scale_out)
{
    reader r = {.name = name, .at = text, .end = text + n_bytes};
    double bounds[2];
    stint_status st = STINT_OK;
    *scale_out = (sti_svm_scale){0};
    if (take_key(&r, 'y'))
        st = read_targets(&r, scale_out);
    if (st != STINT_OK)
        return st;
    if (!take_key(&r, 'x')) {
        r.line++;
        return fault(&r, "a line 'x'");
    }
    if (!read_numbers(&r, 2, bounds) || !(bounds[0] < bounds[1]))
        return fault(&r, "'lower upper', the lower less");
    scale_out->lower = bounds[0];
    scale_out->upper = bounds[1];
    st = read_ranges(&r, scale_out);
    if (st != STINT_OK)
        sti_svm_scale_fini(scale_out);
    return st;
}

stint_status sti_svm_scale_read(const char *path, sti_svm_scale *scale_out)
{
    void *text = NULL;
    size_t bytes;
    stint_status st = sti_file_read(path, FILE_MOST, &text, &bytes);
    if (st == STINT_OK)
        st = sti_svm_scale_parse(text, bytes, path, scale_out);
    sti_free(text);
    return st;
}

/* ---- rows ---- */

/* A value of [least, most] brought to [lower, upper]. */
static double map(double value, double least, double most, double lower, double upper)
{
    if (value == least)
        return lower;
    if (value == most)
        return upper;
    return lower + (upper - lower) * (value - least) / (most - least);
}

static double scaled(const sti_svm_scale *s, int64_t c, double value)
{
    return map(value, s->least[c], s->most[c], s->lower, s->upper);
}

static double target_of(const sti_svm_scale *s, double y)
{
    return s->targets
               ? map(y, s->y_range[0], s->y_range[1], s->y_bound[0], s->y_bound[1])
               : y;
}

void sti_svm_scale_row(const sti_svm_scale *scale, const sti_table *table, int64_t row,
                       sti_text *out)
{
    const sti_csr *x = &table->x;
    int64_t e = x->start[row];
    if (table->y && table->names)
        sti_text_printf(out, "%s ", table->names[(int64_t)table->y[row]]);
    else if (table->y)
        sti_text_printf(out, "%.17g ", target_of(scale, table->y[row]));
    for (int64_t c = scale->first; c < scale->columns; c++) {
        while (e < x->start[row + 1] && x->column[e] < c)
            e++;
        const bool there = e < x->start[row + 1] && x->column[e] == c;
        if (scale->least[c] == scale->most[c])
            continue;
        const double value = scaled(scale, c, there ? x->value[e] : 0);
        if (value != 0)
            sti_text_printf(out, "%" PRId64 ":%g ", c, value);
    }
    sti_text_add(out, "\n");
}
