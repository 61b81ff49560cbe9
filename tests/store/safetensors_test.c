/* Files written, read back, read by Python's own reader when it is there, and hostile
 * ones refused with a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "store/safetensors.h"

static char folder[] = "/tmp/stint_safetensors_XXXXXX";
static char path[256];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/t.safetensors", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? 0 : -1;
}

static const float weights[6] = {1, 2, 3, -4, 5.5f, 6};
static const int64_t step[1] = {-7};
static const uint8_t bytes[3] = {1, 2, 3};

static void write_sample(void)
{
    const sti_tensor_row rows[] = {
        {.name = "fc.weight",
         .type = STI_TENSOR_F32,
         .rank = 2,
         .dim = {2, 3},
         .bytes = sizeof weights,
         .data = weights},
        {.name = "step", .type = STI_TENSOR_I64, .rank = 0, .bytes = 8, .data = step},
        {.name = "none", .type = STI_TENSOR_F32, .rank = 2, .dim = {0, 4}, .data = ""},
        {.name = "b\"ytes",
         .type = STI_TENSOR_U8,
         .rank = 1,
         .dim = {3},
         .bytes = 3,
         .data = bytes},
    };
    const sti_tensor_text texts[] = {{"recipe", "[model]\nname = \"x\"\n"}, {"k", ""}};
    assert_int_equal(sti_tensor_file_write(path, rows, 4, texts, 2), STINT_OK);
}

static void test_round_trip(void **state)
{
    (void)state;
    write_sample();
    sti_tensor_file *f;
    assert_int_equal(sti_tensor_file_open(path, &f), STINT_OK);
    assert_int_equal(sti_tensor_file_count(f), 4);
    assert_string_equal(sti_tensor_file_row(f, 0)->name, "fc.weight");
    const sti_tensor_row *row = sti_tensor_file_find(f, "fc.weight");
    assert_non_null(row);
    assert_int_equal(row->rank, 2);
    assert_int_equal(row->dim[1], 3);
    float got[6];
    assert_int_equal(sti_tensor_file_read(f, row, got), STINT_OK);
    assert_memory_equal(got, weights, sizeof got);
    uint8_t three[3];
    row = sti_tensor_file_find(f, "b\"ytes");
    assert_int_equal(sti_tensor_file_read(f, row, three), STINT_OK);
    assert_memory_equal(three, bytes, 3);
    assert_null(sti_tensor_file_find(f, "fc.bias"));
    assert_string_equal(sti_tensor_file_text(f, "recipe"), "[model]\nname = \"x\"\n");
    assert_null(sti_tensor_file_text(f, "absent"));
    sti_tensor_file_close(f);
}

/* Short numbers are looked at as what they are read as. */
static void test_not_finite(void **state)
{
    static const uint16_t halves[4] = {0x3c00, 0x7bff, 0x7e00, 0xfc00};
    static const float singles[3] = {1, 3.4e38f, 1e-45f};
    const sti_tensor_row rows[] = {{.name = "short",
                                    .type = STI_TENSOR_F16,
                                    .rank = 1,
                                    .dim = {4},
                                    .bytes = sizeof halves,
                                    .data = halves},
                                   {.name = "long",
                                    .type = STI_TENSOR_F32,
                                    .rank = 1,
                                    .dim = {3},
                                    .bytes = sizeof singles,
                                    .data = singles}};
    float got[4];
    char plain[65], looked[65];
    sti_sha256 a, b;
    sti_tensor_file *f;
    (void)state;
    assert_int_equal(sti_tensor_file_write(path, rows, 2, NULL, 0), STINT_OK);
    assert_int_equal(sti_tensor_file_open(path, &f), STINT_OK);
    const sti_tensor_row *row = sti_tensor_file_find(f, "short");
    assert_int_equal(sti_tensor_file_read_finite(f, row, 0, 2, got), STINT_OK);
    assert_true(got[0] == 1 && got[1] == 65504);
    assert_int_equal(sti_tensor_file_read_finite(f, row, 1, 3, got), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "element 2 of 'short' is NaN"));
    assert_int_equal(sti_tensor_file_read_finite(f, row, 3, 1, got), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "element 3 of 'short' is infinite"));
    row = sti_tensor_file_find(f, "long");
    sti_sha256_init(&a);
    sti_sha256_init(&b);
    assert_int_equal(sti_tensor_file_add_sha256(f, row, &a), STINT_OK);
    assert_int_equal(sti_tensor_file_add_finite_sha256(f, row, &b), STINT_OK);
    sti_sha256_hex(&a, plain);
    sti_sha256_hex(&b, looked);
    assert_string_equal(plain, looked);
    sti_tensor_file_close(f);
}

/* The format as its authors' reader takes it: an independent few lines of Python. */
static void test_python_reads_it(void **state)
{
    (void)state;
    char command[1200];
    if (system("python3 -c '' 2>/dev/null") != 0)
        skip();
    write_sample();
    snprintf(command, sizeof command,
             "python3 -c \"\n"
             "import json, struct\n"
             "b = open('%s', 'rb').read()\n"
             "n = struct.unpack('<Q', b[:8])[0]\n"
             "assert n %% 8 == 0\n"
             "h = json.loads(b[8:8 + n])\n"
             "m = h.pop('__metadata__')\n"
             "assert all(type(v) is str for v in m.values()) and m['k'] == ''\n"
             "at = 0\n"
             "for k, v in h.items():\n"
             "    assert v['data_offsets'][0] == at\n"
             "    at = v['data_offsets'][1]\n"
             "assert at == len(b) - 8 - n\n"
             "f, e = h['fc.weight']['data_offsets']\n"
             "assert h['fc.weight']['shape'] == [2, 3]\n"
             "w = struct.unpack('<6f', b[8 + n + f:8 + n + e])\n"
             "assert w == (1, 2, 3, -4, 5.5, 6)\"",
             path);
    assert_int_equal(system(command), 0);
}

