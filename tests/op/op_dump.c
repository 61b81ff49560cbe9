/* Writes inputs, results, first and second gradients of every case that PyTorch can
 * compute, for pytorch_compare.py: op_dump FOLDER SEED... makes FOLDER/cases.json and
 * FOLDER/data.bin (float32 or int32, little-endian, at the offsets that the JSON says).
 * Also measures nothing and checks nothing. */
#include "op/op_harness.h"
#include "pass/pass.h"

typedef struct dump {
    FILE *json, *data;
    int64_t at; /* bytes written to data */
    int count;
} dump;

static void write_tensor(dump *d, const char *key, const stint_shape *shape,
                         const void *data, const char *after)
{
    size_t bytes = stint_shape_bytes(shape);
    fprintf(d->json, "\"%s\": {\"at\": %" PRId64 ", \"type\": \"%s\", \"shape\": [",
            key, d->at, shape->dtype == STINT_I32 ? "i4" : "f4");
    for (int i = 0; i < shape->rank; i++)
        fprintf(d->json, "%s%" PRId64, i ? ", " : "", shape->dim[i]);
    fprintf(d->json, "]}%s", after);
    fwrite(data, 1, bytes, d->data);
    d->at += (int64_t)bytes;
}

/* Second order, of s = sum(v g): the directions v, and the gradients of s; v < 0: none.
 */
typedef struct second_order {
    stint_value v[OP_MAX_IN], h[OP_MAX_IN];
} second_order;

static void write_group(dump *d, const op_run_case *run, const char *name,
                        const stint_value *value)
{
    const char *between = "";
    fprintf(d->json, ", \"%s\": {", name);
    for (int i = 0; i < run->c->n_in; i++) {
        char key[16];
        if (value[i] < 0)
            continue;
        snprintf(key, sizeof key, "x%d", i);
        fputs(between, d->json);
        write_tensor(d, key, &run->in[i].shape, run->values.data[value[i]], "");
        between = ", ";
    }
    fputs("}", d->json);
}

static void write_second(dump *d, const op_run_case *run, const second_order *second)
{
    write_group(d, run, "direction", second->v);
    write_group(d, run, "second", second->h);
}

/* Append s and its gradients. */
static stint_status append_second(const op_run_case *run, const stint_value *of,
                                  const stint_value *g, second_order *out)
{
    stint_value s = -1;
    for (int i = 0; i < run->c->n_in; i++) {
        char name[16];
        if (g[i] < 0)
            continue;
        const stint_shape shape = stint_value_shape(run->graph, run->x[i]);
        snprintf(name, sizeof name, "v%d", i);
        out->v[i] = stint_input(run->graph, name, &shape);
        const stint_value part =
            stint_sum(run->graph, stint_mul(run->graph, g[i], out->v[i]),
                      (1u << shape.rank) - 1, false);
        s = s < 0 ? part : stint_add(run->graph, s, part);
    }
    if (s < 0)
        return stint_graph_check(run->graph);
    return sti_pass_gradient(run->graph, s, of, run->c->n_in, out->h);
}

static void fill_directions(const op_run_case *run, const second_order *second)
{
    op_draws draws = {.seed = run->seed + 555};
    for (int i = 0; i < run->c->n_in; i++)
        if (second->v[i] >= 0)
            op_fill(&draws, OP_NORMAL, 0, run->values.data[second->v[i]],
                    run->in[i].count);
}

static void write_case(dump *d, const op_run_case *run, const stint_value *g,
                       const second_order *second)
{
    const op_case *c = run->c;
    const op_values *v = &run->values;
    fprintf(d->json, "%s{\"name\": \"%s\", \"seed\": %" PRIu64 ", \"loose\": %g, ",
            d->count++ ? ",\n" : "", c->name, run->seed, c->loose > 0 ? c->loose : 1.0);
    fprintf(d->json, "\"torch\": \"%s\", \"in\": {", c->torch);
    for (int i = 0; i < c->n_in; i++) {
        char key[16];
        snprintf(key, sizeof key, "x%d", i);
        write_tensor(d, key, &run->in[i].shape, v->data[run->x[i]],
                     i + 1 < c->n_in ? ", " : "}, ");
    }
    write_tensor(d, "weight", &run->out.shape, v->data[run->r], ", ");
    write_tensor(d, "y", &run->out.shape, v->data[run->y], ", \"grad\": {");
    const char *between = "";
    for (int i = 0; i < c->n_in; i++) {
        char key[16];
        if (g[i] < 0)
            continue;
        snprintf(key, sizeof key, "x%d", i);
        fputs(between, d->json);
        write_tensor(d, key, &run->in[i].shape, v->data[g[i]], "");
        between = ", ";
    }
    fputs("}", d->json);
    write_second(d, run, second);
    fputs("}", d->json);
}

static bool dump_case(dump *d, const op_case *c, uint64_t seed)
{
    op_run_case run;
    stint_value of[OP_MAX_IN], g[OP_MAX_IN];
    second_order second;
    memset(g, -1, sizeof g);
    memset(&second, -1, sizeof second);
    stint_status st = op_case_build(&run, c, seed, true);
    for (int i = 0; i < c->n_in; i++)
        of[i] = c->grad >> i & 1 ? run.x[i] : -1;
    if (st == STINT_OK && c->grad)
        st = sti_pass_gradient(run.graph, run.loss, of, c->n_in, g);
    if (st == STINT_OK && c->grad)
        st = append_second(&run, of, g, &second);
    if (st != STINT_OK) {
        fprintf(stderr, "%s: %s\n", c->name, stint_last_error());
    } else {
        op_case_fill(&run, true);
        fill_directions(&run, &second);
        op_run(&run.values, &(sti_team){.threads = 2}, OP_KEEP_ALL);
        write_case(d, &run, g, &second);
    }
    op_case_fini(&run);
    return st == STINT_OK;
}

static FILE *open_in(const char *folder, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f)
        fprintf(stderr, "%s: cannot be written\n", path);
    return f;
}

int main(int argc, char **argv)
{
    int bad = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: op_dump FOLDER SEED...\n");
        return 2;
    }
    dump d = {.json = open_in(argv[1], "cases.json"),
              .data = open_in(argv[1], "data.bin")};
    if (!d.json || !d.data)
        return 5;
    fputs("[", d.json);
    for (int a = 2; a < argc; a++)
        for (int l = 0; l < OP_CASE_LISTS; l++)
            for (int k = 0; k < op_case_lists[l].count; k++)
                if (op_case_lists[l].cases[k].torch)
                    bad += !dump_case(&d, &op_case_lists[l].cases[k],
                                      strtoull(argv[a], NULL, 10));
    fputs("]\n", d.json);
    if (fclose(d.json) != 0 || fclose(d.data) != 0) {
        fprintf(stderr, "%s: not written\n", argv[1]);
        return 5;
    }
    return bad ? 1 : 0;
}
