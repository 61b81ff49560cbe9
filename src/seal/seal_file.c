#include "seal/seal_file.h"

#include <nettle/sha2.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/secure_random.h"

enum { HEAD_BYTES = 16, SUM_BYTES = SHA256_DIGEST_SIZE, VERSION = 1 };
#define MAX_FILE_BYTES ((size_t)4 << 30)

static const char magic[] = "STSEAL";

const char *sti_seal_kind_name(sti_seal_kind kind)
{
    switch (kind) {
    case STI_SEAL_CIRCUIT:
        return "a circuit";
    case STI_SEAL_SECRET:
        return "a secret key";
    case STI_SEAL_EVAL:
        return "an evaluation key";
    case STI_SEAL_INPUT:
        return "encrypted inputs";
    case STI_SEAL_OUTPUT:
        return "encrypted outputs";
    default:
        return "an unknown file";
    }
}

/* ---- bytes out ---- */

/* Growth by copying into a new block, so that the old one can be wiped. */
static bool make_room(sti_bytes *bytes, size_t n_bytes)
{
    size_t need;
    if (bytes->failed || !sti_add_bytes(bytes->length, n_bytes, &need)) {
        bytes->failed = true;
        return false;
    }
    if (need <= bytes->capacity)
        return true;
    const size_t capacity = need < 4096 ? 4096 : need + need / 2;
    uint8_t *data = sti_alloc(capacity, "seal.bytes");
    if (!data) {
        bytes->failed = true;
        return false;
    }
    if (bytes->length > 0)
        memcpy(data, bytes->data, bytes->length);
    if (bytes->data)
        sti_secure_wipe(bytes->data, bytes->capacity);
    sti_free(bytes->data);
    bytes->data = data;
    bytes->capacity = capacity;
    return true;
}

void sti_bytes_add(sti_bytes *bytes, const void *data, size_t n_bytes)
{
    if (n_bytes == 0 || !make_room(bytes, n_bytes))
        return;
    memcpy(bytes->data + bytes->length, data, n_bytes);
    bytes->length += n_bytes;
}

void sti_bytes_add_number(sti_bytes *bytes, uint64_t value, int n_bytes)
{
    uint8_t little[8];
    for (int i = 0; i < n_bytes; i++)
        little[i] = (uint8_t)(value >> (8 * i));
    sti_bytes_add(bytes, little, (size_t)n_bytes);
}

void sti_bytes_fini(sti_bytes *bytes)
{
    if (bytes->data)
        sti_secure_wipe(bytes->data, bytes->capacity);
    sti_free(bytes->data);
    *bytes = (sti_bytes){0};
}

/* ---- bytes in ---- */

const uint8_t *sti_reader_take(sti_reader *reader, size_t n_bytes)
{
    if (reader->bad || n_bytes > reader->length - reader->at) {
        reader->bad = true;
        return NULL;
    }
    const uint8_t *at = reader->data + reader->at;
    reader->at += n_bytes;
    return at;
}

