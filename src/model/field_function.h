/* Functions that expressions over fields may use. */
#ifndef STI_MODEL_FIELD_FUNCTION_H
#define STI_MODEL_FIELD_FUNCTION_H

#include "stint/op.h"

const char *sti_field_function_name(int function); /* NULL behind the last */
int sti_field_function_find(const char *name);     /* -1: none */
double sti_field_function_value(int function, double x);
stint_value sti_field_function_build(stint_graph *g, int function, stint_value x);

#endif
