/* Tensors held packed between the forward and the backward half: the codec as two
 * operators. A block has a fixed capacity, which the plan counts, and a head of its
 * own. What does not fit even at the coarsest bound allowed is not stored at all: the
 * statistics say so, unpacking gives zeros, and the host throws the run away. */
#include <math.h>
#include <string.h>

#include "codec/codec.h"
#include "kernel/fold/fold.h"
#include "kernel/lane/bf16_kernels.h"
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
    int32_t rank, masked, half; /* half: in bfloat16 */
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

/* A workspace for unpacking: bfloat16 values have no place as float32 outside of it. */
static size_t unpack_workspace_bytes(const stint_shape *shape, int threads)
{
    const stint_codec_desc desc = codec_desc(shape);
    size_t bytes = 0;
    if (shape->dtype != STINT_BF16)
        return workspace_bytes(shape, threads);
    if (sti_codec_parts_workspace_bytes(&desc, threads, &bytes) != STINT_OK)
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
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, BOUNDS)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, X);
    if (x->dtype != STINT_BF16 && (st = sti_op_check_f32(graph, node, X)) != STINT_OK)
        return st;
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
    const stint_shape x =
        stint_shape_make(attr->half ? STINT_BF16 : STINT_F32, attr->rank, attr->dim);
    const stint_shape block = stint_shape_make(STINT_U8, 1, &attr->pack.capacity);
    stint_status st = sti_op_check_count(node, 7);
    if (st == STINT_OK)
        st = sti_op_check_shape(graph, node, BLOCK, &block);
    if (st == STINT_OK && attr->pack.norm)
        st = check_channels(graph, node, &x, U_MEAN, 4);
    if (st == STINT_OK)
        st = check_bits(graph, node, UNPACK_BITS, &x);
    if (st == STINT_OK && sti_op_has_in(node, U_RESIDUAL))
        st = attr->half ? sti_fail(STINT_E_INPUT, "unpack: a sum is made in float32")
                        : sti_op_check_shape(graph, node, U_RESIDUAL, &x);
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
    sti_fold fold;       /* of the input, for norm */
    const sti_bf16 *x16; /* the input, if it is in bfloat16 */
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

static void make_folded(const void *arg, int64_t begin, int64_t n, float *u_out)
{
    const packing *p = arg;
    sti_fold fold = p->fold;
    if (p->x16) {
        sti_bf16_kernels_now()->to_f32(n, p->x16 + begin, u_out);
        fold.x = u_out;
        fold.first = begin;
    }
    sti_fold_f32(&fold, begin, n, u_out);
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
    else if (r->source.x16)
        sti_bf16_kernels_now()->to_f32(n, r->source.x16 + begin, made);
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

/* The input normalised, with the coarseness of what its bits are not set for. */
static void set_folded(packing *p)
{
    const sti_call *call = p->call;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, X);
    p->fold = (sti_fold){.c = last_dim(x),
                         .coarse = coarse_of(x),
                         .x = p->source.x,
                         .mean = call->in[MEAN],
                         .inv = call->in[INVERSE],
                         .bits = call->in[PACK_BITS]};
    p->x16 = p->source.x16;
    p->source = (sti_codec_source){.make = make_folded,
                                   .arg = p,
                                   .from = p->source.x,
                                   .kind = call->in[PACK_BITS]};
}

static void run_pack(const sti_call *call)
{
    const sti_pack_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, X);
    const float *table = call->in[BOUNDS];
    packing p = {
        .call = call,
        .attr = attr,
        .bounds = table + (int64_t)attr->row * STI_BOUND_FIELDS,
        .desc = codec_desc(x),
        .source = x->dtype == STINT_BF16 ? (sti_codec_source){.x16 = call->in[X]}
                                         : (sti_codec_source){.x = call->in[X]},
        .mask = attr->norm ? NULL : call->in[PACK_BITS],
        .workspace = call->scratch,
        .workspace_bytes = pack_scratch(call->graph, call->node, call->team->threads),
        .count = stint_shape_count(x)};
    stint_codec_result result = {0};
    float *stats = call->out[1];
    pack_head head = {0};
    p.desc.dither = p.bounds[STI_BOUND_DITHER] != 0.0f;
    p.desc.seed = call->step->seed;
    p.desc.id = (uint64_t)attr->row << 48 | (uint64_t)call->step->step;
    p.desc.shard = (uint32_t)call->step->shard;
    if (attr->norm)
        set_folded(&p);
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
    return unpack_workspace_bytes(x, threads) + deviation;
}

