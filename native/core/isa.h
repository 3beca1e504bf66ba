// Every kernel file is compiled once per instruction set, inside a namespace of that name, and one of them is picked
// when the module loads. Kernel files use no standard templates: the linker keeps one copy of an inline function, and
// an AVX-512 copy of std::vector must never serve an older machine. They keep to IEEE + - * / sqrt in a fixed order,
// so that all instruction sets give the same bits.
#pragma once

#include <stdint.h>
#include <stdlib.h>

#ifndef EVERGAIT_ISA
#define EVERGAIT_ISA baseline
#endif

// Bytes in a vector register; the code is written for any power of two.
#if defined(__AVX512F__)
#define EVERGAIT_VECTOR_BYTES 64
#elif defined(__AVX__)
#define EVERGAIT_VECTOR_BYTES 32
#else
#define EVERGAIT_VECTOR_BYTES 16
#endif

namespace evergait::EVERGAIT_ISA {

// Memory that starts at a cache line: room for n of T, or null; `free` gives it back.
template <class T>
inline T* allocate(int64_t n) {
  return static_cast<T*>(aligned_alloc(64, (size_t(n) * sizeof(T) + 63) / 64 * 64));
}

}  // namespace evergait::EVERGAIT_ISA
