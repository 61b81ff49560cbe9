/* The codec's calls: arguments, workspace, threads. */
#include "codec/codec.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "codec/codec_work.h"
#include "kernel/lane/dispatch.h"

/* ---- workspace ---- */

/* Room for count things; false when the sum overflows. */
static bool reserve(size_t *total, int64_t count, size_t each_bytes, size_t *at_out)
{
    size_t bytes;
    *at_out = *total;
    return sti_mul_bytes(count, each_bytes, &bytes) && bytes < SIZE_MAX / 4 &&
           sti_add_bytes(*total, STI_ALIGN_UP(bytes, 64), total);
}

typedef struct pack_room {
    size_t fit, counts, entry, usual, usual_code, model_coded, sums, entries, chunks,
        made;
} pack_room;

static size_t chunk_bytes(const sti_codec_layout *l)
{
    return (size_t)l->chunk * 4;
}

static bool room_to_pack(const sti_codec_layout *l, int threads, size_t *total,
                         pack_room *r)
{
    const int64_t cells = (int64_t)STI_CODEC_CONTEXTS * STI_CODEC_TOKENS;
    const int64_t tables =
        threads > STI_CODEC_CANDIDATES ? threads : STI_CODEC_CANDIDATES;
    return reserve(total, 1, sti_codec_fit_scratch_bytes(), &r->fit) &&
           reserve(total, tables * STI_CODEC_BUCKETS * STI_CODEC_TOKENS, 4,
                   &r->counts) &&
           reserve(total, cells, 8, &r->entry) &&
           reserve(total, STI_CODEC_CANDIDATES * (l->channels + STI_CODEC_LANES), 4,
                   &r->usual) &&
           reserve(total, STI_CODEC_CANDIDATES * l->channels, 1, &r->usual_code) &&
           reserve(total, STI_CODEC_MODEL_BYTES, 1, &r->model_coded) &&
           reserve(total, (STI_CODEC_CANDIDATES + 1) * l->channels, 8, &r->sums) &&
           reserve(total, l->chunks, sizeof(sti_codec_entry), &r->entries) &&
           reserve(total, 2 * (int64_t)threads, chunk_bytes(l), &r->chunks) &&
           reserve(total, (int64_t)threads * STI_CODEC_MADE, sizeof(float), &r->made);
}

typedef struct unpack_room {
    size_t table, usual, offset, damaged, parts;
} unpack_room;

static int64_t groups_of(const sti_codec_layout *l)
{
    return (l->chunks + STI_CODEC_GROUP - 1) / STI_CODEC_GROUP;
}

/* Values of a group of chunks. */
static int64_t part_of(const sti_codec_layout *l)
{
    const int64_t most = STI_CODEC_GROUP * l->chunk;
    return l->count < most ? l->count : most;
}

/* parts: of so many threads that have one. */
static bool room_to_unpack(const sti_codec_layout *l, int parts, size_t *total,
                           unpack_room *r)
{
    return reserve(total, (int64_t)STI_CODEC_CONTEXTS * STI_CODEC_SCALE, 4,
                   &r->table) &&
           reserve(total, l->channels + STI_CODEC_LANES, 4, &r->usual) &&
           reserve(total, groups_of(l), 8, &r->offset) &&
           reserve(total, groups_of(l), 1, &r->damaged) &&
           reserve(total, parts * part_of(l), sizeof(float), &r->parts);
}

/* Where both begin: the model, at the first multiple of 64. */
static const size_t model_room = STI_ALIGN_UP(sizeof(sti_codec_model), 64);

static int threads_of(int threads)
{
    return threads < 1 ? 1 : threads > STI_CODEC_THREADS ? STI_CODEC_THREADS : threads;
}

/* parts: unpacking has no other place for values. */
static stint_status room_of(const sti_codec_layout *l, int threads, bool parts,
                            size_t *bytes_out, pack_room *pack, unpack_room *unpack)
{
    size_t a = model_room, b = model_room;
    if (!room_to_pack(l, threads_of(threads), &a, pack) ||
        !room_to_unpack(l, parts ? threads : 0, &b, unpack))
        return sti_fail(STINT_E_USAGE, "codec: a workspace beyond all memory");
    *bytes_out = (a > b ? a : b) + 63;
    return STINT_OK;
}