/* What unpacked values go through, and where to: in float32 to the unfold's x and y; in
 * bfloat16, where those are NULL, to x16 and y16. */
typedef struct unfolding {
    sti_unfold unfold;
    sti_bf16 *x16, *y16;
} unfolding;

/* deviation: scratch [c] */
static unfolding unfolding_of(const sti_call *call, float *deviation)
{
    const unpack_attr *attr = call->node->attr;
    const stint_shape *shape = sti_op_out_shape(call->graph, call->node, 0);
    const float *inverse = call->in[U_INVERSE];
    const int64_t c = last_dim(shape);
    for (int64_t k = 0; k < c && call->out[0]; k++)
        deviation[k] = 1.0f / inverse[k];
    unfolding u = {.unfold = {.c = c,
                              .coarse = coarse_of(shape),
                              .mean = call->in[U_MEAN],
                              .deviation = deviation,
                              .scale = call->in[U_SCALE],
                              .shift = call->in[U_SHIFT],
                              .residual = call->in[U_RESIDUAL],
                              .bits = call->in[UNPACK_BITS]}};
    if (attr->half) {
        u.x16 = call->out[0];
        u.y16 = call->out[1];
    } else {
        u.unfold.x = call->out[0];
        u.unfold.y = call->out[1];
        u.unfold.u = call->out[0] ? call->out[0] : call->out[1];
    }
    return u;
}

static void take_folded(const void *arg, int64_t begin, int64_t n, float *u)
{
    const unfolding *to = arg;
    (void)u; /* the unfold knows it */
    sti_unfold_f32(&to->unfold, begin, n);
}

/* By parts that stay in the nearest cache: x over u, y beside it. */
static void take_rounded(const void *arg, int64_t begin, int64_t n, float *u)
{
    enum { PART = 2048 };
    const unfolding *to = arg;
    const sti_bf16_kernels *kernels = sti_bf16_kernels_now();
    float y[PART];
    for (int64_t at = begin; at < begin + n; at += PART) {
        const int64_t here = begin + n - at < PART ? begin + n - at : PART;
        sti_unfold part = to->unfold;
        float *x = u + (at - begin);
        part.first = at;
        part.u = x;
        part.x = to->x16 ? x : NULL;
        part.y = to->y16 ? y : NULL;
        sti_unfold_f32(&part, at, here);
        if (to->x16)
            kernels->from_f32(here, x, to->x16 + at);
        if (to->y16)
            kernels->from_f32(here, y, to->y16 + at);
    }
}

static sti_codec_sink sink_of(const sti_call *call, unfolding *to, float *deviation)
{
    const unpack_attr *attr = call->node->attr;
    void *out = call->out[0] ? call->out[0] : call->out[1];
    if (!attr->pack.norm)
        return attr->half ? (sti_codec_sink){.x16 = out} : (sti_codec_sink){.x = out};
    *to = unfolding_of(call, deviation);
    if (attr->half)
        return (sti_codec_sink){
            .take = take_rounded, .arg = to, .kind = call->in[UNPACK_BITS]};
    return (sti_codec_sink){.x = out,
                            .take = take_folded,
                            .arg = to,
                            .also = call->out[0] ? call->out[1] : NULL,
                            .kind = call->in[UNPACK_BITS]};
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
    const size_t workspace = unpack_workspace_bytes(shape, call->team->threads);
    const char *block = call->in[BLOCK];
    unfolding to;
    const sti_codec_sink sink =
        sink_of(call, &to, (float *)(void *)((char *)call->scratch + workspace));
    pack_head head;
    memcpy(&head, block, sizeof head);
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
    unpack_attr attr = {.pack = *(const sti_pack_attr *)pack->attr,
                        .rank = x->rank,
                        .half = x->dtype == STINT_BF16};
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
