// NumPy arrays as functions take them: contiguous, of exactly this type, read (In) or written (Out).
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

namespace evergait {

template <class T, int N>
using In = nb::ndarray<const T, nb::numpy, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N>
using Out = nb::ndarray<T, nb::numpy, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

template <class T>
using In1 = In<T, 1>;
template <class T>
using In2 = In<T, 2>;
template <class T>
using Out1 = Out<T, 1>;
template <class T>
using Out2 = Out<T, 2>;
template <class T>
using Out3 = Out<T, 3>;

}  // namespace evergait
