/* .npy headers: what NumPy writes is read, everything else is refused with a reason. */
#include "base/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"

/* A file in memory: version, header text, and so many zero bytes of data. */
static size_t make(unsigned char *out, int version, const char *text, size_t data_bytes)
{
    const size_t length = strlen(text), front = version == 1 ? 10 : 12;
    memset(out, 0, front + length + data_bytes);
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (unsigned char)version;
    out[8] = (unsigned char)length;
    out[9] = (unsigned char)(length >> 8);
    memcpy(out + front, text, length);
    return front + length + data_bytes;
}

static void accept(int version, const char *text, size_t data_bytes, char kind,
                   int item_bytes, int rank, int64_t count)
{
    unsigned char file[1024];
    sti_npy npy = {0};
    const size_t bytes = make(file, version, text, data_bytes);
    assert_int_equal(sti_npy_parse(file, bytes, "f", &npy), STINT_OK);
    assert_int_equal(npy.kind, kind);
    assert_int_equal(npy.item_bytes, item_bytes);
    assert_int_equal(npy.rank, rank);
    assert_int_equal(npy.count, count);
    assert_ptr_equal(npy.data, file + bytes - data_bytes);
}

static void good_headers(void **state)
{
    (void)state;
    accept(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }   \n", 12, 'f',
           4, 1, 3);
    accept(2, "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }\n", 12, 'f',
           2, 2, 6);
    accept(3, "{\"shape\": (), 'fortran_order': True, 'descr': '|i1'}", 1, 'i', 1, 0,
           1);
    accept(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (5, 0), }\n", 0, 'i',
           4, 2, 0);
    accept(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (3,), }", 12, 'f', 4,
           1, 3);
    accept(1, "{'descr':'|V2','fortran_order':False,'shape':(1,1,2,)}", 4, 'V', 2, 3,
           2);
}

static void refuse(const char *text, size_t data_bytes, stint_status want,
                   const char *word)
{
    unsigned char *file = malloc(strlen(text) + data_bytes + 12);
    sti_npy npy = {.rank = 77};
    const size_t bytes = make(file, 1, text, data_bytes);
    assert_int_equal(sti_npy_parse(file, bytes, "f.npy", &npy), want);
    if (!strstr(stint_last_error(), word))
        fail_msg("'%s' does not say '%s'", stint_last_error(), word);
    assert_int_equal(npy.rank, 77);
    free(file);
}

static void bad_headers(void **state)
{
    (void)state;
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 11,
           STINT_E_INPUT, "11 bytes follow");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 13,
           STINT_E_INPUT, "13 bytes follow");
    refuse("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", 24,
           STINT_E_UNSUPPORTED, "'|O'");
    refuse("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}", 12,
           STINT_E_UNSUPPORTED, "structures");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (3), }", 12,
           STINT_E_INPUT, "',' in the tuple");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }", 12,
           STINT_E_INPUT, "a length");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}",
           12, STINT_E_INPUT, "2^63");
    refuse("{'descr': '<f4', 'fortran_order': False, "
           "'shape': (4294967296, 4294967296)}",
           12, STINT_E_INPUT, "2^63");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}",
           0, STINT_E_INPUT, "promises");
    refuse("{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}", 12, STINT_E_INPUT,
           "True or False");
    refuse("{'descr': '<f4', 'shape': (3,)}", 12, STINT_E_INPUT, "no 'fortran_order'");
    refuse("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
           12, STINT_E_INPUT, "twice");
    refuse("{'more': 1, 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", 12,
           STINT_E_INPUT, "that none has");
    refuse("{'descr': '<f0', 'fortran_order': False, 'shape': (3,)}", 0, STINT_E_INPUT,
           "no size");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x", 12,
           STINT_E_INPUT, "the end");
    refuse("{'descr': '<f4", 12, STINT_E_INPUT, "quoted");
    refuse("", 12, STINT_E_INPUT, "'{'");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,"
           "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
           4, STINT_E_INPUT, "32 axes");
    sti_npy npy;
    assert_int_equal(sti_npy_parse("\x93NUMPY", 6, "f", &npy), STINT_E_INPUT);
    assert_int_equal(sti_npy_parse("PK\3\4 a zip file", 15, "f", &npy), STINT_E_INPUT);
    assert_int_equal(sti_npy_parse("\x93NUMPY\4\0\0\0\0\0", 12, "f", &npy),
                     STINT_E_UNSUPPORTED);
    assert_int_equal(sti_npy_parse("\x93NUMPY\1\0\xff\xff\0\0", 12, "f", &npy),
                     STINT_E_INPUT);
}

static void there_and_back(void **state)
{
    (void)state;
    char path[] = "/tmp/stint_npy_XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    const int64_t dims[3] = {2, 3, 4};
    float x[24];
    for (int i = 0; i < 24; i++)
        x[i] = (float)i;
    for (int rank = 0; rank < 4; rank++) {
        size_t bytes = 4;
        for (int i = 0; i < rank; i++)
            bytes *= (size_t)dims[i];
        assert_int_equal(sti_npy_write(path, "<f4", rank, dims, x, bytes), STINT_OK);
        sti_npy npy;
        assert_int_equal(sti_npy_open(path, &npy), STINT_OK);
        assert_int_equal(npy.rank, rank);
        assert_memory_equal(npy.dim, dims, (size_t)rank * sizeof *dims);
        assert_memory_equal(npy.data, x, bytes);
        assert_int_equal(((const char *)npy.data - (const char *)npy.map) % 64, 0);
        sti_npy_close(&npy);
        sti_npy_close(&npy);
    }
    for (int64_t nth = 1; nth < 5; nth++) { /* clean under failing allocation */
        sti_alloc_fail_nth(nth);
        const stint_status status = sti_npy_write(path, "<f4", 1, dims, x, 8);
        sti_alloc_fail_nth(0);
        assert_true(status == STINT_OK || status == STINT_E_MEMORY);
    }
    sti_npy npy;
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(sti_npy_open(path, &npy), STINT_E_INPUT);
    assert_int_equal(sti_npy_open("/tmp", &npy), STINT_E_INPUT);
    remove(path);
    assert_int_equal(sti_npy_open(path, &npy), STINT_E_IO);
}

