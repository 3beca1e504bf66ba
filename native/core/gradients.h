// Derivatives of the policy, in double precision, some observations at a time. Every sum runs in the order of its
// terms: what moves together are independent numbers, so the bits depend neither on the width of the vectors nor on how
// many observations there are at a time.
#pragma once

#include "core/lanes.h"
#include "core/policy.h"

namespace evergait::EVERGAIT_ISA {

constexpr int kTile = 8;                             // rows of a product in flight, to hide an addition's latency
constexpr int kDoubles = EVERGAIT_VECTOR_BYTES / 8;  // in a register
constexpr int64_t kObservations = 32;                // at a time: what lies between the layers stays near the processor

// Entry (i, k) is values[i * row + k * column].
struct Factor {
  const double* values;
  int64_t row, column;
};

template <int W>
struct Unaligned {
  typedef double Value __attribute__((vector_size(8 * W), aligned(8), may_alias));
};

// sum[i][j] += Σ_k a[i][k] b[k][j] for n rows i and W columns j, or the products' squares; k in order.
template <bool squared, int n, int W>
EVERGAIT_INLINE void multiply_tile(Factor a, const double* b, int64_t b_row, int64_t n_k, double* sum,
                                   int64_t sum_row) {
  using V = typename Unaligned<W>::Value;
  V tile[n];
  for (int i = 0; i < n; i++) tile[i] = *reinterpret_cast<const V*>(sum + i * sum_row);
  for (int64_t k = 0; k < n_k; k++) {
    const V factor = *reinterpret_cast<const V*>(b + k * b_row);
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
      const V product = factor * a.values[i * a.row + k * a.column];
      tile[i] += squared ? product * product : product;
    }
  }
  for (int i = 0; i < n; i++) *reinterpret_cast<V*>(sum + i * sum_row) = tile[i];
}

// The same for n rows and n_j columns: as many as fit in a register, then half as many, and so on.
template <bool squared, int n, int W = kDoubles>
inline void multiply_rows(Factor a, const double* b, int64_t b_row, int64_t n_j, int64_t n_k, double* sum,
                          int64_t sum_row) {
  int64_t j = 0;
  for (; j + W <= n_j; j += W) multiply_tile<squared, n, W>(a, b + j, b_row, n_k, sum + j, sum_row);
  if constexpr (W > 1) multiply_rows<squared, n, W / 2>(a, b + j, b_row, n_j - j, n_k, sum + j, sum_row);
}

// The same for (n_i, n_j) sums.
template <bool squared, int n = kTile>
inline void multiply(Factor a, const double* b, int64_t b_row, int64_t n_i, int64_t n_j, int64_t n_k, double* sum,
                     int64_t sum_row) {
  for (; n_i >= n; n_i -= n, a.values += n * a.row, sum += n * sum_row)
    multiply_rows<squared, n>(a, b, b_row, n_j, n_k, sum, sum_row);
  if constexpr (n > 1) multiply<squared, n / 2>(a, b, b_row, n_i, n_j, n_k, sum, sum_row);
}

// What one pass needs: transposed weights of all layers; per observation, the values between layers and two rows of
// derivatives.
struct Pass {
  int64_t width;  // distance between rows of values
  double *weights, *values, *ahead, *behind;

  double* between(int layer) const { return values + layer * kObservations * width; }
};

// Null in `weights` if there is no memory for it; `free(pass.weights)` gives it back.
inline Pass start_pass(const Network& network, const double* theta) {
  int64_t n_weights = 0;
  for (int l = 0; l < network.n_layers; l++) n_weights += network.layers[l].n_in * network.layers[l].n_out;
  const int64_t width = widest(network), block = kObservations * width;
  double* const memory = allocate<double>(n_weights + (network.n_layers + 3) * block);
  if (!memory) return Pass{};
  double* const values = memory + n_weights;
  double* const ahead = values + (network.n_layers + 1) * block;
  double* transposed = memory;
  for (int l = 0; l < network.n_layers; l++) {
    const Layer& layer = network.layers[l];
    for (int64_t out = 0; out < layer.n_out; out++)
      for (int64_t in = 0; in < layer.n_in; in++)
        transposed[in * layer.n_out + out] = theta[layer.weight + out * layer.n_in + in];
    transposed += layer.n_in * layer.n_out;
  }
  return Pass{width, memory, values, ahead, ahead + block};
}

