#include "seal/network_text.h"

#include <inttypes.h>

#include "store/safetensors.h"

enum { LINE = 76 };

static void add_numbers(const int64_t *wide, const int8_t *narrow, const uint8_t *flags,
                        int64_t count, sti_text *out)
{
    size_t line = out->length;
    for (int64_t i = 0; i < count; i++) {
        const int64_t value = wide ? wide[i] : narrow ? narrow[i] : flags[i];
        sti_text_printf(out, "%" PRId64 "%s", value, i + 1 < count ? ", " : "");
        if (out->length - line > LINE) {
            sti_text_add(out, "\n    ");
            line = out->length;
        }
    }
}

static void add_row(const char *type, const char *name, int64_t layer,
                    const int64_t *wide, const uint8_t *flags, int64_t count,
                    sti_text *out)
{
    sti_text_printf(out, "static const %s %s%" PRId64 "[%" PRId64 "] = {\n    ", type,
                    name, layer, count);
    add_numbers(wide, NULL, flags, count, out);
    sti_text_add(out, "};\n");
}

static void add_tables(const sti_ternary *net, int64_t layer, sti_text *out)
{
    const sti_ternary_layer *l = &net->layer[layer];
    sti_text_printf(
        out, "\nstatic const int8_t weight%" PRId64 "[%" PRId64 "][%" PRId64 "] = {\n",
        layer, l->units, l->inputs);
    for (int64_t u = 0; u < l->units; u++) {
        sti_text_add(out, "    {");
        add_numbers(NULL, l->weight + u * l->inputs, NULL, l->inputs, out);
        sti_text_add(out, u + 1 < l->units ? "},\n" : "}};\n");
    }
    if (layer + 1 < net->layers) {
        add_row("int32_t", "least", layer, l->least, NULL, l->units, out);
        add_row("bool", "flip", layer, NULL, l->flip, l->units, out);
    } else {
        add_row("int32_t", "factor", layer, l->factor, NULL, l->units, out);
        add_row("int32_t", "offset", layer, l->offset, NULL, l->units, out);
    }
}

/* ---- adders ---- */

/* Places that a sum may reach, and bits that ever stand at one: those that are put
 * there, and half as many carries, and so on. */
static void measure_places(const sti_ternary *net, int *places_out, int64_t *room_out)
{
    int64_t most = 0, inputs = 0;
    for (int64_t i = 0; i < net->layers; i++) {
        const int64_t count = sti_ternary_largest_count(net, i);
        most = count > most ? count : most;
        inputs = net->layer[i].inputs > inputs ? net->layer[i].inputs : inputs;
    }
    *places_out = 2;
    while (most >> *places_out)
        ++*places_out;
    ++*places_out;
    *room_out = 3 * inputs + 8;
}

static void add_adders(const sti_ternary *net, sti_text *out)
{
    int places;
    int64_t room;
    measure_places(net, &places, &room);
    sti_text_printf(
        out,
        "\n/* Bits that are to be added up: bit[p][0 .. height[p] - 1] count 2^p "
        "each. */\n"
        "enum { PLACES = %d, ROOM = %" PRId64 " };\n"
        "static bool bit[PLACES][ROOM];\n"
        "static int height[PLACES];\n\n"
        "static void put(int place, bool b)\n"
        "{\n"
        "    bit[place][height[place]] = b;\n"
        "    height[place] = height[place] + 1;\n"
        "}\n\n",
        places, room);
    sti_text_add(out,
                 "/* Three bits of a place are one there and one in the next, until "
                 "every place has\n * one. */\n"
                 "static int32_t add_up(void)\n"
                 "{\n"
                 "    int32_t sum = 0;\n"
                 "    for (int p = 0; p < PLACES; p++) {\n"
                 "        int at = 0;\n"
                 "        while (height[p] - at > 1) {\n"
                 "            const bool three = height[p] - at > 2;\n"
                 "            const bool a = bit[p][at], b = bit[p][at + 1];\n"
                 "            const bool c = three ? bit[p][at + 2] : false;\n"
                 "            at += three ? 3 : 2;\n"
                 "            put(p, a ^ b ^ c);\n"
                 "            put(p + 1, (a & b) | (c & (a ^ b)));\n"
                 "        }\n"
                 "        if (height[p] > at)\n"
                 "            sum |= (int32_t)bit[p][at] << p;\n"
                 "        height[p] = 0;\n"
                 "    }\n"
                 "    return sum;\n"
                 "}\n");
}

/* ---- layers ---- */

