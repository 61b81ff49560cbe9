#if defined(__x86_64__)
#define TABLE sti_bayes_avx512
#include "kernel/bayes/bayes_body.h"
#endif
