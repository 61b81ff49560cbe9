#if defined(__x86_64__)
#define BOX_MULLER sti_box_muller_avx2
#include "kernel/normal/normal_body.h"
#endif
