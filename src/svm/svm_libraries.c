#include "svm/svm_train.h"

const char *const sti_svm_libraries[] = {"ld-", "libc.", "libm.", NULL};
