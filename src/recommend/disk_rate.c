#define _GNU_SOURCE
#include "recommend/disk_rate.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"

enum { PAGES = 16384, STAGE = 256 };

/* Bytes that are not zeros, so that nothing is a hole. */
static stint_status fill(sti_disk_probe *p, char *stage)
{
    sti_async *io = NULL;
    sti_async_op op[STAGE];
    stint_status st = sti_async_create(STI_ASYNC_THREADS, 8, &io);
    for (int64_t i = 0; i < STAGE; i++)
        memset(stage + i * STI_PAGE_ALIGN, (int)(i + 1), STI_PAGE_ALIGN);
    for (int64_t page = 0; page < PAGES && st == STINT_OK; page += STAGE) {
        for (int64_t i = 0; i < STAGE; i++)
            op[i] = (sti_async_op){.write = true,
                                   .offset = (page + i) * STI_PAGE_ALIGN,
                                   .bytes = STI_PAGE_ALIGN,
                                   .buffer = stage + i * STI_PAGE_ALIGN};
        st = sti_async_run(io, &p->file, op, STAGE);
    }
    sti_async_destroy(io);
    return st == STINT_OK ? sti_paged_file_sync(&p->file) : st;
}

stint_status sti_disk_probe_open(const char *folder, sti_disk_probe *probe)
{
    *probe = (sti_disk_probe){.file = {.fd = -1}};
    char *room = sti_alloc((STAGE + 1) * STI_PAGE_ALIGN, "disk probe");
    char *stage = (char *)STI_ALIGN_UP((uintptr_t)room, STI_PAGE_ALIGN);
    snprintf(probe->path, sizeof probe->path, "%.1000s/probe.%ld.part", folder,
             (long)getpid());
    stint_status st = room ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_paged_file_open(&(sti_paged_file_desc){.path = probe->path,
                                                        .page_bytes = STI_PAGE_ALIGN,
                                                        .pages = PAGES,
                                                        .writes = true,
                                                        .create = true},
                                 &probe->file);
    if (st == STINT_OK)
        unlink(probe->path);
    if (st == STINT_OK)
        st = fill(probe, stage);
    sti_free(room);
    if (st != STINT_OK)
        sti_disk_probe_close(probe);
    return st;
}

void sti_disk_probe_close(sti_disk_probe *probe)
{
    if (probe->file.path)
        sti_paged_file_close(&probe->file);
}

static stint_status read_some(sti_disk_probe *p, sti_async *io, char *stage)
{
    sti_async_op op[STAGE];
    for (int64_t i = 0; i < STAGE; i++) {
        uint32_t w[4];
        sti_random4(1, STI_STREAM_TEST, p->draw++, 0, w);
        op[i] =
            (sti_async_op){.offset = (int64_t)sti_below(w[0], PAGES) * STI_PAGE_ALIGN,
                           .bytes = STI_PAGE_ALIGN,
                           .buffer = stage + i * STI_PAGE_ALIGN};
    }
    return sti_async_run(io, &p->file, op, STAGE);
}

stint_status sti_disk_probe_reads(sti_disk_probe *probe, sti_async_way way, int depth,
                                  double seconds, double *per_s_out)
{
    sti_async *io = NULL;
    char *room = sti_alloc((STAGE + 1) * STI_PAGE_ALIGN, "disk probe");
    char *stage = (char *)STI_ALIGN_UP((uintptr_t)room, STI_PAGE_ALIGN);
    int64_t pages = 0;
    stint_status st = room ? sti_async_create(way, depth, &io) : STINT_E_MEMORY;
    const int64_t start = sti_clock_ns();
    while (st == STINT_OK && (pages == 0 || sti_seconds_since(start) < seconds)) {
        st = read_some(probe, io, stage);
        pages += STAGE;
    }
    if (st == STINT_OK)
        *per_s_out = (double)pages / sti_seconds_since(start);
    sti_async_destroy(io);
    sti_free(room);
    return st;
}
