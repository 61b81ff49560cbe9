/* Reading the file of ranks (clicks_file.h). */
#include "data/clicks_file.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"

enum { SIZE_MOST = 1 << 24 }; /* slots of a sample */

static void put(uint8_t **at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *(*at)++ = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t **at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t) * (*at)++ << 8 * i;
    return value;
}

void sti_clicks_place(sti_clicks *c)
{
    c->sample_bytes = 4 * (size_t)(1 + c->dense + c->slots);
    c->samples_at = STI_CLICKS_HEAD_BYTES + (int64_t)c->fields * STI_CLICKS_FIELD_BYTES;
    c->counts_at = c->samples_at + c->samples * (int64_t)c->sample_bytes;
    c->ids_at = c->counts_at + 4 * c->rows;
}

stint_status sti_clicks_head(const sti_clicks *c, uint8_t **head_out, size_t *bytes_out)
{
    uint8_t *head = sti_alloc((size_t)c->samples_at, "clicks.head"), *at = head;
    if (!head)
        return STINT_E_MEMORY;
    memcpy(at, STI_CLICKS_MAGIC, STI_CLICKS_MAGIC_BYTES);
    memcpy(at + 16, c->key, 64);
    memcpy(at + 80, c->sha256, 64);
    at += 144;
    put(&at, (uint64_t)c->samples, 8);
    put(&at, (uint64_t)c->train, 8);
    put(&at, (uint64_t)c->rows, 8);
    put(&at, c->ids_bytes, 8);
    put(&at, (uint64_t)c->dense, 4);
    put(&at, (uint64_t)c->fields, 4);
    put(&at, (uint64_t)c->slots, 4);
    uint8_t *sum = at;
    at += 4;
    for (int i = 0; i < c->fields; i++) {
        const sti_clicks_field *f = &c->field[i];
        memcpy(at, f->name, STI_CLICKS_NAME);
        at += STI_CLICKS_NAME;
        put(&at, f->slots, 4);
        put(&at, f->first, 4);
        put(&at, f->other, 4);
        put(&at, 0, 4);
        put(&at, f->ids, 8);
    }
    put(&sum, sti_crc32c(0, head, (size_t)c->samples_at), 4);
    *head_out = head;
    *bytes_out = (size_t)c->samples_at;
    return STINT_OK;
}

static stint_status damaged(const sti_clicks *c, const char *what)
{
    return sti_fail(STINT_E_INPUT,
                    "%s: the file of ranks is damaged (%s); remove it and count again",
                    c->path, what);
}

static stint_status parse_counts(const uint8_t *at, sti_clicks *c)
{
    memcpy(c->key, at + 16, 64);
    memcpy(c->sha256, at + 80, 64);
    at += 144;
    const uint64_t samples = get(&at, 8), train = get(&at, 8), rows = get(&at, 8),
                   ids = get(&at, 8);
    const uint64_t dense = get(&at, 4), fields = get(&at, 4), slots = get(&at, 4);
    if (dense > STI_CLICKS_COLUMNS || fields > STI_CLICKS_COLUMNS ||
        slots > SIZE_MOST || dense + fields == 0 || samples > (uint64_t)1 << 40 ||
        train > samples || rows >= UINT32_MAX || ids > (uint64_t)1 << 50)
        return damaged(c, "sizes out of range");
    c->samples = (int64_t)samples;
    c->train = (int64_t)train;
    c->rows = (int64_t)rows;
    c->dense = (int)dense;
    c->fields = (int)fields;
    c->slots = (int)slots;
    c->ids_bytes = (size_t)ids;
    sti_clicks_place(c);
    return STINT_OK;
}

static stint_status parse_fields(const uint8_t *at, sti_clicks *c)
{
    uint32_t slots = 0;
    for (int i = 0; i < c->fields; i++) {
        sti_clicks_field *f = &c->field[i];
        memcpy(f->name, at, STI_CLICKS_NAME - 1);
        at += STI_CLICKS_NAME;
        f->slots = (uint32_t)get(&at, 4);
        f->first = (uint32_t)get(&at, 4);
        f->other = (uint32_t)get(&at, 4);
        (void)get(&at, 4);
        f->ids = get(&at, 8);
        if (f->first != slots || f->slots < 1 ||
            f->slots > (uint32_t)c->slots - slots || f->other >= c->rows)
            return damaged(c, "fields that do not fit");
        slots += f->slots;
    }
    return slots == (uint32_t)c->slots ? STINT_OK
                                       : damaged(c, "fields that do not fit");
}

