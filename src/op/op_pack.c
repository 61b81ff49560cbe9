/* Tensors held packed between the forward and the backward half: the codec as two
 * operators. A block has a fixed capacity, which the plan counts, and a head of its
 * own. What does not fit even at the coarsest bound allowed is not stored at all: the
 * statistics say so, unpacking gives zeros, and the host throws the run away. */
#include <math.h>
#include <string.h>

#include "codec/codec.h"
#include "kernel/fold/fold.h"
#include "op/op_priv.h"

enum { X, BOUNDS, MEAN, INVERSE, PACK_BITS }; /* of pack */
enum {
    BLOCK,
    U_MEAN,
    U_INVERSE,
    U_SCALE,
    U_SHIFT,
    UNPACK_BITS,
    U_RESIDUAL
}; /* unpack */

enum { TRIES = 4, HEAD_BYTES = 64, RANGE_PIECE = 2048 };

/* Bounds, as shares of the largest magnitude, where none are given. */
#define MODERATE 0x1p-7
#define COARSEST 0.25

typedef struct pack_head {
    int64_t bytes; /* of the codec's block after the head; 0: nothing was stored */
} pack_head;

/* Shape of what comes out again. */
typedef struct unpack_attr {
    sti_pack_attr pack;
    int64_t dim[STINT_MAX_RANK];
    int32_t rank, masked;
} unpack_attr;

/* ---- shapes ---- */

static int64_t last_dim(const stint_shape *shape)
{
    return shape->rank ? shape->dim[shape->rank - 1] : 1;
}

static float coarse_of(const stint_shape *x)
{
    return sti_fold_coarse(stint_shape_count(x) / last_dim(x));
}

/* The codec sees images, rows or a flat array. */
static stint_codec_desc codec_desc(const stint_shape *shape)
{
    stint_codec_desc desc = {.rank = shape->rank};
    if (shape->rank >= 1 && shape->rank <= STINT_CODEC_RANK) {
        memcpy(desc.dim, shape->dim, (size_t)shape->rank * sizeof *desc.dim);
        return desc;
    }
    desc.rank = 2;
    desc.dim[1] = last_dim(shape);
    desc.dim[0] = stint_shape_count(shape) / desc.dim[1];
    return desc;
}

static size_t workspace_bytes(const stint_shape *shape, int threads)
{
    const stint_codec_desc desc = codec_desc(shape);
    size_t bytes = 0;
    if (sti_codec_workspace_bytes(&desc, threads, &bytes) != STINT_OK)
        return 0;
    return STI_ALIGN_UP(bytes, 64);
}

/* Statistics of channels, in[first] and in[first + 1]. */
static stint_status check_channels(const stint_graph *graph, const sti_node *node,
                                   const stint_shape *x, int first, int count)
{
    const stint_shape row = STINT_SHAPE(last_dim(x));
    stint_status st = STINT_OK;
    for (int i = 0; i < count && st == STINT_OK; i++)
        st = sti_op_check_shape(graph, node, first + i, &row);
    return st;
}

static stint_status check_bits(const stint_graph *graph, const sti_node *node, int i,
                               const stint_shape *x)
{
    const stint_shape bits = sti_op_bits_shape(x);
    return sti_op_has_in(node, i) ? sti_op_check_shape(graph, node, i, &bits)
                                  : STINT_OK;
}

static stint_status infer_pack(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const sti_pack_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 5);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, X)) != STINT_OK ||
        (st = sti_op_check_f32(graph, node, BOUNDS)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, X);
    const stint_shape *bounds = sti_op_in_shape(graph, node, BOUNDS);
    if (bounds->rank != 2 || bounds->dim[1] != STI_BOUND_FIELDS || attr->row < 0 ||
        attr->row >= bounds->dim[0])
        return sti_fail(STINT_E_INPUT, "pack: bounds are %s, wanted [more than %d, %d]",
                        sti_shape_text(bounds), (int)attr->row, STI_BOUND_FIELDS);
    if (attr->capacity <= HEAD_BYTES)
        return sti_fail(STINT_E_INPUT, "pack: a block of %lld bytes holds nothing",
                        (long long)attr->capacity);
    if (attr->norm)
        st = check_channels(graph, node, x, MEAN, 2);
    if (st == STINT_OK)
        st = check_bits(graph, node, PACK_BITS, x);
    out[0] = stint_shape_make(STINT_U8, 1, &attr->capacity);
    out[1] = STINT_SHAPE(STI_PACK_STATS);
    return st;
}

