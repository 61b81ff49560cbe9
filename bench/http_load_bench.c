/* Requests sent again and again to any HTTP server, open loop: at times that were
 * drawn beforehand (Poisson), whether earlier ones were answered or not. Latencies
 * count from the times that were due.
 *
 *   http_load_bench HOST PORT FILE[,FILE...] RATE SECONDS SLA_MS
 *
 * A FILE is a whole request, head and body; of several each is sent as often, in an
 * order that is drawn. Answers of status 200 within SLA_MS count as
 * good. Prints JSON: sent, served, in_time, other (another status), failed (no answer),
 * good_per_s, p50_ms, p95_ms, p99_ms. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 4096, MOST_REQUESTS = 256, ANSWER_BYTES = 1 << 16 };
#define PATIENCE_S 10.0

typedef struct message {
    char *bytes;
    size_t length;
} message;

typedef struct connection {
    int fd;
    bool busy;
    double due;
    const message *request;
    size_t sent, got;
    char answer[ANSWER_BYTES];
} connection;

static struct sockaddr_in peer;
static message requests[MOST_REQUESTS];
static int request_count;
static connection *all[MOST];
static int count, poller;
static double *latency;
static long sent, served, in_time, other, failed;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double uniform(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ((double)(state >> 11) + 0.5) * 0x1p-53;
}

static bool open_one(connection *c)
{
    const int yes = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(c->fd, (struct sockaddr *)&peer, sizeof peer) < 0 &&
        errno != EINPROGRESS)
        return false;
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
    return epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &e) == 0;
}

static void close_one(connection *c)
{
    close(c->fd);
    c->fd = -1;
    failed += c->busy;
    c->busy = false;
}

static void send_more(connection *c)
{
    while (c->busy && c->sent < c->request->length) {
        const ssize_t n = send(c->fd, c->request->bytes + c->sent,
                               c->request->length - c->sent, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == ENOTCONN))
            return;
        if (n <= 0) {
            close_one(c);
            return;
        }
        c->sent += (size_t)n;
    }
}

/* Is the answer whole? */
static bool is_whole(const connection *c)
{
    const char *end = memmem(c->answer, c->got, "\r\n\r\n", 4);
    const char *length = strcasestr(c->answer, "\r\nContent-Length:");
    if (!end)
        return false;
    const size_t body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    return c->got >= (size_t)(end - c->answer) + 4 + body;
}

static void finish(connection *c, double sla_s)
{
    const double took = now() - c->due;
    const bool good = strncmp(c->answer, "HTTP/1.1 200", 12) == 0;
    c->busy = false;
    if (good)
        latency[served++] = took;
    other += !good;
    in_time += good && took <= sla_s;
    if (strcasestr(c->answer, "\r\nConnection: close"))
        close_one(c);
}

static void receive(connection *c, double sla_s)
{
    while (c->fd >= 0) {
        const ssize_t n = recv(c->fd, c->answer + c->got, ANSWER_BYTES - 1 - c->got, 0);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            close_one(c);
            return;
        }
        c->got += (size_t)n;
        c->answer[c->got] = '\0';
        if (c->busy && is_whole(c))
            finish(c, sla_s);
    }
}

static connection *find_idle(void)
{
    for (int i = 0; i < count; i++)
        if (all[i]->fd >= 0 && !all[i]->busy)
            return all[i];
    for (int i = 0; i < count; i++)
        if (all[i]->fd < 0)
            return open_one(all[i]) ? all[i] : NULL;
    if (count == MOST)
        return NULL;
    all[count] = calloc(1, sizeof **all);
    return all[count] && open_one(all[count]) ? all[count++] : NULL;
}

static void begin(double due)
{
    connection *c = find_idle();
    sent++;
    if (!c) {
        failed++;
        return;
    }
    c->busy = true;
    c->due = due;
    c->request = &requests[(int)(uniform() * request_count)];
    c->sent = c->got = 0;
    c->answer[0] = '\0';
    send_more(c);
}

static void look(double wait_s, double sla_s)
{
    struct epoll_event events[256];
    /* (It sleeps until then: the server needs the CPU.) */
    const struct timespec wait = {0, wait_s > 0 ? (long)(1e9 * fmin(wait_s, 0.1)) : 0};
    const int n = epoll_pwait2(poller, events, 256, &wait, NULL);
    for (int i = 0; i < n; i++) {
        connection *c = events[i].data.ptr;
        if (c->fd >= 0 && events[i].events & EPOLLOUT)
            send_more(c);
        if (c->fd >= 0)
            receive(c, sla_s);
    }
}

static bool any_busy(void)
{
    for (int i = 0; i < count; i++)
        if (all[i]->busy)
            return true;
    return false;
}

static int by_value(const void *pa, const void *pb)
{
    const double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

static double quantile_ms(double q)
{
    return served ? 1e3 * latency[(long)(q * (double)(served - 1))] : (double)NAN;
}

/* All files of a list parted by commas; false: one of them cannot be read. */
static bool read_requests(char *list)
{
    for (char *rest, *path = strtok_r(list, ",", &rest); path;
         path = strtok_r(NULL, ",", &rest)) {
        message *m = &requests[request_count];
        FILE *f = request_count < MOST_REQUESTS ? fopen(path, "rb") : NULL;
        if (!f || fseek(f, 0, SEEK_END) != 0)
            return false;
        m->length = (size_t)ftell(f);
        m->bytes = malloc(m->length + 1);
        rewind(f);
        if (!m->bytes || fread(m->bytes, 1, m->length, f) != m->length)
            return false;
        fclose(f);
        request_count++;
    }
    return request_count > 0;
}

int main(int argc, char **argv)
{
    if (argc != 7)
        return fprintf(stderr, "HOST PORT FILE RATE SECONDS SLA_MS\n"), 2;
    const double rate = atof(argv[4]), seconds = atof(argv[5]),
                 sla_s = atof(argv[6]) / 1e3;
    latency = calloc((size_t)(2 * rate * seconds) + 1000, sizeof *latency);
    peer = (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(argv[2]))};
    poller = epoll_create1(0);
    if (!read_requests(argv[3]) || !latency ||
        inet_pton(AF_INET, argv[1], &peer.sin_addr) != 1)
        return fprintf(stderr, "no request, or no address\n"), 1;
    const double start = now();
    double at = -log(uniform()) / rate;
    while (at < seconds && sent < (long)(2 * rate * seconds) + 999) {
        while (at < seconds && start + at <= now()) {
            begin(start + at);
            at -= log(uniform()) / rate;
        }
        look(start + at - now(), sla_s);
    }
    while (any_busy() && now() < start + seconds + PATIENCE_S)
        look(1, sla_s);
    for (int i = 0; i < count; i++)
        failed += all[i]->busy;
    qsort(latency, (size_t)served, sizeof *latency, by_value);
    printf("{\"sent\": %ld, \"served\": %ld, \"in_time\": %ld, \"other\": %ld, "
           "\"failed\": %ld, \"good_per_s\": %.1f, \"p50_ms\": %.2f, \"p95_ms\": %.2f, "
           "\"p99_ms\": %.2f}\n",
           sent, served, in_time, other, failed, (double)in_time / seconds,
           quantile_ms(0.5), quantile_ms(0.95), quantile_ms(0.99));
    return 0;
}
