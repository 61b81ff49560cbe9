/* Any text as a Matrix Market file: refused, or rows whose columns ascend; and what is
 * taken whole gives the same entries when they pass by in batches. */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/market_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct seen {
    int64_t rows, columns, count;
    double sum; /* of row + 3 column, exact for what is this small */
} seen;

static stint_status see(void *user, const sti_entries *batch)
{
    seen *s = user;
    for (int64_t i = 0; i < batch->count; i++) {
        if (batch->row[i] < 0 || batch->row[i] >= s->rows || batch->column[i] < 0 ||
            batch->column[i] >= s->columns)
            abort();
        s->sum += (double)batch->row[i] + 3.0 * batch->column[i];
    }
    s->count += batch->count;
    return STINT_OK;
}

/* The file as entries that pass by; false: refused. */
static bool stream(const uint8_t *data, size_t size, bool sum, seen *out)
{
    char path[64];
    sti_market_stream market;
    sti_entry_source source;
    const int fd = memfd_create("x.mtx", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    const sti_market_desc desc = {
        .path = path, .sum = sum, .limit_bytes = (size_t)1 << 24, .threads = 1};
    bool taken = sti_market_stream_open(&desc, &market, &source) == STINT_OK;
    if (taken) {
        *out = (seen){.rows = source.rows, .columns = source.columns};
        taken = source.pass(&source, see, out) == STINT_OK;
    }
    close(fd);
    return taken;
}

static void check_rows(const sti_csr *a, bool sum, seen *out)
{
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++) {
            if (a->column[e] < 0 || a->column[e] >= a->columns ||
                (!sum && !isfinite(a->value[e])) ||
                (e > a->start[i] && a->column[e] <= a->column[e - 1]))
                abort();
            out->sum += (double)i + 3.0 * a->column[e];
        }
    out->count = a->start[a->rows];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_market market;
    const bool sum = size % 2 == 0;
    const sti_market_desc desc = {
        .path = "x.mtx", .sum = sum, .limit_bytes = (size_t)1 << 24};
    seen passed = {0}, whole = {0};
    const bool streamed = stream(data, size, sum, &passed);
    if (sti_market_parse((const char *)data, size, &desc, &market) != STINT_OK)
        return 0;
    check_rows(&market.a, sum, &whole);
    /* (Entries at one place, which sum adds up, pass by one by one.) */
    if (!streamed || passed.count < whole.count ||
        (!sum && (passed.count != whole.count || passed.sum != whole.sum)))
        abort();
    sti_market_fini(&market);
    return 0;
}
