// Steps robots from wild states, for the address and undefined-behaviour sanitizers; and prints a hash of what came
// out, which must not depend on the compiler, the machine or the number of lanes.
//
// ./a.out description.bin n_dofs n_actuators n_rows n_rounds n_lanes
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "planar/description.h"

using namespace evergait;

static uint64_t state = 88172645463325252u;
static double uniform() {  // xorshift64: the numbers must be the same everywhere
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return double(state >> 11) * 0x1p-53;
}

// Mostly robots, some nonsense.
static double wild(double size) {
  const double kind = uniform(), x = size * (2 * uniform() - 1);
  if (kind > 0.002) return x;
  if (kind > 0.0015) return x * 1e6;
  if (kind > 0.001) return x * 1e300;
  if (kind > 0.0005) return __builtin_nan("");
  return __builtin_inf();
}

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const int n_dofs = atoi(argv[2]), n_actuators = atoi(argv[3]), n_rows = atoi(argv[4]), n_rounds = atoi(argv[5]);
  std::vector<double> description(100000);
  FILE* file = fopen(argv[1], "rb");
  if (!file) return 2;
  const size_t n_numbers = fread(description.data(), 8, description.size(), file);
  fclose(file);
  static PlanarModel model;
  if (read_model(description.data(), int64_t(n_numbers), model)) return 2;
  std::vector<double> position(n_rows * n_dofs), velocity(n_rows * n_dofs), control(n_rows * n_actuators);
  uint64_t hash = 1469598103934665603u;
  long n_finite = 0;
  for (int round = 0; round < n_rounds; ++round) {
    for (double& x : position) x = wild(2.0);
    for (double& x : velocity) x = wild(10.0);
    for (double& x : control) x = wild(1.5);
    for (int step = 0; step < 10; ++step) {
      baseline::planar_kernels.step(
          {{&model, atoi(argv[6]), round % 2 == 1}, 0, n_rows, 4, position.data(), velocity.data(), control.data()});
      for (const std::vector<double>* part : {&position, &velocity})
        for (double x : *part) {
          uint64_t bits = 0;
          if (x - x == 0.0) memcpy(&bits, &x, 8), ++n_finite;  // NaN has many spellings
          hash = (hash ^ bits) * 1099511628211u;
        }
    }
  }
  printf("%016llx %ld\n", (unsigned long long)hash, n_finite);
}