// Fills pass.values for n observations; what comes back are the head's outputs, in rows pass.width apart.
inline const double* forward(const Network& network, const double* theta, const double* observations, int64_t n,
                             const Pass& pass) {
  const int64_t n_observations = network.layers[0].n_in;
  for (int64_t row = 0; row < n; row++, observations += n_observations) {
    double* x = pass.values + row * pass.width;
    for (int64_t i = 0; i < n_observations; i++)
      x[i] = network.mean ? (observations[i] - network.mean[i]) * network.scale[i] : observations[i];
  }
  const double* weight = pass.weights;
  for (int l = 0; l < network.n_layers; l++) {
    const Layer& layer = network.layers[l];
    const int64_t n_in = layer.n_in, n_out = layer.n_out;
    double* const y = pass.between(l + 1);
    for (int64_t row = 0; row < n; row++)
      for (int64_t out = 0; out < n_out; out++) y[row * pass.width + out] = theta[layer.bias + out];
    multiply<false>(Factor{pass.between(l), pass.width, 1}, weight, n_out, n, n_out, n_in, y, pass.width);
    weight += n_in * n_out;
    for (int64_t row = 0; row < n; row++) {
      double* values = y + row * pass.width;
      if (layer.activation == kRelu)
        for (int64_t out = 0; out < n_out; out++) values[out] = values[out] < 0.0 ? 0.0 : values[out];
      else if (layer.activation == kTanh)
        for (int64_t out = 0; out < n_out; out++) values[out] = tangent(values[out]);
    }
  }
  return pass.between(network.n_layers);
}

// Adds the derivatives of cotangent · outputs by θ, or their squares, to the gradient; after `forward`.
template <bool squared>
inline void backward(const Network& network, const double* theta, const double* cotangents, int64_t n, Pass pass,
                     double* gradient) {
  const int last = network.n_layers - 1;
  const int64_t width = pass.width, n_outputs = network.layers[last].n_out;
  for (int64_t row = 0; row < n; row++)
    for (int64_t out = 0; out < n_outputs; out++) pass.ahead[row * width + out] = cotangents[row * n_outputs + out];
  for (int l = last; l >= 0; l--) {
    const Layer& layer = network.layers[l];
    const int64_t n_in = layer.n_in, n_out = layer.n_out;
    const double *x = pass.between(l), *y = pass.between(l + 1);
    double *ahead = pass.ahead, *behind = pass.behind;
    for (int64_t row = 0; row < n; row++) {
      for (int64_t i = row * width; i < row * width + n_out; i++) {
        if (layer.activation == kRelu)
          ahead[i] = y[i] > 0.0 ? ahead[i] : 0.0;
        else if (layer.activation == kTanh)
          ahead[i] *= 1.0 - y[i] * y[i];
      }
      for (int64_t out = 0; out < n_out; out++) {
        const double slope = ahead[row * width + out];
        gradient[layer.bias + out] += squared ? slope * slope : slope;
      }
    }
    multiply<squared>(Factor{ahead, 1, width}, x, width, n_out, n_in, n, gradient + layer.weight, n_in);
    if (l > 0) {
      for (int64_t row = 0; row < n; row++)
        for (int64_t in = 0; in < n_in; in++) behind[row * width + in] = 0.0;
      multiply<false>(Factor{ahead, width, 1}, theta + layer.weight, n_in, n, n_in, n_out, behind, width);
    }
    pass.ahead = behind, pass.behind = ahead;
  }
}

}  // namespace evergait::EVERGAIT_ISA
