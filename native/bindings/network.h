// A policy's network as Python hands it over: read and checked once, then used by many calls.
#pragma once

#include <vector>

#include "bindings/objects.h"

namespace evergait {

struct PlanarKernels;

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
