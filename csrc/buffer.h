#pragma once

#include <cstdlib>
#include <cstring>
#include <new>

#include "recurra/kernels/namespace.h"

// Memory and its filling, in the namespace of the instruction set. Not std::vector, std::fill and std::copy: they are
// templates outside of it, of which the linker keeps one copy for all sets, possibly one that this machine cannot run.
namespace recurra {
inline namespace RECURRA_ISA {

// Zeros.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(long count) { allocate(count); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }

  void allocate(long count) {
    std::free(data_);
    // Whole cache lines, so that no vector of a packed panel lies across two.
    const std::size_t line = 64, bytes = (static_cast<std::size_t>(count) * sizeof(T) / line + 1) * line;
    data_ = static_cast<T*>(std::aligned_alloc(line, bytes));
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(data_, 0, bytes);
  }
  bool empty() const { return data_ == nullptr; }
  T* data() { return data_; }
  const T* data() const { return data_; }

 private:
  T* data_ = nullptr;
};

template <class T>
inline void copy_of(const T* from, long count, T* to) {
  if (count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
}

template <class T>
inline void clear(T* to, long count) {
  if (count > 0) std::memset(to, 0, static_cast<std::size_t>(count) * sizeof(T));  // all bits 0 are 0.0
}

constexpr long least(long a, long b) { return a < b ? a : b; }
constexpr long greatest(long a, long b) { return a > b ? a : b; }

}  // namespace RECURRA_ISA
}  // namespace recurra
