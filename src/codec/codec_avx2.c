/* The codec's plain loops with the instructions of AVX2 machines (flags by file, see
 * src/CMakeLists.txt). */
#include "codec/codec_priv.h"

#if defined(__AVX2__)
#include "codec/codec_checksum.h"

#define CODEC_KERNELS sti_codec_kernels_avx2
#include "codec/codec_body.h"
#else
typedef int codec_avx2_is_for_x86;
#endif