static void put(const char *path, const unsigned char *bytes, size_t count)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, count, f), count);
    assert_int_equal(fclose(f), 0);
}

/* The file as it lies, and a copy where elements come otherwise; nothing of others. */
static void reading_is_known_beforehand(void **state)
{
    (void)state;
    unsigned char file[256];
    char folder[] = "/tmp/stint_npy_XXXXXX", path[64], other[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x.npy", folder);
    snprintf(other, sizeof other, "%s/x.npz", folder);
    assert_int_equal(sti_npy_reading_bytes(path), 0);
    size_t bytes = make(
        file, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", 16);
    put(path, file, bytes);
    put(other, file, bytes);
    assert_int_equal(sti_npy_reading_bytes(path), bytes);
    assert_int_equal(sti_npy_reading_bytes(other), 0);
    static const char *const turned[] = {
        "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }",
        "{'descr': '>f8', 'fortran_order': False, 'shape': (2,), }"};
    for (int i = 0; i < 2; i++) {
        bytes = make(file, 1, turned[i], 16);
        put(path, file, bytes);
        assert_int_equal(sti_npy_reading_bytes(path), 2 * bytes);
    }
    put(path, file, 20);
    assert_int_equal(sti_npy_reading_bytes(path), 0);
    remove(path);
    remove(other);
    remove(folder);
    assert_int_equal(sti_npy_reading_bytes("/tmp"), 0);
}

/* Elements number 0, 1, 2, ... in Fortran order, most significant byte first, of 1 to 8
 * bytes; `axes` lengths. */
static void check_straight(char kind, int bytes, int rank, const int64_t *dim,
                           bool fortran, bool big)
{
    int64_t count = 1, step[4];
    for (int i = 0; i < rank; i++)
        count *= dim[i];
    unsigned char *x = malloc((size_t)(count * bytes) + 1);
    sti_npy npy = {.kind = kind,
                   .item_bytes = bytes,
                   .big_endian = big,
                   .fortran_order = fortran,
                   .rank = rank,
                   .count = count,
                   .data = x};
    memcpy(npy.dim, dim, (size_t)rank * sizeof *dim);
    for (int64_t i = 0; i < count; i++)
        for (int b = 0; b < bytes; b++)
            x[i * bytes + (big ? bytes - 1 - b : b)] =
                (unsigned char)(b < 8 ? i >> (8 * b) : 0);
    assert_int_equal(sti_npy_straighten(&npy, "f"), STINT_OK);
    assert_ptr_not_equal(npy.data, x);
    assert_false(npy.big_endian || npy.fortran_order);
    for (int i = 0, s = 1; i < rank; s *= (int)dim[i++])
        step[i] = fortran ? s : 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, value = fortran ? 0 : i;
        for (int axis = rank - 1; axis >= 0; rest /= dim[axis--])
            value += rest % dim[axis] * step[axis];
        const unsigned char *at = (const unsigned char *)npy.data + i * bytes;
        for (int b = 0; b < bytes; b++)
            assert_int_equal(at[b], b < 8 ? (value >> (8 * b)) & 255 : 0);
    }
    free(x);
    sti_npy_close(&npy);
}

static void other_orders(void **state)
{
    (void)state;
    const int64_t dim[][4] = {{3, 5},    {70, 33},     {1, 9},
                              {4, 3, 5}, {2, 3, 4, 5}, {0, 3}};
    const int rank[] = {2, 2, 2, 3, 4, 2};
    for (int i = 0; i < 6; i++)
        for (int bytes = 1; bytes <= 8; bytes *= 2) {
            check_straight('u', bytes, rank[i], dim[i], true, false);
            if (bytes > 1) {
                check_straight('i', bytes, rank[i], dim[i], true, true);
                check_straight('f', bytes, rank[i], dim[i], false, true);
            }
        }
    unsigned char z[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    sti_npy npy = {.kind = 'c',
                   .item_bytes = 16,
                   .big_endian = true,
                   .rank = 1,
                   .dim = {1},
                   .count = 1,
                   .data = z};
    sti_alloc_fail_nth(1);
    assert_int_equal(sti_npy_straighten(&npy, "f"), STINT_E_MEMORY);
    sti_alloc_fail_nth(0);
    assert_non_null(strstr(stint_last_error(), "ascontiguousarray"));
    assert_int_equal(sti_npy_straighten(&npy, "f"), STINT_OK);
    const unsigned char turned[16] = {8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 9};
    assert_memory_equal(npy.data, turned, 16);
    sti_npy_close(&npy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_headers), cmocka_unit_test(reading_is_known_beforehand),
        cmocka_unit_test(bad_headers),  cmocka_unit_test(there_and_back),
        cmocka_unit_test(other_orders),
    };
    return cmocka_run_group_tests_name("base/npy", tests, NULL, NULL);
}
