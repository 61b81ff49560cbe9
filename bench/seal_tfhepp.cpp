/* A circuit file of Bristol, evaluated by TFHEpp level by level, as bench/seal_whole.sh
 * builds and runs it in turns with stint:
 *
 *   seal_tfhepp CIRCUIT.txt [THREADS]        2
 *
 * Gates of a level are shared among OpenMP threads; INV costs nothing. Inputs are bits of
 * a fixed pattern; what comes out is decrypted and compared with a plain run. Prints
 * gates, levels and seconds of the evaluation. Not a part of the build. */
#include <omp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <tfhe++.hpp>
#include <vector>

using Word = TFHEpp::TLWE<TFHEpp::lvl0param>;

struct Gate {
    char kind; /* the first letter: AND, XOR, INV */
    int a, b, out;
};

struct Circuit {
    std::vector<Gate> gates;
    int wires = 0, inputs = 0, outputs = 0;
};

static void fail(const std::string &what)
{
    std::fprintf(stderr, "seal_tfhepp: %s\n", what.c_str());
    std::exit(1);
}

static int read_bits(std::ifstream &in)
{
    int ports = 0, all = 0;
    in >> ports;
    for (int i = 0, bits; i < ports && in >> bits; i++)
        all += bits;
    return all;
}

static Circuit read_circuit(const char *path)
{
    std::ifstream in(path);
    Circuit c;
    int count = 0;
    in >> count >> c.wires;
    c.inputs = read_bits(in);
    c.outputs = read_bits(in);
    for (int i = 0; i < count; i++) {
        int ins, outs;
        std::string kind;
        Gate g{};
        in >> ins >> outs >> g.a;
        g.b = g.a;
        if (ins == 2)
            in >> g.b;
        in >> g.out >> kind;
        if (!in || outs != 1 || (kind != "AND" && kind != "XOR" && kind != "INV"))
            fail(std::string(path) + ": gate " + std::to_string(i) + " is not known");
        g.kind = kind[0];
        c.gates.push_back(g);
    }
    return c;
}

/* Gates by the level of their result; an INV is at the level of what it negates. */
static std::vector<std::vector<Gate>> levels_of(const Circuit &c)
{
    std::vector<int> at(c.wires, 0);
    std::vector<std::vector<Gate>> levels;
    for (const Gate &g : c.gates) {
        at[g.out] = std::max(at[g.a], at[g.b]) + (g.kind != 'I');
        if (at[g.out] >= (int)levels.size())
            levels.resize(at[g.out] + 1);
        levels[at[g.out]].push_back(g);
    }
    return levels;
}

static void run_level(const std::vector<Gate> &level, const TFHEpp::EvalKey &key,
                      std::vector<Word> &wire)
{
    std::vector<Gate> logic;
    for (const Gate &g : level)
        if (g.kind != 'I')
            logic.push_back(g);
#pragma omp parallel for schedule(dynamic)
    for (std::size_t i = 0; i < logic.size(); i++) {
        const Gate &g = logic[i];
        if (g.kind == 'A')
            TFHEpp::HomAND<TFHEpp::lvl01param, TFHEpp::lvl1param::μ,
                           TFHEpp::lvl10param>(wire[g.out], wire[g.a], wire[g.b], key);
        else
            TFHEpp::HomXOR<TFHEpp::lvl01param, TFHEpp::lvl1param::μ,
                           TFHEpp::lvl10param>(wire[g.out], wire[g.a], wire[g.b], key);
    }
    for (const Gate &g : level)
        if (g.kind == 'I')
            TFHEpp::HomNOT<TFHEpp::lvl0param>(wire[g.out], wire[g.a]);
}

static std::vector<char> run_plainly(const Circuit &c)
{
    std::vector<char> bit(c.wires, 0);
    for (int i = 0; i < c.inputs; i++)
        bit[i] = i * 5 / 3 % 2;
    for (const Gate &g : c.gates)
        bit[g.out] = g.kind == 'A'   ? bit[g.a] & bit[g.b]
                     : g.kind == 'X' ? bit[g.a] ^ bit[g.b]
                                     : !bit[g.a];
    return bit;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        fail("usage: seal_tfhepp CIRCUIT.txt [THREADS]");
    const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
    const Circuit c = read_circuit(argv[1]);
    const std::vector<char> want = run_plainly(c);
    const auto levels = levels_of(c);
    omp_set_num_threads(threads);

    TFHEpp::SecretKey secret;
    TFHEpp::EvalKey key;
    key.emplacebkfft<TFHEpp::lvl01param>(secret);
    key.emplaceiksk<TFHEpp::lvl10param>(secret);
    std::vector<Word> wire(c.wires);
    for (int i = 0; i < c.inputs; i++)
        TFHEpp::tlweSymEncrypt<TFHEpp::lvl0param>(
            wire[i], want[i] ? TFHEpp::lvl0param::μ : -TFHEpp::lvl0param::μ,
            secret.key.get<TFHEpp::lvl0param>());

    int gates = 0, wrong = 0;
    for (const Gate &g : c.gates)
        gates += g.kind != 'I';
    const auto begin = std::chrono::steady_clock::now();
    for (const auto &level : levels)
        run_level(level, key, wire);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    for (int i = c.wires - c.outputs; i < c.wires; i++)
        wrong += TFHEpp::tlweSymDecrypt<TFHEpp::lvl0param>(
                     wire[i], secret.key.get<TFHEpp::lvl0param>()) != (want[i] != 0);
    std::printf("%d gates in %zu levels, %d threads: %.2f s, %d of %d output bits wrong\n",
                gates, levels.size() - 1, threads, took.count(), wrong, c.outputs);
    return wrong != 0;
}
