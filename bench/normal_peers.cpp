// What a C++ program has for normal numbers: std::normal_distribution<float> over
// std::mt19937 and std::mt19937_64, into a block of 16384 floats. Least time of the
// runs. Built and started in turns with normal_bench by normal_bench.sh.
//   normal_peers [RUNS]
// CSV: who, millions of numbers a second.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

template <class Engine> void measure(const char *name, int runs)
{
    std::vector<float> block(1 << 14);
    std::normal_distribution<float> normal;
    Engine engine(1);
    double least = 1e9, sum = 0;
    for (int r = 0; r < runs; r++) {
        const auto start = std::chrono::steady_clock::now();
        for (float &x : block)
            x = normal(engine);
        const std::chrono::duration<double> s =
            std::chrono::steady_clock::now() - start;
        least = std::min(least, s.count());
        sum += block[static_cast<size_t>(r) % block.size()];
    }
    if (sum == 0.5) // never: the compiler must not leave the numbers out
        std::puts("");
    std::printf("%s,%.0f\n", name, block.size() / least * 1e-6);
}

int main(int argc, char **argv)
{
    const int runs = argc > 1 ? std::atoi(argv[1]) : 200;
    measure<std::mt19937>("std::normal_distribution mt19937", runs);
    measure<std::mt19937_64>("std::normal_distribution mt19937_64", runs);
}