static stint_status read_head(sti_clicks *c)
{
    uint8_t head[STI_CLICKS_HEAD_BYTES], *all = NULL;
    struct stat now;
    stint_status st;
    if (fstat(c->fd, &now) != 0)
        return sti_fail_errno("%s", c->path);
    if (now.st_size < STI_CLICKS_HEAD_BYTES)
        return damaged(c, "cut short");
    STI_TRY(sti_read_at(c->fd, c->path, 0, head, sizeof head));
    const bool old = memcmp(head, STI_CLICKS_MAGIC_1, STI_CLICKS_MAGIC_BYTES) == 0;
    if (!old && memcmp(head, STI_CLICKS_MAGIC, STI_CLICKS_MAGIC_BYTES) != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: is no file of ranks; `stint data rank` "
                        "makes one",
                        c->path);
    STI_TRY(parse_counts(head, c));
    const int64_t body = c->ids_at + (int64_t)c->ids_bytes - c->samples_at;
    if (c->samples_at + (old ? body : sti_clicks_blocks_bytes(body)) !=
        (int64_t)now.st_size)
        return damaged(c, "of another length than its head says");
    if (!old &&
        !(c->looked_at = sti_arena_alloc(c->arena, sti_clicks_blocks_memory(body))))
        return STINT_E_MEMORY;
    all = sti_alloc((size_t)c->samples_at, "clicks.head");
    c->field = sti_arena_alloc(c->arena, (size_t)c->fields * sizeof *c->field + 1);
    if (!all || !c->field) {
        st = STINT_E_MEMORY;
        goto out;
    }
    STI_TRY(sti_read_at(c->fd, c->path, 0, all, (size_t)c->samples_at));
    const uint8_t *sum = all + STI_CLICKS_HEAD_BYTES - 4;
    const uint32_t want = (uint32_t)get(&sum, 4);
    memset(all + STI_CLICKS_HEAD_BYTES - 4, 0, 4);
    if (sti_crc32c(0, all, (size_t)c->samples_at) != want) {
        st = damaged(c, "its head's checksum is wrong");
        goto out;
    }
    st = parse_fields(all + STI_CLICKS_HEAD_BYTES, c);
out:
    sti_free(all);
    return st;
}

static bool begins_with(const char *path, const char *magic)
{
    char head[STI_CLICKS_MAGIC_BYTES];
    int fd = -1;
    if (!path || !sti_path_is_file(path) || sti_file_open(path, &fd) != STINT_OK)
        return false;
    const bool is = pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
                    memcmp(head, magic, sizeof head) == 0;
    close(fd);
    return is;
}

bool sti_clicks_is_old(const char *path)
{
    return begins_with(path, STI_CLICKS_MAGIC_1);
}

bool sti_clicks_is_ranks(const char *path)
{
    return begins_with(path, STI_CLICKS_MAGIC) || sti_clicks_is_old(path);
}

stint_status sti_clicks_open(const char *path, sti_clicks *clicks_out)
{
    sti_clicks c = {.fd = -1, .arena = sti_arena_create("clicks")};
    stint_status st = c.arena ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK && !(c.path = sti_arena_strdup(c.arena, path)))
        st = STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_file_open(path, &c.fd);
    if (st == STINT_OK)
        st = read_head(&c);
    if (st != STINT_OK) {
        sti_clicks_close(&c);
        return st;
    }
    *clicks_out = c;
    return STINT_OK;
}

void sti_clicks_close(sti_clicks *clicks)
{
    if (clicks->arena && clicks->fd >= 0)
        close(clicks->fd);
    sti_arena_destroy(clicks->arena);
    *clicks = (sti_clicks){.fd = -1};
}

stint_status sti_clicks_read(const sti_clicks *c, int64_t first, int64_t count,
                             void *samples_out)
{
    const stint_status st =
        sti_clicks_blocks_read(c, c->samples_at + first * (int64_t)c->sample_bytes,
                               samples_out, (size_t)count * c->sample_bytes);
    for (int64_t i = 0; i < count && st == STINT_OK; i++) {
        const uint32_t *rank =
            sti_clicks_ranks(c, (char *)samples_out + (size_t)i * c->sample_bytes);
        for (int k = 0; k < c->slots; k++)
            if (rank[k] >= c->rows && rank[k] != STI_CLICKS_NO_ROW)
                return sti_fail(STINT_E_INPUT,
                                "%s: sample %" PRId64 " has rank %" PRIu32
                                " of %" PRId64 " rows; remove the file and count again",
                                c->path, first + i, rank[k], c->rows);
    }
    return st;
}

