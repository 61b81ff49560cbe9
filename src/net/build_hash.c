/* Which build is this? The SHA-256 of the file that holds this code: the program, or
 * the library in a program of somebody else. */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "net/net.h"

static int open_own_file(void)
{
    static const char here;
    Dl_info info;
    int fd = -1;
    if (dladdr(&here, &info) && info.dli_fname && strchr(info.dli_fname, '/'))
        fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
    /* A program is named as it was called, which need not be a path. */
    return fd >= 0 ? fd : open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

void sti_build_hash(char hex_out[WIRE_BUILD + 1])
{
    char bytes[1 << 14], hex[65];
    sti_sha256 sha;
    ssize_t n = -1;
    const int fd = open_own_file();
    sti_sha256_init(&sha);
    while (fd >= 0 && (n = read(fd, bytes, sizeof bytes)) > 0)
        sti_sha256_add(&sha, bytes, (size_t)n);
    if (fd >= 0)
        close(fd);
    sti_sha256_hex(&sha, hex);
    memset(hex_out, 0, WIRE_BUILD + 1);
    if (n == 0)
        memcpy(hex_out, hex, WIRE_BUILD);
}
