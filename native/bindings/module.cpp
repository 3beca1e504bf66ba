// This folder alone knows Python. Python checks shapes and names errors; this file trusts them, lets go of the GIL
// and writes into arrays that it is given or has just made.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/arrays.h"
#include "core/threads.h"
#include "kernels.h"

using namespace evergait;

namespace evergait {
void bind_planar(nb::module_& m, const char* isa);  // planar.cpp
}

namespace {

const Kernels* kernels = nullptr;
std::string isa;

// The widest instruction set that this machine has, or the one that the environment variable EVERGAIT_ISA names.
void choose_kernels() {
  struct Choice {
    const char* name;
    const Kernels* kernels;
    bool here;
  };
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  const Choice choices[] = {{"avx512", &avx512::kernels, has_avx512},
                            {"avx2", &avx2::kernels, bool(__builtin_cpu_supports("avx2"))},
                            {"baseline", &baseline::kernels, true}};
#else
  const Choice choices[] = {{"baseline", &baseline::kernels, true}};
#endif
  const char* wanted = std::getenv("EVERGAIT_ISA");
  for (const Choice& choice : choices)
    if (choice.here && (!wanted || !*wanted || !std::strcmp(wanted, choice.name))) {
      kernels = choice.kernels;
      isa = choice.name;
      return;
    }
  throw std::runtime_error(std::string("EVERGAIT_ISA is '") + wanted + "', which this machine does not have");
}

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> make_array(int64_t n) {
  T* data = new T[n > 0 ? n : 1]();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size_t(n)}, owner);
}

const Layer* as_layers(const In2<int64_t>& layers) { return reinterpret_cast<const Layer*>(layers.data()); }

}  // namespace

NB_MODULE(_native, m) {
  choose_kernels();
  m.attr("ISA") = isa;
  m.attr("MAX_WIDTH") = kMaxWidth;
  bind_planar(m, isa.c_str());

  m.def("words", [](uint64_t seed, uint32_t generation, uint32_t purpose, uint32_t index, int64_t n) {
    auto out = make_array<uint32_t>(n);
    kernels->words({seed, generation, purpose}, index, n, out.data());
    return out;
  });

  m.def("normals",
        [](uint64_t seed, uint32_t generation, uint32_t purpose, uint32_t index, int64_t begin, int64_t end) {
          auto out = make_array<float>(end - begin);
          kernels->normals({seed, generation, purpose}, index, begin, end, out.data());
          return out;
        });

  m.def("accumulate_noise", [](uint64_t seed, uint32_t generation, uint32_t purpose, In1<uint32_t> pairs,
                               In1<double> weights, int64_t begin, int64_t end, Out1<double> gradient, int n_threads) {
    nb::gil_scoped_release release;
    parallel(end - begin, 128, n_threads, [&](int64_t low, int64_t high) {
      kernels->accumulate({seed, generation, purpose}, pairs.data(), weights.data(), int64_t(pairs.size()), begin + low,
                          begin + high, gradient.data());
    });
  });

  m.def("packed_size",
        [](In2<int64_t> layers) { return kernels->packed_size(as_layers(layers), int(layers.shape(0))); });

  m.def("pack_candidates",
        [](In2<int64_t> layers, In1<float> theta, float sigma, uint64_t seed, uint32_t generation, uint32_t purpose,
           In1<uint32_t> pairs, In1<float> signs, Out2<float> packed, int n_threads) {
          nb::gil_scoped_release release;
          parallel(int64_t(pairs.size()), 1, n_threads, [&](int64_t low, int64_t high) {
            for (int64_t row = low; row < high; row++)
              kernels->pack(as_layers(layers), int(layers.shape(0)), theta.data(), sigma * signs.data()[row],
                            {seed, generation, purpose}, pairs.data()[row], packed.data() + row * packed.shape(1));
          });
        });

  m.def(
      "act",
      [](In2<int64_t> layers, In1<float> middle, In1<float> half_range, std::optional<In1<double>> mean,
         std::optional<In1<double>> scale, In2<float> packed, In2<double> observations, Out2<float> actions,
         int n_threads) {
        Surround surround = {mean ? mean->data() : nullptr, scale ? scale->data() : nullptr, middle.data(),
                             half_range.data()};
        nb::gil_scoped_release release;
        parallel(int64_t(packed.shape(0)), 1, n_threads, [&](int64_t low, int64_t high) {
          for (int64_t row = low; row < high; row++)
            kernels->act(as_layers(layers), int(layers.shape(0)), surround, packed.data() + row * packed.shape(1),
                         observations.data() + row * observations.shape(1), actions.data() + row * actions.shape(1));
        });
      },
      nb::arg("layers"), nb::arg("middle"), nb::arg("half_range"), nb::arg("mean").none(), nb::arg("scale").none(),
      nb::arg("packed"), nb::arg("observations"), nb::arg("actions"), nb::arg("n_threads"));

  m.def(
      "outputs",
      [](In2<int64_t> layers, std::optional<In1<double>> mean, std::optional<In1<double>> scale, In1<double> theta,
         In2<double> observations, Out2<double> outputs) {
        Surround surround = {mean ? mean->data() : nullptr, scale ? scale->data() : nullptr, nullptr, nullptr};
        nb::gil_scoped_release release;
        std::vector<double> memory(kernels->pass_size(as_layers(layers), int(layers.shape(0))));
        kernels->outputs(as_layers(layers), int(layers.shape(0)), surround, theta.data(), observations.data(),
                         int64_t(observations.shape(0)), memory.data(), outputs.data());
      },
      nb::arg("layers"), nb::arg("mean").none(), nb::arg("scale").none(), nb::arg("theta"), nb::arg("observations"),
      nb::arg("outputs"));

  m.def(
      "pull_back",
      [](In2<int64_t> layers, std::optional<In1<double>> mean, std::optional<In1<double>> scale, In1<double> theta,
         In2<double> observations, In2<double> cotangents, bool squared, Out1<double> gradient) {
        Surround surround = {mean ? mean->data() : nullptr, scale ? scale->data() : nullptr, nullptr, nullptr};
        nb::gil_scoped_release release;
        std::vector<double> memory(kernels->pass_size(as_layers(layers), int(layers.shape(0))));
        kernels->pull_back(as_layers(layers), int(layers.shape(0)), surround, theta.data(), observations.data(),
                           cotangents.data(), int64_t(observations.shape(0)), squared, memory.data(), gradient.data());
      },
      nb::arg("layers"), nb::arg("mean").none(), nb::arg("scale").none(), nb::arg("theta"), nb::arg("observations"),
      nb::arg("cotangents"), nb::arg("squared"), nb::arg("gradient"));
}
