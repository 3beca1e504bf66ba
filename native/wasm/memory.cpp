// What the kernels need of a C library, so that the module needs none: a heap of blocks that double in size, and the
// three functions that a compiler may call by itself.
#include <stddef.h>
#include <stdint.h>

extern "C" {

extern char __heap_base;

namespace {

// A block is 64 bytes of head, which hold its size class, and 64 << size class bytes.
constexpr int kClasses = 24;
constexpr size_t kHead = 64, kPage = 65536;
struct Head {
  int size_class;
  Head* next;
};
Head* freed[kClasses];
uintptr_t top;

}  // namespace

void* aligned_alloc(size_t, size_t n_bytes) {
  int size_class = 0;
  while ((size_t(64) << size_class) < n_bytes) ++size_class;
  if (size_class >= kClasses) return nullptr;
  Head* head = freed[size_class];
  if (head) {
    freed[size_class] = head->next;
  } else {
    if (!top) top = (uintptr_t(&__heap_base) + 63) / 64 * 64;
    head = reinterpret_cast<Head*>(top);
    top += kHead + (size_t(64) << size_class);
    const size_t have = __builtin_wasm_memory_size(0) * kPage;
    if (top > have && __builtin_wasm_memory_grow(0, (top - have + kPage - 1) / kPage) == size_t(-1)) __builtin_trap();
  }
  head->size_class = size_class;
  return reinterpret_cast<char*>(head) + kHead;
}

void* malloc(size_t n_bytes) { return aligned_alloc(64, n_bytes); }

void free(void* memory) {
  if (!memory) return;
  Head* head = reinterpret_cast<Head*>(static_cast<char*>(memory) - kHead);
  head->next = freed[head->size_class];
  freed[head->size_class] = head;
}

void* memcpy(void* to, const void* from, size_t n) { return __builtin_memcpy(to, from, n); }
void* memmove(void* to, const void* from, size_t n) { return __builtin_memmove(to, from, n); }
void* memset(void* to, int value, size_t n) { return __builtin_memset(to, value, n); }
}
