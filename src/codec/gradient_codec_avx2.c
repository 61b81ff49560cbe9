#if defined(__x86_64__)
#define GRADIENT_KERNELS sti_gradient_kernels_avx2
#include "codec/gradient_codec_body.h"
#endif
