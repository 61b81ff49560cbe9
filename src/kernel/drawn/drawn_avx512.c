#if defined(__x86_64__)
#define TABLE sti_bayes_avx512
#include "kernel/drawn/drawn_body.h"
#endif
