/* Two files of tensors, element by element. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "stint/trust.h"
#include "store/compact_file.h"
#include "store/safetensors.h"

typedef struct diff_pair {
    const sti_tensor_file *a, *b;
    stint_diff_result *result;
} diff_pair;

static bool same_form(const sti_tensor_row *a, const sti_tensor_row *b)
{
    if (a->type != b->type || a->rank != b->rank || a->bytes != b->bytes)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

/* Floats in the order of their values: neighbours are one apart, -0 and +0 too. */
static int64_t rank_of(uint32_t bits)
{
    return bits >> 31 ? -(int64_t)(bits & 0x7fffffffu) - 1 : (int64_t)bits;
}

static bool is_nan(uint32_t bits)
{
    return (bits & 0x7fffffffu) > 0x7f800000u;
}

static int bin_of(uint64_t distance)
{
    int bin = 0;
    for (; distance > 0 && bin < STINT_DIFF_BINS - 2; distance >>= 1)
        bin++;
    return bin;
}

static int bin_f32(uint32_t a, uint32_t b)
{
    if (a == b)
        return 0;
    if (is_nan(a) || is_nan(b))
        return STINT_DIFF_BINS - 1;
    const int64_t d = rank_of(a) - rank_of(b);
    return bin_of((uint64_t)(d < 0 ? -d : d));
}

static int bin_integer(int64_t a, int64_t b)
{
    return bin_of(a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a);
}

static float as_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static int64_t integer_at(sti_tensor_type type, const void *data, int64_t i)
{
    switch (type) {
    case STI_TENSOR_I32:
        return ((const int32_t *)data)[i];
    case STI_TENSOR_I64:
        return ((const int64_t *)data)[i];
    case STI_TENSOR_F32:
    case STI_TENSOR_U8:
    case STI_TENSOR_F16:
    case STI_TENSOR_BF16:
    case STI_TENSOR_OTHER: /* bytes */
        break;
    }
    return ((const uint8_t *)data)[i];
}

static void compare_element(sti_tensor_type type, const void *a, const void *b,
                            int64_t i, stint_diff_tensor *out)
{
    const bool real = type == STI_TENSOR_F32;
    const uint32_t x = real ? ((const uint32_t *)a)[i] : 0;
    const uint32_t y = real ? ((const uint32_t *)b)[i] : 0;
    const int64_t p = real ? 0 : integer_at(type, a, i);
    const int64_t q = real ? 0 : integer_at(type, b, i);
    const int bin = real ? bin_f32(x, y) : bin_integer(p, q);
    out->histogram[bin]++;
    if (bin == 0)
        return;
    out->different++;
    if (out->first >= 0)
        return;
    out->first = i;
    out->a = real ? (double)as_float(x) : (double)p;
    out->b = real ? (double)as_float(y) : (double)q;
}

static int64_t element_bytes(sti_tensor_type type)
{
    switch (type) {
    case STI_TENSOR_F32:
    case STI_TENSOR_I32:
        return 4;
    case STI_TENSOR_I64:
        return 8;
    case STI_TENSOR_U8:
    case STI_TENSOR_F16:
    case STI_TENSOR_BF16:
    case STI_TENSOR_OTHER:
        break;
    }
    return 1;
}

static stint_status compare_tensors(const diff_pair *pair, const sti_tensor_row *a,
                                    const sti_tensor_row *b, stint_diff_tensor *out)
{
    void *left = sti_alloc(a->bytes, "tensor"), *right = sti_alloc(b->bytes, "tensor");
    stint_status status = left && right ? STINT_OK : STINT_E_MEMORY;
    if (status == STINT_OK)
        status = sti_tensor_file_read(pair->a, a, left);
    if (status == STINT_OK)
        status = sti_tensor_file_read(pair->b, b, right);
    if (status == STINT_OK) {
        out->count = (int64_t)a->bytes / element_bytes(a->type);
        for (int64_t i = 0; i < out->count; i++)
            compare_element(a->type, left, right, i, out);
    }
    sti_free(left);
    sti_free(right);
    return status;
}

static void note_only(stint_diff_result *r, int64_t *count, const char *name)
{
    (*count)++;
    if (!r->first_only)
        r->first_only = sti_arena_strdup(r->arena, name);
}

static stint_status compare_row(const diff_pair *pair, const sti_tensor_row *a)
{
    stint_diff_result *r = pair->result;
    const sti_tensor_row *b = sti_tensor_file_find(pair->b, a->name);
    if (!b) {
        note_only(r, &r->only_a, a->name);
        return STINT_OK;
    }
    stint_diff_tensor *out = &r->tensor[r->tensors++];
    *out = (stint_diff_tensor){
        .name = sti_arena_strdup(r->arena, a->name), .count = -1, .first = -1};
    if (!out->name)
        return STINT_E_MEMORY;
    stint_status status = same_form(a, b) ? compare_tensors(pair, a, b, out) : STINT_OK;
    r->different += out->count < 0 || out->different > 0;
    return status;
}

static stint_status compare_files(const diff_pair *pair)
{
    stint_diff_result *r = pair->result;
    const int64_t count = sti_tensor_file_count(pair->a);
    stint_status status = STINT_OK;
    r->tensor = sti_alloc_array(count, sizeof *r->tensor, "differences");
    if (!r->tensor)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < count && status == STINT_OK; i++)
        status = compare_row(pair, sti_tensor_file_row(pair->a, i));
    for (int64_t i = 0; i < sti_tensor_file_count(pair->b); i++) {
        const char *name = sti_tensor_file_row(pair->b, i)->name;
        if (!sti_tensor_file_find(pair->a, name))
            note_only(r, &r->only_b, name);
    }
    return status;
}

stint_status stint_diff_files(const char *a, const char *b, stint_diff_result *out)
{
    sti_tensor_file *left = NULL, *right = NULL;
    *out = (stint_diff_result){.arena = sti_arena_create("differences")};
    stint_status status = out->arena ? STINT_OK : STINT_E_MEMORY;
    if (status == STINT_OK)
        status = sti_model_tensors_open(a, &left);
    if (status == STINT_OK)
        status = sti_model_tensors_open(b, &right);
    if (status == STINT_OK)
        status = compare_files(&(diff_pair){left, right, out});
    sti_tensor_file_close(left);
    sti_tensor_file_close(right);
    if (status != STINT_OK)
        stint_diff_fini(out);
    return status;
}

void stint_diff_fini(stint_diff_result *result)
{
    sti_free(result->tensor);
    if (result->arena)
        sti_arena_destroy(result->arena);
    *result = (stint_diff_result){0};
}
