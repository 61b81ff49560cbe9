#include "codec/weights.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "codec/weights_coder.h"

enum {
    FLOAT_TOP = 9,  /* sign and exponent of f32; sign, exponent and 3 bits of a half */
    FLOAT_REST = 7, /* bits below those that one slot takes: 23 = 7 + 16 */
    PATTERN_BITS = 4,
    ALL_TAPS = UINT16_MAX
};

/* Contexts that live as long as a stream; the numbers of all tensors are alike. */
typedef struct number_contexts {
    sti_decision whole[7][1 << 8]; /* of integers, by bits - 2 */
    sti_decision single[1 << FLOAT_TOP], half[1 << FLOAT_TOP], scale[1 << FLOAT_TOP];
} number_contexts;

/* One matrix on its way. What is dead, by what holds it. */
typedef struct matrix {
    sti_weights_coder *coder;
    number_contexts *contexts;
    const sti_weight_form *form;
    int64_t rows, columns;
    const float *x;     /* writing */
    float *out;         /* reading */
    float *scale;       /* [columns], of integers */
    uint8_t *column;    /* [columns]: 0, nothing in it */
    uint8_t *block;     /* [rows / block_rows, columns / block_columns] */
    uint16_t *kernel;   /* [channels, columns]: 0, ALL_TAPS, or a pattern */
    const char *tensor; /* writing: for the words */
    bool wrong;         /* writing: a number is not of the form */
} matrix;

/* ---- forms ---- */

static bool within(int64_t value, int64_t least, int64_t most)
{
    return value >= least && value <= most;
}

bool sti_weight_form_is_sound(const sti_weight_form *f)
{
    const int64_t most = (int64_t)1 << 32;
    const bool tiles = f->block_rows != 0 || f->block_columns != 0;
    if (!within(f->rows, 0, most) || !within(f->columns, 0, most) ||
        (f->columns > 0 && f->rows > most / f->columns))
        return false;
    if (!within(f->taps, 0, f->rows) || !within(f->channels, 0, f->rows) ||
        (f->taps > 0 && f->taps * f->channels != f->rows))
        return false;
    if (tiles &&
        (!within(f->block_rows, 1, most) || !within(f->block_columns, 1, most) ||
         f->rows % f->block_rows != 0 || f->columns % f->block_columns != 0))
        return false;
    if (f->kernels && f->taps == 0)
        return false;
    if (!within(f->patterns, 0, STI_WEIGHT_PATTERNS_MAX) ||
        (f->patterns > 0 && f->taps != 9))
        return false;
    for (int i = 0; i < f->patterns; i++)
        if (!within(f->pattern[i], 1, (1 << 9) - 1))
            return false;
    if (!within((int64_t)f->number, STI_WEIGHT_F32, STI_WEIGHT_INT) ||
        (f->number == STI_WEIGHT_INT && !within(f->bits, 2, 8)))
        return false;
    return f->rank == 0 ||
           within(f->rank, 1, f->rows < f->columns ? f->rows : f->columns);
}

sti_weight_form sti_weight_form_plain(int rank, const int64_t *dim)
{
    sti_weight_form form = {.rows = 1, .columns = rank > 0 ? dim[rank - 1] : 1};
    for (int i = 0; i + 1 < rank; i++)
        form.rows *= dim[i];
    if (rank == 4) {
        form.taps = dim[0] * dim[1];
        form.channels = dim[2];
    }
    return form;
}

/* ---- numbers ---- */

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t code_single(sti_weights_coder *c, sti_decision *top, uint32_t bits)
{
    const uint32_t low = (1 << FLOAT_REST) - 1;
    const uint32_t high = sti_weights_tree(c, top, FLOAT_TOP, bits >> 23);
    const uint32_t middle = sti_weights_even(c, 16, bits >> FLOAT_REST & 0xffff);
    const uint32_t rest = sti_weights_even(c, FLOAT_REST, bits & low);
    return high << 23 | middle << FLOAT_REST | rest;
}

/* The bits of a float that is a number of half precision. */
static uint32_t half_of(float x)
{
    const uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000;
    const float size = fabsf(x);
    if (size < 0x1p-14f) /* denormal: a multiple of 2^-24 */
        return sign | (uint32_t)(size * 0x1p24f);
    return sign | ((bits & 0x7fffffff) - 0x38000000) >> 13;
}

