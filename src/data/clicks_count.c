#define _GNU_SOURCE /* fileno */
#include "data/clicks_count.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fail.h"
#include "base/stop.h"

/* An occurrence of an id: in text with its bytes behind it, then by its number. */
typedef struct occurrence {
    uint64_t sample;
    uint16_t field, length;
    uint32_t index; /* within the bag */
} occurrence;

typedef struct numbered {
    uint64_t sample;
    uint32_t id, field, index;
} numbered;

/* ---- text into parts ---- */

/* So many that a part's ids fit into half of the memory even if all of them differ and
 * every byte of the file is an id's. */
static int count_parts(const sti_click_counter *c)
{
    struct stat now;
    const int64_t bytes = fstat(fileno(c->text.file), &now) == 0 ? now.st_size : 0;
    const int64_t parts = 1 + 20 * bytes / (int64_t)c->memory_bytes;
    return parts > STI_CLICKS_PARTS ? STI_CLICKS_PARTS : (int)parts;
}

static stint_status open_part(sti_click_part *part)
{
    sti_spill *const all[] = {&part->ids, &part->places, &part->order, &part->known,
                              &part->ranks};
    stint_status st = STINT_OK;
    for (int i = 0; i < 5 && st == STINT_OK; i++)
        st = sti_spill_open(all[i]);
    return st;
}

static stint_status spill_id(sti_click_counter *c, const sti_click_id *id)
{
    char folded[24];
    const char *at = id->at;
    size_t length = id->length;
    if (c->desc->hash > 0) {
        const uint64_t hash = sti_click_hash(id->field, at, length);
        length = (size_t)snprintf(folded, sizeof folded, "%" PRIu64,
                                  hash % (uint64_t)c->desc->hash);
        at = folded;
    }
    const occurrence o = {.sample = (uint64_t)c->clicks.samples,
                          .field = (uint16_t)id->field,
                          .length = (uint16_t)length,
                          .index = c->bag[id->field]++};
    sti_spill *to =
        &c->part[sti_click_hash(id->field, at, length) % (uint64_t)c->parts].ids;
    const stint_status st = sti_spill_add(to, &o, sizeof o);
    return st == STINT_OK ? sti_spill_add(to, at, length) : st;
}

static stint_status spill_sample(sti_click_counter *c)
{
    const sti_click_text *t = &c->text;
    stint_status st = sti_spill_add(&c->numbers, &t->label, sizeof t->label);
    if (st == STINT_OK)
        st = sti_spill_add(&c->numbers, t->number_of,
                           (size_t)t->dense * sizeof *t->number_of);
    memset(c->bag, 0, (size_t)(t->fields + 1) * sizeof *c->bag);
    for (int64_t i = 0; i < t->id_count && st == STINT_OK; i++)
        st = spill_id(c, &t->id[i]);
    for (int f = 0; f < t->fields; f++)
        if (c->bag[f] > c->clicks.field[f].slots)
            c->clicks.field[f].slots = c->bag[f];
    c->clicks.samples++;
    return st;
}

/* Names of the fields, by the columns that are ids. */
static void name_fields(sti_click_counter *c)
{
    const sti_click_text *t = &c->text;
    for (int i = 0; i < t->columns; i++)
        if (t->column[i].use == STI_CLICK_ID)
            memcpy(c->clicks.field[t->column[i].index].name, t->column[i].name,
                   STI_CLICKS_NAME);
    if (c->desc->format == STI_CLICKS_LIBSVM && t->fields > 0)
        snprintf(c->clicks.field[0].name, STI_CLICKS_NAME, "features");
    for (int f = 0; f < t->fields; f++)
        c->clicks.field[f].slots = 1;
}

