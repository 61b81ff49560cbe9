/* A record is  length u64 | masked crc32c of it u32 | bytes | masked crc32c u32  and
 * its bytes are a protobuf message:
 *
 *     Event   1: double wall_time  2: int64 step  3: string file_version
 *             5: Summary { 1: Value { 1: string tag  2: float simple_value } } */
#define _GNU_SOURCE /* O_CLOEXEC, gethostname */
#include "train/tensorboard.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"

#define EVENT_BYTES 256
#define TAG_BYTES   100

struct sti_tensorboard {
    int fd;
    char path[4096];
};

typedef struct message {
    uint8_t bytes[EVENT_BYTES];
    size_t used;
} message;

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static void put_byte(message *m, unsigned value)
{
    m->bytes[m->used++] = (uint8_t)value;
}

static void put_key(message *m, unsigned field, unsigned wire)
{
    put_byte(m, field << 3 | wire);
}

static void put_varint(message *m, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        put_byte(m, (unsigned)(value & 127) | 128);
    put_byte(m, (unsigned)value);
}

static void put_little(message *m, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        put_byte(m, (unsigned)(value >> 8 * i) & 255);
}

static void put_double(message *m, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_little(m, bits, 8);
}

static void put_float(message *m, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_little(m, bits, 4);
}

static void put_bytes(message *m, unsigned field, const void *bytes, size_t n_bytes)
{
    put_key(m, field, WIRE_BYTES);
    put_varint(m, n_bytes);
    memcpy(m->bytes + m->used, bytes, n_bytes);
    m->used += n_bytes;
}

static uint32_t masked_crc(const void *bytes, size_t n_bytes)
{
    uint32_t crc = sti_crc32c(0, bytes, n_bytes);
    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

static stint_status write_record(sti_tensorboard *board, const message *event)
{
    message record = {.used = 0}; /* frame and event fit: an event is short */
    put_little(&record, event->used, 8);
    put_little(&record, masked_crc(record.bytes, 8), 4);
    memcpy(record.bytes + record.used, event->bytes, event->used);
    record.used += event->used;
    put_little(&record, masked_crc(event->bytes, event->used), 4);
    return sti_write_all(board->fd, board->path, record.bytes, record.used);
}

static stint_status write_version(sti_tensorboard *board)
{
    static const char version[] = "brain.Event:2";
    message event = {.used = 0};
    put_key(&event, 1, WIRE_64);
    put_double(&event, sti_clock_unix_s());
    put_bytes(&event, 3, version, sizeof version - 1);
    return write_record(board, &event);
}

stint_status sti_tensorboard_open(const char *folder, sti_tensorboard **board_out)
{
    char host[64] = "localhost";
    stint_status st = sti_dir_create(folder);
    sti_tensorboard *board = NULL;
    if (st != STINT_OK)
        return st;
    if (!(board = sti_alloc(sizeof *board, "tensorboard")))
        return STINT_E_MEMORY;
    if (gethostname(host, sizeof host) == 0)
        host[sizeof host - 1] = '\0';
    int length = snprintf(board->path, sizeof board->path,
                          "%s/events.out.tfevents.%010" PRId64 ".%s.%ld", folder,
                          (int64_t)sti_clock_unix_s(), host, (long)getpid());
    board->fd = -1;
    if (length < 0 || (size_t)length >= sizeof board->path)
        st = sti_fail(STINT_E_IO, "%s: the path is too long", folder);
    if (st == STINT_OK) {
        board->fd = open(board->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (board->fd < 0)
            st = sti_fail_errno("%s: cannot be written", board->path);
    }
    if (st == STINT_OK)
        st = write_version(board);
    if (st != STINT_OK) {
        sti_tensorboard_close(board);
        return st;
    }
    *board_out = board;
    return STINT_OK;
}

void sti_tensorboard_close(sti_tensorboard *board)
{
    if (!board)
        return;
    if (board->fd >= 0)
        close(board->fd);
    sti_free(board);
}

stint_status sti_tensorboard_scalar(sti_tensorboard *board, const char *tag,
                                    int64_t step, double value)
{
    message number = {.used = 0}, summary = {.used = 0}, event = {.used = 0};
    size_t length = strlen(tag);
    if (!board || !isfinite(value))
        return STINT_OK;
    put_bytes(&number, 1, tag, length < TAG_BYTES ? length : TAG_BYTES);
    put_key(&number, 2, WIRE_32);
    put_float(&number, (float)value);
    put_bytes(&summary, 1, number.bytes, number.used);
    put_key(&event, 1, WIRE_64);
    put_double(&event, sti_clock_unix_s());
    put_key(&event, 2, WIRE_VARINT);
    put_varint(&event, (uint64_t)step);
    put_bytes(&event, 5, summary.bytes, summary.used);
    return write_record(board, &event);
}