static float float_of_half(uint32_t half)
{
    const uint32_t sign = (half & 0x8000) << 16, rest = half & 0x7fff;
    if (rest < 0x0400)
        return (sign ? -1.0f : 1.0f) * (float)rest * 0x1p-24f;
    return float_of(sign | ((rest << 13) + 0x38000000));
}

static float code_half(matrix *m, float x)
{
    sti_weights_coder *c = m->coder;
    if (c->writing && (!(fabsf(x) <= 65504.0f) || sti_weight_to_half(x) != x)) {
        m->wrong = true;
        return x;
    }
    const uint32_t half = c->writing ? half_of(x) : 0;
    const uint32_t top =
        sti_weights_tree(c, m->contexts->half, FLOAT_TOP, half >> FLOAT_REST);
    return float_of_half(top << FLOAT_REST |
                         sti_weights_even(c, FLOAT_REST, half & 0x7f));
}

static float code_whole(matrix *m, float x, float scale)
{
    const int bits = m->form->bits;
    const int32_t most = (1 << (bits - 1)) - 1;
    int32_t q = 0;
    if (m->coder->writing) {
        const float near = scale > 0 ? x / scale : 0.0f;
        q = fabsf(near) <= (float)most + 0.5f ? (int32_t)lrintf(near) : most + 1;
        if (q < -most || q > most || bits_of((float)q * scale) != bits_of(x)) {
            m->wrong = true;
            return x;
        }
    }
    q = (int32_t)sti_weights_tree(m->coder, m->contexts->whole[bits - 2], bits,
                                  (uint32_t)(q + most)) -
        most;
    return (float)q * scale;
}

static float code_number(matrix *m, int64_t column, float x)
{
    if (m->form->number == STI_WEIGHT_INT)
        return code_whole(m, x, m->scale[column]);
    if (m->form->number == STI_WEIGHT_F16)
        return code_half(m, x);
    return float_of(code_single(m->coder, m->contexts->single, bits_of(x)));
}

/* ---- what may be other than zero ---- */

static bool is_zero(float x)
{
    return bits_of(x) == 0;
}

/* A part of the matrix, every step of rows and columns: is anything there? */
static bool any_in(const matrix *m, int64_t row, int64_t rows, int64_t row_step,
                   int64_t column, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            if (!is_zero(m->x[(row + r * row_step) * m->columns + column + c]))
                return true;
    return false;
}

static void code_columns(matrix *m)
{
    sti_decision context = {0};
    for (int64_t c = 0; c < m->columns; c++) {
        const bool any = m->coder->writing && any_in(m, 0, m->rows, 1, c, 1);
        m->column[c] = sti_weights_decide(m->coder, &context, any);
    }
}

static void code_blocks(matrix *m)
{
    const int64_t height = m->form->block_rows, width = m->form->block_columns;
    sti_decision context = {0};
    for (int64_t i = 0; i < m->rows / height; i++)
        for (int64_t j = 0; j < m->columns / width; j++) {
            const bool any =
                m->coder->writing && any_in(m, i * height, height, 1, j * width, width);
            m->block[i * (m->columns / width) + j] =
                sti_weights_decide(m->coder, &context, any);
        }
}

/* The number at a tap of kernel (channel, column), row by row of the kernel. */
static float tap_of(const matrix *m, int64_t tap, int64_t channel, int64_t column)
{
    return m->x[(tap * m->form->channels + channel) * m->columns + column];
}

static bool any_tap(const matrix *m, int64_t channel, int64_t column)
{
    for (int64_t t = 0; t < m->form->taps; t++)
        if (!is_zero(tap_of(m, t, channel, column)))
            return true;
    return false;
}

/* The first pattern that has all taps which are not zero. */
static uint32_t pattern_of(matrix *m, int64_t channel, int64_t column)
{
    unsigned taps = 0;
    for (int t = 0; t < (int)m->form->taps; t++)
        taps |= (unsigned)!is_zero(tap_of(m, t, channel, column)) << t;
    for (int i = 0; i < m->form->patterns; i++)
        if ((taps & ~m->form->pattern[i]) == 0)
            return (uint32_t)i;
    m->wrong = true;
    return 0;
}

static void code_kernels(matrix *m)
{
    const sti_weight_form *f = m->form;
    sti_decision context = {0}, pattern[1 << PATTERN_BITS] = {{0}};
    for (int64_t k = 0; k < f->channels * m->columns; k++) {
        const int64_t channel = k / m->columns, column = k % m->columns;
        const bool writing = m->coder->writing;
        if (m->column && !m->column[column])
            continue;
        if (!sti_weights_decide(m->coder, &context,
                                writing && any_tap(m, channel, column)))
            continue;
        m->kernel[k] = ALL_TAPS;
        if (f->patterns == 0)
            continue;
        const uint32_t which =
            sti_weights_tree(m->coder, pattern, PATTERN_BITS,
                             writing ? pattern_of(m, channel, column) : 0);
        if (which < (uint32_t)f->patterns)
            m->kernel[k] = f->pattern[which];
        else
            m->coder->damaged = true;
    }
}