/* A model's samples have its very fields. */
static stint_status check_like(const sti_click_counter *c)
{
    const sti_clicks *like = c->desc->like, *mine = &c->clicks;
    if (like->fields != mine->fields || like->dense != mine->dense)
        return sti_fail(
            STINT_E_INPUT,
            "%s: has %d numbers and %d fields of ids; the model was trained "
            "on %d and %d",
            c->desc->path, mine->dense, mine->fields, like->dense, like->fields);
    for (int i = 0; i < mine->fields; i++)
        if (strcmp(like->field[i].name, mine->field[i].name) != 0)
            return sti_fail(
                STINT_E_INPUT,
                "%s: field %d of ids is '%s', but '%s' in what the model was "
                "trained on",
                c->desc->path, i + 1, mine->field[i].name, like->field[i].name);
    return STINT_OK;
}

static stint_status begin(sti_click_counter *c)
{
    stint_status st;
    STI_TRY(sti_click_text_open(c->desc, &c->text));
    c->parts = count_parts(c);
    c->clicks.dense = c->text.dense;
    c->clicks.fields = c->text.fields;
    c->clicks.field = sti_arena_alloc(c->clicks.arena, (size_t)(c->text.fields + 1) *
                                                           sizeof *c->clicks.field);
    c->bag = sti_alloc_array(c->text.fields + 1, sizeof *c->bag, "clicks.bag");
    c->others = sti_alloc_array(c->text.fields + 1, sizeof *c->others, "clicks.others");
    c->room = sti_alloc(1 << 16, "clicks.id");
    if (!c->clicks.field || !c->bag || !c->others || !c->room)
        return STINT_E_MEMORY;
    name_fields(c);
    if (c->desc->like)
        STI_TRY(check_like(c));
    STI_TRY(sti_spill_open(&c->numbers));
    STI_TRY(sti_spill_open(&c->counts));
    STI_TRY(sti_spill_open(&c->names));
    for (int p = 0; p < c->parts; p++)
        STI_TRY(open_part(&c->part[p]));
out:
    return st;
}

/* Where each field's ids lie in a sample, and how many samples are trained on. */
static void settle_sizes(sti_click_counter *c)
{
    uint32_t at = 0;
    for (int f = 0; f < c->clicks.fields; f++) {
        c->clicks.field[f].first = at;
        at += c->clicks.field[f].slots;
    }
    c->clicks.slots = (int)at;
    c->clicks.train =
        c->clicks.samples - (int64_t)(c->desc->validation * (double)c->clicks.samples);
}

stint_status sti_click_counter_read(sti_click_counter *c)
{
    bool more = true;
    stint_status st = begin(c);
    while (st == STINT_OK) {
        st = sti_click_text_next(&c->text, &more);
        if (st != STINT_OK || !more)
            break;
        st = sti_stop_asked() == STINT_OK
                 ? spill_sample(c)
                 : sti_fail(sti_stop_asked(), "stopped while reading samples");
    }
    if (st == STINT_OK && c->clicks.samples == 0)
        st = sti_fail(STINT_E_INPUT, "%s: holds no sample", c->desc->path);
    if (st == STINT_OK)
        settle_sizes(c);
    return st;
}

/* ---- parts into orders ---- */

static bool before(const sti_click_entry *a, const sti_click_entry *b)
{
    return a->count != b->count   ? a->count > b->count
           : a->first != b->first ? a->first < b->first
                                  : a->field < b->field;
}

static int by_rank(const void *a, const void *b)
{
    return before(a, b) ? -1 : before(b, a);
}

/* An order of the occurrences: what "first" means. */
static uint64_t place_of(const sti_click_counter *c, const occurrence *o)
{
    return o->sample * (uint64_t)c->clicks.slots + c->clicks.field[o->field].first +
           o->index;
}

static stint_status next_occurrence(sti_click_counter *c, sti_spill *from,
                                    occurrence *o, bool *more)
{
    stint_status st = sti_spill_next(from, o, sizeof *o, more);
    if (st == STINT_OK && *more)
        st = sti_spill_next(from, c->room, o->length, more);
    return st;
}

