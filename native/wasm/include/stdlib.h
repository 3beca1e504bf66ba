// The heap of memory.cpp.
#pragma once

#include <stddef.h>

extern "C" {
void* malloc(size_t n_bytes);
void* aligned_alloc(size_t alignment, size_t n_bytes);
void free(void* memory);
}
