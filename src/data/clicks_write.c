/* The samples by rank, and the calls around all of it. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/units.h"
#include "data/clicks_count.h"

/* ---- writing ---- */

static stint_status put_bytes(void *user, const void *bytes, size_t n_bytes)
{
    const sti_click_counter *c = user;
    if (n_bytes > 0 && fwrite(bytes, n_bytes, 1, c->out) != 1)
        return sti_fail_errno("%s: cannot be written", c->part_path);
    return STINT_OK;
}

static stint_status put(sti_click_counter *c, sti_sha256 *hash, const void *bytes,
                        size_t n_bytes)
{
    sti_sha256_add(hash, bytes, n_bytes);
    return sti_clicks_blocks_add(&c->body, bytes, n_bytes);
}

static stint_status fill_block(sti_click_counter *c, int b, int64_t count,
                               char *samples)
{
    const sti_clicks *k = &c->clicks;
    const size_t numbers = 4 * (size_t)(1 + k->dense);
    uint32_t what[3];
    bool more = true;
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < count && st == STINT_OK; i++) {
        char *sample = samples + (size_t)i * k->sample_bytes;
        st = sti_spill_next(&c->numbers, sample, numbers, &more);
        memset(sample + numbers, 0xff, 4 * (size_t)k->slots);
    }
    if (st == STINT_OK)
        st = sti_spill_rewind(&c->block[b].ids);
    while (st == STINT_OK) {
        st = sti_spill_next(&c->block[b].ids, what, sizeof what, &more);
        if (st != STINT_OK || !more)
            break;
        memcpy(samples + what[0] * k->sample_bytes + numbers + 4 * (size_t)what[1],
               &what[2], 4);
    }
    return st;
}

static stint_status write_samples(sti_click_counter *c, sti_sha256 *hash)
{
    const int64_t left = c->clicks.samples;
    char *samples =
        sti_alloc_array(c->block_samples, c->clicks.sample_bytes, "clicks.samples");
    stint_status st = samples ? sti_spill_rewind(&c->numbers) : STINT_E_MEMORY;
    for (int b = 0; b < c->blocks && st == STINT_OK; b++) {
        const int64_t first = b * c->block_samples;
        const int64_t count =
            left - first < c->block_samples ? left - first : c->block_samples;
        st = fill_block(c, b, count, samples);
        if (st == STINT_OK)
            st = put(c, hash, samples, (size_t)count * c->clicks.sample_bytes);
    }
    sti_free(samples);
    return st;
}

static stint_status copy_spill(sti_click_counter *c, sti_sha256 *hash, sti_spill *from)
{
    int64_t left = from->bytes;
    stint_status st = sti_spill_rewind(from);
    while (left > 0 && st == STINT_OK) {
        const size_t n = left < 1 << 16 ? (size_t)left : 1 << 16;
        bool more;
        st = sti_spill_next(from, c->room, n, &more);
        if (st == STINT_OK)
            st = put(c, hash, c->room, n);
        left -= (int64_t)n;
    }
    return st;
}

/* The model's counts and ids again, so that the file stands alone. */
static stint_status copy_like(sti_click_counter *c)
{
    const sti_clicks *like = c->desc->like;
    const int64_t end = like->ids_at + (int64_t)like->ids_bytes;
    stint_status st = STINT_OK;
    for (int64_t at = like->counts_at; at < end && st == STINT_OK;) {
        const bool counts = at < like->ids_at;
        const int64_t stop = counts ? like->ids_at : end;
        const size_t n = stop - at < 1 << 16 ? (size_t)(stop - at) : 1 << 16;
        st = sti_clicks_blocks_read(like, at, c->room, n);
        if (st == STINT_OK)
            st = sti_spill_add(counts ? &c->counts : &c->names, c->room, n);
        at += (int64_t)n;
    }
    return st;
}

static stint_status write_head(sti_click_counter *c)
{
    uint8_t *head = NULL;
    size_t bytes = 0;
    stint_status st = sti_clicks_head(&c->clicks, &head, &bytes);
    if (st == STINT_OK &&
        (fseek(c->out, 0, SEEK_SET) != 0 || fwrite(head, bytes, 1, c->out) != 1 ||
         fflush(c->out) != 0 || fsync(fileno(c->out)) != 0))
        st = sti_fail_errno("%s: cannot be written", c->part_path);
    sti_free(head);
    return st;
}

stint_status sti_click_counter_write(sti_click_counter *c, const char *path)
{
    sti_sha256 hash;
    stint_status st;
    snprintf(c->part_path, sizeof c->part_path, "%.1024s.%ld.part", path,
             (long)getpid());
    c->out = fopen(c->part_path, "wbe");
    if (!c->out)
        return sti_fail_errno("%s: cannot be written", c->part_path);
    sti_sha256_init(&hash);
    if (c->desc->like)
        STI_TRY(copy_like(c));
    c->clicks.ids_bytes = (size_t)c->names.bytes;
    sti_clicks_place(&c->clicks);
    if (fseek(c->out, (long)c->clicks.samples_at, SEEK_SET) != 0)
        return sti_fail_errno("%s: cannot be written", c->part_path);
    c->body = (sti_clicks_blocks){.put = put_bytes, .user = c};
    STI_TRY(write_samples(c, &hash));
    STI_TRY(copy_spill(c, &hash, &c->counts));
    STI_TRY(copy_spill(c, &hash, &c->names));
    STI_TRY(sti_clicks_blocks_end(&c->body));
    sti_sha256_hex(&hash, c->clicks.sha256);
    STI_TRY(write_head(c));
    const bool closed = fclose(c->out) == 0;
    c->out = NULL;
    if (!closed || rename(c->part_path, path) != 0)
        return sti_fail_errno("%s: cannot be written", path);
    c->part_path[0] = '\0';
out:
    return st;
}