/* put() of all that a unit counts. */
static void add_puts(const sti_ternary *net, int64_t layer, sti_text *out)
{
    const int64_t inputs = net->layer[layer].inputs;
    sti_text_printf(out,
                    "        for (int i = 0; i < %" PRId64 "; i++)\n"
                    "            if (weight%" PRId64 "[u][i] != 0)\n",
                    inputs, layer);
    if (layer > 0) {
        sti_text_printf(
            out, "                put(0, x[i] ^ (weight%" PRId64 "[u][i] < 0));\n",
            layer);
        return;
    }
    sti_text_printf(out,
                    "                for (int p = 0; p < %d; p++)\n"
                    "                    put(p, (x[i] >> p & 1) ^ (weight0[u][i] < "
                    "0));\n",
                    net->input_bits);
}

static void add_layer(const sti_ternary *net, int64_t layer, sti_text *out)
{
    const sti_ternary_layer *l = &net->layer[layer];
    const bool last = layer + 1 == net->layers;
    sti_text_printf(out,
                    "\nstatic void layer%" PRId64 "(const %s x[%" PRId64
                    "], %s out[%" PRId64 "])\n{\n"
                    "    for (int u = 0; u < %" PRId64 "; u++) {\n",
                    layer, layer == 0 ? "uint8_t" : "bool", l->inputs,
                    last ? "int32_t" : "bool", l->units, l->units);
    add_puts(net, layer, out);
    if (last) {
        int bits = 1;
        while (net->largest_score >> bits)
            bits++;
        sti_text_printf(out,
                        "        out[u] = (factor%" PRId64
                        "[u] * add_up() + offset%" PRId64 "[u]) & 0x%" PRIX64 ";\n",
                        layer, layer, (UINT64_C(1) << bits) - 1);
    } else {
        sti_text_printf(out,
                        "        out[u] = (add_up() >= least%" PRId64
                        "[u]) ^ flip%" PRId64 "[u];\n",
                        layer, layer);
    }
    sti_text_add(out, "    }\n}\n");
}

static void add_classify(const sti_ternary *net, sti_text *out)
{
    const int64_t classes = net->layer[net->layers - 1].units;
    sti_text_printf(out,
                    "\n/* Inputs from 0 to %d; returns the class, 0 to %" PRId64
                    ": the first of those with\n * the largest score. */\n"
                    "uint16_t classify(const uint8_t input[%" PRId64 "])\n{\n",
                    (1 << net->input_bits) - 1, classes - 1, net->layer[0].inputs);
    for (int64_t i = 0; i + 1 < net->layers; i++)
        sti_text_printf(out, "    bool h%" PRId64 "[%" PRId64 "];\n", i,
                        net->layer[i].units);
    sti_text_printf(out,
                    "    int32_t score[%" PRId64 "];\n"
                    "    uint16_t best[%" PRId64 "];\n"
                    "    layer0(input, h0);\n",
                    classes, classes);
    for (int64_t i = 1; i + 1 < net->layers; i++)
        sti_text_printf(out, "    layer%" PRId64 "(h%" PRId64 ", h%" PRId64 ");\n", i,
                        i - 1, i);
    sti_text_printf(out, "    layer%" PRId64 "(h%" PRId64 ", score);\n",
                    net->layers - 1, net->layers - 2);
    sti_text_printf(out,
                    "    for (int c = 0; c < %" PRId64 "; c++)\n"
                    "        best[c] = (uint16_t)c;\n"
                    "    for (int step = 1; step < %" PRId64 "; step *= 2)\n"
                    "        for (int c = 0; c + step < %" PRId64 "; c += 2 * step)\n"
                    "            if (score[c + step] > score[c]) {\n"
                    "                score[c] = score[c + step];\n"
                    "                best[c] = best[c + step];\n"
                    "            }\n"
                    "    return best[0];\n}\n",
                    classes, classes, classes);
}

void sti_network_text(const sti_ternary *net, sti_text *out)
{
    const sti_network_desc *n = &net->model->network;
    sti_text_printf(out,
                    "/* Written by stint seal network: an mlp of ternary weights and "
                    "signs for images of\n * %" PRId64 " x %" PRId64 " x %" PRId64
                    ", whose weights have the SHA-256\n * %s.\n"
                    " * Inputs are the image's values, normalised and rounded:\n"
                    " * stint seal network --image writes them. */\n"
                    "#include <stdbool.h>\n#include <stdint.h>\n",
                    n->height, n->width, n->channels, net->model->weights_sha256);
    for (int64_t i = 0; i < net->layers; i++)
        add_tables(net, i, out);
    add_adders(net, out);
    for (int64_t i = 0; i < net->layers; i++)
        add_layer(net, i, out);
    add_classify(net, out);
}
