/* Tensors of ONNX files: numbers in the bytes of the message, in its typed lists, or in
 * a file beside it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/half.h"
#include "base/shown.h"
#include "exchange/onnx_priv.h"
#include "kernel/lane/bf16.h"

/* TensorProto as it lies in the file. */
typedef struct tensor_parts {
    int64_t type, location;
    int64_t dim[STI_EXCHANGE_RANK];
    int rank;
    const uint8_t *raw;
    size_t raw_bytes;
    bool has_raw;
    /* Fields of the typed lists, which come packed or one by one. */
    sti_proto whole;
    const char *file;
    int64_t offset, length; /* of external data; length -1: to the end */
} tensor_parts;

enum {
    DIMS = 1,
    DATA_TYPE = 2,
    SEGMENT = 3,
    FLOAT_DATA = 4,
    INT32_DATA = 5,
    STRING_DATA = 6,
    INT64_DATA = 7,
    TENSOR_NAME = 8,
    RAW_DATA = 9,
    DOUBLE_DATA = 10,
    UINT64_DATA = 11,
    EXTERNAL_DATA = 13,
    DATA_LOCATION = 14
};

static stint_status add_dim(sti_onnx_reader *r, tensor_parts *p, uint64_t value)
{
    if (p->rank == STI_EXCHANGE_RANK)
        return sti_fail(STINT_E_UNSUPPORTED, "%s: a tensor has more than %d axes",
                        sti_shown(r->name), STI_EXCHANGE_RANK);
    if (value > INT64_MAX)
        return sti_onnx_damaged(r, "the shape of a tensor");
    p->dim[p->rank++] = (int64_t)value;
    return STINT_OK;
}

static stint_status read_dims(sti_onnx_reader *r, tensor_parts *p,
                              const sti_proto_field *f)
{
    uint64_t value;
    if (f->kind == STI_PROTO_VARINT)
        return add_dim(r, p, f->value);
    sti_proto list = sti_proto_inside(f);
    while (list.at < list.end) {
        if (!sti_proto_varint(&list, &value))
            return sti_onnx_damaged(r, "the shape of a tensor");
        const stint_status st = add_dim(r, p, value);
        if (st != STINT_OK)
            return st;
    }
    return STINT_OK;
}

/* Decimal digits of an offset or length. */
static bool read_number(const char *text, int64_t *out)
{
    int64_t n = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || n > INT64_MAX / 16)
            return false;
        n = 10 * n + (*text - '0');
    }
    *out = n;
    return true;
}

static stint_status read_external(sti_onnx_reader *r, tensor_parts *p,
                                  const sti_proto_field *entry)
{
    const char *key = "", *value = "";
    sti_proto m = sti_proto_inside(entry);
    sti_proto_field f;
    stint_status st = STINT_OK;
    while (st == STINT_OK && sti_proto_next(&m, &f))
        if (f.kind == STI_PROTO_BYTES && (f.number == 1 || f.number == 2))
            st = sti_onnx_text(r, &f, f.number == 1 ? &key : &value);
    if (st != STINT_OK)
        return st;
    if (strcmp(key, "location") == 0)
        p->file = value;
    else if ((strcmp(key, "offset") == 0 && !read_number(value, &p->offset)) ||
             (strcmp(key, "length") == 0 && !read_number(value, &p->length)))
        return sti_onnx_damaged(r, "where external data lie");
    return m.broken ? sti_onnx_damaged(r, "where external data lie") : STINT_OK;
}

static stint_status read_parts(sti_onnx_reader *r, const sti_proto_field *field,
                               tensor_parts *p, const char **name)
{
    sti_proto m = sti_proto_inside(field);
    sti_proto_field f;
    stint_status st = STINT_OK;
    *p = (tensor_parts){.whole = m, .length = -1};
    while (st == STINT_OK && sti_proto_next(&m, &f)) {
        const bool bytes = f.kind == STI_PROTO_BYTES;
        if (f.number == DIMS) {
            st = read_dims(r, p, &f);
        } else if (f.number == DATA_TYPE && f.kind == STI_PROTO_VARINT) {
            p->type = (int64_t)f.value;
        } else if (f.number == DATA_LOCATION && f.kind == STI_PROTO_VARINT) {
            p->location = (int64_t)f.value;
        } else if (f.number == TENSOR_NAME && bytes) {
            st = sti_onnx_text(r, &f, name);
        } else if (f.number == RAW_DATA && bytes) {
            p->raw = f.bytes;
            p->raw_bytes = f.n_bytes;
            p->has_raw = true;
        } else if (f.number == EXTERNAL_DATA && bytes) {
            st = read_external(r, p, &f);
        } else if (f.number == SEGMENT || f.number == STRING_DATA) {
            st = sti_fail(STINT_E_UNSUPPORTED,
                          "%s: a tensor of texts or in segments is not read here",
                          sti_shown(r->name));
        }
    }
    return st != STINT_OK ? st : m.broken ? sti_onnx_damaged(r, "a tensor") : STINT_OK;
}

