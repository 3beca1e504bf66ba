// Memory that starts at a cache line.
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include "core/isa.h"

namespace evergait::EVERGAIT_ISA {

// Room for n of T, or null; `free` gives it back.
template <class T>
inline T* allocate(int64_t n) {
  return static_cast<T*>(aligned_alloc(64, (size_t(n) * sizeof(T) + 63) / 64 * 64));
}

}  // namespace evergait::EVERGAIT_ISA
