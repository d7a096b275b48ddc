#pragma once

#include <new>

#include "forward.h"
#include "kernels.h"

// A forward loop that is taken up again and again: one layer of a stream. All memory is taken when it is made.
namespace recurra {
inline namespace RECURRA_ISA {

template <class Cell, class S>
class Resumed {
  using Loop = Forward<Cell, S>;

 public:
  Resumed(const Cell& cell, const ForwardCall<S>& q, int threads)
      : cell_(cell), q_(q), loop_(cell_, q_, 0, threads, true), most_(threads) {
    loop_.begin();
  }

  static void run(void* self, const StreamCall<S>& call) { static_cast<Resumed*>(self)->run_here(call); }
  static void states(void* self, StateOf<S>** h, StateOf<S>** c) {
    const Loop& loop = static_cast<Resumed*>(self)->loop_;
    *h = loop.h();
    *c = loop.c();
  }
  static void close(void* self) { delete static_cast<Resumed*>(self); }

  Resumable<S> handle() { return {this, q_.hidden, loop_.stride(), run, states, close}; }

 private:
  void run_here(const StreamCall<S>& call) {
    if (call.steps == 0 || q_.batch == 0) return;
    q_.steps = call.steps;
    q_.source = call.source;
    q_.resets = call.resets;
    q_.h = call.h;
    const Team team = most_ == 1 ? Team{1, 0} : Loop::team(q_);
    if (team.threads == 1)
      loop_.go_on(0, 1);
    else
      run_team(team, [&](int rank, int size) { loop_.go_on(rank, size); });
    loop_.turn();
  }

  Cell cell_;
  ForwardCall<S> q_;  // the loop refers to it
  Loop loop_;
  int most_;
};

}  // namespace RECURRA_ISA
}  // namespace recurra
