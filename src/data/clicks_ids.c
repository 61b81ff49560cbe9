#include "data/clicks_ids.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

/* FNV-1a with a finish (Murmur3's), since its last bytes hardly reach the high bits. */
uint64_t sti_click_hash(int field, const char *id, size_t length)
{
    uint64_t h = 0xcbf29ce484222325u ^ (uint64_t)field * 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < length; i++)
        h = (h ^ (uint8_t)id[i]) * 0x100000001b3u;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

static stint_status grow_entries(sti_click_ids *ids)
{
    const int64_t more = ids->capacity ? 2 * ids->capacity : 1024;
    if (more > UINT32_MAX)
        return sti_fail(STINT_E_UNSUPPORTED, "more than 4 billion different ids");
    sti_click_entry *entry =
        sti_realloc(ids->entry, (size_t)more * sizeof *entry, "clicks.entries");
    if (!entry)
        return STINT_E_MEMORY;
    ids->entry = entry;
    uint32_t *slot = sti_alloc_array(2 * more, sizeof *slot, "clicks.slots");
    if (!slot)
        return STINT_E_MEMORY;
    sti_free(ids->slot);
    ids->slot = slot;
    ids->slots = 2 * more;
    ids->capacity = more;
    for (int64_t i = 0; i < ids->count; i++) {
        uint64_t at = entry[i].hash & (uint64_t)(ids->slots - 1);
        while (slot[at])
            at = (at + 1) & (uint64_t)(ids->slots - 1);
        slot[at] = (uint32_t)i + 1;
    }
    return STINT_OK;
}

static stint_status add_text(sti_click_ids *ids, const char *id, size_t length)
{
    while (ids->text_bytes + length >= ids->text_capacity) { /* never NULL, then */
        const size_t more = ids->text_capacity ? 2 * ids->text_capacity : 1 << 17;
        char *text = sti_realloc(ids->text, more, "clicks.texts");
        if (!text)
            return STINT_E_MEMORY;
        ids->text = text;
        ids->text_capacity = more;
    }
    memcpy(ids->text + ids->text_bytes, id, length);
    ids->text_bytes += length;
    return STINT_OK;
}

int64_t sti_click_ids_find(sti_click_ids *ids, int field, const char *id, size_t length,
                           bool *new_out)
{
    const uint64_t hash = sti_click_hash(field, id, length);
    if (ids->count == ids->capacity && grow_entries(ids) != STINT_OK)
        return -1;
    uint64_t at = hash & (uint64_t)(ids->slots - 1);
    for (; ids->slot[at]; at = (at + 1) & (uint64_t)(ids->slots - 1)) {
        const sti_click_entry *e = &ids->entry[ids->slot[at] - 1];
        if (e->hash == hash && e->field == field && e->length == length &&
            memcmp(ids->text + e->text, id, length) == 0) {
            *new_out = false;
            return ids->slot[at] - 1;
        }
    }
    const size_t text = ids->text_bytes;
    if (add_text(ids, id, length) != STINT_OK)
        return -1;
    ids->entry[ids->count] = (sti_click_entry){.hash = hash,
                                               .text = text,
                                               .field = (uint16_t)field,
                                               .length = (uint16_t)length};
    ids->slot[at] = (uint32_t)++ids->count;
    *new_out = true;
    return ids->count - 1;
}

void sti_click_ids_clear(sti_click_ids *ids)
{
    if (ids->slot)
        memset(ids->slot, 0, (size_t)ids->slots * sizeof *ids->slot);
    ids->count = 0;
    ids->text_bytes = 0;
}

void sti_click_ids_fini(sti_click_ids *ids)
{
    sti_free(ids->entry);
    sti_free(ids->slot);
    sti_free(ids->text);
    *ids = (sti_click_ids){.entry = NULL};
}