static void write_raw(const char *header, int64_t claimed, size_t data_bytes)
{
    uint8_t file[2048] = {0};
    size_t length = strlen(header);
    uint64_t n = claimed < 0 ? length : (uint64_t)claimed;
    for (int i = 0; i < 8; i++)
        file[i] = (uint8_t)(n >> 8 * i);
    memcpy(file + 8, header, length);
    assert_true(8 + length + data_bytes <= sizeof file);
    assert_int_equal(sti_file_write(path, file, 8 + length + data_bytes), STINT_OK);
}

#define T(type, shape, from, to) \
    "{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}"

static const struct {
    const char *header, *says;
    int64_t claimed; /* -1: true length */
    size_t data;
} bad[] = {
    {"", "no JSON object", -1, 0},
    {"{", "damaged", -1, 0},
    {"[]", "no JSON object", -1, 0},
    {"{}", "cut off", 100, 0},
    {"{}", "cut off", INT64_MAX, 0},
    {"{}", "belong to no tensor", -1, 4},
    {"{\"a\":1}", "no object", -1, 0},
    {"{\"a\":{}}", "unknown type", -1, 0},
    {"{\"a\":" T("F99", "[1]", "0", "4") "}", "unknown type", -1, 4},
    {"{\"a\":" T("F32", "1", "0", "4") "}", "no shape", -1, 4},
    {"{\"a\":" T("F32", "[1,1,1,1,1,1,1,1,1]", "0", "4") "}", "no shape", -1, 4},
    {"{\"a\":" T("F32", "[-1]", "0", "4") "}", "no count", -1, 4},
    {"{\"a\":" T("F32", "[1.0]", "0", "4") "}", "no count", -1, 4},
    {"{\"a\":" T("F32", "[2]", "0", "4") "}", "not as its type", -1, 4},
    {"{\"a\":" T("F32", "[4611686018427387904]", "0", "4") "}", "not as its", -1, 4},
    {"{\"a\":" T("F32", "[4294967296,4294967296]", "0", "0") "}", "not as its", -1, 0},
    {"{\"a\":" T("F32", "[1]", "0", "8") "}", "cut off", -1, 4},
    {"{\"a\":" T("F32", "[1]", "4", "0") "}", "lies at", -1, 4},
    {"{\"a\":" T("F32", "[1]", "-4", "0") "}", "lies at", -1, 4},
    {"{\"a\":" T("F32", "[1]", "4", "8") "}", "gap", -1, 8},
    {"{\"a\":" T("F32", "[1]", "0", "4") ",\"b\":" T("F32", "[1]", "0", "4") "}",
     "overlaps", -1, 8},
    {"{\"a\":" T("F32", "[2]", "0", "8") ",\"b\":" T("F32", "[1]", "4", "8") "}",
     "overlaps", -1, 8},
    {"{\"a\":" T("F32", "[1]", "0", "4") ",\"a\":" T("F32", "[1]", "4", "8") "}",
     "damaged", -1, 8},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}",
     "no data_offsets", -1, 4},
    {"{\"__metadata__\":[]}", "no object of texts", -1, 0},
    {"{\"__metadata__\":{\"a\":1}}", "not a text", -1, 0},
};

static void test_hostile(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        sti_tensor_file *f = NULL;
        write_raw(bad[i].header, bad[i].claimed, bad[i].data);
        if (sti_tensor_file_open(path, &f) != STINT_E_INPUT)
            fail_msg("accepted: %s", bad[i].header);
        assert_null(f);
        if (!strstr(stint_last_error(), bad[i].says))
            fail_msg("%s\nsays: %s\nnot: %s", bad[i].header, stint_last_error(),
                     bad[i].says);
        assert_non_null(strstr(stint_last_error(), path));
    }
}

static void test_every_cut(void **state)
{
    (void)state;
    write_sample();
    void *data;
    size_t n_bytes;
    assert_int_equal(sti_file_read(path, 4096, &data, &n_bytes), STINT_OK);
    for (size_t cut = 0; cut < n_bytes; cut++) {
        sti_tensor_file *f;
        assert_int_equal(sti_file_write(path, data, cut), STINT_OK);
        assert_int_equal(sti_tensor_file_open(path, &f), STINT_E_INPUT);
    }
    sti_free(data);
}

static void test_missing(void **state)
{
    (void)state;
    sti_tensor_file *f;
    assert_int_equal(sti_tensor_file_open("/nowhere/x", &f), STINT_E_IO);
    assert_int_equal(sti_tensor_file_open(folder, &f), STINT_E_INPUT);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    write_sample();
    for (int n = 1;; n++) {
        sti_tensor_file *f;
        sti_alloc_fail_nth(n);
        stint_status st = sti_tensor_file_open(path, &f);
        sti_alloc_fail_nth(0);
        if (st == STINT_OK) {
            sti_tensor_file_close(f);
            assert_true(n > 3);
            return;
        }
        assert_int_equal(st, STINT_E_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),          cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_python_reads_it),     cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_every_cut),           cmocka_unit_test(test_missing),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