static stint_status workspace_bytes(const stint_codec_desc *desc, int threads,
                                    bool parts, size_t *bytes_out)
{
    sti_codec_layout l;
    pack_room pack;
    unpack_room unpack;
    const stint_status status = sti_codec_check_shape(desc, &l);
    return status == STINT_OK ? room_of(&l, threads, parts, bytes_out, &pack, &unpack)
                              : status;
}

stint_status sti_codec_workspace_bytes(const stint_codec_desc *desc, int threads,
                                       size_t *bytes_out)
{
    return workspace_bytes(desc, threads, false, bytes_out);
}

stint_status sti_codec_parts_workspace_bytes(const stint_codec_desc *desc, int threads,
                                             size_t *bytes_out)
{
    return workspace_bytes(desc, threads, true, bytes_out);
}

static stint_status check_workspace(const void *workspace, size_t given, size_t wanted)
{
    if (!workspace || given < wanted)
        return sti_fail(STINT_E_INPUT,
                        "codec: a workspace of %zu bytes; %zu are wanted",
                        workspace ? given : 0, wanted);
    return STINT_OK;
}

/* ---- packing ---- */

static void place_pack(sti_codec_pack_job *p, char *base, const pack_room *r)
{
    const size_t each = chunk_bytes(&p->layout);
    p->model = (void *)base;
    p->fit = base + r->fit;
    p->counts = (void *)(base + r->counts);
    p->entry = (void *)(base + r->entry);
    p->usual = (void *)(base + r->usual);
    p->usual_code = (void *)(base + r->usual_code);
    p->model_coded = (void *)(base + r->model_coded);
    p->sums = (void *)(base + r->sums);
    p->entries = (void *)(base + r->entries);
    for (int i = 0; i < p->team.threads; i++) {
        p->w[i] = (void *)(base + r->chunks + 2 * (size_t)i * each);
        p->stream[i] = (void *)(base + r->chunks + (2 * (size_t)i + 1) * each);
        p->made[i] = (float *)(void *)(base + r->made) + (ptrdiff_t)i * STI_CODEC_MADE;
    }
    p->coder = (sti_codec_coder){p->entry};
}

static char *align_64(void *workspace)
{
    return (char *)workspace + (-(uintptr_t)workspace & 63);
}

stint_status sti_codec_pack(const sti_team *team, const stint_codec_desc *desc,
                            const sti_codec_source *source, const uint8_t *mask,
                            void *out, size_t capacity_bytes, void *workspace,
                            size_t workspace_bytes, stint_codec_result *result_out)
{
    sti_codec_pack_job p = {.desc = desc,
                            .source = *source,
                            .mask = mask,
                            .out = out,
                            .capacity = out ? capacity_bytes : SIZE_MAX,
                            .kernels = STI_KERNELS_NOW(sti_codec_kernels),
                            .team = {threads_of(team->threads)}};
    pack_room pack;
    unpack_room unpack;
    size_t wanted = 0;
    stint_status status = sti_codec_check(desc, &p.layout);
    if (status == STINT_OK)
        status = room_of(&p.layout, p.team.threads, false, &wanted, &pack, &unpack);
    if (status == STINT_OK)
        status = check_workspace(workspace, workspace_bytes, wanted);
    if (status != STINT_OK)
        return status;
    const bool nothing = !source->x && !source->x16 && !source->make;
    if ((nothing && p.layout.count > 0) || !result_out)
        return sti_fail(STINT_E_INPUT, "codec: no memory is given");
    place_pack(&p, align_64(workspace), &pack);
    status = sti_codec_pack_run(&p);
    if (status != STINT_OK)
        return status;
    *result_out = (stint_codec_result){.bytes = p.bytes,
                                       .max_error = (double)p.found.max_error,
                                       .zeros = p.found.zeros,
                                       .outliers = p.found.outliers,
                                       .raw = p.raw,
                                       .predictor = p.model->predictor,
                                       .contexts = p.model->contexts};
    if (p.bytes > p.capacity)
        return sti_fail(STINT_E_BUDGET,
                        "codec: the packed block has %zu bytes, there is room for %zu",
                        p.bytes, capacity_bytes);
    return STINT_OK;
}

