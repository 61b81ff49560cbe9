/* An array on its way through the codec and back, for its tests. Included once a
 * program, behind cmocka.h. */
#ifndef CODEC_PACKING_H
#define CODEC_PACKING_H

#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "codec/codec.h"
#include "codec_inputs.h"

typedef struct packing {
    stint_codec_desc desc;
    int64_t count;
    float *x, *y;
    uint8_t *block, *mask;
    void *workspace;
    size_t capacity, workspace_bytes;
    bool masked;
    stint_codec_result result;
} packing;

static inline void packing_open(packing *p, const stint_codec_desc *desc,
                                input_kind kind)
{
    *p = (packing){.desc = *desc, .count = 1};
    for (int i = 0; i < desc->rank; i++)
        p->count *= desc->dim[i];
    if (p->desc.threads == 0)
        p->desc.threads = 3;
    if (p->desc.bound == 0)
        p->desc.bound = 1;
    assert_int_equal(stint_codec_max_bytes(&p->desc, &p->capacity), STINT_OK);
    assert_int_equal(stint_codec_workspace_bytes(&p->desc, &p->workspace_bytes),
                     STINT_OK);
    p->x = malloc((size_t)p->count * 4 + 1);
    p->y = malloc((size_t)p->count * 4 + 1);
    p->block = malloc(p->capacity);
    p->mask = calloc((size_t)(p->count + 7) / 8 + 1, 1);
    p->workspace = malloc(p->workspace_bytes);
    assert_true(p->x && p->y && p->block && p->mask && p->workspace);
    input_state = 88172645463325252u + (uint64_t)kind;
    input_fill(kind, p->count, desc->dim[desc->rank - 1], p->x);
    for (int64_t i = 0; i < p->count; i++)
        p->mask[i / 8] |= (uint8_t)((p->x[i] != 0.0f) << i % 8);
}

static inline void packing_close(packing *p)
{
    free(p->x);
    free(p->y);
    free(p->block);
    free(p->mask);
    free(p->workspace);
}

static inline stint_status packing_pack(packing *p)
{
    return stint_codec_pack(&p->desc, p->x, p->masked ? p->mask : NULL, p->block,
                            p->capacity, p->workspace, p->workspace_bytes, &p->result);
}

static inline stint_status packing_unpack(packing *p)
{
    memset(p->y, 0xee, (size_t)p->count * 4);
    return stint_codec_unpack(&p->desc, p->block, p->result.bytes,
                              p->masked ? p->mask : NULL, p->y, p->workspace,
                              p->workspace_bytes);
}

static inline void force(int isa)
{
    if (!sti_isa_force((sti_isa)isa))
        sti_isa_force(STI_ISA_REF);
}

#endif
