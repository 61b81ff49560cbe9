/* The memory that messages of a compressed sum lie in. There is room for all parts at
 * once under the bits that the desc says; with more bits, up to float32, as many parts
 * are under way at a time as it holds. Every rank counts alike: it is as many on all,
 * so that no rank sends what another has no room for yet before what that one waits
 * for. */
#include <assert.h>

#include "base/memory.h"
#include "net/compressed_priv.h"

/* A piece under any bits takes no more than its floats and PIECE_ROOM, and under bits
 * no more than its share of the layer and PIECE_MORE. */
enum { PIECE_ROOM = 16, PIECE_MORE = 24, ALIGN = 64, TURNS = 2 };

int sti_compressed_parts_at_most(const sti_compressed_allreduce_desc *d, int64_t values)
{
    const int64_t fusion = d->fusion > 0 ? d->fusion : STI_COMPRESSED_FUSION;
    int count = 0;
    for (; values > 0; values -= sti_schedule_part(fusion, values))
        count++;
    return count ? count : 1;
}

/* Two levels add floats first, whatever the bits, and all parts are under way: at most
 * the vector, in slices that are unequal by a cut, each with room for all pieces. */
static sti_compressed_room room_of_floats(int64_t values, size_t layers, size_t parts,
                                          size_t size)
{
    const size_t bytes = (size_t)values * 4 +
                         parts * (size + 1) * (ALIGN + STI_COMPRESSED_CUT * 4) +
                         (layers + parts) * size * PIECE_ROOM;
    return (sti_compressed_room){bytes, bytes};
}

sti_compressed_room sti_compressed_room_of(const sti_compressed_allreduce_desc *d,
                                           int size, const sti_compressed_extent *x)
{
    const int64_t coded = d->keep < 1 ? 0 : x->coded, values = coded + x->raw;
    const int64_t fusion = d->fusion > 0 ? d->fusion : STI_COMPRESSED_FUSION;
    const size_t parts = (size_t)sti_compressed_parts_at_most(d, values);
    const size_t others = (size_t)size - 1, layers = (size_t)x->layers;
    const size_t pieces = layers + parts * (size_t)size;
    if (d->scheme == STI_SCHEME_TWO_LEVEL)
        return room_of_floats(values, layers, parts, (size_t)size);
    sti_gradient_form form = d->form;
    form.bits = d->room_bits > 0 ? d->room_bits : form.bits;
    const size_t code = form.bits == STI_COMPRESSED_RAW
                            ? (size_t)coded * 4
                            : sti_gradient_bytes(&form, coded);
    const size_t raw = (size_t)x->raw * 4;
    /* Parts never grow but for the last one, which may take what is left. */
    int64_t largest =
        sti_schedule_part(fusion, values) +
        (fusion < STI_SCHEDULE_LEAST_PART ? fusion : STI_SCHEDULE_LEAST_PART);
    largest = (largest < values ? largest : values) + STI_COMPRESSED_CUT;
    const size_t part =
        (size_t)largest * 4 + (layers + (size_t)size) * PIECE_ROOM + ALIGN;
    const size_t slice = (size_t)(largest / size + 1 + STI_COMPRESSED_CUT) * 4 +
                         (layers + 1) * PIECE_ROOM + ALIGN;
    const size_t turns = parts < TURNS ? parts : TURNS;
    const size_t all = code + raw + pieces * PIECE_MORE + parts * ALIGN;
    /* A rank's own slices, which may be the very ones that are not compressed. */
    const size_t floats = (size_t)values * 4 / (size_t)size;
    const size_t own = code / (size_t)size + raw;
    const size_t land =
        others * ((own < floats ? own : floats) + (layers + parts) * PIECE_MORE +
                  parts * (ALIGN + 2 * STI_COMPRESSED_CUT * 4));
    sti_compressed_room room = {turns * part, turns * others * slice};
    room.coded = all > room.coded ? all : room.coded;
    room.landing = land > room.landing ? land : room.landing;
    return room;
}

