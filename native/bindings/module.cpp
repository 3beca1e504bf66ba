// The module `_native`. This folder alone knows Python: it checks every name, type and shape, lets go of the GIL, and
// writes into arrays that it is given or has just made.
#include <cstdlib>
#include <cstring>

#include "bindings/objects.h"

using namespace evergait;

namespace {

struct Choice {
  const char* isa;
  const Kernels* kernels;
  bool here;
};

// The widest instruction set that this machine has, or the one that the environment variable EVERGAIT_ISA names.
Choice choose_kernels() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  const Choice choices[] = {{"avx512", &avx512::kernels, has_avx512},
                            {"avx2", &avx2::kernels, bool(__builtin_cpu_supports("avx2"))},
                            {"baseline", &baseline::kernels, true}};
#else
  const Choice choices[] = {{"baseline", &baseline::kernels, true}};
#endif
  const char* wanted = std::getenv("EVERGAIT_ISA");
  for (const Choice& choice : choices)
    if (choice.here && (!wanted || !*wanted || !std::strcmp(wanted, choice.isa))) return choice;
  throw std::runtime_error(std::string("EVERGAIT_ISA is '") + wanted + "', which this machine does not have");
}

}  // namespace

NB_MODULE(_native, m) {
  nb::set_leak_warnings(false);  // a network that some cache still holds at the end is no leak
  // Too many threads are the user's mistake: one sentence and no traceback.
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const NoThread& error) {
      PyErr_SetString(nb::module_::import_("evergait.core.errors").attr("EvergaitError").ptr(), error.what());
    }
  });
  const Choice choice = choose_kernels();
  m.attr("ISA") = choice.isa;
  bind_noise(m, choice.kernels);
  bind_policy(m, choice.kernels);
  bind_planar(m, choice.isa);
}
