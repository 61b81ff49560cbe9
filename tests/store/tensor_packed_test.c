/* Matrices in few bits: the bytes of the file are decoded here by the words of the
 * format alone, and give what reading gives; numbers are within half a step; any
 * stretch is that of the whole. Lines come back, and hostile ones are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/tensor_packed.h"

static char folder[] = "/tmp/stint_packed_XXXXXX";
static char path[256];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/packed", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static sti_packed_line line_of(const char *type, bool down, int64_t rows,
                               int64_t columns)
{
    return (sti_packed_line){.type = sti_gguf_type_named(type),
                             .down = down,
                             .rows = rows,
                             .columns = columns,
                             .name = "w",
                             .name_bytes = 1};
}

static uint32_t seed = 11;

static float draw(void)
{
    seed = seed * 1664525u + 1013904223u;
    return ((float)(seed >> 8) / 8388608.0f - 1.0f) * (seed & 64 ? 3.0f : 0.01f);
}

/* A number of 16 bits: 1 of sign, 5 of exponent, 10 of mantissa. */
static double half(const uint8_t *at)
{
    const int bits = at[0] | at[1] << 8, exponent = bits >> 10 & 31;
    const double mantissa = bits & 1023;
    const double x =
        exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return bits >> 15 ? -x : x;
}

/* Number k of a block, and the step that it is a multiple of. */
static double decode(const char *type, const uint8_t *block, int64_t k, double *step)
{
    *step = fabs(half(block));
    if (strcmp(type, "Q8_0") == 0)
        return half(block) * (double)(int8_t)block[2 + k];
    const int byte = block[2 + k % 16];
    return half(block) * ((k < 16 ? byte & 15 : byte >> 4) - 8);
}

/* Written in strips of 64 rows, as who makes a large matrix does. */
static uint8_t *write_matrix(const sti_packed_line *line, const float *x)
{
    const sti_tensor_row row = sti_packed_row(line);
    sti_writer *writer = NULL;
    uint8_t *bytes = malloc(row.bytes + 1);
    assert_int_equal(sti_writer_open(path, &writer), STINT_OK);
    for (int64_t r = 0; r < line->rows; r += 64)
        assert_int_equal(sti_packed_add(line, line->rows - r < 64 ? line->rows - r : 64,
                                        x + r * line->columns, writer),
                         STINT_OK);
    assert_int_equal(sti_writer_commit(writer), STINT_OK);
    FILE *file = fopen(path, "rb");
    assert_true(file && bytes);
    assert_int_equal(fread(bytes, 1, row.bytes + 1, file), row.bytes);
    fclose(file);
    return bytes;
}

/* Every number by hand: its block, and within it its place. */
static void check_blocks(const char *type, const sti_packed_line *line, const float *x,
                         const float *y, const uint8_t *bytes)
{
    const size_t each = line->type->block_bytes;
    const int64_t across = (line->columns + 31) / 32;
    for (int64_t r = 0; r < line->rows; r++)
        for (int64_t c = 0; c < line->columns; c++) {
            const int64_t block =
                line->down ? r / 32 * line->columns + c : r * across + c / 32;
            const int64_t at = r * line->columns + c;
            double step;
            const double want = decode(type, bytes + (size_t)block * each,
                                       line->down ? r % 32 : c % 32, &step);
            assert_true(fabs((double)y[at] - want) <= 1e-6 * fabs(want));
            /* (The step is rounded to 16 bits, too: half a unit in 2^11 of 127.) */
            assert_true(fabs((double)x[at] - want) <=
                        step * (strcmp(type, "Q8_0") == 0 ? 0.57 : 1.01));
        }
}

static void check_stretches(const sti_tensor_row *row, const float *whole)
{
    const int64_t count = row->dim[0] * row->dim[1];
    const int fd = open(path, O_RDONLY);
    float *part = malloc((size_t)count * sizeof *part);
    assert_true(fd >= 0 && part);
    for (int64_t first = 0; first < count; first += 1 + count / 37)
        for (int64_t n = 1; first + n <= count; n = 3 * n + 5) {
            assert_int_equal(sti_packed_read(fd, path, row, first, n, part), STINT_OK);
            assert_memory_equal(part, whole + first, (size_t)n * sizeof *part);
        }
    free(part);
    close(fd);
}

static void check_matrix(const char *type, bool down, int64_t rows, int64_t columns)
{
    const sti_packed_line line = line_of(type, down, rows, columns);
    const int64_t count = rows * columns;
    float *x = malloc((size_t)count * sizeof *x),
          *y = malloc((size_t)count * sizeof *y);
    assert_true(x && y);
    for (int64_t i = 0; i < count; i++)
        x[i] = i % 97 == 5 ? 0.0f : draw();
    uint8_t *bytes = write_matrix(&line, x);
    sti_tensor_row row = sti_packed_row(&line);
    assert_true(sti_packed_take(&line, &row));
    assert_true(row.type == STI_TENSOR_F32 && row.rank == 2 && row.dim[0] == rows &&
                row.dim[1] == columns && row.bytes == (size_t)count * sizeof(float));
    const int fd = open(path, O_RDONLY);
    assert_int_equal(sti_packed_read(fd, path, &row, 0, count, y), STINT_OK);
    close(fd);
    check_blocks(type, &line, x, y, bytes);
    check_stretches(&row, y);
    free(bytes);
    free(x);
    free(y);
}

