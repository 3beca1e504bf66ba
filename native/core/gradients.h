// Derivatives of the policy, in double precision, one observation after another. No sum is split or reordered: the
// inner loops run over independent numbers, so the bits do not depend on the width of the vectors.
#pragma once

#include "core/policy.h"

namespace evergait::EVERGAIT_ISA {

// What one pass needs: transposed weights of all layers, the values between layers, and two rows of derivatives.
struct Pass {
  int64_t width;  // distance between rows of values
  double *weights, *values, *ahead, *behind;
};

// Null in `weights` if there is no memory for it; `free(pass.weights)` gives it back.
inline Pass start_pass(const Network& network, const double* theta) {
  int64_t n_weights = 0;
  for (int l = 0; l < network.n_layers; l++) n_weights += network.layers[l].n_in * network.layers[l].n_out;
  const int64_t width = widest(network);
  double* const memory = allocate<double>(n_weights + (network.n_layers + 3) * width);
  if (!memory) return Pass{};
  double* const values = memory + n_weights;
  double* const ahead = values + (network.n_layers + 1) * width;
  double* transposed = memory;
  for (int l = 0; l < network.n_layers; l++) {
    const Layer& layer = network.layers[l];
    for (int64_t out = 0; out < layer.n_out; out++)
      for (int64_t in = 0; in < layer.n_in; in++)
        transposed[in * layer.n_out + out] = theta[layer.weight + out * layer.n_in + in];
    transposed += layer.n_in * layer.n_out;
  }
  return Pass{width, memory, values, ahead, ahead + width};
}

// y += a x over n numbers.
inline void add_scaled(double a, const double* __restrict x, int64_t n, double* __restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

inline void add_squares(double a, const double* __restrict x, int64_t n, double* __restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] += (a * x[i]) * (a * x[i]);
}

// Fills pass.values; the last row is the head's outputs.
inline const double* forward(const Network& network, const double* theta, const double* observation, const Pass& pass) {
  double *x = pass.values, *y = x;
  const double* weight = pass.weights;
  for (int64_t i = 0; i < network.layers[0].n_in; i++)
    x[i] = network.mean ? (observation[i] - network.mean[i]) * network.scale[i] : observation[i];
  for (int l = 0; l < network.n_layers; l++, x = y) {
    const Layer& layer = network.layers[l];
    y = x + pass.width;
    for (int64_t out = 0; out < layer.n_out; out++) y[out] = theta[layer.bias + out];
    for (int64_t in = 0; in < layer.n_in; in++, weight += layer.n_out) add_scaled(x[in], weight, layer.n_out, y);
    if (layer.activation == kRelu)
      for (int64_t out = 0; out < layer.n_out; out++) y[out] = y[out] < 0.0 ? 0.0 : y[out];
    else if (layer.activation == kTanh)
      for (int64_t out = 0; out < layer.n_out; out++) y[out] = tangent(y[out]);
  }
  return y;
}

// Adds the derivative of cotangent · outputs by θ, or its square, to the gradient; after `forward`.
template <bool squared>
inline void backward(const Network& network, const double* theta, const double* cotangent, Pass pass,
                     double* gradient) {
  const int last = network.n_layers - 1;
  for (int64_t out = 0; out < network.layers[last].n_out; out++) pass.ahead[out] = cotangent[out];
  for (int l = last; l >= 0; l--) {
    const Layer& layer = network.layers[l];
    const double *x = pass.values + l * pass.width, *y = x + pass.width;
    double* ahead = pass.ahead;
    if (layer.activation == kRelu)
      for (int64_t out = 0; out < layer.n_out; out++) ahead[out] = y[out] > 0.0 ? ahead[out] : 0.0;
    else if (layer.activation == kTanh)
      for (int64_t out = 0; out < layer.n_out; out++) ahead[out] *= 1.0 - y[out] * y[out];
    for (int64_t in = 0; in < layer.n_in; in++) pass.behind[in] = 0.0;
    for (int64_t out = 0; out < layer.n_out; out++) {
      if (ahead[out] == 0.0) continue;
      double* row = gradient + layer.weight + out * layer.n_in;
      if (squared)
        add_squares(ahead[out], x, layer.n_in, row);
      else
        add_scaled(ahead[out], x, layer.n_in, row);
      gradient[layer.bias + out] += squared ? ahead[out] * ahead[out] : ahead[out];
      if (l > 0) add_scaled(ahead[out], theta + layer.weight + out * layer.n_in, layer.n_in, pass.behind);
    }
    pass.ahead = pass.behind;
    pass.behind = ahead;
  }
}

}  // namespace evergait::EVERGAIT_ISA