static bool is_dead(const matrix *m, int64_t r, int64_t c)
{
    const sti_weight_form *f = m->form;
    if (m->column && !m->column[c])
        return true;
    if (m->block && !m->block[r / f->block_rows * (m->columns / f->block_columns) +
                              c / f->block_columns])
        return true;
    const unsigned taps =
        m->kernel ? m->kernel[r % f->channels * m->columns + c] : ALL_TAPS;
    return taps != ALL_TAPS && !(taps >> r / f->channels & 1);
}

static void code_numbers(matrix *m)
{
    sti_decision context = {0};
    for (int64_t r = 0; r < m->rows && !m->coder->damaged && !m->wrong; r++)
        for (int64_t c = 0; c < m->columns; c++) {
            const float x = m->x ? m->x[r * m->columns + c] : 0;
            float y = 0;
            if (is_dead(m, r, c)) /* (kernels without a pattern may hold numbers) */
                m->wrong |= !is_zero(x);
            else if (!m->form->elements ||
                     sti_weights_decide(m->coder, &context, !is_zero(x)))
                y = code_number(m, c, x);
            if (m->out)
                m->out[r * m->columns + c] = y;
        }
}

/* ---- one matrix ---- */

static stint_status matrix_room(matrix *m, bool parts)
{
    const sti_weight_form *f = m->form;
    bool ok = true;
    if (f->number == STI_WEIGHT_INT)
        ok = (m->scale = sti_alloc_array(m->columns, sizeof(float), "scales")) != NULL;
    if (ok && parts && f->whole_columns)
        ok = (m->column = sti_alloc((size_t)m->columns, "columns")) != NULL;
    if (ok && parts && f->block_rows > 0)
        ok = (m->block = sti_alloc_array(m->rows / f->block_rows,
                                         (size_t)(m->columns / f->block_columns),
                                         "blocks")) != NULL;
    if (ok && parts && (f->kernels || f->patterns > 0))
        ok = (m->kernel = sti_alloc_array(f->channels * m->columns, sizeof *m->kernel,
                                          "kernels")) != NULL;
    return ok ? STINT_OK : STINT_E_MEMORY;
}

static void code_scales(matrix *m, const float *scale)
{
    for (int64_t c = 0; c < m->columns; c++) {
        const float s = scale ? scale[c] : 0;
        m->scale[c] = float_of(code_single(m->coder, m->contexts->scale, bits_of(s)));
        if (!isfinite(m->scale[c]))
            m->coder->damaged = m->wrong = true;
    }
}

/* parts: what of it may be missing is as the form says, not single numbers alone. */
static stint_status code_matrix(matrix *m, bool parts, const float *scale)
{
    stint_status st = matrix_room(m, parts);
    if (st == STINT_OK) {
        if (m->scale)
            code_scales(m, scale);
        if (m->column)
            code_columns(m);
        if (m->block)
            code_blocks(m);
        if (m->kernel)
            code_kernels(m);
        code_numbers(m);
    }
    sti_free(m->scale);
    sti_free(m->column);
    sti_free(m->block);
    sti_free(m->kernel);
    if (st != STINT_OK)
        return st;
    if (m->coder->writing && m->wrong)
        return sti_fail(STINT_E_BUG,
                        "%s: its numbers are not of the form that it is said to have",
                        m->tensor);
    if (m->coder->damaged)
        return sti_fail(STINT_E_INPUT, "the compressed weights are damaged");
    return m->coder->no_memory ? STINT_E_MEMORY : STINT_OK;
}

static void age_numbers(number_contexts *n)
{
    for (int i = 0; i < 7; i++)
        sti_weights_age(n->whole[i], 1 << 8);
    sti_weights_age(n->single, 1 << FLOAT_TOP);
    sti_weights_age(n->half, 1 << FLOAT_TOP);
    sti_weights_age(n->scale, 1 << FLOAT_TOP);
}

/* ---- writing ---- */

struct sti_weights_writer {
    sti_weights_coder coder;
    number_contexts contexts;
};

