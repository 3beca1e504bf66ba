// Noise, policy and its derivatives, compiled once per instruction set (see core/isa.h).
#include "kernels.h"

#include "core/gradients.h"
#include "core/policy.h"

namespace evergait::EVERGAIT_ISA {

static void words(NoiseKey key, uint32_t index, int64_t n, uint32_t* out) {
  uint32_t x[4][kBlocks];
  for (int64_t first = 0; 4 * first < n; first += kBlocks) {
    philox(key, index, uint32_t(first), x);
    for (int64_t j = 4 * first; j < n && j < 4 * (first + kBlocks); j++) out[j] = x[j % 4][j / 4 - first];
  }
}

static void normals(NoiseKey key, uint32_t index, int64_t begin, int64_t end, float* out) {
  for_normals(key, index, begin, end, [&](int64_t j, int n, const float* z) {
    for (int i = 0; i < n; i++) out[j - begin + i] = z[i];
  });
}

static void accumulate(NoiseKey key, const uint32_t* pairs, const double* weights, int64_t n_pairs, int64_t begin,
                       int64_t end, double* gradient) {
  accumulate_noise(key, pairs, weights, n_pairs, begin, end, gradient);
}

static int64_t size(const Layer* layers, int n_layers) { return packed_size(layers, n_layers); }

static void pack(const Layer* layers, int n_layers, const float* theta, float scale, NoiseKey key, uint32_t pair,
                 float* packed) {
  pack_candidate(layers, n_layers, theta, scale, key, pair, packed);
}

static void act(const Layer* layers, int n_layers, Surround surround, const float* packed, const double* observation,
                float* action) {
  policy_action(layers, n_layers, surround, packed, observation, action);
}

static int64_t room(const Layer* layers, int n_layers) { return pass_size(layers, n_layers); }

static void outputs(const Layer* layers, int n_layers, Surround surround, const double* theta,
                    const double* observations, int64_t n_rows, double* memory, double* out) {
  const Pass pass = start_pass(layers, n_layers, theta, memory);
  const int64_t n_in = layers[0].n_in, n_out = layers[n_layers - 1].n_out;
  for (int64_t row = 0; row < n_rows; row++) {
    const double* y = forward(layers, n_layers, surround, theta, observations + row * n_in, pass);
    for (int64_t i = 0; i < n_out; i++) out[row * n_out + i] = y[i];
  }
}

static void pull_back(const Layer* layers, int n_layers, Surround surround, const double* theta,
                      const double* observations, const double* cotangents, int64_t n_rows, bool squared,
                      double* memory, double* gradient) {
  const Pass pass = start_pass(layers, n_layers, theta, memory);
  const int64_t n_in = layers[0].n_in, n_out = layers[n_layers - 1].n_out;
  for (int64_t row = 0; row < n_rows; row++) {
    forward(layers, n_layers, surround, theta, observations + row * n_in, pass);
    if (squared)
      backward<true>(layers, n_layers, theta, cotangents + row * n_out, pass, gradient);
    else
      backward<false>(layers, n_layers, theta, cotangents + row * n_out, pass, gradient);
  }
}

extern const Kernels kernels = {words, normals, accumulate, size, pack, act, room, outputs, pull_back};

}  // namespace evergait::EVERGAIT_ISA
