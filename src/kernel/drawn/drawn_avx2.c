#if defined(__x86_64__)
#define TABLE sti_bayes_avx2
#include "kernel/drawn/drawn_body.h"
#endif
