#pragma once

#include <sched.h>

#include "recurra/kernels/namespace.h"

// A barrier for the members of a team, many times in a microsecond: each raises a flag of its own and reads the
// others'.
namespace recurra {
inline namespace RECURRA_ISA {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class Meeting {
 public:
  struct alignas(128) Flag {
    unsigned round;
  };
  // One flag for each of at most `count` members, all 0.
  void place(Flag* flags, int count) {
    flags_ = flags;
    count_ = count;
  }
  // Before a team of another size meets.
  void forget() {
    for (int i = 0; i < count_; ++i) flags_[i].round = 0;
  }

  // Member `rank` waits until all of the `count` members from `first` on have come as often as it has.
  void meet(int rank, int first, int count) {
    if (count == 1) return;
    const unsigned round = flags_[rank].round + 1;
    __atomic_store_n(&flags_[rank].round, round, __ATOMIC_RELEASE);
    for (int other = first; other < first + count; ++other) wait(flags_[other].round, round);
  }

 private:
  // A core of its own answers within the spinning; where threads share cores, the others must get theirs.
  static void wait(const unsigned& flag, unsigned round) {
    for (int spins = 0; static_cast<int>(__atomic_load_n(&flag, __ATOMIC_ACQUIRE) - round) < 0;)
      if (++spins < 2000)
        relax();
      else
        sched_yield();
  }

  Flag* flags_ = nullptr;
  int count_ = 0;
};

// A member's range of `count` things.
struct Share {
  long begin, end;
};
constexpr Share share(long count, int rank, int size) { return {count * rank / size, count * (rank + 1) / size}; }

}  // namespace RECURRA_ISA
}  // namespace recurra
