#include "svm/svm_weights.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"

enum { LINE_MOST = 64 }; /* bytes of a number and what may stand around it */

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    return at;
}

static stint_status parse_line(const char *at, const char *end, const char *name,
                               int64_t line, double *value_out)
{
    const char *from = skip_blanks(at, end), *after = from;
    if (sti_number_read(from, end, &after, value_out) && *value_out > 0 &&
        skip_blanks(after, end) == end)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s:%" PRId64 ": '%.*s'; one number above 0, the weight of a row, "
                    "was wanted",
                    name, line, (int)(end - from < 20 ? end - from : 20), from);
}

static stint_status parse_lines(const char *text, size_t n_bytes, const char *name,
                                int64_t rows, double *weight)
{
    const char *end = text + n_bytes;
    int64_t count = 0;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        stop = stop ? stop : end;
        if (count == rows)
            return sti_fail(STINT_E_INPUT,
                            "%s:%" PRId64 ": more weights than the %" PRId64
                            " rows of the data",
                            name, count + 1, rows);
        const stint_status st = parse_line(text, stop, name, count + 1, &weight[count]);
        if (st != STINT_OK)
            return st;
        count++;
        text = stop < end ? stop + 1 : end;
    }
    return count == rows
               ? STINT_OK
               : sti_fail(STINT_E_INPUT,
                          "%s: %" PRId64 " weights, the data has %" PRId64 " rows",
                          name, count, rows);
}

stint_status sti_svm_weights_parse(const char *text, size_t n_bytes, const char *name,
                                   int64_t rows, double **weight_out)
{
    double *weight = sti_alloc_array(rows, sizeof *weight, "svm.weights");
    if (!weight)
        return STINT_E_MEMORY;
    const stint_status st = parse_lines(text, n_bytes, name, rows, weight);
    if (st == STINT_OK)
        *weight_out = weight;
    else
        sti_free(weight);
    return st;
}

stint_status sti_svm_weights_read(const char *path, int64_t rows, double **weight_out)
{
    void *text = NULL;
    size_t n_bytes;
    stint_status st =
        sti_file_read(path, (size_t)(rows + 1) * LINE_MOST, &text, &n_bytes);
    if (st == STINT_OK)
        st = sti_svm_weights_parse(text, n_bytes, path, rows, weight_out);
    sti_free(text);
    return st;
}
