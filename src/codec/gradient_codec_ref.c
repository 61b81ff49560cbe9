#define GRADIENT_KERNELS sti_gradient_kernels_ref
#include "codec/gradient_codec_body.h"
