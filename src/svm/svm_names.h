/* The words of a model file's head, by sti_svm_type and sti_gram_kind. */
#ifndef STI_SVM_SVM_NAMES_H
#define STI_SVM_SVM_NAMES_H

#include "svm/svm.h"

extern const char *const sti_svm_type_names[STI_SVM_TYPES];
extern const char *const sti_svm_kernel_names[STI_GRAM_KINDS];

#endif
