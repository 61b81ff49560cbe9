/* Counted allocations and arenas.
 *
 * A block is a 64-byte header and then the caller's bytes. Large blocks are mappings of
 * their own: their untouched pages are free of charge, and giving one back lowers the
 * resident memory at once, so that a plan in bytes and the kernel's count agree. */
#define _GNU_SOURCE /* mremap, MAP_ANONYMOUS */
#include "base/memory.h"

#include <assert.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base_priv.h"
#include "base/fail.h"

#if defined(__SANITIZE_ADDRESS__)
#define USE_MAPPINGS 0 /* AddressSanitizer sees overruns of malloc'ed blocks only */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define USE_MAPPINGS 0
#endif
#endif
#ifndef USE_MAPPINGS
#define USE_MAPPINGS 1
#endif

/* More than any machine can map, or AddressSanitizer serve: refused without asking. */
#define BLOCK_MAX_BYTES ((size_t)1 << (USE_MAPPINGS ? 46 : 39))
#define BLOCK_ALIGN     64
#define LARGE_BYTES     ((size_t)1 << 15)
#define BLOCK_MAGIC     UINT64_C(0x53746974426c6f63)

typedef struct block {
    alignas(BLOCK_ALIGN) uint64_t magic;
    size_t bytes;        /* as asked for */
    size_t mapped_bytes; /* of the mapping, 0: from malloc */
    const char *name;
} block;

static_assert(sizeof(block) == BLOCK_ALIGN, "the caller's bytes begin on a cache line");

static atomic_size_t now_bytes;
static atomic_size_t peak_bytes;
static _Atomic int64_t call_count;
static _Atomic int64_t fail_countdown;

bool sti_mul_bytes(int64_t count, size_t each_bytes, size_t *bytes_out)
{
    if (count < 0 || (each_bytes != 0 && (uint64_t)count > SIZE_MAX / each_bytes))
        return false;
    *bytes_out = (size_t)count * each_bytes;
    return true;
}

bool sti_add_bytes(size_t a, size_t b, size_t *bytes_out)
{
    if (a > SIZE_MAX - b)
        return false;
    *bytes_out = a + b;
    return true;
}

static void count_up(size_t bytes)
{
    size_t now = atomic_fetch_add(&now_bytes, bytes) + bytes;
    size_t peak = atomic_load(&peak_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now))
        ;
}

static void count_down(size_t bytes)
{
    atomic_fetch_sub(&now_bytes, bytes);
}

/* Counts the call; false when a test wants this one to fail. */
static bool allocation_allowed(void)
{
    atomic_fetch_add_explicit(&call_count, 1, memory_order_relaxed);
    if (atomic_load_explicit(&fail_countdown, memory_order_relaxed) <= 0)
        return true;
    return atomic_fetch_sub(&fail_countdown, 1) != 1;
}

static void *refuse(size_t bytes, const char *name)
{
    sti_fail(STINT_E_MEMORY, "out of memory: no %zu bytes for %s; %zu bytes are in use",
             bytes, name, atomic_load(&now_bytes));
    return NULL;
}

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static block *block_of(void *bytes)
{
    block *b = (block *)bytes - 1;
    assert(b->magic == BLOCK_MAGIC && "not a live block of sti_alloc");
    return b;
}

/* Zeroed memory for a header and `bytes`, or NULL. */
static block *block_create(size_t bytes)
{
    if (bytes > BLOCK_MAX_BYTES)
        return NULL;
    if (USE_MAPPINGS && bytes >= LARGE_BYTES) {
        size_t mapped = STI_ALIGN_UP(bytes + sizeof(block), page_bytes());
        void *map = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (map == MAP_FAILED)
            return NULL;
        block *b = map;
        b->mapped_bytes = mapped;
        return b;
    }
    void *memory;
    if (posix_memalign(&memory, BLOCK_ALIGN, sizeof(block) + bytes) != 0)
        return NULL;
    memset(memory, 0, sizeof(block) + bytes);
    return memory;
}

void *sti_alloc(size_t bytes, const char *name)
{
    block *b = allocation_allowed() ? block_create(bytes) : NULL;
    if (!b)
        return refuse(bytes, name);
    b->magic = BLOCK_MAGIC;
    b->bytes = bytes;
    b->name = name;
    count_up(bytes);
    return b + 1;
}

void *sti_alloc_array(int64_t count, size_t each_bytes, const char *name)
{
    size_t bytes;
    if (!sti_mul_bytes(count, each_bytes, &bytes)) {
        sti_fail(STINT_E_MEMORY,
                 "out of memory: %" PRId64 " x %zu bytes for %s overflow", count,
                 each_bytes, name);
        return NULL;
    }
    return sti_alloc(bytes, name);
}

void sti_free(void *memory)
{
    if (!memory)
        return;
    block *b = block_of(memory);
    b->magic = 0;
    count_down(b->bytes);
    if (b->mapped_bytes)
        munmap(b, b->mapped_bytes);
    else
        free(b);
}