/* ---- places under the bits of now ---- */

static size_t room_of_slice(const sti_compressed_allreduce *s,
                            const allreduce_slice *slice)
{
    return s->desc.scheme == STI_SCHEME_TWO_LEVEL
               ? (size_t)slice->values * 4 + (size_t)slice->piece_count * PIECE_ROOM
               : slice->bytes;
}

static bool lands(const sti_move *m)
{
    return m->kind == STI_MOVE_ADD || m->kind == STI_MOVE_ADD_RAW;
}

/* What a part takes on whichever rank it takes most. */
static sti_compressed_room room_of_part(const sti_compressed_allreduce *s, int part)
{
    const int size = sti_comm_size(s->comm);
    sti_compressed_room room = {0, 0};
    size_t largest = 0;
    for (int i = 0; i < size; i++) {
        const size_t bytes = room_of_slice(s, sti_compressed_slice(s, part, i));
        room.coded += bytes;
        largest = bytes > largest ? bytes : largest;
    }
    room.coded = STI_ALIGN_UP(room.coded, ALIGN);
    room.landing = (size_t)(size - 1) * STI_ALIGN_UP(largest, ALIGN);
    return room;
}

/* Receives that are added have a place each: all may be there at once. */
static size_t place_landing(sti_compressed_allreduce *s, int part, size_t at)
{
    for (int i = 0; i < s->rounds.move_count; i++) {
        const sti_move *m = &s->moves[i];
        if (!lands(m))
            continue;
        s->landing_at[(int64_t)part * s->rounds.move_count + i] = at;
        for (int k = m->slice; k < m->slice + m->count; k++)
            at += room_of_slice(s, sti_compressed_slice(s, part, k));
        at = STI_ALIGN_UP(at, ALIGN);
    }
    return at;
}

static void place_slices(sti_compressed_allreduce *s, int part)
{
    size_t coded_at = s->parts[part].coded_at, raw_at = coded_at;
    for (int i = 0; i < sti_comm_size(s->comm); i++) {
        allreduce_slice *slice = sti_compressed_slice(s, part, i);
        slice->coded_at = coded_at;
        slice->raw_at = raw_at;
        coded_at += slice->bytes;
        raw_at += (size_t)slice->values * 4;
    }
}

/* One behind the other, or in as many equal places as there is room for. */
void sti_compressed_place(sti_compressed_allreduce *s)
{
    const int parts = s->rounds.part_count;
    sti_compressed_room all = {0, 0}, most = {0, 0};
    size_t landing_at = 0, coded_at = 0;
    for (int part = 0; part < parts; part++) {
        const sti_compressed_room room = room_of_part(s, part);
        all.coded += room.coded;
        all.landing += room.landing;
        most.coded = room.coded > most.coded ? room.coded : most.coded;
        most.landing = room.landing > most.landing ? room.landing : most.landing;
    }
    const bool fit = s->desc.scheme == STI_SCHEME_TWO_LEVEL ||
                     (all.coded <= s->room.coded && all.landing <= s->room.landing);
    size_t window = (size_t)parts;
    for (; !fit && window > 1 &&
           (window * most.coded > s->room.coded ||
            window * most.landing > s->room.landing);)
        window--;
    assert(fit || (most.coded <= s->room.coded && most.landing <= s->room.landing));
    s->rounds.window = (int)window;
    for (int part = 0; part < parts; part++) {
        const size_t slot = (size_t)part % window;
        s->parts[part].coded_at = fit ? coded_at : slot * most.coded;
        place_slices(s, part);
        coded_at += room_of_part(s, part).coded;
        landing_at = place_landing(s, part, fit ? landing_at : slot * most.landing);
    }
    if (s->desc.scheme == STI_SCHEME_TWO_LEVEL)
        s->room = (sti_compressed_room){coded_at, landing_at};
}