/* ---- numbers ---- */

static uint64_t word_at(const uint8_t *at, size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)at[i] << (8 * i);
    return v;
}

static float float_of_bits(int type, uint64_t bits)
{
    float f;
    double d;
    const uint32_t low = (uint32_t)bits;
    switch (type) {
    case STI_EXCHANGE_F16:
        return sti_float_of_half((uint16_t)bits);
    case STI_EXCHANGE_BF16:
        return sti_bf16_to_f32((uint16_t)bits);
    case STI_EXCHANGE_F64:
        memcpy(&d, &bits, sizeof d);
        return (float)d;
    default:
        memcpy(&f, &low, sizeof f);
        return f;
    }
}

static int64_t word_of_bits(int type, uint64_t bits)
{
    switch (type) {
    case STI_EXCHANGE_I8:
        return (int8_t)bits;
    case STI_EXCHANGE_I16:
        return (int16_t)bits;
    case STI_EXCHANGE_I32:
        return (int32_t)bits;
    case STI_EXCHANGE_BOOL:
        return bits != 0;
    case STI_EXCHANGE_U8:
        return (uint8_t)bits;
    case STI_EXCHANGE_U16:
        return (uint16_t)bits;
    case STI_EXCHANGE_U32:
        return (uint32_t)bits;
    default:
        return (int64_t)bits;
    }
}

/* Where decoded numbers go. */
typedef struct sink {
    int type;
    float *floats;
    int64_t *words;
    int64_t at, count;
} sink;

static bool put(sink *s, uint64_t bits)
{
    if (s->at == s->count)
        return false;
    if (s->floats)
        s->floats[s->at++] = float_of_bits(s->type, bits);
    else
        s->words[s->at++] = word_of_bits(s->type, bits);
    return true;
}

static bool put_raw(sink *s, const uint8_t *raw, size_t n_bytes)
{
    const size_t each = sti_exchange_type_bytes(s->type);
    if (n_bytes != (size_t)s->count * each)
        return false;
    if (s->type == STI_EXCHANGE_F32 && n_bytes) {
        memcpy(s->floats, raw, n_bytes);
        s->at = s->count;
        return true;
    }
    for (int64_t i = 0; i < s->count; i++)
        put(s, word_at(raw + (size_t)i * each, each));
    return true;
}

/* The field of a type's list, and how its numbers lie in it. */
static uint32_t list_of(int type, sti_proto_kind *kind)
{
    *kind = STI_PROTO_VARINT;
    switch (type) {
    case STI_EXCHANGE_F32:
        *kind = STI_PROTO_WORD32;
        return FLOAT_DATA;
    case STI_EXCHANGE_F64:
        *kind = STI_PROTO_WORD64;
        return DOUBLE_DATA;
    case STI_EXCHANGE_I64:
        return INT64_DATA;
    case STI_EXCHANGE_U32:
    case STI_EXCHANGE_U64:
        return UINT64_DATA;
    default:
        return INT32_DATA;
    }
}

static bool put_packed(sink *s, const sti_proto_field *f, sti_proto_kind kind)
{
    sti_proto list = sti_proto_inside(f);
    uint64_t value = 0;
    uint32_t half = 0;
    while (list.at < list.end) {
        const bool there = kind == STI_PROTO_VARINT   ? sti_proto_varint(&list, &value)
                           : kind == STI_PROTO_WORD64 ? sti_proto_word64(&list, &value)
                                                      : sti_proto_word32(&list, &half);
        if (!there || !put(s, kind == STI_PROTO_WORD32 ? half : value))
            return false;
    }
    return true;
}

static bool put_list(sink *s, sti_proto whole)
{
    sti_proto_kind kind;
    sti_proto_field f;
    const uint32_t number = list_of(s->type, &kind);
    while (sti_proto_next(&whole, &f)) {
        if (f.number != number)
            continue;
        if (f.kind == STI_PROTO_BYTES ? !put_packed(s, &f, kind) : !put(s, f.value))
            return false;
    }
    return s->at == s->count;
}

/* ---- external data ---- */

/* A name within the folder: neither absolute nor leading out of it. */
static bool stays_inside(const char *name)
{
    if (!name[0] || name[0] == '/' || strchr(name, '\\'))
        return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return false;
    }
    return true;
}

