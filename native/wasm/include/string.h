// Of memory.cpp, which compilers call by themselves too.
#pragma once

#include <stddef.h>

extern "C" {
void* memcpy(void* to, const void* from, size_t n);
void* memmove(void* to, const void* from, size_t n);
void* memset(void* to, int value, size_t n);
}