stint_status sti_weights_writer_create(sti_weights_writer **writer_out)
{
    sti_weights_writer *w = sti_alloc(sizeof *w, "weights writer");
    if (!w || !sti_weights_coder_begin_writing(&w->coder)) {
        sti_free(w);
        return STINT_E_MEMORY;
    }
    *writer_out = w;
    return STINT_OK;
}

void sti_weights_writer_destroy(sti_weights_writer *w)
{
    if (w)
        sti_weights_coder_fini(&w->coder);
    sti_free(w);
}

static stint_status write_matrix(sti_weights_writer *w, const char *tensor,
                                 const sti_weight_form *form, int64_t rows,
                                 int64_t columns, const float *x, const float *scale)
{
    matrix m = {.coder = &w->coder,
                .contexts = &w->contexts,
                .form = form,
                .rows = rows,
                .columns = columns,
                .x = x,
                .tensor = tensor};
    return code_matrix(&m, form->rank == 0, scale);
}

stint_status sti_weights_writer_add(sti_weights_writer *w, const char *tensor,
                                    const sti_weight *weight, double *bits_out)
{
    const sti_weight_form *f = &weight->form;
    const double before = w->coder.bits;
    stint_status st;
    assert(sti_weight_form_is_sound(f));
    age_numbers(&w->contexts);
    if (f->rank == 0) {
        st = write_matrix(w, tensor, f, f->rows, f->columns, weight->x, weight->scale);
    } else {
        st = write_matrix(w, tensor, f, f->rows, f->rank, weight->left,
                          weight->left_scale);
        if (st == STINT_OK)
            st = write_matrix(w, tensor, f, f->rank, f->columns, weight->right,
                              weight->scale);
    }
    if (st == STINT_OK && bits_out)
        *bits_out = w->coder.bits - before;
    return st;
}

stint_status sti_weights_writer_finish(sti_weights_writer *w, const uint8_t **bytes_out,
                                       size_t *n_bytes_out)
{
    sti_weights_coder_flush(&w->coder);
    if (w->coder.no_memory)
        return STINT_E_MEMORY;
    *bytes_out = w->coder.bytes;
    *n_bytes_out = w->coder.n_bytes;
    return STINT_OK;
}

/* ---- reading ---- */

struct sti_weights_reader {
    sti_weights_coder coder;
    number_contexts contexts;
};

stint_status sti_weights_reader_create(const uint8_t *bytes, size_t n_bytes,
                                       sti_weights_reader **reader_out)
{
    sti_weights_reader *r = sti_alloc(sizeof *r, "weights reader");
    if (!r)
        return STINT_E_MEMORY;
    sti_weights_coder_begin_reading(&r->coder, bytes, n_bytes);
    *reader_out = r;
    return STINT_OK;
}

void sti_weights_reader_destroy(sti_weights_reader *r)
{
    sti_free(r);
}

static stint_status read_matrix(sti_weights_reader *r, const sti_weight_form *form,
                                int64_t rows, int64_t columns, float *out)
{
    matrix m = {.coder = &r->coder,
                .contexts = &r->contexts,
                .form = form,
                .rows = rows,
                .columns = columns,
                .out = out};
    return code_matrix(&m, form->rank == 0, NULL);
}

static stint_status read_product(sti_weights_reader *r, const sti_weight_form *f,
                                 float *x_out)
{
    stint_status st = STINT_E_MEMORY;
    float *left = sti_alloc_array(f->rows * f->rank, sizeof *left, "factors");
    float *right = sti_alloc_array(f->rank * f->columns, sizeof *right, "factors");
    if (left && right)
        st = read_matrix(r, f, f->rows, f->rank, left);
    if (st == STINT_OK)
        st = read_matrix(r, f, f->rank, f->columns, right);
    if (st == STINT_OK)
        sti_weight_multiply(f->rows, f->rank, f->columns, left, right, x_out);
    sti_free(left);
    sti_free(right);
    return st;
}

stint_status sti_weights_reader_next(sti_weights_reader *r, const sti_weight_form *form,
                                     float *x_out)
{
    assert(sti_weight_form_is_sound(form));
    age_numbers(&r->contexts);
    return form->rank == 0 ? read_matrix(r, form, form->rows, form->columns, x_out)
                           : read_product(r, form, x_out);
}

stint_status sti_weights_reader_end(const sti_weights_reader *r)
{
    return sti_weights_coder_at_end(&r->coder)
               ? STINT_OK
               : sti_fail(STINT_E_INPUT, "the compressed weights end elsewhere than "
                                         "their tensors");
}