stint_status sti_clicks_counts(const sti_clicks *c, int64_t first, int64_t count,
                               uint32_t *counts_out)
{
    return sti_clicks_blocks_read(c, c->counts_at + 4 * first, counts_out,
                                  (size_t)count * sizeof *counts_out);
}

/* ---- ids alone ---- */

static stint_status put_bytes(void *user, const void *bytes, size_t n_bytes)
{
    return sti_writer_add(user, bytes, n_bytes);
}

static stint_status copy_rest(const sti_clicks *c, sti_writer *writer)
{
    sti_clicks_blocks blocks = {.put = put_bytes, .user = writer};
    const int64_t end = c->ids_at + (int64_t)c->ids_bytes;
    stint_status st = STINT_OK;
    enum { PIECE = 1 << 16 };
    char *room = sti_alloc(PIECE, "clicks.copy");
    if (!room)
        return STINT_E_MEMORY;
    for (int64_t at = c->counts_at; at < end && st == STINT_OK; at += PIECE) {
        const size_t n = end - at < PIECE ? (size_t)(end - at) : PIECE;
        st = sti_clicks_blocks_read(c, at, room, n);
        if (st == STINT_OK)
            st = sti_clicks_blocks_add(&blocks, room, n);
    }
    sti_free(room);
    return st == STINT_OK ? sti_clicks_blocks_end(&blocks) : st;
}

stint_status sti_clicks_write_ids(const sti_clicks *clicks, const char *path)
{
    sti_clicks alone = *clicks;
    sti_writer *writer = NULL;
    uint8_t *head = NULL;
    size_t bytes = 0;
    alone.samples = alone.train = 0;
    sti_clicks_place(&alone);
    stint_status st = sti_clicks_head(&alone, &head, &bytes);
    if (st == STINT_OK)
        st = sti_writer_open(path, &writer);
    if (st == STINT_OK)
        st = sti_writer_add(writer, head, bytes);
    if (st == STINT_OK)
        st = copy_rest(clicks, writer);
    sti_free(head);
    if (st == STINT_OK)
        return sti_writer_commit(writer);
    sti_writer_abort(writer);
    return st;
}

/* ---- ids ---- */

enum { ID_BUFFER = 1 << 17 }; /* more than the longest id with its head */

/* A window on the ids, moved on as they are read. */
typedef struct id_reader {
    const sti_clicks *clicks;
    uint8_t *buffer;
    size_t at, end, taken; /* in the buffer; of the ids, up to `end` */
} id_reader;

static stint_status fill(id_reader *r)
{
    const size_t left = r->end - r->at;
    size_t more = ID_BUFFER - left;
    memmove(r->buffer, r->buffer + r->at, left);
    if (more > r->clicks->ids_bytes - r->taken)
        more = r->clicks->ids_bytes - r->taken;
    const stint_status st = sti_clicks_blocks_read(
        r->clicks, r->clicks->ids_at + (int64_t)r->taken, r->buffer + left, more);
    r->at = 0;
    r->end = left + more;
    r->taken += more;
    return st;
}

static stint_status each_id(id_reader *r, int64_t rank, sti_clicks_id_fn *fn,
                            void *user)
{
    if (r->end - r->at < 4 + UINT16_MAX && r->taken < r->clicks->ids_bytes) {
        const stint_status st = fill(r);
        if (st != STINT_OK)
            return st;
    }
    if (r->end - r->at < 4)
        return damaged(r->clicks, "fewer ids than rows");
    const uint8_t *at = r->buffer + r->at;
    const int field = (int)get(&at, 2);
    const size_t length = (size_t)get(&at, 2);
    if (r->end - r->at - 4 < length ||
        (field != STI_CLICKS_OTHER && field >= r->clicks->fields))
        return damaged(r->clicks, "an id that does not fit");
    r->at += 4 + length;
    return fn(user, rank, field == STI_CLICKS_OTHER ? -1 : field, (const char *)at,
              length);
}

stint_status sti_clicks_each_id(const sti_clicks *clicks, sti_clicks_id_fn *fn,
                                void *user)
{
    id_reader r = {.clicks = clicks, .buffer = sti_alloc(ID_BUFFER, "clicks.ids")};
    stint_status st = r.buffer ? STINT_OK : STINT_E_MEMORY;
    for (int64_t rank = 0; rank < clicks->rows && st == STINT_OK; rank++)
        st = each_id(&r, rank, fn, user);
    sti_free(r.buffer);
    return st;
}
