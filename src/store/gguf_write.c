#include "store/gguf_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"

enum { NAME = 160, ALIGN = 32 };
#define HALF_MOST 65520.0f /* from here on the nearest half is infinite */

/* A tensor to be written: (a part of) a parameter of the graph. */
typedef struct outgoing {
    char ours[NAME], theirs[NAME];
    int64_t k, n;         /* of the whole parameter, as the graph has it */
    int64_t first, count; /* columns of it that are the rows here; of tables its rows */
    bool vector, table;
    int64_t turned; /* rows of a head whose halves are put in turns; 0: none are */
    const sti_gguf_type *type;
} outgoing;

typedef struct exporter {
    const stint_text_model *model;
    const char *family;
    sti_weight_source source;
    const sti_gguf_type *type;
    outgoing *list; /* [count] */
    int64_t count, capacity;
    float *whole, *row; /* the largest parameter; the longest row */
    uint8_t *bytes;     /* of a row */
    int64_t whole_floats, row_floats;
} exporter;

/* ---- the list ---- */

static int64_t row_of(const outgoing *o)
{
    return o->vector ? o->count : o->table ? o->n : o->k;
}

static int64_t rows_of(const outgoing *o)
{
    return o->vector ? 1 : o->count;
}

static size_t bytes_of(const outgoing *o)
{
    return (size_t)(rows_of(o) * (row_of(o) / o->type->block)) * o->type->block_bytes;
}

static stint_status make_room(exporter *e)
{
    if (e->count < e->capacity)
        return STINT_OK;
    const int64_t capacity = e->capacity ? 2 * e->capacity : 64;
    outgoing *more =
        sti_realloc(e->list, (size_t)capacity * sizeof *more, "tensors to write");
    if (!more)
        return STINT_E_MEMORY;
    e->list = more;
    e->capacity = capacity;
    return STINT_OK;
}

static stint_status add_part(exporter *e, const outgoing *whole, int part,
                             int64_t first, int64_t count)
{
    const bool llama = strcmp(e->model->facts.family, "llama") == 0;
    stint_status st = make_room(e);
    if (st != STINT_OK)
        return st;
    outgoing *o = &e->list[e->count++];
    *o = *whole;
    o->first = first;
    o->count = count;
    if (!sti_gguf_name(llama, o->ours, part, o->theirs, sizeof o->theirs))
        return sti_fail(STINT_E_BUG, "'%s' has no name in this format", o->ours);
    const bool packed = strstr(o->ours, ".c_attn.") != NULL;
    if (strcmp(e->family, "llama") == 0 && packed && part < 2)
        o->turned = e->model->facts.sizes.head_size;
    o->type = e->type;
    if (o->vector || strcmp(o->ours, "wpe.weight") == 0)
        o->type = sti_gguf_type_named("F32");
    else if (row_of(o) % e->type->block != 0)
        o->type = sti_gguf_type_named("F16");
    e->row_floats = row_of(o) > e->row_floats ? row_of(o) : e->row_floats;
    return STINT_OK;
}

/* One parameter, told by sti_decoder_check. */
static stint_status add_parameter(void *user, const char *name, int64_t runs,
                                  int64_t each, int64_t first, int64_t count,
                                  float *out)
{
    exporter *e = user;
    const stint_text_model_desc *m = &e->model->facts.sizes;
    const size_t length = strlen(name);
    outgoing o = {.k = runs, .n = each};
    (void)first, (void)count, (void)out;
    snprintf(o.ours, sizeof o.ours, "%s", name);
    o.vector = length < 7 || strcmp(name + length - 7, ".weight") != 0;
    o.table = strncmp(name, "h.", 2) != 0 && !o.vector;
    if (runs * each > e->whole_floats)
        e->whole_floats = runs * each;
    if (strcmp(e->model->facts.family, "llama") != 0 || !strstr(name, ".c_attn."))
        return add_part(e, &o, 0, 0, o.table ? runs : each);
    const int64_t queries = m->heads * m->head_size, keys = m->kv_heads * m->head_size;
    stint_status st = add_part(e, &o, 0, 0, queries);
    if (st == STINT_OK)
        st = add_part(e, &o, 1, queries, keys);
    return st == STINT_OK ? add_part(e, &o, 2, queries + keys, keys) : st;
}

static bool by_rows(void *user, const char *name)
{
    (void)user, (void)name;
    return false;
}

static stint_status list_all(exporter *e)
{
    const sti_decoder_desc desc = sti_text_model_decoder(e->model);
    const sti_weight_source visitor = {
        .user = e, .by_columns = by_rows, .read = add_parameter};
    stint_status st = sti_decoder_check(&desc, &visitor);
    if (st != STINT_OK)
        return st;
    e->whole = sti_alloc_array(e->whole_floats, sizeof *e->whole, "tensor");
    e->row = sti_alloc_array(e->row_floats, sizeof *e->row, "row of a tensor");
    e->bytes = sti_alloc_array(e->row_floats, sizeof(float), "row of a tensor");
    return e->whole && e->row && e->bytes ? STINT_OK : STINT_E_MEMORY;
}

