/* The instruction set in use: found once, forced by STINT_ISA or by a test. */
#include "base/cpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

static const char *const isa_names[STI_ISA_COUNT] = {"ref", "avx2", "avx512"};

static atomic_int isa_in_use = -1; /* -1: not looked at yet */

static int isa_supported(sti_isa isa)
{
    if (isa == STI_ISA_REF)
        return 1;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (isa == STI_ISA_AVX2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (isa == STI_ISA_AVX512)
        return __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    return 0;
}

static sti_isa best_isa(void)
{
    int isa = STI_ISA_COUNT - 1;
    while (!isa_supported((sti_isa)isa))
        isa--;
    return (sti_isa)isa;
}

/* Index of a name, or STI_ISA_COUNT. */
static sti_isa isa_by_name(const char *name)
{
    int isa = 0;
    while (isa < STI_ISA_COUNT && strcmp(isa_names[isa], name) != 0)
        isa++;
    return (sti_isa)isa;
}

sti_isa sti_isa_now(void)
{
    int isa = atomic_load_explicit(&isa_in_use, memory_order_relaxed);
    if (isa >= 0)
        return (sti_isa)isa;
    const char *wanted = getenv("STINT_ISA");
    isa = (int)(wanted ? isa_by_name(wanted) : STI_ISA_COUNT);
    if (isa == STI_ISA_COUNT || !isa_supported((sti_isa)isa))
        isa = (int)best_isa();
    int unset = -1; /* two threads may get here; both found the same */
    atomic_compare_exchange_strong(&isa_in_use, &unset, isa);
    return (sti_isa)atomic_load(&isa_in_use);
}

int sti_isa_has(sti_isa isa)
{
    return (unsigned)isa < STI_ISA_COUNT && isa_supported(isa);
}

int sti_cpu_halves_vectors(void)
{
#if defined(__x86_64__)
    return sti_isa_now() == STI_ISA_AVX512 && __builtin_cpu_is("amdfam19h");
#else
    return 0;
#endif
}

const char *sti_isa_name(sti_isa isa)
{
    return (unsigned)isa < STI_ISA_COUNT ? isa_names[isa] : "unknown";
}

stint_status sti_isa_check(void)
{
    const char *wanted = getenv("STINT_ISA");
    if (!wanted || !*wanted)
        return STINT_OK;
    sti_isa isa = isa_by_name(wanted);
    if (isa == STI_ISA_COUNT)
        return sti_fail(
            STINT_E_USAGE,
            "STINT_ISA is '%s', but must be ref, avx2 or avx512; unset it to "
            "use the best this CPU has (%s)",
            wanted, sti_isa_name(best_isa()));
    if (!isa_supported(isa))
        return sti_fail(
            STINT_E_UNSUPPORTED,
            "STINT_ISA is %s, which this CPU (%s) lacks; the best it has is %s", wanted,
            sti_cpu_name(), sti_isa_name(best_isa()));
    return STINT_OK;
}

int sti_isa_force(sti_isa isa)
{
    if ((unsigned)isa >= STI_ISA_COUNT || !isa_supported(isa))
        return 0;
    atomic_store(&isa_in_use, (int)isa);
    return 1;
}

static atomic_int bf16_most = STI_BF16_MATRIX;
static sti_bf16_unit bf16_found = STI_BF16_NONE;
static pthread_once_t bf16_once = PTHREAD_ONCE_INIT;

/* CPUID leaf 7, and Linux's leave to use the large tile registers. */
static void find_bf16(void)
{
#if defined(__x86_64__)
    const unsigned tile = 1u << 24, amx_bf16 = 1u << 22, avx512_bf16 = 1u << 5;
    unsigned a, b, c, d, extended;
    if (!__get_cpuid_count(7, 1, &extended, &b, &c, &d) ||
        !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(extended & avx512_bf16))
        return;
    bf16_found = STI_BF16_DOT;
#if defined(__linux__) && defined(SYS_arch_prctl)
    enum { ASK_FOR_STATE = 0x1023, TILE_DATA = 18 };
    if ((d & tile) && (d & amx_bf16) &&
        syscall(SYS_arch_prctl, ASK_FOR_STATE, TILE_DATA) == 0)
        bf16_found = STI_BF16_MATRIX;
#else
    (void)tile;
    (void)amx_bf16;
#endif
#endif
}

sti_bf16_unit sti_bf16_unit_now(void)
{
    if (sti_isa_now() != STI_ISA_AVX512)
        return STI_BF16_NONE;
    pthread_once(&bf16_once, find_bf16);
    const int most = atomic_load_explicit(&bf16_most, memory_order_relaxed);
    return (int)bf16_found < most ? bf16_found : (sti_bf16_unit)most;
}

void sti_bf16_unit_limit(sti_bf16_unit most)
{
    atomic_store(&bf16_most, (int)most);
}

static char cpu_name[64] = "unknown CPU";
static pthread_once_t cpu_name_once = PTHREAD_ONCE_INIT;

/* The brand string that x86 CPUs give in three leaves; runs of blanks become one. */
static void find_cpu_name(void)
{
#if defined(__x86_64__)
    unsigned words[13] = {0};
    for (unsigned leaf = 0; leaf < 3; leaf++) {
        unsigned *w = words + 4 * leaf;
        if (!__get_cpuid(0x80000002u + leaf, w, w + 1, w + 2, w + 3))
            return;
    }
    const char *from = (const char *)words;
    size_t length = 0;
    for (; *from; from++)
        if (*from != ' ' || (length > 0 && cpu_name[length - 1] != ' '))
            cpu_name[length++] = *from;
    while (length > 0 && cpu_name[length - 1] == ' ')
        length--;
    if (length > 0)
        cpu_name[length] = '\0';
    else
        strcpy(cpu_name, "unknown CPU");
#endif
}

const char *sti_cpu_name(void)
{
    pthread_once(&cpu_name_once, find_cpu_name);
    return cpu_name;
}