void sti_alloc_huge_pages(void *memory)
{
#ifdef MADV_HUGEPAGE
    block *b = block_of(memory);
    if (b->mapped_bytes)
        (void)madvise(b, b->mapped_bytes, MADV_HUGEPAGE);
#else
    (void)memory;
#endif
}

/* A mapping changes its size without copying. NULL when the system has no room. */
static void *remap(block *b, size_t bytes, const char *name)
{
    if (bytes > BLOCK_MAX_BYTES)
        return NULL;
    size_t old_bytes = b->bytes, old_mapped = b->mapped_bytes;
    size_t mapped = STI_ALIGN_UP(bytes + sizeof(block), page_bytes());
    void *map = mremap(b, old_mapped, mapped, MREMAP_MAYMOVE);
    if (map == MAP_FAILED)
        return NULL;
    b = map;
    b->mapped_bytes = mapped;
    b->bytes = bytes;
    b->name = name;
    if (bytes > old_bytes) {
        /* The last old page may hold what a former shrink left behind. */
        size_t room = (old_mapped < mapped ? old_mapped : mapped) - sizeof(block);
        size_t end = bytes < room ? bytes : room;
        memset((char *)(b + 1) + old_bytes, 0, end > old_bytes ? end - old_bytes : 0);
        count_up(bytes - old_bytes);
    } else {
        count_down(old_bytes - bytes);
    }
    return b + 1;
}

void *sti_realloc(void *memory, size_t bytes, const char *name)
{
    if (!memory)
        return sti_alloc(bytes, name);
    block *b = block_of(memory);
    if (b->mapped_bytes && bytes >= LARGE_BYTES) {
        void *moved = allocation_allowed() ? remap(b, bytes, name) : NULL;
        return moved ? moved : refuse(bytes, name);
    }
    void *fresh = sti_alloc(bytes, name);
    if (!fresh)
        return NULL;
    memcpy(fresh, memory, bytes < b->bytes ? bytes : b->bytes);
    sti_free(memory);
    return fresh;
}

char *sti_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = sti_alloc(bytes, "text");
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}

size_t sti_alloc_now_bytes(void)
{
    return atomic_load(&now_bytes);
}

size_t sti_alloc_peak_bytes(void)
{
    return atomic_load(&peak_bytes);
}

int64_t sti_alloc_count(void)
{
    return atomic_load(&call_count);
}

void sti_alloc_fail_nth(int64_t n)
{
    atomic_store(&fail_countdown, n > 0 ? n : 0);
}

/* ---- arena ---- */

#define ARENA_ALIGN       16
#define CHUNK_FIRST_BYTES ((size_t)4 << 10)
#define CHUNK_MAX_BYTES   ((size_t)256 << 10)

typedef struct chunk {
    alignas(ARENA_ALIGN) struct chunk *next;
    size_t capacity, used; /* of the bytes after this header */
} chunk;

struct sti_arena {
    const char *name;
    chunk *chunks; /* the first is the one being filled */
    size_t next_bytes;
};

sti_arena *sti_arena_create(const char *name)
{
    sti_arena *arena = sti_alloc(sizeof *arena, name);
    if (!arena)
        return NULL;
    arena->name = name;
    arena->next_bytes = CHUNK_FIRST_BYTES;
    return arena;
}

/* A chunk with room for `bytes`. One much larger than the usual goes behind the chunk
 * being filled, whose rest stays in use. */
static chunk *chunk_add(sti_arena *arena, size_t bytes)
{
    bool oversized = bytes > arena->next_bytes / 2;
    size_t capacity = oversized ? bytes : arena->next_bytes, total;
    if (!sti_add_bytes(capacity, sizeof(chunk), &total)) {
        refuse(bytes, arena->name);
        return NULL;
    }
    chunk *c = sti_alloc(total, arena->name);
    if (!c)
        return NULL;
    c->capacity = capacity;
    if (oversized && arena->chunks) {
        c->next = arena->chunks->next;
        arena->chunks->next = c;
        return c;
    }
    c->next = arena->chunks;
    arena->chunks = c;
    if (!oversized && arena->next_bytes < CHUNK_MAX_BYTES)
        arena->next_bytes *= 2;
    return c;
}

void *sti_arena_alloc(sti_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return refuse(bytes, arena->name);
    bytes = STI_ALIGN_UP(bytes ? bytes : 1, ARENA_ALIGN);
    chunk *c = arena->chunks;
    if (!c || bytes > c->capacity - c->used)
        c = chunk_add(arena, bytes);
    if (!c)
        return NULL;
    void *memory = (char *)(c + 1) + c->used;
    c->used += bytes;
    return memory;
}

char *sti_arena_strdup(sti_arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = sti_arena_alloc(arena, bytes);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}

char *sti_arena_printf(sti_arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = sti_c_vsnprintf(NULL, 0, format, args);
    char *text = length < 0 ? NULL : sti_arena_alloc(arena, (size_t)length + 1);
    if (text)
        sti_c_vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}

void sti_arena_destroy(sti_arena *arena)
{
    if (!arena)
        return;
    for (chunk *c = arena->chunks, *next; c; c = next) {
        next = c->next;
        sti_free(c);
    }
    sti_free(arena);
}