uint64_t sti_reader_number(sti_reader *reader, int n_bytes)
{
    const uint8_t *at = sti_reader_take(reader, (size_t)n_bytes);
    uint64_t value = 0;
    for (int i = 0; at && i < n_bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

int64_t sti_reader_range(sti_reader *reader, int n_bytes, int64_t low, int64_t high)
{
    const uint64_t value = sti_reader_number(reader, n_bytes);
    if (reader->bad || value > (uint64_t)high || (int64_t)value < low) {
        reader->bad = true;
        return low;
    }
    return (int64_t)value;
}

/* ---- the frame ---- */

void sti_seal_hash(const uint8_t *data, size_t n_bytes, uint8_t *out, size_t out_bytes)
{
    struct sha256_ctx state;
    sha256_init(&state);
    sha256_update(&state, n_bytes, data);
    sha256_digest(&state, out_bytes, out);
}

static stint_status check_kind(const char *path, int found, sti_seal_kind kind)
{
    if (found == (int)kind)
        return STINT_OK;
    if (found == STI_SEAL_SECRET)
        return sti_fail(
            STINT_E_INPUT,
            "%s: is a secret key, %s is wanted; it was not used, and should "
            "never be where others compute",
            path, sti_seal_kind_name(kind));
    return sti_fail(STINT_E_INPUT, "%s: is %s; wanted: %s", path,
                    sti_seal_kind_name((sti_seal_kind)found), sti_seal_kind_name(kind));
}

static stint_status check_frame(const char *path, sti_seal_kind kind,
                                const sti_seal_file *file)
{
    uint8_t sum[SUM_BYTES];
    sti_reader head = {file->data, file->bytes, 0, false};
    const uint8_t *word = sti_reader_take(&head, sizeof magic - 1);
    const int found = (int)sti_reader_number(&head, 1);
    const int version = (int)sti_reader_number(&head, 1);
    const uint64_t length = sti_reader_number(&head, 8);
    if (head.bad || memcmp(word, magic, sizeof magic - 1) != 0)
        return sti_fail(STINT_E_INPUT, "%s: is no file of stint seal; wanted: %s", path,
                        sti_seal_kind_name(kind));
    stint_status st = check_kind(path, found, kind);
    if (st != STINT_OK)
        return st;
    if (version != VERSION)
        return sti_fail(STINT_E_INPUT,
                        "%s: is of version %d, this program reads %d; make it again",
                        path, version, VERSION);
    if (file->bytes < HEAD_BYTES + SUM_BYTES ||
        length != file->bytes - HEAD_BYTES - SUM_BYTES)
        return sti_fail(STINT_E_INPUT,
                        "%s: is cut, or has more bytes than it should; copy it again",
                        path);
    sti_seal_hash(file->data, file->bytes - SUM_BYTES, sum, sizeof sum);
    if (memcmp(sum, file->data + file->bytes - SUM_BYTES, SUM_BYTES) != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: its checksum does not fit: it was changed; copy it again",
                        path);
    return STINT_OK;
}

stint_status sti_seal_file_open(const char *path, sti_seal_kind kind,
                                sti_seal_file *file_out)
{
    void *data = NULL;
    *file_out = (sti_seal_file){0};
    stint_status st = sti_file_read(path, MAX_FILE_BYTES, &data, &file_out->bytes);
    if (st != STINT_OK)
        return st;
    file_out->data = data;
    st = check_frame(path, kind, file_out);
    if (st == STINT_OK)
        file_out->payload =
            (sti_reader){file_out->data + HEAD_BYTES,
                         file_out->bytes - HEAD_BYTES - SUM_BYTES, 0, false};
    else
        sti_seal_file_close(file_out);
    return st;
}

void sti_seal_file_close(sti_seal_file *file)
{
    if (file->data)
        sti_secure_wipe(file->data, file->bytes);
    sti_free(file->data);
    *file = (sti_seal_file){0};
}

stint_status sti_seal_file_check(const sti_seal_file *file, const char *path)
{
    if (!file->payload.bad && file->payload.at == file->payload.length)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s: a field is missing or out of range at byte %zu; make the file "
                    "again",
                    path, file->payload.at + HEAD_BYTES);
}

stint_status sti_seal_file_write(const char *path, sti_seal_kind kind,
                                 const sti_bytes *payload, bool secret)
{
    uint8_t sum[SUM_BYTES];
    sti_bytes all = {0};
    stint_status st = STINT_E_MEMORY;
    if (payload->failed)
        return STINT_E_MEMORY;
    sti_bytes_add(&all, magic, sizeof magic - 1);
    sti_bytes_add_number(&all, (uint64_t)kind, 1);
    sti_bytes_add_number(&all, VERSION, 1);
    sti_bytes_add_number(&all, payload->length, 8);
    sti_bytes_add(&all, payload->data, payload->length);
    if (!all.failed) {
        sti_seal_hash(all.data, all.length, sum, sizeof sum);
        sti_bytes_add(&all, sum, SUM_BYTES);
    }
    if (!all.failed)
        st = secret ? sti_file_write_private(path, all.data, all.length)
                    : sti_file_write(path, all.data, all.length);
    sti_bytes_fini(&all);
    return st;
}
