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

static int64_t size(const Network& network) { return packed_size(network); }

static void pack(const Network& network, const float* theta, float scale, NoiseKey key, uint32_t pair, float* packed) {
  pack_candidate(network, theta, scale, key, pair, packed);
}

static Status act(const Network& network, const float* packed, const double* observations, int64_t n_rows,
                  float* actions) {
  const int64_t n_in = network.layers[0].n_in, n_out = network.layers[network.n_layers - 1].n_out;
  const int64_t n_packed = packed_size(network);
  float* scratch = allocate<float>(scratch_size(network));
  if (!scratch) return kNoMemory;
  for (int64_t row = 0; row < n_rows; row++)
    policy_action(network, packed + row * n_packed, observations + row * n_in, scratch, actions + row * n_out);
  free(scratch);
  return kDone;
}

// Calls work(first, n) for all rows, some at a time.
template <class Work>
static void for_observations(int64_t n_rows, Work work) {
  for (int64_t first = 0; first < n_rows; first += kObservations)
    work(first, n_rows - first < kObservations ? n_rows - first : kObservations);
}

static Status outputs(const Network& network, const double* theta, const double* observations, int64_t n_rows,
                      double* out) {
  const int64_t n_in = network.layers[0].n_in, n_out = network.layers[network.n_layers - 1].n_out;
  const Pass pass = start_pass(network, theta);
  if (!pass.weights) return kNoMemory;
  for_observations(n_rows, [&](int64_t first, int64_t n) {
    const double* y = forward(network, theta, observations + first * n_in, n, pass);
    for (int64_t row = 0; row < n; row++)
      for (int64_t i = 0; i < n_out; i++) out[(first + row) * n_out + i] = y[row * pass.width + i];
  });
  free(pass.weights);
  return kDone;
}

static Status pull_back(const Network& network, const double* theta, const double* observations,
                        const double* cotangents, int64_t n_rows, bool squared, double* gradient) {
  const int64_t n_in = network.layers[0].n_in, n_out = network.layers[network.n_layers - 1].n_out;
  const Pass pass = start_pass(network, theta);
  if (!pass.weights) return kNoMemory;
  for_observations(n_rows, [&](int64_t first, int64_t n) {
    forward(network, theta, observations + first * n_in, n, pass);
    if (squared)
      backward<true>(network, theta, cotangents + first * n_out, n, pass, gradient);
    else
      backward<false>(network, theta, cotangents + first * n_out, n, pass, gradient);
  });
  free(pass.weights);
  return kDone;
}

static Status approach(const Network& network, const double* theta, int64_t n_theta, const float* observations,
                       const float* targets, const uint32_t* rows, int64_t n_rows, double least, double* gradient) {
  const int64_t n_in = network.layers[0].n_in, n_out = network.layers[network.n_layers - 1].n_out;
  const Pass pass = start_pass(network, theta);
  double* const mine = allocate<double>(n_theta + kObservations * (n_in + n_out));
  if (!pass.weights || !mine) {
    free(pass.weights), free(mine);
    return kNoMemory;
  }
  double *seen = mine + n_theta, *errors = seen + kObservations * n_in, largest = 0.0;
  for (int64_t j = 0; j < n_theta; j++) mine[j] = 0.0;
  for_observations(n_rows, [&](int64_t first, int64_t n) {
    for (int64_t row = 0; row < n; row++)
      for (int64_t i = 0; i < n_in; i++) seen[row * n_in + i] = observations[rows[first + row] * n_in + i];
    const double* y = forward(network, theta, seen, n, pass);
    for (int64_t row = 0; row < n; row++)
      for (int64_t i = 0; i < n_out; i++) {
        const double error = targets[rows[first + row] * n_out + i] - y[row * pass.width + i];
        const double size = error < 0.0 ? -error : error;
        largest = size <= largest ? largest : size;  // what is not a number stays
        errors[row * n_out + i] = error / double(n_rows);
      }
    backward<false>(network, theta, errors, n, pass, mine);
  });
  if (!(largest <= least))
    for (int64_t j = 0; j < n_theta; j++) gradient[j] += mine[j];
  free(pass.weights), free(mine);
  return kDone;
}

extern const Kernels kernels = {words, normals, accumulate, size, pack, act, outputs, pull_back, approach};

}  // namespace evergait::EVERGAIT_ISA