/* ---- the head ---- */

static void put_size(const exporter *e, sti_text *out, const char *rest, int64_t value)
{
    char key[NAME];
    snprintf(key, sizeof key, "%s.%s", e->family, rest);
    sti_gguf_put_key_u32(out, key, (uint32_t)value);
}

static void put_float(const exporter *e, sti_text *out, const char *rest, float value)
{
    char key[NAME];
    snprintf(key, sizeof key, "%s.%s", e->family, rest);
    sti_gguf_put_key_f32(out, key, value);
}

/* Sizes; how many keys. */
static int64_t put_sizes(const exporter *e, sti_text *out)
{
    const stint_text_model_facts *f = &e->model->facts;
    const bool llama = strcmp(f->family, "llama") == 0;
    const bool linear = f->sizes.rotary_scaling.kind == STINT_ROTARY_LINEAR;
    char key[NAME];
    sti_gguf_put_key_text(out, "general.architecture", e->family);
    put_size(e, out, "context_length", f->context);
    put_size(e, out, "embedding_length", f->sizes.width);
    put_size(e, out, "block_count", f->sizes.depth);
    put_size(e, out, "feed_forward_length", f->sizes.hidden);
    put_size(e, out, "attention.head_count", f->sizes.heads);
    put_float(e, out,
              llama ? "attention.layer_norm_rms_epsilon"
                    : "attention.layer_norm_epsilon",
              f->sizes.epsilon);
    if (!llama)
        return 7;
    put_size(e, out, "attention.head_count_kv", f->sizes.kv_heads);
    put_size(e, out, "attention.key_length", f->sizes.head_size);
    put_size(e, out, "attention.value_length", f->sizes.head_size);
    put_size(e, out, "rope.dimension_count", f->sizes.head_size);
    put_float(e, out, "rope.freq_base", f->sizes.rotary_base);
    if (!linear)
        return 12;
    snprintf(key, sizeof key, "%s.rope.scaling.type", e->family);
    sti_gguf_put_key_text(out, key, "linear");
    put_float(e, out, "rope.scaling.factor", f->sizes.rotary_scaling.factor);
    return 14;
}

