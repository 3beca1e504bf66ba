// Plain data shared by the bindings and the kernels, and the table through which they call the kernels of the
// instruction set that this machine has.
#pragma once

#include <stdint.h>

namespace evergait {

struct NoiseKey {
  uint64_t seed;
  uint32_t generation;
  uint32_t purpose;  // stage * 256 + purpose
};

// A row of Network.layers (engines/base.py): offsets into θ, where the weight is (n_out, n_in) by rows.
struct Layer {
  int64_t weight, bias, n_in, n_out, activation;
};

// What surrounds the layers: normalisation of observations (null: none) and the range of actions (n_out of the head).
struct Surround {
  const double *mean, *scale;
  const float *middle, *half_range;
};

constexpr int kMaxWidth = 512;  // of a layer or an observation

struct Kernels {
  void (*words)(NoiseKey, uint32_t index, int64_t n, uint32_t* out);
  void (*normals)(NoiseKey, uint32_t index, int64_t begin, int64_t end, float* out);
  // gradient[j] += Σ_p weights[p] ε_p[j] for j in [begin, end), pairs in order.
  void (*accumulate)(NoiseKey, const uint32_t* pairs, const double* weights, int64_t n_pairs, int64_t begin,
                     int64_t end, double* gradient);
  int64_t (*packed_size)(const Layer*, int n_layers);
  void (*pack)(const Layer*, int n_layers, const float* theta, float scale, NoiseKey, uint32_t pair, float* packed);
  void (*act)(const Layer*, int n_layers, Surround, const float* packed, const double* observation, float* action);
  int64_t (*pass_size)(const Layer*, int n_layers);
  // Outputs of the head (n_rows, n_out) for observations (n_rows, n_in); `memory` has room for pass_size doubles.
  void (*outputs)(const Layer*, int n_layers, Surround, const double* theta, const double* observations, int64_t n_rows,
                  double* memory, double* outputs);
  // gradient[j] += Σ_rows ∂(cotangent · outputs)/∂θ_j, or the sum of its squares; rows in order.
  void (*pull_back)(const Layer*, int n_layers, Surround, const double* theta, const double* observations,
                    const double* cotangents, int64_t n_rows, bool squared, double* memory, double* gradient);
};

namespace baseline { extern const Kernels kernels; }
namespace avx2 { extern const Kernels kernels; }
namespace avx512 { extern const Kernels kernels; }

}  // namespace evergait
