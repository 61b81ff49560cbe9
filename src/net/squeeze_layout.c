/* Where layers, slices and moves lie and how large they are: what the making of a
 * compressed sum, its runs and its top-k lists all ask. */
#include <inttypes.h>

#include "base/fail.h"
#include "net/squeeze_priv.h"

bool sti_squeeze_is_compressed(const sti_squeeze *s, int layer)
{
    const sti_squeeze_layer *l = &s->layers[layer];
    return l->dims >= 2 && l->count >= s->desc.min_count;
}

bool sti_squeeze_is_sparse(const sti_squeeze *s, int layer)
{
    return s->desc.keep < 1 && sti_squeeze_is_compressed(s, layer);
}

sti_gradient_form sti_squeeze_form_of(const sti_squeeze *s, int layer)
{
    sti_gradient_form form = s->desc.form;
    form.bits = s->bits[layer];
    return form;
}

size_t sti_squeeze_piece_bytes(const sti_squeeze *s, const squeeze_piece *p)
{
    const sti_gradient_form form = sti_squeeze_form_of(s, p->layer);
    return form.bits == STI_SQUEEZE_RAW ? (size_t)p->n * 4
                                        : sti_gradient_bytes(&form, p->n);
}

squeeze_slice *sti_squeeze_slice(const sti_squeeze *s, int part, int slice)
{
    return &s->slices[(int64_t)part * sti_comm_size(s->comm) + slice];
}

static bool is_raw(const sti_move *move)
{
    return move->kind == STI_MOVE_SEND_RAW || move->kind == STI_MOVE_ADD_RAW;
}

size_t sti_squeeze_move_bytes(const sti_squeeze *s, int part, const sti_move *move)
{
    size_t bytes = 0;
    for (int i = move->slice; i < move->slice + move->count; i++) {
        const squeeze_slice *slice = sti_squeeze_slice(s, part, i);
        bytes += is_raw(move) ? (size_t)slice->values * 4 : slice->bytes;
    }
    return bytes;
}

uint8_t *sti_squeeze_move_coded(const sti_squeeze *s, int part, const sti_move *move)
{
    const squeeze_slice *first = sti_squeeze_slice(s, part, move->slice);
    return s->coded + (is_raw(move) ? first->raw_at : first->coded_at);
}

bool sti_squeeze_feeds_back(const sti_squeeze *s, int bits)
{
    return s->residual && bits <= STI_SQUEEZE_FEEDBACK_BITS;
}

stint_status sti_squeeze_not_finite(sti_squeeze *s, int layer, int64_t value)
{
    return sti_comm_give_up(
        s->comm, sti_fail(STINT_E_FAILED,
                          "gradient of %s: value %" PRId64 " on rank %d is not finite "
                          "(or beyond 2^100); a smaller learning rate or gradient "
                          "clipping may help",
                          s->layers[layer].name, value, sti_comm_rank(s->comm)));
}