static stint_status infer_unpack(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    const unpack_attr *attr = node->attr;
    const stint_shape x = stint_shape_make(STINT_F32, attr->rank, attr->dim);
    const stint_shape block = stint_shape_make(STINT_U8, 1, &attr->pack.capacity);
    stint_status st = sti_op_check_count(node, 7);
    if (st == STINT_OK)
        st = sti_op_check_shape(graph, node, BLOCK, &block);
    if (st == STINT_OK && attr->pack.norm)
        st = check_channels(graph, node, &x, U_MEAN, 4);
    if (st == STINT_OK)
        st = check_bits(graph, node, UNPACK_BITS, &x);
    if (st == STINT_OK && sti_op_has_in(node, U_RESIDUAL))
        st = sti_op_check_shape(graph, node, U_RESIDUAL, &x);
    out[0] = out[1] = x;
    return st;
}

/* ---- packing ---- */

typedef struct packing {
    const sti_call *call;
    const sti_pack_attr *attr;
    const float *bounds; /* the row */
    stint_codec_desc desc;
    double wanted;
    sti_fold fold; /* of the input, for norm */
    sti_codec_source source;
    const uint8_t *mask;
    void *workspace;
    size_t workspace_bytes;
    int64_t count;
} packing;

static stint_status try_bound(packing *p, double bound, stint_codec_result *result)
{
    char *block = p->call->out[0];
    p->desc.bound = bound;
    return sti_codec_pack(p->call->team, &p->desc, &p->source, p->mask,
                          block + HEAD_BYTES, (size_t)p->attr->capacity - HEAD_BYTES,
                          p->workspace, p->workspace_bytes, result);
}

/* A bound that should fit: each bit a value too many doubles it (1 + f >= 2^f between
 * 0 and 1), and a little more. */
static double coarser(const packing *p, double bound, size_t wanted_bytes)
{
    double over = (double)wanted_bytes - (double)(p->attr->capacity - HEAD_BYTES);
    double bits = 8.0 * over / (double)p->count;
    for (; bits >= 1.0; bits -= 1.0)
        bound *= 2.0;
    return bound * (1.0 + bits) * 1.02;
}

/* A field of the row, of which those not above 0 are shares of the range. */
static double bound_of(const packing *p, int field, float range)
{
    double bound = (double)p->bounds[field];
    if (bound == 0.0)
        bound = field == STI_BOUND_WANTED ? -MODERATE : -COARSEST;
    if (bound < 0.0)
        bound = range > 0.0f ? -bound * (double)range : 1.0;
    return bound;
}

/* The bound wanted, or the finest that fits and is allowed. */
static stint_status pack_within(packing *p, float range, stint_codec_result *result)
{
    const double limit = bound_of(p, STI_BOUND_LIMIT, range);
    double bound = p->wanted = bound_of(p, STI_BOUND_WANTED, range);
    stint_status st = try_bound(p, bound, result);
    for (int i = 0; i < TRIES && st == STINT_E_BUDGET && bound < limit; i++) {
        bound = coarser(p, bound, result->bytes);
        bound = bound < limit ? bound : limit;
        st = try_bound(p, bound, result);
    }
    return st;
}

static void make_folded(const void *fold, int64_t begin, int64_t n, float *u_out)
{
    sti_fold_f32(fold, begin, n, u_out);
}

typedef struct range_of {
    sti_codec_source source;
    int64_t count;
    float *part; /* [pieces] */
} range_of;

static float largest(const float *x, int64_t n)
{
    float most = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        float size = fabsf(x[i]);
        most = size > most && size <= 3.4e38f ? size : most;
    }
    return most;
}

static void range_piece(void *arg, int64_t piece, int worker)
{
    const range_of *r = arg;
    const int64_t begin = piece * RANGE_PIECE, rest = r->count - begin;
    const int64_t n = rest < RANGE_PIECE ? rest : RANGE_PIECE;
    float made[RANGE_PIECE];
    const float *x = made;
    (void)worker;
    if (r->source.x)
        x = r->source.x + begin;
    else
        r->source.make(r->source.arg, begin, n, made);
    r->part[piece] = largest(x, n);
}

static int64_t range_pieces(int64_t count)
{
    return (count + RANGE_PIECE - 1) / RANGE_PIECE;
}

static bool wants_range(const float *bounds)
{
    return bounds[STI_BOUND_COLLECT] != 0.0f || !(bounds[STI_BOUND_WANTED] > 0.0f) ||
           !(bounds[STI_BOUND_LIMIT] > 0.0f);
}

static float find_range(const packing *p)
{
    range_of r = {p->source, p->count, p->workspace}; /* not in use by the codec yet */
    int64_t pieces = range_pieces(p->count);
    float most = 0.0f;
    sti_team_run(p->call->team, pieces, range_piece, &r);
    for (int64_t i = 0; i < pieces; i++)
        most = r.part[i] > most ? r.part[i] : most;
    return most;
}

