// Plain data shared by the bindings and the kernels, and the table through which they call the kernels of the
// instruction set that this machine has.
#pragma once

#include <stdint.h>

namespace evergait {

constexpr int64_t kMaxWidth = 65536;         // of a layer or an observation
constexpr int64_t kMaxParameters = 8388608;  // of all layers

struct NoiseKey {
  uint64_t seed;
  uint32_t generation;
  uint32_t purpose;  // stage * 256 + purpose
};

enum Activation { kLinear = 0, kRelu = 1, kTanh = 2 };

// Offsets into θ, where the weight is (n_out, n_in) by rows.
struct Layer {
  int64_t weight, bias, n_in, n_out;
  int activation;
};

// The layers that one task uses, normalisation of its observations (null: none) and the range of its actions.
struct Network {
  const Layer* layers;
  int n_layers;
  const double *mean, *scale;
  const float *middle, *half_range;  // not used by `outputs` and `pull_back`
};

// Kernels throw nothing: who calls them says what went wrong.
enum Status { kDone = 0, kNoMemory = 1 };

struct Kernels {
  void (*words)(NoiseKey, uint32_t index, int64_t n, uint32_t* out);
  void (*normals)(NoiseKey, uint32_t index, int64_t begin, int64_t end, float* out);
  // gradient[j] += Σ_p weights[p] ε_p[j] for j in [begin, end), pairs in order.
  void (*accumulate)(NoiseKey, const uint32_t* pairs, const double* weights, int64_t n_pairs, int64_t begin,
                     int64_t end, double* gradient);
  int64_t (*packed_size)(const Network&);  // floats of a candidate
  void (*pack)(const Network&, const float* theta, float scale, NoiseKey, uint32_t pair, float* packed);
  // Actions (n_rows, n_out) of one candidate per row, rows of `packed` packed_size apart.
  Status (*act)(const Network&, const float* packed, const double* observations, int64_t n_rows, float* actions);
  // Outputs of the head (n_rows, n_out) for observations (n_rows, n_in).
  Status (*outputs)(const Network&, const double* theta, const double* observations, int64_t n_rows, double* outputs);
  // gradient[j] += Σ_rows ∂(cotangent · outputs)/∂θ_j, or the sum of its squares; rows in order.
  Status (*pull_back)(const Network&, const double* theta, const double* observations, const double* cotangents,
                      int64_t n_rows, bool squared, double* gradient);
  // gradient[j] -= ∂/∂θ_j of the mean of ½ ‖outputs − targets‖² over these rows of observations and targets (n, n_out);
  // nothing if no error is above `least`. All n_theta numbers of the gradient are written.
  Status (*approach)(const Network&, const double* theta, int64_t n_theta, const float* observations,
                     const float* targets, const uint32_t* rows, int64_t n_rows, double least, double* gradient);
};

namespace baseline { extern const Kernels kernels; }
namespace avx2 { extern const Kernels kernels; }
namespace avx512 { extern const Kernels kernels; }

}  // namespace evergait
