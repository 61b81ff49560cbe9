/* Writes inputs, results and gradients of every case that PyTorch can compute, for
 * pytorch_compare.py: op_dump FOLDER SEED... makes FOLDER/cases.json and
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

static void write_case(dump *d, const op_run_case *run, const stint_value *g)
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
    fputs("}}", d->json);
}

static bool dump_case(dump *d, const op_case *c, uint64_t seed)
{
    op_run_case run;
    stint_value of[OP_MAX_IN], g[OP_MAX_IN];
    memset(g, -1, sizeof g);
    stint_status st = op_case_build(&run, c, seed, true);
    for (int i = 0; i < c->n_in; i++)
        of[i] = c->grad >> i & 1 ? run.x[i] : -1;
    if (st == STINT_OK && c->grad)
        st = sti_pass_gradient(run.graph, run.loss, of, c->n_in, g);
    if (st != STINT_OK) {
        fprintf(stderr, "%s: %s\n", c->name, stint_last_error());
    } else {
        op_case_fill(&run, true);
        op_run(&run.values, &(sti_team){.threads = 2}, OP_KEEP_ALL);
        write_case(d, &run, g);
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