static void write_stats(const packing *p, stint_status st, const stint_codec_result *r,
                        float *stats)
{
    const double count = (double)p->count, bound = p->desc.bound;
    stats[STI_PACK_OVERFLOW] = st == STINT_OK ? 0.0f : 1.0f;
    stats[STI_PACK_BYTES] = (float)(r->bytes + HEAD_BYTES);
    stats[STI_PACK_BOUND] = (float)bound;
    stats[STI_PACK_ERROR] = (float)(r->max_error / bound);
    stats[STI_PACK_NONZERO] = (float)(1.0 - (double)r->zeros / count);
    stats[STI_PACK_EXACT] = (float)((double)(r->outliers + r->raw) / count);
    stats[STI_PACK_COARSENED] = bound > p->wanted;
}

/* The codec's workspace, also the parts of the range. */
static size_t pack_scratch(const stint_graph *graph, const sti_node *node, int threads)
{
    const stint_shape *x = sti_op_in_shape(graph, node, X);
    size_t range = (size_t)range_pieces(stint_shape_count(x)) * sizeof(float);
    size_t codec = workspace_bytes(x, threads);
    return STI_ALIGN_UP(codec > range ? codec : range, 64);
}

static void run_pack(const sti_call *call)
{
    const sti_pack_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, X);
    const float *table = call->in[BOUNDS];
    packing p = {.call = call,
                 .attr = attr,
                 .bounds = table + (int64_t)attr->row * STI_BOUND_FIELDS,
                 .desc = codec_desc(x),
                 .source = {.x = call->in[X]},
                 .mask = attr->norm ? NULL : call->in[PACK_BITS],
                 .workspace = call->scratch,
                 .workspace_bytes =
                     pack_scratch(call->graph, call->node, call->team->threads),
                 .count = stint_shape_count(x)};
    stint_codec_result result = {0};
    float *stats = call->out[1];
    pack_head head = {0};
    p.desc.dither = p.bounds[STI_BOUND_DITHER] != 0.0f;
    p.desc.seed = call->step->seed;
    p.desc.id = (uint64_t)attr->row << 48 | (uint64_t)call->step->step;
    p.desc.shard = (uint32_t)call->step->shard;
    if (attr->norm) {
        p.fold = (sti_fold){last_dim(x),    coarse_of(x),      call->in[X],
                            call->in[MEAN], call->in[INVERSE], call->in[PACK_BITS]};
        p.source = (sti_codec_source){.make = make_folded,
                                      .arg = &p.fold,
                                      .from = call->in[X],
                                      .kind = call->in[PACK_BITS]};
    }
    stats[STI_PACK_RANGE] = wants_range(p.bounds) ? find_range(&p) : 0.0f;
    stint_status st = pack_within(&p, stats[STI_PACK_RANGE], &result);
    head.bytes = st == STINT_OK ? (int64_t)result.bytes : 0;
    memcpy(call->out[0], &head, sizeof head);
    write_stats(&p, st, &result, stats);
}

/* The codec's own arithmetic is taken as 40 flop a value, so that costs in flop and
 * bytes put it where it was measured: about 1 ns a value of one core. */
static sti_cost pack_cost(const stint_graph *graph, const sti_node *node)
{
    return sti_op_cost_bytes(graph, node, 0.0);
}

static void print_pack(const sti_node *node, sti_text *out)
{
    const sti_pack_attr *attr = node->attr;
    sti_text_printf(out, "row %d capacity %lld%s", (int)attr->row,
                    (long long)attr->capacity, attr->norm ? " norm" : "");
}

const sti_op sti_op_pack = {
    .name = "pack",
    .n_out = 2,
    .attr_bytes = sizeof(sti_pack_attr),
    .flags = STI_OP_NO_GRAD | STI_OP_RANDOM,
    .infer = infer_pack,
    .cost = pack_cost,
    .scratch_bytes = pack_scratch,
    .run = {[STI_CPU] = run_pack},
    .print = print_pack,
};

stint_value sti_op_add_pack(stint_graph *g, const sti_pack_attr *attr, stint_value x,
                            stint_value bounds, stint_value mean, stint_value inverse,
                            stint_value bits)
{
    const stint_value in[5] = {x, bounds, attr->norm ? mean : STI_NO_INPUT,
                               attr->norm ? inverse : STI_NO_INPUT, bits};
    return sti_graph_add(g, &sti_op_pack, attr, 5, in);
}

/* ---- unpacking ---- */

