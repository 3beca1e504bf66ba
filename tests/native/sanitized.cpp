// Small cases of every kernel, and descriptions with one wrong number, for the address and undefined-behaviour
// sanitizers. Every array has exactly the size that it must have, so that a step beyond it is seen.
//
// ./a.out (description.bin rules.bin)...
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <vector>

#include "planar/description.h"

using namespace evergait;

static uint64_t state = 88172645463325252u;
static uint64_t word() {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}
static double uniform() { return double(word() >> 11) * 0x1p-53; }

template <class T>
static std::vector<T> filled(size_t n, double size) {
  std::vector<T> numbers(n);
  for (T& x : numbers) x = T(size * (2 * uniform() - 1));
  return numbers;
}

static void expect(bool fine, const char* what) {
  if (fine) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static const Kernels& kernels = baseline::kernels;
static const NoiseKey key = {7, 1, 2};

static void draw() {
  for (int n : {0, 1, 3, 127, 128, 129, 1000}) {
    std::vector<uint32_t> words(n);
    kernels.words(key, 1, n, words.data());
    for (int begin : {0, 1, 5, 126}) {
      std::vector<float> normals(n);
      kernels.normals(key, 2, begin, begin + n, normals.data());
      std::vector<double> gradient(begin + n), weights = {0.5, -2.0};
      const std::vector<uint32_t> pairs = {3, 9};
      kernels.accumulate(key, pairs.data(), weights.data(), 2, begin, begin + n, gradient.data());
    }
  }
}

struct Owner {
  std::vector<Layer> layers;
  std::vector<double> mean, scale;
  std::vector<float> middle, half_range;
  int64_t n_theta = 0;

  explicit Owner(const std::vector<int64_t>& widths) {
    for (size_t l = 0; l + 1 < widths.size(); ++l) {
      layers.push_back({n_theta, n_theta + widths[l] * widths[l + 1], widths[l], widths[l + 1], int(l % 3)});
      n_theta = layers[l].bias + widths[l + 1];
    }
    mean = filled<double>(widths.front(), 1), scale = filled<double>(widths.front(), 1);
    middle = filled<float>(widths.back(), 1), half_range = filled<float>(widths.back(), 1);
  }
  Network view() const {
    return {layers.data(), int(layers.size()), mean.data(), scale.data(), middle.data(), half_range.data()};
  }
};

static void act(const std::vector<int64_t>& widths) {
  const Owner owner(widths);
  const Network network = owner.view();
  expect(!check_layers(network, owner.n_theta), "a right network is refused");
  expect(bool(check_layers(network, owner.n_theta - 1)), "a network beyond its parameters is accepted");
  const int64_t n = 35, n_in = widths.front(), n_out = widths.back(), size = kernels.packed_size(network);
  const auto theta = filled<float>(owner.n_theta, 0.1);
  std::vector<float> packed(n * size), actions(n * n_out);
  for (int64_t row = 0; row < n; ++row)
    kernels.pack(network, theta.data(), float(row - 1), key, uint32_t(row), packed.data() + row * size);
  const auto seen = filled<double>(n * n_in, 1);
  expect(kernels.act(network, packed.data(), seen.data(), n, actions.data()) == kDone, "act");
  const auto exact = filled<double>(owner.n_theta, 0.1), pulls = filled<double>(n * n_out, 1);
  std::vector<double> outputs(n * n_out), gradient(owner.n_theta);
  expect(kernels.outputs(network, exact.data(), seen.data(), n, outputs.data()) == kDone, "outputs");
  for (bool squared : {false, true})
    expect(kernels.pull_back(network, exact.data(), seen.data(), pulls.data(), n, squared, gradient.data()) == kDone,
           "pull_back");
  const auto few = filled<float>(n * n_in, 1), wanted = filled<float>(n * n_out, 1);
  std::vector<uint32_t> rows(2 * n + 1);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = uint32_t(i * 7 % n);
  expect(kernels.approach(network, exact.data(), owner.n_theta, few.data(), wanted.data(), rows.data(),
                          int64_t(rows.size()), 0.0, gradient.data()) == kDone,
         "approach");
}

static void step(const PlanarModel& model, int n_lanes, int64_t n, int n_frames, double size) {
  auto position = filled<double>(n * model.n_dof, size), velocity = filled<double>(n * model.n_dof, 5 * size);
  const auto control = filled<double>(n * model.n_actuators, 1.5);
  const StepJob job = {{&model, n_lanes, false}, 0, n, n_frames, position.data(), velocity.data(), control.data()};
  expect(baseline::planar_kernels.step(job) == kDone, "step");
}

static void fly(const PlanarModel& model, const TaskRules& rules, int n_lanes) {
  const Owner owner({observation_size(rules, model), 21, model.n_actuators});
  const auto theta = filled<float>(owner.n_theta, 0.3);
  const int64_t n = 7, n_seen = owner.layers[0].n_in;
  const int limit = 12;
  const std::vector<uint32_t> pair = {0, 0, 1, 1, 2, 2, 3}, seed = {1, 2, 3, 4, 5, 6, 7};
  const std::vector<float> sign = {1, -1, 1, -1, 1, -1, 0};
  auto position = filled<double>(n * model.n_dof, 0.01), velocity = filled<double>(n * model.n_dof, 0.01);
  std::vector<double> returns(n), sums(n * 2 * n_seen), trace(n * (limit + 1) * model.n_dof);
  for (int64_t row = 0; row < n; ++row)
    for (int i = 0; i < model.n_dof; ++i) position[row * model.n_dof + i] += model.dof[i].sign * model.dof[i].reference;
  std::vector<int32_t> lengths(n);
  std::vector<uint8_t> diverged(n);
  int64_t next_row = 0;
  const EpisodeJob job = {{&model, n_lanes, false},
                          rules,
                          owner.view(),
                          theta.data(),
                          0,
                          0.1f,
                          key,
                          pair.data(),
                          sign.data(),
                          seed.data(),
                          position.data(),
                          velocity.data(),
                          n,
                          limit,
                          4,
                          returns.data(),
                          lengths.data(),
                          diverged.data(),
                          sums.data(),
                          trace.data(),
                          &next_row};
  expect(baseline::planar_kernels.episodes(job) == kDone, "episodes");
  for (int64_t row = 0; row < n; ++row) expect(lengths[row] >= 1 && lengths[row] <= limit, "a length");
}

// One number is wrong, or some at the end are missing: refused, or harmless.
static long damage(const std::vector<double>& description) {
  const double wrong[] = {-1, 0, 1, 2, 3, 16, 17, 49, 0.5, -1e9, 1e9, 1e300, __builtin_nan(""), __builtin_inf()};
  static PlanarModel model;
  long n_refused = 0;
  for (size_t i = 0; i < description.size(); ++i)
    for (double value : wrong) {
      std::vector<double> damaged = description;
      damaged[i] = value;
      if (read_model(damaged.data(), int64_t(damaged.size()), model))
        ++n_refused;
      else if (word() % 16 == 0)
        step(model, 2, 3, 1, 1.0);
    }
  for (size_t n = 0; n < description.size(); ++n) {
    const std::vector<double> part(description.begin(), description.begin() + long(n));
    expect(bool(read_model(part.data(), int64_t(n), model)), "a description with missing numbers is accepted");
  }
  return n_refused;
}

static std::vector<double> load(const char* path) {
  std::vector<double> numbers(10000);
  FILE* file = fopen(path, "rb");
  expect(file != nullptr, path);
  numbers.resize(fread(numbers.data(), 8, numbers.size(), file));
  fclose(file);
  return numbers;
}

int main(int argc, char** argv) {
  draw();
  for (const std::vector<int64_t>& widths :
       {std::vector<int64_t>{1, 1}, {11, 64, 64, 3}, {600, 17}, {17, 5000, 2}, {3, 513, 33, 65}})
    act(widths);
  long n_refused = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::vector<double> description = load(argv[i]), numbers = load(argv[i + 1]);
    static PlanarModel model;
    TaskRules rules;
    expect(!read_model(description.data(), int64_t(description.size()), model), "a right robot is refused");
    expect(!read_rules(numbers.data(), int64_t(numbers.size()), model, rules), "right rules are refused");
    for (int n_lanes : {1, 2}) step(model, n_lanes, 9, 8, 2.0), fly(model, rules, n_lanes);
    n_refused += damage(description);
  }
  printf("%ld\n", n_refused);
}
