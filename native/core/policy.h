// The policy: dense layers in float32, one candidate at a time. A layer's sum starts at its bias and runs over the
// inputs in order, for all outputs side by side, so the bits do not depend on the width of the vectors.
#pragma once

#include "core/isa.h"
#include "core/noise.h"

namespace evergait::EVERGAIT_ISA {

constexpr int kOutputs = 16;  // outputs computed together; a packed layer is padded to a multiple of it

inline int64_t padded(int64_t n_out) { return (n_out + kOutputs - 1) / kOutputs * kOutputs; }

// Floats that a candidate's packed layers take: per layer (n_in + 1, padded n_out), the bias first.
inline int64_t packed_size(const Network& network) {
  int64_t size = 0;
  for (int l = 0; l < network.n_layers; l++) size += (network.layers[l].n_in + 1) * padded(network.layers[l].n_out);
  return size;
}

// The widest row of numbers between layers.
inline int64_t widest(const Network& network) {
  int64_t width = padded(network.layers[0].n_in);
  for (int l = 0; l < network.n_layers; l++) {
    const int64_t n_out = padded(network.layers[l].n_out);
    width = width < n_out ? n_out : width;
  }
  return width;
}

// Floats that policy_action needs: what goes into a layer and what comes out of it.
inline int64_t scratch_size(const Network& network) { return 2 * widest(network); }

// Writes θ + scale·ε(pair) of the active layers, transposed and padded with zeros. scale = sign·σ; 0 draws nothing.
inline void pack_candidate(const Network& network, const float* theta, float scale, const NoiseKey& key, uint32_t pair,
                           float* packed) {
  for (int l = 0; l < network.n_layers; l++) {
    const Layer& layer = network.layers[l];
    const int64_t width = padded(layer.n_out), n_in = layer.n_in;
    float* weight = packed + width;
    for (int64_t i = 0; i < (n_in + 1) * width; i++) packed[i] = 0.0f;
    auto put_weight = [&](int64_t j, int n, const float* z) {
      int64_t out = (j - layer.weight) / n_in, in = (j - layer.weight) % n_in;
      for (int k = 0; k < n; k++) {
        weight[in * width + out] = z ? theta[j + k] + scale * z[k] : theta[j + k];
        if (++in == n_in) in = 0, out++;
      }
    };
    auto put_bias = [&](int64_t j, int n, const float* z) {
      for (int k = 0; k < n; k++) packed[j - layer.bias + k] = z ? theta[j + k] + scale * z[k] : theta[j + k];
    };
    const int64_t n_weights = layer.n_out * n_in;
    if (scale != 0.0f) {
      for_normals(key, pair, layer.weight, layer.weight + n_weights, put_weight);
      for_normals(key, pair, layer.bias, layer.bias + layer.n_out, put_bias);
    } else {
      put_weight(layer.weight, int(n_weights), nullptr);
      put_bias(layer.bias, int(layer.n_out), nullptr);
    }
    packed += (n_in + 1) * width;
  }
}

// tanh: (e - 1) / (e + 1) with e = exp(2x), and two terms of its series near zero, where that would cancel.
inline double tangent(double x) {
  double y = 2.0 * x;
  y = y > 40.0 ? 40.0 : y;
  y = y < -40.0 ? -40.0 : y;
  const double shift = 0x1.8p52;  // adding it rounds to a whole number and leaves that in the low bits
  double shifted = y * 1.44269504088896340736 + shift;
  double k = shifted - shift;
  double r = y - k * 6.93147180369123816490e-01 - k * 1.90821492927058770002e-10;
  double p = 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  double e = p * bits_to_double((double_to_bits(shifted) + 1023) << 52);
  double t = (e - 1.0) / (e + 1.0);
  double magnitude = x < 0 ? -x : x;
  t = magnitude < 1e-3 ? x - x * x * x * (1.0 / 3) : t;
  return x == x ? t : x;
}

// To the last bit of float32 but for rare ties.
inline float hyperbolic_tangent(float x) { return float(tangent(double(x))); }

// A register's worth of outputs, loaded through the pointer itself: for AVX2, GCC turns a memcpy into two halves on the
// stack.
typedef float OutputVector __attribute__((vector_size(EVERGAIT_VECTOR_BYTES), aligned(4), may_alias));
constexpr int kRegister = EVERGAIT_VECTOR_BYTES / 4;
constexpr int kManyOutputs =
    EVERGAIT_VECTOR_BYTES >= 32 ? 64 : 32;  // enough sums in flight to hide an addition's latency

// Outputs [0, n) of a layer from the columns at `column`; `width` is the distance between rows.
template <int n>
inline __attribute__((always_inline)) void weigh(const float* column, int64_t width, const float* x, int64_t n_in,
                                                 float* y) {
  constexpr int n_sums = n / kRegister;
  OutputVector sum[n_sums];
  for (int s = 0; s < n_sums; s++) sum[s] = reinterpret_cast<const OutputVector*>(column)[s];
  for (int64_t in = 0; in < n_in; in++) {
    column += width;
#pragma GCC unroll 16
    for (int s = 0; s < n_sums; s++) sum[s] += reinterpret_cast<const OutputVector*>(column)[s] * x[in];
  }
  for (int s = 0; s < n_sums; s++) reinterpret_cast<OutputVector*>(y)[s] = sum[s];
}

// y = activation(b + x W); y has room for padded(n_out) floats.
inline void apply_layer(const Layer& layer, const float* packed, const float* x, float* y) {
  const int64_t width = padded(layer.n_out);
  int64_t out = 0;
  for (; out + kManyOutputs <= width; out += kManyOutputs)
    weigh<kManyOutputs>(packed + out, width, x, layer.n_in, y + out);
  for (; out < width; out += kOutputs) weigh<kOutputs>(packed + out, width, x, layer.n_in, y + out);
  if (layer.activation == kRelu)
    for (int64_t i = 0; i < layer.n_out; i++) y[i] = y[i] < 0.0f ? 0.0f : y[i];
  else if (layer.activation == kTanh)
    for (int64_t i = 0; i < layer.n_out; i++) y[i] = hyperbolic_tangent(y[i]);
}

inline void policy_action(const Network& network, const float* packed, const double* observation, float* scratch,
                          float* action) {
  float *x = scratch, *y = scratch + widest(network);
  const int64_t n_observations = network.layers[0].n_in, n_actions = network.layers[network.n_layers - 1].n_out;
  for (int64_t i = 0; i < n_observations; i++)
    x[i] = float(network.mean ? (observation[i] - network.mean[i]) * network.scale[i] : observation[i]);
  for (int l = 0; l < network.n_layers; l++) {
    const Layer& layer = network.layers[l];
    apply_layer(layer, packed, x, y);
    packed += (layer.n_in + 1) * padded(layer.n_out);
    float* read = x;
    x = y, y = read;
  }
  for (int64_t i = 0; i < n_actions; i++) action[i] = network.middle[i] + network.half_range[i] * x[i];
}

}  // namespace evergait::EVERGAIT_ISA
