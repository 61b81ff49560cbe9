// What others make of the same arrays at the same bound: SZ3 in its modes and zfp's
// accuracy mode, each on the array as it lies (channels last), with the channels moved
// to the front, and as a plain row of numbers; the smallest counts. One thread.
// Built by codec_bench.sh where SZ3's headers and zfp are found; no dependency of
// Stint.
//
//   codec_peers LIST_FOLDER      reads list.txt: "file.npy bound kind" a line
//
// Prints: file, SZ3's best bytes, its mode, pack and unpack MB/s, bytes of SZ3's
// no-prediction mode, zfp's bytes, pack and unpack MB/s. Every bound is checked.
#include <SZ3/api/sz.hpp>
#include <zfp.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace
{

struct Array {
    std::vector<size_t> dim;
    std::vector<float> x;
};

struct Outcome {
    size_t bytes = SIZE_MAX;
    double pack_s = 0, unpack_s = 0;
    std::string mode;
};

double now()
{
    return std::chrono::duration<double>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

Array read_npy(const std::string &path)
{
    std::ifstream in(path, std::ios::binary);
    std::vector<char> all((std::istreambuf_iterator<char>(in)), {});
    if (all.size() < 12 || all[6] != 1) {
        std::fprintf(stderr, "%s: no .npy of version 1\n", path.c_str());
        std::exit(4);
    }
    const size_t header = 10 + ((unsigned char)all[8] | (unsigned char)all[9] << 8);
    const std::string text(all.data() + 10, header - 10);
    Array a;
    std::stringstream shape(text.substr(text.find('(') + 1));
    size_t d;
    char comma;
    while (shape >> d) {
        a.dim.push_back(d);
        shape >> comma;
    }
    const float *x = reinterpret_cast<const float *>(all.data() + header);
    a.x.assign(x, x + (all.size() - header) / 4);
    return a;
}

// [n,h,w,c] to [n,c,h,w].
Array channels_first(const Array &a)
{
    const size_t n = a.dim[0], s = a.dim[1] * a.dim[2], c = a.dim[3];
    Array b;
    b.dim = {n, c, a.dim[1], a.dim[2]};
    b.x.resize(a.x.size());
    for (size_t i = 0; i < n; i++)
        for (size_t p = 0; p < s; p++)
            for (size_t k = 0; k < c; k++)
                b.x[(i * c + k) * s + p] = a.x[(i * s + p) * c + k];
    return b;
}

void check(const Array &a, const float *y, double bound, const char *who)
{
    size_t beyond = 0;
    for (size_t i = 0; i < a.x.size(); i++)
        beyond += !(std::fabs((double)a.x[i] - (double)y[i]) <= bound);
    if (beyond)
        std::fprintf(stderr, "%s: %zu values beyond the bound\n", who, beyond);
}

void try_sz3(const Array &a, double bound, int algorithm, const char *mode,
             const char *order, Outcome &best)
{
    SZ3::Config config;
    config.setDims(a.dim.begin(), a.dim.end());
    config.cmprAlgo = (uint8_t)algorithm;
    config.errorBoundMode = SZ3::EB_ABS;
    config.absErrorBound = bound;
    size_t bytes = 0;
    const double t0 = now();
    char *packed = SZ_compress(config, a.x.data(), bytes);
    const double t1 = now();
    std::vector<float> y(a.x.size());
    float *out = y.data();
    SZ3::Config back;
    const double t2 = now();
    SZ_decompress(back, packed, bytes, out);
    const double t3 = now();
    delete[] packed;
    check(a, out, bound, mode);
    if (bytes < best.bytes)
        best = {bytes, t1 - t0, t3 - t2, std::string(mode) + "/" + order};
}

void try_zfp(const Array &a, double bound, const char *order, Outcome &best)
{
    auto *data = const_cast<float *>(a.x.data());
    zfp_field *field;
    if (a.dim.size() == 1)
        field = zfp_field_1d(data, zfp_type_float, a.dim[0]);
    else
        field =
            zfp_field_4d(data, zfp_type_float, a.dim[3], a.dim[2], a.dim[1], a.dim[0]);
    zfp_stream *stream = zfp_stream_open(nullptr);
    zfp_stream_set_accuracy(stream, bound);
    std::vector<char> room(zfp_stream_maximum_size(stream, field));
    bitstream *bits = stream_open(room.data(), room.size());
    zfp_stream_set_bit_stream(stream, bits);
    zfp_stream_rewind(stream);
    const double t0 = now();
    const size_t bytes = zfp_compress(stream, field);
    const double t1 = now();
    std::vector<float> y(a.x.size());
    zfp_field_set_pointer(field, y.data());
    zfp_stream_rewind(stream);
    const double t2 = now();
    zfp_decompress(stream, field);
    const double t3 = now();
    check(a, y.data(), bound, "zfp");
    if (bytes < best.bytes)
        best = {bytes, t1 - t0, t3 - t2, order};
    zfp_field_free(field);
    zfp_stream_close(stream);
    stream_close(bits);
}

void run(const std::string &folder, const std::string &file, double bound)
{
    static const struct {
        int algorithm;
        const char *name;
    } modes[] = {{SZ3::ALGO_INTERP_LORENZO, "interp-lorenzo"},
                 {SZ3::ALGO_LORENZO_REG, "lorenzo-reg"},
                 {SZ3::ALGO_INTERP, "interp"},
                 {SZ3::ALGO_NOPRED, "nopred"}};
    const Array last = read_npy(folder + "/" + file);
    Array row = last;
    row.dim = {last.x.size()};
    std::vector<std::pair<const char *, Array>> forms = {{"row", row}};
    if (last.dim.size() == 4) {
        forms.emplace_back("nhwc", last);
        forms.emplace_back("nchw", channels_first(last));
    }
    Outcome sz, plain, zfp;
    for (const auto &form : forms) {
        for (const auto &mode : modes) {
            if (mode.algorithm == SZ3::ALGO_NOPRED)
                try_sz3(form.second, bound, mode.algorithm, mode.name, form.first,
                        plain);
            else
                try_sz3(form.second, bound, mode.algorithm, mode.name, form.first, sz);
        }
        try_zfp(form.second, bound, form.first, zfp);
    }
    const Outcome &best = sz.bytes < plain.bytes ? sz : plain;
    const double mb = (double)last.x.size() * 4e-6;
    std::printf("%s\t%zu\t%s\t%.0f\t%.0f\t%zu\t%zu\t%.0f\t%.0f\n", file.c_str(),
                best.bytes, best.mode.c_str(), mb / best.pack_s, mb / best.unpack_s,
                plain.bytes, zfp.bytes, mb / zfp.pack_s, mb / zfp.unpack_s);
    std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 2) {
        std::fprintf(stderr, "usage: codec_peers FOLDER\n");
        return 2;
    }
    std::ifstream list(std::string(argv[1]) + "/list.txt");
    std::string file, kind;
    double bound;
    while (list >> file >> bound >> kind)
        run(argv[1], file, bound);
    return 0;
}
