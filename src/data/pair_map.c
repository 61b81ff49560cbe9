/* A table from 64-bit keys to numbers: pairs of tokens, hashes of words. */
#include "data/tokenizer.h"

static uint64_t mix(uint64_t key)
{
    key ^= key >> 31;
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 29;
}

static int64_t slot_of(const sti_pair_map *map, uint64_t key)
{
    int64_t slot = (int64_t)(mix(key) & (uint64_t)(map->slots - 1));
    while (map->key[slot] != 0 && map->key[slot] != key + 1)
        slot = (slot + 1) & (map->slots - 1);
    return slot;
}

int32_t sti_pair_map_find(const sti_pair_map *map, uint64_t key)
{
    if (map->slots == 0)
        return -1;
    const int64_t slot = slot_of(map, key);
    return map->key[slot] == 0 ? -1 : map->value[slot];
}

static stint_status grow(sti_pair_map *map)
{
    sti_pair_map larger = {.slots = map->slots ? map->slots * 2 : 1024};
    larger.key = sti_alloc_array(larger.slots, sizeof *larger.key, "pairs");
    larger.value = sti_alloc_array(larger.slots, sizeof *larger.value, "pairs");
    if (!larger.key || !larger.value) {
        sti_pair_map_fini(&larger);
        return STINT_E_MEMORY;
    }
    for (int64_t i = 0; i < map->slots; i++) {
        if (map->key[i] == 0)
            continue;
        const int64_t slot = slot_of(&larger, map->key[i] - 1);
        larger.key[slot] = map->key[i];
        larger.value[slot] = map->value[i];
    }
    larger.used = map->used;
    sti_pair_map_fini(map);
    *map = larger;
    return STINT_OK;
}

stint_status sti_pair_map_put(sti_pair_map *map, uint64_t key, int32_t value)
{
    if (2 * (map->used + 1) > map->slots && grow(map) != STINT_OK)
        return STINT_E_MEMORY;
    const int64_t slot = slot_of(map, key);
    map->used += map->key[slot] == 0;
    map->key[slot] = key + 1;
    map->value[slot] = value;
    return STINT_OK;
}

void sti_pair_map_fini(sti_pair_map *map)
{
    sti_free(map->key);
    sti_free(map->value);
    *map = (sti_pair_map){0};
}