/* The model's ids of this part, numbered first. */
static stint_status load_known(sti_click_counter *c, sti_click_part *part)
{
    occurrence o;
    bool more = true, fresh;
    stint_status st = sti_spill_rewind(&part->known);
    while (st == STINT_OK) {
        st = next_occurrence(c, &part->known, &o, &more);
        if (st != STINT_OK || !more)
            break;
        const int64_t id =
            sti_click_ids_find(&c->ids, o.field, c->room, o.length, &fresh);
        if (id < 0)
            return STINT_E_MEMORY;
        c->ids.entry[id].rank = (uint32_t)o.sample;
    }
    return st;
}

/* Every occurrence by the number of its id; and ids counted. */
static stint_status number_part(sti_click_counter *c, sti_click_part *part)
{
    occurrence o;
    bool more = true, fresh;
    stint_status st = sti_spill_rewind(&part->ids);
    while (st == STINT_OK) {
        st = next_occurrence(c, &part->ids, &o, &more);
        if (st != STINT_OK || !more)
            break;
        const int64_t id =
            sti_click_ids_find(&c->ids, o.field, c->room, o.length, &fresh);
        if (id < 0)
            return STINT_E_MEMORY;
        sti_click_entry *e = &c->ids.entry[id];
        if (fresh) {
            e->first = place_of(c, &o);
            e->rank = STI_CLICKS_NO_ROW;
        }
        e->count += (int64_t)o.sample < c->clicks.train;
        const numbered n = {o.sample, (uint32_t)id, o.field, o.index};
        st = sti_spill_add(&part->places, &n, sizeof n);
    }
    part->distinct = c->ids.count;
    return st;
}

static stint_status add_order(sti_click_counter *c, sti_spill *to,
                              const sti_click_entry *e)
{
    const stint_status st = sti_spill_add(to, e, sizeof *e);
    return st == STINT_OK ? sti_spill_add(to, c->ids.text + e->text, e->length) : st;
}

/* Ids with a row of their own in their order, all others into their field's `other`.
 * Numbers are kept in `rank`. */
static stint_status order_part(sti_click_counter *c, sti_click_part *part)
{
    const uint64_t least = c->desc->min_count > 1 ? (uint64_t)c->desc->min_count : 1;
    int64_t kept = 0;
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < c->ids.count; i++) {
        sti_click_entry e = c->ids.entry[i], *other = &c->others[e.field];
        e.rank = (uint32_t)i;
        if (e.count >= least) {
            c->ids.entry[kept++] = e;
            continue;
        }
        other->count += e.count;
        other->first = e.count > 0 && e.first < other->first ? e.first : other->first;
    }
    if (kept > 1)
        qsort(c->ids.entry, (size_t)kept, sizeof *c->ids.entry, by_rank);
    for (int64_t i = 0; i < kept && st == STINT_OK; i++)
        st = add_order(c, &part->order, &c->ids.entry[i]);
    return st == STINT_OK ? sti_spill_rewind(&part->order) : st;
}

static stint_status count_part(sti_click_counter *c, sti_click_part *part)
{
    stint_status st;
    sti_click_ids_clear(&c->ids);
    if (c->desc->like)
        STI_TRY(load_known(c, part));
    STI_TRY(number_part(c, part));
    if (!c->desc->like)
        return order_part(c, part);
    for (int64_t i = 0; i < c->ids.count && st == STINT_OK; i++)
        st = sti_spill_add(&part->ranks, &c->ids.entry[i].rank, 4);
out:
    return st;
}

/* ---- orders into ranks ---- */

