/* A circuit file of Bristol, evaluated by TFHEpp level by level, as bench/seal_whole.sh
 * builds and runs it in turns with stint:
 *
 *   seal_tfhepp CIRCUIT.txt [THREADS [GATES]]        2, all
 *
 * Gates of a level are shared among OpenMP threads; INV costs nothing. Inputs are bits
 * of a fixed pattern; all wires are decrypted and compared with a plain run. GATES:
 * stop at the end of the level in which so many are done. Prints gates done and gates
 * of the circuit, then seconds by the clock and of CPU time. Not a part of the build.
 */
#include <omp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
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
    int wires = 0, inputs = 0;
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
    read_bits(in); /* outputs */
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

static double cpu_seconds()
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns the gates that cost something. */
static int run_level(const std::vector<Gate> &level, const TFHEpp::EvalKey &key,
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
    return (int)logic.size();
}

static int count_wrong(const std::vector<Gate> &level, const std::vector<Word> &wire,
                       const std::vector<char> &want, const TFHEpp::SecretKey &secret)
{
    int wrong = 0;
    for (const Gate &g : level)
        wrong +=
            TFHEpp::tlweSymDecrypt<TFHEpp::lvl0param>(
                wire[g.out], secret.key.get<TFHEpp::lvl0param>()) != (want[g.out] != 0);
    return wrong;
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
        fail("usage: seal_tfhepp CIRCUIT.txt [THREADS [GATES]]");
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

    int gates = 0, done = 0, wrong = 0;
    std::size_t run = 0;
    for (const Gate &g : c.gates)
        gates += g.kind != 'I';
    const int most = argc > 3 ? std::atoi(argv[3]) : gates;
    const double cpu = cpu_seconds();
    const auto begin = std::chrono::steady_clock::now();
    while (run < levels.size() && done < most)
        done += run_level(levels[run++], key, wire);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const double cpu_took = cpu_seconds() - cpu;
    for (std::size_t i = 0; i < run; i++)
        wrong += count_wrong(levels[i], wire, want, secret);
    std::printf("%d %d %.3f %.3f\n", done, gates, took.count(), cpu_took);
    if (wrong > 0)
        fail(std::to_string(wrong) + " wires are wrong");
    return 0;
}
