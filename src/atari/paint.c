#include "atari/paint.h"

#include "base/cpu.h"

/* Five vectors of 32 bytes are a line, so AVX-512 would gain nothing on AVX2. */
sti_paint_fn *sti_paint_now(void)
{
#if defined(__x86_64__)
    return sti_isa_now() == STI_ISA_REF ? sti_paint_span_ref : sti_paint_span_avx2;
#else
    return sti_paint_span_ref;
#endif
}
