// The planar engine as Python sees it; like module.cpp, it trusts its arguments and lets go of the GIL.
#include "planar.h"

#include <nanobind/stl/optional.h>

#include <cstring>
#include <optional>

#include "bindings/arrays.h"
#include "core/threads.h"

namespace evergait {

void bind_planar(nb::module_& m, const char* isa) {
  const PlanarKernels* kernels = &baseline::planar_kernels;
#if defined(__x86_64__)
  if (!std::strcmp(isa, "avx2")) kernels = &avx2::planar_kernels;
  if (!std::strcmp(isa, "avx512")) kernels = &avx512::planar_kernels;
#endif
  m.attr("PLANAR_LANES") = nb::make_tuple(kernels->fewest_lanes, kernels->native_lanes);

  m.def(
      "planar_step",
      [kernels](In1<double> description, Out2<double> position, Out2<double> velocity, In2<double> control,
                int n_frames, int n_threads, int n_lanes, bool any_tree) {
        nb::gil_scoped_release release;
        parallel(int64_t(position.shape(0)), 64, n_threads, [&](int64_t begin, int64_t end) {
          kernels->step({{description.data(), n_lanes, any_tree},
                         begin,
                         end,
                         n_frames,
                         position.data(),
                         velocity.data(),
                         control.data()});
        });
      },
      nb::arg("description"), nb::arg("position"), nb::arg("velocity"), nb::arg("control"), nb::arg("n_frames"),
      nb::arg("n_threads"), nb::arg("n_lanes"), nb::arg("any_tree"));

  // rules: the numbers of TaskRules in order.
  m.def(
      "planar_episodes",
      [kernels](In1<double> description, In1<double> rules, In2<int64_t> layers, In1<float> middle,
                In1<float> half_range, std::optional<In1<double>> mean, std::optional<In1<double>> scale,
                In1<float> theta, float sigma, uint64_t seed, uint32_t generation, uint32_t purpose, In1<uint32_t> pair,
                In1<float> sign, In1<uint32_t> row_seed, uint32_t noise_purpose, In2<double> position,
                In2<double> velocity, int limit, Out1<double> returns, Out1<int32_t> lengths, Out1<uint8_t> diverged,
                std::optional<Out3<double>> sums, std::optional<Out3<double>> trace, int n_threads, int n_lanes,
                bool any_tree) {
        const double* r = rules.data();
        int64_t next_row = 0;
        EpisodeJob job = {};
        job.options = {description.data(), n_lanes, any_tree};
        job.rules = {int(r[0]),   int(r[1]),    int(r[2]),      r[3] != 0,      r[4],           r[5], r[6],
                     float(r[7]), {r[8], r[9]}, {r[10], r[11]}, {r[12], r[13]}, {r[14], r[15]}, r[16]};
        job.layers = reinterpret_cast<const Layer*>(layers.data());
        job.n_layers = int(layers.shape(0));
        job.surround = {mean ? mean->data() : nullptr, scale ? scale->data() : nullptr, middle.data(),
                        half_range.data()};
        job.theta = theta.data();
        job.sigma = sigma;
        job.noise = {seed, generation, purpose};
        job.pair = pair.data();
        job.sign = sign.data();
        job.seed = row_seed.data();
        job.noise_purpose = noise_purpose;
        job.position = position.data();
        job.velocity = velocity.data();
        job.n = int64_t(position.shape(0));
        job.limit = limit;
        job.returns = returns.data();
        job.lengths = lengths.data();
        job.diverged = diverged.data();
        job.sums = sums ? sums->data() : nullptr;
        job.trace = trace ? trace->data() : nullptr;
        job.next_row = &next_row;
        nb::gil_scoped_release release;
        parallel(n_threads, 1, n_threads, [&](int64_t, int64_t) { kernels->episodes(job); });
      },
      nb::arg("description"), nb::arg("rules"), nb::arg("layers"), nb::arg("middle"), nb::arg("half_range"),
      nb::arg("mean").none(), nb::arg("scale").none(), nb::arg("theta"), nb::arg("sigma"), nb::arg("seed"),
      nb::arg("generation"), nb::arg("purpose"), nb::arg("pair"), nb::arg("sign"), nb::arg("row_seed"),
      nb::arg("noise_purpose"), nb::arg("position"), nb::arg("velocity"), nb::arg("limit"), nb::arg("returns"),
      nb::arg("lengths"), nb::arg("diverged"), nb::arg("sums").none(), nb::arg("trace").none(), nb::arg("n_threads"),
      nb::arg("n_lanes"), nb::arg("any_tree"));
}

}  // namespace evergait
