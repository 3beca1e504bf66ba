// Random numbers and sums of them.
#include "bindings/network.h"

namespace evergait {

constexpr int64_t kMaxDraws = int64_t(1) << 34;  // a counter's 32 bits, of four words each

void bind_noise(nb::module_& m, const Kernels* kernels) {
  m.def(
      "words",
      [kernels](nb::handle noise, uint32_t index, int64_t n) {
        require_range("n", n, 0, kMaxDraws);
        const NoiseKey key = read_noise({noise, "noise"});
        auto out = make_array<uint32_t>(n);
        kernels->words(key, index, n, out.data());
        return out;
      },
      nb::arg("noise"), nb::arg("index"), nb::arg("n"));

  m.def(
      "normals",
      [kernels](nb::handle noise, uint32_t index, int64_t begin, int64_t end) {
        require_range("begin", begin, 0, kMaxDraws);
        require_range("end", end, begin, kMaxDraws);
        const NoiseKey key = read_noise({noise, "noise"});
        auto out = make_array<float>(end - begin);
        kernels->normals(key, index, begin, end, out.data());
        return out;
      },
      nb::arg("noise"), nb::arg("index"), nb::arg("begin"), nb::arg("end"));

  m.def(
      "accumulate_noise",
      [kernels](nb::handle noise, In<uint32_t, 1> pairs, In<double, 1> weights, int64_t begin, int64_t end,
                Out<double, 1> gradient, int n_threads) {
        const int64_t n_pairs = int64_t(pairs.size());
        require_shape("weights", weights, {n_pairs});
        require_range("begin", begin, 0, int64_t(gradient.size()));
        require_range("end", end, begin, int64_t(gradient.size()));
        require_threads(n_threads);
        const NoiseKey key = read_noise({noise, "noise"});
        nb::gil_scoped_release release;
        parallel(end - begin, 128, n_threads, [&](int64_t low, int64_t high) {
          kernels->accumulate(key, pairs.data(), weights.data(), n_pairs, begin + low, begin + high, gradient.data());
          return kDone;
        });
      },
      nb::arg("noise"), nb::arg("pairs").noconvert(), nb::arg("weights").noconvert(), nb::arg("begin"), nb::arg("end"),
      nb::arg("gradient").noconvert(), nb::arg("n_threads"));
}

}  // namespace evergait