static void test_blocks(void **state)
{
    static const char *const types[2] = {"Q8_0", "Q4_0"};
    (void)state;
    for (int t = 0; t < 2; t++)
        for (int down = 0; down < 2; down++) {
            check_matrix(types[t], down, 64, 96);
            check_matrix(types[t], down, 70, 45); /* neither comes out even */
            check_matrix(types[t], down, 1, 1);
        }
    check_matrix("Q8_0", false, 2, 20000); /* more blocks than go at a time */
    check_matrix("Q8_0", true, 40, 300);
}

/* The upper half of a float, to the nearest, to even on ties. */
static float upper_half(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t rest = bits & 0xffff;
    bits >>= 16;
    bits += rest > 0x8000 || (rest == 0x8000 && (bits & 1));
    bits <<= 16;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void test_plain(void **state)
{
    const sti_packed_line line = line_of("BF16", false, 70, 61);
    float x[70 * 61], y[70 * 61];
    (void)state;
    for (int i = 0; i < 70 * 61; i++)
        x[i] = draw();
    free(write_matrix(&line, x));
    sti_tensor_row row = sti_packed_row(&line);
    assert_int_equal(row.type, STI_TENSOR_BF16);
    assert_true(sti_packed_take(&line, &row));
    const int fd = open(path, O_RDONLY);
    assert_int_equal(sti_packed_read(fd, path, &row, 0, 70 * 61, y), STINT_OK);
    close(fd);
    for (int i = 0; i < 70 * 61; i++)
        assert_true(y[i] == upper_half(x[i]));
    check_stretches(&row, y);
}

static void test_short_file(void **state)
{
    const sti_packed_line line = line_of("Q8_0", true, 64, 40);
    float x[64 * 40] = {1}, y[64 * 40];
    (void)state;
    free(write_matrix(&line, x));
    sti_tensor_row row = sti_packed_row(&line);
    assert_int_equal(truncate(path, (off_t)row.bytes - 1), 0);
    assert_true(sti_packed_take(&line, &row));
    const int fd = open(path, O_RDONLY);
    assert_int_equal(sti_packed_read(fd, path, &row, 0, 64 * 40, y), STINT_E_IO);
    close(fd);
}

static void test_lines(void **state)
{
    static const char *const bad[] = {"",
                                      "Q8_0 down 0 4 w",
                                      "Q8_0 down 4 4 ",
                                      "Q8_0 up 4 4 w",
                                      "Q9_0 down 4 4 w",
                                      "F32 along 4 4 w",
                                      "BF16 down 4 4 w",
                                      "Q8_0 down 4 w",
                                      "Q8_0 down -4 4 w",
                                      "Q8_0 down 9999999999 4 w",
                                      "Q8_0Q8_0Q8_0 down 4 4 w"};
    sti_packed_line line;
    sti_text text = {0};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *at = bad[i];
        assert_false(sti_packed_line_read(&at, &line));
    }
    const sti_packed_line two[2] = {line_of("Q4_0", true, 768, 2304),
                                    line_of("BF16", false, 3, 5)};
    sti_packed_line_print(&two[0], &text);
    sti_packed_line_print(&two[1], &text);
    const char *at = text.data;
    for (int i = 0; i < 2; i++) {
        assert_true(sti_packed_line_read(&at, &line));
        assert_true(line.type == two[i].type && line.down == two[i].down &&
                    line.rows == two[i].rows && line.columns == two[i].columns &&
                    line.name_bytes == 1 && line.name[0] == 'w');
    }
    assert_string_equal(at, "");
    sti_text_fini(&text);
}

/* A tensor of another type or shape is not the line's, and none is taken twice. */
static void test_take(void **state)
{
    const sti_packed_line line = line_of("Q8_0", false, 64, 96);
    sti_tensor_row row = sti_packed_row(&line), other = row;
    (void)state;
    assert_true(row.type == STI_TENSOR_U8 && row.rank == 3 && row.dim[0] == 64 &&
                row.dim[1] == 3 && row.dim[2] == 34 && row.bytes == 64 * 3 * 34);
    other.dim[1] = 2;
    assert_false(sti_packed_take(&line, &other));
    other = row;
    other.type = STI_TENSOR_BF16;
    assert_false(sti_packed_take(&line, &other));
    other = row;
    other.rank = 2;
    assert_false(sti_packed_take(&line, &other));
    assert_true(sti_packed_take(&line, &row));
    assert_false(sti_packed_take(&line, &row));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks), cmocka_unit_test(test_plain),
        cmocka_unit_test(test_short_file), cmocka_unit_test(test_lines),
        cmocka_unit_test(test_take)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
