#pragma once

#include <cstring>

#include "memory.h"
#include "recurra/kernels/namespace.h"

// Scratch memory and its filling, in the namespace of the instruction set. Not std::vector, std::fill and std::copy:
// they are templates outside of it, of which the linker keeps one copy for all sets, possibly one that this machine
// cannot run.
namespace recurra {
inline namespace RECURRA_ISA {

// The scratch memory of one call: pieces that live as long as this does. Not cleared.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    for (int i = 0; i < count_; ++i) give_block(pieces_[i].at, pieces_[i].bytes);
  }

  template <class T>
  T* get(long count) {
    // A line more than asked for: vectors may be read, never used, a little beyond the end.
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T) + 64;
    void* at = take_block(bytes);
    pieces_[count_++] = {at, bytes};
    return static_cast<T*>(at);
  }
  template <class T>
  T* zeros(long count) {
    T* at = get<T>(count);
    std::memset(static_cast<void*>(at), 0, static_cast<std::size_t>(count) * sizeof(T));  // all bits 0 are 0.0
    return at;
  }

 private:
  struct Piece {
    void* at;
    std::size_t bytes;
  };
  Piece pieces_[48];  // more than any call asks for
  int count_ = 0;
};

template <class T>
inline void copy_of(const T* from, long count, T* to) {
  if (count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
}

template <class T>
inline void clear(T* to, long count) {
  if (count > 0) std::memset(static_cast<void*>(to), 0, static_cast<std::size_t>(count) * sizeof(T));
}

constexpr long least(long a, long b) { return a < b ? a : b; }
constexpr long greatest(long a, long b) { return a > b ? a : b; }
constexpr long ceiling(long a, long b) { return (a + b - 1) / b; }

}  // namespace RECURRA_ISA
}  // namespace recurra