/* ---- unpacking ---- */

static stint_status check_expected(const stint_codec_desc *desc,
                                   const sti_codec_head *h, const uint8_t *mask,
                                   const uint8_t *kind)
{
    bool same = h->rank == desc->rank;
    for (int i = 0; i < desc->rank && same; i++)
        same = h->dim[i] == desc->dim[i];
    if (!same)
        return sti_fail(STINT_E_INPUT,
                        "packed block: of another shape than is expected (rank %d, "
                        "first axis %" PRId64 "; expected rank %d, first axis %" PRId64
                        ")",
                        h->rank, h->dim[0], desc->rank, desc->dim[0]);
    if ((h->flags & STI_CODEC_MASKED) != 0 && !mask)
        return sti_fail(STINT_E_INPUT,
                        "packed block: the mask that it was packed with is wanted");
    if ((h->flags & STI_CODEC_MASKED) == 0 && mask)
        return sti_fail(STINT_E_INPUT, "packed block: was packed without a mask");
    if (((h->flags & STI_CODEC_KINDS) != 0) != (kind != NULL))
        return sti_fail(STINT_E_INPUT,
                        "packed block: the kinds of values that it was packed with are "
                        "wanted, no others");
    return STINT_OK;
}

stint_status sti_codec_unpack(const sti_team *team, const stint_codec_desc *desc,
                              const void *packed, size_t bytes, const uint8_t *mask,
                              const sti_codec_sink *sink, void *workspace,
                              size_t workspace_bytes)
{
    sti_codec_unpack_job job = {.packed = packed,
                                .mask = mask,
                                .sink = *sink,
                                .kernels = STI_KERNELS_NOW(sti_codec_kernels)};
    pack_room pack;
    unpack_room unpack;
    size_t wanted = 0;
    stint_status status = sti_codec_check_shape(desc, &job.layout);
    if (status == STINT_OK)
        status = room_of(&job.layout, team->threads, !sink->x, &wanted, &pack, &unpack);
    if (status == STINT_OK)
        status = check_workspace(workspace, workspace_bytes, wanted);
    if (status != STINT_OK)
        return status;
    const bool nowhere = !sink->x && !sink->x16 && !sink->take;
    if (!packed || (nowhere && job.layout.count > 0))
        return sti_fail(STINT_E_INPUT, "codec: no memory is given");
    status = sti_codec_head_read(packed, bytes, &job.head);
    if (status == STINT_OK)
        status = check_expected(desc, &job.head, mask, sink->kind);
    if (status != STINT_OK)
        return status;
    char *base = align_64(workspace);
    job.model = (void *)base;
    job.table = (void *)(base + unpack.table);
    job.usual = (void *)(base + unpack.usual);
    job.offset = (void *)(base + unpack.offset);
    job.damaged = (void *)(base + unpack.damaged);
    job.part = (void *)(base + unpack.parts);
    job.part_n = part_of(&job.layout);
    return sti_codec_unpack_run(team, &job);
}

/* ---- for callers without a team ---- */

stint_status stint_codec_workspace_bytes(const stint_codec_desc *desc,
                                         size_t *bytes_out)
{
    return sti_codec_workspace_bytes(desc, desc->threads, bytes_out);
}

stint_status stint_codec_pack(const stint_codec_desc *desc, const float *x,
                              const uint8_t *mask, void *out, size_t capacity_bytes,
                              void *workspace, size_t workspace_bytes,
                              stint_codec_result *result_out)
{
    const sti_team team = {threads_of(desc->threads)};
    const sti_codec_source source = {.x = x};
    return sti_codec_pack(&team, desc, &source, mask, out, capacity_bytes, workspace,
                          workspace_bytes, result_out);
}

stint_status stint_codec_unpack(const stint_codec_desc *desc, const void *packed,
                                size_t bytes, const uint8_t *mask, float *x_out,
                                void *workspace, size_t workspace_bytes)
{
    const sti_team team = {threads_of(desc->threads)};
    const sti_codec_sink sink = {.x = x_out};
    return sti_codec_unpack(&team, desc, packed, bytes, mask, &sink, workspace,
                            workspace_bytes);
}
