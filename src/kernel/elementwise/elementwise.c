/* Cuts element-wise work into pieces and hands them to the loops of the instruction set
 * in use. Pieces are 16384 elements (64 KiB), by the problem's size alone; the results
 * would be the same for any cut. */
#include "kernel/elementwise/elementwise.h"

#include <string.h>

#include "kernel/elementwise/elementwise_priv.h"
#include "kernel/lane/dispatch.h"

#define PIECE 16384

const sti_elementwise_table *sti_elementwise_now(void)
{
    return STI_KERNELS_NOW(sti_elementwise);
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* One struct for all contiguous loops: which of the members count depends on the
 * function that reads them. */
typedef struct flat {
    const sti_elementwise_table *table;
    sti_unary_loop *unary;
    sti_binary_loop *binary;
    int64_t n;
    float p;
    const float *a, *b;
    float *out;
    const uint8_t *bits_in;
    uint8_t *bits_out;
} flat;

static void flat_run(const sti_team *team, flat *f, sti_piece_fn *fn)
{
    sti_team_run(team, (f->n + PIECE - 1) / PIECE, fn, f);
}

static void unary_piece(void *arg, int64_t piece, int worker)
{
    const flat *f = arg;
    int64_t at = piece * PIECE;
    (void)worker;
    f->unary(min_i64(PIECE, f->n - at), f->p, f->a + at, f->out + at);
}

void sti_unary_f32(const sti_team *team, sti_unary kind, int64_t n, float p,
                   const float *x, float *y)
{
    flat f = {
        .unary = sti_elementwise_now()->unary[kind], .n = n, .p = p, .a = x, .out = y};
    flat_run(team, &f, unary_piece);
}

static void binary_piece(void *arg, int64_t piece, int worker)
{
    const flat *f = arg;
    int64_t at = piece * PIECE;
    (void)worker;
    f->binary(min_i64(PIECE, f->n - at), f->a + at, f->b + at, f->out + at);
}

void sti_binary_f32(const sti_team *team, sti_binary kind, int64_t n, const float *a,
                    const float *b, float *z)
{
    flat f = {.binary = sti_elementwise_now()->binary[kind][STI_LOOP_VV],
              .n = n,
              .a = a,
              .b = b,
              .out = z};
    flat_run(team, &f, binary_piece);
}

void sti_add_f32(const sti_team *team, int64_t n, const float *x, float *y)
{
    sti_binary_f32(team, STI_BINARY_ADD, n, y, x, y);
}

static void fill_piece(void *arg, int64_t piece, int worker)
{
    const flat *f = arg;
    int64_t end = min_i64(f->n, (piece + 1) * PIECE);
    (void)worker;
    for (int64_t i = piece * PIECE; i < end; i++)
        f->out[i] = f->p;
}

void sti_fill_f32(const sti_team *team, int64_t n, float value, float *y)
{
    flat f = {.n = n, .p = value, .out = y};
    flat_run(team, &f, fill_piece);
}

static void relu_piece(void *arg, int64_t piece, int worker)
{
    const flat *f = arg;
    int64_t at = piece * PIECE;
    (void)worker;
    f->table->relu(min_i64(PIECE, f->n - at), f->p, f->a + at, f->out + at,
                   f->bits_out ? f->bits_out + at / 8 : NULL);
}

void sti_relu_f32(const sti_team *team, int64_t n, float slope, const float *x,
                  float *y, uint8_t *bits)
{
    flat f = {.table = sti_elementwise_now(),
              .n = n,
              .p = slope,
              .a = x,
              .out = y,
              .bits_out = bits};
    flat_run(team, &f, relu_piece);
}

static void relu6_piece(void *arg, int64_t piece, int worker)
{
    const flat *f = arg;
    int64_t at = piece * PIECE;
    (void)worker;
    f->table->relu6(min_i64(PIECE, f->n - at), f->a + at, f->out + at,
                    f->bits_out ? f->bits_out + at / 8 : NULL);
}

void sti_relu6_f32(const sti_team *team, int64_t n, const float *x, float *y,
                   uint8_t *bits)
{
    flat f = {
        .table = sti_elementwise_now(), .n = n, .a = x, .out = y, .bits_out = bits};
    flat_run(team, &f, relu6_piece);
}

static void relu_grad_piece(void *arg, int64_t piece, int worker)
{
    const flat *f = arg;
    int64_t at = piece * PIECE;
    (void)worker;
    f->table->relu_grad(min_i64(PIECE, f->n - at), f->p, f->a + at, f->bits_in + at / 8,
                        f->out + at);
}

void sti_relu_grad_f32(const sti_team *team, int64_t n, float slope, const float *dy,
                       const uint8_t *bits, float *dx)
{
    flat f = {.table = sti_elementwise_now(),
              .n = n,
              .p = slope,
              .a = dy,
              .out = dx,
              .bits_in = bits};
    flat_run(team, &f, relu_grad_piece);
}
