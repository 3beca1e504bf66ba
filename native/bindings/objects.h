// Arrays, numbers and networks from Python: by name, of exactly the type and shape that the kernels take. Whatever does
// not fit is a ValueError or TypeError that says which name, what it is and what would be right.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <initializer_list>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "checks.h"
#include "core/threads.h"

namespace nb = nanobind;

namespace evergait {

// Contiguous arrays, read (In) or written (Out).
template <class T, int N>
using In = nb::ndarray<const T, nb::numpy, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N>
using Out = nb::ndarray<T, nb::numpy, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

[[noreturn]] void refuse(const std::string& where, const std::string& is, const std::string& right);
void raise_if(const Problem& problem, const std::string& where);
void require_range(const char* name, int64_t value, int64_t low, int64_t high);
void require_threads(int n_threads);
void require_shape(const std::string& name, const size_t* shape, size_t n_dims, std::initializer_list<int64_t> right);
[[noreturn]] void refuse_type(const std::string& where, nb::handle value, const char* type, int n_dims, bool written);
// What a kernel's status means to Python.
void raise_status(Status status);

template <class Array>
void require_shape(const std::string& name, const Array& array, std::initializer_list<int64_t> right) {
  require_shape(name, reinterpret_cast<const size_t*>(array.shape_ptr()), array.ndim(), right);
}

template <class T>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<T, float>) return "float32";
  if constexpr (std::is_same_v<T, double>) return "float64";
  if constexpr (std::is_same_v<T, int32_t>) return "int32";
  if constexpr (std::is_same_v<T, uint32_t>) return "uint32";
  if constexpr (std::is_same_v<T, uint64_t>) return "uint64";
  return "uint8";
}

// The members of a Python object, read by name.
class Members {
 public:
  Members(nb::handle object, std::string where) : object_(nb::borrow(object)), where_(std::move(where)) {}

  std::string path(const char* name) const { return where_ + "." + name; }
  nb::object get(const char* name) const;
  Members members(const char* name) const { return {get(name), path(name)}; }
  int64_t integer(const char* name, int64_t low, int64_t high) const;
  uint64_t word(const char* name) const;  // of 64 bits
  double number(const char* name) const;
  bool flag(const char* name) const;
  std::string text(const char* name) const;

  template <class T, int N>
  In<T, N> in(const char* name) const {
    return array<In<T, N>>(get(name), name, type_name<T>(), N, false);
  }
  template <class T, int N>
  Out<T, N> out(const char* name) const {
    return array<Out<T, N>>(get(name), name, type_name<T>(), N, true);
  }
  template <class T, int N>
  std::optional<In<T, N>> maybe_in(const char* name) const {
    return get(name).is_none() ? std::nullopt : std::optional(in<T, N>(name));
  }
  template <class T, int N>
  std::optional<Out<T, N>> maybe_out(const char* name) const {
    return get(name).is_none() ? std::nullopt : std::optional(out<T, N>(name));
  }

 private:
  template <class Array>
  Array array(nb::object value, const char* name, const char* type, int n_dims, bool written) const {
    Array found;  // never a converted copy: what is written would be lost
    if (!nb::try_cast<Array>(value, found, false)) refuse_type(path(name), value, type, n_dims, written);
    return found;
  }

  nb::object object_;
  std::string where_;
};

NoiseKey read_noise(const Members& noise);

// A new array of n numbers.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> make_array(int64_t n) {
  T* data = new T[size_t(n > 0 ? n : 1)];
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size_t(n)}, owner);
}

struct PlanarKernels;

// A policy's network as Python hands it over: read and checked once, then used by many calls.
class NetworkHandle {
 public:
  explicit NetworkHandle(nb::handle network);  // `Network` of Python, by its fields
  NetworkHandle(const NetworkHandle&) = delete;

  Network view() const;
  int64_t n_in() const { return layers_.front().n_in; }
  int64_t n_out() const { return layers_.back().n_out; }
  void require_theta(const char* name, size_t n) const;

 private:
  std::vector<Layer> layers_;
  std::optional<In<double, 1>> mean_, scale_;
  In<float, 1> middle_, half_range_;
};

// θ + sign·σ·ε(pair), one candidate per row.
struct Candidates {
  explicit Candidates(const Members& candidates);
  int64_t size() const { return int64_t(pair.size()); }

  nb::object owner;
  const NetworkHandle& network;
  In<float, 1> theta;
  float sigma;
  NoiseKey noise;
  In<uint32_t, 1> pair;
  In<float, 1> sign;
};

void bind_noise(nb::module_& m, const Kernels* kernels);
void bind_policy(nb::module_& m, const Kernels* kernels);
void bind_planar(nb::module_& m, const char* isa);
void bind_vector(nb::module_& m, const PlanarKernels* kernels);

}  // namespace evergait