/* The file's `bytes` from the offset on must be there before room for them is made. */
static stint_status open_external(sti_onnx_reader *r, const tensor_parts *p,
                                  int64_t bytes, const char **path_out, int *fd_out)
{
    const char *file = p->file ? p->file : "";
    struct stat info;
    if (!stays_inside(file))
        return sti_fail(STINT_E_INPUT,
                        "%s: external data in '%.80s', which is not a file in or below "
                        "the folder of the model",
                        sti_shown(r->name), sti_shown(file));
    if (!r->folder)
        return sti_fail(STINT_E_INPUT, "%s: its tensors lie in another file, '%.80s'",
                        sti_shown(r->name), sti_shown(file));
    if (p->length >= 0 && p->length != bytes)
        return sti_onnx_damaged(r, "the length of external data");
    const char *path = *path_out = sti_path_join(r->arena, r->folder, file);
    if (!path)
        return STINT_E_MEMORY;
    const stint_status st = sti_file_open(path, fd_out);
    if (st != STINT_OK)
        return st;
    if (fstat(*fd_out, &info) != 0 || info.st_size < bytes ||
        info.st_size - bytes < p->offset)
        return sti_fail(STINT_E_INPUT,
                        "%s: external data from byte %" PRId64 " on want %" PRId64
                        " bytes; %s has %" PRId64,
                        sti_shown(r->name), p->offset, bytes, sti_shown(path),
                        (int64_t)info.st_size);
    return STINT_OK;
}

static stint_status put_external(int fd, const char *path, const tensor_parts *p,
                                 sink *s)
{
    const size_t bytes = (size_t)s->count * sti_exchange_type_bytes(s->type);
    void *raw = sti_alloc(bytes, "external data");
    if (!raw)
        return STINT_E_MEMORY;
    const stint_status st = sti_read_at(fd, path, p->offset, raw, bytes);
    if (st == STINT_OK)
        put_raw(s, raw, bytes);
    sti_free(raw);
    return st;
}

/* ---- a tensor ---- */

/* Type and number of elements; a file that has no bytes for its shape is refused before
 * anything is allocated on the shape's word. */
static stint_status check_size(sti_onnx_reader *r, const tensor_parts *p, sink *s)
{
    const size_t there =
        p->has_raw ? p->raw_bytes : (size_t)(p->whole.end - p->whole.at);
    if (!sti_exchange_type_bytes((int)p->type))
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: a tensor of ONNX's element type %" PRId64
                        " is not read here; those are: whole numbers of 8 to 64 bits, "
                        "truth values, float, float16, bfloat16 and double",
                        sti_shown(r->name), p->type);
    if (!sti_exchange_count(p->rank, p->dim, &s->count))
        return sti_onnx_damaged(r, "the shape of a tensor");
    if (p->location != 1 && there < (size_t)s->count)
        return sti_onnx_damaged(r, "a tensor, which is shorter than its shape says");
    s->type = (int)p->type;
    return STINT_OK;
}

static stint_status make_room(sti_onnx_reader *r, sink *s)
{
    if (sti_exchange_is_float(s->type))
        s->floats = sti_arena_alloc(r->arena, (size_t)s->count * sizeof(float) + 1);
    else
        s->words = sti_arena_alloc(r->arena, (size_t)s->count * sizeof(int64_t) + 1);
    return s->floats || s->words ? STINT_OK : STINT_E_MEMORY;
}

static stint_status read_numbers(sti_onnx_reader *r, const tensor_parts *p, sink *s)
{
    const char *path = NULL;
    int fd = -1;
    stint_status st = STINT_OK;
    if (p->location == 1)
        st = open_external(r, p, s->count * (int64_t)sti_exchange_type_bytes(s->type),
                           &path, &fd);
    if (st == STINT_OK)
        st = make_room(r, s);
    if (st == STINT_OK && fd >= 0)
        st = put_external(fd, path, p, s);
    else if (st == STINT_OK &&
             !(p->has_raw ? put_raw(s, p->raw, p->raw_bytes) : put_list(s, p->whole)))
        st = sti_onnx_damaged(r, "a tensor whose numbers are not as many as its shape "
                                 "says");
    if (fd >= 0)
        close(fd);
    return st;
}

stint_status sti_onnx_tensor(sti_onnx_reader *r, const sti_proto_field *field,
                             sti_exchange_tensor *t)
{
    tensor_parts p;
    sink s = {0};
    const char *name = "";
    stint_status st = read_parts(r, field, &p, &name);
    if (st != STINT_OK || (st = check_size(r, &p, &s)) != STINT_OK ||
        (st = read_numbers(r, &p, &s)) != STINT_OK)
        return st;
    *t = (sti_exchange_tensor){.name = name,
                               .type = s.type,
                               .rank = p.rank,
                               .count = s.count,
                               .floats = s.floats,
                               .words = s.words};
    memcpy(t->dim, p.dim, sizeof t->dim);
    for (int i = 0; i < STI_EXCHANGE_RANK; i++)
        t->order[i] = (int8_t)i;
    return STINT_OK;
}

stint_status sti_onnx_parse_tensor(const void *bytes, size_t n_bytes, const char *name,
                                   sti_arena *arena, sti_exchange_tensor *tensor_out)
{
    sti_onnx_reader r = {.name = name, .arena = arena};
    const sti_proto_field whole = {
        .kind = STI_PROTO_BYTES, .bytes = bytes, .n_bytes = n_bytes};
    return sti_onnx_tensor(&r, &whole, tensor_out);
}
