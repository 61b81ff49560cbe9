/* Where layers, slices and moves lie and how large they are: what the making of a
 * compressed sum, its runs and its top-k lists all ask. */
#include <inttypes.h>

#include "base/fail.h"
#include "net/compressed_priv.h"

bool sti_compressed_takes_layer(const sti_compressed_allreduce *s, int layer)
{
    const sti_compressed_layer *l = &s->layers[layer];
    return l->dims >= 2 && l->count >= s->desc.min_count;
}

bool sti_compressed_is_sparse(const sti_compressed_allreduce *s, int layer)
{
    return s->desc.keep < 1 && sti_compressed_takes_layer(s, layer);
}

sti_gradient_form sti_compressed_form_of(const sti_compressed_allreduce *s, int layer)
{
    sti_gradient_form form = s->desc.form;
    form.bits = s->bits[layer];
    return form;
}

size_t sti_compressed_piece_bytes(const sti_compressed_allreduce *s,
                                  const allreduce_piece *p)
{
    const sti_gradient_form form = sti_compressed_form_of(s, p->layer);
    return form.bits == STI_COMPRESSED_RAW ? (size_t)p->n * 4
                                           : sti_gradient_bytes(&form, p->n);
}

allreduce_slice *sti_compressed_slice(const sti_compressed_allreduce *s, int part,
                                      int slice)
{
    return &s->slices[(int64_t)part * sti_comm_size(s->comm) + slice];
}

static bool is_raw(const sti_move *move)
{
    return move->kind == STI_MOVE_SEND_RAW || move->kind == STI_MOVE_ADD_RAW;
}

size_t sti_compressed_move_bytes(const sti_compressed_allreduce *s, int part,
                                 const sti_move *move)
{
    size_t bytes = 0;
    for (int i = move->slice; i < move->slice + move->count; i++) {
        const allreduce_slice *slice = sti_compressed_slice(s, part, i);
        bytes += is_raw(move) ? (size_t)slice->values * 4 : slice->bytes;
    }
    return bytes;
}

uint8_t *sti_compressed_move_coded(const sti_compressed_allreduce *s, int part,
                                   const sti_move *move)
{
    const allreduce_slice *first = sti_compressed_slice(s, part, move->slice);
    return s->coded + (is_raw(move) ? first->raw_at : first->coded_at);
}

bool sti_compressed_feeds_back(const sti_compressed_allreduce *s, int bits)
{
    return s->residual && bits <= STI_COMPRESSED_FEEDBACK_BITS;
}

stint_status sti_compressed_not_finite(sti_compressed_allreduce *s, int layer,
                                       int64_t value)
{
    return sti_comm_give_up(
        s->comm, sti_fail(STINT_E_FAILED,
                          "gradient of %s: value %" PRId64 " on rank %d is not finite "
                          "(or beyond 2^100); a smaller learning rate or gradient "
                          "clipping may help",
                          s->layers[layer].name, value, sti_comm_rank(s->comm)));
}