static void put_tensor(const outgoing *o, int64_t offset, sti_text *out)
{
    sti_gguf_put_bytes(out, o->theirs, strlen(o->theirs));
    sti_gguf_put_u32(out, o->vector ? 1 : 2);
    sti_gguf_put_u64(out, (uint64_t)row_of(o));
    if (!o->vector)
        sti_gguf_put_u64(out, (uint64_t)rows_of(o));
    sti_gguf_put_u32(out, o->type->number);
    sti_gguf_put_u64(out, (uint64_t)offset);
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* The whole head, padded; *data_out is the size of what follows. */
static stint_status make_head(const exporter *e, sti_text *out,
                              sti_gguf_written *written)
{
    const stint_text_model_facts *f = &e->model->facts;
    sti_text keys = {0};
    static const char zeros[ALIGN];
    int64_t count = put_sizes(e, &keys), offset = 0;
    const int64_t of_tokens = sti_gguf_put_tokenizer(f->tokenizer, f->end_token, &keys);
    written->tokenizer = of_tokens > 0;
    if (!of_tokens)
        sti_gguf_put_key_text(&keys, "tokenizer.ggml.model", "none");
    count += of_tokens ? of_tokens : 1;
    sti_text_add_bytes(out, "GGUF", 4);
    sti_gguf_put_u32(out, 3);
    sti_gguf_put_u64(out, (uint64_t)e->count);
    sti_gguf_put_u64(out, (uint64_t)count);
    sti_text_add_bytes(out, keys.data ? keys.data : "", keys.length);
    for (int64_t i = 0; i < e->count; i++) {
        put_tensor(&e->list[i], offset, out);
        offset += aligned((int64_t)bytes_of(&e->list[i]));
        written->blocks += e->list[i].type->block > 1;
    }
    sti_text_add_bytes(out, zeros,
                       (size_t)(aligned((int64_t)out->length) - (int64_t)out->length));
    written->tensors = e->count;
    written->bytes = out->length + (size_t)offset;
    const bool failed = out->failed || keys.failed;
    sti_text_fini(&keys);
    return failed
               ? sti_fail(STINT_E_MEMORY, "out of memory for the head of a GGUF file")
               : STINT_OK;
}

/* ---- tensors ---- */

/* The parameter in memory, as its source has it. */
static stint_status read_whole(const exporter *e, const outgoing *o, bool columns)
{
    const int64_t runs = columns ? o->n : o->k, each = columns ? o->k : o->n;
    return e->source.read(e->source.user, o->ours, runs, each, 0, runs, e->whole);
}

/* Row r of what is written. */
static const float *find_row(const exporter *e, const outgoing *o, bool columns,
                             int64_t r)
{
    if (o->vector)
        return e->whole + o->first;
    const int64_t at = o->first + r, each = columns ? o->k : o->n;
    if (o->table || columns)
        return e->whole + at * each;
    for (int64_t i = 0; i < o->k; i++)
        e->row[i] = e->whole[i * o->n + at];
    return e->row;
}

/* Which of our rows is row r there; a vector's numbers are rows here. */
static int64_t turned_back(const outgoing *o, int64_t r)
{
    const int64_t head = o->turned ? r / o->turned * o->turned : r, in = r - head;
    return o->turned ? head + (in % 2 ? o->turned / 2 : 0) + in / 2 : r;
}

static stint_status write_row(const exporter *e, const outgoing *o, const float *row,
                              sti_writer *writer)
{
    const sti_gguf_type *type = o->type;
    const int64_t blocks = row_of(o) / type->block;
    for (int64_t i = 0; type->block_bytes == 2 && i < blocks; i++)
        if (!(fabsf(row[i]) < HALF_MOST))
            return sti_fail(STINT_E_INPUT,
                            "'%s' has %g, which F16 cannot hold; write F32", o->theirs,
                            (double)row[i]);
    for (int64_t b = 0; b < blocks; b++)
        type->write(row + b * type->block, e->bytes + (size_t)b * type->block_bytes);
    return sti_writer_add(writer, e->bytes, (size_t)blocks * type->block_bytes);
}

static stint_status write_tensor(const exporter *e, const outgoing *o,
                                 sti_writer *writer)
{
    static const char zeros[ALIGN];
    const bool matrix = !o->vector && !o->table;
    const bool columns = matrix && e->source.by_columns(e->source.user, o->ours);
    stint_status st = read_whole(e, o, columns);
    for (int64_t r = 0; r < rows_of(o) && st == STINT_OK; r++) {
        const float *row = find_row(e, o, columns, turned_back(o, r));
        if (o->vector && o->turned) {
            for (int64_t i = 0; i < o->count; i++)
                e->row[i] = row[turned_back(o, i)];
            row = e->row;
        }
        st = write_row(e, o, row, writer);
    }
    const int64_t bytes = (int64_t)bytes_of(o);
    return st == STINT_OK
               ? sti_writer_add(writer, zeros, (size_t)(aligned(bytes) - bytes))
               : st;
}

/* ---- all of it ---- */

static stint_status check_model(const stint_text_model_desc *m)
{
    if (m->window)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "a window of %" PRId64
                        " tokens cannot be said in a GGUF file of "
                        "these architectures",
                        m->window);
    if (m->rotary_scaling.kind > STINT_ROTARY_LINEAR)
        return sti_fail(
            STINT_E_UNSUPPORTED,
            "rotary positions that are stretched by the rules of Llama 3 or "
            "YaRN are not written to GGUF files here; plain and linear ones "
            "are");
    return STINT_OK;
}

static const char *family_of(const stint_text_model_facts *f)
{
    if (strcmp(f->family, "llama") != 0)
        return "gpt2";
    if (f->sizes.qk_norm)
        return "qwen3";
    return f->sizes.qkv_bias && !f->sizes.proj_bias ? "qwen2" : "llama";
}

static stint_status write_all(const exporter *e, const sti_text *head, const char *path)
{
    sti_writer *writer = NULL;
    stint_status st = sti_writer_open(path, &writer);
    if (st != STINT_OK)
        return st;
    st = sti_writer_add(writer, head->data, head->length);
    for (int64_t i = 0; i < e->count && st == STINT_OK; i++)
        st = write_tensor(e, &e->list[i], writer);
    if (st == STINT_OK)
        return sti_writer_commit(writer);
    sti_writer_abort(writer);
    return st;
}

stint_status sti_gguf_write(const stint_text_model *model, const sti_gguf_type *type,
                            const char *path, sti_gguf_written *written_out)
{
    exporter e = {.model = model,
                  .family = family_of(&model->facts),
                  .source = sti_text_model_source(model),
                  .type = type};
    sti_text head = {0};
    sti_gguf_written written = {0};
    stint_status st = check_model(&model->facts.sizes);
    if (st == STINT_OK)
        st = list_all(&e);
    if (st == STINT_OK)
        st = make_head(&e, &head, &written);
    if (st == STINT_OK)
        st = write_all(&e, &head, path);
    if (st == STINT_OK)
        *written_out = written;
    sti_text_fini(&head);
    sti_free(e.list);
    sti_free(e.whole);
    sti_free(e.row);
    sti_free(e.bytes);
    return st;
}