static stint_status add_rank(sti_click_counter *c, const sti_click_entry *e,
                             const char *id, bool other)
{
    const uint32_t count = e->count > UINT32_MAX ? UINT32_MAX : (uint32_t)e->count;
    const uint16_t head[2] = {other ? STI_CLICKS_OTHER : e->field, e->length};
    stint_status st;
    if (c->clicks.rows >= UINT32_MAX - 1)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: more than 4 billion rows; set data.min_count or data.hash",
                        c->desc->path);
    STI_TRY(sti_spill_add(&c->counts, &count, sizeof count));
    STI_TRY(sti_spill_add(&c->names, head, sizeof head));
    STI_TRY(sti_spill_add(&c->names, id, e->length));
    if (other)
        c->clicks.field[e->field].other = (uint32_t)c->clicks.rows;
    else
        c->clicks.field[e->field].ids++;
    c->clicks.rows++;
out:
    return st;
}

/* The front of every part's order, and of the rows `other`. */
typedef struct merge {
    sti_click_entry front[STI_CLICKS_PARTS];
    char *id[STI_CLICKS_PARTS];
    bool more[STI_CLICKS_PARTS];
    int other; /* of the sorted others */
} merge;

static stint_status advance(sti_click_counter *c, merge *m, int p)
{
    sti_spill *from = &c->part[p].order;
    stint_status st =
        sti_spill_next(from, &m->front[p], sizeof m->front[p], &m->more[p]);
    if (st == STINT_OK && m->more[p])
        st = sti_spill_next(from, m->id[p], m->front[p].length, &m->more[p]);
    return st;
}

/* The part whose front comes first; -1: a row `other` does, or nothing is left. */
static int first_part(const sti_click_counter *c, const merge *m)
{
    int best = -1;
    for (int p = 0; p < c->parts; p++)
        if (m->more[p] && (best < 0 || before(&m->front[p], &m->front[best])))
            best = p;
    if (best >= 0 && m->other < c->clicks.fields &&
        before(&c->others[m->other], &m->front[best]))
        return -1;
    return best;
}

static stint_status merge_orders(sti_click_counter *c, merge *m)
{
    stint_status st = STINT_OK;
    for (int p = 0; p < c->parts && st == STINT_OK; p++)
        st = advance(c, m, p);
    while (st == STINT_OK) {
        const int p = first_part(c, m);
        if (p < 0 && m->other == c->clicks.fields)
            break;
        if (p < 0) {
            st = add_rank(c, &c->others[m->other++], "", true);
            continue;
        }
        const uint32_t pair[2] = {m->front[p].rank, (uint32_t)c->clicks.rows};
        st = sti_spill_add(&c->part[p].ranks, pair, sizeof pair);
        if (st == STINT_OK)
            st = add_rank(c, &m->front[p], m->id[p], false);
        if (st == STINT_OK)
            st = advance(c, m, p);
    }
    return st;
}

static stint_status merge_parts(sti_click_counter *c)
{
    merge *m = sti_alloc(sizeof *m, "clicks.merge");
    char *room = sti_alloc_array(c->parts, 1 << 16, "clicks.merge");
    stint_status st = m && room ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        for (int p = 0; p < c->parts; p++)
            m->id[p] = room + ((size_t)p << 16);
        qsort(c->others, (size_t)c->clicks.fields, sizeof *c->others, by_rank);
        st = merge_orders(c, m);
    }
    sti_free(m);
    sti_free(room);
    return st;
}

/* ---- the ids of a model ---- */

static stint_status spill_known(void *user, int64_t rank, int field, const char *id,
                                size_t length)
{
    sti_click_counter *c = user;
    if (field < 0)
        return STINT_OK;
    const occurrence o = {
        .sample = (uint64_t)rank, .field = (uint16_t)field, .length = (uint16_t)length};
    sti_spill *to =
        &c->part[sti_click_hash(field, id, length) % (uint64_t)c->parts].known;
    const stint_status st = sti_spill_add(to, &o, sizeof o);
    return st == STINT_OK ? sti_spill_add(to, id, length) : st;
}