static size_t unpack_scratch(const stint_graph *graph, const sti_node *node,
                             int threads)
{
    const stint_shape *x = sti_op_out_shape(graph, node, 0);
    const unpack_attr *attr = node->attr;
    size_t deviation = attr->pack.norm ? (size_t)last_dim(x) * sizeof(float) : 0;
    return workspace_bytes(x, threads) + deviation;
}

/* deviation: scratch [c] */
static sti_unfold unfold_of(const sti_call *call, float *u, float *deviation)
{
    const float *inverse = call->in[U_INVERSE];
    const int64_t c = last_dim(sti_op_out_shape(call->graph, call->node, 0));
    for (int64_t k = 0; k < c && call->out[0]; k++)
        deviation[k] = 1.0f / inverse[k];
    return (sti_unfold){.c = c,
                        .coarse =
                            coarse_of(sti_op_out_shape(call->graph, call->node, 0)),
                        .u = u,
                        .mean = call->in[U_MEAN],
                        .deviation = deviation,
                        .scale = call->in[U_SCALE],
                        .shift = call->in[U_SHIFT],
                        .residual = call->in[U_RESIDUAL],
                        .bits = call->in[UNPACK_BITS],
                        .x = call->out[0],
                        .y = call->out[1]};
}

static void take_folded(const void *unfold, int64_t begin, int64_t n, float *u)
{
    (void)u; /* unfold knows it */
    sti_unfold_f32(unfold, begin, n);
}

/* `byte` everywhere. */
static void unpack_void(const sti_call *call, int byte)
{
    const size_t bytes =
        stint_shape_bytes(sti_op_out_shape(call->graph, call->node, 0));
    for (int i = 0; i < 2; i++)
        if (call->out[i])
            memset(call->out[i], byte, bytes);
}

static void run_unpack(const sti_call *call)
{
    const unpack_attr *attr = call->node->attr;
    const stint_shape *shape = sti_op_out_shape(call->graph, call->node, 0);
    const stint_codec_desc desc = codec_desc(shape);
    const size_t workspace = workspace_bytes(shape, call->team->threads);
    const char *block = call->in[BLOCK];
    sti_codec_sink sink = {.x = call->out[0] ? call->out[0] : call->out[1]};
    sti_unfold unfold;
    pack_head head;
    memcpy(&head, block, sizeof head);
    if (attr->pack.norm) {
        unfold = unfold_of(call, sink.x,
                           (float *)(void *)((char *)call->scratch + workspace));
        sink.take = take_folded;
        sink.arg = &unfold;
        sink.also = call->out[0] ? call->out[1] : NULL;
        sink.kind = call->in[UNPACK_BITS];
    }
    if (head.bytes == 0)
        unpack_void(call, 0); /* it did not fit: the run is void */
    else if (sti_codec_unpack(call->team, &desc, block + HEAD_BYTES, (size_t)head.bytes,
                              attr->masked ? call->in[UNPACK_BITS] : NULL, &sink,
                              call->scratch, workspace) != STINT_OK)
        unpack_void(call, 0xff); /* NaN: damage is not hidden */
}

static void print_unpack(const sti_node *node, sti_text *out)
{
    const unpack_attr *attr = node->attr;
    sti_text_printf(out, "row %d%s", (int)attr->pack.row,
                    attr->pack.norm ? " norm" : "");
}

const sti_op sti_op_unpack = {
    .name = "unpack",
    .n_out = 2,
    .attr_bytes = sizeof(unpack_attr),
    .flags = STI_OP_NO_GRAD,
    .optional_out = 1u << 0 | 1u << 1,
    .infer = infer_unpack,
    .cost = pack_cost,
    .scratch_bytes = unpack_scratch,
    .run = {[STI_CPU] = run_unpack},
    .print = print_unpack,
};

stint_value sti_op_add_unpack(stint_graph *g, const sti_node *pack, stint_value scale,
                              stint_value shift, stint_value residual)
{
    const stint_shape *x = sti_op_in_shape(g, pack, X);
    unpack_attr attr = {.pack = *(const sti_pack_attr *)pack->attr, .rank = x->rank};
    const bool norm = attr.pack.norm != 0;
    attr.masked = !norm && sti_op_has_in(pack, PACK_BITS);
    memcpy(attr.dim, x->dim, sizeof attr.dim);
    const stint_value in[7] = {pack->out[0],
                               norm ? pack->in[MEAN] : STI_NO_INPUT,
                               norm ? pack->in[INVERSE] : STI_NO_INPUT,
                               norm ? scale : STI_NO_INPUT,
                               norm ? shift : STI_NO_INPUT,
                               pack->in[PACK_BITS],
                               norm ? residual : STI_NO_INPUT};
    return sti_graph_add(g, &sti_op_unpack, &attr, 7, in);
}
