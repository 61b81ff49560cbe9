/* Any bytes as the rows of a table and as a journal of old pages: refused, or taken
 * back and read. The first two bytes say how long the table is in units of 64 bytes. */
#include <string.h>

#include "embed/row_store.h"
#include "fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static stint_status see(void *user, int64_t first, int64_t count, const void *records,
                        int64_t record_bytes)
{
    const unsigned char *at = records;
    unsigned *sum = user;
    (void)first;
    for (int64_t i = 0; i < count * record_bytes; i++)
        *sum += at[i];
    return STINT_OK;
}

static stint_status open_store(bool resume, sti_row_store **store)
{
    sti_row_store_desc desc = {.folder = fuzz_folder,
                               .identity = "fuzz",
                               .cached = 100,
                               .policy = STI_CACHE_LRU,
                               .depth = 1,
                               .io = STI_ASYNC_MMAP,
                               .most = 8,
                               .resume = resume};
    if (sti_row_layout_of(100, 30, 2, 7, 0.1f, &desc.layout) != STINT_OK)
        abort();
    return sti_row_store_open(&desc, store);
}

/* A sound table of three pages, which the input is laid over. */
static void make_table(void)
{
    sti_row_store *store = NULL;
    if (open_store(false, &store) != STINT_OK ||
        sti_row_store_rewind(store, 0, 1) != STINT_OK)
        abort();
    sti_row_store_close(store);
}

static void lay_over(const char *name, const uint8_t *data, size_t size, long at)
{
    char path[700];
    (void)snprintf(path, sizeof path, "%s/%s", fuzz_folder, name);
    FILE *f = fopen(path, at < 0 ? "wb" : "r+b");
    if (!f || fseek(f, at < 0 ? 0 : at, SEEK_SET) != 0 ||
        fwrite(data, 1, size, f) != size || fclose(f) != 0)
        exit(1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_row_store *store = NULL;
    unsigned sum = 0;
    if (size < 2)
        return 0;
    fuzz_begin();
    make_table();
    size_t table = 64 * (size_t)(data[0] | data[1] << 8);
    if (table > size - 2)
        table = size - 2;
    if (table > 0)
        lay_over("rows.bin", data + 2, table, 4096);
    if (size - 2 > table)
        lay_over("journal-1", data + 2 + table, size - 2 - table, -1);
    if (open_store(true, &store) == STINT_OK) {
        if (sti_row_store_rewind(store, 1, 1) == STINT_OK)
            (void)sti_row_store_each(store, see, &sum);
        sti_row_store_close(store);
    }
    static const char *const names[] = {"rows.bin", "lock", "journal-0", "journal-1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[700];
        (void)snprintf(path, sizeof path, "%s/%s", fuzz_folder, names[i]);
        (void)remove(path);
    }
    return 0;
}