/* ---- the whole ---- */

static void close_part(sti_click_part *part)
{
    sti_spill_close(&part->ids);
    sti_spill_close(&part->places);
    sti_spill_close(&part->order);
    sti_spill_close(&part->known);
    sti_spill_close(&part->ranks);
}

static void close_counter(sti_click_counter *c)
{
    for (int p = 0; p < STI_CLICKS_PARTS; p++) {
        close_part(&c->part[p]);
        close_part(&c->block[p]);
    }
    sti_spill_close(&c->numbers);
    sti_spill_close(&c->counts);
    sti_spill_close(&c->names);
    sti_click_ids_fini(&c->ids);
    sti_click_text_close(&c->text);
    sti_free(c->bag);
    sti_free(c->others);
    sti_free(c->room);
    if (c->out)
        fclose(c->out);
    if (*c->part_path)
        unlink(c->part_path);
    sti_arena_destroy(c->clicks.arena);
    sti_free(c);
}

static const char *words(const char *text)
{
    return text ? text : "";
}

/* What the file of ranks follows from: the text's name, length and time, and how it is
 * read. */
static stint_status make_key(const sti_clicks_desc *d, char key_out[65])
{
    struct stat now;
    char *path = realpath(d->path, NULL);
    sti_text all = {0};
    sti_sha256 hash;
    if (!path || stat(path, &now) != 0) {
        free(path);
        return sti_fail_errno("%s: cannot be read", d->path);
    }
    sti_text_printf(&all,
                    "%s\n%lld %lld.%09ld\n%d '%s' '%s' '%s' '%s' '%s' %" PRId64
                    " %" PRId64 " %.17g %d '%s'",
                    path, (long long)now.st_size, (long long)now.st_mtim.tv_sec,
                    now.st_mtim.tv_nsec, (int)d->format, words(d->separator),
                    words(d->label), words(d->dense), words(d->categorical),
                    words(d->bags), d->min_count, d->hash, d->validation, d->unlabelled,
                    d->like ? d->like->sha256 : "");
    free(path);
    if (all.failed)
        return STINT_E_MEMORY;
    sti_sha256_init(&hash);
    sti_sha256_add(&hash, all.data, all.length);
    sti_sha256_hex(&hash, key_out);
    sti_text_fini(&all);
    return STINT_OK;
}

/* In the cache, or where that cannot be written in a folder for such files. */
static stint_status choose_path(const char *out, const char *key, char *path,
                                size_t size)
{
    char name[96], folder[1024];
    if (out) {
        snprintf(path, size, "%s", out);
        return STINT_OK;
    }
    snprintf(name, sizeof name, "clicks/%.32s.ranks", key);
    if (sti_cache_path("clicks", folder, sizeof folder) &&
        sti_dir_create(folder) == STINT_OK && access(folder, W_OK) == 0 &&
        sti_cache_path(name, path, size))
        return STINT_OK;
    const char *temporary = getenv("TMPDIR");
    snprintf(path, size, "%s/stint-%.32s.ranks", temporary ? temporary : "/var/tmp",
             key);
    return STINT_OK;
}

static bool is_there(const char *path, const char *key)
{
    sti_clicks have = {.fd = -1};
    if (!sti_clicks_is_ranks(path) || sti_clicks_open(path, &have) != STINT_OK)
        return false;
    const bool same = strcmp(have.key, key) == 0;
    if (same && !have.looked_at)
        sti_log(STINT_LOG_INFO,
                "%s: is of a version without checksums; it is made anew", path);
    const bool usable = same && have.looked_at;
    sti_clicks_close(&have);
    return usable;
}

stint_status sti_clicks_rank(const sti_clicks_desc *desc, const char *out,
                             sti_clicks_counted *counted_out)
{
    char key[65];
    stint_status st = make_key(desc, key);
    if (st == STINT_OK)
        st = choose_path(out, key, counted_out->path, sizeof counted_out->path);
    counted_out->found = st == STINT_OK && is_there(counted_out->path, key);
    if (st != STINT_OK || counted_out->found)
        return st;
    sti_click_counter *c = sti_alloc(sizeof *c, "clicks.counter");
    if (!c)
        return STINT_E_MEMORY;
    c->desc = desc;
    c->memory_bytes = desc->memory_bytes ? desc->memory_bytes : (size_t)256 << 20;
    c->clicks.arena = sti_arena_create("clicks");
    memcpy(c->clicks.key, key, sizeof key);
    st = c->clicks.arena ? sti_click_counter_read(c) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_click_counter_rank(c);
    if (st == STINT_OK)
        st = sti_click_counter_write(c, counted_out->path);
    close_counter(c);
    return st;
}
