/* Bytes of a fuzzer as a file of stint seal: as they are, and as a payload in a frame
 * whose checksum fits, so that what is behind it is reached. */
#ifndef STINT_FUZZ_SEAL_FILE_H
#define STINT_FUZZ_SEAL_FILE_H

#include <nettle/sha2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static inline int fuzz_memory_file(char path[64])
{
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0)
        abort();
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static inline void fuzz_write(int fd, const void *bytes, size_t size)
{
    if (write(fd, bytes, size) != (ssize_t)size)
        abort();
}

/* The frame of seal_file.h around a payload; the caller closes. */
static inline int fuzz_seal_file(char kind, const uint8_t *data, size_t size,
                                 char path[64])
{
    uint8_t head[16] = {'S', 'T', 'S', 'E', 'A', 'L', (uint8_t)kind, 1};
    uint8_t sum[SHA256_DIGEST_SIZE];
    struct sha256_ctx state;
    const int fd = fuzz_memory_file(path);
    for (int i = 0; i < 8; i++)
        head[8 + i] = (uint8_t)((uint64_t)size >> (8 * i));
    sha256_init(&state);
    sha256_update(&state, sizeof head, head);
    sha256_update(&state, size, data);
    sha256_digest(&state, sizeof sum, sum);
    fuzz_write(fd, head, sizeof head);
    fuzz_write(fd, data, size);
    fuzz_write(fd, sum, sizeof sum);
    return fd;
}

#endif
