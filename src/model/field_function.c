#include "model/field_function.h"

#include <math.h>
#include <string.h>

static double sigmoid_value(double x)
{
    return 1 / (1 + exp(-x));
}

static double softplus_value(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static double square_value(double x)
{
    return x * x;
}

static double relu_value(double x)
{
    return x > 0 ? x : 0;
}

static const struct {
    const char *name;
    double (*value)(double x);
    stint_value (*build)(stint_graph *g, stint_value x);
} functions[] = {
    {"sin", sin, stint_sin},
    {"cos", cos, stint_cos},
    {"exp", exp, stint_exp},
    {"log", log, stint_log},
    {"sqrt", sqrt, stint_sqrt},
    {"tanh", tanh, stint_tanh},
    {"sigmoid", sigmoid_value, stint_sigmoid},
    {"softplus", softplus_value, stint_softplus},
    {"square", square_value, stint_square},
    {"relu", relu_value, stint_relu},
};

enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

const char *sti_field_function_name(int function)
{
    return function < FUNCTIONS ? functions[function].name : NULL;
}

int sti_field_function_find(const char *name)
{
    for (int i = 0; i < FUNCTIONS; i++)
        if (strcmp(functions[i].name, name) == 0)
            return i;
    return -1;
}

double sti_field_function_value(int function, double x)
{
    return functions[function].value(x);
}

stint_value sti_field_function_build(stint_graph *g, int function, stint_value x)
{
    return functions[function].build(g, x);
}
