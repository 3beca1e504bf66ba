// The planar engine as Python sees it; like bindings.cpp, it trusts its arguments and lets go of the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstring>

#include "planar_kernels.h"
#include "threads.h"

namespace nb = nanobind;

namespace evergait {

template <class T>
using In1 = nb::ndarray<const T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out2 = nb::ndarray<T, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void bind_planar(nb::module_& m, const char* isa) {
  const PlanarKernels* kernels = &baseline::planar_kernels;
#if defined(__x86_64__)
  if (!std::strcmp(isa, "avx2")) kernels = &avx2::planar_kernels;
  if (!std::strcmp(isa, "avx512")) kernels = &avx512::planar_kernels;
#endif

  m.def(
      "planar_step",
      [kernels](In1<double> description, Out2<double> position, Out2<double> velocity, In2<double> control, int n_frames,
                int n_threads, int n_lanes, bool any_tree) {
        nb::gil_scoped_release release;
        parallel(int64_t(position.shape(0)), 64, n_threads, [&](int64_t begin, int64_t end) {
          kernels->step({{description.data(), n_lanes, any_tree}, begin, end, n_frames, position.data(), velocity.data(),
                         control.data()});
        });
      },
      nb::arg("description"), nb::arg("position"), nb::arg("velocity"), nb::arg("control"), nb::arg("n_frames"),
      nb::arg("n_threads"), nb::arg("n_lanes"), nb::arg("any_tree"));
}

}  // namespace evergait
