/* Multi-indices of truncated series and the products of their coefficients. */
#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/jet/jet.h"

int sti_jet_rows(int variables, int order)
{
    int64_t rows = 1;
    if (order == STI_JET_LAPLACIAN && variables >= 1 && variables <= STI_JET_VARIABLES)
        return variables + 2;
    if (variables < 1 || variables > STI_JET_VARIABLES || order < 0 ||
        order > STI_JET_ORDER)
        return 0;
    for (int i = 1; i <= variables; i++)
        rows = rows * (order + i) / i;
    return rows <= STI_JET_ROWS ? (int)rows : 0;
}

/* All multi-indices of this degree, greatest first variable first. */
static void add_degree(sti_jet_table *t, int degree, int variable, int8_t *index)
{
    if (variable >= t->variables - 1 || variable >= STI_JET_VARIABLES - 1) {
        index[variable] = (int8_t)degree;
        memcpy(t->index[t->rows++], index, STI_JET_VARIABLES);
        return;
    }
    for (int i = degree; i >= 0; i--) {
        index[variable] = (int8_t)i;
        add_degree(t, degree - i, variable + 1, index);
    }
}

static float factorial_of(const int8_t *index)
{
    float product = 1;
    for (int v = 0; v < STI_JET_VARIABLES; v++)
        for (int i = 2; i <= index[v]; i++)
            product *= (float)i;
    return product;
}

int sti_jet_row(const sti_jet_table *t, const int *index)
{
    for (int a = 0; a < t->rows; a++) {
        bool same = true;
        for (int v = 0; v < t->variables; v++)
            same = same && t->index[a][v] == index[v];
        if (same)
            return a;
    }
    return -1;
}

/* Row of a - b; -1 where b is not within a. */
static int row_of_rest(const sti_jet_table *t, int a, int b)
{
    int rest[STI_JET_VARIABLES];
    for (int v = 0; v < t->variables; v++) {
        rest[v] = t->index[a][v] - t->index[b][v];
        if (rest[v] < 0)
            return -1;
    }
    return sti_jet_row(t, rest);
}

static void add_pairs(sti_jet_table *t)
{
    int count = 0;
    for (int a = 0; a < t->rows; a++) {
        int k = 0;
        while (k < t->variables - 1 && k < STI_JET_VARIABLES - 1 && t->index[a][k] == 0)
            k++;
        t->begin[a] = (int16_t)count;
        for (int b = 0; b <= a; b++) {
            const int right = row_of_rest(t, a, b);
            if (right < 0)
                continue;
            const float share =
                a == 0 ? 0.0f : (float)t->index[b][k] / (float)t->index[a][k];
            t->pair[count++] = (sti_jet_pair){(int16_t)b, (int16_t)right, share};
        }
    }
    t->begin[t->rows] = (int16_t)count;
}

/* Products that count for the summed second derivatives: y'' has u y'' + u'' y + 2 u'
 * y' of which coefficients have halves. */
static void add_laplacian(sti_jet_table *t)
{
    const int16_t last = (int16_t)t->rows++;
    int16_t count = t->begin[last];
    t->factorial[last] = 2;
    t->pair[count++] = (sti_jet_pair){0, last, 0.0f};
    for (int16_t i = 1; i < last; i++)
        t->pair[count++] = (sti_jet_pair){i, i, 0.5f};
    t->pair[count++] = (sti_jet_pair){last, 0, 1.0f};
    t->begin[t->rows] = count;
}

static void fill_table(sti_jet_table *t, int variables, int order)
{
    int8_t index[STI_JET_VARIABLES] = {0};
    const int degrees = order == STI_JET_LAPLACIAN ? 1 : order;
    t->variables = variables;
    t->order = order;
    for (int degree = 0; degree <= degrees; degree++)
        add_degree(t, degree, 0, index);
    for (int a = 0; a < t->rows; a++)
        t->factorial[a] = factorial_of(t->index[a]);
    add_pairs(t);
    if (order == STI_JET_LAPLACIAN)
        add_laplacian(t);
}

const sti_jet_table *sti_jet_table_of(int variables, int order)
{
    static sti_jet_table *made[STI_JET_VARIABLES][STI_JET_LAPLACIAN + 1];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    sti_jet_table *t = made[variables - 1][order];
    if (!t && (t = sti_alloc(sizeof *t, "jet table"))) {
        fill_table(t, variables, order);
        made[variables - 1][order] = t;
    }
    pthread_mutex_unlock(&lock);
    return t;
}