/* Rows, others and ids as the model has them. */
static stint_status take_like(sti_click_counter *c)
{
    const sti_clicks *like = c->desc->like;
    c->clicks.rows = like->rows;
    for (int f = 0; f < like->fields; f++) {
        c->clicks.field[f].other = like->field[f].other;
        c->clicks.field[f].ids = like->field[f].ids;
    }
    return sti_clicks_each_id(like, spill_known, c);
}

/* ---- ranks to where they belong ---- */

static stint_status load_ranks(sti_click_counter *c, sti_click_part *part,
                               uint32_t *rank)
{
    uint32_t pair[2] = {0, 0};
    bool more = true;
    int64_t i = 0;
    stint_status st = sti_spill_rewind(&part->ranks);
    for (int64_t k = 0; k < part->distinct; k++)
        rank[k] = STI_CLICKS_NO_ROW;
    while (st == STINT_OK) {
        st = c->desc->like ? sti_spill_next(&part->ranks, &pair[1], 4, &more)
                           : sti_spill_next(&part->ranks, pair, sizeof pair, &more);
        if (st != STINT_OK || !more)
            break;
        rank[c->desc->like ? i++ : pair[0]] = pair[1];
    }
    return st;
}

/* What a block's file holds: sample within the block, slot, rank. */
static stint_status deal_part(sti_click_counter *c, sti_click_part *part,
                              const uint32_t *rank)
{
    numbered n;
    bool more = true;
    stint_status st = sti_spill_rewind(&part->places);
    while (st == STINT_OK) {
        st = sti_spill_next(&part->places, &n, sizeof n, &more);
        if (st != STINT_OK || !more)
            break;
        const sti_clicks_field *f = &c->clicks.field[n.field];
        const uint32_t own = rank[n.id];
        const int64_t block = (int64_t)n.sample / c->block_samples;
        const uint32_t what[3] = {
            (uint32_t)((int64_t)n.sample - block * c->block_samples),
            f->first + n.index, own == STI_CLICKS_NO_ROW ? f->other : own};
        st = sti_spill_add(&c->block[block].ids, what, sizeof what);
    }
    return st;
}

static stint_status open_blocks(sti_click_counter *c)
{
    stint_status st = STINT_OK;
    sti_clicks_place(&c->clicks);
    const int64_t half = (int64_t)(c->memory_bytes / 2);
    const int64_t bytes = c->clicks.samples * (int64_t)c->clicks.sample_bytes;
    int64_t blocks = 1 + bytes / half;
    if (blocks > STI_CLICKS_PARTS)
        blocks = STI_CLICKS_PARTS;
    c->block_samples = (c->clicks.samples + blocks - 1) / blocks;
    c->blocks = (int)((c->clicks.samples + c->block_samples - 1) / c->block_samples);
    for (int b = 0; b < c->blocks && st == STINT_OK; b++)
        st = sti_spill_open(&c->block[b].ids);
    return st;
}

static stint_status deal(sti_click_counter *c)
{
    stint_status st = open_blocks(c);
    for (int p = 0; p < c->parts && st == STINT_OK; p++) {
        sti_click_part *part = &c->part[p];
        uint32_t *rank =
            sti_alloc_array(part->distinct + 1, sizeof *rank, "clicks.ranks");
        st = rank ? load_ranks(c, part, rank) : STINT_E_MEMORY;
        if (st == STINT_OK)
            st = deal_part(c, part, rank);
        sti_free(rank);
    }
    return st;
}

stint_status sti_click_counter_rank(sti_click_counter *c)
{
    stint_status st = STINT_OK;
    for (int f = 0; f < c->clicks.fields; f++)
        c->others[f] = (sti_click_entry){.first = UINT64_MAX, .field = (uint16_t)f};
    if (c->desc->like)
        STI_TRY(take_like(c));
    for (int p = 0; p < c->parts; p++)
        STI_TRY(count_part(c, &c->part[p]));
    sti_click_ids_fini(&c->ids);
    if (!c->desc->like)
        STI_TRY(merge_parts(c));
    STI_TRY(deal(c));
out:
    return st;
}
