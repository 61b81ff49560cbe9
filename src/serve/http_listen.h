/* A socket that listens, of this host or of a path. */
#ifndef STI_SERVE_HTTP_LISTEN_H
#define STI_SERVE_HTTP_LISTEN_H

#include "stint/status.h"

typedef struct sti_http_listener {
    int fd;            /* -1: none */
    char address[128]; /* as it came to be */
    char path[108];    /* of a socket of a path, removed at the end; "": none */
} sti_http_listener;

/* "HOST:PORT", port 0 for a free one, "[::1]:80", or "unix:PATH". STINT_E_USAGE: none
 * of these; STINT_E_IO: it is in use, or not of this host. */
stint_status sti_http_listen(const char *address, sti_http_listener *listener_out);
void sti_http_unlisten(sti_http_listener *listener);

#endif
